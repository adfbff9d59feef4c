"""What a graph is worth at a point, and what data it had when it was looked at."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import overload

import numpy as np
import pytensor
from pymc.logprob.utils import local_check_parameter_to_ninf_switch
from pymc.pytensorf import compile as pymc_compile
from pytensor import config
from pytensor.compile.mode import OPT_MINIMUM, Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.rewriting.basic import in2out
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.link.vm import VMLinker
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.type import TensorType

from pymc_rollback.graph.compat import COMPILES_INNER_GRAPHS

UNTOUCHED = Mode(VMLinker(use_cloop=False, c_thunks=False), OPT_MINIMUM).register(
    # which is among the rewrites that pymc_compile asks for, but only where there are others
    (in2out(local_check_parameter_to_ninf_switch), -1)
)
"""A mode that rewrites a graph no more than it must, and runs it in Python."""

MOST_OPERANDS = 31
"""Inputs of an elementwise Op that Python can run: NumPy's universal functions have 32 operands."""


def snapshot(expressions: Sequence[Variable]) -> dict[SharedVariable, np.ndarray]:
    """What the data containers in some expressions hold now."""
    shared = (v for v in graph_inputs(expressions) if isinstance(v, SharedVariable))
    return {v: v.get_value() for v in shared if isinstance(v.type, TensorType)}


def has_changed(data: Mapping[SharedVariable, np.ndarray]) -> bool:
    """Whether data containers hold something else since a snapshot."""
    return any(not np.array_equal(v.get_value(), x) for v, x in data.items())


@overload
def interpreted(
    inputs: Sequence[Variable], outputs: Sequence[Variable], mode: Mode | str | None = ...
) -> Callable[..., list[np.ndarray]]: ...


@overload
def interpreted(
    inputs: Sequence[Variable], outputs: Variable, mode: Mode | str | None = ...
) -> Callable[..., np.ndarray]: ...


def interpreted(
    inputs: Sequence[Variable],
    outputs: Variable | Sequence[Variable],
    mode: Mode | str | None = "FAST_COMPILE",
) -> Callable[..., np.ndarray | list[np.ndarray]]:
    """A function that is called rarely: quick to compile rather than to run.

    In PyTensor's default mode (None) it is quick to run rather than to compile. Where a parameter
    of a distribution is invalid, its log density is ``-inf``, as PyMC has it.
    """
    with _without_compiler() if mode is not None else nullcontext():
        function = pymc_compile(inputs, outputs, mode=mode, on_unused_input="ignore")
    elementwise = (n for n in function.maker.fgraph.apply_nodes if isinstance(n.op, Elemwise))
    too_wide = any(len(node.inputs) > MOST_OPERANDS for node in elementwise)
    return interpreted(inputs, outputs, mode=None) if too_wide and mode is not None else function


def repeated(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Callable[..., list]:
    """A function that is called for each of many draws.

    Quick to compile, except where there is a loop in it: that takes seconds to compile, but Python
    would take milliseconds for each draw.
    """
    nodes = (v.owner for v in ancestors(outputs) if v.owner is not None)
    loops = any(isinstance(node.op, Scan) for node in nodes)
    return interpreted(inputs, outputs, mode=None if loops else "FAST_COMPILE")


def values_at(
    point: Mapping[str, np.ndarray], inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> list[np.ndarray]:
    """Values of graphs at a point, which has the values of all inputs by their names.

    A point may lie anywhere: an overflow there is an answer, not an accident.
    """
    with np.errstate(all="ignore"):
        return interpreted(inputs, outputs)(*(point[v.name] for v in inputs))


def _without_compiler() -> AbstractContextManager:
    """Leave the graphs inside of a graph, as of a scan or a softmax, to Python, too.

    Whatever the mode, PyTensor 3 compiles them to C, node by node, where there is a compiler.
    PyTensor 2 rewrites them as well, and so looks for libraries, which takes the compiler.
    """
    if not COMPILES_INNER_GRAPHS:
        return nullcontext()
    _load_c_code()
    return config.change_flags(cxx="")


@cache
def _load_c_code() -> None:
    """Have PyTensor load its own C code: it tries only once, and not without a compiler."""
    pytensor.function([], [], mode=UNTOUCHED)
