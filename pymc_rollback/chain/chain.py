"""One chain, in terms of the coordinates: where it begins, how it draws, what it learns."""

from typing import overload

import numpy as np

from pymc_rollback.chain.draw import Batch, Draw, Given
from pymc_rollback.chain.learnt import Learnt
from pymc_rollback.chain.maps import say_map
from pymc_rollback.chain.metric import make_metric
from pymc_rollback.chain.options import Options
from pymc_rollback.chain.race import Race
from pymc_rollback.chain.start import Start
from pymc_rollback.chain.trajectories import Trajectories
from pymc_rollback.chain.warmup import STARTS
from pymc_rollback.kernels.maps import changed
from pymc_rollback.kernels.run import ready, repeat_trajectory
from pymc_rollback.kernels.state import NO_MAPS, read_point
from pymc_rollback.target.compile import Compiled
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import Walls

LEAST_INSIDE = 0.4
"""Share of states inside the region below which warm-up has not done its work."""

LEAST_WINDOW = 30
"""Draws that a step size needs after the metric has changed."""

LEAST_ACCEPTANCE = 0.6
"""Acceptance rate, relative to the wanted one, below which warm-up has not done its work."""


class Chain(Trajectories):
    """Draws positions, and tunes what is not given while it does.

    Parameters
    ----------
    walls, slacks
        The region, in numbers and as functions of a position.
    options
        What is given.

    Attributes
    ----------
    before
        What the chain had learnt at the end of the last window, if there was one.
    """

    def __init__(self, walls: Walls, slacks: Slacks, options: Options) -> None:
        super().__init__(walls, slacks, options)
        self.before: Learnt | None = None

    def compile_kernels(self) -> None:
        """Compile or load what draws: before processes are forked, each of which would do it."""
        ready(repeat_trajectory)
        for choice in {self.learnt.choice, *self.warmup.choices}:
            ready(self.trajectory(choice.time))

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
            return read_point(self.evaluate(functions, x, given)).log_density

        position = start.find(position, log_density, rng)
        if disperse:
            position = start.jitter(position, log_density, rng)
        self._take_metric(given)
        if self.options.tunes_metric:
            width = given.upper - given.lower
            between = self.walls.reflects & np.isfinite(width)
            metric = make_metric(self.walls, np.where(between, width**2 / 12, 1.0))
            self.learnt = self.learnt._replace(metric=metric)
        point = self.evaluate(functions, position, given)
        self.adjust(functions, point, (point,), given, rng)
        return position

    def enter(
        self,
        functions: Compiled,
        position: np.ndarray,
        given: Given,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """The point at a position, or at an image of it where coordinates are mirrored."""
        self._take_metric(given)
        bounds = given.lower, given.upper
        image = self.walls.draw_image(position, *bounds, self.options.sharpness, rng)
        point = self.evaluate(functions, image, given)
        return changed(NO_MAPS, self.learnt.maps, point[None])[0]

    def _take_metric(self, given: Given) -> None:
        """Make the metric of a covariance that is given, as soon as bounds are known."""
        options, metric = self.options, self.learnt.metric
        if options.covariance is not None and metric.covariance.size == 0:
            metric = make_metric(self.walls, metric.variances, options.covariance, given.reflecting)
            self.learnt = self.learnt._replace(metric=metric)

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
        return self.draw_batch(functions, point, given, rng, tune, count).draws

    def draw_batch(
        self,
        functions: Compiled,
        point: np.ndarray,
        given: Given,
        rng: np.random.Generator,
        tune: bool,
        count: int,
    ) -> Batch:
        """Draw as :meth:`draw` does, so many times, into arrays."""
        repeats = 1 if tune else self.warmup.repeats(self.learnt)
        length = self.length(tune)
        batch = self.run_batch(functions, point, given, rng, *length, repeats, count, not tune)
        batch.gradients[0] += self.spent
        self.spent = 0
        return batch

    @property
    def alike(self) -> int:
        """Number of draws of the warm-up, at least one, that nothing learnt from them can change.

        What a trajectory of a fixed time is run with changes only as a window ends, unless there
        are barriers whose steepness is tuned.
        """
        if self.learnt.time == 0 or self.options.tunes_rows:
            return 1
        return self.learnt.window_end - self.learnt.iteration

    def learn(
        self, functions: Compiled, draw: Draw, given: Given, rng: np.random.Generator
    ) -> np.ndarray:
        """Tune by what a draw has shown; the draw as a point in the coordinates from then on."""
        position, _, slope = draw.here
        outside = 1.0 - draw.outcome.inside
        rates = draw.outcome.acceptance_rate, outside, draw.outcome.steps
        self.learnt = self.warmup.update(self.learnt, position, -slope, *rates)
        if self.learnt.iteration % max(self.learnt.window_end // 2 // STARTS, 1) == 0:
            self.learnt = self.learnt._replace(starts=(*self.learnt.starts, draw.point))
        if self.learnt.at_window_end:
            self.before = self.learnt
            self.learnt = Race(self, functions, draw.point, given, rng).run()
        [point] = changed(draw.system.maps, self.learnt.maps, draw.point[None])
        return point

    @overload
    def finish(self, point: np.ndarray) -> np.ndarray: ...

    @overload
    def finish(self, point: None) -> None: ...

    def finish(self, point: np.ndarray | None) -> np.ndarray | None:
        """Stop tuning; the chain's point, if it has one, in the coordinates from then on.

        A window that has just begun had no time to tune its step size: leave it. Numbers of steps
        of a fixed time are found as a window begins, and need no more.
        """
        maps = self.learnt.maps
        new = self.learnt.window.draws < LEAST_WINDOW and self.learnt.time == 0
        if self.before is not None and new:
            self.learnt, self.before = self.before, None
        self.learnt = self.warmup.settle(self.learnt)
        return None if point is None else changed(maps, self.learnt.maps, point[None])[0]

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

    def verdict(self) -> str | None:
        """What the races of the warm-up have chosen, and why; None if there was none."""
        return self.warmup.verdict(self.learnt)

    def say_map(self, span: slice) -> str:
        """What the warm-up has done with some coordinates; empty where they move as they are."""
        return say_map(self.learnt.maps, span)
