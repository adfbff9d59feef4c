"""What a user may give, by kind. A refusal names the option, its value and what to give instead."""

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
import pymc as pm
import pytensor
from pymc.progress_bar.progress import ProgressBarOptions
from pymc.util import get_random_generator
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph.basic import Variable

from pymc_rollback.graph.text import shown

OPTIONS_OF_SAMPLE = set(inspect.signature(pm.sample).parameters) - {"model", "compile_kwargs"}


def check_options(options: Mapping[str, object], step: Callable) -> None:
    """Raise where an option is none of a step method's."""
    known = [name for name in inspect.signature(step).parameters if name != "self"]
    for name in options:
        if name in known:
            continue
        if name in OPTIONS_OF_SAMPLE:
            remedy = f"Give it to pm.sample: pm.sample({name}=..., step=RollbackHMC())."
        elif near := difflib.get_close_matches(name, known, n=1):
            remedy = f"Did you mean {near[0]}?"
        else:
            remedy = f"The options are {', '.join(known)}."
        raise TypeError(f"RollbackHMC has no option {name}={shown(options[name])}. {remedy}")


def check_variables(variables: object, model: pm.Model) -> None:
    """Raise unless variables are left out, or a list of the model's free variables."""
    if variables is None:
        return
    names = [rv.name for rv in model.free_RVs]
    if isinstance(variables, Variable):
        name = shown(variables)
        raise ValueError(f"vars={name} must be a list: RollbackHMC([{name}]).")
    if not isinstance(variables, list | tuple | set | frozenset):
        raise ValueError(
            f"vars={shown(variables)} must be a list of the model's free variables "
            f"({', '.join(names)}). Leave it out to sample all that are continuous."
        )
    if not variables:
        raise ValueError(
            f"vars={shown(variables)} has no variable in it. Leave it out to sample all of the "
            "model's continuous variables."
        )
    known = {*model.free_RVs, *model.value_vars}
    for variable in variables:
        if isinstance(variable, str):
            raise ValueError(
                f"vars has the string {variable!r} in it. Give the variable itself: "
                f"model[{variable!r}]."
            )
        if not isinstance(variable, Variable) or variable not in known:
            raise ValueError(
                f"vars has {shown(variable)} in it, which is not a free variable of this model"
                f"{_what_it_is(variable, model)}. Its free variables are {', '.join(names)}."
            )


def _what_it_is(variable: object, model: pm.Model) -> str:
    kinds = {
        "a Deterministic": model.deterministics,
        "observed": model.observed_RVs,
        "a Potential": model.potentials,
    }
    return next((f", but {kind}" for kind, those in kinds.items() if variable in those), "")


def check_list_of_names(option: str, names: object) -> None:
    """Raise unless an option is a list, tuple or set of strings."""
    if isinstance(names, str):
        raise ValueError(f"{option}={names!r} must be a list of names, such as [{names!r}].")
    if isinstance(names, Variable):
        name = shown(names)
        raise ValueError(f"{option}={name} must be a list of names, such as [{name!r}].")
    if not isinstance(names, Collection) or isinstance(names, Mapping | bytes):
        raise ValueError(
            f"{option}={shown(names)} must be a list of names of variables. Leave it out for none."
        )
    for name in names:
        if not isinstance(name, str):
            quoted = f": {name.name!r}" if isinstance(name, Variable) and name.name else ""
            raise ValueError(
                f"{option} has {shown(name)} in it, which is not a name. Give the names of "
                f"variables as strings{quoted}."
            )


def check_time(time: object, step_size: object, n_steps: object, exact: object) -> None:
    """Raise unless the time of a trajectory is a positive number that nothing else contradicts."""
    check_positive("trajectory_time", time)
    if step_size is not None and n_steps is not None:
        raise ValueError(
            f"trajectory_time={shown(time)}, step_size={shown(step_size)} and "
            f"n_steps={shown(n_steps)} are given, but the time is the step size times the number "
            "of steps. Give two of the three."
        )
    if exact is False:
        raise ValueError(
            f"trajectory_time={shown(time)} is given with exact=False, the paper's sampler, whose "
            "trajectories have step_size and n_steps. Leave trajectory_time out."
        )


