"""Indicators: the terms of a log density that are ``-inf`` wherever a condition fails."""

from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.math import Sum
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import joined
from pymc_rollback.graph.forms import (
    constant_value,
    is_data,
    is_identity,
    is_op,
    is_scalar_op,
    is_switch,
)
from pymc_rollback.region.conditions import boolean_test, conjuncts, is_indicator

NEGLIGIBLE_NATS = 1e5
"""A drop of this many nats is read as a drop to ``-inf``: no data weigh as much."""


class Indicator(NamedTuple):
    """A condition, and what it adds to a log density where it fails."""

    condition: TensorVariable
    level: float = -np.inf


class Split(NamedTuple):
    """A log density without its indicators, and those indicators.

    None of the conditions is a conjunction of others.
    """

    finite: TensorVariable
    indicators: list[Indicator]


def split_indicators(log_density: TensorVariable, floor: float = -np.inf) -> Split:
    """Take the indicators out of a log density.

    Walks the additive spine of the graph: sums, differences, multiples by positive constants,
    reductions by ``sum`` and changes of shape. Its leaves of the forms
    ``switch(c, finite, -inf)``, ``switch(c, -inf, finite)`` and ``log`` of an indicator of ``c``
    are replaced by their finite part. Everything else stays.

    Parameters
    ----------
    log_density
        A log density, a term of one, or a Potential.
    floor
        The largest constant that is read as ``-inf``.
    """
    finite, indicators = _split(log_density, 1.0, floor)
    return Split(
        finite,
        [Indicator(part, level) for whole, level in indicators for part in conjuncts(whole)],
    )


def split_potential(potential: TensorVariable) -> Split:
    """Take the indicators out of a Potential, a penalty that no data outweigh among them."""
    return split_indicators(potential, floor=-NEGLIGIBLE_NATS)


def _split(term: TensorVariable, scale: float, floor: float) -> Split:
    node = term.owner
    if node is None:
        return Split(term, [])
    if is_switch(term):
        return _split_switch(term, scale, floor)
    if abs(scale) >= -floor and is_indicator(term):
        holds = scale > 0  # a penalty of `scale` for each 0, or of `-scale` for each 1
        return Split(
            pt.full_like(term, float(holds), dtype="floatX"),
            [Indicator(term if holds else pt.eq(term, 0), -abs(scale))],
        )
    if is_scalar_op(term, scalar.Log) and scale > 0:
        return _split_log(term, floor)
    scales = _spine_scales(term, scale)
    if not any(scales):
        return Split(term, [])
    parts = [
        _split(x, s, floor) if s else Split(x, []) for x, s in zip(node.inputs, scales, strict=True)
    ]
    indicators = [indicator for part in parts for indicator in part.indicators]
    if not indicators:
        return Split(term, [])
    rebuilt = node.clone_with_new_inputs([part.finite for part in parts], strict=False)
    return Split(_like(rebuilt.outputs[0], term), indicators)


def _spine_scales(term: TensorVariable, scale: float) -> list[float]:
    """Factor with which each input of a node enters the sum; zero where it is not a summand."""
    node = term.owner
    if is_scalar_op(term, scalar.Add) or is_op(term, MakeVector):
        return [scale] * len(node.inputs)
    if is_op(term, Join):
        parts = len(joined(node))
        return [0] * (len(node.inputs) - parts) + [scale] * parts
    if is_scalar_op(term, scalar.Sub):
        return [scale, -scale]
    if is_scalar_op(term, scalar.Neg):
        return [-scale]
    if is_op(term, Sum) or is_identity(term):
        return [scale] + [0] * (len(node.inputs) - 1)
    if is_scalar_op(term, scalar.Second):
        return [0, scale]
    if is_scalar_op(term, scalar.Mul, scalar.TrueDiv):
        return _factor_scales(term, scale)
    return [0] * len(node.inputs)


def _factor_scales(term: TensorVariable, scale: float) -> list[float]:
    """Scales of a multiple of one expression by constants that have one sign throughout."""
    inputs = term.owner.inputs
    values = [constant_value(x) for x in inputs]
    free = [i for i, value in enumerate(values) if value is None]
    scales = [0.0] * len(inputs)
    divided = is_scalar_op(term, scalar.TrueDiv)
    if len(free) != 1 or (divided and free != [0]):
        return scales
    for value in (value for value in values if value is not None):
        if not (np.all(value > 0) or np.all(value < 0)):
            return scales
        # of an array, the element that penalises least
        factor = (
            1 / value.flat[np.argmax(np.abs(value))]
            if divided
            else value.flat[np.argmin(np.abs(value))]
        )
        scale = scale * float(factor)
    scales[free[0]] = scale
    return scales


