import ast
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_rollback
from pymc_rollback.graph.compat import (
    IfElse,
    datasets,
    default_transform,
    from_datasets,
    jitted,
    joined,
)

PACKAGE = Path(pymc_rollback.__file__).parent


def private_imports(source):
    """Private names and modules of PyMC and PyTensor that a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for package, *parts in (name.split(".") for name in names):
            if package in ("pymc", "pytensor") and any(part.startswith("_") for part in parts):
                yield ".".join((package, *parts))


def test_private_imports_are_seen():
    source = "def f():\n    from pymc.x import y, _z\nimport pytensor._a\nfrom numba import _b"
    assert set(private_imports(source)) == {"pymc.x._z", "pytensor._a"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.stem)
def test_what_is_private_is_in_one_module(path):
    found = set(private_imports(path.read_text()))
    own = {"pymc.distributions.transforms._default_transform"}
    assert found == (own if path.stem == "compat" else set())


def test_parts_of_a_join():
    parts = [pt.dvector(), pt.dvector(), pt.dvector()]
    node = pt.concatenate(parts).owner
    assert joined(node) == parts


def test_if_else():
    from pytensor.ifelse import ifelse

    assert isinstance(ifelse(pt.bscalar(), pt.dscalar(), pt.dscalar()).owner.op, IfElse)


def test_default_transform_of_a_variable_without_one():
    with pm.Model() as model:
        x = pm.HalfNormal("x", default_transform=None)
    assert model.rvs_to_transforms[x] is None
    assert default_transform(x.owner.op, x).name == "log"


def test_jitted_function_can_be_called_from_numba():
    x = pt.dvector()
    function = jitted(pytensor.function([x], [2 * x], mode="NUMBA"))
    [doubled] = function(np.array([1.0, 2.0]))
    assert np.array_equal(doubled, [2.0, 4.0])


def test_datasets_of_draws():
    with pm.Model():
        pm.Normal("x")
        draws = pm.sample_prior_predictive(3, random_seed=1)
    renamed = {f"{name}_again": group for name, group in datasets(draws).items()}
    again = from_datasets(renamed, like=draws)
    assert type(again) is type(draws)
    assert set(datasets(again)) == set(renamed) >= {"prior_again"}
    assert np.array_equal(again["prior_again"]["x"], draws["prior"]["x"])
