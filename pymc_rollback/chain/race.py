"""The end of a window of warm-up: what is done in the next is chosen by a race."""

from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.choice import Choice
from pymc_rollback.chain.draw import Given
from pymc_rollback.chain.score import Heat, compare
from pymc_rollback.chain.trajectories import Trajectories
from pymc_rollback.chain.warmup import Learnt
from pymc_rollback.kernels.state import read_point
from pymc_rollback.kernels.stats import WALL_CONTACTS
from pymc_rollback.target.compile import Compiled

PRACTICE = 25
"""Draws that tune the step size of trajectories that double, before they are judged."""

LEAST_HEAT, MOST_HEAT = 75, 400
"""Draws by which a choice is judged: between the two a heat ends with its gradients."""

HEAT_GRADIENTS, PATIENCE = 600, 4000
"""Gradients of a heat that has draws enough, and of any."""

HEAT_CALL = 50
"""Gradients of one call in a heat, about: few enough for an interrupt to be heard soon."""

CHEAPER = 200
"""How many contacts with planes, or steps under walls alone, count as much as a gradient."""

FADING, CLEARLY, TIMELY = 0.5, 0.2, 0.1
"""What earlier races count, and the leads that a dense metric and another time need."""

TEMPI = (0.6, 1.6)
"""Other times that are tried, by the usual one: walls that confine ask for a shorter one."""


class Entry(NamedTuple):
    """What a chain would go on with, and a heat of it, if there is a race and it is fit for one."""

    learnt: Learnt
    heat: Heat | None


class Race:
    """The heats at the end of a window, all from one point.

    Parameters
    ----------
    trajectories
        Runs the trajectories; its ``learnt`` is overwritten.
    functions, point, given, rng
        Of the chain.
    """

    def __init__(
        self,
        trajectories: Trajectories,
        functions: Compiled,
        point: np.ndarray,
        given: Given,
        rng: np.random.Generator,
    ) -> None:
        self.runs, self.warmup = trajectories, trajectories.warmup
        self.closed = trajectories.learnt
        self.functions, self.point, self.given, self.rng = functions, point, given, rng
        self.running = self.warmup.candidates(self.closed)

    def run(self) -> Learnt:
        """What the winner has learnt; where there is one choice only, there are no heats."""
        closed, warmup = self.closed, self.warmup
        leads, behind = FADING * np.array(closed.leads), np.array(closed.behind)
        choices = [warmup.choices[k] for k in self.running] or [closed.choice]
        entries = [self._enter(choice) for choice in choices]
        best = entries[0]
        if len(choices) > 1:
            behind[self.running] = compare([entry.heat for entry in entries])
            leads[self.running] += behind[self.running]
            clearly = [CLEARLY * choice.dense for choice in choices]
            best = entries[int(np.argmax(leads[self.running] - clearly))]
            if warmup.tunes_time(best.learnt):
                best = self._choose_time(best)
        return best.learnt._replace(leads=tuple(leads.tolist()), behind=tuple(behind.tolist()))

    def _choose_time(self, best: Entry) -> Entry:
        """The same choice with the best of several times."""
        entries = [best, *(self._enter(best.learnt.choice, tempo) for tempo in TEMPI)]
        behind = compare([entry.heat for entry in entries])
        behind[0] += TIMELY
        return entries[int(np.argmax(behind))]

    def _enter(self, choice: Choice, tempo: float = 1.0) -> Entry:
        """Learn from the window what a choice needs, and judge it by a heat."""
        runs, closed, given = self.runs, self.closed, self.given
        stays = given.others.size == 0
        runs.learnt = self.warmup.close_window(
            closed, given.reflecting, stay=stays, choice=choice, tempo=tempo
        )
        # densities of earlier draws do not hold where other variables have moved since
        starts = closed.starts if stays else (self.point,)
        works = runs.adjust(self.functions, self.point, starts, given, self.rng)
        heat = self._run_heat() if works and len(self.running) > 1 else None
        return Entry(runs.learnt, heat)

    def _run_heat(self) -> Heat:
        """Draws with what is learnt now, and what they cost, in gradients."""
        runs, point = self.runs, self._practise()
        positions: list[np.ndarray] = []
        gradients, contacts, each = 0, 0.0, float(HEAT_CALL)
        while (len(positions) < LEAST_HEAT and gradients < PATIENCE) or (
            len(positions) < MOST_HEAT and gradients < HEAT_GRADIENTS
        ):
            count = min(max(int(HEAT_CALL / each), 1), MOST_HEAT - len(positions))
            length = runs.length(tune=False)
            batch = runs.run_batch(
                self.functions, point, self.given, self.rng, *length, count=count
            )
            point = batch.points[-1]
            positions += [read_point(draw).position for draw in batch.points]
            gradients += int(batch.gradients.sum())
            contacts += float(batch.outcomes[:, WALL_CONTACTS].sum())
            each = gradients / len(positions)
        runs.spent += gradients
        under_walls = gradients * batch.system.inner
        return Heat(np.array(positions), gradients + (contacts + under_walls) / CHEAPER)

    def _practise(self) -> np.ndarray:
        """Tune the step size of trajectories that double; the point that is reached."""
        runs, point = self.runs, self.point
        left = PATIENCE
        for _ in range(PRACTICE if runs.learnt.time == 0 else 0):
            # one by one, so that an interrupt is heard
            length = runs.length(tune=True)
            [draw] = runs.run(self.functions, point, self.given, self.rng, *length)
            acceptance, point = draw.outcome.acceptance_rate, draw.point
            step = runs.learnt.step.update(acceptance, runs.options.target_accept)
            runs.learnt = runs.learnt._replace(step=step)
            runs.spent += draw.gradients
            left -= draw.gradients
            if left < 0:
                break
        return point
