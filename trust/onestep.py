"""Exact draws, one transition each: whatever has changed on average is a bias.

A sampler that leaves its target as it is changes no mean. Each row starts a kernel at independent
exact draws, and looks at the change of several functions of the draw, each paired with itself: its
mean over its standard error is ``z``. Kernels are called from compiled code, by their addresses.

The test has two stages. A row with a ``|z|`` above :data:`SUSPECT` is run again from another seed
with four times the draws, and is wrong if ``|z|`` exceeds :data:`WRONG` then. A right row is called
wrong with a probability of at most 8 × 4.7e-4 × 5.7e-7 (its functions, and the two normal tails),
so one of 1000 rows with 2e-6. A shift of :data:`SUSPECT` standard errors is seen in half of all
cases; that is the *smallest shift seen* of a row, the largest over its functions, in standard
deviations of the function.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numba import njit, types

from pymc_rollback.kernels import run as repeat
from pymc_rollback.kernels import trajectory
from pymc_rollback.kernels.drift import reflect
from pymc_rollback.kernels.maps import find_coordinate, find_value, map_slope
from pymc_rollback.kernels.native import (
    MATRICES,
    MATRIX,
    MODEL,
    WALLS,
    address_of,
    address_of_generator,
    function_at,
    generator_at,
    model_at,
    walls_at,
)
from pymc_rollback.kernels.state import POSITION, SLOPE, SYSTEM, System
from pymc_rollback.kernels.stats import STEPS, Outcome
from pymc_rollback.kernels.trajectory import ADDRESS
from trust.targets import DRAW, TARGETS, when_needed

SUSPECT, WRONG = 3.5, 5.0
"""Standard errors at which a row is looked at again, and at which it is wrong."""

VIEWS = ("mean", "square", "near a wall", "product", "first", "last", "least", "greatest")
"""Functions of a draw: means over coordinates, over neighbours, and single coordinates."""

NEAR = 0.1
"""Distance from a bound or plane up to which a draw is near it."""

PILOT = 4000
"""Transitions from which the number of draws of a row is found."""

draw_at = function_at(DRAW)
repeat_at = function_at(types.FunctionType(repeat.REPEATED))


class Case(NamedTuple):
    """A kernel on a target.

    Attributes
    ----------
    target, kernel
        Names; see :data:`TARGETS` and :data:`KERNELS`.
    n
        Dimension.
    step_size
        Step size.
    dense
        Whether the metric is dense.
    length
        Number of steps, or of doublings.
    repeats
        Trajectories of a transition.
    """

    target: str
    kernel: str
    n: int
    step_size: float
    dense: bool
    length: int
    repeats: int

    @property
    def text(self) -> str:
        """The case in a line."""
        depth = f", depth {self.length}" if self.length < 4 and self.kernel == "doubling" else ""
        metric = ", dense" if self.dense else ""
        return f"{self.target}, {self.kernel}{depth}, n = {self.n}, ε = {self.step_size}{metric}"


class Verdict(NamedTuple):
    """What a case gave.

    Attributes
    ----------
    case
        The case.
    draws
        Number of transitions.
    view, z, shift
        The function of which the change is farthest from zero, in standard errors and in standard
        deviations of the function.
    seen
        The smallest shift that would have been seen in each function.
    outside
        Number of draws outside the region.
    wrong
        Whether the kernel is biased.
    """

    case: Case
    draws: int
    view: str
    z: float
    shift: float
    seen: float
    outside: int
    wrong: bool


KERNELS = {
    "doubling": ("doubling_trajectory", 10, 1),
    "window": ("window_trajectory", 5, 1),
    "repeated": ("doubling_trajectory", 10, 3),
    "end point": ("endpoint_trajectory", 5, 1),
}
"""Function, length of a trajectory, and trajectories of a transition."""


@njit
def look(position, bounds, planes, values):
    """Functions of a draw, of which an image is folded first; its smallest slack."""
    n, m = bounds.shape[1], planes.shape[1]
    x = np.empty(n)
    near, least = 0, np.inf
    for i in range(n):
        lower = x[0] if np.isnan(bounds[0, i]) else bounds[0, i]
        x[i] = reflect(position[i], 0.0, lower, bounds[1, i])[0]
        slack = min(x[i] - lower, bounds[1, i] - x[i])
        near, least = near + (slack < NEAR), min(least, slack)
    for j in range(m):
        slack = planes[n, j] + np.sum(planes[:n, j] * x)
        near, least = near + (slack < NEAR), min(least, slack)
    values[0], values[1], values[2] = np.mean(x), np.mean(x * x), near / (n + m)
    values[3] = np.sum(x[1:] * x[:-1]) / max(n - 1, 1)
    values[4], values[5], values[6], values[7] = x[0], x[-1], np.min(x), np.max(x)
    return least


@njit
def is_outside(least, x, walls_address, system):
    """Whether a draw has left its bounds or planes, its order, or the region of its walls."""
    n = system.coordinates.shape[1]
    outside = not (least > 0)
    if system.ordered.shape[0] > 0:
        for i in range(1, n):
            outside |= x[i] < x[i - 1]
    if system.inner > 0:
        walls = walls_at(walls_address)
        answer = walls((x, system.others, system.sharpness))[0]
        outside |= answer[n + 1] == -np.inf
    return outside


@when_needed(
    njit(
        types.void(
            *[ADDRESS] * 5,
            SYSTEM,
            types.float64,
            types.int64,
            types.int64,
            ADDRESS,
            types.int64,
            MATRIX,
            MATRICES,
            MATRIX,
            MATRIX,
            MATRIX,
        )
    )
)
def make_transitions(
    repeat_address,
    trajectory_address,
    model_address,
    walls_address,
    draw_address,
    system,
    step_size,
    length,
    repeats,
    rng_address,
    count,
    bounds,
    points,
    outcomes,
    counts,
    sums,
):
    """Add to the sums of changes, of values, and of the squares of both.

    The last row counts leapfrog steps, and draws outside the region.
    """
    repeat_trajectory, model = repeat_at(repeat_address), model_at(model_address)
    draw, rng = draw_at(draw_address), generator_at(rng_address)
    n = bounds.shape[1]
    point, lasts = points[0].copy(), points.copy()
    x, before, after = np.empty(n), np.empty(len(VIEWS)), np.empty(len(VIEWS))
    for _ in range(count):
        draw(rng, x)
        answer = model((x, system.others))[0]
        point[POSITION, :n] = x
        point[SLOPE, : n + 1] = answer
        for i in range(system.maps.shape[1]):
            point[POSITION, i] = find_coordinate(system.maps, i, x[i])
        map_slope(system.maps, point)
        look(x, bounds, system.planes, before)
        repeat_trajectory(
            trajectory_address,
            model_address,
            walls_address,
            system,
            point,
            step_size,
            length,
            0.0,
            0,
            0,
            rng_address,
            repeats,
            points,
            lasts,
            outcomes,
            counts,
        )
        x[:] = point[POSITION, :n]
        for i in range(system.maps.shape[1]):
            x[i] = find_value(system.maps, i, x[i])[0]
        least = look(x, bounds, system.planes, after)
        sums[4, 1] += is_outside(least, x, walls_address, system)
        for j in range(len(VIEWS)):
            change = after[j] - before[j]
            sums[0, j] += change
            sums[1, j] += change * change
            sums[2, j] += before[j]
            sums[3, j] += before[j] * before[j]
        sums[4, 0] += outcomes[0, STEPS]


class Kernels(NamedTuple):
    """The modules of the kernels: the package's, or a broken copy of them."""

    repeat: object = repeat
    trajectory: object = trajectory


