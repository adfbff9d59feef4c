"""What is taken out of a log density is accounted for: read, kept, met or refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.logprob.transforms import Transform

import pymc_rollback as rb
from pymc_rollback.graph.evaluate import interpreted

pytestmark = pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")


def positive():
    return pm.HalfNormal("x")


def share():
    return pm.Beta("x", 1, 1)


def shares():
    return pm.Dirichlet("x", np.ones(3))


def real():
    return pm.Normal("x")


def impossible(build, *parts, name):
    return pytest.param(build, parts, id=name)


# the likelihood, and what the error says: the condition and the first values that break it
IMPOSSIBLE = [
    impossible(
        lambda: pm.Exponential("y", positive(), observed=[-1.0, 2.0]),
        "`y >= 0`",
        "y[0] = -1.",
        name="exponential",
    ),
    impossible(lambda: pm.Bernoulli("y", share(), observed=[0, 2]), "y[1] = 2.", name="bernoulli"),
    impossible(
        lambda: pm.Categorical("y", shares(), observed=[0, 3]), "y[1] = 3.", name="categorical"
    ),
    impossible(
        lambda: pm.TruncatedNormal("y", real(), 1, lower=0, observed=[-1.0, 2.0]),
        "y[0] = -1.",
        name="truncated-normal",
    ),
    impossible(
        lambda: pm.Truncated("y", pm.StudentT.dist(4, real()), lower=0, observed=[-1.0, 2.0]),
        "y[0] = -1.",
        name="truncated",
    ),
    impossible(
        lambda: pm.Uniform("y", 0, positive(), observed=[-1.0, 2.0]), "y[0] = -1.", name="uniform"
    ),
    impossible(
        lambda: pm.Pareto("y", positive(), 1.0, observed=[0.5, 2.0]), "y[0] = 0.5", name="pareto"
    ),
    impossible(
        lambda: pm.HalfNormal("y", positive(), observed=np.r_[np.ones(50), -1, -2, -3, -4, -5]),
        "y[50] = -1, y[51] = -2, y[52] = -3 and 2 more.",
        name="half-normal",
    ),
    impossible(
        lambda: pm.Multinomial("y", 3, shares(), observed=[[1, 1, 1], [1, 1, 2]]),
        "`sum(y) == 3`",
        "y[1] = [1, 1, 2]",
        name="multinomial",
    ),
    impossible(
        lambda: pm.OrderedLogistic("y", real(), [0.0, 1.0], observed=[0, 5]),
        "y[1] = 5",
        name="ordered-logistic",
    ),
    impossible(
        lambda: pm.Censored("y", pm.Normal.dist(real()), -1, 1, observed=[0.0, 5.0]),
        "y[1] = 5",
        name="censored",
    ),
    impossible(
        lambda: pm.VonMises("y", real(), 1.0, observed=[0.0, 5.0]), "y[1] = 5", name="von-mises"
    ),
    impossible(lambda: pm.Geometric("y", share(), observed=[1, 0]), "y[1] = 0", name="geometric"),
    impossible(lambda: pm.Geometric("y", share(), observed=0), "y = 0.", name="scalar"),
    impossible(
        lambda: pm.Exponential("y", positive(), observed=[np.nan, -1.0, 2.0]),
        "'y_observed'",
        "y_observed[0] = -1",
        name="missing-values",
    ),
    impossible(
        lambda: pm.Exponential("y", positive(), observed=pm.Data("d", [2.0, -1.0])),
        "y[1] = -1",
        name="container",
    ),
]


@pytest.mark.parametrize("build, parts", IMPOSSIBLE)
def test_impossible_data_are_refused(build, parts):
    with pm.Model() as model:
        build()
    with pytest.raises(rb.RegionError) as error:
        rb.read_region(model)
    for part in ("Observed variable 'y", *parts, "Correct the data"):
        assert part in str(error.value)


def test_data_on_the_edge_of_a_support_are_possible():
    with pm.Model() as model:
        pm.Exponential("y", positive(), observed=[0.0, 2.0])
        pm.Bernoulli("z", pm.Beta("p", 1, 1), observed=[0, 1])
    assert [c.name for c in rb.read_region(model)] == ["x.lower", "p.lower", "p.upper"]


def test_missing_values_are_not_judged_as_zeros():
    """A part of a whole with bounds of its own for each element, in which zero is impossible."""
    with pm.Model() as model:
        lower = np.array([1.0, 1.0, 1.0])
        pm.Truncated("y", pm.StudentT.dist(4), lower=lower, observed=[np.nan, 3.0, 2.0])
    assert [c.text for c in rb.read_region(model)] == ["y_unobserved > 1"]


def test_data_that_become_impossible():
    with pm.Model() as model:
        pm.Exponential("y", positive(), observed=pm.Data("d", [1.0, 2.0]))
        step = rb.RollbackHMC(rng=1)
        step.step(model.initial_point())
        step.reset_tuning()
        pm.set_data({"d": [1.0, -2.0]})
        with pytest.raises(rb.RegionError, match=r"'y'.*y\[1\] = -2"):
            step.step(model.initial_point())


def test_a_free_variable_that_data_exclude():
    def density(value, mu, d):
        return pt.switch((value > 0) & (d > 0), -0.5 * (value - mu) ** 2, -np.inf)

    with pm.Model() as model:
        data = pm.Data("d", [1.0, -1.0])
        pm.CustomDist("z", real(), data, logp=density, shape=2)
    with pytest.raises(rb.RegionError, match=r"'z'.*-inf for all values.*`d > 0`.*Correct"):
        rb.read_region(model)


# ------------------------------------------------------------------------- read, or kept as it is


def smooth_logp(model):
    return interpreted(model.value_vars, rb.read_region(model).smooth_logp())


def test_conditions_on_discrete_variables_stay():
    """No y above n: the steps of n see it in the model's density, and so does ours."""
    with pm.Model() as model:
        n, x = pm.Poisson("n", 10), share()
        pm.Binomial("z", 5, x, observed=2)
        pm.DiscreteUniform("y", 0, n, observed=[4, 2])
    read, density = smooth_logp(model), model.compile_logp(mode="FAST_COMPILE")
    for count in (3, 4, 9):
        point = {"n": np.array(count), "x_logodds__": np.array(0.3)}
        expected = density(point)
        np.testing.assert_allclose(read(*point.values()), expected)
        assert np.isfinite(expected) == (count >= 4)


