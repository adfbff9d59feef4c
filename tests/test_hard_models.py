"""Models that are hard for the sampler: their draws are right, and what goes wrong is said.

Answers come from elsewhere: a grid over all parameters, and draws of the prior that meet the
constraints. Means are compared in units of their Monte Carlo error: a right sampler fails a test
with a probability of 1e-4, shared by its statistics. They have at least 300
effective draws, so that an error of 0.3 standard deviations is five standard errors; the control
has one.
"""

import logging

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_rollback as rb

ERROR_RATE = 1e-4


def sample(model, draws=2000, **options):
    """Draws, and what PyMC says about them."""
    with model:
        return pm.sample(
            draws,
            tune=1000,
            step=rb.RollbackHMC(**options),
            chains=4,
            cores=1,
            random_seed=1,
            progressbar=False,
        )


def excess(draws, answers):
    """The farthest of some means from its answer, over the distance that is rarely exceeded."""
    z = {}
    for name, answer in answers.items():
        x = draws[name]
        size = float(az.ess(az.convert_to_dataset({"x": x}), method="mean")["x"].values)
        assert size > 300
        z[name] = (x.mean() - answer) / (x.std() / np.sqrt(size))
    print(z)
    return max(map(abs, z.values())) / stats.norm.isf(ERROR_RATE / (2 * len(z)))


def with_squares(draws):
    return draws | {f"{name}²": x**2 for name, x in draws.items()}


def returns(count=150, omega=0.3, alpha=0.3, beta=0.4):
    """Returns whose volatility follows a GARCH(1, 1)."""
    rng = np.random.default_rng(3)
    y, volatility = np.empty(count), 1.0
    for t in range(count):
        y[t] = volatility * rng.normal()
        volatility = np.sqrt(omega + alpha * y[t] ** 2 + beta * volatility**2)
    return y


def garch():
    with pm.Model() as model:
        omega = pm.Exponential("omega", 1)
        alpha, beta = pm.Uniform("alpha", 0, 1), pm.Uniform("beta", 0, 1)
        rb.constrain("stationary", alpha + beta < 1)
        pm.GARCH11(
            "y", omega=omega, alpha_1=alpha, beta_1=beta, initial_vol=1.0, observed=returns()
        )
    return model


def garch_answers(points=80):
    """Means over a grid of midpoints."""
    middle = (np.arange(points) + 0.5) / points
    omega, alpha, beta = np.meshgrid(2.5 * middle, middle, middle, indexing="ij")
    inside = alpha + beta < 1
    omega, alpha, beta = omega[inside], alpha[inside], beta[inside]
    variance, logp = np.ones(omega.size), -omega
    for y in returns():
        logp = logp - 0.5 * (np.log(variance) + y**2 / variance)
        variance = omega + alpha * y**2 + beta * variance
    weights = np.exp(logp - logp.max())
    values = with_squares({"omega": omega, "alpha": alpha, "beta": beta})
    return {name: np.average(x, weights=weights) for name, x in values.items()}


GRID = np.vander(np.linspace(-1, 1, 405), 5)
"""405 rows: where a polynomial of degree four has to be positive."""


def positive_curve():
    with pm.Model() as model:
        beta = pm.Normal("beta", [0, 0, 0, 0, 1], 1)
        rb.constrain("positive", pt.dot(GRID, beta) > 0)
    return model


def positive_curve_draws():
    """Draws of the prior for which the curve is positive."""
    draws = np.random.default_rng(4).normal([0, 0, 0, 0, 1], 1, size=(2_000_000, 5))
    kept = draws[np.all(draws @ GRID[::4].T > 0, axis=1)]
    kept = kept[np.all(kept @ GRID.T > 0, axis=1)]
    return with_squares({f"beta{k}": x for k, x in enumerate(kept.T)})


# of PyTensor 2: its loop over the returns is compiled anew in each process
@pytest.mark.filterwarnings("ignore:Cannot cache compiled function:Warning")
@pytest.mark.slow
def test_garch_is_right_and_its_divergences_are_reported(caplog):
    caplog.set_level(logging.WARNING, logger="pymc")
    trace = sample(garch())
    draws = with_squares({name: x.values for name, x in trace.posterior.data_vars.items()})
    answers = garch_answers()
    assert excess(draws, answers) < 1
    shifted = draws | {"alpha": draws["alpha"] + 0.3 * draws["alpha"].std()}
    assert excess(shifted, answers) > 1
    diverged = int(trace.sample_stats["diverging"].sum())
    assert (diverged > 0) == (f"There were {diverged} divergences" in caplog.text)


@pytest.mark.slow
def test_405_affine_rows_are_right_and_trees_that_are_too_deep_are_reported(caplog):
    caplog.set_level(logging.WARNING, logger="pymc")
    trace = sample(positive_curve())
    beta = trace.posterior["beta"].values
    assert np.all(beta @ GRID.T > 0)
    draws = with_squares({f"beta{k}": beta[..., k] for k in range(5)})
    answers = {name: x.mean() for name, x in positive_curve_draws().items()}
    assert excess(draws, answers) < 1
    assert "maximum tree depth" not in caplog.text
    # with a metric that is given trajectories double
    sample(positive_curve(), draws=200, max_treedepth=1, metric=np.ones(5))
    assert "maximum tree depth" in caplog.text
