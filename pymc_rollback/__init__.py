"""Roll-back Hamiltonian Monte Carlo for PyMC: exact draws from truncated and constrained models.

Reading order, from a model to its draws: ``graph`` (PyTensor expressions), ``region`` (a model's
bounds, orders and joint constraints), ``target`` (the plan, and the density and walls over one
vector), ``kernels`` (the compiled loops), ``chain`` (start, warm-up, draws), ``options`` and
``prepare`` (from what a user gives to what is sampled), ``entry`` (from a point to coordinates),
``step`` (PyMC's contract) with ``mass``, ``guard`` and ``progress``, ``sampling`` with ``crew``
(chains in threads) or ``cluster`` (in a cluster), ``settled`` (when a warm-up is done), ``runner``
(one chain), ``record`` (its draws) and ``stored`` (what PyMC stores of them), ``many`` (many fits
of one model) with ``ranks``, ``replicates`` and ``store``, ``describe`` (the plan as a table),
``prior`` (a model without its likelihood), ``diagnostics`` (what the constraints do); ``tables``
(printed, or in a notebook).
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pymc_rollback.describe import Description, describe
from pymc_rollback.region.constraint import Constraint, Region, RegionError
from pymc_rollback.region.read import constrain, read_region

if TYPE_CHECKING:
    from pymc_rollback.diagnostics.cost import WallCosts, cost_by_wall
    from pymc_rollback.diagnostics.paths import plot_trajectory
    from pymc_rollback.diagnostics.plots import plot_constraint_probability, plot_walls
    from pymc_rollback.diagnostics.probability import (
        ConstraintProbability,
        constraint_probability,
    )
    from pymc_rollback.diagnostics.slices import plot_region
    from pymc_rollback.diagnostics.walls import WallSummary, wall_summary
    from pymc_rollback.many import sample_many
    from pymc_rollback.prior import sample_prior
    from pymc_rollback.sampling import sample
    from pymc_rollback.step import RollbackHMC

__version__ = version("pymc-rollback")

__all__ = [
    "Constraint",
    "ConstraintProbability",
    "Description",
    "Region",
    "RegionError",
    "RollbackHMC",
    "WallCosts",
    "WallSummary",
    "__version__",
    "constrain",
    "constraint_probability",
    "cost_by_wall",
    "describe",
    "plot_constraint_probability",
    "plot_region",
    "plot_trajectory",
    "plot_walls",
    "read_region",
    "sample",
    "sample_many",
    "sample_prior",
    "wall_summary",
]

WITH_NUMBA = {
    "ConstraintProbability": "diagnostics.probability",
    "RollbackHMC": "step",
    "WallCosts": "diagnostics.cost",
    "WallSummary": "diagnostics.walls",
    "constraint_probability": "diagnostics.probability",
    "cost_by_wall": "diagnostics.cost",
    "plot_constraint_probability": "diagnostics.plots",
    "plot_region": "diagnostics.slices",
    "plot_trajectory": "diagnostics.paths",
    "plot_walls": "diagnostics.plots",
    "sample": "sampling",
    "sample_many": "many",
    "sample_prior": "prior",
    "wall_summary": "diagnostics.walls",
}
"""Public names that need Numba, which takes as long to import as PyMC does, and their modules."""


def __getattr__(name: str) -> Any:
    """Import what needs Numba when it is first asked for."""
    if name not in WITH_NUMBA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{WITH_NUMBA[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
