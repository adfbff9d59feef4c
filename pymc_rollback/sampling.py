"""``rb.sample``: chains as threads of one process, compiled from the first draw to the last."""

import logging
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from pymc.backends.arviz import to_inference_data
from pymc.backends.ndarray import NDArray
from pymc.initial_point import PointType, StartDict, make_initial_point_fns_per_chain
from pymc.stats.convergence import (
    SamplerWarning,
    WarningType,
    log_warnings,
    run_convergence_checks,
)
from pymc.util import RandomState, drop_warning_stat, get_random_generator
from threadpoolctl import threadpool_limits

from pymc_rollback.crew import Crew
from pymc_rollback.graph.compat import make_trace, make_traces
from pymc_rollback.graph.text import shown
from pymc_rollback.options import check_bool, check_progressbar, check_rng, check_whole
from pymc_rollback.progress import ProgressBars
from pymc_rollback.region.arguments import require_model
from pymc_rollback.region.constraint import is_continuous
from pymc_rollback.runner import Runner
from pymc_rollback.settled import CHECKS
from pymc_rollback.step import RollbackHMC
from pymc_rollback.stored import Stored

if TYPE_CHECKING:
    from pymc_rollback.cluster import ClusterCrew

ELSEWHERE = {
    "vars": "rb.sample draws all variables: pm.sample(step=[RollbackHMC([...]), ...]) draws some",
    "rng": "random_seed=... seeds the chains",
    "initial_point": "initvals={...} says where chains start",
    "step": "rb.sample has one step, RollbackHMC, and takes its options itself",
}
"""Options of RollbackHMC, or of pm.sample, that have no meaning here, and what to do instead."""

_log = logging.getLogger("pymc")


def sample(
    draws: int = 1000,
    tune: int | str = 1000,
    chains: int = 4,
    *,
    cores: int | None = None,
    model: pm.Model | None = None,
    random_seed: RandomState = None,
    progressbar: bool | str = True,
    discard_tuned_samples: bool = True,
    initvals: StartDict | Sequence[StartDict | None] | None = None,
    client: Any = None,
    **options: Any,
) -> Any:
    """Draw from a model with continuous variables only, faster than ``pm.sample`` can.

    What is returned is what ``pm.sample(step=RollbackHMC(...))`` returns for the same seed. Chains
    are threads of one process, which make draws in compiled code, many at once.

    Parameters
    ----------
    draws
        Number of draws of each chain after its warm-up.
    tune
        Number of draws of the warm-up. "auto": until nothing changes any more and chains agree, at
        most 1000.
    chains
        Number of chains.
    cores
        Number of chains that run at the same time; if left out, as many as there are cores. The
        draws do not depend on it.
    model
        The model; the context's if left out.
    random_seed
        Seed or generator.
    progressbar
        Whether to show progress bars, or one of the kinds that ``pm.sample`` knows, such as
        "combined".
    discard_tuned_samples
        False: draws of the warm-up are returned in groups of their own.
    initvals
        Where chains start: values by the name of a variable, or a list of such dicts by chain.
    client
        A ``dask.distributed.Client``: chains are tasks of its cluster, with the same draws.
    **options
        Options of :class:`RollbackHMC`, such as ``target_accept`` or ``metric``.

    Returns
    -------
    DataTree or InferenceData
        Draws and statistics: what ArviZ uses with the installed PyMC. After an interrupt, or where
        chains failed, the draws that there are.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> idata = rb.sample(200, tune="auto", model=model, progressbar=False, random_seed=1)
    >>> dict(idata["posterior"]["x"].sizes)
    {'chain': 4, 'draw': 200, 'x_dim_0': 2}
    >>> bool((idata["posterior"]["x"].sum("x_dim_0") < 2).all())
    True
    """
    model = require_model(model)
    refuse_discrete(model)
    check_numbers(draws, tune, chains, cores)
    check_rng(random_seed, "random_seed")
    check_progressbar(progressbar)
    check_bool("discard_tuned_samples", discard_tuned_samples)
    refuse_elsewhere(options)
    if client is not None:
        check_cluster(client, tune)
    rngs = get_random_generator(random_seed).spawn(chains)
    starts = find_starts(model, initvals, rngs)
    step = RollbackHMC(model=model, **options)
    most = int(tune) if tune != "auto" else CHECKS[-1] if step.options.tunes else 0
    runners = [
        Runner(step, start, rng, most, draws, not discard_tuned_samples)
        for start, rng in zip(starts, rngs, strict=True)
    ]
    # a callback into Python is no faster in several threads, and PyTensor would not stand it
    workers = 1 if step.compiled().calls_back else min(cores or available_cores(), chains)
    place = (
        f"{workers} threads"
        if client is None
        else f"the cluster of {client.scheduler_info()['address']}"
    )
    _log.info(f"Sampling {chains} chains in {place}")
    _log.info(f"RollbackHMC: [{', '.join(rv.name for rv in model.free_RVs)}]")
    bars = ProgressBars(
        step_method=step, chains=chains, draws=draws, tune=most, progressbar=progressbar
    )
    begun = time.time()
    # one thread for each product of matrices, so that the sums have one order on every machine
    with bars, threadpool_limits(1):
        crew = make_crew(runners, workers, client, bars)
        if tune == "auto":
            crew.warm_up()
        crew.advance()
    return finish(step, choose_runners(crew.runners, crew.errors), time.time() - begun)


