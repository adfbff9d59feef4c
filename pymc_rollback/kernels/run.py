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
from pymc_rollback.kernels.stats import combine
from pymc_rollback.kernels.trajectory import ADDRESS, STATIC

TRAJECTORY = types.FunctionType(STATIC)
trajectory_at = function_at(TRAJECTORY)
REPEATED = types.void(ADDRESS, *STATIC.args[:-3], ADDRESS, types.int64, MATRICES, MATRICES, MATRIX)


@cached
def repeat_trajectory(
    trajectory_address,
    model_address,
    walls_address,
    system,
    point,
    step_size,
    length,
    rng_address,
    repeats,
    points,
    lasts,
    outcomes,
):
    """Run one trajectory after the other, ``repeats`` of them for a draw.

    Parameters
    ----------
    trajectory_address
        Where the kernel of the trajectories is.
    model_address, walls_address, system, point, step_size, length, rng_address
        What it is called with; of the generator, where its bit generator is.
    repeats
        Number of trajectories for each draw.
    points, lasts, outcomes
        Overwritten with the draws, the last points reached and the statistics of the draws.
    """
    trajectory, rng = trajectory_at(trajectory_address), generator_at(rng_address)
    outcome = np.empty(outcomes.shape[1])
    outcomes[:] = 0.0
    for k in range(points.shape[0]):
        for _ in range(repeats):
            trajectory(
                model_address,
                walls_address,
                system,
                point,
                step_size,
                length,
                rng,
                lasts[k],
                outcome,
            )
            combine(outcomes[k], outcome, repeats)
        points[k] = point


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
