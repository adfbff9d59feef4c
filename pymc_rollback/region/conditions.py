"""Conditions: from boolean graphs to slacks ``g > 0`` that are positive where they hold."""

from functools import reduce
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.math import All, Any, Prod
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import joined
from pymc_rollback.graph.forms import (
    constant_value,
    is_data,
    is_identity,
    is_op,
    is_scalar_op,
    is_switch,
    present_value,
)
from pymc_rollback.graph.text import readable
from pymc_rollback.region.domains import natural_domain, without_functions


class UnreadableError(ValueError):
    """A condition that cannot be turned into slacks."""


class Inequality(NamedTuple):
    """One inequality ``slack > 0``, elementwise.

    With the slack: the inequality as a person would write it, the condition that it comes from, and
    what a log density falls to where the condition fails.
    """

    slack: TensorVariable
    text: str
    condition: TensorVariable
    level: float = -np.inf


def conjuncts(condition: TensorVariable) -> list[TensorVariable]:
    """Conditions that all hold exactly where one does, and are no conjunctions themselves."""
    return [
        part if holds else pt.invert(pt.cast(part, "bool"))
        for part, holds in _leaves(condition, True)
    ]


def _leaves(condition: Variable, holds: bool) -> list[tuple[Variable, bool]]:
    parts = _conjuncts(condition, holds)
    if parts is None:
        return [(condition, holds)]
    return [leaf for part, sign in parts for leaf in _leaves(part, sign)]


def inequalities(condition: TensorVariable, holds: bool = True) -> list[Inequality]:
    """Slacks that are all positive exactly where a condition holds (up to its boundary).

    ``a < b`` and ``a <= b`` have the slack ``b - a``; a conjunction has the slacks of all its
    parts, a union the maximum of its parts' slacks.

    Parameters
    ----------
    condition
        Any comparison (``<``, ``<=``, ``>``, ``>=``), reduced by ``all`` or ``any`` and combined
        by and, or and not.
    holds
        Whether the condition (True) or its negation (False) is to hold.
    """
    rows = []
    for leaf, sign in _leaves(condition, holds):
        arguments = natural_domain(leaf) if sign and is_scalar_op(leaf, *_COMPARISONS) else []
        rows += [row for argument in arguments for row in inequalities(argument > 0)]
        slack = _defined_slack(leaf) if arguments else _slack(leaf, sign)
        true = leaf if sign else pt.invert(pt.cast(leaf, "bool"))
        rows.append(Inequality(slack, _text(leaf, sign), true))
    return rows


def _conjuncts(condition: Variable, holds: bool) -> list[tuple[Variable, bool]] | None:
    """Parts that must all hold, or None where the condition is not a conjunction."""
    node = condition.owner
    if is_scalar_op(condition, scalar.Invert):
        return [(node.inputs[0], not holds)]
    if is_op(condition, All if holds else Any) or is_identity(condition):
        return [(node.inputs[0], holds)]
    if is_scalar_op(condition, scalar.AND if holds else scalar.OR):
        return [(part, holds) for part in node.inputs]
    if is_op(condition, MakeVector):
        return [(part, holds) for part in node.inputs]
    if is_op(condition, Join):
        return [(part, holds) for part in joined(node)]
    if holds and (is_scalar_op(condition, scalar.Mul) or is_op(condition, Prod)):
        return [(part, holds) for part in node.inputs]
    if (test := boolean_test(condition)) is not None:
        part, sign = test
        return [(part, sign == holds)]
    return None


def boolean_test(condition: Variable) -> tuple[Variable, bool] | None:
    """The condition ``c`` and the truth value in ``c == True``, ``c != 0``, ``switch(c, 1, 0)``."""
    node = condition.owner
    if is_scalar_op(condition, scalar.EQ, scalar.NEQ):
        for part, other in (node.inputs, node.inputs[::-1]):
            value = constant_value(other)
            if is_indicator(part) and value is not None and np.isin(value, (0, 1)).all():
                same = isinstance(node.op.scalar_op, scalar.EQ)
                return (
                    (part, bool(value.flat[0]) == same) if np.all(value == value.flat[0]) else None
                )
    if is_switch(condition):
        test, yes, no = (node.inputs[0], *map(constant_value, node.inputs[1:]))
        if yes is not None and no is not None:
            if np.all(yes == 1) and np.all(no == 0):
                return test, True
            if np.all(yes == 0) and np.all(no == 1):
                return test, False
    return None


def is_indicator(expression: Variable) -> bool:
    """Whether an expression takes the values 0 and 1 only, by its form."""
    if getattr(expression, "dtype", None) == "bool":
        return True
    node = expression.owner
    if is_identity(expression) or is_op(expression, Prod):
        return is_indicator(node.inputs[0])
    if is_scalar_op(expression, scalar.Mul):
        return all(map(is_indicator, node.inputs))
    return is_switch(expression) and boolean_test(expression) is not None


_COMPARISONS = {scalar.LT: -1, scalar.LE: -1, scalar.GT: 1, scalar.GE: 1}


