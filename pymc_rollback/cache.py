"""Kernels that are compiled once for a machine, where there is a place to keep them."""

import logging
from collections.abc import Callable
from functools import cache

from numba import njit
from numba.core.dispatcher import Dispatcher


def cached(kernel: Callable) -> Dispatcher:
    """Jit a kernel, and keep it in Numba's cache, if there can be one.

    Numba looks for a directory to write to as soon as it meets the function.
    """
    try:
        return njit(cache=True, error_model="numpy")(kernel)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        _say_that_nothing_is_kept()
        return njit(error_model="numpy")(kernel)


@cache
def _say_that_nothing_is_kept() -> None:
    logging.getLogger("pymc").warning(
        "pymc_rollback compiles its loops anew in each process, as neither its own directory nor "
        "the user's cache can be written to. Set NUMBA_CACHE_DIR to a directory that can."
    )
