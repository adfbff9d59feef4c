"""What PyMC expects of a step method: the issue's "A good citizen of PyMC", item by item."""

import io
import pickle
import random

import arviz as az
import cloudpickle
import matplotlib
import numpy as np
import pymc as pm
import pytest
import rich
from harness import sample
from pymc.progress_bar import MCMCProgressBarManager, rich_progress
from pymc.progress_bar.marimo_progress import MarimoProgressBackend
from pymc.step_methods.state import equal_dataclass_values
from rich.console import Console
from scipy import stats

import pymc_rollback as rb
from pymc_rollback import progress

matplotlib.use("Agg")

PYMC_5 = pm.__version__.startswith("5.")
# PyTensor says so once a process, if there is no BLAS that it can link to
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
]

NUMBERS = {"sharpness": 20.0, "step_size": 0.2, "n_steps": 5}


@pytest.fixture(scope="module")
def model():
    """A disk, a bound, and data."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Exponential("scale", 1.0)
        rb.constrain("disk", (x**2).sum() < 2)
        pm.Normal("y", x.sum(), 1.0, observed=[0.1, 0.7, -0.2])
    return model


@pytest.fixture(scope="module")
def step(model):
    return rb.RollbackHMC(model=model, **NUMBERS)


def multitrace(step, model, **options):
    """Draws as PyMC's own trace, with the values under the model's transforms."""
    options = {"return_inferencedata": False, **options}
    if PYMC_5:
        return sample(step, model, **options)
    with pytest.warns(FutureWarning, match="return_inferencedata"):
        return sample(step, model, **options)


@pytest.fixture(scope="module")
def result(step, model):
    return sample(step, model, draws=100)


def same_draws(first, second):
    return all(
        np.array_equal(first[group][name].values, second[group][name].values)
        for group, names in {"posterior": ["x", "scale"], "sample_stats": ["energy", "lp"]}.items()
        for name in names
    )


# ----------------------------------------------------------------------------- processes and seeds


@pytest.mark.parametrize(
    "context",
    ["fork", *(pytest.param(name, marks=pytest.mark.slow) for name in ("spawn", "forkserver"))],
)
def test_workers_give_the_draws_of_one_process(step, model, context):
    here = sample(step, model)
    assert same_draws(here, sample(step, model, cores=2, mp_ctx=context))


def test_seeds_reproduce(step, model):
    first = sample(step, model)
    assert same_draws(first, sample(step, model))
    assert not same_draws(first, sample(step, model, random_seed=9))
    chains = first.posterior["x"].values
    assert not np.array_equal(chains[0], chains[1])


# PyMC 5 discourages lists
@pytest.mark.filterwarnings("ignore:A list or tuple of random_seed no longer:UserWarning")
def test_seed_lists_reproduce(step, model):
    first = sample(step, model, random_seed=[1, 2])
    assert same_draws(first, sample(step, model, random_seed=[1, 2]))
    assert not same_draws(first, sample(step, model, random_seed=[2, 1]))


def test_a_chain_does_not_depend_on_those_before(step, model):
    """One instance serves all the chains in a process."""
    one = sample(step, model, chains=1).posterior["x"].values
    assert np.array_equal(one[0], sample(step, model, chains=3).posterior["x"].values[0])


def test_global_random_state_is_left_alone(model):
    numpy_before, python_before = np.random.get_state(), random.getstate()
    sample(rb.RollbackHMC(model=model, **NUMBERS), model)
    after = np.random.get_state()
    assert all(np.array_equal(a, b) for a, b in zip(numpy_before, after, strict=True))
    assert random.getstate() == python_before


def test_global_random_state_does_not_matter(step, model):
    np.random.seed(1)
    first = sample(step, model)
    np.random.seed(2)
    assert same_draws(first, sample(step, model))


# -------------------------------------------------------------------------------------------- stats


def test_stats_have_their_types(step, model, result):
    floats = ["acceptance_rate", "energy", "energy_error", "step_size", "sharpness", "inside"]
    times = ["perf_counter_diff", "perf_counter_start", "process_time_diff"]
    expected = {
        **dict.fromkeys([*floats, *times, "lp"], np.float64),
        **dict.fromkeys(["divergences", "n_steps", "rollbacks"], np.int64),
        "diverging": np.bool_,
    }
    assert {name: result.sample_stats[name].dtype for name in expected} == expected
    assert all(result.sample_stats[name].shape == (2, 100) for name in [*expected, "accepted"])
    declared = set(step.stats_dtypes_shapes)
    assert declared >= (set(expected) - {"lp"}) | {"accepted", "model_logp", "warning"}
    _, [stats_] = step.step(model.initial_point())
    assert set(stats_) == declared


@pytest.mark.parametrize("other", [pm.NUTS, pm.Metropolis])
def test_stats_have_the_types_of_other_steps(step, other):
    """PyMC refuses a compound step whose stats of one name differ in type (int, np.int64)."""
    ours, theirs = step.stats_dtypes_shapes, other.stats_dtypes_shapes
    shared = set(ours) & set(theirs)
    assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}


def test_stats_make_sense(result):
    values = {name: result.sample_stats[name].values for name in result.sample_stats.data_vars}
    assert np.all((0 <= values["acceptance_rate"]) & (values["acceptance_rate"] <= 1))
    # a gradient a step, and one at the image that each draw starts from
    assert np.all(values["n_steps"] == 5 + 1) and np.all(values["step_size"] == 0.2)
    assert np.all(values["sharpness"] == 20)
    # some trajectories leave the region, and come back
    assert np.all((0 < values["inside"]) & (values["inside"] <= 1)) and np.any(values["inside"] < 1)
    assert np.any(values["rollbacks"] > 0)
    assert not np.any(values["rollbacks"][values["inside"] == 1])
    accepted = values["accepted"].astype(bool)
    assert np.all(values["energy_error"][~accepted] == 0)
    assert np.array_equal(np.diff(result.posterior["x"].values[..., 0]) != 0, accepted[:, 1:])
    assert np.all(values["perf_counter_diff"] > 0) and np.all(values["process_time_diff"] >= 0)


@pytest.mark.parametrize("exact", [True, False])
def test_model_logp_is_the_hard_log_density(step, model, exact):
    if not exact:
        with pm.Model() as model:
            x = pm.Normal("x", shape=2)
            pm.Exponential("scale", 1.0, default_transform=None)
            rb.constrain("disk", (x**2).sum() < 2)
        step = rb.RollbackHMC(model=model, exact=False, **NUMBERS | {"sharpness": 10.0})
    trace = multitrace(step, model, draws=100, chains=1)
    logp = model.compile_logp(mode="FAST_COMPILE")
    names = [value.name for value in model.value_vars]
    points = [{name: point[name] for name in names} for point in trace.points()]
    expected = np.array([logp(point) for point in points])
    np.testing.assert_allclose(trace.get_sampler_stats("model_logp"), expected, rtol=1e-9)
    inside = (trace["x"] ** 2).sum(-1) < 2
    inside &= trace["scale"] > 0
    assert np.array_equal(np.isfinite(expected), inside)
    assert inside.all() if exact else 0 < inside.mean() < 1


BOUNDED = {
    "interval": lambda: pm.Uniform("x", -1.0, 2.0, shape=(2, 3)),
    "mirror": lambda: pm.TruncatedNormal("x", 1.0, 1.0, lower=0.0, shape=2),
    "order": lambda: pm.Normal(
        "x", shape=3, transform=pm.distributions.transforms.ordered, initval=[-1.0, 0.0, 1.0]
    ),
    "kept": lambda: pm.Gamma("x", 0.5, 1.0, shape=2),
    "put back": lambda: pm.Gamma("x", 0.5, 1.0, shape=2, default_transform=None),
    "simplex": lambda: pm.Dirichlet("x", np.full(3, 2.0)),
    "moving": lambda: pm.Uniform("x", 0.0, pm.HalfNormal("scale") + 1.0),
}


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("name", BOUNDED)
def test_model_logp_whatever_the_transforms(name):
    with pm.Model() as model:
        BOUNDED[name]()
        pm.Normal("y", observed=0.3)
    numbers = NUMBERS if name == "mirror" else {"step_size": 0.2, "n_steps": 5}
    step = rb.RollbackHMC(model=model, rng=1, **numbers)
    logp, point = model.compile_logp(mode="FAST_COMPILE"), model.initial_point()
    found, expected = [], []
    for _ in range(20):
        point, [stats] = step.step(point)
        found.append(stats["model_logp"])
        expected.append(logp(point))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert len(set(found)) > 2


def test_model_logp_of_a_draw_that_rounds_to_its_bound():
    with pm.Model() as model:
        pm.Uniform("x", -3.0, 1.2, default_transform=None)
    step = rb.RollbackHMC(model=model, transform=["x"], rng=1, step_size=0.2, n_steps=5)
    logp, start = model.compile_logp(mode="FAST_COMPILE"), {"x": np.nextafter(1.2, 0.0)}
    draws, found = zip(*(step.step(start) for _ in range(20)), strict=True)
    assert any(point["x"] == 1.2 for point in draws)
    expected = [logp(point) for point in draws]
    np.testing.assert_allclose([stats["model_logp"] for [stats] in found], expected, atol=1e-9)


# ArviZ 0.23 with matplotlib 3.11
@pytest.mark.filterwarnings("ignore:Passing a dict or None as alias_mapping")
def test_arviz(result):
    summary = az.summary(result)
    assert {"x[0]", "x[1]", "scale"} <= set(summary.index)
    assert float(az.ess(result)["scale"]) > 0
    assert np.isfinite(float(az.rhat(result)["scale"]))
    bfmi = az.bfmi(result)
    bfmi = bfmi["energy"].values if hasattr(bfmi, "data_vars") else bfmi
    assert np.all(np.asarray(bfmi, float) > 0.1)
    az.plot_trace(result)
    az.plot_energy(result)
    matplotlib.pyplot.close("all")


# ------------------------------------------------------------------------------------- progress bar

COLUMNS = ["Divergences", "Step size", "Grad evals", "Inside"]


@pytest.fixture
def terminal(monkeypatch):
    """What PyMC's progress bar writes, on a screen that is wide enough for it."""
    text = io.StringIO()

    def console(file=None, theme=None):
        return Console(file=text, width=200, theme=theme)

    monkeypatch.setattr(rich_progress, "Console", console)
    monkeypatch.setattr(progress, "Console", console)
    return text


