import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_rollback as rb


@pytest.fixture
def model():
    """Two real variables, a positive one, and a discrete one."""
    with pm.Model() as model:
        pm.Normal("x")
        pm.Normal("y")
        pm.HalfNormal("h")
        pm.Poisson("n", 3)
        pm.Normal("v", shape=3)
        pm.Data("d", [1.0, 2.0])
    return model


def bad(condition, match, name):
    return pytest.param(condition, match, id=name)


# the condition, and words of the error: why, and the remedy
BAD = [
    bad(lambda m: pt.eq(m["x"], m["y"]), "equality.*measure zero.*Deterministic", "equality"),
    bad(lambda m: pt.eq(m["v"], 0), "equality.*measure zero.*Deterministic", "vector-equality"),
    bad(lambda m: ~pt.neq(m["x"], m["y"]), "equality.*measure zero", "not-unequal"),
    bad(lambda m: m["x"] == m["y"], "measure zero.*Deterministic", "python-equality"),
    bad(
        lambda m: pt.eq(m["x"], m["y"]) & (m["x"] > 0),
        "equality.*measure zero.*Deterministic",
        "equality-in-and",
    ),
    bad(
        lambda m: pt.eq(m["x"], m["y"]) | (m["x"] > 0),
        "equality.*measure zero.*Deterministic",
        "equality-in-or",
    ),
    bad(lambda m: True, "Python value True", "python-true"),
    bad(lambda m: None, "condition is None.*expression of the model's variables", "python-none"),
    bad(lambda m: m["v"] < [1, np.nan, 2], "not a number.*missing values in its data", "nan"),
    bad(lambda m: m["d"] > 1, "d > 1.*fails.*data in it.*remove", "data"),
    bad(lambda m: pt.constant(1.0) < 0, "fails.*none of them.*remove", "constant"),
    bad(lambda m: pt.constant(np.array(False)), "fails.*none of them.*remove", "constant-false"),
    bad(lambda m: m["n"] > 2, "discrete variables.*n.*distribution", "discrete"),
    bad(
        lambda m: (m["x"] > 0) & (m["n"] > 2),
        "discrete variables.*n.*distribution",
        "part-discrete",
    ),
    bad(lambda m: (m["x"] > 0) & (m["d"][0] > 1), r"d\[0\] > 1.*fails.*remove", "part-data"),
    bad(
        lambda m: (m["x"] > 0) & ~(m["d"][1] >= 2),
        r"not \(d\[1\] >= 2\).*fails.*remove",
        "not-data",
    ),
    bad(lambda m: m["h"] < 0, "h < 0.*(Remove|relax)", "half-normal-below-zero"),
    bad(lambda m: m["h"] + 1 < 0, "h \\+ 1 < 0.*(Remove|relax)", "half-normal-plus-one"),
    bad(lambda m: m["x"] ** 2 < -1, "no point.*Check the inequality", "square-below-zero"),
    bad(lambda m: pt.exp(m["x"]) + m["h"] < 0, "no point.*Check the inequality", "exp-below-zero"),
    bad(lambda m: (m["x"] > 1) & (m["x"] < 0), "(Remove|relax)", "empty-interval"),
    bad(lambda m: pt.round(m["x"]) > 1, "gradient.*zero.*without rounding", "round"),
    bad(lambda m: pt.floor(m["x"]) > 1, "gradient.*zero.*without rounding", "floor"),
    bad(lambda m: m["x"] // 2 > 1, "gradient.*zero.*integer division", "integer-division"),
    bad(lambda m: pt.sign(m["x"]) > 0, "gradient.*zero.*without", "sign"),
    bad(lambda m: pt.switch(m["x"] > 0, 1, -1) > 0, "gradient.*zero.*comparisons", "switch"),
    bad(lambda m: pt.isnan(m["x"]), "not a comparison.*by hand", "not-a-comparison"),
    bad(lambda m: m["x"] + m["y"], "not a condition.*Compare", "not-a-condition"),
    bad(lambda m: m["v"][3:] > 0, "no elements.*Leave it out", "no-rows"),
]


@pytest.mark.parametrize("condition, match", BAD)
def test_constrain_refuses_at_once(model, condition, match):
    """The error names the constraint, the cause and the remedy, and the model is left as it was."""
    with model, pytest.raises(rb.RegionError, match=rf"'ring(\[\d\])?'.*({match})"):
        rb.constrain("ring", condition(model))
    assert model.potentials == [] and "ring" not in model.named_vars


NOT_IN_A_POTENTIAL = {"python-equality", "python-true", "python-none", "not-a-condition"}
POTENTIALS = [p for p in BAD if p.id not in NOT_IN_A_POTENTIAL]


@pytest.mark.parametrize("condition, match", POTENTIALS)
def test_reading_refuses_the_same_in_a_potential(model, condition, match):
    with model:
        pm.Potential("ring", pt.switch(condition(model), 0, -np.inf))
    with pytest.raises(rb.RegionError, match=rf"'ring(\[\d\])?'.*({match})"):
        rb.read_region(model)


@pytest.mark.parametrize("name", ["", " "])
def test_a_constraint_needs_a_name(model, name):
    with model, pytest.raises(rb.RegionError, match=rf"name={name!r}.*needs a name"):
        rb.constrain(name, model["x"] > 0)
    assert model.potentials == []


def test_a_minibatch_in_a_condition_is_refused(model):
    batch = pm.Minibatch(np.arange(5.0), batch_size=2)
    with model, pytest.raises(rb.RegionError, match=r"'ring'.*Minibatch.*all data"):
        rb.constrain("ring", model["x"] < batch)
    assert model.potentials == []


@pytest.mark.parametrize("term", ["potential", "parameter"])
def test_a_minibatch_in_the_density_is_refused(term):
    with pm.Model() as model:
        x, batch = pm.Normal("x"), pm.Minibatch(np.arange(5.0), batch_size=2)
        if term == "potential":
            pm.Potential("c", -pt.sum((x - batch) ** 2))
        else:
            pm.Normal("c", x + batch, 1, observed=np.zeros(2))
    with pytest.raises(rb.RegionError, match=r"'c'.*Minibatch.*all data"):
        rb.read_region(model)


NO_LOG_DENSITIES = [
    pytest.param(lambda x: pt.constant(np.inf), "inf", id="inf"),
    pytest.param(lambda x: pt.constant(np.nan), "nan", id="nan"),
    pytest.param(lambda x: pt.switch(x > 0, np.inf, 0.0), "inf", id="inf-somewhere"),
    pytest.param(lambda x: pt.sqrt(x), "nan", id="nan-somewhere"),
    pytest.param(lambda x: -x * pt.constant([1.0, np.nan]), "nan", id="missing-data"),
]


@pytest.mark.parametrize(("potential", "value"), NO_LOG_DENSITIES)
def test_a_potential_that_is_no_log_density(potential, value):
    with pm.Model() as model:
        pm.Potential("odd", potential(pm.Normal("x")))
    with pytest.raises(rb.RegionError, match=rf"'odd' is {value} somewhere.*constrain"):
        rb.read_region(model)


@pytest.mark.parametrize("potential", [pt.log, pt.sqrt, lambda x: pt.switch(x > 0, 0.0, np.inf)])
def test_a_potential_may_be_anything_outside_the_region(potential):
    with pm.Model() as model:
        x = pm.Normal("x")
        rb.constrain("positive", x > 0)
        pm.Potential("odd", potential(x))
    assert [c.name for c in rb.read_region(model)] == ["positive"]


@pytest.mark.parametrize("name", ["x", "h", "d", "ring"])
def test_a_name_that_the_model_has(model, name):
    with model:
        rb.constrain("ring", model["x"] > 0)
        with pytest.raises(rb.RegionError, match=rf"'{name}'.*already.*[Cc]hoose another name"):
            rb.constrain(name, model["x"] < model["y"])
    assert len(model.potentials) == 1


def test_outside_of_a_model_context(model):
    with pytest.raises(TypeError, match=r"no model.*with pm\.Model"):
        rb.constrain("ring", model["x"] > 0)
    with pytest.raises(TypeError, match=r"no model.*with pm\.Model"):
        rb.read_region()


class Opaque(Op):
    """Some black box of the user's: -inf below zero."""

    def make_node(self, x):
        return Apply(self, [x], [pt.dscalar()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.asarray(0.0 if inputs[0] > 0 else -np.inf)


UNREADABLE = [
    pytest.param(lambda x: pt.log(pt.maximum(x, 0)), id="log-of-maximum"),
    pytest.param(lambda x: pt.log(pt.clip(x, 0, 1)), id="log-of-clip"),
    pytest.param(lambda x: -1 / pt.cast(x > 0, "float64"), id="one-over-indicator"),
    pytest.param(lambda x: Opaque()(x), id="black-box"),
    pytest.param(
        lambda x: pt.logsumexp(
            pt.stack([pt.switch(x > 0, 0.0, -np.inf), pt.switch(x > 1, 0.0, -np.inf)])
        ),
        id="logsumexp",
    ),
    pytest.param(lambda x: pt.switch(pt.isnan(pt.sqrt(x)), -np.inf, 0), id="isnan"),
    pytest.param(lambda x: -(pt.switch(x > 0, 0, -np.inf) ** 2), id="square"),
]


@pytest.mark.parametrize("potential", UNREADABLE)
def test_a_potential_that_cannot_be_read_is_named(potential):
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("gap", potential(x))
    with pytest.raises(rb.RegionError, match=r"'gap'.*by hand.*constraints="):
        rb.read_region(model)


def test_a_slack_given_by_hand_stands_for_an_unreadable_potential():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("gap", pt.log(pt.maximum(x, 0)))
    [constraint] = rb.read_region(model, constraints={"gap": x})
    assert (constraint.name, constraint.kind, constraint.text) == ("gap", "joint", "x > 0")
    slack = pytensor.function([x], constraint.slack, mode="FAST_COMPILE")
    assert slack(1.5) == [1.5] and constraint.affine


BY_HAND = [
    bad(lambda m: m["x"] > 0, "is a condition.*slack", "condition"),
    bad(lambda m: m["d"][0], "none of the model's free variables", "data"),
    bad(lambda m: m["n"] - 2, "discrete", "discrete"),
    bad(lambda m: -(m["x"] ** 2) - 1, "no point", "never-positive"),
    bad(lambda m: pt.round(m["x"]), "gradient.*zero", "no-gradient"),
    bad(lambda m: pm.Normal.dist(), "not in this model", "foreign"),
]


@pytest.mark.parametrize("slack, match", BY_HAND)
def test_bad_slacks_given_by_hand(model, slack, match):
    with pytest.raises(rb.RegionError, match=rf"'gap'.*({match})"):
        rb.read_region(model, constraints={"gap": slack(model)})


def test_a_variable_of_another_model(model):
    with pm.Model():
        foreign = pm.Normal("foreign")
    with model, pytest.raises(rb.RegionError, match=r"'ring'.*foreign.*not in this model"):
        rb.constrain("ring", foreign > model["x"])


def test_affine_constraints_that_exclude_each_other_are_named(model):
    """And only they are: the third one is innocent."""
    x, y = model["x"], model["y"]
    with model:
        rb.constrain("low", x + y < -1)
        rb.constrain("innocent", x > y)
        rb.constrain("high", x + y > 1)
    with pytest.raises(rb.RegionError, match=r"(?=.*'low')(?=.*'high').*(Remove|relax)") as error:
        rb.read_region(model)
    assert "innocent" not in str(error.value)


def test_terms_that_cancel_and_leave_what_never_holds(model):
    with model, pytest.raises(rb.RegionError, match=r"No point satisfies 'c'.*(Remove|relax)"):
        rb.constrain("c", model["x"] - model["x"] > 1)


def test_a_constraint_that_excludes_a_bound_names_both():
    with pm.Model() as model:
        x = pm.Uniform("x", 0, 1, shape=2)
        pm.Potential("high", pt.switch(x.sum() > 3, 0, -np.inf))
    with pytest.raises(rb.RegionError, match=r"(?=.*'high')(?=.*'x.upper')"):
        rb.read_region(model)


def test_touching_constraints_have_no_interior(model):
    with model:
        rb.constrain("low", model["x"] <= 0)
        rb.constrain("high", model["x"] >= 0)
    with pytest.raises(rb.RegionError, match=r"'low'.*'high'"):
        rb.read_region(model)


GOOD = [
    pytest.param(lambda m: m["x"] > 50, id="far"),
    pytest.param(lambda m: m["h"] > 50, id="far-bounded"),
    pytest.param(lambda m: m["x"] ** 2 + m["y"] ** 2 > 400, id="far-nonlinear"),
    pytest.param(lambda m: m["x"] ** 2 < 1e-4, id="narrow"),
    pytest.param(lambda m: m["n"] * m["x"] < 1, id="discrete-and-continuous"),
    pytest.param(lambda m: pt.abs(m["x"]) < 1, id="abs"),
    pytest.param(lambda m: pt.max(m["v"]) < 1, id="max"),
    pytest.param(lambda m: (m["x"] > 0) | (m["n"] > 2), id="discrete-in-a-union"),
    pytest.param(lambda m: 1 / m["x"] > 1, id="pole-at-the-start"),
]


@pytest.mark.parametrize("condition", GOOD)
def test_odd_but_good_constraints_are_accepted(model, condition):
    with model:
        rb.constrain("odd", condition(model))
    assert rb.read_region(model)["odd"].kind == "joint"


def test_single_precision_is_refused():
    with pm.Model() as model:
        pm.HalfNormal("x", dtype="float32")
    with pytest.raises(rb.RegionError, match=r"'x' is float32.*dtype='float64'"):
        rb.read_region(model)
