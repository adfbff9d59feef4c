"""Roll-back Hamiltonian Monte Carlo for PyMC: exact draws from truncated and constrained models.

Reading order: ``graphs``, ``readable``, ``arguments`` (what a user may give), ``domains``,
``conditions`` and ``indicators`` (boolean graphs to slacks), ``account`` (conditions on data
alone), ``parts`` and ``support`` (density, bounds and orders of a variable), ``values``, ``inside``
(a first point), ``constraints``, ``between`` and ``region`` (the region of a model), ``checks``
(what cannot be sampled), ``diagnose`` (why a start is not finite), ``treatment`` (barrier or
transform). Then the sampler: ``mirror`` (exact walls), ``barrier`` (boundary terms), ``density``
(the graphs over one vector), ``report`` (what is done, as a table), ``layout``, ``drift``,
``leapfrog``, ``cache``, ``trajectory`` and ``repeat`` (the kernels), ``compiled`` (the graphs for
the kernels), ``geometry`` (the region in numbers), ``settings``, ``start``, ``warmup`` and
``chain`` (one chain), ``guard`` (the density is the model's), ``progress`` and ``step`` (PyMC's
contract), ``prior`` (a model without its likelihood).
"""

from pymc_rollback.constraints import Constraint, Region, RegionError
from pymc_rollback.prior import sample_prior
from pymc_rollback.region import constrain, read_region
from pymc_rollback.report import Description, describe
from pymc_rollback.step import RollbackHMC

__all__ = [
    "Constraint",
    "Description",
    "Region",
    "RegionError",
    "RollbackHMC",
    "constrain",
    "describe",
    "read_region",
    "sample_prior",
]
