"""What draws cost besides their gradients: through ``rb.sample``, and through ``pm.sample``."""

import subprocess
import sys
import time
from importlib.util import find_spec
from threading import Event

import numpy as np
import pymc as pm

import pymc_rollback as rb
from benchmarks.rows import Row
from benchmarks.samplers import only_errors
from pymc_rollback.runner import Runner
from pymc_rollback.stored import Stored

QUIET = {"chains": 1, "cores": 1, "random_seed": 1, "progressbar": False}

SHORT = {"step_size": 0.5, "n_steps": 1, "metric": np.ones(50)}
"""A trajectory of one gradient, without a warm-up."""


def half_normals():
    with pm.Model() as model:
        pm.HalfNormal("x", shape=50)
    return model


def regression(rows=100, columns=8):
    """Positive coefficients; with an intercept and a scale ten variables, and fitted values."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, columns))
    y = X @ rng.exponential(size=columns) + rng.normal(size=rows)
    with pm.Model() as model:
        coefficients = pm.HalfNormal("coefficients", 2.0, shape=columns)
        intercept = pm.Normal("intercept", 0.0, 5.0)
        scale = pm.HalfNormal("scale", 2.0)
        fitted = pm.Deterministic("fitted", intercept + X @ coefficients)
        pm.Normal("y", fitted, scale, observed=y)
    return model


def microseconds(function, draws):
    start = time.perf_counter()
    function(draws)
    return 1e6 * (time.perf_counter() - start) / draws


def besides_kernels(draws, repeats):
    """Microseconds of a draw of ``rb.sample`` besides the kernels, which call the gradients."""
    step = rb.RollbackHMC(model=half_normals(), **SHORT)
    stored = Stored(step.density, step.vars)
    start, rng = step.density.model.initial_point(), np.random.default_rng(1)
    runner = Runner(step, start, rng, tune=0, draws=draws, keep_warmup=False)
    runner.run(Event())

    def bare(count):
        place = runner.functions, runner.point, runner.given, runner.rng
        runner.chain.draw_batch(*place, tune=False, count=count)

    def whole(count):
        runner.record.clear()
        runner.done = runner.total - count
        runner.run(Event())
        stored(runner.record.positions[:count])

    # in turns, so that a busy machine slows both
    times = [(microseconds(whole, draws), microseconds(bare, draws)) for _ in range(repeats)]
    outer, inner = np.min(times, axis=0)
    return outer - inner


def through_pymc(draws):
    """Microseconds of a draw of ``pm.sample``, with gradients and kernels."""
    options = {"tune": 0, "compute_convergence_checks": False, **QUIET}
    with half_normals(), only_errors():
        drawn = pm.sample(draws, step=rb.RollbackHMC(**SHORT), **options)
    return 1e6 * drawn.posterior.attrs["sampling_time"] / draws


def speedup(draws, rows):
    """Seconds of four chains on one core over those on two."""
    model = regression(rows, 20)
    given = {"step_size": 0.01, "n_steps": 20, "metric": np.ones(22), "tune": 0, "model": model}

    def seconds(cores):
        options = {**QUIET, "chains": 4, "cores": cores, **given}
        return rb.sample(draws, **options).posterior.attrs["sampling_time"]

    times = [(seconds(1), seconds(2)) for _ in range(3)]
    one, two = np.min(times, axis=0)
    return one / two


CALL = """
import logging, time, warnings
import pymc as pm
import pymc_rollback as rb
from benchmarks.entry import regression
logging.getLogger("pymc").setLevel(logging.CRITICAL)
warnings.simplefilter("ignore")
model = regression()
for _ in range(2):
    start = time.perf_counter()
    {call}
    print(time.perf_counter() - start)
"""

OURS = "rb.sample({n}, {n}, chains=4, model=model, random_seed=1, progressbar=False)"
THEIRS = (
    "nutpie.sample(nutpie.compile_pymc_model(model), draws={n}, tune={n}, chains=4, seed=1, "
    "progress_bar=False)"
)


def call_to_draws(call, draws, repeats):
    """Least seconds of a call in a fresh process, with warm caches, and of the next call in it."""
    command = [sys.executable, "-c", CALL.format(call=call.format(n=draws))]
    runs = [subprocess.run(command, check=True, capture_output=True) for _ in range(repeats + 1)]
    return np.min([list(map(float, run.stdout.split()[-2:])) for run in runs[1:]], axis=0)


def run(quick):
    """Rows of the table, as they are measured."""
    draws, repeats = (500, 2) if quick else (10_000, 10)
    figure = besides_kernels(draws, repeats)
    yield Row("50 half normals: microseconds a draw besides gradients and kernels", figure, 3.0)
    yield Row("the same through pm.sample, with gradients and kernels", through_pymc(draws), 30.0)
    ratio = speedup(50 if quick else 1000, 100 if quick else 5000)
    yield Row("4 chains: one core over two", ratio, 1.8, True)
    draws, repeats = (100, 1) if quick else (1000, 4)
    first, again = call_to_draws(OURS, draws, repeats)
    yield Row("10 variables, 4 × (1000 + 1000): seconds from call to draws", again, 1.5)
    yield Row("the same, the first call of a process", first, np.nan)
    if find_spec("nutpie"):
        theirs, _ = call_to_draws("import nutpie; " + THEIRS, draws, repeats)
        yield Row("the same / nutpie", first / theirs, 1.0)
