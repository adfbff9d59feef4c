"""What happens when things go wrong around a chain: interrupts, dead workers, no place to write."""

import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numba.core.caching
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_rollback as rb
from pymc_rollback.kernels import cache

PACKAGE = Path(rb.__file__).parent

SCRIPT = """
import pymc as pm, pymc_rollback as rb
with pm.Model() as model:
    pm.HalfNormal("x", shape=3)
    # static: one kernel of trajectories is compiled, not two
    step = rb.RollbackHMC(step_size=0.3, n_steps=5, rng=1)
point = model.initial_point()
for _ in range(20):
    point, _ = step.step(point)
print(rb.__file__, *point["x_log__"])
"""


def start_process(directory, **environment):
    """A Python process that samples with the package of a directory, and prints the last draw."""
    inherited = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "HOME")}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        cwd=directory,
        env={**inherited, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_kernels_without_a_place_to_keep_them(monkeypatch, caplog):
    monkeypatch.setattr(numba.core.caching.CacheImpl, "_locator_classes", [])
    cache._say_that_nothing_is_kept.cache_clear()
    with caplog.at_level(logging.WARNING, logger="pymc"):
        kernels = [cache.cached(lambda x: x + 1), cache.cached(lambda x: x + 2)]
    assert [kernel(1) for kernel in kernels] == [2, 3]
    [record] = caplog.records
    assert "NUMBA_CACHE_DIR" in record.message


@pytest.mark.slow
def test_a_read_only_home(tmp_path):
    """Files where directories would be made: those even root cannot write to."""
    package = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "cache").mkdir()  # ArviZ 0.23 cannot be imported without
    for place in (
        package / "kernels" / "__pycache__",
        tmp_path / "home",
        tmp_path / "cache" / "numba",
    ):
        place.touch()
    process = start_process(
        tmp_path,
        HOME=str(tmp_path / "home"),
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        PYTENSOR_FLAGS=f"base_compiledir={tmp_path / 'pytensor'}",
        MPLCONFIGDIR=str(tmp_path / "matplotlib"),
    )
    out, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert out.startswith(str(package))
    assert errors.count("NUMBA_CACHE_DIR") == 1


@pytest.mark.slow
def test_two_processes_on_an_empty_cache_and_one_after_them(tmp_path):
    def run(count):
        processes = [
            start_process(
                PACKAGE.parent,
                HOME=str(tmp_path),
                NUMBA_CACHE_DIR=str(tmp_path / "numba"),
                PYTENSOR_FLAGS=f"base_compiledir={tmp_path / 'pytensor'}",
            )
            for _ in range(count)
        ]
        outputs = [process.communicate(timeout=900) for process in processes]
        assert [process.returncode for process in processes] == [0] * count, outputs
        return outputs

    first, second = run(2)
    [third] = run(1)
    assert first[0] == second[0] == third[0]
    assert any((tmp_path / "numba").rglob("*.nbc"))
    said = [errors.count("once on this machine") for _, errors in (first, second, third)]
    assert said == [1, 1, 0]


def last_draw(directory):
    out, errors = start_process(directory, HOME=os.environ["HOME"]).communicate(timeout=600)
    assert out.startswith(str(directory)), errors
    return out


@pytest.mark.slow
def test_an_edit_of_any_kernel_is_noticed(tmp_path):
    """Numba by itself looks at the file of a trajectory, not at those that it inlines."""
    package = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    first = last_draw(tmp_path)
    assert last_draw(tmp_path) == first
    drift = package / "kernels" / "drift.py"
    right = "return (2 * lower - position, -velocity, 1, 0) if outside"
    text = drift.read_text()
    assert right in text
    drift.write_text(text.replace(right, right.replace("-velocity", "velocity")))
    assert last_draw(tmp_path) != first


def disk():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Potential("disk", pt.switch(pt.sum(x**2) < 2, 0.0, -np.inf))
    return model


OPTIONS = {"tune": 20, "progressbar": False, "compute_convergence_checks": False}


@pytest.mark.parametrize("mode", ["NUMBA", "FAST_COMPILE"])
@pytest.mark.filterwarnings("ignore:The kernels call back into Python:UserWarning")
def test_an_interrupt_keeps_the_draws(mode):
    """It comes by a timer, wherever the chain is then."""

    def set_off(trace, draw):
        if not draw.tuning and draw.draw_idx == 30:
            signal.setitimer(signal.ITIMER_REAL, 0.05)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with disk():
            step = rb.RollbackHMC(compile_kwargs={"mode": mode})
            idata = pm.sample(
                1_000_000, step=step, chains=1, cores=1, callback=set_off, random_seed=1, **OPTIONS
            )
    finally:
        signal.signal(signal.SIGALRM, before)
    x = idata.posterior["x"].values
    assert 10 <= x.shape[1] < 1_000_000
    assert np.all(np.sum(x**2, axis=-1) < 2)


def test_a_killed_worker_ends_with_an_error_and_leaves_no_child():
    def kill(trace, draw):
        multiprocessing.active_children()[0].kill()

    with disk():
        step = rb.RollbackHMC(compile_kwargs={"mode": "NUMBA"})
        with pytest.raises((RuntimeError, OSError, EOFError)):
            pm.sample(
                1_000_000, step=step, chains=2, cores=2, callback=kill, random_seed=1, **OPTIONS
            )
    assert multiprocessing.active_children() == []


def resident():
    """Memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow():
    """A number of 24 bytes kept for each draw would be seen."""
    model = disk()
    step = rb.RollbackHMC(model=model, rng=1)
    point, sizes = model.initial_point(), []
    for draw in range(200_000):
        if draw == 1000:
            step.stop_tuning()
        if draw % 50_000 == 0:
            sizes.append(resident())
        point, _ = step.step(point)
    assert resident() - sizes[1] < 150_000 * 24


def test_importing_takes_little_more_than_importing_pymc():
    """What takes as long to import as PyMC itself, if PyMC has not done it."""
    code = (
        "import sys, pymc; before = set(sys.modules); import pymc_rollback;"
        "slow = {'numba', 'scipy.optimize', 'scipy.sparse', 'matplotlib'};"
        "assert not slow & (set(sys.modules) - before);"
        "assert 'RollbackHMC' in dir(pymc_rollback) and pymc_rollback.RollbackHMC"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=PACKAGE.parent)
