"""The work: models with constraints, what is looked at in them, and the known answer."""

from benchmarks.work import bounded, factorisation, gaussian, nonlinear, regression
from benchmarks.work.base import Work

GROUPS = {
    "boxes and orders": bounded.works,
    "balls": gaussian.balls,
    "planes": gaussian.works,
    "regressions": regression.works,
    "nonlinear models": nonlinear.works,
    "matrix factorisation": factorisation.works,
}
"""By group: a function of ``quick`` that gives its works."""


def works(quick: bool) -> dict[str, tuple[str, Work]]:
    """By name of the work: its group, and the work."""
    return {work.name: (group, work) for group, make in GROUPS.items() for work in make(quick)}
