"""What was read from a model and what will be done with it, for people."""

import html
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from io import StringIO

import numpy as np
import pymc as pm
from pytensor.tensor.variable import TensorVariable
from rich.console import Console, Group
from rich.table import Table

from pymc_rollback.density import Density, owner_of
from pymc_rollback.region import read_region
from pymc_rollback.settings import check_choices
from pymc_rollback.treatment import choose_treatments


@dataclass(frozen=True)
class VariableRow:
    """One free variable: its support, what is done with it, and why."""

    name: str
    shape: tuple[int, ...]
    support: str
    action: str
    why: str


@dataclass(frozen=True)
class ConstraintRow:
    """One constraint.

    Its inequality and rows, what it does, its least slack at the start, and what the log density
    falls to where it fails.
    """

    name: str
    inequality: str
    rows: int
    affine: bool
    wall: str
    slack: float
    level: float


@dataclass(frozen=True)
class PotentialRow:
    """One Potential that is not read as a constraint, and what is done with it."""

    name: str
    action: str


@dataclass(frozen=True)
class Description:
    """The region of a model as a table: printed, as HTML in a notebook, or as data."""

    variables: tuple[VariableRow, ...]
    constraints: tuple[ConstraintRow, ...]
    potentials: tuple[PotentialRow, ...] = ()

    def to_dict(self) -> dict[str, list[dict]]:
        """Give the same rows as plain data."""
        return {
            "variables": [asdict(row) for row in self.variables],
            "constraints": [asdict(row) for row in self.constraints],
            "potentials": [asdict(row) for row in self.potentials],
        }

    def _sections(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """Title, header and cells of each table."""
        variables = [[r.name, _shape(r.shape), r.support, r.action, r.why] for r in self.variables]
        constraints = [
            [
                r.name,
                r.inequality,
                str(r.rows),
                "yes" if r.affine else "no",
                r.wall + (f", read as a wall ({r.level:g})" if np.isfinite(r.level) else ""),
                f"{r.slack:.4g}",
            ]
            for r in self.constraints
        ]
        potentials = [[r.name, r.action] for r in self.potentials]
        sections = [
            ("Variables", ["variable", "shape", "support", "action", "why"], variables),
            (
                "Constraints",
                ["constraint", "inequality", "rows", "affine", "wall", "slack at start"],
                constraints,
            ),
        ]
        if potentials:
            sections.append(("Potentials", ["potential", "action"], potentials))
        return sections

    def __rich__(self) -> Group:
        tables = []
        for title, header, rows in self._sections():
            table = Table(*header, title=title, title_justify="left")
            for row in rows:
                # brackets in names and inequalities are not markup
                table.add_row(*(cell.replace("[", r"\[") for cell in row))
            tables.append(table)
        return Group(*tables)

    def __str__(self) -> str:
        console = Console(file=StringIO(), width=120)
        console.print(self)
        return console.file.getvalue()

    def _repr_html_(self) -> str:
        return "".join(_html_table(*section) for section in self._sections())


def describe(
    model: pm.Model | None = None,
    *,
    constraints: Mapping[str, TensorVariable] | None = None,
    barrier: Collection[str] = (),
    transform: Collection[str] = (),
) -> Description:
    """Describe the region of a model and what RollbackHMC does with each variable.

    Parameters
    ----------
    model
        The model; that of the context if left out.
    constraints, barrier, transform
        As given to RollbackHMC.
    """
    region = read_region(model, constraints)
    check_choices(region, barrier, transform)
    treatments = choose_treatments(region, barrier, transform)
    density = Density(region, treatments, region.start, exact=True)
    shapes = region.model.eval_rv_shapes()
    slacks = region.evaluate([c.slack for c in region], region.start)
    return Description(
        tuple(
            VariableRow(name, tuple(map(int, shapes[name])), support.text, t.action, t.why)
            for (name, support), t in zip(region.walls.items(), treatments.values(), strict=True)
        ),
        tuple(
            ConstraintRow(
                c.name,
                c.text,
                slack.size,
                c.affine,
                density.wall(c),
                float(np.min(slack, initial=np.inf)),
                c.level,
            )
            for c, slack in zip(region, slacks, strict=True)
        ),
        tuple(
            PotentialRow(potential.name, "finite: stays in the density")
            for potential in region.model.potentials
            if not any(owner_of(c.name) == potential.name for c in region.joint)
        ),
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "scalar" if shape == () else " x ".join(map(str, shape))


def _html_table(title: str, header: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table><caption>{title}</caption>{line(header, 'th')}{body}</table>"
