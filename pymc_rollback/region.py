"""Read the region of a PyMC model: every bound, order and joint constraint, as ``g(x) > 0``.

The graph is the only truth: nothing is kept in a registry. Bounds and orders come from
:mod:`pymc_rollback.support`; joint constraints are the indicators in the model's Potentials (the
user's own, or made by :func:`constrain`) and in the densities of observed variables
(``y ~ Uniform(0, theta)`` constrains ``theta``).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.checks import check_densities, check_potentials, check_region
from pymc_rollback.conditions import (
    Inequality,
    UnreadableError,
    constant_value,
    inequalities,
    is_data,
    present_value,
    snapshot,
)
from pymc_rollback.constraints import (
    Constraint,
    Region,
    RegionError,
    free_inputs,
    involves_continuous,
    is_continuous,
    make_constraint,
    value_ancestors,
    with_data,
)
from pymc_rollback.indicators import NEGLIGIBLE_NATS, split_indicators
from pymc_rollback.parts import log_density, part_of
from pymc_rollback.readable import readable
from pymc_rollback.support import Support, read_support


def read_region(
    model: pm.Model | None = None, constraints: Mapping[str, TensorVariable] | None = None
) -> Region:
    """Read every bound, order and joint constraint of a model.

    Parameters
    ----------
    model
        The model; that of the context if left out.
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
    """
    model = pm.modelcontext(model)
    by_hand = dict(constraints or {})
    supports = {rv.name: _read_support(model, rv) for rv in model.free_RVs if is_continuous(rv)}
    read = [potential for potential in model.potentials if potential.name not in by_hand]
    joint = [row for potential in read for row in read_potential(model, potential)]
    joint += [_given_by_hand(model, name, slack) for name, slack in by_hand.items()]
    likelihoods = [rv for rv in model.observed_RVs if rv.name not in by_hand]
    joint += [row for rv in likelihoods for row in _read_likelihood(model, rv)]
    for name, support in supports.items():
        joint += _named(model, f"{name}.support", support.joint)
    observed = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    data = snapshot([*model.basic_RVs, *model.potentials, *observed])
    region = Region(model, supports, tuple(joint), data)
    check_region(region)
    check_potentials(model, read)
    check_densities(region)
    return region


def constrain(
    name: str, condition: TensorVariable, model: pm.Model | None = None
) -> TensorVariable:
    """Constrain a model's variables to where a condition holds.

    Adds the Potential ``switch(condition, 0, -inf)``, so that every tool that evaluates the model
    sees the true, truncated density.

    Parameters
    ----------
    name
        Name of the Potential.
    condition
        Comparisons (``<``, ``<=``, ``>``, ``>=``) of expressions of the model's variables,
        elementwise on arrays, combined by ``&``, ``|`` and ``~``. A vector of conditions is many
        constraints.
    model
        The model; that of the context if left out.

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
    ...     disk = rb.constrain("disk", (x**2).sum() < 2)
    >>> [constraint.text for constraint in rb.read_region(model)]
    ['sum(x**2) < 2']
    """
    model = pm.modelcontext(model)
    full_name, root = model.name_for(name), model.root
    if full_name in model.named_vars:
        raise RegionError(
            f"Constraint {full_name!r}: the model has a variable of that name already. "
            "Choose another name."
        )
    if condition is None or isinstance(condition, bool | np.bool_):
        raise RegionError(
            f"Constraint {name!r}: the condition is the Python value {condition}, not an "
            "expression of the model's variables. `==` compares objects, not values; an equality "
            "has measure zero and cannot be sampled: make one variable a Deterministic of the "
            "others."
        )
    condition = pt.as_tensor_variable(condition)
    if condition.dtype != "bool":
        raise RegionError(
            f"Constraint {name!r}: `{readable(condition)}` is {condition.dtype}, not a condition. "
            "Compare it with something: `g > 0`."
        )
    indicator = pt.switch(condition, 0.0, -np.inf)
    indicator.name = full_name
    constraints = read_potential(root, indicator)
    involved = [rv for c in constraints for rv in free_inputs(root, c.slack) if is_continuous(rv)]
    supports = {rv.name: _read_support(root, rv) for rv in involved}
    check_region(Region(root, supports, tuple(constraints)))
    return pm.Potential(name, indicator, model=model)


def read_potential(model: pm.Model, potential: TensorVariable) -> list[Constraint]:
    """Joint constraints of the indicators in one Potential."""
    name = potential.name
    _, conditions = split_indicators(potential, floor=-NEGLIGIBLE_NATS)
    rows = []
    for condition in conditions:
        if free_inputs(model, potential) and _is_true(condition):
            continue  # a guard of constant parameters in a log density used as a Potential
        if _is_settled(model, name, condition):
            continue
        _require_continuous(model, name, condition)
        try:
            rows += inequalities(condition)
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
    except UnreadableError as error:
        raise RegionError(
            f"Variable {rv.name!r}: its support cannot be read: {error}. Write the support of its "
            "distribution as comparisons, or give the variable a transform."
        ) from error


def _read_likelihood(model: pm.Model, rv: TensorVariable) -> list[Constraint]:
    """Constraints that the support of an observed variable puts on the free ones."""
    data = model.rvs_to_values[rv]
    if rvs_in_graph([data]):
        raise RegionError(
            f"Observed variable {rv.name!r} has random data (a Minibatch), and so a log density "
            "that changes from step to step. Give it all data."
        )
    if is_data(data) and present_value(data).size == 0:
        return []
    try:
        rows = _likelihood_rows(model, rv, data)
    except UnreadableError as error:
        raise RegionError(
            f"Observed variable {rv.name!r}: its support cannot be read: {error}. If there is a "
            "slack g(x) that is positive where its log density is finite, give it by hand: "
            f"RollbackHMC(constraints={{{rv.name!r}: g}})."
        ) from error
    return _named(model, f"{rv.name}.support", rows)


def _likelihood_rows(model: pm.Model, rv: TensorVariable, data: TensorVariable) -> list[Inequality]:
    part = part_of(rv)
    whole, data = (rv, data) if part is None else (part.whole, part.embed(data, rv.name))
    _, conditions = split_indicators(log_density(whole, data, model.basic_RVs))
    concerned = [c for c in conditions if involves_continuous(model, c)]
    rows = [row for condition in concerned for row in inequalities(condition)]
    rows = [row for row in rows if involves_continuous(model, row.slack)]
    if part is None:
        return rows
    if any(row.slack.ndim != whole.ndim for row in rows):
        raise UnreadableError(f"values of `{readable(whole)}` are bounded by the missing ones")
    return [row._replace(slack=row.slack[part.where]) for row in rows]


def _given_by_hand(model: pm.Model, name: str, slack: TensorVariable) -> Constraint:
    slack = pt.as_tensor_variable(slack)
    if slack.dtype == "bool":
        raise RegionError(
            f"Constraint {name!r}: `{readable(slack)}` is a condition. Give its slack, an "
            f"expression that is positive where it holds, or declare it: constrain({name!r}, ...)."
        )
    _require_continuous(model, name, slack)
    return make_constraint(model, name, "joint", slack, f"{readable(slack)} > 0")


def _named(model: pm.Model, name: str, rows: Sequence[Inequality]) -> list[Constraint]:
    """Make joint constraints of rows: ``name`` for one alone, ``name[i]`` for several."""
    names = [name] if len(rows) == 1 else [f"{name}[{i}]" for i in range(len(rows))]
    pairs = zip(names, rows, strict=True)
    return [make_constraint(model, n, "joint", row.slack, row.text) for n, row in pairs]


def _is_true(condition: TensorVariable) -> bool:
    value = constant_value(condition)
    return value is not None and bool(np.all(value))


def _data_decide(model: pm.Model, row: Inequality) -> bool:
    """Whether a condition on the free variables holds by the present data, whatever these are."""
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
            f"{', '.join(sorted(str(v) for v in foreign))}, which is not in this model."
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
