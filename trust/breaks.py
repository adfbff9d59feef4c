"""Wrong samplers: each is the package with one small mistake, which a test must see.

A mistake in a kernel is a change of its source: a copy of the kernels is made with it, compiled,
and judged by the row of :mod:`trust.onestep` that should see it. A mistake in what a kernel is
called with is a change of the system. Mistakes in the code around the kernels are controls of the
tests that are named with them.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pymc_rollback import kernels
from pymc_rollback.kernels.state import CENTRE, INVERSE_MASS, PULL, System
from trust.onestep import Case, Kernels, Verdict, judge, make_case
from trust.targets import TARGETS

COPIED = ("maps", "metric", "contacts", "rotation", "drift", "leapfrog", "trajectory")
"""Modules that are compiled into a trajectory, but for those whose types both have to share."""

SMALLEST = 0.01
"""Shift that the rows that judge breaks are run for, in standard deviations."""


@dataclass(frozen=True)
class Break:
    """A mistake, and the row that should see it.

    Attributes
    ----------
    name
        What is wrong.
    case
        The row.
    module, right, wrong
        A module of the kernels, and what is written in it instead of what.
    system
        A change of the system.
    """

    name: str
    case: Case
    module: str = ""
    right: str = ""
    wrong: str = ""
    system: Callable[[System], System] | None = None


def changed(row: int, values: np.ndarray) -> Callable[[System], System]:
    """A system with other numbers for the coordinates."""

    def change(system: System) -> System:
        coordinates = system.coordinates.copy()
        coordinates[row] = values
        return system._replace(coordinates=coordinates)

    return change


BREAKS = [
    Break(
        "seams at the top only",
        make_case("lower", "doubling", 2, 0.3),
        "trajectory",
        "if _joins_turn(first, lasts[k], right_first, state, forward):",
        "if has_turned(first, state, forward):",
    ),
    Break(
        "seams of the subtrees only",
        make_case("lower", "doubling", 2, 0.3),
        "trajectory",
        "if _joins_turn(far, old_seam, new_seam, state, forward):",
        "if has_turned(far, state, forward):",
    ),
    Break(
        "U-turns judged on the new half only",
        make_case("lower", "doubling", 3, 0.3),
        "trajectory",
        "if _joins_turn(far, old_seam, new_seam, state, forward):",
        "if has_turned(old_seam, state, forward):",
    ),
    Break(
        "a divergence judged from the start only",
        make_case("cliff", "doubling", 2, 1.0),
        "trajectory",
        "base = reference if reference - lowest > FAR_START else lowest",
        "base = reference",
    ),
    Break(
        "the draw keeps the slope of the start",
        make_case("lower", "repeated", 2, 0.3),
        "trajectory",
        "    for k in range(2):\n        for i in range(point.shape[1]):",
        "    for k in range(1):\n        for i in range(point.shape[1]):",
    ),
    Break(
        "a window that only goes forward",
        make_case("lower", "window", 2, 1.9),
        "trajectory",
        "forward = rng.integers(0, n_steps + 1)",
        "forward = n_steps",
    ),
    Break(
        "an end point accepted without its momentum",
        make_case("smoothed", "end point", 2, 0.3),
        "trajectory",
        "np.exp(initial - chosen) and not given_up",
        "np.exp(state[1, -3] - point[1, -3]) and not given_up",
    ),
    Break(
        "selection by smoothed weights",
        make_case("barrier", "doubling", 2, 0.3),
        "leapfrog",
        "energy - state[PUSH, LOG_WEIGHT]",
        "energy + state[PUSH, WALL_ENERGY]",
    ),
    Break(
        "a last half kick left out",
        make_case("lower", "doubling", 2, 0.3),
        "leapfrog",
        "    evaluate_model(model, system, state)\n"
        "    kick(state, system, 0.5 * step_size, 0.5 * short)",
        "    evaluate_model(model, system, state)",
    ),
    Break(
        "momenta of the inverse mass",
        make_case("lower", "window", 2, 0.3),
        "metric",
        "z / np.sqrt(fixed[INVERSE_MASS, j])",
        "z * np.sqrt(fixed[INVERSE_MASS, j])",
    ),
    Break(
        "a bounce that forgets the sign",
        make_case("lower", "doubling", 2, 0.3),
        "drift",
        "return (2 * lower - position, -velocity, 1, 0) if outside",
        "return (2 * lower - position, velocity, 1, 0) if outside",
    ),
    Break(
        "a reflection in the wrong metric",
        make_case("planes", "window", 2, 0.3),
        "drift",
        "state[MOMENTUM, i] -= forward * twice * turns[plane, n + m + i]",
        "state[MOMENTUM, i] -= forward * twice * turns[plane, i]",
    ),
    Break(
        "contacts taken in the wrong order",
        make_case("planes with bounds", "window", 5, 1.0),
        "drift",
        "if meets < until and fixed[PLANAR, i] > 0:",
        "if meets < until and fixed[PLANAR, i] > 0 and plane < 0:",
    ),
    Break(
        "a fall that forgets half of the height",
        make_case("pull to lower", "doubling", 2, 0.3),
        "drift",
        "launch = np.sqrt(velocity**2 + 2 * gravity * (position - lower))",
        "launch = np.sqrt(velocity**2 + gravity * (position - lower))",
    ),
    Break(
        "neighbours that exchange places without their momenta",
        make_case("order", "doubling", 2, 0.3),
        "drift",
        "        state[MOMENTUM, j] = p\n",
        "",
    ),
    Break(
        "a rotation that forgets its spring",
        make_case("none, turning", "end point", 2, 1.0),
        "rotation",
        "state[SPRING, i] = spring * cos + frequency * p * sin",
        "state[SPRING, i] = spring * cos",
    ),
    Break(
        "a swing that forgets where the upper wall is",
        make_case("two-sided, turning", "end point", 2, 0.3),
        "rotation",
        "phase = angle - high if angle > 0",
        "phase = angle if angle > 0",
    ),
    Break(
        "a reflection that forgets the spring",
        make_case("planes, turning", "end point", 2, 1.0),
        "rotation",
        "            state[SPRING, i] += frequency * change * sin\n",
        "",
    ),
    Break(
        "contacts of a rotation in the wrong order",
        make_case("planes with bounds, turning", "end point", 5, 1.0),
        "rotation",
        "if angle < until:",
        "if angle < until and which < 0:",
    ),
    Break(
        "neighbours that exchange places without their springs",
        make_case("order, turning", "end point", 5, 1.0),
        "drift",
        "        state[SPRING, j] = spring\n",
        "",
    ),
    Break(
        "a map without the logarithm of its slope",
        make_case("log", "doubling", 2, 0.3),
        "maps",
        "        state[SLOPE, LOG_DENSITY] += log\n",
        "",
    ),
    Break(
        "a logit with half of a tail",
        make_case("logit", "end point", 2, 1.0),
        "maps",
        "log = np.log(width) - abs(q) + 2.0 * np.log(far)",
        "log = np.log(width) - abs(q) + np.log(far)",
    ),
    Break(
        "walls that see coordinates for values",
        make_case("log within a barrier", "window", 2, 0.3),
        "leapfrog",
        "        answer = walls((_find_values(system, state), system.others, system.sharpness))[0]",
        "        here = state[POSITION, : system.coordinates.shape[1]]\n"
        "        answer = walls((here, system.others, system.sharpness))[0]",
    ),
    Break(
        "a repeat count that looks at the present draw",
        make_case("lower", "repeated", 2, 0.3),
        "run",
        "            combine(outcomes[k], outcome, repeats)",
        "            combine(outcomes[k], outcome, repeats)\n"
        "            if point[0, 0] > 1.0:\n"
        "                break",
    ),
    Break(
        "pulls that differ within a run",
        make_case("order with bounds", "doubling", 2, 0.3),
        system=changed(PULL, np.array([3.0, 1.0])),
    ),
    Break(
        "centres that differ within a run",
        make_case("order, turning", "end point", 2, 1.0),
        system=changed(CENTRE, np.array([-1.0, 1.0])),
    ),
    Break(
        "masses that differ within a run",
        make_case("order", "doubling", 2, 0.3),
        system=changed(INVERSE_MASS, np.array([0.3, 2.0])),
    ),
]
"""Mistakes in kernels and in what they are called with."""

AROUND = {
    "an image that is not drawn afresh": "tests/exactness/test_stationarity.py",
    "weights that are not normalised": "tests/exactness/test_stationarity.py",
    "smoothed draws taken for exact ones": "tests/exactness/test_stationarity.py",
    "draws ahead handed out twice": "tests/exactness/test_frozen.py",
    "a step size that goes on adapting": "tests/exactness/test_frozen.py",
}
"""Mistakes around the kernels, and the tests that have them as controls."""


@cache
def broken_kernels(module: str, right: str, wrong: str) -> Kernels:
    """The kernels with a mistake in one: a copy of it and of those that it is compiled with.

    What repeats trajectories calls them by their addresses, so that neither is part of the other.
    """
    copied = ("run",) if module == "run" else COPIED
    source = Path(kernels.__path__[0])
    folder = Path(tempfile.mkdtemp(prefix="broken"))
    package = folder / folder.name
    package.mkdir()
    for name in copied:
        text = (source / f"{name}.py").read_text()
        if name == module:
            if text.count(right) != 1:
                raise ValueError(f"{module}.py has {text.count(right)} times, not once: {right}")
            text = text.replace(right, wrong)
        for other in copied:
            text = text.replace(f"pymc_rollback.kernels.{other}", f"{folder.name}.{other}")
        (package / f"{name}.py").write_text(text)
    sys.path.insert(0, str(folder))
    try:
        if module == "run":
            return Kernels(repeat=importlib.import_module(f"{folder.name}.run"))
        return Kernels(trajectory=importlib.import_module(f"{folder.name}.trajectory"))
    finally:
        sys.path.remove(str(folder))


def judge_named(name: str) -> Verdict:
    """What the row that should see a mistake says about it, for processes that share names only."""
    return judge_break(next(mistake for mistake in BREAKS if mistake.name == name))


def judge_break(mistake: Break) -> Verdict:
    """What the row that should see a mistake says about it."""
    given = {}
    if mistake.system is not None:
        case = mistake.case
        given["system"] = mistake.system(TARGETS[case.target].system(case.n, case.dense))
    if mistake.module:
        given["kernels"] = broken_kernels(mistake.module, mistake.right, mistake.wrong)
    return judge(mistake.case, SMALLEST, **given)
