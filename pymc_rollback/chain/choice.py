"""What a race in warm-up decides on: metric, motion, and the time of a trajectory."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.options import Options
from pymc_rollback.target.walls import Walls

JITTER = 0.2
"""Share by which a trajectory of a fixed time is shortened at most, at random."""

QUARTER, QUARTER_TURN = 1.6, 0.5 * np.pi / (1 - 0.5 * JITTER)
"""Time of a trajectory that is not doubled: a quarter of an oscillation in a metric that fits.

Along lines it is what was best on many models; along rotations a quarter on average.
"""

TEMPI = (0.6, 1.6)
"""Other times that are tried, by the usual one: walls that confine ask for a shorter one."""


class Choice(NamedTuple):
    """What a race decides on.

    Attributes
    ----------
    dense
        Whether the metric is dense.
    time
        Time of a trajectory; zero where trajectories double until they turn.
    curved
        Whether the drift follows a quadratic exactly.
    jitter
        Share by which the time is shortened at most, at random.
    apart
        Whether neighbours in order meet at a plane and keep their places, in a metric that may
        tell them apart; else they exchange places.
    """

    dense: bool = False
    time: float = 0.0
    curved: bool = False
    jitter: float = 0.0
    apart: bool = False

    @property
    def text(self) -> str:
        """The choice in words."""
        metric = "dense" if self.dense else "diagonal"
        metric += " metric, with planes between neighbours in order" if self.apart else " metric"
        motion = "along the curvature" if self.curved else "on straight lines"
        length = f"for a time of {self.time:.2g}" if self.time > 0 else "doubled until they turn"
        return f"trajectories {motion} in a {metric}, {length}"


def first_choice(options: Options) -> Choice:
    """What a chain does before it can choose."""
    time = 0.0 if options.tunes_metric else options.trajectory_time or 0.0
    return Choice(options.metric == "dense", time, jitter=JITTER if time > 0 else 0.0)


def find_choices(options: Options, walls: Walls) -> tuple[Choice, ...]:
    """All that a race may choose; where the metric is given, what is done from the first draw on.

    Parameters
    ----------
    options
        What is given.
    walls
        Which coordinates reflect, and the planes.
    """
    if not options.tunes_metric:
        return (first_choice(options),)
    metrics = (False, True) if options.metric == "auto" else (options.metric == "dense",)
    if options.trajectory_time is not None:
        motions = [(options.trajectory_time, curved, JITTER) for curved in (False, True)]
    else:
        motions = [(0.0, False, 0.0)]
        if options.n_steps is None:
            motions += [(QUARTER, False, JITTER), (QUARTER_TURN, True, JITTER)]
    choices = [Choice(dense, *motion) for motion in motions for dense in metrics]
    if walls.run_names:
        choices += [choice._replace(apart=True) for choice in choices if choice.time > 0]
    return tuple(choices)
