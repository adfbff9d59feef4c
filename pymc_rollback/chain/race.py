"""The end of a window of warm-up: what is done in the next is chosen by a race."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pymc_rollback.chain.choice import TEMPI, Choice
from pymc_rollback.chain.draw import Given
from pymc_rollback.chain.learnt import Learnt
from pymc_rollback.chain.maps import find_maps
from pymc_rollback.chain.score import Heat, compare
from pymc_rollback.chain.trajectories import Trajectories
from pymc_rollback.kernels.maps import changed
from pymc_rollback.kernels.state import NO_MAPS, read_point
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

FADING, CLEARLY, AHEAD = 0.5, 0.2, 0.1
"""What earlier races count, and the leads that a dense metric, and other maps or times need."""


class Entry(NamedTuple):
    """What a chain would go on with, and a heat of it, if there is a race and it is fit for one."""

    learnt: Learnt
    heat: Heat | None


def _is_mapped(entry: Entry) -> bool:
    return entry.learnt.maps.size > 0


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
        self.start = point
        self.running = self.warmup.candidates(self.closed)

    def run(self) -> Learnt:
        """What the winner has learnt; where there is one choice only, there are no heats."""
        closed, warmup = self.closed, self.warmup
        leads, behind = FADING * np.array(closed.leads), np.array(closed.behind)
        choices = [warmup.choices[k] for k in self.running] or [closed.choice]
        evident = self._find_maps()
        first = evident if closed.maps.size or not np.any(np.isfinite(behind)) else NO_MAPS
        entries = [self._enter(choice, first) for choice in choices]
        best = entries[0]
        if len(choices) > 1:
            behind[self.running] = compare([entry.heat for entry in entries])
            leads[self.running] += behind[self.running]
            clearly = [CLEARLY * choice.dense for choice in choices]
            best = entries[int(np.argmax(leads[self.running] - clearly))]
            if evident.size:
                best = self._choose_maps(best, NO_MAPS if first.size else evident)
            if warmup.tunes_time(best.learnt):
                best = self._choose_time(best)
        return best.learnt._replace(leads=tuple(leads.tolist()), behind=tuple(behind.tolist()))

    def _find_maps(self) -> np.ndarray:
        """Maps under which coordinates may move better, by the draws of the window."""
        closed, given = self.closed, self.given
        if not (given.stays and len(self.running) > 1):
            return closed.maps
        return find_maps(closed.window, closed.maps, self.runs.walls, given.reflecting)

    def _choose_maps(self, best: Entry, other: np.ndarray) -> Entry:
        """The same choice with maps or without."""
        pair = sorted((best, self._enter(best.learnt.choice, other)), key=_is_mapped)
        leads, chosen = self._compare(pair, self.closed.map_leads)
        return chosen._replace(learnt=chosen.learnt._replace(map_leads=leads))

    def _choose_time(self, best: Entry) -> Entry:
        """The same choice with the best of several times."""
        learnt = best.learnt
        others = [self._enter(learnt.choice, learnt.maps, tempo) for tempo in TEMPI]
        leads, chosen = self._compare([best, *others], learnt.tempo_leads)
        kept = chosen.learnt._replace(map_leads=learnt.map_leads, tempo_leads=leads)
        return chosen._replace(learnt=kept)

    def _compare(
        self, entries: Sequence[Entry], before: Sequence[float]
    ) -> tuple[tuple[float, ...], Entry]:
        """Leads of some entries in this race and those before, and the one ahead.

        The first is it unless another is clearly better.
        """
        leads = FADING * np.array(before) + compare([entry.heat for entry in entries])
        handicaps = np.where(np.arange(len(entries)) > 0, AHEAD, 0.0)
        return tuple(leads.tolist()), entries[int(np.argmax(leads - handicaps))]

    def _enter(self, choice: Choice, maps: np.ndarray, tempo: float = 1.0) -> Entry:
        """Learn from the window what a choice needs, and judge it by a heat."""
        runs, closed, given = self.runs, self.closed, self.given
        runs.learnt = self.warmup.close_window(
            closed, given.reflecting, stay=given.stays, choice=choice, maps=maps, tempo=tempo
        )
        # densities of earlier draws do not hold where other variables have moved since
        points = np.array([self.point, *((given.stays and closed.starts) or (self.point,))])
        self.start, *starts = changed(closed.maps, maps, points)
        works = runs.adjust(self.functions, self.start, starts, given, self.rng)
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
            positions += [read_point(draw).position for draw in batch.drawn]
            gradients += int(batch.gradients.sum())
            contacts += float(batch.outcomes[:, WALL_CONTACTS].sum())
            each = gradients / len(positions)
        runs.spent += gradients
        under_walls = gradients * batch.system.inner
        return Heat(np.array(positions), gradients + (contacts + under_walls) / CHEAPER)

    def _practise(self) -> np.ndarray:
        """Tune the step size of trajectories that double; the point that is reached."""
        runs, point = self.runs, self.start
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
