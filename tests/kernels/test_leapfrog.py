"""The kernels, with densities in closed form: no PyMC, no PyTensor."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit, types

import pymc_rollback as rb
from pymc_rollback.kernels.leapfrog import evaluate_model, evaluate_walls, find_energies, leapfrog
from pymc_rollback.kernels.native import (
    MATRIX,
    MODEL,
    WALLS,
    address_of,
    address_of_generator,
    as_model,
    as_walls,
    generator_at,
)
from pymc_rollback.kernels.run import ready
from pymc_rollback.kernels.state import (
    LOG_DENSITY,
    LOWER,
    MOMENTUM,
    POSITION,
    PULL,
    PUSH,
    SLACK,
    SLOPE,
    SYSTEM,
    System,
    new_counts,
    new_points,
    new_state,
    read_point,
)
from pymc_rollback.kernels.stats import Outcome, as_outcome
from pymc_rollback.kernels.trajectory import endpoint_trajectory, window_trajectory


@as_model
def normal(position, others, slope):
    """A standard normal; counts its calls in others, if there is room."""
    if others.size:
        others[0] += 1
    slope[:] = -position
    return -0.5 * np.sum(position**2)


@as_model
def banana(position, others, slope):
    """x ~ N(0, 1), y ~ N(x², 1): skewed, and not separable."""
    x, y = position
    slope[0] = -x + 2 * x * (y - x**2)
    slope[1] = -(y - x**2)
    return -0.5 * x**2 - 0.5 * (y - x**2) ** 2


@as_model
def pressed(position, others, slope):
    """A slope of 50 towards lower positions."""
    slope[:] = -50.0
    return -50.0 * np.sum(position)


@as_model
def cliff(position, others, slope):
    """A standard normal that is not a number beyond one."""
    slope[:] = -position
    return -0.5 * np.sum(position**2) if np.max(np.abs(position)) < 1 else np.nan


@njit
def softplus(z):
    return max(z, 0.0) + np.log1p(np.exp(-abs(z)))


@as_walls
def floor(position, others, sharpness, push, outcome):
    """Last coordinate above zero; smoothed, as in the paper."""
    mu, g = sharpness[0], position[-1]
    push[:] = 0.0
    push[-1] = -mu / (1 + np.exp(mu * g))
    outcome[0], outcome[1] = -softplus(-mu * g), g
    return softplus(-mu * g)


@as_walls
def disk(position, others, sharpness, push, outcome):
    """Inside |x|² = 2, with no weight outside."""
    mu, g = sharpness[0], 2 - np.sum(position**2)
    push[:] = 2 * mu * position / (1 + np.exp(mu * g))
    outcome[0] = 0.0 if g > 0 else -np.inf
    outcome[1] = g
    return softplus(-mu * g)


@as_walls
def nowhere(position, others, sharpness, push, outcome):
    """No wall."""
    push[:] = 0.0
    outcome[0], outcome[1] = 0.0, np.inf
    return 0.0


@njit(types.void(MODEL, WALLS, SYSTEM, MATRIX, types.float64, types.int64))
def run(model, walls, system, state, step_size, n):
    evaluate_walls(walls, system, state)
    evaluate_model(model, system, state)
    for _ in range(n):
        leapfrog(model, walls, system, state, step_size)


@njit(types.float64(MATRIX, SYSTEM))
def energy(state, system):
    return find_energies(state, system)[0]


def system(size=2, sharpness=5.0, inner=1, inverse_mass=(1.0, 2.0), others=()):
    """Plain leapfrog: nothing that reflects, orders or pulls."""
    masses = np.resize(np.array(inverse_mass), size)
    infinite, nothing = np.full(size, np.inf), np.empty((0, 0))
    return System(
        others=np.array(others, float),
        sharpness=np.array([sharpness]),
        coordinates=np.array([masses, -infinite, infinite, *np.zeros((4, size))]),
        bouncing=np.empty(0, int),
        rotating=np.empty(0, int),
        turning=False,
        planes=np.empty((size + 1, 0)),
        turns=nothing,
        dense=nothing,
        root=nothing,
        ordered=np.empty((0, 3)),
        inner=inner,
        met=new_counts(size, 0),
    )


def state(position, momentum):
    new = new_state(np.array(position, float))
    new[MOMENTUM, : len(position)] = momentum
    return new


def moved(model, walls, fixed, position, momentum, step_size, n):
    """Position, momentum, and the change of the dynamics energy."""
    point = state(position, momentum)
    run(model, walls, fixed, point, step_size, 0)
    before = energy(point, fixed)
    run(model, walls, fixed, point, step_size, n)
    q, p = point[POSITION, : len(position)], point[MOMENTUM, : len(position)]
    return q, p, energy(point, fixed) - before


Q, P = np.array([0.9, 0.8]), np.array([1.1, 0.4])
both_speeds = pytest.mark.parametrize("inner", [1, 5])


def test_kernels_import_neither_pymc_nor_pytensor():
    code = (
        "import sys, types; package = types.ModuleType('pymc_rollback');"
        "package.__path__ = ['pymc_rollback']; sys.modules['pymc_rollback'] = package;"
        "import pymc_rollback.kernels.run;"
        "assert not {'pymc', 'pytensor', 'arviz'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(rb.__file__).parents[1])


def plain_leapfrog(position, momentum, step_size, n, mu, inverse_mass):
    """The paper's, on the sum of the energies of the banana and the disk."""

    def gradient(q):
        x, y = q
        model = np.array([x - 2 * x * (y - x**2), y - x**2])
        return model + 2 * mu * q / (1 + np.exp(mu * (2 - q @ q)))

    q, p = position.copy(), momentum.copy()
    for _ in range(n):
        p = p - step_size / 2 * gradient(q)
        q = q + step_size * inverse_mass * p
        p = p - step_size / 2 * gradient(q)
    return q, p


