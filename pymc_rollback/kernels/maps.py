"""Elementwise maps from coordinates to values: none, a log above or below a bound, a logit.

A density is compiled in terms of values. Under a map a coordinate is anywhere on the line, and its
density has the factor :math:`dx / dq` besides.
"""

import numpy as np

from pymc_rollback.kernels.cache import cached
from pymc_rollback.kernels.native import inlined
from pymc_rollback.kernels.state import (
    KIND,
    LEAST,
    LOG_DENSITY,
    MOST,
    NO_MAPS,
    POSITION,
    PUSH,
    SLOPE,
)

ROUNDING = 1e-13
"""Part of a slope that is an error of rounding."""

NONE, ABOVE, BELOW, BETWEEN = range(4)
"""Kinds of maps: ``q``, ``least + exp(q)``, ``most - exp(-q)``, and a logistic between the two."""


@inlined
def find_value(maps, i, q):
    """The value at a coordinate; its slope there, the logarithm of that, and the log's slope."""
    kind, least, most = maps[KIND, i], maps[LEAST, i], maps[MOST, i]
    if kind == ABOVE:
        above = np.exp(q)
        return least + above, above, q, 1.0
    if kind == BELOW:
        below = np.exp(-q)
        return most - below, below, -q, -1.0
    if kind == BETWEEN:
        tail = np.exp(-abs(q))
        width, far = most - least, 1.0 / (1.0 + tail)
        near = width * tail * far
        x, sign = (most - near, 1.0) if q > 0 else (least + near, -1.0)
        log = np.log(width) - abs(q) + 2.0 * np.log(far)
        return x, near * far, log, -sign * (1.0 - tail) * far
    return q, 1.0, 0.0, 0.0


@inlined
def find_coordinate(maps, i, x):
    """The coordinate of a value."""
    kind, least, most = maps[KIND, i], maps[LEAST, i], maps[MOST, i]
    if kind == ABOVE:
        return np.log(x - least)
    if kind == BELOW:
        return -np.log(most - x)
    if kind == BETWEEN:
        return np.log(x - least) - np.log(most - x)
    return x


@inlined
def find_values(maps, position):
    """The values at a position."""
    values = np.empty(position.size)
    for i in range(position.size):
        values[i] = find_value(maps, i, position[i])[0]
    return values


@inlined
def map_slope(maps, state):
    """From the slope of the log density by values to that by coordinates, in place."""
    for i in range(maps.shape[1]):
        _, stretch, log, slope = find_value(maps, i, state[POSITION, i])
        state[SLOPE, i] = state[SLOPE, i] * stretch + slope
        state[SLOPE, LOG_DENSITY] += log


@inlined
def map_push(maps, state):
    """From the gradient of the boundary energy by values to that by coordinates, in place."""
    for i in range(maps.shape[1]):
        state[PUSH, i] *= find_value(maps, i, state[POSITION, i])[1]


@cached
def change_points(before, after, points):
    """Write points in other coordinates, in place; a value stays off the bounds of its map.

    Parameters
    ----------
    before, after
        The maps of the coordinates; without columns where there are none.
    points
        The points.
    """
    for k in range(points.shape[0]):
        point = points[k]
        for i in range(before.shape[1]):
            x, stretch, log, slope = find_value(before, i, point[POSITION, i])
            least, most = before[LEAST, i], before[MOST, i]
            if before[KIND, i] != NONE:
                # what is left of a slope is rounding, where the value is next to its bound
                left = point[SLOPE, i] - slope
                lost = abs(left) <= ROUNDING * abs(point[SLOPE, i])
                point[SLOPE, i] = 0.0 if lost else left / stretch
                point[SLOPE, LOG_DENSITY] -= log
                x = min(max(x, np.nextafter(least, np.inf)), np.nextafter(most, -np.inf))
            point[POSITION, i] = x
        for i in range(after.shape[1]):
            point[POSITION, i] = find_coordinate(after, i, point[POSITION, i])
        if after.shape[1] > 0:
            map_slope(after, point)


@cached
def find_values_of(maps, position):
    """Values at a position, and by how much they change with each coordinate."""
    values, stretches = position.copy(), np.ones(position.size)
    for i in range(maps.shape[1]):
        values[i], stretches[i] = find_value(maps, i, position[i])[:2]
    return values, stretches


def changed(before: np.ndarray, after: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points in other coordinates."""
    if before is after or before.size == after.size == 0:
        return points
    points = np.array(points)
    change_points(before, after, points)
    return points


def in_values(maps: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points in terms of values, in which densities are compiled."""
    return changed(maps, NO_MAPS, points)
