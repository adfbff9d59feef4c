"""The two-speed leapfrog step: the model outside, the walls inside."""

import numpy as np

from pymc_rollback.kernels.drift import drift
from pymc_rollback.kernels.maps import find_values, map_push, map_slope
from pymc_rollback.kernels.metric import find_kinetic_energy
from pymc_rollback.kernels.native import inlined
from pymc_rollback.kernels.state import (
    LEAN,
    LOG_DENSITY,
    LOG_WEIGHT,
    MOMENTUM,
    OF_BARRIER,
    OUTSIDE,
    POSITION,
    PULL,
    PUSH,
    SLACK,
    SLOPE,
    SPRING,
    WALL_ENERGY,
)


@inlined
def evaluate_walls(walls, system, state):
    """Fill in what the walls say about a position, and count what each row of a barrier says."""
    if system.inner > 0:
        answer = walls((_find_values(system, state), system.others, system.sharpness))[0]
        size, met = state.shape[1], system.met
        for i in range(size):
            state[PUSH, i] = answer[i]
        for j in range(answer.size - size):
            met[OF_BARRIER * j + OUTSIDE] += answer[size + j] > 0.5
            met[OF_BARRIER * j + LEAN] += answer[size + j]
        map_push(system.maps, state)
    else:
        state[PUSH, SLACK] = np.inf


@inlined
def evaluate_model(model, system, state):
    """Fill in what the model says about a position."""
    answer = model((_find_values(system, state), system.others))[0]
    for i in range(answer.size):
        state[SLOPE, i] = answer[i]
    map_slope(system.maps, state)


@inlined
def _find_values(system, state):
    """What model and walls are functions of."""
    position = state[POSITION, : system.coordinates.shape[1]]
    return find_values(system.maps, position) if system.maps.size > 0 else position


@inlined
def leapfrog(model, walls, system, state, step_size):
    r"""Move a state by one step: half a kick by the model, the walls, half a kick by the model.

    The composition

    .. math:: e^{\epsilon A / 2} \left(e^{\epsilon W / 2k} e^{\epsilon T / k}
              e^{\epsilon W / 2k}\right)^k e^{\epsilon A / 2}

    of the flows of the model ``A``, the walls ``W`` and the kinetic energy ``T``. It is symmetric
    and preserves volume, costs one gradient of the model, and for ``k = 1`` is the leapfrog of
    the paper.
    """
    rounds = max(system.inner, 1)
    short = step_size / rounds
    kick(state, system, 0.5 * step_size, 0.5 * short)
    for left in range(rounds, 0, -1):
        drift(state, system, short)
        evaluate_walls(walls, system, state)
        if left > 1:
            kick(state, system, 0.0, short)
    evaluate_model(model, system, state)
    kick(state, system, 0.5 * step_size, 0.5 * short)


@inlined
def kick(state, system, time, wall_time):
    """Add the forces of the model, but for those that the drift follows, and of the walls."""
    fixed = system.coordinates
    for i in range(fixed.shape[1]):
        force = time * (state[SLOPE, i] + fixed[PULL, i] + state[SPRING, i])
        state[MOMENTUM, i] += force - wall_time * state[PUSH, i]


@inlined
def find_energies(state, system):
    """Dynamics and hard energy of a state.

    The first is what the leapfrog conserves, ``-log f + boundary energy + K``; the second what
    the draws are selected by, ``-log f - log weight + K``, infinite outside the region; with
    :math:`K = p^T M^{-1} p / 2`.
    """
    energy = find_kinetic_energy(state, system) - state[SLOPE, LOG_DENSITY]
    return energy + state[PUSH, WALL_ENERGY], energy - state[PUSH, LOG_WEIGHT]
