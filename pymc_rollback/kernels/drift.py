"""The drift: straight or turning, reflected at bounds and planes, bent by a pull, kept in order."""

import numpy as np
from numba import njit

from pymc_rollback.kernels.contacts import MOST_CONTACTS, count_passes, give_up_where_unclear
from pymc_rollback.kernels.metric import find_velocity
from pymc_rollback.kernels.native import inlined
from pymc_rollback.kernels.rotation import rotate, rotate_between_planes, swing
from pymc_rollback.kernels.state import (
    AT_LOWER,
    AT_NEXT,
    AT_UPPER,
    BEYOND,
    CENTRE,
    CONTACTS,
    FREQUENCY,
    INVERSE_MASS,
    LOWER,
    MOMENTUM,
    PLANAR,
    POSITION,
    PULL,
    SPRING,
    UPPER,
    VELOCITY,
)


@inlined
def drift(state, system, time):
    """Move a position with its momentum for some time, reflecting and keeping in order.

    What has arrived has no velocity left, so that all that moves straight does so in one simple
    loop.
    """
    fixed, ordered, met = system.coordinates, system.ordered, system.met
    find_velocity(state, system)
    if system.planes.shape[1] > 0:
        if system.turning:
            rotate_between_planes(state, fixed, system.planes, system.turns, time, met)
        else:
            drift_between_planes(state, fixed, system.planes, system.turns, time, met)
    for i in system.bouncing:
        bounce(state, fixed, i, time, met)
    rotate(state, system, time)
    for i in range(fixed.shape[1]):
        state[POSITION, i] += time * state[VELOCITY, i]
    for k in range(ordered.shape[0]):
        put_in_order(state, int(ordered[k, 0]), int(ordered[k, 1]), ordered[k, 2], met)


@inlined
def bounce(state, fixed, i, time, met):
    """Move one coordinate between its bounds for some time, under its quadratic or its pull."""
    x, v = state[POSITION, i], state[VELOCITY, i]
    lower, upper, inverse_mass = fixed[LOWER, i], fixed[UPPER, i], fixed[INVERSE_MASS, i]
    gravity = inverse_mass * fixed[PULL, i]
    centre, frequency = fixed[CENTRE, i], fixed[FREQUENCY, i]
    if frequency > 0:
        x, v, floors, ceilings = swing(x, v, lower, upper, centre, frequency, time)
        state[SPRING, i] = frequency**2 * (x - centre) / inverse_mass
    elif gravity > 0:
        x, v, floors, ceilings = fall(x, v, lower, upper, gravity, time)
    elif gravity < 0:
        x, v, ceilings, floors = fall(-x, -v, -upper, -lower, -gravity, time)
        x, v = -x, -v
    else:
        x, v, floors, ceilings = reflect(x + time * v, v, lower, upper)
    met[met.size - AT_LOWER * fixed.shape[1] + i] += floors
    met[met.size - AT_UPPER * fixed.shape[1] + i] += ceilings
    state[POSITION, i], state[MOMENTUM, i] = strictly_between(x, lower, upper), v / inverse_mass
    state[VELOCITY, i] = 0.0


@njit(error_model="numpy")
def drift_between_planes(state, fixed, planes, turns, time, met):
    r"""Move the coordinates that planes concern for some time, from one contact to the next.

    At the plane ``a x + c = 0`` the momentum turns to :math:`p - 2 a (a v) / (a M^{-1} a)`, which
    keeps the kinetic energy.
    """
    n, m = fixed.shape[1], planes.shape[1]
    forward = 1.0 if time > 0 else -1.0
    slack, rate = planes[n].copy(), np.zeros(m)
    has_bounds = False
    for i in range(n):
        if fixed[PLANAR, i] > 0:
            has_bounds |= fixed[LOWER, i] > -np.inf or fixed[UPPER, i] < np.inf
            state[VELOCITY, i] *= forward
            for j in range(m):
                slack[j] += planes[i, j] * state[POSITION, i]
                rate[j] += planes[i, j] * state[VELOCITY, i]
    # positions and slacks are those of the start, on the lines of the present motion
    now, until, arrived = 0.0, abs(time), False
    for _ in range(MOST_CONTACTS):
        now, plane, bound = first_contact(state, fixed, has_bounds, slack, rate, now, until)
        if plane >= 0:
            met[met.size - AT_LOWER * n - m + plane] += 1
            twice = 2 * rate[plane]
            for j in range(m):
                change = twice * turns[plane, n + j]
                rate[j] -= change
                slack[j] += now * change
            slack[plane] = -now * rate[plane]
            for i in range(n):
                change = twice * turns[plane, i]
                state[VELOCITY, i] -= change
                state[POSITION, i] += now * change
                state[MOMENTUM, i] -= forward * twice * turns[plane, n + m + i]
        elif bound >= 0:
            side = UPPER if state[VELOCITY, bound] > 0 else LOWER
            met[met.size - (AT_LOWER if side == LOWER else AT_UPPER) * n + bound] += 1
            for j in range(m):
                change = 2 * state[VELOCITY, bound] * planes[bound, j]
                rate[j] -= change
                slack[j] += now * change
            state[VELOCITY, bound] *= -1
            state[MOMENTUM, bound] *= -1
            state[POSITION, bound] = fixed[side, bound] - now * state[VELOCITY, bound]
        else:
            arrived = True
            break
        state[VELOCITY, CONTACTS] += 1
    reach = 0.0
    for i in range(n):
        if fixed[PLANAR, i] > 0:
            reach += abs(state[POSITION, i]) + until * abs(state[VELOCITY, i])
            x = state[POSITION, i] + until * state[VELOCITY, i]
            state[POSITION, i] = strictly_between(x, fixed[LOWER, i], fixed[UPPER, i])
            state[VELOCITY, i] = 0.0
    for j in range(m):
        slack[j] += until * rate[j]
    give_up_where_unclear(state, planes, slack, reach, arrived)


