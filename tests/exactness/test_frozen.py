"""After warm-up nothing is learnt, each draw is handed out once, and every gradient is counted."""

import cloudpickle
import numpy as np
import pymc as pm
import pytest
from harness import sample

import pymc_rollback as rb
from pymc_rollback.chain.chain import Chain
from pymc_rollback.target import compile as compiled

pytestmark = pytest.mark.compiled


def half_normals():
    with pm.Model() as model:
        pm.HalfNormal("x", shape=3)
        pm.Normal("y")
    return model


def learnt(step):
    """What a chain has learnt, as bytes."""
    return cloudpickle.dumps(step.chain.learnt)


def warmed_up(model, n=100, **options):
    step = rb.RollbackHMC(model=model, rng=2, **options)
    point = model.initial_point()
    for _ in range(n):
        point, _ = step.step(point)
    return step, point


def frozen(step, point, n=100):
    """Whether what was learnt, and the step size, stay the same over some draws."""
    before, sizes = learnt(step), set()
    for _ in range(n):
        point, [stats] = step.step(point)
        sizes.add(stats["step_size"])
    return learnt(step) == before and len(sizes) == 1


def test_nothing_is_learnt_after_warm_up():
    step, point = warmed_up(half_normals())
    step.stop_tuning()
    assert frozen(step, point)


def test_control_a_step_size_that_goes_on_adapting():
    step, point = warmed_up(half_normals())
    assert not frozen(step, point)


def distinct(step, point, n=205):
    """How many different draws there are among 205, not a multiple of those made at once."""
    step.stop_tuning()
    draws = []
    for _ in range(n):
        point, _ = step.step(point)
        draws.append(point["y"])
    return len(np.unique(draws))


def test_each_draw_is_handed_out_once():
    """A trajectory selects its start again in less than one case of twenty."""
    step, point = warmed_up(half_normals())
    assert distinct(step, point) > 195
    assert step.ahead


def test_control_draws_ahead_handed_out_twice(monkeypatch):
    step, point = warmed_up(half_normals())
    draw = Chain.draw
    monkeypatch.setattr(Chain, "draw", lambda *args: [d for d in draw(*args) for _ in range(2)])
    assert distinct(step, point) < 115


def disk():
    with pm.Model() as model:
        z = pm.Normal("z", shape=2)
        rb.constrain("disk", (z**2).sum() < 1)
    return model


CASES = {
    "bounds": (half_normals, {}),
    "bounds with a sharpness": (half_normals, {"sharpness": {"x": 3.0}}),
    "windows": (half_normals, {"n_steps": 3}),
    "all given": (half_normals, {"n_steps": 3, "step_size": 0.5}),
    "barrier": (disk, {}),
    "the paper's": (disk, {"exact": False, "n_steps": 5, "step_size": 0.1, "sharpness": 20.0}),
}


@pytest.mark.filterwarnings("ignore:The kernels call back into Python")
@pytest.mark.parametrize("name", CASES)
def test_every_gradient_is_counted(name, monkeypatch):
    """All calls of the model's log density, of start, warm-up and race, are in ``n_steps``."""
    build, options = CASES[name]
    calls, callback = [0], compiled._callback_model

    def counting(function, interrupt, levels):
        def counted(*inputs):
            calls[0] += 1
            return function(*inputs)

        return callback(counted, interrupt, levels)

    monkeypatch.setattr(compiled, "_callback_model", counting)
    model = build()
    step = rb.RollbackHMC(model=model, compile_kwargs={"mode": "FAST_COMPILE"}, **options)
    given = {"tune": 170, "draws": 60, "chains": 2, "discard_tuned_samples": False}
    trace = sample(step, model, **given)
    counted = sum(
        trace[group]["n_steps"].values.sum() for group in ("sample_stats", "warmup_sample_stats")
    )
    assert counted == calls[0]
