"""Missing values of observed variables, which PyMC makes free variables."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_rollback as rb

pytestmark = pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")

ERROR_RATE = 1e-4
BATCHES = 50


def truncated(lower, upper, observed):
    return pm.Truncated("y", pm.StudentT.dist(4), lower=lower, upper=upper, observed=observed)


def texts(model):
    return [c.text for c in rb.read_region(model)]


def test_bounds_of_missing_values():
    with pm.Model() as model:
        truncated(0.5, [2, 3, 4, 5], [1.0, np.nan, 1.5, np.nan])
    region = rb.read_region(model)
    assert [c.text for c in region] == ["y_unobserved > 0.5", "y_unobserved < [3, 5]"]
    np.testing.assert_array_equal(region.supports["y_unobserved"].upper.eval(), [3, 5])


def test_bounds_of_missing_values_that_move():
    with pm.Model() as model:
        low = pm.HalfNormal("low")
        truncated(low, 5, [1.0, np.nan, 1.5])
    assert texts(model) == [
        "low > 0",
        "y_unobserved > low",
        "y_unobserved < 5",
        "y_observed >= low",
    ]
    assert rb.read_region(model)["y_observed.support"].slack.eval({low: 0.75}).tolist() == [
        0.25,
        0.75,
    ]


def test_missing_values_without_bounds():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        observed = np.array([[1.0, np.nan], [0.3, 0.4]])
        pm.MvNormal("y", np.zeros(2), scale * np.eye(2), observed=observed)
    assert texts(model) == ["scale > 0"]
    _, [numbers] = rb.RollbackHMC(model=model, rng=1).step(model.initial_point())
    assert np.isfinite(numbers["model_logp"])


def test_missing_values_of_a_simplex_are_refused():
    with pm.Model() as model:
        pm.Dirichlet("y", np.ones(3), observed=[0.2, 0.3, np.nan])
    with pytest.raises(rb.RegionError, match=r"'y_unobserved'.*joint support"):
        rb.read_region(model)


def p_value(x, lower, upper):
    """Of the first two moments of what would be uniform, tested by the means of batches."""
    student = stats.t(4)
    low, high = student.cdf([lower, upper])
    uniform = (student.cdf(x) - low) / (high - low)
    moments = [uniform - 1 / 2, uniform**2 - 1 / 3]
    batches = (moment.reshape(BATCHES, -1).mean(axis=1) for moment in moments)
    return 2 * min(stats.ttest_1samp(batch, 0).pvalue for batch in batches)


def test_draws_of_missing_values():
    """A right sampler fails with a probability of 1e-4; a bound that is not there is noticed."""
    with pm.Model():
        truncated(0.5, 2.0, [1.0, np.nan])
        trace = pm.sample(
            2000,
            tune=300,
            chains=1,
            step=rb.RollbackHMC(),
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    draws = trace.posterior["y_unobserved"].values.ravel()
    assert p_value(draws, 0.5, 2.0) > ERROR_RATE
    assert p_value(draws, 0.5, 2.5) < 1e-8
