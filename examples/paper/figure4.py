# %% [markdown]
# # Figure 4: error against running time in a ball
#
# U = √(xᵀAx) for |x| < 3, infinite beyond; A diagonal with entries e⁵ or e⁻⁵, drawn anew in each
# round. The mean of all draws so far should go to zero; its worst coordinate is the error. The
# paper's settings (ε = 0.0167, L = 600, μ = 100) for the paper's sampler, reflective HMC and the
# baseline; and the automatic sampler, which is given nothing. All four are compiled; compilation
# is not counted, the warm-up of the automatic one is. Time is processor time.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numba import njit
from scipy import stats

import pymc_rollback as rb
from examples.paper.comparators import MODEL, WALLS, baseline_hmc, reflective_hmc, rollback_hmc
from examples.paper.shared import (
    BLUE,
    GREEN,
    ORANGE,
    RED,
    autocorrelation_time,
    row,
    run,
    save,
    write,
)

RADIUS, STEP_SIZE, N_STEPS, SHARPNESS = 3.0, 0.0167, 600, 100.0
COLOURS = {"automatic": BLUE, "RBHMC": ORANGE, "RHMC": GREEN, "baseline": RED}


# %%
@njit(MODEL.signature, cache=True)
def cone(position, others, slope):
    """``-√(xᵀAx)``, with the diagonal of A in ``others``."""
    total = 0.0
    for i in range(position.size):
        slope[i] = -others[i] * position[i]
        total -= slope[i] * position[i]
    root = np.sqrt(total)
    for i in range(position.size):
        slope[i] /= root
    return -root


@njit(WALLS.signature, cache=True)
def sphere(position, sharpness, push):
    """The boundary term of ``3 - |x| > 0``: at these settings ``9 - |x|²`` would be unstable."""
    total = 0.0
    for i in range(position.size):
        total += position[i] ** 2
    distance = np.sqrt(total)
    z = -sharpness[0] * (3.0 - distance)
    force = sharpness[0] / (1 + np.exp(-z)) / distance
    for i in range(position.size):
        push[i] = force * position[i]
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


# %% [markdown]
# Each sampler is a function that makes some draws and goes on where it was.


# %%
def rivals(diagonal, start, rng):
    sharpness, numbers = np.array([SHARPNESS]), (STEP_SIZE, N_STEPS)
    smoothed, reflected, rejected = start.copy(), start.copy(), start.copy()
    return {
        "RBHMC": lambda n: rollback_hmc(
            cone, sphere, diagonal, sharpness, smoothed, *numbers, n, rng
        ),
        "RHMC": lambda n: reflective_hmc(cone, diagonal, RADIUS, reflected, *numbers, n, rng),
        "baseline": lambda n: baseline_hmc(cone, diagonal, RADIUS, rejected, *numbers, n, rng),
    }


class Automatic:
    """The automatic sampler, compiled once for each dimension: the diagonal is data."""

    def __init__(self, size):
        with pm.Model() as self.model:
            diagonal = pm.Data("diagonal", np.ones(size))
            x = pm.Flat("x", shape=size, initval=np.full(size, 0.1))
            pm.Potential("cone", -pt.sqrt(pt.sum(diagonal * x**2)))
            rb.constrain("ball", pt.sum(x**2) < RADIUS**2)

    def begin(self, diagonal, start, rng):
        with self.model:
            pm.set_data({"diagonal": diagonal})
            self.step = rb.RollbackHMC(rng=rng)
        self.point = {"x": start.copy()}
        self.draw(1)  # compiles what is not in the cache
        self.step.set_rng(rng)
        self.point = {"x": start.copy()}

    def draw(self, n):
        chain = np.empty((n, self.point["x"].size))
        for i in range(n):
            self.point, _ = self.step.step(self.point)
            chain[i] = self.point["x"]
        return chain

    def warm_up(self, tune):
        self.draw(tune)
        self.step.stop_tuning()


def draw_for(draw, seconds, spent=0.0, chunk=4):
    """Draws made in some seconds, and the time at which each was there."""
    chunks, times = [], []
    while spent < seconds or not chunks:
        started = time.process_time()
        chunks.append(draw(chunk))
        took = time.process_time() - started
        times.append(spent + took * np.arange(1, chunk + 1) / chunk)
        spent += took
        chunk = min(2 * chunk, max(1, int(chunk * 0.05 * seconds / took)))
    return np.concatenate(chunks), np.concatenate(times)


def worst_error(draws):
    """Worst mean absolute error of all draws so far."""
    means = np.cumsum(draws, axis=0) / np.arange(1, len(draws) + 1)[:, None]
    return np.max(np.abs(means), axis=1)


