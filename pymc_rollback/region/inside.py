"""A point of a model inside its region, under the model's own transforms."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy
from pymc.blocking import DictToArrayBijection
from pymc.pytensorf import join_nonshared_inputs
from pytensor.graph.replace import clone_replace
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import UNTOUCHED, interpreted

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
    rows = pt.concatenate([pt.constant([1.0]), *model.replace_rvs_by_values(list(slacks))])
    others = {v: pt.constant(initial[v.name]) for v in model.value_vars if v not in continuous}
    start = {v.name: initial[v.name] for v in continuous}
    [rows], joined = join_nonshared_inputs(start, clone_replace([rows], others), continuous)
    evaluate = interpreted([joined], rows, UNTOUCHED)

    def is_inside(q: np.ndarray) -> bool:
        with np.errstate(all="ignore"):
            return bool(np.all(evaluate(q) > 0))

    vector = DictToArrayBijection.map(start)
    if is_inside(vector.data):
        return initial
    margin = pt.dscalar("margin")
    hinge = pt.sum(pt.maximum(margin - rows, 0.0) ** 2)
    gradient = pt.grad(hinge, joined, disconnected_inputs="ignore")
    shortfall = interpreted([joined, margin], [hinge, gradient])

    def objective(q: np.ndarray, margin: float) -> tuple[float, np.ndarray]:
        with np.errstate(all="ignore"):
            value, slope = shortfall(q, margin)
        usable = np.isfinite(value) and np.all(np.isfinite(slope))
        return (float(value), slope) if usable else (1e300, np.zeros_like(q))

    rng = np.random.default_rng(0)
    for spread in SEARCHES:
        near = vector.data + spread * rng.normal(size=vector.data.size)
        for wanted in MARGINS:
            found = scipy.optimize.minimize(
                objective, near, (wanted,), jac=True, method="L-BFGS-B"
            ).x
            if is_inside(found):
                return {**initial, **DictToArrayBijection.rmap(vector._replace(data=found))}
    return initial
