"""Products with a vector, in a form that takes Numba a second to compile instead of half a minute.

PyTensor has all products of matrices as one Op, and compiles code for every shape and order in
memory of both factors. A product with a vector needs none of it: Numba hands it to BLAS as it is.
"""

import numpy as np
from numba import njit
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import in2out, node_rewriter
from pytensor.link.numba.dispatch.basic import register_funcify_default_op_cache_key
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.math import Dot
from pytensor.tensor.subtensor import Subtensor
from pytensor.tensor.type import tensor
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.forms import is_op

AFTER_ALGEBRA = 1.8
"""Position among PyTensor's rewrites: after those that know rules of ``Dot``."""


class VectorProduct(Op):
    """Product of a matrix, or a vector, and a vector of doubles."""

    __props__ = ()

    def make_node(self, left: TensorVariable, vector: TensorVariable) -> Apply:
        """Make a node, of the shape of the left factor without its last axis."""
        return Apply(self, [left, vector], [tensor(dtype="float64", shape=left.type.shape[:-1])])

    def perform(self, node: Apply, inputs: list[np.ndarray], outputs: list[list]) -> None:
        """Compute the product in Python."""
        outputs[0][0] = np.asarray(np.dot(*inputs))


@register_funcify_default_op_cache_key(VectorProduct)
def _with_numba(op: VectorProduct, node: Apply, **kwargs: object):  # noqa: ANN202
    @njit
    def product(left, vector):  # noqa: ANN001, ANN202
        return np.asarray(np.dot(left, vector))

    return product, 1


@node_rewriter([Dot])
def _multiply_by_vector(fgraph: FunctionGraph, node: Apply) -> list[Variable] | None:
    left, right = node.inputs
    if {left.dtype, right.dtype} != {"float64"} or not right.type.broadcastable[1]:
        return None
    vector = right.dimshuffle(0)
    if left.type.broadcastable[0]:
        return [VectorProduct()(left.dimshuffle(1), vector).dimshuffle("x", "x")]
    if _is_slice(left):
        return None
    return [VectorProduct()(left, vector).dimshuffle(0, "x")]


def _is_slice(matrix: Variable) -> bool:
    """Whether a matrix is a slice of another, which Numba would copy before each product."""
    if is_op(matrix, DimShuffle):
        return _is_slice(matrix.owner.inputs[0])
    return is_op(matrix, Subtensor)


multiply_by_vectors = in2out(_multiply_by_vector)
"""A rewrite of products of a matrix, or a row, and a column."""
