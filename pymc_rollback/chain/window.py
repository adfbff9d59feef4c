"""A window of draws: sums over it, and what they tell besides the metric."""

from typing import NamedTuple

import numpy as np

LEAST_PULL = 0.1
"""Smallest slope, per standard deviation, that is worth following exactly."""

TINY = np.finfo(float).tiny


class Window(NamedTuple):
    """Sums over some successive draws of a chain, each less the first of them.

    Attributes
    ----------
    draws
        Their number.
    first
        The first draw.
    last
        The last draw, less the first.
    sums
        Of the draws, their squares, the slopes of the potential there, slopes times draws, squared
        slopes, and draws times the one before, as rows.
    products
        Sums of the outer products of the draws, and of the slopes, for a dense metric; else empty.
    """

    draws: int
    first: np.ndarray
    last: np.ndarray
    sums: np.ndarray
    products: np.ndarray

    def add(self, position: np.ndarray, slope: np.ndarray) -> "Window":
        """The window with one more draw."""
        first = position.copy() if self.draws == 0 else self.first
        x = position - first
        terms = np.array([x, x * x, slope, slope * x, slope * slope, x * self.last])
        products = self.products
        if products.size:
            pair = terms[[0, 2]]
            products = products + pair[:, :, None] * pair[:, None, :]
        return Window(self.draws + 1, first, x, self.sums + terms, products)

    @property
    def moments(self) -> "Moments":
        """Averages over the draws."""
        mean, square, slope, cross, slope_square, lagged = self.sums / self.draws
        return Moments(
            mean=self.first + mean,
            variance=square - mean**2,
            slope=slope,
            slope_variance=slope_square - slope**2,
            cross_covariance=cross - slope * mean,
            lagged_covariance=lagged - mean**2,
        )

    def covariances(self) -> np.ndarray:
        """Covariances of the draws, and of the slopes, if products were summed."""
        mean = self.sums[[0, 2]] / self.draws
        return self.products / self.draws - mean[:, :, None] * mean[:, None, :]


def open_window(size: int, dense: bool) -> Window:
    """A window without draws of so many coordinates."""
    products = np.zeros((2, size, size) if dense else (0, 0, 0))
    return Window(0, np.zeros(size), np.zeros(size), np.zeros((6, size)), products)


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
