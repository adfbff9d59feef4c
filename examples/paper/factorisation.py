# %% [markdown]
# # Figures 5 and 6: Bayesian non-negative matrix factorisation
#
# X (1000 × 36) = W (1000 × 4) A (4 × 36) + noise of 0.5; exponential priors of rate one on W and A.
# The paper's sampler (ε = 0.002, L = 200, μ = 200), the Gibbs sampler of Schmidt et al. 2009, our
# automatic exact sampler, and PyMC's NUTS, on the same data. The measure is mean |X − WA| at each
# iteration; it does not depend on the order of the base images.

# %%
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from scipy import stats
from scipy.optimize import linear_sum_assignment

import pymc_rollback as rb
from benchmarks.samplers import only_errors
from examples.paper.comparators import factor_gibbs
from examples.paper.shared import BLUE, GREEN, ORANGE, RED, SKY, row, run, save, write

NOISE, RATE, BASES = 0.5, 1.0, 4
PAPER = {"sharpness": 200.0, "step_size": 0.002, "n_steps": 200, "exact": False}
REPORTED = {"RBHMC": (0.4023819, 0.0013394), "Gibbs": (0.4065109, 0.0013314)}
BURN_IN = 100
SHARPER = {**PAPER, "sharpness": 1000.0, "step_size": 0.0004, "n_steps": 1000}
COLOURS = {"RBHMC": ORANGE, "μ = 1000": SKY, "Gibbs": GREEN, "automatic": BLUE, "NUTS": RED}


# %% [markdown]
# The data: four base images (after Griffiths and Ghahramani), each present with probability ½.


# %%
def base_images():
    pictures = [
        "010000 111000 010000 000000 000000 000000",
        "000111 000101 000111 000000 000000 000000",
        "000000 000000 000000 100000 110000 111000",
        "000000 000000 000000 000111 000010 000010",
    ]
    return np.array([[float(c) for c in p.replace(" ", "")] for p in pictures])


def make_data(n, seed):
    rng = np.random.default_rng(seed)
    present = rng.integers(0, 2, size=(n, BASES)).astype(float)
    return present @ base_images() + NOISE * rng.standard_normal((n, 36))


def starts(data, seed):
    """Random factors, of about the right size: the paper does not say how it starts.

    From draws of the priors, which are four times as large, some runs end in a local mode.
    """
    rng = np.random.default_rng([5, seed])
    return rng.random((len(data), BASES)) / 2, rng.random((BASES, 36)) / 2, rng


def difference(data, weights, bases):
    return np.mean(np.abs(data - weights @ bases))


# %%
def build(data, transform):
    """The model; the paper's sampler draws slightly below zero, where a log has no value."""
    options = {} if transform else {"default_transform": None}
    with pm.Model() as model:
        weights = pm.Exponential("weights", RATE, shape=(len(data), BASES), **options)
        bases = pm.Exponential("bases", RATE, shape=(BASES, 36), **options)
        pm.Normal("X", weights @ bases, NOISE, observed=data)
    return model


def run_gibbs(data, draws, seed):
    weights, bases, rng = starts(data, seed)
    return factor_gibbs(data, weights, bases, NOISE, RATE, draws, rng), bases


class Rollback:
    """RollbackHMC as a loop that keeps the difference of each draw; compiled once."""

    def __init__(self, data, **settings):
        self.data = data
        with build(data, transform=False):
            self.step = rb.RollbackHMC(**settings)

    def run(self, tune, draws, seed):
        weights, bases, rng = starts(self.data, seed)
        self.step.set_rng(rng)
        point = {"weights": weights, "bases": bases}
        differences = np.empty(tune + draws)
        self.steps = 0
        for i in range(tune + draws):
            if i == tune:
                self.step.stop_tuning()
            point, [stat] = self.step.step(point)
            self.steps += stat["n_steps"] if i >= tune else 0
            differences[i] = difference(self.data, point["weights"], point["bases"])
        self.steps /= draws
        self.negative = np.mean(point["bases"] < 0)
        return differences, point["bases"]


def run_nuts(data, tune, draws, seed):
    weights, bases, _ = starts(data, seed)
    with build(data, transform=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        idata = pm.sample(
            draws=draws,
            tune=tune,
            chains=1,
            cores=1,
            random_seed=seed,
            initvals={"weights": weights, "bases": bases},
            init="adapt_diag",
            nuts_sampler="pymc",
            progressbar=False,
            discard_tuned_samples=False,
            compute_convergence_checks=False,
        )
    groups = "warmup_posterior", "posterior"
    both = [
        np.concatenate([idata[group][name].values[0] for group in groups])
        for name in ("weights", "bases")
    ]
    return np.array([difference(data, w, a) for w, a in zip(*both, strict=True)]), both[1][-1]


# %%
def matched(bases):
    """Base images in the order of the true ones, and their correlations with them."""
    true = base_images()
    likeness = np.corrcoef(true, bases)[:BASES, BASES:]
    rows, columns = linear_sum_assignment(-likeness)
    return bases[columns], likeness[rows, columns]


def summary(differences, skipped):
    """Mean over runs and draws; its standard error; the paper's sd over runs; the runs' means."""
    kept = np.array([x[skipped:] for x in differences])
    means = kept.mean(axis=1)
    runs = len(means)
    return {
        "mean": means.mean(),
        "standard_error": means.std(ddof=1) / np.sqrt(runs) if runs > 1 else np.nan,
        "sd_over_runs": kept.std(axis=0, ddof=1).mean() if runs > 1 else np.nan,
        "runs": means,
    }


# %%
def draw_images(out, data, images):
    lines = {"true": base_images(), "data": data[:4], **images}
    figure, axes = plt.subplots(len(lines), 4, figsize=(5, 1.05 * len(lines)), layout="constrained")
    for line, (name, pictures) in zip(axes, lines.items(), strict=True):
        for axis, picture in zip(line, pictures, strict=True):
            mesh = axis.imshow(picture.reshape(6, 6), cmap="cividis", vmin=-0.5, vmax=1.5)
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    figure.colorbar(mesh, ax=axes, label="pixel", shrink=0.6)
    save(figure, out, "figure5")


def draw_differences(out, results, summaries):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
    for name, runs in results.items():
        lines = np.array(runs)
        iteration = np.arange(1, lines.shape[1] + 1)
        for axis in (left, right):
            axis.plot(iteration, lines.mean(axis=0), color=COLOURS[name], lw=1, label=name)
    left.set(xscale="log", yscale="log", xlabel="iteration", ylabel="mean |X − WA|")
    left.set_title("all iterations, mean of the runs (warm-up included)")
    for (name, (value, _)), style in zip(REPORTED.items(), ("--", ":"), strict=True):
        right.axhline(value, color="black", ls=style, lw=1, label=f"{name} in the paper")
    middle = summaries["Gibbs"]["mean"]
    right.set(xlabel="iteration", ylim=(middle - 0.012, middle + 0.012))
    right.set_title("the same, closer")
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=6)
    save(figure, out, "figure6")


