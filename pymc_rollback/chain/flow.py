"""What a drift follows exactly, and how that is found from a window of draws."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.metric import Bounds, Metric
from pymc_rollback.chain.window import Moments
from pymc_rollback.target.walls import Walls


class Flow(NamedTuple):
    """The part of a potential that a drift follows exactly.

    Attributes
    ----------
    pull
        A constant slope, which presses a coordinate against its wall.
    centre, frequency
        Of a quadratic under which a coordinate oscillates; the frequency is zero where there is
        none.
    """

    pull: np.ndarray
    centre: np.ndarray
    frequency: np.ndarray


def no_flow(size: int) -> Flow:
    """A drift on straight lines."""
    return Flow(*np.zeros((3, size)))


def find_flow(moments: Moments, metric: Metric, walls: Walls, bounds: Bounds) -> Flow:
    r"""Follow a quadratic where the metric has frequencies, and a pull elsewhere.

    For a normal density the slopes are :math:`\omega^2 M (x - c)`, wherever walls are, so that the
    mean of the slopes tells how far the mean of the draws is from :math:`c`.

    Parameters
    ----------
    moments
        Of the draws.
    metric
        Of the next draws.
    walls
        Which coordinates are kept in order.
    bounds
        Where coordinates reflect.
    """
    frequency = metric.frequency
    turns = frequency > 0
    # between planes motion is straight, or turns
    pull = np.where(turns | metric.planar, 0.0, moments.pull(*bounds))
    [offset] = metric.apply(moments.slope[None])
    centre = np.where(turns, moments.mean - offset / np.where(turns, frequency, 1.0) ** 2, 0.0)
    return Flow(walls.share(pull), walls.share(centre), frequency)
