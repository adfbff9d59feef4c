"""Simulation-based calibration: the rank of the truth among posterior draws is uniform.

The parameters are drawn from the prior and the data given the parameters, so that the truth is
itself a draw from the posterior. A chain is run from it, a random share of its length forward and
the rest (as the sampler is reversible) backward: the truth and the other draws of the chain are
then exchangeable, and the rank of the truth is exactly uniform, without any burn-in (Gandy and
Scott, 2020, "Unit testing for MCMC and other Monte Carlo methods"), where ties, of a chain that
stays where it is, are broken at random. The data are a variable that
no step samples, so that the model is compiled once.

A chi-square test compares the ranks with the uniform distribution. A right sampler fails a case
with a probability of at most 1e-4, shared equally by its parameters.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from harness import Chains, Target, automatic_step, static_step
from pymc.distributions import transforms
from scipy import stats
from targets import each, rejection

ERROR_RATE = 1e-4
REPLICATIONS, DRAWS, THIN = 500, 9, 3
X = np.random.default_rng(1).normal(size=(8, 3))
TIMES = np.linspace(-1, 1, 6)


def positive_regression():
    with pm.Model() as model:
        slopes = pm.HalfNormal("slopes", shape=3)
        pm.Normal("y", pt.dot(X, slopes), 0.8, shape=8)
    return model


def draw_positive_regression(rng, n):
    slopes = np.abs(rng.normal(size=(n, 3)))
    return {"slopes": slopes, "y": rng.normal(slopes @ X.T, 0.8)}


def ordered_mixture():
    with pm.Model() as model:
        means = pm.Normal("means", 0, 2, shape=2, transform=transforms.ordered, initval=[-1.0, 1.0])
        share = pm.Beta("share", 2, 2)
        pm.NormalMixture("y", pt.stack([share, 1 - share]), means, sigma=1.0, shape=15)
    return model


def draw_ordered_mixture(rng, n):
    means = np.sort(rng.normal(0, 2, size=(n, 2)), axis=1)
    share = rng.beta(2, 2, size=n)
    first = rng.random((n, 15)) < share[:, None]
    y = rng.normal(np.where(first, means[:, :1], means[:, 1:]), 1.0)
    return {"means": means, "share": share, "y": y}


def inside(level, slope):
    return (level**2 + slope**2 < 1) & (slope > level - 0.5)


def constrained_prior():
    with pm.Model() as model:
        level, slope = pm.Normal("level"), pm.Normal("slope")
        pm.Potential("region", pt.switch(inside(level, slope), 0.0, -np.inf))
        pm.Normal("y", level + slope * TIMES, 0.8, shape=6)
    return model


draw_constrained_prior = rejection(
    lambda rng, n: {"level": rng.normal(size=n), "slope": rng.normal(size=n)}, inside
)


def draw_constrained(rng, n):
    draws = draw_constrained_prior(rng, n)
    mean = draws["level"][:, None] + draws["slope"][:, None] * TIMES
    return {**draws, "y": rng.normal(mean, 0.8)}


CASES = {
    "regression with positive slopes": Target(
        positive_regression,
        draw_positive_regression,
        each("slopes[:, 0]", "slopes[:, 1]", "slopes[:, 2]"),
        sampled=("slopes",),
    ),
    "mixture with ordered means": Target(
        ordered_mixture,
        draw_ordered_mixture,
        each("means[:, 0]", "means[:, 1]", "share"),
        sampled=("means", "share"),
        step_size=0.25,
    ),
    "joint constraint in the prior": Target(
        constrained_prior,
        draw_constrained,
        each("level", "slope", "level**2 + slope**2"),
        sampled=("level", "slope"),
        sharpness=8.0,
    ),
}


def run_from(chains, step, start, n_draws):
    """Draws of a chain from a point, which is not among them."""
    point, draws = start, []
    for _ in range(n_draws):
        for _ in range(THIN):
            point, _ = step.step(point)
        draws.append(chains.leave(*(point[name] for name in chains.values)))
    return draws


def ranks(target, model, step):
    """Ranks of the truth in each view, one row a replication."""
    rng = np.random.default_rng(2)
    step.rng = np.random.default_rng(3)
    truths = target.draw(rng, REPLICATIONS)
    chains = Chains(model)
    found = []
    for row in zip(*(truths[name] for name in chains.names), strict=True):
        start = dict(zip(chains.values, chains.enter(*row), strict=True))
        forward = rng.integers(DRAWS + 1)
        others = run_from(chains, step, start, forward)
        others += run_from(chains, step, start, DRAWS - forward)
        columns = zip(row, *others, strict=True)
        draws = {name: np.stack(x) for name, x in zip(chains.names, columns, strict=True)}
        values = np.array([view(draws) for view in target.views.values()])
        below, ties = (np.sum(f(values[:, 1:], values[:, :1]), axis=1) for f in (np.less, np.equal))
        found.append(below + rng.integers(ties + 1))
    return np.array(found)


def p_value(target, model, step):
    """The smallest p-value of the views, times their number."""
    counts = [np.bincount(r, minlength=DRAWS + 1) for r in ranks(target, model, step).T]
    p = [stats.chisquare(count).pvalue for count in counts]
    print({name: float(f"{x:.2g}") for name, x in zip(target.views, p, strict=True)})
    return min(p) * len(p)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_ranks_are_uniform(name):
    target = CASES[name]
    assert p_value(target, *automatic_step(target)) > ERROR_RATE


@pytest.mark.slow
def test_control_ranks_among_smoothed_draws_are_not():
    target = CASES["joint constraint in the prior"]
    assert p_value(target, *static_step(target, exact=False, sharpness=0.5)) < 1e-8
