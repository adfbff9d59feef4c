"""What warm-up learns from draws that are given to it."""

import pickle
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.step_methods.state import equal_dataclass_values

import pymc_rollback as rb
from pymc_rollback.chain.choice import JITTER, QUARTER, QUARTER_TURN, Choice, find_choices
from pymc_rollback.chain.race import FADING
from pymc_rollback.chain.warmup import EARLY, EARLY_TREEDEPTH, HOPELESS, LEAST_RACE
from pymc_rollback.chain.window import Window
from pymc_rollback.kernels.native import MODEL, address_of, address_of_generator
from pymc_rollback.kernels.run import address_of_trajectory, ready, repeat_trajectory
from pymc_rollback.kernels.state import POSITION, System, new_counts, new_points
from pymc_rollback.kernels.stats import STEPS, Outcome
from pymc_rollback.kernels.trajectory import window_trajectory
from trust.closed import as_model

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
    choice = chain.warmup.choices[0]
    chain.learnt = chain.warmup.close_window(chain.learnt, nowhere, stay=True, choice=choice)
    return chain.learnt.metric.variances


DOUBLED, TIMED, CURVED = (
    Choice(),
    Choice(time=QUARTER, jitter=JITTER),
    Choice(False, QUARTER_TURN, True, JITTER),
)
GIVEN = Choice(time=3.0, jitter=JITTER)


def dense(choice):
    return choice._replace(dense=True)


@pytest.mark.parametrize(
    ("options", "choices"),
    [
        ({}, [f(x) for x in (DOUBLED, TIMED, CURVED) for f in (Choice._make, dense)]),
        ({"metric": "dense"}, [dense(x) for x in (DOUBLED, TIMED, CURVED)]),
        ({"trajectory_time": 3.0, "metric": "diag"}, [GIVEN, GIVEN._replace(curved=True)]),
        ({"n_steps": 5}, [DOUBLED, dense(DOUBLED)]),
        ({"metric": np.ones(3)}, [DOUBLED]),
        ({"metric": np.ones(3), "trajectory_time": 3.0}, [GIVEN]),
    ],
    ids=str,
)
def test_what_is_given_is_no_choice(options, choices):
    assert list(fresh_chain(**options).warmup.choices) == choices


def test_orders_may_be_planes():
    chain = fresh_chain()
    walls = replace(chain.walls, run_names=("x",))
    choices = find_choices(chain.options, walls)
    few = find_choices(chain.options, chain.walls)
    assert [c for c in choices if not c.apart] == list(few)
    assert [c._replace(apart=False) for c in choices if c.apart] == [c for c in few if c.time]


def test_who_takes_part_in_a_race():
    """Nobody after few draws, and then all but those that were far behind: these later again."""
    chain = fresh_chain()
    learnt = chain.learnt._replace(leads=(0.0, -HOPELESS - 0.1, -0.5, 0.0, 0.0, 0.0))
    assert chain.warmup.candidates(learnt) == []
    learnt = learnt._replace(window=Window(LEAST_RACE * (np.zeros(3),)))
    assert chain.warmup.candidates(learnt) == [0, 2, 3, 4, 5]
    later = learnt._replace(leads=tuple(FADING * lead for lead in learnt.leads))
    assert chain.warmup.candidates(later) == [0, 1, 2, 3, 4, 5]


def test_numbers_of_steps_of_a_fixed_time():
    chain = fresh_chain()
    assert chain.warmup.numbers_of_steps(chain.learnt) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    chain = fresh_chain(trajectory_time=1.5, step_size=0.4)
    learnt = chain.learnt._replace(choice=GIVEN._replace(time=1.5))
    assert chain.warmup.numbers_of_steps(learnt) == [4]
    assert fresh_chain(n_steps=3, trajectory_time=1.5).warmup.numbers_of_steps(learnt) == [3]


