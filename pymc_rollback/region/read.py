"""Read the region of a PyMC model: every bound, order and joint constraint, as ``g(x) > 0``.

The graph is the only truth: nothing is kept in a registry. Bounds and orders come from
``support``; joint constraints are the indicators in the model's Potentials (the user's own, or made
by :func:`constrain`) and in the densities of observed variables (``y ~ Uniform(0, theta)``
constrains ``theta``).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.graph.replace import graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import snapshot
from pymc_rollback.graph.forms import is_data, is_true, present_value, value_ancestors
from pymc_rollback.graph.text import readable
from pymc_rollback.region.account import ImpossibleError, require_data
from pymc_rollback.region.arguments import as_expression, check_name, check_slacks, require_model
from pymc_rollback.region.between import between as lies_between
from pymc_rollback.region.conditions import Inequality, UnreadableError, inequalities
from pymc_rollback.region.constraint import (
    Constraint,
    Region,
    RegionError,
    free_inputs,
    involves_continuous,
    is_continuous,
    make_constraint,
    with_data,
)
from pymc_rollback.region.feasibility import check_densities, check_potentials, check_region
from pymc_rollback.region.indicators import Split, split_indicators, split_potential
from pymc_rollback.region.parts import log_density, part_of
from pymc_rollback.region.support import Support, read_support


def read_region(
    model: pm.Model | None = None, constraints: Mapping[str, TensorVariable] | None = None
) -> Region:
    """Read every bound, order and joint constraint of a model.

    Parameters
    ----------
    model
        The model; the context's if left out.
    constraints
        Slacks given by hand, by name: ``g`` for a constraint ``g > 0``. One that has the name of
        a Potential or of an observed variable stands for the indicators in it, which are then not
        read: draws are from where the slack is positive.

    Returns
    -------
    Region
        Constraints ``g(x) > 0`` in terms of the model's own (untransformed) variables.

    Raises
    ------
    RegionError
        Where a constraint cannot be read, depends on no continuous variable, cannot be met, or
        has no gradient.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", shape=2)
    ...     scale = pm.HalfNormal("scale")
    ...     c = rb.constrain("near", abs(x[0] - x[1]) < scale)
    >>> region = rb.read_region(model)
    >>> [(constraint.name, constraint.kind) for constraint in region]
    [('scale.lower', 'bound'), ('near', 'joint')]
    """
    model = require_model(model)
    check_slacks(constraints)
    by_hand = dict(constraints or {})
    supports = {rv.name: _read_support(model, rv) for rv in model.free_RVs if is_continuous(rv)}
    for rv in model.basic_RVs:
        _refuse_minibatch(f"Variable {rv.name!r}", [rv, model.rvs_to_values[rv]])
    read = [potential for potential in model.potentials if potential.name not in by_hand]
    splits = {potential: split_potential(potential) for potential in read}
    joint = [row for p, split in splits.items() for row in read_potential(model, p, split)]
    joint += [_given_by_hand(model, name, slack) for name, slack in by_hand.items()]
    discrete = [rv for rv in model.free_RVs if not is_continuous(rv)]
    likelihoods = [rv for rv in (*model.observed_RVs, *discrete) if rv.name not in by_hand]
    joint += [row for rv in likelihoods for row in _read_likelihood(model, rv)]
    for name, support in supports.items():
        joint += _named(model, f"{name}.support", support.joint, name)
    observed = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    data = snapshot([*model.basic_RVs, *model.potentials, *observed])
    region = Region(model, supports, tuple(joint), data)
    check_region(region)
    check_potentials(region, {p.name: split.finite for p, split in splits.items()})
    check_densities(region)
    return region


def constrain(
    name: str,
    condition: TensorVariable,
    model: pm.Model | None = None,
    *,
    between: tuple[TensorVariable | float | None, TensorVariable | float | None] | None = None,
) -> TensorVariable:
    """Constrain a model's variables to where a condition holds.

    Adds the Potential ``switch(condition, 0, -inf)``, so that every tool that evaluates the model
    sees the true, truncated density.

    Several comparisons are joined by ``&`` (and), ``|`` (or) and ``~`` (not), each in brackets:
    ``(6 < s) & (s < 7)``. Python's ``6 < s < 7``, ``and``, ``or``, ``not``, ``all``, ``any``,
    ``max`` and ``min`` want a single truth value, which an expression of random variables does not
    have ("TensorVariable cannot be converted to Python boolean"): use ``pt.all``, ``pt.any``,
    ``pt.maximum`` and ``pt.minimum``.

    Parameters
    ----------
    name
        Name of the Potential.
    condition
        Comparisons (``<``, ``<=``, ``>``, ``>=``) of expressions of the model's variables,
        elementwise on arrays. A vector or a list of conditions is many constraints. With
        ``between``, the expression that lies between the ends.
    model
        The model; the context's if left out.
    between
        Lower and upper end of an expression: numbers, arrays or expressions. None, or an infinite
        number, is no end.

    Returns
    -------
    TensorVariable
        The Potential.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", shape=2)
    ...     s = x.sum()
    ...     slab = rb.constrain("slab", (6 < s) & (s < 7))
    ...     same = rb.constrain("same", s, between=(6, 7))
    ...     disk = rb.constrain("disk", (x**2).sum() < 100)
    >>> [constraint.text for constraint in rb.read_region(model)]
    ['sum(x) > 6', 'sum(x) < 7', 'sum(x) > 6', 'sum(x) < 7', 'sum(x**2) < 100']
    """
    model = require_model(model)
    check_name(name)
    full_name, root = model.name_for(name), model.root
    if full_name in model.named_vars:
        raise RegionError(
            f"Constraint {full_name!r}: the model has a variable of that name already. "
            "Choose another name."
        )
    if between is not None:
        condition = lies_between(name, condition, between)
    if isinstance(condition, bool | np.bool_):
        raise RegionError(
            f"Constraint {name!r}: the condition is the Python value {condition}, not an "
            "expression of the model's variables. `==` compares objects, not values; an equality "
            "has measure zero and cannot be sampled: make one variable a Deterministic of the "
            "others."
        )
    form = f"constrain({name!r}, x < 1)"
    condition = as_expression(f"Constraint {name!r}", condition, "condition", form)
    if condition.dtype != "bool":
        raise RegionError(
            f"Constraint {name!r}: `{readable(condition)}` is {condition.dtype}, not a condition. "
            "Compare it with something: `g > 0`."
        )
    indicator = pt.switch(condition, 0.0, -np.inf)
    indicator.name = full_name
    constraints = read_potential(root, indicator, split_potential(indicator))
    involved = [rv for c in constraints for rv in c.inputs if is_continuous(rv)]
    supports = {rv.name: _read_support(root, rv) for rv in involved}
    check_region(Region(root, supports, tuple(constraints)))
    return pm.Potential(name, indicator, model=model)


def read_potential(model: pm.Model, potential: TensorVariable, split: Split) -> list[Constraint]:
    """Joint constraints of the indicators that were split off one Potential."""
    name = potential.name
    _refuse_minibatch(f"Potential {name!r}", [potential])
    rows = []
    for condition, level in split.indicators:
        if free_inputs(model, potential) and is_true(condition):
            continue  # a guard of constant parameters in a log density used as a Potential
        if _is_settled(model, name, condition):
            continue
        _require_continuous(model, name, condition)
        try:
            rows += [row._replace(level=level) for row in inequalities(condition)]
        except UnreadableError as error:
            raise RegionError(
                f"Potential {name!r}: {error}. If there is a slack g(x) that is positive where the "
                f"potential is finite, give it by hand: RollbackHMC(constraints={{{name!r}: g}})."
            ) from error
    rows = [row for row in rows if not _is_settled(model, name, row.condition, row.text)]
    undecided = [row for row in rows if not _data_decide(model, row)]
    for row in undecided:
        _require_continuous(model, name, row.slack, row.text)
    return _named(model, name, undecided)


def _read_support(model: pm.Model, rv: TensorVariable) -> Support:
    try:
        return read_support(rv, model.rvs_to_transforms[rv], model.basic_RVs)
    except ImpossibleError as error:
        raise RegionError(
            f"Variable {rv.name!r}: {error}. Correct the data in its distribution."
        ) from error
    except UnreadableError as error:
        raise RegionError(
            f"Variable {rv.name!r}: its support cannot be read: {error}. Write the support of its "
            "distribution as comparisons, or give the variable a transform."
        ) from error


def _read_likelihood(model: pm.Model, rv: TensorVariable) -> list[Constraint]:
    """Constraints on continuous variables from the support of an observed or discrete one."""
    observed = rv in model.observed_RVs
    kind = "Observed variable" if observed else "Variable"
    data = model.rvs_to_values[rv] if observed else rv
    if is_data(data) and present_value(data).size == 0:
        return []
    try:
        rows = _likelihood_rows(model, rv, data)
    except ImpossibleError as error:
        raise RegionError(
            f"{kind} {rv.name!r}: {error}. Correct the data, or choose a distribution that has "
            "them in its support."
        ) from error
    except UnreadableError as error:
        raise RegionError(
            f"{kind} {rv.name!r}: its support cannot be read: {error}. If there is a "
            "slack g(x) that is positive where its log density is finite, give it by hand: "
            f"RollbackHMC(constraints={{{rv.name!r}: g}})."
        ) from error
    return _named(model, f"{rv.name}.support", rows, rv.name)


def _likelihood_rows(model: pm.Model, rv: TensorVariable, data: TensorVariable) -> list[Inequality]:
    part = part_of(rv)
    whole, data = (rv, data) if part is None else (part.whole, part.embed(data, rv.name))
    value = rv.type(name=rv.name) if data is rv else data
    indicators = split_indicators(log_density(whole, value, model.basic_RVs)).indicators
    conditions = [graph_replace(c, {value: data}, strict=False) for c, _ in indicators]
    for condition in conditions:
        if not free_inputs(model, condition):
            require_data(with_data(model, condition), rv.name, data, part and part.where)
    concerned = [c for c in conditions if involves_continuous(model, c)]
    rows = [row for condition in concerned for row in inequalities(condition)]
    rows = [row for row in rows if involves_continuous(model, row.slack)]
    if part is None:
        return rows
    if any(row.slack.ndim != whole.ndim for row in rows):
        raise UnreadableError(f"values of `{readable(whole)}` are bounded by the missing ones")
    return [row._replace(slack=row.slack[part.where]) for row in rows]


def _given_by_hand(model: pm.Model, name: str, slack: TensorVariable) -> Constraint:
    slack = as_expression(f"Constraint {name!r}", slack, "slack", f"{{{name!r}: 1 - x}} for x < 1")
    if slack.dtype == "bool":
        raise RegionError(
            f"Constraint {name!r}: `{readable(slack)}` is a condition. Give its slack, an "
            f"expression that is positive where it holds, or declare it: constrain({name!r}, ...)."
        )
    _require_continuous(model, name, slack)
    return make_constraint(model, name, name, "joint", slack, f"{readable(slack)} > 0")


def _named(
    model: pm.Model, name: str, rows: Sequence[Inequality], owner: str | None = None
) -> list[Constraint]:
    """Make joint constraints of rows: ``name`` for one alone, ``name[i]`` for several."""
    names = [name] if len(rows) == 1 else [f"{name}[{i}]" for i in range(len(rows))]
    pairs = zip(names, rows, strict=True)
    return [
        make_constraint(model, n, owner or name, "joint", row.slack, row.text, row.level)
        for n, row in pairs
    ]


def _refuse_minibatch(name: str, terms: Sequence[Variable]) -> None:
    if any(isinstance(v.owner.op, MinibatchOp) for v in ancestors(terms) if v.owner):
        raise RegionError(
            f"{name} depends on a Minibatch, and so has a log density that changes from step to "
            "step. Give it all data."
        )


def _data_decide(model: pm.Model, row: Inequality) -> bool:
    """Whether the present data decide a condition, whatever the free variables in it are."""
    return involves_continuous(model, row.condition) and not free_inputs(model, row.slack)


def _is_settled(
    model: pm.Model, name: str, condition: TensorVariable, text: str | None = None
) -> bool:
    """Whether data alone make a condition hold; where they make it fail, nothing can be sampled."""
    condition = with_data(model, condition)
    if not is_data(condition):
        return False
    if np.all(present_value(condition)):
        return True
    raise RegionError(
        f"Constraint {name!r}: `{text or readable(condition)}` fails, whatever the free variables "
        "are: it involves none of them, and the constants or data in it (those of pm.do, "
        "pm.observe or pm.set_data) decide it. Change the data, or remove the constraint."
    )


def _require_continuous(
    model: pm.Model, name: str, expression: Variable, text: str | None = None
) -> None:
    text = text or readable(expression)
    foreign = set(rvs_in_graph([expression])) - set(model.basic_RVs)
    foreign = foreign.intersection(value_ancestors(expression, blockers=model.basic_RVs))
    if foreign:
        raise RegionError(
            f"Constraint {name!r}: `{text}` involves "
            f"{', '.join(sorted(str(v) for v in foreign))}, which is not in this model. Write it "
            f"with this model's variables ({', '.join(rv.name for rv in model.free_RVs)})."
        )
    if involves_continuous(model, expression):
        return
    if inputs := free_inputs(model, expression):
        raise RegionError(
            f"Constraint {name!r}: `{text}` involves only discrete variables "
            f"({', '.join(x.name for x in inputs)}), on which no Hamiltonian trajectory runs. Put "
            "the restriction into their distribution (pm.Truncated, pm.DiscreteUniform)."
        )
    raise RegionError(
        f"Constraint {name!r}: `{text}` is constant: it involves none of the model's free "
        "variables. Remove it, or compare an expression of model variables."
    )
