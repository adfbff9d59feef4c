"""Draws from the constrained prior, and what it predicts."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_rollback as rb
from pymc_rollback.prior import without_likelihood

OPTIONS = {
    "tune": 300,
    "chains": 2,
    "cores": 1,
    "random_seed": 3,
    "progressbar": False,
    "compute_convergence_checks": False,
}


def cut():
    """A standard normal above one, with data far away, which would hold the draws at one."""
    with pm.Model(coords={"day": range(4)}) as model:
        x = pm.Normal("x")
        rb.constrain("above", x > 1)
        twice = pm.Deterministic("twice", 2 * x)
        pm.Normal("y", twice, 0.1, observed=np.full(4, -9.0), dims="day")
    return model


@pytest.mark.slow
def test_known_answers():
    """A right sampler fails this with a chance of 1e-6; one that ignores the wall always does."""
    draws = rb.sample_prior(cut(), 2000, **OPTIONS)
    prior, predicted = draws["prior"], draws["prior_predictive"]
    assert prior["x"].dims == ("chain", "draw") and prior["x"].shape == (2, 2000)
    assert predicted["y"].dims == ("chain", "draw", "day")
    x, y = prior["x"].values.ravel(), predicted["y"].values.reshape(-1, 4)
    truth = stats.truncnorm(1, np.inf)
    assert np.all(x > 1)
    # a quarter of the draws are effective at least, and five standard errors are allowed
    assert abs(x.mean() - truth.mean()) < 5 * truth.std() / np.sqrt(x.size / 4)
    np.testing.assert_array_equal(prior["twice"].values.ravel(), 2 * x)
    error = (y - 2 * x[:, None]) / 0.1
    assert stats.kstest(error.ravel(), "norm").pvalue > 1e-6
    assert np.all(draws["observed_data"]["y"].values == -9)
    assert "acceptance_rate" in draws["sample_stats_prior"]


def test_the_model_is_left_as_it_was():
    model = cut()
    names = list(model.named_vars)
    prior = without_likelihood(model)
    assert list(model.named_vars) == names and len(model.observed_RVs) == 1
    assert set(prior.named_vars) == {"x", "above", "twice"} and not prior.observed_RVs
    at = {"x": np.array(1.5)}
    logp = prior.compile_logp(mode="FAST_COMPILE")
    assert np.isclose(logp(at), stats.norm.logpdf(1.5))
    assert logp({"x": np.array(0.5)}) == -np.inf


@pytest.mark.parametrize("joint", [False, True])
def test_missing_values_are_predicted(joint):
    """Of a multivariate variable; others are variables of their own."""
    with pm.Model() as model:
        mu = pm.HalfNormal("mu")
        data = np.array([0.5, np.nan, 1.0])
        with pytest.warns(pm.exceptions.ImputationWarning):
            if joint:
                pm.MvNormal("y", mu * np.ones(3), np.eye(3), observed=data)
            else:
                pm.Normal("y", mu, 1, observed=data)
    prior = without_likelihood(model)
    assert [rv.name for rv in prior.free_RVs] == ["mu"] + ["y_unobserved"] * (not joint)
    assert prior.deterministics == []


def test_potentials_that_are_likelihoods_are_named():
    with pm.Model() as model:
        x = pm.Normal("x")
        y = pm.Normal("y", x, observed=1.0)
        pm.Potential("likelihood", -((x - y) ** 2))
    with pytest.raises(ValueError, match=r"'likelihood' depends on the observed y.*leave_out"):
        without_likelihood(model)
    assert without_likelihood(model, ["likelihood"]).potentials == []
    with pytest.raises(ValueError, match=r"leave_out names z, but the Potentials.*likelihood"):
        without_likelihood(model, ["z"])


def test_a_variable_that_depends_on_data_has_no_prior_without():
    with pm.Model() as model:
        y = pm.Normal("y", observed=1.0)
        pm.Normal("x", y)
    with pytest.raises(ValueError, match=r"'x' depends on the observed y.*pm.Data"):
        without_likelihood(model)
