"""A nonlinear region, and a differential equation: stationary AR(3), Michaelis-Menten."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import wrightomega

import pymc_rollback as rb
from benchmarks import reference
from benchmarks.measure import Known
from benchmarks.work.base import Work, flat
from benchmarks.work.regression import SCALE, SHAPE, observe, read


# The stationary autoregressions of third order.
def series():
    """Longley's total employment: the values from the fourth on, and the three before each."""
    y, _ = read("longley")
    return y[3:], np.column_stack([y[3 - k : len(y) - k] for k in (1, 2, 3)])


def stationary(a):
    """Whether all roots of 1 - a1 z - a2 z² - a3 z³ are outside the unit circle; elementwise."""
    return [
        a[0] + a[1] + a[2] < 1,
        -a[0] + a[1] - a[2] < 1,
        a[2] ** 2 - a[0] * a[2] - a[1] < 1,
        a[2] < 1,
        a[2] > -1,
    ]


def from_partial(r):
    """The coefficients, from partial autocorrelations; and the Jacobian."""
    first = r[0] * (1 - r[1])
    a = [first - r[2] * r[1], r[1] - r[2] * first, r[2]]
    return a, (1 - r[1]) * (1 - r[2] ** 2)


def autoregression():
    y, X = series()
    with pm.Model() as model:
        a = pm.Normal("a", shape=3, initval=np.array([0.5, 0.1, 0.1]))
        observe(y, X @ a)
        for i, condition in enumerate(stationary(a)):
            rb.constrain(f"stationary{i}", condition)
    return model


def by_partial():
    y, X = series()
    with pm.Model() as model:
        r = pm.Uniform("r", -1, 1, shape=3)
        a, jacobian = from_partial(r)
        a = pm.Deterministic("a", pt.stack(a))
        pm.Potential("prior", -0.5 * pt.sum(a**2) + pt.log(jacobian))
        observe(y, X @ a)
    return model


def with_variance(points, log_prior, squares, n, weights):
    """Moments of parameters on a grid and of the variance, which is integrated out."""
    log, mean, square = reference.residual_weights(squares, n, SHAPE, SCALE)
    share = (np.exp(log + log_prior - np.max(log + log_prior)) * weights).ravel()
    share /= share.sum()
    points = points.reshape(-1, share.size)
    return Known(
        np.append(points @ share, mean.ravel() @ share),
        np.append(points**2 @ share, square.ravel() @ share),
    )


def autoregression_moments():
    y, X = series()
    node, weight = reference.gauss_legendre(120, -1, 1)
    r = np.array(np.meshgrid(node, node, node, indexing="ij"))
    a, jacobian = from_partial(r)
    a = np.array(a)
    squares = (
        y @ y
        - 2 * np.einsum("k,k...->...", X.T @ y, a)
        + np.einsum("i...,ij,j...->...", a, X.T @ X, a)
    )
    weights = jacobian * weight[:, None, None] * weight[:, None] * weight
    return with_variance(a, -0.5 * np.sum(a**2, axis=0), squares, len(y), weights)


# The decay of a substrate: s' = -rate s / (half + s), s(0) = 1.
TIMES = np.linspace(0.25, 4, 16)
RATE, HALF = 0.5, 0.1


def substrate(rate, half):
    """s = half ω(z), where ω, the Wright function, solves ω + log ω = z."""
    return half * wrightomega((1 - rate * TIMES) / half - np.log(half))


def substrate_graph(rate, half):
    """The same in PyTensor: Newton's method on v + exp(v) = z, where v = log ω."""
    z = (1 - rate * TIMES) / half - pt.log(half)
    v = pt.switch(z > 1, pt.log(pt.maximum(z, 1)), pt.minimum(z, 1) - 0.5)
    for _ in range(6):
        v = v - (v + pt.exp(v) - z) / (1 + pt.exp(v))
    return half * pt.exp(v)


def measured():
    return substrate(RATE, HALF) + np.random.default_rng(3).normal(0, 0.1, len(TIMES))


def michaelis_menten():
    with pm.Model() as model:
        rate = pm.HalfNormal("rate", 1.0, initval=0.5)
        half = pm.HalfNormal("half", 1.0, initval=0.2)
        observe(measured(), substrate_graph(rate, half))
    return model


def michaelis_menten_moments():
    y = measured()
    rate, rate_weight = reference.gauss_legendre(200, 0, 3)
    half, half_weight = reference.gauss_legendre(400, 0, 3)
    grid = np.array(np.meshgrid(rate, half, indexing="ij"))
    squares = np.sum((y - substrate(grid[0][..., None], grid[1][..., None])) ** 2, axis=-1)
    weights = rate_weight[:, None] * half_weight
    return with_variance(grid, -0.5 * np.sum(grid**2, axis=0), squares, len(y), weights)


def works(quick):
    return [
        Work(
            "stationary AR(3)",
            "an autoregression of third order that is stationary (Longley's employment)",
            autoregression,
            flat("a", "variance"),
            lambda quick: autoregression_moments(),
            source="quadrature",
            joint=True,
            transformed=by_partial,
        ),
        Work(
            "Michaelis-Menten",
            "the decay of a substrate, with a positive rate and a positive half saturation",
            michaelis_menten,
            flat("rate", "half", "variance"),
            lambda quick: michaelis_menten_moments(),
            source="quadrature",
        ),
    ]
