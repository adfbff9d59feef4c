"""Trajectories, and the selection of the next draw from their states.

Each kernel starts from a position, draws the momentum, and overwrites the position with the next
draw. Two energies are kept apart: the *dynamics* energy, which the leapfrog conserves, feeds the
acceptance rate and the divergence check; the *hard* energy, infinite outside the region, feeds the
selection.
"""

from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.typing.templates import Signature

from pymc_rollback.leapfrog import (
    MODEL,
    SLACK,
    VECTOR,
    WALLS,
    Setting,
    copy_state,
    draw_momentum,
    dynamics_energy,
    evaluate_model,
    evaluate_walls,
    hard_energy,
    leapfrog,
    new_state,
)

MOST_ENERGY_ERROR = 1000.0
"""A trajectory whose dynamics energy spreads wider than this has diverged."""


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


SETTING = types.NamedUniTuple(VECTOR, 10, Setting)
RNG = types.npy_rng
OUTCOME = types.NamedTuple(
    [
        types.float64,
        types.boolean,
        types.boolean,
        types.float64,
        types.float64,
        types.int64,
        types.float64,
        types.int64,
        types.int64,
    ],
    Outcome,
)
STATIC = OUTCOME(MODEL, WALLS, SETTING, VECTOR, types.float64, types.int64, RNG, VECTOR)


def ready(kernel: Dispatcher, signature: Signature) -> Dispatcher:
    """Compile a kernel, or load it from the cache, for callables of any model.

    Without the signature Numba would compile it anew for every model.
    """
    if not kernel.signatures:
        kernel.compile(signature)
        kernel.disable_compile()
    return kernel


@njit
def _start(model, walls, setting, position, rng):
    state = new_state(position)
    evaluate_walls(walls, setting, state)
    evaluate_model(model, setting, state)
    draw_momentum(state, setting, rng)
    return state


TRIAL = types.float64(MODEL, WALLS, SETTING, VECTOR, types.float64, RNG)


@njit(cache=True)
def try_step(model, walls, setting, position, step_size, rng):
    """Acceptance rate of a single leapfrog step from a position, which stays as it is."""
    state = _start(model, walls, setting, position, rng)
    reference = dynamics_energy(state, setting)
    leapfrog(model, walls, setting, state, step_size)
    error = dynamics_energy(state, setting) - reference
    return min(1.0, np.exp(-error)) if np.isfinite(error) else 0.0


@njit(cache=True)
def endpoint_trajectory(model, walls, setting, position, step_size, n_steps, rng, last):
    """The paper's sampler: ``n_steps`` leapfrog steps, then accept or reject the end point.

    Parameters
    ----------
    model, walls
        The log density and the walls.
    setting
        What stays fixed.
    position
        Start; overwritten with the draw.
    step_size, n_steps
        Step size and number of steps.
    rng
        The chain's generator.
    last
        Overwritten with the last position reached.
    """
    state = _start(model, walls, setting, position, rng)
    lowest = highest = dynamics_energy(state, setting)
    initial = hard_energy(state, setting)
    was_inside = state.levels[SLACK] > 0
    inside, rollbacks, taken, diverging = int(was_inside), 0, 0, False
    while taken < n_steps and not diverging:
        leapfrog(model, walls, setting, state, step_size)
        taken += 1
        is_inside = state.levels[SLACK] > 0
        inside += is_inside
        rollbacks += is_inside and not was_inside
        was_inside = is_inside
        energy = dynamics_energy(state, setting)
        lowest, highest = min(lowest, energy), max(highest, energy)
        diverging = not (highest - lowest < MOST_ENERGY_ERROR) or not np.isfinite(energy)
    last[:] = state.position
    error = hard_energy(state, setting) - initial
    acceptance = 0.0 if diverging or np.isnan(error) else min(1.0, np.exp(-error))
    moved = rng.random() < acceptance
    if moved:
        position[:] = state.position
    else:
        error = 0.0
    share = inside / (taken + 1)
    return Outcome(acceptance, moved, diverging, initial + error, error, taken, share, rollbacks, 0)


