"""Dual averaging of a step size."""

import numpy as np
import pytest
from pymc.step_methods.step_sizes import DualAverageAdaptation

from pymc_rollback.chain.step_size import StepSize


@pytest.mark.parametrize("first", [1e-3, 1.0, 37.0])
def test_the_same_as_that_of_pymc(first):
    theirs, ours = DualAverageAdaptation(first, 0.8, 0.05, 0.75, 10), StepSize.first(first)
    for acceptance in np.random.default_rng(1).uniform(size=300).tolist():
        assert [ours.current(tune) for tune in (True, False)] == [
            theirs.current(tune) for tune in (True, False)
        ]
        theirs.update(acceptance, True)
        ours = ours.update(acceptance, 0.8)


def test_it_finds_the_wanted_acceptance_rate():
    """Of a made-up sampler that accepts exp(-step size)."""
    step = StepSize.first(20.0)
    for _ in range(2000):
        step = step.update(np.exp(-step.current(tune=True)), 0.65)
    assert np.exp(-step.current(tune=False)) == pytest.approx(0.65, abs=0.01)
