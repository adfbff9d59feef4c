"""The metric: momenta, velocities, kinetic energy and turns, for a diagonal or a dense mass."""

import numpy as np

from pymc_rollback.kernels.native import inlined
from pymc_rollback.kernels.state import INVERSE_MASS, MOMENTUM, POSITION, VELOCITY


@inlined
def draw_momentum(state, system, rng):
    """Draw a momentum from its normal distribution with the mass as variance."""
    fixed, root = system.coordinates, system.root
    n = fixed.shape[1]
    for j in range(n):
        z = rng.standard_normal()
        if root.size == 0:
            state[MOMENTUM, j] = z / np.sqrt(fixed[INVERSE_MASS, j])
            continue
        for i in range(n):
            state[MOMENTUM, i] += root[i, j] * z


@inlined
def find_velocity(state, system):
    """:math:`v = M^{-1} p`."""
    fixed, dense = system.coordinates, system.dense
    n = fixed.shape[1]
    if dense.size == 0:
        for i in range(n):
            state[VELOCITY, i] = fixed[INVERSE_MASS, i] * state[MOMENTUM, i]
    else:
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += dense[i, j] * state[MOMENTUM, j]
            state[VELOCITY, i] = total


@inlined
def find_kinetic_energy(state, system):
    """:math:`p^T M^{-1} p / 2`."""
    fixed = system.coordinates
    total = 0.0
    if system.dense.size == 0:
        for i in range(fixed.shape[1]):
            total += fixed[INVERSE_MASS, i] * state[MOMENTUM, i] ** 2
    else:
        find_velocity(state, system)
        for i in range(fixed.shape[1]):
            total += state[VELOCITY, i] * state[MOMENTUM, i]
    return 0.5 * total


@inlined
def has_turned(earlier, later, forward):
    """Whether either end of a stretch of trajectory no longer moves away from the other.

    Ends are states, in the order in which they were reached. The distance is that between the
    folded positions: a sum of momenta, as in the generalised criterion, forgets reflections.
    """
    direction = 1.0 if forward else -1.0
    at_first = at_last = 0.0
    for i in range(earlier.shape[1]):
        distance = direction * (later[POSITION, i] - earlier[POSITION, i])
        at_first += distance * earlier[MOMENTUM, i]
        at_last += distance * later[MOMENTUM, i]
    return at_first <= 0 or at_last <= 0
