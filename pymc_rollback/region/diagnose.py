"""Why a start is not finite: which variable or term of the model, at which values, the remedy."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import support_point
from pymc.distributions.transforms import Interval
from pymc.logprob.transforms import IntervalTransform
from pymc.logprob.utils import ParameterValueError
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import values_at
from pymc_rollback.graph.forms import constant_value, is_data, present_value
from pymc_rollback.graph.text import readable
from pymc_rollback.region.constraint import Region, RegionError, free_inputs
from pymc_rollback.region.support import Support

SMALL_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
"""Types in which PyTensor holds whole numbers, and computes with them."""

LEAST_LARGE = 12
"""Parameters from which on a product leaves the smallest integers, -128 to 127."""

MOST_SHOWN = 4
"""Elements of an array that a message shows."""


def check_start(region: Region) -> None:
    """Raise where PyMC has no finite start for a variable, or computes it in too small integers."""
    for name, support in region.supports.items():
        if whole := _overflowing(support.variable):
            raise RegionError(
                f"Variable {name!r}: PyMC computes with its parameters "
                f"{', '.join(map(_text, whole))} in {whole[0].dtype}, which overflows, and so its "
                "start or its log density is wrong. Write them as floats: "
                f"{', '.join(_text(v, decimals=True) for v in whole)}."
            )
    if all(np.all(np.isfinite(value)) for value in region.initial.values()):
        return
    for name, support in region.supports.items():
        if support.transform is not None and support.text == "real line":
            parameters = ", ".join(map(_text, _parameters(support.variable)))
            raise RegionError(
                f"Variable {name!r}: its bounds ({parameters}) are infinite, and PyMC has no start "
                "for it. Write pm.Flat for a variable without bounds."
            )
    rvs = [support.variable for support in region.supports.values()]
    starts = region.evaluate(rvs, region.initial)
    for (name, support), start in zip(region.supports.items(), starts, strict=True):
        if not np.all(np.isfinite(start)):
            raise RegionError(
                f"Variable {name!r}: PyMC starts it at {_numbers(start)}. "
                f"{_cause(region.model, support, start)}"
            )


def _cause(model: pm.Model, support: Support, start: np.ndarray) -> str:
    """Why a variable has no finite start, and what to do."""
    rv, transform = support.variable, support.transform
    if (given := model.rvs_to_initial_values.get(rv)) is not None:
        return (
            f"Its initval {_text(given)} is not a finite number inside its support "
            f"{support.text}. Give another one."
        )
    if transform is not None and _has_infinite_elements(support, start):
        return (
            f"Its {transform.name} transform has no value for an element whose bound is "
            f"infinite, and its support is {support.text}. Give it default_transform=None: "
            "RollbackHMC needs no transform there."
        )
    parameters = _parameters(rv)
    unchecked = not isinstance(rv.owner.op, RandomVariable)
    whole = unchecked and any(v.dtype in SMALL_INTEGERS for v in parameters)
    floats = ", as floats, since PyMC's integers overflow" if whole else ""
    return (
        f"Look at its parameters ({', '.join(map(_text, parameters))}){floats}, or give it a start "
        f"inside its support {support.text}: initval=..."
    )


def _parameters(rv: TensorVariable) -> Sequence[TensorVariable]:
    """Parameters of a distribution, without its generator and size where it tells them apart."""
    node = rv.owner
    if isinstance(node.op, RandomVariable):
        return node.op.dist_params(node)
    inputs = [v for v in node.inputs if isinstance(v.type, TensorType)]
    constants = {v: constant_value(v) for v in inputs}
    return [v for v, x in constants.items() if v.name is not None or (x is not None and x.size)]


def _has_infinite_elements(support: Support, start: np.ndarray) -> bool:
    """Whether the elements without a finite start have an infinite bound in their transform."""
    if not isinstance(support.transform, IntervalTransform | Interval):
        return False
    infinite = np.zeros(start.shape, dtype=bool)
    for bound in support.transform.args_fn(*support.variable.owner.inputs):
        value = None if bound is None else constant_value(pt.as_tensor_variable(bound))
        infinite |= False if value is None else np.isinf(value)
    return bool(np.all(infinite[~np.isfinite(start)]))


def _overflowing(rv: TensorVariable) -> list[TensorVariable]:
    """Whole parameters in whose type the start is outside, or the log density is another one.

    The log density with whole parameters is compared with the one with floats, by their differences
    between two points.
    """
    node = rv.owner
    if not isinstance(node.op, RandomVariable) or not all(map(is_data, _parameters(rv))):
        return []
    whole = [v for v in _parameters(rv) if v.dtype in SMALL_INTEGERS]
    if all(np.all(np.abs(present_value(v).astype(float)) < LEAST_LARGE) for v in whole):
        return []
    # as PyTensor reads them if they are written as floats
    inputs = [
        pt.constant(present_value(v).astype(float).tolist()) if v in whole else v
        for v in node.inputs
    ]
    floats = node.clone_with_new_inputs(inputs, strict=False).outputs[node.outputs.index(rv)]
    if not all(map(is_data, (support_point(rv), support_point(floats)))):
        return []
    start, point = present_value(support_point(rv)), present_value(support_point(floats))
    near = point + 0.1 * np.abs(point) + 0.01
    try:
        one, other = _log_densities(rv, [point, near]), _log_densities(floats, [point, near, start])
    except ParameterValueError:
        return []  # parameters that are invalid in any type
    with np.errstate(all="ignore"):
        same = np.allclose(
            one[1] - one[0], other[1] - other[0], rtol=1e-3, atol=1e-6, equal_nan=True
        )
    started_outside = np.any(np.isfinite(other[0]) & ~np.isfinite(other[2]))
    return whole if started_outside or not same else []


def _log_densities(rv: TensorVariable, points: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Log density of a variable with constant parameters, at some points."""
    value = rv.type()
    logp = pm.logp(rv, value, warn_rvs=False)
    with np.errstate(all="ignore"):
        return [
            present_value(clone_replace(logp, {value: pt.constant(x, dtype=rv.dtype)}))
            for x in points
        ]


