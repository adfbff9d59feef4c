"""The model and its walls over one raveled vector, as graphs.

The vector holds the *coordinates* of the sampled variables: images ``y`` of mirrored variables,
transformed values of those that keep a transform, and the others as they are. Variables that other
step methods sample enter as a second vector, not as constants.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.barrier import boundary_term
from pymc_rollback.constraints import Constraint, Region, free_inputs, value_ancestors
from pymc_rollback.mirror import fold, image_energy, within_reach
from pymc_rollback.support import Support, left_open
from pymc_rollback.treatment import Treatment

LEAST_SHARPNESS = 8.0
"""Sharpness times width of two bounds that move with other variables and are given none."""

MOST_ROWS = 1000
"""Rows of an affine constraint up to which it reflects: each contact looks at all of them."""


@dataclass(frozen=True)
class Block:
    """Where the coordinates of one variable are in a raveled vector."""

    name: str
    place: slice
    shape: tuple[int, ...]
    dtype: str

    def take(self, vector: TensorVariable) -> TensorVariable:
        """The variable's coordinates, in its own shape and type."""
        return pt.cast(vector[self.place].reshape(self.shape), self.dtype)


def lay_out(values: Sequence[tuple[str, np.ndarray]]) -> list[Block]:
    """Blocks for named arrays, one after the other."""
    blocks, start = [], 0
    for name, value in values:
        value = np.asarray(value)
        blocks.append(Block(name, slice(start, start + value.size), value.shape, str(value.dtype)))
        start += value.size
    return blocks


