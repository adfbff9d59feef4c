"""Which constraints bind, and how hard: a table of the draws' distances to each wall."""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pymc as pm

from pymc_rollback.diagnostics.counts import Counted, read_counts
from pymc_rollback.diagnostics.density import terms_by_slack, terms_by_slope
from pymc_rollback.diagnostics.draws import RegionDraws
from pymc_rollback.diagnostics.errors import standard_error
from pymc_rollback.options import check_bool
from pymc_rollback.region.arguments import require_model
from pymc_rollback.region.constraint import Constraint
from pymc_rollback.tables import Section, Tables

LEAST_CONTACTS = 100
"""Contacts in all draws from which their rate is an estimate with a known error."""


@dataclass(frozen=True)
class WallRow:
    """One constraint, or one of its elements, and how near the draws come to it.

    Of several elements the nearest counts in each draw: it is what the constraint is about.

    Attributes
    ----------
    name, inequality
        Of the constraint, as :func:`describe` shows them. An element has its number: ``"c[3]"``.
    within_1, within_5
        Share of the draws that are nearer than 1 % and 5 % of the range of the slack.
    smallest, median
        Smallest and median slack.
    density, density_error
        Density of the slack at the wall, and its Monte Carlo standard error: the rate at which the
        log evidence falls when the wall is moved inwards, its shadow price.
    pressure, pressure_error
        The same in units of the slack's standard deviation, so that walls can be compared.
    estimate
        Where density and pressure come from: "slopes" of the log density at the draws, or the rate
        of "contacts" of the trajectories with a wall that reflects, whichever has the smaller
        error; neither has a bias. Else "slacks", a kernel at the wall, with a small bias (about 2 %
        for an exponential).
    contacts
        Contacts with the wall a draw; None where it does not reflect, or nothing was counted.
    """

    name: str
    inequality: str
    within_1: float
    within_5: float
    smallest: float
    median: float
    density: float
    density_error: float
    pressure: float
    pressure_error: float
    estimate: str
    contacts: float | None = None


@dataclass(frozen=True, repr=False)
class WallSummary(Tables):
    """Walls as a table, what binds first: printed, as HTML in a notebook, or as data.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> idata = rb.sample(200, tune=200, model=model, chains=2, progressbar=False, random_seed=1)
    >>> summary = rb.wall_summary(idata, model)
    >>> [row.name for row in summary.rows if row.pressure > 0.1]
    ['x.lower', 'sum']
    """

    rows: tuple[WallRow, ...]

    def to_frame(self) -> pd.DataFrame:
        """Give the table as a data frame, with the names as its index."""
        columns = [field.name for field in fields(WallRow)]
        return pd.DataFrame([asdict(row) for row in self.rows], columns=columns).set_index("name")

    def _sections(self) -> list[Section]:
        header = ["wall", "≤ 1 %", "≤ 5 %", "least", "median", "pressure", "from"]
        rows = [
            [
                row.name,
                f"{row.within_1:.1%}",
                f"{row.within_5:.1%}",
                f"{row.smallest:.2g}",
                f"{row.median:.3g}",
                f"{row.pressure:.2f} ± {row.pressure_error:.2f}",
                row.estimate,
            ]
            for row in self.rows
        ]
        if any(row.contacts is not None for row in self.rows):
            header.append("contacts")
            counts = ["" if row.contacts is None else f"{row.contacts:.2g}" for row in self.rows]
            rows = [[*row, count] for row, count in zip(rows, counts, strict=True)]
        return [Section("Walls, what binds first", header, rows, unwrapped=tuple(header[1:]))]


