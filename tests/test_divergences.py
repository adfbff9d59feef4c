"""A divergence is reported with its culprit, and the chain stays where it was."""

import numpy as np
import pymc as pm
import pytest
from harness import sample

import pymc_rollback as rb

# PyTensor says so once a process, if there is no BLAS that it can link to
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
]


def diverging_step(exact=True):
    """A sharp wall and steps far too long for it."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 100, shape=2, initval=[0.5, -0.4])
        rb.constrain("disk", (x**2).sum() < 2)
        step = rb.RollbackHMC(sharpness=1e5, step_size=1.0, n_steps=50, exact=exact, rng=1)
    return model, step


@pytest.mark.parametrize("exact", [True, False])
def test_a_divergence_names_the_constraint_and_stays(exact):
    model, step = diverging_step(exact)
    step.stop_tuning()
    start = model.initial_point()
    point, [stats_] = step.step(start)
    assert stats_["diverging"] and stats_["divergences"] == 1 and not stats_["accepted"]
    assert np.array_equal(point["x"], start["x"])
    assert stats_["n_steps"] < 50
    message = stats_["warning"].message
    assert "'disk'" in message and "step_size" in message


def test_divergences_are_counted_and_reported():
    model, step = diverging_step()
    result = sample(step, model)
    diverging = result.sample_stats["diverging"].values
    assert diverging.all()
    assert np.array_equal(result.sample_stats["divergences"].values[0], np.arange(1, 31))
    assert (result.posterior["x"].values == [0.5, -0.4]).all()


def test_a_divergence_names_the_variable():
    """Steps that are unstable under the model itself, without a wall."""
    with pm.Model() as model:
        pm.Normal("calm", initval=0.1)
        pm.Normal("steep", 0, 1e-3, initval=1e-4)
        step = rb.RollbackHMC(sharpness=1, step_size=0.1, n_steps=50, rng=1)
    _, [stats_] = step.step(model.initial_point())
    assert stats_["diverging"] and "'steep'" in stats_["warning"].message


def test_a_gradient_that_is_not_finite_names_the_variable():
    with pm.Model() as model:
        x = pm.Normal("x", initval=0.5)
        pm.Normal("calm")
        pm.Normal("data", pm.math.sqrt(x), 1.0, observed=0.7)  # NaN below zero, and no constraint
        step = rb.RollbackHMC([x], sharpness=1, step_size=0.5, n_steps=50, rng=1, model=model)
    messages = []
    for _ in range(20):
        point, [stats_] = step.step(model.initial_point())
        if stats_["diverging"]:
            assert point["x"] == 0.5
            messages.append(stats_["warning"].message)
    assert messages and all("'x'" in message and "finite" in message for message in messages)


@pytest.mark.parametrize(("time", "diverges"), [(300.0, True), (1.0, False)])
def test_one_step_that_is_too_long_diverges(time, diverges):
    """Its energy has no state between start and end from which a rise could be seen."""
    with pm.Model() as model:
        pm.Normal("x", initval=1.0)
    step = rb.RollbackHMC(model=model, trajectory_time=time, n_steps=1, metric=[1.0], rng=1)
    step.stop_tuning()
    point, [stats_] = step.step(model.initial_point())
    assert stats_["diverging"] == diverges
    assert stats_["accepted"] != diverges and (point["x"] == 1.0) == diverges
