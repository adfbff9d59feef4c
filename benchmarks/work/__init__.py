"""The work: models with constraints, what is looked at in them, and the known answer."""

from benchmarks.work import (
    bounded,
    factorisation,
    gaussian,
    glm,
    hierarchical,
    linear,
    mixtures,
    nonlinear,
    rates,
    regression,
    series,
)
from benchmarks.work.base import Work

GROUPS = {
    "boxes and orders": bounded.works,
    "balls": gaussian.balls,
    "planes": gaussian.works,
    "regressions": regression.works,
    "generalised linear models": glm.works,
    "regressions without walls": linear.works,
    "rates": rates.works,
    "nonlinear models": nonlinear.works,
    "time series": series.works,
    "mixtures": mixtures.works,
    "hierarchical models": hierarchical.works,
    "matrix factorisation": factorisation.works,
}
"""By group: a function of ``quick`` that gives its works."""


def works(quick: bool) -> dict[str, tuple[str, Work]]:
    """By name of the work: its group, and the work."""
    return {work.name: (group, work) for group, make in GROUPS.items() for work in make(quick)}
