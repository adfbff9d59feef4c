"""Whose the contacts are: from what the kernels count to the rows of a region's constraints."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.region.constraint import Constraint
from pymc_rollback.target.density import Block, Density

MOST_ROWS = 50
"""Rows of a region that are told of one by one; of more, all those of a constraint together.

What is told is kept for each draw: of more rows it would take as much memory as the draws.
"""


class Ledger(NamedTuple):
    """Rows of a region's constraints, and what the kernels have that counts for each of them.

    Rows are those of all constraints, in the order of the region. An index of -1 is of none.

    Attributes
    ----------
    places
        Number of places that are told of: rows, or constraints where there are too many rows.
    place
        The place of each row.
    reflects
        The rows that reflect, each at a bound, as a plane, or as the order of two neighbours.
    lower, upper, neighbours
        Row of each coordinate's lower and upper bound, and of its order with the next one.
    planes, lengths
        Row of each plane, and the length of the gradient of its slack.
    barriers
        Row of each row of the barriers.
    """

    places: int
    place: np.ndarray
    reflects: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    neighbours: np.ndarray
    planes: np.ndarray
    lengths: np.ndarray
    barriers: np.ndarray


def empty_ledger(size: int) -> Ledger:
    """Of so many coordinates, and of no constraints."""
    none, nothing = np.full(size, -1), np.empty(0, dtype=int)
    return Ledger(0, nothing, nothing, none, none, none, nothing, np.empty(0), nothing)


def places_of(sizes: list[int]) -> np.ndarray:
    """The place of each row of constraints that have so many rows."""
    several = sum(sizes) > MOST_ROWS
    return np.repeat(np.arange(len(sizes)), sizes) if several else np.arange(sum(sizes))


def read_ledger(density: Density, plane_lengths: np.ndarray) -> Ledger:
    """Find which rows the bounds, orders, planes and barriers of a density belong to.

    Parameters
    ----------
    density
        The density.
    plane_lengths
        Lengths of the gradients of all rows of its planes.
    """
    region, plan = density.region, density.plan
    constraints = list(region)
    slacks = region.evaluate([c.slack for c in constraints], density.start)
    sizes = [slack.size for slack in slacks]
    ends = np.cumsum(sizes).tolist()
    rows = {
        c.name: np.arange(end - size, end)
        for c, size, end in zip(constraints, sizes, ends, strict=True)
    }
    bounds = _bounds(density, rows)
    orders = _orders(density, rows)
    kept = plane_lengths > 0
    reflects = np.zeros(sum(sizes), dtype=bool)
    names = [*(c.name for c in plan.planes), *bounds.names, *orders.names]
    reflects[_joined(rows[name] for name in names)] = True
    place = places_of(sizes)
    return Ledger(
        places=int(place.max(initial=-1)) + 1,
        place=place,
        reflects=reflects,
        lower=bounds.rows[0],
        upper=bounds.rows[1],
        neighbours=orders.rows[0],
        planes=_joined(rows[c.name] for c in plan.planes)[kept],
        lengths=plane_lengths[kept],
        barriers=_joined(rows[c.name] for c in plan.barriers),
    )


class _Found(NamedTuple):
    """Rows by coordinate, and the names of the constraints that they are of."""

    rows: np.ndarray
    names: list[str]


def _bounds(density: Density, rows: Mapping[str, np.ndarray]) -> _Found:
    """Rows of the lower and upper bounds of all coordinates; of several the one that is nearest."""
    reflected = [
        (block, c, *_side(density, c))
        for block, _ in density.pairs(density.plan.reflected)
        for c in density.region
        if _is_bound_of(c, block, density)
    ]
    bounds = density.region.evaluate(
        [bound + pt.zeros(block.shape) for block, _, _, bound in reflected], density.start
    )
    taken, nearest = np.full((2, density.size), -1), np.full((2, density.size), -np.inf)
    for (block, c, sign, _), bound in zip(reflected, bounds, strict=True):
        here = int(sign < 0), block.span
        inward = sign * np.ravel(bound)
        own = np.full(inward.size, -1)
        # elements without a bound have no row, where that is known
        own[np.isfinite(inward) if rows[c.name].size < own.size else slice(None)] = rows[c.name]
        closer = (own >= 0) & (inward > nearest[here])
        taken[here] = np.where(closer, own, taken[here])
        nearest[here] = np.where(closer, inward, nearest[here])
    return _Found(taken, [c.name for _, c, _, _ in reflected])


def _orders(density: Density, rows: Mapping[str, np.ndarray]) -> _Found:
    """Rows of the orders of all coordinates with the next."""
    ordered = [b for b, support in density.pairs(density.plan.reflected) if support.order]
    taken = np.full((1, density.size), -1)
    for block in ordered:
        pairs = np.full(block.shape, -1)
        pairs[..., :-1] = rows[f"{block.name}.order"].reshape(pairs[..., :-1].shape)
        taken[0, block.span] = pairs.ravel()
    return _Found(taken, [f"{block.name}.order" for block in ordered])


def _joined(rows: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype=int), *rows])


def _is_bound_of(constraint: Constraint, block: Block, density: Density) -> bool:
    """Whether a constraint is a bound at which the coordinates of a block are reflected."""
    if constraint in density.plan.absorbed:
        return constraint.bound is not None and constraint.bound.variable == block.name
    return constraint.kind == "bound" and constraint.owner == block.name


def _side(density: Density, constraint: Constraint) -> tuple[int, TensorVariable]:
    """The sign of a bound, plus one for a lower one, and the bound."""
    if constraint.bound is not None:
        return constraint.bound.sign, constraint.bound.value
    support = density.region.supports[constraint.owner]
    if constraint.name.endswith(".lower"):
        return 1, support.lower
    return -1, support.upper
