"""Known answers: by integration, or by exact methods that share no code with the sampler."""

import json
from pathlib import Path

import numpy as np
from numba import njit
from scipy import integrate, stats

from benchmarks.measure import Known

BATCHES = 20
"""Of a chain, for the errors of simulated answers."""
STORE = Path(__file__).parent / "data" / "long.json"
"""Moments of long runs, by name of the work: `python -m benchmarks.long` makes them."""
LONG = "a long run of nutpie"
"""The source of what is stored."""


def stored(name):
    """The known answer of a work, from the store: a function of ``quick``, as a work has it.

    Not a number where there is none yet, so that no sampler is called right.
    """

    def known(quick):
        kept = json.loads(STORE.read_text()).get(name, {"mean": np.nan, "square": np.nan})
        return Known(**{part: np.array(x) for part, x in kept.items()})

    return known


def of_laws(laws) -> Known:
    """Moments of distributions of SciPy."""
    mean = np.array([law.mean() for law in laws])
    return Known(mean, np.array([law.var() for law in laws]) + mean**2)


def of_grid(values, weights) -> Known:
    """Moments of quantities (last axis of ``values``) over weighted points of a grid."""
    share = np.asarray(weights).ravel() / np.sum(weights)
    values = np.asarray(values).reshape(share.size, -1)
    return Known(share @ values, share @ values**2)


def of_draws(draws) -> Known:
    """Moments of chains × draws × quantities, with their Monte Carlo errors by batch means."""

    def moment(x):
        batches = np.concatenate([part.mean(axis=1) for part in np.array_split(x, BATCHES, axis=1)])
        return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(len(batches))

    (mean, mean_error), (square, square_error) = moment(draws), moment(draws**2)
    return Known(mean, square, mean_error, square_error)


def gauss_legendre(n, lower, upper):
    """Nodes and weights of an interval."""
    x, weight = np.polynomial.legendre.leggauss(n)
    return lower + (upper - lower) * (x + 1) / 2, weight * (upper - lower) / 2


def log_grid(n, lower, upper):
    """Nodes and weights of a positive number, evenly spaced in its logarithm."""
    x = np.geomspace(lower, upper, n)
    return x, x * np.log(upper / lower) / (n - 1)


def product(*axes):
    """Points and weights of a grid: of one-dimensional nodes and weights, a pair for each axis."""
    nodes, weights = zip(*axes, strict=True)
    points = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return points, np.prod(np.meshgrid(*weights, indexing="ij"), axis=0).ravel()


def of_log(values, log_density, weights) -> Known:
    """As ``of_grid``, of a log density at its points."""
    return of_grid(values, np.exp(log_density - np.max(log_density)) * weights)


def given(X, y, noise, prior):
    """Of ``y = X b + noise`` with a normal ``b`` about zero: log evidence, mean and variances of b.

    ``noise`` are the standard deviations of the observations, ``prior`` is b's covariance.
    """
    A, z = X / noise[:, None], y / noise
    precision = A.T @ A + np.linalg.inv(prior)
    covariance = np.linalg.inv(precision)
    mean = covariance @ (A.T @ z)
    determinants = np.linalg.slogdet(precision)[1] + np.linalg.slogdet(prior)[1]
    log_evidence = -np.sum(np.log(noise)) - (z @ z - mean @ precision @ mean + determinants) / 2
    return log_evidence, mean, np.diag(covariance)


def mixed(found, log_weights, others) -> Known:
    """Moments of a normal given other parameters (see ``given``), and of those, over a grid."""
    evidence, mean, variance = (np.array(part) for part in zip(*found, strict=True))
    log = evidence + log_weights
    share = np.exp(log - log.max())
    share /= share.sum()
    x = np.column_stack([mean, others])
    square = np.column_stack([mean**2 + variance, others**2])
    return Known(share @ x, share @ square)


@njit(cache=True)
def leaves(a, b, slack, now, just_hit):
    """When the path ``a cos t + b sin t + slack`` next falls below zero."""
    reach = np.hypot(a, b)
    if reach <= abs(slack):
        return np.inf
    # of the two intersections, the one where it falls
    ahead = (np.arctan2(b, a) + np.arccos(-slack / reach) - now) % (2 * np.pi)
    return now if ahead > 2 * np.pi - 1e-9 and not just_hit else now + ahead


@njit(cache=True)
def swing(walls, gram, slack, y, rng):
    """A quarter of a period in a standard normal, reflected at ``walls @ y + slack > 0``.

    Exact HMC for Gaussians (Pakman & Paninski 2014): the paths ``y cos t + v sin t`` are ellipses,
    of which the intersections with planes are known. A reflection changes y and v to those of the
    ellipse that it leads to, and the intersections with the walls that are not orthogonal.
    """
    v = np.empty(y.size)
    for i in range(y.size):
        v[i] = rng.standard_normal()
    a, b, when = walls @ y, walls @ v, np.empty(slack.size)
    for k in range(slack.size):
        when[k] = leaves(a[k], b[k], slack[k], 0.0, False)
    while True:
        hit = np.argmin(when) if when.size else -1
        if hit < 0 or when[hit] >= np.pi / 2:
            y[:] = v  # cos and sin of a quarter are 0 and 1
            return
        now = when[hit]
        c, s = np.cos(now), np.sin(now)
        push = 2 * (a[hit] * s - b[hit] * c) / gram[hit, hit]
        y -= push * s * walls[hit]
        v += push * c * walls[hit]
        for k in range(slack.size):
            if gram[hit, k] != 0:
                a[k] -= push * s * gram[hit, k]
                b[k] += push * c * gram[hit, k]
                when[k] = leaves(a[k], b[k], slack[k], now, k == hit)


