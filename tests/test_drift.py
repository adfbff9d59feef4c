"""The drift: reflection, free fall between walls, and exchange of neighbours."""

import numpy as np
import pytest

from pymc_rollback.leapfrog import MOMENTUM, POSITION, fall, new_state, put_in_order, reflect


def fall_slowly(position, velocity, lower, upper, gravity, time, n=20000):
    """Many small steps of reflected motion under gravity."""
    step = time / n
    for _ in range(n):
        velocity -= 0.5 * step * gravity
        position, velocity = reflect(position + step * velocity, velocity, lower, upper)
        velocity -= 0.5 * step * gravity
    return position, velocity


@pytest.mark.parametrize("upper", [np.inf, 1.5])
@pytest.mark.parametrize("velocity", [-1.3, 0.4, 2.1])
def test_fall_is_reflected_motion_under_gravity(velocity, upper):
    exact = fall(1.2, velocity, 0.5, upper, 2.0, 1.7)
    np.testing.assert_allclose(exact, fall_slowly(1.2, velocity, 0.5, upper, 2.0, 1.7), atol=2e-3)
    np.testing.assert_allclose(fall(*exact, 0.5, upper, 2.0, -1.7), (1.2, velocity), atol=1e-12)


@pytest.mark.parametrize(("lower", "upper"), [(0.0, np.inf), (-np.inf, 1.0), (0.0, 1.0)])
def test_reflect_stays_inside_and_flips_with_every_wall(lower, upper):
    for position in np.linspace(-0.9, 1.9, 57):
        x, v = reflect(position, 3.0, lower, upper)
        outside = position < lower or position > upper
        assert lower <= x <= upper
        assert v == (-3.0 if outside else 3.0)


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_neighbours_exchange_their_momenta(direction):
    position = np.array([9.0, 3.0, 1.0, 2.0, -9.0])
    state = new_state(position)
    state[MOMENTUM, :5] = np.arange(5.0)
    put_in_order(state, 1, 3, direction)
    order = [0, 2, 3, 1, 4] if direction > 0 else [0, 1, 3, 2, 4]
    assert state[POSITION, :5].tolist() == position[order].tolist()
    assert state[MOMENTUM, :5].tolist() == order
