"""The metric that a user gives, checked."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.graph.text import shown
from pymc_rollback.target.walls import Walls

MOST_DENSE = 300
"""Coordinates up to which correlations are tried: a draw then costs a product with a matrix."""

ROUNDING = 1e-8
"""Difference of two correlations that is rounding."""


class GivenMetric(NamedTuple):
    """What a user gives as a metric: how it is tuned, or the inverse mass matrix itself."""

    kind: str
    variances: np.ndarray | None = None
    covariance: np.ndarray | None = None


def read_metric(metric: object, size: int) -> GivenMetric:
    """Read ``metric=``: a name, variances, or a covariance matrix.

    Parameters
    ----------
    metric
        What is given.
    size
        Number of coordinates.
    """
    if isinstance(metric, str) and metric == "auto":
        return GivenMetric("auto" if 1 < size <= MOST_DENSE else "diag")
    if isinstance(metric, str) and metric in ("diag", "dense"):
        return GivenMetric(metric)
    try:
        array = np.asarray(metric, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if array.ndim == 2:
        check_covariance(array, size)
        return GivenMetric("dense", np.diag(array).copy(), np.ascontiguousarray(array))
    if array.shape != (size,) or not np.all(np.isfinite(array) & (array > 0)):
        raise ValueError(
            f"metric={shown(metric)} must be 'auto', 'diag', 'dense', an array of {size} positive "
            f"variances, one for each coordinate, or a covariance matrix of {size} x {size}."
        )
    return GivenMetric("diag", array)


def check_covariance(covariance: np.ndarray, size: int) -> None:
    """Raise unless a matrix is a covariance of so many coordinates, and say what is wrong."""
    if covariance.shape != (size, size):
        rows, columns = covariance.shape
        raise ValueError(
            f"metric is a matrix of {rows} rows and {columns} columns, but there are {size} "
            f"coordinates. Give {size} variances, or a covariance matrix of {size} x {size}."
        )
    if not np.all(np.isfinite(covariance)):
        i, j = np.argwhere(~np.isfinite(covariance))[0]
        raise ValueError(
            f"metric[{i}, {j}] is {covariance[i, j]}. A covariance matrix has finite numbers only."
        )
    variances = np.diag(covariance)
    if np.any(variances <= 0):
        i = int(np.argmax(variances <= 0))
        raise ValueError(
            f"metric[{i}, {i}] is {variances[i]:g}, but the diagonal of a covariance matrix has "
            "variances: give positive numbers."
        )
    correlation = covariance / np.sqrt(np.outer(variances, variances))
    difference = np.abs(correlation - correlation.T)
    if np.max(difference) > ROUNDING:
        i, j = np.unravel_index(np.argmax(difference), difference.shape)
        raise ValueError(
            f"metric is not symmetric: metric[{i}, {j}] is {covariance[i, j]:g}, and "
            f"metric[{j}, {i}] is {covariance[j, i]:g}. Give (C + C.T) / 2 if that is meant."
        )
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    if smallest <= ROUNDING:
        raise ValueError(
            "metric is not positive definite: the smallest eigenvalue of its correlations is "
            f"{smallest:.3g}. Add a little to the diagonal, or estimate it from more draws."
        )


def check_exchangeable(given: GivenMetric, walls: Walls) -> None:
    """Raise where a given metric differs between elements that exchange places."""
    variances, covariance = given.variances, given.covariance
    if variances is None:
        return
    for name, (run, _) in zip(walls.run_names, walls.ordered, strict=True):
        if np.ptp(variances[run]) > 0:
            shares = ", ".join(f"{v:g}" for v in variances[run])
            raise ValueError(
                f"metric gives the elements of the ordered variable {name!r} different variances "
                f"({shares}). They exchange places when they meet, as particles of equal mass do. "
                f"Give them one variance, such as {np.mean(variances[run]):g}."
            )
        if covariance is not None and np.any(np.count_nonzero(covariance[run], axis=1) > 1):
            raise ValueError(
                f"metric correlates the elements of the ordered variable {name!r} with others. "
                "They exchange places when they meet, and each takes the other's momentum alone. "
                "Give them covariances of zero."
            )


def check_planes_stay(given: GivenMetric, walls: Walls, moves: bool) -> None:
    """Raise where a given covariance asks for walls that other variables would move."""
    if given.covariance is None or not moves:
        return
    correlated = walls.reflects & (np.count_nonzero(given.covariance, axis=0) > 1)
    if np.any(correlated):
        raise ValueError(
            f"metric correlates coordinate {int(np.argmax(correlated))}, which is reflected at its "
            "bounds, with others, while another step samples some of the variables, with which "
            "bounds may move. Give it covariances of zero, or sample all variables in one step."
        )
