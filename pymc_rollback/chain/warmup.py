r"""Warm-up: every number that the paper leaves to the user, found while the chain tunes.

- ``step_size`` by dual averaging of the acceptance rate of the dynamics energy;
- the metric from the variance of the draws (at first, from that and the variance of the slopes),
  in windows that double;
- ``pull``, the slope with which the density presses a coordinate against its wall;
- ``steepness`` :math:`s`, from which the sharpness of a row of the joint constraints follows as
  :math:`\mu_j = s / |\nabla g_j|_{M^{-1}}` at the wall, so that the scale in which a constraint or
  a variable is written does not matter. It is tuned to the share of states that are outside.

All of them are frozen when tuning stops.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.metric import Bounds, Metric, estimate_metric, make_metric
from pymc_rollback.chain.options import Options
from pymc_rollback.chain.step_size import StepSize
from pymc_rollback.chain.window import Window, open_window
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import Walls

FIRST_WINDOW = 10
"""Draws before the metric is updated for the first time; each window is as long as all before."""

EARLY, EARLY_TREEDEPTH = 80, 7
"""Draws up to which the metric is guessed from slopes, and trajectories are kept short."""

LEAST_DENSE = 80
"""Draws of a window from which correlations may be estimated; as many as coordinates, at least."""

MOST_STEP = 2.0
"""Longest step, in standard deviations: on a flat density nothing else would limit it."""

OUTSIDE = 0.2
"""Share of a trajectory's states that may be outside the joint constraints."""

STEEPNESS = (1.0, 10.0, 100.0)
"""Least, first and greatest slope of a boundary term, per standard deviation."""

RESOLVED = 1.5
"""Product of inner step and steepness at which the walls are resolved."""

RECENT = 50
"""Number of trajectories over which rates are averaged."""

REPEATED, LEAST_GRADIENTS = 0.15, 8
"""Autocorrelation of draws above which short trajectories are repeated, and gradients of a draw.

The energy of a coordinate that falls freely changes only from one trajectory to the next: many
short ones are better than a long one, but not worth a draw each.
"""

MOST_INNER = 64
"""Most inner steps under the walls in a step."""

MOST_DOUBLINGS = 60
"""How often a first step size is doubled or halved."""

