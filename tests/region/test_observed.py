"""Observed variables: what they constrain, and their missing values, which PyMC makes free."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from test_region import compiled, logp, slack

import pymc_rollback as rb

pytestmark = pytest.mark.filterwarnings("ignore::pymc.exceptions.ImputationWarning")

ERROR_RATE = 1e-4
BATCHES = 50
OBSERVED = np.array([0.3, 2.0, 1.1])


@pytest.mark.parametrize("data", [OBSERVED, "container"], ids=["array", "container"])
def test_observed_support(data):
    """``y ~ Uniform(0, theta)`` constrains theta to lie above all of y."""
    with pm.Model() as model:
        theta = pm.HalfNormal("theta", sigma=5)
        y = pm.Data("y_data", OBSERVED) if data is not OBSERVED else OBSERVED
        pm.Uniform("y", 0, theta, observed=y)
    joint = [c for c in rb.read_region(model) if c.kind == "joint"]
    assert all(c.affine and c.name.startswith("y.support") for c in joint)
    read, density = compiled(model, [c.slack for c in joint]), logp(model)
    for value in (0.5, 1.5, 2.5, 9.0):
        rows = np.concatenate(read(theta=value))
        inside = np.isfinite(density(theta_log__=np.log(value)))
        assert np.all(rows > 0) == inside == (value > OBSERVED.max())


def test_observed_shift():
    """The support of a shifted Wald: the shift lies below all data."""
    with pm.Model() as model:
        shift = pm.Normal("shift")
        pm.Wald("y", mu=1, lam=1, alpha=shift, observed=OBSERVED)
    region = rb.read_region(model)
    rows = compiled(model, [c.slack for c in region])
    assert np.all(np.concatenate(rows(shift=0.2)) > 0)
    assert np.any(np.concatenate(rows(shift=0.4)) < 0)


@pytest.mark.parametrize("data", [OBSERVED, None], ids=["array", "container"])
def test_observed_in_a_constraint_is_its_data(data):
    with pm.Model() as model:
        mu = pm.Normal("mu")
        y = pm.Normal("y", mu, observed=pm.Data("y_data", OBSERVED) if data is None else data)
        rb.constrain("below", mu < y)
    [constraint] = rb.read_region(model)
    assert constraint.text == "mu < y" and constraint.affine
    np.testing.assert_allclose(slack(model, "below")(mu=0.1), OBSERVED - 0.1)


def test_free_variables_that_depend_on_observed_ones():
    with pm.Model() as model:
        x = pm.Normal("x", observed=OBSERVED)
        z = pm.HalfNormal("z", pm.math.exp(x), shape=OBSERVED.size)
        rb.constrain("sum", z.sum() < 4)
    z = np.arange(1.0, OBSERVED.size + 1)
    np.testing.assert_allclose(slack(model, "sum")(z=z), [4 - z.sum()])
    np.testing.assert_allclose(slack(model, "z.lower")(z=z), z)


def test_observed_without_elements():
    with pm.Model() as model:
        theta = pm.HalfNormal("theta")
        pm.Uniform("y", 0, theta, observed=np.zeros(0))
    assert [c.name for c in rb.read_region(model)] == ["theta.lower"]


@pytest.mark.parametrize("data", [np.array, lambda x: pm.Data("data", x)])
def test_observed_simplex(data):
    with pm.Model() as model:
        a = pm.HalfNormal("a", shape=3)
        pm.Dirichlet("y", a, observed=data([0.2, 0.3, 0.5]))
    assert [c.name for c in rb.read_region(model)] == ["a.lower"]


def test_observed_on_the_edge_of_a_simplex():
    with pm.Model() as model:
        a = pm.HalfNormal("a", shape=3)
        pm.Dirichlet("y", a, observed=[0.5, 0.5, 0.0])
    with pytest.raises(rb.RegionError, match=r"'y'.*equality.*constraints=\{'y': g\}"):
        rb.read_region(model)
    region = rb.read_region(model, constraints={"y": a[2] - 1})
    assert [c.text for c in region] == ["a > 0", "a[2] - 1 > 0"]


def test_observed_without_support_constraints():
    with pm.Model() as model:
        mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
        pm.Normal("y", mu, sigma, observed=OBSERVED)
        pm.Exponential("z", sigma, observed=OBSERVED)
    assert [c.name for c in rb.read_region(model)] == ["sigma.lower"]


@pytest.mark.parametrize("then, now", [(0, 1), (1, 0), (2, 3)])
def test_data_of_another_size_are_refused_where_they_constrain(then, now):
    with pm.Model() as model:
        y = pm.Data("y", np.full(then, 3.5))
        theta = pm.Normal("theta", 5, 1)
        pm.Uniform("o", 0, theta, observed=y)
        step = rb.RollbackHMC(rng=1)
        step.step(model.initial_point())
        step.reset_tuning()
        pm.set_data({"y": np.full(now, 3.5)})
        with pytest.raises(rb.RegionError, match=r"data have changed.*Make another"):
            step.step(model.initial_point())


def test_variables_of_another_size_are_refused():
    with pm.Model(coords={"i": range(2)}) as model:
        y = pm.Data("y", np.ones(2), dims="i")
        rate = pm.HalfNormal("rate", dims="i")
        pm.Normal("o", rate, 1, observed=y, dims="i")
        step = rb.RollbackHMC(rng=1)
        pm.set_data({"y": np.ones(3)}, coords={"i": range(3)})
        with pytest.raises(rb.RegionError, match=r"data have changed.*shape of rate_log__"):
            step.step(model.initial_point())


def test_data_of_the_same_size_may_change():
    with pm.Model() as model:
        y = pm.Data("y", np.array([3.5, 1.0]))
        theta = pm.Normal("theta", 5, 1, initval=8)
        pm.Uniform("o", 0, theta, observed=y)
        step = rb.RollbackHMC(rng=1)
        pm.set_data({"y": np.array([6.5, 7.0])})
        point = model.initial_point()
        for _ in range(50):
            point, _ = step.step(point)
            assert point["theta"] > 7


def test_a_mask_that_is_not_in_the_density():
    with pm.Model() as model:
        free = pm.Data("free", np.array([True, True]))
        x = pm.Normal("x")
        pm.CustomDist("y", x, free, logp=unless, observed=np.zeros(2))
        assert [c.name for c in rb.read_region(model)] == []
        step = rb.RollbackHMC(rng=1)
        pm.set_data({"free": np.array([True, False])})
        with pytest.raises(rb.RegionError, match="data have changed"):
            step.step(model.initial_point())


def unless(value, x, free):
    return pt.switch(free, 0.0, pt.switch(x > 1, 0.0, -np.inf)) + 0 * value


def in_a_union(flag, x):
    return ((flag > 0) & (x > 0)) | (x < -1)


def in_any(flag, x):
    return pt.any(pt.stack([(flag > 0) & (x > 0), x < -1]))


@pytest.mark.parametrize("condition", [in_a_union, in_any])
def test_data_that_decided_a_part_of_a_union_may_not_change(condition):
    with pm.Model():
        flag, x = pm.Data("flag", 1.0), pm.Normal("x", initval=0.5)
        rb.constrain("c", condition(flag, x))
        step = rb.RollbackHMC(rng=1)
        pm.set_data({"flag": -1.0})
        with pytest.raises(rb.RegionError, match=r"data have changed.*Make another"):
            step.step({"x": np.array(-2.0)})


def test_data_choose_between_conditions():
    with pm.Model() as model:
        flag, x = pm.Data("flag", 1.0), pm.Normal("x")
        low, high = (pt.switch(c, 0.0, -np.inf) for c in (x > 0, x < 0))
        pm.Potential("c", pt.switch(flag > 0, low, high))
    [constraint] = rb.read_region(model)
    assert constraint.text == "(flag <= 0) or (x > 0)"


def test_parameters_that_are_observed():
    """The model's own z, not a copy: an observed variable in a bound is its data."""
    with pm.Model() as model:
        a = pm.Normal("a", initval=0.2)
        z = pm.Normal("z", a, 2, observed=[0.3, 0.4])
        pm.Uniform("y", a - z, a + z, observed=[0.1, 0.2])
    assert [c.text for c in rb.read_region(model)] == [
        "[0.1, 0.2] >= a - z",
        "[0.1, 0.2] <= a + z",
    ]


