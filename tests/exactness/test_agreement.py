"""Agreement with PyMC's NUTS on models of PyMC's gallery, where transforms can do the job.

Means and variances of both samplers are compared by t-tests on the means of batches of draws,
which are nearly independent and normal. A right sampler fails a model with a probability of at
most 1e-4, shared equally by its answers.
"""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from harness import Target, new_step
from pymc.distributions import transforms
from scipy import stats

ERROR_RATE = 1e-4
CHAINS, DRAWS, BATCH = 2, 1000, 40


def eight_schools():
    effects = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    errors = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 5)
        tau = pm.HalfNormal("tau", 5)
        z = pm.Normal("z", shape=8)
        pm.Normal("effects", mu + tau * z, errors, observed=effects)
    return model


def ordinal():
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    grades = np.digitize(x + rng.logistic(size=60), [-1.0, 0.5, 2.0])
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 2)
        start = np.array([-1.0, 0.0, 1.0])
        cuts = pm.Normal("cuts", 0, 3, shape=3, transform=transforms.ordered, initval=start)
        pm.OrderedLogistic("grades", eta=slope * x, cutpoints=cuts, observed=grades)
    return model


def changepoint():
    rng = np.random.default_rng(2)
    counts = np.concatenate([rng.poisson(3, size=20), rng.poisson(1, size=20)])
    with pm.Model() as model:
        switch = pm.DiscreteUniform("switch", 0, 40)
        early, late = pm.Exponential("early", 1), pm.Exponential("late", 1)
        rate = pm.math.switch(np.arange(40) < switch, early, late)
        pm.Poisson("disasters", rate, observed=counts)
    return model


def positive_slopes():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(40, 3))
    with pm.Model() as model:
        slopes = pm.HalfNormal("slopes", 1, shape=3)
        level = pm.Normal("level")
        scale = pm.HalfNormal("scale", 1)
        y = x @ [0.05, 0.3, 1.0] + rng.normal(size=40)
        pm.Normal("y", level + pt.dot(x, slopes), scale, observed=y)
    return model


def mixture():
    rng = np.random.default_rng(4)
    y = np.concatenate([rng.normal(-1, 0.7, 30), rng.normal(1.5, 0.7, 20)])
    with pm.Model() as model:
        start = np.array([-1.0, 1.0])
        means = pm.Normal("means", 0, 2, shape=2, transform=transforms.ordered, initval=start)
        share = pm.Uniform("share", 0, 1)
        pm.NormalMixture("y", pt.stack([share, 1 - share]), means, sigma=0.7, observed=y)
    return model


MODELS = {
    "eight schools": Target(eight_schools),
    "ordinal regression": Target(ordinal),
    "changepoint": Target(changepoint, sampled=("early", "late")),
    "positive slopes": Target(positive_slopes),
    "mixture": Target(mixture),
}


def sample(model, step):
    """Draws of each element of each variable: an array (variable, draw)."""
    with model, warnings.catch_warnings():
        if step is None:
            # NUTS overflows where it tries its first step sizes (PyMC 5, ordered cutpoints)
            warnings.simplefilter("ignore", RuntimeWarning)
        discrete = [v for v in model.free_RVs if v.dtype.startswith("int")]
        steps = [*([step] if step else []), *([pm.Metropolis(discrete)] if discrete else [])]
        trace = pm.sample(
            DRAWS,
            tune=500,
            step=steps or None,
            chains=CHAINS,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    columns = []
    for rv in model.free_RVs:
        x = trace.posterior[rv.name].values.astype(float)
        columns.append(x.reshape(CHAINS * DRAWS, -1).T)
    return np.concatenate(columns)


def p_value(ours, theirs):
    """The smallest p-value of means and variances, times their number."""
    centre = np.concatenate([ours, theirs], axis=1).mean(axis=1, keepdims=True)
    p = []
    for power in (1, 2):
        batches = [
            ((x - centre) ** power).reshape(len(x), -1, BATCH).mean(axis=2) for x in (ours, theirs)
        ]
        p.extend(stats.ttest_ind(*batches, axis=1, equal_var=False).pvalue)
    print(np.array(p).round(3))
    return min(p) * len(p)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_agreement_with_nuts(name):
    target = MODELS[name]
    theirs = sample(target.build(), None)
    model, step = new_step(target)
    assert p_value(sample(model, step), theirs) > ERROR_RATE


def test_control_a_shift_of_a_fifth_of_a_standard_deviation_is_seen():
    """So is a variance that is off by a third."""
    x, y = np.random.default_rng(1).normal(size=(2, 4, CHAINS * DRAWS))
    assert p_value(x, y) > ERROR_RATE
    assert p_value(x, y + 0.2) < 1e-8
    assert p_value(x, y * np.sqrt(4 / 3)) < 1e-8
