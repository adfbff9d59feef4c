"""From a model and the user's options to what is sampled: shared by the step and by describe."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from numbers import Real

import numpy as np
import pymc as pm
from pymc.util import get_value_vars_from_user_vars
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.chain.options import Options
from pymc_rollback.graph.text import shown
from pymc_rollback.options import check_list_of_names, check_positive, check_variables
from pymc_rollback.region.constraint import Region, is_continuous
from pymc_rollback.region.read import read_region
from pymc_rollback.target.plan import Plan, choose_treatments, transform_of, untreated
from pymc_rollback.target.walls import Walls


def read_plan(
    model: pm.Model,
    vars: Sequence[TensorVariable],
    *,
    constraints: Mapping[str, TensorVariable] | None = None,
    reflect: Collection[str] = (),
    transform: Collection[str] = (),
    sharpness: object = None,
    exact: bool = True,
) -> Plan:
    """Read the region of a model, and plan what is done with its variables and constraints.

    Parameters
    ----------
    model
        The model.
    vars
        Value variables that are sampled.
    constraints, reflect, transform, sharpness, exact
        As given to RollbackHMC.
    """
    region = read_region(model, constraints)
    check_choices(region, reflect, transform)
    names = [model.values_to_rvs[v].name for v in vars]
    if isinstance(sharpness, Mapping) or sharpness is None:
        sharp = set(sharpness or ())
        sharp |= {c.bound.variable for c in region.joint if c.bound and c.name in sharp}
    else:
        sharp = {*names, *(c.name for c in region.joint)}
    chosen = choose_treatments(region, reflect, transform, sharp) if exact else untreated(region)
    return Plan(region, {name: chosen[name] for name in names}, exact, sharp)


def as_reflect(reflect: Collection[str], barrier: Collection[str] | None) -> Collection[str]:
    """What is given as ``reflect``, or by the name that the option had before."""
    if barrier is None:
        return reflect
    warnings.warn(
        f"barrier={shown(barrier)} is now called reflect: the variables are reflected at their "
        "bounds, without a barrier. The old name will go.",
        FutureWarning,
        stacklevel=3,
    )
    if reflect:
        raise ValueError(
            f"reflect={shown(reflect)} and barrier={shown(barrier)} are the same option. Give "
            "reflect alone."
        )
    return barrier


def spread_sharpness(
    given: float | Mapping[str, float] | None, plan: Plan, walls: Walls
) -> np.ndarray:
    """Sharpness of each coordinate's bounds, then of each row of the boundary terms.

    Rows that are to be tuned are NaN.

    Parameters
    ----------
    given
        A number for all, or numbers by the name of a variable (for its bounds and its order), a
        constraint, or the Potential that it comes from. What is left out is tuned.
    plan
        What keeps trajectories inside each constraint.
    walls
        The walls that have a sharpness, by name.
    """
    known = {name for names, _ in walls.sharp for name in names}
    if given is None:
        given = {}
    elif not isinstance(given, Mapping):
        if not isinstance(given, Real):
            raise ValueError(
                f"sharpness={shown(given)} must be a positive, finite number, or such numbers by "
                f"name: {{{next(iter(sorted(known)), 'c')!r}: 20.0}}."
            )
        check_positive("sharpness", given)
        given = dict.fromkeys(known, given)
    unknown = set(given) - known
    if unknown:
        # what reflects is a wall, too, and with a sharpness it would have a barrier
        reflecting = {*(c.name for c in plan.planes), *plan.reflected}
        raise ValueError(
            f"sharpness names {', '.join(sorted(map(str, unknown)))}, but the walls are "
            f"{', '.join(sorted(known | reflecting)) or 'none'}. Leave out what is no wall; "
            "describe(model) lists the constraints and variables that are."
        )
    for name, value in given.items():
        check_positive(f"sharpness[{name!r}]", value)
    sharpness = np.zeros(walls.size + walls.barrier_rows)
    sharpness[walls.size :] = np.nan
    for names, rows in walls.sharp:
        for name in names:
            if name in given:
                sharpness[rows] = given[name]
                break
    return sharpness


def require_all(options: Options) -> None:
    """Raise unless all of the paper's numbers are given."""
    missing = [name for name in ("step_size", "n_steps") if getattr(options, name) is None]
    missing += ["sharpness"] if options.tunes_rows else []
    if missing:
        raise ValueError(
            f"exact=False is the paper's sampler, which is not tuned: give {', '.join(missing)} as "
            "numbers, such as step_size=0.1, n_steps=20, sharpness=20.0."
        )


def sampled_values(model: pm.Model, vars: Sequence[TensorVariable] | None) -> list[TensorVariable]:
    """Value variables that the step samples, in the model's order."""
    check_variables(vars, model)
    if vars is None:
        values = model.continuous_value_vars
    else:
        values = get_value_vars_from_user_vars(list(vars), model)
    discrete = [v.name for v in values if not is_continuous(v)]
    if discrete:
        raise ValueError(
            f"RollbackHMC samples continuous variables only, not {', '.join(discrete)}. Give those "
            "another step: pm.sample(step=[RollbackHMC([...]), pm.Metropolis([...])])."
        )
    if not values:
        raise ValueError(
            "The model has no continuous free variables for RollbackHMC to sample. Its free "
            f"variables are {', '.join(rv.name for rv in model.free_RVs) or 'none'}: sample them "
            "with another step, such as pm.Metropolis()."
        )
    return [v for v in model.value_vars if v in values]


def check_choices(region: Region, reflect: Collection[str], transform: Collection[str]) -> None:
    """Raise unless a user's choices are names of bounded variables, each with one choice."""
    for option, names in (("reflect", reflect), ("transform", transform)):
        _check_names(option, names, region)
    if both := sorted(set(reflect) & set(transform)):
        raise ValueError(
            f"reflect and transform both name {', '.join(both)}. Give each variable to one of them."
        )
    for name in reflect:
        support = region.cut_supports[name]
        if support.keeps is not None:
            raise ValueError(
                f"reflect names {name}, which is no bounded variable: its {support.keeps} "
                "transform stays. Leave it out."
            )
    for name in transform:
        if (
            region.cut_supports[name].keeps is None
            and transform_of(region.cut_supports[name]) is None
        ):
            raise ValueError(
                f"transform names {name}, which has no transform, neither in the model nor by its "
                "distribution. Leave it out, or give the variable one (transform=...)."
            )


def _check_names(option: str, names: Collection[str], region: Region) -> None:
    """Raise unless an option names continuous variables that have a bound or an order."""
    check_list_of_names(option, names)
    unknown = set(names) - set(region.supports)
    if unknown:
        raise ValueError(
            f"{option} names {', '.join(sorted(unknown))}, but the continuous variables are "
            f"{', '.join(region.supports)}. Give names of these."
        )
    for name in names:
        support = region.cut_supports[name]
        if not (support.bounded or support.order or support.transform or support.keeps):
            raise ValueError(
                f"{option} names {name}, which has no bound and no order. Leave it out."
            )


def refuse_transforms(plan: Plan) -> None:
    """Raise where a transform cannot hold smoothed draws: some of them lie outside its bounds."""
    for name, transform in plan.transforms.items():
        support = plan.region.supports[name]
        if transform is not None and support.keeps is None:
            raise ValueError(
                f"Variable {name!r}: exact=False draws from the smoothed density, partly outside "
                f"{support.text}, where its {transform.name} transform has no value. "
                "Give it default_transform=None, or remove the transforms with "
                "pymc.model.transform.conditioning.remove_value_transforms(model)."
            )