def test_progress_bar_in_a_terminal(step, model, terminal):
    sample(step, model, progressbar=True)
    shown = terminal.getvalue()
    assert all(column in shown for column in COLUMNS)
    # the last stats of a chain: no divergence, its step size and number of gradients
    [row, *_] = [line for line in shown.splitlines() if "draws/s" in line]
    assert {"0", "0.2", "6"} <= set(row.split())


def test_progress_bar_of_a_compound_step(model, terminal):
    step = rb.RollbackHMC([model["x"]], model=model, **NUMBERS)
    sample(step, model, draws=5, progressbar=True)  # NUTS gets the rest
    assert all(column in terminal.getvalue() for column in COLUMNS)


def test_progress_bar_in_a_notebook(step, model, terminal, monkeypatch):
    monkeypatch.setattr(rich, "_console", Console(width=200))
    manager = MCMCProgressBarManager(step, chains=1, draws=1, tune=0)
    _, stats_ = step.step(model.initial_point())
    with manager:
        manager.update(chain_idx=0, is_last=False, draw=0, tuning=False, stats=stats_)
        # what rich hands to Jupyter
        shown = manager._backend._progress._repr_mimebundle_((), ())["text/html"]
    assert all(column in shown for column in COLUMNS)


def test_progress_bar_in_marimo(step, model):
    manager = MCMCProgressBarManager(step, chains=1, draws=1, tune=0, progressbar=False)
    _, stats_ = step.step(model.initial_point())
    failing, shown = manager._extract_stats(stats_)
    backend = MarimoProgressBackend("Draw", 1, 1, combined=False, full_stats=True)
    backend._initialize_tasks()
    backend._task_state[0]["stats"] = shown
    assert not failing and all(column in backend._render_html() for column in COLUMNS)


