"""What a user may give in a constraint. A refusal names it, its value and what to give instead."""

import inspect
from collections.abc import Mapping

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.text import readable, shown
from pymc_rollback.region.constraint import RegionError


def require_model(model: object) -> pm.Model:
    """The model that was given, or the context's."""
    if model is None:
        try:
            return pm.modelcontext(None)
        except TypeError:
            raise TypeError(
                "There is no model: call this inside `with pm.Model():`, or give model=..."
            ) from None
    if not isinstance(model, pm.Model):
        raise TypeError(
            f"model={shown(model)} is not a pm.Model. Give the model itself, or leave it out "
            "inside `with model:`."
        )
    return model


def check_slacks(constraints: object) -> None:
    """Raise unless constraints are left out, or a dict of slacks by name."""
    if constraints is None:
        return
    if not isinstance(constraints, Mapping):
        raise ValueError(
            f"constraints={shown(constraints)} must be a dict of slacks by name: {{'c': g}} for "
            "the constraint g > 0."
        )
    for name in constraints:
        if not isinstance(name, str):
            raise ValueError(
                f"constraints has the key {shown(name)}, which is not a name. Its keys are "
                "strings: {'c': g} for the constraint g > 0."
            )


def check_name(name: object) -> None:
    """Raise unless the name of a constraint is a string that is not empty."""
    if isinstance(name, Variable):
        raise RegionError(f"The name comes first: constrain('c', {shown(name)}).")
    if not isinstance(name, str):
        raise RegionError(
            f"The name of a constraint, {shown(name)}, must be a string: constrain('c', ...)."
        )
    if not name.strip():
        raise RegionError(f"name={name!r}: a constraint needs a name, such as 'disk'.")


def as_expression(owner: str, value: object, role: str, example: str) -> TensorVariable:
    """An expression of the model's variables.

    Parameters
    ----------
    owner
        What the expression belongs to, such as ``Constraint 'c'``.
    value
        What a user gave.
    role
        What it is there: condition, slack, end.
    example
        What may be given.
    """
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, str):
        remedy = f"Write it without quotes, in terms of the model's variables: {example}."
    elif inspect.isroutine(value):
        remedy = f"Call it with the model's variables: {example}."
    elif isinstance(value, list | tuple):
        remedy = f"Elements of a list need one shape and type. Give each on its own: {example}."
    else:
        remedy = f"Write an expression of the model's variables: {example}."
    refusal = RegionError(f"{owner}: the {role} is {shown(value)}. {remedy}")
    if value is None or isinstance(value, str | bytes | bool | np.bool_ | Mapping):
        raise refusal
    try:
        expression = pt.as_tensor_variable(value)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise refusal from error
    if expression.dtype.startswith("complex"):
        raise RegionError(
            f"{owner}: the {role} `{readable(expression)}` is complex, and complex numbers have no "
            "order. Take a real part or a modulus."
        )
    return expression
