"""A point of a model inside its region, under the model's own transforms."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.blocking import DictToArrayBijection, RaveledVars
from pymc.pytensorf import join_nonshared_inputs
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import UNTOUCHED, interpreted
from pymc_rollback.region.search import descend

SEARCHES = (0.0, 1.0, 3.0)
"""Spread, in value space, of the points from which a point inside is searched."""

MARGINS = (0.1, 1e-3, 1e-6)
"""By how much slacks are made positive."""


def settle(
    model: pm.Model, point: Mapping[str, np.ndarray], values: Iterable[TensorVariable]
) -> dict[str, np.ndarray]:
    """Make transformed values finite, so that the variables are strictly inside their support.

    A variable at a bound, or an order with ties, as PyMC starts it, is at infinity under its
    transform. Of several such values in a row, as steps of an order, the exponentials sum to one.

    Parameters
    ----------
    model
        The model.
    point
        Values by name.
    values
        The value variables that may be changed.
    """
    settled = dict(point)
    for value in values:
        x = np.asarray(point[value.name])
        lost = ~np.isfinite(x)
        if np.any(lost) and model.rvs_to_transforms[model.values_to_rvs[value]] is not None:
            count = np.count_nonzero(lost, axis=-1, keepdims=lost.ndim > 0)
            settled[value.name] = np.where(lost, np.log(1 / np.maximum(count, 1)), x)
    return settled


def find_inside(
    model: pm.Model, slacks: Sequence[TensorVariable], initial: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The model's initial point, or one near it at which slacks are positive.

    Where none is found, it is the initial point after all.

    Parameters
    ----------
    model
        The model.
    slacks
        Vectors of slacks, in terms of the model's random variables.
    initial
        Where PyMC starts.
    """
    continuous = model.continuous_value_vars
    initial = settle(model, initial, continuous)
    if not slacks or not continuous:
        return initial
    rows = pt.concatenate([pt.constant([1.0]), *slacks])
    rows, joined, vector = over_one_vector(model, rows, continuous, initial)
    evaluate = interpreted([joined], rows, UNTOUCHED)

    def is_inside(q: np.ndarray) -> bool:
        with np.errstate(all="ignore"):
            return bool(np.all(evaluate(q) > 0))

    if is_inside(vector.data):
        return initial
    margin = pt.dscalar("margin")
    function = interpreted([joined, margin], shortfall(rows, joined, margin))
    rng = np.random.default_rng(0)
    for spread in SEARCHES:
        near = vector.data + spread * rng.normal(size=vector.data.size)
        for wanted in MARGINS:
            found = descend(function, near, wanted)
            if is_inside(found):
                return {**initial, **DictToArrayBijection.rmap(vector._replace(data=found))}
    return initial


def over_one_vector(
    model: pm.Model,
    expression: TensorVariable,
    values: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
) -> tuple[TensorVariable, TensorVariable, RaveledVars]:
    """Write an expression of random variables over one vector of some values of a model.

    Parameters
    ----------
    model
        The model.
    expression
        An expression of its random variables.
    values
        Value variables that are joined to a vector.
    point
        A point of the model: all other values are constants in the expression.

    Returns
    -------
    expression, joined, vector
        The expression of the joined vector, that vector, and what it is at the point.
    """
    others = {v: pt.constant(point[v.name]) for v in model.value_vars if v not in values}
    own = {v.name: point[v.name] for v in values}
    expressions = clone_replace(model.replace_rvs_by_values([expression]), others)
    [expression], joined = join_nonshared_inputs(own, expressions, values)
    return expression, joined, DictToArrayBijection.map(own)


def shortfall(
    rows: TensorVariable, joined: TensorVariable, margin: TensorVariable
) -> list[TensorVariable]:
    """Sum of squares by which rows fall short of a margin, and its gradient in a joined vector."""
    total = pt.sum(pt.maximum(margin - rows, 0.0) ** 2)
    return [total, pt.grad(total, joined, disconnected_inputs="ignore")]
