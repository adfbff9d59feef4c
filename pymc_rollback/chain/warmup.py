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

import numpy as np
from pymc.step_methods.state import DataClassState, WithSamplingState, dataclass_state
from pymc.step_methods.step_sizes import DualAverageAdaptation, StepSizeState

from pymc_rollback.chain.options import Options
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import Walls

FIRST_WINDOW = 10
"""Draws before the metric is updated for the first time; each window is as long as all before."""

EARLY, EARLY_TREEDEPTH = 80, 7
"""Draws up to which the metric is guessed from slopes, and trajectories are kept short."""

MOST_STEP = 2.0
"""Longest step, in standard deviations: on a flat density nothing else would limit it."""

LEAST_PULL = 0.1
"""Smallest slope, per standard deviation, that is worth following exactly."""

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


@dataclass_state
class WarmupState(DataClassState):
    """What warm-up has learnt, and the sums over the present window of draws."""

    step_adapt: StepSizeState
    variances: np.ndarray
    covariance: np.ndarray
    root: np.ndarray
    pull: np.ndarray
    log_steepness: float
    recent: np.ndarray
    iteration: int
    window_end: int
    count: int
    center: np.ndarray
    previous: np.ndarray
    autocorrelation: float
    sums: np.ndarray
    products: np.ndarray


