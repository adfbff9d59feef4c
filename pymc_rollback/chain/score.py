"""How good the draws of a heat are: effective ones for its gradients."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.window import TINY

LAGS = 4
"""Part of the draws, as a divisor, up to which autocorrelations are looked at."""

NOISE = 2.0
"""Sum of two autocorrelations, over its error, that may be an error."""

WORST = -4.0
"""Logarithm of the ratio to the best that a heat has at least."""

MOST_RATIO = 100.0
"""Most that is made of a heat that hardly moves."""

LEAST_TIME = 0.25
"""Least autocorrelation time: the sum may be negative for draws far from the ones before."""


class Heat(NamedTuple):
    """Successive draws, one a row, and what they cost, in gradients."""

    draws: np.ndarray
    cost: float


def compare(heats: Sequence[Heat | None]) -> np.ndarray:
    """Logarithms of how much worse than the best each heat is; None stands for one that failed."""
    scores = np.full(len(heats), -np.inf)
    ran = [k for k, heat in enumerate(heats) if heat is not None]
    if ran:
        scores[ran] = np.log(judge([heat for heat in heats if heat is not None]))
        scores -= scores.max()
    return np.maximum(scores, WORST)


def judge(heats: Sequence[Heat]) -> list[float]:
    """Effective draws per gradient of some heats, by the coordinates' values and squares.

    Autocorrelation times are averaged as squares, so that slow coordinates count most. All heats
    are of one target: one that covers less of the spread of all draws than the others do has not
    seen the rest, and its times are longer by that ratio.

    Parameters
    ----------
    heats
        The heats.
    """
    values = np.concatenate([heat.draws for heat in heats])
    both = np.c_[values, (values - values.mean(axis=0)) ** 2]
    ends = np.cumsum([len(heat.draws) for heat in heats])[:-1]
    scores = []
    for part, heat in zip(np.split(both, ends), heats, strict=True):
        time = autocorrelation_time(part) * _ratio(both.var(axis=0), part.var(axis=0))
        scores.append(len(part) / (heat.cost * float(np.sqrt(np.mean(time**2)))))
    return scores


def _ratio(all_of_them: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Variance of all draws over that of some; one where none has moved."""
    least = np.maximum(all_of_them / MOST_RATIO, TINY)
    return np.where(all_of_them > 0, all_of_them / np.maximum(part, least), 1.0)


def autocorrelation_time(values: np.ndarray) -> np.ndarray:
    r""":math:`1 + 2 \sum_k \rho_k` of each column, up to where two neighbours' sum is an error.

    Geyer's initial positive sequence, ended where noise would go on with it.
    """
    spread = values.std(axis=0)
    z = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    n = len(z)
    lags = range(1, 2 * (n // LAGS // 2))
    correlations = np.array(
        [np.ones(z.shape[1]), *(np.sum(z[k:] * z[:-k], axis=0) / n for k in lags)]
    )
    pairs = correlations[::2] + correlations[1::2]
    positive = np.logical_and.accumulate(pairs > NOISE / np.sqrt(n))
    return np.maximum(2 * np.sum(pairs * positive, axis=0) - 1, LEAST_TIME)
