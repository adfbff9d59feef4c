"""The paper's sampler (exact=False) draws from the smoothed density, and we can tell."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from pymc.model.transform.conditioning import remove_value_transforms
from scipy import integrate, stats
from scipy.special import expit

import pymc_rollback as rb

# PyTensor says so once a process, if there is no BLAS that it can link to
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
]

MU = 50.0
COPIES = 20


def smoothed_cdf(density):
    """CDF of density(x)·σ(MU·x), by the trapezoid rule on a fine grid."""
    grid = np.linspace(-1.0, 40.0, 400_001)
    cdf = integrate.cumulative_trapezoid(density(grid) * expit(MU * grid), grid, initial=0.0)
    return lambda x: np.interp(x, grid, cdf / cdf[-1])


def sample(model, draws, **options):
    with model:
        step = rb.RollbackHMC(sharpness=MU, exact=False, **options)
        return pm.sample(
            draws,
            tune=100,
            chains=2,
            cores=1,
            step=step,
            random_seed=11,
            progressbar=False,
            compute_convergence_checks=False,
        )


def independent_draws(result):
    """Draws thinned by the smallest ESS of the copies, which are independent of each other."""
    x = result.posterior["x"]
    ess = float(az.ess(result)["x"].min())
    thin = int(np.ceil(x.sizes["chain"] * x.sizes["draw"] / ess))
    return x.values[:, ::thin].ravel()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bound", "constraint"])
def test_draws_have_the_smoothed_distribution(kind):
    """KS test: a right sampler fails it one in 1000 times, and the hard CDF is refused."""
    with pm.Model() as model:
        if kind == "bound":
            pm.Exponential("x", 1.0, shape=COPIES, default_transform=None)
            density, hard = lambda x: np.exp(-x), stats.expon.cdf
        else:
            x = pm.Normal("x", shape=COPIES, initval=np.full(COPIES, 0.5))
            rb.constrain("positive", x > 0)
            density, hard = stats.norm.pdf, stats.halfnorm.cdf
    result = sample(model, 6000, step_size=0.015, n_steps=100)
    assert float(result.sample_stats["acceptance_rate"].mean()) > 0.5
    x = independent_draws(result)
    assert x.size > 40_000
    assert stats.kstest(x, smoothed_cdf(density)).pvalue > 1e-3
    assert stats.kstest(x, hard).pvalue < 1e-6
    outside, expected = np.mean(x < 0), smoothed_cdf(density)(0.0)
    assert abs(outside - expected) < 4 * np.sqrt(expected / x.size)


def test_some_draws_are_outside():
    with pm.Model() as model:
        pm.Exponential("x", 1.0, shape=COPIES, default_transform=None)
    result = sample(model, 300, step_size=0.02, n_steps=20)
    x = result.posterior["x"].values
    assert 0 < np.mean(x < 0) < 0.1 and x.min() > -0.5
    inside = (x > 0).all(-1)
    assert np.array_equal(np.isfinite(result.sample_stats["lp"].values), inside)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("log", lambda: pm.Exponential("x", 1.0)),
        ("interval", lambda: pm.Uniform("x", 0, 1)),
        ("interval", lambda: pm.TruncatedNormal("x", lower=-1)),
    ],
)
@pytest.mark.slow
def test_a_transform_that_cannot_hold_such_a_draw(name, make):
    with pm.Model() as model:
        make()
    with pytest.raises(ValueError) as error:
        rb.RollbackHMC(model=model, sharpness=1, step_size=0.1, n_steps=1, exact=False)
    message = str(error.value)
    assert "'x'" in message and name in message
    assert "default_transform=None" in message and "remove_value_transforms" in message
    # the way out that it names
    with remove_value_transforms(model) as plain:
        step = rb.RollbackHMC(sharpness=50, step_size=0.01, n_steps=3, exact=False, rng=1)
        point, _ = step.step(plain.initial_point())
    assert np.isfinite(point["x"])
