"""Bounds and orders that are the ranges of value transforms."""

import numpy as np
import pymc as pm
import pymc.distributions.transforms as tr
import pytensor
import pytensor.tensor as pt
import pytest
from harness import bounds, evaluate, free_variable

import pymc_rollback as rb

TRANSFORMED = [
    pytest.param(lambda: pm.Normal("x", transform=tr.log), (0, np.inf), id="log"),
    pytest.param(lambda: pm.Normal("x", transform=tr.logodds), (0, 1), id="logodds"),
    pytest.param(lambda: pm.Normal("x", transform=tr.log_exp_m1), (0, np.inf), id="log_exp_m1"),
    pytest.param(lambda: pm.Normal("x", transform=tr.Interval(-1, 2)), (-1, 2), id="Interval"),
    pytest.param(
        lambda: pm.Normal("x", transform=tr.Interval(None, 2)), (-np.inf, 2), id="Interval-upper"
    ),
    pytest.param(
        lambda: pm.Normal("x", transform=tr.Interval(-2, None)), (-2, np.inf), id="Interval-lower"
    ),
    pytest.param(
        lambda: pm.Normal(
            "x", sigma=3, transform=tr.Interval(bounds_fn=lambda *args: (None, args[-1]))
        ),
        (-np.inf, 3),
        id="Interval-function",
    ),
    pytest.param(
        lambda: pm.Gamma("x", 2, 1, default_transform=None, transform=tr.log_exp_m1),
        (0, np.inf),
        id="own-for-default",
    ),
    pytest.param(
        lambda: pm.Gamma("x", 2, 1, default_transform=tr.Interval(0, None)),
        (0, np.inf),
        id="other-default",
    ),
    pytest.param(
        lambda: pm.HalfNormal("x", default_transform=None, transform=tr.Interval(1, 2)),
        (1, 2),
        id="narrower-than-the-density",
    ),
]


@pytest.mark.parametrize("make, expected", TRANSFORMED)
def test_range_of_the_users_transform(make, expected):
    """The range read is that of the transform: its image of values from far below to far above."""
    with pm.Model() as model:
        x = make()
    support = rb.read_region(model).supports["x"]
    assert bounds(support) == expected
    image = model.rvs_to_transforms[x].backward(pt.constant([-25.0, 25.0]), *x.owner.inputs)
    low, high = np.sort(evaluate(image))
    for reached, bound, unbounded in ((low, expected[0], -20), (high, expected[1], 20)):
        assert abs(reached - bound) < 1e-6 if np.isfinite(bound) else reached / unbounded > 1


def test_interval_transform_with_array_bounds():
    transform = tr.Interval(bounds_fn=lambda *_: (np.array([0.0, -1.0]), np.array([1.0, 3.0])))
    _, support = free_variable(lambda label: pm.Normal(label, shape=2, transform=transform))
    np.testing.assert_array_equal(bounds(support, (2,)), [[0, -1], [1, 3]])


KEPT = [
    pytest.param(lambda: pm.Dirichlet("x", np.ones(3)), "simplex", id="Dirichlet"),
    pytest.param(
        lambda: pm.StickBreakingWeights("x", alpha=1, K=3), "simplex", id="StickBreakingWeights"
    ),
    pytest.param(lambda: pm.ZeroSumNormal("x", shape=3), "zerosum", id="ZeroSumNormal"),
    pytest.param(lambda: pm.VonMises("x"), "circular", id="VonMises"),
    pytest.param(lambda: pm.LKJCorr("x", n=3, eta=2), None, id="LKJCorr"),
    pytest.param(
        lambda: pm.LKJCholeskyCov("x", n=3, eta=2, sd_dist=pm.Exponential.dist(1)),
        "cholesky-cov-packed",
        id="LKJCholeskyCov",
    ),
    pytest.param(lambda: pm.Exponential("x", 1, transform=tr.log), "chain", id="chain"),
]


@pytest.mark.parametrize("make, name", KEPT)
def test_other_transforms_are_kept(make, name):
    with pm.Model() as model:
        make()
    region = rb.read_region(model)
    support = region.supports["x"]
    assert support.keeps == (name or model.rvs_to_transforms[model["x"]].name)
    assert support.keeps and support.text == support.keeps
    assert not support.bounded and len(region) == 0


def ordered_slack(make):
    with pm.Model() as model:
        x = make()
    region = rb.read_region(model)
    constraint = region["x.order"]
    assert constraint.kind == "order" and constraint.affine
    return region, pytensor.function([x], constraint.slack, mode="FAST_COMPILE")


ORDERS = [
    pytest.param(tr.ordered, "ascending", id="default"),
    pytest.param(tr.Ordered(ascending=True), "ascending", id="ascending"),
    pytest.param(tr.Ordered(ascending=False), "descending", id="descending"),
    pytest.param(tr.Ordered(positive=True), "ascending", id="positive"),
    pytest.param(
        tr.Ordered(positive=True, ascending=False), "descending", id="positive-descending"
    ),
]


def sorted_values(direction):
    return np.array([0.5, 1.2, 2.0])[:: 1 if direction == "ascending" else -1]


@pytest.mark.parametrize("shape", [(3,), (2, 3)], ids=str)
@pytest.mark.parametrize("transform, direction", ORDERS)
def test_orders(transform, direction, shape):
    region, slack = ordered_slack(
        lambda: pm.Normal(
            "x",
            shape=shape,
            transform=transform,
            initval=np.broadcast_to(sorted_values(direction), shape),
        )
    )
    support = region.supports["x"]
    assert support.order == direction
    ordered = np.broadcast_to(sorted_values(direction), shape).astype(float)
    assert slack(ordered).shape == (np.prod(shape[:-1], dtype=int) * 2,)
    assert np.all(slack(ordered) > 0)
    assert np.all(slack(ordered[..., ::-1]) < 0)
    swapped = ordered.copy()
    swapped[..., [0, 1]] = swapped[..., [1, 0]]
    assert np.any(slack(swapped) < 0)
    if len(shape) == 2:
        mixed = ordered.copy()
        mixed[1] = mixed[1, ::-1]
        assert np.all(slack(mixed).reshape(2, 2)[0] > 0)
        assert np.all(slack(mixed).reshape(2, 2)[1] < 0)


@pytest.mark.parametrize("transform, direction", ORDERS)
def test_orders_are_those_of_the_transform(transform, direction):
    """Images of random points under the transform meet the constraints, all of them."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=3, transform=transform, initval=sorted_values(direction))
    region = rb.read_region(model)
    images = transform.backward(pt.constant(np.random.default_rng(1).normal(size=(200, 3))))
    slacks = pytensor.function([x], pt.join(0, *(c.slack for c in region)), mode="FAST_COMPILE")
    points = evaluate(images)
    assert np.all([slacks(point) > 0 for point in points])
    positive = transform.positive
    assert np.any(points < 0) != positive
    assert ("x.lower" in [c.name for c in region]) == positive


def test_order_of_a_bounded_variable():
    """The default transform and the order are chained; both are read."""
    region, slack = ordered_slack(
        lambda: pm.Uniform("x", 1, 3, shape=3, transform=tr.ordered, initval=[1.5, 2, 2.5])
    )
    assert bounds(region.supports["x"]) == (1, 3)
    assert region.supports["x"].text == "(1, 3) ascending"
    assert np.all(slack([1.1, 2, 2.9]) > 0) and np.any(slack([1.1, 2.9, 2]) < 0)
