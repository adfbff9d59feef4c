"""The drift: reflection, free fall between walls, and exchange of neighbours."""

import numpy as np
import pytest
from numba import njit, types

from pymc_rollback.kernels.drift import drift, drift_between_planes, fall, put_in_order, reflect
from pymc_rollback.kernels.native import MATRIX
from pymc_rollback.kernels.state import (
    MOMENTUM,
    POSITION,
    SYSTEM,
    VELOCITY,
    System,
    new_counts,
    new_state,
)

pytestmark = pytest.mark.newest


def fall_slowly(position, velocity, lower, upper, gravity, time, n=20000):
    """Many small steps of reflected motion under gravity."""
    step = time / n
    for _ in range(n):
        velocity -= 0.5 * step * gravity
        position, velocity, *_ = reflect(position + step * velocity, velocity, lower, upper)
        velocity -= 0.5 * step * gravity
    return position, velocity


@pytest.mark.parametrize("upper", [np.inf, 1.5])
@pytest.mark.parametrize("velocity", [-1.3, 0.4, 2.1])
def test_fall_is_reflected_motion_under_gravity(velocity, upper):
    exact = fall(1.2, velocity, 0.5, upper, 2.0, 1.7)[:2]
    np.testing.assert_allclose(exact, fall_slowly(1.2, velocity, 0.5, upper, 2.0, 1.7), atol=2e-3)
    np.testing.assert_allclose(fall(*exact, 0.5, upper, 2.0, -1.7)[:2], (1.2, velocity), atol=1e-12)


@pytest.mark.parametrize(("lower", "upper"), [(0.0, np.inf), (-np.inf, 1.0), (0.0, 1.0)])
def test_reflect_stays_inside_and_flips_with_every_wall(lower, upper):
    for position in np.linspace(-0.9, 1.9, 57):
        x, v, *_ = reflect(position, 3.0, lower, upper)
        outside = position < lower or position > upper
        assert lower <= x <= upper
        assert v == (-3.0 if outside else 3.0)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_neighbours_exchange_their_momenta(direction):
    position = np.array([9.0, 3.0, 1.0, 2.0, -9.0])
    state = new_state(position)
    state[MOMENTUM, :5] = np.arange(5.0)
    put_in_order(state, 1, 3, direction, new_counts(len(position), 0))
    order = [0, 2, 3, 1, 4] if direction > 0 else [0, 1, 3, 2, 4]
    assert state[POSITION, :5].tolist() == position[order].tolist()
    assert state[MOMENTUM, :5].tolist() == order


MASSES = np.array([1.0, 2.0, 0.5])
ROWS = np.array([[1.0, -1.0, 0.0], [-0.6, 0.0, -0.8], [0.0, 1.0, 1.0]])
OFFSETS = np.array([1.0, 1.5, 2.0])
LOWER, UPPER = np.array([-0.5, -np.inf, -np.inf]), np.array([np.inf, 0.7, np.inf])


def between_planes(position, momentum, time):
    """Position and momentum after some time in a wedge of three planes and two bounds."""
    moved = ROWS / MASSES
    gram = moved @ ROWS.T
    own = np.diag(gram)[:, None]
    state = new_state(np.array(position, float))
    state[MOMENTUM, :3] = momentum
    state[VELOCITY, :3] = momentum / MASSES
    fixed = np.array([1 / MASSES, LOWER, UPPER, np.zeros(3), np.ones(3)])
    turns = np.ascontiguousarray(np.c_[moved, gram, ROWS] / own)
    drift_between_planes(state, fixed, np.vstack([ROWS.T, OFFSETS]), turns, time, new_counts(3, 3))
    return state[POSITION, :3].copy(), state[MOMENTUM, :3].copy()


def walls_of_the_wedge():
    """Normals and offsets of all five walls."""
    normals = np.vstack([ROWS, [1.0, 0, 0], [0, -1.0, 0]])
    return normals, np.r_[OFFSETS, -LOWER[0], UPPER[1]]


def between_planes_slowly(position, momentum, time, n=40000):
    """Small straight steps; a wall that was crossed turns the momentum."""
    normals, offsets = walls_of_the_wedge()
    q, p = np.array(position), np.array(momentum)
    for _ in range(n):
        q = q + time / n * p / MASSES
        for a in normals[normals @ q + offsets < 0]:
            if a @ (p / MASSES) < 0:
                p = p - 2 * a * (a @ (p / MASSES)) / (a @ (a / MASSES))
    return q, p


START = np.array([0.2, -0.1, 0.3]), np.array([1.3, -2.1, 0.9])


def test_motion_between_planes():
    q, p = between_planes(*START, 3.0)
    slow = between_planes_slowly(*START, 3.0)
    np.testing.assert_allclose([q, p], slow, atol=5e-3)
    # the control: straight motion is long outside
    normals, offsets = walls_of_the_wedge()
    assert np.min(normals @ (START[0] + 3.0 * START[1] / MASSES) + offsets) < -1
    assert np.min(normals @ q + offsets) > 0


def test_motion_between_planes_is_reversible_and_keeps_the_energy():
    q, p = between_planes(*START, 7.0)
    np.testing.assert_allclose(np.sum(p**2 / MASSES), np.sum(START[1] ** 2 / MASSES))
    np.testing.assert_allclose(between_planes(q, p, -7.0), START, atol=1e-11)
    back, turned = between_planes(q, -p, 7.0)
    np.testing.assert_allclose([back, -turned], START, atol=1e-11)


def test_motion_between_planes_keeps_volume():
    h, start = 1e-6, np.concatenate(START)

    def flow(z):
        return np.concatenate(between_planes(z[:3], z[3:], 3.0))

    columns = [(flow(start + h * e) - flow(start - h * e)) / (2 * h) for e in np.eye(6)]
    assert abs(abs(np.linalg.det(columns)) - 1) < 1e-6


