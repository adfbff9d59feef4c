"""Domains: where the functions in a comparison have a value.

``log(x) < 0`` holds for ``0 < x < 1``. Its slack ``-log(x)`` alone does not tell: it is infinite at
one end, and not a number beyond. So the argument of each logarithm, root and the like is a slack,
too, and a comparison of a logarithm or root with data is one of its argument.
"""

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.transforms import (
    Interval,
    Ordered,
    SimplexTransform,
)
from pymc.logprob.transforms import LogOddsTransform, LogTransform
from pytensor.graph.basic import Variable
from pytensor.scalar import basic as scalar
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import default_transform
from pymc_rollback.graph.forms import constant_value, is_data, is_identity, is_scalar_op

_ARGUMENTS = {
    scalar.Log: lambda x: [x],
    scalar.Log2: lambda x: [x],
    scalar.Log10: lambda x: [x],
    scalar.Log1p: lambda x: [1.0 + x],
    scalar.Sqrt: lambda x: [x],
    scalar.ArcSin: lambda x: [1.0 + x, 1.0 - x],
    scalar.ArcCos: lambda x: [1.0 + x, 1.0 - x],
    scalar.ArcTanh: lambda x: [1.0 + x, 1.0 - x],
    scalar.ArcCosh: lambda x: [x - 1.0],
}
"""What must be positive for a function to have a finite value."""

_INVERSES = {scalar.Log: pt.exp, scalar.Log1p: pt.expm1, scalar.Sqrt: pt.sqr}
"""Inverses of increasing functions."""


def natural_domain(expression: Variable) -> list[TensorVariable]:
    """Arguments that must be positive for an expression to have a finite value.

    They broadcast to the shape of the expression. Arguments that are positive by their form are
    left out, and so are arguments within another one.
    """
    node = expression.owner
    if node is None or is_data(expression) or isinstance(node.op, RandomVariable):
        return []
    if isinstance(node.op, DimShuffle):
        [whole] = node.inputs
        return [node.op(pt.second(whole, x)) for x in natural_domain(whole)]
    if isinstance(node.op, CAReduce):
        [whole] = node.inputs
        return [
            pt.min(pt.second(whole, x), axis=node.op.axis) if whole.ndim else x
            for x in natural_domain(whole)
        ]
    # of a switch, the branch that is not taken may be anything
    if not isinstance(node.op, Elemwise) or is_scalar_op(expression, scalar.Switch):
        return []
    arguments = _own_arguments(expression)
    if arguments:
        return [x for x in arguments if not is_positive(x)]
    parts = node.inputs[1:] if is_scalar_op(expression, scalar.Second) else node.inputs
    return [x for part in parts for x in natural_domain(part)]


def _own_arguments(expression: Variable) -> list[TensorVariable]:
    node = expression.owner
    for kind, arguments in _ARGUMENTS.items():
        if is_scalar_op(expression, kind):
            return arguments(node.inputs[0])
    if is_scalar_op(expression, scalar.Pow):
        exponent = constant_value(node.inputs[1])
        if exponent is not None and np.any(exponent != np.round(exponent)):
            return [node.inputs[0]]
    return []


def is_positive(expression: Variable) -> bool:
    """Whether an expression is positive (but for points) wherever it has a value, by its form."""
    node = expression.owner
    value = constant_value(expression)
    if value is not None:
        return bool(np.all(value > 0))
    if node is None:
        return False
    if _is_square(expression):
        return True
    if isinstance(node.op, RandomVariable) or not isinstance(node.op, Elemwise | DimShuffle):
        return _is_positive_variable(expression)
    if is_scalar_op(expression, scalar.Exp, scalar.Abs):
        return True
    if is_scalar_op(expression, scalar.Add, scalar.Mul, scalar.TrueDiv, scalar.Sqrt):
        return all(map(is_positive, node.inputs))
    if is_scalar_op(expression, scalar.Pow) or is_identity(expression):
        return is_positive(node.inputs[0])
    return False


def _is_square(expression: Variable) -> bool:
    """Whether an expression is a square, an even power, or a product of something with itself."""
    inputs = expression.owner.inputs
    if is_scalar_op(expression, scalar.Pow):
        exponent = constant_value(inputs[1])
        return exponent is not None and bool(np.all(exponent % 2 == 0))
    if is_scalar_op(expression, scalar.Mul) or isinstance(expression.owner.op, Dot):
        return len(inputs) == 2 and inputs[0] is inputs[1]
    return is_scalar_op(expression, scalar.Sqr)


def _is_positive_variable(variable: Variable) -> bool:
    """Whether a random variable, or elements or sums of one, is positive by its distribution."""
    op, inputs = variable.owner.op, variable.owner.inputs
    if isinstance(op, CAReduce | Subtensor):
        return is_positive(inputs[0])
    transform = default_transform(op, variable)
    if isinstance(transform, LogTransform | LogOddsTransform | SimplexTransform):
        return True
    if type(transform) is Ordered:
        return bool(transform.positive)
    if type(transform) is Interval:
        lower, _ = transform.args_fn(*inputs)
        value = None if lower is None else constant_value(pt.as_tensor_variable(lower))
        return value is not None and bool(np.all(value >= 0))
    return False


def without_functions(left: Variable, right: Variable) -> tuple[Variable, Variable]:
    """Sides of an equivalent comparison, with a function of one side undone on data at the other.

    Where the arguments are in the natural domain: ``log(x) < 2`` is ``x < exp(2)``.
    """
    for kind, inverse in _INVERSES.items():
        if is_scalar_op(left, kind) and is_scalar_op(right, kind):
            return left.owner.inputs[0], right.owner.inputs[0]
        if is_scalar_op(left, kind) and _can_be_undone(kind, right):
            return left.owner.inputs[0], inverse(right)
        if is_scalar_op(right, kind) and _can_be_undone(kind, left):
            return inverse(left), right.owner.inputs[0]
    return left, right


def _can_be_undone(kind: type, other: Variable) -> bool:
    value = constant_value(other)
    return value is not None and (kind is not scalar.Sqrt or bool(np.all(value >= 0)))
