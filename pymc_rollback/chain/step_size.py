"""The step size of a chain, tuned by dual averaging."""

import math
from typing import NamedTuple

import numpy as np

SHRINKAGE, OFFSET, DECAY = 0.05, 10, 0.75
"""Numbers of Hoffman & Gelman (2014) and of PyMC: gamma, t0 and kappa."""


class StepSize(NamedTuple):
    r"""A step size under dual averaging (Hoffman & Gelman 2014, section 3.2).

    After a trajectory with the acceptance rate :math:`a_t`, of which :math:`\delta` is wanted,

    .. math::
        H_t &= (1 - w) H_{t-1} + w (\delta - a_t), \quad w = 1 / (t + t_0)

        \log \epsilon_{t+1} &= \log(10 \epsilon_1) - \sqrt{t} H_t / \gamma

        \log \bar\epsilon_{t+1} &= t^{-\kappa} \log \epsilon_{t+1}
        + (1 - t^{-\kappa}) \log \bar\epsilon_t

    Attributes
    ----------
    log_step, log_average
        Logarithms of the present step size, and of the average that stays when tuning stops.
    center
        Where the logarithm is drawn to: somewhat above that of the first step size.
    shortage
        :math:`H_t`, the average by which acceptance rates fell short.
    trajectory
        Number of the next trajectory, :math:`t`.
    """

    log_step: float
    log_average: float
    center: float
    shortage: float = 0.0
    trajectory: int = 1

    @classmethod
    def first(cls, step_size: float) -> "StepSize":
        """A step size of which no trajectory is known."""
        log_step = float(np.log(step_size))
        return cls(log_step, log_step, float(np.log(10 * step_size)))

    def update(self, acceptance: float, target: float) -> "StepSize":
        """The step size after a trajectory, by its acceptance rate and the wanted one."""
        t = self.trajectory
        weight, average_weight = 1.0 / (t + OFFSET), t**-DECAY
        shortage = (1 - weight) * self.shortage + weight * (target - acceptance)
        log_step = self.center - shortage * math.sqrt(t) / SHRINKAGE
        log_average = average_weight * log_step + (1 - average_weight) * self.log_average
        return StepSize(log_step, log_average, self.center, shortage, t + 1)

    def current(self, tune: bool) -> float:
        """The present step size, or, when tuning has stopped, the average."""
        return float(np.exp(self.log_step if tune else self.log_average))
