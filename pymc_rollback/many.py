"""``rb.sample_many``: one model, compiled once, fitted to many sets of data."""

import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pymc.backends.arviz import find_constants, find_observations, to_inference_data
from pymc.backends.ndarray import NDArray
from pymc.initial_point import PointType
from pymc.util import RandomState, drop_warning_stat, get_random_generator
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.traversal import graph_inputs
from threadpoolctl import threadpool_limits

from pymc_rollback.entry import holding
from pymc_rollback.graph.compat import datasets as groups_of
from pymc_rollback.graph.compat import from_datasets, make_traces, nothing_sampled
from pymc_rollback.graph.text import shown
from pymc_rollback.options import check_rng, check_whole
from pymc_rollback.progress import ProgressBars
from pymc_rollback.ranks import rank_truths, read_truths
from pymc_rollback.region.arguments import require_model
from pymc_rollback.replicates import Groups, alone, by_replicate, join, with_replicates
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
from pymc_rollback.store import Store
from pymc_rollback.stored import Stored
from pymc_rollback.target.density import Density

Data = dict[str, np.ndarray]
Errors = dict[int, BaseException]

STORED_TOGETHER = 20
"""Number of fits that run before they are stored."""

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
    store: str | Path | None = None,
    cores: int | None = None,
    random_seed: RandomState = None,
    progressbar: bool = True,
    client: Any = None,
    **options: Any,
) -> Any:
    """Fit a model to many sets of data: simulation studies, calibration, cross-validation.

    The model is compiled once, with the data as inputs. Each fit has a warm-up of its own.

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
    store
        A folder, in which fits are stored with Zarr, some at a time. The same call with the same
        folder, after an interrupt, takes those that are there and goes on with the others.
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
    fits = read_datasets(model, datasets, replicates)
    true = None if truths is None else read_truths(model, truths, len(fits))
    *rngs, for_ranks = get_random_generator(random_seed).spawn(len(fits) * chains + 1)
    starts = find_starts(model, None, rngs)
    step = RollbackHMC(model=model, **options)
    names = sorted({name for data in fits for name in data})
    refuse_data_in_walls(step.density, [model[name] for name in names])
    step.take_data([model[name] for name in names])
    filled = [{name: data.get(name, model[name].get_value()) for name in names} for data in fits]
    shared = Shared(step, starts, rngs, tune, draws, chains, filled)
    call = {"draws": draws, "tune": tune, "chains": chains, "options": options}
    kept = None if store is None else Store(store, model, _as_text(call))
    left = [k for k in range(len(fits)) if kept is None or not kept.holds(k, filled[k])]
    workers = 1 if step.compiled().calls_back else min(cores or available_cores(), len(rngs))
    place = f"in {workers} threads" if client is None else "in a cluster"
    _log.info(f"Fitting {len(left)} sets of data, {chains} chains each, {place}")
    run = partial(run_fits, shared, workers, client, progressbar)
    groups, errors = run(left) if kept is None else run_into(kept, run, left, filled)
    if not groups:
        raise next(iter(errors.values()))
    posterior = groups["posterior"]
    whole = posterior["replicate"].values.tolist()
    report_errors(errors, len(whole), len(fits))
    if true is not None:
        groups["prior_sbc"] = rank_truths(posterior, [true[k] for k in whole], for_ranks)
    with warnings.catch_warnings():
        # a group of ArviZ's plots that InferenceData has never heard of
        warnings.filterwarnings("ignore", "prior_sbc group is not defined", UserWarning)
        return from_datasets(groups, nothing_sampled())


class Shared(NamedTuple):
    """What the fits of a call share: start and generator of each chain, and data of each fit."""

    step: RollbackHMC
    starts: Sequence[PointType]
    rngs: Sequence[np.random.Generator]
    tune: int
    draws: int
    chains: int
    data: Sequence[Data]

    def runners(self, number: int) -> list[Runner]:
        """The chains of a fit."""
        numbers = range(number * self.chains, (number + 1) * self.chains)
        given = self.tune, self.draws, False, self.data[number]
        return [Runner(self.step, self.starts[c], self.rngs[c], *given) for c in numbers]


def _as_text(call: Mapping[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in call.items()}


def run_fits(
    shared: Shared, workers: int, client: Any, progressbar: bool, numbers: Sequence[int]
) -> tuple[Groups, Errors]:
    """Draws of those fits that are whole, and what the others have failed with.

    Parameters
    ----------
    shared
        What the fits share.
    workers, client, progressbar
        Where they run, and whether a progress bar is shown.
    numbers
        Which fits.
    """
    chains, runners = shared.chains, [r for k in numbers for r in shared.runners(k)]
    bars = ProgressBars(
        step_method=shared.step,
        chains=len(runners),
        draws=shared.draws,
        tune=shared.tune,
        progressbar="combined" if progressbar else False,
    )
    begun = time.time()
    with bars, threadpool_limits(1):
        crew = make_crew(runners, workers, client, bars)
        crew.advance()
    errors, whole = {}, {}
    for i, number in enumerate(numbers):
        own = slice(i * chains, (i + 1) * chains)
        failed = [error for error in crew.errors[own] if error is not None]
        if failed:
            errors[number] = failed[0]
        else:
            whole[number] = crew.runners[own]
    groups = gather(shared, whole, time.time() - begun) if whole else {}
    return groups, errors


def run_into(
    store: Store,
    run: Callable[[Sequence[int]], tuple[Groups, Errors]],
    left: Sequence[int],
    data: Sequence[Data],
) -> tuple[Groups, Errors]:
    """Run fits, some at a time, and store them; draws of all that are in the store then.

    Parameters
    ----------
    store
        Where they are stored.
    run
        Runs fits of given numbers.
    left
        Those that are not there yet.
    data
        Of each fit.
    """
    errors: Errors = {}
    for i in range(0, len(left), STORED_TOGETHER):
        groups, failed = run(left[i : i + STORED_TOGETHER])
        errors |= failed
        if groups:
            for number in groups["posterior"]["replicate"].values.tolist():
                store.write(number, data[number], alone(groups, number))
        if any(isinstance(error, KeyboardInterrupt) for error in failed.values()):
            break
    whole = [k for k in range(len(data)) if store.holds(k, data[k])]
    return join([store.read(k) for k in whole], whole), errors


def report_errors(errors: Errors, whole: int, fits: int) -> None:
    """Warn of fits that have failed, and of an interrupt that has left so many whole."""
    failed = {k: error for k, error in errors.items() if isinstance(error, Exception)}
    for k, error in failed.items():
        warnings.warn(f"Fit {k} failed, and is left out: {error}", stacklevel=3)
    if len(failed) < len(errors):
        warnings.warn(
            f"Fitting was interrupted: {whole} of {fits} fits are whole, and are kept.",
            stacklevel=3,
        )


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


def gather(shared: Shared, runners: Mapping[int, Sequence[Runner]], seconds: float) -> Groups:
    """Draws of several fits by group.

    Parameters
    ----------
    shared
        What the fits share.
    runners
        The chains of each fit, by its number.
    seconds
        How long sampling took.
    """
    step = shared.step
    model, stored = step.density.model, Stored(step.density, step.vars)
    traces: list[NDArray] = []
    data: list[dict[str, dict[str, np.ndarray]]] = []
    for k, chains in runners.items():
        with holding(model, shared.data[k]):
            found = {"constant_data": find_constants(model)}
            data.append({**found, "observed_data": find_observations(model)})
            for runner in chains:
                traces.append(trace_chain(step, stored, runner, len(traces)))
    several = make_traces(traces, shared.tune, shared.draws, seconds)
    with warnings.catch_warnings():
        # chains of all fits stand in a row until they are taken apart
        warnings.filterwarnings("ignore", "Found chain dimension to be longer", UserWarning)
        sampled = to_inference_data(several, model=model, save_warmup=False)
    groups = groups_of(drop_warning_stat(sampled))
    return {
        name: by_replicate(group, list(runners), shared.chains)
        if "chain" in group.dims
        else with_replicates(group, [each[name] for each in data], list(runners))
        for name, group in groups.items()
    }
