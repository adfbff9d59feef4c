"""Trajectories, and the selection of the next draw from their states.

Each kernel starts from a point (a position, and what the model says about it), draws the momentum,
and overwrites the point with the next draw: only the steps of the leapfrog cost gradients. Two
energies are kept apart: the *dynamics* energy, which the leapfrog conserves, feeds the acceptance
rate and the divergence check; the *hard* energy, infinite outside the region, feeds the selection.
"""

import numpy as np
from numba import types

from pymc_rollback.kernels.cache import cached
from pymc_rollback.kernels.leapfrog import evaluate_walls, find_energies, leapfrog
from pymc_rollback.kernels.metric import draw_momentum, has_turned
from pymc_rollback.kernels.native import MATRIX, VECTOR, borrowed, inlined, model_at, walls_at
from pymc_rollback.kernels.rotation import find_spring
from pymc_rollback.kernels.state import (
    AT_LOWER,
    BEYOND,
    CONTACTS,
    MOMENTUM,
    POSITION,
    PUSH,
    SLACK,
    SYSTEM,
    VELOCITY,
    new_state,
)
from pymc_rollback.kernels.stats import (
    ACCEPTANCE_RATE,
    ACCEPTED,
    COMBINE,
    DIVERGING,
    ENERGY,
    ENERGY_ERROR,
    INSIDE,
    ROLLBACKS,
    STEPS,
    TREE_DEPTH,
    WALL_CONTACTS,
)

MOST_ENERGY_ERROR = 1000.0
"""A trajectory over which the dynamics energy differs by more than this has diverged."""

FAR_START = 500.0
"""Energy above the lowest of a trajectory at which no draw of the target is: a start to come from.

Its weight, exp(-500), is below what any number of draws would show.
"""


RNG = types.npy_rng
ADDRESS = types.intp
STATIC = types.void(
    ADDRESS, ADDRESS, SYSTEM, MATRIX, types.float64, types.int64, RNG, MATRIX, VECTOR
)


@inlined
def _start(walls, system, point, rng):
    state = new_state(point[POSITION, : point.shape[1] - BEYOND])
    _keep(point, state)
    evaluate_walls(walls, system, state)
    find_spring(state, system)
    draw_momentum(state, system, rng)
    return state


@inlined
def _first_tally(state):
    """Counts over a trajectory that is no more than its start, by statistic."""
    tally = np.zeros(len(COMBINE))
    tally[INSIDE] = state[PUSH, SLACK] > 0
    return tally


@inlined
def _advance(model, walls, system, state, step_size, reference, tally):
    """Move a state by one step, and count what happened; its dynamics and hard energy."""
    was_inside = state[PUSH, SLACK] > 0
    state[VELOCITY, CONTACTS] = 0.0
    leapfrog(model, walls, system, state, step_size)
    is_inside = state[PUSH, SLACK] > 0
    energy, hard = find_energies(state, system)
    tally[INSIDE] += is_inside
    tally[ROLLBACKS] += is_inside and not was_inside
    tally[STEPS] += 1
    tally[WALL_CONTACTS] += state[VELOCITY, CONTACTS]
    if np.isfinite(energy):
        tally[ACCEPTANCE_RATE] += min(1.0, np.exp(reference - energy))
    return energy, hard


@inlined
def _keep(state, point):
    """Copy the point of a state; in a loop, as slices count references."""
    for k in range(2):
        for i in range(point.shape[1]):
            point[k, i] = state[k, i]


@inlined
def _has_diverged(energy, lowest, highest, reference):
    """Whether the energies of a trajectory spread too far, from the lowest to the highest.

    Any state that may be a draw would give this verdict, had the trajectory started there. Only
    where the start is far above the lowest energy, as it may be before a chain has arrived, is the
    rise judged from the start.
    """
    base = reference if reference - lowest > FAR_START else lowest
    return not (highest - base < MOST_ENERGY_ERROR) or not np.isfinite(energy)


@inlined
def _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, depth):
    """Write the statistics of a trajectory."""
    outcome[ACCEPTANCE_RATE], outcome[ACCEPTED] = acceptance, moved
    outcome[DIVERGING], outcome[TREE_DEPTH] = diverging, depth
    outcome[ENERGY], outcome[ENERGY_ERROR] = chosen, chosen - initial
    outcome[STEPS], outcome[ROLLBACKS] = tally[STEPS], tally[ROLLBACKS]
    outcome[WALL_CONTACTS] = tally[WALL_CONTACTS]
    outcome[INSIDE] = tally[INSIDE] / (tally[STEPS] + 1)


