"""A picture of the region: the draws of pairs of elements, and the walls around them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_rollback.diagnostics.draws import RegionDraws, evaluate
from pymc_rollback.diagnostics.plots import pyplot
from pymc_rollback.options import check_list_of_names
from pymc_rollback.region.arguments import require_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID = 60
"""Points of the grid, to a side, on which slacks are looked at."""

MARGIN = 0.15
"""Part of the range of the draws that is shown around them."""

MOST_ELEMENTS = 6
"""Elements of variables in a grid of pairs."""

MOST_NAMED = 10
"""Walls in a legend: there are no more colours."""

MOST_HELD = 3
"""Elements held fixed that a title names."""


@dataclass(frozen=True)
class Element:
    """One number of a variable, and its name: by coordinates, where the model has them."""

    variable: str
    index: tuple[int, ...]
    label: str

    @property
    def at(self) -> Any:
        """Where it is in an array of many points, on the axes after the first two."""
        return (slice(None), slice(None), *self.index)


def plot_region(
    model: pm.Model | None,
    idata: Any,
    var_names: Collection[str] | None = None,
    *,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes | np.ndarray":
    """Plot the draws over the region: walls as lines, what is outside shaded.

    Each draw has the colour of the wall that is nearest, in standard deviations of its slack. The
    walls are a slice of the region: all that is not on the axes is held fixed at one draw, that
    nearest to the median of all. Where there is more than that, draws may lie in the shade.

    Parameters
    ----------
    model
        The model; the context's if None.
    idata
        What ``pm.sample`` returned.
    var_names
        Names of variables, of two to six elements together; all variables if left out. Above two
        there is a grid of pairs.
    ax
        Where to plot a single pair; a new figure if left out.
    figsize
        Width and height of a new figure, in inches.

    Returns
    -------
    matplotlib.axes.Axes or numpy.ndarray
        The axes, or those of a grid.

    Raises
    ------
    ImportError
        Where matplotlib is not installed.
    TypeError, ValueError
        Where ``idata`` is not what ``pm.sample`` returned for this model; where variables are
        unknown, or too few or too many.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> idata = rb.sample(200, tune=200, model=model, chains=2, progressbar=False, random_seed=1)
    >>> ax = rb.plot_region(model, idata, ["x"])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x[0]', 'x[1]')
    """
    model = require_model(model).root
    draws = RegionDraws(model, idata)
    elements = _elements(draws, var_names)
    plt = pyplot()
    count = len(elements)
    if count > 2 and ax is not None:
        raise ValueError(
            f"ax is for one pair, and {', '.join(e.label for e in elements)} make a grid. Leave ax "
            "out, or name variables that have two elements."
        )
    picture = Picture(draws, elements)
    if count == 2:
        if ax is None:
            _, ax = plt.subplots(figsize=figsize or (6, 5), layout="constrained")
        picture.draw(ax, 0, 1)
        ax.set_title(picture.title)
        picture.add_legend(ax, loc="upper left", bbox_to_anchor=(1, 1))
        return ax
    figure, axes = plt.subplots(
        count - 1,
        count - 1,
        figsize=figsize or (2.5 * count, 2.5 * count),
        sharex="col",
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for panel in axes[np.triu_indices(count - 1, 1)]:
        panel.set_visible(False)
    for i, j in combinations(range(count), 2):
        picture.draw(axes[j - 1, i], i, j)
        axes[j - 1, i].label_outer()
    figure.suptitle(picture.title)
    picture.add_legend(figure, loc="outside right upper")
    return axes


class Picture:
    """What all pairs have in common.

    Parameters
    ----------
    draws
        Draws of the model.
    elements
        What is on the axes.
    """

    def __init__(self, draws: RegionDraws, elements: Sequence[Element]) -> None:
        self.region, self.elements = draws.region, elements
        self.constraints = draws.constraints
        self.columns = [draws.values[e.variable][e.at].ravel() for e in elements]
        slacks = [draws.slacks[c.name].min(axis=2).ravel() for c in self.constraints]
        self.spreads = [float(s.std()) or 1.0 for s in slacks]
        self.distances = np.stack([s / r for s, r in zip(slacks, self.spreads, strict=True)])
        self.centre = _central_draw(draws)

    @property
    def title(self) -> str:
        """What is held fixed."""
        held = self.held
        if not held:
            return "Draws and walls"
        return f"Draws, and walls {held}"

    @property
    def held(self) -> str:
        """Where all else is that the walls depend on; empty if there is nothing else."""
        shapes = {name: x.shape for name, x in self.centre.items()}
        everything = elements_of(self.region.model, shapes)
        held = [element for element in everything if element not in self.elements]
        if not held and len(self.elements) == 2:
            return ""
        if len(held) > MOST_HELD or len(self.elements) > 2:
            return "with all else held at a central draw"
        return "at " + ", ".join(
            f"{element.label} = {self.centre[element.variable][element.index]:.3g}"
            for element in held
        )

    def draw(self, ax: "Axes", i: int, j: int) -> None:
        """Draw the draws of one pair of elements over the walls."""
        self.draw_walls(ax, i, j)
        nearest = self.distances.argmin(axis=0)
        for k in range(len(self.constraints)):
            x, y = (self.columns[e][nearest == k] for e in (i, j))
            ax.plot(x, y, ".", markersize=2, alpha=0.4, color=f"C{k % 10}", zorder=1)

    def draw_walls(self, ax: "Axes", i: int, j: int, colour: str | None = None) -> None:
        """Draw the walls around one pair of elements, each in its own colour; shade the outside."""
        across, up = (self._grid(k) for k in (i, j))
        slacks = self._slacks_over(i, j, across, up)
        scaled = np.stack([s / spread for s, spread in zip(slacks, self.spreads, strict=True)])
        depth = scaled.min(axis=0)
        lowest = float(np.min(depth))
        if lowest < 0:
            shade = ax.contourf(across, up, depth, levels=[lowest - 1, 0], colors=["0.85"])
            shade.set_zorder(0)
        for k, slack in enumerate(slacks):
            if np.min(slack) < 0 < np.max(slack):
                ax.contour(across, up, slack, levels=[0], colors=[colour or f"C{k % 10}"], zorder=2)
        ax.set(xlabel=self.elements[i].label, ylabel=self.elements[j].label)

    def add_legend(self, place: "Axes | Figure", **options: Any) -> None:
        """Name the walls that draws are nearest to, each with their share and its colour."""
        counts = np.bincount(self.distances.argmin(axis=0), minlength=len(self.constraints))
        shares = counts / counts.sum()
        handles = [
            pyplot().Line2D(
                [],
                [],
                color=f"C{k % 10}",
                marker=".",
                label=f"{self.constraints[k].name} ({shares[k]:.0%})",
            )
            for k in np.argsort(-shares, kind="stable")[:MOST_NAMED]
        ]
        place.legend(handles=handles, title="nearest wall", **options)

    def _grid(self, k: int) -> np.ndarray:
        low, high = self.columns[k].min(), self.columns[k].max()
        room = MARGIN * (high - low or 1.0)
        return np.linspace(low - room, high + room, GRID)

    def _slacks_over(self, i: int, j: int, across: np.ndarray, up: np.ndarray) -> list[np.ndarray]:
        """Least slack of each constraint on a grid of two elements; below zero if undefined."""
        values = {
            name: np.broadcast_to(x, (GRID, GRID, *x.shape)).copy()
            for name, x in self.centre.items()
        }
        for k, grid in ((i, across[None, :]), (j, up[:, None])):
            element = self.elements[k]
            values[element.variable][element.at] = grid
        slacks = evaluate(self.region.model, values, [c.slack for c in self.constraints])
        undefined = -np.array(self.spreads)
        return [
            np.nan_to_num(s.min(axis=2), nan=low, posinf=None)
            for s, low in zip(slacks, undefined, strict=True)
        ]


def _elements(draws: RegionDraws, names: Collection[str] | None) -> list[Element]:
    """Elements of the named variables, two to six of them."""
    names, elements = name_elements(draws, names)
    if not 2 <= len(elements) <= MOST_ELEMENTS:
        given = ", ".join(names) or "nothing"
        raise ValueError(
            f"var_names ({given}) make {len(elements)} elements, and a picture has 2 to "
            f"{MOST_ELEMENTS}. Name variables that have so many together."
        )
    return elements


def name_elements(
    draws: RegionDraws, names: Collection[str] | None
) -> tuple[Collection[str], list[Element]]:
    """Names of variables, of all if none are given, and their elements."""
    values = draws.values
    if names is None:
        names = list(values)
    check_list_of_names("var_names", names)
    for name in names:
        if name not in values:
            raise ValueError(
                f"var_names has {name!r} in it, but the free variables of the model are "
                f"{', '.join(values)}. Give names of these."
            )
    shapes = {name: values[name].shape[2:] for name in names}
    return names, elements_of(draws.region.model, shapes)


def elements_of(model: pm.Model, shapes: Mapping[str, tuple[int, ...]]) -> list[Element]:
    """All elements of some variables."""
    elements = []
    for name, shape in shapes.items():
        dims = model.named_vars_to_dims.get(name, ())
        known = [model.coords.get(dim) for dim in dims] if len(dims) == len(shape) else []
        places = [x or range(n) for x, n in zip(known or [None] * len(shape), shape, strict=True)]
        for index in np.ndindex(shape):
            inner = ", ".join(str(x[i]) for x, i in zip(places, index, strict=True))
            elements.append(Element(name, index, f"{name}[{inner}]" if shape else name))
    return elements


def _central_draw(draws: RegionDraws) -> dict[str, np.ndarray]:
    """The draw that is nearest to the median, in standard deviations of each element."""
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in draws.values.items()}
    columns = np.concatenate([x.reshape(len(x), -1) for x in flat.values()], axis=1)
    spreads = columns.std(axis=0)
    scaled = (columns - np.median(columns, axis=0)) / np.where(spreads > 0, spreads, 1.0)
    nearest = int(np.argmin(np.sum(scaled**2, axis=1)))
    return {name: x[nearest].astype(float) for name, x in flat.items()}
