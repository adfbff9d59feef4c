"""Gradients per effective draw against the dimension and against the number of constraints."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm

from benchmarks.measure import smallest_ess
from benchmarks.rows import Row
from benchmarks.samplers import Size, sample_with_rollback
from benchmarks.work.base import flat
from benchmarks.work.gaussian import ball, cut, polytope

PICTURE = Path("docs/scaling.png")


def box(dimension):
    """An exponential in each dimension."""
    with pm.Model() as model:
        pm.Exponential("x", 1, shape=dimension)
    return model


def typical_ball(dimension):
    """A normal cut at 0.7 of its typical radius, as `|x|² < 25` cuts one of 50 dimensions."""
    return ball(dimension, radius=(0.5 * dimension) ** 0.5)


def planes(rows):
    return cut(polytope(rows, dimension=20))


SERIES = {
    "boxes": (box, "dimension", (2, 20, 50, 200, 1000)),
    "balls": (typical_ball, "dimension", (2, 20, 50, 200, 1000)),
    "planes in 20 dimensions": (planes, "planes", (1, 10, 100, 400)),
}


def gradients_per_draw(model, draws):
    """Gradients per effective draw of the automatic sampler."""
    run = sample_with_rollback(lambda: model, flat("x"), Size(1000, draws, 2))
    return run.gradients / min(smallest_ess(run.draws))


def run(quick):
    figure, panels = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for name, (build, axis, sizes) in SERIES.items():
        sizes = sizes[:2] if quick else sizes
        cost = [gradients_per_draw(build(n), 100 if quick else 1000) for n in sizes]
        exponent = np.polyfit(np.log(sizes), np.log(cost), 1)[0]
        panel = panels[int(axis == "planes")]
        panel.loglog(sizes, cost, "o-", label=f"{name} (exponent {exponent:.2f})")
        panel.set(xlabel=axis, ylabel="gradients per effective draw")
        for n, each in zip(sizes, cost, strict=True):
            yield Row(f"{name}: gradients per effective draw, {axis} {n}", each, np.nan)
        yield Row(f"{name}: fitted exponent", exponent, np.nan)
    for panel in panels:
        panel.legend()
    if not quick:
        figure.savefig(PICTURE, dpi=100)
    plt.close(figure)
