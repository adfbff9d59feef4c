"""Which coordinates move under a log or a logit: by what a window shows, and to good use."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from harness import no_walls

import pymc_rollback as rb
from pymc_rollback.chain.maps import find_maps, say_maps
from pymc_rollback.chain.window import Window
from pymc_rollback.kernels.maps import ABOVE, BELOW, BETWEEN, NONE

MAPPABLE = no_walls(3, reflects=np.ones(3, dtype=bool), mappable=np.ones(3, dtype=bool))
LOWER, UPPER = np.array([0.0, -np.inf, 0.0]), np.array([np.inf, 5.0, 1.0])


def window(*columns):
    """Draws and slopes of the potential, of each coordinate."""
    draws, slopes = (np.stack(x, axis=1) for x in zip(*columns, strict=True))
    return Window(tuple(draws), tuple(slopes))


def log_normal(rng, sign=1.0, offset=0.0, spread=1.0):
    """A log-normal above an offset, or below it."""
    x = np.exp(spread * rng.normal(size=500))
    return offset + sign * x, sign * (1 + np.log(x) / spread**2) / x


def half_normal(rng, sign=1.0, offset=0.0):
    x = np.abs(rng.normal(size=500))
    return offset + sign * x, sign * x


def uniform(rng):
    return rng.random(500), np.zeros(500)


def steep_beta(rng):
    """Both ends are far out: nearly a normal of the logit."""
    x = rng.beta(3, 12, size=500)
    return x, -2 / x + 11 / (1 - x)


def test_evidence_for_each_coordinate():
    rng = np.random.default_rng(1)
    skewed = window(log_normal(rng), log_normal(rng, -1, 5.0), steep_beta(rng))
    maps = find_maps(skewed, np.empty((3, 0)), MAPPABLE, (LOWER, UPPER))
    assert maps[0].tolist() == [ABOVE, BELOW, BETWEEN]
    leaning = window(half_normal(rng), half_normal(rng, -1, 5.0), uniform(rng))
    assert find_maps(leaning, np.empty((3, 0)), MAPPABLE, (LOWER, UPPER)).size == 0
    mixed = window(log_normal(rng), half_normal(rng, -1, 5.0), uniform(rng))
    maps = find_maps(mixed, np.empty((3, 0)), MAPPABLE, (LOWER, UPPER))
    assert maps[0].tolist() == [ABOVE, NONE, NONE]
    # the same evidence from draws that are under the maps
    again = find_maps(mixed.changed(np.empty((3, 0)), maps), maps, MAPPABLE, (LOWER, UPPER))
    np.testing.assert_array_equal(again, maps)


def test_what_may_not_be_mapped_is_not():
    rng = np.random.default_rng(1)
    skewed = window(log_normal(rng), log_normal(rng, -1, 5.0), steep_beta(rng))
    none = replace(MAPPABLE, mappable=np.array([False, True, False]))
    maps = find_maps(skewed, np.empty((3, 0)), none, (LOWER, UPPER))
    assert maps[0].tolist() == [NONE, BELOW, NONE]


def test_maps_in_words():
    maps = np.array([[ABOVE, NONE, BETWEEN], [0.0] * 3, [1.0] * 3])
    assert say_maps(maps, ("a", "b", "c[1]")) == "under a log: a; under a logit: c[1]"
    assert say_maps(np.empty((3, 0)), ("a",)) == ""
    many = np.array([[ABOVE] * 8, [0.0] * 8, [1.0] * 8])
    assert say_maps(many, tuple("abcdefgh")) == "under a log: a, b, c, d, e, f and 2 more"


def sample(model, **options):
    return rb.sample(
        600, 700, chains=2, cores=1, model=model, random_seed=3, progressbar=False, **options
    )


TRIFLE = 0.01
"""The log-normal has 4e-9 below it."""


@pytest.fixture(scope="module")
def skewed():
    """A log-normal less a trifle, hardly ever near its bound, beside one that leans on it."""
    with pm.Model() as model:
        log = pm.math.log(pm.HalfFlat("far") + TRIFLE)
        pm.Potential("skewed", -0.5 * log**2 / 0.8**2 - log)
        pm.HalfNormal("near")
    return model


@pytest.mark.compiled
@pytest.mark.slow
def test_a_chain_moves_under_a_log_where_that_is_better(skewed):
    """Known answer: E log(far + trifle) = 0, with a standard deviation of 0.8, and E near = 0.798.

    Five standard errors: a right sampler fails with 4e-6; an error of a quarter of a standard
    deviation would be seen with 400 effective draws. The control is a break in ``trust.breaks``: a
    map without the logarithm of its slope.
    """
    trace = sample(skewed)
    stats = trace["sample_stats"]
    assert set(np.unique(stats["mapped"].values)) == {1}
    post = trace["posterior"]
    for values, truth, spread in (
        (np.log(post["far"].values + TRIFLE), 0.0, 0.8),
        (post["near"].values, np.sqrt(2 / np.pi), 0.6),
    ):
        assert abs(values.mean() - truth) < 5 * spread / np.sqrt(400)
    assert stats["mapped"].dtype == np.int64
    held = sample(skewed, reflect=["far"])
    assert np.all(held["sample_stats"]["mapped"].values == 0)
    gradients = [float(x["sample_stats"]["n_steps"].values.mean()) for x in (trace, held)]
    assert gradients[0] < gradients[1]


@pytest.mark.compiled
@pytest.mark.slow
def test_a_finished_step_is_described_with_its_maps(skewed):
    with skewed:
        step = rb.RollbackHMC()
        assert rb.describe(step).to_dict()["variables"][0]["action"] == "reflect"
        pm.sample(
            50,
            tune=700,
            chains=1,
            cores=1,
            step=step,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    far, near = rb.describe(step).to_dict()["variables"]
    assert (far["action"], near["action"]) == ("map", "reflect")
    assert far["why"] == "nearer to normal under a log, in warm-up"
