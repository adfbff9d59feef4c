"""The two-speed leapfrog step: the model outside, the walls inside.

Kernels see callables over one raveled vector and import neither PyMC nor PyTensor. Only the
trajectories, which call everything here, are cached by Numba.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

VECTOR = types.float64[::1]

MODEL = types.FunctionType(types.UniTuple(VECTOR, 1)(types.UniTuple(VECTOR, 2)))
"""``model((position, others)) -> (answer,)``: the gradient, then the log density.

The form of a function that PyTensor has compiled: kernels take it as it is, so that nothing is
compiled anew.
"""

WALLS = types.FunctionType(types.UniTuple(VECTOR, 1)(types.UniTuple(VECTOR, 3)))
"""``walls((position, others, sharpness)) -> (answer,)``: gradient, energy, log weight, slack.

The energy is that of the boundary, the log weight that with which the position may be selected,
the slack its smallest.
"""


def as_model(function: Callable) -> Dispatcher:
    """Make a model of ``function(position, others, slope) -> log density``.

    Parameters
    ----------
    function
        Anything that Numba compiles; it writes the gradient into ``slope``.
    """
    compiled = njit(function)

    @njit
    def model(*inputs):
        n = inputs[0].size
        answer = np.empty(n + 1)
        answer[n] = compiled(inputs[0], inputs[1], answer[:n])
        return (answer,)

    model.compile((types.StarArgUniTuple(VECTOR, 2),))
    return model


def as_walls(function: Callable) -> Dispatcher:
    """Make walls of ``function(position, others, sharpness, push, outcome) -> boundary energy``.

    Parameters
    ----------
    function
        Anything that Numba compiles; it writes the gradient of the energy into ``push``, the log
        weight and the slack into ``outcome``.
    """
    compiled = njit(function)

    @njit
    def walls(*inputs):
        n = inputs[0].size
        answer = np.empty(n + 3)
        answer[n] = compiled(inputs[0], inputs[1], inputs[2], answer[:n], answer[n + 1 :])
        return (answer,)

    walls.compile((types.StarArgUniTuple(VECTOR, 3),))
    return walls


LOG_DENSITY, WALL_ENERGY, LOG_WEIGHT, SLACK = range(4)


class Setting(NamedTuple):
    """What stays fixed along a trajectory, as vectors.

    Attributes
    ----------
    others
        Values of variables that other step methods sample.
    sharpness
        ``mu`` of each coordinate's bounds, then of each row of the joint constraints.
    inverse_mass
        Diagonal of the inverse mass matrix.
    dense, root
        For a dense metric the inverse mass matrix and a root ``C`` of its inverse (``p = C z``),
        raveled; else empty.
    lower, upper
        Bounds at which a coordinate is reflected while it drifts; infinite where there is none.
    pull
        A constant slope of the potential of each reflected coordinate that is followed exactly
        while it drifts, positive towards the lower bound.
    ordered
        Runs of coordinates that stay in order: start, length and direction of each.
    inner
        Number of steps under the walls alone in each step, as a vector of one element.
    """

    others: NDArray
    sharpness: NDArray
    inverse_mass: NDArray
    dense: NDArray
    root: NDArray
    lower: NDArray
    upper: NDArray
    pull: NDArray
    ordered: NDArray
    inner: NDArray


class State(NamedTuple):
    """A point of a trajectory, with the gradients and levels that belong to its position."""

    position: NDArray
    momentum: NDArray
    velocity: NDArray
    slope: NDArray
    push: NDArray
    levels: NDArray


@njit
def evaluate_walls(walls, setting, state):
    """Fill in what the walls say about a position."""
    answer = walls((state.position, setting.others, setting.sharpness))[0]
    n = state.position.size
    state.push[:] = answer[:n]
    state.levels[WALL_ENERGY:] = answer[n:]


@njit
def evaluate_model(model, setting, state):
    """Fill in what the model says about a position."""
    answer = model((state.position, setting.others))[0]
    n = state.position.size
    state.slope[:] = answer[:n]
    state.levels[LOG_DENSITY] = answer[n]


@njit
def leapfrog(model, walls, setting, state, step_size):
    r"""Move a state by one step: half a kick by the model, the walls, half a kick by the model.

    The composition

    .. math:: e^{\epsilon A / 2} \left(e^{\epsilon W / 2k} e^{\epsilon T / k}
              e^{\epsilon W / 2k}\right)^k e^{\epsilon A / 2}

    of the flows of the model ``A``, the walls ``W`` and the kinetic energy ``T``. It is symmetric
    and preserves volume, costs one gradient of the model, and for ``k = 1`` is the leapfrog of
    the paper.
    """
    inner = int(setting.inner[0])
    fine = step_size / inner
    kick(state.momentum, state.slope, 0.5 * step_size)
    kick(state.momentum, setting.pull, 0.5 * step_size)
    for _ in range(inner):
        kick(state.momentum, state.push, -0.5 * fine)
        drift(state, setting, fine)
        evaluate_walls(walls, setting, state)
        kick(state.momentum, state.push, -0.5 * fine)
    evaluate_model(model, setting, state)
    kick(state.momentum, state.slope, 0.5 * step_size)
    kick(state.momentum, setting.pull, 0.5 * step_size)


@njit
def kick(momentum, force, time):
    """Add a force to a momentum for some time."""
    for i in range(momentum.size):
        momentum[i] += time * force[i]


@njit
def drift(state, setting, time):
    """Move a position with its momentum for some time, reflecting and keeping in order."""
    position, momentum = state.position, state.momentum
    find_velocity(state, setting)
    for i in range(position.size):
        velocity = state.velocity[i]
        lower, upper = setting.lower[i], setting.upper[i]
        if lower == -np.inf and upper == np.inf:
            position[i] += time * velocity
            continue
        gravity = setting.inverse_mass[i] * setting.pull[i]
        if gravity > 0:
            position[i], velocity = fall(position[i], velocity, lower, upper, gravity, time)
        elif gravity < 0:
            x, v = fall(-position[i], -velocity, -upper, -lower, -gravity, time)
            position[i], velocity = -x, -v
        else:
            position[i], velocity = reflect(position[i] + time * velocity, velocity, lower, upper)
        momentum[i] = velocity / setting.inverse_mass[i]
    for k in range(0, setting.ordered.size, 3):
        start, length = int(setting.ordered[k]), int(setting.ordered[k + 1])
        put_in_order(position, momentum, start, length, setting.ordered[k + 2])


@njit
def reflect(position, velocity, lower, upper):
    """Fold a position into its bounds; the velocity flips with every reflection."""
    if upper == np.inf:
        outside = position < lower
        return (2 * lower - position, -velocity) if outside else (position, velocity)
    if lower == -np.inf:
        outside = position > upper
        return (2 * upper - position, -velocity) if outside else (position, velocity)
    width = upper - lower
    height = np.mod(position - lower, 2 * width)
    if height <= width:
        return lower + height, velocity
    return lower + (2 * width - height), -velocity


@njit
def fall(position, velocity, lower, upper, gravity, time):
    r"""Fall freely between a floor and a ceiling, bouncing off both, for some time.

    The exact flow of :math:`v^2 / 2 + g (x - \mathrm{lower})`. The motion is periodic: it leaves
    the floor with the speed :math:`v_0 = \sqrt{v^2 + 2 g (x - \mathrm{lower})}`, and its phase
    is the time since then.
    """
    launch = np.sqrt(velocity**2 + 2 * gravity * (position - lower))
    height = upper - lower
    if launch**2 > 2 * gravity * height:
        rise = (launch - np.sqrt(launch**2 - 2 * gravity * height)) / gravity
    else:
        rise = launch / gravity
    if rise == 0.0:
        return position, velocity
    phase = (launch - abs(velocity)) / gravity
    phase = phase if velocity >= 0 else 2 * rise - phase
    phase = np.mod(phase + time, 2 * rise)
    rising = phase <= rise
    since = phase if rising else 2 * rise - phase
    position = lower + max(since * (launch - 0.5 * gravity * since), 0.0)
    speed = launch - gravity * since
    return min(position, upper), speed if rising else -speed


@njit
def put_in_order(position, momentum, start, length, direction):
    """Sort a run of coordinates, and their momenta with them: neighbours exchange as they meet."""
    for i in range(start + 1, start + length):
        x, p = position[i], momentum[i]
        j = i
        while j > start and direction * position[j - 1] > direction * x:
            position[j], momentum[j] = position[j - 1], momentum[j - 1]
            j -= 1
        position[j], momentum[j] = x, p


@njit
def find_velocity(state, setting):
    """:math:`v = M^{-1} p`."""
    n = state.momentum.size
    if setting.dense.size == 0:
        for i in range(n):
            state.velocity[i] = setting.inverse_mass[i] * state.momentum[i]
        return
    for i in range(n):
        total = 0.0
        for j in range(n):
            total += setting.dense[i * n + j] * state.momentum[j]
        state.velocity[i] = total


@njit
def draw_momentum(state, setting, rng):
    """Draw a momentum from its normal distribution with the mass as variance."""
    n = state.momentum.size
    if setting.root.size == 0:
        for i in range(n):
            state.momentum[i] = rng.standard_normal() / np.sqrt(setting.inverse_mass[i])
        return
    state.momentum[:] = 0.0
    for j in range(n):
        z = rng.standard_normal()
        for i in range(n):
            state.momentum[i] += setting.root[i * n + j] * z


@njit
def kinetic_energy(state, setting):
    """:math:`p^T M^{-1} p / 2`."""
    find_velocity(state, setting)
    total = 0.0
    for i in range(state.momentum.size):
        total += state.velocity[i] * state.momentum[i]
    return 0.5 * total


@njit
def dynamics_energy(state, setting):
    """What the leapfrog conserves: ``-log f + boundary energy + K``."""
    potential = state.levels[WALL_ENERGY] - state.levels[LOG_DENSITY]
    return potential + kinetic_energy(state, setting)


@njit
def hard_energy(state, setting):
    """What the draws are selected by: ``-log f - log weight + K``, infinite outside the region."""
    potential = -state.levels[LOG_WEIGHT] - state.levels[LOG_DENSITY]
    return potential + kinetic_energy(state, setting)


@njit
def copy_state(source, target):
    """Copy a state into another's arrays."""
    target.position[:] = source.position
    target.momentum[:] = source.momentum
    target.slope[:] = source.slope
    target.push[:] = source.push
    target.levels[:] = source.levels


@njit
def new_state(position):
    """A state at a position, with everything else to be filled in."""
    n = position.size
    return State(position.copy(), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(4))
