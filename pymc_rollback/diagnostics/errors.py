"""Monte Carlo errors of means over draws that depend on each other."""

import numpy as np


def standard_error(values: np.ndarray) -> float:
    r"""Standard error of the mean of a quantity over the draws of some chains.

    With autocovariances :math:`\gamma_k` around the mean of all chains, so that chains which
    disagree enlarge it, :math:`(\gamma_0 + 2 \sum_k \gamma_k) / n`, summed as Geyer's initial
    monotone sequence.

    Parameters
    ----------
    values
        One row for each chain, its draws in the order in which they were made.
    """
    covariances = _autocovariances(values - values.mean())
    if covariances[0] <= 0:
        return 0.0
    even = covariances[: covariances.size // 2 * 2]
    pairs = np.minimum.accumulate(even[::2] + even[1::2])
    variance = 2 * np.sum(pairs[np.logical_and.accumulate(pairs > 0)]) - covariances[0]
    # draws far from the ones before may do better than independent ones, but not without limit
    return float(np.sqrt(max(variance, covariances[0] / values.shape[1]) / values.size))


def share_error(inside: np.ndarray) -> float:
    """Standard error of the share of draws for which something holds.

    At least that of as many independent draws, with one more of either kind: that all draws agree
    is no certainty.

    Parameters
    ----------
    inside
        Whether it holds: one row for each chain.
    """
    count = inside.size
    share = (np.sum(inside) + 1) / (count + 2)
    return max(standard_error(inside.astype(float)), float(np.sqrt(share * (1 - share) / count)))


def _autocovariances(deviations: np.ndarray) -> np.ndarray:
    """Autocovariances by lag, averaged over chains."""
    draws = deviations.shape[1]
    transformed = np.fft.rfft(deviations, 2 * draws, axis=1)
    products = np.fft.irfft(np.abs(transformed) ** 2, axis=1)[:, :draws]
    return products.mean(axis=0) / draws
