"""Trajectories, and the selection of the next draw from their states.

Each kernel starts from a position, draws the momentum, and overwrites the position with the next
draw. Two energies are kept apart: the *dynamics* energy, which the leapfrog conserves, feeds the
acceptance rate and the divergence check; the *hard* energy, infinite outside the region, feeds the
selection.
"""

from typing import NamedTuple

import numpy as np
from numba import types

from pymc_rollback.cache import cached
from pymc_rollback.layout import (
    MOMENTUM,
    POSITION,
    PUSH,
    SETTING,
    SLACK,
    VECTOR,
    borrowed,
    inlined,
    model_at,
    new_state,
    walls_at,
)
from pymc_rollback.leapfrog import (
    draw_momentum,
    evaluate_model,
    evaluate_walls,
    find_energies,
    leapfrog,
)

MOST_ENERGY_ERROR = 1000.0
"""A trajectory whose dynamics energy rises by more than this has diverged."""


class Outcome(NamedTuple):
    """What happened along a trajectory.

    Attributes
    ----------
    acceptance
        Mean of ``min(1, exp(-error of the dynamics energy))`` over the new states; for the
        paper's sampler that of its end point.
    moved
        Whether the draw is another state than the start.
    diverging
        Whether the trajectory diverged.
    energy, energy_error
        Hard energy of the draw, and its difference from that of the start.
    steps
        Number of leapfrog steps, each a gradient of the model.
    inside
        Share of the trajectory's states inside the region.
    rollbacks
        How often the trajectory went out and came back.
    depth
        How often the trajectory was doubled; zero for one of a given length.
    """

    acceptance: float
    moved: bool
    diverging: bool
    energy: float
    energy_error: float
    steps: int
    inside: float
    rollbacks: int
    depth: int


def as_outcome(row: list[float]) -> Outcome:
    """The outcome that a row of numbers stands for."""
    kinds = Outcome.__annotations__.values()
    return Outcome(*(kind(x) for kind, x in zip(kinds, row, strict=True)))


RNG = types.npy_rng
ADDRESS = types.intp
STATIC = types.void(
    ADDRESS, ADDRESS, SETTING, VECTOR, types.float64, types.int64, RNG, VECTOR, VECTOR
)


@inlined
def _start(model, walls, setting, position, rng):
    state = new_state(position)
    evaluate_walls(walls, setting, state)
    evaluate_model(model, setting, state)
    draw_momentum(state, setting, rng)
    return state


INSIDE, ROLLBACKS, STEPS, ACCEPTED = range(4)


@inlined
def _first_tally(state):
    """Counts over a trajectory that is no more than its start."""
    tally = np.zeros(4)
    tally[INSIDE] = state[PUSH, SLACK] > 0
    return tally


@inlined
def _advance(model, walls, setting, state, step_size, reference, tally):
    """Move a state by one step, and count what happened; its dynamics and hard energy."""
    was_inside = state[PUSH, SLACK] > 0
    leapfrog(model, walls, setting, state, step_size)
    is_inside = state[PUSH, SLACK] > 0
    energy, hard = find_energies(state, setting)
    tally[INSIDE] += is_inside
    tally[ROLLBACKS] += is_inside and not was_inside
    tally[STEPS] += 1
    if np.isfinite(energy):
        tally[ACCEPTED] += min(1.0, np.exp(reference - energy))
    return energy, hard


@inlined
def _keep(state, position):
    """Copy the position of a state; in a loop, as slices count references."""
    for i in range(position.size):
        position[i] = state[POSITION, i]


@inlined
def _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, depth):
    """Write the fields of an :class:`Outcome`, in their order."""
    steps = tally[STEPS]
    outcome[0], outcome[1], outcome[2] = acceptance, moved, diverging
    outcome[3], outcome[4] = chosen, chosen - initial
    outcome[5], outcome[6], outcome[7] = steps, tally[INSIDE] / (steps + 1), tally[ROLLBACKS]
    outcome[8] = depth


@cached
def endpoint_trajectory(
    model_address, walls_address, setting, position, step_size, n_steps, rng, last, outcome
):
    """The paper's sampler: ``n_steps`` leapfrog steps, then accept or reject the end point.

    A trajectory has diverged where its energy is too far above both its ends, which is the same
    from either end; one that is twice as far above its start has, or would be rejected.

    Parameters
    ----------
    model_address, walls_address
        Where the log density and the walls are.
    setting
        What stays fixed.
    position
        Start; overwritten with the draw.
    step_size, n_steps
        Step size and number of steps.
    rng
        The chain's generator.
    last, outcome
        Overwritten with the last position reached, and with an :class:`Outcome`.
    """
    model, walls = model_at(model_address), walls_at(walls_address)
    setting = borrowed(setting)
    state = _start(model, walls, setting, position, rng)
    tally = _first_tally(state)
    reference, initial = find_energies(state, setting)
    energy, chosen, highest = reference, initial, reference
    for _ in range(n_steps):
        energy, chosen = _advance(model, walls, setting, state, step_size, reference, tally)
        highest = max(highest, energy)
        if not (highest - reference < 2 * MOST_ENERGY_ERROR) or not np.isfinite(energy):
            break
    last[:] = state[POSITION, : position.size]
    diverging = not (highest - max(reference, energy) < MOST_ENERGY_ERROR)
    diverging = diverging or not np.isfinite(energy) or tally[STEPS] < n_steps
    acceptance = 0.0 if diverging or np.isnan(chosen) else min(1.0, np.exp(initial - chosen))
    moved = rng.random() < acceptance
    if moved:
        position[:] = state[POSITION, : position.size]
    else:
        chosen = initial
    _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, 0)


