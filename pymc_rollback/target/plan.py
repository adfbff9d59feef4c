"""The plan: what is done with each variable and what keeps trajectories inside each constraint.

A bounded variable is sampled as it is, and reflected, where the joint log density stays finite,
with a finite slope, up to its wall. Where it does not (a ``Gamma(0.5)``, a scale under a Normal),
or where two bounds move with other variables and may come as close as they like, the variable keeps
a PyMC transform, and is sampled in one trajectory with all variables. Affine constraints reflect;
constraints that are not affine, and all that are given a sharpness, have a barrier.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pymc.logprob.transforms import Transform
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import default_transform
from pymc_rollback.graph.forms import value_ancestors
from pymc_rollback.region.constraint import Constraint, Region, free_inputs, is_continuous
from pymc_rollback.region.support import Support, left_open
from pymc_rollback.target.approach import find_troubles

MOST_ROWS = 1000
"""Rows of an affine constraint up to which it reflects: each contact looks at all of them."""


@dataclass(frozen=True)
class Treatment:
    """What is done with a variable.

    Attributes
    ----------
    action
        "free" (nothing to do), "reflect" (at its bounds; with a sharpness, by a mirror and a
        boundary term), "sort" (elements of an order exchange places) or "transform" (sampled under
        a PyMC transform).
    why
        The reason, for people.
    transform
        The transform under which it is sampled, if any.
    chosen
        Whether the user has chosen it.
    """

    action: str
    why: str
    transform: Transform | None = None
    chosen: bool = False


@dataclass(frozen=True)
class Plan:
    """What keeps trajectories inside a region.

    Attributes
    ----------
    region
        The region of a model.
    treatments
        What is done with each sampled variable, by name.
    exact
        Whether bounded variables are kept inside and states outside the region have no weight,
        or (as in the paper) the smoothed density is the target.
    sharp
        Names of the variables and constraints that have a sharpness, and so a barrier.
    """

    region: Region
    treatments: Mapping[str, Treatment]
    exact: bool
    sharp: Collection[str] = ()

    @cached_property
    def names(self) -> list[str]:
        """Sampled variables, in the model's order."""
        return [rv.name for rv in self.region.model.free_RVs if rv.name in self.treatments]

    @cached_property
    def transforms(self) -> dict[str, Transform | None]:
        """Transforms under which the variables are sampled; of smoothed draws, the model's."""
        if self.exact:
            return {name: self.treatments[name].transform for name in self.names}
        model = self.region.model
        return {name: model.rvs_to_transforms[model[name]] for name in self.names}

    @cached_property
    def transformed(self) -> set[str]:
        """Variables whose coordinates are transformed values."""
        return {name for name, transform in self.transforms.items() if transform is not None}

    @cached_property
    def walled(self) -> dict[str, Support]:
        """Supports of the variables that are kept inside their bounds and order as they are.

        An order of elements that cannot exchange places is a constraint like any other.
        """
        supports, walled = self.region.cut_supports, {}
        for name in self.names if self.exact else ():
            action = self.treatments[name].action
            if action in ("reflect", "sort"):
                order = supports[name].order if action == "sort" else None
                walled[name] = replace(supports[name], order=order)
        return walled

    @cached_property
    def reflected(self) -> dict[str, Support]:
        """Supports of walled variables that are reflected while they drift: no barrier is needed.

        Without a barrier all images of a point are alike, so that the point can stand for them;
        but its bounds must stay where they are along a trajectory.
        """
        return {
            name: support
            for name, support in self.walled.items()
            if name not in self.sharp and self._stays(support)
        }

    @cached_property
    def mirrored(self) -> dict[str, Support]:
        """Supports of walled variables whose coordinates are images, folded into the support."""
        return {name: s for name, s in self.walled.items() if name not in self.reflected}

    @cached_property
    def absorbed(self) -> list[Constraint]:
        """Joint constraints that are no more than a bound of a variable that is kept inside."""
        walled = {name for name in self.walled if not self.region.cut_supports[name].order}
        return [c for c in self.region.joint if c.bound is not None and c.bound.variable in walled]

    @cached_property
    def planes(self) -> list[Constraint]:
        """Affine constraints at which trajectories are reflected, as they are at bounds.

        Only constraints on variables that are their own coordinates, and on nothing that may change
        between two draws: other steps' variables, data.
        """
        ordered = {name for name, support in self.walled.items() if support.order is not None}
        straight = set(self.names) - {*self.mirrored, *self.transformed, *ordered}
        return [
            c
            for c in self.region
            if self.exact
            and c.affine
            and self._concerns(c)
            and {x.name for x in c.inputs} <= straight
            and not self._has_data(c.slack)
            and (c.slack.type.shape[0] or 1) <= MOST_ROWS
            and {c.name, c.owner}.isdisjoint(self.sharp)
        ]

    @cached_property
    def barriers(self) -> list[Constraint]:
        """Constraints with a boundary term of their own, besides the mirrors' image energy."""
        return [c for c in self.region if self._concerns(c) and c not in self.planes]

    @cached_property
    def has_walls(self) -> bool:
        """Whether anything but the drift keeps trajectories inside."""
        return bool(self.barriers) or any(support.bounded for support in self.mirrored.values())

    def wall(self, constraint: Constraint) -> str:
        """What keeps trajectories inside a constraint: "reflects", "barrier" or "transform"."""
        if constraint in self.planes:
            return "reflects"
        if constraint in self.barriers:
            return "barrier"
        bound = constraint.bound
        owner = constraint.owner if bound is None else bound.variable
        if owner in self.transformed:
            return "transform"
        return "reflects" if owner in self.reflected else "barrier"

    def varies(self, expression: TensorVariable) -> bool:
        """Whether an expression changes along a trajectory.

        Either with a sampled variable, or with another step's variable whose transform has bounds
        that depend on a sampled one.
        """
        model = self.region.model
        for x in free_inputs(model, expression):
            transform = model.rvs_to_transforms[x]
            if x.name in self.names:
                return True
            if transform is not None:
                value = model.rvs_to_values[x]
                if self.varies(transform.backward(value, *x.owner.inputs)):
                    return True
        return False

    def _concerns(self, constraint: Constraint) -> bool:
        """Whether trajectories could leave a constraint but for a barrier or a plane."""
        varies = self.varies(constraint.slack)
        if constraint.kind == "joint":
            return varies and constraint not in self.absorbed
        owner = constraint.owner
        if owner in self.names:
            free = not self.exact and owner not in self.transformed
            return free or constraint.name in self._open
        # a bound of another step's variable is a wall for ours, unless its transform keeps it
        model = self.region.model
        return varies and model.rvs_to_transforms[model[owner]] is None

    @cached_property
    def _open(self) -> set[str]:
        """Bounds and orders of sampled variables that their coordinates do not see to.

        Bounds and orders that a transform does not imply, and orders of elements that cannot
        exchange places.
        """
        supports = self.region.supports
        parts = {n: left_open(self.transforms[n], supports[n]) for n in self.transformed}
        parts |= {n: ["order"] for n in self.walled if self.treatments[n].action != "sort"}
        return {f"{name}.{part}" for name, found in parts.items() for part in found}

    def _stays(self, support: Support) -> bool:
        return not any(self.varies(b) for b in (support.lower, support.upper) if b is not None)

    def _has_data(self, expression: TensorVariable) -> bool:
        inputs = value_ancestors(expression, blockers=self.region.model.basic_RVs)
        return any(isinstance(x, SharedVariable) for x in inputs)


