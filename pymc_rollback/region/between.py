"""The condition that an expression lies between two ends."""

from functools import reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.forms import constant_value
from pymc_rollback.graph.text import readable, shown
from pymc_rollback.region.arguments import as_expression
from pymc_rollback.region.constraint import RegionError


def between(name: str, expression: object, ends: object) -> TensorVariable:
    """The condition ``lower < expression < upper``.

    Parameters
    ----------
    name
        Name of the constraint, for messages.
    expression
        An expression of the model's variables.
    ends
        Lower and upper end, numbers, arrays or expressions. None or an infinite number is no end.
    """
    form = f"constrain({name!r}, x, between=(lower, upper))"
    owner = f"Constraint {name!r}"
    x = as_expression(owner, expression, "expression", form)
    if x.dtype == "bool":
        raise RegionError(
            f"{owner}: `{readable(x)}` is a condition, true or false, and has no lower or "
            f"upper end. Give the expression that lies between the ends: {form}."
        )
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise RegionError(
            f"{owner}: between={shown(ends)} must be a pair of a lower and an upper end, either of "
            f"which may be None: {form}."
        )
    lower, upper = _end(owner, ends[0], -np.inf, form), _end(owner, ends[1], np.inf, form)
    if lower is None and upper is None:
        raise RegionError(
            f"{owner}: between={shown(ends)} has neither a lower nor an upper end. Give one: "
            f"{form}."
        )
    _require_room(owner, lower, upper)
    try:
        sides = [] if lower is None else [pt.gt(x, lower)]
        sides += [] if upper is None else [pt.lt(x, upper)]
        return reduce(pt.and_, sides)
    except ValueError as error:
        shapes = (v.type.shape for v in (x, lower, upper) if v is not None)
        raise RegionError(
            f"{owner}: the shapes of expression and ends do not match: "
            f"{', '.join(map(str, shapes))}. Give an end for each element, or one for all."
        ) from error


def _end(owner: str, given: object, no_end: float, form: str) -> TensorVariable | None:
    """An end as an expression; None where there is none."""
    if given is None:
        return None
    end = as_expression(owner, given, "end", form)
    if end.dtype == "bool":
        raise RegionError(
            f"{owner}: the end `{readable(end)}` is a condition. Give a number or an expression: "
            f"{form}."
        )
    value = constant_value(end)
    if value is None:
        return end
    if np.any(np.isnan(value)) or np.any(value == -no_end):
        raise RegionError(
            f"{owner}: no number lies on the inner side of the end {readable(end)}. Give a "
            f"number, or None for no end: {form}."
        )
    return None if np.all(value == no_end) else end


def _require_room(owner: str, lower: TensorVariable | None, upper: TensorVariable | None) -> None:
    """Raise where ends are constant and the lower one is not below the upper one."""
    if lower is None or upper is None:
        return
    low, high = constant_value(lower), constant_value(upper)
    if low is None or high is None:
        return
    try:
        low, high = np.broadcast_arrays(low, high)
    except ValueError:
        return  # the shapes are refused with those of the expression
    crossed = np.flatnonzero(np.ravel(low >= high))
    if crossed.size:
        first = crossed[0]
        raise RegionError(
            f"{owner}: the lower end {low.flat[first]:g} is not below the upper end "
            f"{high.flat[first]:g}. Exchange them; an equality cannot be sampled."
        )
