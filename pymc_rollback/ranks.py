"""Where true values stand among the draws of fits to data that were made of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pymc as pm
import xarray as xr

from pymc_rollback.chain.score import autocorrelation_time
from pymc_rollback.graph.text import shown

Truth = dict[str, np.ndarray]


def read_truths(model: pm.Model, truths: object, fits: int) -> list[Truth]:
    """True values of free variables for each fit, of the shapes that these have.

    Parameters
    ----------
    model
        The model.
    truths
        As given to ``rb.sample_many``.
    fits
        How many fits there are.
    """
    if not isinstance(truths, Sequence) or not all(isinstance(t, Mapping) and t for t in truths):
        raise ValueError(
            f"truths={shown(truths)} must be a list with a dict for each fit, such as "
            "[{'mu': 0.3}, {'mu': 1.2}]."
        )
    if len(truths) != fits:
        raise ValueError(
            f"truths has {len(truths)} dicts, and there are {fits} fits. Give one for each."
        )
    every = model.eval_rv_shapes()
    shapes = {rv.name: tuple(map(int, every[rv.name])) for rv in model.free_RVs}
    return [_read_truth(shapes, truth, truths[0], k) for k, truth in enumerate(truths)]


def _read_truth(
    shapes: Mapping[str, tuple[int, ...]], truth: Mapping, first: Mapping, number: int
) -> Truth:
    if truth.keys() != first.keys():
        raise ValueError(
            f"truths[{number}] names {', '.join(map(str, truth))}, and truths[0] names "
            f"{', '.join(map(str, first))}. Name the same variables in each."
        )
    read = {}
    for name, value in truth.items():
        if name not in shapes:
            raise ValueError(
                f"truths[{number}] names {shown(name)}, but the free variables of the model are "
                f"{', '.join(shapes)}."
            )
        read[name] = np.asarray(value, dtype=float)
        if read[name].shape != shapes[name]:
            raise ValueError(
                f"truths[{number}] has {name!r} of the shape {read[name].shape}, and the variable "
                f"has the shape {shapes[name]}."
            )
    return read


def rank_truths(
    posterior: xr.Dataset, truths: Sequence[Truth], rng: np.random.Generator
) -> xr.Dataset:
    """Share of a fit's draws that are below its truth, as ArviZ's plots of calibration want it.

    It is uniform on (0, 1), not only on the multiples of one over the number of draws: the gap
    between two draws in which the truth is has a random part of its own. Draws that depend on each
    other would make ranks too often small or large; so they are thinned, all fits alike.

    Parameters
    ----------
    posterior
        Draws, with the dimension ``replicate`` before chain and draw.
    truths
        True values for each replicate.
    rng
        For the random parts.

    Returns
    -------
    Dataset
        Of one chain, in which each fit is a draw.
    """
    names = list(truths[0])
    thinned = posterior[names].isel(draw=slice(None, None, _thinning(posterior[names])))
    count = thinned.sizes["chain"] * thinned.sizes["draw"]
    ranks = {}
    for name in names:
        true = np.stack([truth[name] for truth in truths])[:, None, None]
        below = (thinned[name] < true).sum(["chain", "draw"])
        ranks[name] = (below + rng.uniform(size=below.shape)) / (count + 1)
    return xr.Dataset(ranks).rename(replicate="draw").expand_dims(chain=[0])


def _thinning(posterior: xr.Dataset) -> int:
    """Of how many draws one is kept: the autocorrelation time of a fit in the middle."""
    draws = posterior.to_stacked_array("element", ["replicate", "chain", "draw"])
    chains = draws.values.reshape(-1, *draws.shape[2:])
    times = [np.max(autocorrelation_time(chain)) for chain in chains]
    return max(1, int(np.ceil(np.median(times))))
