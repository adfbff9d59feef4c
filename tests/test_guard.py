"""The density that is sampled is the model's, and a step serves one thread."""

import copy
import threading

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

import pymc_rollback as rb
from pymc_rollback.guard import DUE, Guard, OneThread


@pytest.fixture(scope="module")
def model():
    """Bounds, transforms, a discrete variable, a Potential, a constraint and data."""
    with pm.Model() as model:
        x, scale = pm.Normal("x", shape=2), pm.HalfNormal("scale")
        n = pm.Poisson("n", 3)
        pm.Dirichlet("w", np.ones(3))
        pm.Normal("y", x[0] + n, scale, observed=[0.3, 1.5])
        pm.Potential("bump", -(x[1] ** 4))
        rb.constrain("c", x.sum() < 2)
    return model


@pytest.mark.slow
@pytest.mark.newest
def test_the_models_own_density_passes(model):
    guard, point = Guard(rb.read_region(model)), model.initial_point()
    log_density = float(model.compile_logp(mode="FAST_COMPILE")(point))
    guard.check(1, point, log_density)
    for wrong in (log_density + 0.01, np.inf, np.nan):
        with pytest.raises(SamplingError, match=r"draw 10 .*not.*change of variables.*report"):
            guard.check(10, point, wrong)
    assert {1, 10, 100, 1000} <= DUE
    guard.check(11, point, log_density + 0.01)
    guard.check(10, point, -np.inf)


@pytest.mark.parametrize("term", ["y", "bump"])
def test_the_term_that_differs_is_named(model, term, monkeypatch):
    region, point = rb.read_region(model), model.initial_point()
    smooth = region.space({}).smooth_terms
    monkeypatch.setitem(smooth, term, smooth[term] + 1.0)
    log_density = float(model.compile_logp(mode="FAST_COMPILE")(point)) + 1.0
    with pytest.raises(SamplingError, match=rf"sampled: '{term}' is [^;]*\. The draws"):
        Guard(region).check(1, point, log_density)


def test_overflow_without_rewrites_is_no_difference():
    """``log(1 + exp(x))`` overflows as it is written, and does not as PyMC compiles it."""
    with pm.Model() as model:
        x = pm.Normal("x", 800, 1)
        pm.Potential("soft", -pt.log(1 + pt.exp(x)))
    guard, point = Guard(rb.Region(model, {}, ())), {"x": np.array(800.0)}
    assert np.isneginf(guard._evaluate(guard._quick, point)[1])
    guard.check(1, point, -0.5 * np.log(2 * np.pi) - 800)


def test_a_slack_by_hand_that_is_positive_where_the_model_is_not_finite():
    with pm.Model() as model:
        x = pm.Normal("x", initval=-0.5)
        rb.constrain("c", x > 0)
        step = rb.RollbackHMC(constraints={"c": -x}, rng=1)
        with pytest.raises(SamplingError, match=r"draw 1 .*'c' is -inf, not 0.*by hand"):
            step.step(model.initial_point())


# ----------------------------------------------------------------------------------------- threads


def in_a_thread(function):
    """What a function does in a thread of its own that has ended since."""
    errors = []

    def run():
        try:
            function()
        except SamplingError as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="second")
    thread.start()
    thread.join()
    return errors


def test_a_second_thread_is_refused():
    with pm.Model() as model:
        pm.HalfNormal("x")
        step = rb.RollbackHMC(rng=1)
    point, _ = step.step(model.initial_point())
    uses = (lambda: step.step(point), lambda: step.set_rng(2), step.reset_tuning)
    for use in uses:
        [error] = in_a_thread(use)
        assert "'MainThread'" in str(error) and "'second'" in str(error)
        assert "Make a RollbackHMC in each thread" in str(error)
    assert step.iteration == 1
    step.step(point)


def test_a_thread_that_has_ended_hands_on():
    one = OneThread()
    assert in_a_thread(one.claim) == []
    one.claim()
    assert len(in_a_thread(one.claim)) == 1
    assert in_a_thread(copy.deepcopy(one).claim) == []
