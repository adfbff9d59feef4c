"""Sampled draws of a model, checked, and the slacks of its constraints at each of them."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
from pytensor.graph.replace import graph_replace
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import datasets
from pymc_rollback.graph.evaluate import repeated
from pymc_rollback.graph.text import shown
from pymc_rollback.options import check_list_of_names
from pymc_rollback.region.constraint import Constraint, Region, with_plain_inputs
from pymc_rollback.region.read import read_region

ROUNDING = 1e-9
"""By how much a draw may be outside, in units of the largest slack: a transform may round."""


class RegionDraws:
    """Draws of a model within its region.

    Parameters
    ----------
    model
        The model.
    idata
        What ``pm.sample`` returned for it.

    Attributes
    ----------
    region
        The region of the model.
    values
        Draws of each free variable, as the model has it: chain, draw, and its own axes.

    Raises
    ------
    TypeError, ValueError
        Where these are not all draws of this model, in their order, each inside its region.
    """

    def __init__(self, model: pm.Model, idata: Any) -> None:
        self.region: Region = read_region(model)
        self.values = read_values(model, idata)
        if not self.constraints:
            raise ValueError(
                "The model has no bound, no order and no constraint, so that it has no walls. Give "
                "it some with rb.constrain('c', ...), or look at another model."
            )

    @cached_property
    def constraints(self) -> list[Constraint]:
        """Constraints of the region that have any row: an order of one element has none."""
        return [c for c in self.region if c.name in self.slacks]

    @cached_property
    def slacks(self) -> dict[str, np.ndarray]:
        """Slacks by constraint: chain, draw, row."""
        slacks = slacks_at(self.region, self.values)
        for name, slack in slacks.items():
            _require_inside(self.region[name], slack)
        return slacks

    def distances(self, name: str) -> np.ndarray:
        """Distances to the nearest row of a constraint, in standard deviations: chain, draw."""
        slacks = self.slacks[name]
        spreads = slacks.std(axis=(0, 1))
        return (slacks / np.where(spreads > 0, spreads, 1.0)).min(axis=2)

    def select(self, names: Collection[str] | None) -> list[Constraint]:
        """Constraints by their names, or by those of their variable or Potential."""
        if names is None:
            return self.constraints
        check_list_of_names("names", names)
        known = {name for c in self.constraints for name in (c.name, c.owner)}
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(
                f"names has {', '.join(map(repr, unknown))} in it, but the constraints of the "
                f"model are {', '.join(c.name for c in self.constraints)}. Give names of these."
            )
        return [c for c in self.constraints if {c.name, c.owner} & set(names)]


def slacks_at(region: Region, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Slacks of the constraints of a region that have any row, at many points: two axes for them.

    Parameters
    ----------
    region
        The region.
    values
        Values of the free variables of its model.
    """
    constraints = list(region)
    columns = evaluate(region.model, values, [c.slack for c in constraints])
    return {c.name: s for c, s in zip(constraints, columns, strict=True) if s.shape[2]}


def evaluate(
    model: pm.Model,
    values: Mapping[str, np.ndarray],
    expressions: Sequence[TensorVariable],
    written: Mapping[TensorVariable, TensorVariable] | None = None,
) -> list[np.ndarray]:
    """Values of expressions at each of many points: two axes for the points, and their own.

    Parameters
    ----------
    model
        The model.
    values
        Values of its free variables: two axes for the points, such as chain and draw, and their
        own.
    expressions
        Expressions of the model's random variables.
    written
        Other variables in them, each written as an expression of random variables.
    """
    written = written or {}
    # the random variables go first: a graph that is copied with them in it draws them anew
    both, plain = with_plain_inputs(model, [*expressions, *written.values()])
    outputs, forms = both[: len(expressions)], both[len(expressions) :]
    if written:
        outputs = graph_replace(outputs, dict(zip(written, forms, strict=True)), strict=False)
    function = repeated([plain[name] for name in values], outputs)
    flat = [x.reshape(-1, *x.shape[2:]) for x in values.values()]
    with np.errstate(all="ignore"):
        found = [function(*point) for point in zip(*flat, strict=True)]
    leading = next(iter(values.values())).shape[:2]
    return [np.reshape(x, (*leading, *np.shape(x[0]))) for x in zip(*found, strict=True)]


