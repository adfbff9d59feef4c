"""Means, variances and quantiles of eighteen targets, at the scale of their Monte Carlo error.

Each answer is the expectation of some function of the draws. The draws come in 100 batches, of
which the means are nearly independent and normal: a t-test compares them with the answer. A right
sampler fails a test with a probability of at most 1e-4, shared equally by its answers.
"""

import pymc as pm
import pytest
from harness import new_step, static_step
from scipy import stats
from targets import HALF_PLANE, TARGETS

ERROR_RATE = 1e-4
CHAINS, DRAWS, BATCH = 4, 1000, 40


def sample(model, step):
    """Draws through pm.sample, by variable: chains one after the other."""
    with model:
        trace = pm.sample(
            DRAWS,
            tune=400,
            step=step,
            chains=CHAINS,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    posterior = {rv.name: trace.posterior[rv.name].values for rv in model.free_RVs}
    return {name: x.reshape(CHAINS * DRAWS, *x.shape[2:]) for name, x in posterior.items()}


def p_values(x, law):
    """Tests of the mean, the variance and three quantiles of some draws."""
    errors = {
        "mean": x - law.mean(),
        "variance": (x - law.mean()) ** 2 - law.std() ** 2,
        **{f"{q:.0%}": (x < law.ppf(q)) - q for q in (0.1, 0.5, 0.9)},
    }
    batches = {name: error.reshape(-1, BATCH).mean(axis=1) for name, error in errors.items()}
    return {name: stats.ttest_1samp(batch, 0).pvalue for name, batch in batches.items()}


def p_value(target, draws):
    """The smallest p-value of a target's answers, times their number."""
    p = {
        f"{answer} of {name}": value
        for name, law in target.known.items()
        for answer, value in p_values(target.views[name](draws), law).items()
    }
    worst = min(p, key=p.get)
    print(f"{worst}: p = {p[worst]:.2g}, one of {len(p)}")
    return p[worst] * len(p)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fifty", "conjugate", "counts", "walls", "regions", "shares"])
def test_known_answers(name):
    target = TARGETS[name]
    assert p_value(target, sample(*new_step(target))) > ERROR_RATE


@pytest.mark.slow
def test_control_smoothed_draws_fail():
    target = TARGETS["radius"]
    draws = sample(*static_step(target, exact=False, sharpness=1.5))
    assert p_value(target, draws) < 1e-8


def test_half_plane_of_the_design():
    assert HALF_PLANE.mean() == pytest.approx(-0.144489, abs=1e-6)
    assert HALF_PLANE.std() == pytest.approx(0.971082, abs=1e-6)
