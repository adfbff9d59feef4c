"""The samplers: ours, and what a user would pick instead."""

import importlib.util
import logging
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pymc as pm

import pymc_rollback as rb
from benchmarks.measure import Run
from benchmarks.work import Work

HOPSY = Path(os.environ.get("HOPSY_VENV", ".venv-hopsy")) / "bin" / "python"
OURS = "rollback"
AT_ONCE = "rb.sample"
"""The same chains, in which many draws are made in one call."""
METRICS = ("nutpie", "nutpie, low rank")
"""nutpie's two: a diagonal one, and its low-rank one."""
SEED = 1
PATIENCE = 15.0
"""Seconds that a slow peer may sample, at the pace of its first draws."""


class Size(NamedTuple):
    """How much is sampled."""

    tune: int
    draws: int
    chains: int

    def at_most(self, tune, draws):
        """For samplers that are not worth more."""
        return Size(min(tune, self.tune), min(draws, self.draws), self.chains)


@dataclass(frozen=True)
class Sampler:
    """A sampler: ``run(work, size)``, the works it applies to, and the package it needs."""

    name: str
    run: Callable[[Work, Size], Run]
    applies: Callable[[Work], bool]
    package: str | None = None

    def missing(self) -> str | None:
        """What is to be said where the package is not installed."""
        if self.package is None:
            return None
        found = HOPSY.exists() if self.package == "hopsy" else module_exists(self.package)
        return None if found else f"{self.package.replace('_', '-')} is not installed"


def module_exists(name):
    return importlib.util.find_spec(name) is not None


