"""Bad input is refused before sampling starts, with the culprit and its value."""

import re

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

import pymc_rollback as rb

# PyTensor says so once a process, if there is no BLAS that it can link to
pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")

NUMBERS = {"sharpness": 20.0, "step_size": 0.1, "n_steps": 5}


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Exponential("scale", 1.0)
        rb.constrain("disk", (x**2).sum() < 2)
    return model


def refused(model, *parts, **options):
    """The step is refused with a message that has all these parts in it."""
    with pytest.raises(ValueError) as error:
        rb.RollbackHMC(model=model, **NUMBERS | options)
    for part in parts:
        assert part in str(error.value)


@pytest.mark.parametrize("option", ["sharpness", "step_size"])
@pytest.mark.parametrize("value", [0, 0.0, -1.5, np.nan, np.inf, True, "much", [1.0]])
@pytest.mark.parametrize("exact", [True, False])
def test_not_a_positive_number(model, option, value, exact):
    if not exact:
        with pm.Model() as model:
            pm.Exponential("scale", 1.0, default_transform=None)
    refused(model, option, repr(value), "positive", **{option: value}, exact=exact)


def test_a_time_that_is_contradicted(model):
    refused(model, "trajectory_time=1.6", "n_steps=5", "two of the three", trajectory_time=1.6)
    one = {"trajectory_time": 1.6, "exact": False, "n_steps": None}
    refused(model, "trajectory_time=1.6", "exact=False", "Leave trajectory_time out", **one)


@pytest.mark.parametrize("value", [0, -3, 2.5, np.nan, True, "many"])
def test_n_steps_below_one(model, value):
    refused(model, "n_steps", repr(value), n_steps=value)


@pytest.mark.parametrize("value", [0, 1, -0.1, np.nan, 80])
def test_target_accept_is_a_share(model, value):
    refused(model, "target_accept", repr(value), target_accept=value)


@pytest.mark.parametrize("value", [0, -2.0, np.nan])
def test_sharpness_of_one_wall(model, value):
    refused(model, "disk", repr(value), "positive", sharpness={"disk": value, "scale": 1.0})


def test_unknown_names(model):
    refused(model, "sharpness", "disc", "disk", sharpness={"disc": 1.0, "disk": 1.0, "scale": 1.0})
    refused(model, "reflect", "scales", "scale", reflect=["scales"])
    refused(model, "transform", "scales", "scale", transform=["scales"])


def test_a_string_is_not_a_list_of_names(model):
    refused(model, "reflect", "['scale']", reflect="scale")


@pytest.mark.parametrize("value", ["no", 0, None])
def test_exact_is_true_or_false(model, value):
    refused(model, "exact", repr(value), "True or False", exact=value)


CHOICES = [
    pytest.param({"reflect": ["s"], "transform": ["s"]}, "both name s", id="both"),
    pytest.param({"reflect": ["x"]}, "reflect names x.*no bound", id="reflect-unbounded"),
    pytest.param({"transform": ["x"]}, "transform names x.*no bound", id="transform-unbounded"),
    pytest.param({"reflect": ["w"]}, "reflect names w.*simplex", id="reflect-simplex"),
    pytest.param({"transform": ["c"]}, "transform names c.*no transform", id="no-transform"),
]


@pytest.mark.parametrize(("options", "match"), CHOICES)
def test_choices_that_cannot_be_followed(options, match):
    with pm.Model() as model:
        pm.Normal("x")
        pm.Exponential("s", 1.0)
        pm.Dirichlet("w", np.ones(3))
        rb.constrain("positive", pm.Normal("c") > 0)
        for use in (rb.describe, rb.RollbackHMC):
            with pytest.raises(ValueError, match=match):
                use(model=model, **options)


def test_a_variable_of_another_model(model):
    with pm.Model():
        stranger = pm.Normal("stranger")
    refused(model, "stranger", vars=[stranger])
    refused(model, "stranger", vars=[model["x"], stranger])


