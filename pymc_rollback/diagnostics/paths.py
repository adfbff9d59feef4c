"""A picture of trajectories, and of how they bounce off the walls."""

from collections.abc import Collection
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm

from pymc_rollback.diagnostics.draws import RegionDraws, slacks_at
from pymc_rollback.diagnostics.plots import make_axes
from pymc_rollback.diagnostics.slices import Element, Picture, name_elements
from pymc_rollback.graph.text import shown
from pymc_rollback.kernels.maps import find_values_of
from pymc_rollback.kernels.run import ready
from pymc_rollback.kernels.trajectory import traced_trajectory
from pymc_rollback.options import check_rng, check_whole
from pymc_rollback.region.arguments import require_model
from pymc_rollback.runner import Runner
from pymc_rollback.step import RollbackHMC
from pymc_rollback.stored import Stored

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WARMUP = 300
"""Draws of the warm-up before trajectories are looked at."""

FINER = 200
"""Steps in which a trajectory is drawn, so that each bounce shows."""

QUARTER_TURN = 1.6
"""Time of a trajectory that is shown for those that double."""


def plot_trajectory(
    source: Any = None,
    var_names: Collection[str] | None = None,
    *,
    trajectories: int = 4,
    random_seed: Any = 1,
    ax: "Axes | None" = None,
    figsize: tuple[float, float] | None = None,
) -> "Axes":
    """Plot a few trajectories of the sampler, and how they bounce between the walls.

    A short warm-up tunes the sampler. Each trajectory begins where the one before ended, at a
    circle, and has a dot at each contact with a bound or plane. It is drawn in finer steps than
    draws are made with. A trajectory may cross a barrier for a while: it is no draw there.

    Parameters
    ----------
    source
        The model, or a ``RollbackHMC`` for all of its variables; the context's model if left out.
    var_names
        Names of variables that have two elements together; the first two of the model if left out.
    trajectories
        How many are plotted.
    random_seed
        Seed or generator.
    ax
        Where to plot; a new figure if left out.
    figsize
        Width and height of a new figure, in inches.

    Returns
    -------
    matplotlib.axes.Axes
        The axes. The title says what is projected, and where the walls are cut.

    Raises
    ------
    ImportError
        Where matplotlib is not installed.
    TypeError, ValueError
        Where variables are unknown, or do not have two elements together; where the model has no
        constraints, or the step does not sample all of its variables.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> ax = rb.plot_trajectory(model, ["x"], trajectories=2)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x[0]', 'x[1]')
    """
    check_whole("trajectories", trajectories)
    check_rng(random_seed, "random_seed")
    step = _as_step(source)
    if not list(step.density.region):
        raise ValueError(
            "The model has no bound, no order and no constraint, so that no trajectory bounces. "
            "Give it some with rb.constrain('c', ...), or look at another model."
        )
    paths = _Paths(step, trajectories, np.random.default_rng(random_seed))
    elements = _choose(paths, var_names)
    picture = Picture(paths, elements)
    ax = make_axes(ax, figsize or (6, 5))
    picture.draw_walls(ax, 0, 1, colour="black")
    for k in range(trajectories):
        x, y = (paths.values[e.variable][e.at][k] for e in elements)
        ax.plot(x, y, color=f"C{k % 10}", linewidth=1, zorder=3)
        ax.plot(x[0], y[0], "o", color=f"C{k % 10}", fillstyle="none", zorder=4)
        bounces = np.diff(paths.contacts[k]) > 0
        ax.plot(x[1:][bounces], y[1:][bounces], ".", color=f"C{k % 10}", zorder=4)
    ax.set_title(_title(picture))
    return ax


def _as_step(source: Any) -> RollbackHMC:
    """The step that was given, or one for a model."""
    step = source
    if not isinstance(source, RollbackHMC):
        if not (source is None or isinstance(source, pm.Model)):
            raise TypeError(
                f"{shown(source)} is neither a model nor a RollbackHMC. Give one of them: "
                "plot_trajectory(model)."
            )
        step = RollbackHMC(model=require_model(source).root)
    if step.density.other_blocks:
        others = ", ".join(block.name for block in step.density.other_blocks)
        raise ValueError(
            f"The step leaves {others} to other steps, which its trajectories would wait for. Give "
            "one that samples all variables: plot_trajectory(model)."
        )
    return step


class _Paths(RegionDraws):
    """States of some trajectories: one for each chain, and its states in place of draws.

    Attributes
    ----------
    contacts
        Contacts of each trajectory until each state.
    """

    def __init__(self, step: RollbackHMC, count: int, rng: np.random.Generator) -> None:
        self.region = step.density.region
        runner = Runner(step, step.density.start, rng, WARMUP, count, False)
        stored = Stored(step.density, step.vars)
        runner.advance(Event(), WARMUP)
        found = []
        self.contacts = np.zeros((count, FINER + 1))
        for k in range(count):
            runner.advance(Event(), WARMUP + k + 1)
            path = _trace(runner, self.contacts[k])
            found.append(stored(path)[:-1])
        names = [v.name for v in stored.vars]
        columns = dict(zip(names, zip(*found, strict=True), strict=True))
        self.values = {rv.name: np.stack(columns[rv.name]) for rv in self.region.model.free_RVs}
        self.slacks = slacks_at(self.region, self.values)  # some may be outside a barrier


def _trace(runner: Runner, contacts: np.ndarray) -> np.ndarray:
    """Positions along a trajectory from the latest draw, in fine steps."""
    chain, functions = runner.chain, runner.functions
    size = (chain.learnt.time or QUARTER_TURN) / FINER
    system = chain.latest_system(runner.given, size)
    system.met[:] = 0.0
    path = np.empty((FINER + 1, chain.walls.size))
    with functions.interrupt:
        ready(traced_trajectory)(
            *functions.addresses,
            system,
            runner.point,
            size,
            FINER,
            runner.rng,
            path,
            contacts,
        )
    system.met[:] = 0.0
    return np.array([find_values_of(system.maps, position)[0] for position in path])


def _choose(paths: _Paths, names: Collection[str] | None) -> list[Element]:
    """Two elements: those of the named variables, or the first of all."""
    given, elements = name_elements(paths, names)
    if names is None and len(elements) > 2:
        return elements[:2]
    if len(elements) != 2:
        raise ValueError(
            f"var_names ({', '.join(given) or 'nothing'}) make {len(elements)} elements, and a "
            "trajectory is plotted over 2. Name variables that have two elements together."
        )
    return elements


def _title(picture: Picture) -> str:
    """What is projected, and where the walls are cut."""
    held = picture.held
    return f"Trajectories, projected; walls {held}" if held else "Trajectories and walls"
