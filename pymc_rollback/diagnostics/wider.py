"""The model without some of its constraints: the wider one, which they are measured against.

It shares the variables of the model that do not change. What is taken out of a Potential leaves its
finite part; an order leaves the variable without its transform; a bound leaves the distribution
that was cut there, if there is one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import FlatRV, HalfFlatRV
from pymc.distributions.multivariate import ICARRV
from pymc.distributions.truncated import TruncatedRV
from pymc.logprob.transforms import Transform
from pytensor.graph.replace import graph_replace
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import default_transform
from pymc_rollback.region.constraint import Constraint, Region, RegionError, free_inputs
from pymc_rollback.region.indicators import split_potential
from pymc_rollback.region.support import read_support
from pymc_rollback.region.values import ValueSpace

IMPROPER = (FlatRV, HalfFlatRV, ICARRV)
"""Distributions whose density has no finite integral."""

WHOLE: Mapping[str, Callable[..., TensorVariable]] = {
    "HalfNormal": lambda loc, sigma, **size: pm.Normal.dist(loc, sigma, **size),
    "HalfCauchy": lambda beta, **size: pm.Cauchy.dist(0.0, beta, **size),
    "HalfStudentT": lambda nu, sigma, **size: pm.StudentT.dist(nu, 0.0, sigma=sigma, **size),
}
"""Distributions that are half of another one, whatever their parameters, and that other one."""


def widen(
    region: Region, removed: Collection[Constraint]
) -> tuple[pm.Model, dict[str, tuple[TensorVariable, ...]]]:
    """Make the model without some of the constraints of its region.

    Parameters
    ----------
    region
        The region of a model.
    removed
        Constraints of it: those of Potentials, bounds and orders.

    Returns
    -------
    model, slacks
        The wider model, and the slack of each removed constraint in its variables.
    """
    model, kept = region.model, [c for c in region if c not in removed]
    owners = {c.owner for c in removed}
    wide = {
        rv: _without(region, rv, [c for c in removed if c.owner == rv.name])
        for rv in model.free_RVs
        if rv.name in owners
    }
    potentials = [p for p in model.potentials if p.name not in owners]
    for potential in [p for p in model.potentials if p.name in owners]:
        finite = split_potential(potential).finite
        if free_inputs(model, finite):
            potentials.append(_named(finite, potential.name))
    potentials += [cut(c.slack, c.name) for c in kept if c.owner in owners]
    changed = {rv: variable for rv, (variable, _) in wide.items() if variable is not rv}
    free = [*model.free_RVs, *model.observed_RVs]
    slacks = {c.name: c.slack for c in removed}
    replaced = _replace([*free, *potentials, *slacks.values()], changed)
    variables = dict(zip(free, replaced, strict=False))
    potentials = replaced[len(free) : len(free) + len(potentials)]
    transforms = {variables[rv]: transform for rv, (_, transform) in wide.items()}
    wider = _copy(model, variables, potentials, transforms)
    return wider, dict(zip(slacks, replaced[len(free) + len(potentials) :], strict=True))


def with_potentials(model: pm.Model, potentials: Sequence[TensorVariable]) -> pm.Model:
    """A copy of a model that has further Potentials."""
    variables = {rv: rv for rv in model.basic_RVs}
    return _copy(model, variables, [*model.potentials, *potentials], {})


def cut(slack: TensorVariable, name: str) -> TensorVariable:
    """The Potential that cuts a density to where all elements of a slack are positive."""
    return _named(pt.switch(slack > 0, 0.0, -np.inf), name)


def require_proper(model: pm.Model) -> None:
    """Raise where a free variable of a prior has no probability distribution."""
    for rv in model.free_RVs:
        if isinstance(rv.owner.op, IMPROPER):
            kind = type(rv.owner.op).__name__.removesuffix("RV")
            raise ValueError(
                f"{rv.name!r} has the improper prior {kind}: its density has no finite integral, "
                "so that constraints have no prior probability, and the Bayes factor is not "
                f"defined. Give {rv.name!r} a proper prior, such as pm.Normal (how wide it is "
                "matters for the result), or ask for the posterior alone: of='posterior'."
            )


def _without(
    region: Region, rv: TensorVariable, removed: Sequence[Constraint]
) -> tuple[TensorVariable, Transform | None]:
    """A variable without some of its bounds and its order, and its transform then."""
    default = default_transform(rv.owner.op, rv)
    bare = read_support(rv, default, region.model.basic_RVs)
    own = {"lower": bare.lower, "upper": bare.upper, "order": bare.order}
    if all(own[c.name.rpartition(".")[2]] is None for c in removed):
        return rv, default  # they came with the transform
    whole = _whole(region.model, rv)
    if whole is None:
        names = ", ".join(c.name for c in removed)
        raise RegionError(
            f"{names}: the density of {rv.name!r} is not defined beyond its bounds, so that there "
            "is no model without them. A cut with constant parameters has one (pm.Truncated, "
            "pm.TruncatedNormal), and so have HalfNormal, HalfCauchy and HalfStudentT. Else give "
            f"{rv.name!r} a wider distribution and rb.constrain('c', ...) for the bound."
        )
    return whole, default_transform(whole.owner.op, whole)


def _whole(model: pm.Model, rv: TensorVariable) -> TensorVariable | None:
    """The variable whose distribution was cut to that of another one; None where there is none.

    What a cut distribution is divided by depends on its parameters. Only if these are constant is
    the model with the cut the one without it, given that the constraint holds.
    """
    node, size = rv.owner, {"size": tuple(rv.shape)}
    kind = type(node.op).__name__.removesuffix("RV")
    if isinstance(node.op, TruncatedRV):
        *inputs, _, _ = node.inputs
        whole = node.op.base_rv_op.make_node(*inputs).default_output()
    elif kind == "TruncatedNormal":
        mu, sigma, _, _ = node.op.dist_params(node)
        whole = pm.Normal.dist(mu, sigma, **size)
    elif kind in WHOLE:
        return _named(WHOLE[kind](*node.op.dist_params(node), **size), rv.name)
    else:
        return None
    parameters = [x for x in node.inputs if isinstance(x.type, TensorType)]
    moves = any(free_inputs(model, x) for x in parameters)
    return None if moves else _named(whole, rv.name)


def _named(variable: TensorVariable, name: str) -> TensorVariable:
    # of an identity: a part of the user's graph keeps its own name
    variable = variable if variable.name is None else variable.copy()
    variable.name = name
    return variable


def _replace(
    expressions: Sequence[TensorVariable], changed: Mapping[TensorVariable, TensorVariable]
) -> list[TensorVariable]:
    return graph_replace(list(expressions), changed, strict=False) if changed else list(expressions)


def _copy(
    model: pm.Model,
    variables: Mapping[TensorVariable, TensorVariable],
    potentials: Sequence[TensorVariable],
    transforms: Mapping[TensorVariable, Transform | None],
) -> pm.Model:
    """A model with other variables, Potentials and transforms, and without its Deterministics.

    Parameters
    ----------
    model
        The model.
    variables
        What stands for each of its free and observed variables.
    potentials
        All Potentials.
    transforms
        Transforms of some of the new variables; the others keep theirs.
    """
    changed = {old: transforms[new] for old, new in variables.items() if new in transforms}
    space = ValueSpace(model, changed)
    values = {new: space.values[old] for old, new in variables.items()}
    free = [variables[rv] for rv in model.free_RVs]
    observed = [variables[rv] for rv in model.observed_RVs]
    named = [*free, *observed, *potentials, *model.data_vars]
    parts = {
        "free_RVs": free,
        "observed_RVs": observed,
        "deterministics": [],
        "potentials": potentials,
        "named_vars": {v.name: v for v in named},
        "rvs_to_values": values,
        "values_to_rvs": {value: rv for rv, value in values.items()},
        "rvs_to_transforms": {new: space.transforms[old] for old, new in variables.items()},
        "rvs_to_initial_values": {
            new: model.rvs_to_initial_values.get(old) for old, new in variables.items()
        },
    }
    copy = pm.Model(model=None)
    own = {name: type(getattr(model, name))(part) for name, part in parts.items()}
    vars(copy).update({**vars(model), **own})
    return copy
