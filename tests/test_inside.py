"""Random models: inside the region is where the model's log density is finite.

Each model is read once, and compared with ``model.logp`` at points inside and outside. There the
variables have no transforms, so that every point can be asked for.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_rollback as rb
from pymc_rollback.conditions import interpreted

MODELS, POINTS = 30, 60


def a_variable(name, rng, before):
    """A free variable with a support of some kind, perhaps dependent on others."""
    low = rng.normal()
    anchor = before[rng.integers(len(before))] if before else pt.constant(low)
    options = {"shape": (2,) if rng.random() < 0.4 and anchor.ndim == 0 else None}
    options |= {"default_transform": None, "initval": None}
    kinds = [
        lambda: pm.Normal(name, low, 1, **options),
        lambda: pm.HalfNormal(name, **options),
        lambda: pm.Uniform(name, low, low + 2, **options),
        lambda: pm.TruncatedNormal(name, low, 1, lower=low - 1, **options),
        lambda: pm.Truncated(name, pm.StudentT.dist(4), upper=low + 1, **options),
        lambda: pm.Pareto(name, 2.0, 0.5, **options),
        lambda: pm.Uniform(name, low, pt.sum(pt.abs(anchor)) + low + 1, **options),
        lambda: pm.CustomDist(
            name,
            pt.sum(anchor),
            logp=lambda value, other: pt.switch(
                (value > low) & (other < low + 2), -0.5 * value**2, -np.inf
            ),
            initval=None,
        ),
        lambda: pm.Poisson(name, 2.0),
    ]
    return kinds[rng.integers(len(kinds))]()


def a_condition(rng, variables):
    x = pt.sum(variables[rng.integers(len(variables))])
    y = pt.sum(variables[rng.integers(len(variables))])
    a = rng.normal()
    forms = [
        lambda: x - y < a + 1,
        lambda: x**2 + y**2 > abs(a),
        lambda: pt.log(x) < a + 1,
        lambda: pt.sqrt(x + 1) > y - 1,
        lambda: 1 / x > a,
        lambda: (x > a) | (y < a),
        lambda: ~((x > a + 1) | (y > a + 1)),
        lambda: (x > a - 1) & (y < a + 2),
        lambda: pt.all(pt.stack([x, y]) > a - 1),
    ]
    return forms[rng.integers(len(forms))]()


def a_likelihood(rng, variables):
    x = pt.sum(variables[rng.integers(len(variables))])
    data = np.abs(rng.normal(size=3))
    kinds = [
        lambda: pm.Normal("y", x, 1, observed=data),
        lambda: pm.Uniform("y", -1, x, observed=data),
        lambda: pm.Uniform("y", x - 3, x + 3, observed=data),
        lambda: pm.Exponential("y", pt.exp(x), observed=data),
        lambda: pm.Truncated("y", pm.StudentT.dist(4), lower=x, observed=data),
        lambda: pm.Wald("y", mu=1, lam=1, alpha=x, observed=data),
        lambda: pm.Censored("y", pm.Normal.dist(x), -1, 9, observed=data),
    ]
    return kinds[rng.integers(len(kinds))]()


def a_model(seed):
    """A model that can be read, and its region; models that are refused are drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        with pm.Model() as model:
            variables = []
            for name in "abc"[: rng.integers(1, 4)]:
                variables.append(a_variable(name, rng, variables))
            if rng.random() < 0.7:
                a_likelihood(rng, variables)
            if rng.random() < 0.7:
                level = rng.choice([-np.inf, -1e10, -50.0])
                condition = a_condition(rng, variables)
                pm.Potential("wall", pt.switch(condition, -(pt.sum(variables[0]) ** 2), level))
        try:
            return model, rb.read_region(model), rng
        except (rb.RegionError, ValueError) as error:
            assert isinstance(error, rb.RegionError) or "free random" in str(error), error


@pytest.mark.parametrize("seed", range(MODELS))
def test_inside_is_where_the_log_density_is_finite(seed):
    """And there the smooth log density is the same."""
    model, region, rng = a_model(seed)
    values = model.value_vars
    slacks = model.replace_rvs_by_values([c.slack for c in region]) if len(region) else []
    outputs = [model.logp(), region.smooth_logp(), *slacks]
    function = interpreted(values, outputs)
    start = region.start
    for _ in range(POINTS):
        scale = rng.choice([0.3, 1.0, 3.0])
        point = [
            (start[v.name] + scale * rng.normal(size=start[v.name].shape)).astype(v.dtype)
            for v in values
        ]
        with np.errstate(all="ignore"):
            hard, smooth, *rows = function(*point)
        inside = all(np.all(row > 0) for row in rows)
        if inside:
            np.testing.assert_allclose(smooth, hard, rtol=1e-9)
        else:
            assert hard < -1e9
