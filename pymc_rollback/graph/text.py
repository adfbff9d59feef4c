"""Expressions of a model, and values that a user gave, as a person would write them."""

import inspect

import numpy as np
from pytensor.compile.ops import ViewOp
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar import basic as scalar
from pytensor.tensor.basic import ScalarFromTensor
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Max
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor

_INFIX = {
    scalar.Add: (" + ", 1),
    scalar.Sub: (" - ", 1),
    scalar.Mul: (" * ", 2),
    scalar.TrueDiv: (" / ", 2),
    scalar.Pow: ("**", 4),
    scalar.LT: (" < ", 0),
    scalar.LE: (" <= ", 0),
    scalar.GT: (" > ", 0),
    scalar.GE: (" >= ", 0),
    scalar.AND: (" & ", 0),
    scalar.OR: (" | ", 0),
}
_ATOM = 9

LONGEST = 60
"""Characters of a value in a message."""


def readable(expression: Variable) -> str:
    """Write an expression with the names of the model's variables, without its plumbing."""
    return _write(expression)[0]


def shown(value: object) -> str:
    """Write a value in a message: short, and without an address in memory."""
    if isinstance(value, Variable):
        return readable(value)
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    if isinstance(value, list | tuple) and any(isinstance(x, Variable) for x in value):
        return f"[{', '.join(map(shown, value))}]"
    text = repr(value)
    if " at 0x" in text:
        return f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _write(expression: Variable) -> tuple[str, int]:
    """Text of an expression and how tightly it binds."""
    if expression.name is not None and not isinstance(expression, Constant):
        return expression.name, _ATOM
    if isinstance(expression, Constant):
        return _number(expression.data), _ATOM
    if expression.owner is None:
        return str(expression), _ATOM
    return _write_node(expression)


def _write_node(expression: Variable) -> tuple[str, int]:
    node = expression.owner
    op = node.op
    if isinstance(op, ScalarFromTensor | DimShuffle | Reshape | SpecifyShape | ViewOp):
        return _write(node.inputs[0])
    if isinstance(op, Elemwise):
        return _write_elementwise(op.scalar_op, node.inputs)
    if isinstance(op, Subtensor):
        return _write_index(node), _ATOM
    core = getattr(op, "core_op", op)  # of a function that runs over a batch
    if type(core).__name__ == "Dot":
        return _infix(node.inputs, " @ ", 2), 2
    named_by_class = core is not op or isinstance(op, CAReduce)
    name = type(core).__name__.lower() if named_by_class else str(op).split("{")[0]
    return _call(name, node.inputs), _ATOM


def _write_elementwise(op: scalar.ScalarOp, inputs: list[Variable]) -> tuple[str, int]:
    if isinstance(op, scalar.Cast | scalar.Identity):
        return _write(inputs[0])
    if isinstance(op, scalar.Neg):
        if (least := _least_of(inputs[0])) is not None:
            return _call("min", [least]), _ATOM
        return f"-{_bracketed(inputs[0], 2)}", 2
    if isinstance(op, scalar.Sqr):
        return f"{_bracketed(inputs[0], 5)}**2", 4
    if isinstance(op, scalar.Invert):
        return f"not {_bracketed(inputs[0], 1)}", 0
    for kind, (symbol, strength) in _INFIX.items():
        if isinstance(op, kind):
            return _infix(inputs, symbol, strength), strength
    return _call(type(op).__name__.lower(), inputs), _ATOM


def _least_of(expression: Variable) -> Variable | None:
    """``x`` in ``max(-x)``, as PyTensor writes ``-min(x)``."""
    node = expression.owner
    if node is None or not isinstance(node.op, Max):
        return None
    inner = node.inputs[0].owner
    negative = inner is not None and isinstance(getattr(inner.op, "scalar_op", None), scalar.Neg)
    return inner.inputs[0] if negative else None


def _infix(inputs: list[Variable], symbol: str, strength: int) -> str:
    first, *rest = inputs
    # an operand needs brackets at equal strength where the symbol does not associate to its side
    right = strength + (symbol not in (" + ", " * "))
    left = strength + (symbol in ("**", " & ", " | "))
    return symbol.join([_bracketed(first, left), *(_bracketed(x, right) for x in rest)])


def _bracketed(expression: Variable, strength: int) -> str:
    text, own = _write(expression)
    return text if own >= strength else f"({text})"


def _call(name: str, inputs: list[Variable]) -> str:
    return f"{name}({', '.join(map(readable, inputs))})"


def _number(value: object) -> str:
    array = np.asarray(value)
    if array.dtype == object:
        return str(value)
    if array.size == 1:
        # a zero without its sign
        return f"{array.item() + 0:g}" if array.dtype.kind in "fiu" else str(array.item())
    if array.ndim == 1 and array.size <= 4:
        return "[" + ", ".join(_number(x) for x in array) + "]"
    return f"array{array.shape}".replace(",)", ")")


def _write_index(node: Apply) -> str:
    indices = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
    return f"{_bracketed(node.inputs[0], _ATOM)}[{', '.join(_write_slice(i) for i in indices)}]"


def _write_slice(index: object) -> str:
    if not isinstance(index, slice):
        return _index_text(index)
    parts = [index.start, index.stop] + ([index.step] if index.step is not None else [])
    return ":".join("" if part is None else _index_text(part) for part in parts)


def _index_text(index: object) -> str:
    return readable(index) if isinstance(index, Variable) else str(index)