def test_one_speed_is_the_leapfrog_of_the_paper():
    q, p, _ = moved(banana, disk, system(), Q, P, 0.05, 40)
    expected = plain_leapfrog(Q, P, 0.05, 40, 5.0, np.array([1.0, 2.0]))
    np.testing.assert_allclose([q, p], expected, rtol=1e-10)
    two_speeds, _, _ = moved(banana, disk, system(inner=5), Q, P, 0.05, 40)
    assert np.max(np.abs(two_speeds - q)) > 1e-4


@both_speeds
def test_one_gradient_of_the_model_a_step(inner):
    fixed = system(inner=inner, others=[0.0])
    moved(normal, disk, fixed, Q, P, 0.05, 40)
    assert fixed.others[0] == 40 + 2  # and one at the start of each run


@both_speeds
def test_reversible(inner):
    fixed = system(inner=inner)
    q, p, _ = moved(banana, disk, fixed, Q, P, 0.05, 100)
    assert np.max(np.abs(q - Q)) > 0.1
    q, p, _ = moved(banana, disk, fixed, q, -p, 0.05, 100)
    np.testing.assert_allclose([q, -p], [Q, P], atol=1e-10)


@both_speeds
def test_preserves_volume(inner):
    """Determinant of the Jacobian of (q, p) -> (q', p'), by central differences, at a wall."""
    fixed, h = system(inner=inner), 1e-5

    def flow(z):
        q, p, _ = moved(banana, disk, fixed, z[:2], z[2:], 0.1, 7)
        return np.concatenate([q, p])

    start = np.concatenate([Q, P])
    columns = [(flow(start + h * e) - flow(start - h * e)) / (2 * h) for e in np.eye(4)]
    assert abs(np.linalg.det(np.array(columns)) - 1) < 1e-6
    assert np.max(np.abs(np.array(columns) - np.eye(4))) > 0.5


