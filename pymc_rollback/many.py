"""``rb.sample_many``: one model, compiled once, fitted to many sets of data."""

import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.backends.arviz import find_constants, find_observations, to_inference_data
from pymc.backends.ndarray import NDArray
from pymc.initial_point import PointType
from pymc.util import RandomState, drop_warning_stat, get_random_generator
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import graph_inputs
from threadpoolctl import threadpool_limits

from pymc_rollback.chain.learnt import Learnt
from pymc_rollback.entry import holding
from pymc_rollback.graph.compat import datasets as groups_of
from pymc_rollback.graph.compat import from_datasets, make_traces
from pymc_rollback.graph.text import shown
from pymc_rollback.options import check_rng, check_whole
from pymc_rollback.progress import ProgressBars
from pymc_rollback.ranks import rank_truths, read_truths
from pymc_rollback.region.arguments import require_model
from pymc_rollback.runner import Runner
from pymc_rollback.sampling import (
    available_cores,
    check_cluster,
    check_numbers,
    find_starts,
    make_crew,
    refuse_discrete,
    refuse_elsewhere,
    trace_chain,
)
from pymc_rollback.step import RollbackHMC
from pymc_rollback.stored import Stored
from pymc_rollback.target.density import Density

Data = dict[str, np.ndarray]

_log = logging.getLogger("pymc")


