# %% [markdown]
# # Figure 3 and Table 1: a standard normal in six regions
#
# μ = 500, L = 100, ε = 0.004, N = 100000, through `pm.sample`: the paper's sampler, and beside it
# the automatic exact one. Histograms on squares of 0.5, compared with the true probabilities.

# %%
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy import stats
from scipy.special import expit

import pymc_rollback as rb
from benchmarks.samplers import only_errors
from examples.paper.shared import SKY, autocorrelation_time, row, run, save, write
from pymc_rollback.target.barrier import boundary_term

SHARPNESS, STEP_SIZE, N_STEPS = 500.0, 0.004, 100
SIDE = 0.5
EDGES = np.arange(-4, 4.01, SIDE)

REGIONS = {
    "(a) free": [],
    "(b) y > 0": [lambda x, y: y],
    "(c) y > 0, x > y": [lambda x, y: y, lambda x, y: x - y],
    "(d) x² + y² < 2": [lambda x, y: 2 - x**2 - y**2],
    "(e) half disk": [lambda x, y: y, lambda x, y: 2 - x**2 - y**2],
    "(f) x > y²": [lambda x, y: x - y**2],
}
SAMPLERS = {
    "smoothed": {
        "exact": False,
        "sharpness": SHARPNESS,
        "step_size": STEP_SIZE,
        "n_steps": N_STEPS,
    },
    "exact": {},
}


# %% [markdown]
# The model: one line for each truncation boundary.


# %%
def build(slacks):
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, initval=1.0)
        y = pm.Normal("y", 0, 1, initval=0.5)
        for i, slack in enumerate(slacks):
            rb.constrain(f"g{i}", slack(x, y) > 0)
    return model


def sample(model, step, draws, seed, cores):
    """Draws of two chains, one a row, and the time that sampling took."""
    with model, warnings.catch_warnings():
        # fork beside Numba's threads (Python >= 3.12)
        warnings.filterwarnings("ignore", ".*multi-threaded.*", DeprecationWarning)
        started = time.perf_counter()
        idata = pm.sample(
            draws=draws // 2,
            tune=500,
            chains=2,
            cores=cores,
            step=step,
            progressbar=False,
            random_seed=seed,
            compute_convergence_checks=False,
        )
    posterior = idata["posterior"]
    seconds = time.perf_counter() - started
    return np.stack([posterior["x"].values, posterior["y"].values], axis=-1), seconds


# %% [markdown]
# Table 1: the paper's closed forms of the gradient of the boundary terms, against what the package
# makes of the model by itself.


# %%
def paper_gradient(name, x, y):
    """Table 1 of the paper."""
    mu = SHARPNESS
    down = mu * expit(-mu * y)
    right = mu * expit(-mu * (x - y))
    out = 2 * mu * expit(-mu * (2 - x**2 - y**2))
    bend = mu * expit(-mu * (x - y**2))
    return {
        "(a)": (0.0, 0.0),
        "(b)": (0.0, -down),
        "(c)": (-right, right - down),
        "(d)": (out * x, out * y),
        "(e)": (out * x, out * y - down),
        "(f)": (-bend, 2 * y * bend),
    }[name[:3]]


def gradient_error(name, model, n):
    """Largest difference from Table 1, relative to μ, at points on both sides of the walls."""
    slacks = [constraint.slack for constraint in rb.read_region(model)]
    values = [model["x"], model["y"]]
    if not slacks:
        return 0.0
    rows = pt.concatenate([pt.atleast_1d(slack) for slack in slacks])
    energy = boundary_term(rows, pt.full(rows.shape, SHARPNESS))
    gradient = pytensor.function(
        values, pt.stack(pt.grad(energy, values, disconnected_inputs="ignore"))
    )
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(n):
        x, y = rng.normal(size=2)
        if rng.random() < 0.5:  # near a wall
            y = rng.choice([0.0, x, abs(x) ** 0.5, max(2 - x * x, 0) ** 0.5]) + rng.normal() / 500
        difference = gradient(x, y) - np.array(paper_gradient(name, x, y))
        worst = max(worst, np.max(np.abs(difference)) / SHARPNESS)
    return worst


