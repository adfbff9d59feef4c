r"""The density of a slack at its wall, as the mean of a term for each draw.

**By slopes**, where a variable has its own bounds and no other constraint. With the slack :math:`s`
of one bound and any weight :math:`w` that is one at the wall and zero at the other bound, if there
is one, integration by parts gives

.. math:: p(0) = -E[w'(s) + w(s) \, \partial \log p / \partial s].

With :math:`w = 1` this is minus the mean slope, which is noise where the wall is far away. So the
weight falls to zero, in a straight line, within a few standard deviations, or at the other bound.

**By slacks**, everywhere else: a kernel :math:`K` on :math:`[0, h]` that is corrected for the
boundary, so that a density with a slope there has no bias,

.. math:: p(0) \approx \frac{1}{n h} \sum_i \frac{a_2 - a_1 u_i}{a_0 a_2 - a_1^2} K(u_i),
    \qquad u_i = s_i / h, \quad a_k = \int_0^1 u^k K(u) \, du.
"""

from collections.abc import Mapping

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.diagnostics.draws import RegionDraws, evaluate
from pymc_rollback.prepare import read_plan
from pymc_rollback.region.constraint import Constraint, Region

BANDWIDTH = 3.0
"""Width of the kernel in standard deviations, times the fifth root of the number of draws."""

REACH = 4.0
"""Standard deviations of the slack within which slopes count: beyond a uniform's other bound."""

MOMENTS = (1 / 2, 3 / 16, 1 / 10)
"""Moments on [0, 1] of the kernel 3/4 (1 - u^2)."""


def terms_by_slack(slacks: np.ndarray) -> np.ndarray:
    """Terms of the estimate by slacks: a number for each of them.

    Parameters
    ----------
    slacks
        Chain, draw.
    """
    width = BANDWIDTH * _scale(slacks) / slacks.size**0.2
    u = slacks / width
    a0, a1, a2 = MOMENTS
    kernel = np.where(u < 1, 0.75 * (1 - u**2), 0.0)
    return (a2 - a1 * u) / (a0 * a2 - a1**2) * kernel / width


def terms_by_slope(draws: RegionDraws) -> dict[str, np.ndarray]:
    """Terms of the estimate by slopes, for each constraint that has one: chain, draw, row."""
    region, slacks = draws.region, draws.slacks
    bounds = own_bounds(region)
    bounds = {
        name: sides
        for name, sides in bounds.items()
        if all(slacks[c.name][0, 0].size == draws.values[name][0, 0].size for c in sides.values())
    }
    terms = {}
    for name, slope in _slopes(draws, list(bounds)).items():
        for sign, constraint in bounds[name].items():
            slack, other = slacks[constraint.name], bounds[name].get(-sign)
            spread = slack.std(axis=(0, 1))
            reach = REACH * np.where(spread > 0, spread, 1.0)
            if other is not None:
                reach = np.minimum(reach, slack + slacks[other.name])
            weight = np.maximum(1 - slack / reach, 0.0)
            inward = sign * slope.reshape(slack.shape)
            terms[constraint.name] = (weight > 0) / reach - weight * inward
    return terms


def own_bounds(region: Region) -> dict[str, dict[int, Constraint]]:
    """Bounds, by sign, of the variables that have one or two, and are in no other constraint.

    Only those up to which the density is finite, with a finite slope.
    """
    plan = read_plan(region.model, region.model.continuous_value_vars)
    found: dict[str, dict[int, Constraint]] = {}
    for name, treatment in plan.treatments.items():
        involved = [c for c in region if name in {x.name for x in c.inputs}]
        signs = [sign for c in involved if (sign := _sign(c, name))]
        alone = len(signs) == len(involved) == len(set(signs))
        if signs and alone and treatment.action == "reflect":
            found[name] = dict(zip(signs, involved, strict=True))
    return found


def _sign(constraint: Constraint, name: str) -> int:
    """Plus one for a lower bound of a variable, minus one for an upper one, else zero."""
    if constraint.bound is not None and constraint.bound.variable == name:
        return constraint.bound.sign
    return {f"{name}.lower": 1, f"{name}.upper": -1}.get(constraint.name, 0)


def _slopes(draws: RegionDraws, names: list[str]) -> Mapping[str, np.ndarray]:
    """Slopes of the log density in some variables, at each draw."""
    if not names:
        return {}
    region = draws.region
    model = region.model
    # a simplex and the like keep their transform, which none of the variables enters
    as_it_is = [name for name, support in region.supports.items() if support.keeps is None]
    space = region.space(dict.fromkeys(as_it_is))
    slopes = pt.grad(
        space.smooth_logp, [space[name] for name in names], disconnected_inputs="ignore"
    )
    values = {space.values[rv]: _forward(rv, space.transforms[rv]) for rv in model.free_RVs}
    return dict(zip(names, evaluate(model, draws.values, slopes, values), strict=True))


def _forward(rv: TensorVariable, transform: Transform | None) -> TensorVariable:
    return rv if transform is None else transform.forward(rv, *rv.owner.inputs)


def _scale(slacks: np.ndarray) -> float:
    """A standard deviation that far draws do not enlarge; one where nothing varies."""
    low, high = np.quantile(slacks, [0.25, 0.75])
    return float(min((high - low) / 1.349, slacks.std())) or 1.0
