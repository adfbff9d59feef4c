"""What PyMC's progress bar shows of a chain, in as many columns as the terminal has room for."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from pymc.progress_bar import MCMCProgressBarManager
from rich.console import Console
from rich.progress import TextColumn
from rich.table import Column

WIDTH_OF_PYMC = 69
"""Characters that PyMC's own columns need: the bar, draws, speed, elapsed and remaining time."""

GAP = 3
"""Characters between two columns."""

WIDE = 160
"""Characters of a line in which all columns have room, as PyMC lays them out."""


class StatisticColumn(NamedTuple):
    """A column of the progress bar, which shows one statistic of the last draw.

    The statistic's name, its value before the first draw and its text; the heading of the column;
    for a narrow terminal a short heading, and the width of the column.
    """

    name: str
    before: float
    text: str
    heading: str
    short: str
    width: int


COLUMNS = (
    StatisticColumn("divergences", 0, "{task.fields[divergences]}", "Divergences", "Diverged", 8),
    StatisticColumn("n_steps", 0, "{task.fields[n_steps]}", "Grad evals", "Grad evals", 5),
    StatisticColumn("step_size", 0.0, "{task.fields[step_size]:0.2g}", "Step size", "Step size", 7),
    StatisticColumn("inside", 1.0, "{task.fields[inside]:0.2f}", "Inside", "Inside", 6),
)
"""Columns beside PyMC's own, the most important first."""


def columns_that_fit(width: int) -> list[TextColumn]:
    """Columns beside PyMC's own, the less important ones left out where a terminal is narrow.

    Parameters
    ----------
    width
        Characters of a line.
    """
    if width >= WIDE:
        return [TextColumn(s.text, table_column=Column(s.heading, ratio=1)) for s in COLUMNS]
    columns: list[TextColumn] = []
    room = width - WIDTH_OF_PYMC
    for shown in COLUMNS:
        room -= shown.width + GAP
        if room >= 0 or not columns:
            column = Column(shown.short, min_width=shown.width, max_width=shown.width)
            columns.append(TextColumn(shown.text, table_column=column))
    return columns


def progressbar_config(n_chains: int = 1) -> tuple[list[TextColumn], dict[str, list]]:
    """Columns for the present terminal, and what they show before the first draw."""
    before = {shown.name: [shown.before] * n_chains for shown in COLUMNS}
    return columns_that_fit(Console().width), before


def progressbar_update(stats: Mapping[str, Any]) -> dict[str, Any]:
    """What is shown after a draw, from its statistics; a chain with divergences is red."""
    values = {shown.name: stats[shown.name] for shown in COLUMNS}
    return {**values, "failing": stats["divergences"] > 0}


class ProgressBars(MCMCProgressBarManager):
    """PyMC's progress bars, for chains that make many draws from one look to the next."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._done: dict[int, int] = {}

    def show(self, chain: int, done: int, stats: Mapping[str, Any]) -> None:
        """Show how far a chain is.

        Parameters
        ----------
        chain
            Its number.
        done
            Number of draws that it has made, or left out, those of the warm-up among them.
        stats
            Statistics of the last of them.
        """
        bar = 0 if self.combined_progress else chain
        before = self._done.get(chain, 0)
        if not self._show_progress or done == before:
            return
        self._done[chain] = done
        shown = progressbar_update(stats)
        failing = shown.pop("failing")
        seen = sum(self._done.values()) if self.combined_progress else done
        self._backend.update(
            task_id=bar,
            advance=done - before,
            failing=failing,
            stats={**(shown if self.full_stats else {}), "draw": seen},
            is_last=False,
        )
