"""The model without some of its constraints has the log density that it should have."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_rollback as rb
from pymc_rollback.diagnostics.wider import require_proper, widen

ordered = pm.distributions.transforms.ordered


def wider_of(model, *names):
    region = rb.read_region(model)
    return widen(region, [region[name] for name in names])


def log_density(model, **values):
    """Log density at values by the name of their value variables."""
    point = {name: np.asarray(value, dtype=float) for name, value in values.items()}
    return float(model.compile_logp(mode="FAST_COMPILE")(point))


def test_a_potential_leaves_its_finite_part():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("c", pt.switch(x > 0, -3.0 * x, -np.inf))
        rb.constrain("other", x < 5)
    wider, slacks = wider_of(model, "c")
    assert [p.name for p in wider.potentials] == ["other", "c"]
    assert log_density(wider, x=-2) == pytest.approx(stats.norm.logpdf(-2) + 6)
    assert log_density(wider, x=6) == -np.inf
    assert list(slacks) == ["c"]
    # the user's model has not changed
    assert log_density(model, x=-2) == -np.inf and len(model.potentials) == 2


def test_a_part_of_a_potential_leaves_the_others():
    with pm.Model() as model:
        x = pm.Normal("x")
        rb.constrain("slab", x, between=(1, 2))
    wider, _ = wider_of(model, "slab[0]")
    assert log_density(wider, x=0) == pytest.approx(stats.norm.logpdf(0))
    assert log_density(wider, x=3) == -np.inf


def test_an_order_leaves_the_variable_as_it_is():
    with pm.Model() as model:
        x = pm.Normal("x", shape=3, transform=ordered, initval=[0.0, 1.0, 2.0])
        pm.Deterministic("twice", 2 * x)
        pm.Normal("y", x.sum(), 1, observed=1.0)
    wider, slacks = wider_of(model, "x.order")
    at = np.array([2.0, 0.0, -1.0])
    assert log_density(wider, x=at) == pytest.approx(stats.norm.logpdf(at).sum() - 0.9189385)
    [slack] = wider.replace_rvs_by_values(list(slacks.values()))
    np.testing.assert_array_equal(slack.eval({wider.value_vars[0]: at}), [-2, -1])
    assert "x_ordered__" in {v.name for v in model.value_vars}


def test_an_order_of_positive_variables_keeps_their_bound():
    with pm.Model() as model:
        pm.HalfNormal("x", shape=2, transform=ordered, initval=[1.0, 2.0])
    wider, _ = wider_of(model, "x.order")
    assert [v.name for v in wider.value_vars] == ["x_log__"]
    with_both, _ = wider_of(model, "x.order", "x.lower")
    value = log_density(with_both, x=[1.0, -1.0])
    assert value == pytest.approx(2 * stats.norm.logpdf(1))


@pytest.mark.parametrize(
    ("make", "whole"),
    [
        (lambda: pm.HalfNormal("x", 2.0), stats.norm(0, 2)),
        (lambda: pm.HalfCauchy("x", 2.0), stats.cauchy(0, 2)),
        (lambda: pm.HalfStudentT("x", 3, 2.0), stats.t(3, 0, 2)),
        (lambda: pm.TruncatedNormal("x", 1.0, 2.0, lower=0.0), stats.norm(1, 2)),
        (lambda: pm.Truncated("x", pm.Logistic.dist(1, 2), lower=0.0), stats.logistic(1, 2)),
        (lambda: pm.Normal("x", 1, 2, transform=pm.distributions.transforms.log), stats.norm(1, 2)),
    ],
    ids=["HalfNormal", "HalfCauchy", "HalfStudentT", "TruncatedNormal", "Truncated", "transform"],
)
def test_a_bound_leaves_the_distribution_that_was_cut(make, whole):
    """Also where other variables depend on it."""
    with pm.Model() as model:
        x = make()
        pm.Normal("y", x, 1, observed=0.5)
    wider, _ = wider_of(model, "x.lower")
    value = log_density(wider, x=-1.5)
    assert value == pytest.approx(whole.logpdf(-1.5) + stats.norm.logpdf(2.0))


def test_one_of_two_bounds_leaves_the_other():
    with pm.Model() as model:
        pm.Truncated("x", pm.Normal.dist(0, 1), lower=-1, upper=1)
    wider, _ = wider_of(model, "x.lower")
    assert log_density(wider, x=-2) == pytest.approx(stats.norm.logpdf(-2))
    assert log_density(wider, x=2) == -np.inf


@pytest.mark.parametrize(
    "make",
    [
        lambda: pm.Exponential("x", 1.0),
        lambda: pm.TruncatedNormal("x", pm.Normal("mu"), 1.0, lower=0.0),
        lambda: pm.Truncated("x", pm.Normal.dist(0, pm.HalfNormal("s")), lower=0.0),
    ],
    ids=["no wider one", "divided by what depends on mu", "divided by what depends on s"],
)
def test_a_bound_without_which_there_is_no_model(make):
    with pm.Model() as model:
        make()
    with pytest.raises(rb.RegionError, match=r"x.lower: the density of 'x' is not defined beyond"):
        wider_of(model, "x.lower")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: pm.Flat("x"), "Flat"),
        (lambda: pm.HalfFlat("x"), "HalfFlat"),
        (lambda: pm.ICAR("x", W=np.array([[0, 1], [1, 0]])), "ICAR"),
    ],
)
def test_improper_priors_are_refused(make, kind):
    with pm.Model() as model:
        make()
    with pytest.raises(ValueError, match=f"'x' has the improper prior {kind}: .*of='posterior'"):
        require_proper(model)
