"""Which of two metrics a chain goes on with."""

import numpy as np
import pymc as pm
import pytest
from scipy.signal import lfilter

import pymc_rollback as rb
from pymc_rollback.chain import race
from pymc_rollback.chain.score import WORST, Heat, compare, judge

RHO = 0.9


def autoregression(correlation, n=400, size=40, seed=1):
    """Columns of unit variance with an autocorrelation time of (1 + ρ) / (1 - ρ)."""
    noise = np.random.default_rng(seed).normal(size=(n + 200, size))
    scale = np.sqrt(1 - correlation**2)
    return lfilter([scale], [1, -correlation], noise, axis=0)[200:]


def judged(*pairs):
    return judge([Heat(draws, cost) for draws, cost in pairs])


def test_effective_draws_per_gradient():
    """400 draws tell 19 draws for an effective one from one for one; costs count."""
    slow, quick = autoregression(RHO), autoregression(0.0)
    scores = judged((slow, 400), (quick, 400))
    assert 0.7 < scores[1] < 1.3
    assert 10 < scores[1] / scores[0] < 30
    dearer = judged((slow, 800), (quick, 400))
    np.testing.assert_allclose(dearer, [scores[0] / 2, scores[1]])


def test_a_heat_that_does_not_move_is_seen():
    """Its own autocorrelations would be those of nothing."""
    stuck, moving = judged((np.full((75, 40), 0.3), 75), (autoregression(0.0), 400))
    assert stuck < moving / 50
    tenth, whole = judged((0.1 * autoregression(0.0), 400), (autoregression(0.0), 400))
    assert tenth < whole / 20
    assert np.all(np.isfinite(judged((np.ones((75, 2)), 75), (np.ones((75, 2)), 75))))


def test_squares_count():
    """Signs that change at random hide that the sizes stay the same."""
    signs = np.random.default_rng(2).choice([-1.0, 1.0], size=(400, 40))
    sizes = [np.abs(autoregression(correlation)) for correlation in (0.95, 0.0)]
    slow, quick = judged(*((signs * size, 400) for size in sizes))
    assert slow < quick / 2


def test_a_heat_that_failed_is_the_worst():
    found = compare([Heat(autoregression(0.0), 400), None, Heat(autoregression(RHO), 400)])
    assert found[0] == 0 and found[1] == WORST and WORST < found[2] < -1


def collinear():
    covariance = 0.99 * np.ones((3, 3)) + 0.01 * np.eye(3)
    with pm.Model() as model:
        x = pm.Normal("x", 0, 10, shape=3)
        pm.Potential("likelihood", -0.5 * x @ np.linalg.inv(covariance) @ x)
        rb.constrain("positive", x > 0)
    return model


def exponentials():
    with pm.Model() as model:
        pm.Exponential("x", 1.0, shape=20)
    return model


def metric_after(model, n=170, **options):
    step = rb.RollbackHMC(model=model, rng=3, **options)
    point = model.initial_point()
    for _ in range(n):
        point, _ = step.step(point)
    return step.chain.learnt.metric


@pytest.mark.compiled
def test_correlated_bounds_get_a_dense_metric_and_independent_ones_do_not():
    metric = metric_after(collinear())
    assert metric.coupled.size == 3 and metric.planes.shape[1] == 3
    assert metric_after(exponentials()).covariance.size == 0
    assert metric_after(exponentials(), metric="dense").coupled.size == 20


@pytest.mark.compiled
def test_control_the_verdict_decides(monkeypatch):
    monkeypatch.setattr(race, "compare", lambda heats: np.arange(0.0, -len(heats), -1))
    assert metric_after(collinear(), trajectory_time=1.0).covariance.size == 0
    monkeypatch.setattr(race, "compare", lambda heats: np.arange(-len(heats), 0.0))
    assert metric_after(exponentials(), trajectory_time=1.0).coupled.size == 20


def test_no_race_in_many_dimensions_or_one():
    for size, kind in ((1, "diag"), (2, "auto"), (300, "auto"), (301, "diag")):
        with pm.Model() as model:
            pm.Normal("x", shape=size)
        assert rb.RollbackHMC(model=model).options.metric == kind