# ------------------------------------------------------------------------- state, traces, callbacks


def advance(step, point, n):
    for _ in range(n):
        point, _ = step.step(point)
    return point


def test_sampling_state_restores_the_draws(step, model):
    """As PyMC's StepMethodTester: snapshot, step, restore in another instance, step again."""
    other = cloudpickle.loads(cloudpickle.dumps(step))
    step.rng = np.random.default_rng(1)
    point = advance(step, model.initial_point(), 3)
    step.stop_tuning()
    snapshot = step.sampling_state
    ahead = advance(step, point, 5)
    other.sampling_state = pickle.loads(pickle.dumps(snapshot))
    assert equal_dataclass_values(other.sampling_state, snapshot)
    again = advance(other, point, 5)
    assert all(np.array_equal(ahead[name], again[name]) for name in ahead)
    assert equal_dataclass_values(step.sampling_state, other.sampling_state)
    assert not equal_dataclass_values(step.sampling_state, snapshot)


def test_a_new_chain_forgets_the_last(step):
    """One instance serves several chains: counters start again."""

    def start_chain():
        if PYMC_5:
            return step.set_rng(np.random.default_rng(1))
        return step.setup_chain(np.random.default_rng(1), 10, 10)

    for restart in (start_chain, step.reset_tuning):
        step.iteration, step.divergences, step.tune = 7, 3, False
        restart()
        assert (step.iteration, step.divergences, step.tune) == (0, 0, True)


