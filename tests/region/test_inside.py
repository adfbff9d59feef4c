"""Random models of ``make fuzz``: inside the region is where the model's log density is finite."""

import pytest

import pymc_rollback as rb
from fuzz import check
from fuzz.models import write_model
from fuzz.work import failing_script
from pymc_rollback.guard import Guard

WALL = [
    'x = pm.Normal("x")',
    'y = pm.HalfNormal("y")',
    'pm.Potential("c", pt.switch(x < 1, 0.0, -np.inf))',
]


MORE = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 24)]


@pytest.mark.parametrize("seed", [*range(6), *MORE])
def test_inside_is_where_the_log_density_is_finite(seed):
    """And there the smooth log density is the same."""
    verdict = check.judge(write_model(seed), check.check_region, seed)
    assert verdict.outcome in ("agrees", "refused", "empty"), verdict.reason


def test_a_short_chain():
    assert check.judge(WALL, check.check_draws, 0) == check.Verdict("agrees")


def test_a_draw_that_the_guard_refuses_is_a_failure(monkeypatch):
    monkeypatch.setattr(Guard, "_agrees", lambda *_: False)
    verdict = check.judge(WALL, check.check_draws, 0)
    assert verdict.outcome == "failed" and "At draw 1" in verdict.reason


@pytest.mark.parametrize("edge", [0.9, 1.1])
def test_a_wrong_region_is_seen_and_becomes_a_script(edge, monkeypatch):
    """The control: a wall in the wrong place. Of the script only what matters is left."""
    read = rb.read_region

    def misread(model):
        return read(model, {"c": edge - model["x"]} if "c" in model.named_vars else None)

    monkeypatch.setattr(rb, "read_region", misread)
    verdict = check.judge(WALL, check.check_region, 0)
    assert verdict.outcome == "failed" and "log density" in verdict.reason
    text = failing_script(WALL, check.check_region, 0, verdict.reason)
    assert WALL[0] in text and WALL[1] not in text and WALL[2] in text
    assert text.endswith("check_region(model, 0)\n")


def test_a_refusal_is_no_failure():
    verdict = check.judge([WALL[0], 'rb.constrain("c", pt.eq(x, 1.0))'], check.check_region, 0)
    assert verdict.outcome == "refused" and "equality" in verdict.reason