@njit(cache=True)
def window_trajectory(model, walls, setting, position, step_size, n_steps, rng, last):
    """``n_steps`` steps, split at random around the start; the draw is selected from all states.

    State ``s`` is selected with a probability proportional to ``exp(-hard energy of s)``, so that
    one outside the region never is. A window that diverges anywhere is given up whole, from
    whichever of its states it was started. Parameters as for :func:`endpoint_trajectory`.
    """
    start = _start(model, walls, setting, position, rng)
    reference = dynamics_energy(start, setting)
    lowest = highest = reference
    initial = chosen = hard_energy(start, setting)
    total = -initial
    draw = position.copy()
    inside, rollbacks, taken, accepted = int(start.levels[SLACK] > 0), 0, 0, 0.0
    moved = diverging = False
    forward = rng.integers(0, n_steps + 1)
    state = new_state(position)
    for direction, count in ((1.0, forward), (-1.0, n_steps - forward)):
        copy_state(start, state)
        was_inside = start.levels[SLACK] > 0
        for _ in range(count):
            if diverging:
                break
            leapfrog(model, walls, setting, state, direction * step_size)
            taken += 1
            is_inside = state.levels[SLACK] > 0
            inside += is_inside
            rollbacks += is_inside and not was_inside
            was_inside = is_inside
            energy = dynamics_energy(state, setting)
            lowest, highest = min(lowest, energy), max(highest, energy)
            if not (highest - lowest < MOST_ENERGY_ERROR) or not np.isfinite(energy):
                diverging = True
                last[:] = state.position
                break
            accepted += min(1.0, np.exp(reference - energy))
            hard = hard_energy(state, setting)
            total = np.logaddexp(total, -hard)
            if rng.random() < np.exp(-hard - total):
                draw[:] = state.position
                chosen, moved = hard, True
    if diverging:
        chosen, moved = initial, False
    else:
        position[:] = draw
    share = inside / (taken + 1)
    mean = accepted / max(taken, 1)
    return Outcome(mean, moved, diverging, chosen, chosen - initial, taken, share, rollbacks, 0)


@njit
def _has_turned(first, last):
    """Whether either end of a stretch of trajectory no longer moves away from the other.

    Ends are a position and a momentum each, as rows. The distance is that between the folded
    positions: a sum of momenta, as in the generalised criterion, forgets reflections.
    """
    at_first = at_last = 0.0
    for i in range(first.shape[1]):
        distance = last[0, i] - first[0, i]
        at_first += distance * first[1, i]
        at_last += distance * last[1, i]
    return at_first <= 0 or at_last <= 0


@njit
def _turned_along(earlier, later, forward):
    """Whether a stretch has turned, given its ends in the order in which they were reached."""
    return _has_turned(earlier, later) if forward else _has_turned(later, earlier)


@njit
def _mark(state, end):
    """Keep the position and momentum of a state."""
    end[0] = state.position
    end[1] = state.momentum


@njit
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


@njit(cache=True)
def doubling_trajectory(model, walls, setting, position, step_size, max_depth, rng, last):
    """Double the trajectory until it turns; the draw is selected from all its states.

    The multinomial No-U-Turn sampler. A half that turns within itself or diverges is given up.
    Parameters as for :func:`endpoint_trajectory`, with the largest number of doublings in place
    of ``n_steps``.
    """
    n = position.size
    start = _start(model, walls, setting, position, rng)
    reference = dynamics_energy(start, setting)
    initial = chosen = hard_energy(start, setting)
    total_weight = -initial
    left, right = new_state(position), new_state(position)
    copy_state(start, left)
    copy_state(start, right)
    draw, candidate = position.copy(), position.copy()
    checkpoints = np.zeros((max_depth + 1, 2, n))
    here, far, old_seam, new_seam = np.zeros((4, 2, n))
    inside, rollbacks, taken, accepted = int(start.levels[SLACK] > 0), 0, 0, 0.0
    moved = diverging = False
    depth = 0
    while depth < max_depth:
        forward = rng.random() < 0.5
        state = right if forward else left
        direction = step_size if forward else -step_size
        was_inside = state.levels[SLACK] > 0
        _mark(state, old_seam)
        _mark(left if forward else right, far)
        weight = -np.inf
        half_energy = initial
        turned = False
        for leaf in range(1 << depth):
            leapfrog(model, walls, setting, state, direction)
            taken += 1
            is_inside = state.levels[SLACK] > 0
            inside += is_inside
            rollbacks += is_inside and not was_inside
            was_inside = is_inside
            energy = dynamics_energy(state, setting)
            if not (abs(energy - reference) < MOST_ENERGY_ERROR):
                diverging = True
                last[:] = state.position
                break
            accepted += min(1.0, np.exp(reference - energy))
            hard = hard_energy(state, setting)
            if hard < np.inf:
                weight = np.logaddexp(weight, -hard)
                if rng.random() < np.exp(-hard - weight):
                    candidate[:] = state.position
                    half_energy = hard
            if leaf == 0:
                _mark(state, new_seam)
            lowest, highest = _checkpoints(leaf)
            if leaf % 2 == 0:
                _mark(state, checkpoints[highest])
                continue
            _mark(state, here)
            for k in range(highest, lowest - 1, -1):
                turned = turned or _turned_along(checkpoints[k], here, forward)
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
        _mark(state, here)
        if (
            _turned_along(far, here, forward)
            or _turned_along(far, new_seam, forward)
            or _turned_along(old_seam, here, forward)
        ):
            break
    position[:] = draw
    share = inside / (taken + 1)
    mean = accepted / max(taken, 1)
    error = chosen - initial
    return Outcome(mean, moved, diverging, chosen, error, taken, share, rollbacks, depth)
