"""What a chain is told: the numbers that the user gives, and which of them it tunes."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Options:
    """What the user gives, and what is left to be tuned.

    Attributes
    ----------
    step_size, n_steps, trajectory_time
        Step size, number of steps and time of a trajectory, or None.
    sharpness
        Sharpness of each coordinate's bounds, then of each row of the boundary terms; rows that
        are to be tuned are NaN.
    variances, covariance
        The metric that was given, or None; the second, too, if it has correlations.
    metric
        How a metric is tuned: "diag", "dense", or "auto" for the better of the two.
    target_accept, max_treedepth
        As given to RollbackHMC.
    exact
        Whether the model's own density is the target, or the smoothed one.
    """

    step_size: float | None
    n_steps: int | None
    trajectory_time: float | None
    sharpness: np.ndarray
    variances: np.ndarray | None
    covariance: np.ndarray | None
    metric: str
    target_accept: float
    max_treedepth: int
    exact: bool

    @cached_property
    def tunes_rows(self) -> bool:
        """Whether the sharpness of joint constraints is tuned."""
        return bool(np.any(np.isnan(self.sharpness)))

    @property
    def tunes(self) -> bool:
        """Whether anything is tuned. Where all of the paper's numbers are given, masses are one."""
        return self.step_size is None or self.n_steps is None or self.tunes_rows

    @property
    def tunes_metric(self) -> bool:
        """Whether the metric is tuned."""
        return self.tunes and self.variances is None
