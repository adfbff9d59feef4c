"""Models are interpreted, not compiled, in tests that need no speed: compiling takes longest."""

import warnings

import pytest

from pymc_rollback import step
from pymc_rollback.target.compile import compile_density


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
