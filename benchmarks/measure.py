"""Effective draws and errors, the same way for every sampler."""

from typing import NamedTuple

import arviz as az
import numpy as np
from scipy import stats

FALSE_ALARMS = 0.001
"""Share of right samplers that are called wrong."""
MIXED = 100
"""Effective draws below which nothing is said about the answer."""


class Run(NamedTuple):
    """What a sampler gave.

    Attributes
    ----------
    draws
        Of the quantities: chains × draws × quantities.
    seconds
        Of warm-up and sampling, without compilation.
    first
        Seconds from the model to the first draw, with compilation.
    gradients
        Of the model's log density, after the warm-up; None for samplers that use none.
    divergences
        After the warm-up; None for samplers that do not know any.
    """

    draws: np.ndarray
    seconds: float
    first: float
    gradients: int | None = None
    divergences: int | None = None


class Known(NamedTuple):
    """Means of the quantities and of their squares, and the standard errors of both."""

    mean: np.ndarray
    square: np.ndarray
    mean_error: np.ndarray | float = 0.0
    square_error: np.ndarray | float = 0.0


def ess(values):
    """Effective numbers of draws of means, along the last axis; 0 of what did not move."""
    found = az.ess(az.convert_to_dataset({"x": values}), method="mean")["x"].values
    spread = np.ptp(values, axis=(0, 1))
    return np.where((spread > 0) & np.isfinite(found), found, 0.0)


def error(values, truth, truth_error):
    """How many standard errors the means along the last axis are off."""
    size = np.maximum(ess(values), 1.0)
    own = np.maximum(values.std(axis=(0, 1)) / np.sqrt(size), 1e-300)
    return np.abs(values.mean(axis=(0, 1)) - truth) / np.hypot(own, truth_error)


def threshold(comparisons):
    """Standard errors that the largest of so many right answers rarely exceeds (Bonferroni)."""
    return float(stats.norm.isf(FALSE_ALARMS / (2 * comparisons)))


def smallest_ess(draws):
    """The smallest effective numbers of draws of the quantities and of their squared deviations."""
    return float(ess(draws).min()), float(ess((draws - draws.mean(axis=(0, 1))) ** 2).min())


def judge(run: Run, known: Known) -> dict:
    """The row of a run: effective draws, cost, error and verdict."""
    x = run.draws
    mean, square = smallest_ess(x)
    row = {
        "draws": x.shape[0] * x.shape[1],
        "ess_mean": mean,
        "ess_square": square,
        "gradients": run.gradients,
        "seconds": run.seconds,
        "first": run.first,
        "divergences": run.divergences,
        "error_mean": float(error(x, known.mean, known.mean_error).max()),
        "error_square": float(error(x**2, known.square, known.square_error).max()),
        "threshold": threshold(2 * x.shape[2]),
    }
    return {**row, "verdict": verdict(row)}


def smallest(row):
    """The smaller effective number of draws of a row."""
    return min(row["ess_mean"], row["ess_square"])


def per_second(row):
    return smallest(row) / row["seconds"]


def per_gradient(row):
    """None for a sampler that uses no gradients."""
    return smallest(row) / row["gradients"] if row["gradients"] else None


def usable(row):
    return row["verdict"] == "right"


def verdict(row):
    """Whether the answer is right, wrong, or not to be had from so few effective draws."""
    if smallest(row) < MIXED:
        return "did not mix"
    far = max(row["error_mean"], row["error_square"])
    return "right" if far <= row["threshold"] else "wrong"
