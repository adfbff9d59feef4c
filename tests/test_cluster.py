"""``rb.sample(client=...)``: chains in the processes of a Dask cluster."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pymc as pm
import pytest

import pymc_rollback as rb
from pymc_rollback.graph.compat import datasets

CLOCKS = {"perf_counter_start", "perf_counter_diff", "process_time_diff"}
OPTIONS = {"tune": 50, "random_seed": 4, "progressbar": False}


def test_dask_is_not_imported_without_a_client():
    code = (
        "import sys, pymc as pm, pymc_rollback as rb, pymc_rollback.sampling, pymc_rollback.many;"
        "assert not {m for m in sys.modules if m.startswith(('dask', 'distributed'))}"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_dask_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "pymc_rollback.cluster", raising=False)
    with pytest.raises(ImportError, match=r"pip install pymc-rollback\[dask\]"):
        rb.sample(model=build(), client=object())


def build():
    with pm.Model() as model:
        x = pm.HalfNormal("x", shape=2)
        rb.constrain("sum", x.sum() < 3)
        pm.Deterministic("twice", 2 * x)
    return model


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def assert_same(first, second):
    first, second = datasets(first), datasets(second)
    assert list(first) == list(second)
    for name in ("posterior", "sample_stats"):
        for variable in set(first[name].data_vars) - CLOCKS:
            x, y = first[name][variable].values, second[name][variable].values
            assert np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), variable


@pytest.mark.slow
def test_draws_are_those_of_threads(client):
    options = {"draws": 100, "chains": 3, "model": build(), **OPTIONS}
    assert_same(rb.sample(client=client, **options), rb.sample(**options))


@pytest.mark.slow
def test_fits_are_those_of_threads(client):
    with pm.Model() as model:
        y = pm.Data("y", [1.0, 2.0])
        pm.Normal("seen", pm.HalfNormal("x"), observed=y)
    options = {"model": model, "datasets": [{"y": [k, k + 1.0]} for k in range(3)], **OPTIONS}
    assert_same(
        rb.sample_many(draws=30, client=client, **options), rb.sample_many(draws=30, **options)
    )


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(client):
    """Killed in the middle of chains that take seconds each."""
    options = {"draws": 100_000, "chains": 4, "model": build(), **OPTIONS, "step_size": 0.05}
    options["n_steps"] = 20
    expected = rb.sample(**options)
    processes = client.run(os.getpid)
    killed = []

    def kill():
        while not client.processing() or not any(client.processing().values()):
            time.sleep(0.05)
        time.sleep(0.5)
        pid = next(iter(processes.values()))
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    drawn = rb.sample(client=client, **options)
    killer.join()
    assert killed
    assert_same(drawn, expected)


@pytest.mark.slow
def test_many_chains(client):
    drawn = rb.sample(250, chains=200, model=build(), client=client, **OPTIONS)
    assert drawn["posterior"]["x"].shape == (200, 250, 2)


@pytest.mark.slow
def test_a_chain_that_fails_is_told(client):
    """A start outside the region, where there is no warm-up that would look for one inside."""
    starts = [{"x": [1.0, 1.0]}, {"x": [2.0, 2.0]}]
    given = {"step_size": 0.1, "n_steps": 3, "metric": np.ones(2), "initvals": starts}
    options = {**OPTIONS, **given, "draws": 20, "chains": 2, "model": build(), "tune": 0}
    with pytest.warns(UserWarning, match="Chain 1 failed after 0 draws"):
        drawn = rb.sample(client=client, **options)
    assert drawn["posterior"]["x"].shape == (1, 20, 2)


@pytest.mark.slow
def test_bad_clients(client):
    distributed = pytest.importorskip("distributed")
    with pytest.raises(ValueError, match="client=3 must be a dask"):
        rb.sample(model=build(), client=3)
    with pytest.raises(ValueError, match="tune='auto' compares chains"):
        rb.sample(model=build(), tune="auto", client=client)
    other = distributed.Client(client.cluster)
    other.close()
    with pytest.raises(ValueError, match=r"is closed\. Make another"):
        rb.sample(model=build(), client=other)