def check_positive(option: str, value: object, below: float = np.inf) -> None:
    """Raise unless a value is a number between zero and a limit."""
    # NaN is not below anything
    if isinstance(value, bool) or not isinstance(value, Real) or value <= 0 or not value < below:
        limit = "" if np.isinf(below) else f" below {below:g}"
        raise ValueError(f"{option}={shown(value)} must be a positive, finite number{limit}.")


def check_whole(option: str, value: object, least: int = 1) -> None:
    """Raise unless a value is a whole number of at least one, or of at least another number."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{option}={shown(value)} must be a whole number of at least {least}.")


def check_bool(option: str, value: object) -> None:
    """Raise unless a value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{option}={value!r} must be True or False.")


def check_rng(rng: object, option: str = "rng") -> None:
    """Raise unless an option seeds a generator of random numbers."""
    try:
        if isinstance(rng, bool):
            raise TypeError("a truth value is no seed")
        get_random_generator(rng)
    except (TypeError, ValueError) as error:
        seeds = " pm.sample(random_seed=...) seeds the chains." if option == "rng" else ""
        raise ValueError(
            f"{option}={shown(rng)} must be a seed (a whole number of at least 0, or a list of "
            f"them) or a numpy.random.Generator.{seeds}"
        ) from error


def check_progressbar(progressbar: object) -> None:
    """Raise unless something says whether, or which, progress bars are shown."""
    kinds = [kind for kind in get_args(ProgressBarOptions) if isinstance(kind, str)]
    if not (isinstance(progressbar, bool) or progressbar in kinds):
        raise ValueError(
            f"progressbar={shown(progressbar)} must be True, False or one of {', '.join(kinds)}."
        )


def check_blocked(blocked: object) -> None:
    """Raise unless blocked is True or False, or left out."""
    if not (blocked is None or isinstance(blocked, bool | np.bool_)):
        raise ValueError(
            f"blocked={shown(blocked)} must be True (one trajectory of all variables) or False."
        )


def check_compile_kwargs(kwargs: object) -> None:
    """Raise unless something can be passed to PyTensor."""
    if kwargs is None:
        return
    if not isinstance(kwargs, Mapping):
        raise ValueError(
            f"compile_kwargs={shown(kwargs)} must be a dict, such as {{'mode': 'NUMBA'}}."
        )
    known = {*inspect.signature(pytensor.function).parameters, "random_seed"}
    known -= {"inputs", "outputs", "on_unused_input"}
    for name in kwargs:
        if name not in known:
            raise ValueError(
                f"compile_kwargs has {shown(name)} in it, which is none of "
                f"{', '.join(sorted(known))}."
            )
    if not _is_mode(kwargs.get("mode")):
        raise ValueError(
            f"compile_kwargs has the mode {shown(kwargs['mode'])}, which PyTensor does not know. "
            "Give one of its modes, such as {'mode': 'NUMBA'}."
        )


def _is_mode(mode: object) -> bool:
    try:
        return isinstance(get_mode(mode), Mode)
    except ValueError:
        return False


def check_point(point: object, reference: Mapping[str, np.ndarray]) -> None:
    """Raise unless something is a point of the model, with the values and shapes of another.

    Parameters
    ----------
    point
        What a user gave as a point.
    reference
        A point of the model.
    """
    remedy = "Change the values of model.initial_point(), and keep its names and shapes."
    if not isinstance(point, Mapping):
        raise ValueError(f"initial_point={shown(point)} must be a dict of values by name. {remedy}")
    for name, value in reference.items():
        if name not in point:
            raise ValueError(
                f"initial_point has no value of {name!r}, only of "
                f"{', '.join(map(shown, point)) or 'nothing'}. {remedy}"
            )
        given = _as_array(point[name])
        if given.dtype.kind not in "fiu":
            raise ValueError(
                f"initial_point has {name!r}: {shown(point[name])}, which is no number. {remedy}"
            )
        if given.shape != np.shape(value):
            raise ValueError(
                f"initial_point has {name!r} of the shape {given.shape}, and the model's value "
                f"has the shape {np.shape(value)}. {remedy}"
            )


def _as_array(value: Any) -> np.ndarray:
    """An array of what was given; of objects where that is no array."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty((), dtype=object)
