"""A model's variables as values, under transforms of our own choice.

PyMC's ``change_value_transforms`` copies the model, which it refuses for one with initial values;
the log density only needs other value variables.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.basic import transformed_conditional_logp
from pymc.logprob.transforms import Transform
from pymc.logprob.utils import replace_rvs_by_values
from pymc.util import get_transformed_name
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.indicators import NEGLIGIBLE_NATS, split_indicators


class ValueSpace:
    """Value variables of a model.

    Parameters
    ----------
    model
        The model.
    changed
        Transforms of some free variables, instead of the model's own; None for the variable itself.

    Attributes
    ----------
    values
        The value variable of each random variable.
    transforms
        The transform of each random variable.
    """

    def __init__(self, model: pm.Model, changed: Mapping[TensorVariable, Transform | None]) -> None:
        self.model = model
        self.changed = changed
        self.transforms = {**model.rvs_to_transforms, **changed}
        self.values = {
            **model.rvs_to_values,
            **{rv: _value_variable(rv, transform) for rv, transform in changed.items()},
        }

    def __getitem__(self, name: str) -> TensorVariable:
        """Value variable of a random variable, by the latter's name."""
        return self.values[self.model[name]]

    def replace(self, expressions: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Write expressions of random variables in terms of their values."""
        return replace_rvs_by_values(
            expressions, rvs_to_values=self.values, rvs_to_transforms=self.transforms
        )

    @cached_property
    def smooth_logp(self) -> TensorVariable:
        """Log density of the values, without the model's indicators and support switches."""
        factors = transformed_conditional_logp(
            self.model.basic_RVs, rvs_to_values=self.values, rvs_to_transforms=self.transforms
        )
        finite = [split_indicators(factor).finite for factor in factors]
        finite += [
            split_indicators(potential, floor=-NEGLIGIBLE_NATS).finite
            for potential in (self.replace(self.model.potentials) if self.model.potentials else ())
        ]
        return pt.sum(pt.stack([pt.constant(0.0), *map(pt.sum, finite)]))


def _value_variable(rv: TensorVariable, transform: Transform | None) -> TensorVariable:
    if transform is None:
        return rv.type(name=rv.name)
    value = transform.forward(rv, *rv.owner.inputs).type()
    value.name = get_transformed_name(rv.name, transform)
    return value
