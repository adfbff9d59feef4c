"""What is private in PyMC and PyTensor, or differs between versions of them.

No other module imports a private name of theirs or asks which version is installed. What PyMC calls
by a private name, or under two names, as ``setup_chain`` and ``set_rng``, is in ``step``.
"""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import xarray as xr
from pymc.backends import arviz
from pymc.backends.base import MultiTrace
from pymc.backends.ndarray import NDArray

# private: a distribution's own transform, also where the model has none for the variable
from pymc.distributions.transforms import _default_transform as default_transform
from pytensor.compile import Function
from pytensor.graph.basic import Apply, Variable

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

try:
    from pytensor.conditional import IfElse
except ImportError:  # PyTensor 2 has it elsewhere, and PyTensor 3 warns of that place
    from pytensor.ifelse import IfElse

__all__ = [
    "COMPILES_INNER_GRAPHS",
    "IfElse",
    "datasets",
    "default_transform",
    "from_datasets",
    "jitted",
    "joined",
    "make_trace",
    "make_traces",
    "nothing_sampled",
]

COMPILES_INNER_GRAPHS = find_spec("pytensor.compile.inner_function") is not None
"""Whether the graph inside of a scan or a softmax is compiled on its own (PyTensor 3)."""


def jitted(function: Function) -> "Dispatcher":
    """Numba's function in one of PyTensor's that was compiled in the mode NUMBA: an internal."""
    return function.vm.jit_fn


def joined(node: Apply) -> list[Variable]:
    """Parts of a Join, whose axis is its first input in PyTensor 2, and no input in PyTensor 3."""
    return node.inputs if hasattr(node.op, "axis") else node.inputs[1:]


def datasets(draws: Any) -> dict[str, Any]:
    """Datasets of sampled draws by the name of their group."""
    if _is_tree(draws):
        return {name: group.to_dataset() for name, group in draws.children.items()}
    return {name: draws[name] for name in draws.groups()}


def from_datasets(groups: dict[str, Any], like: Any) -> Any:
    """Draws of the kind that others are, made of datasets by the name of their group."""
    return type(like).from_dict(groups) if _is_tree(like) else type(like)(**groups)


def nothing_sampled() -> Any:
    """Draws without a group, of the kind that the installed PyMC returns."""
    return getattr(arviz, "InferenceData", xr.DataTree)()


def make_trace(
    model: pm.Model,
    chain: int,
    vars: Sequence[Variable],
    samples: Sequence[np.ndarray],
    stats: Mapping[str, np.ndarray],
) -> NDArray:
    """PyMC's trace of a chain, made of arrays instead of draw by draw, and without copies.

    Parameters
    ----------
    model, chain
        The model, and the number of the chain.
    vars, samples
        What is stored, and its draws.
    stats
        Statistics of the draws by name.
    """
    names = [v.name for v in vars]
    shapes = {name: x.shape[1:] for name, x in zip(names, samples, strict=True)}
    types = {name: x.dtype for name, x in zip(names, samples, strict=True)}
    trace = NDArray(model=model, vars=list(vars), fn=(), var_shapes=shapes, var_dtypes=types)
    trace.setup(0, chain, [{name: x.dtype for name, x in stats.items()}])
    trace.samples, trace._stats = dict(zip(names, samples, strict=True)), [dict(stats)]
    trace.draws = trace.draw_idx = len(next(iter(stats.values())))
    return trace


def make_traces(traces: Sequence[NDArray], tune: int, draws: int, seconds: float) -> MultiTrace:
    """PyMC's trace of several chains, with what it says of the sampling.

    Parameters
    ----------
    traces
        The chains.
    tune, draws
        Number of draws of the warm-up, and after it.
    seconds
        How long sampling took.
    """
    several = MultiTrace(traces)
    report = several.report
    report._n_tune, report._n_draws, report._t_sampling = tune, draws, seconds
    return several


def _is_tree(draws: Any) -> bool:
    """Whether draws are a DataTree (PyMC 6), not an InferenceData (PyMC 5)."""
    return hasattr(draws, "children")
