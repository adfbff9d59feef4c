"""Whether a warm-up is done, by the draws that chains have made in it."""

from collections.abc import Sequence

import numpy as np

from pymc_rollback.record import GRADIENTS, STEP_SIZE, Record

CHECKS = (200, 400, 700, 1000)
"""Draws after which chains are looked at, each some time after a metric has changed; the most."""

SPREAD, STEP, WORK = 0.25, 0.4, 0.6
"""Changes of variances, step size and gradients of a draw, as logarithms, that say nothing."""

AGREED = 1.05
"""R-hat up to which chains agree, while they are as short as a warm-up is."""


def has_settled(records: Sequence[Record]) -> bool:
    """Whether nothing changes any more in a warm-up, and chains agree.

    What is tuned shows in the draws: a metric is made of their variances, and the choice between
    kinds of trajectories tells in step sizes and gradients.

    Parameters
    ----------
    records
        The chains, all with as many draws.
    """
    draws = records[0].draws
    positions = np.array([record.positions[:draws] for record in records])
    before, now = positions[:, draws // 4 : draws // 2], positions[:, draws // 2 :]
    spreads = [np.log(half.var(axis=1).mean(axis=0)) for half in (before, now)]
    return bool(
        _is_steady(records, STEP_SIZE, STEP)
        and _is_steady(records, GRADIENTS, WORK)
        and np.mean(np.abs(spreads[1] - spreads[0])) < SPREAD
        and np.all(find_rhat(now) < AGREED)
    )


def _is_steady(records: Sequence[Record], column: int, tolerance: float) -> bool:
    """Whether the median of a column has stayed the same in the last fifths of each chain."""
    fifth = records[0].draws // 5
    columns = np.array([record.costs[: record.draws, column] for record in records])
    medians = np.median(columns[:, -2 * fifth :].reshape(len(records), 2, fifth), axis=2)
    return bool(np.all(np.abs(np.diff(np.log(np.maximum(medians, 1e-300)))) < tolerance))


def find_rhat(positions: np.ndarray) -> np.ndarray:
    """R-hat of each coordinate, each chain being split in two.

    Parameters
    ----------
    positions
        Chains, draws and coordinates.
    """
    half = positions.shape[1] // 2
    parts = np.concatenate([positions[:, :half], positions[:, -half:]])
    within = parts.var(axis=1, ddof=1).mean(axis=0)
    between = parts.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / np.maximum(within, 1e-300))
