"""``rb.sample``: what ``pm.sample(step=RollbackHMC())`` returns, from threads."""

import logging
import signal
import threading
import time

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op

import pymc_rollback as rb
from pymc_rollback import runner, sampling
from pymc_rollback import step as step_module
from pymc_rollback.graph.compat import datasets
from pymc_rollback.guard import OneAtATime
from pymc_rollback.record import GRADIENTS, STEP_SIZE
from pymc_rollback.settled import CHECKS, find_rhat, has_settled
from pymc_rollback.stored import Stored

OPTIONS = {"tune": 30, "chains": 2, "random_seed": 4, "progressbar": False}
CLOCKS = {"perf_counter_start", "perf_counter_diff", "process_time_diff"}

pytestmark = pytest.mark.filterwarnings("ignore:The kernels call back into Python:UserWarning")


def everything():
    """Bounds, an order, a simplex, a joint constraint, data, coordinates and Deterministics."""
    with pm.Model(coords={"day": ["mon", "tue", "wed"]}) as model:
        data = pm.Data("data", [0.5, 1.0, 2.0], dims="day")
        x = pm.Normal("x", dims="day")
        scale = pm.HalfNormal("scale")
        pm.Normal("o", shape=2, transform=pm.distributions.transforms.ordered, initval=[0.0, 1.0])
        pm.Dirichlet("w", np.ones(3))
        rb.constrain("disk", pt.sum(x**2) < 4)
        pm.Deterministic("twice", 2 * x, dims="day")
        pm.Deterministic("fixed", pt.as_tensor([1.0, 2.0]))
        pm.Normal("y", x, scale, observed=data, dims="day")
    return model


def simple():
    with pm.Model() as model:
        pm.HalfNormal("x", shape=2)
    return model


def quietly(model, draws=50, **options):
    return rb.sample(draws, model=model, **(OPTIONS | options))


def assert_same(first, second, *, exact=True):
    """The same groups, variables, dimensions, coordinates, types, attributes and values."""
    first, second = datasets(first), datasets(second)
    assert list(first) == list(second)
    for name, group in first.items():
        other = second[name]
        assert list(group.data_vars) == list(other.data_vars)
        assert set(group.attrs) == set(other.attrs)
        assert group.attrs.get("tuning_steps") == other.attrs.get("tuning_steps")
        for variable in set(group.data_vars) - CLOCKS:
            x, y = group[variable], other[variable]
            assert x.dims == y.dims and x.dtype == y.dtype and x.shape == y.shape
            for dim in x.dims:
                assert np.array_equal(x[dim].values, y[dim].values)
            if exact:
                assert np.array_equal(x.values, y.values, equal_nan=x.dtype.kind == "f"), variable
            else:
                np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-12, err_msg=variable)


# ---------------------------------------------------------------------------- what is returned


def both(model, draws=20, **options):
    """Draws of ``rb.sample`` and of ``pm.sample``; numbers and options of the step among others."""
    names = {"tune", "chains", "random_seed", "progressbar", "discard_tuned_samples"}
    options = OPTIONS | options
    of_sample = {name: value for name, value in options.items() if name in names}
    of_step = {name: value for name, value in options.items() if name not in names}
    with model:
        return rb.sample(draws, **options), pm.sample(
            draws,
            step=rb.RollbackHMC(**of_step),
            cores=1,
            compute_convergence_checks=False,
            **of_sample,
        )


@pytest.mark.compiled
def test_it_returns_what_pymc_returns():
    """Also the draws: there is one sampler. What is stored is rounded in another order."""
    model = everything()
    ours, theirs = both(model, 50, discard_tuned_samples=False)
    assert_same(ours, theirs, exact=False)
    assert "warmup_posterior" in datasets(ours)
    assert np.ptp(ours["posterior"]["x"].values) > 0


def test_warmup_is_discarded():
    ours, theirs = both(simple())
    assert_same(ours, theirs, exact=False)
    assert "warmup_posterior" not in datasets(ours)


@pytest.mark.compiled
def test_draws_do_not_depend_on_cores():
    model = simple()
    assert_same(quietly(model, cores=1), quietly(model, cores=2))


