"""Affine constraints: which of them are planes that reflect, and that the draws are right."""

from functools import cached_property

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_rollback as rb
from pymc_rollback.geometry import Geometry

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
    density = step.geometry.density
    return [c.name for c in density.planes], [c.name for c in density.barriers]


def test_affine_constraints_are_planes():
    model = region()
    assert names(rb.RollbackHMC(model=model)) == (["planes"], ["disk"])
    # a sharpness asks for a barrier, for all constraints or by name
    assert names(rb.RollbackHMC(model=model, sharpness=9.0)) == ([], ["planes", "disk"])
    assert names(rb.RollbackHMC(model=model, sharpness={"planes": 9.0})) == ([], ["planes", "disk"])
    assert names(rb.RollbackHMC(model=model, sharpness={"disk": 9.0})) == (["planes"], ["disk"])


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


def smallest_p(metric):
    """Of t-tests of the means and squares of all variables, over batches of 100 draws."""
    with region() as model:
        trace = pm.sample(
            4000,
            tune=500,
            chains=2,
            cores=1,
            step=rb.RollbackHMC(model=model, metric=metric),
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
        )
    draws = np.concatenate([trace.posterior["x"].values, trace.posterior["t"].values[..., None]], 2)
    truth = exact_draws(2_000_000)
    both, known = np.concatenate([draws, draws**2], 2), np.c_[truth, truth**2]
    batches = both.reshape(-1, 100, 8).mean(axis=1)
    p = stats.ttest_ind(batches, known[: len(known) // 100 * 100].reshape(-1, 100, 8).mean(axis=1),
                        equal_var=False).pvalue  # fmt: skip
    return 8 * p.min()


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["diag", "dense"])
def test_draws_between_planes_are_right(metric):
    """Fails with a probability of at most 1e-4 (Bonferroni over eight answers)."""
    assert smallest_p(metric) > ERROR_RATE


@pytest.mark.slow
def test_control_misplaced_planes_fail(monkeypatch):
    def nearer(self):
        planes = original(self).copy()
        planes[-1] -= 0.3
        return planes

    original = Geometry.__dict__["planes"].func
    misplaced = cached_property(nearer)
    misplaced.__set_name__(Geometry, "planes")
    monkeypatch.setattr(Geometry, "planes", misplaced)
    assert smallest_p("diag") < 1e-8


def test_no_draw_is_beyond_a_plane():
    """A narrow wedge, far from the origin, in small units; the start is on its edge."""
    with pm.Model() as model:
        x = pm.Normal("x", 10.0, 1e-3, shape=2)
        rb.constrain("above", x[0] < x[1])
        rb.constrain("below", x[1] < x[0] + 1e-5)
        trace = pm.sample(
            500,
            tune=200,
            chains=1,
            cores=1,
            step=rb.RollbackHMC(model=model),
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    first, second = np.moveaxis(trace.posterior["x"].values[0], 1, 0)
    assert np.all((first < second) & (second < first + 1e-5))
    assert np.unique(first).size > 400
    assert abs(np.mean(first) - 10.0) < 2e-4 and 5e-4 < np.std(first) < 9e-4
