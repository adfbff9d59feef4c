"""What the sampler has counted at each wall, read from the statistics of its draws."""

from typing import Any, NamedTuple

import numpy as np

from pymc_rollback.chain.tally import WALL_STATS
from pymc_rollback.diagnostics.draws import RegionDraws
from pymc_rollback.graph.compat import datasets
from pymc_rollback.target.ledger import places_of


class Counted(NamedTuple):
    """What was counted at one wall: chain, draw, row; or one row for all, where there are many.

    Attributes
    ----------
    contacts
        Contacts of a draw; not a number where it does not reflect.
    force
        The force of the wall, an estimate of the density of its slack there.
    outside
        Share of states outside; not a number where it has no barrier.
    """

    contacts: np.ndarray
    force: np.ndarray
    outside: np.ndarray

    def element(self, i: int, count: int) -> "Counted | None":
        """Of one row of so many, if each was counted by itself."""
        if self.contacts.shape[2] != count:
            return None
        return Counted(*(x[..., i : i + 1] for x in self))


def read_counts(draws: RegionDraws, idata: Any) -> dict[str, Counted]:
    """What was counted at each constraint that was counted at; none if the draws are not ours.

    Nor is there any where the draws were sampled with other constraints than the model has, as with
    some that were given by hand.

    Parameters
    ----------
    draws
        Draws of a model.
    idata
        Where they are from.
    """
    stats = datasets(idata).get("sample_stats", {})
    if WALL_STATS[0] not in stats:
        return {}
    names = [c.name for c in draws.region]
    sizes = [draws.slacks[name].shape[2] if name in draws.slacks else 0 for name in names]
    places = places_of(sizes)
    columns = [_of_all_steps(stats[name].values) for name in WALL_STATS if name in stats]
    if columns[0].shape[2] != places.max(initial=-1) + 1:
        return {}
    columns += [np.full_like(columns[0], np.nan)] * (len(WALL_STATS) - len(columns))
    counted = {}
    for name, rows in zip(names, np.split(places, np.cumsum(sizes)[:-1]), strict=True):
        of_wall = Counted(*(x[..., np.unique(rows)].astype(float) for x in columns))
        if rows.size and not np.all(np.isnan(of_wall.force)):
            counted[name] = of_wall
    return counted


def _of_all_steps(values: np.ndarray) -> np.ndarray:
    """Statistics of one step; of several in a compound step, which have an axis, what any says."""
    if values.ndim == 3:
        return values
    told = np.any(~np.isnan(values), axis=3)
    return np.where(told, np.nansum(values, axis=3), np.nan)