@pytest.mark.parametrize(
    "given",
    [
        {"tune": 0, "step_size": 0.3, "n_steps": 3, "metric": np.ones(2)},
        {"tune": 0},
        {"sharpness": 20.0},
        {"sharpness": 20.0, "step_size": 0.1, "n_steps": 5, "exact": False},
    ],
    ids=["given", "untuned", "mirrored", "smoothed"],
)
def test_options_are_those_of_the_step(given):
    """A mirrored variable starts each draw from a fresh image."""
    with pm.Model() as model:
        pm.HalfNormal("x", shape=2, default_transform=None)
    assert_same(*both(model, **given), exact=False)


def test_a_seed_is_a_seed():
    model = simple()
    first = quietly(model)
    assert_same(first, quietly(model))
    other = quietly(model, random_seed=5)
    assert not np.array_equal(first["posterior"]["x"], other["posterior"]["x"])
    x = first["posterior"]["x"].values
    assert not np.array_equal(x[0], x[1])


def test_starts():
    model = simple()
    here = quietly(model, initvals={"x": [5.0, 6.0]}, step_size=1e-6, n_steps=1, tune=0)
    np.testing.assert_allclose(here["posterior"]["x"][:, 0], [[5.0, 6.0]] * 2, atol=1e-3)
    each = [{"x": [1.0, 2.0]}, {"x": [3.0, 4.0]}]
    there = quietly(model, initvals=each, step_size=1e-6, n_steps=1, tune=0)
    np.testing.assert_allclose(there["posterior"]["x"][:, 0], [[1, 2], [3, 4]], atol=1e-3)


def test_convergence_checks_are_pymcs(caplog):
    with caplog.at_level(logging.INFO, logger="pymc"):
        quietly(simple(), chains=1, draws=120)
    assert "Only one chain was sampled" in caplog.text
    assert "RollbackHMC: [x]" in caplog.text


def test_a_failed_warmup_is_told(caplog, monkeypatch):
    monkeypatch.setattr(runner.Chain, "complaint", lambda self: "It went wrong. Tune for longer.")
    quietly(simple())
    assert "Chain 1: It went wrong. Tune for longer." in caplog.text


# ---------------------------------------------------------------------------- tune="auto"


@pytest.mark.compiled
def test_a_warmup_that_ends_by_itself_is_one_of_that_length():
    model = simple()
    auto = quietly(model, tune="auto", cores=2)
    tune = auto["posterior"].attrs["tuning_steps"]
    assert tune in CHECKS[:-1]
    assert_same(auto, quietly(model, tune=tune, cores=1))


def test_nothing_to_tune():
    drawn = quietly(simple(), tune="auto", step_size=0.3, n_steps=3, metric=np.ones(2))
    assert drawn["posterior"].attrs["tuning_steps"] == 0


class Warmup:
    """A made-up warm-up of independent normals in five coordinates."""

    def __init__(self, seed, draws=400):
        rng = np.random.default_rng(seed)
        self.draws, self.positions = draws, rng.normal(size=(draws, 5))
        self.costs = np.full((draws, 7), 3.0)
        self.costs[:, STEP_SIZE] = 0.7 * np.exp(0.1 * rng.normal(size=draws))


def test_a_steady_warmup_is_settled():
    """Of a hundred, at least ninety."""
    settled = [has_settled([Warmup(4 * k + i) for i in range(4)]) for k in range(100)]
    assert sum(settled) >= 90
    assert has_settled([Warmup(1)])


@pytest.mark.parametrize("what", ["spread", "place", "step", "gradients", "chain"])
def test_a_warmup_that_still_changes_is_not_settled(what):
    chains = [Warmup(k) for k in range(4)]
    for chain in chains:
        late = np.arange(400) >= 200
        if what == "spread":
            chain.positions[late] *= 2.0
        elif what == "place":
            chain.positions[:, 2] += np.linspace(0, 3, 400)
        elif what == "step":
            chain.costs[340:, STEP_SIZE] *= 2.0
        elif what == "gradients":
            chain.costs[340:, GRADIENTS] = 10
    if what == "chain":
        chains[2].positions[:, 4] += 1.0
    assert not has_settled(chains)


def test_rhat_is_that_of_arviz():
    x = np.random.default_rng(1).normal(size=(4, 100, 3))
    x[1:] += [0.0, 0.2, 1.0]
    known = az.rhat(az.convert_to_dataset({"x": x}), method="split")["x"].values
    np.testing.assert_allclose(find_rhat(x), known, rtol=1e-10)


# ---------------------------------------------------------------------------- what is stored


