"""The two-speed leapfrog step: the model outside, the walls inside."""

import numpy as np

from pymc_rollback.drift import drift, find_velocity
from pymc_rollback.layout import (
    INVERSE_MASS,
    LOG_DENSITY,
    LOG_WEIGHT,
    MOMENTUM,
    POSITION,
    PULL,
    PUSH,
    SLACK,
    SLOPE,
    VELOCITY,
    WALL_ENERGY,
    inlined,
)


@inlined
def evaluate_walls(walls, setting, state):
    """Fill in what the walls say about a position."""
    if setting.inner > 0:
        position = state[POSITION, : setting.coordinates.shape[1]]
        answer = walls((position, setting.others, setting.sharpness))[0]
        for i in range(answer.size):
            state[PUSH, i] = answer[i]
    else:
        state[PUSH, SLACK] = np.inf


@inlined
def evaluate_model(model, setting, state):
    """Fill in what the model says about a position."""
    position = state[POSITION, : setting.coordinates.shape[1]]
    answer = model((position, setting.others))[0]
    for i in range(answer.size):
        state[SLOPE, i] = answer[i]


@inlined
def leapfrog(model, walls, setting, state, step_size):
    r"""Move a state by one step: half a kick by the model, the walls, half a kick by the model.

    The composition

    .. math:: e^{\epsilon A / 2} \left(e^{\epsilon W / 2k} e^{\epsilon T / k}
              e^{\epsilon W / 2k}\right)^k e^{\epsilon A / 2}

    of the flows of the model ``A``, the walls ``W`` and the kinetic energy ``T``. It is symmetric
    and preserves volume, costs one gradient of the model, and for ``k = 1`` is the leapfrog of
    the paper.
    """
    rounds = max(setting.inner, 1)
    short = step_size / rounds
    kick(state, setting, 0.5 * step_size, 0.5 * short)
    for left in range(rounds, 0, -1):
        drift(state, setting, short)
        evaluate_walls(walls, setting, state)
        if left > 1:
            kick(state, setting, 0.0, short)
    evaluate_model(model, setting, state)
    kick(state, setting, 0.5 * step_size, 0.5 * short)


@inlined
def kick(state, setting, time, wall_time):
    """Add the forces of the model, but for the pull that the drift follows, and of the walls."""
    fixed = setting.coordinates
    for i in range(fixed.shape[1]):
        force = time * (state[SLOPE, i] + fixed[PULL, i])
        state[MOMENTUM, i] += force - wall_time * state[PUSH, i]


@inlined
def draw_momentum(state, setting, rng):
    """Draw a momentum from its normal distribution with the mass as variance."""
    fixed, root = setting.coordinates, setting.root
    n = fixed.shape[1]
    for j in range(n):
        z = rng.standard_normal()
        if root.size == 0:
            state[MOMENTUM, j] = z / np.sqrt(fixed[INVERSE_MASS, j])
            continue
        for i in range(n):
            state[MOMENTUM, i] += root[i, j] * z


@inlined
def find_energies(state, setting):
    """Dynamics and hard energy of a state.

    The first is what the leapfrog conserves, ``-log f + boundary energy + K``; the second what
    the draws are selected by, ``-log f - log weight + K``, infinite outside the region; with
    :math:`K = p^T M^{-1} p / 2`.
    """
    fixed = setting.coordinates
    total = 0.0
    if setting.dense.size == 0:
        for i in range(fixed.shape[1]):
            total += fixed[INVERSE_MASS, i] * state[MOMENTUM, i] ** 2
    else:
        find_velocity(state, setting)
        for i in range(fixed.shape[1]):
            total += state[VELOCITY, i] * state[MOMENTUM, i]
    energy = 0.5 * total - state[SLOPE, LOG_DENSITY]
    return energy + state[PUSH, WALL_ENERGY], energy - state[PUSH, LOG_WEIGHT]