def effective(draws):
    """Smallest effective size of a coordinate or its square; zero if the chain never moved."""
    if np.all(draws == draws[0]):
        return 0.0
    times = [autocorrelation_time(v) for x in draws.T for v in (x, x**2)]
    return len(draws) / max(times)


# %%
def play(size, rounds, seconds, tune, grid):
    """Error on the grid of times, acceptance and effective draws a second, by sampler."""
    automatic = Automatic(size)
    errors = {name: np.full((rounds, grid.size), np.nan) for name in COLOURS}
    moved, speed = {n: [] for n in COLOURS}, {n: [] for n in COLOURS}
    for r in range(rounds):
        rng = np.random.default_rng([4, size, r])
        diagonal = np.exp(rng.choice([-5.0, 5.0], size=size))
        start = rng.standard_normal(size)
        start *= RADIUS * rng.random() ** (1 / size) / np.linalg.norm(start)
        samplers = rivals(diagonal, start, rng)
        for draw in samplers.values():
            draw(0)
        automatic.begin(diagonal, start, rng)
        for name in COLOURS:
            started, spent = time.process_time(), 0.0
            if name == "automatic":
                automatic.warm_up(tune)
                spent = time.process_time() - started
            draws, times = draw_for(
                automatic.draw if name == "automatic" else samplers[name], seconds, spent
            )
            error = worst_error(draws)
            place = np.searchsorted(times, grid, side="right") - 1
            errors[name][r] = np.where(place >= 0, error[place], np.nan)
            moved[name].append(np.mean(np.any(np.diff(draws, axis=0) != 0, axis=1)))
            speed[name].append(effective(draws) / (times[-1] - spent))
    return errors, moved, speed


# %%
def draw_panels(out, grid, results):
    figure, axes = plt.subplots(
        1, len(results), figsize=(3.6 * len(results) + 0.4, 3.6), layout="constrained"
    )
    for axis, (size, (errors, _, _)) in zip(np.atleast_1d(axes), results.items(), strict=True):
        for name, lines in errors.items():
            known = ~np.any(np.isnan(lines), axis=0)
            mean, n = lines[:, known].mean(axis=0), len(lines)
            band = stats.t(n - 1).ppf(0.995) * lines[:, known].std(axis=0, ddof=1) / np.sqrt(n)
            axis.plot(grid[known], mean, color=COLOURS[name], lw=2, label=name)
            low, high = np.maximum(mean - band, 1e-3), mean + band
            axis.fill_between(grid[known], low, high, color=COLOURS[name], alpha=0.2, lw=0)
        axis.set(xscale="log", yscale="log", title=f"D = {size}", xlabel="processor time (s)")
        axis.set_ylim(0.003, 4)
    np.atleast_1d(axes)[0].set_ylabel("worst mean absolute error")
    np.atleast_1d(axes)[0].legend(loc="lower left")
    save(figure, out, "figure4")


# %%
def main(quick, out):
    rounds, seconds, tune, sizes = (2, 1.0, 300, (20,)) if quick else (10, 2.0, 500, (2, 20, 50))
    grid = np.geomspace(0.002, seconds, 60)
    results = {size: play(size, rounds, seconds, tune, grid) for size in sizes}
    draw_panels(out, grid, results)
    numbers, rows = {}, []
    for size, (errors, moved, speed) in results.items():
        last = {name: lines[:, -1].mean() for name, lines in errors.items()}
        rates = {name: np.mean(x) for name, x in moved.items()}
        fast = {name: np.median(x) for name, x in speed.items()}
        numbers[size] = {"error": last, "accepted": rates, "effective_per_second": fast}
        ratio = fast["RBHMC"] / max(fast["RHMC"], 1e-9)
        text = "; ".join(f"{n} {last[n]:.3f} ({fast[n]:.0f} ESS/s)" for n in COLOURS)
        agreement = f"RBHMC/RHMC = {ratio:.2f} in ESS/s"
        rows.append(
            row(
                f"4, D = {size}",
                f"error after {seconds:g} s",
                "RBHMC slightly better than RHMC, both better than the baseline",
                text,
                agreement,
            )
        )
    largest = max(sizes)
    stuck = numbers[largest]["accepted"]["baseline"]
    rows.append(
        row(
            f"4, D = {largest}",
            "accepted by the baseline",
            "none at D = 50",
            f"{stuck:.2%}",
            "yes" if stuck < 0.001 else "no",
        )
    )
    return write(out, "figure4", numbers, rows)


# %%
if __name__ == "__main__":
    run(main)
