"""Draws that are made ahead, several in one call, are those that would be made one by one."""

import pickle

import cloudpickle
import numpy as np
import pymc as pm
import pytest

import pymc_rollback as rb
from pymc_rollback import step as module
from pymc_rollback.chain.choice import Choice

pytestmark = pytest.mark.compiled


@pytest.fixture(scope="module")
def model():
    """A bound, an order under PyMC's transforms, and a joint constraint."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=3, transform=pm.distributions.transforms.ordered, initval=range(3))
        scale = pm.Exponential("scale", 1.0)
        rb.constrain("together", x.sum() < 4 * scale + 2)
    return model


@pytest.fixture
def step(model):
    return rb.RollbackHMC(model=model, rng=5)


def tuned(step, model, n=60):
    point = model.initial_point()
    for _ in range(n):
        point, _ = step.step(point)
    step.stop_tuning()
    return point


def chain(step, point, n=50):
    """Values and stats that follow a point."""
    draws = []
    for _ in range(n):
        point, [stats] = step.step(point)
        draws.append([*(point[v.name] for v in step.vars), stats["energy"], stats["n_steps"]])
    return draws


def same(first, second):
    return all(
        np.array_equal(x, y)
        for a, b in zip(first, second, strict=True)
        for x, y in zip(a, b, strict=True)
    )


def one_by_one(monkeypatch):
    monkeypatch.setattr(module, "AHEAD", 1)


def test_ahead_or_one_by_one(step, model, monkeypatch):
    other = cloudpickle.loads(cloudpickle.dumps(step))
    ahead = chain(step, tuned(step, model))
    assert step.ahead
    one_by_one(monkeypatch)
    alone = chain(other, tuned(other, model))
    assert not other.ahead
    assert same(ahead, alone)


def test_sampling_state_between_draws_made_ahead(step, model):
    other = cloudpickle.loads(cloudpickle.dumps(step))
    point = tuned(step, model)
    for _ in range(5):
        point, _ = step.step(point)
    assert step.ahead
    other.sampling_state = pickle.loads(pickle.dumps(step.sampling_state))
    copied = {name: value.copy() for name, value in point.items()}
    assert same(chain(step, point), chain(other, copied))


def test_another_point_is_started_from(step, model):
    """A point that was not drawn last: what was made ahead is of no use."""
    point = tuned(step, model)
    for _ in range(5):
        point, _ = step.step(point)
    assert step.ahead
    elsewhere = {**point, "scale_log__": np.array(3.0)}
    [(_, scale, *_)] = chain(step, elsewhere, 1)
    # a trajectory goes less far than from one draw to any other
    assert abs(np.exp(scale) - np.exp(3.0)) < 10 < abs(np.exp(point["scale_log__"]) - np.exp(3.0))


def test_slow_draws_are_made_one_by_one(step, model, monkeypatch):
    monkeypatch.setattr(module, "AHEAD_SECONDS", 0.0)
    chain(step, tuned(step, model), 5)
    assert not step.ahead


def test_other_variables_may_change_between_draws(model):
    step = rb.RollbackHMC([model["x"]], model=model, rng=1)
    chain(step, tuned(step, model), 5)
    assert not step.ahead


def test_trajectories_that_bounce_are_repeated():
    """Exponentials, along lines: of one or two steps, and draws that depend on each other."""
    with pm.Model() as model:
        pm.Exponential("x", 1, shape=20)
        step = rb.RollbackHMC(rng=1, metric=np.ones(20))
    point = model.initial_point()
    while_tuning = []
    for _ in range(400):
        point, [stats] = step.step(point)
        while_tuning.append(stats["n_steps"])
    step.stop_tuning()
    repeats = step.chain.warmup.repeats(step.chain.learnt)
    after = [n for *_, n in chain(step, point, 200)]
    assert repeats >= 2
    assert np.mean(after) == pytest.approx(repeats * np.mean(while_tuning[-100:]), rel=0.2)
    given = rb.RollbackHMC(model=model, n_steps=3).chain
    assert given.warmup.repeats(step.chain.learnt) == 1
    timed = step.chain.learnt._replace(choice=Choice(time=1.6))
    assert step.chain.warmup.repeats(timed) == 1
