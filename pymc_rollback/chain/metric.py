"""The metric of a chain, and how it is estimated from a window of draws."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.window import TINY, Moments, Window
from pymc_rollback.target.walls import Walls


class Metric(NamedTuple):
    """An inverse mass matrix, and the reflections at planes that follow from it.

    Made by :func:`make_metric`, so that the parts fit each other.

    Attributes
    ----------
    variances
        Diagonal of the inverse mass matrix.
    covariance, root
        The inverse mass matrix of a dense metric, and a root of the mass matrix; else empty.
    planes, turns
        Slacks of the planes, and what a reflection at each of them does, as the kernels' ``System``
        has both. Bounds of coordinates that are correlated with others are among them: a reflection
        at such a bound changes several momenta.
    planar
        Which coordinates are turned at planes. In a dense metric they are some that no plane
        concerns, too.
    coupled
        Indices of the coordinates whose bounds are planes.
    """

    variances: np.ndarray
    covariance: np.ndarray
    root: np.ndarray
    planes: np.ndarray
    turns: np.ndarray
    planar: np.ndarray
    coupled: np.ndarray

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        r"""Lengths :math:`|\nabla g_j|_{M^{-1}}` of gradients, one a row."""
        moved = _apply(rows, self.variances, self.covariance)
        return np.sqrt(np.maximum(np.sum(moved * rows, axis=1), 0.0))


Bounds = tuple[np.ndarray, np.ndarray]
"""Lower and upper bounds at which coordinates are reflected, infinite where there are none."""


def make_metric(
    walls: Walls,
    variances: np.ndarray,
    covariance: np.ndarray | None = None,
    bounds: Bounds | None = None,
) -> Metric:
    """A diagonal metric, or a dense one where there is a covariance.

    Parameters
    ----------
    walls
        Which coordinates reflect, and the planes.
    variances, covariance
        The inverse mass matrix: its diagonal, and for a dense metric the whole.
    bounds
        Where coordinates reflect; needed where the covariance correlates one of them with others.
    """
    dense = root = np.empty((0, 0))
    planes, coupled = walls.planes, np.empty(0, dtype=int)
    if covariance is not None:
        dense, root = covariance, _root_of_inverse(covariance)
    if covariance is not None and bounds is not None:
        coupled = (walls.reflects & (np.count_nonzero(covariance, axis=0) > 1)).nonzero()[0]
        planes = np.ascontiguousarray(np.c_[planes, _as_planes(coupled, *bounds)])
    rows = planes[:-1].T
    moved = _apply(rows, variances, dense)
    gram = moved @ rows.T
    turns = np.ascontiguousarray(np.c_[moved, gram, rows] / np.diag(gram)[:, None])
    planar = walls.planar | np.any(moved != 0, axis=0)
    return Metric(variances, dense, root, planes, turns, planar, coupled)


def _root_of_inverse(covariance: np.ndarray) -> np.ndarray:
    """A root of the inverse, by way of the correlations, whatever the scales of the coordinates."""
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    return np.linalg.cholesky(np.linalg.inv(correlation)) / deviation[:, None]


def _as_planes(which: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Finite bounds of some coordinates as slacks ``x - lower`` and ``upper - x``, transposed."""
    columns = []
    for sign, bound in ((1.0, lower), (-1.0, upper)):
        finite = which[np.isfinite(bound[which])]
        columns.append(sign * np.r_[np.eye(lower.size)[:, finite], -bound[None, finite]])
    return np.concatenate(columns, axis=1)


def _apply(rows: np.ndarray, variances: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The inverse mass matrix times some vectors, one a row."""
    return rows @ covariance if covariance.size else rows * variances


def estimate_metric(
    window: Window,
    before: Metric,
    walls: Walls,
    *,
    dense: bool,
    early: bool,
    bounds: Bounds | None = None,
) -> Metric:
    """The metric that a window of draws suggests.

    Parameters
    ----------
    window
        Sums over the draws.
    before
        The metric of these draws.
    walls
        Which coordinates reflect, and which are kept in order.
    dense
        Whether it has correlations; the window must have products for it.
    early
        Whether the chain may still be on its way, so that the spread of its draws misleads.
    bounds
        Where coordinates reflect; None where that may change from draw to draw, so that those
        coordinates are to be correlated with no other.
    """
    moments = window.moments
    spread = _guess_variance(moments, walls.has_energy) if early else moments.variance
    pooled = _pool(moments.mean, spread, walls)
    stuck = not np.any(pooled > 0)  # in a metric so wide that every step leaves the region
    variances = np.where(pooled > 0, pooled, before.variances / (100 if stuck else 1))
    if not dense:
        return make_metric(walls, variances)
    weight = window.draws / (window.draws + walls.size + 5.0)
    apart = walls.reflects if bounds is None else walls.exchanges
    covariance = _shrink(window.covariance(), variances, weight, apart)
    return make_metric(walls, variances, covariance, bounds)


def _guess_variance(moments: Moments, has_barriers: bool) -> np.ndarray:
    """Guess a variance from few draws and the slopes there, which tell of places not yet seen.

    The guess is right for a normal density, from the first draws on, however slowly they spread, or
    far they come. Slopes know nothing of barriers: where there are any, the guess stays below the
    variance of the draws.
    """
    variance = moments.variance
    with np.errstate(all="ignore"):
        guess = np.sqrt(variance / moments.slope_variance)
        guess = 1 / (1 / guess + 1 / variance) if has_barriers else guess
    return np.where(np.isfinite(guess) & (guess > 0), guess, variance)


def _pool(mean: np.ndarray, variance: np.ndarray, walls: Walls) -> np.ndarray:
    """Variances, in which coordinates that exchange places share that of all their values."""
    pooled = walls.share(variance)
    for run, _ in walls.ordered:
        pooled[run] += np.var(mean[run])
    return pooled


def _shrink(
    covariance: np.ndarray, variances: np.ndarray, weight: float, apart: np.ndarray
) -> np.ndarray:
    """Covariance with the metric's variances and shrunk correlations; some coordinates have none.

    Coordinates that exchange places stay apart, as each takes the other's momentum alone.
    """
    deviation = np.sqrt(np.maximum(np.diag(covariance), TINY))
    free = ~apart
    correlation = weight * covariance / np.outer(deviation, deviation) * np.outer(free, free)
    np.fill_diagonal(correlation, 1.0)
    return correlation * np.sqrt(np.outer(variances, variances))
