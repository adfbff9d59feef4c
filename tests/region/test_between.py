"""constrain(..., between=(lower, upper)): the same region as two comparisons."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_rollback as rb


@pytest.fixture
def model():
    with pm.Model() as model:
        pm.Normal("x", shape=2)
        pm.Normal("y")
        pm.HalfNormal("z")
    return model


def texts(model):
    return [c.text for c in rb.read_region(model).joint]


ENDS = {
    "both": ((6, 7), ["x[0] + y > 6", "x[0] + y < 7"]),
    "a list": ([6, 7], ["x[0] + y > 6", "x[0] + y < 7"]),
    "lower": ((6, None), ["x[0] + y > 6"]),
    "upper": ((None, 7.5), ["x[0] + y < 7.5"]),
    "infinite above": ((6, np.inf), ["x[0] + y > 6"]),
    "infinite below": ((-np.inf, 7), ["x[0] + y < 7"]),
}


@pytest.mark.parametrize(("ends", "expected"), ENDS.values(), ids=ENDS)
def test_ends(model, ends, expected):
    rb.constrain("slab", model["x"][0] + model["y"], model, between=ends)
    assert texts(model) == expected


def test_the_density_is_that_of_two_comparisons(model):
    with model:
        s = model["x"].sum() + model["y"]
        slab = rb.constrain("slab", s, between=(-0.5, model["z"]))
        same = rb.constrain("same", (-0.5 < s) & (s < model["z"]))
    function = model.compile_fn(model.replace_rvs_by_values([slab, same]), inputs=model.value_vars)
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(50):
        point = {v.name: rng.normal(size=v.type.shape) for v in model.value_vars}
        one, other = function(point)
        assert one == other
        seen.add(float(one))
    assert seen == {0.0, -np.inf}


def test_expressions_as_ends(model):
    rb.constrain("slab", model["y"], model, between=(-model["z"], model["z"]))
    assert texts(model) == ["y > -z", "y < z"]


def test_arrays_as_ends(model):
    rb.constrain("box", model["x"], model, between=([-1, -np.inf], [1, 2]))
    region = rb.read_region(model)
    inside = region.evaluate([c.slack for c in region.joint], model.initial_point())
    np.testing.assert_array_equal(np.concatenate(inside), [1, 1, 2])
    assert rb.describe(model).variables[0].support == "([-1, -inf], [1, 2])"


def test_a_plane_with_an_infinite_end_is_sampled(model):
    """Affine rows of which one has no end."""
    with model:
        rb.constrain("rows", model["x"] + model["y"], between=([-0.1, -np.inf], [0.1, 0.2]))
        step = rb.RollbackHMC(rng=1)
    point, rows = model.initial_point(), []
    for _ in range(200):
        point, _ = step.step(point)
        rows.append(point["x"] + point["y"])
    rows = np.array(rows)
    assert np.all(np.abs(rows[:, 0]) < 0.1) and np.all(rows[:, 1] < 0.2)
    assert rows[:, 1].min() < -1


BAD = {
    "a number": (3, "between=3"),
    "a string": ("ab", "between='ab'"),
    "three": ((1, 2, 3), "between=(1, 2, 3)"),
    "one": ((1,), "between=(1,)"),
    "none": ((), "between=()"),
    "a dict": ({"lower": 1, "upper": 2}, "between={'lower': 1, 'upper': 2}"),
    "an array": (np.array([1.0, 2.0]), "between=array([1., 2.])"),
    "no end": ((None, None), "between=(None, None)"),
    "no finite end": ((-np.inf, np.inf), "has neither a lower nor an upper end"),
    "crossed": ((7, 6), "7 is not below the upper end 6"),
    "equal": ((6, 6), "6 is not below the upper end 6"),
    "one crossed": (([1, 7], [2, 6]), "7 is not below the upper end 6"),
    "NaN": ((np.nan, 1), "nan"),
    "lower at infinity": ((np.inf, None), "inf"),
    "upper at minus infinity": ((None, -np.inf), "-inf"),
    "a string in it": (("6", 7), "'6'"),
    "a truth value in it": ((True, 7), "True"),
    "a function in it": ((6, abs), "the function abs"),
    "complex": ((1j, 2), "1j"),
    "shape": (([1, 2, 3], None), "(2,), (3,)"),
}


@pytest.mark.parametrize(("ends", "part"), BAD.values(), ids=BAD)
def test_bad_ends(model, ends, part):
    with pytest.raises(rb.RegionError) as error:
        rb.constrain("slab", model["x"], model, between=ends)
    assert "'slab'" in str(error.value) and part in str(error.value)


def test_a_condition_has_no_ends(model):
    with pytest.raises(rb.RegionError, match=r"'slab'.*`y < 7` is a condition.*between="):
        rb.constrain("slab", model["y"] < 7, model, between=(6, 7))
    with pytest.raises(rb.RegionError, match=r"'slab'.*end `y < 7` is a condition"):
        rb.constrain("slab", model["y"], model, between=(model["y"] < 7, 7))


@pytest.mark.parametrize("expression", ["y", None, abs, {"y": 1}, True])
def test_a_bad_expression(model, expression):
    with pytest.raises(rb.RegionError, match=r"'slab': the expression is .*between=\(lower, upper"):
        rb.constrain("slab", expression, model, between=(6, 7))


def test_nothing_is_left_behind(model):
    """A refused constraint is not in the model."""
    with pytest.raises(rb.RegionError):
        rb.constrain("slab", model["y"], model, between=(7, 6))
    assert model.potentials == []


def test_a_constant_expression(model):
    """One that lies between the ends is accepted, as every condition that always holds."""
    with pytest.raises(rb.RegionError, match=r"'slab'.*fails"):
        rb.constrain("slab", pt.constant(7.5), model, between=(6, 7))
    rb.constrain("holds", pt.constant(6.5), model.copy(), between=(6, 7))