@contextmanager
def only_errors():
    """Keep PyMC's log to errors, for as long as this lasts."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def sample(build, view, size, make_step=None, **options):
    """Sample with PyMC; compilation ends with the first draw, be it one of the warm-up."""
    stamps = []
    with build() as model, warnings.catch_warnings(), only_errors():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        if make_step is not None:
            options["step"] = make_step()
        trace = pm.sample(
            draws=size.draws,
            tune=size.tune,
            chains=size.chains,
            cores=1,
            random_seed=SEED,
            progressbar=False,
            compute_convergence_checks=False,
            callback=lambda trace, draw: stamps.append(time.perf_counter()),
            initvals=None if make_step else feasible(model),
            **options,
        )
    return as_run(trace, view, seconds=stamps[-1] - stamps[0], first=stamps[0] - start)


def as_run(trace, view, seconds, first):
    """The Run of a trace, be it of PyMC or of nutpie."""
    stats = trace["sample_stats"]

    def total(name):
        return int(stats[name].values.sum()) if name in stats else None

    values = {name: x.values for name, x in trace["posterior"].data_vars.items()}
    return Run(view(values), seconds, first, total("n_steps"), total("diverging"))


def feasible(model):
    """The initial values that the model has been given."""
    return {rv: value for rv, value in model.rvs_to_initial_values.items() if value is not None}


def sample_with_rollback(build, view, size, **settings):
    return sample(build, view, size, lambda: rb.RollbackHMC(**settings))


def run_rollback(work, size):
    return sample_with_rollback(work.build, work.view, size)


def run_at_once(work, size):
    """What is compiled is over when the first draw of the warm-up begins."""
    with work.build(), warnings.catch_warnings(), only_errors():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        trace = rb.sample(
            size.draws,
            size.tune,
            size.chains,
            cores=1,
            random_seed=SEED,
            progressbar=False,
            discard_tuned_samples=False,
        )
    begun = float(trace["warmup_sample_stats"]["perf_counter_start"].min())
    last = trace["sample_stats"]
    ended = float((last["perf_counter_start"] + last["perf_counter_diff"]).max())
    return as_run(trace, work.view, seconds=ended - begun, first=begun - start)


def run_paper(work, size):
    """The paper's sampler, at the paper's settings."""
    few = size.at_most(100, 1000)
    return sample_with_rollback(work.build, work.view, few, **work.settings)


def run_nuts(work, size):
    return sample(work.for_transforms(), work.view, size, nuts_sampler="pymc")


def run_infinite_nuts(work, size):
    """NUTS that meets -inf outside; from the start without jitter, which would leave."""
    few = size.at_most(500, 500)
    return sample(work.build, work.view, few, nuts_sampler="pymc", init="adapt_diag")


def run_metropolis(work, size):
    """Two draws where others make one, as they need no gradient; every second is kept."""
    more = Size(2 * size.tune, 2 * size.draws, size.chains)

    def thinned(values):
        return work.view({name: x[:, ::2] for name, x in values.items()})

    return sample(work.build, thinned, more, pm.Metropolis)


def run_nutpie(work, size, **settings):
    import nutpie

    model = work.for_transforms()()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        compiled = nutpie.compile_pymc_model(model)
        options = {"cores": 1, "seed": SEED, "progress_bar": False, **settings}
        nutpie.sample(compiled, draws=1, tune=1, chains=1, **options)
        first = time.perf_counter() - start
        start = time.perf_counter()
        trace = nutpie.sample(
            compiled, draws=size.draws, tune=size.tune, chains=size.chains, **options
        )
        seconds = time.perf_counter() - start
    return as_run(trace, work.view, seconds, first)


def run_tmg(work, size):
    """Exact HMC for Gaussians; few draws where they are slow."""
    from tmg_hmc import TMGSampler

    law = work.normal
    np.random.seed(SEED)  # all that it takes
    start = time.perf_counter()
    sampler = TMGSampler(law.mean.reshape(-1, 1), law.covariance)
    for f, c in zip(law.rows, law.offset, strict=True):
        sampler.add_constraint(f=f.reshape(-1, 1), c=float(c), sparse=False)
    if law.radius is not None:
        sampler.add_constraint(A=-np.eye(len(law.mean)), c=law.radius**2, sparse=False)
    x0 = law.start.reshape(-1, 1).astype(float)
    sampler.sample(x0, 1, burn_in=0)
    first = time.perf_counter() - start
    start = time.perf_counter()
    sampler.sample(x0, 2, burn_in=0)
    pace = (time.perf_counter() - start) / 2
    draws = int(np.clip(PATIENCE / size.chains / pace, 5, size.draws))
    start = time.perf_counter()
    chains = [sampler.sample(x0, draws, burn_in=draws // 20) for _ in range(size.chains)]
    seconds = time.perf_counter() - start
    return Run(np.array(chains).reshape(size.chains, draws, -1), seconds, first)


def run_hopsy(work, size):
    """hopsy, in its own environment: a Gibbs sampler that is made for normals in polytopes."""
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "given.npz", Path(folder) / "found.npz"
        law = work.normal._asdict()
        law.pop("radius")
        np.savez(given, **law, draws=size.draws, chains=size.chains, seed=SEED)
        script = Path(__file__).parent / "peer_hopsy.py"
        run = subprocess.run(
            [HOPSY, script, given, found], check=False, capture_output=True, text=True
        )
        if run.returncode:
            raise RuntimeError(run.stderr.strip().splitlines()[-1])
        with np.load(found) as file:
            return Run(file["draws"], float(file["seconds"]), float(file["first"]))


def has_transforms(work):
    return work.for_transforms() is not None


def between_planes(work):
    return work.normal is not None and work.normal.radius is None


SAMPLERS = [
    Sampler(OURS, run_rollback, lambda work: True),
    Sampler(AT_ONCE, run_at_once, lambda work: True),
    Sampler("paper's settings", run_paper, lambda work: work.settings is not None),
    Sampler(METRICS[0], run_nutpie, has_transforms, "nutpie"),
    Sampler(METRICS[1], partial(run_nutpie, adaptation="low_rank"), has_transforms, "nutpie"),
    Sampler("NUTS", run_nuts, has_transforms),
    Sampler("NUTS over −inf", run_infinite_nuts, lambda work: work.joint),
    Sampler("Metropolis", run_metropolis, lambda work: not work.large),
    Sampler("hopsy", run_hopsy, between_planes, "hopsy"),
    Sampler("tmg-hmc", run_tmg, lambda work: work.normal and not work.large, "tmg_hmc"),
]