def _slack(condition: Variable, holds: bool) -> TensorVariable:
    """Elementwise slack of a condition, of the condition's shape."""
    node = condition.owner
    if _is_decided(condition, holds):
        return pt.full(constant_fold(tuple(condition.shape), raise_not_constant=False), np.inf)
    if node is None or (is_data(condition) and condition.dtype == "bool"):
        return _constant_slack(condition, holds)
    if is_scalar_op(condition, *_COMPARISONS):
        arguments = natural_domain(condition)
        if not arguments:
            return _difference(condition, *node.inputs, holds=holds)
        # where it has no value a comparison fails, and its negation holds
        slack = reduce(pt.minimum, [_defined_slack(condition), *map(_positive_slack, arguments)])
        return slack if holds else -slack
    if is_scalar_op(condition, scalar.Invert):
        return _slack(node.inputs[0], not holds)
    product = is_scalar_op(condition, scalar.Mul) and is_indicator(condition)
    if product or is_scalar_op(condition, scalar.AND, scalar.OR):
        both = (not isinstance(node.op.scalar_op, scalar.OR)) == holds
        slacks = (_slack(part, holds) for part in node.inputs)
        return reduce(pt.minimum if both else pt.maximum, slacks)
    if is_op(condition, All, Any) or (is_op(condition, Prod) and is_indicator(condition)):
        worst = (not isinstance(node.op, Any)) == holds
        return (pt.min if worst else pt.max)(_slack(node.inputs[0], holds), axis=node.op.axis)
    if is_scalar_op(condition, scalar.Cast, scalar.Identity):
        return _slack(node.inputs[0], holds)
    if is_identity(condition):
        return node.clone_with_new_inputs(
            [_slack(node.inputs[0], holds), *node.inputs[1:]], strict=False
        ).outputs[0]
    if is_op(condition, MakeVector):
        return pt.stack([_slack(part, holds) for part in node.inputs])
    if is_op(condition, Join):
        parts = joined(node)
        axis = node.inputs[: -len(parts)]
        return node.op(*axis, *(_slack(part, holds) for part in parts))
    if (test := boolean_test(condition)) is not None:
        return _slack(test[0], test[1] == holds)
    if is_scalar_op(condition, scalar.EQ, scalar.NEQ):
        raise UnreadableError(
            f"`{_text(condition, holds)}` is an equality. A set of measure zero cannot be sampled: "
            "solve for one of the variables and make it a Deterministic of the others, or give "
            "the difference a narrow distribution (an observed Normal with a small sigma)"
        )
    return _constant_slack(condition, holds)


def _difference(
    condition: Variable, left: Variable, right: Variable, *, holds: bool = True
) -> TensorVariable:
    greater = (_COMPARISONS[type(condition.owner.op.scalar_op)] > 0) == holds
    left, right = (pt.cast(side, "float64") for side in (left, right))
    return left - right if greater else right - left


def _defined_slack(comparison: Variable) -> TensorVariable:
    """Slack of a comparison; beyond its natural domain, the (negative) slack of the domain."""
    slack = _difference(comparison, *without_functions(*comparison.owner.inputs))
    arguments = natural_domain(slack)
    if not arguments:
        return slack
    inside = reduce(pt.minimum, map(_positive_slack, arguments))
    return pt.switch(inside > 0, slack, inside)


def _positive_slack(argument: TensorVariable) -> TensorVariable:
    return _slack(argument > 0, True)


def _is_decided(condition: Variable, holds: bool) -> bool:
    """Whether the present data alone make a condition hold."""
    node = condition.owner
    if is_data(condition):
        return condition.dtype == "bool" and bool(np.all(present_value(condition) == holds))
    if is_scalar_op(condition, scalar.Invert):
        return _is_decided(node.inputs[0], not holds)
    if is_scalar_op(condition, scalar.AND, scalar.OR):
        both = isinstance(node.op.scalar_op, scalar.AND) == holds
        return (all if both else any)(_is_decided(part, holds) for part in node.inputs)
    return False


def _constant_slack(condition: Variable, holds: bool) -> TensorVariable:
    """Slack of a mask of data: infinite, so that it decides a union or a conjunction alone."""
    if condition.dtype != "bool" or not is_data(condition):
        raise UnreadableError(f"`{readable(condition)}` is not a comparison")
    return pt.switch(condition if holds else pt.invert(condition), np.inf, -np.inf)


def written(condition: Variable) -> str:
    """A condition as a person would write it."""
    return _text(condition, True)


_SYMBOLS = {scalar.LT: "<", scalar.LE: "<=", scalar.GT: ">", scalar.GE: ">="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _text(condition: Variable, holds: bool) -> str:
    """A condition or its negation as a person would write it."""
    node = condition.owner
    if is_scalar_op(condition, *_SYMBOLS):
        left, right = map(readable, node.inputs)
        symbol = _SYMBOLS[type(node.op.scalar_op)]
        return f"{left} {symbol if holds else _OPPOSITE[symbol]} {right}"
    if is_scalar_op(condition, scalar.EQ, scalar.NEQ):
        left, right = map(readable, node.inputs)
        return (
            f"{left} {'==' if isinstance(node.op.scalar_op, scalar.EQ) == holds else '!='} {right}"
        )
    if is_scalar_op(condition, scalar.AND, scalar.OR):
        word = "and" if isinstance(node.op.scalar_op, scalar.AND) == holds else "or"
        return f" {word} ".join(f"({_text(part, holds)})" for part in node.inputs)
    if is_op(condition, All, Any):
        word = "all" if isinstance(node.op, All) == holds else "any"
        return f"{word}({_text(node.inputs[0], holds)})"
    if is_scalar_op(condition, scalar.Invert):
        return _text(node.inputs[0], not holds)
    if is_identity(condition):
        return _text(node.inputs[0], holds)
    return readable(condition) if holds else f"not {readable(condition)}"
