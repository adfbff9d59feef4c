"""Models are interpreted, not compiled, in tests that need no speed: compiling takes longest."""

import gc
import warnings

import pytensor
import pytest

from pymc_rollback import step
from pymc_rollback.target.compile import compile_density

# of the place in a test where each node of a graph was made: a tenth of the time of reading a model
pytensor.config.traceback__limit = 0


def pytest_collection_finish():
    """Leave what is imported out of the search for garbage, which graphs set off all the time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def interpret_density(density, compile_kwargs=None):
    """A density whose functions the kernels call back, unless a test says how to compile it."""
    with warnings.catch_warnings():
        if not compile_kwargs:
            warnings.filterwarnings("ignore", "The kernels call back into Python")
        return compile_density(density, compile_kwargs or {"mode": "FAST_COMPILE"})


@pytest.fixture(autouse=True)
def interpreted(request, monkeypatch):
    """Interpret the models of tests that are neither statistical nor marked as compiled."""
    marked = {mark.name for mark in request.node.iter_markers()}
    if not marked & {"slow", "compiled"}:
        monkeypatch.setattr(step, "compile_density", interpret_density)
