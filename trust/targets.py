"""Densities in closed form with exact draws: one for each kind of wall, in any dimension.

Functions of a target are called by their addresses, from compiled code: ``model`` and ``walls`` as
the kernels take them, and ``draw(rng, x)``, which overwrites ``x`` with an exact draw.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numba import njit, types
from numba.core.dispatcher import Dispatcher

from pymc_rollback.kernels.maps import ABOVE, BELOW, BETWEEN, NONE
from pymc_rollback.kernels.native import VECTOR
from pymc_rollback.kernels.state import NO_MAPS, System, new_counts
from trust.closed import as_model, as_walls

DRAW = types.FunctionType(types.void(types.npy_rng, VECTOR))


def when_needed(compile):
    """Have a decorator compile a function when it is first asked for, not for every import."""

    def decorate(function):
        return cache(lambda: compile(function))

    return decorate


a_model, some_walls = when_needed(as_model), when_needed(as_walls)
a_draw = when_needed(njit(DRAW.signature))


@dataclass(frozen=True)
class Target:
    """A density with a kind of wall.

    Attributes
    ----------
    model, walls, draw
        What is sampled, in terms of values, each a function that compiles it; ``walls`` is None
        where only the drift keeps trajectories inside.
    lower, upper
        Bounds of every coordinate; with ``first_free`` of all but the first. A lower bound that is
        not a number is the first coordinate.
    reflects
        Whether the drift reflects at the bounds; else they fold images.
    pull, centre, frequency
        Slope that the drift follows; centre and frequency of a quadratic that it follows instead.
    ordered
        Whether all coordinates are kept in order.
    maps
        Kinds of the maps of the first coordinates, and so on from the beginning; none if empty.
    planes
        ``planes(n)``: rows ``A`` and offsets ``c`` of slacks ``A x + c``.
    sharpness, inner
        Of the walls, and their steps in each step.
    least
        Smallest dimension.
    dense
        Whether a dense metric is tried, too.
    smooth
        Whether it is a target of the paper's sampler.
    """

    model: Callable[[], Dispatcher]
    draw: Callable[[], Dispatcher]
    walls: Callable[[], Dispatcher] | None = None
    lower: float = -np.inf
    upper: float = np.inf
    first_free: bool = False
    reflects: bool = True
    pull: float = 0.0
    centre: float = 0.0
    frequency: float = 0.0
    ordered: bool = False
    maps: tuple[int, ...] = ()
    planes: Callable | None = None
    sharpness: float = 1.0
    inner: int = 0
    least: int = 1
    dense: bool = False
    smooth: bool = False

    def bounds(self, n: int) -> np.ndarray:
        """Lower and upper bounds, as rows."""
        bounds = np.repeat([[self.lower], [self.upper]], n, axis=1)
        if self.first_free:
            bounds[:, 0] = -np.inf, np.inf
        return bounds

    def system(self, n: int, dense: bool = False) -> System:
        """What stays fixed along a trajectory in ``n`` dimensions; masses differ where they may."""
        variances = np.ones(n) if self.ordered else np.linspace(0.5, 1.0, n)
        metric, root = np.empty((0, 0)), np.empty((0, 0))
        if dense:
            metric = 0.4 * np.sqrt(np.outer(variances, variances))
            np.fill_diagonal(metric, variances)
            root = np.linalg.cholesky(np.linalg.inv(metric))
        unbounded = np.repeat([[-np.inf], [np.inf]], n, axis=1)
        kinds = np.resize(np.array(self.maps, dtype=float), n) if self.maps else np.zeros(n)
        reflects = np.full(n, self.reflects) & (kinds == NONE)
        lower, upper = np.where(reflects, self.bounds(n), unbounded)
        rows, offset = self.planes(n) if self.planes else (np.empty((0, n)), np.empty(0))
        if self.planes and self.frequency > 0:  # bounds are planes, too
            rows, offset = np.vstack([rows, np.eye(n)[lower > -np.inf]]), np.r_[offset, -lower]
            offset, (lower, upper) = offset[np.isfinite(offset)], unbounded
        moved = rows @ metric if dense else rows * variances
        gram = moved @ rows.T
        turns = np.c_[moved, gram, rows] / np.diag(gram)[:, None]
        planar = np.any(moved != 0, axis=0)
        bounces = (np.isfinite(lower) | np.isfinite(upper)) & ~planar
        turns_freely = np.full(n, self.frequency > 0) & ~bounces & ~planar
        followed = np.outer([self.pull, 1.0, self.centre, self.frequency], np.ones(n))
        followed[1] = planar
        return System(
            others=np.empty(0),
            sharpness=np.array([self.sharpness]),
            coordinates=np.array([variances, lower, upper, *followed]),
            bouncing=np.flatnonzero(bounces),
            rotating=np.flatnonzero(turns_freely),
            turning=self.frequency > 0,
            planes=np.ascontiguousarray(np.vstack([rows.T, offset])),
            turns=np.ascontiguousarray(turns),
            dense=metric,
            root=root,
            ordered=np.array([[0.0, n, 1.0]]) if self.ordered else np.empty((0, 3)),
            inner=self.inner,
            met=new_counts(n, len(rows)),
            maps=np.array([kinds, *self.bounds(n)]) if self.maps else NO_MAPS,
        )


@njit
def softplus(z):
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


@njit
def sigmoid(z):
    return 1 / (1 + np.exp(-z))


# Models


@a_model
def normal(x, others, slope):
    slope[:] = -x
    return -0.5 * np.sum(x * x)


@a_model
def correlated(x, others, slope):
    """Unit variances, all correlations 0.6."""
    shared = 0.6 * np.sum(x) / (1 + 0.6 * (x.size - 1))
    slope[:] = -(x - shared) / 0.4
    return 0.5 * np.sum(x * slope)


@a_model
def falling(x, others, slope):
    """Exponentials."""
    slope[:] = -1.0
    return -np.sum(x)


@a_model
def rising(x, others, slope):
    slope[:] = 3.0
    return 3.0 * np.sum(x)


@a_model
def steeply_falling(x, others, slope):
    slope[:] = -3.0
    return -3.0 * np.sum(x)


@a_model
def folded_rising(y, others, slope):
    """A density that rises along (0, 1), in terms of images."""
    total = 0.0
    for i in range(y.size):
        below, above = y[i] < 0, y[i] > 1
        total += 3.0 * (-y[i] if below else 2 - y[i] if above else y[i])
        slope[i] = -3.0 if below or above else 3.0
    return total


@a_model
def above_the_first(y, others, slope):
    """A normal, and exponentials above it, in terms of images about it."""
    slope[0] = -y[0]
    total = -0.5 * y[0] ** 2
    for i in range(1, y.size):
        slope[i] = -1.0 if y[i] > y[0] else 1.0
        slope[0] -= slope[i]
        total -= abs(y[i] - y[0])
    return total


@a_model
def waiting(x, others, slope):
    """The log of a rate, a Gamma(2), and waiting times at that rate."""
    rate = np.exp(x[0])
    total = np.sum(x[1:])
    slope[0] = 2 - rate + (x.size - 1) - rate * total
    slope[1:] = -rate
    return (1 + x.size) * x[0] - rate * (1 + total)


@a_model
def cliff(x, others, slope):
    """Normals whose density drops by 1000 where the first is above 0.5."""
    slope[:] = -x
    return -0.5 * np.sum(x * x) - (1000.0 if x[0] > 0.5 else 0.0)


# Walls


@some_walls
def ball(x, others, sharpness, push, outcome):
    """Inside |x|² = n."""
    mu, slack = sharpness[0] * np.sqrt(x.size), 1 - np.sum(x * x) / x.size
    push[:] = 2 * mu * x / x.size * sigmoid(-mu * slack)
    outcome[0], outcome[1] = 0.0 if slack > 0 else -np.inf, slack
    return softplus(-mu * slack)


@some_walls
def gap(x, others, sharpness, push, outcome):
    """The first below -0.4 or above 0.5."""
    mu, left, right = sharpness[0], -0.4 - x[0], x[0] - 0.5
    slack = max(left, right)
    push[:] = 0.0
    push[0] = (mu if left > right else -mu) * sigmoid(-mu * slack)
    outcome[0], outcome[1] = 0.0 if slack > 0 else -np.inf, slack
    return softplus(-mu * slack)


@some_walls
def mirror(y, others, sharpness, push, outcome):
    """Images about zero."""
    mu, energy = sharpness[0], 0.0
    for i in range(y.size):
        energy += softplus(-mu * y[i])
        push[i] = -mu * sigmoid(-mu * y[i])
    outcome[0], outcome[1] = -energy, np.min(y)
    return energy


@some_walls
def moving_mirror(y, others, sharpness, push, outcome):
    """Images about the first."""
    mu, energy, least = sharpness[0], 0.0, np.inf
    push[0] = 0.0
    for i in range(1, y.size):
        height = y[i] - y[0]
        energy += softplus(-mu * height)
        push[i] = -mu * sigmoid(-mu * height)
        push[0] -= push[i]
        least = min(least, height)
    outcome[0], outcome[1] = -energy, least
    return energy


@some_walls
def two_mirrors(y, others, sharpness, push, outcome):
    """Images about zero and one, with weights that sum to one."""
    mu, energy, reached = sharpness[0], 0.0, True
    for i in range(y.size):
        below, above = max(-y[i], 0.0), max(y[i] - 1, 0.0)
        x = below + (2 - y[i] if above > 0 else max(y[i], 0.0))
        low, high = np.exp(-mu * x), np.exp(-mu * (1 - x))
        energy += mu * (below + above) + np.log1p(low + high)
        outward = mu if above > 0 else -mu if below > 0 else 0.0
        inward = -1.0 if below > 0 or above > 0 else 1.0
        push[i] = outward + inward * mu * (high - low) / (1 + low + high)
        reached &= -1 < y[i] < 2
    outcome[0] = -energy if reached else -np.inf
    outcome[1] = min(np.min(y), np.min(1 - y))
    return energy


@some_walls
def soft_floor(x, others, sharpness, push, outcome):
    """The last above zero, smoothed as in the paper."""
    mu = sharpness[0]
    push[:] = 0.0
    push[-1] = -mu * sigmoid(-mu * x[-1])
    energy = softplus(-mu * x[-1])
    outcome[0], outcome[1] = -energy, x[-1]
    return energy


# Exact draws


@a_draw
def draw_normal(rng, x):
    for i in range(x.size):
        x[i] = rng.standard_normal()


@a_draw
def draw_correlated(rng, x):
    shared = np.sqrt(0.6) * rng.standard_normal()
    for i in range(x.size):
        x[i] = shared + np.sqrt(0.4) * rng.standard_normal()


@a_draw
def draw_half_normal(rng, x):
    for i in range(x.size):
        x[i] = abs(rng.standard_normal())


@a_draw
def draw_exponential(rng, x):
    for i in range(x.size):
        x[i] = rng.standard_exponential()


@njit
def in_box(rng, slope):
    """A number on (0, 1) whose density rises with a slope of the log."""
    return np.log1p(rng.random() * np.expm1(slope)) / slope


@a_draw
def draw_rising(rng, x):
    for i in range(x.size):
        x[i] = in_box(rng, 3.0)


@a_draw
def draw_below_one(rng, x):
    for i in range(x.size):
        x[i] = 1 - rng.standard_exponential() / 3


@a_draw
def draw_ordered_normal(rng, x):
    for i in range(x.size):
        x[i] = rng.standard_normal()
    x.sort()


@a_draw
def draw_ordered_box(rng, x):
    for i in range(x.size):
        x[i] = in_box(rng, -3.0)
    x.sort()


@a_draw
def draw_between_planes(rng, x):
    n = x.size
    while True:
        for i in range(n):
            x[i] = rng.standard_normal()
        width = x[0] if n == 1 else (x[0] - x[-1]) / np.sqrt(2)
        if np.sum(x) / np.sqrt(n) > -0.4 and width < 0.8:
            return


@a_draw
def draw_corner(rng, x):
    while True:
        for i in range(x.size):
            x[i] = abs(rng.standard_normal())
        if np.mean(x) < 0.9:
            return


@a_draw
def draw_beside_corner(rng, x):
    x[0] = abs(rng.standard_normal())
    while True:
        for i in range(1, x.size):
            x[i] = abs(rng.standard_normal())
        if np.mean(x[1:]) < 0.9:
            return


@a_draw
def draw_in_orthant_of_ball(rng, x):
    while True:
        for i in range(x.size):
            x[i] = abs(rng.standard_normal())
        if np.sum(x * x) < x.size:
            return


@a_draw
def draw_in_ball(rng, x):
    while True:
        for i in range(x.size):
            x[i] = rng.standard_normal()
        if np.sum(x * x) < x.size:
            return


@a_draw
def draw_beside_gap(rng, x):
    for i in range(x.size):
        x[i] = rng.standard_normal()
    while -0.4 <= x[0] <= 0.5:
        x[0] = rng.standard_normal()


@a_draw
def draw_image(rng, y):
    for i in range(y.size):
        x = abs(rng.standard_normal())
        y[i] = x if rng.random() < sigmoid(2.0 * x) else -x


@a_draw
def draw_two_images(rng, y):
    for i in range(y.size):
        x = in_box(rng, 3.0)
        low, high = np.exp(-6.0 * x), np.exp(-6.0 * (1 - x))
        pick = rng.random() * (1 + low + high)
        y[i] = x if pick < 1 else -x if pick < 1 + low else 2 - x


@a_draw
def draw_above_the_first(rng, y):
    y[0] = rng.standard_normal()
    for i in range(1, y.size):
        height = rng.standard_exponential()
        y[i] = y[0] + (height if rng.random() < sigmoid(2.0 * height) else -height)


@a_draw
def draw_waiting(rng, x):
    rate = rng.standard_exponential() + rng.standard_exponential()
    x[0] = np.log(rate)
    for i in range(1, x.size):
        x[i] = rng.standard_exponential() / rate


@a_draw
def draw_below_cliff(rng, x):
    for i in range(x.size):
        x[i] = rng.standard_normal()
    while x[0] > 0.5:
        x[0] = rng.standard_normal()


@a_draw
def draw_smoothed(rng, x):
    for i in range(x.size):
        x[i] = rng.standard_normal()
    while rng.random() > sigmoid(3.0 * x[-1]):
        x[-1] = rng.standard_normal()


def two_planes(n):
    """The sum above, and the first not too far above the last."""
    across = np.array([[-1.0]]) if n == 1 else np.eye(n)[[-1]] - np.eye(n)[[0]]
    across /= np.linalg.norm(across)
    return np.vstack([np.full((1, n), 1 / np.sqrt(n)), across]), np.array([0.4, 0.8])


def corner_plane(n):
    """The mean below 0.9."""
    return np.full((1, n), -1 / np.sqrt(n)), np.array([0.9 * np.sqrt(n)])


def plane_beside_the_first(n):
    """The mean of all but the first below 0.9."""
    row = np.full((1, n), -1 / np.sqrt(n - 1))
    row[0, 0] = 0.0
    return row, np.array([0.9 * np.sqrt(n - 1)])


TARGETS = {
    "none": Target(correlated, draw_correlated, dense=True),
    "lower": Target(normal, draw_half_normal, lower=0.0),
    "two-sided": Target(rising, draw_rising, lower=0.0, upper=1.0),
    "pull to lower": Target(falling, draw_exponential, lower=0.0, pull=0.8),
    "pull to upper": Target(rising, draw_rising, lower=0.0, upper=1.0, pull=-2.0),
    "order": Target(normal, draw_ordered_normal, ordered=True, least=2),
    "order with bounds": Target(
        steeply_falling, draw_ordered_box, lower=0.0, upper=1.0, pull=2.0, ordered=True, least=2
    ),
    "planes": Target(normal, draw_between_planes, planes=two_planes, dense=True),
    "planes with bounds": Target(normal, draw_corner, lower=0.0, planes=corner_plane),
    "barrier": Target(normal, draw_in_ball, ball, sharpness=6.0, inner=4, dense=True),
    "union": Target(normal, draw_beside_gap, gap, sharpness=5.0, inner=2, dense=True),
    "mirror": Target(normal, draw_image, mirror, lower=0.0, reflects=False, sharpness=2.0, inner=1),
    "two mirrors": Target(
        folded_rising,
        draw_two_images,
        two_mirrors,
        lower=0.0,
        upper=1.0,
        reflects=False,
        sharpness=6.0,
        inner=1,
    ),
    "moving mirror": Target(
        above_the_first,
        draw_above_the_first,
        moving_mirror,
        lower=np.nan,
        first_free=True,
        reflects=False,
        sharpness=2.0,
        inner=1,
        least=2,
    ),
    "transform": Target(waiting, draw_waiting, lower=0.0, first_free=True, least=2),
    "log": Target(normal, draw_half_normal, lower=0.0, maps=(ABOVE,), dense=True),
    "log below": Target(rising, draw_below_one, upper=1.0, maps=(BELOW,)),
    "logit": Target(rising, draw_rising, lower=0.0, upper=1.0, maps=(BETWEEN,), dense=True),
    "log beside a bound": Target(normal, draw_half_normal, lower=0.0, maps=(ABOVE, NONE), least=2),
    "log beside planes": Target(
        normal,
        draw_beside_corner,
        lower=0.0,
        maps=(ABOVE, *[NONE] * 19),
        planes=plane_beside_the_first,
        least=2,
    ),
    "log within a barrier": Target(
        normal,
        draw_in_orthant_of_ball,
        ball,
        lower=0.0,
        maps=(ABOVE,),
        sharpness=6.0,
        inner=4,
    ),
    "cliff": Target(cliff, draw_below_cliff),
    "smoothed": Target(normal, draw_smoothed, soft_floor, sharpness=3.0, inner=1, smooth=True),
}

for name in (
    "none",
    "lower",
    "two-sided",
    "order",
    "order with bounds",
    "planes",
    "planes with bounds",
    "barrier",
    "mirror",
    "log",
    "logit",
    "log beside a bound",
):
    # not the density's own quadratic, so that something is left over
    TARGETS[f"{name}, turning"] = replace(TARGETS[name], pull=0.0, centre=0.3, frequency=0.8)
