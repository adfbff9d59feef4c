"""What is counted along a trajectory: the one list of statistics."""

from typing import Annotated, NamedTuple

from pymc_rollback.kernels.native import inlined

SUM, MEAN, GREATEST, LAST = range(4)
"""How the statistics of several trajectories make that of a draw."""


class Outcome(NamedTuple):
    """What happened along the trajectories of a draw: names as in ArviZ, types, how to combine.

    Attributes
    ----------
    acceptance_rate
        Mean of ``min(1, exp(-error of the dynamics energy))`` over the new states; for the
        paper's sampler the probability to accept its end point.
    accepted
        Whether the draw is another state than the start.
    diverging
        Whether a trajectory diverged.
    energy, energy_error
        Hard energy of the draw, and by how much it is above the start's.
    steps
        Number of leapfrog steps, each a gradient of the model.
    inside
        Share of the states inside the region.
    rollbacks
        How often trajectories went out and came back.
    tree_depth
        How often a trajectory was doubled; zero for one of a given length.
    contacts
        How often trajectories were reflected at planes: affine constraints, and bounds of
        coordinates that are correlated with others.
    """

    acceptance_rate: Annotated[float, MEAN]
    accepted: Annotated[float, GREATEST]
    diverging: Annotated[bool, GREATEST]
    energy: Annotated[float, LAST]
    energy_error: Annotated[float, LAST]
    steps: Annotated[int, SUM]
    inside: Annotated[float, MEAN]
    rollbacks: Annotated[int, SUM]
    tree_depth: Annotated[int, GREATEST]
    contacts: Annotated[int, SUM]


TYPES = {name: kind.__origin__ for name, kind in Outcome.__annotations__.items()}
"""The type of each statistic."""

COMBINE = tuple(kind.__metadata__[0] for kind in Outcome.__annotations__.values())
"""How each statistic combines, in the order of the list."""

ACCEPTANCE_RATE, ACCEPTED, DIVERGING, ENERGY, ENERGY_ERROR = range(5)
STEPS, INSIDE, ROLLBACKS, TREE_DEPTH, WALL_CONTACTS = range(5, len(COMBINE))


def as_outcome(row: list[float]) -> Outcome:
    """The outcome that a row of numbers stands for."""
    return Outcome(*(kind(x) for kind, x in zip(TYPES.values(), row, strict=True)))


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
