# %% [markdown]
# # Experiment 6: the other samplers that the paper names
#
# Rejection, coordinate Gibbs, exact HMC for Gaussians (`tmg-hmc`), spherical and reflective HMC,
# each where it applies, and the automatic sampler, which applies to all. Three normals in ten
# dimensions: in the positive orthant, between twenty planes, and in a ball. Rivals with a step size
# and a number of steps get the best of a grid; what is found is checked against the truth.

# %%
import itertools
import time

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numba import njit
from scipy import integrate, stats

import pymc_rollback as rb
from examples.paper.comparators import (
    INSIDE,
    MODEL,
    baseline_hmc,
    coordinate_gibbs,
    exact_hmc,
    reflective_hmc,
    rejection,
    spherical_hmc,
)
from examples.paper.shared import autocorrelation_time, row, run, write

D = 10
CORRELATED = 0.5 * np.eye(D) + 0.5
ROWS = np.random.default_rng(20).standard_normal((20, D))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
OFFSET = np.ones(len(ROWS))
CENTRE, RADIUS = np.eye(D)[0], 2.0
NOTHING = np.empty(0)


# %% [markdown]
# The targets. The mean of the first coordinate is known by integration in the orthant and in the
# ball; between the planes it comes from many independent draws.


# %%
@njit(MODEL.signature, cache=True)
def shifted(position, others, slope):
    """A standard normal about (1, 0, …, 0)."""
    for i in range(position.size):
        slope[i] = -position[i]
    slope[0] += 1.0
    return -0.5 * np.sum(slope**2)


@njit(INSIDE.signature, cache=True)
def in_orthant(x):
    return x.min() > 0


@njit(INSIDE.signature)
def in_polytope(x):
    return np.all(ROWS @ x + OFFSET > 0)


@njit(INSIDE.signature, cache=True)
def in_ball(x):
    return x @ x < 4.0


def orthant_mean():
    """x = (z + w) / √2 with a common w: given w, the coordinates are cut independently."""
    phi, Phi = stats.norm.pdf, stats.norm.cdf

    def integrand(w):
        return phi(w) * Phi(w) ** (D - 1) * (w * Phi(w) + phi(w)) / np.sqrt(2)

    return (D + 1) * integrate.quad(integrand, -8, 8)[0]


def ball_mean():
    def weight(x):
        return stats.norm.pdf(x - 1) * stats.chi2(D - 1).cdf(RADIUS**2 - x**2)

    total = integrate.quad(weight, -RADIUS, RADIUS)[0]
    return integrate.quad(lambda x: x * weight(x), -RADIUS, RADIUS)[0] / total


def polytope_mean(draws):
    rng = np.random.default_rng(1)
    return rejection(np.zeros(D), np.eye(D), in_polytope, draws, rng)[0][:, 0].mean()


# %%
def build(name):
    with pm.Model() as model:
        if name == "orthant":
            x = pm.MvNormal("x", np.zeros(D), CORRELATED, initval=np.ones(D))
            rb.constrain("region", x > 0)
        elif name == "planes":
            x = pm.Normal("x", 0, 1, shape=D)
            rb.constrain("region", pt.dot(ROWS, x) + OFFSET > 0)
        else:
            x = pm.Normal("x", CENTRE, 1, shape=D, initval=np.zeros(D))
            rb.constrain("region", pt.sum(x**2) < RADIUS**2)
    return model


class Automatic:
    """The automatic sampler after its warm-up, as a function of the number of draws."""

    def __init__(self, name, tune, rng):
        with build(name) as model:
            self.step = rb.RollbackHMC(rng=rng)
        self.point = model.initial_point()
        self(tune)
        self.step.stop_tuning()

    def __call__(self, draws):
        chain = np.empty((draws, D))
        for i in range(draws):
            self.point, _ = self.step.step(self.point)
            chain[i] = self.point["x"]
        return chain