def make_crew(
    runners: Sequence[Runner], workers: int, client: Any, bars: ProgressBars
) -> "Crew | ClusterCrew":
    """Chains that are ready to run, in threads or in a cluster."""
    if client is None:
        return Crew(runners, workers, bars)
    from pymc_rollback.cluster import ClusterCrew

    return ClusterCrew(runners, client, bars)


def choose_runners(
    runners: Sequence[Runner], errors: Sequence[BaseException | None]
) -> dict[int, Runner]:
    """Chains whose draws are kept, by number; warns if they are not all, or not whole.

    An interrupted chain is kept as far as it is. Of chains of several lengths, those are kept that
    have the most draws together when all are cut to the shortest of them, as PyMC does it.

    Parameters
    ----------
    runners
        All chains.
    errors
        What they have failed with; an interrupt is the failure of the chains that it stopped.
    """
    failed = {k: e for k, e in enumerate(errors) if not (e is None or _is_interrupt(e))}
    for chain, error in failed.items():
        error.add_note(_say_which(chain, runners[chain]))
    lengths = np.array(
        [0 if k in failed else max(r.done - r.tune, 0) for k, r in enumerate(runners)]
    )
    length = max(lengths, key=lambda n: n * np.sum(lengths >= n))
    if length == 0:
        raise next(iter([*failed.values(), *(e for e in errors if e is not None)]))
    for chain, error in failed.items():
        which = _say_which(chain, runners[chain])
        warnings.warn(f"{which} It is left out: {error}", stacklevel=3)
    kept = {k: r for k, r in enumerate(runners) if lengths[k] >= length}
    if any(map(_is_interrupt, errors)):
        warnings.warn(
            f"Sampling was interrupted: the draws are partial, {length} of "
            f"{runners[0].total - runners[0].tune} from {len(kept)} of {len(runners)} chains.",
            stacklevel=3,
        )
    # copies: a thread that an interrupt did not wait for may still add to its own
    return {k: runner.until(length) for k, runner in kept.items()}


def _is_interrupt(error: BaseException | None) -> bool:
    return isinstance(error, KeyboardInterrupt)


def _say_which(chain: int, runner: Runner) -> str:
    """Name a chain, and say how to run it again."""
    return (
        f"Chain {chain} failed after {runner.done} draws (random_seed={runner.entropy} gives it "
        "again)."
    )


