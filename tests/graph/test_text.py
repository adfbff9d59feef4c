import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_rollback.graph.text import readable

EXPRESSIONS = [
    (lambda x, y, z: x + y, "x + y"),
    (lambda x, y, z: x + y + 1, "x + y + 1"),
    (lambda x, y, z: x - (y - 1), "x - (y - 1)"),
    (lambda x, y, z: x - y - 1, "x - y - 1"),
    (lambda x, y, z: (x + y) * 2, "(x + y) * 2"),
    (lambda x, y, z: x + y * 2, "x + y * 2"),
    (lambda x, y, z: x / (y * 2), "x / (y * 2)"),
    (lambda x, y, z: x / y / 2, "x / y / 2"),
    (lambda x, y, z: -x, "-x"),
    (lambda x, y, z: -(x + y), "-(x + y)"),
    (lambda x, y, z: (-x) ** 2, "(-x)**2"),
    (lambda x, y, z: -(x**2), "-x**2"),
    (lambda x, y, z: x**2 + y**2, "x**2 + y**2"),
    (lambda x, y, z: (x + y) ** 2, "(x + y)**2"),
    (lambda x, y, z: x**3, "x**3"),
    (lambda x, y, z: (x**3) ** y, "(x**3)**y"),
    (lambda x, y, z: pt.sqr(x), "x**2"),
    (lambda x, y, z: pt.exp(x), "exp(x)"),
    (lambda x, y, z: pt.log(x + y), "log(x + y)"),
    (lambda x, y, z: pt.maximum(x, y), "maximum(x, y)"),
    (lambda x, y, z: pt.abs(x), "abs(x)"),
    (lambda x, y, z: pt.sum(z), "sum(z)"),
    (lambda x, y, z: pt.sum(z**2), "sum(z**2)"),
    (lambda x, y, z: pt.max(z), "max(z)"),
    (lambda x, y, z: pt.min(z), "min(z)"),
    (lambda x, y, z: 1 - pt.min(z**2), "1 - min(z**2)"),
    (lambda x, y, z: -pt.max(z), "-max(z)"),
    (lambda x, y, z: x > -0.0, "x > 0"),
    (lambda x, y, z: pt.linalg.det(pt.outer(z, z)), "det(z @ z)"),
    (lambda x, y, z: pt.linalg.solve(pt.outer(z, z), z)[0], "solve(z @ z, z)[0]"),
    (lambda x, y, z: z[0], "z[0]"),
    (lambda x, y, z: z[-1], "z[-1]"),
    (lambda x, y, z: z[1:] - z[:-1], "z[1:] - z[:-1]"),
    (lambda x, y, z: z[::2], "z[::2]"),
    (lambda x, y, z: (z + x)[0], "(z + x)[0]"),
    (lambda x, y, z: z[:, None], "z"),
    (lambda x, y, z: z * x, "z * x"),
    (lambda x, y, z: pt.constant(np.eye(3)) @ z, "array(3, 3) @ z"),
    (lambda x, y, z: z + np.array([1.0, 2.5, 3.0]), "z + [1, 2.5, 3]"),
    (lambda x, y, z: z + np.zeros(7), "z + array(7)"),
    (lambda x, y, z: x < y, "x < y"),
    (lambda x, y, z: x >= 2, "x >= 2"),
    (lambda x, y, z: (x < y) & (y <= 1), "(x < y) & (y <= 1)"),
    (lambda x, y, z: (x > y) | (y <= 1), "(x > y) | (y <= 1)"),
    (lambda x, y, z: ~(x > y), "not (x > y)"),
    (lambda x, y, z: pt.all(z > 0), "all(z > 0)"),
    (lambda x, y, z: pt.cast(x, "float32"), "x"),
    (lambda x, y, z: x + 1e-8, "x + 1e-08"),
]


@pytest.mark.parametrize("build, text", EXPRESSIONS, ids=[text for _, text in EXPRESSIONS])
def test_expressions_are_written_as_a_person_would(build, text):
    x, y, z = pt.scalar("x"), pt.scalar("y"), pt.vector("z", shape=(None,))
    assert readable(build(x, y, z)) == text


def test_names_of_deterministics_and_data_stand_for_their_expressions():
    with pm.Model():
        x = pm.Normal("x")
        data = pm.Data("data", [1.0, 2.0])
        total = pm.Deterministic("total", x * 2)
        assert readable(total + data < 3) == "total + data < 3"


def test_an_index_that_is_a_variable():
    z, i = pt.vector("z"), pt.lscalar("i")
    assert readable(z[i]) == "z[i]"
