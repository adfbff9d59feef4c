"""Draws from the constrained prior: a model without its likelihood."""

import warnings
from collections.abc import Collection
from typing import Any

import numpy as np
import pymc as pm
from pymc.util import RandomState
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors

from pymc_rollback.graph.compat import datasets, from_datasets
from pymc_rollback.region.parts import part_of
from pymc_rollback.step import RollbackHMC

GROUPS = {
    "posterior": "prior",
    "sample_stats": "sample_stats_prior",
    "posterior_predictive": "prior_predictive",
}
"""Names of groups of draws, and what they are called where the draws are from a prior."""


def sample_prior(
    model: pm.Model | None = None,
    draws: int = 500,
    *,
    leave_out: Collection[str] = (),
    random_seed: RandomState = None,
    progressbar: bool = True,
    **kwargs: Any,
) -> Any:
    """Draw from a model's prior within its constraints, and from what the prior predicts.

    ``pm.sample_prior_predictive`` ignores Potentials, and with them all constraints. Here the model
    without its observed variables, but with its Potentials, is sampled by RollbackHMC. Then the
    observed variables are drawn given each of the draws.

    Parameters
    ----------
    model
        The model; the context's if left out.
    draws
        Number of draws of each chain.
    leave_out
        Names of Potentials that are likelihoods, to be left out with the observed variables.
    random_seed
        Seed or generator.
    progressbar
        Whether to show PyMC's progress bars.
    **kwargs
        Passed to ``pm.sample``: ``tune``, ``chains``, ``cores``.

    Returns
    -------
    DataTree or InferenceData
        Draws in the groups ``prior``, ``sample_stats_prior`` and ``prior_predictive``, beside the
        data: what ArviZ uses with the installed PyMC.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.Normal("x", shape=2)
    ...     c = rb.constrain("rising", x[0] < x[1])
    ...     y = pm.Normal("y", x, observed=[0.3, 0.1])
    >>> drawn = rb.sample_prior(
    ...     model, draws=100, tune=200, chains=2, cores=1, progressbar=False, random_seed=1
    ... )
    >>> bool((drawn["prior"]["x"][..., 0] < drawn["prior"]["x"][..., 1]).all())
    True
    >>> dict(drawn["prior_predictive"]["y"].sizes)
    {'chain': 2, 'draw': 100, 'y_dim_0': 2}
    """
    model = pm.modelcontext(model).root
    prior = without_likelihood(model, leave_out)
    seeds = np.random.default_rng(random_seed).integers(2**30, size=2).tolist()
    options = {"progressbar": progressbar, **kwargs}
    with prior:
        sampled = pm.sample(draws, step=RollbackHMC(), random_seed=seeds[0], **options)
    groups = datasets(sampled)
    if model.observed_RVs:
        with model, warnings.catch_warnings():
            # what they do to the parameters is in the draws, and observed variables are not in them
            warnings.filterwarnings("ignore", "The effect of Potentials", UserWarning)
            predicted = pm.sample_posterior_predictive(
                sampled, random_seed=seeds[1], progressbar=progressbar
            )
        groups |= datasets(predicted)
    renamed = {GROUPS.get(name, name): group for name, group in groups.items()}
    return from_datasets(renamed, like=sampled)


def without_likelihood(model: pm.Model, leave_out: Collection[str] = ()) -> pm.Model:
    """A model without its observed variables, made of its own free variables, not of copies.

    Missing values of a multivariate variable, of which PyMC has made no variables of their own, are
    left out with the observed values: they belong to what the prior predicts.

    Parameters
    ----------
    model
        A model.
    leave_out
        Names of Potentials to be left out as well.

    Raises
    ------
    ValueError
        Where what is left depends on an observed variable.
    """
    unknown = set(leave_out) - {potential.name for potential in model.potentials}
    if unknown:
        raise ValueError(
            f"leave_out names {', '.join(sorted(unknown))}, but the Potentials of the model are "
            f"{', '.join(p.name for p in model.potentials) or 'none'}. Observed variables are left "
            "out in any case."
        )
    missing = [rv for rv in model.free_RVs if part_of(rv) is not None]
    likelihood = {*model.observed_RVs, *missing}
    free = [rv for rv in model.free_RVs if rv not in missing]
    potentials = [p for p in model.potentials if p.name not in leave_out]
    for kept in (*free, *potentials):
        _refuse_dependence(kept, likelihood)
    deterministics = [d for d in model.deterministics if likelihood.isdisjoint(ancestors([d]))]
    named = {*free, *potentials, *deterministics, *model.data_vars}
    values = {rv: model.rvs_to_values[rv] for rv in free}
    prior = pm.Model(model=None)
    vars(prior).update(
        {
            **vars(model),
            "free_RVs": type(model.free_RVs)(free),
            "observed_RVs": type(model.observed_RVs)(),
            "deterministics": type(model.deterministics)(deterministics),
            "potentials": type(model.potentials)(potentials),
            "named_vars": type(model.named_vars)(
                {name: v for name, v in model.named_vars.items() if v in named}
            ),
            "rvs_to_values": type(model.rvs_to_values)(values),
            "values_to_rvs": type(model.values_to_rvs)({v: rv for rv, v in values.items()}),
        }
    )
    return prior


def _refuse_dependence(kept: Variable, likelihood: set[Variable]) -> None:
    names = sorted(v.name for v in likelihood.intersection(ancestors([kept])))
    if names:
        raise ValueError(
            f"{kept.name!r} depends on the observed {', '.join(names)}, so it has no prior "
            "without the data. If it is a Potential that is part of the likelihood, name it in "
            "leave_out; else make the observed variable a pm.Data."
        )
