"""Barriers become as steep as leaves the wanted share of states outside."""

import numpy as np
import pytest

from pymc_rollback.chain import steepness

pytestmark = pytest.mark.newest


def share_at_the_end(timed, steps, per_steepness=1.0, n=4000):
    """Share of states outside when states are outside with a chance that falls with steepness."""
    rng = np.random.default_rng(1)
    log, shares = steepness.first(timed), []
    for iteration in range(n):
        chance = min(per_steepness / np.exp(log), 1.0)
        outside = rng.binomial(steps, chance)
        log = steepness.tune(log, steepness.excess(outside / (steps + 1), steps, timed), iteration)
        shares.append(chance)
    return np.mean(shares[n // 2 :])


def test_of_ends_that_are_not_selected():
    """One step: its end is outside or not, and a rule that cut off at one would seek a half."""
    assert share_at_the_end(True, 1) == pytest.approx(steepness.OUTSIDE_AT_END, abs=0.02)
    assert share_at_the_end(True, 4) == pytest.approx(steepness.OUTSIDE_AT_END, abs=0.02)


def test_of_states_of_which_one_is_selected():
    assert share_at_the_end(False, 15) == pytest.approx(steepness.OUTSIDE * 16 / 15, abs=0.04)


def test_within_limits():
    least, _, most = np.log(steepness.STEEPNESS)
    assert steepness.tune(least, -1.0, 5) == least
    assert steepness.tune(most, 1.0, 5) == most