@cached
def window_trajectory(
    model_address, walls_address, setting, position, step_size, n_steps, rng, last, outcome
):
    """``n_steps`` steps, split at random around the start; the draw is selected from all states.

    State ``s`` is selected with a probability proportional to ``exp(-hard energy of s)``, so that
    one outside the region never is. A window whose energies spread too far is given up whole,
    from whichever of its states it was started. Parameters as for :func:`endpoint_trajectory`.
    """
    model, walls = model_at(model_address), walls_at(walls_address)
    setting = borrowed(setting)
    start = _start(model, walls, setting, position, rng)
    tally = _first_tally(start)
    reference, initial = find_energies(start, setting)
    lowest = highest = reference
    chosen = initial
    total = -initial
    draw = position.copy()
    moved = diverging = False
    forward = rng.integers(0, n_steps + 1)
    state = start.copy()
    for k in range(n_steps):
        if k == forward:
            state[:] = start
        direction = step_size if k < forward else -step_size
        energy, hard = _advance(model, walls, setting, state, direction, reference, tally)
        lowest, highest = min(lowest, energy), max(highest, energy)
        if not (highest - lowest < MOST_ENERGY_ERROR) or not np.isfinite(energy):
            diverging = True
            last[:] = state[POSITION, : position.size]
            break
        total = np.logaddexp(total, -hard)
        if rng.random() < np.exp(-hard - total):
            _keep(state, draw)
            chosen, moved = hard, True
    if diverging:
        chosen, moved = initial, False
    else:
        position[:] = draw
    acceptance = tally[ACCEPTED] / max(tally[STEPS], 1.0)
    _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, 0)


@inlined
def _has_turned(earlier, later, forward):
    """Whether either end of a stretch of trajectory no longer moves away from the other.

    Ends are states, in the order in which they were reached. The distance is that between the
    folded positions: a sum of momenta, as in the generalised criterion, forgets reflections.
    """
    direction = 1.0 if forward else -1.0
    at_first = at_last = 0.0
    for i in range(earlier.shape[1]):
        distance = direction * (later[POSITION, i] - earlier[POSITION, i])
        at_first += distance * earlier[MOMENTUM, i]
        at_last += distance * later[MOMENTUM, i]
    return at_first <= 0 or at_last <= 0


@inlined
def _mark(state, end):
    """Keep the first rows of a state, its position and momentum."""
    for k in range(end.shape[0]):
        for i in range(end.shape[1]):
            end[k, i] = state[k, i]


@inlined
def _checkpoints(leaf):
    """Lowest and highest checkpoint to compare with an odd leaf; an even one sets the highest.

    A checkpoint is the first leaf of a balanced subtree; there are as many as ones in the binary
    form of ``leaf // 2``, and the subtrees that an odd leaf ends as trailing ones in that of
    ``leaf``.
    """
    rest, last = leaf >> 1, 0
    while rest > 0:
        last += rest & 1
        rest >>= 1
    ended, rest = 0, leaf
    while rest & 1:
        ended += 1
        rest >>= 1
    return last - ended + 1, last


@cached
def doubling_trajectory(
    model_address, walls_address, setting, position, step_size, max_depth, rng, last, outcome
):
    """Double the trajectory until it turns; the draw is selected from all its states.

    The multinomial No-U-Turn sampler. A half that turns within itself or diverges is given up.
    Parameters as for :func:`endpoint_trajectory`, with the largest number of doublings in place
    of ``n_steps``.
    """
    model, walls = model_at(model_address), walls_at(walls_address)
    setting = borrowed(setting)
    start = _start(model, walls, setting, position, rng)
    tally = _first_tally(start)
    reference, initial = find_energies(start, setting)
    chosen = initial
    total_weight = -initial
    left, right = start.copy(), start.copy()
    draw, candidate = position.copy(), position.copy()
    checkpoints = np.zeros((max_depth + 1, 2, start.shape[1]))
    far, old_seam, new_seam = np.zeros((3, 2, start.shape[1]))
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
            energy, hard = _advance(model, walls, setting, state, direction, reference, tally)
            if not (energy - reference < MOST_ENERGY_ERROR) or not np.isfinite(energy):
                diverging = True
                last[:] = state[POSITION, : position.size]
                break
            if hard < np.inf:
                weight = np.logaddexp(weight, -hard)
                if rng.random() < np.exp(-hard - weight):
                    _keep(state, candidate)
                    half_energy = hard
            if leaf == 0:
                _mark(state, new_seam)
            lowest, highest = _checkpoints(leaf)
            if leaf % 2 == 0:
                _mark(state, checkpoints[highest])
                continue
            for k in range(highest, lowest - 1, -1):
                turned = turned or _has_turned(checkpoints[k], state, forward)
            if turned:
                break
        if turned or diverging:
            break
        depth += 1
        if rng.random() < np.exp(weight - total_weight):
            draw[:] = candidate
            chosen, moved = half_energy, True
        total_weight = np.logaddexp(total_weight, weight)
        # the whole, and each half together with the first state of the other
        if (
            _has_turned(far, state, forward)
            or _has_turned(far, new_seam, forward)
            or _has_turned(old_seam, state, forward)
        ):
            break
    position[:] = draw
    acceptance = tally[ACCEPTED] / max(tally[STEPS], 1.0)
    _fill(outcome, tally, acceptance, moved, diverging, initial, chosen, depth)
