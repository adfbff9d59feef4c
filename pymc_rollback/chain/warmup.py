"""Warm-up: every number that the paper leaves to the user, found while the chain tunes.

- ``step_size`` by dual averaging of the acceptance rate of the dynamics energy;
- the metric from the variance of the draws (at first, from that and the variance of the slopes),
  in windows that double;
- ``flow``, what a drift follows exactly: a quadratic of the density, or the slope (``pull``) with
  which it presses a coordinate against its wall;
- which of these are used, and the time of a trajectory, by a race (``race.py``);
- how steep barriers are (``steepness.py``).

All of them are frozen when tuning stops.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pymc_rollback.chain import steepness
from pymc_rollback.chain.choice import JITTER, TEMPI, Choice, find_choices, first_choice
from pymc_rollback.chain.flow import find_flow, no_flow
from pymc_rollback.chain.learnt import Learnt
from pymc_rollback.chain.maps import say_maps
from pymc_rollback.chain.metric import Bounds, estimate_metric, make_metric
from pymc_rollback.chain.options import Options
from pymc_rollback.chain.step_size import StepSize
from pymc_rollback.chain.window import Window
from pymc_rollback.kernels.maps import NONE
from pymc_rollback.kernels.state import KIND, NO_MAPS
from pymc_rollback.target.walls import Walls

FIRST_WINDOW = 10
"""Draws before the metric is updated for the first time; each window is as long as all before."""

EARLY, EARLY_TREEDEPTH = 80, 7
"""Draws up to which the metric is guessed from slopes, and trajectories are kept short."""

LEAST_RACE, HOPELESS = 80, 1.5
"""Draws of a window that may end with a race, and the lead that makes a choice sit it out.

Correlations need as many draws as there are coordinates, too.
"""

MORE = 1.3
"""Draws for each coordinate from which slopes tell a curvature: for a normal one more is enough."""

EVEN = 1e-9
"""Part of a step that is rounding."""

STARTS = 64
"""Draws of a window from which trajectories of a fixed time are tried."""

MOST_STEP = 2.0
"""Longest step, in standard deviations: on a flat density nothing else would limit it."""

MOST_FIRST_STEP = 1e6
"""Longest step before the metric knows the scale of draws: a position that is 1e18 widths of a box
away has no digit left, and is folded onto a wall."""

MOST_STEPS = 32
"""Most steps of a trajectory of a fixed time, where the time is not given."""

ENOUGH, STUCK, STICKS = 0.9, 0.1, 0.08
"""Acceptance rate, of the wanted one, that is enough for a trajectory of a fixed time.

And the acceptance rate below which a start is stuck, and the share of starts that may be.
"""

FINER = ((0.9, 16), (0.99, 64))
"""Acceptance rates below which one of so many trajectories has shorter steps.

