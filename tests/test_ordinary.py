"""Ordinary models, as users write them: each is read, described and sampled."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions import transforms

import pymc_rollback as rb

LATER = pytest.mark.slow, pytest.mark.newest


def interpreted_step(model):
    """A step that compiles little, slow tests included."""
    with pytest.warns(UserWarning, match="The kernels call back into Python"):
        return rb.RollbackHMC(model=model, rng=1, compile_kwargs={"mode": "FAST_COMPILE"})


def check_draws(model):
    """The log density of each of a few draws is that of the model, and finite."""
    step, true = interpreted_step(model), model.compile_logp(mode="FAST_COMPILE")
    point, logps, expected = model.initial_point(), [], []
    for _ in range(3):
        point, [stats] = step.step(point)
        logps.append(stats["model_logp"])
        expected.append(true(point))
    assert np.all(np.isfinite(expected))
    np.testing.assert_allclose(logps, expected, rtol=1e-8)


COUNTS = np.array([3, 4, 5])
ROWS = np.random.default_rng(0).normal(size=(20, 3))


def shares():
    p1, p2 = pm.Uniform("p1", 0, 1), pm.Uniform("p2", 0, 1)
    p3 = 1 - p1 - p2
    rb.constrain("p3", p3 > 0)
    pm.Multinomial("votes", n=12, p=pt.stack([p1, p2, p3]), observed=COUNTS)


def correlations():
    r = pm.Uniform("r", -1, 1, shape=3)
    rows = [[1.0, r[0], r[1]], [r[0], 1.0, r[2]], [r[1], r[2], 1.0]]
    return r, pt.stack([pt.stack(row) for row in rows])


def eigenvalues():
    _, matrix = correlations()
    rb.constrain("definite", pt.linalg.eigh(matrix)[0] > 1e-6)
    pm.MvNormal("y", np.zeros(3), cov=matrix, observed=ROWS)


def minors():
    r, matrix = correlations()
    rb.constrain("second", 1 - r[0] ** 2 > 0)
    rb.constrain("third", pt.linalg.det(matrix) > 0)
    pm.MvNormal("y", np.zeros(3), cov=matrix, observed=ROWS)


def starts_inside(model):
    region = rb.read_region(model)
    slacks = region.evaluate([c.slack for c in region], region.start)
    return all(np.all(slack > 0) for slack in slacks)


def many_shares():
    p = pm.Uniform("p", 0, 1, shape=8)
    rb.constrain("rest", 1 - pt.sum(p) > 0)
    shares = pt.concatenate([p, 1 - pt.sum(p, keepdims=True)])
    pm.Multinomial("votes", n=45, p=shares, observed=np.arange(1, 10))


@pytest.mark.parametrize(
    "build", [many_shares, *(pytest.param(f, marks=LATER) for f in (shares, eigenvalues, minors))]
)
def test_invalid_parameters_outside_the_region_are_no_error(build):
    with pm.Model() as model:
        build()
    description = rb.describe(model)
    assert not any("starting point" in row.why for row in description.variables)
    assert starts_inside(model)
    check_draws(model)


def rates():
    p = pm.Uniform("p", 0, 1, shape=3, transform=transforms.ordered)
    pm.Binomial("wins", 10, p, observed=[2, 5, 7])


def many_rates():
    p = pm.Uniform("p", 0, 1, shape=300, transform=transforms.ordered)
    pm.Binomial("wins", 10, p, observed=np.repeat([2, 5, 7], 100))


def thresholds():
    mu, sigma = pm.Normal("mu", 3, 2), pm.HalfNormal("sigma", 2)
    cutpoints = pm.Normal("cutpoints", 3, 2, shape=6, transform=transforms.ordered)
    answers = np.tile(np.arange(7), 5)
    pm.OrderedProbit("y", eta=mu, sigma=sigma, cutpoints=cutpoints, observed=answers)


def at_a_bound():
    x = pm.Uniform("x", 0, 1, initval=0.0)
    pm.Binomial("wins", 10, x, observed=3)


def descending_pairs():
    order = transforms.Ordered(ascending=False)
    x = pm.Normal("x", shape=(2, 3), transform=order)
    pm.Normal("y", pt.log(x[:, 0] - x[:, 1]), 1, observed=[0.1, 0.2])


def hidden_states():
    counts = np.random.default_rng(1).poisson(np.repeat([2, 9], 20))
    rates = pm.Gamma("rates", 2, 0.5, shape=2, transform=transforms.ordered)
    moves = pm.Dirichlet("moves", np.full((2, 2), 2.0))
    given = pm.logp(pm.Poisson.dist(rates[None, :]), counts[:, None])

    def forward(now, before, moves):
        return pt.logsumexp(before[:, None] + pt.log(moves), axis=0) + now

    first = given[0] - np.log(2)
    alphas = pytensor.scan(forward, given[1:], [first], [moves], return_updates=False)
    pm.Potential("likelihood", pt.logsumexp(alphas[-1]))


TIES = [rates, many_rates, at_a_bound, descending_pairs]
TIES += [pytest.param(build, marks=LATER) for build in (thresholds, hidden_states)]


@pytest.mark.parametrize("build", TIES)
def test_a_start_is_found_where_pymc_starts_at_a_tie_or_a_bound(build):
    with pm.Model() as model:
        build()
    assert not np.all(np.isfinite(np.concatenate([*map(np.ravel, model.initial_point().values())])))
    description = rb.describe(model)
    assert not any("starting point" in row.why for row in description.variables)
    assert starts_inside(model)
    check_draws(model)


def test_a_start_is_found_where_the_density_is_finite():
    """A scale of zero at and around the initial point, which no constraint forbids."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 5)
        pm.Normal("y", 0, pt.maximum(pt.abs(x) - 3, 0), observed=[1.0, 2.0])
    check_draws(model)