class Square(Op):
    """An Op that knows vectors only, and not how to be vectorised."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [pt.as_tensor(x)], [pt.dvector()])

    def perform(self, node, inputs, outputs):
        [x] = inputs
        if x.ndim != 1:
            raise ValueError("a vector, please")
        outputs[0][0] = x**2


def scan(x):
    total = pytensor.scan(lambda a, b: a + b, sequences=[x], outputs_info=[pt.zeros(())])
    return total[0] if isinstance(total, tuple | list) else total


@pytest.mark.parametrize("function", [Square(), scan, pt.sort, lambda x: x.sum() * pt.ones(7)])
@pytest.mark.filterwarnings("ignore:.*will run in object mode:UserWarning")
@pytest.mark.filterwarnings("ignore:Scan return signature will change:DeprecationWarning")
def test_deterministics_of_any_op(function):
    with pm.Model() as model:
        x = pm.HalfNormal("x", shape=4)
        pm.Deterministic("d", function(x))
        step = rb.RollbackHMC(rng=1)
    stored = Stored(step.density, step.vars)
    positions = np.abs(np.random.default_rng(1).normal(size=(30, 4)))
    *found, difference = stored(positions)
    own = pytensor.function([x], model["d"], mode="FAST_COMPILE")
    assert [v.name for v in stored.vars] == ["x", "d"]
    np.testing.assert_allclose(found[0], positions, rtol=1e-12)
    np.testing.assert_allclose(found[1], [own(row) for row in positions], rtol=1e-10)
    assert difference.shape == (30,)


# ---------------------------------------------------------------------------- when things go wrong


@pytest.fixture
def interruptible():
    """Have Python answer to an interrupt, which processes in the background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.compiled
@pytest.mark.parametrize("keep", [True, False])
def test_an_interrupt_keeps_the_draws(keep, interruptible):
    def interrupt(runner):
        while runner.done < runner.tune + 10:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    made = []

    class Watched(runner.Runner):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)
            if len(made) == 2:
                threading.Thread(target=interrupt, args=[self]).start()

    model = simple()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "Runner", Watched)
        with pytest.warns(UserWarning, match=r"interrupted: the draws are partial, \d+ of 1000000"):
            drawn = quietly(model, draws=1_000_000, discard_tuned_samples=not keep, cores=2)
    x = drawn["posterior"]["x"].values
    assert 10 <= x.shape[1] < 1_000_000 and np.all(x > 0)
    assert ("warmup_posterior" in datasets(drawn)) is keep
    for each in made:
        assert each.done < 1_000_000


def test_an_interrupted_warmup_leaves_nothing(monkeypatch, interruptible):
    draw = runner.Runner._draw

    def interrupt(self, count):
        draw(self, count)
        if self.done == 5:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(runner.Runner, "_draw", interrupt)
    with pytest.raises(KeyboardInterrupt):
        quietly(simple(), tune=10_000)


@pytest.fixture
def second_fails(monkeypatch):
    """Have the second chain fail in the batch of its 40th draw, however large the batches are."""
    draw = runner.Runner._draw

    def fail(self, count):
        if self.start["x_log__"][0] > 0 and self.done + count >= 40:
            raise SamplingError("the culprit")
        draw(self, count)

    monkeypatch.setattr(runner.Runner, "_draw", fail)
    return [{"x": [0.5, 1.0]}, {"x": [2.0, 1.0]}]


def test_a_chain_that_fails_is_named_and_the_others_are_kept(second_fails):
    with pytest.warns(
        UserWarning, match=r"Chain 1 failed after 3\d draws \(random_seed=4 .*culprit"
    ):
        drawn = quietly(simple(), initvals=second_fails)
    assert drawn["posterior"]["x"].shape == (1, 50, 2)
    whole = quietly(simple(), chains=1, initvals=second_fails[0])
    assert np.array_equal(drawn["posterior"]["x"], whole["posterior"]["x"])


def test_an_error_of_all_chains_is_raised(second_fails):
    with pytest.raises(SamplingError, match="the culprit") as raised:
        quietly(simple(), chains=1, initvals=second_fails[1])
    assert "Chain 0 failed after 3" in raised.value.__notes__[0]