def test_random_data_are_refused():
    with pm.Model() as model:
        theta = pm.HalfNormal("theta")
        batch = pm.Minibatch(np.arange(5.0), batch_size=2)
        pm.Uniform("y", 0, theta, observed=batch, total_size=5)
    with pytest.raises(rb.RegionError, match=r"'y'.*Minibatch.*all data"):
        rb.read_region(model)


def censored():
    u = pm.Normal("u", 1, 1, initval=2.0)
    pm.Censored("y", pm.Normal.dist(), lower=None, upper=u, observed=[0.2, 0.7])


def shifted_uniform():
    u = pm.Normal("u", 3, 1, initval=3.0)
    pm.CustomDist(
        "y", u, dist=lambda u, size: pm.Uniform.dist(0, u, size=size) + 1, observed=[1.2, 1.7]
    )


def shifted_by_a_variable():
    u = pm.Normal("u")
    pm.CustomDist(
        "y", u, dist=lambda u, size: pm.Exponential.dist(1, size=size) - u, observed=[-0.7, 2.0]
    )


@pytest.mark.parametrize("make", [censored, shifted_uniform, shifted_by_a_variable])
def test_supports_that_pymc_derives(make):
    """PyMC writes these densities in terms of copies of their parameters; all have u > 0.7."""
    with pm.Model() as model:
        make()
    [joint] = [c for c in rb.read_region(model) if c.kind == "joint"]
    read, density = compiled(model, [joint.slack]), logp(model)
    for u in (0.6, 0.8):
        assert np.all(np.concatenate(read(u=u)) > 0) == np.isfinite(density(u=u)) == (u > 0.7)


