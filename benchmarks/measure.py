"""Effective draws per gradient and per second, the same way for every sampler."""

import logging
import time
import warnings
from typing import NamedTuple

import arviz as az
import numpy as np
import pymc as pm

import pymc_rollback as rb


class Result(NamedTuple):
    """What a run gave, for the variable ``x`` of a model.

    ``mean`` and ``square`` are the smallest effective numbers of draws of ``x`` and of its squared
    deviations; ``seconds`` leaves out compilation.
    """

    mean: float
    square: float
    draws: int
    gradients: int
    divergences: int
    seconds: float

    @property
    def ess(self):
        return min(self.mean, self.square)

    @property
    def per_gradient(self):
        return self.ess / self.gradients

    @property
    def per_second(self):
        return self.ess / self.seconds


def summarise(trace, seconds):
    """The Result of a trace, be it of PyMC or of nutpie."""
    x = trace["posterior"]["x"].values
    stats = trace["sample_stats"]
    return Result(
        mean=smallest_ess(x),
        square=smallest_ess((x - x.mean(axis=(0, 1))) ** 2),
        draws=x.shape[0] * x.shape[1],
        gradients=int(stats["n_steps"].values.sum()),
        divergences=int(stats["diverging"].values.sum()),
        seconds=seconds,
    )


def smallest_ess(values):
    return float(np.min(az.ess(az.convert_to_dataset({"x": values}))["x"].values))


def run_rollback(model, draws, tune=1000, chains=2, seed=1, **options):
    """Sample a model with RollbackHMC."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    with model:
        step = rb.RollbackHMC(**options)
        run = {"chains": chains, "cores": 1, "step": step, "progressbar": False}
        run["compute_convergence_checks"] = False
        pm.sample(2, tune=2, random_seed=seed, **run)
        start = time.perf_counter()
        trace = pm.sample(draws, tune=tune, random_seed=seed, **run)
    return summarise(trace, time.perf_counter() - start)


def run_nutpie(model, draws, tune=1000, chains=2, seed=1):
    """Sample a model with nutpie under PyMC's transforms; None where nutpie is not installed."""
    try:
        import nutpie
    except ImportError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = nutpie.compile_pymc_model(model)
    start = time.perf_counter()
    trace = nutpie.sample(
        compiled, draws=draws, tune=tune, chains=chains, cores=1, seed=seed, progress_bar=False
    )
    return summarise(trace, time.perf_counter() - start)
