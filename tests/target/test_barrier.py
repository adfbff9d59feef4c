"""Boundary terms and their gradients, against the closed forms of the paper's Table 1."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_rollback.target.barrier import boundary_term

MU = 3.0


def wall(g):
    """log(1 + exp(-mu g))."""
    return np.log(1 + np.exp(-MU * g))


def force(g):
    """mu / (1 + exp(mu g))."""
    return MU / (1 + np.exp(MU * g))


# slacks; the printed term; the printed gradient; points inside, on and outside
REGIONS = {
    "none": (
        lambda x, y: [],
        lambda x, y: 0.0,
        lambda x, y: (0.0, 0.0),
        [(0.3, -0.2), (1.0, 2.0)],
    ),
    "half plane": (
        lambda x, y: [y],
        lambda x, y: wall(y),
        lambda x, y: (0.0, -force(y)),
        [(0.4, 0.7), (0.4, 0.0), (0.4, -0.9)],
    ),
    "wedge": (
        lambda x, y: [y, x - y],
        lambda x, y: wall(y) + wall(x - y),
        lambda x, y: (-force(x - y), force(x - y) - force(y)),
        [(1.0, 0.3), (0.5, 0.5), (1.0, 0.0), (-0.6, 0.2), (0.7, -0.4)],
    ),
    "disk": (
        lambda x, y: [2 - x**2 - y**2],
        lambda x, y: wall(2 - x**2 - y**2),
        lambda x, y: (
            2 * x * force(2 - x**2 - y**2),
            2 * y * force(2 - x**2 - y**2),
        ),
        [(0.2, -0.5), (1.0, 1.0), (-1.3, 0.9)],
    ),
    "half disk": (
        lambda x, y: [2 - x**2 - y**2, y],
        lambda x, y: wall(2 - x**2 - y**2) + wall(y),
        lambda x, y: (
            2 * x * force(2 - x**2 - y**2),
            2 * y * force(2 - x**2 - y**2) - force(y),
        ),
        [(0.2, 0.5), (1.0, 1.0), (0.3, 0.0), (-1.3, 0.9), (0.1, -0.5)],
    ),
    "parabola": (
        lambda x, y: [x - y**2],
        lambda x, y: wall(x - y**2),
        lambda x, y: (-force(x - y**2), 2 * y * force(x - y**2)),
        [(1.0, 0.5), (0.25, -0.5), (-0.3, 0.8)],
    ),
}


def term_and_gradient(slacks, sharpness=MU, mode="FAST_COMPILE"):
    """Compiled boundary term and gradient of slacks of a point (x, y)."""
    point = pt.dvector("point")
    rows = slacks(point[0], point[1])
    energy = boundary_term(pt.stack(rows) if rows else pt.zeros(0), sharpness)
    gradient = pt.grad(energy, point, disconnected_inputs="ignore")
    return pytensor.function([point], [energy, gradient], mode=mode, on_unused_input="ignore")


@pytest.mark.parametrize("region", REGIONS)
def test_table_1(region):
    slacks, term, gradient, points = REGIONS[region]
    function = term_and_gradient(slacks)
    for point in points:
        value, slope = function(np.array(point))
        np.testing.assert_allclose(value, term(*point), rtol=1e-12)
        np.testing.assert_allclose(slope, gradient(*point), rtol=1e-12)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_nothing_overflows(mode):
    function = term_and_gradient(lambda x, y: [y], mode=mode)
    for slack, value, slope in ((1e6, 0.0, 0.0), (-1e6, MU * 1e6, -MU)):
        energy, gradient = function(np.array([0.0, slack]))
        assert energy == value
        np.testing.assert_array_equal(gradient, [0.0, slope])


def test_a_sharpness_per_row():
    function = term_and_gradient(lambda x, y: [x, y], sharpness=np.array([1.0, 50.0]))
    value, slope = function(np.array([0.1, -0.2]))
    np.testing.assert_allclose(value, np.log1p(np.exp(-0.1)) + np.log1p(np.exp(10)))
    np.testing.assert_allclose(slope, [-1 / (1 + np.exp(0.1)), -50 / (1 + np.exp(-10))])
