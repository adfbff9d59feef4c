r"""How steep barriers are: in units of the metric, so that no scale of a constraint matters.

From the steepness :math:`s` the sharpness of a row of the joint constraints follows as
:math:`\mu_j = s / |\nabla g_j|_{M^{-1}}` at the wall.
"""

import numpy as np

from pymc_rollback.chain.metric import Metric
from pymc_rollback.kernels.maps import find_values_of
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import Walls

OUTSIDE, OUTSIDE_AT_END = 0.2, 0.1
"""Share of states that may be outside the joint constraints, and of ends that are not selected."""

STEEPNESS = (1.0, 10.0, 100.0)
"""Least, first and greatest slope of a boundary term, per standard deviation."""

STEEP = 40.0
"""First slope of a boundary term for trajectories of which only the end counts."""

WALL_SEARCH = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Distances, in standard deviations, at which a wall is looked for."""


def excess(outside: float, steps: int, timed: bool) -> float:
    """By how much states were outside more often than wanted; at most one.

    Parameters
    ----------
    outside
        Share of the states of a trajectory that were outside, its start among them.
    steps
        Number of its steps.
    timed
        Whether only its end may be the draw.
    """
    if not timed:
        return min(outside / OUTSIDE - 1.0, 1.0)
    # each end is outside or not: cut off at one, ends that are would not count as they should
    ends = (1 + 1 / steps) * outside
    return (ends - OUTSIDE_AT_END) / (1 - OUTSIDE_AT_END)


def tune(log_steepness: float, excess: float, iteration: int) -> float:
    """Make barriers steeper where states were outside more often than wanted, by so much."""
    rate = 2.0 / (10.0 + iteration) ** 0.6
    low, _, high = np.log(STEEPNESS)
    return float(min(max(log_steepness + rate * excess, low), high))


def first(timed: bool) -> float:
    """Logarithm of the steepness of barriers that nothing is known of."""
    return float(np.log(STEEP if timed else STEEPNESS[1]))


def wall_lengths(
    metric: Metric,
    maps: np.ndarray,
    walls: Walls,
    slacks: Slacks,
    position: np.ndarray,
    others: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Lengths of the rows' gradients near each row's wall.

    Where all rows are affine, taken at the chain's position. Else, for each row, at the one of
    several points around at which its wall is nearest, by its slack over the gradient's length.
    """
    spread, rows = np.sqrt(metric.variances), walls.barrier_rows
    best = np.full(rows, np.inf)
    lengths = np.ones_like(best)
    for scale in (0.0,) if walls.is_affine else WALL_SEARCH:
        near = position + scale * spread * rng.normal(size=position.size)
        with np.errstate(all="ignore"):
            # far out a gradient may overflow
            values, stretch = find_values_of(maps, near)
            found = metric.lengths(slacks.gradients(values, others, rows) * stretch)
            distance = np.abs(slacks.rows(values, others)[:rows]) / found
        better = np.isfinite(found) & (found > 0) & (distance < best)
        best, lengths = np.where(better, distance, best), np.where(better, found, lengths)
    return lengths
