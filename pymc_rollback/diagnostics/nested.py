r"""Small probabilities by nested levels of a slack, each sampled under the one before.

With :math:`h(x)` the least of some slacks, in units of their standard deviations, and levels
:math:`t_1 > t_2 > \dots > t_n = 0`,

.. math:: P(h > 0) = P(h > -t_1) \prod_k P(h > -t_{k+1} \mid h > -t_k),

where each factor is a share that draws from the density cut to :math:`h > -t_k` have.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pymc as pm
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.diagnostics.errors import share_error
from pymc_rollback.diagnostics.wider import cut, with_potentials
from pymc_rollback.graph.evaluate import repeated
from pymc_rollback.step import RollbackHMC

SHARE = 0.2
"""Share of the draws of one level that reach the next: fewer levels, or smaller errors of each."""

MOST_LEVELS = 200
"""Levels after which a search is given up, at a probability of 1e-140."""

MOST_DIVERGING = 0.01
"""Share of diverging draws from which on a warning is given."""


class Probability(NamedTuple):
    """Logarithm of a probability, or of a ratio of two, and the standard error of that."""

    log: float
    error: float

    @property
    def value(self) -> float:
        """The probability itself."""
        return float(np.exp(self.log))

    @property
    def value_error(self) -> float:
        """Its standard error."""
        return self.value * self.error

    def __truediv__(self, other: "Probability") -> "Probability":
        return Probability(self.log - other.log, float(np.hypot(self.error, other.error)))


@dataclass(frozen=True)
class Effort:
    """How much is sampled at each level."""

    draws: int
    tune: int
    chains: int


class Draws(NamedTuple):
    """Draws of some chains, one after the other: points of a model, and slacks there.

    The slacks of each constraint are arrays by its name, with axes for chains, draws and rows.
    """

    points: list[dict[str, np.ndarray]]
    slacks: dict[str, np.ndarray]


class Levels:
    """A wider model, sampled as it is, and cut at levels of the slacks of some constraints.

    Parameters
    ----------
    model
        The model without the constraints.
    slacks
        Their slacks by name, in the variables of the model.
    effort
        How much is sampled at each level.
    rng
        Generator.
    report
        Is told in words what is sampled next.
    """

    def __init__(
        self,
        model: pm.Model,
        slacks: Mapping[str, TensorVariable],
        effort: Effort,
        rng: np.random.Generator,
        report: Callable[[str], None],
    ) -> None:
        self.model, self.slacks, self.effort = model, dict(slacks), effort
        self.rng, self.report = rng, report
        replaced = model.replace_rvs_by_values(list(slacks.values()))
        self._evaluate = repeated(model.value_vars, replaced)
        report("without the constraints")
        self.first = self._sample(model, [None] * effort.chains)
        # a level is as far for each slack
        self.scales = {name: _spread(rows) for name, rows in self.first.slacks.items()}

    def probability(self, names: Sequence[str]) -> Probability:
        """Probability that some of the constraints hold together."""
        log, variance, draws = 0.0, 0.0, self.first
        for count in range(1, MOST_LEVELS):
            heights = self._heights(draws, names)
            level = min(float(np.quantile(heights, 1 - SHARE, method="lower")), 0.0)
            above = heights > level
            share = np.mean(above)
            if share == 0 or np.isinf(level):
                break
            log += np.log(share)
            variance += (share_error(above) / share) ** 2
            if level == 0:
                return Probability(float(log), float(np.sqrt(variance)))
            self.report(f"{_listed(names)}: level {count}, probability below {np.exp(log):.1e}")
            draws = self._sample(self._cut(names, level), self._starts(draws, above))
        raise ValueError(
            f"The probability of {_listed(names)} is zero, or below {np.exp(log):.1e}: the least "
            f"slack came no closer than {-level:.3g} standard deviations to zero. Constraints that "
            "exclude each other have no probability together: leave one of them out."
        )

    def _heights(self, draws: Draws, names: Sequence[str]) -> np.ndarray:
        """The least slack of each draw, in units of the standard deviations."""
        scaled = [draws.slacks[name] / self.scales[name] for name in names]
        least = np.concatenate(scaled, axis=2).min(axis=2)
        return np.where(np.isnan(least), -np.inf, least)

    def _cut(self, names: Sequence[str], level: float) -> pm.Model:
        """The wider model, cut to where slacks are above a level."""
        above = {name: self.slacks[name] - level * self.scales[name] for name in names}
        return with_potentials(
            self.model, [cut(slack, f"{name} (level)") for name, slack in above.items()]
        )

    def _starts(self, draws: Draws, above: np.ndarray) -> list[dict[str, np.ndarray]]:
        """Points among those that are above a level, one for each chain."""
        chosen = self.rng.choice(np.flatnonzero(above), self.effort.chains)
        return [draws.points[i] for i in chosen]

    def _sample(self, model: pm.Model, starts: Sequence[dict[str, np.ndarray] | None]) -> Draws:
        """Draw from a model, in a chain from each of some starts."""
        seed = int(self.rng.integers(2**30))
        step = RollbackHMC(model=model, rng=seed)
        points, diverged = [], 0
        for chain, start in enumerate(starts):
            # the first chain tunes for others that start at draws; the model's start may be in a
            # tail, where what was tuned elsewhere does not move
            if chain == 0 or start is None:
                step.reset_tuning()
            point = step.plan.region.start if start is None else start
            for _ in range(self.effort.tune):
                point, _ = step.step(point)
            step.stop_tuning()
            for _ in range(self.effort.draws):
                point, [stats] = step.step(point)
                points.append(point)
                diverged += bool(stats["diverging"])
        if diverged > MOST_DIVERGING * len(points):
            warnings.warn(
                f"{diverged} of {len(points)} draws diverged, so that a probability may be off. "
                "Look at the model with rb.describe, and sample it on its own first.",
                stacklevel=2,
            )
        return Draws(points, self._slacks_at(points))

    def _slacks_at(self, points: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """Slacks by constraint: chain, draw, row."""
        names = [v.name for v in self.model.value_vars]
        with np.errstate(all="ignore"):
            rows = [self._evaluate(*(point[name] for name in names)) for point in points]
        shape = self.effort.chains, self.effort.draws, -1
        columns = zip(*rows, strict=True)
        return {
            name: np.reshape(column, shape)
            for name, column in zip(self.slacks, columns, strict=True)
        }


def _spread(rows: np.ndarray) -> np.ndarray:
    """Standard deviation of each row of some slacks; one where there is none."""
    finite = np.where(np.isfinite(rows), rows, np.nan)
    with np.errstate(all="ignore"):
        spread = np.sqrt(np.nanmean((finite - np.nanmean(finite, (0, 1))) ** 2, (0, 1)))
    return np.where(spread > 0, spread, 1.0)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))
