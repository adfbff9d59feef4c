"""Rates: two that are compared, and some that rise."""

import numpy as np
import pymc as pm
from pymc.distributions import transforms
from scipy import stats

import pymc_rollback as rb
from benchmarks import reference, synthetic
from benchmarks.work.base import Work, flat

SEEN, HAPPENED = 10, (5, 7)
"""Of two rates: how often was looked, and what was seen."""


def two_rates():
    with pm.Model() as model:
        first, second = pm.Uniform("first"), pm.Uniform("second")
        pm.Deterministic("difference", first - second)
        for name, rate, seen in zip("ab", (first, second), HAPPENED, strict=True):
            pm.Binomial(name, SEEN, rate, observed=seen)
    return model


def two_rates_moments():
    return reference.of_laws([stats.beta(1 + k, 1 + SEEN - k) for k in HAPPENED])


def rising():
    reacted, each = synthetic.responders()
    count = len(reacted)
    with pm.Model() as model:
        rate = pm.Uniform("rate", shape=count, initval=start(count))
        pm.Binomial("reacted", each, rate, observed=reacted)
        rb.constrain("rising", rate[1:] > rate[:-1])
    return model


def rising_by_transform():
    reacted, each = synthetic.responders()
    count = len(reacted)
    with pm.Model() as model:
        order = transforms.ordered  # of log odds: the interval's own transform comes first
        rate = pm.Uniform("rate", shape=count, transform=order, initval=start(count))
        pm.Binomial("reacted", each, rate, observed=reacted)
    return model


def start(count):
    return np.linspace(0.1, 0.6, count)


def rising_moments():
    reacted, each = synthetic.responders()
    rate = np.linspace(0, 1, 5001)
    return reference.in_order(rate, stats.binom(each, rate).logpmf(reacted[:, None]))


def works(quick):
    return [
        Work(
            "two rates",
            "two rates, of 5 and of 7 successes in 10 attempts",
            two_rates,
            flat("first", "second"),
            lambda quick: two_rates_moments(),
        ),
        Work(
            "rising rates",
            "rates of a reaction to 8 rising doses, in ascending order",
            rising,
            flat("rate"),
            lambda quick: rising_moments(),
            source="quadrature",
            joint=True,
            transformed=rising_by_transform,
        ),
    ]
