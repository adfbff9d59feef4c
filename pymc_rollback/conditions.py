"""Conditions: from boolean graphs to slacks ``g > 0`` that are positive where they hold."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, reduce
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.logprob.utils import local_check_parameter_to_ninf_switch
from pymc.pytensorf import compile as pymc_compile
from pymc.pytensorf import constant_fold
from pytensor import config
from pytensor.compile.mode import OPT_MINIMUM, Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.rewriting.basic import in2out
from pytensor.graph.traversal import graph_inputs, toposort
from pytensor.link.vm import VMLinker
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import All, Any, Prod
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.readable import readable

UNTOUCHED = Mode(VMLinker(use_cloop=False, c_thunks=False), OPT_MINIMUM).register(
    # which is among the rewrites that pymc_compile asks for, but only where there are others
    (in2out(local_check_parameter_to_ninf_switch), -1)
)
"""A mode that rewrites a graph no more than it must, and runs it in Python."""

MOST_OPERANDS = 31
"""Inputs of an elementwise Op that Python can run: NumPy's universal functions have 32 operands."""

SHAPE_OPS = (DimShuffle, Reshape, SpecifyShape, Alloc, CheckAndRaise)
"""Ops that move or repeat the elements of their first input and do not change them."""


class UnreadableError(ValueError):
    """A condition that cannot be turned into slacks."""


class Inequality(NamedTuple):
    """One inequality ``slack > 0``, elementwise, how a person would write it, and what it is of."""

    slack: TensorVariable
    text: str
    condition: TensorVariable


def constant_value(expression: Variable) -> np.ndarray | None:
    """Value of an expression of constants; None where anything else enters."""
    if isinstance(expression, Constant):
        return np.asarray(expression.data)
    if not all(isinstance(v, Constant) for v in graph_inputs([expression])):
        return None
    return present_value(expression)


def present_value(expression: Variable) -> np.ndarray:
    """Present value of an expression of data, node by node: compiling it would take long."""
    storage = {v: [_held_by(v)] for v in graph_inputs([expression])}
    for node in toposort([expression]):
        storage |= {v: [None] for v in node.outputs}
        ready = {v: [v not in node.outputs] for v in (*node.inputs, *node.outputs)}
        node.op.make_thunk(node, storage, ready, [], impl="py")()
    return np.asarray(storage[expression][0])


def _held_by(data: Variable) -> np.ndarray:
    return data.data if isinstance(data, Constant) else data.get_value()


def snapshot(expressions: Sequence[Variable]) -> dict[SharedVariable, np.ndarray]:
    """What the data containers in some expressions hold now."""
    shared = (v for v in graph_inputs(expressions) if isinstance(v, SharedVariable))
    return {v: v.get_value() for v in shared if isinstance(v.type, TensorType)}


def has_changed(data: Mapping[SharedVariable, np.ndarray]) -> bool:
    """Whether data containers hold something else since a snapshot."""
    return any(not np.array_equal(v.get_value(), x) for v, x in data.items())


def interpreted(
    inputs: Sequence[Variable],
    outputs: Variable | Sequence[Variable],
    mode: Mode | str | None = "FAST_COMPILE",
) -> Callable[..., np.ndarray | list[np.ndarray]]:
    """A function that is called rarely: quick to compile rather than to run.

    In PyTensor's default mode (None) it is the other way round. Where a parameter of a
    distribution is invalid, its log density is ``-inf``, as PyMC has it.
    """
    with _without_compiler() if mode is not None else nullcontext():
        function = pymc_compile(inputs, outputs, mode=mode, on_unused_input="ignore")
    elementwise = (n for n in function.maker.fgraph.apply_nodes if isinstance(n.op, Elemwise))
    too_wide = any(len(node.inputs) > MOST_OPERANDS for node in elementwise)
    return interpreted(inputs, outputs, mode=None) if too_wide and mode is not None else function


def _without_compiler() -> AbstractContextManager:
    """Leave the graphs inside of a graph, as of a scan or a softmax, to Python, too.

    Whatever the mode, PyTensor 3 compiles them to C, node by node, where there is a compiler.
    PyTensor 2 rewrites them as well, and so looks for libraries, which takes the compiler.
    """
    if find_spec("pytensor.compile.inner_function") is None:
        return nullcontext()
    _load_c_code()
    return config.change_flags(cxx="")


@cache
def _load_c_code() -> None:
    """Have PyTensor load its own C code: it tries only once, and not without a compiler."""
    pytensor.function([], [], mode=UNTOUCHED)


def joined(node: Apply) -> list[Variable]:
    """Parts of a Join, whose axis is an input in some versions of PyTensor."""
    return node.inputs if hasattr(node.op, "axis") else node.inputs[1:]


def is_data(expression: Variable) -> bool:
    """Whether an expression is made of constants and data containers only."""
    return all(
        isinstance(v, Constant)
        or (isinstance(v, SharedVariable) and isinstance(v.type, TensorType))
        for v in graph_inputs([expression])
    )


def is_scalar_op(expression: Variable, *kinds: type) -> bool:
    """Whether an expression is the result of an elementwise Op of these kinds."""
    node = expression.owner
    return (
        node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, kinds)
    )


def is_op(expression: Variable, *kinds: type) -> bool:
    """Whether an expression is the result of an Op of these kinds."""
    return expression.owner is not None and isinstance(expression.owner.op, kinds)


def _op_name(expression: Variable) -> str:
    """Name of the Op's class, for Ops whose module differs between PyTensor versions."""
    return "" if expression.owner is None else type(expression.owner.op).__name__


def is_switch(term: Variable) -> bool:
    """Whether an expression chooses between two others."""
    return is_scalar_op(term, scalar.Switch) or (
        _op_name(term) == "IfElse" and len(term.owner.outputs) == 1
    )


def is_identity(expression: Variable) -> bool:
    """Whether an expression has the elements of its first input, moved or repeated at most."""
    node = expression.owner
    return node is not None and (
        isinstance(node.op, SHAPE_OPS)
        or _op_name(expression) == "ViewOp"
        or is_scalar_op(expression, scalar.Cast, scalar.Identity)
    )


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
    parts = _conjuncts(condition, holds)
    if parts is not None:
        return [row for part, sign in parts for row in inequalities(part, sign)]
    true = condition if holds else pt.invert(pt.cast(condition, "bool"))
    return [Inequality(_slack(condition, holds), _text(condition, holds), true)]


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
        left, right = (pt.cast(side, "float64") for side in node.inputs)
        greater = (_COMPARISONS[type(node.op.scalar_op)] > 0) == holds
        return left - right if greater else right - left
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
