"""Draws of many fits by group, with the dimension ``replicate``: taken apart, and put together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

Groups = dict[str, xr.Dataset]


def alone(groups: Groups, number: int) -> Groups:
    """Draws of one fit of several, and its data."""
    return {
        name: group.sel(replicate=[number])
        if "chain" in group.dims
        else group.sel(replicate=number, drop=True)
        if "replicate" in group.dims
        else group
        for name, group in groups.items()
    }


def join(parts: Sequence[Groups], whole: Sequence[int]) -> Groups:
    """Draws of several fits by group, of those of each."""
    return {
        name: xr.concat([part[name] for part in parts], "replicate").assign_coords(
            replicate=list(whole)
        )
        if "chain" in group.dims
        else with_replicates(group, [part[name] for part in parts], whole)
        for name, group in (parts[0].items() if parts else ())
    }


def by_replicate(group: xr.Dataset, whole: Sequence[int], chains: int) -> xr.Dataset:
    """Draws whose chains are taken apart by fit."""
    apart = group.drop_vars("chain").coarsen(chain=chains).construct(chain=("replicate", "chain"))
    apart = apart.assign_coords(replicate=list(whole), chain=np.arange(chains))
    return apart.transpose("replicate", "chain", "draw", ...)


def with_replicates(group: xr.Dataset, values: Sequence[Any], whole: Sequence[int]) -> xr.Dataset:
    """Data of the fits, in which those that differ between them are there for each."""
    same, varied = {}, {}
    for name in map(str, group.data_vars):
        found, dims = [np.asarray(each[name]) for each in values], group[name].dims
        if all(np.array_equal(x, found[0]) for x in found):
            same[name] = dims, found[0]
        else:
            varied[name] = ("replicate", *dims), np.stack(found)
    group = group.assign(same | varied)
    return group.assign_coords(replicate=list(whole)) if varied else group