# %% [markdown]
# The truth: probabilities of the squares, by integration, and the share that the smoothed density
# has outside.


# %%
def probabilities(slacks):
    """Probability of each square: midpoints along x, 400 to a square; y by the region's grid."""
    fine = 200
    mid = EDGES[0] + (np.arange((len(EDGES) - 1) * fine) + 0.5) * SIDE / fine
    density = stats.norm.pdf(mid)
    inside = np.ones((mid.size, mid.size), bool)
    for slack in slacks:
        inside &= slack(mid[:, None], mid[None, :]) > 0
    mass = density[:, None] * density[None, :] * inside
    cells = mass.reshape(len(EDGES) - 1, fine, -1, fine).sum(axis=(1, 3))
    return cells / cells.sum()


def leak(slacks):
    """Share of the smoothed density that is outside, by weighted normal draws."""
    x, y = np.random.default_rng(1).standard_normal((2, 4_000_000))
    weight, inside = np.ones(x.size), np.ones(x.size, bool)
    for slack in slacks:
        g = slack(x, y)
        weight *= expit(SHARPNESS * g)
        inside &= g > 0
    return weight[~inside].sum() / weight.sum()


# %% [markdown]
# The chi-square test needs independent draws: chains are thinned by the largest integrated
# autocorrelation time of a few functions. Squares that expect fewer than five draws are pooled.


# %%
def thin(chains):
    views = [lambda z: z[:, 0], lambda z: z[:, 1], lambda z: z[:, 0] * z[:, 1]]
    views += [lambda z: z[:, 0] ** 2, lambda z: z[:, 1] ** 2]
    times = [autocorrelation_time(view(chain)) for chain in chains for view in views]
    step = int(np.ceil(max(times)))
    return chains[:, ::step].reshape(-1, 2), max(times)


def chi_square(draws, expected):
    """Statistic, degrees of freedom and p of the draws inside."""
    counts = histogram(draws)
    wanted = expected * counts[expected > 0].sum()
    large = wanted >= 5
    observed = np.append(counts[large], counts[~large & (expected > 0)].sum())
    wanted = np.append(wanted[large], wanted[~large].sum())
    if wanted[-1] < 5:
        observed = np.append(observed[:-2], observed[-2:].sum())
        wanted = np.append(wanted[:-2], wanted[-2:].sum())
    statistic = np.sum((observed - wanted) ** 2 / wanted)
    return statistic, wanted.size - 1, stats.chi2(wanted.size - 1).sf(statistic)


def histogram(draws):
    return np.histogram2d(*draws.T, bins=[EDGES, EDGES])[0]


# %%
def study(name, sampler, draws, seed, cores):
    slacks = REGIONS[name]
    with build(slacks) as model:
        step = rb.RollbackHMC(**SAMPLERS[sampler])
    chains, seconds = sample(model, step, draws, seed, cores)
    flat = chains.reshape(-1, 2)
    outside = np.zeros(len(flat), bool)
    for slack in slacks:
        outside |= slack(*flat.T) <= 0
    few, tau = thin(chains)
    expected = probabilities(slacks)
    statistic, freedom, p = chi_square(few, expected)
    return {
        "counts": histogram(flat),
        "expected": expected,
        "draws": len(flat),
        "outside": int(outside.sum()),
        "tau": tau,
        "effective": len(few),
        "chi_square": statistic,
        "freedom": freedom,
        "p": p,
        "seconds": seconds,
        "gradient_error": gradient_error(name, model, 300) if sampler == "smoothed" else None,
    }