class Density:
    """Graphs of the log density and the walls of some of a model's variables.

    Parameters
    ----------
    region
        The region of the model.
    treatments
        What is done with each sampled variable, by name.
    start
        A point of the model, for the shapes of its values.
    exact
        Whether bounded variables are kept inside and states outside the region have no weight,
        or (as in the paper) the smoothed density is the target.
    sharp
        Names of the variables and constraints that have a sharpness, and so a barrier.
    """

    def __init__(
        self,
        region: Region,
        treatments: Mapping[str, Treatment],
        start: Mapping[str, np.ndarray],
        exact: bool,
        sharp: Collection[str] = (),
    ) -> None:
        self.region = region
        self.model = region.model
        self.treatments = treatments
        self.exact = exact
        self.sharp = set(sharp)
        self.start = dict(start)
        transforms = {name: t.transform for name, t in treatments.items()}
        self.space = region.space(transforms if exact else {})
        self.names = [rv.name for rv in self.model.free_RVs if rv.name in treatments]
        first = (x.astype("float64") for x in region.evaluate(self._unfolded, start))
        self.blocks = lay_out(list(zip(self.names, first, strict=True)))
        others = [rv for rv in self.model.free_RVs if rv.name not in treatments]
        self.other_blocks = lay_out(
            [(v.name, start[v.name]) for v in (self.model.rvs_to_values[rv] for rv in others)]
        )
        self.size = sum(block.place.stop - block.place.start for block in self.blocks)
        # known sizes spare the graphs their slices
        self.coordinates = pt.tensor("coordinates", dtype="float64", shape=(self.size,))
        others = sum(block.place.stop - block.place.start for block in self.other_blocks)
        self.others = pt.tensor("others", dtype="float64", shape=(others,))
        self.sharpness = pt.dvector("sharpness")

    @property
    def _unfolded(self) -> list[TensorVariable]:
        """Coordinates, before an image is drawn, of the random variables."""
        rvs = (self.model[name] for name in self.names)
        return [_forward(rv, self.space.transforms[rv]) for rv in rvs]

    @cached_property
    def barriers(self) -> list[Constraint]:
        """Constraints with a boundary term of their own, besides the mirrors' image energy."""
        return [c for c in self.region if self._concerns(c) and c not in self.planes]

    @cached_property
    def planes(self) -> list[Constraint]:
        """Affine constraints at which trajectories are reflected, as they are at bounds.

        Only of coordinates that are the variables themselves, and of nothing that may change
        between two draws: other steps' variables, data.
        """
        ordered = {b.name for b, support in self.walled if support.order is not None}
        elsewhere = {b.name for b, _ in self.mirrored} | self.transformed | ordered
        straight = set(self.names) - elsewhere
        return [
            c
            for c in self.region
            if self.exact
            and c.affine
            and self._concerns(c)
            and {x.name for x in free_inputs(self.model, c.slack)} <= straight
            and not self._has_data(c.slack)
            and (c.slack.type.shape[0] or 1) <= MOST_ROWS
            and self.sharp.isdisjoint({c.name, owner_of(c.name)})
        ]

    def _has_data(self, expression: TensorVariable) -> bool:
        inputs = value_ancestors(expression, blockers=self.model.basic_RVs)
        return any(isinstance(x, SharedVariable) for x in inputs)

    def _concerns(self, constraint: Constraint) -> bool:
        """Whether trajectories could leave a constraint but for a barrier or a plane."""
        moves = self.moves(constraint.slack)
        if constraint.kind == "joint":
            return moves and constraint not in self.absorbed
        owner = owner_of(constraint.name)
        if owner in self.names:
            free = not self.exact and owner not in self.transformed
            return free or constraint.name in self._open
        # a bound of another step's variable is a wall for ours, unless its transform keeps it
        return moves and self.model.rvs_to_transforms[self.model[owner]] is None

    @cached_property
    def _open(self) -> set[str]:
        """Bounds and orders of sampled variables that their coordinates do not see to.

        Those that a transform does not imply, and orders of elements that cannot exchange places.
        """
        parts = {
            name: left_open(self.space.transforms[self.model[name]], self.region.supports[name])
            for name in self.transformed
        }
        walled = (block.name for block, _ in self.walled)
        parts |= {n: ["order"] for n in walled if self.treatments[n].action != "sort"}
        return {f"{name}.{part}" for name, found in parts.items() for part in found}

    def wall(self, constraint: Constraint) -> str:
        """What keeps trajectories inside a constraint: "reflects", "barrier" or "transform"."""
        if constraint in self.planes:
            return "reflects"
        if constraint in self.barriers:
            return "barrier"
        bound = constraint.bound
        owner = owner_of(constraint.name) if bound is None else bound.variable
        if owner in self.transformed:
            return "transform"
        return "reflects" if owner in {b.name for b, _ in self.reflected} else "barrier"

    @cached_property
    def absorbed(self) -> list[Constraint]:
        """Joint constraints that are no more than a bound of a variable that is kept inside."""
        walled = {block.name for block, _ in self.walled if not self.region.walls[block.name].order}
        joint = (c for c in self.region.joint if c.bound is not None)
        return [c for c in joint if c.bound.variable in walled]

    @cached_property
    def transformed(self) -> set[str]:
        """Sampled variables whose coordinates are transformed values."""
        return {name for name in self.names if self.space.transforms[self.model[name]] is not None}

    @cached_property
    def walled(self) -> list[tuple[Block, Support]]:
        """Blocks and supports of the variables that are kept inside their bounds and order.

        An order of elements that cannot exchange places is a constraint like any other.
        """
        walls, actions = self.region.walls, {}
        if self.exact:
            actions = {name: t.action for name, t in self.treatments.items()}
        return [
            (b, walls[b.name] if actions[b.name] == "sort" else replace(walls[b.name], order=None))
            for b in self.blocks
            if actions.get(b.name) in ("barrier", "sort")
        ]

    @cached_property
    def reflected(self) -> list[tuple[Block, Support]]:
        """Of these, the ones that are reflected while they drift: the mirror without a barrier.

        Without a barrier all images of a point are alike, so that the point can stand for them;
        but their bounds must stay where they are along a trajectory.
        """
        return [(b, s) for b, s in self.walled if b.name not in self.sharp and self._stays(s)]

    @cached_property
    def mirrored(self) -> list[tuple[Block, Support]]:
        """The others, whose coordinates are images that the graph folds into their support."""
        return [pair for pair in self.walled if pair not in self.reflected]

    @cached_property
    def has_walls(self) -> bool:
        """Whether anything but the drift keeps trajectories inside."""
        return bool(self.barriers) or any(support.bounded for _, support in self.mirrored)

    def _stays(self, support: Support) -> bool:
        return not any(self.moves(b) for b in (support.lower, support.upper) if b is not None)

    def moves(self, expression: TensorVariable) -> bool:
        """Whether an expression changes along a trajectory.

        With our variables, or with another step's that is transformed between bounds that move.
        """
        for x in free_inputs(self.model, expression):
            transform = self.model.rvs_to_transforms[x]
            if x.name in self.names:
                return True
            if transform is not None:
                value = self.model.rvs_to_values[x]
                if self.moves(transform.backward(value, *x.owner.inputs)):
                    return True
        return False

    def place(self, expressions: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Write expressions of random variables in terms of the coordinates."""
        return self.place_values(self.space.replace(expressions))

    def place_values(self, expressions: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Write expressions of value variables in terms of the coordinates."""
        return clone_replace(list(expressions), self._places)

    @cached_property
    def _places(self) -> dict[TensorVariable, TensorVariable]:
        """Each value variable in terms of the coordinates, or of the other steps' values."""
        own = {v.name: v for v in self.model.value_vars}
        places = {own[block.name]: block.take(self.others) for block in self.other_blocks}
        supports = {block.name: support for block, support in self.mirrored}
        # in the model's order: bounds depend on variables that come before
        for block in self.blocks:
            value = block.take(self.coordinates)
            if block.name in supports:
                value = self._mirror(value, supports[block.name], places)
            places[self.space[block.name]] = value
        return places

    def _mirror(
        self, y: TensorVariable, support: Support, places: Mapping[TensorVariable, TensorVariable]
    ) -> TensorVariable:
        """Fold coordinates into a support whose bounds depend on values that have places."""
        x = fold(y, *self._placed_bounds(support, places))
        if support.order is None:
            return x
        x = pt.sort(x, axis=-1)
        return x if support.order == "ascending" else x[..., ::-1]

    def _placed_bounds(
        self, support: Support, places: Mapping[TensorVariable, TensorVariable]
    ) -> list[TensorVariable | None]:
        """Lower and upper bound in terms of the coordinates."""
        bounds = support.lower, support.upper
        return [
            None if b is None else clone_replace(self.space.replace([b]), places)[0] for b in bounds
        ]

    def log_density(self) -> TensorVariable:
        """Gradient of the log density without indicators, and then the log density itself."""
        [logp] = self.place_values([self.space.smooth_logp])
        return self._answer(logp, [logp])

    def _answer(self, value: TensorVariable, levels: list[TensorVariable]) -> TensorVariable:
        """One vector of a gradient and some levels, as the kernels take it."""
        gradient = pt.grad(value, self.coordinates, disconnected_inputs="ignore")
        return pt.concatenate([gradient, *(pt.cast(x, "float64")[None] for x in levels)])

    def walls(self) -> TensorVariable:
        """Gradient of the boundary energy, the energy, the log weight, and the smallest slack."""
        images = [self._image_walls(block, support) for block, support in self.mirrored]
        image_energy = pt.add(pt.constant(0.0), *(energy for energy, _, _ in images))
        slacks = [slack for _, _, slack in images]
        allowed = [reached for _, reached, _ in images]
        energy = image_energy
        if self.barriers:
            rows = pt.concatenate(self.place([c.slack for c in self.barriers]))
            energy = energy + boundary_term(rows, self.sharpness[self.size :])
            slacks.append(rows)
            allowed.append(pt.all(rows > 0))
        log_weight = -energy
        if self.exact:
            inside = pt.all(pt.stack([pt.constant(True), *allowed]))
            log_weight = pt.switch(inside, -image_energy, -np.inf)
        slack = reduce(pt.minimum, map(_least, slacks))
        return self._answer(energy, [energy, log_weight, slack])

    def _image_walls(self, block: Block, support: Support) -> tuple[TensorVariable, ...]:
        """Energy, reach and slacks (before folding) of a mirrored variable."""
        y = block.take(self.coordinates)
        lower, upper = self._placed_bounds(support, self._places)
        if not support.bounded:
            return pt.constant(0.0), pt.constant(True), pt.constant([np.inf])
        x = fold(y, lower, upper)
        sharpness = self.sharpness[block.place].reshape(block.shape)
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
        supports = {block.name: support for block, support in self.walled}
        for name, coordinate in zip(self.names, coordinates, strict=True):
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

        The latter is what the transforms differ by; outside the region it is minus infinity.
        """
        rvs = [self.model[name] for name in self.names]
        own = self.model.rvs_to_transforms
        changed = [rv for rv in rvs if own[rv] is not self.space.transforms[rv]]
        jacobians = [
            _log_jacobian(rv, own[rv]) - _log_jacobian(rv, self.space.transforms[rv])
            for rv in changed
        ]
        rows = [] if self.exact else [c.slack for c in self.barriers]
        outside = [pt.switch(pt.all(row > 0), 0.0, -np.inf) for row in rows]
        difference = pt.add(pt.constant(0.0), *jacobians, *outside)
        return self.place([*(_forward(rv, own[rv]) for rv in rvs), difference])


def owner_of(constraint: str) -> str:
    """Name of the Potential or variable that a constraint comes from.

    "disk[0]" belongs to the Potential "disk", "x.lower" to the variable "x".
    """
    return re.sub(r"(\[\d+\]|\.\w+)$", "", constraint)


def _least(rows: TensorVariable) -> TensorVariable:
    """The least of some rows; infinite where there is none (an order of one, no finite bound)."""
    surely_some = (rows.type.shape[0] or 0) > 0
    return pt.min(rows if surely_some else pt.concatenate([pt.constant([np.inf]), rows]))


def _forward(rv: TensorVariable, transform: Transform | None) -> TensorVariable:
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _log_jacobian(rv: TensorVariable, transform: Transform | None) -> TensorVariable:
    if transform is None:
        return pt.constant(0.0)
    return pt.sum(transform.log_jac_det(_forward(rv, transform), *rv.owner.inputs))
