"""What a chain has learnt so far."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.choice import Choice
from pymc_rollback.chain.flow import Flow
from pymc_rollback.chain.metric import Metric
from pymc_rollback.chain.step_size import StepSize
from pymc_rollback.chain.window import Window


class Learnt(NamedTuple):
    """What a chain has learnt: arrays and numbers, none of which is ever changed in place.

    Attributes
    ----------
    step
        The step size under dual averaging.
    metric
        The inverse mass matrix.
    maps
        The maps under which coordinates move.
    flow
        What is followed exactly while a coordinate drifts.
    log_steepness
        Logarithm of the slope of a boundary term per standard deviation.
    row_lengths
        Length of the gradient of each row of the barriers, near its wall, in the metric.
    autocorrelation
        Autocorrelation of successive draws in the last window, averaged over the coordinates.
    choice
        What the last race has chosen, or what is done before there is one.
    steps
        Number of steps of a trajectory, if its time is fixed.
    finer
        Of how many such trajectories one has shorter steps, and more of them; zero for none.
    leads, behind
        For each of the warm-up's choices, logarithm of how much worse than the best it has been in
        races so far, of which earlier ones fade; and in the last that it took part in, infinite
        for none.
    map_leads, tempo_leads
        Such leads, without maps and with them, and of the usual time and of others.
    recent
        Acceptance rate, share inside and number of steps of the last trajectories, on average.
    iteration, window_end
        Number of draws that were learnt from, and that at which the present window ends.
    window
        The draws of the present window, and their slopes.
    starts
        Some of its points, evenly spread over it.
    """

    step: StepSize
    metric: Metric
    maps: np.ndarray
    flow: Flow
    log_steepness: float
    row_lengths: np.ndarray
    autocorrelation: float
    choice: Choice
    steps: int
    finer: int
    leads: tuple[float, ...]
    behind: tuple[float, ...]
    map_leads: tuple[float, ...]
    tempo_leads: tuple[float, ...]
    recent: tuple[float, ...]
    iteration: int
    window_end: int
    window: Window
    starts: tuple[np.ndarray, ...]

    @property
    def time(self) -> float:
        """Time of a trajectory; zero where trajectories double until they turn."""
        return self.choice.time

    @property
    def steepness(self) -> float:
        """Slope of a boundary term per standard deviation."""
        return float(np.exp(self.log_steepness))

    @property
    def at_window_end(self) -> bool:
        """Whether the present window is over."""
        return self.iteration == self.window_end
