"""The log density of one random variable, and the parts into which PyMC splits one."""

from collections.abc import Sequence
from typing import NamedTuple

import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import PartialObservedRV
from pymc.pytensorf import constant_fold
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace, graph_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.forms import constant_value


class Part(NamedTuple):
    """Observed or missing values of a variable that PyMC has split, and where they are in it.

    The two parts have no density of their own.
    """

    whole: TensorVariable
    where: TensorVariable

    def embed(self, value: TensorVariable, name: str) -> TensorVariable:
        """A value of the whole that is zero elsewhere."""
        embedded = pt.set_subtensor(pt.zeros(self.shape)[self.where], value)
        embedded.name = name
        return embedded

    def take(self, bound: TensorVariable | None) -> TensorVariable | None:
        """Part of a bound of the whole; one number for all elements stays one."""
        if bound is None:
            return None
        if all(bound.type.broadcastable):
            return pt.squeeze(bound)
        part = pt.broadcast_to(bound, self.shape)[self.where]
        value = constant_value(part)
        return part if value is None else pt.constant(value)

    @property
    def shape(self) -> tuple:
        """Shape of the whole, of numbers where they are known."""
        return constant_fold(tuple(self.whole.shape), raise_not_constant=False)


def part_of(variable: TensorVariable) -> Part | None:
    """What a variable is a part of, if it is one."""
    if not isinstance(variable.owner.op, PartialObservedRV):
        return None
    whole, missing = variable.owner.inputs
    return Part(whole, missing if variable is variable.owner.outputs[1] else ~missing)


def log_density(
    variable: TensorVariable, value: TensorVariable, given: Sequence[TensorVariable]
) -> TensorVariable:
    """Log density of a variable at a value, given other random variables.

    Where PyMC derives a density, it copies the given variables; plain inputs stand for them
    meanwhile. Parameters that are made of constants become constants, as they do in the log density
    of a model: some distributions (Interpolated) ask for their values.
    """
    parameters = [_as_constant(x) for x in variable.owner.inputs]
    inputs = set(ancestors(parameters)).intersection(given)
    if not inputs and parameters == variable.owner.inputs:
        return pm.logp(variable, value, warn_rvs=False)
    plain = {rv: rv.type(name=rv.name) for rv in inputs}
    node = variable.owner.clone_with_new_inputs(clone_replace(parameters, plain), strict=False)
    copy = node.outputs[variable.owner.outputs.index(variable)]
    copy.name = variable.name
    logp = pm.logp(copy, value, warn_rvs=False)
    return graph_replace(logp, {x: rv for rv, x in plain.items()}, strict=False)


def _as_constant(parameter: Variable) -> Variable:
    if not isinstance(parameter.type, TensorType) or parameter.owner is None:
        return parameter
    value = constant_value(parameter)
    return parameter if value is None else pt.constant(value)
