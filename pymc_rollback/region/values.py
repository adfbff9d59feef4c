"""A model's variables as values, under transforms of our own choice.

PyMC's ``change_value_transforms`` copies the model, which it refuses for one with initial values;
the log density only needs other value variables.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.basic import transformed_conditional_logp
from pymc.logprob.transforms import Transform
from pymc.logprob.utils import replace_rvs_by_values
from pymc.util import get_transformed_name
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.forms import is_true, value_ancestors
from pymc_rollback.region.indicators import Split, split_indicators, split_potential


class ValueSpace:
    """Value variables of a model.

    Parameters
    ----------
    model
        The model.
    changed
        Transforms of some free variables, instead of the model's own; None for the variable itself.
    unread
        Free variables whose support is not read, but left to their transforms.

    Attributes
    ----------
    values
        The value variable of each random variable.
    transforms
        The transform of each random variable.
    """

    def __init__(
        self,
        model: pm.Model,
        changed: Mapping[TensorVariable, Transform | None],
        unread: Collection[TensorVariable] = (),
    ) -> None:
        self.model = model
        self.changed = changed
        self.unread = unread
        self.transforms = {**model.rvs_to_transforms, **changed}
        self.values = {
            **model.rvs_to_values,
            **{rv: _value_variable(rv, transform) for rv, transform in changed.items()},
        }

    def __getitem__(self, name: str) -> TensorVariable:
        """Value variable of the random variable of a name."""
        return self.values[self.model[name]]

    def replace(self, expressions: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Write expressions of random variables in terms of their values."""
        return replace_rvs_by_values(
            expressions, rvs_to_values=self.values, rvs_to_transforms=self.transforms
        )

    @cached_property
    def smooth_terms(self) -> dict[str, TensorVariable]:
        """Log density of each variable and Potential, without what is read as a constraint.

        Every condition on a continuous variable is read as a constraint, and taken out. Conditions
        on discrete variables and on data stay.
        """
        rvs, potentials = self.model.basic_RVs, self.model.potentials
        factors = transformed_conditional_logp(
            rvs, rvs_to_values=self.values, rvs_to_transforms=self.transforms
        )
        terms = {
            rv.name: pt.sum(factor) if rv in self.unread else self._smooth(split_indicators(factor))
            for rv, factor in zip(rvs, factors, strict=True)
        }
        replaced = self.replace(potentials) if potentials else []
        return terms | {
            potential.name: self._smooth(split_potential(value))
            for potential, value in zip(potentials, replaced, strict=True)
        }

    @cached_property
    def smooth_logp(self) -> TensorVariable:
        """Log density of the values, without what is read as a constraint."""
        return pt.sum(pt.stack([pt.constant(0.0), *self.smooth_terms.values()]))

    def _smooth(self, split: Split) -> TensorVariable:
        """A term without the indicators of conditions on continuous variables."""
        finite, indicators = split
        kept = [
            pt.switch(pt.all(condition), 0.0, level)
            for condition, level in indicators
            if not self._is_constraint(condition) and not is_true(condition)
        ]
        return pt.sum(finite) if not kept else pt.add(pt.sum(finite), *kept)

    def _is_constraint(self, condition: TensorVariable) -> bool:
        """Whether a condition depends on the value of a continuous free variable."""
        inputs = value_ancestors(condition)
        values = (self.values[rv] for rv in self.model.free_RVs)
        return any(v in inputs for v in values if v.dtype in pm.vartypes.continuous_types)


def _value_variable(rv: TensorVariable, transform: Transform | None) -> TensorVariable:
    if transform is None:
        return rv.type(name=rv.name)
    value = transform.forward(rv, *rv.owner.inputs).type()
    value.name = get_transformed_name(rv.name, transform)
    return value
