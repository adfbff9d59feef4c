"""A feasible, dispersed start for each chain, from any initial point."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

import pymc_rollback as rb


def sliver():
    x = pm.Normal("x", shape=3)
    rb.constrain("sliver", (pt.sum(x) > 1.0) & (pt.sum(x) < 1.0001))


def curved_sliver():
    x = pm.Normal("x", shape=3)
    rb.constrain("shell", (pt.sum(x**2) > 4.0) & (pt.sum(x**2) < 4.0004))


def far_away():
    x = pm.Normal("x", shape=2)
    rb.constrain("far", pt.sum((x - 50.0) ** 2) < 1.0)


def many_rows():
    rows = np.random.default_rng(1).normal(size=(400, 5))
    x = pm.Normal("x", shape=5, initval=np.full(5, 30.0))
    rb.constrain("rows", pt.dot(rows, x - 7.0) < 0.5)


def crescent():
    x = pm.Normal("x", shape=2, initval=[-3.0, 0.0])
    rb.constrain("crescent", (pt.sum(x**2) < 4.0) & (pt.sum((x - [1.0, 0.0]) ** 2) > 4.0))


def with_bounds():
    x = pm.HalfNormal("x", shape=3)
    rb.constrain("sum", (pt.sum(x) > 20.0) & (x[0] > 2 * x[1]))


STARTS = [sliver, curved_sliver, far_away, many_rows, crescent, with_bounds]


@pytest.mark.parametrize("build", STARTS)
def test_chains_begin_inside_and_apart(build):
    with pm.Model() as model:
        build()
    step = rb.RollbackHMC(model=model)
    points = []
    for seed in range(3):
        step.set_rng(np.random.default_rng(seed))
        point, _ = step.step(model.initial_point())
        step.slacks.check_start(point)
        points.append(np.ravel(next(iter(point.values()))))
    assert all(not np.allclose(points[0], other, rtol=1e-9) for other in points[1:])


def test_impossible_system_names_the_constraints():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("small", pt.sum(x**2) < 1.0)
        rb.constrain("large", pt.sum(x**2) > 2.0)
    step = rb.RollbackHMC(model=model)
    with pytest.raises(SamplingError, match=r"'(small|large)' \(slack -.*initvals"):
        step.step(model.initial_point())


def test_static_sampler_refuses_a_start_outside():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2, initval=[3.0, 0.0])
        rb.constrain("disk", pt.sum(x**2) < 1.0)
    step = rb.RollbackHMC(model=model, sharpness=10, step_size=0.1, n_steps=5)
    with pytest.raises(SamplingError, match=r"'disk' .* slack -8,"):
        step.step(model.initial_point())
