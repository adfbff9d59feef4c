"""The two-speed leapfrog step: the model outside, the walls inside.

Kernels see functions over one raveled vector and import neither PyMC nor PyTensor. Only the
trajectories, into which everything here is inlined, are cached by Numba. A state is one matrix:
each array that is handed to a function, or taken out of a tuple, costs as much (its reference
count) as the work on a dozen coordinates.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic
from numpy.typing import NDArray

# with Python's model each division could raise, which keeps Numba from dropping reference counts
inlined = njit(inline="always", error_model="numpy")

VECTOR = types.float64[::1]
MATRIX = types.float64[:, ::1]

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


def address_of(function: Dispatcher, kind: types.FunctionType) -> int:
    """Where the machine code of a model or of walls is; valid as long as the function lives.

    Kernels take addresses: to hand over a function itself takes Numba 0.1 ms a call.
    """
    compiled = function.get_compile_result(kind.signature)
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def function_at(kind: types.FunctionType) -> Callable:
    """Make the opposite of :func:`address_of`, for kernels."""

    @intrinsic
    def at(typing_context, address):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], cgutils.voidptr_t)
            function = cgutils.create_struct_proxy(kind)(context, builder)
            function.c_addr = function.py_addr = cgutils.get_null_value(cgutils.voidptr_t)
            function.jit_addr = pointer
            return function._getvalue()

        return kind(types.intp), generate

    return at


model_at, walls_at = function_at(MODEL), function_at(WALLS)


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


POSITION, MOMENTUM, VELOCITY, SLOPE, PUSH = range(5)
"""Rows of a state. The answers of the model and of the walls fill the last two, to their ends."""

LOG_DENSITY, WALL_ENERGY, LOG_WEIGHT, SLACK = -3, -3, -2, -1
"""Places in the row of the slope, and three in that of the push."""

INVERSE_MASS, LOWER, UPPER, PULL, PLANAR = range(5)
"""Rows of what is fixed for each coordinate."""

MOST_CONTACTS = 10_000
"""Most reflections between planes in a drift; a trajectory that needs more is given up."""

TOUCHING = 1e-12
"""Slack of a plane, relative to its terms, that rounding may hide."""


class Setting(NamedTuple):
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
        potential that is followed exactly while it drifts, positive towards the lower bound; and
        whether a plane concerns it.
    planes
        Slacks ``A x + c`` of affine constraints: the columns of ``A``, then ``c``, as rows.
    turns
        How a velocity and the rates of all slacks change, by twice the rate of a slack, at its
        plane: rows of ``A M^-1`` and ``A M^-1 A^T`` over the latter's diagonal.
    dense, root
        For a dense metric the inverse mass matrix and a root ``C`` of its inverse (``p = C z``);
        else of size zero.
    ordered
        Runs of coordinates that stay in order: start, length and direction of each.
    inner
        Number of steps under the walls alone in each step; zero where there are no walls, which
        are then never called.
    """

    others: NDArray
    sharpness: NDArray
    coordinates: NDArray
    planes: NDArray
    turns: NDArray
    dense: NDArray
    root: NDArray
    ordered: NDArray
    inner: int


SETTING = types.NamedTuple([VECTOR, VECTOR, *[MATRIX] * 6, types.int64], Setting)


@njit
def new_state(position):
    """A state at a position, with everything else to be filled in."""
    state = np.zeros((5, position.size + 3))
    state[POSITION, : position.size] = position
    return state


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
def drift(state, setting, time):
    """Move a position with its momentum for some time, reflecting and keeping in order."""
    fixed, ordered = setting.coordinates, setting.ordered
    find_velocity(state, setting)
    if setting.planes.shape[1] > 0:
        drift_between_planes(state, fixed, setting.planes, setting.turns, time)
    for i in range(fixed.shape[1]):
        if fixed[PLANAR, i] > 0:
            continue
        position, velocity = state[POSITION, i], state[VELOCITY, i]
        lower, upper, inverse_mass = fixed[LOWER, i], fixed[UPPER, i], fixed[INVERSE_MASS, i]
        if lower == -np.inf and upper == np.inf:
            state[POSITION, i] = position + time * velocity
            continue
        gravity = inverse_mass * fixed[PULL, i]
        position, velocity = bounce(position, velocity, lower, upper, gravity, time)
        state[POSITION, i] = position
        state[MOMENTUM, i] = velocity / inverse_mass
    for k in range(ordered.shape[0]):
        put_in_order(state, int(ordered[k, 0]), int(ordered[k, 1]), ordered[k, 2])


