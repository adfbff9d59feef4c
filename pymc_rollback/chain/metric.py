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
    frequency
        With which each coordinate oscillates under the curvature of the potential, where the drift
        follows that; zero where it does not.
    """

    variances: np.ndarray
    covariance: np.ndarray
    root: np.ndarray
    planes: np.ndarray
    turns: np.ndarray
    planar: np.ndarray
    coupled: np.ndarray
    frequency: np.ndarray

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """The inverse mass matrix times some vectors, one a row."""
        return _apply(rows, self.variances, self.covariance)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        r"""Lengths :math:`|\nabla g_j|_{M^{-1}}` of gradients, one a row."""
        moved = self.apply(rows)
        return np.sqrt(np.maximum(np.sum(moved * rows, axis=1), 0.0))


FLAT, LONGER = 0.01, 3.0
"""Curvature in units of the draws that is none; how much farther a flat coordinate may move."""

LEAST_SHARE = 1e-4
"""Variance in a direction, of what its coordinates' variances suggest, that may be an error."""

Bounds = tuple[np.ndarray, np.ndarray]
"""Lower and upper bounds at which coordinates are reflected, infinite where there are none."""


def make_metric(
    walls: Walls,
    variances: np.ndarray,
    covariance: np.ndarray | None = None,
    bounds: Bounds | None = None,
    frequency: np.ndarray | None = None,
) -> Metric:
    """A diagonal metric, or a dense one where there is a covariance.

    Parameters
    ----------
    walls
        Which coordinates reflect, and the planes.
    variances, covariance
        The inverse mass matrix: its diagonal, and for a dense metric the whole.
    bounds
        Where coordinates reflect; needed where the covariance correlates one of them with others,
        or where one that planes concern oscillates.
    frequency
        With which coordinates oscillate; zero if left out.
    """
    dense = root = np.empty((0, 0))
    planes, coupled = walls.planes, np.empty(0, dtype=int)
    frequency = np.zeros(walls.size) if frequency is None else frequency
    with_others = walls.planar & (frequency > 0)
    if covariance is not None:
        dense, root = covariance, _root_of_inverse(covariance)
        with_others = with_others | (np.count_nonzero(covariance, axis=0) > 1)
    if bounds is not None:
        coupled = (walls.reflects & with_others).nonzero()[0]
        planes = np.ascontiguousarray(np.c_[planes, _as_planes(coupled, *bounds)])
    rows = planes[:-1].T
    moved = _apply(rows, variances, dense)
    gram = moved @ rows.T
    turns = np.ascontiguousarray(np.c_[moved, gram, rows] / np.diag(gram)[:, None])
    planar = walls.planar | np.any(moved != 0, axis=0)
    return Metric(variances, dense, root, planes, turns, planar, coupled, frequency)


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
    curved: bool = False,
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
    curved
        Whether the mass is to be the curvature of the potential, where it has one.
    bounds
        Where coordinates reflect; None where that may change from draw to draw, so that those
        coordinates are to be correlated with no other.
    """
    moments = window.moments
    spread = _guess_variance(moments, walls.has_energy) if early else moments.variance
    pooled = _pool(moments.mean, spread, walls)
    stuck = not np.any(pooled > 0)  # in a metric so wide that every step leaves the region
    variances = np.where(pooled > 0, pooled, before.variances / (100 if stuck else 1))
    frequency = np.zeros(walls.size)
    if curved:
        variances, frequency = _bend(moments, variances, walls)
    if not dense:
        return make_metric(walls, variances, None, bounds if curved else None, frequency)
    apart = walls.reflects if bounds is None else walls.exchanges
    frequency = np.where(apart, frequency, float(curved))
    draws, slopes = window.covariances()
    if window.draws < 2 * walls.size and not curved:
        weight = window.draws / (window.draws + walls.size + 5.0)
        covariance = _shrink(draws, variances, weight, apart)
    else:
        # where nothing is taken for more than an error, what is left is the curvature
        count = 0.0 if curved else moments.effective(window.draws)
        covariance = _steady(draws, slopes, count, apart)
        covariance[apart, apart] = variances[apart]
    return make_metric(walls, np.diag(covariance).copy(), covariance, bounds, frequency)


def _bend(moments: Moments, variances: np.ndarray, walls: Walls) -> tuple[np.ndarray, np.ndarray]:
    """Inverse masses and frequencies with which a diagonal metric follows the curvature.

    The curvature is the slope's regression on the draws, in units of their variances. Its inverse
    is the inverse mass, with the frequency one. A coordinate between its own bounds has a frequency
    of its own: it may be heavier, or, where it is flat, lighter than the draws suggest, so that the
    same time is good for all. None is lighter than what its motion does not follow allows.
    """
    mean, slope = moments.mean, moments.slope
    curvature, varies = walls.share(moments.cross_covariance), walls.share(moments.slope_variance)
    for run, _ in walls.ordered:
        curvature[run] += np.mean((mean[run] - mean[run].mean()) * slope[run])
        varies[run] += np.var(slope[run])
    pressed = np.abs(walls.share(slope)) * np.sqrt(variances)
    left = np.maximum(variances * varies - curvature**2, TINY)
    lighter = np.clip(LONGER / (1 + pressed), 1.0, np.maximum(0.5 / np.sqrt(left), 1.0)) ** 2
    alone = walls.reflects & ~walls.planar
    bends = ~alone | (curvature > FLAT)
    inverse = np.where(bends, 1 / np.maximum(curvature, FLAT), np.inf)
    inverse = np.where(alone, np.minimum(inverse, lighter), inverse)
    frequency = np.sqrt(np.where(bends, np.maximum(curvature, FLAT) * inverse, 0.0))
    return variances * inverse, frequency


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


def _steady(draws: np.ndarray, slopes: np.ndarray, count: float, apart: np.ndarray) -> np.ndarray:
    r"""Covariance :math:`S` of some draws, steadied by that of the slopes :math:`G` there.

    For a normal density :math:`G = Q S Q`, so that :math:`Q^{-1} = S^{1/2} B^{-1/2} S^{1/2}` with
    :math:`B = S^{1/2} G S^{1/2}` is known without an error from any draws, wherever walls are. By
    how much the draws are narrower is :math:`B^{1/2}`: its logarithm differs between directions by
    the error of :math:`S`, or by more, where walls confine the draws. What the error explains is
    taken out: with the share :math:`w` that it does not explain, the result is

    .. math:: b^{1 - w} S^{1/2} B^{(w - 1) / 2} S^{1/2},

    where :math:`b` is the geometric mean of the eigenvalues of :math:`B^{1/2}`.

    Parameters
    ----------
    draws, slopes
        Covariances of the draws and of the slopes.
    count
        Number of draws, were they independent; zero for :math:`Q^{-1}` itself.
    apart
        Coordinates that are to be correlated with no other.
    """
    deviation = np.sqrt(np.maximum(np.diag(draws), TINY))
    scales = np.outer(deviation, deviation)
    together = np.outer(~apart, ~apart) | np.eye(apart.size, dtype=bool)
    values, vectors = np.linalg.eigh(np.where(together, draws / scales, 0.0))
    root = (vectors * np.sqrt(np.maximum(values, LEAST_SHARE))) @ vectors.T
    values, vectors = np.linalg.eigh(root @ np.where(together, slopes * scales, 0.0) @ root)
    narrow = 0.5 * np.log(np.maximum(values, max(LEAST_SHARE**2 * values[-1], TINY)))
    share, middle = 0.0, 0.0
    if count > 0:
        error, middle = (apart.size + 2.0) / count, np.mean(narrow)
        share = max(1.0 - error / max(np.var(narrow), error), 0.0)
    widths = np.exp((1.0 - share) * (middle - narrow))
    return np.where(together, root @ (vectors * widths) @ vectors.T @ root * scales, 0.0)
