"""Nothing to tune: what warm-up finds, that it is frozen after, and that scales do not matter."""

import logging

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions import transforms
from pymc.step_methods.state import equal_dataclass_values

import pymc_rollback as rb
from pymc_rollback.chain.steepness import STEEP

pytestmark = pytest.mark.compiled


def sample(model, draws=500, tune=500, seed=1, **options):
    with model:
        return pm.sample(
            draws,
            tune=tune,
            chains=2,
            cores=1,
            step=rb.RollbackHMC(**options),
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
            discard_tuned_samples=False,
        )


def stat(trace, name):
    return trace["sample_stats"][name].values


def smallest_ess(trace, name="x"):
    values = az.convert_to_dataset({name: trace["posterior"][name].values})
    return float(np.min(az.ess(values)[name].values))


@pytest.fixture(scope="module")
def ball():
    with pm.Model() as model:
        scale = pm.Normal("scale", 0, 1e-3)
        x = pm.Normal("x", 0, 0.9, shape=5)
        pm.Exponential("wall", 10.0)
        rb.constrain("ball", pt.sum(x**2) + scale**2 < 4)
    return model


@pytest.fixture(scope="module")
def tuned(ball):
    """A step that has been through warm-up, and its trace."""
    with ball:
        step = rb.RollbackHMC()
        trace = pm.sample(
            300,
            tune=500,
            chains=1,
            cores=1,
            step=step,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            discard_tuned_samples=False,
        )
    return step, trace


def test_every_number_is_tuned(tuned):
    """Fails if any of the four, or the pull, is left where it started."""
    step, _ = tuned
    fresh = rb.RollbackHMC(model=step.density.model)
    before, after = fresh.chain.learnt, step.chain.learnt
    assert after.step.current(tune=False) != before.step.current(tune=False)
    starts = np.log([before.steepness, STEEP])
    assert np.all(np.abs(after.log_steepness - starts) > 0.01)
    assert not np.allclose(after.row_lengths, before.row_lengths, rtol=0.1)
    parts = np.split(np.sqrt(after.metric.variances), [1, 6])
    sd = dict(zip(("scale", "x", "wall"), parts, strict=True))
    assert sd["scale"] == pytest.approx(1e-3, rel=0.3)
    # 0.055 to 0.21 in 160 runs, as its draws depend on each other; it starts at 1
    assert 0.05 < sd["wall"] < 0.25
    assert np.all((sd["x"] > 0.5) & (sd["x"] < 0.95))
    assert after.flow.pull[-1] == pytest.approx(10.0, rel=0.05)


def test_walls_are_resolved_by_inner_steps(tuned):
    _, trace = tuned
    assert np.all(stat(trace, "wall_steps") >= stat(trace, "n_steps"))


def test_doubled_trajectories_are_as_wanted(ball):
    """With a metric that is given there is no race."""
    trace = sample(ball, metric=[1e-6, 1, 1, 1, 1, 1, 0.01])
    depths = stat(trace, "tree_depth")
    assert depths.min() < depths.max() < 10
    assert np.mean(stat(trace, "acceptance_rate")) == pytest.approx(0.8, abs=0.1)
    assert np.mean(stat(trace, "inside")) == pytest.approx(0.8, abs=0.1)
    assert not np.any(stat(trace, "diverging"))


def test_trajectories_of_a_fixed_time_are_as_wanted(tuned):
    """A tenth of the ends may be outside, as none of them is a draw."""
    _, trace = tuned
    assert np.all(stat(trace, "trajectory_time") > 0)
    assert np.mean(stat(trace, "acceptance_rate")) > 0.65
    assert 0.85 < np.mean(stat(trace, "inside")) < 0.99
    assert not np.any(stat(trace, "diverging"))


