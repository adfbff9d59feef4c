"""The examples in docstrings are right."""

import doctest

import pytest

from pymc_rollback.diagnostics import probability, walls


@pytest.mark.slow
@pytest.mark.newest
@pytest.mark.parametrize("module", [probability, walls])
def test_examples(module):
    failed, attempted = doctest.testmod(module)
    assert attempted > 3 and failed == 0
