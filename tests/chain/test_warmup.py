"""What warm-up learns from draws that are given to it."""

import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.step_methods.state import equal_dataclass_values

import pymc_rollback as rb
from pymc_rollback.chain.warmup import EARLY, EARLY_TREEDEPTH
from pymc_rollback.kernels.native import MODEL, address_of, address_of_generator, as_model
from pymc_rollback.kernels.run import address_of_trajectory, ready, repeat_trajectory
from pymc_rollback.kernels.state import POSITION, System, new_points
from pymc_rollback.kernels.stats import Outcome
from pymc_rollback.kernels.trajectory import window_trajectory

SD = np.array([1e-3, 1.0, 1e3])


def fresh_chain(radius=None, **options):
    """Chain of three normals, in a ball if there is a radius."""
    with pm.Model():
        x = pm.Normal("x", 0, SD, shape=3)
        if radius is not None:
            rb.constrain("ball", pt.sum((x / SD) ** 2) < radius**2)
        return rb.RollbackHMC(**options).chain


def close_window(chain, positions):
    """Give a window of draws to a chain's warm-up, and close it."""
    for x in positions:
        assert not chain.learnt.at_window_end
        chain.learnt = chain.warmup.update(chain.learnt, x, x / SD**2, 0.8, 0.0, 7)
    assert chain.learnt.at_window_end
    nowhere = np.full(3, -np.inf), np.full(3, np.inf)
    [dense] = chain.warmup.candidates(chain.learnt)
    chain.learnt = chain.warmup.close_window(chain.learnt, nowhere, stay=True, dense=dense)
    return chain.learnt.metric.variances


@pytest.fixture
def creeping():
    """Ten draws of a chain that has hardly moved, far from where the mass is."""
    return 5 * SD + 0.01 * SD * np.random.default_rng(1).normal(size=(10, 3))


def test_early_metric_knows_the_scale_from_slopes(creeping):
    np.testing.assert_allclose(np.sqrt(close_window(fresh_chain(), creeping)), SD)


def test_early_metric_stays_below_the_spread_with_a_barrier(creeping):
    """Slopes know nothing of the barrier, and the draws may fill the region."""
    variances = close_window(fresh_chain(radius=6.0), creeping)
    spread = np.var(creeping, axis=0)
    assert np.all(variances < spread) and np.all(variances > 0.9 * spread)


def test_late_metric_is_the_spread():
    chain = fresh_chain(metric="diag")
    rng, begin = np.random.default_rng(1), 0
    while chain.learnt.window_end <= 2 * EARLY:
        draws = 3 * SD * rng.normal(size=(chain.learnt.window_end - begin, 3))
        begin = chain.learnt.window_end
        variances = close_window(chain, draws)
    np.testing.assert_allclose(variances, np.var(draws, axis=0))


def test_a_chain_that_never_moved_shrinks_its_metric():
    chain = fresh_chain()
    before = chain.learnt.metric.variances
    np.testing.assert_allclose(close_window(chain, np.ones((10, 3))), before / 100)


@pytest.mark.parametrize(("most", "early"), [(10, EARLY_TREEDEPTH), (3, 3)])
def test_early_trajectories_are_short(most, early):
    chain = fresh_chain(max_treedepth=most)
    assert chain._length(tune=True) == early
    chain.learnt = chain.learnt._replace(window_end=2 * EARLY)
    assert chain._length(tune=True) == chain._length(tune=False) == most


def test_what_was_learnt_is_not_changed_in_place(creeping):
    """So that a chain can go back to it, and any pickle can take it."""
    chain = fresh_chain(radius=6.0, metric="dense")
    kept = []
    for window in (creeping, 2 * creeping):
        kept += [(chain.learnt, pickle.dumps(chain.learnt))]
        close_window(chain, window)
    assert all(pickle.dumps(learnt) == then for learnt, then in kept)
    assert equal_dataclass_values(pickle.loads(kept[1][1]), kept[1][0])
    assert not equal_dataclass_values(kept[0][0], kept[1][0])


def test_a_window_that_has_just_begun_is_left(creeping):
    chain = fresh_chain()
    chain.before = chain.learnt
    close_window(chain, creeping)
    chain.finish()
    assert chain.learnt.iteration == 0 and chain.before is None


@as_model
def flat(position, others, slope):
    slope[:] = 0.0
    return 0.0


def test_draws_that_round_onto_a_bound_are_moved_inside():
    """A box of four representable numbers, and its two ends."""
    lower, upper = 1.0, 1.0 + 5 * np.spacing(1.0)
    nothing = np.empty((0, 0))
    box = System(
        others=np.empty(0),
        sharpness=np.empty(0),
        coordinates=np.array([[1.0], [lower], [upper], [0.0], [0.0]]),
        bouncing=np.zeros(1, int),
        planes=np.empty((2, 0)),
        turns=nothing,
        dense=nothing,
        root=nothing,
        ordered=np.empty((0, 3)),
        inner=0,
    )
    rng, [point], points = np.random.default_rng(1), new_points(1, 1), new_points(500, 1)
    point[POSITION, 0] = 1.0 + 2 * np.spacing(1.0)
    outcomes = np.empty((500, len(Outcome._fields)))
    ready(repeat_trajectory)(
        address_of_trajectory(window_trajectory),
        address_of(flat, MODEL),
        0,
        box,
        point,
        1e-15,
        3,
        address_of_generator(rng),
        1,
        points,
        points.copy(),
        outcomes,
    )
    positions = points[:, POSITION, 0]
    assert len(np.unique(positions)) == 4
    assert lower < positions.min() and positions.max() < upper
