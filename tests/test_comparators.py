"""The rivals of the paper's experiments, on targets with known answers.

Each test errs with probability 0.001 on a right sampler; the seeds are fixed. A control shows that
the same test rejects a target that is a little off.
"""

from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba import njit
from scipy import integrate, stats

import pymc_rollback as rb
from examples.paper.comparators import (
    INSIDE,
    MODEL,
    baseline_hmc,
    coordinate_gibbs,
    exact_hmc,
    factor_gibbs,
    reflective_hmc,
    rejection,
    rollback_hmc,
    spherical_hmc,
    truncated_normal,
)
from examples.paper.figure4 import cone, sphere
from examples.paper.shared import autocorrelation_time

ALPHA = 0.001
NOTHING = np.empty(0)
RADIUS, SHIFT = 1.3, np.array([0.8, -0.3, 0.5])


@njit(MODEL.signature)
def shifted(position, others, slope):
    """A normal of unit variance about (0.8, -0.3, 0.5)."""
    slope[0], slope[1], slope[2] = 0.8 - position[0], -0.3 - position[1], 0.5 - position[2]
    return -0.5 * np.sum(slope**2)


@njit(MODEL.signature)
def further(position, others, slope):
    """The same, shifted by a sixth of a standard deviation more."""
    slope[0], slope[1], slope[2] = 0.95 - position[0], -0.3 - position[1], 0.5 - position[2]
    return -0.5 * np.sum(slope**2)


@njit(INSIDE.signature)
def in_ball(x):
    return x @ x < 1.3**2


@njit(INSIDE.signature)
def in_half_plane(x):
    return x[0] - 2 * x[1] + 1 > 0


def thinned(draws, views):
    step = int(np.ceil(2 * max(autocorrelation_time(view(draws)) for view in views)))
    return draws[::step]


def along(draws):
    return draws @ SHIFT / np.linalg.norm(SHIFT)


def radius(draws):
    return np.linalg.norm(draws, axis=1)


@cache
def ball_cdf():
    """Distribution of the coordinate along the shift: the other two fill a disk."""
    t = np.linspace(-RADIUS, RADIUS, 4001)
    rest = stats.chi2(2).cdf(RADIUS**2 - t**2)
    total = integrate.cumulative_simpson(
        stats.norm.pdf(t, np.linalg.norm(SHIFT)) * rest, x=t, initial=0
    )
    return lambda x: np.interp(x, t, total / total[-1])


@cache
def ball_radii():
    """Exact draws of the distance from the origin."""
    x = SHIFT + np.random.default_rng(11).standard_normal((400_000, 3))
    return radius(x)[radius(x) < RADIUS]


def ball_p_value(draws):
    """Smaller p of two tests, corrected for their number."""
    draws = thinned(draws, [along, radius, lambda x: along(x) ** 2])
    assert len(draws) > 3000
    p = [stats.kstest(along(draws), ball_cdf()).pvalue]
    p += [stats.ks_2samp(radius(draws), ball_radii()).pvalue]
    return min(1.0, 2 * min(p))


def hmc_draws(chain, model):
    start = np.array([0.1, 0.2, 0.3])
    rng = np.random.default_rng(5)
    draws = chain(model, NOTHING, RADIUS, start, 0.3, 5, 60_000, rng)
    if chain is spherical_hmc:  # weights are at most one: keep draws with that probability
        draws = draws[rng.random(len(draws)) < draws[:, -1], :-1]
    return draws


@pytest.mark.parametrize("chain", [reflective_hmc, baseline_hmc, spherical_hmc])
def test_hmc_in_ball(chain):
    draws = hmc_draws(chain, shifted)
    assert np.all(radius(draws) <= RADIUS + 1e-12)
    assert ball_p_value(draws) > ALPHA


def test_ball_test_can_fail():
    assert ball_p_value(hmc_draws(reflective_hmc, further)) < ALPHA


def test_reflective_hmc_accepts_where_baseline_leaves():
    reflected, plain = (
        hmc_draws(chain, shifted)[:5000] for chain in (reflective_hmc, baseline_hmc)
    )
    moved = [np.mean(np.any(np.diff(x, axis=0) != 0, axis=1)) for x in (reflected, plain)]
    assert moved[0] > 0.9 > 0.5 > moved[1]


def test_rejection_in_ball():
    draws, proposed = rejection(SHIFT, np.eye(3), in_ball, 20_000, np.random.default_rng(3))
    assert ball_p_value(draws) > ALPHA
    expected = stats.ncx2(3, SHIFT @ SHIFT).cdf(RADIUS**2)
    assert stats.binomtest(20_000, proposed, expected).pvalue > ALPHA


COVARIANCE = np.array([[1.0, 0.75], [0.75, 1.0]])
NORMAL = np.array([1.0, -2.0])