def _text(parameter: object, decimals: bool = False) -> str:
    """A parameter as a person would write it, perhaps with a decimal point in it."""
    value = constant_value(parameter) if isinstance(parameter, Variable) else parameter
    if value is None:
        return readable(parameter)
    return _numbers(np.asarray(value, dtype=float), repr if decimals else "{:g}".format)


def _numbers(values: np.ndarray, write: Callable[[float], str] = "{:g}".format) -> str:
    """Numbers in a message: all of a few, the range of many."""
    if values.size == 1:
        return write(values.item())
    if values.size <= MOST_SHOWN:
        return f"[{', '.join(write(float(x)) for x in values.ravel())}]"
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        return f"{values.size} values that are not finite"
    return f"{values.size} values from {write(float(finite.min()))} to {write(float(finite.max()))}"


def complain(model: pm.Model, point: Mapping[str, np.ndarray]) -> str:
    """Say which terms of the log density are not finite at a point of the model, and the remedy."""
    terms = unfinished_terms(model, point)
    where = "; ".join(terms[:MOST_SHOWN]) or f"at {_values(model, model.free_RVs, point)}"
    return (
        f"The log density is not finite at the start: {where}. Give a start where it is finite, by "
        "pm.sample(initvals={...}) or initval= of a variable, or keep the variables to where it is "
        "by rb.constrain."
    )


def unfinished_terms(model: pm.Model, point: Mapping[str, np.ndarray]) -> list[str]:
    """Terms of a model's log density that are not finite at a point, each with what it is made of.

    Parameters
    ----------
    model
        The model.
    point
        A point of the model, by the names of its value variables.
    """
    terms = [*model.basic_RVs, *model.potentials]
    answers = values_at(point, model.value_vars, model.logp(vars=terms, sum=False))
    return [
        _describe_term(model, term, answer, point)
        for term, answer in zip(terms, map(np.asarray, answers), strict=True)
        if not np.all(np.isfinite(answer))
    ]


def _describe_term(
    model: pm.Model, term: TensorVariable, answer: np.ndarray, point: Mapping[str, np.ndarray]
) -> str:
    index = tuple(np.argwhere(~np.isfinite(answer))[0])
    if term in model.potentials:
        what = f"Potential {term.name!r}"
        made_of = free_inputs(model, term)
    else:
        observed = " observed" if term in model.observed_RVs else ""
        what = f"the log density of the{observed} variable {term.name!r}"
        made_of = [rv for v in term.owner.inputs for rv in free_inputs(model, v)]
        made_of = list(dict.fromkeys([term, *made_of]))
    values = _values(model, made_of, point, answer.shape, index)
    return f"{what} is {answer[index]:g}" + (f", where {values}" if values else "")


def _values(
    model: pm.Model,
    rvs: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
    shape: tuple[int, ...] = (),
    index: tuple[int, ...] = (),
) -> str:
    """What variables are at a point, in words; one element of each that has a given shape."""
    rvs = rvs[:MOST_SHOWN]
    if not rvs:
        return ""
    values = values_at(point, model.value_vars, model.replace_rvs_by_values(rvs))
    element = f"[{', '.join(map(str, index))}]" if index else ""
    return " and ".join(
        f"{rv.name}{element} = {x[index]:g}"
        if x.shape == shape
        else f"{rv.name} = {_numbers(np.asarray(x, dtype=float))}"
        for rv, x in zip(rvs, map(np.asarray, values), strict=True)
    )
