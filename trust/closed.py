"""Models and walls in closed form, for the kernels without PyMC."""

from collections.abc import Callable

import numpy as np
from numba import njit, types
from numba.core.dispatcher import Dispatcher

from pymc_rollback.kernels.native import VECTOR


def as_model(function: Callable) -> Dispatcher:
    """Make a model of ``function(position, others, slope) -> log density``.

    Parameters
    ----------
    function
        Anything that Numba compiles; it writes the gradient into ``slope``.
    """
    compiled = njit(function)

    @njit
    def model(*inputs):
        n = inputs[0].size
        answer = np.empty(n + 1)
        answer[n] = compiled(inputs[0], inputs[1], answer[:n])
        return (answer,)

    model.compile((types.StarArgUniTuple(VECTOR, 2),))
    return model


def as_walls(function: Callable, rows: int = 0) -> Dispatcher:
    """Make walls of ``function(position, others, sharpness, push, outcome) -> boundary energy``.

    Parameters
    ----------
    function
        Anything that Numba compiles; it writes the gradient of the energy into ``push``, the log
        weight and the slack into ``outcome``.
    rows
        For how many rows of barriers it writes their steepness there, too.
    """
    compiled = njit(function)

    @njit
    def walls(*inputs):
        n = inputs[0].size
        answer = np.empty(n + 3 + rows)
        answer[n] = compiled(inputs[0], inputs[1], inputs[2], answer[:n], answer[n + 1 :])
        return (answer,)

    walls.compile((types.StarArgUniTuple(VECTOR, 3),))
    return walls