def sample_many(
    model: pm.Model | None,
    datasets: Sequence[Mapping[str, Any]] | Callable[[int], Mapping[str, Any]],
    draws: int = 1000,
    tune: int = 1000,
    chains: int = 1,
    *,
    replicates: int | None = None,
    truths: Sequence[Mapping[str, Any]] | None = None,
    pilot: int = 0,
    cores: int | None = None,
    random_seed: RandomState = None,
    progressbar: bool = True,
    client: Any = None,
    **options: Any,
) -> Any:
    """Fit a model to many sets of data: simulation studies, calibration, cross-validation.

    The model is compiled once, with the data as inputs. Each fit has a warm-up of its own; where
    a pilot has gone ahead, a short one is enough.

    Parameters
    ----------
    model
        The model; the context's if None. What varies between the fits is in ``pm.Data``.
    datasets
        For each fit, values of data containers by name; what is left out stays as it is. Or a
        function that makes them of the number of the fit.
    draws, tune, chains
        Numbers of each fit: draws of a chain after its warm-up and in it, and chains.
    replicates
        Number of fits, where ``datasets`` is a function.
    truths
        For each fit, the values of free variables that its data were made of, by name. Their ranks
        among the draws are then in the group ``prior_sbc``, for ArviZ's ``plot_ecdf_pit``.
    pilot
        Number of draws of a pilot: the warm-up of another chain, with the first set of data. If
        there are any, all fits have its metric, and move as it does; ``tune=100`` may then do.
    cores
        Number of chains that run at the same time; if left out, as many as there are cores. The
        draws do not depend on it.
    random_seed
        Seed or generator.
    progressbar
        Whether to show one progress bar for all.
    client
        A ``dask.distributed.Client``: chains are tasks of its cluster, with the same draws.
    **options
        Options of :class:`RollbackHMC`.

    Returns
    -------
    DataTree or InferenceData
        As from ``rb.sample``, with the dimension ``replicate`` before the others. Fits that failed
        are left out, and so are those that an interrupt found unfinished.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     seen = pm.Data("seen", [0.0, 0.0])
    ...     mean = pm.HalfNormal("mean", 3)
    ...     y = pm.Normal("y", mean, 1, observed=seen)
    >>> fits = rb.sample_many(
    ...     model,
    ...     [{"seen": [0.3, 0.1]}, {"seen": [4.2, 3.5]}],
    ...     draws=200,
    ...     tune=200,
    ...     progressbar=False,
    ...     random_seed=1,
    ... )
    >>> means = fits["posterior"]["mean"].mean(["chain", "draw"])
    >>> bool(means.sel(replicate=0) < 1.5 < means.sel(replicate=1))
    True
    """
    model = require_model(model)
    refuse_discrete(model)
    check_numbers(draws, tune, chains, cores)
    check_rng(random_seed, "random_seed")
    refuse_elsewhere(options)
    if client is not None:
        check_cluster(client, tune)
    check_whole("tune", tune, least=0)
    check_whole("pilot", pilot, least=0)
    fits = read_datasets(model, datasets, replicates)
    true = None if truths is None else read_truths(model, truths, len(fits))
    *rngs, for_ranks, ahead = get_random_generator(random_seed).spawn(len(fits) * chains + 2)
    starts = find_starts(model, None, rngs)
    step = RollbackHMC(model=model, **options)
    names = sorted({name for data in fits for name in data})
    refuse_data_in_walls(step.density, [model[name] for name in names])
    step.take_data([model[name] for name in names])
    if pilot and not step.options.tunes_metric:
        raise ValueError(
            f"pilot={pilot}: a pilot finds a metric, but one is given, or nothing is left to be "
            "tuned. Leave pilot out."
        )
    filled = [{name: data.get(name, model[name].get_value()) for name in names} for data in fits]
    learnt = fly_pilot(step, starts[0], ahead, pilot, filled[0]) if pilot else None
    runners = [
        Runner(step, start, rng, tune, draws, False, filled[k // chains], learnt)
        for k, (start, rng) in enumerate(zip(starts, rngs, strict=True))
    ]
    workers = 1 if step.compiled().calls_back else min(cores or available_cores(), len(runners))
    place = f"in {workers} threads" if client is None else "in a cluster"
    _log.info(f"Fitting {len(fits)} sets of data, {chains} chains each, {place}")
    bars = ProgressBars(
        step_method=step,
        chains=len(runners),
        draws=draws,
        tune=tune,
        progressbar="combined" if progressbar else False,
    )
    begun = time.time()
    with bars, threadpool_limits(1):
        crew = make_crew(runners, workers, client, bars)
        crew.advance()
    whole = choose_fits(crew.errors, chains)
    groups, like = gather(step, crew.runners, filled, whole, chains, time.time() - begun)
    if true is not None:
        kept = [true[k] for k in whole]
        groups["prior_sbc"] = rank_truths(groups["posterior"], kept, for_ranks)
    with warnings.catch_warnings():
        # a group of ArviZ's plots that InferenceData has never heard of
        warnings.filterwarnings("ignore", "prior_sbc group is not defined", UserWarning)
        return from_datasets(groups, like)


def fly_pilot(
    step: RollbackHMC, start: PointType, rng: np.random.Generator, tune: int, data: Data
) -> Learnt:
    """What a chain has learnt at the end of its warm-up.

    Parameters
    ----------
    step, start, rng, tune, data
        As of a :class:`Runner`.
    """
    runner = Runner(step, start, rng, tune, 1, False, data)
    with threadpool_limits(1):
        runner.advance(Event(), runner.total)
    _log.info(f"Pilot: {runner.verdict or 'nothing was to be chosen.'}")
    return runner.chain.learnt


def read_datasets(
    model: pm.Model,
    datasets: Sequence[Mapping[str, Any]] | Callable[[int], Mapping[str, Any]],
    replicates: int | None,
) -> list[Data]:
    """Values of data containers for each fit, of the types that the containers have.

    Parameters
    ----------
    model
        The model.
    datasets, replicates
        As given to :func:`sample_many`.
    """
    if callable(datasets):
        if replicates is None:
            raise ValueError(
                "datasets is a function, and replicates is left out. Say how many fits there are "
                "to be: replicates=100."
            )
        check_whole("replicates", replicates)
        datasets = [datasets(k) for k in range(replicates)]
    elif isinstance(datasets, Mapping) or not isinstance(datasets, Sequence) or not datasets:
        raise ValueError(
            f"datasets={shown(datasets)} must be a list with a dict for each fit, such as "
            "[{'y': ...}, {'y': ...}], or a function that makes such a dict of a number."
        )
    elif replicates is not None:
        raise ValueError(
            f"replicates={shown(replicates)} is given with a list of datasets, which has "
            f"{len(datasets)}. Leave it out."
        )
    return [read_dataset(model, data, k) for k, data in enumerate(datasets)]


def read_dataset(model: pm.Model, data: object, number: int) -> Data:
    """Values of data containers for one fit, checked against what the containers hold."""
    known = {v.name: v for v in model.data_vars if isinstance(v, SharedVariable)}
    if not isinstance(data, Mapping):
        raise ValueError(f"datasets[{number}]={shown(data)} must be a dict of values by name.")
    read = {}
    for name, value in data.items():
        if name not in known:
            raise ValueError(
                f"datasets[{number}] names {shown(name)}, but the data containers of the model are "
                f"{', '.join(known) or 'none'}. Put what varies into pm.Data(name, value)."
            )
        holds = known[name].get_value()
        given = np.asarray(value)
        if given.shape != holds.shape:
            raise ValueError(
                f"datasets[{number}] has {name!r} of the shape {given.shape}, and the container "
                f"has the shape {holds.shape}. Fits of another size need a model of their own."
            )
        if not np.can_cast(given.dtype, holds.dtype, "same_kind"):
            raise ValueError(
                f"datasets[{number}] has {name!r} of the type {given.dtype}, and the container has "
                f"the type {holds.dtype}. Give such values, or make the container of that type."
            )
        read[name] = given.astype(holds.dtype)
    return read


def refuse_data_in_walls(density: Density, data: Sequence[SharedVariable]) -> None:
    """Raise where data that vary decide where variables can be: such fits are not alike."""
    graphs = [*(c.slack for c in density.region), *density.enter(), *density.leave()]
    if density.plan.has_walls:
        graphs.append(density.walls())
    inputs = set(graph_inputs(graphs))
    names = [v.name for v in data if v in inputs]
    if names:
        raise ValueError(
            f"The data in {', '.join(map(str, names))} are in bounds, transforms or constraints of "
            "the model, which must be the same for all fits. Fit it to one set of data after the "
            "other: pm.set_data(...), then rb.sample()."
        )


def choose_fits(errors: Sequence[BaseException | None], chains: int) -> list[int]:
    """Numbers of the fits all of whose chains are whole; warns if those are not all.

    Parameters
    ----------
    errors
        What the chains have failed with, those of one fit after those of another.
    chains
        How many chains each fit has.
    """
    every = range(len(errors) // chains)
    of_fits = [
        next((e for e in errors[k * chains : (k + 1) * chains] if e is not None), None)
        for k in every
    ]
    whole = [k for k in every if of_fits[k] is None]
    if not whole:
        raise next(error for error in of_fits if error is not None)
    failed = {k: e for k, e in enumerate(of_fits) if isinstance(e, Exception)}
    for k, error in failed.items():
        warnings.warn(f"Fit {k} failed, and is left out: {error}", stacklevel=3)
    if len(whole) + len(failed) < len(every):
        warnings.warn(
            f"Fitting was interrupted: {len(whole)} of {len(every)} fits are whole, and are kept.",
            stacklevel=3,
        )
    return whole


def gather(
    step: RollbackHMC,
    runners: Sequence[Runner],
    fits: Sequence[Data],
    whole: Sequence[int],
    chains: int,
    seconds: float,
) -> tuple[dict[str, xr.Dataset], Any]:
    """Draws of several fits by group, and all chains in a row as ArviZ has them.

    Parameters
    ----------
    step
        What was sampled, and how.
    runners, fits
        The chains, those of one fit after those of another; the data of each fit.
    whole
        Numbers of the fits that are kept.
    chains
        How many chains each fit has.
    seconds
        How long sampling took.
    """
    model = step.density.model
    stored = Stored(step.density, step.vars)
    traces: list[NDArray] = []
    data: list[dict[str, dict[str, np.ndarray]]] = []
    for k in whole:
        with holding(model, fits[k]):
            found = {"constant_data": find_constants(model)}
            data.append({**found, "observed_data": find_observations(model)})
            for runner in runners[k * chains : (k + 1) * chains]:
                traces.append(trace_chain(step, stored, runner, len(traces)))
    first = runners[0]
    several = make_traces(traces, first.tune, first.total - first.tune, seconds)
    with warnings.catch_warnings():
        # chains of all fits stand in a row until they are taken apart
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)
        sampled = to_inference_data(several, model=model, save_warmup=False)
    groups = groups_of(drop_warning_stat(sampled))
    return {
        name: by_replicate(group, whole, chains)
        if "chain" in group.dims
        else with_replicates(group, [each[name] for each in data], whole)
        for name, group in groups.items()
    }, sampled


def by_replicate(group: xr.Dataset, whole: Sequence[int], chains: int) -> xr.Dataset:
    """Draws whose chains are taken apart by fit."""
    apart = group.drop_vars("chain").coarsen(chain=chains).construct(chain=("replicate", "chain"))
    apart = apart.assign_coords(replicate=list(whole), chain=np.arange(chains))
    return apart.transpose("replicate", "chain", "draw", ...)


def with_replicates(
    group: xr.Dataset, values: Sequence[Mapping[str, Any]], whole: Sequence[int]
) -> xr.Dataset:
    """Data, in which those that differ between fits are there for each."""
    varied = {
        name: (("replicate", *group[name].dims), np.stack([each[name] for each in values]))
        for name in map(str, group.data_vars)
        if any(not np.array_equal(each[name], values[0][name]) for each in values)
    }
    return group.assign(varied).assign_coords(replicate=list(whole)) if varied else group
