"""The way in: from a point of a model, and its data, to the coordinates and what surrounds them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pymc as pm

from pymc_rollback.chain.draw import Given
from pymc_rollback.guard import PYTENSOR
from pymc_rollback.target.compile import Compiled
from pymc_rollback.target.density import Density, ravel
from pymc_rollback.target.walls import Walls


def take_coordinates(
    density: Density, walls: Walls, functions: Compiled, point: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, Given]:
    """Coordinates of a point of the model, and what surrounds them there.

    Parameters
    ----------
    density, walls, functions
        What is sampled: its graphs, its walls, and its compiled functions.
    point
        Values by name, those of data containers that are inputs of the log density among them.
    """
    values = (np.asarray(point[v.name]) for v in density.model.value_vars)
    position, lower, upper = functions.enter(*values)
    reflecting = walls.reflecting(lower, upper)
    bounded = np.any(np.isfinite(reflecting), axis=0)
    others = ravel(point, density.given_blocks)
    return position, Given(others, lower, upper, reflecting, bounded, not density.other_blocks)


@contextmanager
def holding(model: pm.Model, data: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Have data containers hold other values for a while, in which no other thread asks PyTensor.

    Parameters
    ----------
    model
        The model.
    data
        Values by the name of a container.
    """
    with PYTENSOR:
        before = {name: model[name].get_value(borrow=True) for name in data}
        try:
            for name, value in data.items():
                model[name].set_value(value)
            yield
        finally:
            for name, value in before.items():
                model[name].set_value(value, borrow=True)
