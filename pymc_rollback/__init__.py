"""Roll-back Hamiltonian Monte Carlo for PyMC: exact draws from truncated and constrained models.

Reading order, from a model to its draws: ``graph`` (PyTensor expressions), ``region`` (a model's
bounds, orders and joint constraints), ``target`` (the plan, and the density and walls over one
vector), ``kernels`` (the compiled loops), ``chain`` (start, warm-up, draws), ``options`` and
``prepare`` (from what a user gives to what is sampled), ``step`` (PyMC's contract) with ``guard``
and ``progress``, ``describe`` (the plan as a table), ``prior`` (a model without its likelihood).
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pymc_rollback.describe import Description, describe
from pymc_rollback.region.constraint import Constraint, Region, RegionError
from pymc_rollback.region.read import constrain, read_region

if TYPE_CHECKING:
    from pymc_rollback.prior import sample_prior
    from pymc_rollback.step import RollbackHMC

__version__ = version("pymc-rollback")

__all__ = [
    "Constraint",
    "Description",
    "Region",
    "RegionError",
    "RollbackHMC",
    "__version__",
    "constrain",
    "describe",
    "read_region",
    "sample_prior",
]

WITH_NUMBA = {"RollbackHMC": "step", "sample_prior": "prior"}
"""Public names that need Numba, which takes as long to import as PyMC does, and their modules."""


def __getattr__(name: str) -> Any:
    """Import what needs Numba when it is first asked for."""
    if name not in WITH_NUMBA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{WITH_NUMBA[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
