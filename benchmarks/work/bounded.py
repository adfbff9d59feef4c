"""Boxes and orders: what PyMC's transforms can do."""

import numpy as np
import pymc as pm
from pymc.distributions import transforms
from scipy import stats

from benchmarks import reference
from benchmarks.work.base import Normal, Work, flat


def model_of(make):
    def build():
        with pm.Model() as model:
            make()
        return model

    return build


def works(quick):
    n = 5 if quick else 50
    start = np.linspace(-2, 2, n)

    def work(name, about, make, known, **more):
        return Work(name, about, model_of(make), flat("x"), known, **more)

    def orthant(mean):
        return Normal(np.full(n, mean), np.eye(n), np.eye(n), np.zeros(n), np.ones(n))

    def alike(law):
        return lambda quick: reference.of_laws([law] * n)

    return [
        work(
            "half normal",
            f"{n} half normals",
            lambda: pm.HalfNormal("x", shape=n),
            alike(stats.halfnorm()),
            normal=orthant(0.0),
            quick=True,
        ),
        work(
            "uniform",
            f"{n} uniforms on (0, 1)",
            lambda: pm.Uniform("x", shape=n),
            alike(stats.uniform()),
        ),
        work(
            "exponential",
            f"{n} exponentials",
            lambda: pm.Exponential("x", 1, shape=n),
            alike(stats.expon()),
        ),
        work(
            "cut normal",
            f"{n} normals of mean −5 and unit variance, cut at 0",
            lambda: pm.TruncatedNormal("x", -5, 1, lower=0, shape=n),
            alike(stats.truncnorm(5, np.inf, -5, 1)),
            normal=orthant(-5.0),
        ),
        work(
            "ordered",
            f"{n} standard normals in ascending order",
            lambda: pm.Normal("x", shape=n, transform=transforms.ordered, initval=start),
            lambda quick: reference.order_statistics(n),
            source="quadrature",
        ),
    ]
