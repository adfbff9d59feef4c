"""Exact draws, one transition of a kernel each; error rates and power are in ``trust.onestep``."""

from pathlib import Path

import numpy as np
import pytest

from pymc_rollback import kernels
from trust.breaks import BREAKS, broken_kernels, judge_break
from trust.onestep import all_cases, judge, make_case, one_in
from trust.targets import TARGETS

pytestmark = pytest.mark.newest

CASES = one_in(29, all_cases())
"""Each kernel on each kind of wall, and each value of the grid; ``make trust`` has all rows."""
FEW = [make_case("lower", "doubling", 2, 0.3), make_case("planes with bounds", "window", 2, 1.0)]
QUICK = [b for b in BREAKS if not b.module]
SOME = [b for b in BREAKS if b.module][::3]
"""Each is a copy of the kernels to be compiled; ``make trust`` has all of them."""


def check(case, smallest=0.01, most_steps=1.2e7):
    verdict = judge(case, smallest, most_steps)
    print(verdict)
    assert not verdict.wrong
    assert verdict.outside == 0 or TARGETS[case.target].smooth
    return verdict


def test_every_value_of_the_grid_is_among_the_cases():
    for field in ("target", "kernel", "n", "step_size", "dense", "repeats"):
        values = [{getattr(case, field) for case in cases} for cases in (CASES, all_cases())]
        assert values[0] == values[1]


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.text)
def test_a_transition_shifts_nothing(case):
    assert check(case, 0.02).seen < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_no_transition_shifts_anything(case):
    check(case)


@pytest.mark.parametrize("mistake", QUICK, ids=lambda mistake: mistake.name)
def test_a_wrong_setting_is_seen(mistake):
    assert judge_break(mistake).wrong


@pytest.mark.slow
@pytest.mark.parametrize("mistake", SOME, ids=lambda mistake: mistake.name)
def test_a_wrong_kernel_is_seen(mistake):
    assert judge_break(mistake).wrong


@pytest.mark.parametrize("mistake", BREAKS, ids=lambda mistake: mistake.name)
def test_breaks_can_be_made(mistake):
    if mistake.module:
        source = Path(kernels.__path__[0], f"{mistake.module}.py").read_text()
        assert source.count(mistake.right) == 1


def test_a_break_that_is_no_longer_there_is_noticed():
    with pytest.raises(ValueError, match="times, not once"):
        broken_kernels("drift", "not in the source", "")


@pytest.mark.parametrize("name", TARGETS)
def test_densities_and_walls_have_the_slopes_that_they_say(name):
    """By central differences: a wrong slope costs acceptance, which no test of bias sees."""
    target, rng, h = TARGETS[name], np.random.default_rng(1), 1e-6
    n = max(target.least, 2)
    x = np.empty(n)
    target.draw()(rng, x)

    def slopes(function, *rest, level):
        [answer] = function(x, *rest)
        steps = [
            (function(x + h * e, *rest)[0][level] - function(x - h * e, *rest)[0][level]) / (2 * h)
            for e in np.eye(n)
        ]
        np.testing.assert_allclose(answer[:n], steps, rtol=1e-4, atol=1e-6)

    slopes(target.model(), np.empty(0), level=n)
    if target.walls is not None:
        slopes(target.walls(), np.empty(0), np.array([target.sharpness]), level=n)
