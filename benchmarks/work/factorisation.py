"""The paper's matrix factorisation: images as positive mixtures of positive base images."""

import numpy as np
import pymc as pm

from benchmarks import reference
from benchmarks.work.base import Work

NOISE, RATE, BASES, PIXELS = 0.5, 1.0, 4, 36
SEEN = 5
"""Images of which the reconstruction is judged: base images can change places, these cannot."""


def images(n):
    rng = np.random.default_rng(1)
    base = (rng.random((BASES, PIXELS)) < 0.3).astype(float)
    return rng.integers(0, 2, (n, BASES)) @ base + rng.normal(0, NOISE, (n, PIXELS))


def build(n):
    with pm.Model() as model:
        weights = pm.Exponential("W", RATE, shape=(n, BASES))
        features = pm.Exponential("A", RATE, shape=(BASES, PIXELS))
        pm.Normal("X", weights @ features, NOISE, observed=images(n))
    return model


def view(n):
    """Mean |X - WA|, and the reconstruction of some images."""
    data = images(n)

    def difference_and_images(values):
        W, A = np.asarray(values["W"]), np.asarray(values["A"])
        found = np.empty((*W.shape[:2], 1 + SEEN * PIXELS))
        for at in np.ndindex(W.shape[:2]):
            product = W[at] @ A[at]
            found[at] = np.mean(np.abs(data - product)), *product[:SEEN].ravel()
        return found

    return difference_and_images


def gibbs(n, draws):
    chains, data = [], images(n)
    for rng in np.random.default_rng(2).spawn(2):
        factors = rng.random((n, BASES)), rng.random((BASES, PIXELS))
        chain = reference.factor_gibbs(data, *factors, NOISE, RATE, 2 * draws, SEEN, rng)
        chains.append(chain[draws:])
    return np.array(chains)


def works(quick):
    n = 30 if quick else 1000
    return [
        Work(
            "matrix factorisation",
            f"{n} images of {PIXELS} pixels from {BASES} base images, "
            f"{BASES * (n + PIXELS)} unknowns",
            lambda: build(n),
            view(n),
            lambda quick: reference.of_draws(gibbs(n, 1000 if quick else 2000)),
            source="Gibbs sampler of Schmidt et al. 2009",
            tune=500,
            draws=1000,
            chains=1,
            large=True,
        )
    ]
