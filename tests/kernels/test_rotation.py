"""Motion under a quadratic that is followed exactly, against many small steps."""

import numpy as np
import pytest
from numba import njit, types

from pymc_rollback.kernels.drift import drift, reflect
from pymc_rollback.kernels.native import MATRIX
from pymc_rollback.kernels.rotation import find_spring, first_crossing, swing
from pymc_rollback.kernels.state import (
    MOMENTUM,
    POSITION,
    SPRING,
    SYSTEM,
    System,
    new_counts,
    new_state,
)

pytestmark = pytest.mark.newest

OMEGA, CENTRE = 1.7, np.array([0.4, -2.0, 0.3])


def swing_slowly(position, velocity, lower, upper, centre, frequency, time, n=40000):
    step = time / n
    for _ in range(n):
        velocity -= 0.5 * step * frequency**2 * (position - centre)
        position, velocity, *_ = reflect(position + step * velocity, velocity, lower, upper)
        velocity -= 0.5 * step * frequency**2 * (position - centre)
    return position, velocity


@pytest.mark.parametrize("centre", [-2.0, 0.4, 3.0])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, np.inf), (-np.inf, 1.0), (-np.inf, np.inf)])
@pytest.mark.parametrize("velocity", [-1.2, 0.7, 4.0])
def test_one_coordinate_between_its_bounds(centre, bounds, velocity):
    given = *bounds, centre, OMEGA
    exact = swing(0.3, velocity, *given, 2.5)[:2]
    np.testing.assert_allclose(exact, swing_slowly(0.3, velocity, *given, 2.5), atol=5e-3)
    np.testing.assert_allclose(swing(*exact, *given, -2.5)[:2], (0.3, velocity), atol=1e-12)
    assert bounds[0] <= exact[0] <= bounds[1]


def test_a_coordinate_at_rest_in_the_centre_stays():
    assert swing(0.3, 0.0, 0.0, 1.0, 0.3, OMEGA, 2.5) == (0.3, 0.0, 0, 0)


@njit(types.void(MATRIX, SYSTEM, types.float64))
def moved(state, system, time):
    find_spring(state, system)
    drift(state, system, time)


ROWS = np.array([[1.0, -1.0, 0.0], [-0.6, 0.0, -0.8], [0.0, 1.0, 1.0]])
OFFSETS = np.array([1.0, 1.5, 2.0])
DENSE = np.array([[1.0, 0.6, -0.3], [0.6, 0.9, 0.2], [-0.3, 0.2, 2.0]])
START = np.array([0.2, -0.1, 0.3]), np.array([1.3, -2.1, 0.9])


def make_system(inverse, rows=ROWS, offsets=OFFSETS):
    """Three coordinates that turn between planes in a metric."""
    dense = root = np.empty((0, 0))
    if np.count_nonzero(inverse) > 3:
        dense, root = inverse, np.linalg.cholesky(np.linalg.inv(inverse))
    through = rows @ inverse
    gram = through @ rows.T
    infinite, planar = np.full(3, np.inf), np.full(3, float(len(rows) > 0))
    return System(
        others=np.empty(0),
        sharpness=np.empty(0),
        coordinates=np.array(
            [np.diag(inverse), -infinite, infinite, 0 * planar, planar, CENTRE, np.full(3, OMEGA)]
        ),
        bouncing=np.empty(0, int),
        rotating=np.arange(0 if len(rows) else 3),
        turning=len(rows) > 0,
        planes=np.ascontiguousarray(np.vstack([rows.T, offsets])),
        turns=np.ascontiguousarray(np.c_[through, gram, rows] / np.diag(gram)[:, None]),
        dense=dense,
        root=root,
        ordered=np.empty((0, 3)),
        inner=0,
        met=new_counts(3, len(rows)),
    )


def turned(system, position, momentum, time):
    state = new_state(np.array(position, float))
    state[MOMENTUM, :3] = momentum
    moved(state, system, time)
    return state[[POSITION, MOMENTUM, SPRING], :3]


def turned_slowly(inverse, position, momentum, time, n=80000):
    """Small kicks and straight steps; a plane that was crossed turns the momentum."""
    q, p = np.array(position), np.array(momentum)
    stiffness, step = OMEGA**2 * np.linalg.inv(inverse), time / n
    for _ in range(n):
        p = p - 0.5 * step * stiffness @ (q - CENTRE)
        q = q + step * inverse @ p
        for a in ROWS[ROWS @ q + OFFSETS < 0]:
            if a @ inverse @ p < 0:
                p = p - 2 * a * (a @ inverse @ p) / (a @ inverse @ a)
        p = p - 0.5 * step * stiffness @ (q - CENTRE)
    return q, p


