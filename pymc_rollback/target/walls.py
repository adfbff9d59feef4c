"""The walls of a density in numbers: what of its region stays the same from draw to draw."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from pymc_rollback.target.density import Density
from pymc_rollback.target.ledger import Ledger, read_ledger
from pymc_rollback.target.mirror import LEAST_SHARPNESS, draw_image
from pymc_rollback.target.slacks import Slacks


class Mirror(NamedTuple):
    """Coordinates of a mirrored variable: where they are, their shape, whether an order sorts them.

    A sorted coordinate may be any element of the variable, so that all permutations are images.
    """

    span: slice
    shape: tuple[int, ...]
    sorts: bool


@dataclass(frozen=True)
class Walls:
    """What a chain knows about its walls before it begins, as arrays and numbers.

    Attributes
    ----------
    names
        What each coordinate is called, such as ``x[0]``.
    reflects
        Which coordinates are reflected at their bounds while they drift, or kept in order.
    mappable
        Which of them may move under a log or a logit instead: those that no order and no plane
        concerns, and of which the user has not said that they reflect.
    runs, run_names
        Start, length and direction of each run of coordinates that is kept in order, and the name
        of its variable.
    planes
        Slacks ``A x + c`` of the planes, in units of length: ``A`` transposed over ``c``.
    mirrors
        The coordinates that are images.
    barrier_rows
        Number of rows of the barriers, which come before those of the planes.
    is_affine
        Whether the rows of all barriers and planes are affine in the coordinates.
    has_energy
        Whether any wall has a boundary term: a barrier, or a mirror at a bound.
    sharp
        Places in the vector of sharpness, each with the names that stand for it.
    ledger
        Which rows of the region's constraints the walls belong to.
    """

    names: tuple[str, ...]
    reflects: np.ndarray
    mappable: np.ndarray
    runs: np.ndarray
    run_names: tuple[str, ...]
    planes: np.ndarray
    mirrors: tuple[Mirror, ...]
    barrier_rows: int
    is_affine: bool
    has_energy: bool
    sharp: tuple[tuple[tuple[str, ...], slice], ...]
    ledger: Ledger

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    @property
    def planar(self) -> np.ndarray:
        """Which coordinates planes concern."""
        return np.any(self.planes[:-1] != 0, axis=1)

    @property
    def ordered(self) -> list[tuple[slice, int]]:
        """Runs of coordinates that are kept in order, each with 1 if it ascends, or -1."""
        return [
            (slice(start, start + length), direction)
            for start, length, direction in self.runs.astype(int).tolist()
        ]

    @property
    def exchanges(self) -> np.ndarray:
        """Which coordinates exchange places with neighbours."""
        found = np.zeros(self.size, dtype=bool)
        for run, _ in self.ordered:
            found[run] = True
        return found

    def with_planes_for_orders(self) -> "Walls":
        """The same region with a plane between neighbours, which then exchange no places."""
        rows = self.order_rows() / np.sqrt(2.0)
        planes = np.c_[self.planes, np.c_[rows, np.zeros(len(rows))].T]
        return replace(self, planes=np.ascontiguousarray(planes), runs=self.runs[:0], run_names=())

    def without_bounds(self, free: np.ndarray) -> "Walls":
        """The same walls where some coordinates have no bounds."""
        return replace(self, reflects=self.reflects & ~free)

    def order_rows(self) -> np.ndarray:
        """Rows of ``A x > 0`` that say that runs of coordinates are in order."""
        pairs = [(i, way) for run, way in self.ordered for i in range(run.start, run.stop - 1)]
        rows = np.zeros((len(pairs), self.size))
        for row, (i, way) in zip(rows, pairs, strict=True):
            row[i : i + 2] = -way, way
        return rows

    def share(self, values: np.ndarray) -> np.ndarray:
        """Values, of which coordinates that exchange places share the mean."""
        shared = values.copy()
        for run, _ in self.ordered:
            shared[run] = np.mean(values[run])
        return shared

    def reflecting(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds at which coordinates are reflected; infinite for all others."""
        return np.where(self.reflects, lower, -np.inf), np.where(self.reflects, upper, np.inf)

    def clip(self, position: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """The nearest position within bounds, put in order."""
        clipped = keep_inside(position, lower, upper).copy()
        for run, direction in self.ordered:
            clipped[run] = np.sort(clipped[run])[::direction]
        return clipped

    def draw_image(
        self,
        position: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        sharpness: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw images of mirrored coordinates, and a permutation of ordered ones."""
        y = keep_inside(position, lower, upper).copy()
        for here, shape, sorts in self.mirrors:
            mu, low, high = sharpness[here], lower[here], upper[here]
            width = high - low
            mu = np.where((mu > 0) | np.isinf(width), mu, LEAST_SHARPNESS / width)
            y[here] = draw_image(y[here], low, high, mu, rng)
            if sorts:
                y[here] = rng.permuted(y[here].reshape(shape), axis=-1).ravel()
        return y

    def typical_sharpness(self, sharpness: np.ndarray) -> float:
        """Median sharpness of the walls; NaN where there are none."""
        places = [sharpness[place] for _, place in self.sharp]
        return float(np.median(np.concatenate(places))) if places else np.nan


def keep_inside(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Move what was rounded onto a bound to the nearest number inside."""
    if np.all((x > lower) & (x < upper)):
        return x
    return np.clip(x, np.nextafter(lower, np.inf), np.nextafter(upper, -np.inf))


def read_walls(density: Density) -> Walls:
    """Find the walls of a density, in numbers."""
    plan, size = density.plan, density.size
    barriers = density.region.evaluate([c.slack for c in plan.barriers], density.start)
    rows = [slack.size for slack in barriers]
    reflects, mappable = np.zeros((2, size), dtype=bool)
    planes, lengths = read_planes(density)
    for block, support in density.pairs(plan.reflected):
        reflects[block.span] = True
        mappable[block.span] = support.order is None and not plan.treatments[block.name].chosen
    runs = [
        (block.name, (start, block.shape[-1], 1.0 if support.order == "ascending" else -1.0))
        for block, support in density.pairs(plan.reflected)
        if support.order is not None and block.shape[-1] > 0
        for start in range(block.span.start, block.span.stop, block.shape[-1])
    ]
    mirrors = [
        Mirror(block.span, block.shape, support.order is not None)
        for block, support in density.pairs(plan.mirrored)
    ]
    straight = not plan.transformed and not plan.mirrored
    return Walls(
        names=tuple(name for block in density.blocks for name in block.element_names),
        reflects=reflects,
        mappable=mappable & ~np.any(planes[:-1] != 0, axis=1),
        runs=np.array([run for _, run in runs], dtype=float).reshape(-1, 3),
        run_names=tuple(name for name, _ in runs),
        planes=planes,
        mirrors=tuple(mirrors),
        barrier_rows=sum(rows),
        is_affine=straight and all(c.affine for c in (*plan.barriers, *plan.planes)),
        has_energy=plan.has_walls,
        sharp=tuple(_find_sharp(density, rows)),
        ledger=read_ledger(density, lengths),
    )


def read_planes(density: Density) -> tuple[np.ndarray, np.ndarray]:
    """Planes as rows of unit normals and offsets, transposed; and the lengths of all normals."""
    slacks = Slacks(density, density.plan.planes)
    if not slacks.constraints:
        return np.empty((density.size + 1, 0)), np.empty(0)
    zeros = np.zeros(density.size), np.zeros(density.others.type.shape)
    rows = np.c_[slacks.gradients(*zeros), slacks.rows(*zeros)]
    length = np.linalg.norm(rows[:, :-1], axis=1)
    # a row without coordinates is met everywhere or, as the start finds out, nowhere
    rows = rows[length > 0] / length[length > 0, None]
    return np.ascontiguousarray(rows.T), length


def _find_sharp(
    density: Density, barrier_rows: Sequence[int]
) -> list[tuple[tuple[str, ...], slice]]:
    """Walls that have a sharpness, by name: bounds of mirrored variables, rows of barriers."""
    plan = density.plan
    absorbed = {c.name: c.bound.variable for c in plan.absorbed if c.bound is not None}
    sharp = [
        ((block.name, *(c for c, v in absorbed.items() if v == block.name)), block.span)
        for block, support in density.pairs(plan.mirrored)
        if support.bounded and block.name in plan.sharp
    ]
    start = density.size
    for constraint, count in zip(plan.barriers, barrier_rows, strict=True):
        names = tuple(dict.fromkeys((constraint.name, constraint.owner)))
        sharp.append((names, slice(start, start + count)))
        start += count
    return sharp