@njit(error_model="numpy")
def first_contact(state, fixed, has_bounds, slack, rate, now, until):
    """Time of the next contact, and the plane or the coordinate's bound: -1 for neither.

    All times are found, and then compared: a branch for each sign would cost far more.
    """
    plane = bound = -1
    for j in range(slack.size):
        meets = slack[j] / -rate[j] if rate[j] < 0 else np.inf
        if meets < until:
            until, plane = meets, j
    for i in range(fixed.shape[1] if has_bounds else 0):
        velocity = state[VELOCITY, i]
        ahead = fixed[UPPER, i] if velocity > 0 else fixed[LOWER, i]
        meets = (ahead - state[POSITION, i]) / velocity if velocity != 0 else np.inf
        if meets < until and fixed[PLANAR, i] > 0:
            until, plane, bound = meets, -1, i
    return max(until, now), plane, bound


@inlined
def strictly_between(x, lower, upper):
    """A position, or, where it was rounded onto a bound, the nearest number inside."""
    if x <= lower:
        return np.nextafter(lower, np.inf)
    if x >= upper:
        return np.nextafter(upper, -np.inf)
    return x


@njit(error_model="numpy")
def reflect(position, velocity, lower, upper):
    """Fold a position into its bounds; the velocity flips with every reflection.

    Position, velocity, and contacts with the lower and the upper bound.
    """
    if upper == np.inf:
        outside = position < lower
        return (2 * lower - position, -velocity, 1, 0) if outside else (position, velocity, 0, 0)
    if lower == -np.inf:
        outside = position > upper
        return (2 * upper - position, -velocity, 0, 1) if outside else (position, velocity, 0, 0)
    width = upper - lower
    height = np.mod(position - lower, 2 * width)
    floors, ceilings = count_passes(0.0, position - lower, height, width)
    if height <= width:
        return lower + height, velocity, floors, ceilings
    return lower + (2 * width - height), -velocity, floors, ceilings


@njit(error_model="numpy")
def fall(position, velocity, lower, upper, gravity, time):
    r"""Fall freely between a floor and a ceiling, bouncing off both, for some time.

    The exact flow of :math:`v^2 / 2 + g (x - \mathrm{lower})`. The motion is periodic: it leaves
    the floor with the speed :math:`v_0 = \sqrt{v^2 + 2 g (x - \mathrm{lower})}`, and its phase
    is the time since then. Position, velocity, and contacts with the floor and the ceiling.
    """
    launch = np.sqrt(velocity**2 + 2 * gravity * (position - lower))
    height = upper - lower
    if launch**2 > 2 * gravity * height:
        rise = (launch - np.sqrt(launch**2 - 2 * gravity * height)) / gravity
    else:
        rise = launch / gravity
    if rise == 0.0:
        return position, velocity, 0, 0
    phase = (launch - abs(velocity)) / gravity
    phase = phase if velocity >= 0 else 2 * rise - phase
    before, ahead = phase, phase + time
    phase = np.mod(ahead, 2 * rise)
    floors, tops = count_passes(before, ahead, phase, rise)
    rising = phase <= rise
    since = phase if rising else 2 * rise - phase
    position = lower + max(since * (launch - 0.5 * gravity * since), 0.0)
    speed = launch - gravity * since
    ceilings = tops if launch**2 > 2 * gravity * height else 0
    return min(position, upper), speed if rising else -speed, floors, ceilings


@inlined
def put_in_order(state, start, length, direction, met):
    """Sort a run of coordinates, and what moves with them: neighbours exchange as they meet."""
    exchanges = met.size - AT_NEXT * (state.shape[1] - BEYOND)
    for i in range(start + 1, start + length):
        x, p, spring = state[POSITION, i], state[MOMENTUM, i], state[SPRING, i]
        j = i
        while j > start and direction * state[POSITION, j - 1] > direction * x:
            state[POSITION, j] = state[POSITION, j - 1]
            state[MOMENTUM, j] = state[MOMENTUM, j - 1]
            state[SPRING, j] = state[SPRING, j - 1]
            j -= 1
            met[exchanges + j] += 1
        state[POSITION, j] = x
        state[MOMENTUM, j] = p
        state[SPRING, j] = spring
