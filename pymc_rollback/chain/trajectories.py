"""Trajectories with what a chain has learnt: run, counted, and tried."""

from collections.abc import Sequence
from functools import partial
from operator import is_not

import numpy as np
from numba.core.dispatcher import Dispatcher

from pymc_rollback.chain.draw import Batch, Draw, Given
from pymc_rollback.chain.learnt import Learnt
from pymc_rollback.chain.metric import Metric
from pymc_rollback.chain.options import Options
from pymc_rollback.chain.steepness import wall_lengths
from pymc_rollback.chain.tally import Tally, make_tally, tell, tell_nothing
from pymc_rollback.chain.warmup import EARLY_TREEDEPTH, Warmup
from pymc_rollback.kernels.native import address_of_generator
from pymc_rollback.kernels.run import address_of_trajectory, ready, repeat_trajectory
from pymc_rollback.kernels.state import POSITION, SLOPE, System, new_counts, new_points, read_point
from pymc_rollback.kernels.stats import STEPS, Outcome
from pymc_rollback.kernels.trajectory import (
    doubling_trajectory,
    endpoint_trajectory,
    window_trajectory,
)
from pymc_rollback.target.compile import Compiled
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import Walls

TRIAL_STEPS = 1000
"""Steps of all trajectories that try one number of steps."""


