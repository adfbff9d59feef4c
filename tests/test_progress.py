"""What PyMC's progress bar shows fits the terminal."""

from io import StringIO

import pymc as pm
import pytest
from pymc.progress_bar.rich_progress import RichProgressBackend
from rich.console import Console

from pymc_rollback.progress import COLUMNS, columns_that_fit, progressbar_update

DRAWN = {"divergences": 12, "n_steps": 1023, "step_size": 0.00123, "inside": 0.97}


def rendered(columns, width):
    """A bar in the middle of sampling."""
    backend = RichProgressBackend(
        step_name="Draws",
        n_bars=1,
        total=2000,
        combined=False,
        full_stats=True,
        progress_columns=columns,
        progress_stats={name: [value] for name, value in {**DRAWN, "draws": 1500}.items()},
    )
    backend._initialize_tasks()
    [task] = backend._progress.tasks
    backend._progress.start_task(task.id)
    backend._progress.update(task.id, completed=1500, sampling_speed=1234.56)
    console = Console(width=width, file=StringIO())
    console.print(backend._progress.make_tasks_table(backend._progress.tasks))
    lines = [line for line in console.file.getvalue().splitlines() if line.strip()]
    return lines


@pytest.mark.parametrize(("width", "shown"), [(80, 1), (88, 2), (98, 3), (107, 4), (160, 4)])
def test_a_row_is_whole(width, shown):
    columns = columns_that_fit(width)
    assert len(columns) == shown
    lines = rendered(columns, width)
    row = lines[-1]
    assert len(row) <= width and "…" not in row
    values = ["12", "1023", "0.0012", "0.97"][:shown]
    assert row.split()[-len(values) - 4 : -4] == values
    assert "1234.56 draws/s" in row
    assert lines[-2].strip(" ─") == ""  # one line a chain
    # PyMC's own heading of the last column may be cut
    assert "…" not in " ".join(lines[:-2]).replace("Remain…", "")


def test_a_narrow_terminal_shows_divergences():
    assert [c.get_table_column().header for c in columns_that_fit(40)] == ["Diverged"]


def test_wider_columns_do_not_fit_80(monkeypatch):
    """The control: PyMC's NUTS, whose columns are cut there."""
    columns, _ = pm.NUTS._progressbar_config(1)
    columns = [c for c in columns if "tree_size" not in c.text_format]
    wide = rendered([*columns, *columns_that_fit(200)], 80)
    assert "…" in wide[-1]


def test_a_chain_with_divergences_fails():
    assert progressbar_update(DRAWN) == {**DRAWN, "failing": True}
    assert progressbar_update({**DRAWN, "divergences": 0})["failing"] is False
    assert {shown.name for shown in COLUMNS} == set(DRAWN)
