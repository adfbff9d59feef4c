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
    fixed, inner = setting.coordinates, setting.inner
    kick(state, fixed, 0.5 * step_size)
    if inner == 0:
        drift(state, setting, step_size)
    for _ in range(inner):
        push_back(state, fixed, 0.5 * step_size / inner)
        drift(state, setting, step_size / inner)
        evaluate_walls(walls, setting, state)
        push_back(state, fixed, 0.5 * step_size / inner)
    evaluate_model(model, setting, state)
    kick(state, fixed, 0.5 * step_size)


@inlined
def kick(state, fixed, time):
    """Add the force of the model, but for the pull that the drift follows, for some time."""
    for i in range(fixed.shape[1]):
        state[MOMENTUM, i] += time * (state[SLOPE, i] + fixed[PULL, i])


@inlined
def push_back(state, fixed, time):
    """Add the force of the walls for some time."""
    for i in range(fixed.shape[1]):
        state[MOMENTUM, i] -= time * state[PUSH, i]


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
    find_velocity(state, setting)
    total = 0.0
    for i in range(setting.coordinates.shape[1]):
        total += state[VELOCITY, i] * state[MOMENTUM, i]
    energy = 0.5 * total - state[SLOPE, LOG_DENSITY]
    return energy + state[PUSH, WALL_ENERGY], energy - state[PUSH, LOG_WEIGHT]
