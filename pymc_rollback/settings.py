"""What a user may give: variables, names, and numbers spread over coordinates and rows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real

import numpy as np
import pymc as pm
from pymc.util import get_value_vars_from_user_vars
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.arguments import check_list_of_names, check_variables, shown
from pymc_rollback.constraints import Region, is_continuous
from pymc_rollback.density import Density
from pymc_rollback.geometry import Geometry
from pymc_rollback.treatment import transform_of


@dataclass(frozen=True)
class Numbers:
    """What the user gives, and what is left to be tuned.

    Attributes
    ----------
    step_size, n_steps
        Step size and number of steps, or None.
    sharpness
        Sharpness of each coordinate's bounds, then of each row of the boundary terms; rows that
        are to be tuned are NaN.
    variances
        The metric that was given, or None.
    dense
        Whether a tuned metric is dense.
    target_accept, max_treedepth
        As given to RollbackHMC.
    exact
        Whether the model's own density is the target, or the smoothed one.
    """

    step_size: float | None
    n_steps: int | None
    sharpness: np.ndarray
    variances: np.ndarray | None
    dense: bool
    target_accept: float
    max_treedepth: int
    exact: bool

    @cached_property
    def tunes_rows(self) -> bool:
        """Whether the sharpness of joint constraints is tuned."""
        return bool(np.any(np.isnan(self.sharpness)))

    @property
    def tunes(self) -> bool:
        """Whether anything is tuned. Where all of the paper's numbers are given, masses are one."""
        return self.step_size is None or self.n_steps is None or self.tunes_rows

    @property
    def tunes_metric(self) -> bool:
        """Whether the metric is tuned."""
        return self.tunes and self.variances is None


def check_positive(option: str, value: object, below: float = np.inf) -> None:
    """Raise unless a value is a number between zero and a limit."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 < value < below):
        limit = "" if np.isinf(below) else f" below {below:g}"
        raise ValueError(f"{option}={shown(value)} must be a positive, finite number{limit}.")


def check_whole(option: str, value: object) -> None:
    """Raise unless a value is a whole number of at least one."""
    if isinstance(value, bool) or not (isinstance(value, Integral) and value >= 1):
        raise ValueError(f"{option}={shown(value)} must be a whole number of at least 1.")


def check_bool(option: str, value: object) -> None:
    """Raise unless a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{option}={value!r} must be True or False.")


def spread_sharpness(given: float | Mapping[str, float] | None, geometry: Geometry) -> np.ndarray:
    """Sharpness of each coordinate's bounds, then of each row of the boundary terms.

    Rows that are to be tuned are NaN.

    Parameters
    ----------
    given
        A number for all, or numbers by the name of a variable (for its bounds and its order), a
        constraint, or the Potential that it comes from. What is left out is tuned.
    geometry
        The walls by name.
    """
    targets = geometry.sharp_walls
    known = {name for names, _ in targets for name in names}
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
        # what reflects has a wall that a sharpness would turn into a barrier
        density = geometry.density
        reflecting = {c.name for c in density.planes} | {b.name for b, _ in density.reflected}
        raise ValueError(
            f"sharpness names {', '.join(sorted(map(str, unknown)))}, but the walls are "
            f"{', '.join(sorted(known | reflecting)) or 'none'}."
        )
    for name, value in given.items():
        check_positive(f"sharpness[{name!r}]", value)
    sharpness = np.zeros(max([geometry.size, *(place.stop for _, place in targets)]))
    sharpness[geometry.size :] = np.nan
    for names, place in targets:
        for name in names:
            if name in given:
                sharpness[place] = given[name]
                break
    return sharpness


def read_metric(metric: object, size: int) -> tuple[np.ndarray | None, bool]:
    """Variances that are given as a metric, and whether a tuned one is dense."""
    if isinstance(metric, str) and metric in ("diag", "dense"):
        return None, metric == "dense"
    try:
        variances = np.asarray(metric, dtype=float)
    except (TypeError, ValueError):
        variances = np.array(np.nan)
    if variances.shape != (size,) or not np.all(np.isfinite(variances) & (variances > 0)):
        raise ValueError(
            f"metric={shown(metric)} must be 'diag', 'dense', or an array of {size} positive "
            "variances, one for each coordinate."
        )
    return variances, False


def check_exchangeable(variances: np.ndarray, geometry: Geometry) -> None:
    """Raise where a given metric differs between elements that exchange places."""
    for name, run in geometry.exchanging:
        if np.ptp(variances[run]) > 0:
            given = ", ".join(f"{v:g}" for v in variances[run])
            raise ValueError(
                f"metric gives the elements of the ordered variable {name!r} different variances "
                f"({given}). They exchange places when they meet, as particles of equal mass do. "
                f"Give them one variance, such as {np.mean(variances[run]):g}."
            )


def require_numbers(numbers: Numbers) -> None:
    """Raise unless all of the paper's numbers are given."""
    missing = [name for name in ("step_size", "n_steps") if getattr(numbers, name) is None]
    missing += ["sharpness"] if numbers.tunes_rows else []
    if missing:
        raise ValueError(
            f"exact=False is the paper's sampler, which is not tuned: give {', '.join(missing)}."
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
        raise ValueError("The model has no continuous free variables for RollbackHMC to sample.")
    return [v for v in model.value_vars if v in values]


def check_choices(region: Region, barrier: Collection[str], transform: Collection[str]) -> None:
    """Raise unless a user's choices are names of bounded variables, each with one choice."""
    for option, names in (("barrier", barrier), ("transform", transform)):
        _check_names(option, names, region)
    if both := sorted(set(barrier) & set(transform)):
        raise ValueError(
            f"barrier and transform both name {', '.join(both)}. Give each variable to one of them."
        )
    for name in barrier:
        support = region.walls[name]
        if support.keeps is not None:
            raise ValueError(
                f"barrier names {name}, which is no bounded variable: its {support.keeps} "
                "transform stays. Leave it out."
            )
    for name in transform:
        if region.walls[name].keeps is None and transform_of(region.walls[name]) is None:
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
            f"{', '.join(region.supports)}."
        )
    for name in names:
        support = region.walls[name]
        if not (support.bounded or support.order or support.transform or support.keeps):
            raise ValueError(
                f"{option} names {name}, which has no bound and no order. Leave it out."
            )


def refuse_transforms(density: Density) -> None:
    """Smoothed draws may lie outside a bound, where a log or interval transform has no value."""
    for name in density.transformed:
        support = density.region.supports[name]
        if support.keeps is None:
            raise ValueError(
                f"Variable {name!r}: exact=False draws from the smoothed density, partly outside "
                f"{support.text}, and its {support.transform.name} transform cannot hold such a "
                "draw. Give it default_transform=None, or remove the transforms with "
                "pymc.model.transform.conditioning.remove_value_transforms(model)."
            )