def test_a_motion_that_ends_on_a_plane_is_given_up():
    """On which side it is, is up to rounding."""
    q, _ = between_planes([0.0, 0.0, 0.0], [0.0, 1.0, 0.0], 0.0)
    assert np.all(np.isfinite(q))
    for z in (-1.0, -1.0 + 4e-16):  # a slack of zero, and one of a rounding error
        q, _ = between_planes([0.0, -1.0, z], [0.0, 1.0, 0.0], 0.0)
        assert np.isnan(q[0])


@njit(types.void(MATRIX, SYSTEM, types.float64))
def drifted(state, system, time):
    drift(state, system, time)


def test_each_coordinate_moves_in_its_own_way():
    """One straight, three between planes (and bounds), one that falls, two kept in order."""
    inverse_mass = np.r_[2.0, 1 / MASSES, 0.5, 3.0, 3.0]
    position = np.r_[0.4, START[0], 0.6, 1.0, 2.0]
    momentum = np.r_[-1.5, START[1], 1.2, 0.9, 0.2]
    gravity, time = 4.0, 1.7
    moved = np.zeros((3, 7))
    moved[:, 1:4] = ROWS / MASSES
    rows = np.zeros((3, 7))
    rows[:, 1:4] = ROWS
    gram = moved @ rows.T
    own = np.diag(gram)[:, None]
    infinite, nothing = np.full(7, np.inf), np.empty((0, 0))
    lower, upper, pull = -infinite, infinite.copy(), np.zeros(7)
    lower[1:4], upper[1:4], lower[4], pull[4] = LOWER, UPPER, 0.0, gravity / inverse_mass[4]
    planar = np.array([0, 1, 1, 1, 0, 0, 0])
    system = System(
        others=np.empty(0),
        sharpness=np.empty(0),
        coordinates=np.array([inverse_mass, lower, upper, pull, planar, *np.zeros((2, 7))]),
        bouncing=np.array([4]),
        rotating=np.empty(0, int),
        turning=False,
        planes=np.ascontiguousarray(np.vstack([rows.T, OFFSETS])),
        turns=np.ascontiguousarray(np.c_[moved, gram, rows] / own),
        dense=nothing,
        root=nothing,
        ordered=np.array([[5.0, 2.0, 1.0]]),
        inner=0,
        met=new_counts(7, 3),
    )
    state = new_state(position)
    state[MOMENTUM, :7] = momentum
    drifted(state, system, time)
    velocity = momentum * inverse_mass
    x, v, *_ = fall(position[4], velocity[4], 0.0, np.inf, gravity, time)
    ends = position[5:] + time * velocity[5:]
    assert ends[0] > ends[1]  # so that they meet
    q, p = between_planes(*START, time)
    expected = np.r_[position[0] + time * velocity[0], q, x, ends[::-1]]
    np.testing.assert_allclose(state[POSITION, :7], expected)
    expected = np.r_[momentum[0], p, v / inverse_mass[4], momentum[:4:-1]]
    np.testing.assert_allclose(state[MOMENTUM, :7], expected)


@pytest.mark.parametrize("velocity", [-1.3, 3.1])
@pytest.mark.parametrize("upper", [1.5, np.inf])
@pytest.mark.parametrize("time", [0.7, 40.0, -2.2])
def test_contacts_of_a_fall_are_those_of_its_parts(velocity, upper, time):
    """As many as in short stretches, each with one contact at most."""
    *_, low, high = fall(1.2, velocity, 0.5, upper, 2.0, time)
    x, v, parts = 1.2, velocity, np.zeros(2, int)
    for _ in range(397):
        x, v, *met = fall(x, v, 0.5, upper, 2.0, time / 397)
        parts += met
    assert (low, high) == tuple(parts)
    assert low > 0 or abs(time) < 1
    assert high == 0 or upper < np.inf


@pytest.mark.parametrize(
    ("position", "low", "high"), [(0.5, 0, 0), (-0.5, 1, 0), (1.5, 0, 1), (3.5, 1, 2), (-4.2, 3, 2)]
)
def test_contacts_of_a_straight_line_in_a_box(position, low, high):
    assert reflect(position, 1.0, 0.0, 1.0)[2:] == (low, high)
    assert reflect(position, 1.0, 0.0, np.inf)[2:] == (int(position < 0), 0)
    assert reflect(position, 1.0, -np.inf, 1.0)[2:] == (0, int(position > 1))


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_exchanges_are_counted_between_neighbours(direction):
    state, met = new_state(direction * np.array([3.0, 1.0, 2.0])), new_counts(3, 0)
    put_in_order(state, 0, 3, direction, met)
    assert np.array_equal(met[-3:], [1, 1, 0]) and met.sum() == 2


def test_contacts_with_planes_are_counted_by_plane():
    """A point between two planes, and an upper bound that it meets once."""
    planes = np.array([[1.0, -1.0], [0.0, 0.0], [0.0, 1.0]])  # 0 < x < 1
    turns = np.array([[1.0, 0, 1, -1, 1, 0], [-1.0, 0, -1, 1, -1, 0]])
    fixed = np.array([[1.0, 1], [-np.inf, 0], [np.inf, 1], [0, 0], [1, 1], [0, 0], [0, 0]])
    state, met = new_state(np.array([0.5, 0.5])), new_counts(2, 2)
    state[VELOCITY, :2] = state[MOMENTUM, :2] = 1.0, 0.25
    drift_between_planes(state, fixed, planes, turns, 2.8, met)
    assert np.array_equal(met, [1, 2, 0, 0, 0, 1, 0, 0])