def test_sampling_state_as_a_zarr_trace_stores_it(step):
    """ZarrTrace keeps it in an object array, pickled by numcodecs.

    A whole ZarrTrace cannot be tested: numcodecs refuses to unpickle, whatever the step method.
    """
    numcodecs = pytest.importorskip("numcodecs")
    state = step.sampling_state
    stored = numcodecs.Pickle().encode(np.array([state], dtype="object"))
    assert equal_dataclass_values(pickle.loads(stored)[0], state)


def test_trace_of_the_users_choice(step, model):
    trace = pm.backends.ndarray.NDArray(model=model)
    assert same_draws(sample(step, model, chains=1), sample(step, model, chains=1, trace=trace))
    some = pm.backends.ndarray.NDArray(model=model, vars=[model["x"]])
    assert set(sample(step, model, chains=1, trace=some).posterior.data_vars) == {"x"}


def test_tuning_draws_are_kept_on_request(step, model):
    kept = sample(step, model, discard_tuned_samples=False)
    assert kept.warmup_posterior["x"].shape == (2, 10, 2)
    assert kept.posterior["x"].shape == (2, 30, 2)
    assert same_draws(kept, sample(step, model))


def test_multitrace(step, model):
    trace = multitrace(step, model)
    assert isinstance(trace, pm.backends.base.MultiTrace)
    assert np.array_equal(trace["x"][:30], sample(step, model).posterior["x"].values[0])
    assert trace.get_sampler_stats("warning").dtype == object
    assert not trace.get_sampler_stats("tune").any()


def test_callback_sees_every_draw(step, model):
    seen = []
    sample(step, model, callback=lambda trace, draw: seen.append((draw.chain, draw.tuning)))
    assert seen == [(chain, i < 10) for chain in (0, 1) for i in range(40)]


@pytest.mark.parametrize("cores", [1, 2])
def test_keyboard_interrupt_keeps_the_draws(step, model, cores):
    def stop(trace, draw):
        if draw.draw_idx == 24:
            raise KeyboardInterrupt

    result = sample(step, model, draws=5000, chains=cores, cores=cores, callback=stop)
    assert 0 < result.posterior.sizes["draw"] < 5000
    if cores == 1:
        whole = sample(step, model, chains=1)
        n = result.posterior.sizes["draw"]
        assert n == 15
        assert np.array_equal(result.posterior["x"][0], whole.posterior["x"][0, :n])


def test_tools_for_the_result(result, model):
    with model:
        with pytest.warns(UserWarning, match="Potentials"):
            predicted = pm.sample_posterior_predictive(result, random_seed=1, progressbar=False)
        likelihood = pm.compute_log_likelihood(
            result, extend_inferencedata=False, progressbar=False
        )
    assert predicted.posterior_predictive["y"].shape == (2, 100, 3)
    mean = result.posterior["x"].values.sum(-1)[..., None]
    expected = stats.norm.logpdf([0.1, 0.7, -0.2], mean)
    group = getattr(likelihood, "log_likelihood", likelihood)
    np.testing.assert_allclose(group["y"].values, expected, rtol=1e-9)