def test_frozen_after_warm_up(tuned):
    step, trace = tuned
    assert np.unique(stat(trace, "step_size")).size == 1
    assert np.unique(stat(trace, "sharpness")).size == 1
    before = step.sampling_state.chain
    point = {
        v.name: trace["posterior"][v.name].values[0, -1] for v in step.vars if "__" not in v.name
    }
    point["wall_log__"] = np.log(trace["posterior"]["wall"].values[0, -1])
    for _ in range(30):
        point, _ = step.step(point)
    after = step.sampling_state.chain
    assert equal_dataclass_values(before.learnt, after.learnt)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("step_size", 0.1),
        ("n_steps", 7),
        ("sharpness", {"ball": 20.0}),
        ("metric", np.full(7, 0.5)),
        ("metric", "dense"),
        ("trajectory_time", 0.8),
    ],
    ids=str,
)
def test_each_can_be_given_alone(ball, option, value):
    with ball:
        trace = pm.sample(
            60,
            tune=80,
            chains=1,
            cores=1,
            step=rb.RollbackHMC(**{option: value}),
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
        )
    if option == "step_size":
        assert np.all(stat(trace, "step_size") == value)
    if option == "n_steps":
        # the first draw after warm-up counts what the last search for a step size took
        assert np.all(stat(trace, "n_steps")[:, 1:] == value)
    if option == "trajectory_time":
        taken = (stat(trace, "n_steps") * stat(trace, "step_size"))[:, 1:]
        np.testing.assert_allclose(taken, value)
    if option == "sharpness":
        assert np.all(stat(trace, "sharpness") == 20.0)
    x = trace["posterior"]["x"].values
    assert np.all(np.sum(x**2, axis=-1) < 4)
    assert np.std(x) > 0.3


def sample_correlated(metric):
    """Two normals with correlation 0.95: the step, and effective draws per gradient."""
    with pm.Model():
        pm.MvNormal("x", np.zeros(2), np.array([[1.0, 0.95], [0.95, 1.0]]))
        step = rb.RollbackHMC(metric=metric)
        trace = pm.sample(
            600, tune=400, chains=1, cores=1, step=step, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    x = az.convert_to_dataset({"x": trace["posterior"]["x"].values})
    effective = az.ess(x, method="mean")["x"].values.min()
    return step, effective / np.sum(stat(trace, "n_steps"))


@pytest.mark.slow
def test_a_correlation_is_learnt_and_worth_it():
    """Four to ten times as many effective draws per gradient; 2 leaves room for their error."""
    _, diagonal = sample_correlated("diag")
    for metric in ("dense", "auto"):
        step, found = sample_correlated(metric)
        learnt = step.chain.learnt.metric.covariance
        assert learnt[0, 1] / np.sqrt(learnt[0, 0] * learnt[1, 1]) > 0.85
        assert found > 2 * diagonal


@pytest.mark.slow
def test_scale_of_a_constraint_does_not_matter():
    """ESS of four ways to write a ball within a factor of two of each other."""
    forms = [
        lambda r: 9 - r**2 > 0,
        lambda r: 3 - r > 0,
        lambda r: 1e6 * (3 - r) > 0,
        lambda r: 1e-6 * (3 - r) > 0,
    ]
    ess = []
    for form in forms:
        with pm.Model() as model:
            x = pm.Normal("x", 0, 1, shape=10)
            rb.constrain("ball", form(pt.sqrt(pt.sum(x**2))))
        ess.append(smallest_ess(sample(model)))
    assert max(ess) < 2 * min(ess), ess
    assert min(ess) > 300


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_scale_of_the_variables_does_not_matter(scale):
    with pm.Model() as model:
        x = pm.Normal("x", 0, scale, shape=4)
        pm.HalfNormal("half", scale)
        pm.Uniform("flat", 0, scale)
        rb.constrain("ball", pt.sum(x**2) < 4 * scale**2)
    trace = sample(model)
    assert not np.any(stat(trace, "diverging"))
    for name in ("x", "half", "flat"):
        assert smallest_ess(trace, name) > 200
    assert np.mean(trace["posterior"]["half"].values) == pytest.approx(0.8 * scale, rel=0.15)


def test_short_warm_up_works():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=5)
        rb.constrain("ball", pt.sum(x**2) < 4)
    trace = sample(model, draws=500, tune=100)
    assert smallest_ess(trace) > 100
    assert np.mean(stat(trace, "diverging")) < 0.01


