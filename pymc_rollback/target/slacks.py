"""Slacks of the walls as functions of a position, from the graphs of a density."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pymc.exceptions import SamplingError
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.region.constraint import Constraint
from pymc_rollback.target.density import Density


class Slacks:
    """Slacks of some constraints at a position: one row for each element of a constraint.

    Each function is compiled when it is first called, and again in each process.

    Parameters
    ----------
    density
        The density, whose coordinates a position consists of.
    constraints
        The constraints; if left out, all that have a barrier, and then the planes.
    """

    def __init__(self, density: Density, constraints: Sequence[Constraint] | None = None) -> None:
        walls = [*density.plan.barriers, *density.plan.planes]
        self.density = density
        self.constraints = walls if constraints is None else list(constraints)

    def named(self, position: np.ndarray, others: np.ndarray) -> list[tuple[str, np.ndarray]]:
        """Names of the constraints, each with the slacks of its rows."""
        names = [c.name for c in self.constraints]
        return list(zip(names, self._slacks(position, others), strict=True))

    def rows(self, position: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Slacks of all rows."""
        return np.concatenate([np.empty(0), *self._slacks(position, others)])

    def gradients(
        self, position: np.ndarray, others: np.ndarray, first: int | None = None
    ) -> np.ndarray:
        """Gradients of the first rows, or of all: the Jacobian, by unit vectors."""
        units = np.eye(self.rows(position, others).size)[:first]
        gradients = [self._weighted_gradient(position, others, unit) for unit in units]
        return np.reshape(gradients, (len(units), self.density.size))

    @cached_property
    def shortfall(self) -> Callable:
        """Sum of squares by which scaled slacks fall short of a margin, and its gradient."""
        margin, scale = pt.dvector("margin"), pt.dvector("scale")
        total = pt.sum((pt.maximum(margin - pt.concatenate(self._graphs), 0.0) / scale) ** 2)
        return self._function([margin, scale], [total, self._gradient(total)])

    def blame(self, position: np.ndarray, others: np.ndarray, slope: np.ndarray) -> str:
        """Say which variable or constraint a trajectory was at when it diverged."""
        blocks, planes = self.density.blocks, self.density.plan.planes
        if not np.all(np.isfinite(position)) and planes:
            names = ", ".join(repr(c.name) for c in planes)
            return f"the planes of {names}, on which of whose sides it is, rounding hides"
        for block in blocks:
            if not np.all(np.isfinite(slope[block.span])):
                return f"a gradient of {block.name!r} that is not finite"
        least = {name: np.min(slack) for name, slack in self.named(position, others)}
        worst = min(least, key=least.__getitem__, default=None)
        if worst is not None and least[worst] < 0:
            return f"the constraint {worst!r}, with the slack {least[worst]:.3g}"
        steepest = max(blocks, key=lambda b: np.max(np.abs(slope[b.span]), initial=0.0))
        return f"the variable {steepest.name!r}, where the density is steepest"

    def check_start(self, point: Mapping[str, np.ndarray]) -> None:
        """Raise where a point of the model is outside its region, naming constraint and slack."""
        slacks = self._point_slacks(*(point[v.name] for v in self.density.model.value_vars))
        for constraint, slack in zip(self._moving, slacks, strict=True):
            infinite = constraint.kind == "joint" and np.any(np.isinf(slack))
            if infinite or not np.all(slack > 0):
                least = np.nan if np.any(np.isnan(slack)) else np.min(slack)
                raise SamplingError(
                    f"The start is outside the region: constraint {constraint.name!r} "
                    f"({constraint.text}) has the slack {least:.4g}, which must be positive "
                    "and finite. Give "
                    "a point inside: pm.sample(initvals={...}), or initval= of the variable."
                )

    @cached_property
    def _moving(self) -> list[Constraint]:
        """Constraints of the region, whatever keeps them, that depend on the coordinates."""
        return [c for c in self.density.region if self.density.plan.varies(c.slack)]

    @cached_property
    def _point_slacks(self) -> Callable:
        model, slacks = self.density.model, [c.slack for c in self._moving]
        return interpreted(model.value_vars, model.replace_rvs_by_values(slacks) if slacks else [])

    @cached_property
    def _slacks(self) -> Callable:
        return self._function([], self._graphs)

    @cached_property
    def _weighted_gradient(self) -> Callable:
        weights = pt.dvector("weights")
        total = pt.sum(weights * pt.concatenate(self._graphs))
        return self._function([weights], self._gradient(total))

    @cached_property
    def _graphs(self) -> list[TensorVariable]:
        slacks = [c.slack for c in self.constraints]
        return self.density.in_coordinates(slacks) if slacks else []

    def _gradient(self, total: TensorVariable) -> TensorVariable:
        return pt.grad(total, self.density.coordinates, disconnected_inputs="ignore")

    def _function(
        self, inputs: list[TensorVariable], outputs: TensorVariable | list[TensorVariable]
    ) -> Callable:
        return interpreted([self.density.coordinates, self.density.others, *inputs], outputs)

    def __getstate__(self) -> dict:
        # compiled functions are made again where they arrive
        return {"density": self.density, "constraints": self.constraints}
