"""Exact draws stay exact through the step method: each is stepped as a chain of its own.

The change of functions of the draws, paired with the draw itself, has the mean zero: values,
squares, and shares below the tenth and above the ninetieth percentile of each view. A right
sampler fails a case with a probability of at most 1e-4, shared equally by its functions
(Bonferroni); each case prints the smallest shift that it would have seen in half of all runs, in
standard deviations of the function. A control is a wrong sampler: it must fail with a p-value below
1e-8. Kernels are tested with more power in ``test_onestep.py``.
"""

import numpy as np
import pytensor.tensor as pt
import pytest
from harness import STEPS, Chains, automatic_step, static_step
from scipy import stats
from targets import TARGETS, crescent, prepared

from pymc_rollback.chain import warmup
from pymc_rollback.chain.choice import JITTER, QUARTER_TURN, Choice
from pymc_rollback.target import density, walls

pytestmark = [pytest.mark.slow, pytest.mark.newest]

ERROR_RATE = 1e-4
CONTROL_RATE = 1e-8


def functions_of(target, draws, exact):
    """Functions of draws, one a row; percentiles are those of the exact ones."""
    rows = []
    for view in target.views.values():
        values, reference = view(draws), view(exact)
        low, high = np.percentile(reference, [10, 90])
        rows += [values, values**2, values < low, values > high]
    return np.array([np.reshape(row, -1) for row in rows], dtype=object)


def p_value(target, model, step, n, n_steps=1):
    """The smallest p-value of the functions' mean changes, times their number."""
    exact = target.draw(np.random.default_rng(3), n)
    step.rng = np.random.default_rng(4)
    stepped = Chains(model).run(step, exact, n_steps)
    before, after = (functions_of(target, draws, exact) for draws in (exact, stepped))
    z, seen = [], []
    limit = stats.norm.isf(ERROR_RATE / (2 * len(before)))
    for old, new in zip(before, after, strict=True):
        change = new.astype(float) - old.astype(float)
        error = change.std() / np.sqrt(change.size)
        z.append(change.mean() / error if error > 0 else 0.0)
        seen.append(limit * error / old.astype(float).std())
    print(f"largest |z| {np.max(np.abs(z)):.2f}, limit {limit:.2f}, would see {max(seen):.3f}")
    return 2 * stats.norm.sf(np.max(np.abs(z))) * len(z), stepped


def check(name, kind, n):
    target = TARGETS[name]
    p, _ = p_value(target, *prepared(name, kind), n)
    assert p > ERROR_RATE


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.draw])
def test_many_exact_draws_stay_exact(name, kind):
    check(name, kind, n=10_000)


def test_exact_draws_between_bounds_of_correlated_coordinates_stay_exact():
    model, step = automatic_step(TARGETS["strip"], metric="dense")
    assert step.chain.learnt.metric.coupled.size == 2
    p, _ = p_value(TARGETS["strip"], model, step, n=10_000)
    assert p > ERROR_RATE


TIMED = {"strip": "dense", "disk": "diag", "ordered": "diag", "bounds": "diag"}


@pytest.mark.parametrize("name", TIMED)
def test_exact_draws_stay_exact_over_a_fixed_time(name):
    """Its jitter is drawn anew for each trajectory, whatever the state."""
    options = {"trajectory_time": 1.6, "metric": TIMED[name]}
    p, _ = p_value(TARGETS[name], *automatic_step(TARGETS[name], **options), n=10_000)
    assert p > ERROR_RATE


def between_planes(monkeypatch, **options):
    """A step in which elements in order keep their places, in a metric that tells them apart."""
    choice = Choice(True, QUARTER_TURN, True, JITTER, apart=True)
    monkeypatch.setattr(warmup, "find_choices", lambda *given: (choice,))
    model, step = automatic_step(TARGETS["ordered"], **options)
    assert step.chain.learnt.metric.planes.shape[1] == 2
    return model, step


def test_exact_draws_in_order_stay_exact_between_planes(monkeypatch):
    p, stepped = p_value(TARGETS["ordered"], *between_planes(monkeypatch), n=10_000)
    assert p > ERROR_RATE
    assert np.all(np.diff(stepped["x"]) > 0)


def test_control_in_order_between_misplaced_planes_they_do_not(monkeypatch):
    model, step = between_planes(monkeypatch)
    learnt = step.chain.learnt
    planes = learnt.metric.planes.copy()
    planes[-1] -= 0.1
    step.chain.learnt = learnt._replace(metric=learnt.metric._replace(planes=planes))
    p, _ = p_value(TARGETS["ordered"], model, step, n=4000)
    assert p < CONTROL_RATE


def test_control_between_misplaced_bounds_they_do_not():
    """A reflection in the wrong metric is among the breaks of ``trust``, for planes of any kind."""
    model, step = automatic_step(TARGETS["strip"], metric="dense")
    learnt = step.chain.learnt
    planes = learnt.metric.planes.copy()
    planes[-1] -= 0.1
    step.chain.learnt = learnt._replace(metric=learnt.metric._replace(planes=planes))
    p, _ = p_value(TARGETS["strip"], model, step, n=4000)
    assert p < CONTROL_RATE


def test_control_smoothed_draws_do_not():
    target = TARGETS["disk"]
    p, draws = p_value(target, *static_step(target, exact=False, sharpness=3.0), n=4000)
    assert p < CONTROL_RATE
    assert np.any(np.hypot(draws["x"], draws["y"]) > 1)


def test_control_without_a_fresh_image_they_do_not(monkeypatch):
    target = TARGETS["soft"]
    monkeypatch.setattr(walls, "draw_image", lambda x, *rest: x.copy())
    p, _ = p_value(target, *prepared("soft", "static"), n=1000)
    assert p < CONTROL_RATE


def test_control_with_weights_that_are_not_normalised_they_do_not(monkeypatch):
    def plain(y, x, lower, upper, sharpness):
        above = 0.0 if upper is None else pt.maximum(y - upper, 0.0)
        return sharpness * (pt.maximum(lower - y, 0.0) + above)

    target = TARGETS["soft"]
    monkeypatch.setattr(density, "image_energy", plain)
    p, _ = p_value(target, *static_step(target, sharpness=8.0), n=2000)
    assert p < CONTROL_RATE


@pytest.mark.parametrize(("kind", "n"), [("static", 2000), ("automatic", 300)])
def test_no_draw_is_outside(kind, n):
    """Over two million draws of bounded variables, and 40,000 of points in a crescent."""
    model, step = prepared("many", kind)
    step.rng = np.random.default_rng(1)
    point = model.initial_point()
    moved = 0
    for _ in range(n):
        before = point
        point, _ = step.step(point)
        moved += before is not point
        assert np.all(point["one"] > 0)
        assert np.all((point["two"] > 0.1) & (point["two"] < 0.3))
        assert np.all(crescent(point["x"], point["y"]))
    assert moved > n / 3
