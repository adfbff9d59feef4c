"""The automatic sampler against nutpie with PyMC's transforms, and against the paper's settings."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions import transforms

import pymc_rollback as rb
from benchmarks.measure import run_nutpie, run_rollback
from benchmarks.rows import Row

DIMENSION = 50


def boxes():
    """Models that transforms can do."""
    start = np.linspace(-2, 2, DIMENSION)
    return {
        "half normal": lambda: pm.HalfNormal("x", shape=DIMENSION),
        "uniform": lambda: pm.Uniform("x", shape=DIMENSION),
        "exponential": lambda: pm.Exponential("x", 1, shape=DIMENSION),
        "normal(-5, 1) cut at 0": lambda: pm.TruncatedNormal("x", -5, 1, lower=0, shape=DIMENSION),
        "ordered normals": lambda: pm.Normal(
            "x", shape=DIMENSION, transform=transforms.ordered, initval=start
        ),
    }


def ball(dimension=DIMENSION, radius=5.0):
    """A standard normal in a ball."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=dimension)
        rb.constrain("ball", pt.sum(x**2) < radius**2)
    return model


def paper_ball(dimension=DIMENSION):
    """The paper's target of figure 4: U = sqrt(x'Ax) for |x| < 3, A of exp(5) and exp(-5)."""
    rng = np.random.default_rng(0)
    weights = np.exp(rng.choice([-5.0, 5.0], dimension))
    with pm.Model() as model:
        x = pm.Flat("x", shape=dimension, initval=rng.normal(size=dimension) / 10)
        pm.Potential("density", -pt.sqrt(pt.sum(weights * x**2)))
        rb.constrain("ball", pt.sqrt(pt.sum(x**2)) < 3)
    return model


def run(quick):
    draws = 200 if quick else 2000
    for name, build in boxes().items():
        with pm.Model() as model:
            build()
        ours, theirs = run_rollback(model, draws), run_nutpie(model, draws)
        if theirs is None:
            yield Row(f"{name}: nutpie is not installed", np.nan, 1.0, least=True)
            continue
        ratio = ours.per_gradient / theirs.per_gradient
        yield Row(f"{name}: ESS per gradient over nutpie's", ratio, 1.0, least=True)
        ratio = ours.per_second / theirs.per_second
        yield Row(f"{name}: ESS per second over nutpie's", ratio, 1.0, least=True)
    ours = run_rollback(ball(), draws)
    yield Row("ball: ESS of means per draw", ours.mean / ours.draws, 0.6, least=True)
    yield Row("ball: ESS of squares per draw", ours.square / ours.draws, 0.3, least=True)
    yield Row("ball: divergences", ours.divergences, 0)
    model = paper_ball()
    ours = run_rollback(model, draws)
    settings = {"sharpness": 100, "step_size": 0.0167, "n_steps": 600, "exact": False}
    theirs = run_rollback(model, draws, tune=draws // 10, **settings)
    ratio = ours.per_gradient / theirs.per_gradient
    yield Row("the paper's ball: ESS per gradient over its settings'", ratio, 40, least=True)