PACKAGE = Kernels()


@cache
def addresses(kernels: Kernels, name: str) -> tuple[int, int]:
    """Of the kernel that repeats trajectories, and of a trajectory."""
    repeated = kernels.repeat.ready(kernels.repeat.repeat_trajectory)
    function = address_of(repeated, types.FunctionType(repeat.REPEATED))
    return function, kernels.repeat.address_of_trajectory(getattr(kernels.trajectory, name))


def run(
    case: Case,
    count: int,
    seed: int,
    kernels: Kernels = PACKAGE,
    system: System | None = None,
) -> np.ndarray:
    """Sums over so many transitions; see :func:`make_transitions`."""
    target = TARGETS[case.target]
    name = KERNELS[case.kernel][0]
    points, sums = np.zeros((1, 2, case.n + 3)), np.zeros((5, len(VIEWS)))
    rng = np.random.default_rng([seed, *map(ord, case.text)])
    system = target.system(case.n, case.dense) if system is None else system
    make_transitions()(
        *addresses(kernels, name),
        address_of(target.model(), MODEL),
        0 if target.walls is None else address_of(target.walls(), WALLS),
        address_of(target.draw(), DRAW),
        system,
        case.step_size,
        case.length,
        case.repeats,
        address_of_generator(rng),
        count,
        target.bounds(case.n),
        points,
        np.empty((1, len(Outcome._fields))),
        np.empty((1, 1 + system.met.size)),
        sums,
    )
    return sums


