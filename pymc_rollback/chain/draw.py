"""Draws, and what surrounds the coordinates while they are made."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.choice import Choice
from pymc_rollback.chain.maps import count_mapped
from pymc_rollback.kernels.maps import in_values
from pymc_rollback.kernels.state import Point, System, read_point
from pymc_rollback.kernels.stats import Outcome, as_outcome


class Given(NamedTuple):
    """What surrounds the coordinates in a step.

    Attributes
    ----------
    others
        Values of the other variables.
    lower, upper
        Bounds of all coordinates.
    reflecting
        Lower and upper bounds at which coordinates are reflected; infinite for all others.
    bounded
        Which of those coordinates have a finite bound.
    stays
        Whether all of this is the same for the whole chain.
    """

    others: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    reflecting: tuple[np.ndarray, np.ndarray]
    bounded: np.ndarray
    stays: bool


class Draw(NamedTuple):
    """A draw, and how it came about.

    Attributes
    ----------
    point, last
        The draw, and where a trajectory that diverged did so, as the kernels have them.
    outcome
        What happened along the trajectory.
    gradients
        Evaluations of the model since the draw before, whatever they were made for.
    told
        What the walls tell of the draw, an array for each statistic.
    step_size, choice, system
        What the trajectory was run with.
    """

    point: np.ndarray
    last: np.ndarray
    outcome: Outcome
    gradients: int
    told: tuple[np.ndarray, ...]
    step_size: float
    choice: Choice
    system: System

    @property
    def here(self) -> Point:
        """The draw: its position, and the log density and its gradient there."""
        return read_point(self.point)

    @property
    def drawn(self) -> Point:
        """The draw in terms of values, as the density has them."""
        return self._in_values(self.point)

    @property
    def diverged_at(self) -> Point:
        """The values at which the trajectory diverged, if it did."""
        return self._in_values(self.last)

    @property
    def mapped(self) -> int:
        """Number of coordinates that move under a log or a logit."""
        return count_mapped(self.system.maps)

    def _in_values(self, point: np.ndarray) -> Point:
        [point] = in_values(self.system.maps, point[None])
        return read_point(point)


class Batch(NamedTuple):
    """Draws that were made in one call, one after the other, as arrays of as many rows.

    Attributes
    ----------
    points, lasts
        The draws, and where trajectories that diverged did so, as the kernels have them.
    outcomes
        What happened along the trajectories: columns as the fields of :class:`Outcome`.
    gradients
        Evaluations of the model since the draw before, whatever they were made for.
    told
        What the walls tell of each draw, as ``chain/tally.py`` says it.
    step_size, choice, system
        What the trajectories were run with.
    """

    points: np.ndarray
    lasts: np.ndarray
    outcomes: np.ndarray
    gradients: np.ndarray
    told: np.ndarray
    step_size: float
    choice: Choice
    system: System

    @property
    def drawn(self) -> np.ndarray:
        """The draws in terms of values, as the density has them."""
        return in_values(self.system.maps, self.points)

    @property
    def mapped(self) -> int:
        """Number of coordinates that move under a log or a logit."""
        return count_mapped(self.system.maps)

    @property
    def draws(self) -> list[Draw]:
        """The draws, one by one."""
        outcomes = map(as_outcome, self.outcomes.tolist())
        gradients = self.gradients.tolist()
        told = map(tuple, self.told)
        rows = zip(self.points, self.lasts, outcomes, gradients, told, strict=True)
        return [Draw(*row, self.step_size, self.choice, self.system) for row in rows]
