"""One chain of ``rb.sample``: from its start to its last draw, in the thread that calls it."""

import time
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from threading import Event
from typing import Any, cast

import numpy as np
from pymc.exceptions import SamplingError
from pymc.initial_point import PointType

from pymc_rollback.chain.chain import Chain
from pymc_rollback.chain.draw import Batch
from pymc_rollback.chain.start import OutsideError
from pymc_rollback.entry import holding, take_coordinates
from pymc_rollback.guard import DUE, OneAtATime, one_at_a_time
from pymc_rollback.kernels.state import read_point
from pymc_rollback.kernels.stats import ENERGY
from pymc_rollback.record import Record
from pymc_rollback.region.diagnose import complain
from pymc_rollback.region.inside import settle
from pymc_rollback.step import RollbackHMC
from pymc_rollback.target.slacks import Slacks

SECONDS, MOST = 0.1, 5000
"""How long a batch of draws is meant to take, and how many draws it may have."""

FASTER = 10
"""How many times as large as the batch before it a batch may be."""


OVER = ("tune", "total", "done", "keep_warmup", "record", "complaint", "verdict", "entropy", "data")
"""What is left of a runner when its chain is over."""


class Runner:
    """Draws a chain into a record.

    Parameters
    ----------
    step
        What is sampled and how: the chain is one of its own, the compiled functions are shared.
    start
        The point of the model from which it starts.
    rng
        The chain's generator.
    tune, draws
        Number of draws of the warm-up, and after it.
    keep_warmup
        Whether the record has the warm-up in it at the end.
    data
        Values of data containers that are inputs of the log density.

    Attributes
    ----------
    done
        Number of draws that were made.
    complaint, verdict
        What is wrong at the end of the warm-up, if anything is, and what its races have chosen.
    """

    def __init__(
        self,
        step: RollbackHMC,
        start: PointType,
        rng: np.random.Generator,
        tune: int,
        draws: int,
        keep_warmup: bool,
        data: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.data = data or {}
        self.step, self.start, self.rng = step, {**start, **self.data}, rng
        # SeedSequence is NumPy's; a generator may have another of its own making
        self.entropy = getattr(rng.bit_generator.seed_seq, "entropy", None)
        self.tune, self.total = tune, tune + draws
        self.keep_warmup = keep_warmup
        self.done = 0
        self.complaint: str | None = None
        self.verdict: str | None = None
        self.packed = start, rng, tune, draws, keep_warmup, data
        self.record = Record(self.total if keep_warmup else max(tune, draws), step.walls, tune)
        slacks = cast(Slacks, OneAtATime(step.slacks))
        self.chain = Chain(step.walls, slacks, step.options)
        functions = step.compiled()
        self.functions = replace(
            functions, enter=one_at_a_time(functions.enter), leave=one_at_a_time(functions.leave)
        )

    def run(self, stop: Event) -> None:
        """Draw until all draws are made, or another thread says stop."""
        self.advance(stop, self.total)

    def __getstate__(self) -> dict[str, Any]:
        # what is copied, or comes back from a worker, is a chain that is over
        return {name: vars(self)[name] for name in OVER}

    def advance(self, stop: Event, until: int) -> None:
        """Draw until so many draws are made, the warm-up's among them, or until told to stop."""
        if self.done == 0:
            self._begin()
        self._draw_batches(stop, min(self.tune, until))
        if self.done == self.tune < until:
            self._end_warmup()
        if self.done >= self.tune:
            self._draw_batches(stop, until)

    def until(self, draws: int) -> "Runner":
        """The chain as if it were over after so many draws behind its warm-up."""
        over = copy(self)
        over.record = copy(self.record)
        over.record.draws = over.record.tune + draws
        return over

    def end_warmup_at(self, tune: int) -> None:
        """Take so many draws for the whole warm-up, before one is made after it."""
        self.total -= self.tune - tune
        self.tune = self.record.tune = tune

    def _draw_batches(self, stop: Event, until: int) -> None:
        """Draw in batches that are small enough for an interrupt to be heard soon."""
        most = 1
        while self.done < until and not stop.is_set():
            begun = time.perf_counter()
            count = min(most, until - self.done, self.chain.alike if self._learns else MOST)
            self._draw(count)
            if self.step.density.is_alone:
                each = (time.perf_counter() - begun) / count
                most = int(min(max(SECONDS / each, 1), FASTER * most, MOST))

    @property
    def _learns(self) -> bool:
        """Whether the next draw is one of the warm-up, which something is learnt from."""
        return self.done < self.tune and self.step.options.tunes

    def _begin(self) -> None:
        """Find a start inside the region, and a first step size there."""
        step, functions = self.step, self.functions
        start = settle(step.density.model, self.start, step.vars)
        position, self.given = take_coordinates(step.density, step.walls, functions, start)
        if step.options.tunes:
            try:
                position = self.chain.begin(
                    functions, position, self.given, self.rng, disperse=self.tune > 0
                )
            except OutsideError as error:
                raise SamplingError(str(error)) from None
        else:
            self.chain.slacks.check_start(start)
        self.point = self.chain.enter(functions, position, self.given, self.rng)

    def _draw(self, count: int) -> None:
        """Make some draws, all at once, and learn from one of the warm-up."""
        tuning, learns = self.done < self.tune, self._learns
        wall, processor = time.perf_counter(), time.thread_time()
        batch = self.chain.draw_batch(
            self.functions, self.point, self.given, self.rng, tuning, count
        )
        if learns:
            self._check(batch)
            for draw in batch.draws:
                self.point = self.chain.learn(self.functions, draw, self.given, self.rng)
        else:
            self._check(batch)
            self.point = batch.points[-1]
        seconds = time.perf_counter() - wall, time.thread_time() - processor
        self.record.add(batch, wall, *seconds)
        self.done += count
        if not self.step.density.is_alone:
            self._draw_image(batch.drawn[-1])

    def _draw_image(self, drawn: np.ndarray) -> None:
        """Go on from a fresh image of the draw, where coordinates are mirrored."""
        step, position = self.step, read_point(drawn).position
        point, _ = self._leave(position)
        position, self.given = take_coordinates(step.density, step.walls, self.functions, point)
        self.point = self.chain.enter(self.functions, position, self.given, self.rng)

    def _end_warmup(self) -> None:
        self.point = self.chain.finish(self.point)
        self.complaint, self.verdict = self.chain.complaint(), self.chain.verdict()
        if not self.keep_warmup:
            self.record.clear()

    def _leave(self, position: np.ndarray) -> tuple[PointType, float]:
        """The point of the model at a position, and what its log density has besides ours."""
        *values, difference = self.functions.leave(position, self.given.others)
        names = (v.name for v in self.step.vars)
        return {**dict(zip(names, values, strict=True)), **self.data}, float(difference)

    def _check(self, batch: Batch) -> None:
        """Raise where a log density is not finite, or, at some draws, is not the model's."""
        finite = np.isfinite(batch.outcomes[:, ENERGY])
        if not finite.all():
            point, _ = self._leave(read_point(batch.drawn[int(np.argmin(finite))]).position)
            with holding(self.step.density.model, self.data):
                raise SamplingError(complain(self.step.density.model, point))
        due = [k for k in DUE if self.done < k <= self.done + len(finite)]
        for k in due:
            drawn = read_point(batch.drawn[k - self.done - 1])
            point, difference = self._leave(drawn.position)
            with holding(self.step.density.model, self.data):
                self.step.guard.check(k, point, drawn.log_density + difference)
