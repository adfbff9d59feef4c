"""What a leapfrog step costs: over its gradient, and against PyMC's HMC."""

import subprocess
import sys
import time
from functools import cache

import numpy as np
import pymc as pm
from numba import njit, types
from pymc.model.transform.conditioning import remove_value_transforms

import pymc_rollback as rb
from benchmarks.rows import Row
from benchmarks.work import factorisation
from pymc_rollback.kernels.leapfrog import evaluate_model, evaluate_walls, leapfrog
from pymc_rollback.kernels.native import MATRIX, MODEL, WALLS, borrowed
from pymc_rollback.kernels.state import MOMENTUM, SYSTEM, System, new_counts, new_state

LOOP = types.void(MODEL, WALLS, SYSTEM, MATRIX, types.float64, types.int64)


@cache
def loops():
    """Of leapfrog steps, and of what they evaluate; compiled when needed, not by an import."""
    looping = njit(LOOP, error_model="numpy")

    @looping
    def leapfrogs(model, walls, system, state, step_size, n):
        system = borrowed(system)
        for _ in range(n):
            leapfrog(model, walls, system, state, step_size)

    @looping
    def gradients(model, walls, system, state, step_size, n):
        system = borrowed(system)
        for _ in range(n):
            evaluate_walls(walls, system, state)
            evaluate_model(model, system, state)

    return leapfrogs, gradients


def truncated_normal():
    """20 standard normals, cut at zero."""
    with pm.Model() as model:
        pm.TruncatedNormal("x", 0, 1, lower=0, shape=20)
    return model


def seconds(function, *arguments):
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def step_over_gradient(model, size, mu, step_size, n, repeats):
    """Time of a leapfrog step over that of the log density and the walls, with gradients."""
    with model:
        step = rb.RollbackHMC(sharpness=mu, step_size=step_size, n_steps=1, exact=False)
    functions = step.compiled()
    infinite, nothing = np.full(size, np.inf), np.empty((0, 0))
    system = System(
        others=np.empty(0),
        sharpness=np.full(2 * size, mu),
        coordinates=np.array([np.ones(size), -infinite, infinite, *np.zeros((4, size))]),
        bouncing=np.empty(0, int),
        rotating=np.empty(0, int),
        turning=False,
        planes=np.empty((size + 1, 0)),
        turns=nothing,
        dense=nothing,
        root=nothing,
        ordered=np.empty((0, 3)),
        inner=1,
        met=new_counts(size, 0),
    )
    state = new_state(np.full(size, 0.5))
    state[MOMENTUM, :size] = np.random.default_rng(1).normal(size=size)
    loops()[1](functions.model, functions.walls, system, state, step_size, 1)
    # side by side, so that a busy machine slows both
    times = np.array(
        [
            [
                seconds(loop, functions.model, functions.walls, system, state, step_size, n)
                for loop in loops()
            ]
            for _ in range(repeats)
        ]
    )
    if not np.all(np.isfinite(state)):
        raise RuntimeError("the trajectory diverged: its time says nothing")
    moved, bare = times.min(0)
    return moved / bare


def time_per_leapfrog(step, point, draws):
    """Seconds of whole draws over their leapfrog steps."""
    steps, start = 0, time.perf_counter()
    for _ in range(draws):
        point, [stats] = step.step(point)
        steps += stats["n_steps"]
    return (time.perf_counter() - start) / steps


def speed_over_hmc(draws, **sharpness):
    """How many times faster a leapfrog step is than that of PyMC's HMC; 500 steps a draw."""
    with truncated_normal() as model:
        ours = rb.RollbackHMC(step_size=0.02, n_steps=500, rng=1, **sharpness)
        # its step size is step_scale / size ** 0.25
        theirs = pm.HamiltonianMC(
            path_length=10.0, step_scale=0.02 * 20**0.25, adapt_step_size=False, rng=1
        )
        point = model.initial_point()
    for step in (ours, theirs):
        step.step(point)
        step.stop_tuning()
    # in turns, so that a busy machine slows both
    times = [
        (time_per_leapfrog(theirs, point, draws), time_per_leapfrog(ours, point, 10 * draws))
        for _ in range(5)
    ]
    slow, fast = np.min(times, axis=0)
    return slow / fast


FIRST_DRAW = """
import gc
import time
import pymc as pm
from benchmarks.loop import truncated_normal
import pymc_rollback as rb
model = truncated_normal()
gc.collect()  # else a collection of all that was imported falls into one run or the other
start = time.perf_counter()
with model:
    step = {step}
step.step(model.initial_point())
print(time.perf_counter() - start)
"""


def time_to_first_draw(step, repeats):
    """Least seconds from a model to its first draw, in fresh processes with warm caches."""
    command = [sys.executable, "-c", FIRST_DRAW.format(step=step)]
    runs = [subprocess.run(command, check=True, capture_output=True) for _ in range(repeats + 1)]
    return min(float(run.stdout.split()[-1]) for run in runs[1:])


def run(quick):
    """Rows of the table, as they are measured."""
    repeats = 3 if quick else 30
    plain = remove_value_transforms(truncated_normal())
    ratio = step_over_gradient(plain, 20, 20.0, 0.02, 20_000, repeats)
    yield Row("leapfrog / gradient, truncated normal", ratio, 1.5)
    plain = remove_value_transforms(factorisation.build(1000))
    ratio = step_over_gradient(plain, 4144, 200.0, 0.002, 200, repeats)
    yield Row("leapfrog / gradient, matrix factorisation", ratio, 1.1)
    ratio = speed_over_hmc(repeats)
    yield Row("speed over HamiltonianMC, per leapfrog", ratio, 30, True)
    ratio = speed_over_hmc(repeats, sharpness=20.0)
    yield Row("the same, with a barrier", ratio, 30, True)
    ours, theirs = "rb.RollbackHMC()", "pm.HamiltonianMC()"
    first, reference = (time_to_first_draw(s, 1 if quick else 4) for s in (ours, theirs))
    yield Row("time to the first draw / HamiltonianMC", first / reference, 1.5)
