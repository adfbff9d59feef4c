r"""Motion under a quadratic that is followed exactly: a rotation, reflected at bounds and planes.

The flow of :math:`p^T M^{-1} p / 2 + \omega^2 (x - c)^T M (x - c) / 2` turns the pair of
:math:`x - c` and :math:`v / \omega` by the angle :math:`\omega t`, and with it the pair of
:math:`\omega M (x - c)` and the momentum, whatever :math:`M` is. The centre :math:`c` and the
frequency :math:`\omega` are those of a coordinate; coordinates that a plane or the mass matrix
couples have the same frequency.
"""

import numpy as np
from numba import njit

from pymc_rollback.kernels.contacts import MOST_CONTACTS, count_passes, give_up_where_unclear
from pymc_rollback.kernels.native import inlined
from pymc_rollback.kernels.state import (
    AT_LOWER,
    CENTRE,
    CONTACTS,
    FREQUENCY,
    INVERSE_MASS,
    MOMENTUM,
    PLANAR,
    POSITION,
    SPRING,
    VELOCITY,
)


@inlined
def find_spring(state, system):
    r""":math:`s = \omega^2 M (x - c)`; zero where motion is straight."""
    fixed, root = system.coordinates, system.root
    n = fixed.shape[1]
    if root.size == 0:
        for i in range(n):
            away = state[POSITION, i] - fixed[CENTRE, i]
            state[SPRING, i] = fixed[FREQUENCY, i] ** 2 * away / fixed[INVERSE_MASS, i]
    else:
        for j in range(n):
            total = 0.0
            for i in range(n):
                total += root[i, j] * (state[POSITION, i] - fixed[CENTRE, i])
            for i in range(n):
                state[SPRING, i] += fixed[FREQUENCY, i] ** 2 * root[i, j] * total


@inlined
def turn(state, fixed, i, cos, sin):
    """Turn a coordinate by an angle, with the spring and the momentum; no velocity is left."""
    centre, frequency = fixed[CENTRE, i], fixed[FREQUENCY, i]
    x, p, spring = state[POSITION, i] - centre, state[MOMENTUM, i], state[SPRING, i]
    state[POSITION, i] = centre + x * cos + state[VELOCITY, i] / frequency * sin
    state[MOMENTUM, i] = p * cos - spring / frequency * sin
    state[SPRING, i] = spring * cos + frequency * p * sin
    state[VELOCITY, i] = 0.0


@inlined
def rotate(state, system, time):
    """Turn the coordinates that nothing reflects."""
    fixed = system.coordinates
    last, cos, sin = 0.0, 1.0, 0.0
    for i in system.rotating:
        frequency = fixed[FREQUENCY, i]
        if frequency != last:
            last, cos, sin = frequency, np.cos(frequency * time), np.sin(frequency * time)
        turn(state, fixed, i, cos, sin)


@njit(error_model="numpy")
def swing(position, velocity, lower, upper, centre, frequency, time):
    r"""Move one coordinate under :math:`\omega^2 (x - c)^2 / 2` between two walls, for some time.

    With the radius :math:`\rho` it is at :math:`c + \rho \cos \theta`, going down where
    :math:`\theta > 0`. The angle grows from that of the upper wall, or zero, to that of the lower
    one, or :math:`\pi`, goes on from the opposite of the latter to that of the former, and so on:
    the motion is periodic. Position, velocity, and contacts with the lower and the upper wall.
    """
    x, v = position - centre, velocity / frequency
    radius = np.hypot(x, v)
    if radius == 0.0:
        return position, velocity, 0, 0
    low = np.arccos(max((lower - centre) / radius, -1.0) if lower < centre + radius else 1.0)
    high = np.arccos(min((upper - centre) / radius, 1.0) if upper > centre - radius else -1.0)
    leg = low - high
    if not (leg > 0.0):
        return position, velocity, 0, 0
    angle = np.arctan2(-v, x)
    phase = angle - high if angle > 0 else leg + angle + low
    before, ahead = phase, phase + frequency * time
    phase = np.mod(ahead, 2 * leg)
    ceilings, floors = count_passes(before, ahead, phase, leg)
    falling = phase <= leg
    angle = high + phase if falling else phase - leg - low
    position, velocity = centre + radius * np.cos(angle), -radius * frequency * np.sin(angle)
    # where it turns by itself, it meets no wall
    return position, velocity, floors if low < np.pi else 0, ceilings if high > 0 else 0


