"""How a density behaves up to the walls of its variables: finite with a finite slope, or not."""

from functools import cached_property

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import UNTOUCHED, interpreted
from pymc_rollback.region.constraint import Region

APPROACH = (1e-4, 1e-8)
"""Shares of the way from a wall to the starting point at which the slope is compared."""

JITTER = (0.0, 0.5, 0.5)
"""Spread in value space of the points from which a wall is approached."""

FURTHER_JITTER = (0.1, 1.0, 1.0, 2.0, 2.0, 2.0, 5.0, 5.0)
"""Spread of further points: one of them is taken where no point of JITTER has a finite density."""

MOST_ELEMENTS = 20
"""How many elements of a variable are taken to a wall one at a time."""

MANY = 40
"""Walled variables beyond which it takes less time to compile the density than to interpret it."""


def find_troubles(region: Region, walled: list[str], doubtful: list[str]) -> dict[str, str]:
    """What is wrong with the density at the walls of some variables, by name.

    Asks again in doubt: without PyTensor's rewrites, more overflows than has to.
    """
    modes = [None] if len(walled) > MANY else [UNTOUCHED, "FAST_COMPILE"]
    troubles = dict.fromkeys(doubtful, "")
    for mode in modes:
        if troubles:
            approach = _Approach(region, walled, mode)
            found = {name: approach.trouble(name) for name in troubles}
            troubles = {name: trouble for name, trouble in found.items() if trouble is not None}
    return troubles


class _Approach:
    """The joint log density along lines towards the walls of some variables."""

    def __init__(self, region: Region, names: list[str], mode: Mode | str | None) -> None:
        model = region.model
        plain = region.space(dict.fromkeys(names))
        self.names = names
        self.order = {name: region.cut_supports[name].order for name in names}
        rvs = [model[name] for name in names]
        bounds = [
            bound + pt.zeros_like(rv)
            for rv in rvs
            for bound in region.cut_supports[rv.name].full_bounds
        ]
        others = [rv for rv in model.free_RVs if rv.name not in names]
        # the others keep their value variables; those of the named ones become x itself
        located = model.replace_rvs_by_values([*rvs, *bounds])
        outputs = [*located, *(model.rvs_to_values[rv] for rv in others)]
        self._locate = interpreted(model.value_vars, outputs, UNTOUCHED)
        values = [plain[rv.name] for rv in (*rvs, *others)]
        logp = plain.smooth_logp
        gradients = pt.grad(logp, values[: len(names)], disconnected_inputs="ignore")
        self._density = interpreted(values, [logp, *gradients], mode)
        self._start = region.start
        self._jittered = [v.name for v in model.continuous_value_vars if _has_transform(model, v)]
        self._inputs = [v.name for v in model.value_vars]

    def trouble(self, name: str) -> str | None:
        """What is wrong with the density at a variable's walls; None if nothing.

        Approaches each wall first with all elements, then one by one.
        """
        i = self.names.index(name)
        judged = False
        for x, bounds, others in self._points:
            for wall, at_wall in self._walls(name, x[i], *bounds[2 * i : 2 * i + 2]):
                judged = True
                steep = self._steep(i, x, others, at_wall)
                if any(
                    np.any(self._steep(i, x, others, single))
                    for single in _one_at_a_time(x[i], at_wall, steep)
                ):
                    return f"the density is not finite, or infinitely steep, at {name} = {wall}"
        return None if judged else "the density is not finite at the starting point"

    @cached_property
    def _points(self) -> list[tuple[list, list, list]]:
        """Points of finite density: the walled variables, their bounds, and all other values."""
        rng = np.random.default_rng(0)
        points: list[tuple[list, list, list]] = []
        n = len(self.names)
        for scale in JITTER + FURTHER_JITTER:
            if points and scale in FURTHER_JITTER:
                break
            jitter = {v: scale * rng.normal(size=x.shape) for v, x in self._start.items()}
            start = {v: x + jitter[v] if v in self._jittered else x for v, x in self._start.items()}
            found = self._locate(*(start[v] for v in self._inputs))
            point = found[:n], found[n : 3 * n], found[3 * n :]
            if np.isfinite(self._evaluate(point[0], point[2])[0]):
                points.append(point)
        return points

    def _evaluate(self, x: list, others: list) -> list:
        with np.errstate(all="ignore"):
            return self._density(*x, *others)

    def _walls(self, name: str, x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> list:
        walls = [
            (f"{np.min(b):g}", np.where(np.isfinite(b), b, x))
            for b in (lower, upper)
            if np.any(np.isfinite(b))
        ]
        if self.order[name] is not None and x.shape[-1] > 1:
            joined = x.copy()
            joined[..., 1::2] = x[..., : x.shape[-1] // 2 * 2 : 2]
            walls.append(("a tie", joined))
        return walls

    def _steep(self, i: int, x: list, others: list, at_wall: np.ndarray) -> np.ndarray:
        """Elements whose slope times distance fails to vanish towards the wall."""
        works = []
        for distance in APPROACH:
            near_wall = at_wall + distance * (x[i] - at_wall)
            logp, *gradients = self._evaluate([*x[:i], near_wall, *x[i + 1 :]], others)
            work = np.abs(gradients[i] * distance * (x[i] - at_wall))
            works.append(np.where(np.isfinite(logp) & np.isfinite(work), work, np.inf))
        far, near = works
        return np.isinf(near) | (near > np.maximum(0.1 * far, 1e-6))


def _one_at_a_time(x: np.ndarray, at_wall: np.ndarray, which: np.ndarray) -> list[np.ndarray]:
    """Values of a variable with a single one of some elements at its wall."""
    moving = np.flatnonzero(((x != at_wall) & which).ravel())
    chosen = np.random.default_rng(0).permutation(moving)[:MOST_ELEMENTS]
    return [np.where(np.arange(x.size).reshape(x.shape) == i, at_wall, x) for i in chosen]


def _has_transform(model: pm.Model, value: TensorVariable) -> bool:
    return model.rvs_to_transforms[model.values_to_rvs[value]] is not None
