"""Reflect or transform, by the joint density at the wall."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions import transforms

import pymc_rollback as rb
from pymc_rollback.prepare import read_plan, spread_sharpness
from pymc_rollback.target import approach
from pymc_rollback.target.density import Density
from pymc_rollback.target.plan import choose_treatments
from pymc_rollback.target.walls import read_walls


def action(name, model):
    return choose_treatments(rb.read_region(model))[name].action


@pytest.mark.parametrize(
    ("expected", "distribution", "arguments"),
    [
        ("reflect", pm.HalfNormal, {}),
        ("reflect", pm.Exponential, {"lam": 1}),
        ("reflect", pm.Uniform, {}),
        ("reflect", pm.TruncatedNormal, {"mu": -5, "lower": 0}),
        ("reflect", pm.HalfCauchy, {"beta": 1}),
        ("reflect", pm.HalfNormal, {"default_transform": None}),
        ("transform", pm.Gamma, {"alpha": 0.5, "beta": 1}),
        ("transform", pm.Gamma, {"alpha": 2, "beta": 1}),
        ("transform", pm.Beta, {"alpha": 2, "beta": 1}),
        ("transform", pm.Gamma, {"alpha": 0.5, "beta": 1, "default_transform": None}),
        ("transform", pm.Dirichlet, {"a": np.ones(3)}),
        ("transform", pm.VonMises, {"mu": 0, "kappa": 1}),
        ("free", pm.Normal, {}),
        ("free", pm.MvNormal, {"mu": np.zeros(2), "cov": np.eye(2)}),
    ],
)
def test_by_the_prior_alone(expected, distribution, arguments):
    with pm.Model() as model:
        distribution("x", **arguments)
    assert action("x", model) == expected


def test_scale_under_a_normal_keeps_its_transform():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        pm.Normal("y", 0, scale, observed=[1.0, 2.0])
    assert action("scale", model) == "transform"


def test_one_singular_element_is_enough():
    with pm.Model() as model:
        x = pm.HalfNormal("x", shape=5)
        pm.Normal("y", 0, x[3], observed=[1.0, 2.0])
    assert action("x", model) == "transform"


def test_singular_only_in_a_corner_reflects():
    with pm.Model() as model:
        x = pm.HalfNormal("x", shape=5)
        pm.Normal("y", 0, x.sum(), observed=[1.0, 2.0])
    assert action("x", model) == "reflect"


def test_steep_but_finite_reflects():
    with pm.Model() as model:
        x = pm.HalfNormal("x")
        pm.Normal("y", x, 1e-3, observed=[-3.0])
    assert action("x", model) == "reflect"


def test_order_is_sorted_unless_a_tie_has_no_density():
    start = [-1.0, 1.0]
    with pm.Model() as model:
        pm.Normal("means", shape=2, transform=transforms.ordered, initval=start)
        cuts = pm.Normal("cuts", shape=2, transform=transforms.ordered, initval=start)
        pm.OrderedLogistic("y", eta=0.0, cutpoints=cuts, observed=[0, 1, 2])
    assert action("means", model) == "sort"
    assert action("cuts", model) == "transform"


def test_two_walls_that_move_keep_their_transform():
    """Under it the density no longer depends on the parent, which can then reflect."""
    with pm.Model() as model:
        parent = pm.HalfNormal("parent")
        pm.Uniform("child", 0, parent)
        pm.TruncatedNormal("above", lower=parent)
    region = rb.read_region(model)
    actions = {name: t.action for name, t in choose_treatments(region).items()}
    assert actions == {"parent": "reflect", "child": "transform", "above": "reflect"}
    for wanted in ({"sharp": ["child"]}, {"reflect": ["child"]}):
        actions = {name: t.action for name, t in choose_treatments(region, **wanted).items()}
        assert actions == {"parent": "transform", "child": "reflect", "above": "reflect"}


@pytest.mark.parametrize("shape", [[0.5, 1.5], [1.0] * 99 + [0.5]])
def test_singular_elements_are_seen_among_others(shape):
    """Slopes that cancel in a sum, and one among a hundred."""
    with pm.Model() as model:
        pm.Gamma("x", shape, 1.0)
    [row] = rb.describe(model).variables
    assert row.action == "transform"


def test_a_singular_wall_is_seen_beside_a_large_log_density():
    with pm.Model() as model:
        pm.Gamma("x", 0.5, 1.0)
        mu = pm.Normal("mu", 0, 10)
        pm.Normal("y", mu, 1.0, observed=np.full(1000, 1e7))
    row, _ = rb.describe(model).variables
    assert row.action == "transform"


def many_positive(count):
    with pm.Model() as model:
        xs = [pm.HalfNormal(f"x{i}") for i in range(count)]
        scale = pm.HalfNormal("scale")
        pm.Normal("y", pt.add(*xs), scale, observed=[1.0, 2.0])
    return model


@pytest.mark.slow
@pytest.mark.newest
def test_more_variables_than_an_elementwise_op_has_operands():
    treatments = choose_treatments(rb.read_region(many_positive(33)))
    assert [t.action for t in treatments.values()] == ["reflect"] * 33 + ["transform"]


def test_many_variables_are_judged_by_a_compiled_density(monkeypatch):
    monkeypatch.setattr(approach, "MANY", 2)
    treatments = choose_treatments(rb.read_region(many_positive(2)))
    assert [t.action for t in treatments.values()] == ["reflect", "reflect", "transform"]


def test_other_uses_of_a_variable_need_its_bound():
    with pm.Model() as model:
        x = pm.Normal("x", 2, 1)
        rb.constrain("above", x > 1)
        pm.Normal("y", 0, pt.sqrt(x))
    assert action("x", model) == "reflect"


def test_a_tail_that_overflows_unless_it_is_rewritten():
    with pm.Model() as model:
        mean = pm.HalfNormal("mean")
        pm.TruncatedNormal("y", mean, 1, lower=9, observed=[10.0, 11.0])
    assert action("mean", model) == "reflect"


def test_discrete_vectors_beside_a_wall():
    with pm.Model() as model:
        count = pm.Poisson("count", 3, shape=3)
        rate = pm.HalfNormal("rate")
        pm.Normal("y", count.sum() * rate, 1, observed=3.0)
    assert action("rate", model) == "reflect"


def test_a_constraint_belongs_to_its_potential_whatever_its_name():
    """The sharpness of ``v`` is that of its own bounds only."""
    with pm.Model() as model:
        v = pm.HalfNormal("v")
        x = pm.Normal("x", shape=2)
        rb.constrain("v.plane", x.sum() < 3)
        rb.constrain("v.max", v**2 + x[0] < 3)
    given = {"v": 5.0}
    plan = read_plan(model, model.value_vars, sharpness=given)
    owners = {c.name: c.owner for c in plan.region}
    assert owners == {"v.lower": "v", "v.plane": "v.plane", "v.max": "v.max"}
    assert {name: plan.wall(plan.region[name]) for name in owners} == {
        "v.lower": "barrier",
        "v.plane": "reflects",
        "v.max": "barrier",
    }
    walls = read_walls(Density(plan, plan.region.start))
    sharpness = spread_sharpness(given, plan, walls)
    # of v, of both elements of x, which has no bounds, and of v.max, which is tuned
    np.testing.assert_equal(sharpness, [5.0, 0.0, 0.0, np.nan])