def test_a_variable_that_is_not_free(model):
    with pm.Model() as model:
        x = pm.Normal("x")
        total = pm.Deterministic("total", x + 1)
        seen = pm.Normal("seen", x, observed=1.0)
    refused(model, "total", vars=[x, total])
    refused(model, "seen", vars=[seen])


def test_discrete_variables():
    with pm.Model() as model:
        x, k = pm.Normal("x"), pm.Poisson("k", 2.0)
    refused(model, "not k", "Metropolis", vars=[x, k])


def test_no_continuous_variable():
    with pm.Model() as model:
        pm.Poisson("k", 2.0)
    refused(model, "no continuous")
    with pm.Model() as empty:
        pass
    refused(empty, "no free variables")


def test_no_variables_given(model):
    refused(model, "vars=[]", "Leave it out", vars=[])


def test_no_model():
    with pytest.raises(TypeError, match="model"):
        rb.RollbackHMC(**NUMBERS)


# ------------------------------------------------------------------------------------------- starts


def refused_start(model, *parts, initvals=None, **options):
    """No draw is made: the callback never runs."""

    def fail(trace, draw):
        raise AssertionError("sampling has started")

    options = {"tune": 5, "chains": 1, "cores": 1, "progressbar": False, "random_seed": 1} | options
    with model, pytest.raises(SamplingError) as error:
        step = rb.RollbackHMC(exact=False, **NUMBERS)
        pm.sample(5, step=step, initvals=initvals, callback=fail, **options)
    for part in parts:
        assert re.search(part, str(error.value)), (part, str(error.value))


@pytest.fixture(scope="module")
def disk():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("disk", (x**2).sum() < 2)
        pm.Normal("z")
    return model


def test_a_start_outside_names_the_constraint_and_its_slack():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2, initval=[2.0, 1.0])
        rb.constrain("disk", (x**2).sum() < 2)
    refused_start(model, "'disk'", r"-3\b")


def test_a_start_outside_a_bound():
    with pm.Model() as model:
        pm.Exponential("scale", 1.0, default_transform=None, initval=-0.25)
    refused_start(model, "'scale.lower'", r"-0\.25")


@pytest.mark.parametrize(("start", "value"), [(0.0, "-inf"), (-1.0, "nan")])
def test_a_slack_that_is_not_finite_at_the_start(start, value):
    with pm.Model() as model:
        x = pm.Normal("x", initval=start)
        with pytest.raises(SamplingError) as error:
            step = rb.RollbackHMC(constraints={"log": pt.log(x)}, exact=False, **NUMBERS)
            step.step(model.initial_point())
    assert "'log'" in str(error.value) and value in str(error.value)


def test_an_infinite_slack_at_the_start():
    with pm.Model() as model:
        x = pm.Normal("x", initval=0.0)
        with pytest.raises(SamplingError, match=r"'pole'.*inf"):
            step = rb.RollbackHMC(constraints={"pole": 1 / x**2 - 1}, exact=False, **NUMBERS)
            step.step(model.initial_point())


def test_initial_point_outside(disk):
    point = {"x": np.array([2.0, 1.0]), "z": np.array(0.0)}
    with pytest.raises(SamplingError, match=r"'disk'.*-3"):
        rb.RollbackHMC(model=disk, initial_point=point, exact=False, **NUMBERS).step(point)


def test_a_log_density_that_is_not_finite_at_the_start():
    """Not a wall of ours: the other parts of the model decide."""
    with pm.Model() as model:
        x = pm.Normal("x", initval=-0.5)
        pm.Normal("y", 0.0, x, observed=1.0)
        step = rb.RollbackHMC(**NUMBERS)
    with pytest.raises(SamplingError, match="not finite"):
        step.step(model.initial_point())


def test_a_sharpness_beside_a_variable_without_walls():
    """Good input: the last coordinate has no wall."""
    with pm.Model() as model:
        pm.HalfNormal("a")
        pm.Normal("b")
    step = rb.RollbackHMC(model=model, sharpness=8.0)
    np.testing.assert_array_equal(step.options.sharpness, [8.0, 0.0])
