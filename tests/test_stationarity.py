"""Exact draws stay exact: each is stepped as a chain of its own and compared with fresh ones.

Each case tests several views of the draws by Kolmogorov-Smirnov tests, against a known
distribution or a much larger fresh sample. A right sampler fails a case with a probability of at
most 1e-4, shared equally by its views (Bonferroni). A control is a wrong sampler: it must fail
with a p-value below 1e-8.
"""

import numpy as np
import pytensor.tensor as pt
import pytest
from harness import STEPS, Chains, static_step
from scipy import stats
from targets import TARGETS, crescent, prepared

from pymc_rollback import density, geometry

ERROR_RATE = 1e-4
CONTROL_RATE = 1e-8


def p_value(target, draws):
    """The smallest p-value of the views, times their number."""
    fresh = {}
    if target.views.keys() - target.known:
        n = len(next(iter(draws.values())))
        fresh = target.draw(np.random.default_rng(2), 20 * n)
    p = {}
    for name, view in target.views.items():
        if name in target.known:
            p[name] = stats.kstest(view(draws), target.known[name].cdf, method="asymp").pvalue
        else:
            p[name] = stats.ks_2samp(view(draws), view(fresh), method="asymp").pvalue
    print({name: float(f"{value:.2g}") for name, value in p.items()})
    return min(p.values()) * len(p)


def stepped(target, model, step, n, n_steps=1):
    """Exact draws, each after some steps."""
    exact = target.draw(np.random.default_rng(3), n)
    step.rng = np.random.default_rng(4)
    return Chains(model).run(step, exact, n_steps)


def check(name, kind, n):
    target = TARGETS[name]
    assert p_value(target, stepped(target, *prepared(name, kind), n)) > ERROR_RATE


def test_exact_draws_stay_exact():
    check("mixture", "automatic", n=500)


@pytest.mark.slow
@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("name", [name for name, target in TARGETS.items() if target.draw])
def test_many_exact_draws_stay_exact(name, kind):
    check(name, kind, n=2500)


@pytest.mark.slow
def test_control_smoothed_draws_do_not():
    target = TARGETS["disk"]
    draws = stepped(target, *static_step(target, exact=False, sharpness=3.0), n=4000)
    assert p_value(target, draws) < CONTROL_RATE
    assert np.any(np.hypot(draws["x"], draws["y"]) > 1)


@pytest.mark.slow
def test_control_without_a_fresh_image_they_do_not(monkeypatch):
    target = TARGETS["soft"]
    monkeypatch.setattr(geometry, "draw_image", lambda x, *rest: x.copy())
    draws = stepped(target, *prepared("soft", "static"), n=1000, n_steps=4)
    assert p_value(target, draws) < CONTROL_RATE


@pytest.mark.slow
def test_control_with_weights_that_are_not_normalised_they_do_not(monkeypatch):
    def plain(y, x, lower, upper, sharpness):
        above = 0.0 if upper is None else pt.maximum(y - upper, 0.0)
        return sharpness * (pt.maximum(lower - y, 0.0) + above)

    target = TARGETS["soft"]
    monkeypatch.setattr(density, "image_energy", plain)
    draws = stepped(target, *static_step(target, sharpness=8.0), n=2000)
    assert p_value(target, draws) < CONTROL_RATE


@pytest.mark.slow
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
