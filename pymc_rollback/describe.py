"""What was read from a model and what will be done with it, for people."""

import inspect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

import numpy as np
import pandas as pd
import pymc as pm
from pymc.step_methods.arraystep import BlockedStep
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.chain.options import Options
from pymc_rollback.graph.text import shown
from pymc_rollback.prepare import as_reflect, read_plan, sampled_values
from pymc_rollback.region.arguments import require_model
from pymc_rollback.tables import Section, Tables
from pymc_rollback.target.plan import Plan

SHORT_COLUMNS = ("shape", "action", "rows", "affine")
"""Columns that are never wrapped."""

MOST_LISTED = 6
"""Variables or constraints that a line names."""


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


@dataclass(frozen=True, repr=False)
class Description(Tables):
    """The region of a model as a table: printed, as HTML in a notebook, or as data.

    It is printed in the width of the terminal, or in 80 columns where there is none.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.Uniform("x", 0, 1)
    >>> rb.describe(model).to_frame()["constraints"]["inequality"].to_dict()
    {'x.lower': 'x > 0', 'x.upper': 'x < 1'}
    """

    variables: tuple[VariableRow, ...]
    constraints: tuple[ConstraintRow, ...]
    potentials: tuple[PotentialRow, ...] = ()

    def to_dict(self) -> dict[str, list[dict]]:
        """Give the rows of all tables as plain data, by section."""
        return {
            section.name: [asdict(row) for row in getattr(self, section.name)]
            for section in fields(self)
        }

    def to_frame(self) -> dict[str, pd.DataFrame]:
        """Give the tables as data frames, by section, each with the names as its index."""
        frames = {}
        for section in fields(self):
            columns = [column.name for column in fields(get_args(section.type)[0])]
            frame = pd.DataFrame(self.to_dict()[section.name], columns=columns)
            frames[section.name] = frame.set_index("name")
        return frames

    def _sections(self) -> list[Section]:
        variables = [[r.name, _shape(r.shape), r.support, r.action, r.why] for r in self.variables]
        constraints = [
            [
                r.name,
                r.inequality,
                str(r.rows),
                "yes" if r.affine else "no",
                r.wall + (f", read as a wall ({r.level:g})" if np.isfinite(r.level) else ""),
                f"{r.slack:.4g}" if r.slack > 0 else "a start is searched",
            ]
            for r in self.constraints
        ]
        potentials = [[r.name, r.action] for r in self.potentials]
        sections = [
            Section(
                "Variables",
                ["variable", "shape", "support", "action", "why"],
                variables,
                unwrapped=SHORT_COLUMNS,
            ),
            Section(
                "Constraints",
                ["constraint", "inequality", "rows", "affine", "wall", "slack at start"],
                constraints,
                unwrapped=SHORT_COLUMNS,
            ),
        ]
        if potentials:
            sections.append(Section("Potentials", ["potential", "action"], potentials))
        return sections


