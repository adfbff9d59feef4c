"""Tables for people: in the width of a terminal, and as HTML in a notebook."""

import html
from io import StringIO
from shutil import get_terminal_size
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text


class Section(NamedTuple):
    """Title, header and cells of a table, and which of its columns are never wrapped."""

    title: str
    header: list[str]
    rows: list[list[str]]
    unwrapped: tuple[str, ...] = ()


class Tables:
    """What is shown as tables, in a terminal and in a notebook; a subclass says which.

    They are printed in the width of the terminal, or in 80 columns where there is none.
    """

    def _sections(self) -> list[Section]:
        raise NotImplementedError

    def __rich__(self) -> Group:
        tables = [_rich_table(section) for section in self._sections()]
        return Group(*(part for table in tables for part in (table, Text())))

    def __str__(self) -> str:
        text = StringIO()
        # in a notebook, a console would display the tables instead
        console = Console(file=text, width=get_terminal_size().columns, force_jupyter=False)
        console.print(self)
        return text.getvalue().rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(_html_table(section) for section in self._sections())


def _rich_table(section: Section) -> Table | Text:
    """A table whose long cells are wrapped within their columns."""
    title, header, rows, unwrapped = section
    if not rows:
        return Text(f"{title}: none")
    columns = [Column(name, overflow="fold", no_wrap=name in unwrapped) for name in header]
    table = Table(*columns, title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False)
    for row in rows:
        table.add_row(*map(Text, row))  # brackets in names and inequalities are not markup
    return table


def _html_table(section: Section) -> str:
    # notebooks align the cells of a table to the right
    left = 'style="text-align: left"'

    def line(cells: list[str], tag: str) -> str:
        return "".join(
            ["<tr>", *(f"<{tag} {left}>{html.escape(cell)}</{tag}>" for cell in cells), "</tr>"]
        )

    body = "".join(line(row, "td") for row in section.rows)
    caption = f"<caption {left}>{html.escape(section.title)}</caption>"
    return f"<table>{caption}{line(section.header, 'th')}{body}</table>"