@njit(error_model="numpy")
def bounce(position, velocity, lower, upper, gravity, time):
    """Move one coordinate between its bounds for some time, under its pull."""
    if gravity > 0:
        return fall(position, velocity, lower, upper, gravity, time)
    if gravity < 0:
        x, v = fall(-position, -velocity, -upper, -lower, -gravity, time)
        return -x, -v
    return reflect(position + time * velocity, velocity, lower, upper)


@njit(error_model="numpy")
def drift_between_planes(state, fixed, planes, turns, time):
    r"""Move the coordinates that planes concern for some time, from one contact to the next.

    At the plane ``a x + c = 0`` the momentum turns to :math:`p - 2 a (a v) / (a M^{-1} a)`, which
    keeps the kinetic energy. Where rounding leaves it open on which side of a plane the motion
    ends, the position is not a number, and the trajectory ends.
    """
    n, m = fixed.shape[1], planes.shape[1]
    sign, left = (1.0, time) if time > 0 else (-1.0, -time)
    slack, rate = planes[n].copy(), np.zeros(m)
    for i in range(n):
        if fixed[PLANAR, i] > 0:
            for j in range(m):
                slack[j] += planes[i, j] * state[POSITION, i]
                rate[j] += planes[i, j] * sign * state[VELOCITY, i]
    for _ in range(MOST_CONTACTS):
        span, plane, bound = first_contact(state, fixed, slack, rate, sign, left)
        left -= span
        for j in range(m):
            slack[j] += span * rate[j]
        for i in range(n):
            if fixed[PLANAR, i] > 0:
                state[POSITION, i] += span * sign * state[VELOCITY, i]
        if plane >= 0:
            twice = 2 * rate[plane]
            turned = twice / turns[plane, n + m]
            slack[plane] = 0.0
            for j in range(m):
                rate[j] -= twice * turns[plane, n + j]
            for i in range(n):
                if fixed[PLANAR, i] > 0:
                    state[VELOCITY, i] -= sign * twice * turns[plane, i]
                    state[MOMENTUM, i] -= sign * turned * planes[i, plane]
        elif bound >= 0:
            for j in range(m):
                rate[j] -= 2 * planes[bound, j] * sign * state[VELOCITY, bound]
            ends = fixed[LOWER, bound], fixed[UPPER, bound]
            state[POSITION, bound] = ends[int(sign * state[VELOCITY, bound] > 0)]
            state[VELOCITY, bound] *= -1
            state[MOMENTUM, bound] *= -1
        else:
            break
    largest = 0.0
    for i in range(n):
        if fixed[PLANAR, i] > 0:
            largest = max(largest, abs(state[POSITION, i]))
    for j in range(m):
        if not (slack[j] > TOUCHING * (abs(planes[n, j]) + largest)) or left > 0:
            state[POSITION, 0] = np.nan


@njit(error_model="numpy")
def first_contact(state, fixed, slack, rate, sign, left):
    """Time of the first contact, and the plane or the coordinate's bound: -1 for neither."""
    plane = bound = -1
    for j in range(slack.size):
        if rate[j] < 0 and max(slack[j], 0.0) < -rate[j] * left:
            left, plane = max(slack[j], 0.0) / -rate[j], j
    for i in range(fixed.shape[1]):
        velocity = sign * state[VELOCITY, i]
        ahead = fixed[UPPER, i] if velocity > 0 else fixed[LOWER, i]
        if fixed[PLANAR, i] > 0 and abs(ahead - state[POSITION, i]) < abs(velocity) * left:
            left, plane, bound = abs(ahead - state[POSITION, i]) / abs(velocity), -1, i
    return left, plane, bound


@njit(error_model="numpy")
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


@njit(error_model="numpy")
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


@inlined
def put_in_order(state, start, length, direction):
    """Sort a run of coordinates, and their momenta with them: neighbours exchange as they meet."""
    for i in range(start + 1, start + length):
        x, p = state[POSITION, i], state[MOMENTUM, i]
        j = i
        while j > start and direction * state[POSITION, j - 1] > direction * x:
            state[POSITION, j] = state[POSITION, j - 1]
            state[MOMENTUM, j] = state[MOMENTUM, j - 1]
            j -= 1
        state[POSITION, j] = x
        state[MOMENTUM, j] = p


@inlined
def find_velocity(state, setting):
    """:math:`v = M^{-1} p`."""
    fixed, dense = setting.coordinates, setting.dense
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