def test_a_bound_by_one_observation_is_a_bound():
    with pm.Model() as model:
        theta = pm.HalfNormal("theta", 5)
        pm.Uniform("y", 0, theta, observed=1.5)
    assert rb.read_region(model).cut_supports["theta"].text == "(1.5, inf)"


# ------------------------------------------------------------------------------- missing values


def truncated(lower, upper, observed):
    return pm.Truncated("y", pm.StudentT.dist(4), lower=lower, upper=upper, observed=observed)


def texts(model):
    return [c.text for c in rb.read_region(model)]


def test_bounds_of_missing_values():
    with pm.Model() as model:
        truncated(0.5, [2, 3, 4, 5], [1.0, np.nan, 1.5, np.nan])
    region = rb.read_region(model)
    assert [c.text for c in region] == ["y_unobserved > 0.5", "y_unobserved < [3, 5]"]
    np.testing.assert_array_equal(region.supports["y_unobserved"].upper.eval(), [3, 5])


def test_bounds_of_missing_values_that_move():
    with pm.Model() as model:
        low = pm.HalfNormal("low")
        truncated(low, 5, [1.0, np.nan, 1.5])
    assert texts(model) == [
        "low > 0",
        "y_unobserved > low",
        "y_unobserved < 5",
        "y_observed >= low",
    ]
    assert rb.read_region(model)["y_observed.support"].slack.eval({low: 0.75}).tolist() == [
        0.25,
        0.75,
    ]


def test_missing_values_of_named_dimensions():
    with pm.Model(coords={"i": range(3)}) as model:
        pm.Truncated("y", pm.StudentT.dist(4), lower=0, observed=[1.0, np.nan, 2.0], dims="i")
    assert texts(model) == ["y_unobserved > 0"]


@pytest.mark.parametrize("observed", [None, [np.nan]])
def test_censored_variables_are_refused(observed):
    with pm.Model() as model:
        pm.Censored("y", pm.Normal.dist(), lower=0, upper=None, observed=observed)
    with pytest.raises(rb.RegionError, match=r"'y(_unobserved)?'.*censored.*probability"):
        rb.read_region(model)


def test_missing_values_without_bounds():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        observed = np.array([[1.0, np.nan], [0.3, 0.4]])
        pm.MvNormal("y", np.zeros(2), scale * np.eye(2), observed=observed)
    assert texts(model) == ["scale > 0"]


def test_missing_values_of_a_simplex_are_refused():
    with pm.Model() as model:
        pm.Dirichlet("y", np.ones(3), observed=[0.2, 0.3, np.nan])
    with pytest.raises(rb.RegionError, match=r"'y_unobserved'.*bounded by the observed ones"):
        rb.read_region(model)


def p_value(x, lower, upper):
    """Of the first two moments of what would be uniform, tested by the means of batches."""
    student = stats.t(4)
    low, high = student.cdf([lower, upper])
    uniform = (student.cdf(x) - low) / (high - low)
    moments = [uniform - 1 / 2, uniform**2 - 1 / 3]
    batches = (moment.reshape(BATCHES, -1).mean(axis=1) for moment in moments)
    return 2 * min(stats.ttest_1samp(batch, 0).pvalue for batch in batches)


@pytest.mark.slow
def test_draws_of_missing_values():
    """A right sampler fails with a probability of 1e-4; a bound that is not there is noticed."""
    with pm.Model():
        truncated(0.5, 2.0, [1.0, np.nan])
        trace = pm.sample(
            3000,
            tune=300,
            chains=1,
            step=rb.RollbackHMC(),
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    draws = trace.posterior["y_unobserved"].values.ravel()
    assert p_value(draws, 0.5, 2.0) > ERROR_RATE
    assert p_value(draws, 0.5, 2.5) < 1e-8
