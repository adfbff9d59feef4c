"""Small PyMC models with known answers, each beside a neighbour that forces short steps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import ordered
from scipy import stats

import pymc_rollback as rb

STIFF = 0.99
"""Correlation of the two normals beside each model."""


@dataclass(frozen=True)
class Known:
    """A model, and means of functions of its draws.

    Attributes
    ----------
    build
        Adds the variables to the model of the context.
    truth
        Expressions of the variables and ``np``, and their means; or a function that gives both.
    options
        Given to RollbackHMC.
    left
        Names of variables that are left to another step method.
    """

    build: Callable[[], Any]
    truth: Mapping[str, float] | Callable[[], Mapping[str, float]]
    options: Mapping[str, Any] = field(default_factory=dict)
    left: tuple[str, ...] = ()

    def model(self) -> pm.Model:
        with pm.Model() as model:
            self.build()
            pm.MvNormal("stiff", np.zeros(2), np.array([[1, STIFF], [STIFF, 1]]))
        return model

    def step(self, model: pm.Model) -> rb.RollbackHMC:
        own = [rv for rv in model.free_RVs if rv.name not in self.left]
        return rb.RollbackHMC(own, model=model, **self.options)

    @property
    def answers(self) -> dict[str, float]:
        """Means of all functions, the neighbour's too."""
        beside = {"stiff[..., 0]": 0.0, "stiff[..., 0]**2": 1.0, "stiff.prod(-1)": STIFF}
        return {**(self.truth() if callable(self.truth) else self.truth), **beside}


def grid_means(density, expressions, x, y):
    """Means under a density of two variables, on the middles of a grid, when they are needed."""

    @cache
    def means():
        grid = np.meshgrid(x, y, indexing="ij")
        weight = density(*grid)
        names = {"x": np.stack(grid, axis=-1), "np": np}
        return {e: float(np.sum(weight * eval(e, names)) / np.sum(weight)) for e in expressions}

    return means


def middles(lower, upper, n=3000):
    return lower + (upper - lower) * (np.arange(n) + 0.5) / n


def tilted_box():
    x = pm.Uniform("x", 0, 1, shape=3)
    pm.Potential("tilt", 3 * pt.sum(x))


TILTED = middles(0, 1, 200_000), np.exp(3 * middles(0, 1, 200_000))


def tilted_mean(function):
    x, weight = TILTED
    return float(np.sum(weight * function(x)) / np.sum(weight))


DATA, NOISE = np.array([0.3, 0.45]), 0.25


def bounded_order():
    x = pm.Uniform("x", 0, 1, shape=2, transform=ordered, initval=[0.3, 0.6])
    pm.Normal("data", x, NOISE, observed=DATA)


def plane(condition):
    def build():
        x = pm.Normal("x", shape=2, initval=[0.5, 0.1])
        rb.constrain("region", condition(x[0], x[1]))

    return build


def wedge(x, y):
    return (y > -0.3 * x) & (y < x)


def normals(x, y):
    return np.exp(-0.5 * (x**2 + y**2))


TRIFLE, SPREAD = 0.01, 0.8
"""Of log-normals less a trifle, which are hardly ever near zero."""


def skewed():
    log = pt.log(pm.HalfFlat("x", shape=2) + TRIFLE)
    pm.Potential("log-normal", pt.sum(-0.5 * log**2 / SPREAD**2 - log))


RATE = 1.5


def beside_counts():
    k = pm.Poisson("k", RATE)
    pm.TruncatedNormal("x", 0.5 * k, 1.0, lower=-k, upper=1.0 + k)


def beside_counts_means():
    k = np.arange(40.0)
    weight = stats.poisson.pmf(k, RATE)
    x = stats.truncnorm(-1.5 * k, 1 + 0.5 * k, 0.5 * k, 1.0)
    mean = x.mean()
    square = x.var() + mean**2
    means = {"k": k, "x": mean, "x**2": square, "x * k": mean * k}
    return {name: float(np.sum(weight * values)) for name, values in means.items()}


