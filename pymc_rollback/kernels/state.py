"""What the kernels work on: states, and the system that stays fixed along a trajectory.

A state is one matrix: each array that is handed to a function, or taken out of a tuple, costs as
much (its reference count) as the work on a dozen coordinates.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from pymc_rollback.kernels.native import MATRIX, VECTOR

POSITION, SLOPE, MOMENTUM, VELOCITY, SPRING, PUSH = range(6)
"""Rows of a state. The answers of the model and of the walls fill rows from their beginnings.

The first two, a position and what the model says about it, are a *point*: all that one trajectory
hands to the next, so that no position is evaluated twice.
"""

BEYOND = 3
"""Columns of a state besides the coordinates: what model and walls say besides their gradients."""

LOG_DENSITY, WALL_ENERGY, LOG_WEIGHT, SLACK, CONTACTS = -3, -3, -2, -1, -1
"""Columns after the coordinates: the first in the row SLOPE, the next three in the row PUSH.

The last, in the row VELOCITY, counts the contacts with planes in a step.
"""

KIND, LEAST, MOST = range(3)
"""Rows of maps: what kind of map each coordinate has, and the bounds of its values."""

NO_MAPS = np.empty((3, 0))
"""Maps where all coordinates are values."""

INVERSE_MASS, LOWER, UPPER, PULL, PLANAR, CENTRE, FREQUENCY = range(7)
"""Rows of what is fixed for each coordinate."""

AT_NEXT, AT_UPPER, AT_LOWER = range(1, 4)
"""Where contacts are counted, in numbers of coordinates from the end.

First is what each row of a barrier says, OF_BARRIER numbers, then the contacts of each plane, and
of each coordinate with its lower and its upper bound and with the next in its order.
"""

OUTSIDE, LEAN, OF_BARRIER = range(3)
"""Of a row of a barrier: states outside, and the sum over states of how steep it is, to one."""


class System(NamedTuple):
    """What stays fixed along a trajectory.

    Attributes
    ----------
    others
        Values of variables that other step methods sample.
    sharpness
        ``mu`` of each coordinate's bounds, then of each row of the joint constraints.
    coordinates
        For each coordinate, as rows: the diagonal of the inverse mass matrix; the bounds at which
        it is reflected while it drifts, infinite where there is none; a constant slope of the
        potential that is followed exactly while it drifts, positive towards the lower bound;
        whether a plane concerns it; and centre and frequency of a quadratic that is followed
        exactly, with the frequency zero where motion is straight or falls.
    bouncing, rotating
        Which coordinates have a bound, and no plane; which have neither, and a frequency.
    turning
        Whether those that planes concern have a frequency, which is the same for all of them.
    planes
        Slacks ``A x + c`` of affine constraints: the columns of ``A``, then ``c``, as rows.
    turns
        How a velocity, the rates of all slacks and a momentum change, by twice the rate of a slack,
        at its plane: rows of ``A M^-1``, ``A M^-1 A^T`` and ``A``, over the diagonal of
        ``A M^-1 A^T``.
    dense, root
        For a dense metric the inverse mass matrix and a root ``C`` of its inverse (``p = C z``);
        else of size zero.
    ordered
        Runs of coordinates that stay in order: start, length and direction of each.
    inner
        Number of steps under the walls alone in each step; zero where there are no walls, which
        are then never called.
    met
        Contacts so far, and what barriers say, which whoever reads it sets to zero again.
    maps
        From coordinates to values; without columns where coordinates are values.
    """

    others: NDArray
    sharpness: NDArray
    coordinates: NDArray
    bouncing: NDArray
    rotating: NDArray
    turning: bool
    planes: NDArray
    turns: NDArray
    dense: NDArray
    root: NDArray
    ordered: NDArray
    inner: int
    met: NDArray
    maps: NDArray = NO_MAPS


INDICES = types.int64[::1]
SYSTEM = types.NamedTuple(
    [
        *[VECTOR] * 2,
        MATRIX,
        *[INDICES] * 2,
        types.boolean,
        *[MATRIX] * 5,
        types.int64,
        VECTOR,
        MATRIX,
    ],
    System,
)


@njit
def new_state(position):
    """A state at a position, with everything else to be filled in."""
    state = np.zeros((6, position.size + BEYOND))
    state[POSITION, : position.size] = position
    return state


def new_points(count: int, size: int) -> NDArray:
    """Room for some points of so many coordinates."""
    return np.zeros((count, 2, size + BEYOND))


def new_counts(size: int, planes: int, barrier_rows: int = 0) -> NDArray:
    """Room to count contacts with bounds, orders, planes, and what rows of barriers say."""
    return np.zeros(OF_BARRIER * barrier_rows + planes + AT_LOWER * size)


class Point(NamedTuple):
    """A position, and the log density and its gradient there."""

    position: NDArray
    log_density: float
    slope: NDArray


def read_point(point: NDArray) -> Point:
    """The parts of a point as the kernels have it."""
    size = point.shape[1] - BEYOND
    return Point(point[POSITION, :size], float(point[SLOPE, LOG_DENSITY]), point[SLOPE, :size])