def cut_normal(normal, draws, seed=1) -> np.ndarray:
    """Draws of a normal cut by planes: two chains, with a hundredth thrown away at the start."""
    root = np.linalg.cholesky(normal.covariance)
    walls = np.ascontiguousarray(normal.rows @ root)
    slack = normal.rows @ normal.mean + normal.offset
    chains = []
    for rng in np.random.default_rng(seed).spawn(2):
        y = np.linalg.solve(root, normal.start - normal.mean)
        chains.append(chain_of_swings(walls, slack, y, draws + draws // 100, rng)[draws // 100 :])
    return normal.mean + np.array(chains) @ root.T


@njit(cache=True)
def chain_of_swings(walls, slack, y, draws, rng):
    gram = walls @ walls.T
    chain = np.empty((draws, y.size))
    for i in range(draws):
        swing(walls, gram, slack, y, rng)
        chain[i] = y
    return chain


def cut_regression(X, y, prior_precision, shape, scale, rows, offset, start, draws, seed=1):
    """Draws of coefficients and variance of a regression, with coefficients cut by planes.

    Coefficients and variance in turn: the first by exact HMC, the second is inverse gamma.
    """
    chains = []
    for rng in np.random.default_rng(seed).spawn(2):
        b, chain = np.array(start, float), np.empty((draws, len(start) + 1))
        variance = 1.0
        for i in range(-draws // 100, draws):
            root = np.linalg.cholesky(np.linalg.inv(X.T @ X / variance + prior_precision))
            mean = root @ (root.T @ (X.T @ y)) / variance
            walls = np.ascontiguousarray(rows @ root)
            z = np.linalg.solve(root, b - mean)
            swing(walls, walls @ walls.T, rows @ mean + offset, z, rng)
            b = mean + root @ z
            rest = scale + np.sum((y - X @ b) ** 2) / 2
            variance = rest / rng.gamma(shape + len(y) / 2)
            if i >= 0:
                chain[i] = *b, variance
        chains.append(chain)
    return np.array(chains)


def residual_weights(squares, n, shape, scale):
    """Density of parameters, up to a factor, with the variance of the noise integrated out.

    ``squares`` are sums of squared residuals of ``n`` observations, at a variance that is inverse
    gamma a priori. Returns log weights, and the first two moments of the variance.
    """
    rest, degrees = scale + squares / 2, shape + n / 2
    mean = rest / (degrees - 1)
    return -degrees * np.log(rest), mean, mean * rest / (degrees - 2)


def order_statistics(n) -> Known:
    """Of ``n`` standard normals, sorted."""
    x, weight = gauss_legendre(400, -9, 9)
    k = np.arange(1, n + 1)[:, None]
    density = (
        np.exp(stats.norm.logpdf(x) + stats.beta(k, n + 1 - k).logpdf(stats.norm.cdf(x))) * weight
    )
    return Known(density @ x, density @ x**2)


def in_order(x, log_densities) -> Known:
    """Of numbers that are independent but for their order, by their log densities on a grid.

    What is below the k-th, integrated over, is a function of it: F_k = ∫ f_{k-1} F_{k-1} up to x_k.
    So is what is above.
    """
    density = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    below = passed_on(x, density)
    above = passed_on(-x[::-1], density[::-1, ::-1])[::-1, ::-1]
    share = density * below * above
    share /= share.sum(axis=1, keepdims=True)
    return Known(share @ x, share @ x**2)


def passed_on(x, density):
    """Integrals up to x of each density times the integral before; the first one is 1."""
    found = np.ones_like(density)
    for k in range(1, len(density)):
        found[k] = integrate.cumulative_trapezoid(density[k - 1] * found[k - 1], x, initial=0)
        found[k] /= found[k, -1]
    return found


@njit(cache=True)
def half_normal_tail(lower, rng):
    """A standard normal above ``lower``."""
    if lower <= 0:
        while True:
            x = rng.standard_normal()
            if x > lower:
                return x
    rate = 0.5 * (lower + np.sqrt(lower**2 + 4))  # Robert 1995
    while True:
        x = lower - np.log(1 - rng.random()) / rate
        if rng.random() < np.exp(-0.5 * (x - rate) ** 2):
            return x


@njit(cache=True)
def draw_factor(left, products, gram, variance, rate, rng):
    """Draw a positive ``left`` in ``X = left @ right + noise``, column after column."""
    for k in range(gram.shape[0]):
        sd = np.sqrt(variance / gram[k, k])
        for i in range(left.shape[0]):
            other = left[i] @ gram[k] - left[i, k] * gram[k, k]
            centre = (products[i, k] - other - rate * variance) / gram[k, k]
            left[i, k] = centre + sd * half_normal_tail(-centre / sd, rng)


@njit(cache=True)
def factor_gibbs(data, left, right, noise, rate, draws, seen, rng):
    """Gibbs sampler of Schmidt et al. 2009; of each draw, the difference and some rows of WA."""
    chain = np.empty((draws, 1 + seen * data.shape[1]))
    for i in range(draws):
        draw_factor(left, data @ right.T, right @ right.T, noise**2, rate, rng)
        turned = right.T.copy()
        draw_factor(turned, data.T @ left, left.T @ left, noise**2, rate, rng)
        right[:] = turned.T
        product = left @ right
        chain[i, 0] = np.mean(np.abs(data - product))
        chain[i, 1:] = product[:seen].copy().ravel()
    return chain