PAIR = ("x[..., 0]", "x[..., 1]", "x[..., 0]**2", "x[..., 1]**2", "x.prod(-1)")
SPACINGS = 1 / np.array([6.0, 5.0, 3.0])
"""Mean spacings of exponentials with rates 1, 2, 3 in ascending order."""

MODELS = {
    "half normals": Known(
        lambda: pm.HalfNormal("x", shape=3),
        {
            "x.mean(-1)": np.sqrt(2 / np.pi),
            "(x**2).mean(-1)": 1.0,
            "(x < 0.1).mean(-1)": 2 * stats.norm.cdf(0.1) - 1,
            "x.prod(-1)": (2 / np.pi) ** 1.5,
        },
    ),
    "tilted box": Known(
        tilted_box,
        {
            "x.mean(-1)": tilted_mean(lambda x: x),
            "(x**2).mean(-1)": tilted_mean(lambda x: x**2),
            "(x > 0.95).mean(-1)": tilted_mean(lambda x: x > 0.95),
            "x.prod(-1)": tilted_mean(lambda x: x) ** 3,
        },
    ),
    "order": Known(
        lambda: pm.Normal("x", shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0]),
        {
            "x[..., 0]": -1.5 / np.sqrt(np.pi),
            "x[..., 1]": 0.0,
            "x[..., 1] - x[..., 0]": 1.5 / np.sqrt(np.pi),
            "(x**2).mean(-1)": 1.0,
        },
    ),
    "order with bounds and data": Known(
        bounded_order,
        grid_means(
            lambda x, y: (
                (x < y) * np.exp(-0.5 * ((x - DATA[0]) ** 2 + (y - DATA[1]) ** 2) / NOISE**2)
            ),
            PAIR,
            middles(0, 1),
            middles(0, 1),
        ),
    ),
    "ordered exponentials": Known(
        lambda: pm.Exponential("x", [1.0, 2.0, 3.0], transform=ordered, initval=[0.1, 0.3, 0.7]),
        {f"x[..., {i}]": float(np.cumsum(SPACINGS)[i]) for i in range(3)}
        | {"(x[..., 2] - x[..., 1])**2": 2 * SPACINGS[2] ** 2},
    ),
    "wedge": Known(
        plane(wedge),
        grid_means(lambda x, y: wedge(x, y) * normals(x, y), PAIR, middles(0, 8), middles(-2.4, 8)),
    ),
    "disk": Known(
        plane(lambda x, y: x**2 + y**2 < 2),
        {
            "x[..., 0]": 0.0,
            "(x**2).sum(-1)": stats.truncexpon(1, scale=2).mean(),
            "(x**2).sum(-1)**2": stats.truncexpon(1, scale=2).moment(2),
            "x.prod(-1)": 0.0,
        },
    ),
    "mirror with a sharpness": Known(
        lambda: pm.HalfNormal("x", shape=2),
        {
            "x.mean(-1)": np.sqrt(2 / np.pi),
            "(x**2).mean(-1)": 1.0,
            "(x < 0.1).mean(-1)": 2 * stats.norm.cdf(0.1) - 1,
            "x.prod(-1)": 2 / np.pi,
        },
        {"sharpness": {"x": 3.0}},
    ),
    "under a log": Known(
        skewed,
        {
            f"np.log(x + {TRIFLE}).mean(-1)": 0.0,
            f"(np.log(x + {TRIFLE})**2).mean(-1)": SPREAD**2,
            f"np.log(x + {TRIFLE}).prod(-1)": 0.0,
            "x.mean(-1)": np.exp(SPREAD**2 / 2) - TRIFLE,
        },
    ),
    "beside another step": Known(beside_counts, beside_counts_means(), left=("k",)),
    "under a transform": Known(
        lambda: pm.Gamma("x", 2, 1, shape=2),
        {
            "x.mean(-1)": 2.0,
            "(x**2).mean(-1)": 6.0,
            "np.log(x).mean(-1)": 1 - np.euler_gamma,
            "x.prod(-1)": 4.0,
        },
    ),
}
