"""The model and its walls over one raveled vector, as graphs.

The vector holds the *coordinates* of the sampled variables: images ``y`` of mirrored variables,
transformed values of variables that keep a transform, and all other variables as they are.
Variables that other step methods sample enter as a second vector, not as constants.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.region.support import Support
from pymc_rollback.target.barrier import boundary_term, lean
from pymc_rollback.target.mirror import LEAST_SHARPNESS, fold, image_energy, within_reach
from pymc_rollback.target.plan import Plan


@dataclass(frozen=True)
class Block:
    """Where the coordinates of one variable are in a raveled vector."""

    name: str
    span: slice
    shape: tuple[int, ...]
    dtype: str

    @property
    def element_names(self) -> list[str]:
        """What each of its coordinates is called: its name with the indices in its value."""
        indices = (",".join(map(str, index)) for index in np.ndindex(self.shape))
        return [f"{self.name}[{index}]" if index else self.name for index in indices]

    def take(self, vector: TensorVariable) -> TensorVariable:
        """The variable's coordinates, in its own shape and type."""
        return pt.cast(vector[self.span].reshape(self.shape), self.dtype)


def lay_out(values: Sequence[tuple[str, np.ndarray]]) -> list[Block]:
    """Blocks for named arrays, one after the other."""
    blocks, start = [], 0
    for name, value in values:
        value = np.asarray(value)
        blocks.append(Block(name, slice(start, start + value.size), value.shape, str(value.dtype)))
        start += value.size
    return blocks


def ravel(point: Mapping[str, np.ndarray], blocks: Sequence[Block]) -> np.ndarray:
    """Values of the variables of some blocks, one after the other."""
    return np.concatenate([np.empty(0), *(np.ravel(point[b.name]).astype(float) for b in blocks)])


