"""Which constraint slows the sampler: contacts, time outside and divergences of each."""

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm

from pymc_rollback.diagnostics.counts import Counted, read_counts
from pymc_rollback.diagnostics.draws import RegionDraws
from pymc_rollback.graph.compat import datasets
from pymc_rollback.region.arguments import require_model
from pymc_rollback.region.constraint import Constraint
from pymc_rollback.tables import Section, Tables

MANY_CONTACTS = 30
"""Contacts of a draw from which a wall is advised on: they cost about as much as a gradient."""

OFTEN_OUTSIDE = 0.3
"""Share of states outside from which a barrier is advised on."""

MANY_DIVERGENCES = 0.01
"""Share of draws that diverged near a wall from which it is advised on."""


@dataclass(frozen=True)
class CostRow:
    """What one constraint costs the sampler.

    Attributes
    ----------
    name, inequality
        Of the constraint, as :func:`describe` shows them.
    contacts
        Contacts of a draw; None where it does not reflect, or nothing was counted.
    outside
        Share of a trajectory's states outside, for a barrier; else None.
    divergences
        Draws whose trajectory diverged, and to which this wall is nearest, in standard deviations
        of its slack.
    advice
        What may help; empty where nothing needs to.
    """

    name: str
    inequality: str
    contacts: float | None
    outside: float | None
    divergences: int
    advice: str


@dataclass(frozen=True, repr=False)
class WallCosts(Tables):
    """Costs of the walls as a table, what slows the sampler most first.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> idata = rb.sample(200, tune=200, model=model, chains=2, progressbar=False, random_seed=1)
    >>> costs = rb.cost_by_wall(idata, model)
    >>> all(row.contacts > 0 for row in costs.rows)
    True
    """

    rows: tuple[CostRow, ...]

    def to_frame(self) -> pd.DataFrame:
        """Give the table as a data frame, with the names as its index."""
        columns = [field.name for field in fields(CostRow)]
        return pd.DataFrame([asdict(row) for row in self.rows], columns=columns).set_index("name")

    def _sections(self) -> list[Section]:
        header = ["wall", "contacts", "outside", "divergences", "advice"]
        rows = [
            [
                row.name,
                "" if row.contacts is None else f"{row.contacts:.2g}",
                "" if row.outside is None else f"{row.outside:.1%}",
                str(row.divergences),
                row.advice,
            ]
            for row in self.rows
        ]
        return [Section("What walls cost, by draw", header, rows, unwrapped=tuple(header[:4]))]


def cost_by_wall(idata: Any, model: pm.Model | None = None) -> WallCosts:
    """Show which constraint slows the sampler: contacts, states outside, divergences.

    Parameters
    ----------
    idata
        What ``pm.sample(step=RollbackHMC())`` or ``rb.sample`` returned.
    model
        The model; the context's if left out.

    Returns
    -------
    WallCosts
        A row for each wall: first those with advice, then by divergences, states outside, contacts.
        ``to_frame()`` gives it as data.

    Raises
    ------
    TypeError, ValueError
        Where ``idata`` is not what was sampled for this model; where the model has no constraints;
        where nothing was counted, as by another sampler.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model():
    ...     x = pm.HalfNormal("x")
    ...     idata = rb.sample(chains=2, progressbar=False, random_seed=1)
    ...     costs = rb.cost_by_wall(idata)
    >>> float(costs.to_frame().loc["x.lower", "contacts"]) > 0.3
    True
    """
    model = require_model(model).root
    draws = RegionDraws(model, idata)
    counts = read_counts(draws, idata)
    if not counts:
        raise ValueError(
            "idata has no counts of contacts for the constraints of this model: it was sampled by "
            "another sampler, by an older pymc_rollback, or with other constraints. Sample with "
            "rb.sample() or pm.sample(step=rb.RollbackHMC())."
        )
    diverged = _divergences(draws, idata)
    rows = [_row(c, counts.get(c.name), diverged[c.name], draws) for c in draws.constraints]
    return WallCosts(tuple(sorted(rows, key=_cost, reverse=True)))


def _cost(row: CostRow) -> tuple[bool, int, float, float]:
    return bool(row.advice), row.divergences, row.outside or 0.0, row.contacts or 0.0


def _divergences(draws: RegionDraws, idata: Any) -> dict[str, int]:
    """Number of diverging trajectories by the wall that is nearest to their draw."""
    diverging = datasets(idata)["sample_stats"]["diverging"].values.astype(bool)
    if diverging.ndim == 3:  # several steps of a compound step
        diverging = diverging.any(axis=2)
    distances = [draws.distances(c.name) for c in draws.constraints]
    nearest = np.argmin(distances, axis=0)[diverging]
    counts = np.bincount(nearest, minlength=len(distances)).tolist()
    return {c.name: n for c, n in zip(draws.constraints, counts, strict=True)}


def _row(
    constraint: Constraint, counted: Counted | None, diverged: int, draws: RegionDraws
) -> CostRow:
    contacts = outside = None
    if counted is not None:
        contacts = _unless_nan(counted.contacts.sum(axis=2).mean())
        outside = _unless_nan(counted.outside.max(axis=2).mean())
    share = diverged / draws.slacks[constraint.name][..., 0].size
    advice = _advise(constraint, contacts or 0.0, outside or 0.0, share)
    return CostRow(constraint.name, constraint.text, contacts, outside, diverged, advice)


def _unless_nan(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _advise(constraint: Constraint, contacts: float, outside: float, diverged: float) -> str:
    """What may help against the cost of a wall."""
    if diverged > MANY_DIVERGENCES:
        single = constraint.kind == "bound" or constraint.bound is not None
        owner = constraint.owner if constraint.bound is None else constraint.bound.variable
        remedy = (
            f"transform=[{owner!r}], or a larger target_accept"
            if single
            else ("a larger target_accept, such as 0.95")
        )
        return f"trajectories diverge near it: try {remedy}"
    if outside > OFTEN_OUTSIDE:
        return f"often outside: try a larger sharpness={{{constraint.name!r}: ...}}"
    if contacts > MANY_CONTACTS:
        return "many reflections: leave out rows that others imply, or try metric='diag'"
    return ""
