"""The support of each free variable: its bounds and its order.

Both are read from two things that every PyMC distribution has: the support switch of its own log
density, and the range of its value transform (the default one, and the user's).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.censored import CensoredRV
from pymc.distributions.transforms import Interval, LogExpM1, Ordered
from pymc.logprob.transforms import (
    ChainedTransform,
    IntervalTransform,
    LogOddsTransform,
    LogTransform,
    Transform,
)
from pymc.pytensorf import constant_fold
from pymc.util import get_var_name
from pymc.vartypes import continuous_types
from pytensor.graph.basic import equal_computations
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import default_transform
from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.graph.forms import constant_value, is_data, is_op, is_scalar_op, value_ancestors
from pymc_rollback.graph.text import readable
from pymc_rollback.region.account import require_data
from pymc_rollback.region.conditions import Inequality, UnreadableError, inequalities
from pymc_rollback.region.indicators import split_indicators
from pymc_rollback.region.parts import Part, log_density, part_of


class Range(NamedTuple):
    """What a value transform maps onto; ``known`` is False where we cannot tell."""

    lower: TensorVariable | None = None
    upper: TensorVariable | None = None
    order: str | None = None
    known: bool = True


class OwnDensity(NamedTuple):
    """Lower bounds, upper bounds and other conditions in a variable's own density; the rest of it.

    The rest is the log density without indicators; None where the density is not read.
    """

    lower: Sequence[TensorVariable | None] = ()
    upper: Sequence[TensorVariable | None] = ()
    joint: Sequence[Inequality] = ()
    smooth: TensorVariable | None = None


@dataclass(frozen=True)
class Support:
    """Where a free variable can be.

    Attributes
    ----------
    variable
        The random variable.
    lower, upper
        Its bounds, expressions of the model's variables; None where there is none. Elements of an
        array bound may be infinite.
    order
        "ascending" or "descending" along the last axis, or None.
    transform
        The value transform that the model has for it.
    keeps
        Why the variable must keep that transform (a simplex, a circle, an unknown one), or None.
    joint
        Conditions of its own density that are not bounds.
    smooth
        Its log density without indicators; None where the density is not read.
    """

    variable: TensorVariable
    lower: TensorVariable | None
    upper: TensorVariable | None
    order: str | None
    transform: Transform | None
    keeps: str | None
    joint: tuple[Inequality, ...]
    smooth: TensorVariable | None

    @property
    def bounded(self) -> bool:
        """Whether any element has a bound."""
        return self.lower is not None or self.upper is not None

    @property
    def full_bounds(self) -> tuple[TensorVariable, TensorVariable]:
        """Both bounds, infinite where there is none."""
        return (
            pt.constant(-np.inf) if self.lower is None else self.lower,
            pt.constant(np.inf) if self.upper is None else self.upper,
        )

    @property
    def exchangeable(self) -> bool:
        """Whether all elements of an order share their bounds, so that they can exchange places."""
        return self.order is not None and all(map(_is_shared, (self.lower, self.upper)))

    def within(self, sign: int, bound: TensorVariable) -> "Support":
        """Cut the support by a further lower (sign +1) or upper (sign -1) bound."""
        if sign > 0:
            return replace(self, lower=_tightest(pt.maximum, -np.inf, [self.lower, bound]))
        return replace(self, upper=_tightest(pt.minimum, np.inf, [self.upper, bound]))

    @property
    def text(self) -> str:
        """The support as a person would write it."""
        if self.keeps is not None:
            return self.keeps
        if not self.bounded and self.order is None:
            return "real line"
        lower = "-inf" if self.lower is None else readable(self.lower)
        upper = "inf" if self.upper is None else readable(self.upper)
        interval = f"({lower}, {upper})" if self.bounded else ""
        return " ".join(filter(None, [interval, self.order]))


def read_support(
    variable: TensorVariable, transform: Transform | None, given: Sequence[TensorVariable] = ()
) -> Support:
    """Read the support of one free variable.

    Parameters
    ----------
    variable
        A continuous random variable.
    transform
        The value transform that the model has for it.
    given
        Random variables on which it may depend.
    """
    if (part := part_of(variable)) is not None:
        return _support_of_part(variable, part, transform, given)
    if isinstance(variable.owner.op, CensoredRV):
        raise UnreadableError(
            f"`{readable(variable)}` is censored: it equals a bound with a positive probability, "
            "and Hamiltonian trajectories never meet a single value"
        )
    default = default_transform(variable.owner.op, variable)
    transforms = [t for t in (default, transform) if t is not None]
    ranges = [_range(t, variable) for t in transforms]
    unknown = [t for t, r in zip(transforms, ranges, strict=True) if not r.known]
    own = OwnDensity() if unknown else _density_bounds(variable, given)
    lower = _tightest(pt.maximum, -np.inf, [*own.lower, *(r.lower for r in ranges)])
    upper = _tightest(pt.minimum, np.inf, [*own.upper, *(r.upper for r in ranges)])
    return Support(
        variable=variable,
        lower=None if unknown else lower,
        upper=None if unknown else upper,
        order=next((r.order for r in ranges if r.order), None),
        transform=transform,
        keeps=unknown[0].name if unknown else None,
        joint=tuple(own.joint),
        smooth=own.smooth,
    )


def _support_of_part(
    variable: TensorVariable,
    part: Part,
    transform: Transform | None,
    given: Sequence[TensorVariable],
) -> Support:
    support = read_support(part.whole, transform, given)
    if support.keeps is not None or support.order is not None or support.joint:
        raise UnreadableError(
            f"missing values of `{readable(part.whole)}` are bounded by the observed ones; they "
            "must be variables of their own"
        )
    lower, upper = part.take(support.lower), part.take(support.upper)
    embedded = {part.whole: part.embed(variable, variable.name)}
    smooth = graph_replace(support.smooth, embedded, strict=False)
    return replace(support, variable=variable, lower=lower, upper=upper, smooth=smooth)


def _range(transform: Transform, variable: TensorVariable) -> Range:
    """Read the range of a value transform."""
    if isinstance(transform, LogTransform) or type(transform) is LogExpM1:
        return Range(lower=pt.constant(0.0))
    if isinstance(transform, LogOddsTransform):
        return Range(pt.constant(0.0), pt.constant(1.0))
    # subclasses of Interval belong to matrix-valued variables, where bounds are not the support
    if type(transform) in (Interval, IntervalTransform):
        bounds = transform.args_fn(*variable.owner.inputs)
        lower, upper = (None if b is None else pt.as_tensor_variable(b) for b in bounds)
        return Range(lower, upper)
    if type(transform) is Ordered:
        direction = "ascending" if transform.ascending else "descending"
        return Range(lower=pt.constant(0.0) if transform.positive else None, order=direction)
    if isinstance(transform, ChainedTransform):
        return _chained_range(transform.transform_list, variable)
    return Range(known=False)


def _chained_range(transforms: list[Transform], variable: TensorVariable) -> Range:
    """Range of an ordered vector under an increasing function of each element; else unknown.

    A function that differs by element, such as an interval transform for several bounds, orders
    something else than the variable.
    """
    *outer, inner = (_range(t, variable) for t in transforms)
    increasing = len(outer) == 1 and outer[0].known and outer[0].order is None
    if increasing and outer[0].lower is not None and inner == Range(order=inner.order):
        if _is_shared(outer[0].lower) and _is_shared(outer[0].upper):
            return outer[0]._replace(order=inner.order)
    return Range(known=False)


def _is_shared(bound: TensorVariable | None) -> bool:
    """Whether all elements along the last axis surely share one bound."""
    if bound is None or bound.ndim == 0 or bound.type.broadcastable[-1]:
        return True
    value = constant_value(bound)
    return value is not None and bool(np.all(value == value[..., :1]))


def left_open(transform: Transform, support: Support) -> list[str]:
    """What a transform does not see to, of a support's "lower" and "upper" bound and "order"."""
    found = _range(transform, support.variable)
    if not found.known:
        return []
    bounds = ((support.lower, found.lower), (support.upper, found.upper))
    kept = [wanted is None or _are_equal(wanted, given) for wanted, given in bounds]
    kept.append(found.order == support.order)
    return [
        part for part, is_kept in zip(("lower", "upper", "order"), kept, strict=True) if not is_kept
    ]


