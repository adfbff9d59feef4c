import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_rollback as rb


def compiled(model, expressions):
    """A function of a dict of values of the model's own (untransformed) variables."""
    function = pytensor.function(
        model.free_RVs, list(expressions), mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return lambda **values: function(*(np.asarray(values[x.name], float) for x in model.free_RVs))


def slack(model, name):
    """Slack of a constraint as a function of the model's variables."""
    function = compiled(model, [rb.read_region(model)[name].slack])
    return lambda **values: function(**values)[0]


def logp(model):
    """PyMC's log density of a model, in value space."""
    function = pytensor.function(model.value_vars, model.logp(), mode="FAST_COMPILE")
    return lambda **values: function(*(np.asarray(values[v.name], float) for v in model.value_vars))


# ------------------------------------------------------------------------------------- constrain


def test_constrain_is_an_ordinary_potential():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        disk = rb.constrain("disk", (x**2).sum() < 2)
    assert model.potentials == [disk] and model["disk"] is disk and disk.name == "disk"
    density = logp(model)
    assert np.isfinite(density(x=[1.0, 0.9])) and np.isneginf(density(x=[1.0, 1.1]))
    np.testing.assert_allclose(density(x=[1.0, 0.9]), stats.norm.logpdf([1.0, 0.9]).sum())


def test_constrain_takes_a_model():
    with pm.Model() as model:
        x = pm.Normal("x")
    rb.constrain("positive", x > 0, model=model)
    assert rb.read_region(model)["positive"].text == "x > 0"


def test_read_region_takes_the_model_of_the_context():
    with pm.Model() as model:
        pm.HalfNormal("x")
        assert rb.read_region().model is model


def test_nothing_is_kept_but_the_graph():
    """A Potential written by hand, or of a copy of the model, is read as one that we made."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("ours", x.sum() < 1)
    with pm.Model() as other:
        y = pm.Normal("x", shape=2)
        pm.Potential("ours", pt.switch(y.sum() < 1, 0, -np.inf))
    for m in (model, other, model.copy()):
        [constraint] = rb.read_region(m)
        assert (constraint.name, constraint.text, constraint.affine) == ("ours", "sum(x) < 1", True)


CONDITIONS = [
    pytest.param(lambda x: x[0] < x[1], 1, id="scalar"),
    pytest.param(lambda x: x < np.array([0.5, 1.0, 1.5]), 3, id="vector"),
    pytest.param(lambda x: x[1:] > x[:-1] - 0.5, 2, id="differences"),
    pytest.param(lambda x: x[:, None] < x[None, :] + 2, 9, id="matrix"),
    pytest.param(lambda x: (x[0] > 0.5) | (x[1] > 0.5), 1, id="union"),
    pytest.param(lambda x: (x > 0.1) | (x < -0.1), 3, id="vector-union"),
    pytest.param(lambda x: ~(x > 1), 3, id="negation"),
    pytest.param(lambda x: ~((x[0] > 0) & (x[1] > 0)), 1, id="negated-conjunction"),
    pytest.param(lambda x: pt.all(x > -1), 3, id="all"),
    pytest.param(lambda x: pt.any(x > 1), 1, id="any"),
    pytest.param(lambda x: (x[0] > x[1]) & ((x**2).sum() < 4), 2, id="conjunction"),
]


@pytest.mark.parametrize("condition, rows", CONDITIONS)
def test_slacks_agree_with_the_density(condition, rows):
    """All slacks are positive exactly where PyMC's density of the model is finite."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        rb.constrain("c", condition(x))
    region = rb.read_region(model)
    slacks, density = compiled(model, [c.slack for c in region]), logp(model)
    inside = []
    for point in np.random.default_rng(7).normal(size=(200, 3)):
        values = np.concatenate(slacks(x=point))
        inside.append(np.isfinite(density(x=point)))
        assert values.shape == (rows,)
        assert np.all(values > 0) == inside[-1]
    assert 5 < sum(inside) < 195


def test_rows_of_one_potential_are_numbered():
    with pm.Model() as model:
        x = pm.Normal("x")
        rb.constrain("c", (x > -1) & (x < 1))
    region = rb.read_region(model)
    assert [c.name for c in region] == ["c[0]", "c[1]"] and len(region) == 2
    with pytest.raises(KeyError, match="'other' is no constraint of this region, which has "):
        region["other"]


def test_dims_and_coords():
    coords = {"group": ["a", "b", "c"], "time": range(4)}
    with pm.Model(coords=coords) as model:
        effect = pm.HalfNormal("effect", dims="group")
        level = pm.Normal("level", dims=("group", "time"))
        rb.constrain("rising", level[:, 1:] > level[:, :-1])
        rb.constrain("capped", level.sum(axis=1) < effect)
    region = rb.read_region(model)
    values = {"effect": np.ones(3), "level": np.tile(np.linspace(-2, 1, 4), (3, 1))}
    assert region["rising"].affine and region["capped"].affine
    assert slack(model, "rising")(**values).shape == (9,)
    np.testing.assert_allclose(slack(model, "capped")(**values), 3.0)
    assert slack(model, "effect.lower")(**values).shape == (3,)


def test_data_containers_and_set_data():
    with pm.Model() as model:
        a = pm.Data("a", [1.0, 2.0])
        b = pm.Data("b", 3.0)
        x = pm.Normal("x", shape=2)
        rb.constrain("budget", (a * x).sum() < b)
    region = rb.read_region(model)
    assert region["budget"].affine and region["budget"].text == "b > sum(a * x)"
    read, density = compiled(model, [region["budget"].slack]), logp(model)
    assert read(x=[1, 1.5])[0] == [-1.0] and np.isneginf(density(x=[1, 1.5]))
    with model:
        pm.set_data({"a": [0.5, 1.0]})
    assert read(x=[1, 1.5])[0] == [1.0] and np.isfinite(density(x=[1, 1.5]))


def test_data_of_another_length_is_another_number_of_rows():
    with pm.Model() as model:
        times = pm.Data("times", [1.0, 2.0])
        x = pm.Normal("x", shape=2)
        rb.constrain("above", x[0] + x[1] * times > -3)
    read = slack(model, "above")
    assert read(x=[0, 1]).tolist() == [4, 5]
    with model:
        pm.set_data({"times": [1.0, 2.0, 3.0]})
    assert read(x=[0, 1]).tolist() == [4, 5, 6]


def test_slacks_are_double_precision():
    with pytensor.config.change_flags(floatX="float32"), pm.Model() as model:
        x = pm.Normal("x", dtype="float64")
        rb.constrain("below", x < 2)
        region = rb.read_region(model, constraints={"by hand": pt.cast(x, "float32") + 1})
    assert [c.slack.dtype for c in region] == ["float64", "float64"]
    assert region["below"].slack.eval({x: 1 - 1e-12}) == 1 + 1e-12


def test_deterministics_in_constraints():
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        total = pm.Deterministic("total", x.sum())
        rb.constrain("total_below_one", total < 1)
        rb.constrain("energy", pm.Deterministic("square", x**2).sum() < 4)
    region = rb.read_region(model)
    assert region["total_below_one"].text == "total < 1" and region["total_below_one"].affine
    assert region["energy"].text == "sum(square) < 4" and not region["energy"].affine
    assert slack(model, "energy")(x=[1, 1, 0]) == [2]


def test_nested_models():
    with pm.Model(name="outer") as outer:
        a = pm.HalfNormal("a")
        with pm.Model(name="inner"):
            b = pm.Normal("b")
            potential = rb.constrain("order", a > b)
    assert potential.name == "outer::inner::order"
    region = rb.read_region(outer)
    assert [c.name for c in region] == ["outer::a.lower", "outer::inner::order"]
    assert list(region.supports) == ["outer::a", "outer::inner::b"]
    read = slack(outer, "outer::inner::order")
    assert read(**{"outer::a": 2, "outer::inner::b": 0.5}) == [1.5]


def test_the_name_of_a_nested_constraint_may_be_taken_outside():
    with pm.Model() as outer:
        x = pm.Normal("x")
        rb.constrain("c", x > 0)
        with pm.Model(name="inner"):
            rb.constrain("c", x < 1)
            with pytest.raises(rb.RegionError, match=r"'inner::c'.*another name"):
                rb.constrain("c", x < 2)
    assert [c.name for c in rb.read_region(outer)] == ["c", "inner::c"]


def test_bounds_orders_and_potentials_together():
    with pm.Model() as model:
        x = pm.Uniform("x", 0, 2, shape=2)
        y = pm.Normal(
            "y", shape=3, transform=pm.distributions.transforms.ordered, initval=[0, 1, 2]
        )
        pm.Poisson("n", 3)
        pm.Potential("p", pt.switch(x.sum() < y[0], x[0], -np.inf) + pt.log(y[2] < 5))
    region = rb.read_region(model)
    kinds = {c.name: c.kind for c in region}
    assert kinds == {
        "x.lower": "bound",
        "x.upper": "bound",
        "y.order": "order",
        "p[0]": "joint",
        "p[1]": "joint",
    }
    assert set(region.supports) == {"x", "y"} and len(region.joint) == 2


# ------------------------------------------------------------------------- the two log densities


def no_transform(dist, *args, **kwargs):
    return lambda: dist("x", *args, **kwargs, default_transform=None)


def in_a_box():
    x = pm.Normal("x", shape=2)
    pm.Potential("p", pt.switch(pt.abs(x).sum() < 1, -x[0], -np.inf))


def numbers():
    x = pm.Normal("x", shape=2)
    pm.Potential("p", pt.switch(x > -0.5, 0.3 * x, -1e10))


def likelihood():
    x = pm.Normal("x")
    pm.Uniform("y", x, 9, observed=np.array([0.2, 0.4]))


DENSITIES = [
    pytest.param(no_transform(pm.HalfNormal), id="HalfNormal"),
    pytest.param(no_transform(pm.Exponential, 2), id="Exponential"),
    pytest.param(no_transform(pm.Uniform, -1, 0.5), id="Uniform"),
    pytest.param(no_transform(pm.TruncatedNormal, lower=-0.5, upper=1), id="TruncatedNormal"),
    pytest.param(
        lambda: pm.Truncated("x", pm.Normal.dist(), upper=0.5, default_transform=None),
        id="Truncated",
    ),
    pytest.param(in_a_box, id="Potential"),
    pytest.param(numbers, id="very-negative-numbers"),
    pytest.param(likelihood, id="likelihood"),
]


def is_smooth(function, point, direction):
    """Second differences fall with the square of the step."""

    def second(step):
        ahead, behind = function(point + step * direction), function(point - step * direction)
        with np.errstate(invalid="ignore"):
            return abs(ahead + behind - 2 * function(point))

    return second(1e-3) < 1e-4


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("make", DENSITIES)
def test_smooth_and_hard_log_density(make):
    """Equal inside; outside the hard one is -inf (or nearly), the smooth one finite and smooth."""
    with pm.Model() as model:
        make()
    region = rb.read_region(model)
    [x] = model.value_vars
    hard, smooth = (
        pytensor.function([x], graph, mode="FAST_COMPILE")
        for graph in (region.hard_logp(), region.smooth_logp())
    )
    slacks = pytensor.function(
        [model["x"]], pt.join(0, *(c.slack for c in region)), mode="FAST_COMPILE"
    )
    rng = np.random.default_rng(3)
    inside = []
    shape = model.initial_point()["x"].shape
    for _ in range(60):
        point, direction = rng.normal(size=(2, *shape))
        inside.append(bool(np.all(slacks(point) > 0)))
        assert np.isfinite(smooth(point))
        assert is_smooth(smooth, point, direction)
        if inside[-1]:
            np.testing.assert_allclose(smooth(point), hard(point))
        else:
            assert hard(point) < -1e9
    assert 5 < sum(inside) < 55


def test_the_smooth_log_density_is_smooth_across_the_wall():
    """So that the leapfrog has a gradient there; the hard one must fail the same test."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("disk", (x**2).sum() < 2)
    region = rb.read_region(model)
    hard, smooth = (
        pytensor.function(model.value_vars, graph, mode="FAST_COMPILE")
        for graph in (region.hard_logp(), region.smooth_logp())
    )
    wall = np.array([1.0, 1.0])
    assert is_smooth(smooth, wall, wall)
    assert not is_smooth(hard, wall, wall)


def test_log_densities_keep_the_transforms_of_the_model():
    """With default transforms nothing is outside: the two are equal, Jacobians included."""
    with pm.Model() as model:
        y = pm.HalfNormal("y")
        pm.Uniform("x", 0, y)
        pm.Dirichlet("p", np.ones(3))
    region = rb.read_region(model)
    functions = [
        pytensor.function(model.value_vars, graph, mode="FAST_COMPILE")
        for graph in (region.hard_logp(), region.smooth_logp())
    ]
    rng = np.random.default_rng(5)
    for _ in range(20):
        point = [rng.normal(size=v.type.ndim * (2,)) for v in model.value_vars]
        hard, smooth = (function(*point) for function in functions)
        np.testing.assert_allclose(smooth, hard)


def test_the_smooth_log_density_is_differentiable():
    with pm.Model() as model:
        pm.HalfNormal("x", default_transform=None)
    region = rb.read_region(model)
    [x] = model.value_vars
    gradient = pytensor.function([x], pt.grad(region.smooth_logp(), x), mode="FAST_COMPILE")
    assert gradient(-0.7) == pytest.approx(0.7) and gradient(0.7) == pytest.approx(-0.7)


def test_a_guard_of_the_parameters_stays_in_the_density():
    """Only the support is taken out of the density: a wrong parameter is still an error."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("x", mu, sigma=mu)
    region = rb.read_region(model)
    smooth = pytensor.function(model.value_vars, region.smooth_logp(), mode="FAST_COMPILE")
    assert np.isfinite(smooth(1.0, 0.0))
    with pytest.raises(pm.logprob.utils.ParameterValueError):
        smooth(-1.0, 0.0)
