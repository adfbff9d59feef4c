"""What walls tell of draws: contacts, the force of each, and the share of states outside."""

from typing import Any, NamedTuple

import numpy as np

from pymc_rollback.chain.metric import Metric
from pymc_rollback.kernels.maps import NONE
from pymc_rollback.kernels.state import KIND, LEAN, OF_BARRIER, OUTSIDE, System
from pymc_rollback.target.walls import Walls

WALL_STATS = ("wall_contacts", "wall_force", "wall_outside")
"""What is told of each place of a ledger, not a number where a wall has none; see :func:`tell`."""


class Tally(NamedTuple):
    """How counts become what is told, in one metric.

    Attributes
    ----------
    silent
        What is told of walls that were never met.
    counted
        How many of the numbers that the kernels count are looked at, from the first on.
    columns, places, forces
        Where contacts are counted, the places that they are told at, and the force of one contact
        per unit of time.
    barriers
        The places of the rows of barriers.
    apart
        Whether each row has a place of its own.
    """

    silent: np.ndarray
    counted: int
    columns: np.ndarray | slice
    places: np.ndarray | slice
    forces: np.ndarray
    barriers: np.ndarray
    apart: bool


def wall_stats(walls: Walls) -> tuple[str, ...]:
    """Which of the statistics there are."""
    if walls.ledger.places == 0:
        return ()
    return WALL_STATS if walls.ledger.barriers.size else WALL_STATS[:2]


def tell_nothing(walls: Walls, count: int = 1) -> np.ndarray:
    """For so many draws that are not told of."""
    return np.full((count, len(wall_stats(walls)), walls.ledger.places), np.nan, np.float32)


def tell(tally: Tally, counts: np.ndarray, sharpness: np.ndarray, states: np.ndarray) -> np.ndarray:
    r"""What walls tell of each draw: statistics by place.

    Contacts of a draw; the force of a wall, which is the density of its slack there, as in
    equilibrium a wall holds up what presses against it; and, of a barrier, the share of states
    outside, with its worst row where several have one place. A wall that reflects meets
    :math:`p(0) |\nabla g|_{M^{-1}} / \sqrt{2 \pi}` contacts per unit of time. The force of a
    barrier is the mean slope of its boundary term.

    Parameters
    ----------
    tally
        How counts are told.
    counts
        What the kernels have counted on the way to each draw.
    sharpness
        Of the rows of the barriers.
    states
        Number of states at which the walls were looked at, by draw.
    """
    told = np.empty((len(counts), *tally.silent.shape), dtype=np.float32)
    told[:] = tally.silent
    contacts = counts[:, tally.columns]
    _gather(np.add, told[:, 0], tally.places, contacts, tally.apart)
    # a trajectory that was given up at its start took no time, and met nothing
    time = np.where(counts[:, :1] > 0, counts[:, :1], 1.0)
    forces = contacts * (tally.forces / time)
    _gather(np.add, told[:, 1], tally.places, forces, tally.apart)
    if tally.barriers.size:
        rows = counts[:, 1 : 1 + OF_BARRIER * tally.barriers.size]
        rows = rows.reshape(len(counts), -1, OF_BARRIER) / states[:, None, None]
        forces = sharpness * rows[..., LEAN]
        _gather(np.add, told[:, 1], tally.barriers, forces, tally.apart)
        _gather(np.maximum, told[:, 2], tally.barriers, rows[..., OUTSIDE], tally.apart)
    return told


def _gather(gather: Any, told: np.ndarray, places: Any, values: np.ndarray, apart: bool) -> None:
    """Gather values by place; quickly, where each has its own."""
    if apart:
        told[:, places] = values
    else:
        gather.at(told, (slice(None), places), values.astype(told.dtype))


def make_tally(walls: Walls, metric: Metric, system: System) -> Tally:
    """Find what counts for which place, in a metric."""
    ledger = walls.ledger
    sides = np.array([ledger.lower, ledger.upper])
    sides[:, (system.maps[KIND] != NONE).nonzero()[0]] = -1
    rows, lengths = _contacts(walls, metric, sides, apart=walls.runs.size > system.ordered.size)
    first = OF_BARRIER * ledger.barriers.size
    [counted] = np.nonzero(rows >= 0)
    [silent] = tell_nothing(walls)
    apart = ledger.places == len(ledger.place)
    if silent.size:
        reflects = ledger.reflects.copy()
        # under a log or a logit there is no wall that could be met
        reflects[np.setdiff1d([ledger.lower, ledger.upper], [-1, *sides.ravel()])] = False
        silent[:2, ledger.place[reflects]] = 0.0
        silent[1:, ledger.place[ledger.barriers]] = 0.0
    return Tally(
        silent,
        first + int(np.max(counted, initial=-1)) + 1,
        _as_slice(1 + first + counted),
        _as_slice(ledger.place[rows[counted]]) if apart else ledger.place[rows[counted]],
        np.sqrt(2 * np.pi) / lengths[counted],
        ledger.place[ledger.barriers],
        apart,
    )


def _as_slice(places: np.ndarray) -> np.ndarray | slice:
    """Places as a slice, if they follow each other: the array that it cuts out is no copy."""
    if places.size and np.all(np.diff(places) == 1):
        return slice(int(places[0]), int(places[-1]) + 1)
    return places


def _contacts(
    walls: Walls, metric: Metric, sides: np.ndarray, apart: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Row of each count of contacts, -1 for none, and the length of its slack's gradient.

    Bounds of coordinates that are correlated with others are planes, and so are orders whose
    neighbours do not exchange places.
    """
    ledger, n, spreads = walls.ledger, walls.size, metric.variances
    as_planes = sides[:, metric.coupled]
    sides = sides.copy()
    sides[:, metric.coupled] = -1
    neighbours = np.full(n, -1) if apart else ledger.neighbours
    pairs = ledger.neighbours[ledger.neighbours >= 0] if apart else ledger.neighbours[:0]
    bounds = as_planes[as_planes >= 0]
    normals = np.concatenate([ledger.lengths, np.full(len(pairs), 2**0.5), np.ones(len(bounds))])
    rows = np.concatenate([ledger.planes, pairs, bounds, *sides, neighbours])
    lengths = np.concatenate(
        [
            normals * metric.lengths(metric.planes[:-1].T),
            *np.sqrt([spreads, spreads, spreads + np.append(spreads[1:], 0.0)]),
        ]
    )
    return rows, lengths
