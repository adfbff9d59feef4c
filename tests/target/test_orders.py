"""Elements of an order exchange places only if they share mass, pull and bounds."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from harness import Chains
from pymc.distributions.transforms import ordered

import pymc_rollback as rb

UNEVEN = np.array([0.0, 0.2]), np.array([0.8, 2.0])


def uniform(lower=0.0, upper=1.0, **options):
    with pm.Model() as model:
        options = {"shape": 2, "transform": ordered, "initval": [0.3, 0.6], **options}
        pm.Uniform("x", lower, upper, **options)
    return model


def walls(model, **options):
    rows = rb.describe(model, **options).constraints
    return {row.name: row.wall for row in rows}


def test_equal_bounds_exchange():
    model = uniform()
    assert rb.describe(model).variables[0].action == "sort"
    assert rb.RollbackHMC(model=model).walls.runs.tolist() == [[0.0, 2.0, 1.0]]


def test_an_order_as_planes():
    """Two rows of three elements: a plane between neighbours, with a normal of length one."""
    with pm.Model() as model:
        pm.Normal("x", shape=(2, 3), transform=ordered, initval=[[-1.0, 0.0, 1.0]] * 2)
        rb.constrain("sum", pm.Normal("y") > 0)
    found = rb.RollbackHMC(model=model).walls
    apart = found.with_planes_for_orders()
    assert apart.runs.size == 0 and not apart.exchanges.any() and len(apart.run_names) == 0
    np.testing.assert_allclose(np.linalg.norm(apart.planes[:-1], axis=0), 1.0)
    x = np.arange(7.0)
    slacks = x @ apart.planes[:-1] + apart.planes[-1]
    np.testing.assert_allclose(np.sort(slacks)[:4], np.sqrt(0.5))
    assert apart.planes.shape[1] == found.planes.shape[1] + 4


@pytest.mark.slow
def test_components_that_stay_apart_need_few_gradients():
    """Means of a mixture, far from each other: with one mass a draw took over a hundred."""
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(-2, 0.5, 150), rng.normal(2, 1.0, 100)])
    with pm.Model():
        mu = pm.Normal("mu", 0, 10, shape=2, transform=ordered, initval=[-1.0, 1.0])
        sd = pm.HalfNormal("sd", 2, shape=2)
        share = pm.Beta("share", 2, 2)
        pm.NormalMixture("y", pt.stack([share, 1 - share]), mu, sd, observed=y)
        trace = pm.sample(
            500,
            tune=1000,
            chains=1,
            step=rb.RollbackHMC(),
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert trace["sample_stats"]["n_steps"].values.mean() < 10
    found = trace["posterior"]["mu"].values[0]
    np.testing.assert_allclose(found.mean(axis=0), [-2, 2], atol=0.3)
    assert np.all(found[:, 1] > found[:, 0])


@pytest.mark.parametrize("bounds", [UNEVEN, (0.0, UNEVEN[1]), (UNEVEN[0], 3.0)])
def test_bounds_that_differ_make_planes_of_the_order(bounds):
    """The order is that of the variable itself: no other transform comes before it."""
    model = uniform(*bounds, default_transform=None)
    step = rb.RollbackHMC(model=model)
    assert step.walls.runs.size == 0
    np.testing.assert_allclose(step.walls.planes[:2, 0], np.array([-1, 1]) / np.sqrt(2))
    assert walls(model) == dict.fromkeys(["x.lower", "x.upper", "x.order"], "reflects")


def test_bounds_that_differ_make_a_barrier_of_the_order_of_images():
    step = rb.RollbackHMC(
        model=uniform(*UNEVEN, default_transform=None), sharpness={"x": 3.0}, step_size=0.1
    )
    plan = step.plan
    assert [c.name for c in plan.barriers] == ["x.order"] and not plan.planes


def test_an_order_of_scaled_values_keeps_its_transform():
    """PyMC's interval transform scales each element by its own bounds, and orders what it gives."""
    model = uniform(*UNEVEN, initval=[0.3, 1.2])
    [row] = rb.describe(model).variables
    assert (row.action, row.support) == ("transform", "chain")


def test_a_transform_that_knows_nothing_of_the_bounds():
    """They get barriers; under PyMC's default transforms they need none."""
    model = uniform(default_transform=None)
    found = walls(model, transform=["x"])
    assert found == {"x.lower": "barrier", "x.upper": "barrier", "x.order": "transform"}
    assert set(walls(uniform(), transform=["x"]).values()) == {"transform"}


def drawn(model, n=400, **options):
    step, point, draws = rb.RollbackHMC(model=model, rng=1, **options), model.initial_point(), []
    leave = Chains(model).leave
    for _ in range(n):
        point, _ = step.step(point)
        draws += leave(*point.values())
    return np.array(draws)


@pytest.mark.parametrize("options", [{}, {"transform": ["x"]}])
@pytest.mark.slow
def test_no_draw_leaves_bounds_that_differ(options):
    draws = drawn(uniform(*UNEVEN, default_transform=None), **options)
    assert np.all((draws > UNEVEN[0]) & (draws < UNEVEN[1]) & (np.diff(draws) > 0))
    assert np.ptp(draws[:, 1]) > 1


def test_a_metric_that_differs_within_an_order_is_refused():
    with pytest.raises(ValueError, match=r"ordered variable 'x'.*\(1, 2\).*such as 1.5"):
        rb.RollbackHMC(model=uniform(), metric=[1.0, 2.0])
    rb.RollbackHMC(model=uniform(), metric=[1.5, 1.5])
    rb.RollbackHMC(model=uniform(*UNEVEN, default_transform=None), metric=[1.0, 2.0])


def test_one_pull_for_a_run():
    """Ordered exponentials press each element with another slope against zero."""
    with pm.Model() as model:
        pm.Exponential("x", [1.0, 5.0, 9.0], transform=ordered, initval=[0.1, 0.2, 0.3])
    step = rb.RollbackHMC(model=model, rng=1, metric=np.full(3, 0.1))
    point = model.initial_point()
    for _ in range(200):
        point, _ = step.step(point)
    pull = step.chain.learnt.flow.pull
    assert pull[0] > 1 and np.ptp(pull) == 0
