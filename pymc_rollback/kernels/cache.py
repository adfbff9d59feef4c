"""Kernels that are compiled once for a machine, where there is a place to keep them."""

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

from numba import njit
from numba.core.dispatcher import Dispatcher


def cached(kernel: Callable) -> Dispatcher:
    """Jit a kernel, and keep it in Numba's cache, if there can be one.

    Numba looks for a directory to write to as soon as it meets the function. What it keeps there is
    valid until the source of any kernel changes. By itself Numba would look at the file of the one
    function only, and go on with old versions of the functions that it calls.

    While a kernel runs, other threads of Python do, too.
    """
    try:
        dispatcher = njit(cache=True, nogil=True, error_model="numpy")(kernel)
        dispatcher._cache._cache_file._source_stamp = stamp(
            Path(kernel.__code__.co_filename).parent
        )
        return dispatcher
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        _say_that_nothing_is_kept()
        return njit(nogil=True, error_model="numpy")(kernel)


@cache
def stamp(folder: Path) -> str:
    """What the sources of the kernels in a folder are told apart by."""
    contents = b"".join(source.read_bytes() for source in sorted(folder.glob("*.py")))
    return hashlib.sha256(contents).hexdigest()


def is_kept(kernel: Dispatcher) -> bool:
    """Whether a kernel of the present sources is in Numba's cache."""
    file = getattr(kernel._cache, "_cache_file", None)
    return file is not None and bool(file._load_index())


@cache
def say_that_it_takes_long() -> None:
    """Say, once, that the first use on a machine compiles."""
    logging.getLogger("pymc").info(
        "Compiling the loops of pymc_rollback: about 20 s, once on this machine."
    )


@cache
def _say_that_nothing_is_kept() -> None:
    logging.getLogger("pymc").warning(
        "pymc_rollback compiles its loops anew in each process, as neither its own directory nor "
        "the user's cache can be written to. Set NUMBA_CACHE_DIR to a directory that can."
    )
