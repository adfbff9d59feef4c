"""Which constraints are affine in the free variables."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_rollback as rb

MATRIX = np.arange(6.0).reshape(2, 3)

AFFINE = [
    pytest.param(lambda x, y, d: x[0], id="element"),
    pytest.param(lambda x, y, d: 2 * x[0] - x[1] / 3 + y, id="combination"),
    pytest.param(lambda x, y, d: MATRIX @ x, id="matrix-product"),
    pytest.param(lambda x, y, d: pt.dot(x, np.ones(3)), id="dot"),
    pytest.param(lambda x, y, d: pt.as_tensor(MATRIX) @ x - y, id="tensor-matrix-product"),
    pytest.param(lambda x, y, d: pt.diff(x), id="diff"),
    pytest.param(lambda x, y, d: x[1:] - x[:-1], id="differences"),
    pytest.param(lambda x, y, d: pt.sum(x) + y, id="sum"),
    pytest.param(lambda x, y, d: pt.mean(x), id="mean"),
    pytest.param(lambda x, y, d: pt.cumsum(x), id="cumsum"),
    pytest.param(lambda x, y, d: d * x + y, id="data-times-variable"),
    pytest.param(lambda x, y, d: pt.exp(d) * x, id="function-of-data"),
    pytest.param(lambda x, y, d: pt.concatenate([x, -x[::-1]]), id="concatenate"),
    pytest.param(lambda x, y, d: pt.stack([x[0], y, x[1] + y]), id="stack"),
    pytest.param(lambda x, y, d: x[np.array([0, 0, 2])], id="index-array"),
    pytest.param(lambda x, y, d: x.reshape((3, 1)).T * 2.0, id="reshape"),
    pytest.param(lambda x, y, d: pt.set_subtensor(x[0], y), id="set-subtensor"),
    pytest.param(lambda x, y, d: pt.switch(d > 1, x, y), id="switch-on-data"),
    pytest.param(lambda x, y, d: x * x.shape[0], id="times-shape"),
]
NOT_AFFINE = [
    pytest.param(lambda x, y, d: x[0] * x[1], id="product-of-elements"),
    pytest.param(lambda x, y, d: x * y, id="product"),
    pytest.param(lambda x, y, d: x / y, id="quotient"),
    pytest.param(lambda x, y, d: x**2, id="square"),
    pytest.param(lambda x, y, d: pt.exp(x), id="exp"),
    pytest.param(lambda x, y, d: pt.abs(x), id="abs"),
    pytest.param(lambda x, y, d: pt.maximum(x, y), id="maximum"),
    pytest.param(lambda x, y, d: pt.max(x), id="max"),
    pytest.param(lambda x, y, d: pt.clip(x, -1, 1), id="clip"),
    pytest.param(lambda x, y, d: pt.dot(x, x), id="dot-with-itself"),
    pytest.param(lambda x, y, d: pt.prod(x), id="prod"),
    pytest.param(lambda x, y, d: pt.cumprod(x), id="cumprod"),
    pytest.param(lambda x, y, d: pt.switch(y > 0, x, -x), id="switch"),
    pytest.param(lambda x, y, d: pt.sort(x), id="sort"),
    pytest.param(lambda x, y, d: MATRIX @ pt.tanh(x), id="matrix-product-of-tanh"),
]


def slack_is_affine(build):
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        y = pm.Normal("y")
        d = pm.Data("d", [0.5, 1.0, 2.0])
        rb.constrain("c", build(x, y, d) > -9)
    return rb.read_region(model)["c"].affine


@pytest.mark.parametrize("build", AFFINE)
def test_affine(build):
    assert slack_is_affine(build)


@pytest.mark.parametrize("build", NOT_AFFINE)
def test_not_affine(build):
    assert not slack_is_affine(build)


def test_affine_in_the_continuous_variables_for_each_value_of_the_discrete():
    with pm.Model() as model:
        x, n = pm.Normal("x"), pm.Poisson("n", 3)
        rb.constrain("affine", n * x < 1)
        rb.constrain("not", n * x**2 < 1)
    region = rb.read_region(model)
    assert region["affine"].affine and not region["not"].affine


def test_a_bound_by_a_function_of_another_variable_is_not_affine():
    with pm.Model() as model:
        y = pm.HalfNormal("y")
        pm.Uniform("x", 0, y**2)
    region = rb.read_region(model)
    assert not region["x.upper"].affine and region["x.lower"].affine