The usual ones may be stuck in a tail that the warm-up has not seen.
"""

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
            maps=NO_MAPS,
            flow=no_flow(size),
            log_steepness=steepness.first(timed=False),
            row_lengths=np.ones(self.walls.barrier_rows),
            autocorrelation=0.0,
            choice=first_choice(self.options),
            steps=1,
            finer=0,
            leads=(0.0,) * len(self.choices),
            behind=(np.inf,) * len(self.choices),
            map_leads=(0.0, 0.0),
            tempo_leads=(0.0,) * (1 + len(TEMPI)),
            recent=(1.0, 1.0, float(LEAST_GRADIENTS)),
            iteration=0,
            window_end=FIRST_WINDOW,
            window=Window(),
            starts=(),
        )

    def step_size(self, learnt: Learnt, tune: bool) -> float:
        """The given step size, the present one, or, when tuning has stopped, the averaged one."""
        if self.options.step_size is not None:
            return self.options.step_size
        return min(learnt.step.current(tune), self._longest(learnt))

    def _longest(self, learnt: Learnt) -> float:
        """Longest step size; none with a time."""
        if learnt.time > 0:
            return np.inf
        scaled = learnt.window_end > FIRST_WINDOW or not self.options.tunes_metric
        return MOST_STEP if scaled else MOST_FIRST_STEP

    def numbers_of_steps(self, learnt: Learnt) -> list[int]:
        """Numbers of steps that may do for a trajectory of a fixed time, the least first."""
        options = self.options
        if options.n_steps is not None:
            return [options.n_steps]
        most = 2**options.max_treedepth
        if options.step_size is not None:
            return [min(max(int(np.ceil(learnt.time / options.step_size - EVEN)), 1), most)]
        most = most if options.trajectory_time is not None else min(most, MOST_STEPS)
        steps = {1, *(k << i >> 1 for k in (2, 3) for i in range(1, options.max_treedepth))}
        return sorted(k for k in steps if k <= most)

    def is_enough(self, rates: Sequence[float], count: int) -> bool:
        """Whether trajectories are accepted often enough, and nearly everywhere, so far.

        Parameters
        ----------
        rates
            Acceptance rates of some of them, each from a draw of its own.
        count
            Number of all of them.
        """
        missing, stuck = sum(1.0 - rate for rate in rates), sum(rate < STUCK for rate in rates)
        least = ENOUGH * self.options.target_accept
        return missing <= (1.0 - least) * count and stuck <= STICKS * count

    def finer(self, rates: Sequence[float]) -> int:
        """Of how many trajectories one has shorter steps; zero where all are accepted."""
        rate = np.mean(rates)
        return next((every for least, every in FINER if rate < least), 0)

    def settle(self, learnt: Learnt) -> Learnt:
        """What is left when tuning stops: with the time that is given, were there a race or not."""
        time = self.options.trajectory_time
        if time is None or learnt.time == time:
            return learnt
        learnt = learnt._replace(choice=Choice(learnt.choice.dense, time, jitter=JITTER))
        most = self.step_size(learnt, tune=False)
        fewest = int(np.ceil(time / most - EVEN))
        steps = next((k for k in self.numbers_of_steps(learnt) if k >= fewest), fewest)
        return learnt._replace(steps=min(steps, 2**self.options.max_treedepth))

    def verdict(self, learnt: Learnt) -> str | None:
        """What the races have chosen, and why; None if there was none."""
        against = [x for x in zip(self.choices, learnt.behind, strict=True) if np.isfinite(x[1])]
        if not against:
            return None
        other, lead = min(against, key=lambda x: (x[0].time > 0, x[0].dense, x[0].curved))
        steps = f" in {learnt.steps} step{'s' * (learnt.steps > 1)}" if learnt.time > 0 else ""
        why = f"{np.exp(-lead):.2g} times the effective draws per gradient of {other.text}"
        maps = say_maps(learnt.maps, self.walls.names)
        under = f", {maps}" if maps else ""
        return f"Chosen in warm-up: {learnt.choice.text}{steps}{under}; the best made {why}."

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
        """Number of trajectories that make a draw after warm-up; one if their length is fixed."""
        if self.options.n_steps is not None or learnt.time > 0:
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
        if not self.options.tunes_rows:
            return learnt
        excess = steepness.excess(outside, steps, timed=learnt.time > 0)
        moved = steepness.tune(learnt.log_steepness, excess, learnt.iteration)
        return learnt._replace(log_steepness=moved)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All that a race may choose."""
        return find_choices(self.options, self.walls)

    def candidates(self, learnt: Learnt) -> list[int]:
        """Which of the choices are in the running at the end of a window; none before a race."""
        draws, best = learnt.window.draws, max(learnt.leads)
        if draws < LEAST_RACE and self.options.tunes_metric:
            return []
        least = 0 if self.options.metric == "dense" else self.walls.size
        return [
            k
            for k, choice in enumerate(self.choices)
            if learnt.leads[k] >= best - HOPELESS
            and (not choice.dense or draws >= (MORE * self.walls.size if choice.curved else least))
        ]

    def walls_for(self, choice: Choice, maps: np.ndarray) -> Walls:
        """The walls as a choice has them, and as they are under maps."""
        walls = self._walls_apart if choice.apart else self.walls
        return walls.without_bounds(maps[KIND] != NONE) if maps.size else walls

    @cached_property
    def _walls_apart(self) -> Walls:
        return self.walls.with_planes_for_orders()

    def tunes_time(self, learnt: Learnt) -> bool:
        """Whether another time may be tried."""
        return learnt.time > 0 and self.options.trajectory_time is None

    def close_window(
        self,
        learnt: Learnt,
        bounds: Bounds,
        *,
        stay: bool,
        choice: Choice,
        maps: np.ndarray = NO_MAPS,
        tempo: float = 1.0,
    ) -> Learnt:
        """Update metric and pull from the draws of a window, and open the next.

        Parameters
        ----------
        learnt
            What was learnt before.
        bounds
            Lower and upper bounds at which coordinates are reflected.
        stay
            Whether they are the same for the whole chain.
        choice, maps, tempo
            What the next window goes on with, and a factor of its time.
        """
        walls, metric = self.walls_for(choice, maps), learnt.metric
        window = learnt.window.changed(learnt.maps, maps)
        bounds = walls.reflecting(*bounds)
        moments = window.moments
        autocorrelation = moments.autocorrelation()
        alike = (choice.time > 0) == (learnt.time > 0)
        if self.options.tunes_metric:
            metric = estimate_metric(
                window,
                metric,
                walls,
                dense=choice.dense,
                curved=choice.curved and (stay or not np.any(walls.reflects & walls.planar)),
                early=self.is_early(learnt),
                bounds=bounds if stay else None,
            )
        return learnt._replace(
            autocorrelation=learnt.autocorrelation if autocorrelation is None else autocorrelation,
            metric=metric,
            maps=maps,
            choice=choice._replace(time=tempo * choice.time),
            finer=0,
            # as it was, where states count as they did
            log_steepness=learnt.log_steepness if alike else steepness.first(choice.time > 0),
            starts=(),
            flow=find_flow(moments, metric, walls, bounds),
            window_end=2 * learnt.window_end,
            window=Window(),
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
