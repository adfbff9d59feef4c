"""Generalised linear models: logistic and Poisson, with signs, an order, positive rates."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_rollback as rb
from benchmarks import reference, synthetic
from benchmarks.work.base import Work, flat

WIDE = 10.0
"""Standard deviation of the prior of what has no sign."""


def logistic():
    y, X = synthetic.clicks()
    with pm.Model() as model:
        level = pm.Normal("level", 0, WIDE)
        b = pm.HalfNormal("b", shape=X.shape[1])
        pm.Bernoulli("y", logit_p=level + X @ b, observed=y)
    return model


def poisson():
    y, X = synthetic.events()
    with pm.Model() as model:
        level = pm.Normal("level", 0, WIDE)
        b = pm.HalfNormal("b", shape=X.shape[1])
        pm.Poisson("y", pt.exp(level + X @ b), observed=y)
    return model


def poisson_log_density(b, y, X, prior_sd):
    """Of coefficients, one in each row, with normal priors; up to a constant."""
    return b @ (y @ X) - np.exp(b @ X.T).sum(axis=1) - np.sum((b / prior_sd) ** 2, axis=1) / 2


def poisson_moments(n=32):
    y, X = synthetic.events()
    points, weights = reference.product(
        reference.gauss_legendre(n, -0.1, 1.2),
        *(reference.gauss_legendre(n, 0, most) for most in (0.7, 1.0, 1.2)),
    )
    X = np.column_stack([np.ones(len(y)), X])
    log_density = poisson_log_density(points, y, X, np.array([WIDE, 1, 1, 1]))
    return reference.of_log(points, log_density, weights)


def yearly():
    """Counts, and the powers of the year."""
    y, year = synthetic.yearly()
    return y, np.vander(year, 4, increasing=True)


def trend():
    y, X = yearly()
    with pm.Model() as model:
        b = pm.Normal("b", 0, WIDE, shape=4)
        pm.Poisson("y", pt.exp(X @ b), observed=y)
    return model


def trend_moments(n=33):
    """On a grid about the mode, in the coordinates in which the density is nearly normal."""
    y, X = yearly()
    b = np.array([np.log(y.mean()), 0, 0, 0])
    for _ in range(20):  # Newton's method
        rate = np.exp(X @ b)
        precision = (X.T * rate) @ X + np.eye(4) / WIDE**2
        b = b + np.linalg.solve(precision, X.T @ (y - rate) - b / WIDE**2)
    z, weights = reference.product(*[(np.linspace(-8, 8, n), np.ones(n))] * 4)
    points = b + np.linalg.solve(np.linalg.cholesky(precision).T, z.T).T
    return reference.of_log(points, poisson_log_density(points, y, X, WIDE), weights)


# A monotone curve through counts.
def monotone():
    y = synthetic.rising_counts()
    with pm.Model() as model:
        f = pm.Normal("f", 0, WIDE, shape=len(y), initval=np.linspace(0.5, 2.5, len(y)))
        pm.Poisson("y", pt.exp(f), observed=y)
        rb.constrain("monotone", f[1:] > f[:-1])
    return model


def monotone_by_steps():
    y = synthetic.rising_counts()
    n = len(y)
    with pm.Model() as model:
        first = pm.Flat("first", initval=0.5)
        steps = pm.HalfFlat("steps", shape=n - 1, initval=np.full(n - 1, 2 / n))
        f = pm.Deterministic("f", pt.concatenate([first[None], first + pt.cumsum(steps)]))
        pm.Potential("prior", -0.5 * pt.sum((f / WIDE) ** 2))
        pm.Poisson("y", pt.exp(f), observed=y)
    return model


def monotone_moments():
    y, f = synthetic.rising_counts(), np.linspace(-40, 5, 9001)
    return reference.in_order(f, y[:, None] * f - np.exp(f) - (f / WIDE) ** 2 / 2)


# Counts of which the rate itself is linear: it is positive where it is at both ends of the dose.
ENDS = np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
"""Dose and group of the four ends."""


def design(dose, group):
    return np.column_stack([np.ones(len(dose)), dose, group, dose * group])


def identity_link():
    y, *place = synthetic.exposed()
    with pm.Model() as model:
        b = pm.Normal("b", 0, WIDE, shape=4, initval=np.array([1.0, 1.0, 0.0, 0.0]))
        rate = design(*place) @ b
        rb.constrain("rate", rate > 0)
        pm.Poisson("y", rate, observed=y)
    return model


def by_ends():
    y, *place = synthetic.exposed()
    with pm.Model() as model:
        ends = pm.HalfFlat("ends", shape=4, initval=np.array([1.0, 2.0, 1.0, 2.0]))
        b = pm.Deterministic("b", np.linalg.inv(design(*ENDS.T)) @ ends)
        pm.Potential("prior", -0.5 * pt.sum((b / WIDE) ** 2))
        pm.Poisson("y", design(*place) @ b, observed=y)
    return model


def identity_moments(n=48):
    """The groups are tied by the prior alone: a grid of a grid for each."""
    y, dose, group = synthetic.exposed()
    ends, weights = reference.product(
        reference.gauss_legendre(n, 0, 4), reference.gauss_legendre(n, 0, 16)
    )
    rates = ends @ np.stack([1 - dose, dose])
    log = y * np.log(rates) - rates
    log = [log[:, group == each].sum(axis=1) for each in (0, 1)]
    kept = [np.flatnonzero(each > each.max() - 50) for each in log]
    i, j = (x.ravel() for x in np.meshgrid(*kept, indexing="ij"))
    b = np.column_stack([ends[i], ends[j]]) @ np.linalg.inv(design(*ENDS.T)).T
    prior = -np.sum((b / WIDE) ** 2, axis=1) / 2
    return reference.of_log(b, log[0][i] + log[1][j] + prior, weights[i] * weights[j])


def works(quick):
    return [
        Work(
            "logistic",
            "a logistic regression of 200 data on 8 predictors with positive coefficients",
            logistic,
            flat("level", "b"),
            reference.stored("logistic"),
            source=reference.LONG,
        ),
        Work(
            "Poisson GLM",
            "a Poisson regression on 3 predictors with positive coefficients",
            poisson,
            flat("level", "b"),
            lambda quick: poisson_moments(),
            source="quadrature",
        ),
        Work(
            "Poisson trend",
            "a Poisson regression of 40 counts on a cubic trend",
            trend,
            flat("b"),
            lambda quick: trend_moments(),
            source="quadrature",
        ),
        Work(
            "monotone counts",
            "a monotone log rate through 30 counts, 29 affine constraints",
            monotone,
            flat("f"),
            lambda quick: monotone_moments(),
            source="quadrature",
            joint=True,
            transformed=monotone_by_steps,
        ),
        Work(
            "identity link",
            "counts of which the rate is linear in a dose, in two groups, and positive",
            identity_link,
            flat("b"),
            lambda quick: identity_moments(),
            source="quadrature",
            joint=True,
            transformed=by_ends,
        ),
    ]