def test_a_density_that_is_not_the_models_is_seen(monkeypatch):
    real = runner.read_point

    def shifted(point):
        position, log_density, slope = real(point)
        return type(real(point))(position, log_density + 0.01, slope)

    monkeypatch.setattr(runner, "read_point", shifted)
    with pytest.raises(SamplingError, match="log density of the model"):
        quietly(simple(), chains=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"draws": 0}, "draws=0 must be a whole number of at least 1"),
        ({"tune": -1}, "tune=-1 must be a whole number of at least 0"),
        ({"tune": 1.5}, "tune=1.5"),
        ({"chains": 0}, "chains=0"),
        ({"cores": 0}, "cores=0"),
        ({"random_seed": "x"}, "random_seed='x' must be a seed"),
        ({"progressbar": "blue"}, "progressbar='blue' must be True, False or one of combined"),
        ({"discard_tuned_samples": 2}, "discard_tuned_samples=2"),
        ({"initvals": [{}]}, "chains"),
        ({"vars": []}, "rb.sample draws all variables"),
        ({"rng": 3}, "random_seed"),
        ({"step": 3}, "takes its options itself"),
        ({"callback": print}, "no option callback"),
        ({"target_acept": 0.9}, "Did you mean target_accept"),
        ({"target_accept": 2}, "target_accept=2"),
    ],
)
def test_bad_input_is_refused_before_anything_is_compiled(options, message, monkeypatch):
    monkeypatch.setattr(step_module, "compile_density", None)
    with pytest.raises((ValueError, TypeError), match=message):
        quietly(simple(), **options)


def test_discrete_variables_are_named():
    with pm.Model() as model:
        x = pm.HalfNormal("x")
        pm.Poisson("n", x)
    with pytest.raises(ValueError, match=r"not n\. .*RollbackHMC\(\[x\]\), pm.Metropolis\(\[n\]"):
        quietly(model)


# ---------------------------------------------------------------------------- while it runs


@pytest.mark.parametrize("kind", [True, "combined", "split+stats"])
def test_progress(kind, monkeypatch):
    shown = {}
    backend = sampling.ProgressBars._create_backend

    def watched(self, **options):
        made = backend(self, **options)
        update = made.update

        def keep(task_id, advance, stats, **more):
            shown.setdefault(task_id, []).append((advance, stats))
            update(task_id=task_id, advance=advance, stats=stats, **more)

        made.update = keep
        return made

    monkeypatch.setattr(sampling.ProgressBars, "_create_backend", watched)
    quietly(simple(), progressbar=kind)
    total = {task: sum(advance for advance, _ in seen) for task, seen in shown.items()}
    assert total == ({0: 160} if kind == "combined" else {0: 80, 1: 80})
    last = shown[0][-1][1]
    assert last["draw"] == total[0]
    assert ("step_size" in last) is (kind != "combined")


def test_a_batch_takes_a_tenth_of_a_second(monkeypatch):
    """However long a draw takes, an interrupt is heard soon."""
    counts = []
    draw = runner.Chain.draw_batch

    def slow(self, *arguments):
        time.sleep(0.02 * arguments[-1])
        counts.append(arguments[-1])
        return draw(self, *arguments)

    monkeypatch.setattr(runner.Chain, "draw_batch", slow)
    quietly(simple(), tune=1, chains=1, draws=12, step_size=0.5, n_steps=1)
    assert counts[0] == 1 and 1 < max(counts) <= 5 and sum(counts) == 13


@pytest.mark.compiled
def test_kernels_run_side_by_side():
    """One chain's draws are made while another's are: the GIL is free in between."""
    step = rb.RollbackHMC(model=simple(), step_size=0.01, n_steps=1000, metric=np.ones(2))
    chains = [
        runner.Runner(step, simple().initial_point(), np.random.default_rng(k), 0, 3000, False)
        for k in range(2)
    ]
    ticks = 0
    stop = threading.Event()
    thread = threading.Thread(target=chains[0].run, args=[stop])
    thread.start()
    while thread.is_alive():
        time.sleep(0.001)
        ticks += 1
    # a batch of a tenth of a second would let the main thread run a few times only
    assert chains[0].done == 3000 and ticks > 50


def test_one_at_a_time():
    """Two threads are never inside of an object that is served one at a time."""

    class Fragile:
        inside = most = 0

        def call(self):
            self.inside += 1
            self.most = max(self.most, self.inside)
            time.sleep(0.005)
            self.inside -= 1

    fragile = Fragile()
    calls = [threading.Thread(target=OneAtATime(fragile).call) for _ in range(4)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert fragile.most == 1
