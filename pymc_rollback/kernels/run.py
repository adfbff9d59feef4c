"""Draws: one trajectory after the other, in one call."""

from functools import cache

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher

from pymc_rollback.kernels.cache import cached, is_kept, say_that_it_takes_long
from pymc_rollback.kernels.native import (
    MATRICES,
    MATRIX,
    address_of,
    function_at,
    generator_at,
)
from pymc_rollback.kernels.stats import STEPS, combine
from pymc_rollback.kernels.trajectory import ADDRESS, STATIC

TRAJECTORY = types.FunctionType(STATIC)
trajectory_at = function_at(TRAJECTORY)
REPEATED = types.void(
    ADDRESS,
    *STATIC.args[:-3],
    types.float64,
    *[types.int64] * 2,
    ADDRESS,
    types.int64,
    MATRICES,
    MATRICES,
    MATRIX,
    MATRIX,
)


FINER = 4
"""How many steps of a finer trajectory make a step of the others."""


@cached
def repeat_trajectory(
    trajectory_address,
    model_address,
    walls_address,
    system,
    point,
    step_size,
    length,
    jitter,
    finer,
    made,
    rng_address,
    repeats,
    points,
    lasts,
    outcomes,
    counts,
):
    """Run one trajectory after the other, ``repeats`` of them for a draw.

    Parameters
    ----------
    trajectory_address
        Where the kernel of the trajectories is.
    model_address, walls_address, system, point, step_size, length, rng_address
        What it is called with; of the generator, where its bit generator is.
    jitter
        Share by which the step size of a trajectory is shortened at most, at random: a trajectory
        of one fixed time could return to where it started, for ever.
    finer, made
        Every so many trajectories one has steps of a fraction of the size, so that a tail is left
        in which the usual steps are always refused; none, if zero. And how many were made before:
        at random, some would be waited for very long.
    repeats
        Number of trajectories for each draw.
    points, lasts, outcomes
        Overwritten with the draws, the last points reached and the statistics of the draws.
    counts
        Overwritten with the time that the trajectories of each draw took, and with as many of the
        first numbers as fit in that were counted at the walls on the way.
    """
    trajectory, rng = trajectory_at(trajectory_address), generator_at(rng_address)
    outcome = np.empty(outcomes.shape[1])
    outcomes[:] = 0.0
    met, time = system.met, 0.0
    for k in range(points.shape[0]):
        for _ in range(repeats):
            short = 1.0 - jitter * rng.random() if jitter > 0 else 1.0
            parts = FINER if finer > 0 and made % finer == finer - 1 else 1
            made += 1
            trajectory(
                model_address,
                walls_address,
                system,
                point,
                short * step_size / parts,
                length * parts,
                rng,
                lasts[k],
                outcome,
            )
            combine(outcomes[k], outcome, repeats)
            time += outcome[STEPS] * short * step_size / parts
        points[k] = point
        counts[k, 0], time = time, 0.0
        for j in range(1, counts.shape[1]):
            counts[k, j], met[j - 1] = met[j - 1], 0.0


@cache
def ready(kernel: Dispatcher) -> Dispatcher:
    """A kernel, compiled or loaded from the cache of Numba when it is first asked for."""
    if not kernel.signatures:
        if not is_kept(kernel):
            say_that_it_takes_long()
        kernel.compile(REPEATED if kernel is repeat_trajectory else STATIC)
        kernel.disable_compile()
    return kernel


@cache
def address_of_trajectory(kernel: Dispatcher) -> int:
    """Where the machine code of a trajectory is."""
    return address_of(ready(kernel), TRAJECTORY)
