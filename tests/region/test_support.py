import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from harness import bounds, evaluate, free_variable

import pymc_rollback as rb
from pymc_rollback.region.support import read_support

STEP = 1e-6
FAR = 30.0


def own_logp(variable):
    """PyMC's log density of a variable, as a function of its value."""
    value = variable.type()
    function = pytensor.function([value], pm.logp(variable, value), mode="FAST_COMPILE")
    return lambda x: function(np.asarray(x, dtype=float))


def assert_bounds_are_those_of_logp(logp, lower, upper, far=FAR):
    """Finite just inside of each bound, -inf outside; finite far out where there is no bound."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    start, end = np.where(low, lower, 0), np.where(high, upper, 0)
    middle = np.where(low & high, (start + end) / 2, start + end + 1.5 * low - 1.5 * high)
    for bounded, bound, out in ((low, start, -1), (high, end, 1)):
        step = out * STEP * np.maximum(1, np.abs(bound))
        assert np.all(np.isfinite(logp(np.where(bounded, bound - step, middle + out * far))))
        for beyond in (step, out * 1.0, out * far):
            outside = logp(np.where(bounded, bound + beyond, middle))
            np.testing.assert_array_equal(np.isneginf(outside), bounded)


def dist(name, *args, **kwargs):
    def make(label, **more):
        return getattr(pm, name)(label, *args, **(kwargs | more))

    return pytest.param(make, id=name)


GRID = np.linspace(-1.5, 2.5, 9)

BOUNDED = [
    dist("Beta", 2, 3),
    dist("ChiSquared", 3),
    dist("Exponential", 1.5),
    dist("Gamma", 2, 1),
    dist("HalfCauchy", 1),
    dist("HalfFlat"),
    dist("HalfNormal", 1),
    dist("HalfStudentT", 3, 1),
    dist("Interpolated", GRID, np.exp(-(GRID**2))),
    dist("InverseGamma", 2, 1),
    dist("Kumaraswamy", 2, 3),
    dist("LogNormal", 0, 1),
    dist("LogitNormal", 0, 1),
    dist("Pareto", 2, 1.7),
    dist("Rice", 1, 1),
    dist("Triangular", lower=-2, upper=3, c=1),
    dist("TruncatedNormal", 0.5, 1, lower=-1, upper=2),
    dist("Uniform", -3, 0.5),
    dist("Wald", 1, 2),
    dist("Weibull", 2, 1),
]
[INTERPOLATED] = next(param.values for param in BOUNDED if param.id == "Interpolated")
UNBOUNDED = [
    dist("AsymmetricLaplace", kappa=2, mu=0, b=1),
    dist("Cauchy", 0, 1),
    dist("ExGaussian", mu=0, sigma=1, nu=2),
    dist("Flat"),
    dist("Gumbel", 0, 1),
    dist("Laplace", 0, 1),
    dist("Logistic", 0, 1),
    dist("Moyal", 0, 1),
    dist("Normal", 0, 1),
    dist("SkewNormal", alpha=1),
    dist("SkewStudentT", 2, 3),
    dist("StudentT", 3),
]
# these two have no bounds to compare: see their own tests
APART = {"PolyaGamma", "VonMises"}


def test_all_continuous_distributions_of_pymc_are_tried():
    tried = {param.id for param in BOUNDED + UNBOUNDED}
    assert len(tried) >= 25
    assert tried | APART == set(pm.distributions.continuous.__all__)


@pytest.mark.parametrize("kwargs", [{}, {"shape": 3}, {"default_transform": None}], ids=str)
@pytest.mark.parametrize("make", BOUNDED + UNBOUNDED)
def test_bounds_are_where_logp_is_finite(make, kwargs):
    if make is INTERPOLATED and "shape" in kwargs:
        pytest.skip("PyMC has no logp for a shaped Interpolated")
    model, support = free_variable(make, **kwargs)
    # its logp rounds to log(0) further out
    far = 4.0 if support.variable.owner.op.name == "skewnormal" else FAR
    shape = (kwargs["shape"],) if "shape" in kwargs else ()
    assert_bounds_are_those_of_logp(own_logp(model["x"]), *bounds(support, shape), far=far)
    assert support.keeps is None and support.order is None and support.joint == ()


@pytest.mark.parametrize("make", BOUNDED)
def test_bounded_distributions_have_a_bound(make):
    """So that the comparison above cannot pass with a distribution in the wrong list."""
    _, support = free_variable(make)
    assert support.bounded


@pytest.mark.parametrize("make", UNBOUNDED)
def test_unbounded_distributions_have_none(make):
    model, support = free_variable(make)
    assert not support.bounded and support.text == "real line"
    assert len(rb.read_region(model)) == 0


def test_polya_gamma_is_positive():
    """Its logp needs another package to evaluate, its bound does not."""
    _, support = free_variable(pm.PolyaGamma)
    assert bounds(support) == (0, np.inf)


SHAPED = [
    pytest.param(
        lambda label: pm.Uniform(label, lower=[0, -1, 0.5], upper=[[1], [3]], shape=(2, 3)),
        [[0, -1, 0.5]] * 2,
        [[1] * 3, [3] * 3],
        id="Uniform",
    ),
    pytest.param(
        lambda label: pm.TruncatedNormal(
            label, lower=[-np.inf, 0, -1], upper=[2, np.inf, 1], shape=3
        ),
        [-np.inf, 0, -1],
        [2, np.inf, 1],
        id="TruncatedNormal",
    ),
    pytest.param(
        lambda label: pm.Truncated(
            label, pm.Normal.dist(shape=3), lower=[-np.inf, 0, -1], upper=[2, np.inf, 1]
        ),
        [-np.inf, 0, -1],
        [2, np.inf, 1],
        id="Truncated",
    ),
    pytest.param(
        lambda label: pm.Truncated(
            label, pm.Gamma.dist(2, 1, shape=2), lower=[-np.inf, 0.5], default_transform=None
        ),
        [0, 0.5],
        [np.inf, np.inf],
        id="Truncated-Gamma",
    ),
    pytest.param(
        lambda label: pm.Pareto(label, alpha=2, m=[1, 2], shape=(2, 2)),
        [[1, 2]] * 2,
        np.full((2, 2), np.inf),
        id="Pareto",
    ),
    pytest.param(
        lambda label: pm.Wald(label, mu=1, lam=1, alpha=[0.5, 2], shape=2),
        [0.5, 2],
        [np.inf, np.inf],
        id="Wald",
    ),
]


@pytest.mark.parametrize("make, lower, upper", SHAPED)
def test_array_bounds_are_read_element_by_element(make, lower, upper):
    model, support = free_variable(make)
    read = bounds(support, np.shape(lower))
    np.testing.assert_allclose(read, (lower, upper))
    assert_bounds_are_those_of_logp(own_logp(model["x"]), *read)
    slacks = pt.join(0, *(c.slack for c in rb.read_region(model)))
    rows = evaluate(slacks, [model["x"]], [np.ones(np.shape(lower))])
    assert rows.size == np.isfinite(read).sum()


TRUNCATED = [
    pytest.param(lambda: pm.Normal.dist(1, 2), 0, 3, (0, 3), id="Normal"),
    pytest.param(lambda: pm.Normal.dist(1, 2), None, 3, (-np.inf, 3), id="Normal-upper"),
    pytest.param(lambda: pm.StudentT.dist(3, 0, sigma=1), -2, None, (-2, np.inf), id="StudentT"),
    pytest.param(lambda: pm.Gamma.dist(2, 1), 0.5, 4, (0.5, 4), id="Gamma"),
    pytest.param(lambda: pm.Gamma.dist(2, 1), None, 4, (0, 4), id="Gamma-upper"),
    pytest.param(lambda: pm.Gamma.dist(2, 1), -1, 4, (0, 4), id="Gamma-below-its-support"),
    pytest.param(lambda: pm.Exponential.dist(1), 1, None, (1, np.inf), id="Exponential"),
    pytest.param(lambda: pm.Beta.dist(2, 2), 0.2, None, (0.2, 1), id="Beta"),
    pytest.param(lambda: pm.Uniform.dist(0, 5), 1, 9, (1, 5), id="Uniform"),
    pytest.param(lambda: pm.Laplace.dist(0, 1), -1, 2, (-1, 2), id="Laplace"),
    pytest.param(lambda: pm.Weibull.dist(2, 1), None, 2, (0, 2), id="Weibull"),
    pytest.param(lambda: pm.LogNormal.dist(0, 1), 0.3, 2, (0.3, 2), id="LogNormal"),
]


@pytest.mark.parametrize("default_transform", [None, "own"])
@pytest.mark.parametrize("base, lower, upper, expected", TRUNCATED)
def test_truncated(base, lower, upper, expected, default_transform):
    kwargs = {} if default_transform else {"default_transform": None}
    model, support = free_variable(
        lambda label: pm.Truncated(label, base(), lower=lower, upper=upper, **kwargs)
    )
    assert bounds(support) == expected
    assert_bounds_are_those_of_logp(own_logp(model["x"]), *bounds(support))


def test_custom_dist_with_a_support_switch():
    def logp(value, rate):
        return pt.switch((value > -1) & (value <= 2), -rate * value, -np.inf)

    model, support = free_variable(lambda label: pm.CustomDist(label, 2.0, logp=logp))
    assert bounds(support) == (-1, 2)
    assert_bounds_are_those_of_logp(own_logp(model["x"]), *bounds(support))


def test_custom_dist_from_random_variables():
    """Its logp and support are derived by PyMC: -2 times an Exponential lies below zero."""

    def dist(scale, size):
        return -2 * pm.Exponential.dist(scale, size=size)

    with pm.Model() as model:
        x = pm.CustomDist("x", 1.0, dist=dist)
    [constraint] = rb.read_region(model)
    logp = own_logp(x)
    for value in (-20.0, -0.1, 0.1, 20.0):
        positive = evaluate(constraint.slack, [x], [value]) > 0
        assert positive == np.isfinite(logp(value)) == (value < 0)


def test_custom_dist_whose_condition_is_not_a_bound():
    """A disk: a joint constraint, named after the variable."""

    def logp(value):
        return pt.switch(pt.sum(value**2) < 2, 0.0, -np.inf)

    with pm.Model() as model:
        x = pm.CustomDist("x", logp=logp, shape=2)
    region = rb.read_region(model)
    [constraint] = region
    assert constraint.kind == "joint" and constraint.name == "x.support"
    slack = pytensor.function([x], constraint.slack, mode="FAST_COMPILE")
    assert np.all(slack([1, 0.9]) > 0) and np.all(slack([1, 1.1]) < 0)


def test_shifted_wald():
    model, support = free_variable(lambda label: pm.Wald(label, mu=1, lam=2, alpha=0.5))
    assert bounds(support) == (0.5, np.inf)
    assert_bounds_are_those_of_logp(own_logp(model["x"]), *bounds(support))


DEPENDENT = [
    pytest.param(lambda y: pm.Uniform("x", 0, y), 0, lambda y: y, id="Uniform-upper"),
    pytest.param(lambda y: pm.Uniform("x", -y, 2 * y), lambda y: -y, lambda y: 2 * y, id="Uniform"),
    pytest.param(lambda y: pm.Pareto("x", 2, y), lambda y: y, np.inf, id="Pareto"),
    pytest.param(
        lambda y: pm.TruncatedNormal("x", 0, 1, lower=y), lambda y: y, np.inf, id="TruncatedNormal"
    ),
    pytest.param(
        lambda y: pm.Truncated("x", pm.Gamma.dist(2, 1), upper=y), 0, lambda y: y, id="Truncated"
    ),
    pytest.param(
        lambda y: pm.Triangular("x", lower=-1, c=0, upper=y), -1, lambda y: y, id="Triangular"
    ),
    pytest.param(lambda y: pm.Wald("x", 1, 1, alpha=y), lambda y: y, np.inf, id="Wald"),
]


@pytest.mark.parametrize("default_transform", [None, "own"])
@pytest.mark.parametrize("make, lower, upper", DEPENDENT)
def test_bounds_that_depend_on_another_variable(make, lower, upper, default_transform):
    with pm.Model() as model:
        y = pm.HalfNormal("y")
        x = make(y)
    if default_transform is None:
        model.rvs_to_transforms[x] = None
    support = rb.read_region(model).supports["x"]
    value = x.type()
    logp = pytensor.function([value, y], pm.logp(x, value), mode="FAST_COMPILE")
    for at in (0.4, 2.5):
        read = [
            np.asarray(unbounded if b is None else evaluate(pt.as_tensor(b) + 0 * y, [y], [at]))
            for b, unbounded in ((support.lower, -np.inf), (support.upper, np.inf))
        ]
        expected = [b(at) if callable(b) else b for b in (lower, upper)]
        np.testing.assert_allclose(read, expected)
        assert_bounds_are_those_of_logp(lambda x: logp(x, at), *read)  # noqa: B023


def test_dependent_bounds_are_affine_constraints():
    with pm.Model() as model:
        y = pm.HalfNormal("y")
        pm.Uniform("x", 0, y)
    region = rb.read_region(model)
    assert {c.text: c.affine for c in region} == {"y > 0": True, "x > 0": True, "x < y": True}


MULTIVARIATE = [
    pytest.param(lambda: pm.MvNormal("x", np.zeros(3), np.eye(3)), id="MvNormal"),
    pytest.param(lambda: pm.MvStudentT("x", nu=3, mu=[0, 0], scale=np.eye(2)), id="MvStudentT"),
    pytest.param(lambda: pm.AR("x", [0.5], init_dist=pm.Normal.dist(), shape=4), id="AR"),
    pytest.param(
        lambda: pm.GaussianRandomWalk("x", init_dist=pm.Normal.dist(), shape=4),
        id="GaussianRandomWalk",
    ),
]


@pytest.mark.parametrize("make", MULTIVARIATE)
def test_multivariate_without_bounds(make):
    with pm.Model() as model:
        make()
    region = rb.read_region(model)
    assert region.supports["x"].text == "real line" and len(region) == 0


def test_random_walk_with_positive_steps_is_increasing():
    """Its support is joint: each step is positive."""
    with pm.Model() as model:
        x = pm.RandomWalk(
            "x", init_dist=pm.Normal.dist(), innovation_dist=pm.Exponential.dist(1), shape=4
        )
    [constraint] = rb.read_region(model)
    slack = pytensor.function([x], constraint.slack, mode="FAST_COMPILE")
    assert np.all(slack([-1.0, 0, 2, 3]) > 0)
    assert not np.all(slack([-1.0, 0, -2, 3]) > 0)


def test_mixture_of_bounded_distributions():
    model, support = free_variable(
        lambda label: pm.Mixture(label, [0.5, 0.5], [pm.HalfNormal.dist(), pm.Exponential.dist(1)])
    )
    assert bounds(support) == (0, np.inf)
    assert_bounds_are_those_of_logp(own_logp(model["x"]), *bounds(support))


@pytest.mark.filterwarnings("ignore:No safe default transform:UserWarning")
def test_mixture_with_no_common_transform_is_not_read_as_unbounded():
    """Its logp is -inf outside (0, 2), through a logsumexp: read that, or refuse."""
    with pm.Model() as model:
        pm.Mixture("x", [0.5, 0.5], [pm.Uniform.dist(0, 1), pm.Uniform.dist(0, 2)])
    with pytest.raises(rb.RegionError, match=r"'x'.*transform"):
        rb.read_region(model)


def test_hidden_gap_in_a_custom_density_is_refused():
    """A condition that is no comparison: the error names the variable and the remedy."""

    def logp(value):
        return pt.switch(pt.isnan(pt.sqrt(pt.sin(value))), -np.inf, -(value**2))

    with pm.Model() as model:
        pm.CustomDist("x", logp=logp)
    with pytest.raises(rb.RegionError, match=r"'x'.*comparisons.*transform"):
        rb.read_region(model)


def test_support_text():
    texts = {
        "real line": pm.Normal.dist(),
        "(0, inf)": pm.HalfNormal.dist(),
        "(-1, 2)": pm.Uniform.dist(-1, 2),
        "(-inf, 3)": pm.TruncatedNormal.dist(upper=3),
    }
    for text, variable in texts.items():
        assert read_support(variable, None).text == text


def test_supports_of_data_bounds_follow_set_data():
    with pm.Model() as model:
        top = pm.Data("top", 2.0)
        pm.Uniform("x", 0, top)
    support = rb.read_region(model).supports["x"]
    assert evaluate(support.upper) == 2
    with model:
        pm.set_data({"top": 5.0})
    assert evaluate(support.upper) == 5
