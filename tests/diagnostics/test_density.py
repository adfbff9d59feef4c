"""Density of a slack at its wall, from exact draws, where it is known.

Each estimate must be within 5 of its own standard errors and 4 % of the truth, which is what the
kernel is biased by at most here: a right one fails for one seed in a million. Standard errors are
below a tenth of the truth, so that errors of half of it are always seen. The control is a kernel
without its correction.
"""

import numpy as np
import pymc as pm
import pytest
from harness import as_idata
from scipy import stats

import pymc_rollback as rb
from pymc_rollback.diagnostics import density
from pymc_rollback.diagnostics.density import own_bounds, terms_by_slack, terms_by_slope
from pymc_rollback.diagnostics.draws import RegionDraws
from pymc_rollback.diagnostics.errors import standard_error

MANY, SOME = (4, 2500), (4, 500)
"""Chains and draws for an estimate by slacks, and by slopes, which needs fewer."""


def drawn(distribution, size=SOME, seed=1):
    return distribution.rvs(size=size, random_state=np.random.default_rng(seed))


def assert_density(terms, truth):
    error = standard_error(terms)
    assert error < 0.1 * max(truth, 0.1)
    assert abs(terms.mean() - truth) <= 5 * error + 0.04 * truth


KNOWN = [
    (stats.halfnorm(), 0.7979),
    (stats.expon(), 1.0),
    (stats.uniform(), 1.0),
    (stats.gamma(2), 0.0),
    (stats.truncnorm(-0.5, np.inf, loc=0.5), stats.norm.pdf(0.5) / stats.norm.cdf(0.5)),
    (stats.halfcauchy(), 2 / np.pi),
    (stats.norm(50, 1), 0.0),
]


@pytest.mark.parametrize(("distribution", "truth"), KNOWN, ids=lambda x: getattr(x, "dist", None))
def test_by_slacks(distribution, truth):
    """A density of zero that rises from there is seen as 0.06 by a kernel of finite width."""
    terms = terms_by_slack(drawn(distribution, MANY))
    if distribution.dist.name == "gamma":
        assert 0 < terms.mean() < 0.1
    else:
        assert_density(terms, truth)


def test_a_kernel_without_its_correction_is_seen(monkeypatch):
    monkeypatch.setattr(density, "MOMENTS", (1 / 2, 0.0, 1 / 10))
    terms = terms_by_slack(drawn(stats.expon(), MANY))
    with pytest.raises(AssertionError):
        assert_density(terms, 1.0)


def by_slope(make, draws):
    with pm.Model() as model:
        make()
    return terms_by_slope(RegionDraws(model, as_idata(x=draws)))


def normal_in(lower, upper):
    def make():
        x = pm.Normal("x")
        rb.constrain("c", x, between=(lower, upper))

    return make


@pytest.mark.parametrize(
    ("make", "distribution", "truths"),
    [
        (lambda: pm.HalfNormal("x"), stats.halfnorm(), {"x.lower": 0.7979}),
        (lambda: pm.Exponential("x", 2.0), stats.expon(scale=0.5), {"x.lower": 2.0}),
        (lambda: pm.Uniform("x", 0, 2), stats.uniform(0, 2), {"x.lower": 0.5, "x.upper": 0.5}),
        (
            lambda: pm.TruncatedNormal("x", 0, 1, upper=0.5),
            stats.truncnorm(-np.inf, 0.5),
            {"x.upper": stats.norm.pdf(0.5) / stats.norm.cdf(0.5)},
        ),
        (
            normal_in(-1.0, 0.5),
            stats.truncnorm(-1, 0.5),
            {
                "c[0]": stats.truncnorm(-1, 0.5).pdf(-1),
                "c[1]": stats.truncnorm(-1, 0.5).pdf(0.5),
            },
        ),
    ],
    ids=["half normal", "exponential", "uniform", "upper", "both"],
)
def test_by_slopes(make, distribution, truths):
    terms = by_slope(make, drawn(distribution))
    assert set(terms) == set(truths)
    for name, truth in truths.items():
        assert_density(terms[name][..., 0], truth)


def test_by_slopes_given_data_and_a_scale():
    """What else is in the model has its part in the slope."""
    with pm.Model() as model:
        x = pm.HalfNormal("x", 2.0, shape=2)
        pm.Normal("y", x, 1.0, observed=[-1.0, 1.0])
    sd = np.sqrt(0.8)
    truth = [stats.truncnorm(-m / sd, np.inf, m, sd) for m in (-0.8, 0.8)]
    draws = np.stack([drawn(t, seed=seed) for seed, t in enumerate(truth)], axis=2)
    [terms] = terms_by_slope(RegionDraws(model, as_idata(x=draws))).values()
    for i, distribution in enumerate(truth):
        assert_density(terms[..., i], distribution.pdf(0))


def test_a_wall_that_is_far_away_has_no_density():
    terms = by_slope(lambda: pm.TruncatedNormal("x", 9, 1, lower=0), drawn(stats.norm(9, 1)))
    assert np.all(terms["x.lower"] == 0)


def test_both_estimates_agree():
    x = drawn(stats.halfnorm(), MANY, seed=5)
    slopes = by_slope(lambda: pm.HalfNormal("x"), x)["x.lower"]
    assert slopes.mean() == pytest.approx(terms_by_slack(x).mean(), rel=0.1)


def test_where_slopes_tell():
    """A variable in another constraint, or whose density ends in zero, does not."""
    with pm.Model() as model:
        pm.HalfNormal("alone")
        in_sum = pm.HalfNormal("in_sum")
        other = pm.HalfNormal("other")
        rb.constrain("sum", in_sum + other < 3)
        pm.Uniform("top", 0, pm.HalfNormal("moves"))
        pm.Gamma("rises", 3, 1)
        pm.Uniform("both", 0, 1)
        z = pm.Normal("z", shape=2)
        rb.constrain("positive", z > 0)
        rb.constrain("twice", pm.Exponential("cut", 1.0) > 1)
    found = {name: list(sides) for name, sides in own_bounds(rb.read_region(model)).items()}
    assert found == {"alone": [1], "both": [1, -1], "z": [1]}