def test_when_a_number_of_steps_is_enough():
    """On average nine tenths of the wanted rate, and few starts from which nothing is accepted."""
    rules = fresh_chain(target_accept=0.8).warmup
    assert rules.is_enough([0.73] * 32, 32) and not rules.is_enough([0.71] * 32, 32)
    assert rules.is_enough([1.0] * 30 + [0.0] * 2, 32)
    assert not rules.is_enough([1.0] * 29 + [0.0] * 3, 32)
    assert rules.is_enough([0.5], 32) and not rules.is_enough([0.0] * 10, 32)
    assert rules.finer([1.0] * 32) == 0 < rules.finer([0.8] * 32) < rules.finer([0.95] * 32)


def test_a_given_time_is_kept_without_a_race():
    """Tuning may stop before there are draws enough for one."""
    chain = fresh_chain(trajectory_time=1.5)
    chain.learnt = chain.learnt._replace(step=chain.learnt.step.first(0.4))
    chain.finish(None)
    assert (chain.learnt.time, chain.learnt.steps) == (1.5, 4)


def test_the_verdict_in_words():
    chain = fresh_chain()
    assert chain.warmup.verdict(chain.learnt) is None
    behind = (np.log(0.1), -1.0, -0.2, -0.3, -2.0, 0.0)
    learnt = chain.learnt._replace(choice=dense(CURVED), behind=behind, steps=2)
    text = chain.warmup.verdict(learnt)
    assert "along the curvature in a dense metric, for a time of 1.7 in 2 steps" in text
    assert "10 times" in text and "on straight lines in a diagonal metric, doubled" in text


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
    assert chain.length(tune=True)[1] == early
    chain.learnt = chain.learnt._replace(window_end=2 * EARLY)
    assert chain.length(tune=True)[1] == chain.length(tune=False)[1] == most


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
    chain.finish(None)
    assert chain.learnt.iteration == 0 and chain.before is None


@as_model
def flat(position, others, slope):
    slope[:] = 0.0
    return 0.0


def draw_in_box(lower, upper, start, step_size, count, finer=0, made=0):
    """Positions and statistics of draws from a flat density, by trajectories of three steps."""
    nothing = np.empty((0, 0))
    box = System(
        others=np.empty(0),
        sharpness=np.empty(0),
        coordinates=np.array([[1.0], [lower], [upper], *np.zeros((4, 1))]),
        bouncing=np.zeros(1, int),
        rotating=np.empty(0, int),
        turning=False,
        planes=np.empty((2, 0)),
        turns=nothing,
        dense=nothing,
        root=nothing,
        ordered=np.empty((0, 3)),
        inner=0,
        met=new_counts(1, 0),
    )
    rng, [point], points = np.random.default_rng(1), new_points(1, 1), new_points(count, 1)
    point[POSITION, 0] = start
    outcomes = np.empty((count, len(Outcome._fields)))
    ready(repeat_trajectory)(
        address_of_trajectory(window_trajectory),
        address_of(flat, MODEL),
        0,
        box,
        point,
        step_size,
        3,
        0.0,
        finer,
        made,
        address_of_generator(rng),
        1,
        points,
        points.copy(),
        outcomes,
        np.empty((count, 1 + box.met.size)),
    )
    return points[:, POSITION, 0], outcomes


def test_draws_that_round_onto_a_bound_are_moved_inside():
    """A box of four representable numbers, and its two ends."""
    lower, upper = 1.0, 1.0 + 5 * np.spacing(1.0)
    positions, _ = draw_in_box(lower, upper, 1.0 + 2 * np.spacing(1.0), 1e-15, 500)
    assert len(np.unique(positions)) == 4
    assert lower < positions.min() and positions.max() < upper


def test_finer_trajectories_come_by_their_number():
    """Whether their draws are made in one call or in two, and none where none is asked for."""
    of_one = np.where(np.arange(1, 13) % 4 == 0, 4 * 3, 3)
    _, outcomes = draw_in_box(0.0, 1.0, 0.5, 0.3, 12, finer=4)
    assert outcomes[:, STEPS].tolist() == of_one.tolist()
    _, outcomes = draw_in_box(0.0, 1.0, 0.5, 0.3, 7, finer=4, made=5)
    assert outcomes[:, STEPS].tolist() == of_one[5:].tolist()
    _, outcomes = draw_in_box(0.0, 1.0, 0.5, 0.3, 12)
    assert np.all(outcomes[:, STEPS] == 3)
