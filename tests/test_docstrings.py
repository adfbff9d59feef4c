"""Each public name has an example in its docstring, and the examples are right."""

import doctest

import matplotlib
import pytest
from matplotlib import pyplot as plt

import pymc_rollback as rb

matplotlib.use("Agg")

LONG = {"constraint_probability", "wall_summary"}
"""Examples that take more than a few seconds."""

NAMES = [name for name in rb.__all__ if name != "__version__"]


@pytest.mark.compiled
@pytest.mark.newest
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in LONG else []) for n in NAMES]
)
def test_examples(name):
    [example] = doctest.DocTestFinder(recurse=False).find(getattr(rb, name), name, globs={})
    assert len(example.examples) > 2
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    failed, _ = runner.run(example, out=report.append)
    plt.close("all")
    assert failed == 0, "".join(report)
