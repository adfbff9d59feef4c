"""Draw docs/divergences.png: one model under PyMC's NUTS, and under RollbackHMC.

A normal between two circles; the constraint is a Potential. Run: python docs/divergences_figure.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_rollback as rb

BLUE, ORANGE = "#0072B2", "#E69F00"  # Okabe and Ito: distinct to the colour-blind


def sample(step=None):
    with pm.Model():
        x = pm.Normal("x", 0, 1, shape=2)
        distance = pt.sum(x**2)
        pm.Potential("ring", pt.switch((1 < distance) & (distance < 4), 0, -np.inf))
        return pm.sample(step=step and step(), chains=2, random_seed=1, progressbar=False)


def draw(axis, title, idata):
    x, y = idata["posterior"]["x"].values.reshape(-1, 2).T
    diverging = idata["sample_stats"]["diverging"].values.ravel()
    axis.plot(x[~diverging], y[~diverging], ".", color=BLUE, markersize=3, alpha=0.6)
    axis.plot(x[diverging], y[diverging], "x", color=ORANGE, markersize=4)
    for radius in (1, 2):
        axis.add_patch(plt.Circle((0, 0), radius, fill=False, color="black", linewidth=1))
    axis.set_title(f"{title}\n{diverging.sum():,} of {diverging.size:,} draws diverge", fontsize=10)
    axis.set_aspect("equal")


def main():
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.3), sharex=True, sharey=True)
    draw(axes[0], "before: pm.sample()", sample())
    draw(axes[1], "after: pm.sample(step=rb.RollbackHMC())", sample(rb.RollbackHMC))
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("divergences.png"), dpi=110)


if __name__ == "__main__":
    main()