METRICS = [np.diag([1.0, 0.5, 2.0]), DENSE]


@pytest.mark.parametrize("inverse", METRICS, ids=["diagonal", "dense"])
def test_rotation_between_planes(inverse):
    system = make_system(inverse)
    q, p, spring = turned(system, *START, 2.0)
    np.testing.assert_allclose([q, p], turned_slowly(inverse, *START, 2.0), atol=5e-3)
    np.testing.assert_allclose(spring, OMEGA**2 * np.linalg.solve(inverse, q - CENTRE), atol=1e-12)
    assert np.min(ROWS @ q + OFFSETS) > 0
    # the control: without planes it is outside
    q, _, _ = turned(make_system(inverse, ROWS[:0], OFFSETS[:0]), *START, 2.0)
    assert np.min(ROWS @ q + OFFSETS) < 0


def energy_of(inverse, q, p):
    spring = OMEGA**2 * np.linalg.solve(inverse, q - CENTRE)
    return 0.5 * (p @ inverse @ p + (q - CENTRE) @ spring)


@pytest.mark.parametrize("rows", [ROWS, ROWS[:0]], ids=["planes", "free"])
@pytest.mark.parametrize("inverse", METRICS, ids=["diagonal", "dense"])
def test_a_rotation_is_reversible_and_keeps_energy_and_volume(inverse, rows):
    system = make_system(inverse, rows, OFFSETS[: len(rows)])
    q, p, _ = turned(system, *START, 7.0)
    np.testing.assert_allclose(energy_of(inverse, q, p), energy_of(inverse, *START))
    back = turned(system, q, p, -7.0)
    np.testing.assert_allclose(back[:2], START, atol=1e-10)
    q, p, _ = turned(system, q, -p, 7.0)
    np.testing.assert_allclose([q, -p], START, atol=1e-10)
    h, start = 1e-6, np.concatenate(START)

    def flow(z):
        return turned(system, z[:3], z[3:], 2.0)[:2].ravel()

    columns = [(flow(start + h * e) - flow(start - h * e)) / (2 * h) for e in np.eye(6)]
    assert abs(abs(np.linalg.det(columns)) - 1) < 1e-6


def test_a_rotation_that_ends_on_a_plane_is_given_up():
    """On which side it is, is up to rounding."""
    q, _, _ = turned(make_system(METRICS[0]), [0.0, -1.0, -1.0], np.zeros(3), 0.0)
    assert np.isnan(q[0])


def test_first_crossings_are_found_with_and_without_inverse_functions():
    rng = np.random.default_rng(1)
    t = np.linspace(0, np.pi, 20001)
    for _ in range(200):
        A, B, slack = rng.normal(size=6), rng.normal(size=6), rng.exponential(0.5, size=6)
        C, until = slack - A, rng.uniform(0.1, np.pi)
        within = t[t < until]
        values = np.outer(A, np.cos(within)) + np.outer(B, np.sin(within)) + C[:, None]
        met = np.any(values < 0, axis=0)
        expected = within[np.argmax(met)] if np.any(met) else until
        angle, which = first_crossing(A, B, C, until)
        assert angle == pytest.approx(expected, abs=3e-4)
        assert (which >= 0) == np.any(met)


@pytest.mark.parametrize("velocity", [-1.3, 0.8])
@pytest.mark.parametrize(("lower", "upper"), [(-0.5, 0.6), (-0.5, np.inf), (-9.0, 0.6)])
@pytest.mark.parametrize("time", [0.9, 3.1, 40.0, -2.2])
def test_contacts_of_a_swing_are_those_of_its_parts(velocity, lower, upper, time):
    """As many as in short stretches, each with one contact at most."""
    *_, low, high = swing(0.3, velocity, lower, upper, 0.1, OMEGA, time)
    x, v, parts = 0.3, velocity, np.zeros(2, int)
    for _ in range(400):
        x, v, *met = swing(x, v, lower, upper, 0.1, OMEGA, time / 400)
        parts += met
    assert (low, high) == tuple(parts)