def half_plane_p_value(draws):
    """The slack is a cut normal; the mean of the first coordinate is known to six digits."""
    draws = thinned(draws, [lambda x: x[:, 0], lambda x: x[:, 1], lambda x: x @ NORMAL])
    assert len(draws) > 3000
    sd = np.sqrt(NORMAL @ COVARIANCE @ NORMAL)
    slack = stats.truncnorm(-1 / sd, np.inf, loc=1, scale=sd)
    z = (draws[:, 0].mean() + 0.144489) / (0.971082 / np.sqrt(len(draws)))
    p = [stats.kstest(draws @ NORMAL + 1, slack.cdf).pvalue, 2 * stats.norm.sf(abs(z))]
    return min(1.0, 2 * min(p))


def half_plane_gibbs(offset):
    precision = np.linalg.inv(COVARIANCE)
    rows, rng = NORMAL.reshape(1, 2), np.random.default_rng(8)
    start = np.array([0.5, 0.2])
    return coordinate_gibbs(np.zeros(2), precision, rows, np.array([offset]), start, 60_000, rng)


def test_coordinate_gibbs_in_half_plane():
    assert half_plane_p_value(half_plane_gibbs(1.0)) > ALPHA


def test_half_plane_test_can_fail():
    assert half_plane_p_value(half_plane_gibbs(1.1)) < ALPHA


def test_rejection_in_half_plane():
    root = np.linalg.cholesky(COVARIANCE)
    draws, _ = rejection(np.zeros(2), root, in_half_plane, 20_000, np.random.default_rng(4))
    assert half_plane_p_value(draws) > ALPHA


def test_exact_hmc_in_half_plane():
    pytest.importorskip("tmg_hmc")
    draws = exact_hmc(np.zeros(2), COVARIANCE, [(NORMAL, 1.0)], [], [0.5, 0.2], 8000, seed=2)
    assert half_plane_p_value(draws) > ALPHA


@pytest.mark.parametrize(
    "bounds",
    [(-1, 0.2), (-0.3, np.inf), (-5, 4), (0.5, 0.7), (0.5, 9), (6, np.inf), (-np.inf, -4)],
)
def test_truncated_normal(bounds):
    rng = np.random.default_rng(1)
    draws = [truncated_normal(*map(float, bounds), rng) for _ in range(5000)]
    assert stats.kstest(draws, stats.truncnorm(*bounds).cdf).pvalue > ALPHA


def prior_p_value(rate, noise):
    """Factors from their prior, data from them, factors given the data: again from the prior."""
    rng, kept = np.random.default_rng(6), []
    for _ in range(15_000):
        weights, bases = rng.exponential(size=(3, 2)), rng.exponential(size=(2, 4))
        data = weights @ bases + noise * rng.standard_normal((3, 4))
        factor_gibbs(data, weights, bases, 0.7, rate, 3, rng)
        kept.append((weights[0, 0], weights[2, 1], bases[0, 3], bases[1, 0]))
    p = [stats.kstest(x, stats.expon.cdf).pvalue for x in np.transpose(kept)]
    return min(1.0, len(p) * min(p))


def test_factor_gibbs_keeps_the_prior():
    assert prior_p_value(1.0, 0.7) > ALPHA


@pytest.mark.parametrize(("rate", "noise"), [(1.3, 0.7), (1.0, 1.0)])
def test_prior_test_can_fail(rate, noise):
    assert prior_p_value(rate, noise) < ALPHA


def test_factor_gibbs_reports_the_difference_of_its_last_factors():
    rng = np.random.default_rng(7)
    data = rng.exponential(size=(5, 3))
    weights, bases = rng.exponential(size=(5, 2)), rng.exponential(size=(2, 3))
    differences = factor_gibbs(data, weights, bases, 0.5, 1.0, 4, rng)
    assert differences[-1] == pytest.approx(np.mean(np.abs(data - weights @ bases)))
    assert weights.min() > 0 and bases.min() > 0


def test_rollback_hmc_draws_as_the_package_does():
    """The same seed: the same draws, with the wall met in most trajectories."""
    diagonal, start = np.array([0.1, 20.0, 3.0]), np.array([1.0, 0.5, -1.0])
    numbers = {"step_size": 0.0167, "n_steps": 150}
    with pm.Model():
        x = pm.Flat("x", shape=3, initval=start)
        pm.Potential("cone", -pt.sqrt(pt.sum(diagonal * x**2)))
        rb.constrain("ball", 3 - pt.sqrt(pt.sum(x**2)) > 0)
        step = rb.RollbackHMC(exact=False, sharpness=100, **numbers, rng=9)
    step.set_rng(np.random.default_rng(9))
    point, draws = {"x": start.copy()}, []
    for _ in range(10):
        point, _ = step.step(point)
        draws.append(point["x"])
    rng = np.random.default_rng(9)
    plain = rollback_hmc(
        cone, sphere, diagonal, np.array([100.0]), start, *numbers.values(), 10, rng
    )
    # rounding grows along the trajectories
    np.testing.assert_allclose(plain, draws, rtol=1e-3)
    assert np.ptp(plain[:, 0]) > 1
