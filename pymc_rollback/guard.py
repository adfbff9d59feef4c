"""Guards while sampling: the density is the model's, and threads keep out of each other's way."""

import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.exceptions import SamplingError
from pymc.logprob.utils import ParameterValueError
from pytensor.compile.mode import Mode

from pymc_rollback.graph.evaluate import UNTOUCHED, interpreted
from pymc_rollback.region.constraint import Region

DUE = frozenset(10**k for k in range(12))
"""Draws at which the density is compared with the model's: so few that they cost nothing."""

ROUNDING = 1e-6
"""Difference of log densities, relative to the size of their terms, that rounding may explain."""


class DensityError(SamplingError):
    """The log density that is sampled is not the model's."""


class Guard:
    """Compares the log density that is sampled, with what was taken out, to the model's own.

    Parameters
    ----------
    region
        The region of the model.
    """

    def __init__(self, region: Region) -> None:
        self.region = region

    def __getstate__(self) -> dict[str, Region]:
        return {"region": self.region}

    def check(self, draw: int, point: Mapping[str, np.ndarray], log_density: float) -> None:
        """Raise, at some draws, where the model's log density is not the one that is sampled.

        Parameters
        ----------
        draw
            Which draw of the chain it is, from one.
        point
            The draw, a point of the model.
        log_density
            What the sampler takes for the model's log density there; minus infinity where it
            knows that the point is outside the region.
        """
        if draw not in DUE or log_density == -np.inf:
            return
        # without rewrites more overflows than has to, and checks raise: ask again in doubt
        try:
            agrees = self._agrees(self._quick, point, log_density)
        except ParameterValueError:
            agrees = False
        if not agrees and not self._agrees(self._terms(None), point, log_density):
            raise DensityError(self._complaint(draw, point, log_density))

    @cached_property
    def _quick(self) -> Callable:
        return self._terms(UNTOUCHED)

    def _terms(self, mode: Mode | None) -> Callable:
        """Function of a point's values: the terms of the model's log density."""
        terms = [pt.sum(term) for term in self.region.model.logp(sum=False)]
        return interpreted(self.region.model.value_vars, terms, mode)

    def _evaluate(self, function: Callable, point: Mapping[str, np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = function(*(point[v.name] for v in self.region.model.value_vars))
        return np.array(values, dtype=float)

    def _agrees(
        self, function: Callable, point: Mapping[str, np.ndarray], log_density: float
    ) -> bool:
        terms = self._evaluate(function, point)
        return bool(np.all(_is_close(np.sum(terms), log_density, size=np.sum(np.abs(terms)))))

    def _complaint(self, draw: int, point: Mapping[str, np.ndarray], log_density: float) -> str:
        model = self.region.model
        names = [v.name for v in (*model.free_RVs, *model.observed_RVs, *model.potentials)]
        smooth = self.region.space({}).smooth_terms
        own = self._evaluate(self._terms(None), point)
        ours = self._evaluate(
            interpreted(model.value_vars, [smooth[name] for name in names], None), point
        )
        differ = ~_is_close(own, ours, size=np.abs(own))
        rows = zip(names, own, ours, differ, strict=True)
        listed = [f"{name!r} is {x:.6g}, not {y:.6g}" for name, x, y, differs in rows if differs]
        return (
            f"At draw {draw} the log density of the model is {np.sum(own):.6g}, not "
            f"{log_density:.6g} as sampled: {'; '.join(listed) or 'by a change of variables'}. "
            "The draws would not be from the model. A slack that you give by hand must be positive "
            "only where the term of its name is finite, and data must not change while a chain is "
            "sampled; if it is neither, please report the model."
        )


def _is_close(own: np.ndarray, ours: np.ndarray | float, size: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.isfinite(own) & (np.abs(own - ours) <= ROUNDING * (1 + size))


PYTENSOR = threading.RLock()
"""Held by the thread that compiles or calls a function of PyTensor: neither is safe in several."""


class OneAtATime:
    """An object whose attributes and methods serve threads one after the other.

    Parameters
    ----------
    served
        The object.
    """

    def __init__(self, served: object) -> None:
        self._served = served

    def __getattr__(self, name: str) -> Any:
        with PYTENSOR:
            found = getattr(self._served, name)
        return one_at_a_time(found) if callable(found) else found


def one_at_a_time(function: Callable) -> Callable:
    """A function that threads call one after the other."""

    def called(*arguments: Any, **named: Any) -> Any:
        with PYTENSOR:
            return function(*arguments, **named)

    return called


class OneThread:
    """Lets one thread at a time use what must not be shared, for as long as that thread lives."""

    def __init__(self) -> None:
        self._owner: threading.Thread | None = None

    def __getstate__(self) -> dict[str, None]:
        return {"_owner": None}

    def claim(self) -> None:
        """Raise if another thread has claimed it before."""
        caller = threading.current_thread()
        if self._owner is caller:
            return
        if self._owner is not None and self._owner.is_alive():
            raise SamplingError(
                f"The thread {self._owner.name!r} uses this RollbackHMC, and a step holds the "
                f"state of one chain: {caller.name!r} cannot use it, too. Make a RollbackHMC in "
                "each thread."
            )
        self._owner = caller