class Density:
    """Graphs of the log density and the walls of some of a model's variables.

    Parameters
    ----------
    plan
        What is done with each sampled variable, and what keeps trajectories inside constraints.
    start
        A point of the model, for the shapes of its values.
    data
        Data containers whose values are inputs of the log density: they come after the values of
        other steps' variables. All others are constants in it.
    """

    def __init__(
        self,
        plan: Plan,
        start: Mapping[str, np.ndarray],
        data: Sequence[SharedVariable] = (),
    ) -> None:
        self.plan = plan
        self.region = plan.region
        self.model = plan.region.model
        self.start = dict(start)
        self.space = plan.region.space(plan.transforms)
        first = (x.astype("float64") for x in self.region.evaluate(self._unfolded, start))
        self.blocks = lay_out(list(zip(plan.names, first, strict=True)))
        others = [rv for rv in self.model.free_RVs if rv.name not in plan.names]
        self.size = sum(block.span.stop - block.span.start for block in self.blocks)
        # known sizes spare the graphs their slices
        self.coordinates = pt.tensor("coordinates", dtype="float64", shape=(self.size,))
        values = [(v.name, start[v.name]) for v in (self.model.rvs_to_values[rv] for rv in others)]
        values += [(v.name, v.get_value()) for v in data]
        self.given_blocks = lay_out(values)
        self.other_blocks = self.given_blocks[: len(others)]
        self.data = dict(zip(data, self.given_blocks[len(others) :], strict=True))
        given = sum(block.span.stop - block.span.start for block in self.given_blocks)
        self.others = pt.tensor("others", dtype="float64", shape=(given,))
        self.sharpness = pt.dvector("sharpness")

    @cached_property
    def barrier_rows(self) -> int:
        """Number of rows of the barriers."""
        slacks = [c.slack for c in self.plan.barriers]
        return sum(slack.size for slack in self.region.evaluate(slacks, self.start))

    @property
    def is_alone(self) -> bool:
        """Whether a draw goes on from the one before, with no other variable or image between."""
        return not (self.other_blocks or self.plan.mirrored)

    @property
    def _unfolded(self) -> list[TensorVariable]:
        """Coordinates, before an image is drawn, of the random variables."""
        rvs = (self.model[name] for name in self.plan.names)
        return [_forward(rv, self.space.transforms[rv]) for rv in rvs]

    def pairs(self, supports: Mapping[str, Support]) -> list[tuple[Block, Support]]:
        """Supports of some variables, each with the block of its coordinates."""
        return [(b, supports[b.name]) for b in self.blocks if b.name in supports]

    def in_coordinates(self, expressions: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Write expressions of random variables in terms of the coordinates."""
        return self.values_in_coordinates(self.space.replace(expressions))

    def values_in_coordinates(self, expressions: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Write expressions of value variables in terms of the coordinates."""
        return clone_replace(list(expressions), self._written)

    @cached_property
    def _written(self) -> dict[TensorVariable, TensorVariable]:
        """Each value variable in terms of the coordinates, or of the other steps' values."""
        own = {v.name: v for v in self.model.value_vars}
        written = {own[block.name]: block.take(self.others) for block in self.other_blocks}
        mirrored = self.plan.mirrored
        # in the model's order: bounds depend on variables that come before
        for block in self.blocks:
            value = block.take(self.coordinates)
            if block.name in mirrored:
                value = self._mirror(value, mirrored[block.name], written)
            written[self.space[block.name]] = value
        return written

    def _mirror(
        self, y: TensorVariable, support: Support, written: Mapping[TensorVariable, TensorVariable]
    ) -> TensorVariable:
        """Fold coordinates into a support whose bounds depend on values written before."""
        x = fold(y, *self._written_bounds(support, written))
        if support.order is None:
            return x
        x = pt.sort(x, axis=-1)
        return x if support.order == "ascending" else x[..., ::-1]

    def _written_bounds(
        self, support: Support, written: Mapping[TensorVariable, TensorVariable]
    ) -> list[TensorVariable | None]:
        """Lower and upper bound in terms of the coordinates."""
        bounds = support.lower, support.upper
        return [
            None if b is None else clone_replace(self.space.replace([b]), written)[0]
            for b in bounds
        ]

    def log_density(self) -> TensorVariable:
        """Gradient of the log density without indicators, and then the log density itself."""
        [logp] = self.values_in_coordinates([self.space.smooth_logp])
        logp = clone_replace(logp, {v: block.take(self.others) for v, block in self.data.items()})
        return self._answer(logp, [logp])

    def _answer(
        self, value: TensorVariable, levels: list[TensorVariable], *rows: TensorVariable
    ) -> TensorVariable:
        """One vector of a gradient, some levels and rows, as the kernels take it."""
        gradient = pt.grad(value, self.coordinates, disconnected_inputs="ignore")
        return pt.concatenate([gradient, *(pt.cast(x, "float64")[None] for x in levels), *rows])

    def walls(self) -> TensorVariable:
        """Gradient of the boundary energy, the energy, the log weight, and the smallest slack.

        Then, for each row of the barriers, how steep its boundary term is.
        """
        images = [
            self._image_walls(block, support) for block, support in self.pairs(self.plan.mirrored)
        ]
        image_energy = pt.add(pt.constant(0.0), *(energy for energy, _, _ in images))
        slacks = [slack for _, _, slack in images]
        allowed = [reached for _, reached, _ in images]
        energy, leans = image_energy, []
        if self.plan.barriers:
            rows = pt.concatenate(self.in_coordinates([c.slack for c in self.plan.barriers]))
            energy = energy + boundary_term(rows, self.sharpness[self.size :])
            leans.append(lean(rows, self.sharpness[self.size :]))
            slacks.append(rows)
            allowed.append(pt.all(rows > 0))
        log_weight = -energy
        if self.plan.exact:
            inside = pt.all(pt.stack([pt.constant(True), *allowed]))
            log_weight = pt.switch(inside, -image_energy, -np.inf)
        slack = reduce(pt.minimum, map(_least, slacks))
        return self._answer(energy, [energy, log_weight, slack], *leans)

    def _image_walls(self, block: Block, support: Support) -> tuple[TensorVariable, ...]:
        """Energy, reach and slacks (before folding) of a mirrored variable."""
        y = block.take(self.coordinates)
        lower, upper = self._written_bounds(support, self._written)
        if not support.bounded:
            return pt.constant(0.0), pt.constant(True), pt.constant([np.inf])
        x = fold(y, lower, upper)
        sharpness = self.sharpness[block.span].reshape(block.shape)
        if lower is not None and upper is not None:
            sharpness = pt.switch(sharpness > 0, sharpness, LEAST_SHARPNESS / (upper - lower))
        slacks = [] if lower is None else [y - lower]
        slacks += [] if upper is None else [upper - y]
        return (
            pt.sum(image_energy(y, x, lower, upper, sharpness)),
            pt.all(within_reach(y, lower, upper)),
            pt.concatenate([(slack + pt.zeros_like(y)).ravel() for slack in slacks]),
        )

    def enter(self) -> list[TensorVariable]:
        """Coordinates (before an image is drawn) and their bounds, of the model's own values."""
        coordinates, bounds = self._unfolded, []
        supports = self.plan.walled
        for name, coordinate in zip(self.plan.names, coordinates, strict=True):
            unbounded = (pt.constant(-np.inf), pt.constant(np.inf))
            bounds.append(
                [
                    bound + pt.zeros_like(coordinate)
                    for bound in (supports[name].full_bounds if name in supports else unbounded)
                ]
            )
        vectors = [coordinates, [low for low, _ in bounds], [high for _, high in bounds]]
        raveled = [pt.concatenate([pt.cast(x, "float64").ravel() for x in xs]) for xs in vectors]
        return self.model.replace_rvs_by_values(raveled)

    def leave(self) -> list[TensorVariable]:
        """The model's own values, of the coordinates, and its hard log density less the smooth one.

        The log densities differ by the Jacobians of the transforms, and outside the region by minus
        infinity.
        """
        rvs = [self.model[name] for name in self.plan.names]
        own = self.model.rvs_to_transforms
        changed = [rv for rv in rvs if own[rv] is not self.space.transforms[rv]]
        # the value of the space itself, not mapped out and back: that may round to a bound
        jacobians = [
            _log_jacobian(rv, own[rv], _forward(rv, own[rv]))
            - _log_jacobian(rv, self.space.transforms[rv], self.space.values[rv])
            for rv in changed
        ]
        rows = [] if self.plan.exact else [c.slack for c in self.plan.barriers]
        outside = [pt.switch(pt.all(row > 0), 0.0, -np.inf) for row in rows]
        difference = pt.add(pt.constant(0.0), *jacobians, *outside)
        return self.in_coordinates([*(_forward(rv, own[rv]) for rv in rvs), difference])


def _least(rows: TensorVariable) -> TensorVariable:
    """The least of some rows; infinite where there is none (an order of one, no finite bound)."""
    surely_some = (rows.type.shape[0] or 0) > 0
    return pt.min(rows if surely_some else pt.concatenate([pt.constant([np.inf]), rows]))


def _forward(rv: TensorVariable, transform: Transform | None) -> TensorVariable:
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _log_jacobian(
    rv: TensorVariable, transform: Transform | None, value: TensorVariable
) -> TensorVariable:
    if transform is None:
        return pt.constant(0.0)
    return pt.sum(transform.log_jac_det(value, *rv.owner.inputs))