def _are_equal(bound: TensorVariable, other: TensorVariable | None) -> bool:
    if other is None:
        return False
    values = constant_value(bound), constant_value(other)
    if any(value is None for value in values):
        return equal_computations([bound], [other])
    return bool(np.all(values[0] == values[1]))


def _density_bounds(variable: TensorVariable, given: Sequence[TensorVariable]) -> OwnDensity:
    """Read the conditions in a variable's own density."""
    value = variable.type(name=get_var_name(variable))
    logp = log_density(variable, value, given)
    finite, indicators = split_indicators(logp)
    smooth = graph_replace(finite, {value: variable}, strict=False)
    conditions = [condition for condition, _ in indicators]
    for condition in filter(is_data, conditions):
        require_data(condition, variable.name)
    moving = {value, *(rv for rv in given if rv.dtype in continuous_types)}
    read = [c for c in conditions if not moving.isdisjoint(value_ancestors(c, given))]
    lower: list[TensorVariable] = []
    upper: list[TensorVariable] = []
    joint: list[Inequality] = []
    try:
        rows = [row for condition in read for row in inequalities(condition)]
    except UnreadableError:
        if any(value not in ancestors([condition]) for condition in read):
            raise
        found = _probe_bounds(variable, value, logp)
        return OwnDensity([found.lower], [found.upper], smooth=smooth)
    for row in rows:
        if moving.isdisjoint(value_ancestors(row.slack, given)):
            continue
        sign, rest = solve_for(row.slack, value)
        if sign is None:
            slack = graph_replace(row.slack, {value: variable}, strict=False)
            joint.append(row._replace(slack=slack))
        else:
            bound = pt.constant(0.0) if rest is None else _negative(rest) if sign > 0 else rest
            (lower if sign > 0 else upper).append(bound)
    return OwnDensity(lower, upper, joint, smooth)


