"""One chain, in terms of the coordinates: where it begins, how it draws, what it learns."""

from typing import NamedTuple

import numpy as np
from numba.core.dispatcher import Dispatcher

from pymc_rollback.chain.metric import make_metric
from pymc_rollback.chain.options import Options
from pymc_rollback.chain.race import judge
from pymc_rollback.chain.start import Start
from pymc_rollback.chain.warmup import EARLY_TREEDEPTH, Learnt, Warmup, wall_lengths
from pymc_rollback.kernels.native import address_of_generator
from pymc_rollback.kernels.run import address_of_trajectory, ready, repeat_trajectory
from pymc_rollback.kernels.state import POSITION, SLOPE, Point, System, new_points, read_point
from pymc_rollback.kernels.stats import Outcome, as_outcome
from pymc_rollback.kernels.trajectory import (
    doubling_trajectory,
    endpoint_trajectory,
    window_trajectory,
)
from pymc_rollback.target.compile import Compiled
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import Walls

LEAST_INSIDE = 0.4
"""Share of states inside the region below which warm-up has not done its work."""

LEAST_WINDOW = 30
"""Draws that a step size needs after the metric has changed."""

PRACTICE, HEAT = 25, 75
"""Draws that tune the step size of a metric, and draws by which it is judged against another."""

FADING, CLEARLY = 0.8, 0.2
"""What earlier races count, and the lead that a dense metric must have: a heat has few draws."""

LEAST_ACCEPTANCE = 0.6
"""Acceptance rate, relative to the wanted one, below which warm-up has not done its work."""


class Given(NamedTuple):
    """What surrounds the coordinates in a step.

    Attributes
    ----------
    others
        Values of the other variables.
    lower, upper
        Bounds of all coordinates.
    reflecting
        Lower and upper bounds at which coordinates are reflected; infinite for all others.
    bounded
        Which of those coordinates have a finite bound.
    """

    others: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    reflecting: tuple[np.ndarray, np.ndarray]
    bounded: np.ndarray


class Draw(NamedTuple):
    """A draw, and how it came about.

    Attributes
    ----------
    point, last
        The draw, and where a trajectory that diverged did so, as the kernels have them.
    outcome
        What happened along the trajectory.
    gradients
        Evaluations of the model since the draw before, whatever they were made for.
    step_size, system
        What the trajectory was run with.
    """

    point: np.ndarray
    last: np.ndarray
    outcome: Outcome
    gradients: int
    step_size: float
    system: System

    @property
    def here(self) -> Point:
        """The draw: its position, and the log density and its gradient there."""
        return read_point(self.point)

    @property
    def diverged_at(self) -> Point:
        """The point at which the trajectory diverged, if it did."""
        return read_point(self.last)


