"""Products with a vector: PyTensor's values, in a form that is quick to compile."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from pytensor.graph.rewriting.utils import rewrite_graph
from pytensor.graph.traversal import ancestors
from pytensor.tensor.math import Dot

import pymc_rollback as rb
from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.graph.products import AFTER_ALGEBRA, VectorProduct, multiply_by_vectors
from pymc_rollback.target import compile as compiling

MODE = get_mode("NUMBA").register((multiply_by_vectors, AFTER_ALGEBRA))

RNG = np.random.default_rng(3)
X = RNG.normal(size=(7, 3))
STRIDED = np.arange(24.0).reshape(4, 6)[:, ::2]

b = pt.tensor("b", dtype="float64", shape=(3,))
M = pt.dmatrix("M")


def count(function, kind):
    """How many nodes of a compiled graph have an Op of a kind."""
    return sum(isinstance(node.op, kind) for node in function.maker.fgraph.apply_nodes)


PRODUCTS = {
    "matrix": (X @ b, lambda b, M: X @ b),
    "transposed": (b @ X.T, lambda b, M: b @ X.T),
    "strided": (STRIDED @ b, lambda b, M: STRIDED @ b),
    "empty": (np.empty((0, 3)) @ b, lambda b, M: np.empty(0)),
    "of an input": (M @ b, lambda b, M: M @ b),
    "quadratic": (b @ (X.T @ X) @ b, lambda b, M: np.sum((X @ b) ** 2)),
    "vectors": (pt.exp(b) @ b, lambda b, M: np.exp(b) @ b),
    "unknown": (pt.sum((X @ (M @ b)[:3]) ** 2), lambda b, M: np.sum((X @ (M @ b)[:3]) ** 2)),
    "gradient": (pt.grad(pt.sum(pt.tanh(X @ b)), b), lambda b, M: X.T @ np.cosh(X @ b) ** -2.0),
}
"""Products as graphs, and in NumPy."""


@pytest.fixture(scope="module")
def products():
    return pytensor.function([b, M], [graph for graph, _ in PRODUCTS.values()], mode=MODE)


# PyTensor 2 does not cache what has an array that is not contiguous in it, and says so; so does
# Numba, which has to copy it: our own compilation leaves that out
@pytest.mark.filterwarnings("ignore:Cannot cache compiled function")
@pytest.mark.filterwarnings("ignore::numba.NumbaPerformanceWarning")
def test_products_have_their_values(products):
    values = RNG.normal(size=3), RNG.normal(size=(5, 3))
    found = zip(PRODUCTS.items(), products(*values), strict=True)
    for (name, (_, in_numpy)), product in found:
        np.testing.assert_allclose(product, in_numpy(*values), rtol=1e-12, err_msg=name)


def test_no_product_of_matrices_is_left(products):
    assert count(products, Dot) == 0
    assert count(products, VectorProduct) >= len(PRODUCTS)


@pytest.mark.parametrize("product", [M[:, :3] @ b, M[:3].T @ b, M @ X, M.astype("float32") @ b])
def test_other_products_stay(product):
    rewritten = rewrite_graph(product, custom_rewrite=multiply_by_vectors)
    kinds = {type(v.owner.op) for v in ancestors([rewritten]) if v.owner}
    assert Dot in kinds and VectorProduct not in kinds


def test_python_computes_them_too():
    product = rewrite_graph(M @ b, custom_rewrite=multiply_by_vectors)
    assert any(isinstance(v.owner.op, VectorProduct) for v in ancestors([product]) if v.owner)
    values = RNG.normal(size=(4, 3)), RNG.normal(size=3)
    found, shape = interpreted([M, b], [product, product.shape])(*values)
    np.testing.assert_allclose(found, values[0] @ values[1])
    assert shape.tolist() == [4]


@pytest.mark.compiled
def test_a_regression_is_compiled_without_products_of_matrices(monkeypatch):
    compiled = []
    jitted = compiling.jitted
    monkeypatch.setattr(compiling, "jitted", lambda f: compiled.append(f) or jitted(f))
    with pm.Model() as model:
        slopes = pm.Normal("slopes", shape=3)
        pm.Normal("y", pm.Data("X", X) @ slopes, 1.0, observed=np.zeros(7))
        step = rb.RollbackHMC(rng=1, step_size=0.1, n_steps=4)
    [function] = compiled
    assert count(function, Dot) == 0 < count(function, VectorProduct)
    step.step(model.initial_point())  # whose log density the guard compares with the model's own
