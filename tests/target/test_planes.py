"""Affine constraints: which of them are planes that reflect, and that the draws are right."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_rollback as rb
from pymc_rollback.target import walls

COVARIANCE = np.array([[1.0, 0.6, 0.0], [0.6, 2.0, -0.5], [0.0, -0.5, 1.0]])
ERROR_RATE = 1e-4


def region():
    """Correlated normals below two planes and in a disk; a bounded variable below a plane."""
    with pm.Model() as model:
        x = pm.MvNormal("x", np.zeros(3), COVARIANCE)
        t = pm.Exponential("t", 1.0)
        rb.constrain("planes", pm.math.stack([x[0] + x[1] + t, x[0] - 2 * x[2]]) < 1)
        rb.constrain("disk", x[0] ** 2 + x[1] ** 2 < 4)
    return model


def exact_draws(n):
    """The same by rejection."""
    rng = np.random.default_rng(2)
    x, t = rng.multivariate_normal(np.zeros(3), COVARIANCE, n), rng.exponential(size=n)
    inside = (x[:, 0] + x[:, 1] + t < 1) & (x[:, 0] - 2 * x[:, 2] < 1)
    return np.c_[x, t][inside & (x[:, 0] ** 2 + x[:, 1] ** 2 < 4)]


def names(step):
    plan = step.plan
    return [c.name for c in plan.planes], [c.name for c in plan.barriers]


def test_affine_constraints_are_planes():
    model = region()
    assert names(rb.RollbackHMC(model=model)) == (["planes"], ["disk"])
    # a sharpness asks for a barrier, for all constraints or by name
    assert names(rb.RollbackHMC(model=model, sharpness=9.0)) == ([], ["planes", "disk"])
    assert names(rb.RollbackHMC(model=model, sharpness={"planes": 9.0})) == ([], ["planes", "disk"])
    assert names(rb.RollbackHMC(model=model, sharpness={"disk": 9.0})) == (["planes"], ["disk"])


def test_planes_are_named_where_a_sharpness_names_none_of_them():
    with pytest.raises(ValueError, match="names plane, but the walls are disk, planes, t"):
        rb.RollbackHMC(model=region(), sharpness={"plane": 9.0})


def test_planes_that_may_move_or_bend_have_barriers():
    with pm.Model() as model:
        x, y = pm.Normal("x"), pm.Normal("y")
        scale = pm.Gamma("scale", 0.5, 1)  # keeps its transform
        limit = pm.Data("limit", 1.0)
        rb.constrain("still", x < 2 * y + 1)
        rb.constrain("data", x + y < limit)
        rb.constrain("bent", x - y < scale)
    assert names(rb.RollbackHMC(model=model)) == (["still"], ["data", "bent"])
    # y belongs to another step
    assert names(rb.RollbackHMC([x, scale], model=model)) == ([], ["still", "data", "bent"])


def sample(model, draws=300, chains=1, **options):
    with model:
        return pm.sample(
            draws,
            tune=500,
            chains=chains,
            cores=1,
            step=rb.RollbackHMC(model=model, **options),
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
        )


def smallest_p(draws, truth):
    """Of t-tests of the means and squares of all columns, over batches of 100 draws, times them."""
    both, known = (np.concatenate([x, x**2], axis=-1) for x in (draws, truth))
    batches, exact = (
        x.reshape(-1, x.shape[-1])[: x.size // x.shape[-1] // 100 * 100]
        .reshape(-1, 100, x.shape[-1])
        .mean(axis=1)
        for x in (both, known)
    )
    p = stats.ttest_ind(batches, exact, equal_var=False).pvalue
    return p.size * p.min()


def p_of_the_region(metric):
    trace = sample(region(), 4000, chains=2, metric=metric)
    draws = np.concatenate([trace.posterior["x"].values, trace.posterior["t"].values[..., None]], 2)
    return smallest_p(draws, exact_draws(2_000_000))


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["diag", "dense"])
def test_draws_between_planes_are_right(metric):
    """Fails with a probability of at most 1e-4 (Bonferroni over eight answers)."""
    assert p_of_the_region(metric) > ERROR_RATE


@pytest.mark.slow
def test_control_misplaced_planes_fail(monkeypatch):
    def nearer(density):
        planes, lengths = original(density)
        planes = planes.copy()
        planes[-1] -= 0.3
        return planes, lengths

    original = walls.read_planes
    monkeypatch.setattr(walls, "read_planes", nearer)
    assert p_of_the_region("diag") < 1e-8


def test_no_draw_is_beyond_a_plane():
    """A narrow wedge, far from the origin, in small units; the start is on its edge."""
    with pm.Model() as model:
        x = pm.Normal("x", 10.0, 1e-3, shape=2)
        rb.constrain("above", x[0] < x[1])
        rb.constrain("below", x[1] < x[0] + 1e-5)
    trace = sample(model, 500)
    first, second = np.moveaxis(trace.posterior["x"].values[0], 1, 0)
    assert np.all((first < second) & (second < first + 1e-5))
    # of 500: the end of a trajectory is accepted or rejected
    assert np.unique(first).size > 250
    assert abs(np.mean(first) - 10.0) < 2e-4 and 5e-4 < np.std(first) < 9e-4


def test_a_narrow_slab():
    """A hundred times narrower than a step is long: hundreds of contacts each. Error rate 2e-4."""
    width = 1e-2
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("slab", (x[0] + 2 * x[1] > 1) & (x[0] + 2 * x[1] < 1 + width))
    step = rb.RollbackHMC(model=model, step_size=1.0, n_steps=3, metric=np.ones(2), rng=1)
    point, draws = {"x": np.array([1.0, width / 4])}, []
    for _ in range(2000):
        point, [stats_] = step.step(point)
        assert not stats_["diverging"]
        draws.append(point["x"])
    across = np.array(draws) @ [1.0, 2.0] - 1
    assert 0 < across.min() and across.max() < width
    # across flat, along a normal; the draws are nearly independent
    assert stats.kstest(across / width, "uniform").pvalue > ERROR_RATE
    along = np.array(draws) @ [2.0, -1.0] / np.sqrt(5)
    assert stats.kstest(along[::5], "norm").pvalue > ERROR_RATE


@pytest.mark.slow
def test_dense_metric_with_a_coordinate_that_no_plane_concerns():
    """It is turned at the planes, too, as it is correlated. Error rate 1e-4."""
    covariance = np.array([[1.05, 0.5, 0.9], [0.5, 1.05, 0.3], [0.9, 0.3, 1.05]])
    with pm.Model() as model:
        x = pm.MvNormal("x", np.zeros(3), covariance)
        rb.constrain("plane", x[0] + x[1] < -0.5)
    draws = sample(model, 8000, chains=2, metric="dense").posterior["x"].values
    truth = np.random.default_rng(0).multivariate_normal(np.zeros(3), covariance, 2_000_000)
    assert smallest_p(draws, truth[truth[:, 0] + truth[:, 1] < -0.5]) > ERROR_RATE


@pytest.mark.slow
def test_flat_density_between_planes():
    """A uniform density does not see a position that is not a number. Error rate 1e-4."""
    with pm.Model() as model:
        x = pm.Uniform("x", 0, 1, shape=3)
        rb.constrain("simplex", pm.math.sum(x) < 1)
    trace = sample(model, 4000, chains=2)
    truth = np.random.default_rng(0).dirichlet(np.ones(4), 2_000_000)[:, :3]
    assert smallest_p(trace.posterior["x"].values, truth) > ERROR_RATE
    assert not trace.sample_stats["diverging"].values.any()


def zero_row(x):
    rb.constrain("rows", pm.math.dot(np.array([[1.0, 1, 0], [0, 0, 0], [0, 1, -1]]), x) < 1)


def singular_at_the_origin(x):
    rb.constrain("ball", pm.math.sqrt(pm.math.sum(x**2)) < 2)
    rb.constrain("plane", x[0] + x[1] < 1.5)


def of_two_scales(x):
    far = pm.Normal("far", 1e9, 1.0)
    rb.constrain("large", far < 1e9 + 1)
    rb.constrain("both", x[0] < 1e-4 * x[1] + 1e-4 * x[2] + 1)


def many_scales_of_one_plane(x):
    for scale in (1e-6, 1.0, 1e6):
        rb.constrain(f"plane{scale}", scale * (x[0] - x[1]) < scale)


ODD = [zero_row, of_two_scales, many_scales_of_one_plane]
# trajectories ask a barrier too often for it to be interpreted
ODD += [pytest.param(singular_at_the_origin, marks=pytest.mark.compiled)]


@pytest.mark.parametrize("constrain", ODD)
def test_odd_planes(constrain):
    with pm.Model() as model:
        constrain(pm.Normal("x", shape=3))
    trace = sample(model)
    assert np.unique(trace.posterior["x"].values[..., 0]).size > 150
    assert trace.sample_stats["diverging"].values.sum() == 0


@pytest.mark.parametrize("high", [lambda x: x[0] > 1.5, lambda x: x[0] ** 3 > 3])
@pytest.mark.slow
@pytest.mark.newest
def test_start_in_order_and_inside(high):
    """The constraint is violated at the start; what meets it first is out of order."""
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        x = pm.Normal("x", shape=3, transform=ordered, initval=np.arange(3.0))
        rb.constrain("high", high(x))
    draws = sample(model).posterior["x"].values
    assert np.all(draws[..., 0] > 1.4) and np.all(np.diff(draws, axis=-1) > 0)
    assert np.unique(draws[..., 0]).size > 100