class Chain:
    """Draws positions, and tunes what is not given while it does.

    Parameters
    ----------
    walls, slacks
        The region, in numbers and as functions of a position.
    options
        What is given.

    Attributes
    ----------
    learnt, before
        What the chain has learnt, and what it had at the end of the last window, if there was one.
    spent
        Evaluations of the model since the last draw.
    """

    def __init__(self, walls: Walls, slacks: Slacks, options: Options) -> None:
        self.walls, self.slacks = walls, slacks
        self.options = options
        self.warmup = Warmup(options, walls)
        self.learnt = self.warmup.begin()
        self.before: Learnt | None = None
        self.spent = 0

    def compile_kernels(self) -> None:
        """Compile or load what draws: before processes are forked, each of which would do it."""
        ready(repeat_trajectory)
        ready(self._trajectory)

    def begin(
        self,
        functions: Compiled,
        position: np.ndarray,
        given: Given,
        rng: np.random.Generator,
        disperse: bool,
    ) -> np.ndarray:
        """A position inside the region, with first guesses of what is tuned there."""
        start = Start(self.walls, self.slacks, given.others, given.lower, given.upper)

        def log_density(x: np.ndarray) -> float:
            return read_point(self._evaluate(functions, x, given)).log_density

        position = start.find(position, log_density, rng)
        if disperse:
            position = start.jitter(position, log_density, rng)
        if self.options.tunes_metric:
            width = given.upper - given.lower
            between = self.walls.reflects & np.isfinite(width)
            metric = make_metric(self.walls, np.where(between, width**2 / 12, 1.0))
            self.learnt = self.learnt._replace(metric=metric)
        self._adjust(functions, self._evaluate(functions, position, given), given, rng)
        return position

    def enter(
        self,
        functions: Compiled,
        position: np.ndarray,
        given: Given,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The point at a position, or at an image of it where coordinates are mirrored."""
        bounds = given.lower, given.upper
        image = self.walls.draw_image(position, *bounds, self.options.sharpness, rng)
        return self._evaluate(functions, image, given)

    def _evaluate(self, functions: Compiled, position: np.ndarray, given: Given) -> np.ndarray:
        """The point at a position."""
        self.spent += 1
        with functions.interrupt:
            [answer] = functions.model(position, given.others)
        [point] = new_points(1, position.size)
        point[POSITION, : position.size] = position
        point[SLOPE, : answer.size] = answer
        return point

    def draw(
        self,
        functions: Compiled,
        point: np.ndarray,
        given: Given,
        rng: np.random.Generator,
        tune: bool,
        count: int = 1,
    ) -> list[Draw]:
        """Run trajectories, and select the next point from each."""
        repeats = 1 if tune else self.warmup.repeats(self.learnt)
        step_size, length = self.warmup.step_size(self.learnt, tune), self._length(tune)
        draws = self._run(functions, point, given, rng, step_size, length, repeats, count)
        draws[0] = draws[0]._replace(gradients=draws[0].gradients + self.spent)
        self.spent = 0
        return draws

    def _run(
        self,
        functions: Compiled,
        point: np.ndarray,
        given: Given,
        rng: np.random.Generator,
        step_size: float,
        length: int,
        repeats: int = 1,
        count: int = 1,
    ) -> list[Draw]:
        """Run trajectories of a given length from a point."""
        system = self._system(given, step_size)
        points, lasts = (new_points(count, self.walls.size) for _ in range(2))
        outcomes = np.empty((count, len(Outcome._fields)))
        with functions.interrupt:
            ready(repeat_trajectory)(
                address_of_trajectory(self._trajectory),
                *functions.addresses,
                system,
                point.copy(),
                step_size,
                length,
                address_of_generator(rng),
                repeats,
                points,
                lasts,
                outcomes,
            )
        rows = map(as_outcome, outcomes.tolist())
        return [
            Draw(point, last, outcome, outcome.steps, step_size, system)
            for point, last, outcome in zip(points, lasts, rows, strict=True)
        ]

    @property
    def _trajectory(self) -> Dispatcher:
        if self.options.n_steps is None:
            return doubling_trajectory
        return window_trajectory if self.options.exact else endpoint_trajectory

    def _length(self, tune: bool) -> int:
        """Number of steps of a trajectory, or of its doublings."""
        if self.options.n_steps is not None:
            return self.options.n_steps
        depth = self.options.max_treedepth
        return min(depth, EARLY_TREEDEPTH) if tune and self.warmup.is_early(self.learnt) else depth

    def learn(
        self, functions: Compiled, draw: Draw, given: Given, rng: np.random.Generator
    ) -> None:
        """Tune by what a draw has shown."""
        position, _, slope = draw.here
        outside = 1.0 - draw.outcome.inside
        rates = draw.outcome.acceptance_rate, outside, draw.outcome.steps
        self.learnt = self.warmup.update(self.learnt, position, -slope, *rates)
        if self.learnt.at_window_end:
            self.before = self.learnt
            self._choose_metric(functions, draw.point, given, rng)

    def _choose_metric(
        self, functions: Compiled, point: np.ndarray, given: Given, rng: np.random.Generator
    ) -> None:
        """Close a window with the metric that it suggests, or the best of those that it may be."""
        closed = self.learnt
        kinds = self.warmup.candidates(closed)
        learnt, heats, costs = [], [], []
        for dense in kinds:
            self.learnt = self.warmup.close_window(
                closed, given.reflecting, stay=given.others.size == 0, dense=dense
            )
            self._adjust(functions, point, given, rng)
            if len(kinds) > 1:
                heat, cost = self._run_heat(functions, point, given, rng)
                heats.append(heat)
                costs.append(cost)
            learnt.append(self.learnt)
        if heats:
            diagonal, full = judge(heats, costs)
            lead = FADING * closed.lead + float(np.log(full / diagonal))
            self.learnt = learnt[int(lead > CLEARLY)]._replace(lead=lead)

    def _run_heat(
        self, functions: Compiled, point: np.ndarray, given: Given, rng: np.random.Generator
    ) -> tuple[np.ndarray, int]:
        """Draws with what is learnt now, after some that tune the step size; what they cost."""
        draws: list[Draw] = []
        # one by one, so that an interrupt is heard
        for k in range(PRACTICE + HEAT):
            practises = k < PRACTICE
            step_size = self.warmup.step_size(self.learnt, tune=practises)
            draws += self._run(functions, point, given, rng, step_size, self._length(tune=True))
            point = draws[-1].point
            if practises:
                acceptance = draws[-1].outcome.acceptance_rate
                step = self.learnt.step.update(acceptance, self.options.target_accept)
                self.learnt = self.learnt._replace(step=step)
        self.spent += sum(draw.gradients for draw in draws)
        heat = draws[PRACTICE:]
        positions = np.array([draw.here.position for draw in heat])
        return positions, sum(draw.gradients for draw in heat)

    def finish(self) -> None:
        """Stop tuning. A window that has just begun had no time to tune its step size: leave it."""
        if self.before is not None and self.learnt.window.draws < LEAST_WINDOW:
            self.learnt, self.before = self.before, None

    def complaint(self) -> str | None:
        """What is wrong at the end of warm-up, and the remedy; None if nothing."""
        acceptance, inside, _ = self.learnt.recent
        if inside < LEAST_INSIDE:
            return (
                f"Only {inside:.0%} of the trajectories' states are inside the constraints. Tune "
                "for longer, or give a larger sharpness."
            )
        if acceptance < LEAST_ACCEPTANCE * self.options.target_accept:
            return (
                f"The acceptance rate is {acceptance:.2f} instead of "
                f"{self.options.target_accept:g}. Tune for longer, or increase target_accept."
            )
        return None

    def _adjust(
        self, functions: Compiled, point: np.ndarray, given: Given, rng: np.random.Generator
    ) -> None:
        """Measure the walls in the present metric, and look for a step size."""
        if self.options.tunes_rows:
            region, position = (self.walls, self.slacks), read_point(point).position
            lengths = wall_lengths(self.learnt.metric, *region, position, given.others, rng)
            self.learnt = self.learnt._replace(row_lengths=lengths)

        def acceptance(step_size: float) -> float:
            [draw] = self._run(functions, point, given, rng, step_size, length=1)
            self.spent += draw.gradients
            return draw.outcome.acceptance_rate

        self.learnt = self.warmup.search_step(self.learnt, acceptance)

    def _system(self, given: Given, step_size: float) -> System:
        learnt, metric = self.learnt, self.learnt.metric
        bounds = np.array(given.reflecting)
        if metric.coupled.size:
            bounds[:, metric.coupled] = [[-np.inf], [np.inf]]
        return System(
            others=given.others,
            sharpness=self.warmup.sharpness(learnt),
            coordinates=np.array([metric.variances, *bounds, learnt.pull, metric.planar]),
            bouncing=(given.bounded & ~metric.planar).nonzero()[0],
            planes=metric.planes,
            turns=metric.turns,
            dense=metric.covariance,
            root=metric.root,
            ordered=self.walls.runs,
            inner=self.warmup.inner_steps(learnt, step_size),
        )
