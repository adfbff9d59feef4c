"""Mixtures, of which the components are told apart by their order."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from numba import njit
from pymc.distributions import transforms
from scipy import stats

from benchmarks import reference, synthetic
from benchmarks.work.base import Work, flat


def two_normals():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2, shape=2, transform=transforms.ordered, initval=[-1.0, 1.0])
        sd = pm.HalfNormal("sd", 2, shape=2)
        share = pm.Beta("share", 5, 5)
        pm.NormalMixture(
            "y", pt.stack([share, 1 - share]), mu, sd, observed=synthetic.two_normals()
        )
    return model


# Counts of a hidden chain of two states.
def hidden_chain():
    y = synthetic.two_states()
    with pm.Model() as model:
        order = transforms.ordered
        rate = pm.Gamma("rate", 2, 0.5, shape=2, transform=order, initval=[1.0, 5.0])
        stay = pm.Beta("stay", 4, 2, shape=2)
        low, high = (pm.logp(pm.Poisson.dist(rate[k]), y) for k in (0, 1))
        _, growth = pytensor.scan(
            forward,
            sequences=[high - low],
            outputs_info=[np.float64(0.5), None],
            non_sequences=[stay[0], stay[1]],
            return_updates=False,
        )
        pm.Potential("y", pt.sum(low + growth))
    return model


def forward(gain, share, stay_low, stay_high):
    """The probability of the high state after one more count, and the count's log probability.

    Both over the low state, in which the count's log probability is less by ``gain``.
    """
    share = share * stay_high + (1 - share) * (1 - stay_low)
    high = pt.log(share) + gain
    total = pt.logaddexp(high, pt.log1p(-share))
    return pt.exp(high - total), total


@njit(cache=True)
def chain_log_likelihood(points, y):
    """Of rates and probabilities to stay, two and two in each row; up to a constant."""
    found = np.zeros(len(points))
    for i in range(len(points)):
        low, high, stay_low, stay_high = points[i]
        a = b = 0.5
        for count in y:
            a, b = a * stay_low + b * (1 - stay_high), a * (1 - stay_low) + b * stay_high
            a *= np.exp(count * np.log(low) - low)
            b *= np.exp(count * np.log(high) - high)
            total = a + b
            a, b = a / total, b / total
            found[i] += np.log(total)
    return found


def hidden_chain_moments(n=28):
    """The rates are far from each other: no weight is where they are not in order."""
    axes = [reference.gauss_legendre(n, *ends) for ends in ((0.3, 4.2), (4.2, 9), (0, 1), (0, 1))]
    points, weights = reference.product(*axes)
    prior = stats.gamma(2, scale=2).logpdf(points[:, :2]) + stats.beta(4, 2).logpdf(points[:, 2:])
    log_density = chain_log_likelihood(points, synthetic.two_states()) + prior.sum(axis=1)
    return reference.of_log(points, log_density, weights)


def works(quick):
    return [
        Work(
            "mixture",
            "1000 data of a mixture of two normals with ordered means",
            two_normals,
            flat("mu", "sd", "share"),
            reference.stored("mixture"),
            source=reference.LONG,
        ),
        Work(
            "hidden chain",
            "128 counts of a hidden Markov chain with two states, rates positive and ordered",
            hidden_chain,
            flat("rate", "stay"),
            lambda quick: hidden_chain_moments(),
            source="quadrature",
        ),
    ]