def choose_treatments(
    region: Region,
    reflect: Collection[str] = (),
    transform: Collection[str] = (),
    sharp: Collection[str] = (),
) -> dict[str, Treatment]:
    """Decide for each continuous free variable of a region.

    Parameters
    ----------
    region
        The region of a model.
    reflect, transform
        Names of variables for which the user has decided.
    sharp
        Names of variables with a sharpness, which have a barrier where there is a choice.
    """
    treatments = {}
    doubtful = []
    for name, support in region.cut_supports.items():
        if support.keeps is not None or (name in transform and support.transform is not None):
            why = "chosen by the user" if name in transform else _kept_reason(support)
            treatments[name] = Treatment("transform", why, transform_of(support))
        elif not support.bounded and support.order is None:
            treatments[name] = Treatment("free", "no bound, no order")
        elif name in transform:
            treatments[name] = Treatment("transform", "chosen by the user", transform_of(support))
        else:
            treatments[name] = Treatment(_action(support), "chosen by the user", chosen=True)
            if name not in reflect:
                doubtful.append(name)
    for name in [name for name in doubtful if name not in sharp]:
        moving = _moving(region, region.cut_supports[name])
        if moving and transform_of(region.cut_supports[name]) is not None:
            why = f"its bounds move with {', '.join(moving)}"
            treatments[name] = Treatment("transform", why, transform_of(region.cut_supports[name]))
            doubtful.remove(name)
    if doubtful:
        walled = [name for name, t in treatments.items() if t.action in ("reflect", "sort")]
        troubles = find_troubles(region, walled, doubtful)
        for name in doubtful:
            treatments[name] = _judge(region.cut_supports[name], troubles.get(name))
    return {name: treatments[name] for name in region.supports}


def untreated(region: Region) -> dict[str, Treatment]:
    """In the smoothed density every variable stays as the model has it."""
    return {
        name: Treatment("free", "smoothed", support.transform)
        for name, support in region.supports.items()
    }


def _moving(region: Region, support: Support) -> list[str]:
    """Names of the continuous variables that two bounds depend on; none for a single bound."""
    if support.lower is None or support.upper is None:
        return []
    bounds = (support.lower, support.upper)
    inputs = (x for bound in bounds for x in free_inputs(region.model, bound))
    return sorted({x.name for x in inputs if is_continuous(x)})


def _kept_reason(support: Support) -> str:
    return f"its {support.keeps} transform is not a bound"


def transform_of(support: Support) -> Transform | None:
    """The model's own transform, or the distribution's default where the user removed it."""
    rv = support.variable
    return support.transform or default_transform(rv.owner.op, rv)


def _action(support: Support) -> str:
    """Sort an order whose elements share their bounds; reflect any other walled variable."""
    return "sort" if support.exchangeable else "reflect"


def _judge(support: Support, trouble: str | None) -> Treatment:
    transform = transform_of(support)
    if trouble is None:
        return Treatment(_action(support), "the density stays finite up to the wall")
    if transform is None:
        return Treatment("reflect", f"{trouble}, but there is no transform for it")
    return Treatment("transform", trouble, transform)