@both_speeds
def test_energy_error_is_of_second_order(inner):
    sizes = 0.04 / 2.0 ** np.arange(4)
    errors = [
        abs(moved(banana, disk, system(inner=inner), Q, P, eps, round(1 / eps))[2]) for eps in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert 1.8 < slope < 2.2


@pytest.mark.parametrize("height", [0.5, 0.5004, 0.5008, 0.5012, 0.5016])
def test_reflection_of_figure_2b(height):
    """N(0, I) cut at y = 0, mu = 1000, step size 0.002: p_par is kept and p_perp flips."""
    fixed = system(sharpness=1000.0, inverse_mass=[1.0])
    point = state([-0.4, height], [1.0, -1.0])
    run(normal, floor, fixed, point, 0.002, 0)
    momenta, heights = [], []
    for _ in range(400):
        run(normal, floor, fixed, point, 0.002, 1)
        momenta.append(point[MOMENTUM, :2].copy())
        heights.append(point[POSITION, 1])
    # just outside the reach of the wall, on the way in and on the way out
    near = np.flatnonzero(np.array(heights) < 8e-3)
    before, after = momenta[near[0] - 1], momenta[near[-1] + 1]
    assert before[1] < -1 and np.min(heights) < 2e-3
    np.testing.assert_allclose(after, [before[0], -before[1]], rtol=0.01)


def test_a_pull_is_followed_exactly():
    """Under a linear slope towards a bound a step of any size conserves the energy."""
    plain = system(size=1, inner=0, inverse_mass=[2.0])
    coordinates = plain.coordinates.copy()
    coordinates[LOWER] = 0.0
    reflecting = plain._replace(coordinates=coordinates, bouncing=np.zeros(1, int))
    _, _, error = moved(pressed, nowhere, reflecting, [0.03], [1.1], 0.3, 7)
    coordinates[PULL] = 50.0
    q, _, exact = moved(pressed, nowhere, reflecting, [0.03], [1.1], 0.3, 7)
    assert abs(exact) < 1e-10 < 0.1 < abs(error) and q > 0


def wobble(step_size):
    """Largest energy error of a particle held against a floor, a little off its rest."""
    fixed = system(size=1, sharpness=100.0, inverse_mass=[1.0])
    point = state([1e-5], [0.0])
    run(pressed, floor, fixed, point, step_size, 0)
    start, errors = energy(point, fixed), []
    for _ in range(300):
        run(pressed, floor, fixed, point, step_size, 1)
        errors.append(abs(energy(point, fixed) - start))
    return max(errors)


def test_a_step_beyond_the_stability_limit_breaks_it():
    """At rest the curvature is mu² / 4, so the limit is 4 / mu = 0.04."""
    assert wobble(0.038) < 1e-4
    assert wobble(0.042) > 1e-1


# ------------------------------------------------------------------------------------- trajectories


def draws(kernel, model, walls, fixed, start, step_size, n_steps, n, seed=1):
    """Successive draws and outcomes."""
    kernel, rng = ready(kernel), np.random.default_rng(seed)
    functions = address_of(model, MODEL), address_of(walls, WALLS)
    point, outcome = first_point(model, start, fixed.others), np.empty(len(Outcome._fields))
    positions, outcomes = [], []
    for _ in range(n):
        last = point.copy()
        kernel(*functions, fixed, point, step_size, n_steps, rng, last, outcome)
        outcomes.append(as_outcome(outcome.tolist()))
        positions.append(read_point(point).position.copy())
    return np.array(positions), outcomes


def first_point(model, position, others=()):
    """The point at a position."""
    [point] = new_points(1, len(position))
    point[POSITION, : len(position)] = position
    [answer] = model(point[POSITION, : len(position)], np.array(others, float))
    point[SLOPE, : answer.size] = answer
    return point


def test_window_never_selects_a_state_without_weight():
    """A wall so soft that most of a trajectory is outside."""
    fixed = system(sharpness=0.5, inverse_mass=[1.0])
    positions, outcomes = draws(window_trajectory, normal, disk, fixed, [0.1, 0.2], 0.3, 20, 3000)
    assert np.mean([outcome.inside for outcome in outcomes]) < 0.9
    radii = (positions**2).sum(1)
    assert radii.max() < 2 and np.mean([outcome.accepted for outcome in outcomes]) > 0.8
    # the control: the same trajectories without the indicator in the weight end outside
    positions, _ = draws(endpoint_trajectory, normal, floor, fixed, [0.1, 0.2], 0.3, 20, 3000)
    assert positions[:, 1].min() < 0


@pytest.mark.slow
def test_window_draws_from_the_hard_density():
    """E|x|² on the disk, to 4 Monte Carlo errors of draws thinned to near independence."""
    fixed = system(sharpness=1.0, inverse_mass=[1.0])
    positions, _ = draws(window_trajectory, normal, disk, fixed, [0.1, 0.2], 0.4, 12, 60_000)
    radii = (positions**2).sum(1)[::6]
    expected = 2 - 2 * np.exp(-1) / (1 - np.exp(-1))  # an exponential of scale 2, cut at 2
    assert abs(radii.mean() - expected) < 4 * radii.std() / np.sqrt(radii.size)


@pytest.mark.parametrize("kernel", [endpoint_trajectory, window_trajectory])
@pytest.mark.parametrize(("model", "step_size"), [(cliff, 0.5), (normal, 3.0)])
def test_a_divergence_keeps_the_draw(kernel, model, step_size):
    """Both kinds: a state that is not a number, and an energy error above 1000."""
    fixed, start = system(inverse_mass=[1.0]), np.array([0.5, -0.5])
    positions, outcomes = draws(kernel, model, nowhere, fixed, start, step_size, 40, 50)
    before = np.vstack([start, positions[:-1]])
    diverging = np.array([outcome.diverging for outcome in outcomes])
    assert np.mean(diverging) > 0.5
    assert np.array_equal(positions[diverging], before[diverging])
    ended = [outcome for outcome in outcomes if outcome.diverging]
    assert all(o.steps < 40 and not o.accepted and o.energy_error == 0 for o in ended)


def test_a_fall_of_the_energy_is_no_divergence():
    """From far outside a long step gains thousands: it is taken, and never back."""
    fixed = system(inverse_mass=[1.0])
    positions, [down] = draws(endpoint_trajectory, normal, nowhere, fixed, [200.0, 0.0], 1.5, 1, 1)
    assert down.accepted and not down.diverging and down.energy_error < -1000
    assert abs(positions[0, 0]) < 100


@njit
def four_numbers(address):
    rng = generator_at(address)
    return rng.random(), rng.standard_normal(), rng.integers(0, 1000), rng.random()


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.SFC64])
def test_a_generator_by_its_address_gives_the_numbers_of_numpy(kind):
    ours, theirs = (np.random.Generator(kind(1)) for _ in range(2))
    for _ in range(10):
        expected = [theirs.random(), theirs.standard_normal(), theirs.integers(0, 1000)]
        assert four_numbers(address_of_generator(ours)) == (*expected, theirs.random())


def test_generators_reproduce():
    fixed = system(inverse_mass=[1.0])
    first, second = (
        draws(window_trajectory, normal, disk, fixed, [0.1, 0.2], 0.3, 10, 20, seed=4)[0]
        for _ in range(2)
    )
    assert np.array_equal(first, second)


def test_levels_belong_to_the_position():
    point = state(Q, P)
    run(banana, disk, system(inner=3), point, 0.05, 11)
    [answer] = banana(point[POSITION, :2].copy(), np.empty(0))
    assert np.array_equal([*point[SLOPE, :2], point[SLOPE, LOG_DENSITY]], answer)
    slack = 2 - np.sum(point[POSITION, :2] ** 2)
    np.testing.assert_allclose(point[PUSH, SLACK], slack)
