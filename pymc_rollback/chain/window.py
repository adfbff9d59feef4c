"""A window of draws, and what it tells besides the metric."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.kernels.maps import changed
from pymc_rollback.kernels.state import BEYOND, POSITION, SLOPE, new_points

LEAST_PULL = 0.1
"""Smallest slope, per standard deviation, that is worth following exactly."""

TINY = np.finfo(float).tiny


class Window(NamedTuple):
    """Some successive draws of a chain, and the slopes of the potential there."""

    positions: tuple[np.ndarray, ...] = ()
    slopes: tuple[np.ndarray, ...] = ()

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.positions)

    def add(self, position: np.ndarray, slope: np.ndarray) -> "Window":
        """The window with one more draw."""
        return Window((*self.positions, position), (*self.slopes, slope))

    def changed(self, before: np.ndarray, after: np.ndarray) -> "Window":
        """The window in other coordinates: maps from the present ones, and from the others."""
        if before.size == after.size == 0:
            return self
        points = new_points(self.draws, self.positions[0].size)
        points[:, POSITION, :-BEYOND] = self.positions
        points[:, SLOPE, :-BEYOND] = np.negative(self.slopes)
        points = changed(before, after, points)
        return Window(tuple(points[:, POSITION, :-BEYOND]), tuple(-points[:, SLOPE, :-BEYOND]))

    @property
    def moments(self) -> "Moments":
        """Averages over the draws."""
        positions, slopes = np.array(self.positions), np.array(self.slopes)
        mean, slope = positions.mean(axis=0), slopes.mean(axis=0)
        x, g = positions - mean, slopes - slope
        return Moments(
            mean=mean,
            variance=np.mean(x * x, axis=0),
            slope=slope,
            slope_variance=np.mean(g * g, axis=0),
            cross_covariance=np.mean(g * x, axis=0),
            lagged_covariance=np.sum(x[1:] * x[:-1], axis=0) / self.draws,
        )

    def covariances(self) -> np.ndarray:
        """Covariances of the draws, and of the slopes."""
        both = np.array([self.positions, self.slopes])
        both -= both.mean(axis=1, keepdims=True)
        return both.transpose(0, 2, 1) @ both / self.draws


class Moments(NamedTuple):
    """Averages over draws, of each coordinate and of the potential's slope in its direction."""

    mean: np.ndarray
    variance: np.ndarray
    slope: np.ndarray
    slope_variance: np.ndarray
    cross_covariance: np.ndarray
    lagged_covariance: np.ndarray

    def autocorrelation(self) -> float | None:
        """Autocorrelation of successive draws, on average; None where no coordinate has moved."""
        moved = self.variance > 0
        if not np.any(moved):
            return None
        return float(np.mean(self.lagged_covariance[moved] / self.variance[moved]))

    def effective(self, draws: int) -> float:
        """How many independent draws tell as much as so many of these; at least one."""
        correlation = min(max(self.autocorrelation() or 0.0, 0.0), 0.99)
        return max(draws * (1 - correlation) / (1 + correlation), 1.0)

    def pull(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Slope of the potential at the nearer wall, by regression, where it presses against it.

        Parameters
        ----------
        lower, upper
            Bounds at which coordinates are reflected.
        """
        gradient = self.cross_covariance / np.where(self.variance > 0, self.variance, np.inf)
        to_lower, to_upper = self.mean - lower, upper - self.mean
        least = LEAST_PULL / np.sqrt(np.maximum(self.variance, TINY))
        with np.errstate(invalid="ignore"):
            at_lower = self.slope - gradient * to_lower
            at_upper = self.slope + gradient * to_upper
        presses_low = np.isfinite(lower) & (to_lower <= to_upper) & (at_lower > least)
        presses_high = np.isfinite(upper) & (to_upper < to_lower) & (at_upper < -least)
        return np.where(presses_low, at_lower, np.where(presses_high, at_upper, 0.0))