@cached
def endpoint_trajectory(
    model_address, walls_address, system, point, step_size, n_steps, rng, last, outcome
):
    """The paper's sampler: ``n_steps`` leapfrog steps, then accept or reject the end point.

    By the hard energy, so that an end point outside the region is rejected; the acceptance rate
    that is told, and that step sizes are tuned by, is that of the dynamics energy.

    A trajectory is given up where its energy is too far above both its ends, a verdict that does
    not depend on which end is the start. One that rises twice as far above its start is given up
    early: it would be, or its end point would be rejected. It is told as diverged also where only
    the end is so far above the start: that end is rejected in any case.

    Parameters
    ----------
    model_address, walls_address
        Where the log density and the walls are.
    system
        What stays fixed.
    point
        Start; overwritten with the draw.
    step_size, n_steps
        Step size and number of steps.
    rng
        The chain's generator.
    last, outcome
        Overwritten with the last point reached, and with the statistics.
    """
    model, walls = model_at(model_address), walls_at(walls_address)
    system = borrowed(system)
    state = _start(walls, system, point, rng)
    tally = _first_tally(state)
    reference, initial = find_energies(state, system)
    energy, chosen, highest = reference, initial, reference
    for _ in range(n_steps):
        energy, chosen = _advance(model, walls, system, state, step_size, reference, tally)
        highest = max(highest, energy)
        if not (highest - reference < 2 * MOST_ENERGY_ERROR) or not np.isfinite(energy):
            break
    _keep(state, last)
    given_up = not (highest - max(reference, energy) < MOST_ENERGY_ERROR)
    given_up = given_up or not np.isfinite(energy) or tally[STEPS] < n_steps
    diverging = given_up or not (energy - reference < MOST_ENERGY_ERROR)
    acceptance = 0.0 if diverging else min(1.0, np.exp(reference - energy))
    moved = rng.random() < np.exp(initial - chosen) and not given_up
    if moved:
        _keep(state, point)
    else:
        chosen = initial
    _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, 0)


@cached
def traced_trajectory(
    model_address, walls_address, system, point, step_size, n_steps, rng, path, contacts
):
    """A trajectory to look at: no draw is selected, and the point stays as it is.

    Parameters as for :func:`endpoint_trajectory`, but for the last two.

    Parameters
    ----------
    path, contacts
        Overwritten with the position after each step, from the start on, and how often bounds and
        planes were met until then.
    """
    model, walls = model_at(model_address), walls_at(walls_address)
    system = borrowed(system)
    state = _start(walls, system, point, rng)
    first = system.met.size - AT_LOWER * path.shape[1] - system.planes.shape[1]
    for k in range(n_steps + 1):
        if k > 0:
            leapfrog(model, walls, system, state, step_size)
        contacts[k] = 0.0
        for j in range(first, system.met.size):
            contacts[k] += system.met[j]
        for i in range(path.shape[1]):
            path[k, i] = state[POSITION, i]


@cached
def window_trajectory(
    model_address, walls_address, system, point, step_size, n_steps, rng, last, outcome
):
    """``n_steps`` steps, split at random around the start; the draw is selected from all states.

    State ``s`` is selected with a probability proportional to ``exp(-hard energy of s)``, so that
    one outside the region never is. A window whose energies spread too far is given up whole,
    from whichever of its states it was started. Parameters as for :func:`endpoint_trajectory`.
    """
    model, walls = model_at(model_address), walls_at(walls_address)
    system = borrowed(system)
    start = _start(walls, system, point, rng)
    tally = _first_tally(start)
    reference, initial = find_energies(start, system)
    lowest = highest = reference
    chosen = initial
    total = -initial
    draw = point.copy()
    moved = diverging = False
    forward = rng.integers(0, n_steps + 1)
    state = start.copy()
    for k in range(n_steps):
        if k == forward:
            state[:] = start
        direction = step_size if k < forward else -step_size
        energy, hard = _advance(model, walls, system, state, direction, reference, tally)
        lowest, highest = min(lowest, energy), max(highest, energy)
        diverging = _has_diverged(energy, lowest, highest, reference)
        if diverging:
            _keep(state, last)
            break
        total = np.logaddexp(total, -hard)
        if rng.random() < np.exp(-hard - total):
            _keep(state, draw)
            chosen, moved = hard, True
    if diverging:
        chosen, moved = initial, False
    else:
        point[:] = draw
    acceptance = tally[ACCEPTANCE_RATE] / max(tally[STEPS], 1.0)
    _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, 0)