# %%
def draw_histograms(out, results):
    figure = plt.figure(figsize=(10, 6.6), layout="constrained")
    centre = EDGES[:-1] + SIDE / 2
    gx, gy = np.meshgrid(centre, centre, indexing="ij")
    for i, (name, result) in enumerate(results.items()):
        axis = figure.add_subplot(2, 3, i + 1, projection="3d")
        height = result["counts"] / result["draws"] / SIDE**2
        shown = height > 0
        low = [(a[shown] - SIDE / 2) for a in (gx, gy)]
        axis.bar3d(*low, 0, SIDE, SIDE, height[shown], color=SKY, alpha=0.6, lw=0)
        true = np.where(result["expected"] > 0, result["expected"] / SIDE**2, np.nan)
        axis.computed_zorder = False
        axis.plot_wireframe(gx, gy, true, color="black", lw=0.9, zorder=9)
        axis.set(xlabel="x", ylabel="y", title=name, xlim=(-3.5, 3.5), ylim=(-3.5, 3.5))
        axis.tick_params(labelsize=7, pad=-2)
        axis.view_init(28, -60)
        axis.set_box_aspect((1, 1, 0.8), zoom=0.85)
    figure.suptitle("Draws of the paper's sampler (bars) and the true density (wires)")
    save(figure, out, "figure3")


def draw_differences(out, results):
    figure, axes = plt.subplots(
        2, len(results["exact"]), figsize=(12, 4.6), sharex=True, sharey=True, layout="constrained"
    )
    for line, (sampler, by_region) in zip(axes, results.items(), strict=True):
        for axis, (name, result) in zip(line, by_region.items(), strict=True):
            total, expected = result["draws"], result["expected"]
            error = np.sqrt(np.maximum(expected, 1e-9) * result["tau"] / total)
            z = np.where(
                expected * total > 5, (result["counts"] / total - expected) / error, np.nan
            )
            mesh = axis.pcolormesh(EDGES, EDGES, z.T, cmap="PuOr", vmin=-4, vmax=4)
            stray = (expected == 0) & (result["counts"] > 0)
            where = np.argwhere(stray) * SIDE + EDGES[0] + SIDE / 2
            axis.plot(*where.T, "x", color="black", markersize=4)
            title = f"{name}\n{result['outside']} outside, p = {result['p']:.2g}"
            axis.set(aspect="equal", title=title, xlim=(-3.5, 3.5), ylim=(-3.5, 3.5))
        line[0].set_ylabel(f"{sampler}\ny")
    for axis in axes[1]:
        axis.set_xlabel("x")
    figure.colorbar(mesh, ax=axes, label="(histogram − truth) / standard error", shrink=0.8)
    figure.suptitle("Difference from the true probabilities; × marks squares wholly outside")
    save(figure, out, "figure3_difference")


# %%
@only_errors()
def main(quick, out):
    draws, cores = (6000, 1) if quick else (100_000, 2)
    names = [name for name in REGIONS if not quick or name[:3] in ("(b)", "(e)")]
    results = {
        sampler: {name: study(name, sampler, draws, i, cores) for i, name in enumerate(names)}
        for sampler in SAMPLERS
    }
    draw_histograms(out, results["smoothed"])
    draw_differences(out, results)
    leaks = {name: leak(REGIONS[name]) for name in names}
    numbers = {
        sampler: {
            name: {k: v for k, v in result.items() if k not in ("counts", "expected")}
            for name, result in by_region.items()
        }
        for sampler, by_region in results.items()
    }
    rows = []
    for name in names:
        ours, exact = (numbers[s][name] for s in SAMPLERS)
        text = (
            f"smoothed: p = {ours['p']:.2g}, {ours['outside']} outside "
            f"({leaks[name] * draws:.0f} expected); exact: p = {exact['p']:.2g}, "
            f"{exact['outside']} outside"
        )
        fits = min(ours["p"], exact["p"]) > 0.001 and exact["outside"] == 0
        rows.append(row("3 " + name, "chi-square", '"very well"', text, "yes" if fits else "no"))
    worst = max(result["gradient_error"] for result in numbers["smoothed"].values())
    rows.append(
        row(
            "Table 1",
            "largest difference of the gradients, over μ",
            "closed forms",
            f"{worst:.0e}",
            "yes" if worst < 1e-9 else "no",
        )
    )
    numbers["leak"] = leaks
    return write(out, "figure3", numbers, rows)


# %%
if __name__ == "__main__":
    run(main)
