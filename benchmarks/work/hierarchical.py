"""Hierarchical models: eight schools and groups, centred or not; hospitals; item response."""

import numpy as np
import pymc as pm

from benchmarks import reference, synthetic
from benchmarks.measure import Known
from benchmarks.work.base import Work, flat

EFFECTS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
"""Of coaching in eight schools (Rubin 1981)."""


def members(mu, tau, count, centred):
    """Normal members of a population, sampled as they are or by their standard scores."""
    if centred:
        return pm.Normal("theta", mu, tau, shape=count)
    return pm.Deterministic("theta", mu + tau * pm.Normal("z", shape=count))


def schools(centred):
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
        theta = members(mu, tau, len(EFFECTS), centred)
        pm.Normal("y", theta, ERRORS, observed=EFFECTS)
    return model


def population(count, level, tau):
    """Covariance of the members of a population and, last, of its mean."""
    return level**2 + tau**2 * np.diag(np.append(np.ones(count), 0.0))


def schools_moments():
    count = len(EFFECTS)
    tau, weight = reference.log_grid(2000, 1e-4, 1e4)
    X = np.eye(count, count + 1)
    found = [reference.given(X, EFFECTS, ERRORS, population(count, 5, each)) for each in tau]
    log_weights = np.log(weight) - np.log1p((tau / 5) ** 2)
    return reference.mixed(found, log_weights, tau[:, None])


def groups(centred):
    y = synthetic.groups()
    with pm.Model() as model:
        mu, tau, sd = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 1), pm.HalfNormal("sd", 2)
        theta = members(mu, tau, len(y), centred)
        pm.Normal("y", theta[:, None], sd, observed=y)
    return model


def groups_moments():
    y = synthetic.groups()
    count, each = y.shape
    mean = y.mean(axis=1)
    inside = np.sum((y - mean[:, None]) ** 2)
    X = np.eye(count, count + 1)
    points, weights = reference.product(
        reference.log_grid(150, 1e-3, 1e2), reference.log_grid(60, 0.5, 2)
    )
    found = [
        reference.given(X, mean, np.full(count, sd / each**0.5), population(count, 5, tau))
        for tau, sd in points
    ]
    tau, sd = points.T
    log_prior = -np.log1p(tau**2) - (sd / 2) ** 2 / 2
    log_inside = -count * (each - 1) * np.log(sd) - inside / (2 * sd**2)
    return reference.mixed(found, log_prior + log_inside + np.log(weights), points)


def hospitals():
    deaths, operations = synthetic.hospitals()
    with pm.Model() as model:
        mu, tau = pm.Normal("mu", 0, 5), pm.HalfNormal("tau", 1)
        b = pm.Normal("b", mu, tau, shape=len(deaths))
        pm.Binomial("deaths", operations, logit_p=b, observed=deaths)
    return model


def item_response():
    right = synthetic.answers()
    persons, items = right.shape
    with pm.Model() as model:
        ability = pm.Normal("ability", shape=persons)
        level = pm.Normal("level", 0, 2, shape=items)
        slope = pm.HalfNormal("slope", 2, shape=items)
        pm.Bernoulli("right", logit_p=slope * (ability[:, None] - level), observed=right)
    return model


def hospitals_moments():
    """Given the population, the hospitals are independent: a sum over their standard scores."""
    deaths, operations = synthetic.hospitals()
    points, weights = reference.product(
        (np.linspace(-5, 0, 81), np.ones(81)), reference.log_grid(80, 1e-2, 10)
    )
    mu, tau = points.T
    z = np.linspace(-8, 8, 401)
    b = mu[:, None] + tau[:, None] * z
    log_odds = np.log1p(np.exp(b))
    log = -((mu / 5) ** 2 + tau**2) / 2
    means, squares = [], []
    for k, n in zip(deaths, operations, strict=True):
        each = k * b - n * log_odds - z**2 / 2
        top = each.max(axis=1, keepdims=True)
        share = np.exp(each - top)
        total = share.sum(axis=1)
        log += top[:, 0] + np.log(total)
        means.append(np.sum(share * b, axis=1) / total)
        squares.append(np.sum(share * b**2, axis=1) / total)
    share = np.exp(log - log.max()) * weights
    share /= share.sum()
    return Known(np.array([*means, mu, tau]) @ share, np.array([*squares, mu**2, tau**2]) @ share)


def works(quick):
    found = []
    for name, centred in {"": False, ", centred": True}.items():
        found += [
            Work(
                f"eight schools{name}",
                "effects in eight schools, with a half-Cauchy scale; "
                + ("effects as they are" if centred else "effects by standard scores"),
                lambda centred=centred: schools(centred),
                flat("theta", "mu", "tau"),
                lambda quick: schools_moments(),
                source="quadrature",
            ),
            Work(
                f"groups{name}",
                "means of 20 groups of 5, with a half-Cauchy scale; "
                + ("means as they are" if centred else "means by standard scores"),
                lambda centred=centred: groups(centred),
                flat("theta", "mu", "tau", "sd"),
                lambda quick: groups_moments(),
                source="quadrature",
            ),
        ]
    return [
        *sorted(found, key=lambda work: work.name),
        Work(
            "hospitals",
            "deaths in twelve hospitals, by log odds that are normal in the population",
            hospitals,
            flat("b", "mu", "tau"),
            lambda quick: hospitals_moments(),
            source="quadrature",
        ),
        Work(
            "item response",
            "200 persons answer 20 items with positive slopes, 240 unknowns",
            item_response,
            flat("level", "slope"),
            reference.stored("item response"),
            source=reference.LONG,
            large=True,
        ),
    ]
