"""Compile a density: two functions for the kernels, two for PyMC.

PyTensor's Numba mode gives a jitted function of a graph, and caches it. The kernels, which are
compiled once for all models, call it by its address. Where Numba cannot compile a graph, the
kernels call back into Python.
"""

import ctypes
import inspect
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import NumbaPerformanceWarning, njit, types
from numba.core.dispatcher import Dispatcher
from pymc.pytensorf import compile as pymc_compile
from pytensor import config
from pytensor.compile import Function
from pytensor.compile.mode import get_mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.replace import clone_replace
from pytensor.link.numba.linker import NumbaLinker
from pytensor.tensor import constant
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.compat import jitted
from pymc_rollback.graph.evaluate import snapshot
from pymc_rollback.graph.products import AFTER_ALGEBRA, multiply_by_vectors
from pymc_rollback.kernels.native import MODEL, VECTOR, WALLS, address_of
from pymc_rollback.target.density import Density

LIBRARIES = {"pymc_rollback", "pymc", "pytensor", "numba", "llvmlite", "numpy", "scipy"}
LIBRARIES |= {"", *sys.stdlib_module_names}
"""Packages whose code runs while a model is compiled."""


class Interrupt:
    """Keeps an exception that a callback raised, and raises it when the kernel has returned.

    A kernel is called ``with`` it. A signal that arrives in compiled code is handled as a callback
    is entered, before its first statement, so that no clause there can catch it: ctypes hands it
    to ``sys.unraisablehook``. Signals are handled in the main thread only.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        self._hook = sys.unraisablehook
        if threading.current_thread() is threading.main_thread():
            sys.unraisablehook = self._keep

    def __exit__(self, *raised: object) -> None:
        if threading.current_thread() is threading.main_thread():
            sys.unraisablehook = self._hook
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    def _keep(self, unraisable: "sys.UnraisableHookArgs") -> None:
        if "ctypes callback" in (unraisable.err_msg or ""):
            self.error = unraisable.exc_value
        else:
            self._hook(unraisable)


@dataclass(frozen=True)
class Compiled:
    """Compiled functions of a density.

    Attributes
    ----------
    model, walls
        Functions for the kernels; None where there are no walls.
    enter, leave
        From the model's values to coordinates and bounds; and from coordinates to the model's
        values, and the model's log density less the one that is sampled.
    interrupt
        Where an exception of a callback waits.
    data
        The values of data containers that were compiled in.
    calls_back
        Whether the kernels call back into Python.
    """

    model: Dispatcher
    walls: Dispatcher | None
    enter: Callable
    leave: Callable
    interrupt: Interrupt
    data: Mapping[SharedVariable, np.ndarray]
    calls_back: bool

    @cached_property
    def addresses(self) -> tuple[int, int]:
        """Addresses of the functions of model and walls; zero where there are no walls."""
        walls = 0 if self.walls is None else address_of(self.walls, WALLS)
        return address_of(self.model, MODEL), walls


class CannotCompileError(Exception):
    """A graph that Numba cannot compile, or would run in Python; says why."""


def compile_density(density: Density, compile_kwargs: Mapping[str, Any] | None = None) -> Compiled:
    """Compile the functions of a density.

    Parameters
    ----------
    density
        The density.
    compile_kwargs
        Passed to PyTensor; a ``mode`` other than Numba's makes the kernels call back into Python.
    """
    kwargs = dict(compile_kwargs or {})
    interrupt = Interrupt()
    values = [density.coordinates, density.others]
    graphs = [(values, [density.log_density()])]
    if density.plan.has_walls:
        graphs.append(([*values, density.sharpness], [density.walls()]))
    data = snapshot([output for _, outputs in graphs for output in outputs])
    # fast math rounds differently in fresh and in cached code: the same seed, other draws
    with density.model, config.change_flags(numba__fastmath=False):
        try:
            _require_numba(kwargs)
            functions = [_jit(*graph, data, kwargs) for graph in graphs]
            calls_back = False
        except CannotCompileError as error:
            warnings.warn(
                f"The kernels call back into Python, which is slower: {error}", stacklevel=3
            )
            kwargs = kwargs if _names_another_mode(kwargs) else {**kwargs, "mode": "CVM"}
            calls_back = True
            callbacks = (_callback_model, _callback_walls)
            levels = (1, 3 + density.barrier_rows)
            functions = [
                callback(_compile(*graph, kwargs), interrupt, beyond)
                for callback, graph, beyond in zip(callbacks, graphs, levels, strict=False)
            ]
        enter = _compile(density.model.value_vars, density.enter(), kwargs)
        leave = _compile(values, density.leave(), kwargs)
    walls = functions[1] if density.plan.has_walls else None
    return Compiled(functions[0], walls, enter, leave, interrupt, data, calls_back)


def _compile(
    inputs: list[TensorVariable], outputs: list[TensorVariable], kwargs: Mapping[str, Any]
) -> Function:
    function = pymc_compile(inputs, outputs, on_unused_input="ignore", **kwargs)
    function.trust_input = True
    return function


def _names_another_mode(kwargs: Mapping[str, Any]) -> bool:
    mode = kwargs.get("mode")
    return mode is not None and not isinstance(get_mode(mode).linker, NumbaLinker)


def _require_numba(kwargs: Mapping[str, Any]) -> None:
    if _names_another_mode(kwargs):
        raise CannotCompileError(f"compile_kwargs asks for the mode {kwargs['mode']!r}, not NUMBA")


def _jit(
    inputs: list[TensorVariable],
    outputs: list[TensorVariable],
    data: Mapping[SharedVariable, np.ndarray],
    kwargs: Mapping[str, Any],
) -> Dispatcher:
    """First-class function of a graph, with its data containers as constants."""
    outputs = clone_replace(outputs, {v: constant(x) for v, x in data.items()})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mode = get_mode("NUMBA").register((multiply_by_vectors, AFTER_ALGEBRA))
            compiled = _compile(inputs, outputs, {**kwargs, "mode": mode})
            function = _with_one_argument(jitted(compiled), len(inputs))
        # whatever Numba or PyTensor cannot do, the callbacks can
        except Exception as error:
            if _is_of_the_user(error):
                raise
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise CannotCompileError(f"Numba cannot compile the model ({first})") from error
    for warning in caught:
        if issubclass(warning.category, NumbaPerformanceWarning):
            continue  # on how PyTensor writes its code
        if "object mode" in str(warning.message):
            raise CannotCompileError(str(warning.message).splitlines()[0])
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return function


def _is_of_the_user(error: Exception) -> bool:
    """Whether an error arose in code outside the libraries that compile: a user's own Op, say.

    With a NotImplementedError such code says that it has nothing for Numba.
    """
    if isinstance(error, NotImplementedError):
        return False
    modules = (
        frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)
    )
    return not {module.partition(".")[0] for module in modules} <= LIBRARIES


def _with_one_argument(function: Dispatcher, count: int) -> Dispatcher:
    """Compile a function for all its inputs as one tuple.

    Functions that PyTensor can cache take a tuple already; all others take their inputs one by one.
    """
    if not function.py_func.__code__.co_flags & inspect.CO_VARARGS:
        separate = function

        @njit
        def function(*inputs):  # noqa: ANN002, ANN202
            return separate(*inputs)

    function.compile((types.StarArgUniTuple(VECTOR, count),))
    return function


def _call_back(function: Callable, interrupt: Interrupt, count: int) -> Callable:
    """C function of the addresses and sizes of so many arrays, then of the answer's, of a function.

    Where the function, or one before it, has failed, the answer is left as it was: its log density
    or energy is NaN, which ends the trajectory, and the step raises what was kept.
    """

    def evaluate(*places: int) -> None:
        if interrupt.error is not None:
            return
        try:
            *inputs, answer = map(_view, places[::2], places[1::2])
            [answer[:]] = function(*inputs)
        # ctypes would print it and go on
        except BaseException as error:
            interrupt.error = error

    places = [ctypes.c_void_p, ctypes.c_ssize_t] * (count + 1)
    return ctypes.CFUNCTYPE(None, *places)(evaluate)


def _view(address: int, size: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_double * size).from_address(address))


def _callback_model(function: Callable, interrupt: Interrupt, levels: int) -> Dispatcher:
    callback = _call_back(function, interrupt, count=2)

    # nothing takes it as a C function, and each wrapper takes as long to compile as what it wraps
    @njit(no_cfunc_wrapper=True)
    def model(*inputs):  # noqa: ANN002, ANN202
        position, others = inputs
        answer = np.empty(position.size + levels)
        answer[position.size] = np.nan
        callback(
            position.ctypes.data,
            position.size,
            others.ctypes.data,
            others.size,
            answer.ctypes.data,
            answer.size,
        )
        return (answer,)

    model.compile((types.StarArgUniTuple(VECTOR, 2),))
    return model


def _callback_walls(function: Callable, interrupt: Interrupt, levels: int) -> Dispatcher:
    callback = _call_back(function, interrupt, count=3)

    # nor does Python call the walls
    @njit(no_cfunc_wrapper=True, no_cpython_wrapper=True)
    def walls(*inputs):  # noqa: ANN002, ANN202
        position, others, sharpness = inputs
        answer = np.empty(position.size + levels)
        answer[position.size] = np.nan
        callback(
            position.ctypes.data,
            position.size,
            others.ctypes.data,
            others.size,
            sharpness.ctypes.data,
            sharpness.size,
            answer.ctypes.data,
            answer.size,
        )
        return (answer,)

    walls.compile((types.StarArgUniTuple(VECTOR, 3),))
    return walls
