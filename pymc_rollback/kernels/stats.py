"""What is counted along a trajectory: the one list of statistics."""

from typing import NamedTuple

from pymc_rollback.kernels.native import inlined

SUM, MEAN, GREATEST, LAST = range(4)
"""How the statistics of several trajectories make that of a draw."""


class Statistic(NamedTuple):
    """A number that each trajectory has: its name in ArviZ, its type, how trajectories combine."""

    name: str
    kind: type
    combine: int


STATISTICS = (
    # mean of min(1, exp(-error of the dynamics energy)) over new states; of the paper's sampler,
    # that of the end point
    Statistic("acceptance_rate", float, MEAN),
    # whether the draw is another state than the start
    Statistic("accepted", float, GREATEST),
    Statistic("diverging", bool, GREATEST),
    # hard energy of the draw, and its difference from that of the start
    Statistic("energy", float, LAST),
    Statistic("energy_error", float, LAST),
    # leapfrog steps, each a gradient of the model
    Statistic("steps", int, SUM),
    # share of the states inside the region
    Statistic("inside", float, MEAN),
    # how often the trajectory went out and came back
    Statistic("rollbacks", int, SUM),
    # how often the trajectory was doubled; zero for one of a given length
    Statistic("tree_depth", int, GREATEST),
)
ACCEPTANCE_RATE, ACCEPTED, DIVERGING, ENERGY, ENERGY_ERROR, STEPS, INSIDE, ROLLBACKS, TREE_DEPTH = (
    range(len(STATISTICS))
)
COMBINE = tuple(statistic.combine for statistic in STATISTICS)

Outcome = NamedTuple("Outcome", [(s.name, s.kind) for s in STATISTICS])  # type: ignore[misc]
"""What happened along the trajectories of a draw: a field for each of the statistics."""


def as_outcome(row: list[float]) -> Outcome:
    """The outcome that a row of numbers stands for."""
    return Outcome(*(s.kind(x) for s, x in zip(STATISTICS, row, strict=True)))


@inlined
def combine(total, outcome, repeats):
    """Add the statistics of one of so many trajectories to those of a draw."""
    for k in range(len(COMBINE)):
        if COMBINE[k] == SUM:
            total[k] += outcome[k]
        elif COMBINE[k] == MEAN:
            total[k] += outcome[k] / repeats
        elif COMBINE[k] == GREATEST:
            total[k] = max(total[k], outcome[k])
        else:
            total[k] = outcome[k]
