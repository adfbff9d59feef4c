"""Long chains of small models beside a stiff neighbour; error rates are in ``trust.chains``."""

import pytest

from pymc_rollback.chain import trajectories, warmup
from pymc_rollback.chain.choice import Choice
from trust import chains
from trust.breaks import BREAKS, broken_kernels

pytestmark = pytest.mark.newest

SOME = ("half normals", "order with bounds and data", "disk")
"""A drift, an exchange and a barrier; ``make trust`` runs all models."""


def farthest(name, draws=50_000):
    rows = chains.run_chain(name, draws)
    print(*rows, sep="\n")
    return max(abs(row.z) for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_long_chains_are_right(name):
    assert farthest(name) < chains.threshold()


@pytest.fixture
def doubled(monkeypatch):
    """Chains whose race has one entry: trajectories that double, along lines."""
    monkeypatch.setattr(warmup, "find_choices", lambda *given: (Choice(),))


@pytest.mark.slow
def test_long_chains_that_double_are_right(doubled):
    assert farthest("half normals") < chains.threshold()


@pytest.mark.slow
def test_control_without_seams_in_subtrees_they_are_not(monkeypatch, doubled):
    seams = next(b for b in BREAKS if b.name == "seams at the top only")
    kernels = broken_kernels(seams.module, seams.right, seams.wrong)
    monkeypatch.setattr(trajectories, "doubling_trajectory", kernels.trajectory.doubling_trajectory)
    assert farthest("half normals") > 1.5 * chains.threshold()
