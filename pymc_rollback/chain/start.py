"""A feasible, dispersed start for each chain."""

from collections.abc import Callable

import numpy as np
import scipy

from pymc_rollback.region.search import descend, find_deepest
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import Walls

MARGINS = (1.0, 1e-2, 1e-4, 1e-6)
"""By how much slacks are made positive, in units of their size at the first point."""

TRIES, AROUND = 12, 10
"""How often a start is looked for, ever farther away, and positions at each distance."""

HALVINGS = 40
"""How often a jitter that leaves the region is halved."""


class OutsideError(ValueError):
    """No point inside the region was found; says what could not be met."""


class Start:
    """Finds starting positions in a region.

    Parameters
    ----------
    walls, slacks
        The region in terms of the coordinates.
    others
        Values of the variables that other step methods sample.
    lower, upper
        Bounds of the coordinates.
    """

    def __init__(
        self,
        walls: Walls,
        slacks: Slacks,
        others: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
    ) -> None:
        self.walls, self.slacks = walls, slacks
        self.others = others
        self.lower, self.upper = lower, upper

    def find(
        self,
        position: np.ndarray,
        log_density: Callable[[np.ndarray], float],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The given position, or, where the density is zero there, one found inside the region.

        It may be one where the log density is not finite, if there are only such.

        Parameters
        ----------
        position
            Where PyMC starts the chain.
        log_density
            Log density of a position.
        rng
            The chain's generator.
        """
        inside = position if self._is_inside(position) else self._walk_in(position, rng)
        if np.isfinite(log_density(inside)):
            return inside
        for attempt in range(1, TRIES):
            around = (self._move(inside, _spread(attempt), rng) for _ in range(AROUND))
            levels = {log_density(x): x for x in around if self._is_inside(x)}
            finite = [level for level in levels if np.isfinite(level)]
            if finite:
                return levels[max(finite)]
        return inside

    def _move(self, position: np.ndarray, spread: float, rng: np.random.Generator) -> np.ndarray:
        return self._reflect(position + spread * rng.normal(size=position.size))

    def _rows(self, position: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return self.slacks.rows(position, self.others)

    def _is_inside(self, position: np.ndarray) -> bool:
        slacks = self._rows(position)
        if not np.all(slacks > 0) or not np.any(np.isinf(slacks)):
            return bool(np.all(slacks > 0))
        # at a pole the slack jumps from one side to the other: it is an edge, and no way leads off
        with np.errstate(all="ignore"):
            gradients = self.slacks.gradients(position, self.others)
        return bool(np.all(np.isfinite(gradients)))

    def _walk_in(self, position: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.walls.is_affine:
            return self._nearest(position)
        best, least = position, -np.inf
        for attempt in range(TRIES):
            noise = rng.normal(size=position.size) * (0.0 if attempt == 0 else _spread(attempt))
            found = self._descend(self._clip(position + noise))
            if self._is_inside(found):
                return found
            shortfall = np.min(np.nan_to_num(self._rows(found), nan=-np.inf, posinf=0.0))
            if shortfall > least:
                best, least = found, shortfall
        raise OutsideError(self._complaint(best))

    def _clip(self, position: np.ndarray) -> np.ndarray:
        return self.walls.clip(position, self.lower, self.upper)

    def _descend(self, position: np.ndarray) -> np.ndarray:
        """Minimise the squared shortfall of the slacks, for ever smaller margins."""
        first = np.abs(self._rows(position))
        scale = np.where(np.isfinite(first) & (first > 0), first, 1.0)
        bounds = list(zip(self.lower, self.upper, strict=True))
        options = {"maxiter": 2000, "ftol": 0.0, "gtol": 0.0}
        for margin in MARGINS:
            given = self.others, margin * scale, scale
            found = descend(self.slacks.shortfall, position, *given, bounds=bounds, options=options)
            position = self._clip(found)
            if self._is_inside(position):
                break
        return position

    def _nearest(self, position: np.ndarray) -> np.ndarray:
        """Nearest point of an affine system that is half as deep as possible: linear programs."""
        offset = self._rows(np.zeros_like(position))
        rows = self.slacks.gradients(position, self.others)
        orders = self.walls.order_rows()
        rows, offset = np.concatenate([rows, orders]), np.r_[offset, np.zeros(len(orders))]
        size = np.linalg.norm(rows, axis=1)
        size = np.where(size > 0, size, 1.0)
        rows, offset = rows / size[:, None], offset / size
        bounds = list(zip(self.lower, self.upper, strict=True))
        deepest = find_deepest(rows, offset, bounds)
        if deepest.x is None:
            raise OutsideError(self._complaint(position))
        # |x - position| <= u, and the sum of u is to be small
        unit = scipy.sparse.identity(position.size)
        nearest = scipy.optimize.linprog(
            np.r_[np.zeros(position.size), np.ones(position.size)],
            A_ub=scipy.sparse.bmat([[-rows, None], [unit, -unit], [-unit, -unit]]),
            b_ub=np.r_[offset - 0.5 * deepest.x[-1], position, -position],
            bounds=[*bounds, *[(0.0, None)] * position.size],
        )
        answer = deepest if nearest.x is None else nearest
        found = self._clip(answer.x[: position.size])
        if not self._is_inside(found):
            raise OutsideError(self._complaint(found))
        return found

    def _complaint(self, position: np.ndarray) -> str:
        slacks = self.slacks.named(position, self.others)
        violated = [f"{name!r} (slack {np.min(s):.3g})" for name, s in slacks if not np.all(s > 0)]
        return (
            "No point inside the region was found from the start. At the best point, "
            f"{', '.join(violated)} could not be met together with the other constraints. Check "
            "them, or give a point inside: pm.sample(initvals={...})."
        )

    def jitter(
        self,
        position: np.ndarray,
        log_density: Callable[[np.ndarray], float],
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Move at random by up to one in each coordinate, or as far as the region allows.

        Parameters
        ----------
        position
            A position inside the region.
        log_density
            Log density of a position.
        rng
            The chain's generator.
        """
        move = rng.uniform(-1.0, 1.0, size=position.size)
        for _ in range(HALVINGS):
            moved = self._reflect(position + move)
            if self._is_inside(moved) and np.isfinite(log_density(moved)):
                return moved
            move = 0.5 * move
        return position

    def _reflect(self, position: np.ndarray) -> np.ndarray:
        """Bring a position back inside its bounds and orders."""
        low, high = 2 * self.lower - position, 2 * self.upper - position
        moved = np.where(
            position < self.lower, low, np.where(position > self.upper, high, position)
        )
        return self._clip(moved)


def _spread(attempt: int) -> float:
    """How far from the given point to look in a further attempt."""
    return 3.0**attempt / 10
