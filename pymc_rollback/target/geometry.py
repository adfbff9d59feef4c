"""The region in terms of the coordinates, in numbers: slacks, images, walls by name."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pymc.exceptions import SamplingError
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.region.constraint import Constraint
from pymc_rollback.target.density import LEAST_SHARPNESS, Density
from pymc_rollback.target.mirror import draw_image


class Geometry:
    """What a chain asks about the region of a density.

    Parameters
    ----------
    density
        The density.
    """

    def __init__(self, density: Density) -> None:
        self.density = density
        self.size = density.size
        self.value_names = [v.name for v in density.model.value_vars]

    # -- points of the model

    def ravel_others(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """Values of the variables that other step methods sample."""
        blocks = self.density.other_blocks
        if not blocks:
            return np.empty(0)
        return np.concatenate([np.ravel(point[b.name]).astype(float) for b in blocks])

    def check_start(self, point: Mapping[str, np.ndarray]) -> None:
        """Raise where a point is outside the region, naming the constraint and its slack."""
        for constraint, slack in self._slacks_of(point):
            infinite = constraint.kind == "joint" and np.any(np.isinf(slack))
            if infinite or not np.all(slack > 0):
                least = np.nan if np.any(np.isnan(slack)) else np.min(slack)
                raise SamplingError(
                    f"The start is outside the region: constraint {constraint.name!r} "
                    f"({constraint.text}) has the slack {least:.4g}, which must be positive "
                    "and finite. Give "
                    "a point inside: pm.sample(initvals={...}), or initval= of the variable."
                )

    def _slacks_of(self, point: Mapping[str, np.ndarray]) -> list[tuple[Constraint, np.ndarray]]:
        slacks = self._point_slacks(*(point[name] for name in self.value_names))
        return list(zip(self._own_constraints, slacks, strict=True))

    @cached_property
    def _own_constraints(self) -> list[Constraint]:
        return [c for c in self.density.region if self.density.plan.moves(c.slack)]

    @cached_property
    def _point_slacks(self) -> Callable:
        model, slacks = self.density.model, [c.slack for c in self._own_constraints]
        return interpreted(model.value_vars, model.replace_rvs_by_values(slacks) if slacks else [])

    # -- sharpness

    @cached_property
    def sharp_walls(self) -> list[tuple[tuple[str, ...], slice]]:
        """Places in the sharpness vector, each with the names that stand for it."""
        density, plan = self.density, self.density.plan
        absorbed = {c.name: c.bound.variable for c in plan.absorbed if c.bound is not None}
        walls = [
            ((block.name, *(c for c, v in absorbed.items() if v == block.name)), block.span)
            for block, support in density.pairs(plan.mirrored)
            if support.bounded and block.name in plan.sharp
        ]
        start = self.size
        rows = {c.name: slack.size for c, slack in self._slacks_of(density.start)}
        for constraint in plan.barriers:
            names = tuple(dict.fromkeys((constraint.name, constraint.owner)))
            walls.append((names, slice(start, start + rows[constraint.name])))
            start += rows[constraint.name]
        return walls

    def typical_sharpness(self, sharpness: np.ndarray) -> float:
        """Median sharpness of the walls; NaN where there are none."""
        places = [sharpness[place] for _, place in self.sharp_walls]
        return float(np.median(np.concatenate(places))) if places else np.nan

    # -- bounds and orders

    @cached_property
    def is_alone(self) -> bool:
        """Whether a draw goes on from the one before, with no other variable or image between."""
        return not (self.density.other_blocks or self.density.plan.mirrored)

    def draw_image(
        self,
        coordinates: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        sharpness: np.ndarray,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Draw images of mirrored coordinates, and a permutation of ordered ones."""
        y = self.keep_inside(coordinates, lower, upper).copy()
        for block, support in self.density.pairs(self.density.plan.mirrored):
            here = block.span
            mu, low, high = sharpness[here], lower[here], upper[here]
            width = high - low
            mu = np.where((mu > 0) | np.isinf(width), mu, LEAST_SHARPNESS / width)
            y[here] = draw_image(y[here], low, high, mu, rng)
            if support.order is not None:
                y[here] = rng.permuted(y[here].reshape(block.shape), axis=-1).ravel()
        return y

    @staticmethod
    def keep_inside(x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Move what was rounded onto a bound to the nearest number inside."""
        if np.all((x > lower) & (x < upper)):
            return x
        return np.clip(x, np.nextafter(lower, np.inf), np.nextafter(upper, -np.inf))

    @cached_property
    def reflects(self) -> np.ndarray:
        """Which coordinates are reflected while they drift, or kept in order."""
        mask = np.zeros(self.size, dtype=bool)
        for block, _ in self.density.pairs(self.density.plan.reflected):
            mask[block.span] = True
        return mask

    @cached_property
    def exchanging(self) -> list[tuple[str, slice]]:
        """Runs of coordinates that exchange places when they meet, with their variable's name."""
        return [
            (block.name, slice(start, start + block.shape[-1]))
            for block, support in self.density.pairs(self.density.plan.reflected)
            if support.order is not None and block.shape[-1] > 0
            for start in range(block.span.start, block.span.stop, block.shape[-1])
        ]

    @cached_property
    def runs(self) -> np.ndarray:
        """Start, length and direction of each run of coordinates that is kept in order."""
        orders = {name: support.order for name, support in self.density.plan.reflected.items()}
        runs = [
            (run.start, run.stop - run.start, 1.0 if orders[name] == "ascending" else -1.0)
            for name, run in self.exchanging
        ]
        return np.array(runs, dtype=float).reshape(-1, 3)

    @cached_property
    def planes(self) -> np.ndarray:
        """Slacks ``A x + c`` of the planes, in units of length: ``A`` transposed over ``c``."""
        if not self.density.plan.planes:
            return np.empty((self.size + 1, 0))
        slacks = pt.concatenate(self.density.place([c.slack for c in self.density.plan.planes]))
        weights = pt.dvector("weights")
        function = self._function([weights], [slacks, self._gradient(pt.dot(weights, slacks))])
        zeros = np.zeros(self.size), np.zeros(self.density.others.type.shape)
        offset, _ = function(*zeros, np.zeros(self.plane_rows))
        normals = [function(*zeros, unit)[1] for unit in np.eye(self.plane_rows)]
        rows = np.c_[np.array(normals), offset]
        length = np.linalg.norm(rows[:, :-1], axis=1)
        # a row without coordinates is met everywhere or, as the start finds out, nowhere
        rows = rows[length > 0] / length[length > 0, None]
        return np.ascontiguousarray(rows.T)

    @cached_property
    def planar(self) -> np.ndarray:
        """Which coordinates planes concern."""
        return np.any(self.planes[:-1] != 0, axis=1)

    @cached_property
    def barrier_rows(self) -> int:
        """Number of rows of the barriers, which come before those of the planes."""
        return self._count_rows(self.density.plan.barriers)

    @cached_property
    def plane_rows(self) -> int:
        """Number of rows of the planes."""
        return self._count_rows(self.density.plan.planes)

    def _count_rows(self, constraints: list[Constraint]) -> int:
        slacks = self._slacks_of(self.density.start)
        return sum(slack.size for c, slack in slacks if c in constraints)

    def order_rows(self) -> np.ndarray:
        """Rows of ``A x > 0`` that say that runs of coordinates are in order."""
        pairs = [
            (i, direction)
            for start, length, direction in self.runs
            for i in range(int(start), int(start + length) - 1)
        ]
        rows = np.zeros((len(pairs), self.size))
        for row, (i, direction) in zip(rows, pairs, strict=True):
            row[i], row[i + 1] = -direction, direction
        return rows

    # -- rows of the boundary terms

    @cached_property
    def is_affine(self) -> bool:
        """Whether every row is affine in the coordinates."""
        plain = not self.density.plan.transformed and not self.density.plan.mirrored
        return plain and all(c.affine for c in self._walls)

    def row_slacks(self, position: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Slacks of all rows at a position."""
        slacks = self._slacks(position, others)
        return np.concatenate(slacks) if slacks else np.empty(0)

    def row_gradients(self, position: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Gradients of all rows at a position."""
        count = self.row_slacks(position, others).size
        rows = [self._weighted_gradient(position, others, w) for w in np.eye(count)]
        return np.reshape(rows, (count, self.size))

    def blame(self, position: np.ndarray, others: np.ndarray, slope: np.ndarray) -> str:
        """Say which variable or constraint a trajectory was at when it diverged."""
        blocks = self.density.blocks
        if not np.all(np.isfinite(position)) and self.density.plan.planes:
            names = ", ".join(repr(c.name) for c in self.density.plan.planes)
            return f"the planes of {names}, on which of whose sides it is, rounding hides"
        for block in blocks:
            if not np.all(np.isfinite(slope[block.span])):
                return f"a gradient of {block.name!r} that is not finite"
        least = {name: np.min(slack) for name, slack in self.named_slacks(position, others)}
        worst = min(least, key=least.__getitem__, default=None)
        if worst is not None and least[worst] < 0:
            return f"the constraint {worst!r}, with the slack {least[worst]:.3g}"
        steepest = max(blocks, key=lambda b: np.max(np.abs(slope[b.span]), initial=0.0))
        return f"the variable {steepest.name!r}, where the density is steepest"

    def named_slacks(
        self, position: np.ndarray, others: np.ndarray
    ) -> list[tuple[str, np.ndarray]]:
        """Slacks of the rows of each barrier, then of each plane, at a position."""
        names = [c.name for c in self._walls]
        return list(zip(names, self._slacks(position, others), strict=True))

    @cached_property
    def shortfall(self) -> Callable:
        """Sum of squares by which scaled slacks fall short of a margin, and its gradient."""
        margin, scale = pt.dvector("margin"), pt.dvector("scale")
        total = pt.sum((pt.maximum(margin - pt.concatenate(self._rows), 0.0) / scale) ** 2)
        return self._function([margin, scale], [total, self._gradient(total)])

    @cached_property
    def _slacks(self) -> Callable:
        return self._function([], self._rows)

    @cached_property
    def _weighted_gradient(self) -> Callable:
        weights = pt.dvector("weights")
        return self._function(
            [weights], self._gradient(pt.sum(weights * pt.concatenate(self._rows)))
        )

    @cached_property
    def _rows(self) -> list[TensorVariable]:
        return self.density.place([c.slack for c in self._walls]) if self._walls else []

    @cached_property
    def _walls(self) -> list[Constraint]:
        return [*self.density.plan.barriers, *self.density.plan.planes]

    def _gradient(self, total: TensorVariable) -> TensorVariable:
        return pt.grad(total, self.density.coordinates, disconnected_inputs="ignore")

    def _function(self, inputs: list[TensorVariable], outputs: list[TensorVariable]) -> Callable:
        return interpreted([self.density.coordinates, self.density.others, *inputs], outputs)

    def __getstate__(self) -> dict:
        # compiled functions are made again where they arrive
        kept = ("density", "size", "value_names")
        return {name: self.__dict__[name] for name in kept}