# %%
@only_errors()
def main(quick, out):
    n, draws, runs = (100, 200, 2) if quick else (1000, 2000, 10)
    # automatic: runs, warm-up, draws; then NUTS
    auto, nuts = ((2, 150, 100), (0, 0, 0)) if quick else ((10, 500, 500), (2, 500, 500))
    data = make_data(n, seed=6)
    smoothed, sharper, automatic = (Rollback(data, **x) for x in (PAPER, SHARPER, {}))
    plans = {
        "RBHMC": (runs, BURN_IN, lambda r: smoothed.run(0, draws, r)),
        "μ = 1000": (0 if quick else 2, BURN_IN, lambda r: sharper.run(0, 500, r)),
        "Gibbs": (runs, BURN_IN, lambda r: run_gibbs(data, draws, r)),
        "automatic": (auto[0], auto[1], lambda r: automatic.run(*auto[1:], r)),
        "NUTS": (nuts[0], nuts[1], lambda r: run_nuts(data, *nuts[1:], r + 1)),
    }
    results, images, summaries, likeness = {}, {}, {}, {}
    for name, (repeats, skipped, once) in plans.items():
        if repeats == 0:
            continue
        started = time.process_time()
        pairs = [once(r) for r in range(repeats)]
        seconds = (time.process_time() - started) / repeats
        results[name] = [differences for differences, _ in pairs]
        images[name], likeness[name] = matched(pairs[0][1])
        summaries[name] = {**summary(results[name], skipped), "seconds_per_run": seconds}
        print(f"{name}: {summaries[name]['mean']:.5f}, {seconds:.0f} s a run", flush=True)
    images.pop("μ = 1000", None)
    draw_images(out, data, images)
    draw_differences(out, results, summaries)
    gap = compare(results["RBHMC"], results["Gibbs"])
    between = across_data(draws, 4 if quick else 10, n)
    numbers = {
        "samplers": summaries,
        "likeness": likeness,
        "RBHMC_minus_Gibbs": gap,
        "negative_share_of_bases": {"RBHMC": smoothed.negative, "automatic": automatic.negative},
        "steps_per_draw_of_automatic": automatic.steps,
        "Gibbs_on_other_data": between,
    }
    return write(out, "factorisation", numbers, rows(summaries, gap, between, likeness))


def compare(first, second):
    """Difference of the runs' means, its standard error, and the p of Welch's test."""
    a, b = ([x[BURN_IN:].mean() for x in runs] for runs in (first, second))
    error = np.sqrt(np.var(a, ddof=1) / len(a) + np.var(b, ddof=1) / len(b))
    p = stats.ttest_ind(a, b, equal_var=False).pvalue
    return {"difference": np.mean(a) - np.mean(b), "standard_error": error, "p": p}


def across_data(draws, sets, n):
    """The Gibbs sampler on other data sets of the same kind: how much of the measure is data."""
    means = [
        run_gibbs(make_data(n, seed=100 + s), draws, s)[0][BURN_IN:].mean() for s in range(sets)
    ]
    return {"mean": np.mean(means), "sd": np.std(means, ddof=1), "runs": means}


def rows(summaries, gap, between, likeness):
    lines = []
    for name, found in summaries.items():
        value, sd = REPORTED.get(name, (None, None))
        paper = f"{value:.4f} (sd {sd:.4f})" if value else "(not in the paper)"
        mean, error, spread = (found[k] for k in ("mean", "standard_error", "sd_over_runs"))
        text = f"{mean:.5f} ± {error:.5f} (sd {spread:.4f})"
        agreement = "biased by smoothing, less so" if name == "μ = 1000" else "exact"
        if value:
            away = (value - between["mean"]) / between["sd"]
            agreement = f"paper's is {away:+.1f} sd of the data from ours"
        lines.append(row("6", f"mean abs. difference, {name}", paper, text, agreement))
    lines.append(
        row(
            "6",
            "RBHMC − Gibbs",
            "−0.0041, significant",
            f"{gap['difference']:+.5f} ± {gap['standard_error']:.5f} (p = {gap['p']:.2g})",
            "yes" if gap["p"] < 0.01 and gap["difference"] < 0 else "no",
        )
    )
    worst = min(x.min() for x in likeness.values())
    lines.append(
        row(
            "5",
            "correlation of drawn and true base images",
            '"clean restoration"',
            f"at least {worst:.3f}",
            "yes" if worst > 0.9 else "no",
        )
    )
    return lines


# %%
if __name__ == "__main__":
    run(main)