def test_no_warm_up_works():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=2)
        rb.constrain("disk", pt.sum(x**2) < 2)
    trace = sample(model, draws=300, tune=0, step_size=0.2, n_steps=10, sharpness=20)
    assert smallest_ess(trace) > 50


def test_flat_density_does_not_make_the_step_run_away():
    with pm.Model() as model:
        pm.Uniform("x", -2, 5, shape=3)
    trace = sample(model)
    assert np.max(stat(trace, "step_size")) <= 2.0
    assert np.mean(trace["posterior"]["x"].values) == pytest.approx(1.5, abs=0.3)


@pytest.mark.parametrize("size", [1, 3])
def test_first_steps_in_a_box_leave_its_walls(size):
    """Steps of 1e18 times its width ended on a wall, and the metric shrank to nothing there."""
    with pm.Model():
        pm.Uniform("x", -1, 1, shape=size)
        trace = rb.sample(draws=500, tune=500, chains=2, random_seed=1, progressbar=False)
    spread = trace["posterior"]["x"].values.std()
    assert spread == pytest.approx(1 / np.sqrt(3), rel=0.1)
    assert smallest_ess(trace) > 500


def test_a_model_without_walls():
    with pm.Model() as model:
        pm.Normal("x", 3, 2)
    trace = sample(model, draws=50, tune=50)
    assert "wall_contacts" not in trace["sample_stats"]


@pytest.mark.slow
def test_mass_piled_on_a_wall_and_far_from_it():
    with pm.Model() as model:
        pm.TruncatedNormal("x", -50, 1, lower=0, shape=2)
        pm.TruncatedNormal("far", 50, 1, lower=0, shape=2)
    trace = sample(model)
    assert np.mean(trace["posterior"]["x"].values) == pytest.approx(1 / 50, rel=0.15)
    assert np.mean(trace["posterior"]["far"].values) == pytest.approx(50, abs=0.2)
    assert min(smallest_ess(trace, "x"), smallest_ess(trace, "far")) > 100


def test_low_share_inside_is_reported(caplog):
    """A constraint that is given hardly any barrier: the remedy is in the log."""
    caplog.set_level(logging.WARNING, logger="pymc")
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=20)
        rb.constrain("ball", pt.sum(x**2) < 1)
    sample(model, draws=20, tune=120, sharpness=1e-3)
    assert any("inside the constraints" in r.message for r in caplog.records)


def test_ordered_vector_is_always_in_order():
    start = np.linspace(-1, 1, 6)
    with pm.Model() as model:
        pm.Normal("x", shape=6, transform=transforms.ordered, initval=start)
    x = sample(model)["posterior"]["x"].values
    assert np.all(np.diff(x, axis=-1) > 0)
    assert np.mean(x[..., -1]) == pytest.approx(1.267, abs=0.12)  # E of the largest of six normals


@pytest.mark.slow
def test_bound_written_as_a_potential_reflects():
    """The user's own `x > 0.5` is a bound like any other, not a joint constraint."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Potential("positive", pt.switch(x > 0.5, 0, -np.inf))
    step = rb.RollbackHMC(model=model)
    assert step.plan.barriers == []
    assert list(step.plan.reflected) == ["x"]
    sharp = rb.RollbackHMC(model=model, sharpness={"positive": 30.0}, step_size=0.1, n_steps=9)
    assert list(sharp.plan.mirrored) == ["x"]
    for options in ({}, {"sharpness": {"positive": 30.0}}):
        draws = sample(model, **options)["posterior"]["x"].values
        assert np.all(draws > 0.5)
        assert np.mean(draws) == pytest.approx(1.1411, abs=0.06)  # of a normal cut at 0.5
