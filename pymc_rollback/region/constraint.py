"""Constraints ``g(x) > 0`` and the region that they make together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pymc.pytensorf import constant_fold
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import NullType
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, graph_replace
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.scalar.basic import Sub
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import values_at
from pymc_rollback.graph.forms import constant_value, is_data, is_scalar_op, value_ancestors
from pymc_rollback.graph.text import readable
from pymc_rollback.region.inside import find_inside
from pymc_rollback.region.support import Support, solve_for
from pymc_rollback.region.values import ValueSpace


class RegionError(ValueError):
    """A region that cannot be read or sampled; says which constraint, why, and what to do.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model():
    ...     x = pm.HalfNormal("x")
    ...     c = rb.constrain("never", x < -1)
    Traceback (most recent call last):
        ...
    pymc_rollback.region.constraint.RegionError: ...
    """


class Bound(NamedTuple):
    """A constant bound of a variable: a lower one for the sign +1, an upper one for -1."""

    variable: str
    sign: int
    value: TensorVariable


@dataclass(frozen=True)
class Constraint:
    """Rows ``slack > 0`` that share a name.

    Attributes
    ----------
    name
        Name of the constraint. Bounds and orders are named after their variable ("x.lower").
    owner
        Name of the variable whose bound or order it is, or of the Potential or observed variable
        that it comes from.
    kind
        "bound", "order" or "joint".
    slack
        ``g(x)``, a vector with an element a row, in terms of the model's random variables.
    text
        The inequality as a person would write it.
    inputs
        The free variables that the slack depends on directly.
    affine
        Whether the slack is affine in the free variables.
    bound
        The bound that it puts on one variable, where it is no more than that.
    level
        What the log density falls to where it fails: ``-inf``, or the finite penalty of a
        Potential that is read as a wall.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", shape=2)
    ...     c = rb.constrain("ordered", x[0] < x[1])
    >>> [constraint] = rb.read_region(model)
    >>> constraint.text, constraint.kind, constraint.affine
    ('x[0] < x[1]', 'joint', True)
    >>> constraint.slack.eval({x: [1.0, 3.0]}).tolist()
    [2.0]
    """

    name: str
    owner: str
    kind: str
    slack: TensorVariable
    text: str
    inputs: tuple[TensorVariable, ...]
    affine: bool
    bound: Bound | None = None
    level: float = -np.inf


@dataclass(frozen=True)
class Region:
    """Where a model's density is positive: ``{x : g(x) > 0 for every constraint g}``.

    Attributes
    ----------
    model
        The model that was read.
    supports
        The support of each continuous free variable, by name.
    joint
        The joint constraints.
    data
        What the model's data containers held when it was read.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> region = rb.read_region(model)
    >>> len(region), region["sum"].text
    (2, 'sum(x) < 2')
    """

    model: pm.Model
    supports: Mapping[str, Support]
    joint: tuple[Constraint, ...]
    data: Mapping[SharedVariable, np.ndarray] = field(default_factory=dict)

    @cached_property
    def initial(self) -> dict[str, np.ndarray]:
        """Where PyMC starts."""
        return self.model.initial_point(random_seed=0)

    @cached_property
    def start(self) -> dict[str, np.ndarray]:
        """A point of the model, under its own transforms, inside the region if one was found."""
        slacks = [c.slack for c in self.constraints] if self.joint else []
        return find_inside(self.model, slacks, self.initial)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """Bounds, orders and joint constraints."""
        own = (row for support in self.supports.values() for row in _support_rows(support))
        return (*(make_constraint(self.model, *row) for row in own), *self.joint)

    @cached_property
    def cut_supports(self) -> dict[str, Support]:
        """Supports by name, cut by the bounds that constraints put on single variables."""
        supports = dict(self.supports)
        for bound in (c.bound for c in self.joint if c.bound is not None):
            support = supports[bound.variable]
            if support.keeps is None and support.order is None:
                supports[bound.variable] = support.within(bound.sign, bound.value)
        return supports

    def __iter__(self) -> Iterator[Constraint]:
        return iter(self.constraints)

    def __len__(self) -> int:
        return len(self.constraints)

    def __getitem__(self, name: str) -> Constraint:
        for constraint in self.constraints:
            if constraint.name == name:
                return constraint
        raise KeyError(
            f"{name!r} is no constraint of this region, which has "
            f"{', '.join(c.name for c in self.constraints) or 'none'}"
        )

    def evaluate(
        self, expressions: Sequence[TensorVariable], point: Mapping[str, np.ndarray]
    ) -> list[np.ndarray]:
        """Values of expressions of the random variables, at a point of the model."""
        expressions = self.model.replace_rvs_by_values(expressions) if expressions else []
        return values_at(point, self.model.value_vars, expressions)

    def hard_logp(self) -> TensorVariable:
        """Log density as PyMC defines it: ``-inf`` outside the region."""
        return self.model.logp()

    def smooth_logp(self) -> TensorVariable:
        """Log density with the indicators and support switches taken out.

        Equal to :meth:`hard_logp` inside the region, it goes on smoothly beyond.
        """
        return self.space({}).smooth_logp

    def space(self, transforms: Mapping[str, Transform | None]) -> ValueSpace:
        """Value variables under given transforms of some variables, by name.

        Made once for each choice of transforms, as their log density takes long to write down.
        """
        given = {self.model[name]: transform for name, transform in transforms.items()}
        own = self.model.rvs_to_transforms
        changed = {rv: transform for rv, transform in given.items() if transform is not own[rv]}
        if not any(space.changed == changed for space in self._spaces):
            unread = [s.variable for s in self.supports.values() if s.keeps is not None]
            self._spaces.append(ValueSpace(self.model, changed, unread))
        return next(space for space in self._spaces if space.changed == changed)

    @cached_property
    def _spaces(self) -> list[ValueSpace]:
        return []


def make_constraint(
    model: pm.Model,
    name: str,
    owner: str,
    kind: str,
    slack: TensorVariable,
    text: str,
    level: float = -np.inf,
) -> Constraint:
    """Make a constraint of a slack of any shape; observed variables in it are their data."""
    slack = with_data(model, slack)
    rows = pt.cast(_without_endless(slack), "float64").ravel()
    inputs = tuple(free_inputs(model, slack))
    bound = _find_bound(slack, inputs) if kind == "joint" else None
    affine = is_affine(model, rows, inputs)
    return Constraint(name, owner, kind, rows, text, inputs, affine, bound, level)


def _without_endless(slack: TensorVariable) -> TensorVariable:
    """Leave out elements of a difference that a constant makes infinite: they always hold."""
    if not is_scalar_op(slack, Sub):
        return slack
    left, right = map(constant_value, slack.owner.inputs)
    if left is not None:
        endless = np.isposinf(left)
    elif right is not None:
        endless = np.isneginf(right)
    else:
        return slack
    if not np.any(endless) or np.all(endless):
        return slack
    shape = constant_fold(tuple(slack.shape), raise_not_constant=False)
    return slack.ravel()[np.flatnonzero(~np.broadcast_to(endless, shape))]


def with_data(model: pm.Model, slack: TensorVariable) -> TensorVariable:
    """Put data in place of observed variables, but not into free variables that depend on them."""
    inputs = value_ancestors(slack, blockers=model.free_RVs)
    data = {rv: model.rvs_to_values[rv] for rv in model.observed_RVs if rv in inputs}
    if not data:
        return slack
    [slack], plain = with_plain_inputs(model, [slack])
    values = {rv: data.get(rv, rv) for rv in model.basic_RVs}
    return graph_replace(slack, {plain[rv.name]: x for rv, x in values.items()}, strict=False)


def _find_bound(slack: TensorVariable, inputs: Sequence[TensorVariable]) -> Bound | None:
    """The bound in a slack of the form ``x - a`` or ``b - x``, elementwise, with a constant."""
    if len(inputs) != 1 or not is_continuous(inputs[0]):
        return None
    [x] = inputs
    sign, rest = solve_for(slack, x)
    if sign is None or slack.type.shape != x.type.shape:
        return None
    rest = pt.constant(0.0) if rest is None else rest
    return Bound(x.name, sign, -rest if sign > 0 else rest) if is_data(rest) else None


def _support_rows(support: Support) -> list[tuple[str, str, str, TensorVariable, str]]:
    """Bounds and order of a variable, as names, owners, kinds, slacks and texts."""
    x, rows = support.variable, []
    for side, symbol, bound in (("lower", ">", support.lower), ("upper", "<", support.upper)):
        if bound is not None:
            slack = _finite_rows(x - bound if side == "lower" else bound - x, bound)
            text = f"{x.name} {symbol} {readable(bound)}"
            rows.append((f"{x.name}.{side}", x.name, "bound", slack, text))
    if support.order is not None:
        step = x[..., 1:] - x[..., :-1]
        up = support.order == "ascending"
        text = f"{x.name}[..., i] {'<' if up else '>'} {x.name}[..., i + 1]"
        rows.append((f"{x.name}.order", x.name, "order", step if up else -step, text))
    return rows


def _finite_rows(slack: TensorVariable, bound: TensorVariable) -> TensorVariable:
    """Leave out the elements that have no bound, where that is known."""
    value = constant_value(bound)
    if value is None or np.all(np.isfinite(value)):
        return slack
    shape = constant_fold(tuple(slack.shape))
    return slack.ravel()[np.flatnonzero(np.isfinite(np.broadcast_to(value, shape)))]


def free_inputs(model: pm.Model, expression: Variable) -> list[TensorVariable]:
    """Free random variables that an expression depends on directly."""
    inputs = value_ancestors(expression, blockers=model.basic_RVs)
    return [rv for rv in model.free_RVs if rv in inputs]


def with_plain_inputs(
    model: pm.Model, expressions: list[TensorVariable]
) -> tuple[list[TensorVariable], dict[str, TensorVariable]]:
    """Replace the model's random variables by plain inputs of their names."""
    plain = {rv: rv.type(name=rv.name) for rv in model.basic_RVs}
    return clone_replace(expressions, plain), {rv.name: x for rv, x in plain.items()}


def is_affine(
    model: pm.Model, expression: TensorVariable, inputs: Sequence[TensorVariable]
) -> bool:
    """Whether an expression is affine in its free inputs: its gradient is free of them."""
    [expression], plain = with_plain_inputs(model, [expression])
    values = [plain[rv.name] for rv in inputs if is_continuous(rv)]
    gradients = pt.grad(
        pt.sum(expression.type() * expression),
        values,
        null_gradients="return",
        disconnected_inputs="ignore",
    )
    return not any(isinstance(g.type, NullType) or _depends_on_values(g, values) for g in gradients)


def _depends_on_values(expression: Variable, inputs: list[TensorVariable]) -> bool:
    simple = rewrite_graph(expression, include=("canonicalize",), clone=False)
    return not value_ancestors(simple).isdisjoint(inputs)


def is_continuous(rv: TensorVariable) -> bool:
    """Whether a random variable is continuous."""
    return rv.dtype in pm.vartypes.continuous_types


def involves_continuous(model: pm.Model, expression: Variable) -> bool:
    """Whether an expression depends on a continuous free variable."""
    return any(map(is_continuous, free_inputs(model, expression)))
