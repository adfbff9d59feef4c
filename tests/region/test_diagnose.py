"""A start that is not finite: which variable or term, at which values, and the remedy."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

import pymc_rollback as rb
from pymc_rollback.region.diagnose import unfinished_terms


def whole_uniform():
    return pm.Uniform("x", 32, 100)


def whole_uniforms():
    return pm.Uniform("x", 32, 100, shape=7)


def whole_wide():
    return pm.Uniform("x", -100, 100)


def whole_beta():
    return pm.Beta("x", 100, 100)


def whole_truncated():
    return pm.Truncated("x", pm.Normal.dist(50.0, 10.0), lower=32, upper=100)


def infinite_bound():
    return pm.Truncated("x", pm.Normal.dist(0, 1, shape=3), lower=[-1, -np.inf, 0])


def infinite_bound_of_a_bounded_variable():
    return pm.Truncated("x", pm.Gamma.dist(2, 1, shape=2), lower=[-np.inf, 0.5])


def missing_parameter():
    return pm.Normal("x", np.nan, 1.0)


def exchanged_bounds():
    return pm.Uniform("x", 5.0, 2.0)


def whole_exchanged_bounds():
    return pm.Uniform("x", 50, 20)


def whole_truncated_lognormal():
    return pm.Truncated("x", pm.LogNormal.dist(-9, 1), lower=64, upper=100)


def bad_initval():
    return pm.HalfNormal("x", initval=-1.0)


def infinite_initval():
    return pm.Normal("x", initval=np.inf)


def no_bounds():
    return pm.Uniform("x", -np.inf, np.inf)


def dependent():
    scale = pm.HalfNormal("scale", initval=0.5)
    return pm.Uniform("x", 0, scale - 5)


STARTS = {
    whole_uniform: ("32, 100", "int8", "overflows", "32.0, 100.0"),
    whole_uniforms: ("32, 100", "int8", "overflows", "32.0, 100.0"),
    whole_wide: ("-100, 100", "int8", "overflows", "-100.0, 100.0"),
    whole_beta: ("100, 100", "int8", "overflows", "100.0, 100.0"),
    whole_truncated: ("32, 100", "int8", "overflows", "32.0, 100.0"),
    infinite_bound: ("[0, nan, 1]", "interval", "[-1, -inf, 0]", "default_transform=None"),
    infinite_bound_of_a_bounded_variable: ("[nan, ", "interval", "default_transform=None"),
    missing_parameter: ("nan", "parameters (nan, 1)", "initval"),
    exchanged_bounds: ("nan", "parameters (5, 2)", "initval"),
    whole_exchanged_bounds: ("nan", "parameters (50, 20), or", "initval"),
    whole_truncated_lognormal: ("nan", "parameters (-9, 1, 64, 100), as floats", "initval"),
    bad_initval: ("nan", "initval -1", "(0, inf)"),
    infinite_initval: ("inf", "initval inf", "real line"),
    no_bounds: ("(-inf, inf)", "pm.Flat"),
    dependent: ("nan", "parameters (0, scale - 5)", "initval"),
}


@pytest.mark.parametrize(("build", "parts"), STARTS.items())
@pytest.mark.parametrize("declare", ["constrain", "read_region"])
def test_no_start(build, parts, declare):
    with pm.Model() as model:
        x = build()
        with pytest.raises(rb.RegionError) as error:
            if declare == "constrain":
                rb.constrain("c", x < 1000.0)
            rb.read_region(model)
    for part in ("Variable 'x'", *parts):
        assert part in str(error.value)
    assert "missing values" not in str(error.value)


def test_the_remedies_work():
    with pm.Model() as model:
        pm.Uniform("x", 32.0, 100.0)
        normal = pm.Normal.dist(0, 1, shape=3)
        pm.Truncated("y", normal, lower=[-1, -np.inf, 0], default_transform=None)
    actions = {row.name: row.action for row in rb.describe(model).variables}
    assert actions == {"x": "reflect", "y": "reflect"}


def test_whole_numbers_that_do_no_harm():
    with pm.Model() as model:
        pm.Uniform("x", 0, 100)
        pm.Beta("p", 2, 3)
        pm.Normal("y", 100, 100)
        pm.HalfNormal("z", 100)
        pm.Uniform("wide", 0, 1000)
        pm.Gamma("rate", 100, 100)
        pm.SkewNormal("skewed", 100, 100, 100)
        pm.VonMises("angle", 0, 100)
        pm.Normal("child", 100, model["z"])
    assert len(rb.read_region(model)) == 8


def test_terms():
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        scale = pm.HalfNormal("scale")
        pm.Potential("root", pt.sqrt(x[0]))
        pm.Potential("fine", x.sum())
        pm.Normal("y", pt.log(x), scale, observed=[1.0, 2.0, 3.0])
        pm.Normal("z", pt.log(scale - 1), 1.0)
    point = model.initial_point() | {"x": np.array([-0.5, 1.0, 2.0])}
    point |= {"scale_log__": np.array(np.log(0.5)), "z": np.array(0.0)}
    assert unfinished_terms(model, point) == [
        "the log density of the variable 'z' is nan, where z = 0 and scale = 0.5",
        "the log density of the observed variable 'y' is nan, where y[0] = 1 and x[0] = -0.5 and "
        "scale = 0.5",
        "Potential 'root' is nan, where x = [-0.5, 1, 2]",
    ]


def test_many_values_are_a_range():
    with pm.Model() as model:
        x = pm.Normal("x", shape=9)
        pm.Potential("log", pt.log(x.sum()))
    [text] = unfinished_terms(model, {"x": np.linspace(-5.0, 3.0, 9)})
    assert text == "Potential 'log' is nan, where x = 9 values from -5 to 3"


@pytest.mark.parametrize("options", [{}, {"step_size": 0.1, "n_steps": 5}])
def test_a_chain_says_which_term(options):
    with pm.Model() as model:
        x = pm.Normal("x", -1e9, 1.0)  # farther from zero than a start is looked for
        pm.Normal("y", pm.math.sqrt(x), 1.0, observed=[1.0, 2.0])
        step = rb.RollbackHMC(rng=1, **options)
    with pytest.raises(SamplingError) as error:
        step.step(model.initial_point())
    parts = ("observed variable 'y' is nan", "y[0] = 1 and x = -", "initvals", "rb.constrain")
    for part in parts:
        assert part in str(error.value)
    assert "debug" not in str(error.value)
