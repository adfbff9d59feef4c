"""A metric and what follows from it, and its estimate from a window of draws."""

from dataclasses import replace

import numpy as np
import pytest

from pymc_rollback.chain.metric import estimate_metric, make_metric
from pymc_rollback.chain.window import open_window
from pymc_rollback.target.ledger import empty_ledger
from pymc_rollback.target.walls import Walls

COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])

WALLS = Walls(
    size=3,
    reflects=np.zeros(3, dtype=bool),
    runs=np.empty((0, 3)),
    run_names=(),
    planes=np.array([[0.6], [0.0], [0.8], [1.0]]),
    mirrors=(),
    barrier_rows=0,
    is_affine=True,
    has_energy=False,
    sharp=(),
    ledger=empty_ledger(3),
)
"""A plane that concerns the first and the last coordinate."""


def window_of(draws, dense=False, slopes=None):
    window = open_window(draws.shape[1], dense)
    for x, slope in zip(draws, np.zeros_like(draws) if slopes is None else slopes, strict=True):
        window = window.add(x, slope)
    return window


@pytest.fixture
def draws():
    return np.random.default_rng(1).multivariate_normal([5.0, 0.0, -5.0], COVARIANCE, 4000)


@pytest.mark.parametrize("dense", [False, True])
def test_a_turn_keeps_the_kinetic_energy(dense):
    """It reverses the rate at which the slack of the plane changes, and momentum fits velocity."""
    inverse_mass = COVARIANCE if dense else np.diag(np.diag(COVARIANCE))
    metric = make_metric(WALLS, np.diag(COVARIANCE), COVARIANCE if dense else None)
    normal, momentum = WALLS.planes[:-1, 0], np.array([1.0, -2.0, 0.5])
    velocity = inverse_mass @ momentum
    rate = normal @ velocity
    velocity_turn, [rate_turn], momentum_turn = np.split(2 * rate * metric.turns[0], [3, 4])
    np.testing.assert_allclose(inverse_mass @ (momentum - momentum_turn), velocity - velocity_turn)
    assert normal @ (velocity - velocity_turn) == pytest.approx(-rate)
    assert rate - rate_turn == pytest.approx(-rate)
    turned = momentum - momentum_turn
    assert turned @ inverse_mass @ turned == pytest.approx(momentum @ velocity)
    # the second coordinate is turned only because it is correlated with the first
    assert metric.planar.tolist() == [True, dense, True]


def test_lengths_in_a_metric():
    metric = make_metric(WALLS, np.diag(COVARIANCE), COVARIANCE)
    assert metric.lengths(np.array([[1.0, 1.0, 0.0]])) == pytest.approx(2.0)
    np.testing.assert_allclose(metric.root @ metric.root.T, np.linalg.inv(COVARIANCE))


def test_moments_are_those_of_the_draws(draws):
    slopes = (draws - draws.mean(0)) / np.diag(COVARIANCE) + 3.0
    moments = window_of(draws, slopes=slopes).moments
    np.testing.assert_allclose(moments.mean, draws.mean(0))
    np.testing.assert_allclose(moments.variance, draws.var(0))
    np.testing.assert_allclose(moments.slope, 3.0)
    np.testing.assert_allclose(moments.slope_variance, slopes.var(0))
    np.testing.assert_allclose(moments.cross_covariance, draws.var(0) / np.diag(COVARIANCE))
    assert abs(moments.autocorrelation()) < 0.1
    assert window_of(np.ones((5, 3))).moments.autocorrelation() is None


def test_pull_is_the_slope_at_the_nearer_wall(draws):
    """The potential (x - 5)²/2 + 20 x, and so on: only the first wall is pressed against."""
    slopes = draws - [5.0, 0.0, -5.0] + [20.0, -20.0, 0.0]
    moments = window_of(draws, slopes=slopes).moments
    lower, upper = np.array([-2.0, -9.0, -9.0]), np.full(3, np.inf)
    np.testing.assert_allclose(moments.pull(lower, upper), [13.0, 0.0, 0.0])


def test_estimates(draws):
    unit = make_metric(WALLS, np.ones(3))
    diagonal = estimate_metric(window_of(draws), unit, WALLS, dense=False, early=False)
    np.testing.assert_allclose(diagonal.variances, draws.var(0))
    assert diagonal.covariance.size == diagonal.root.size == 0
    window = window_of(draws, dense=True)
    dense = estimate_metric(window, unit, WALLS, dense=True, early=False)
    covariance = np.cov(draws.T, bias=True)
    np.testing.assert_allclose(dense.covariance, covariance, rtol=1e-10, atol=1e-12)
    few = draws[:5]
    dense = estimate_metric(window_of(few, dense=True), unit, WALLS, dense=True, early=False)
    expected = 5 / (5 + 3 + 5) * np.cov(few.T, bias=True)
    np.fill_diagonal(expected, few.var(0))
    np.testing.assert_allclose(dense.covariance, expected, rtol=1e-10, atol=1e-12)


BOUNDS = np.array([-1.0, -np.inf, -np.inf]), np.array([2.0, 5.0, np.inf])


