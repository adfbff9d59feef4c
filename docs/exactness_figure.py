"""Draw docs/exactness.png: smoothed, mirrored and true density at a wall.

A normal(0.5, 1) cut at zero, sampled with the same soft wall (sharpness 4) by the paper's sampler
and by the exact one. Run: python docs/exactness_figure.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
from scipy import stats

import pymc_rollback as rb

SHARPNESS, DRAWS = 4.0, 40_000
BLUE, ORANGE = "#0072B2", "#E69F00"  # Okabe and Ito: distinct to the colour-blind


def sample(exact):
    with pm.Model() as model:
        pm.TruncatedNormal("x", 0.5, 1, lower=0, default_transform=None, initval=1.0)
        step = rb.RollbackHMC(
            sharpness=SHARPNESS,
            step_size=0.2,
            n_steps=10,
            exact=exact,
            rng=np.random.default_rng(1),
        )
    point, draws = model.initial_point(), np.empty(DRAWS)
    for i in range(DRAWS):
        point, _ = step.step(point)
        draws[i] = point["x"]
    return draws


def main():
    truth = stats.truncnorm(-0.5, np.inf, loc=0.5)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True, sharey=True)
    panels = {"smoothed (exact=False)": (False, ORANGE), "mirrored (exact=True)": (True, BLUE)}
    x = np.linspace(-1.5, 3.5, 1001)
    for axis, (title, (exact, colour)) in zip(axes, panels.items(), strict=True):
        draws = sample(exact)
        bins = np.arange(-1.5, 3.51, 0.1)
        heights, _ = np.histogram(draws, bins)
        axis.stairs(heights / DRAWS / 0.1, bins, fill=True, color=colour, alpha=0.6, label="draws")
        axis.plot(x, truth.pdf(x), color="black", linewidth=1.5, label="true density")
        axis.axvline(0, color="black", linestyle=":", linewidth=1, label="wall")
        outside = np.mean(draws < 0)
        axis.set_title(f"{title}\n{outside:.1%} of {DRAWS:,} draws outside", fontsize=10)
        axis.set_xlabel("x")
        axis.legend(frameon=False, fontsize=9)
    axes[0].set_ylabel("density")
    axes[0].set_xlim(-1.5, 3.5)
    figure.suptitle("Normal(0.5, 1) cut at 0, with the same soft wall of sharpness 4", fontsize=11)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix("").with_name("exactness.png"), dpi=130)


if __name__ == "__main__":
    main()
