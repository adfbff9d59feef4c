"""Under which maps coordinates move: decided element by element, by what a window has shown."""

from collections.abc import Sequence

import numpy as np

from pymc_rollback.chain.metric import Bounds
from pymc_rollback.chain.window import Window
from pymc_rollback.kernels.maps import ABOVE, BELOW, BETWEEN, NONE
from pymc_rollback.kernels.state import KIND, NO_MAPS
from pymc_rollback.target.walls import Walls

BETTER = 1.2
"""By how much a coordinate must be nearer to a normal under a map to move under it."""

MOST_NAMED = 6
"""Coordinates that a line names."""


def find_maps(window: Window, present: np.ndarray, walls: Walls, bounds: Bounds) -> np.ndarray:
    r"""Maps of those coordinates that are nearer to normal under them.

    For a normal :math:`\operatorname{var} q \operatorname{var} \partial_q \log f` is one, and more
    for whatever is not, except where a wall cuts off: a coordinate that leans on its wall has less,
    and moves best as it is. Under a map there is no wall.

    Parameters
    ----------
    window, present
        Draws, and the maps that they are under.
    walls, bounds
        Which coordinates may have a map, and where they reflect.
    """
    every = _all_maps(walls, bounds)
    if every.size == 0:
        return NO_MAPS
    straight, mapped = (_roughness(window.changed(present, maps)) for maps in (NO_MAPS, every))
    better = BETTER * mapped < straight
    if not np.any(better):
        return NO_MAPS
    every[KIND, ~better] = NONE
    return every


def count_mapped(maps: np.ndarray) -> int:
    """Number of coordinates that move under a log or a logit."""
    return int(np.count_nonzero(maps[KIND]))


def say_maps(maps: np.ndarray, names: Sequence[str]) -> str:
    """Which coordinates move under a log or a logit, in words; empty where none does.

    Parameters
    ----------
    maps
        The maps.
    names
        What each coordinate is called.
    """
    said = []
    for kinds, word in (((ABOVE, BELOW), "a log"), ((BETWEEN,), "a logit")):
        found = [names[i] for i in np.isin(maps[KIND], kinds).nonzero()[0].tolist()]
        more = len(found) - MOST_NAMED
        if found:
            listed = ", ".join(found[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
            said.append(f"under {word}: {listed}")
    return "; ".join(said)


def say_map(maps: np.ndarray, block: slice) -> str:
    """What the warm-up has done with the coordinates of a variable; empty where they are as is."""
    kinds = maps[KIND, block] if maps.size else maps[KIND]
    mapped = kinds != NONE
    if not np.any(mapped):
        return ""
    part = "" if np.all(mapped) else f" for {np.sum(mapped)} of {kinds.size} elements"
    word = "logit" if np.any(kinds == BETWEEN) else "log"
    return f"nearer to normal under a {word}, in warm-up{part}"


def _all_maps(walls: Walls, bounds: Bounds) -> np.ndarray:
    """A map of each coordinate that may have one."""
    lower, upper = bounds
    below, above = np.isfinite(upper), np.isfinite(lower)
    kinds = np.where(above & below, BETWEEN, np.where(above, ABOVE, np.where(below, BELOW, NONE)))
    kinds = np.where(walls.mappable, kinds, NONE)
    return np.array([kinds, lower, upper], dtype=float) if np.any(kinds) else NO_MAPS


def _roughness(window: Window) -> np.ndarray:
    """Variance of the draws times that of the slopes; infinite where slopes overflow."""
    with np.errstate(all="ignore"):
        moments = window.moments
        rough = moments.variance * moments.slope_variance
    return np.where(np.isfinite(rough), rough, np.inf)
