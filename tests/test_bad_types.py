"""Input of the wrong kind: each refusal names the culprit, its value and the remedy."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import ordered

import pymc_rollback as rb


def squared(x):
    return x**2


class Thing:
    """Something that no function of ours knows."""


OTHER = pm.Model()
with OTHER:
    pm.Normal("stranger")

# what is given, and how a message shows it
VALUES = {
    "None": (None, "None"),
    "number": (3, "3"),
    "fraction": (2.5, "2.5"),
    "NaN": (np.nan, "nan"),
    "truth": (True, "True"),
    "string": ("scale", "'scale'"),
    "bytes": (b"scale", "b'scale'"),
    "dict": ({"scale": 1.0}, "{'scale': 1.0}"),
    "function": (squared, "the function squared"),
    "lambda": (lambda x: x, "the function <lambda>"),
    "array": (np.ones(3), "array([1., 1., 1.])"),
    "numbers": ([1, 2], "1"),
    "nothings": ([None], "None"),
    "set": ({7}, "7"),
    "complex": (1j, "1j"),
    "class": (Thing, "Thing"),
    "object": (Thing(), "<Thing>"),
    "model": (OTHER, "<Model>"),
    "generator": ((name for name in ["scale"]), "<generator>"),
}


def cases(option, names, *remedy):
    """The option with each of these values, and what the message must contain."""
    values = [(name, *VALUES[name]) for name in names]
    return [
        pytest.param(option, value, (option, shown, *remedy), id=f"{option}-{name}")
        for name, value, shown in values
    ]


def all_but(*names):
    return [name for name in VALUES if name not in names]


LISTS = ("numbers", "nothings", "set")


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Exponential("scale", 1.0)
        pm.Deterministic("total", x.sum())
        pm.Normal("seen", x.sum(), observed=1.0)
        pm.Potential("pull", -(x.sum() ** 2))
    return model


def refused(parts, call, *args, **options):
    """A call is refused with a message that has all these parts in it, and no address."""
    with pytest.raises((TypeError, ValueError)) as error:
        call(*args, **options)
    text = str(error.value)
    missing = [part for part in parts if part not in text]
    assert not missing, f"{missing} not in: {text}"
    assert " at 0x" not in text


# ------------------------------------------------------------------------------------- RollbackHMC

OPTIONS = [
    *cases("vars", all_but("None", *LISTS), "list of the model's", "x, scale"),
    *cases("vars", LISTS, "not a free variable", "x, scale"),
    *cases("reflect", all_but("string", "array", *LISTS), "list of names"),
    *cases("reflect", LISTS, "not a name", "strings"),
    *cases("transform", all_but("string", "array", *LISTS), "list of names"),
    *cases("transform", LISTS, "not a name", "strings"),
    *cases("constraints", all_but("None", "dict"), "dict of slacks by name", "{'c': g}"),
    *cases("compile_kwargs", all_but("None", "dict"), "must be a dict", "'mode'"),
    *cases("rng", all_but("None", "number", "numbers", "set"), "seed", "random_seed"),
    *cases("initial_point", all_but("None", "dict"), "dict of values", "model.initial_point()"),
    *cases("metric", all_but("array"), "'diag'", "array of 3 positive variances"),
    *cases("blocked", all_but("None", "truth"), "True", "False"),
    *cases("sharpness", all_but("None", "number", "fraction", "truth", "dict"), "positive"),
    *cases("step_size", all_but("None", "number", "fraction", "truth"), "positive"),
    *cases("n_steps", all_but("None", "number", "truth"), "whole number"),
    *cases("trajectory_time", all_but("None", "number", "fraction", "truth"), "positive"),
    *cases("target_accept", all_but("truth"), "positive", "below 1"),
    *cases("max_treedepth", all_but("number", "truth"), "whole number"),
    *cases("model", all_but("None", "model"), "not a pm.Model", "with model:"),
]


@pytest.mark.parametrize(("option", "value", "parts"), OPTIONS)
def test_an_option(model, option, value, parts):
    refused(parts, rb.RollbackHMC, **{"model": model, option: value})


POINT = {"x": np.zeros(2), "scale_log__": np.array(0.0)}


@pytest.mark.parametrize("name", ["total", "seen", "pull"])
def test_what_is_not_a_free_variable(model, name):
    kind = {"total": "a Deterministic", "seen": "observed", "pull": "a Potential"}[name]
    refused((name, kind, "x, scale"), rb.RollbackHMC, [model[name]], model=model)


def test_variables(model):
    x = model["x"]
    refused(("vars=x", "[x]"), rb.RollbackHMC, x, model=model)
    refused(("'x'", "model['x']"), rb.RollbackHMC, ["x"], model=model)
    refused(("stranger", "x, scale"), rb.RollbackHMC, [OTHER["stranger"]], model=model)
    refused(("vars=[]", "Leave it out"), rb.RollbackHMC, [], model=model)
    refused(("reflect=x", "['x']"), rb.RollbackHMC, model=model, reflect=x)
    refused(("reflect has x", "'x'"), rb.RollbackHMC, model=model, reflect=[x])
    refused(("metric=x", "'diag'"), rb.RollbackHMC, model=model, metric=x)
    refused(("step_size=x", "positive"), rb.RollbackHMC, model=model, step_size=x)


BAD_POINTS = {
    "empty": ({}, ("'x'", "nothing")),
    "own names": ({"x": np.zeros(2), "scale": 1.0}, ("'scale_log__'", "'scale'")),
    "shape": ({**POINT, "x": np.zeros(3)}, ("'x'", "(3,)", "(2,)")),
    "scalar": ({**POINT, "x": 1.0}, ("'x'", "()", "(2,)")),
    "string": ({**POINT, "x": "a"}, ("'x'", "'a'", "no number")),
    "None": ({**POINT, "x": None}, ("'x'", "None", "no number")),
    "ragged": ({**POINT, "x": [1.0, [2.0]]}, ("'x'", "[1.0, [2.0]]", "no number")),
}


@pytest.mark.parametrize(("point", "parts"), BAD_POINTS.values(), ids=BAD_POINTS)
def test_initial_point(model, point, parts):
    parts = ("initial_point", *parts, "model.initial_point()")
    refused(parts, rb.RollbackHMC, model=model, initial_point=point)


@pytest.mark.parametrize(
    ("kwargs", "parts"),
    [
        ({"modes": "NUMBA"}, ("'modes'", "mode, ")),
        ({3: "NUMBA"}, ("3", "mode, ")),
        ({"on_unused_input": "raise"}, ("'on_unused_input'",)),
        ({"mode": "nmba"}, ("'nmba'", "{'mode': 'NUMBA'}")),
        ({"mode": 3}, ("3", "{'mode': 'NUMBA'}")),
    ],
)
def test_compile_kwargs(model, kwargs, parts):
    refused(("compile_kwargs", *parts), rb.RollbackHMC, model=model, compile_kwargs=kwargs)


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        ("full", "'full'"),
        (np.ones(4), "array([1., 1., 1., 1.])"),
        ([1.0, -1.0, 1.0], "[1.0, -1.0, 1.0]"),
        ([1.0, np.nan, 1.0], "nan"),
    ],
)
def test_metric(model, metric, shown):
    refused(("metric=", shown, "3 positive"), rb.RollbackHMC, model=model, metric=metric)


def with_entry(i, j, value):
    matrix = np.eye(3)
    matrix[i, j] = value
    return matrix


@pytest.mark.parametrize(
    ("metric", "parts"),
    [
        (np.eye(4), ("4 rows and 4 columns", "3 coordinates", "3 x 3")),
        (np.ones((3, 2)), ("3 rows and 2 columns", "3 coordinates")),
        (with_entry(0, 1, np.nan), ("metric[0, 1] is nan", "finite")),
        (with_entry(1, 1, -2.0), ("metric[1, 1] is -2", "positive")),
        (with_entry(0, 2, 0.5), ("not symmetric", "metric[0, 2] is 0.5", "C + C.T")),
        (np.ones((3, 3)), ("not positive definite", "smallest eigenvalue")),
    ],
)
def test_covariance(model, metric, parts):
    refused(parts, rb.RollbackHMC, model=model, metric=metric)


def test_a_covariance_that_walls_forbid():
    correlated = with_entry(0, 1, 0.3)
    correlated[1, 0] = 0.3
    with pm.Model() as model:
        pm.Normal("x", shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0])
    parts = "correlates the elements", "'x'", "zero"
    refused(parts, rb.RollbackHMC, model=model, metric=correlated)
    with pm.Model() as model:
        pm.HalfNormal("s", shape=3)
        pm.Normal("z")
    rb.RollbackHMC(model=model, vars=[model["s"]], metric=np.eye(3))
    parts = "correlates coordinate 0", "another step", "zero"
    refused(parts, rb.RollbackHMC, model=model, vars=[model["s"]], metric=correlated)


@pytest.mark.parametrize("key", [3, None, ("x",)])
def test_names_of_walls(model, key):
    parts = ("sharpness", repr(key), "walls are scale")
    refused(parts, rb.RollbackHMC, model=model, sharpness={key: 1.0})


@pytest.mark.parametrize(
    ("option", "parts"),
    [
        ({"tune": 500}, ("tune=500", "pm.sample(tune=...")),
        ({"draws": 500}, ("draws=500", "pm.sample(draws=...")),
        ({"chains": 2}, ("chains=2", "pm.sample(chains=...")),
        ({"random_seed": 2}, ("random_seed=2", "pm.sample(random_seed=...")),
        ({"initvals": {}}, ("initvals={}", "pm.sample(initvals=...")),
        ({"max_tree_depth": 5}, ("max_tree_depth=5", "max_treedepth?")),
        ({"stepsize": 5}, ("stepsize=5", "step_size?")),
        ({"Sharpness": 5}, ("Sharpness=5", "sharpness?")),
        ({"zzz": 5}, ("zzz=5", "The options are vars, sharpness")),
    ],
    ids=str,
)
def test_an_option_that_there_is_not(model, option, parts):
    refused(parts, rb.RollbackHMC, model=model, **option)


def test_no_model():
    parts = ("no model", "with pm.Model():", "model=")
    refused(parts, rb.RollbackHMC)
    refused(parts, rb.describe)
    refused(parts, rb.read_region)
    refused(parts, rb.constrain, "c", pt.dscalar("free") > 0)


# ------------------------------------------------------------------------- read_region and describe


@pytest.mark.parametrize("name", all_but("None", "model"))
@pytest.mark.parametrize("function", [rb.read_region, rb.describe])
def test_a_model(function, name):
    value, shown = VALUES[name]
    refused(("model=", shown, "not a pm.Model"), function, value)


@pytest.mark.parametrize("name", all_but("None", "dict"))
@pytest.mark.parametrize("function", [rb.read_region, rb.describe])
def test_constraints_by_hand(model, function, name):
    value, shown = VALUES[name]
    refused(("constraints=", shown, "{'c': g}"), function, model, constraints=value)


@pytest.mark.parametrize("option", ["reflect", "transform"])
@pytest.mark.parametrize("name", ["None", "number", "string", "dict", "nothings", "generator"])
def test_names_for_describe(model, option, name):
    value, shown = VALUES[name]
    refused((option, shown, "name"), rb.describe, model, **{option: value})


def test_unknown_names_for_describe(model):
    refused(("reflect", "scales", "x, scale"), rb.describe, model, reflect=["scales"])


NUMBERS = ("number", "fraction", "NaN", "array", "numbers")


@pytest.mark.parametrize("name", all_but(*NUMBERS, "complex"))
def test_a_slack(model, name):
    value, shown = VALUES[name]
    refused(("'c'", "slack is", shown, "{'c': 1 - x}"), rb.read_region, model, {"c": value})


@pytest.mark.parametrize("name", NUMBERS)
def test_a_slack_without_variables(model, name):
    refused(("'c'", "constant", "Remove it"), rb.read_region, model, {"c": VALUES[name][0]})


def test_a_slack_of_another_kind(model):
    x = model["x"]
    refused(("'c'", "x < 1", "constrain('c', ...)"), rb.read_region, model, {"c": x < 1})
    refused(("'c'", "complex", "real part"), rb.read_region, model, {"c": 1j * x})
    refused(("'c'", "stranger", "x, scale"), rb.read_region, model, {"c": OTHER["stranger"]})


@pytest.mark.parametrize("key", [3, None, ("c",), 2.5, b"c"])
def test_a_name_by_hand(model, key):
    refused(("constraints", repr(key), "strings"), rb.read_region, model, {key: model["scale"]})


# --------------------------------------------------------------------------------------- constrain


@pytest.mark.parametrize("name", all_but(*NUMBERS, "truth", "complex"))
def test_a_condition(model, name):
    value, shown = VALUES[name]
    refused(("'c'", "condition is", shown, "x < 1"), rb.constrain, "c", value, model)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_no_condition(model, name):
    refused(("'c'", "not a condition", "g > 0"), rb.constrain, "c", VALUES[name][0], model)


def test_what_is_to_be_done_with_a_condition(model):
    refused(("'x[0] < 1'", "without quotes"), rb.constrain, "c", "x[0] < 1", model)
    refused(("function squared", "Call it"), rb.constrain, "c", squared, model)
    refused(("True", "equality"), rb.constrain, "c", True, model)
    refused(("1j", "complex"), rb.constrain, "c", 1j, model)
    x = model["x"]
    refused(("[x < 1, x[0] < 1]", "one shape"), rb.constrain, "c", [x < 1, x[0] < 1], model)


@pytest.mark.parametrize("name", all_but("string"))
def test_a_name(model, name):
    value, shown = VALUES[name]
    refused(("name", shown, "'c'"), rb.constrain, value, model["scale"] > 1, model)


def test_the_name_comes_first(model):
    condition = model["scale"] > 1
    refused(("name comes first", "scale > 1"), rb.constrain, condition, "c", model)


@pytest.mark.parametrize("name", all_but("None", "model"))
def test_a_model_to_constrain(model, name):
    value, shown = VALUES[name]
    refused(("model=", shown, "not a pm.Model"), rb.constrain, "c", model["scale"] > 1, value)


def test_a_condition_of_another_model(model):
    refused(("'c'", "scale", "stranger"), rb.constrain, "c", model["scale"] > 1, OTHER)


def test_conditions_in_an_array_of_objects_are_many_constraints():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("c", np.array([x[0] < 1, x[1] < 2]))
    assert [c.text for c in rb.read_region(model)] == ["x[0] < 1", "x[1] < 2"]


def too_long(x, data):
    return x < data


def too_wide(x, data):
    return pt.dot(pt.outer(data, data), x) < 1


def too_far(x, data):
    return x[5] < 1


@pytest.mark.parametrize(
    ("condition", "shown"), [(too_long, "x"), (too_wide, "@ x"), (too_far, "x[5] < 1")]
)
def test_shapes_that_do_not_fit(condition, shown):
    with pm.Model() as model:
        x, data = pm.Normal("x", shape=2), pm.Data("data", np.zeros(3))
    parts = ("'c'", shown, "cannot be evaluated", "x has the shape (2,)")
    refused(parts, rb.constrain, "c", condition(x, data), model)


# -------------------------------------------------------- what the README says of PyMC's own errors


@pytest.mark.parametrize(
    "condition",
    [
        lambda x, s: 6 < s < 7,
        lambda x, s: (6 < s) and (s < 7),
        lambda x, s: (6 < s) or (s < 7),
        lambda x, s: not s < 7,
        lambda x, s: max(x[0], x[1]) < 7,
        lambda x, s: all([x[0] < 1, x[1] < 1]),
        lambda x, s: any([x[0] < 1, x[1] < 1]),
    ],
)
def test_a_truth_value_of_an_expression(model, condition):
    x = model["x"]
    parts = ("TensorVariable cannot be converted to Python boolean",)
    refused(parts, lambda: rb.constrain("c", condition(x, x.sum()), model))


@pytest.mark.parametrize(
    ("condition", "texts"),
    [
        (lambda x, s: (6 < s) & (s < 7), ["sum(x) > 6", "sum(x) < 7"]),
        (lambda x, s: ~(s < 7), ["sum(x) >= 7"]),
        (lambda x, s: (s < -1) | (s > 1), ["(sum(x) < -1) or (sum(x) > 1)"]),
        (lambda x, s: pt.max(x) < 2 * pt.min(x), ["max(x) < 2 * min(x)"]),
        (lambda x, s: pt.all(x < 1), ["x < 1"]),
        (lambda x, s: [x[0] < 1, x[1] < 2], ["x[0] < 1", "x[1] < 2"]),
        (lambda x, s: np.ones((3, 2)) @ x < np.arange(3), ["array(3, 2) @ x < [0, 1, 2]"]),
    ],
)
def test_the_forms_that_are_recommended(condition, texts):
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("c", condition(x, x.sum()))
    assert [c.text for c in rb.read_region(model)] == texts


def test_where_options_and_steps_belong(model):
    step = rb.RollbackHMC(model=model, step_size=0.1, n_steps=2, sharpness=20.0)
    options = {
        "step": step,
        "progressbar": False,
        "draws": 100,
        "compute_convergence_checks": False,
    }
    parts = ("Invalid key found in step_kwargs: {'nuts'}",)
    refused(parts, pm.sample, model=model, target_accept=0.95, **options)
    parts = ("assigned to <RollbackHMC: exact draws of x", "is not a value variable in the model")
    refused(parts, pm.sample, model=OTHER, **options)
