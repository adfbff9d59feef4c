"""Fits in a Zarr store: written when they are done, read where they are there already."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import xarray as xr

from pymc_rollback.replicates import Groups

DIMS = "_ARRAY_DIMENSIONS"
"""Where xarray looks for the names of an array's dimensions."""


class Store:
    """A folder in which each fit has a group, by its number, with a group for each of its datasets.

    Parameters
    ----------
    path
        The folder; made where it is missing.
    model
        The model that is fitted.
    call
        What all fits have in common, as text or numbers by name. A store of fits that differ in it,
        or of another model, is refused.
    """

    def __init__(self, path: str | Path, model: pm.Model, call: Mapping[str, Any]) -> None:
        try:
            import zarr
        except ImportError as error:
            raise ImportError("store=... needs Zarr: pip install zarr.") from error
        if Path(path).is_file():
            raise ValueError(
                f"store={str(path)!r} is a file. Give a folder, or a name for a new one."
            )
        self.path, self.coords = str(path), model.coords
        self.root = zarr.open_group(self.path, mode="a")
        asked = {**call, "model": model.str_repr()}
        there = dict(self.root.attrs)
        for name, value in asked.items():
            if there and there.get(name) != value:
                raise ValueError(
                    f"store={self.path!r} has fits with {name}={there.get(name)!r}, and not "
                    f"{value!r}. Give another folder, or remove this one."
                )
        self.root.attrs.update(asked)

    def holds(self, number: int, data: Mapping[str, np.ndarray]) -> bool:
        """Whether a whole fit is there; raises if it was to other data."""
        there = self.root[str(number)].attrs.get("data") if str(number) in self.root else None
        if there is not None and there != _digest(data):
            raise ValueError(
                f"store={self.path!r} has a fit {number} to other data. Give another folder, or "
                "remove this one."
            )
        return there is not None

    def write(self, number: int, data: Mapping[str, np.ndarray], groups: Groups) -> None:
        """Write a fit to some data; what an interrupt has left of it is overwritten."""
        fit = self.root.require_group(str(number))
        for name, group in groups.items():
            part = fit.require_group(name)
            for variable, values in group.data_vars.items():
                part[str(variable)] = values.values
                part[str(variable)].attrs[DIMS] = list(map(str, values.dims))
        fit.attrs["data"] = _digest(data)  # last: a fit that has it is whole

    def read(self, number: int) -> Groups:
        """A fit by group, with the coordinates of the model."""
        groups = self.root[str(number)].groups()
        return {
            name: self._label(xr.Dataset({k: (a.attrs[DIMS], a[...]) for k, a in part.arrays()}))
            for name, part in groups
        }

    def _label(self, group: xr.Dataset) -> xr.Dataset:
        labels = {dim: known for dim, known in self.coords.items() if known is not None}
        sizes = {str(dim): size for dim, size in group.sizes.items()}
        return group.assign_coords(
            {dim: list(labels.get(dim, range(size))) for dim, size in sizes.items()}
        )


def _digest(data: Mapping[str, np.ndarray]) -> str:
    """A name for the values of data containers."""
    found = hashlib.sha256()
    for name in sorted(data):
        found.update(name.encode() + np.ascontiguousarray(data[name]).tobytes())
    return found.hexdigest()