WALL_SEARCH = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Distances, in standard deviations, at which a wall is looked for."""


class Learnt(NamedTuple):
    """What a chain has learnt: arrays and numbers, none of which is ever changed in place.

    Attributes
    ----------
    step
        The step size under dual averaging.
    metric
        The inverse mass matrix.
    pull
        Slope of the potential that is followed exactly while a coordinate drifts.
    log_steepness
        Logarithm of the slope of a boundary term per standard deviation.
    row_lengths
        Length of the gradient of each row of the barriers, near its wall, in the metric.
    autocorrelation
        Autocorrelation of successive draws in the last window, averaged over the coordinates.
    lead
        Logarithm of how much better a dense metric was than a diagonal one; earlier races fade.
    recent
        Acceptance rate, share inside and number of steps of the last trajectories, on average.
    iteration, window_end
        Number of draws that were learnt from, and that at which the present window ends.
    window
        Sums over the draws of the present window.
    """

    step: StepSize
    metric: Metric
    pull: np.ndarray
    log_steepness: float
    row_lengths: np.ndarray
    autocorrelation: float
    lead: float
    recent: tuple[float, ...]
    iteration: int
    window_end: int
    window: Window

    @property
    def steepness(self) -> float:
        """Slope of a boundary term per standard deviation."""
        return float(np.exp(self.log_steepness))

    @property
    def at_window_end(self) -> bool:
        """Whether the present window is over."""
        return self.iteration == self.window_end


@dataclass(frozen=True)
class Warmup:
    """The rules by which a chain learns; what it has learnt is handed in, and given back.

    Attributes
    ----------
    options
        What is given, and what is tuned.
    walls
        Which coordinates reflect, and which are kept in order.
    """

    options: Options
    walls: Walls

    def begin(self) -> Learnt:
        """What is known before the first draw."""
        size, variances = self.walls.size, self.options.variances
        return Learnt(
            step=StepSize.first(1.0),
            metric=make_metric(self.walls, np.ones(size) if variances is None else variances),
            pull=np.zeros(size),
            log_steepness=float(np.log(STEEPNESS[1])),
            row_lengths=np.ones(self.walls.barrier_rows),
            autocorrelation=0.0,
            lead=0.0,
            recent=(1.0, 1.0, float(LEAST_GRADIENTS)),
            iteration=0,
            window_end=FIRST_WINDOW,
            window=open_window(size, self.options.metric != "diag"),
        )

    def step_size(self, learnt: Learnt, tune: bool) -> float:
        """The given step size, the present one, or, when tuning has stopped, the averaged one."""
        if self.options.step_size is not None:
            return self.options.step_size
        return min(learnt.step.current(tune), self._longest(learnt))

    def _longest(self, learnt: Learnt) -> float:
        """Longest step size; there is no limit before the metric knows the scale of the draws."""
        scaled = learnt.window_end > FIRST_WINDOW or not self.options.tunes_metric
        return MOST_STEP if scaled else np.inf

    def is_early(self, learnt: Learnt) -> bool:
        """Whether the chain may still be on its way, so that the spread of its draws misleads."""
        return self.options.tunes_metric and learnt.window_end <= EARLY

    def sharpness(self, learnt: Learnt) -> np.ndarray:
        """Sharpness, with the rows that are tuned filled in."""
        given = self.options.sharpness
        if not self.options.tunes_rows:
            return given
        rows = learnt.steepness / learnt.row_lengths
        return np.where(np.isnan(given), np.concatenate([np.zeros(self.walls.size), rows]), given)

    def inner_steps(self, learnt: Learnt, step_size: float) -> int:
        """Inner steps that resolve the walls; one where walls are as sharp as the user says."""
        if not self.walls.has_energy:
            return 0
        if not self.options.tunes_rows:
            return 1
        return int(np.clip(np.ceil(step_size * learnt.steepness / RESOLVED), 1, MOST_INNER))

    def repeats(self, learnt: Learnt) -> int:
        """Number of trajectories that make a draw after warm-up; one if their length is given."""
        if self.options.n_steps is not None:
            return 1
        wanted = np.log(REPEATED) / np.log(np.clip(learnt.autocorrelation, REPEATED, 0.99))
        return max(1, round(min(wanted, LEAST_GRADIENTS / learnt.recent[2])))

    def update(
        self,
        learnt: Learnt,
        position: np.ndarray,
        slope: np.ndarray,
        acceptance: float,
        outside: float,
        steps: int,
    ) -> Learnt:
        """Learn from a draw.

        Parameters
        ----------
        learnt
            What was learnt before.
        position
            The draw.
        slope
            Gradient of the potential energy there.
        acceptance
            Acceptance rate of the trajectory.
        outside
            Share of its states outside the joint constraints.
        steps
            Number of its steps.
        """
        rates = zip(learnt.recent, (acceptance, 1.0 - outside, steps), strict=True)
        learnt = learnt._replace(
            iteration=learnt.iteration + 1,
            step=learnt.step.update(acceptance, self.options.target_accept),
            recent=tuple(old + (new - old) / RECENT for old, new in rates),
            window=learnt.window.add(position, slope),
        )
        return _tune_steepness(learnt, outside) if self.options.tunes_rows else learnt

    def candidates(self, learnt: Learnt) -> tuple[bool, ...]:
        """Whether the metric of the next window is dense: the choices at the end of a window."""
        if self.options.metric != "auto":
            return (self.options.metric == "dense",)
        enough = learnt.window.draws >= max(LEAST_DENSE, self.walls.size)
        return (False, True) if enough else (False,)

    def close_window(self, learnt: Learnt, bounds: Bounds, *, stay: bool, dense: bool) -> Learnt:
        """Update metric and pull from the draws of a window, and open the next.

        Parameters
        ----------
        learnt
            What was learnt before.
        bounds
            Lower and upper bounds at which coordinates are reflected.
        stay
            Whether they are the same for the whole chain.
        dense
            Whether the metric is dense.
        """
        walls, window, metric = self.walls, learnt.window, learnt.metric
        moments = window.moments
        autocorrelation = moments.autocorrelation()
        if self.options.tunes_metric:
            metric = estimate_metric(
                window,
                metric,
                walls,
                dense=dense,
                early=self.is_early(learnt),
                bounds=bounds if stay else None,
            )
        # between planes motion is straight
        pull = np.where(metric.planar, 0.0, moments.pull(*bounds))
        return learnt._replace(
            autocorrelation=learnt.autocorrelation if autocorrelation is None else autocorrelation,
            metric=metric,
            pull=walls.share(pull),
            window_end=2 * learnt.window_end,
            window=open_window(walls.size, self.options.metric != "diag"),
        )

    def search_step(self, learnt: Learnt, acceptance: Callable[[float], float]) -> Learnt:
        """Double or halve the step size until a single step crosses the wanted acceptance rate.

        Parameters
        ----------
        learnt
            What was learnt before.
        acceptance
            Acceptance rate of a single step of a given size.
        """
        if self.options.step_size is not None:
            return learnt
        step_size, target = self.step_size(learnt, tune=False), self.options.target_accept
        longer = acceptance(step_size) > target
        for _ in range(MOST_DOUBLINGS):
            further = step_size * (2.0 if longer else 0.5)
            if further > self._longest(learnt) or (acceptance(further) > target) != longer:
                break
            step_size = further
        return learnt._replace(step=StepSize.first(step_size))


def _tune_steepness(learnt: Learnt, outside: float) -> Learnt:
    """Make barriers steeper where more than the wanted share of states was outside."""
    rate = 2.0 / (10.0 + learnt.iteration) ** 0.6
    low, _, high = np.log(STEEPNESS)
    moved = learnt.log_steepness + rate * min(outside / OUTSIDE - 1.0, 1.0)
    return learnt._replace(log_steepness=float(min(max(moved, low), high)))


def wall_lengths(
    metric: Metric,
    walls: Walls,
    slacks: Slacks,
    position: np.ndarray,
    others: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Lengths of the rows' gradients near each row's wall.

    Where all rows are affine, taken at the chain's position. Else, for each row, at the one of
    several points around at which its wall is nearest, by its slack over the gradient's length.
    """
    spread, rows = np.sqrt(metric.variances), walls.barrier_rows
    best = np.full(rows, np.inf)
    lengths = np.ones_like(best)
    for scale in (0.0,) if walls.is_affine else WALL_SEARCH:
        near = position + scale * spread * rng.normal(size=position.size)
        found = metric.lengths(slacks.gradients(near, others, rows))
        with np.errstate(all="ignore"):
            distance = np.abs(slacks.rows(near, others)[:rows]) / found
        better = np.isfinite(found) & (found > 0) & (distance < best)
        best, lengths = np.where(better, distance, best), np.where(better, found, lengths)
    return lengths
