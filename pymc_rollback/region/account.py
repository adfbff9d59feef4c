"""Data that a distribution excludes: what a condition on data alone has to say."""

from collections.abc import Iterator

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace

from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.graph.forms import is_data, present_value
from pymc_rollback.region.conditions import written

MOST_SHOWN = 3
"""How many impossible values are named."""


class ImpossibleError(ValueError):
    """Data that no value of the free variables makes possible."""


def require_data(
    condition: Variable, name: str, data: Variable | None = None, among: Variable | None = None
) -> None:
    """Raise unless a condition on data alone is met.

    Parameters
    ----------
    condition
        The condition, which depends on no free variable.
    name
        Name of the variable whose density has it.
    data
        Its data, if it is observed.
    among
        A mask of the data: True for the observed values, False for the missing ones.
    """
    met = np.asarray(_value(condition), dtype=bool)
    if among is not None:
        present = _value(among)
        if met.shape != present.shape:
            return  # it involves the missing values, which are free variables
        met = met | ~present
    if met.all():
        return
    bad = np.argwhere(~met)
    if data is not None:
        condition = graph_replace(condition, {data: data.type(name=name)}, strict=False)
    failing = [] if data is None else list(_elements(name, _value(data), bad, met.shape))
    shown = ", ".join(failing[:MOST_SHOWN])
    more = f" and {len(bad) - MOST_SHOWN} more" if len(bad) > MOST_SHOWN else ""
    at = f" at {shown}{more}" if shown else ""
    raise ImpossibleError(
        f"its log density is -inf for all values of the free variables: `{written(condition)}` "
        f"does not hold{at}"
    )


def _value(expression: Variable) -> np.ndarray:
    """Present value of an expression that depends on no free variable but by its shape."""
    return present_value(expression) if is_data(expression) else interpreted([], expression)()


def _elements(
    name: str, data: np.ndarray, bad: np.ndarray, shape: tuple[int, ...]
) -> Iterator[str]:
    """The data at which a condition fails: numbers, rows or all data, as the condition is about."""
    if data.shape[: len(shape)] != shape:
        return
    for index in bad[:MOST_SHOWN]:
        value = data[tuple(index)]
        text = np.array2string(value, threshold=6, separator=", ") if value.ndim else f"{value:g}"
        element = f"[{', '.join(map(str, index))}]" if index.size else ""
        yield f"{name}{element} = {text}"
