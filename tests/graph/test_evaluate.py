"""What is compiled for many draws: loops, and nothing else."""

import time

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_rollback.graph.evaluate import interpreted, repeated


def seconds(function, *args):
    """The least time of some calls, the first of which may compile."""
    times = []
    for _ in range(4):
        begun = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - begun)
    return min(times)


def test_loops_are_compiled():
    """A ratio of about 100: Python takes 30 microseconds and more for a step."""
    x = pt.dscalar("x")
    steps = pytensor.scan(lambda y: 0.5 * y + 1, [], [x], n_steps=500, return_updates=False)
    fast, slow = (make([x], [steps[-1]]) for make in (repeated, interpreted))
    assert np.allclose(fast(3.0), slow(3.0)) and np.allclose(fast(3.0), 2.0)
    assert seconds(fast, 3.0) < 0.2 * seconds(slow, 3.0)
