"""How probable constraints are without them, before and after the data: the Bayes factor."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields

import numpy as np
import pandas as pd
import pymc as pm
from pymc.util import RandomState
from pytensor.tensor.variable import TensorVariable
from rich.console import Console
from rich.markup import escape
from rich.status import Status

from pymc_rollback.diagnostics.nested import Effort, Levels, Probability
from pymc_rollback.diagnostics.wider import require_proper, widen
from pymc_rollback.graph.text import shown
from pymc_rollback.options import check_bool, check_list_of_names, check_whole
from pymc_rollback.prior import without_likelihood
from pymc_rollback.region.arguments import require_model
from pymc_rollback.region.constraint import Constraint, Region, is_continuous
from pymc_rollback.region.read import read_region
from pymc_rollback.tables import Section, Tables

PARTS = ("prior", "posterior")

TOGETHER = "all together"
"""Name of the row of all constraints."""


@dataclass(frozen=True)
class ProbabilityRow:
    """Probabilities of one constraint, or of all together, and the Bayes factor for them.

    Each with its Monte Carlo standard error; NaN where it was not asked for.
    """

    name: str
    inequality: str
    prior: float
    prior_error: float
    posterior: float
    posterior_error: float
    bayes_factor: float
    bayes_factor_error: float
    log_bayes_factor: float
    log_bayes_factor_error: float


@dataclass(frozen=True, repr=False)
class ConstraintProbability(Tables):
    """Probabilities of constraints as a table: printed, as HTML in a notebook, or as data.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", shape=2)
    ...     c = rb.constrain("rising", x[0] < x[1])
    >>> table = rb.constraint_probability(model, draws=500, progressbar=False, random_seed=1)
    >>> [row.name for row in table.rows]
    ['rising']
    >>> bool(abs(table.rows[0].prior - 0.5) < 0.1)
    True
    """

    rows: tuple[ProbabilityRow, ...]

    def to_frame(self) -> pd.DataFrame:
        """Give the table as a data frame, with the names as its index."""
        columns = [field.name for field in fields(ProbabilityRow)]
        return pd.DataFrame([asdict(row) for row in self.rows], columns=columns).set_index("name")

    def _sections(self) -> list[Section]:
        shown = [
            name
            for name in ("prior", "posterior", "bayes_factor")
            if any(np.isfinite(getattr(row, name)) for row in self.rows)
        ]
        header = ["constraint", "inequality", *(name.replace("_", " ") for name in shown)]
        rows = [
            [
                row.name,
                row.inequality,
                *(_with_error(getattr(row, name), getattr(row, f"{name}_error")) for name in shown),
            ]
            for row in self.rows
        ]
        return [Section("Probability without the constraints", header, rows, tuple(header[2:]))]


def constraint_probability(
    model: pm.Model | None = None,
    names: Collection[str] | None = None,
    *,
    of: str | None = None,
    leave_out: Collection[str] = (),
    draws: int = 2000,
    tune: int = 500,
    chains: int = 2,
    random_seed: RandomState = None,
    progressbar: bool = True,
) -> ConstraintProbability:
    r"""Probability that constraints hold in the model without them, and the Bayes factor for them.

    Take the named constraints out of a model, and leave all else. In that wider model, the
    constraints :math:`C` have a prior and a posterior probability, and their ratio

    .. math:: B = \frac{P(C \mid \text{data})}{P(C)}

    is the Bayes factor of the model with the constraints against the model without them (Klugkist,
    Kato & Hoijtink 2005): above one, the data speak for them. The prior probability depends on the
    prior that the wider model has; for a Bayes factor choose it with care. Both probabilities are
    shares of draws of RollbackHMC; those below 0.2 are products of shares, between levels of the
    slack, each sampled under the one before.

    Parameters
    ----------
    model
        The model; the context's if left out.
    names
        Names of the constraints, as :func:`describe` shows them: Potentials, or parts of them
        (``"c"``, ``"c[0]"``), orders (``"x.order"``), bounds (``"x.lower"``). If left out, all
        Potentials that constrain.
    of
        "prior" or "posterior", if one of the probabilities is enough. If left out, both, or the
        prior's alone where the model has no data.
    leave_out
        Names of Potentials that are likelihoods, and so no part of the prior.
    draws, tune
        Draws of each chain at each level, and before them draws for the warm-up.
    chains
        Number of chains. One that does not reach what the others do enlarges the error.
    random_seed
        Seed or generator.
    progressbar
        Whether to show what is being sampled.

    Returns
    -------
    ConstraintProbability
        A row for each constraint, and one for all together. ``to_frame()`` gives it as data.

    Raises
    ------
    ValueError
        Where a prior is improper, so that constraints have no prior probability; where a name is
        unknown; where the model without a constraint is not defined.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model():
    ...     mu = pm.Normal("mu", 0, 10, shape=3)
    ...     rising = rb.constrain("rising", mu[1:] > mu[:-1])
    ...     table = rb.constraint_probability(random_seed=1, progressbar=False)
    >>> bool(abs(table.to_frame().loc["rising", "prior"] - 1 / 6) < 0.03)
    True
    """
    model = require_model(model).root
    for option, value in (("draws", draws), ("tune", tune), ("chains", chains)):
        check_whole(option, value)
    check_bool("progressbar", progressbar)
    check_list_of_names("leave_out", leave_out)
    effort, rng = Effort(draws, tune, chains), _generator(random_seed)
    asked = _asked(model, of, leave_out)
    _require_continuous(model)
    region = read_region(model)
    groups = select(region, names)
    models, slacks = _models(region, groups, asked, leave_out)
    found = {}
    with Console().status("") if progressbar else nullcontext() as status:
        for part, sampled in models.items():
            report = _reporter(status, part)
            levels = Levels(sampled, slacks, effort, rng, report)
            found[part] = {
                name: levels.probability([c.name for c in group])
                for name, group in _with_all(groups).items()
            }
    rows = [
        (name, group, {p: found[p][name] for p in found})
        for name, group in _with_all(groups).items()
    ]
    return ConstraintProbability(tuple(_row(*row) for row in rows))


def select(region: Region, names: Collection[str] | None) -> dict[str, list[Constraint]]:
    """Constraints of a region by the names that a user gave, of Potentials or parts of them.

    Parameters
    ----------
    region
        The region of a model.
    names
        Names; all Potentials that constrain if left out.
    """
    own = {potential.name for potential in region.model.potentials}
    groups: dict[str, list[Constraint]] = {}
    for constraint in region:
        if constraint.owner in own:
            groups.setdefault(constraint.owner, []).append(constraint)
    known = groups | {c.name: [c] for c in region if c.kind != "joint" or c.owner in own}
    if names is None:
        if not groups:
            others = ", ".join(known) or "none"
            raise ValueError(
                "The model has no constraint that is a Potential. Its bounds and orders are "
                f"{others}: give names=[...] of those that the wider model is to be without."
            )
        return groups
    check_list_of_names("names", names)
    if not names:
        raise ValueError(
            f"names={shown(names)} has no name in it. Leave it out for all Potentials."
        )
    for name in names:
        if name not in known:
            raise ValueError(_unknown(region, name, known))
    return {name: known[name] for name in names}


def _unknown(region: Region, name: str, known: Collection[str]) -> str:
    for constraint in region:
        if name in (constraint.name, constraint.owner) and constraint.name not in known:
            return (
                f"names has {name!r} in it, which is the support of the distribution of "
                f"{constraint.owner!r} ({constraint.text}): without it there is no model. The "
                f"constraints that can be left out are {', '.join(known) or 'none'}."
            )
    return (
        f"names has {name!r} in it, but the constraints of the model are "
        f"{', '.join(known) or 'none'}. Give names of these."
    )


def _asked(model: pm.Model, of: str | None, leave_out: Collection[str]) -> tuple[str, ...]:
    """Whether prior, posterior or both are asked for."""
    has_data = bool(model.observed_RVs or leave_out)
    if of is None:
        return PARTS if has_data else PARTS[:1]
    if of not in PARTS:
        raise ValueError(f"of={shown(of)} must be 'prior', 'posterior', or left out for both.")
    if of == "posterior" and not has_data:
        raise ValueError(
            "of='posterior', but the model has no observed variable, so that its posterior is its "
            "prior. Give of='prior', or name the Potentials that are likelihoods in leave_out."
        )
    return (of,)


def _generator(seed: RandomState) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_seed={shown(seed)} must be a whole number of at least 0, a list of them, or a "
            "numpy.random.Generator."
        ) from error


def _require_continuous(model: pm.Model) -> None:
    discrete = [rv.name for rv in model.free_RVs if not is_continuous(rv)]
    if discrete:
        raise ValueError(
            f"The model has the discrete variables {', '.join(discrete)}, which RollbackHMC does "
            "not sample. Sum over them (pm.Mixture, or a Potential of logsumexp), or give them "
            "values: pm.do(model, {...})."
        )


def _models(
    region: Region,
    groups: Mapping[str, Sequence[Constraint]],
    asked: Sequence[str],
    leave_out: Collection[str],
) -> tuple[dict[str, pm.Model], dict[str, TensorVariable]]:
    """Wider models that are sampled, prior and posterior, and the slacks in their variables."""
    removed = {c.name: c for group in groups.values() for c in group}
    wider, slacks = widen(region, list(removed.values()))
    models = {}
    if "prior" in asked:
        models["prior"] = without_likelihood(wider, leave_out)
        require_proper(models["prior"])
    if "posterior" in asked:
        models["posterior"] = wider
    return models, slacks


def _reporter(status: Status | None, part: str) -> Callable[[str], None]:
    """Says what is being sampled, where anyone wants to know."""

    def report(text: str) -> None:
        if status is not None:
            status.update(f"Sampling the {part}: {escape(text)}")

    return report


def _with_all(groups: Mapping[str, Sequence[Constraint]]) -> dict[str, Sequence[Constraint]]:
    """Groups of constraints, and then all of them together, if that is more than one."""
    everything = {c.name: c for group in groups.values() for c in group}
    together = {TOGETHER: list(everything.values())} if len(groups) > 1 else {}
    return {**groups, **together}


def _row(
    name: str, group: Sequence[Constraint], found: Mapping[str, Probability]
) -> ProbabilityRow:
    unknown = Probability(np.nan, np.nan)
    prior, posterior = (found.get(part, unknown) for part in PARTS)
    factor = posterior / prior
    text = "" if name == TOGETHER else "; ".join(c.text for c in group)
    return ProbabilityRow(
        name,
        text,
        *(prior.value, prior.value_error),
        *(posterior.value, posterior.value_error),
        *(factor.value, factor.value_error),
        *factor,
    )


def _with_error(value: float, error: float) -> str:
    """A number with its standard error, to two digits of that."""
    if not value > 0 or not error > 0:
        return f"{value:.3g}"
    digits = max(int(np.floor(np.log10(value))) - int(np.floor(np.log10(error))) + 1, 1)
    return f"{value:.{digits + 1}g} ± {error:.2g}"
