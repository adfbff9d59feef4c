"""What PyMC stores of draws: their variables and Deterministics, for many draws at once."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import pytensor.tensor as pt
from pymc.util import get_default_varnames
from pytensor.graph.replace import clone_replace, vectorize_graph
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.target.density import Density


class Stored:
    """From the coordinates of draws to what is stored of them.

    Parameters
    ----------
    density
        What is sampled: all variables of a model.
    values
        The value variables of the model, in the order in which the density leaves them.

    Attributes
    ----------
    vars
        What PyMC stores: variables without transforms, and Deterministics.
    """

    def __init__(self, density: Density, values: Sequence[TensorVariable]) -> None:
        model = density.model
        names = get_default_varnames(
            [v.name for v in model.unobserved_value_vars], include_transformed=False
        )
        self.density = density
        self.vars = [v for v in model.unobserved_value_vars if v.name in names]
        *own, difference = density.leave()
        stored = clone_replace(self.vars, dict(zip(values, own, strict=True)))
        self._graphs = [*stored, difference]

    def __call__(self, positions: np.ndarray) -> list[np.ndarray]:
        """What is stored of draws, and what the model's log density has besides the sampled one.

        Parameters
        ----------
        positions
            The draws, one a row; at least one.
        """
        try:
            return self._at_once(positions)
        # an Op that cannot be vectorised may say so in any way
        except Exception:
            return self._one_by_one(positions)

    def _at_once(self, positions: np.ndarray) -> list[np.ndarray]:
        outputs = self._vectorised(positions)
        return [
            np.broadcast_to(x, (len(positions), *x.shape)) if x.ndim == graph.ndim else x
            for x, graph in zip(outputs, self._graphs, strict=True)
        ]

    def _one_by_one(self, positions: np.ndarray) -> list[np.ndarray]:
        rows = [self._single(position) for position in positions]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    @cached_property
    def _vectorised(self) -> Callable:
        many = pt.tensor("coordinates", dtype="float64", shape=(None, self.density.size))
        return interpreted([many], vectorize_graph(self._graphs, {self.density.coordinates: many}))

    @cached_property
    def _single(self) -> Callable:
        return interpreted([self.density.coordinates], self._graphs, mode=None)