class Shifts(NamedTuple):
    """Mean changes of the functions over their standard errors and over their deviations."""

    z: np.ndarray
    shift: np.ndarray
    error: np.ndarray


def shifts(sums: np.ndarray, count: int, n: int) -> Shifts:
    """What sums over transitions say about each function; zero for one that cannot change."""
    change, squares, value, value_squares, _ = sums / count
    error = np.sqrt(np.maximum(squares - change**2, 0.0) / count)
    spread = np.sqrt(np.maximum(value_squares - value**2, 0.0))
    moves = (error > 0) & (spread > 0)
    # of one coordinate all single ones are the same, and there are no neighbours
    moves &= np.arange(len(VIEWS)) < (3 if n == 1 else len(VIEWS))
    error, spread = np.where(moves, error, 1.0), np.where(moves, spread, 1.0)
    return Shifts(
        *(np.where(moves, x, 0.0) for x in (change / error, change / spread, error / spread))
    )


def judge(
    case: Case, smallest: float, most_steps: float = np.inf, seed: int = 1, **given
) -> Verdict:
    """Run a case with as many transitions as show a shift, or as its steps allow.

    Parameters
    ----------
    case
        A kernel on a target.
    smallest
        Shift, in standard deviations, that is to be seen in every function.
    most_steps
        Leapfrog steps that it may take.
    seed
        Seed of the first stage; the second has the next one.
    given
        Passed to :func:`run`.
    """
    pilot = run(case, PILOT, seed=0, **given)
    error = np.max(shifts(pilot, PILOT, case.n).error)
    wanted = PILOT * (SUSPECT * error / smallest) ** 2
    count = int(max(PILOT, min(wanted, most_steps * PILOT / pilot[4, 0])))
    return judge_count(case, count, seed, **given)


def judge_count(case: Case, count: int, seed: int = 1, **given) -> Verdict:
    """Run a case with so many transitions, and again with four times as many in doubt."""
    sums = run(case, count, seed, **given)
    found = shifts(sums, count, case.n)
    wrong = False
    if np.max(np.abs(found.z)) > SUSPECT:
        count *= 4
        sums = run(case, count, seed + 1, **given)
        found = shifts(sums, count, case.n)
        wrong = bool(np.max(np.abs(found.z)) > WRONG)
    worst = int(np.argmax(np.abs(found.z)))
    return Verdict(
        case=case,
        draws=count,
        view=VIEWS[worst],
        z=float(found.z[worst]),
        shift=float(found.shift[worst]),
        seen=SUSPECT * float(np.max(found.error)),
        outside=int(sums[4, 1]),
        wrong=wrong,
    )


def make_case(target, kernel, n, step_size, dense=False, length=None) -> Case:
    _, usual, repeats = KERNELS[kernel]
    return Case(target, kernel, n, step_size, dense, length or usual, repeats)


DIMENSIONS = (1, 2, 3, 5, 20)
STEP_SIZES = (0.05, 0.1, 0.3, 1.0, 1.9)


def allowed(case: Case) -> bool:
    target = TARGETS[case.target]
    suits = case.kernel == "end point" or not (target.smooth or target.frequency)
    return suits and case.n >= target.least and (target.dense or not case.dense)


def all_cases() -> list[Case]:
    """Kernels × walls × dimensions × step sizes × metrics, and trajectories that end early."""
    grid = product(TARGETS, KERNELS, DIMENSIONS, STEP_SIZES, (False, True))
    cases = [make_case(*row) for row in grid]
    cases += [
        make_case(target, "doubling", 2, 0.3, length=length)
        for target in TARGETS
        for length in (1, 2, 3)
    ]
    return [case for case in cases if allowed(case)]


def one_in(share: int, cases: list[Case]) -> list[Case]:
    """One in so many cases of each kernel on each wall, another part of the grid for each."""
    groups: dict[tuple, list[Case]] = {}
    for case in cases:
        groups.setdefault((case.target, case.kernel), []).append(case)
    return [
        case
        for shift, group in enumerate(groups.values())
        for case in group[shift % min(share, len(group)) :: share]
    ]


def audit_cases() -> list[Case]:
    """The rows of the audit that found that doubled trajectories were not reversible."""
    half_normals = [(n, size) for n in (2, 3, 5) for size in (0.05, 0.1, 0.3, 1.0)] + [(20, 0.3)]
    cases = [make_case("lower", "doubling", *row) for row in half_normals]
    others = ("order", "order with bounds", "two-sided", "none")
    cases += [make_case(name, "doubling", n, 0.3) for name in others for n in (2, 3)]
    return [*cases, make_case("cliff", "doubling", 2, 1.0), make_case("lower", "doubling", 1, 0.3)]