class Warmup(WithSamplingState):
    """Tunes one chain.

    Parameters
    ----------
    options
        What is given, and what is tuned.
    walls
        Which coordinates reflect, and which are kept in order.

    Attributes
    ----------
    variances
        Diagonal of the inverse mass matrix.
    covariance, root
        The inverse mass matrix of a dense metric, and a root of the mass matrix; else empty.
    pull
        Slope of the potential that is followed exactly while a coordinate drifts.
    autocorrelation
        Autocorrelation of successive draws in the last window, averaged over the coordinates.
    recent
        Acceptance rate, share inside and number of steps of the last trajectories, on average.
    """

    _state_class = WarmupState

    def __init__(self, options: Options, walls: Walls) -> None:
        size = walls.size
        self.options = options
        self.walls = walls
        self.variances = np.ones(size) if options.variances is None else options.variances.copy()
        self.covariance = self.root = np.empty((0, 0))
        self.pull = np.zeros(size)
        self.log_steepness = np.log(STEEPNESS[1])
        self.autocorrelation = 0.0
        self.recent = np.array([1.0, 1.0, LEAST_GRADIENTS])
        self.iteration = 0
        self.window_end = FIRST_WINDOW
        self.restart_step(1.0)
        self._open_window(np.zeros(size))

    def restart_step(self, step_size: float) -> None:
        """Begin the search for a step size anew."""
        target = self.options.target_accept
        self.step_adapt = DualAverageAdaptation(step_size, target, 0.05, 0.75, 10)

    def _open_window(self, center: np.ndarray) -> None:
        size = center.size if self.options.dense else 0
        self.count = 0
        self.center = center.copy()
        self.sums = np.zeros((6, center.size))
        self.previous = np.zeros(center.size)
        self.products = np.zeros((size, size))

    def step_size(self, tune: bool) -> float:
        """The given step size, the present one, or, when tuning has stopped, the averaged one."""
        if self.options.step_size is not None:
            return self.options.step_size
        return float(min(self.step_adapt.current(tune), self._longest()))

    def _longest(self) -> float:
        """Longest step size; there is no limit before the metric knows the scale of the draws."""
        scaled = self.window_end > FIRST_WINDOW or not self.options.tunes_metric
        return MOST_STEP if scaled else np.inf

    @property
    def is_early(self) -> bool:
        """Whether the chain may still be on its way, so that the spread of its draws misleads."""
        return self.options.tunes_metric and self.window_end <= EARLY

    @property
    def steepness(self) -> float:
        """Slope of a boundary term per standard deviation."""
        return float(np.exp(self.log_steepness))

    def inner_steps(self, step_size: float) -> int:
        """Inner steps that resolve the walls; one where walls are as sharp as the user says."""
        if not self.walls.has_energy:
            return 0
        if not self.options.tunes_rows:
            return 1
        return int(np.clip(np.ceil(step_size * self.steepness / RESOLVED), 1, MOST_INNER))

    def repeats(self) -> int:
        """Number of trajectories that make a draw after warm-up; one if their length is given."""
        if self.options.n_steps is not None:
            return 1
        wanted = np.log(REPEATED) / np.log(np.clip(self.autocorrelation, REPEATED, 0.99))
        return max(1, round(min(wanted, LEAST_GRADIENTS / self.recent[2])))

    def update(
        self,
        position: np.ndarray,
        slope: np.ndarray,
        acceptance: float,
        outside: float,
        steps: int,
    ) -> bool:
        """Learn from a draw; whether a window has ended.

        Parameters
        ----------
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
        self.iteration += 1
        self.step_adapt.update(acceptance, True)
        self.recent += (np.array([acceptance, 1.0 - outside, steps]) - self.recent) / RECENT
        if self.options.tunes_rows:
            self._tune_steepness(outside)
        if self.count == 0:
            self.center = position.copy()
        x = position - self.center
        self.count += 1
        self.sums += (x, x * x, slope, slope * x, slope * slope, x * self.previous)
        self.previous = x
        if self.options.dense:
            self.products += np.outer(x, x)
        return self.iteration == self.window_end

    def _tune_steepness(self, outside: float) -> None:
        """Make barriers steeper where more than the wanted share of states was outside."""
        rate = 2.0 / (10.0 + self.iteration) ** 0.6
        low, _, high = np.log(STEEPNESS)
        moved = self.log_steepness + rate * min(outside / OUTSIDE - 1.0, 1.0)
        self.log_steepness = float(min(max(moved, low), high))

    def close_window(self, lower: np.ndarray, upper: np.ndarray) -> None:
        """Update metric and pull from the draws of a window, and open the next.

        Parameters
        ----------
        lower, upper
            Bounds at which coordinates are reflected.
        """
        mean, square, slope, cross, slope_square, lagged = self.sums / self.count
        variance = square - mean**2
        moved = variance > 0
        if np.any(moved):
            self.autocorrelation = float(np.mean((lagged - mean**2)[moved] / variance[moved]))
        if self.options.tunes_metric:
            spread = variance
            if self.is_early:
                spread = _guess_variance(variance, slope_square - slope**2, self.walls.has_energy)
            pooled = self._pool(mean, spread)
            stuck = not np.any(pooled > 0)  # in a metric so wide that every step leaves the region
            self.variances = np.where(pooled > 0, pooled, self.variances / (100 if stuck else 1))
            if self.options.dense:
                self.covariance = self._shrink(self.products / self.count - np.outer(mean, mean))
                self.root = np.linalg.cholesky(np.linalg.inv(self.covariance))
        gradient = (cross - slope * mean) / np.where(variance > 0, variance, np.inf)
        slopes = self._wall_slope(mean, variance, slope, gradient, lower, upper)
        self.pull = self.walls.share(slopes)
        self.window_end *= 2
        self._open_window(self.center)

    def _pool(self, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
        """Variances, in which coordinates that exchange places share that of all their values."""
        pooled = self.walls.share(variance)
        for run, _ in self.walls.ordered:
            pooled[run] += np.var(self.center[run] + mean[run])
        return pooled

    def _shrink(self, covariance: np.ndarray) -> np.ndarray:
        """Covariance with the metric's variances and shrunk correlations.

        Coordinates that reflect stay apart: a reflection flips one momentum alone.
        """
        deviation = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
        weight = self.count / (self.count + self.variances.size + 5.0)
        free = ~self.walls.reflects
        correlation = weight * covariance / np.outer(deviation, deviation) * np.outer(free, free)
        np.fill_diagonal(correlation, 1.0)
        return correlation * np.sqrt(np.outer(self.variances, self.variances))

    def _wall_slope(
        self,
        mean: np.ndarray,
        variance: np.ndarray,
        slope: np.ndarray,
        gradient: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
    ) -> np.ndarray:
        """Slope of the potential at the nearer wall, by regression, where it presses against it."""
        place = self.center + mean
        to_lower, to_upper = place - lower, upper - place
        least = LEAST_PULL / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        with np.errstate(invalid="ignore"):
            at_lower = slope - gradient * to_lower
            at_upper = slope + gradient * to_upper
        presses_low = np.isfinite(lower) & (to_lower <= to_upper) & (at_lower > least)
        presses_high = np.isfinite(upper) & (to_upper < to_lower) & (at_upper < -least)
        pull = np.where(presses_low, at_lower, np.where(presses_high, at_upper, 0.0))
        return np.where(self.walls.planar, 0.0, pull)  # between planes motion is straight

    def search_step(self, acceptance: Callable[[float], float]) -> None:
        """Double or halve the step size until a single step crosses the wanted acceptance rate.

        Parameters
        ----------
        acceptance
            Acceptance rate of a single step of a given size.
        """
        if self.options.step_size is not None:
            return
        step_size, target = self.step_size(tune=False), self.options.target_accept
        longer = acceptance(step_size) > target
        for _ in range(MOST_DOUBLINGS):
            further = step_size * (2.0 if longer else 0.5)
            if further > self._longest() or (acceptance(further) > target) != longer:
                break
            step_size = further
        self.restart_step(step_size)

    def apply_metric(self, rows: np.ndarray) -> np.ndarray:
        """The inverse mass matrix times some vectors, one a row."""
        return rows @ self.covariance if self.covariance.size else rows * self.variances

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        r"""Lengths :math:`|\nabla g_j|_{M^{-1}}` of gradients, one a row."""
        return np.sqrt(np.maximum(np.sum(self.apply_metric(rows) * rows, axis=1), 0.0))


def _guess_variance(position: np.ndarray, slope: np.ndarray, has_barriers: bool) -> np.ndarray:
    """Guess a variance from few draws and the slopes there, which tell of places not yet seen.

    The guess is right for a normal density, from the first draws on, however slowly they spread, or
    far they come. Slopes know nothing of barriers: where there are any, the guess stays below the
    variance of the draws.
    """
    with np.errstate(all="ignore"):
        guess = np.sqrt(position / slope)
        guess = 1 / (1 / guess + 1 / position) if has_barriers else guess
    return np.where(np.isfinite(guess) & (guess > 0), guess, position)


def wall_lengths(
    warmup: Warmup,
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
    spread, rows = np.sqrt(warmup.variances), walls.barrier_rows
    best = np.full(rows, np.inf)
    lengths = np.ones_like(best)
    for scale in (0.0,) if walls.is_affine else WALL_SEARCH:
        near = position + scale * spread * rng.normal(size=position.size)
        found = warmup.lengths(slacks.gradients(near, others)[:rows])
        with np.errstate(all="ignore"):
            distance = np.abs(slacks.rows(near, others)[:rows]) / found
        better = np.isfinite(found) & (found > 0) & (distance < best)
        best, lengths = np.where(better, distance, best), np.where(better, found, lengths)
    return lengths