def solve_for(
    slack: TensorVariable, value: TensorVariable
) -> tuple[int | None, TensorVariable | None]:
    """Write a slack as ``sign * value + rest``.

    The sign is None where the slack has no such form, the rest is None where it is zero.
    """
    if slack is value:
        return 1, None
    node = slack.owner
    if node is None or not isinstance(node.op, Elemwise):
        return None, None
    op = node.op.scalar_op
    inside = [i for i, x in enumerate(node.inputs) if value in ancestors([x])]
    if len(inside) != 1 or not isinstance(op, scalar.Add | scalar.Sub | scalar.Neg | scalar.Cast):
        return None, None
    sign, rest = solve_for(node.inputs[inside[0]], value)
    if sign is None or isinstance(op, scalar.Cast):
        return sign, rest
    subtracted = isinstance(op, scalar.Neg) or (isinstance(op, scalar.Sub) and inside == [1])
    terms = [
        x if i == 0 or isinstance(op, scalar.Add) else _negative(x)
        for i, x in enumerate(node.inputs)
    ]
    terms = [x for i, x in enumerate(terms) if i not in inside]
    if rest is not None:
        terms.append(_negative(rest) if subtracted else rest)
    return -sign if subtracted else sign, pt.add(*terms) if len(terms) > 1 else next(
        iter(terms), None
    )


def _probe_bounds(variable: TensorVariable, value: TensorVariable, logp: TensorVariable) -> Range:
    """Bounds found by evaluating a density whose conditions are not comparisons.

    Looks for the one interval of a grid on which the density is finite, and bisects its ends.
    """
    parameters = [x for x in variable.owner.inputs if isinstance(x.type, TensorType)]
    if any(constant_value(x) is None for x in parameters) or logp.ndim != value.ndim:
        raise UnreadableError(
            f"`{readable(variable)}` has parameters that are not constant, and "
            "conditions that are not comparisons"
        )
    shape = constant_fold(tuple(variable.shape))
    function = interpreted([value], logp)

    def is_finite(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.isfinite(function(x))

    half = np.geomspace(1e-6, 1e6, 97)
    grid = np.concatenate([-half[::-1], [0.0], half])
    finite = np.stack([is_finite(np.full(shape, x)) for x in grid])
    if np.any(np.count_nonzero(np.diff(finite, axis=0), axis=0) > 2) or not np.all(finite.any(0)):
        raise UnreadableError(f"the support of `{readable(variable)}` is not an interval")
    first, last = np.argmax(finite, axis=0), finite.shape[0] - 1 - np.argmax(finite[::-1], axis=0)
    ends = []
    for inner, outer, unbounded in ((first, first - 1, -np.inf), (last, last + 1, np.inf)):
        off_grid = (outer < 0) | (outer == grid.size)
        inside, outside = grid[inner], grid[np.clip(outer, 0, grid.size - 1)]
        for _ in range(1100):  # enough for any double, the smallest ones included
            middle = 0.5 * (inside + outside)
            found = is_finite(middle)
            inside, outside = np.where(found, middle, inside), np.where(found, outside, middle)
        ends.append(pt.constant(np.where(off_grid, unbounded, outside)))
    return Range(*ends)


def _negative(expression: TensorVariable) -> TensorVariable:
    """Minus an expression, without a double minus, so that equal bounds have equal graphs."""
    return expression.owner.inputs[0] if is_scalar_op(expression, scalar.Neg) else -expression


def _without_added_axes(bound: TensorVariable) -> TensorVariable:
    """A bound without its leading axes of length one, so that equal bounds have equal graphs."""
    if is_op(bound, DimShuffle) and bound.owner.op.new_order == (
        *("x" for _ in bound.owner.op.augment),
        *range(bound.owner.inputs[0].ndim),
    ):
        return bound.owner.inputs[0]
    return bound


def _tightest(
    pick: Callable, unbounded: float, bounds: Sequence[TensorVariable | None]
) -> TensorVariable | None:
    """One bound out of several that may repeat each other."""
    constants: list[np.ndarray] = []
    others: list[TensorVariable] = []
    for bound in (_without_added_axes(b) for b in bounds if b is not None):
        value = constant_value(bound)
        if value is not None:
            constants.append(np.asarray(value, dtype=float))
        elif not any(equal_computations([bound], [other]) for other in others):
            others.append(bound)
    if constants:
        value = reduce(np.maximum if unbounded < 0 else np.minimum, constants)
        if not np.all(value == unbounded):
            value = (
                value.flat[0]
                if np.ptp(value[np.isfinite(value)]) == 0 and np.all(np.isfinite(value))
                else value
            )
            others.append(pt.constant(value))
    if not others:
        return None
    tightest, *rest = others
    for bound in rest:
        tightest = pick(tightest, bound)
    return tightest