def test_a_start_is_as_near_as_chance_allows():
    """The density is zero on one side of PyMC's start: a few tries nearby find the other side."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Poisson("y", x[0], observed=[1, 2])
    step = interpreted_step(model)
    for seed in range(20):
        step.set_rng(np.random.default_rng(seed))
        point, _ = step.step(model.initial_point())
        assert np.all(np.abs(point["x"]) < 10)


GRID = np.linspace(-3.0, 3.0, 61)
BELL = np.exp(-(GRID**2) / 2)


# PyMC's Op for splines has its gradient under an old name
@pytest.mark.filterwarnings("ignore:SplineWrapper should implement:FutureWarning")
@pytest.mark.parametrize("options", [{}, {"shape": 2}, {"observed": [0.1, 0.3]}], ids=str)
def test_interpolated(options):
    with pm.Model() as model:
        mu = pm.HalfNormal("mu")
        pm.Interpolated("x", GRID, BELL, **options)
        pm.Potential("mean", -(mu**2))
    region = rb.read_region(model)
    assert ("x.upper" in {c.name for c in region}) == ("observed" not in options)
    check_draws(model)


ALWAYS = {
    "a constant": (lambda x, d: pt.constant(1.0) > 0, []),
    "true": (lambda x, d: pt.constant(np.array(True)), []),
    "data": (lambda x, d: d > 0, []),
    "data at the edge": (lambda x, d: d[0] >= 1, []),
    "data at the edge of a negation": (lambda x, d: ~(d[0] < 1), []),
    "decided by data": (lambda x, d: (d >= 1) | (x > 5), []),
    "in part": (lambda x, d: (d[0] > 0) & (x < 3), ["x < 3"]),
    "within the support": (lambda x, d: x > -1, ["x > -1"]),
    "of a square": (lambda x, d: x**2 >= 0, ["x**2 >= 0"]),
    "terms that cancel": (lambda x, d: x - x < 1, ["x - x < 1"]),
    "of an exponential": (lambda x, d: pt.exp(-x) > 0, ["exp(-x) > 0"]),
}


@pytest.mark.parametrize("condition, texts", ALWAYS.values(), ids=ALWAYS)
def test_constraints_that_always_hold_are_accepted(condition, texts):
    with pm.Model() as model:
        x, d = pm.HalfNormal("x"), pm.Data("d", [1.0, 2.0])
        rb.constrain("c", condition(x, d))
    assert [c.text for c in rb.read_region(model).joint] == texts


def test_changed_data_that_break_a_constraint_are_refused():
    with pm.Model() as model:
        x, d = pm.HalfNormal("x"), pm.Data("d", [1.0, 2.0])
        rb.constrain("c", (d > 0) & (x < 3))
        pm.set_data({"d": [1.0, -2.0]})
    with pytest.raises(rb.RegionError, match=r"'c': `d > 0` fails.*Change the data"):
        rb.read_region(model)


@pytest.mark.parametrize("settle", [pm.do, pm.observe])
@pytest.mark.parametrize("condition", [lambda x: x >= 0, lambda x: (x >= 0) & (x**2 < 4)])
def test_constraints_that_interventions_and_observations_settle(settle, condition):
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Normal("z", x)
        rb.constrain("c", condition(x))
    held = settle(model, {"x": 0.0})
    assert len(rb.read_region(held)) == 0
    check_draws(held)
    with pytest.raises(rb.RegionError, match=r"'c': `.*` fails, whatever .*pm.do.*remove"):
        rb.read_region(settle(model, {"x": -1.0}))