def wall_summary(
    idata: Any,
    model: pm.Model | None = None,
    *,
    names: Collection[str] | None = None,
    elements: bool = False,
) -> WallSummary:
    r"""Summarise which constraints, bounds and orders of a model bind, by its draws.

    The pressure of a wall is the density :math:`p(0)` of its slack :math:`s` there, times the
    standard deviation of the slack: 0 for a wall that no draw comes near, 1 for an exponential at
    zero. Moved inwards by a hundredth of a standard deviation, the wall costs a hundredth of its
    pressure in log evidence. The pressure of a constraint is the sum of those of its elements.

    Parameters
    ----------
    idata
        What ``pm.sample`` returned.
    model
        The model; the context's if left out.
    names
        Names of constraints, or of the variables and Potentials that they belong to; all if left
        out.
    elements
        Whether each element of a constraint has a row, or each constraint.

    Returns
    -------
    WallSummary
        A row for each wall, that with the largest pressure first. ``to_frame()`` gives it as data.

    Raises
    ------
    TypeError, ValueError
        Where ``idata`` is not what ``pm.sample`` returned for this model, as it was sampled; where
        a name is unknown; where the model has no constraints.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model():
    ...     x = pm.Exponential("x", 2.0)
    ...     step = rb.RollbackHMC()
    ...     idata = pm.sample(step=step, progressbar=False, random_seed=1)
    ...     table = rb.wall_summary(idata)
    >>> bool(abs(table.to_frame().loc["x.lower", "pressure"] - 1) < 0.1)
    True
    """
    model = require_model(model).root
    check_bool("elements", elements)
    draws = RegionDraws(model, idata)
    chosen = draws.select(names)
    by_slope, counts = terms_by_slope(draws), read_counts(draws, idata)
    rows = [
        _row(name, wall)
        for c in chosen
        for name, wall in _walls(
            Wall(c, draws.slacks[c.name], by_slope.get(c.name), counts.get(c.name)), elements
        )
    ]
    return WallSummary(tuple(sorted(rows, key=lambda row: row.pressure, reverse=True)))


class Wall(NamedTuple):
    """A constraint, or one of its elements: its slacks, slopes there, and what was counted."""

    constraint: Constraint
    slacks: np.ndarray
    slopes: np.ndarray | None
    counted: Counted | None


class _Estimate(NamedTuple):
    """Terms of the density of a slack at its wall and of the pressure: chain, draw."""

    source: str
    density: np.ndarray
    pressure: np.ndarray


def _walls(wall: Wall, elements: bool) -> Iterator[tuple[str, Wall]]:
    """A constraint, or its elements, by name."""
    name, count = wall.constraint.name, wall.slacks.shape[2]
    if not elements or count == 1:
        yield name, wall
        return
    for i in range(count):
        one = slice(i, i + 1)
        slopes = None if wall.slopes is None else wall.slopes[..., one]
        counted = None if wall.counted is None else wall.counted.element(i, count)
        yield f"{name}[{i}]", Wall(wall.constraint, wall.slacks[..., one], slopes, counted)


def _row(name: str, wall: Wall) -> WallRow:
    """One row, with the best estimate of density and pressure."""
    slacks, counted = wall.slacks, wall.counted
    ranges, least = np.ptp(slacks, axis=(0, 1)), slacks.min(axis=2)
    within_1, within_5 = (np.mean(np.any(slacks < x * ranges, axis=2)) for x in (0.01, 0.05))
    best = min(_estimates(wall), key=lambda estimate: standard_error(estimate.pressure))
    contacts = None if counted is None else float(counted.contacts.sum(axis=2).mean())
    return WallRow(
        name,
        wall.constraint.text,
        float(within_1),
        float(within_5),
        smallest=float(least.min()),
        median=float(np.median(least)),
        density=max(float(best.density.mean()), 0.0),
        density_error=standard_error(best.density),
        pressure=max(float(best.pressure.mean()), 0.0),
        pressure_error=standard_error(best.pressure),
        estimate=best.source,
        contacts=None if contacts is None or np.isnan(contacts) else contacts,
    )


def _estimates(wall: Wall) -> list[_Estimate]:
    """Estimates without bias, or, where there is none, that by slacks."""
    slacks = wall.slacks
    spreads = slacks.std(axis=(0, 1))
    spreads = np.where(spreads > 0, spreads, 1.0)
    found = []
    if wall.slopes is not None:
        terms = wall.slopes
        found.append(_Estimate("slopes", terms.sum(axis=2), (terms * spreads).sum(axis=2)))
    forces = _forces(wall)
    if forces is not None:
        found.append(_Estimate("contacts", forces.sum(axis=2), (forces * spreads).sum(axis=2)))
    if not found:
        # at the wall of the nearest: of walls close to each other, one would count for another
        density = terms_by_slack(slacks.min(axis=2))
        found.append(_Estimate("slacks", density, terms_by_slack((slacks / spreads).min(axis=2))))
    return found


def _forces(wall: Wall) -> np.ndarray | None:
    """Forces of the contacts, where a wall reflects and was met, and each row was counted.

    No contact says nothing about its own error, and to neighbours in an order contacts are assigned
    as they are sorted, which is right for all of them together only.
    """
    counted, rows = wall.counted, wall.slacks.shape[2]
    if counted is None or counted.force.shape[2] != rows or np.any(np.isnan(counted.contacts)):
        return None
    if wall.constraint.kind == "order" or counted.contacts.sum() < LEAST_CONTACTS:
        return None
    return counted.force
