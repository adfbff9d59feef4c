"""What one chain has drawn so far, as arrays, and what PyMC stores of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_rollback.chain.draw import Batch
from pymc_rollback.chain.options import Options
from pymc_rollback.chain.tally import tell_nothing, wall_stats
from pymc_rollback.kernels.state import BEYOND, LOG_DENSITY, POSITION, SLOPE
from pymc_rollback.kernels.stats import DIVERGING, INSIDE, STEPS, TREE_DEPTH, TYPES
from pymc_rollback.target.walls import Walls

GRADIENTS, BEGUN, STEP_SIZE, SHARPNESS, INNER, DENSE, CURVED, MAPPED, TIME = range(9)
SECONDS, PROCESSOR = range(9, 11)
"""Columns of what a record has beside outcomes; those from the third on a batch has in common."""


class Record:
    """Draws of a chain, in arrays that have room for all of them.

    One thread writes, and others may read.

    Parameters
    ----------
    room
        Number of draws that may be kept.
    walls
        The walls, which know what sharpness to show.
    tune
        How many of the draws are of the warm-up.

    Attributes
    ----------
    draws
        Number of draws that are there.
    positions, log_densities
        The draws in terms of the coordinates, and the log density that is sampled.
    outcomes, costs
        What happened along the trajectories, and what they were run with and took.
    told
        What the walls tell of the draws.
    """

    def __init__(self, room: int, walls: Walls, tune: int) -> None:
        self.room, self.walls, self.tune = room, walls, tune
        self.draws = 0
        self.positions = np.empty((room, walls.size))
        self.log_densities = np.empty(room)
        self.outcomes = np.empty((room, len(TYPES)))
        self.costs = np.empty((room, PROCESSOR + 1))
        self.told = tell_nothing(walls, room)

    def __getstate__(self) -> dict[str, Any]:
        kept = {"positions", "log_densities", "outcomes", "costs", "told"}
        return {k: x[: self.draws] if k in kept else x for k, x in vars(self).items()}

    def clear(self) -> None:
        """Forget the warm-up."""
        self.draws = self.tune = 0

    def add(self, batch: Batch, begun: float, seconds: float, processor: float) -> None:
        """Append the draws of a batch.

        Parameters
        ----------
        batch
            The draws.
        begun, seconds, processor
            When their making began, and the seconds that it took, by the clock and of a processor.
        """
        count = len(batch.gradients)
        rows = slice(self.draws, self.draws + count)
        size = batch.points.shape[2] - BEYOND
        drawn = batch.drawn
        self.positions[rows] = drawn[:, POSITION, :size]
        self.log_densities[rows] = drawn[:, SLOPE, LOG_DENSITY]
        self.outcomes[rows] = batch.outcomes
        self.told[rows] = batch.told
        costs = self.costs[rows]
        costs[:, GRADIENTS] = batch.gradients
        costs[:, BEGUN] = begun + seconds / count * np.arange(count)
        sharpness = self.walls.typical_sharpness(batch.system.sharpness)
        choice = batch.choice
        run_with = batch.step_size, sharpness, batch.system.inner
        chosen = choice.dense, choice.curved, batch.mapped, choice.time
        costs[:, STEP_SIZE:] = *run_with, *chosen, seconds / count, processor / count
        self.draws = rows.stop

    def latest(self) -> dict[str, Any]:
        """Statistics of the last draw that a progress bar shows."""
        last = self.draws - 1
        return {
            "divergences": int(self.outcomes[self.tune : self.draws, DIVERGING].sum()),
            "n_steps": int(self.costs[last, GRADIENTS]),
            "step_size": float(self.costs[last, STEP_SIZE]),
            "inside": float(self.outcomes[last, INSIDE]),
        }

    def stats(
        self, types: Mapping[str, Any], options: Options, model_logp: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Statistics of the draws by the names that PyMC has for them.

        Parameters
        ----------
        types
            Type of each statistic.
        options
            What the chain was given.
        model_logp
            Log density of the model at the draws.
        """
        outcomes, costs = self.outcomes[: self.draws], self.costs[: self.draws]
        tuning = np.arange(self.draws) < self.tune
        depth, steps = outcomes[:, TREE_DEPTH], outcomes[:, STEPS]
        columns = {
            **dict(zip(TYPES, outcomes.T, strict=True)),
            "divergences": np.cumsum(np.where(tuning, 0, outcomes[:, DIVERGING])),
            "model_logp": model_logp,
            "n_steps": costs[:, GRADIENTS],
            "step_size": costs[:, STEP_SIZE],
            "sharpness": costs[:, SHARPNESS],
            "reached_max_treedepth": depth == options.max_treedepth,
            "wall_steps": steps * costs[:, INNER],
            "dense_metric": costs[:, DENSE],
            "follows_curvature": costs[:, CURVED],
            "mapped": costs[:, MAPPED],
            "trajectory_time": costs[:, TIME],
            "tune": tuning,
            "perf_counter_diff": costs[:, SECONDS],
            "perf_counter_start": costs[:, BEGUN],
            "process_time_diff": costs[:, PROCESSOR],
            "warning": np.full(len(costs), None),
            **dict(
                zip(wall_stats(self.walls), self.told[: self.draws].swapaxes(0, 1), strict=True)
            ),
        }
        # the type of a vector is that of its elements
        return {name: columns[name].astype(np.dtype(x).base) for name, x in types.items()}
