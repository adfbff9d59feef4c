"""Pictures of the region, of the distances to its walls, and of how probable constraints are."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_rollback.diagnostics.draws import RegionDraws
from pymc_rollback.diagnostics.probability import ConstraintProbability
from pymc_rollback.diagnostics.walls import wall_summary
from pymc_rollback.graph.text import shown
from pymc_rollback.region.arguments import require_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINDS = 0.05
"""Pressure from which a wall is marked: an exponential has 1 at zero."""

INTERVAL = (0.03, 0.97)
"""Quantiles of an interval of distances, as in ArviZ's forests."""

CHARACTER = 0.08
"""Width of a character of a label, in inches."""

MARKED, UNMARKED = "C1", "C0"


def plot_walls(
    idata: Any,
    model: pm.Model | None = None,
    *,
    names: Collection[str] | None = None,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Plot how far the draws are from each wall, in standard deviations of the slack.

    A line is the interval of 94 % of the draws, with a point at the median. Of a constraint with
    several elements, the nearest counts. What binds is on top, in orange, with its pressure.

    Parameters
    ----------
    idata
        What ``pm.sample`` returned.
    model
        The model; the context's if left out.
    names
        Names of constraints, or of the variables and Potentials that they belong to; all if left
        out.
    ax
        Where to plot; a new figure if left out.
    figsize
        Width and height of a new figure, in inches.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ImportError
        Where matplotlib is not installed.
    TypeError, ValueError
        As :func:`wall_summary` does.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> idata = rb.sample(200, tune=200, model=model, chains=2, progressbar=False, random_seed=1)
    >>> ax = rb.plot_walls(idata, model)
    >>> sorted(label.get_text() for label in ax.get_yticklabels())
    ['sum', 'x.lower']
    """
    model = require_model(model).root
    draws = RegionDraws(model, idata)
    rows = wall_summary(idata, model, names=names).rows
    ax = make_axes(ax, figsize or (7, 1.2 + 0.4 * len(rows)))
    for height, row in enumerate(reversed(rows)):
        distances = draws.distances(row.name)
        colour = MARKED if row.pressure > BINDS else UNMARKED
        low, middle, high = np.quantile(distances, [INTERVAL[0], 0.5, INTERVAL[1]])
        ax.plot([low, high], [height, height], color=colour, linewidth=2)
        ax.plot(middle, height, "o", color=colour)
        note = f"{row.pressure:.2f} ± {row.pressure_error:.2f}"
        ax.annotate(
            note, (1.02, height), xycoords=("axes fraction", "data"), va="center", color=colour
        )
    ax.axvline(0, color="black", linewidth=1)
    ax.annotate("pressure", (1.02, len(rows) - 0.4), xycoords=("axes fraction", "data"))
    ax.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlabel("distance to the wall, in standard deviations of the slack")
    ax.set_title("Walls, what binds first")
    return ax


def plot_constraint_probability(
    table: ConstraintProbability,
    *,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Plot prior and posterior probability of constraints as bars, with their standard errors.

    Parameters
    ----------
    table
        What :func:`constraint_probability` returned.
    ax
        Where to plot; a new figure if left out.
    figsize
        Width and height of a new figure, in inches.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. Where a probability is below 0.01, the axis of probabilities is logarithmic.

    Raises
    ------
    ImportError
        Where matplotlib is not installed.
    TypeError
        Where ``table`` is not what ``constraint_probability`` returned.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", shape=2)
    ...     c = rb.constrain("rising", x[0] < x[1])
    >>> table = rb.constraint_probability(model, draws=200, progressbar=False, random_seed=1)
    >>> ax = rb.plot_constraint_probability(table)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['rising']
    """
    if not isinstance(table, ConstraintProbability):
        raise TypeError(
            f"table={shown(table)} is not what constraint_probability returns. Give that: "
            "plot_constraint_probability(rb.constraint_probability(model))."
        )
    frame = table.to_frame()
    parts = [part for part in ("prior", "posterior") if frame[part].notna().any()]
    ax = make_axes(ax, figsize or (2 + 1.2 * len(frame), 4))
    places, width = np.arange(len(frame)), 0.8 / len(parts)
    for i, part in enumerate(parts):
        at = places + (i - (len(parts) - 1) / 2) * width
        errors = frame[f"{part}_error"]
        ax.bar(at, frame[part], width, yerr=errors, capsize=3, color=f"C{i}", label=part)
    smallest = frame[parts].min(axis=None)
    if smallest < 0.01:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0, 1)
    labels = list(frame.index)
    if len(parts) > 1:
        factors = frame["bayes_factor"]
        labels = [f"{name}\nBayes factor {x:.3g}" for name, x in factors.items()]
    ax.set_xticks(places, labels)
    _tilt_where_crowded(ax, labels)
    ax.set_ylabel("probability without the constraints")
    ax.legend()
    return ax


def _tilt_where_crowded(ax: "Axes", labels: list[str]) -> None:
    """Tilt the labels of a horizontal axis that are wider than the room that each of them has."""
    longest = max(len(line) for label in labels for line in label.split("\n"))
    room = ax.get_window_extent().width / ax.figure.dpi / len(labels)
    if longest * CHARACTER > room:
        for label in ax.get_xticklabels():
            label.set(rotation=40, ha="right", rotation_mode="anchor")


def make_axes(ax: "Axes | None", figsize: tuple[float, float]) -> "Axes":
    """The axes that were given, or those of a new figure."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=figsize, layout="constrained")[1]


def pyplot() -> Any:
    """matplotlib.pyplot, which the package needs for pictures only."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "matplotlib is not installed, which pictures are drawn with. Install it: "
            "pip install 'pymc-rollback[plot]'."
        ) from error
    return plt