def _split_switch(term: TensorVariable, scale: float, floor: float) -> Split:
    condition, yes, no = term.owner.inputs
    if any(_holds_almost_everywhere(condition, holds) for holds in (True, False)):
        return _split_guard(term, scale, floor)
    for branch, other, holds in ((no, yes, True), (yes, no, False)):
        if _falls(branch, other, scale, floor):
            inner = _split(other, scale, floor)
            own = condition if holds else pt.invert(pt.cast(condition, "bool"))
            low = constant_value(branch)
            assert low is not None  # only a constant falls
            level = float(np.max(scale * low))
            return Split(_like(inner.finite, term), [Indicator(own, level), *inner.indicators])
    split_yes, split_no = _split(yes, scale, floor), _split(no, scale, floor)
    if not (split_yes.indicators or split_no.indicators):
        return Split(term, [])
    condition = pt.cast(condition, "bool")
    return Split(
        _like(pt.switch(condition, split_yes.finite, split_no.finite), term),
        [Indicator(pt.or_(pt.invert(condition), c), level) for c, level in split_yes.indicators]
        + [Indicator(pt.or_(condition, c), level) for c, level in split_no.indicators],
    )


def _split_guard(term: TensorVariable, scale: float, floor: float) -> Split:
    """A switch at a set of measure zero: a guard, as of ``0 * log(0)``, or an equality."""
    condition, yes, no = term.owner.inputs
    holds = _holds_almost_everywhere(condition, True)
    typical, other = (yes, no) if holds else (no, yes)
    if _falls(typical, other, scale, floor):
        return Split(term, [Indicator(pt.invert(condition) if holds else condition)])
    inner = _split(typical, scale, floor)
    if not inner.indicators:
        return Split(term, [])
    branches = (inner.finite, no) if holds else (yes, inner.finite)
    return Split(_like(pt.switch(condition, *branches), term), inner.indicators)


def _holds_almost_everywhere(condition: Variable, holds: bool) -> bool:
    """Whether a condition fails on a set of measure zero only, by its form."""
    node = condition.owner
    if is_scalar_op(condition, scalar.EQ, scalar.NEQ):
        unequal = isinstance(node.op.scalar_op, scalar.NEQ) == holds
        return unequal and boolean_test(condition) is None and not is_data(condition)
    product = is_scalar_op(condition, scalar.Mul) and is_indicator(condition)
    if product or is_scalar_op(condition, scalar.AND, scalar.OR):
        both = (not isinstance(node.op.scalar_op, scalar.OR)) == holds
        return (all if both else any)(_holds_almost_everywhere(c, holds) for c in node.inputs)
    if is_scalar_op(condition, scalar.Invert):
        return _holds_almost_everywhere(node.inputs[0], not holds)
    if is_identity(condition):
        return _holds_almost_everywhere(node.inputs[0], holds)
    return False


def _falls(branch: Variable, other: Variable, scale: float, floor: float) -> bool:
    """Whether a branch is a constant at or below the floor, and far below the other branch."""
    low = constant_value(branch)
    if low is None or not np.all(scale * low <= floor):
        return False
    high = constant_value(other)
    with np.errstate(invalid="ignore"):  # of two infinities neither is far below the other
        return high is None or bool(np.all(scale * (high - low) >= -floor))


def _split_log(term: TensorVariable, floor: float) -> Split:
    """Indicators in ``log`` of an indicator ``c``, of ``switch(c, a, 0)``, or of their products."""
    [inner] = term.owner.inputs
    if is_indicator(inner):
        return Split(pt.zeros_like(term), [Indicator(inner)])
    if is_scalar_op(inner, scalar.Mul):
        return _split(pt.add(*map(pt.log, inner.owner.inputs)), 1, floor)
    if is_identity(inner):
        plain = _split(pt.log(inner.owner.inputs[0]), 1, floor)
        return (
            Split(_like(plain.finite, term), plain.indicators)
            if plain.indicators
            else Split(term, [])
        )
    if is_switch(inner):
        condition, *branches = inner.owner.inputs
        logs = [pt.log(pt.cast(branch, "floatX")) for branch in branches]
        pushed = _split(pt.switch(pt.cast(condition, "bool"), *logs), 1, floor)
        return (
            Split(_like(pushed.finite, term), pushed.indicators)
            if pushed.indicators
            else Split(term, [])
        )
    return Split(term, [])


def _like(value: TensorVariable, term: TensorVariable) -> TensorVariable:
    """Broadcast a value to the shape of a term, where the types do not settle it."""
    if value.type.shape == term.type.shape and None not in value.type.shape:
        return value
    return pt.second(term, value)