def test_a_discrete_variable_bounded_by_a_continuous_one():
    def density(value, upper):
        return pt.switch(value <= upper, -value, -np.inf)

    with pm.Model() as model:
        x = pm.Uniform("x", 0, 10)
        pm.CustomDist("k", x, logp=density, dtype="int64")
    [constraint] = rb.read_region(model).joint
    assert (constraint.name, constraint.text) == ("k.support", "k <= x")


@pytest.mark.parametrize("own", [True, False], ids=["with-its-own", "alone"])
def test_conditions_on_other_variables_in_a_free_density(own):
    def density(value, mu):
        holds = (mu > 1) & (value > 0) if own else mu > 1
        return pt.switch(holds, -0.5 * (value - mu) ** 2, -np.inf)

    with pm.Model() as model:
        pm.CustomDist("z", real(), logp=density)
    assert [c.text for c in rb.read_region(model)] == ["z > 0"] * own + ["x > 1"]


class Shift(Transform):
    """A transform that we cannot know to leave the support."""

    name = "shift"

    def forward(self, value, *inputs):
        return value - 1

    def backward(self, value, *inputs):
        return value + 1

    def log_jac_det(self, value, *inputs):
        return pt.zeros_like(value)


def test_the_support_of_a_variable_that_keeps_its_transform_stays():
    with pm.Model() as model:
        pm.HalfNormal("x", default_transform=None, transform=Shift())
    assert rb.read_region(model).supports["x"].keeps == "shift"
    read = smooth_logp(model)
    assert np.isfinite(read(-0.5)) and np.isneginf(read(-1.5))
