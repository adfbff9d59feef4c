"""Comparisons of functions that do not have a value everywhere."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from test_region import compiled, logp

import pymc_rollback as rb
from pymc_rollback.region.domains import is_positive

GRID = np.linspace(-3.013, 4.007, 200)


def case(condition, texts, name):
    return pytest.param(condition, texts, id=name)


CASES = [
    case(lambda x: pt.log(x) < 0, ["x > 0", "log(x) < 0"], "log"),
    case(lambda x: pt.log(x) > 0, ["x > 0", "log(x) > 0"], "log-above"),
    case(lambda x: pt.gt(0, pt.log(x)), ["x > 0", "0 > log(x)"], "log-on-the-right"),
    case(lambda x: ~(pt.log(x) < 0), ["log(x) >= 0"], "not-log"),
    case(lambda x: pt.log(x) < pt.log(3 - x), None, "two-logs"),
    case(lambda x: pt.log(x) + x < 1, ["x > 0", "log(x) + x < 1"], "log-in-a-sum"),
    case(lambda x: pt.log(pt.log(x)) < 0, None, "log-of-log"),
    case(lambda x: pt.log(x**2 - 0.5) < 0, None, "log-of-a-square"),
    case(lambda x: (pt.log(x) < 0) | (x < -1), ["(log(x) < 0) or (x < -1)"], "log-in-a-union"),
    case(lambda x: pt.log1p(x) < 0.5, ["1 + x > 0", "log1p(x) < 0.5"], "log1p"),
    case(lambda x: 1 / x > 1, ["1 / x > 1"], "pole"),
    case(lambda x: 1 / x < 1, ["1 / x < 1"], "pole-below"),
    case(lambda x: pt.sqrt(x) < 1, ["x > 0", "sqrt(x) < 1"], "sqrt"),
    case(lambda x: pt.sqrt(x) > -1, None, "sqrt-above-a-negative-number"),
    case(lambda x: pt.sqrt(x + 2) > x, None, "sqrt-of-a-sum"),
    case(lambda x: pt.sqrt(x**2) < 1, ["sqrt(x**2) < 1"], "sqrt-of-a-square"),
    case(lambda x: pt.sqrt(x * x + 1) < 2, ["sqrt(x * x + 1) < 2"], "sqrt-of-a-product"),
    case(lambda x: x**0.5 < 1, None, "power"),
    case(lambda x: pt.arcsin(x) < 0.5, None, "arcsin"),
    case(lambda x: pt.sum(pt.log(pt.stack([x, x + 1]))) < 1, None, "sum-of-logs"),
]


@pytest.mark.parametrize(("condition", "texts"), CASES)
def test_inside_is_where_the_model_is_finite(condition, texts):
    with pm.Model() as model:
        rb.constrain("c", condition(pm.Normal("x")))
    region = rb.read_region(model)
    assert texts is None or [c.text for c in region] == texts
    slacks, density = compiled(model, [c.slack for c in region]), logp(model)
    with np.errstate(all="ignore"):
        inside = [all(np.all(s > 0) for s in slacks(x=x)) for x in GRID]
        finite = [np.isfinite(density(x=x)) for x in GRID]
    assert inside == finite and 0 < sum(inside) < len(inside)


def test_a_logarithm_and_a_constant_are_bounds():
    with pm.Model() as model:
        x = pm.Normal("x")
        rb.constrain("c", pt.log(x) < 0)
        rb.constrain("d", pt.sqrt(x) > 0.5)
    region = rb.read_region(model)
    assert (
        region.cut_supports["x"].lower.eval() == 0.25 and region.cut_supports["x"].upper.eval() == 1
    )
    assert all(c.bound is not None for c in region)


def test_positive_arguments_need_no_further_constraint():
    with pm.Model() as model:
        x, y = pm.HalfNormal("x"), pm.Uniform("y", 0, 1, shape=2)
        rb.constrain("c", pt.log(x / y[0]) < pt.sqrt(y.sum() + pt.exp(x)))
    assert [c.name for c in rb.read_region(model).joint] == ["c"]
    assert not is_positive(pm.Uniform.dist(-1, 1)) and not is_positive(pm.Normal.dist())


@pytest.mark.parametrize("condition", [lambda x: pt.log(x) < 0, lambda x: 1 / x > 1])
@pytest.mark.parametrize("tune", [True, False])
def test_a_chain_leaves_an_edge_with_infinite_slack(condition, tune):
    """It starts at 0, where the slack is infinite and the model's density is finite."""
    with pm.Model() as model:
        rb.constrain("c", condition(pm.Normal("x")))
        step, point, draws = rb.RollbackHMC(rng=3), model.initial_point(), []
        if not tune:
            step.stop_tuning()
        for _ in range(50):
            point, _ = step.step(point)
            draws.append(float(point["x"]))
    assert 0 < min(draws) < max(draws) < 1
    assert len(set(draws)) > 15
