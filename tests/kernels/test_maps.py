"""Maps between coordinates and values."""

import numpy as np
import pytest
from numba import njit

from pymc_rollback.kernels.maps import (
    ABOVE,
    BELOW,
    BETWEEN,
    NONE,
    change_points,
    changed,
    find_coordinate,
    find_value,
    find_values_of,
    in_values,
)
from pymc_rollback.kernels.state import (
    BEYOND,
    LOG_DENSITY,
    NO_MAPS,
    POSITION,
    SLOPE,
    new_points,
)

MAPS = np.array(
    [
        [NONE, ABOVE, BELOW, BETWEEN],
        [-np.inf, 2.0, -np.inf, -1.0],
        [np.inf, np.inf, 5.0, 3.0],
    ]
)
Q = np.array([0.7, -0.4, 1.3, -0.8])


@njit
def value(maps, i, q):
    return find_value(maps, i, q)


@njit
def coordinate(maps, i, x):
    return find_coordinate(maps, i, x)


def density(x):
    """Log density of values, and its slope: a skewed one, so that no sign can hide."""
    return np.sum(np.sin(x) - 0.1 * x**2), np.cos(x) - 0.2 * x


def point_at(position, log_density, slope):
    [point] = new_points(1, position.size)
    point[POSITION, : position.size] = position
    point[SLOPE, : position.size] = slope
    point[SLOPE, LOG_DENSITY] = log_density
    return point


@pytest.mark.parametrize("i", range(4))
@pytest.mark.parametrize("q", [-3.0, -0.2, 0.0, 0.9, 4.0])
def test_a_value_its_slope_and_the_slopes_logarithm(i, q):
    x, stretch, log, slope = value(MAPS, i, q)
    h = 1e-5
    (up, _, log_up, _), (down, _, log_down, _) = (value(MAPS, i, q + e) for e in (h, -h))
    assert MAPS[1, i] < x < MAPS[2, i]
    assert coordinate(MAPS, i, x) == pytest.approx(q, abs=1e-12)
    assert (up - down) / (2 * h) == pytest.approx(stretch, rel=1e-8)
    assert np.log(stretch) == pytest.approx(log, abs=1e-12)
    assert (log_up - log_down) / (2 * h) == pytest.approx(slope, abs=1e-8)


def test_next_to_a_bound_at_zero_no_digit_is_lost():
    maps = np.array([[ABOVE, BETWEEN], [0.0, 0.0], [np.inf, 1.0]])
    for i in range(2):
        for x in (1e-300, 3e-17, 1e-3):
            q = coordinate(maps, i, x)
            found, stretch, log, _ = value(maps, i, q)
            assert found == pytest.approx(x, rel=1e-12)
            assert stretch == pytest.approx(x, rel=2e-3)
            assert np.isfinite(log)


def test_far_out_nothing_overflows_where_the_density_is_finite():
    for q in (-700.0, 700.0):
        numbers = np.array([value(MAPS, 3, q)])
        assert np.all(np.isfinite(numbers))
    assert value(MAPS, 3, -700.0)[2:] == pytest.approx((np.log(4.0) - 700.0, 1.0))
    assert value(MAPS, 3, 700.0)[2:] == pytest.approx((np.log(4.0) - 700.0, -1.0))


def test_a_point_in_other_coordinates():
    """Its log density and slope are those of the density of the coordinates."""

    def of_coordinates(q):
        x = np.array([value(MAPS, i, q[i])[0] for i in range(4)])
        logs = sum(value(MAPS, i, q[i])[2] for i in range(4))
        return density(x)[0] + logs

    x, _ = find_values_of(MAPS, Q)
    points = point_at(x, *density(x))[None]
    mapped = changed(NO_MAPS, MAPS, points)
    np.testing.assert_allclose(mapped[0, POSITION, :-BEYOND], Q)
    assert mapped[0, SLOPE, LOG_DENSITY] == pytest.approx(of_coordinates(Q))
    h = 1e-5
    slopes = [(of_coordinates(Q + h * e) - of_coordinates(Q - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(mapped[0, SLOPE, :-BEYOND], slopes, rtol=1e-7)
    np.testing.assert_allclose(in_values(MAPS, mapped), points, atol=1e-12)
    # from one choice of maps to another as by way of values
    other = MAPS.copy()
    other[0] = NONE, NONE, BELOW, NONE
    np.testing.assert_allclose(
        changed(MAPS, other, mapped), changed(NO_MAPS, other, points), atol=1e-12
    )


def test_points_are_changed_in_place_only_by_the_kernel():
    x, _ = find_values_of(MAPS, Q)
    points = point_at(x, *density(x))[None]
    kept = points.copy()
    changed(NO_MAPS, MAPS, points)
    np.testing.assert_array_equal(points, kept)
    change_points(NO_MAPS, MAPS, points)
    assert not np.array_equal(points, kept)


def test_a_value_that_rounds_onto_a_bound_stays_inside():
    slopes = np.array([0.0, 1.0, -1.0, -1.0])
    far = point_at(np.array([0.0, -800.0, 800.0, 50.0]), 0.0, slopes)[None]
    [found] = in_values(MAPS, far)
    x = found[POSITION, :-BEYOND]
    assert np.all((x > MAPS[1]) & (x < MAPS[2]))
    assert np.all(np.isfinite(found[SLOPE]))
