"""Series in time: stationary autoregressions, volatility, a hidden chain."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numba import njit

import pymc_rollback as rb
from benchmarks import reference, synthetic
from benchmarks.work.base import Work, flat
from benchmarks.work.nonlinear import with_variance
from benchmarks.work.regression import observe, read


# Stationary autoregressions, by their region.
def employment():
    """Longley's total employment: the values from the fourth on, and the three before each."""
    y, _ = read("longley")
    return synthetic.lagged(y, 3)


def series():
    """A series that is hardly stationary, in the same form."""
    a, _ = from_partial([0.9, -0.3, 0.4, 0.3])
    y = synthetic.autoregressive(np.array(a), 60, 1.0, seed=19)
    return synthetic.lagged(y / y.std(), 4)


def stationary(a):
    """Whether all roots of 1 - a1 z - a2 z² - ... are outside the unit circle; elementwise.

    By the partial autocorrelations, of which the last coefficient is one: what is left without it
    belongs to a series of lower order. Denominators are multiplied out.
    """
    signs = [(-1) ** (k + 1) for k in range(len(a))]
    found = [sum(a) < 1, sum(s * x for s, x in zip(signs, a, strict=True)) < 1]
    rest, scale = list(a), 1.0
    while len(rest) > 1:
        last = rest.pop()
        found.append(last > -scale)
        if len(rest) > 1:  # else it follows from the first two
            found.append(last < scale)
        rest = [scale * x + last * y for x, y in zip(rest, rest[::-1], strict=True)]
        scale = scale**2 - last**2
    return found


def from_partial(r):
    """The coefficients, from partial autocorrelations; and the Jacobian."""
    a, jacobian = [], 1.0
    for k, last in enumerate(r):
        a = [x - last * y for x, y in zip(a, a[::-1], strict=True)] + [last]
        jacobian = jacobian * (1 - last) ** ((k + 1) // 2) * (1 + last) ** (k // 2)
    return a, jacobian


def autoregression(data):
    y, X = data()
    order = X.shape[1]
    with pm.Model() as model:
        a = pm.Normal("a", shape=order, initval=np.array([0.5, *[0.1] * (order - 1)]))
        observe(y, X @ a)
        for i, condition in enumerate(stationary([a[k] for k in range(order)])):
            rb.constrain(f"stationary{i}", condition)
    return model


def by_partial(data):
    y, X = data()
    order = X.shape[1]
    with pm.Model() as model:
        r = pm.Uniform("r", -1, 1, shape=order)
        a, jacobian = from_partial([r[k] for k in range(order)])
        a = pm.Deterministic("a", pt.stack(a))
        pm.Potential("prior", -0.5 * pt.sum(a**2) + pt.log(jacobian))
        observe(y, X @ a)
    return model


def autoregression_moments(data, nodes):
    y, X = data()
    r, weights = reference.product(*[reference.gauss_legendre(nodes, -1, 1)] * X.shape[1])
    a, jacobian = from_partial(r.T)
    a = np.array(a)
    squares = y @ y - 2 * (X.T @ y) @ a + np.sum(a * (X.T @ X @ a), axis=0)
    return with_variance(a, -0.5 * np.sum(a**2, axis=0), squares, len(y), weights * jacobian)


# GARCH(1,1): the variance follows from the value and the variance before.
def garch():
    y = synthetic.volatile()
    with pm.Model() as model:
        mu, omega = pm.Normal("mu", 0, 10), pm.HalfNormal("omega", 2)
        alpha, beta = (pm.Uniform(name, initval=0.3) for name in ("alpha", "beta"))
        rb.constrain("stationary", alpha + beta < 1)
        observe_garch(y, mu, omega, alpha, beta)
    return model


def garch_by_shares():
    """What is left of 1 after alpha, and beta's share of it."""
    y = synthetic.volatile()
    with pm.Model() as model:
        mu, omega = pm.Normal("mu", 0, 10), pm.HalfNormal("omega", 2)
        weights = pm.Dirichlet("weights", np.ones(3))
        alpha = pm.Deterministic("alpha", weights[0])
        beta = pm.Deterministic("beta", weights[1])
        observe_garch(y, mu, omega, alpha, beta)
    return model


def observe_garch(y, mu, omega, alpha, beta):
    law = pm.GARCH11.dist(omega, alpha, beta, initial_vol=1.0, shape=len(y))
    pm.Potential("y", pm.logp(law, y - mu).sum())


@njit(cache=True)
def garch_log_likelihood(points, y):
    """Of means, and omega, alpha and beta of the variance, one in each row."""
    found = np.zeros(len(points))
    for i in range(len(points)):
        mu, omega, alpha, beta = points[i]
        variance = 1.0
        for value in y:
            square = (value - mu) ** 2
            found[i] -= (np.log(variance) + square / variance) / 2
            variance = omega + alpha * square + beta * variance
    return found


def garch_moments(n=32):
    points, weights = reference.product(
        reference.gauss_legendre(n, 4.2, 5.4),
        reference.gauss_legendre(n, 0, 3),
        reference.gauss_legendre(n, 0, 1),
        reference.gauss_legendre(n, 0, 1),
    )
    left = 1 - points[:, 2]
    points[:, 3] *= left
    prior = -0.5 * (points[:, 0] / 10) ** 2 - 0.5 * (points[:, 1] / 2) ** 2
    log_density = garch_log_likelihood(points, synthetic.volatile()) + prior
    return reference.of_log(points, log_density, weights * left)


def autoregression_work(order, about, data, nodes):
    return Work(
        f"stationary AR({order})",
        about,
        lambda: autoregression(data),
        flat("a", "variance"),
        lambda quick: autoregression_moments(data, nodes),
        source="quadrature",
        joint=True,
        transformed=lambda: by_partial(data),
    )


def works(quick):
    return [
        autoregression_work(
            3,
            "an autoregression of third order that is stationary (Longley's employment)",
            employment,
            nodes=120,
        ),
        autoregression_work(
            4,
            "an autoregression of fourth order through 60 values that is stationary",
            series,
            nodes=40,
        ),
        Work(
            "GARCH(1,1)",
            "200 values of which the variance changes, alpha + beta < 1",
            garch,
            flat("mu", "omega", "alpha", "beta"),
            lambda quick: garch_moments(),
            source="quadrature",
            joint=True,
            transformed=garch_by_shares,
        ),
    ]