def dense_metric(draws, walls, bounds):
    kind = {"dense": True, "early": False, "bounds": bounds}
    unit = make_metric(walls, np.ones(3))
    return estimate_metric(window_of(draws, dense=True), unit, walls, **kind)


def test_bounds_that_may_move_are_of_coordinates_that_are_correlated_with_no_other(draws):
    walls = replace(WALLS, reflects=np.array([True, False, False]))
    metric = dense_metric(draws, walls, None)
    assert not np.any(metric.covariance[0, 1:]) and metric.covariance[1, 2] != 0
    assert metric.coupled.size == 0 and metric.planes is walls.planes


def test_bounds_of_correlated_coordinates_are_planes(draws):
    """Reflected in the metric, so that the kinetic energy stays; an infinite bound is none."""
    walls = replace(WALLS, reflects=np.array([True, True, False]))
    metric = dense_metric(draws, walls, BOUNDS)
    assert metric.coupled.tolist() == [0, 1] and metric.planar.all()
    expected = [[1, 0, 0, 1], [-1, 0, 0, 2], [0, -1, 0, 5]]
    np.testing.assert_array_equal(metric.planes[:, 1:].T, expected)
    np.testing.assert_array_equal(metric.planes[:, :1], walls.planes)
    momentum = np.array([1.0, -2.0, 0.5])
    velocity = metric.covariance @ momentum
    for row, turn in zip(metric.planes[:-1].T, metric.turns, strict=True):
        turned = momentum - 2 * (row @ velocity) * turn[-3:]
        assert turned @ metric.covariance @ turned == pytest.approx(momentum @ velocity)
        assert row @ metric.covariance @ turned == pytest.approx(-row @ velocity)


def spread_of(matrix, truth):
    """Greatest by smallest variance, in the directions in which the true covariance is round."""
    values = np.linalg.eigvals(np.linalg.solve(truth, matrix)).real
    return values.max() / values.min()


def collinear(size=10, correlation=0.999):
    return correlation * np.ones((size, size)) + (1 - correlation) * np.eye(size)


WIDE = replace(WALLS, size=10, reflects=np.zeros(10, dtype=bool), planes=np.empty((11, 0)))


def metric_of(draws, slopes):
    window = window_of(draws, dense=True, slopes=slopes)
    unit = make_metric(WIDE, np.ones(10))
    return estimate_metric(window, unit, WIDE, dense=True, early=False).covariance


def test_slopes_tell_the_covariance_of_normals_from_few_draws():
    """Thirty draws of ten; the draws alone are off by ten and more. The slopes have no error."""
    truth = collinear()
    draws = np.random.default_rng(4).multivariate_normal(np.zeros(10), truth, 30)
    slopes = draws @ np.linalg.inv(truth)
    assert spread_of(metric_of(draws, slopes), truth) < 2
    assert spread_of(np.cov(draws.T), truth) > 10
    assert spread_of(metric_of(draws, np.zeros((30, 10))), truth) > 10


def test_walls_that_confine_the_draws_are_seen():
    """Normals that a box cuts to a tenth in half of the directions: the draws say so."""
    rng = np.random.default_rng(5)
    width = np.repeat([0.1, 1.0], 5)
    draws = rng.normal(size=(2000, 10)) * width
    found = np.diag(metric_of(draws, draws))
    assert np.max(np.abs(np.log(found / width**2))) < 0.3


def test_draws_in_a_plane_or_that_do_not_move_give_a_metric():
    rng = np.random.default_rng(6)
    flat = rng.normal(size=(40, 10))
    flat[:, 1] = flat[:, 0]
    for draws in (flat, np.ones((40, 10))):
        for slopes in (draws, 1e8 * draws, np.zeros_like(draws)):
            assert np.linalg.eigvalsh(metric_of(draws, slopes)).min() > 0


def test_coordinates_that_exchange_places_are_correlated_with_no_other(draws):
    runs = {"runs": np.array([[0.0, 2.0, 1.0]]), "run_names": ("x",)}
    walls = replace(WALLS, reflects=np.array([True, True, False]), **runs)
    metric = dense_metric(draws, walls, BOUNDS)
    assert np.count_nonzero(metric.covariance) == 3 and metric.coupled.size == 0


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_a_root_whatever_the_scale(scale):
    scales = np.array([scale, 1.0, 1.0])
    covariance = COVARIANCE * np.outer(scales, scales)
    root = make_metric(WALLS, np.diag(covariance), covariance).root * scales[:, None]
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(COVARIANCE), atol=1e-12)


def test_coordinates_that_exchange_places_share_one_variance(draws):
    walls = replace(WALLS, runs=np.array([[0.0, 2.0, -1.0]]), run_names=("x",))
    unit = make_metric(walls, np.ones(3))
    metric = estimate_metric(window_of(draws), unit, walls, dense=False, early=False)
    np.testing.assert_allclose(metric.variances[:2], np.var(draws[:, :2]))
    np.testing.assert_allclose(metric.variances[2], np.var(draws[:, 2]))
