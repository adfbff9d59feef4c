"""What a work is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pymc as pm

from benchmarks.measure import Known

Values = Mapping[str, np.ndarray]
"""Draws by variable: chains × draws × shape of the variable."""


class Normal(NamedTuple):
    """A normal density where ``rows @ x + offset > 0`` (and ``|x| < radius``): x is sampled."""

    mean: np.ndarray
    covariance: np.ndarray
    rows: np.ndarray
    offset: np.ndarray
    start: np.ndarray
    radius: float | None = None


@dataclass(frozen=True)
class Work:
    """A model, and what is known about it.

    Attributes
    ----------
    name, about
        For the page.
    build
        Makes the model, with its constraints, as its user would write it.
    view
        From the draws by variable, the quantities that are judged: chains × draws × quantities.
    known
        The known answer: a function of ``quick``, where an exact method may make fewer draws.
    source
        Where the known answer comes from.
    joint
        Whether constraints tie variables together, so that PyMC has no transform for them.
    transformed
        Makes the same density, reparametrised by hand so that nothing is constrained jointly.
    normal
        The same density as a normal one, for peers that sample only these.
    settings
        Settings of the paper's sampler, where the paper has the target.
    tune, draws, chains
        Of the full form, for samplers with gradients.
    large
        Whether it has too many unknowns for a random walk.
    quick
        Whether it is in the quick form.
    """

    name: str
    about: str
    build: Callable[[], pm.Model]
    view: Callable[[Values], np.ndarray]
    known: Callable[[bool], Known]
    source: str = "closed form"
    joint: bool = False
    transformed: Callable[[], pm.Model] | None = None
    normal: Normal | None = None
    settings: Mapping | None = None
    tune: int = 1000
    draws: int = 2000
    chains: int = 2
    large: bool = False
    quick: bool = False

    def for_transforms(self) -> Callable[[], pm.Model] | None:
        """Makes the model for samplers that need transforms; None where there is none."""
        return self.transformed if self.joint else self.build


def flat(*names: str) -> Callable[[Values], np.ndarray]:
    """A view: the elements of some variables, side by side."""

    def view(values):
        parts = [np.asarray(values[name]) for name in names]
        return np.concatenate([x.reshape(*x.shape[:2], -1) for x in parts], axis=2)

    return view
