"""A race between metrics: how many effective draws each gives for its gradients."""

from collections.abc import Sequence

import numpy as np

LAGS = 20
"""Autocorrelations that are looked at."""

LEAST_TIME = 0.25
"""Least autocorrelation time: the sum may be negative for draws far from the ones before."""


def judge(heats: Sequence[np.ndarray], gradients: Sequence[int]) -> list[float]:
    """Effective draws per gradient of some heats, by the coordinates' values and squares.

    Autocorrelation times are averaged as squares, so that slow coordinates count most. All heats
    are of one target, so that its variances are those of all draws together: a heat that does not
    move cannot hide it.

    Parameters
    ----------
    heats
        Successive draws, one a row, of each heat.
    gradients
        What each heat cost.
    """
    values = np.concatenate(heats)
    squares = (values - values.mean(axis=0)) ** 2
    both = np.c_[values, squares]
    spread = both.std(axis=0)
    ends = np.cumsum([len(heat) for heat in heats])[:-1]
    parts = np.split(both / np.where(spread > 0, spread, 1.0), ends)
    return [
        len(part) / (cost * float(np.sqrt(np.mean(_autocorrelation_time(part) ** 2))))
        for part, cost in zip(parts, gradients, strict=True)
    ]


def _autocorrelation_time(values: np.ndarray) -> np.ndarray:
    r""":math:`1 + 2 \sum_k \rho_k` of each column, up to where two neighbours' sum is negative.

    Geyer's initial positive sequence. With a variance of one the distance of draws tells their
    correlation, whatever the mean: :math:`\rho_k = 1 - E (x_{t+k} - x_t)^2 / 2`.
    """
    distances = [np.mean((values[k:] - values[:-k]) ** 2, axis=0) for k in range(1, LAGS)]
    correlations = np.array([np.ones(values.shape[1]), *(1 - d / 2 for d in distances)])
    pairs = correlations[::2] + correlations[1::2]
    positive = np.logical_and.accumulate(pairs > 0)
    return np.maximum(2 * np.sum(pairs * positive, axis=0) - 1, LEAST_TIME)
