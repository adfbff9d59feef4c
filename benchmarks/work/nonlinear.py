"""Nonlinear models: Michaelis-Menten, growth, a Gaussian process."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import wrightomega

from benchmarks import reference, synthetic
from benchmarks.measure import Known
from benchmarks.work.base import Work, flat
from benchmarks.work.regression import SCALE, SHAPE, observe


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


# The growth of animals, towards a largest length.
def growth():
    length, age = synthetic.lengths()
    with pm.Model() as model:
        largest, missing = pm.HalfNormal("largest", 5), pm.HalfNormal("missing", 5)
        rate = pm.Uniform("rate", 0.5, 1)
        observe(length, largest - missing * rate**age)
    return model


def growth_moments():
    """Given rate and noise, the others are normal, and zero is 20 of their errors away."""
    length, age = synthetic.lengths()
    rate, rate_weight = reference.gauss_legendre(200, 0.5, 1)
    sd, sd_weight = reference.log_grid(200, 1e-2, 1)
    found, log_weights, others = [], [], []
    for i, j in np.ndindex(len(rate), len(sd)):
        X = np.column_stack([np.ones(len(age)), -(rate[i] ** age)])
        found.append(reference.given(X, length, np.full(len(age), sd[j]), 25 * np.eye(2)))
        # the variance's prior, times what its change is to the deviation's
        log_prior = -(2 * SHAPE + 1) * np.log(sd[j]) - SCALE / sd[j] ** 2
        log_weights.append(log_prior + np.log(rate_weight[i] * sd_weight[j]))
        others.append((rate[i], sd[j] ** 2))
    return reference.mixed(found, np.array(log_weights), np.array(others))


# A Gaussian process with positive length, scale and noise.
def smooth():
    y, place = synthetic.smooth()
    with pm.Model() as model:
        length, scale = pm.HalfNormal("length", 1), pm.HalfNormal("scale", 2)
        noise = pm.HalfNormal("noise", 1)
        process = pm.gp.Marginal(cov_func=scale**2 * pm.gp.cov.ExpQuad(1, length))
        process.marginal_likelihood("y", place[:, None], y, noise)
    return model


def smooth_moments():
    """In the eigenvectors of the correlations, the data are independent."""
    y, place = synthetic.smooth()
    lengths, *others = (reference.log_grid(120, *e) for e in ((1e-2, 6), (0.05, 12), (0.03, 5)))
    pair, weights = reference.product(*others)
    points, found = [], []
    for length in lengths[0]:
        apart = (place[:, None] - place) / length
        value, vector = np.linalg.eigh(np.exp(-(apart**2) / 2))
        variance = pair[:, :1] ** 2 * value + pair[:, 1:] ** 2
        found.append(-np.sum(np.log(variance) + (y @ vector) ** 2 / variance, axis=1) / 2)
        points.append(np.column_stack([np.full(len(pair), length), pair]))
    points = np.concatenate(points)
    prior = -np.sum((points / [1, 2, 1]) ** 2, axis=1) / 2
    weights = (lengths[1][:, None] * weights).ravel()
    return reference.of_log(points, np.concatenate(found) + prior, weights)


def works(quick):
    return [
        Work(
            "Michaelis-Menten",
            "the decay of a substrate, with a positive rate and a positive half saturation",
            michaelis_menten,
            flat("rate", "half", "variance"),
            lambda quick: michaelis_menten_moments(),
            source="quadrature",
        ),
        Work(
            "growth curve",
            "the growth of 27 animals towards a largest length, with three positive parameters",
            growth,
            flat("largest", "missing", "rate", "variance"),
            lambda quick: growth_moments(),
            source="quadrature",
        ),
        Work(
            "Gaussian process",
            "a Gaussian process through 15 data, with three positive hyperparameters",
            smooth,
            flat("length", "scale", "noise"),
            lambda quick: smooth_moments(),
            source="quadrature",
        ),
    ]