def samplers(name, tune, rng):
    """By sampler: a function of the number of draws, and how many to make in the full form."""
    zero, identity = np.zeros(D), np.eye(D)
    linear = {
        "orthant": [(e, 0.0) for e in identity],
        "planes": list(zip(ROWS, OFFSET, strict=True)),
        "ball": [],
    }[name]
    quadratic = [(-identity, RADIUS**2)] if name == "ball" else []
    mean = CENTRE if name == "ball" else zero
    covariance = CORRELATED if name == "orthant" else identity
    inside = {"orthant": in_orthant, "planes": in_polytope, "ball": in_ball}[name]
    start = np.full(D, 0.5) if name == "orthant" else np.full(D, 0.01)
    root = np.linalg.cholesky(covariance)
    found = {
        "automatic": (Automatic(name, tune, rng), 10_000),
        "rejection": (lambda n: rejection(mean, root, inside, n, rng)[0], 20_000),
        "exact HMC (tmg-hmc)": (
            lambda n: exact_hmc(mean, covariance, linear, quadratic, start, n, 1),
            2000,
        ),
    }
    if linear:
        rows, offset = (np.array(part, float) for part in zip(*linear, strict=True))
        precision, at = np.linalg.inv(covariance), start.copy()
        found["coordinate Gibbs"] = (
            lambda n: coordinate_gibbs(mean, precision, rows, offset, at, n, rng),
            50_000,
        )
    else:
        rivals = {"spherical HMC": spherical_hmc, "RHMC": reflective_hmc, "baseline": baseline_hmc}
        for rival, chain in rivals.items():
            found[rival] = (best_of_grid(chain, start, rng), 50_000)
    return found


def best_of_grid(chain, start, rng):
    """The step size and number of steps with the most effective draws a second."""
    best = (0.0, None)
    for step_size, n_steps in itertools.product((0.05, 0.1, 0.2, 0.4, 0.8), (2, 4, 8, 16)):
        at = start.copy()

        def draw(n, at=at, step_size=step_size, n_steps=n_steps):
            return chain(shifted, NOTHING, RADIUS, at, step_size, n_steps, n, rng)

        started = time.process_time()
        rate = judge(draw(4000))["ess"] / (time.process_time() - started)
        best = max(best, (rate, draw), key=lambda pair: pair[0])
    return best[1]


# %%
def judge(draws):
    """Mean of the first coordinate, its error, and the smallest effective size.

    Draws with weights (an eleventh column) count as many as an independent sample with the same
    variance of the weighted mean.
    """
    x, weight = draws[:, :D], draws[:, D] if draws.shape[1] > D else np.ones(len(draws))
    weight = weight / weight.mean()
    sizes = []
    for view in (*x.T, *(x**2).T):
        mean = np.mean(weight * view)
        variance = np.mean(weight * (view - mean) ** 2)
        series = weight * (view - mean)
        if variance == 0 or np.var(series) == 0:
            return {"mean": view[0], "error": np.inf, "ess": 0.0}
        error = np.var(series) * autocorrelation_time(series) / len(x)
        sizes.append(variance / error)
    mean = np.mean(weight * x[:, 0])
    deviation = np.sqrt(np.mean(weight * (x[:, 0] - mean) ** 2))
    return {"mean": mean, "error": deviation / np.sqrt(sizes[0]), "ess": min(sizes)}


# %%
def main(quick, out):
    share, names = (0.1, ("orthant", "ball")) if quick else (1.0, ("orthant", "planes", "ball"))
    numbers, rows = {}, []
    for name in names:
        truth = {"orthant": orthant_mean, "ball": ball_mean}.get(
            name, lambda: polytope_mean(400_000)
        )()
        numbers[name] = {"truth": truth}
        for sampler, (draw, n) in samplers(name, 1000, np.random.default_rng(7)).items():
            n = max(int(share * n), 500)
            started = time.process_time()
            draws = draw(n)
            seconds = time.process_time() - started
            found = judge(draws)
            z = (found["mean"] - truth) / found["error"]
            speed = found["ess"] / seconds
            numbers[name][sampler] = {**found, "draws": n, "ess_per_second": speed, "z": z}
            text = f"{found['mean']:.4f} ± {found['error']:.4f}; {speed:,.0f} ESS/s"
            rows.append(
                row(
                    f"others, {name}",
                    f"mean of the first coordinate, {sampler}",
                    f"(truth: {truth:.4f})",
                    text,
                    "yes" if abs(z) < 3.5 else "no",
                )
            )
    return write(out, "others", numbers, rows)


# %%
if __name__ == "__main__":
    run(main)
