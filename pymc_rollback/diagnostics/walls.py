"""Which constraints bind, and how hard: a table of the draws' distances to each wall."""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from pymc_rollback.diagnostics.density import terms_by_slack, terms_by_slope
from pymc_rollback.diagnostics.draws import RegionDraws
from pymc_rollback.diagnostics.errors import standard_error
from pymc_rollback.options import check_bool
from pymc_rollback.region.arguments import require_model
from pymc_rollback.region.constraint import Constraint
from pymc_rollback.tables import Section, Tables


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
        Where density and pressure come from: "slopes" of the log density at the draws, which has no
        bias, or "slacks", a kernel at the wall, with a small one (about 2 % for an exponential).
    contacts
        Contacts with the wall a draw; None where the sampler does not count them.
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
    """Walls as a table, what binds first: printed, as HTML in a notebook, or as data."""

    rows: tuple[WallRow, ...]

    def to_frame(self) -> pd.DataFrame:
        """Give the table as a data frame, with the names as its index."""
        columns = [field.name for field in fields(WallRow)]
        return pd.DataFrame([asdict(row) for row in self.rows], columns=columns).set_index("name")

    def _sections(self) -> list[Section]:
        header = ["wall", "within 1 %", "5 %", "smallest", "median", "pressure", "from"]
        rows = [
            [
                row.name,
                f"{row.within_1:.1%}",
                f"{row.within_5:.1%}",
                f"{row.smallest:.2g}",
                f"{row.median:.3g}",
                f"{row.pressure:.3f} ± {row.pressure_error:.3f}",
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
    by_slope = terms_by_slope(draws)
    rows = [
        row
        for c in chosen
        for row in _rows(c, draws.slacks[c.name], by_slope.get(c.name), elements)
    ]
    return WallSummary(tuple(sorted(rows, key=lambda row: row.pressure, reverse=True)))


def _rows(
    constraint: Constraint, slacks: np.ndarray, slopes: np.ndarray | None, elements: bool
) -> Iterator[WallRow]:
    """Rows of one constraint: itself, or its elements."""
    count = slacks.shape[2]
    if not elements or count == 1:
        yield _row(constraint.name, constraint.text, slacks, slopes)
        return
    for i in range(count):
        one = slice(i, i + 1)
        exact = None if slopes is None else slopes[..., one]
        yield _row(f"{constraint.name}[{i}]", constraint.text, slacks[..., one], exact)


def _row(name: str, inequality: str, slacks: np.ndarray, slopes: np.ndarray | None) -> WallRow:
    """One row, with density and pressure by slopes where there are any."""
    ranges, spreads = np.ptp(slacks, axis=(0, 1)), slacks.std(axis=(0, 1))
    spreads = np.where(spreads > 0, spreads, 1.0)
    least = slacks.min(axis=2)
    if slopes is None:
        # at the wall of the nearest: of walls close to each other, one would count for another
        density, pressure = terms_by_slack(least), terms_by_slack((slacks / spreads).min(axis=2))
    else:
        density, pressure = slopes.sum(axis=2), (slopes * spreads).sum(axis=2)
    within_1, within_5 = (np.mean(np.any(slacks < x * ranges, axis=2)) for x in (0.01, 0.05))
    return WallRow(
        name,
        inequality,
        float(within_1),
        float(within_5),
        smallest=float(least.min()),
        median=float(np.median(least)),
        density=max(float(density.mean()), 0.0),
        density_error=standard_error(density),
        pressure=max(float(pressure.mean()), 0.0),
        pressure_error=standard_error(pressure),
        estimate="slacks" if slopes is None else "slopes",
    )