def finish(step: RollbackHMC, runners: Mapping[int, Runner], seconds: float) -> Any:
    """Draws as PyMC returns them, after its convergence checks.

    Parameters
    ----------
    step
        What was sampled, and how.
    runners
        The chains, by number.
    seconds
        How long sampling took.
    """
    model = step.density.model
    stored = Stored(step.density, step.vars)
    traces, complaints = [], []
    for chain, runner in runners.items():
        traces.append(trace_chain(step, stored, runner, chain))
        if runner.complaint is not None:
            complaints.append(f"Chain {chain}: {runner.complaint}")
        elif runner.verdict is not None:
            _log.info(f"Chain {chain}: {runner.verdict}")
    first = next(iter(runners.values()))
    kept, tune = first.record.draws - first.record.tune, first.tune
    several = make_traces(traces, tune, kept, seconds)
    _log.info(
        f"Sampling {len(runners)} chain{'s' if len(runners) > 1 else ''} for {tune:_d} tune and "
        f"{kept:_d} draw iterations took {seconds:.0f} seconds."
    )
    sampled = to_inference_data(several, model=model, save_warmup=first.keep_warmup)
    log_warnings([SamplerWarning(WarningType.BAD_ACCEPTANCE, c, "warn") for c in complaints])
    log_warnings(run_convergence_checks(sampled, model))
    return drop_warning_stat(sampled)


def trace_chain(step: RollbackHMC, stored: Stored, runner: Runner, chain: int) -> NDArray:
    """PyMC's trace of a chain.

    Parameters
    ----------
    step, stored
        What was sampled, and what is stored of it.
    runner, chain
        The chain, and its number.
    """
    record = runner.record
    *samples, difference = stored(record.positions[: record.draws])
    model_logp = record.log_densities[: record.draws] + difference
    stats = record.stats(step.stats_dtypes[0], step.options, model_logp)
    return make_trace(step.density.model, chain, stored.vars, samples, stats)


def find_starts(
    model: pm.Model,
    initvals: StartDict | Sequence[StartDict | None] | None,
    rngs: Sequence[np.random.Generator],
) -> list[PointType]:
    """Where chains start, as PyMC finds it."""
    # PyMC draws a seed for each chain first, whether the start needs it or not
    seeds = [int(rng.integers(2**30)) for rng in rngs]
    functions = make_initial_point_fns_per_chain(
        model=model, overrides=initvals, jitter_rvs=set(), chains=len(rngs)
    )
    return [function(seed) for function, seed in zip(functions, seeds, strict=True)]


def check_numbers(draws: object, tune: object, chains: object, cores: object) -> None:
    """Raise unless numbers of draws, chains and cores are whole, and positive or left out."""
    check_whole("draws", draws)
    if tune != "auto":
        check_whole("tune", tune, least=0)
    check_whole("chains", chains)
    if cores is not None:
        check_whole("cores", cores)


def check_cluster(client: object, tune: object) -> None:
    """Raise unless chains can be tasks of a client's cluster."""
    try:
        from pymc_rollback.cluster import check_client
    except ImportError as error:
        raise ImportError(
            "client=... needs dask.distributed: pip install pymc-rollback[dask]."
        ) from error
    check_client(client)
    if tune == "auto":
        raise ValueError(
            "tune='auto' compares chains while they run, which those of a cluster cannot. Give "
            "tune a number, such as tune=1000, or leave client out."
        )


def refuse_elsewhere(options: Mapping[str, object]) -> None:
    """Raise where an option has no meaning for ``rb.sample``."""
    for name in ELSEWHERE.keys() & options.keys():
        raise TypeError(
            f"{name}={shown(options[name])} is no option of rb.sample: {ELSEWHERE[name]}."
        )


def refuse_discrete(model: pm.Model) -> None:
    """Raise where a model has discrete variables."""
    discrete = [rv.name for rv in model.free_RVs if not is_continuous(rv)]
    if discrete:
        others = ", ".join(rv.name for rv in model.free_RVs if rv.name not in discrete)
        raise ValueError(
            f"rb.sample draws continuous variables only, not {', '.join(discrete)}. Sample with "
            f"pm.sample(step=[rb.RollbackHMC([{others}]), "
            f"pm.Metropolis([{', '.join(discrete)}])])."
        )


def available_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