@inlined
def _mark(state, end):
    """Keep what :func:`has_turned` looks at."""
    for i in range(end.shape[1]):
        end[POSITION, i] = state[POSITION, i]
        end[MOMENTUM, i] = state[MOMENTUM, i]


@inlined
def _ones(number):
    """How many ones the binary form of a number has."""
    count = 0
    while number > 0:
        count += number & 1
        number >>= 1
    return count


@inlined
def _ended(leaf):
    """How many balanced subtrees (of 2, 4, 8, ... leaves) a leaf ends: its trailing ones."""
    count = 0
    while leaf & 1:
        count += 1
        leaf >>= 1
    return count


@inlined
def _joins_turn(first, left_last, right_first, last, forward):
    """Whether two stretches that follow each other turn when they are joined.

    Looked at are the whole, and each of them together with the nearest state of the other.
    """
    return (
        has_turned(first, last, forward)
        or has_turned(first, right_first, forward)
        or has_turned(left_last, last, forward)
    )


@inlined
def _subtrees_turn(state, leaf, firsts, lasts, forward):
    """Whether any of the balanced subtrees that a leaf ends has turned; keeps what later ones need.

    Each subtree is judged by the rule for the whole tree, or the tree would not be built from all
    of its states alike. ``firsts`` has the first leaves of the subtrees that are not yet complete,
    each the first of several perhaps, so that the one of 2^k leaves that ends at a leaf is the k-th
    from the end; ``lasts[k]`` the last leaf of the latest left half of 2^k leaves.
    """
    ended, newest = _ended(leaf), _ones(leaf >> 1)
    if ended == 0:
        _mark(state, firsts[newest])
    right_first = state
    for k in range(ended):
        first = firsts[newest - k]
        if _joins_turn(first, lasts[k], right_first, state, forward):
            return True
        right_first = first
    _mark(state, lasts[ended])
    return False


@cached
def doubling_trajectory(
    model_address, walls_address, system, point, step_size, max_depth, rng, last, outcome
):
    """Double the trajectory until it turns; the draw is selected from all its states.

    The multinomial No-U-Turn sampler. A half that turns within itself, or with which the energies
    spread too far, is given up. Parameters as for :func:`endpoint_trajectory`, with the largest
    number of doublings in place of ``n_steps``.
    """
    model, walls = model_at(model_address), walls_at(walls_address)
    system = borrowed(system)
    start = _start(walls, system, point, rng)
    tally = _first_tally(start)
    reference, initial = find_energies(start, system)
    lowest = highest = reference
    chosen = initial
    total_weight = -initial
    left, right = start.copy(), start.copy()
    draw, candidate = point.copy(), point.copy()
    rows, columns = MOMENTUM + 1, start.shape[1]
    firsts, lasts = np.empty((2, max_depth + 1, rows, columns))
    far, old_seam, new_seam = np.empty((3, rows, columns))
    moved = diverging = False
    depth = 0
    while depth < max_depth:
        forward = rng.random() < 0.5
        state = right if forward else left
        direction = step_size if forward else -step_size
        _mark(state, old_seam)
        _mark(left if forward else right, far)
        weight = -np.inf
        half_energy = initial
        turned = False
        for leaf in range(1 << depth):
            energy, hard = _advance(model, walls, system, state, direction, reference, tally)
            lowest, highest = min(lowest, energy), max(highest, energy)
            diverging = _has_diverged(energy, lowest, highest, reference)
            if diverging:
                _keep(state, last)
                break
            if hard < np.inf:
                weight = np.logaddexp(weight, -hard)
                if rng.random() < np.exp(-hard - weight):
                    _keep(state, candidate)
                    half_energy = hard
            if leaf == 0:
                _mark(state, new_seam)
            turned = _subtrees_turn(state, leaf, firsts, lasts, forward)
            if turned:
                break
        if turned or diverging:
            break
        depth += 1
        if rng.random() < np.exp(weight - total_weight):
            draw[:] = candidate
            chosen, moved = half_energy, True
        total_weight = np.logaddexp(total_weight, weight)
        if _joins_turn(far, old_seam, new_seam, state, forward):
            break
    point[:] = draw
    acceptance = tally[ACCEPTANCE_RATE] / max(tally[STEPS], 1.0)
    _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, depth)