class Trajectories:
    """Runs trajectories with what a chain has learnt, and counts their gradients.

    Parameters
    ----------
    walls, slacks
        The region, in numbers and as functions of a position.
    options
        What is given.

    Attributes
    ----------
    learnt
        What the chain has learnt.
    spent
        Evaluations of the model since the last draw.
    made
        Number of trajectories so far.
    """

    def __init__(self, walls: Walls, slacks: Slacks, options: Options) -> None:
        self.walls, self.slacks = walls, slacks
        self.options = options
        self.warmup = Warmup(options, walls)
        self.learnt: Learnt = self.warmup.begin()
        self.spent = self.made = 0
        self._parts: tuple = ()
        self._kept: System | None = None
        self._kept_tally: tuple[Metric, Tally] | None = None

    def evaluate(self, functions: Compiled, position: np.ndarray, given: Given) -> np.ndarray:
        """The point at a position."""
        self.spent += 1
        with functions.interrupt:
            [answer] = functions.model(position, given.others)
        [point] = new_points(1, position.size)
        point[POSITION, : position.size] = position
        point[SLOPE, : answer.size] = answer
        return point

    def run(
        self,
        functions: Compiled,
        point: np.ndarray,
        given: Given,
        rng: np.random.Generator,
        step_size: float,
        length: int,
    ) -> list[Draw]:
        """Run a trajectory of a given step size and length from a point."""
        return self.run_batch(functions, point, given, rng, step_size, length).draws

    def run_batch(
        self,
        functions: Compiled,
        point: np.ndarray,
        given: Given,
        rng: np.random.Generator,
        step_size: float,
        length: int,
        repeats: int = 1,
        count: int = 1,
        tells: bool = False,
    ) -> Batch:
        """Run trajectories of a given step size and length, each from the draw before.

        Walls tell of the draws only if they are asked to.
        """
        system = self.latest_system(given, step_size)
        points, lasts = (new_points(count, self.walls.size) for _ in range(2))
        outcomes = np.empty((count, len(Outcome._fields)))
        tally = self._tally(system)
        counts = np.empty((count, 1 + tally.counted))
        with functions.interrupt:
            ready(repeat_trajectory)(
                address_of_trajectory(self.trajectory(self.learnt.time)),
                *functions.addresses,
                system,
                point.copy(),
                step_size,
                length,
                self.learnt.choice.jitter,
                self.learnt.finer,
                self.made,
                address_of_generator(rng),
                repeats,
                points,
                lasts,
                outcomes,
                counts,
            )
        self.made += count * repeats
        gradients = outcomes[:, STEPS].astype(int)
        if tells and self.walls.ledger.places > 0:
            states = gradients * system.inner + repeats
            told = tell(tally, counts, system.sharpness[self.walls.size :], states)
        else:
            told = tell_nothing(self.walls, count)
        given_by = step_size, self.learnt.choice, system
        return Batch(points, lasts, outcomes, gradients, told, *given_by)

    def trajectory(self, time: float) -> Dispatcher:
        """The kernel for trajectories of a time, or without one."""
        if time > 0:
            return endpoint_trajectory
        if self.options.n_steps is None:
            return doubling_trajectory
        return window_trajectory if self.options.exact else endpoint_trajectory

    def length(self, tune: bool) -> tuple[float, int]:
        """Step size of a trajectory, and the number of its steps, or of its doublings."""
        if self.learnt.time > 0:
            return self.learnt.time / self.learnt.steps, self.learnt.steps
        step_size = self.warmup.step_size(self.learnt, tune)
        if self.options.n_steps is not None:
            return step_size, self.options.n_steps
        depth, early = self.options.max_treedepth, tune and self.warmup.is_early(self.learnt)
        return step_size, min(depth, EARLY_TREEDEPTH) if early else depth

    def adjust(
        self,
        functions: Compiled,
        point: np.ndarray,
        starts: Sequence[np.ndarray],
        given: Given,
        rng: np.random.Generator,
    ) -> bool:
        """Measure the walls in the present metric, and look for a step size or a number of steps.

        False if there is no number of steps that is enough for a fixed time.

        Parameters
        ----------
        functions, point, given, rng
            Of the chain.
        starts
            Draws from which trajectories are tried, if their time is fixed.
        """
        if self.options.tunes_rows:
            region, position = (self.walls, self.slacks), read_point(point).position
            here = self.learnt.metric, self.learnt.maps, *region, position
            lengths = wall_lengths(*here, given.others, rng)
            self.learnt = self.learnt._replace(row_lengths=lengths)

        def acceptance(start: np.ndarray, step_size: float, length: int = 1) -> float:
            [draw] = self.run(functions, start, given, rng, step_size, length)
            self.spent += draw.gradients
            return draw.outcome.acceptance_rate

        if self.learnt.time == 0:
            search = partial(acceptance, point)
            self.learnt = self.warmup.search_step(self.learnt, search)
            return True
        for steps in self.warmup.numbers_of_steps(self.learnt):
            self.learnt = self.learnt._replace(steps=steps)
            rates: list[float] = []
            tried = starts[:: max(len(starts) * steps // TRIAL_STEPS, 1)]
            for start in tried:
                rates.append(acceptance(start, *self.length(tune=True)))
                if not self.warmup.is_enough(rates, len(tried)):
                    break
            else:
                self.learnt = self.learnt._replace(finer=self.warmup.finer(rates))
                return True
        return False

    def latest_system(self, given: Given, step_size: float) -> System:
        """The system, made anew only where more than the step size has changed since the last."""
        learnt = self.learnt
        walls = learnt.log_steepness, learnt.row_lengths
        parts = learnt.metric, learnt.maps, learnt.flow, *walls, given
        if self._kept is None or any(map(is_not, parts, self._parts)):
            self._parts, self._kept = parts, self._system(given, step_size)
        return self._kept._replace(inner=self.warmup.inner_steps(learnt, step_size))

    def _tally(self, system: System) -> Tally:
        """How the walls tell of trajectories in a system, which follows from its metric."""
        metric = self.learnt.metric
        if self._kept_tally is None or self._kept_tally[0] is not metric:
            self._kept_tally = metric, make_tally(self.walls, metric, system)
        return self._kept_tally[1]

    def _system(self, given: Given, step_size: float) -> System:
        learnt, metric = self.learnt, self.learnt.metric
        walls = self.warmup.walls_for(learnt.choice, learnt.maps)
        bounds = np.array(walls.reflecting(*given.reflecting))
        bounded = given.bounded & walls.reflects & ~metric.planar
        if metric.coupled.size:
            bounds[:, metric.coupled] = [[-np.inf], [np.inf]]
        pull, centre, frequency = learnt.flow
        return System(
            others=given.others,
            sharpness=self.warmup.sharpness(learnt),
            coordinates=np.array(
                [metric.variances, *bounds, pull, metric.planar, centre, frequency]
            ),
            bouncing=bounded.nonzero()[0],
            rotating=((frequency > 0) & ~bounded & ~metric.planar).nonzero()[0],
            turning=bool(np.any(frequency[metric.planar])),
            planes=metric.planes,
            turns=metric.turns,
            dense=metric.covariance,
            root=metric.root,
            ordered=walls.runs,
            inner=self.warmup.inner_steps(learnt, step_size),
            met=new_counts(self.walls.size, metric.planes.shape[1], self.walls.barrier_rows),
            maps=learnt.maps,
        )