def read_values(model: pm.Model, idata: Any) -> dict[str, np.ndarray]:
    """Draws of the free variables of a model: chain, draw, and the variable's own axes.

    Parameters
    ----------
    model
        The model.
    idata
        What ``pm.sample`` returned for it.
    """
    posterior = _posterior(idata)
    shapes = model.eval_rv_shapes()
    values = {}
    for rv in model.free_RVs:
        if rv.name not in posterior:
            raise ValueError(
                f"idata is of another model: its posterior has no {rv.name!r}, only "
                f"{', '.join(map(str, posterior)) or 'nothing'}. Give the draws of this model: "
                "idata = pm.sample(step=rb.RollbackHMC())."
            )
        draws = posterior[rv.name]
        if draws.dims[:2] != ("chain", "draw"):
            raise ValueError(
                f"idata has {rv.name!r} with the axes {draws.dims}, not by chain and draw, as "
                "pm.sample returns them. Give the whole idata, not what az.extract makes of it."
            )
        if draws.shape[2:] != tuple(map(int, shapes[rv.name])):
            raise ValueError(
                f"idata is of another model: its {rv.name!r} has the shape {draws.shape[2:]}, and "
                f"the model's has {tuple(map(int, shapes[rv.name]))}. Give the draws of this model."
            )
        values[rv.name] = np.asarray(draws.values)
    _require_successive(posterior)
    return values


def _posterior(idata: Any) -> Any:
    remedy = "Give what pm.sample returns: idata = pm.sample(step=rb.RollbackHMC())."
    if not (hasattr(idata, "children") or callable(getattr(idata, "groups", None))):
        raise TypeError(f"idata={shown(idata)} has no groups of draws. {remedy}")
    groups = datasets(idata)
    if "posterior" not in groups:
        raise ValueError(
            f"idata has no group 'posterior', only {', '.join(groups) or 'none at all'}. {remedy}"
        )
    return groups["posterior"]


def _require_successive(posterior: Any) -> None:
    """Raise unless draws are as they were sampled: errors are by how they depend on each other."""
    remedy = (
        "Monte Carlo errors need the draws of each chain one after the other. Give the idata as "
        "sampled, or its last draws: idata.sel(draw=slice(500, None)). Several runs are joined as "
        "chains with numbers of their own: idata.assign_coords(chain=[4, 5, 6, 7])."
    )
    draws, chains = posterior["draw"].values, posterior["chain"].values
    steps = np.diff(draws)
    if np.any(steps != 1):
        first = int(np.argmax(steps != 1))
        what = "thinned" if np.all(steps > 1) else "concatenated or reordered"
        raise ValueError(
            f"The draws in idata are {what}: draw {draws[first]} is followed by draw "
            f"{draws[first + 1]}. {remedy}"
        )
    if len(set(chains.tolist())) < len(chains):
        raise ValueError(
            f"The draws in idata are concatenated: the chains have the numbers "
            f"{', '.join(map(str, chains))}, some of them twice. {remedy}"
        )


def _require_inside(constraint: Constraint, slack: np.ndarray) -> None:
    allowed = -ROUNDING * np.max(np.abs(slack), initial=0.0, where=np.isfinite(slack))
    outside = np.argwhere(~(slack >= allowed))
    if len(outside):
        chain, draw, row = outside[0]
        raise ValueError(
            f"idata is of another model, or was sampled without its constraints: draw {draw} of "
            f"chain {chain} is outside {constraint.name!r} ({constraint.text}), with the slack "
            f"{slack[chain, draw, row]:.4g}, and so are {len(outside) - 1} more. Sample this "
            "model: pm.sample(step=rb.RollbackHMC()). Draws with exact=False are smoothed, and "
            "have no walls."
        )
