"""Contacts with walls: how they are counted, and when a motion between planes is given up."""

import numpy as np
from numba import njit

from pymc_rollback.kernels.native import inlined
from pymc_rollback.kernels.state import MOMENTUM, POSITION

MOST_CONTACTS = 10_000
"""Most reflections between planes in a drift; a trajectory that needs more is given up."""

NEAR, TOUCHING = 1e-9, 1e-13
"""Slack of a plane, relative to its terms, that is looked at again, and that rounding may hide."""


@inlined
def count_passes(before, ahead, after, half):
    """How often a phase has passed even and odd multiples of half a period, from before to after.

    Parameters
    ----------
    before, after
        The phases, from zero to a whole period.
    ahead
        Where the phase would be had it not been taken modulo the period.
    half
        Half of the period.
    """
    if abs(ahead - before) <= 2 * half:  # as nearly always: without a division
        even = int(after != ahead)
        return even, even ^ ((before > half) != (after > half))
    last = int(np.floor(ahead / half))
    return abs(last >> 1), abs(((last + 1) >> 1) - (before > half))


@inlined
def give_up_where_unclear(state, planes, slack, reach, arrived):
    """Make a state not a number, so that its trajectory ends, that is not clearly inside.

    Parameters
    ----------
    state
        The state at the end of a motion.
    planes, slack
        The planes, and their slacks there, as the motion has them.
    reach
        How large the terms are that a slack is the sum of.
    arrived
        Whether the motion came to its end.
    """
    n = planes.shape[0] - 1
    for j in range(slack.size):
        near = not (slack[j] > NEAR * (abs(planes[n, j]) + reach))
        if not arrived or (near and touches(state, planes, j)):
            # the momentum too: a flat density would not see the position
            state[POSITION, 0] = state[MOMENTUM, 0] = np.nan


@njit(error_model="numpy")
def touches(state, planes, j):
    """Whether a position is outside a plane, or rounding leaves it open on which side it is."""
    n = planes.shape[0] - 1
    slack, size = planes[n, j], abs(planes[n, j])
    for i in range(n):
        slack += planes[i, j] * state[POSITION, i]
        size += abs(planes[i, j] * state[POSITION, i])
    return not (slack > TOUCHING * size)