def describe(
    model: pm.Model | BlockedStep | None = None,
    *,
    vars: Sequence[TensorVariable] | None = None,
    constraints: Mapping[str, TensorVariable] | None = None,
    reflect: Collection[str] = (),
    transform: Collection[str] = (),
    sharpness: float | Mapping[str, float] | None = None,
    barrier: Collection[str] | None = None,
) -> Description:
    """Describe the region of a model and what RollbackHMC does with each variable.

    Parameters
    ----------
    model
        The model; the context's if left out. Or a RollbackHMC, which is described with its own
        variables and options, and, where it has sampled in this process, with what its warm-up
        has chosen.
    vars, constraints, reflect, transform, sharpness
        Options of a RollbackHMC for the model.
    barrier
        The former name of ``reflect``.

    Raises
    ------
    ValueError
        Where options are given beside a RollbackHMC, which has its own.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    >>> table = rb.describe(model)
    >>> [(row.name, row.support, row.action) for row in table.variables]
    [('x', '(0, inf)', 'reflect')]
    >>> [(row.name, row.inequality, row.wall) for row in table.constraints]
    [('x.lower', 'x > 0', 'reflects'), ('sum', 'sum(x) < 2', 'reflects')]
    """
    if isinstance(model, BlockedStep) and hasattr(model, "plan"):
        _refuse_options(
            vars=vars,
            constraints=constraints,
            reflect=reflect,
            transform=transform,
            sharpness=sharpness,
            barrier=barrier,
        )
        plan, mapped = model.plan, find_mapped(model)
    else:
        model = require_model(model)
        plan = read_plan(
            model,
            model.continuous_value_vars if vars is None else sampled_values(model, vars),
            constraints=constraints,
            reflect=as_reflect(reflect, barrier),
            transform=transform,
            sharpness=sharpness,
        )
        mapped = {}
    region = plan.region
    shapes = region.model.eval_rv_shapes()
    slacks = region.evaluate([c.slack for c in region], region.initial)
    return Description(
        tuple(
            VariableRow(name, tuple(map(int, shapes[name])), region.cut_supports[name].text, *done)
            for name, t in plan.treatments.items()
            for done in [mapped.get(name, (t.action, t.why))]
        ),
        tuple(
            ConstraintRow(
                c.name,
                c.text,
                slack.size,
                c.affine,
                plan.wall(c),
                float(np.min(slack, initial=np.inf)),
                c.level,
            )
            for c, slack in zip(region, slacks, strict=True)
        ),
        tuple(
            PotentialRow(potential.name, "finite: stays in the density")
            for potential in region.model.potentials
            if not any(c.owner == potential.name for c in region.joint)
        ),
    )


def find_mapped(step: Any) -> dict[str, tuple[str, str]]:
    """Variables that a step's warm-up has put under a log or a logit: what is done, and why."""
    said = {b.name: step.chain.say_map(b.span) for b in step.density.blocks}
    return {name: ("map", why) for name, why in said.items() if why}


def _refuse_options(**options: object) -> None:
    """Raise where options are given beside a step, which has its own."""
    defaults = {name: p.default for name, p in inspect.signature(describe).parameters.items()}
    given = [f"{name}={shown(x)}" for name, x in options.items() if x is not defaults[name]]
    if given:
        raise ValueError(
            f"{', '.join(given)}: a step is described with its own options. Describe the step "
            "alone, describe(step), or its model with these options, describe(model, ...)."
        )


def summarise(plan: Plan, options: Options) -> str:
    """Say in a line what will be drawn, what keeps it inside, and what is tuned."""
    drawn = [(name, treatment.action) for name, treatment in plan.treatments.items()]
    walls = [(c.name, plan.wall(c)) for c in plan.region.joint if plan.varies(c.slack)]
    inside = f", inside {_listed(walls)}" if walls else ""
    given = {"step_size": options.step_size, "n_steps": options.n_steps}
    said = [f"{name}={value:g}" for name, value in given.items() if value is not None]
    tuned = [name for name, value in given.items() if value is None]
    tuned += ["sharpness"] if options.tunes_rows else []
    tuned += ["metric"] if options.tunes_metric else []
    said += [f"tunes {', '.join(tuned)}"] if tuned else ["tunes nothing"]
    kind = "exact" if options.exact else "smoothed"
    return f"{kind} draws of {_listed(drawn)}{inside}; {', '.join(said)}"


def _listed(pairs: Sequence[tuple[str, str]]) -> str:
    """Names, each with what is done with it; the first ones of many."""
    listed = [f"{name} ({action})" for name, action in pairs[:MOST_LISTED]]
    more = len(pairs) - len(listed)
    return ", ".join(listed + ([f"and {more} more"] if more else []))


def _shape(shape: tuple[int, ...]) -> str:
    return "scalar" if shape == () else " x ".join(map(str, shape))