@njit(error_model="numpy")
def rotate_between_planes(state, fixed, planes, turns, time, met):
    r"""Turn the coordinates that planes concern, from one contact to the next.

    While they turn by the angle :math:`t`, the slack of a plane is :math:`A \cos t + B \sin t + C`.
    At a contact the momentum turns as it does at the end of a straight line.
    """
    n, m = fixed.shape[1], planes.shape[1]
    forward = 1.0 if time > 0 else -1.0
    frequency, reach = 0.0, 0.0
    A, B, C = np.zeros(m), np.zeros(m), planes[n].copy()
    for i in range(n):
        if fixed[PLANAR, i] > 0:
            frequency, centre = fixed[FREQUENCY, i], fixed[CENTRE, i]
            state[VELOCITY, i] *= forward
            state[MOMENTUM, i] *= forward
            away, rate = state[POSITION, i] - centre, state[VELOCITY, i] / frequency
            reach += abs(centre) + abs(away) + abs(rate)
            for j in range(m):
                A[j] += planes[i, j] * away
                B[j] += planes[i, j] * rate
                C[j] += planes[i, j] * centre
    # positions and velocities are those of the start, in the present rotation; slacks those of now
    angle = frequency * abs(time)
    left, arrived = angle, False
    for _ in range(MOST_CONTACTS):
        passed, plane = first_crossing(A, B, C, min(left, np.pi))
        left -= passed
        cos, sin = np.cos(passed), np.sin(passed)
        for j in range(m):
            A[j], B[j] = A[j] * cos + B[j] * sin, B[j] * cos - A[j] * sin
        if plane >= 0:
            A[plane] = -C[plane]
            state[VELOCITY, CONTACTS] += 1
            met[met.size - AT_LOWER * n - m + plane] += 1
            twice = 2 * B[plane]
            reflect_at(state, fixed, turns, plane, twice, angle - left)
            for j in range(m):
                B[j] -= twice * turns[plane, n + j]
        elif left <= 0:
            arrived = True
            break
    cos, sin = np.cos(angle), np.sin(angle)
    for i in range(n):
        if fixed[PLANAR, i] > 0:
            turn(state, fixed, i, cos, sin)
            state[MOMENTUM, i] *= forward
    for j in range(m):
        A[j] += C[j]
    give_up_where_unclear(state, planes, A, reach, arrived)


@inlined
def reflect_at(state, fixed, turns, plane, twice, angle):
    """Reflect at a plane, at an angle after the start, by twice the rate of its slack in angles."""
    n = fixed.shape[1]
    m = turns.shape[1] - 2 * n
    cos, sin = np.cos(angle), np.sin(angle)
    for i in range(n):
        if fixed[PLANAR, i] > 0:
            frequency = fixed[FREQUENCY, i]
            change = twice * turns[plane, i]
            state[POSITION, i] += change * sin
            state[VELOCITY, i] -= frequency * change * cos
            change = frequency * twice * turns[plane, n + m + i]
            state[SPRING, i] += frequency * change * sin
            state[MOMENTUM, i] -= change * cos


@njit(error_model="numpy")
def first_crossing(A, B, C, until):
    """Angle up to a limit of at most π at which a slack is first zero, and which: -1 for none.

    One is met before the angle ``t`` if it is negative there, or if it falls at first and rises at
    ``t``, from a minimum below zero: most need no inverse functions.
    """
    which = -1
    cos, sin = np.cos(until), np.sin(until)
    for j in range(A.size):
        if A[j] * cos + B[j] * sin + C[j] > 0:
            returns = B[j] < 0 and B[j] * cos - A[j] * sin > 0
            if not (returns and A[j] ** 2 + B[j] ** 2 > C[j] ** 2):
                continue
        radius = np.hypot(A[j], B[j])
        angle = np.arctan2(B[j], A[j]) + np.arccos(min(max(-C[j] / radius, -1.0), 1.0))
        if angle < until:
            until, which = max(angle, 0.0), j
            cos, sin = np.cos(until), np.sin(until)
    return until, which
