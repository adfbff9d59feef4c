"""Compound steps: our variables beside those of other step methods."""

import arviz as az
import numpy as np
import pymc as pm
import pytest
from harness import sample
from scipy import integrate, stats

import pymc_rollback as rb

# PyTensor says so once a process, if there is no BLAS that it can link to
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
]


def check_means(result, truth):
    """Each mean within 4.5 Monte Carlo errors: a right sampler fails one in 150,000 times."""
    for name, mean in truth.items():
        draws = result.posterior[name]
        ess = float(az.ess(result, var_names=[name])[name])
        error = float(draws.std()) / np.sqrt(ess)
        assert ess > 100, (name, ess)
        assert abs(float(draws.mean()) - mean) < 4.5 * error, (name, float(draws.mean()), mean)


def gamma_uniform_means(observed, error):
    """E s and E x for s ~ Gamma(3, 1), x ~ U(0, s), observed ~ N(x, error)."""

    def moment(power_s, power_x):
        def integrand(x, s):
            likelihood = stats.norm.pdf(observed, x, error)
            return stats.gamma.pdf(s, 3) / s * likelihood * s**power_s * x**power_x

        return integrate.dblquad(integrand, 0, 40, 0, lambda s: s, epsabs=1e-7)[0]

    total = moment(0, 0)
    return moment(1, 0) / total, moment(0, 1) / total


@pytest.mark.slow
def test_others_in_our_bounds_and_constraints():
    """Metropolis on a discrete variable and NUTS, assigned by PyMC, on the rest."""
    with pm.Model() as model:
        k = pm.Binomial("k", 2, 0.5)
        s = pm.Gamma("s", 3, 1)
        x = pm.Uniform("x", 0, s)
        z = pm.Normal("z", initval=2.0)
        rb.constrain("above", z > k - 1)
        pm.Normal("y", x, 0.5, observed=1.0)
        ours = rb.RollbackHMC([x, z], sharpness=10, step_size=0.4, n_steps=5)
        steps = [ours, pm.Metropolis([k])]
    result = sample(steps, model, draws=2000, tune=500)
    weights = stats.binom.pmf([0, 1, 2], 2, 0.5) * stats.norm.cdf([1, 0, -1])
    mean_k = weights @ [0, 1, 2] / weights.sum()
    heights = stats.binom.pmf([0, 1, 2], 2, 0.5) * stats.norm.pdf([-1, 0, 1])
    mean_s, mean_x = gamma_uniform_means(1.0, 0.5)
    check_means(result, {"k": mean_k, "z": heights.sum() / weights.sum(), "s": mean_s, "x": mean_x})
    posterior = result.posterior
    assert (posterior["x"] < posterior["s"]).all() and (posterior["z"] > posterior["k"] - 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("transformed", [True, False])
def test_two_rollback_steps(transformed):
    """One step's variable is the bound of the other's: E s = 3/2, E x = 3/4."""
    with pm.Model() as model:
        s = pm.Uniform("s", 1, 2)
        transform = {} if transformed else {"default_transform": None, "initval": 0.5}
        x = pm.Uniform("x", 0, s, **transform)
        steps = [
            rb.RollbackHMC([v], sharpness=20, step_size=0.2, n_steps=5, model=model) for v in (s, x)
        ]
    result = sample(steps, model, draws=1500)
    check_means(result, {"s": 1.5, "x": 0.75})
    assert (result.posterior["x"] < result.posterior["s"]).all()
    lp = result.sample_stats["lp"] if "lp" in result.sample_stats else None
    assert lp is None or np.isfinite(lp).all()


def child_of_a_transformed_variable(c):
    pm.TruncatedNormal("d", 0, 1, upper=c)
    return ["b", "d"]


def constraint_on_a_transformed_variable(c):
    rb.constrain("top", c < 1.5)
    return ["b"]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(child_of_a_transformed_variable, marks=pytest.mark.slow),
        constraint_on_a_transformed_variable,
    ],
)
def test_variables_of_others_move_with_ours(make):
    """For a fixed value of its interval transform, c follows its bound b."""
    with pm.Model() as model:
        b = pm.Normal("b", initval=-0.5)
        c = pm.TruncatedNormal("c", 0, 1, lower=b, initval=0.5)
        names = make(c)
        step = rb.RollbackHMC([model[name] for name in names], rng=1)
    log_density, point = model.compile_logp(mode="FAST_COMPILE"), model.initial_point()
    for _ in range(200):
        point, _ = step.step(point)
        assert np.isfinite(log_density(point))


def test_stats_of_two_steps_have_their_own_dimension_or_name():
    """PyMC tells stats of several steps apart; ours are there for each."""
    with pm.Model() as model:
        x, z = pm.HalfNormal("x"), pm.HalfNormal("z")
        steps = [rb.RollbackHMC([v], model=model, step_size=0.2, n_steps=5) for v in (x, z)]
    result = sample(steps, model, draws=5)
    assert result.sample_stats["inside"].shape == (2, 5, 2)
