"""PyTensor graphs: what an expression is made of, and what it is worth now."""

from collections.abc import Sequence

import numpy as np
from pytensor.compile.ops import ViewOp
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs, toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.type import TensorType

from pymc_rollback.graph.compat import IfElse

SHAPE_OPS = (DimShuffle, Reshape, SpecifyShape, Alloc, CheckAndRaise, ViewOp)
"""Ops that rearrange or repeat the elements of their first input and do not change them."""


def constant_value(expression: Variable) -> np.ndarray | None:
    """Value of an expression of constants; None where anything else enters."""
    if isinstance(expression, Constant):
        return np.asarray(expression.data)
    if not all(isinstance(v, Constant) for v in graph_inputs([expression])):
        return None
    return present_value(expression)


def is_true(condition: Variable) -> bool:
    """Whether a condition is made of constants, and holds."""
    value = constant_value(condition)
    return value is not None and bool(np.all(value))


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


def is_data(expression: Variable) -> bool:
    """Whether an expression is made of constants and data containers only."""
    return all(
        isinstance(v, Constant)
        or (isinstance(v, SharedVariable) and isinstance(v.type, TensorType))
        for v in graph_inputs([expression])
    )


def is_scalar_op(expression: Variable, *kinds: type) -> bool:
    """Whether an expression is the result of an elementwise Op of one of some kinds."""
    node = expression.owner
    return (
        node is not None and isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, kinds)
    )


def is_op(expression: Variable, *kinds: type) -> bool:
    """Whether an expression is the result of an Op of one of some kinds."""
    return expression.owner is not None and isinstance(expression.owner.op, kinds)


def is_switch(term: Variable) -> bool:
    """Whether an expression chooses between two others."""
    return is_scalar_op(term, scalar.Switch) or (
        is_op(term, IfElse) and len(term.owner.outputs) == 1
    )


def is_identity(expression: Variable) -> bool:
    """Whether an expression has the elements of its first input, rearranged or repeated at most."""
    node = expression.owner
    return node is not None and (
        isinstance(node.op, SHAPE_OPS) or is_scalar_op(expression, scalar.Cast, scalar.Identity)
    )


def value_ancestors(expression: Variable, blockers: Sequence[Variable] = ()) -> set[Variable]:
    """Ancestors that an expression depends on by their values, not by their shapes alone."""
    pending, seen = [expression], set()
    while pending:
        v = pending.pop()
        if v in seen:
            continue
        seen.add(v)
        if v.owner is None or v in blockers or isinstance(v.owner.op, Shape | Shape_i):
            continue
        fills = isinstance(v.owner.op, Elemwise) and isinstance(v.owner.op.scalar_op, scalar.Second)
        pending += v.owner.inputs[1:] if fills else v.owner.inputs
    return seen
