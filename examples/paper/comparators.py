"""The rivals: other samplers for constrained targets, compiled like ours.

Densities are ``model(position, others, slope) -> log density``, which writes the gradient into
``slope``; ``others`` are numbers that it needs. Chains overwrite ``position``, so that a second
call goes on where the first ended, and return one draw a row. ``tests/test_comparators.py`` tests
each of them on targets with known answers.
"""

import numpy as np
from numba import njit, types

VECTOR = types.float64[::1]
MATRIX = types.float64[:, ::1]
REAL, WHOLE, RNG = types.float64, types.int64, types.npy_rng
MODEL = types.FunctionType(REAL(VECTOR, VECTOR, VECTOR))
WALLS = types.FunctionType(REAL(VECTOR, VECTOR, VECTOR))
"""``walls(position, sharpness, push) -> boundary energy``; writes its gradient into ``push``."""
INSIDE = types.FunctionType(types.boolean(VECTOR))
HMC = MATRIX(MODEL, VECTOR, REAL, VECTOR, REAL, WHOLE, WHOLE, RNG)


@njit(cache=True)
def _momentum(size, rng):
    momentum = np.empty(size)
    for i in range(size):
        momentum[i] = rng.standard_normal()
    return momentum


@njit(cache=True)
def kick(x, force, time):
    for i in range(x.size):
        x[i] += time * force[i]


@njit(cache=True)
def _dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(cache=True)
def _drift_in_ball(position, momentum, radius, time):
    """Straight on for some time, reflected wherever the path meets the sphere."""
    while True:
        speed, along = _dot(momentum, momentum), _dot(position, momentum)
        root = along**2 + speed * (radius**2 - _dot(position, position))
        hit = (np.sqrt(max(root, 0.0)) - along) / speed
        if hit >= time:
            kick(position, momentum, time)
            return
        kick(position, momentum, hit)
        inward = -2 * _dot(position, momentum) / _dot(position, position)
        kick(momentum, position, inward)
        time -= hit


@njit(HMC, cache=True)
def reflective_hmc(model, others, radius, position, step_size, n_steps, draws, rng):
    """Reflective HMC (Afshar & Domke 2015) in a ball, with analytic intersections."""
    chain = np.empty((draws, position.size))
    x, start_slope, slope = position.copy(), position.copy(), position.copy()
    level = model(position, others, start_slope)
    for i in range(draws):
        momentum = _momentum(position.size, rng)
        energy = 0.5 * _dot(momentum, momentum) - level
        x[:], slope[:], new_level = position, start_slope, level
        for _ in range(n_steps):
            kick(momentum, slope, 0.5 * step_size)
            _drift_in_ball(x, momentum, radius, step_size)
            new_level = model(x, others, slope)
            kick(momentum, slope, 0.5 * step_size)
        if rng.random() < np.exp(energy - 0.5 * _dot(momentum, momentum) + new_level):
            position[:], start_slope[:], level = x, slope, new_level
        chain[i] = position
    return chain


@njit(
    MATRIX(MODEL, WALLS, VECTOR, VECTOR, VECTOR, REAL, WHOLE, WHOLE, RNG),
    cache=True,
)
def rollback_hmc(model, walls, others, sharpness, position, step_size, n_steps, draws, rng):
    """The paper's sampler as a loop like the others."""
    chain = np.empty((draws, position.size))
    x, slope, push = position.copy(), position.copy(), position.copy()
    for i in range(draws):
        x[:] = position
        potential = walls(x, sharpness, push) - model(x, others, slope)
        momentum = _momentum(position.size, rng)
        energy = 0.5 * _dot(momentum, momentum) + potential
        for _ in range(n_steps):
            kick(momentum, slope, 0.5 * step_size)
            kick(momentum, push, -0.5 * step_size)
            kick(x, momentum, step_size)
            potential = walls(x, sharpness, push) - model(x, others, slope)
            kick(momentum, push, -0.5 * step_size)
            kick(momentum, slope, 0.5 * step_size)
        if rng.random() < np.exp(energy - 0.5 * _dot(momentum, momentum) - potential):
            position[:] = x
        chain[i] = position
    return chain


@njit(HMC, cache=True)
def baseline_hmc(model, others, radius, position, step_size, n_steps, draws, rng):
    """HMC in a ball: a trajectory that leaves it ends there and is rejected."""
    chain = np.empty((draws, position.size))
    x, start_slope, slope = position.copy(), position.copy(), position.copy()
    level = model(position, others, start_slope)
    for i in range(draws):
        momentum = _momentum(position.size, rng)
        energy = 0.5 * _dot(momentum, momentum) - level
        x[:], slope[:], new_level = position, start_slope, level
        inside = True
        for _ in range(n_steps):
            kick(momentum, slope, 0.5 * step_size)
            kick(x, momentum, step_size)
            inside = _dot(x, x) < radius**2
            if not inside:
                break
            new_level = model(x, others, slope)
            kick(momentum, slope, 0.5 * step_size)
        if inside and rng.random() < np.exp(energy - 0.5 * _dot(momentum, momentum) + new_level):
            position[:], start_slope[:], level = x, slope, new_level
        chain[i] = position
    return chain


@njit(HMC, cache=True)
def spherical_hmc(model, others, radius, position, step_size, n_steps, draws, rng):
    """Spherical HMC (Lan et al. 2014) on a ball: geodesics of the sphere one dimension up.

    The ball is one hemisphere seen from above, so that its wall is an equator that is simply
    crossed. As in the paper, draws are weighted: the last column is the weight.
    """
    n = position.size
    chain = np.empty((draws, n + 1))
    slope, force = np.empty(n), np.zeros(n + 1)
    x = np.empty(n + 1)
    x[:n] = position / radius
    x[n] = np.sqrt(max(1 - x[:n] @ x[:n], 0.0))
    for i in range(draws):
        level = model(radius * x[:n], others, slope)
        force[:n] = radius * slope
        velocity = _momentum(n + 1, rng)
        velocity -= (x @ velocity) * x
        energy = 0.5 * velocity @ velocity - level
        new, new_level = x.copy(), level
        for _ in range(n_steps):
            velocity += 0.5 * step_size * (force - (new @ force) * new)
            speed = np.sqrt(velocity @ velocity)
            angle = speed * step_size
            turned = new * np.cos(angle) + velocity / speed * np.sin(angle)
            velocity = velocity * np.cos(angle) - new * speed * np.sin(angle)
            new = turned / np.sqrt(turned @ turned)
            new_level = model(radius * new[:n], others, slope)
            force[:n] = radius * slope
            velocity += 0.5 * step_size * (force - (new @ force) * new)
        if rng.random() < np.exp(energy - 0.5 * velocity @ velocity + new_level):
            x[:] = new
        chain[i, :n] = radius * x[:n]
        chain[i, n] = abs(x[n])
    position[:] = radius * x[:n]
    return chain


@njit(REAL(REAL, REAL, RNG), cache=True)
def truncated_normal(lower, upper, rng):
    """A standard normal between two bounds, by rejection from what is nearest to it."""
    if upper < 0 or (lower < 0 and -lower > upper):  # the wider tail upwards
        return -truncated_normal(-upper, -lower, rng)
    if lower <= 0:
        if upper - lower > 2:
            while True:
                x = rng.standard_normal()
                if lower < x < upper:
                    return x
        while True:
            x = lower + (upper - lower) * rng.random()
            if rng.random() < np.exp(-0.5 * x**2):
                return x
    rate = 0.5 * (lower + np.sqrt(lower**2 + 4))  # Robert 1995
    if rate * (upper - lower) < 1:
        while True:
            x = lower + (upper - lower) * rng.random()
            if rng.random() < np.exp(0.5 * (lower**2 - x**2)):
                return x
    while True:
        x = lower - np.log(1 - rng.random()) / rate
        if x < upper and rng.random() < np.exp(-0.5 * (x - rate) ** 2):
            return x


@njit(MATRIX(VECTOR, MATRIX, MATRIX, VECTOR, VECTOR, WHOLE, RNG), cache=True)
def coordinate_gibbs(mean, precision, rows, offset, position, draws, rng):
    """Gibbs sampler of a normal cut by ``rows @ x + offset > 0``, one coordinate at a time."""
    n = position.size
    chain = np.empty((draws, n))
    slack = rows @ position + offset
    for i in range(draws):
        for j in range(n):
            scale = 1 / np.sqrt(precision[j, j])
            pull = precision[j] @ (position - mean) - precision[j, j] * (position[j] - mean[j])
            centre = mean[j] - pull / precision[j, j]
            lower, upper = -np.inf, np.inf
            for k in range(offset.size):
                slope = rows[k, j]
                if slope != 0:
                    bound = position[j] - slack[k] / slope
                    if slope > 0:
                        lower = max(lower, bound)
                    else:
                        upper = min(upper, bound)
            z = truncated_normal((lower - centre) / scale, (upper - centre) / scale, rng)
            change = centre + scale * z - position[j]
            position[j] += change
            for k in range(offset.size):
                slack[k] += rows[k, j] * change
        chain[i] = position
    return chain


@njit(types.Tuple((MATRIX, WHOLE))(VECTOR, MATRIX, INSIDE, WHOLE, RNG), cache=True)
def rejection(mean, root, inside, draws, rng):
    """Independent draws of a normal where ``inside`` holds, and how many were proposed."""
    chain = np.empty((draws, mean.size))
    kept = proposed = 0
    while kept < draws:
        x = mean + root @ _momentum(mean.size, rng)
        proposed += 1
        if inside(x):
            chain[kept] = x
            kept += 1
    return chain, proposed


@njit(types.void(MATRIX, MATRIX, MATRIX, REAL, REAL, RNG), cache=True)
def _gibbs_factor(left, products, gram, variance, rate, rng):
    """Draw a non-negative ``left`` in ``X = left @ right + noise``, column after column.

    ``products`` is ``X @ right.T`` and ``gram`` is ``right @ right.T``.
    """
    for k in range(gram.shape[0]):
        scale = np.sqrt(variance / gram[k, k])
        for i in range(left.shape[0]):
            other = left[i] @ gram[k] - left[i, k] * gram[k, k]
            centre = (products[i, k] - other - rate * variance) / gram[k, k]
            left[i, k] = centre + scale * truncated_normal(-centre / scale, np.inf, rng)


@njit(VECTOR(MATRIX, MATRIX, MATRIX, REAL, REAL, WHOLE, RNG), cache=True)
def factor_gibbs(data, weights, bases, noise, rate, draws, rng):
    """Gibbs sampler of Schmidt et al. 2009: ``data = weights @ bases + noise``, both above zero.

    Overwrites the factors, and returns the mean absolute difference after each iteration. The
    noise is known, and both factors have exponential priors with the same rate.
    """
    differences = np.empty(draws)
    for i in range(draws):
        _gibbs_factor(weights, data @ bases.T, bases @ bases.T, noise**2, rate, rng)
        transposed = bases.T.copy()
        _gibbs_factor(transposed, data.T @ weights, weights.T @ weights, noise**2, rate, rng)
        bases[:] = transposed.T
        differences[i] = np.mean(np.abs(data - weights @ bases))
    return differences


def exact_hmc(mean, covariance, linear, quadratic, start, draws, seed):
    """Exact HMC for Gaussians (Pakman & Paninski 2014), by the package ``tmg-hmc``.

    ``linear`` are pairs ``(f, c)`` for ``f @ x + c > 0``, ``quadratic`` pairs ``(A, c)`` for
    ``x @ A @ x + c > 0``.
    """
    from tmg_hmc import TMGSampler

    np.random.seed(seed)  # all that it takes
    sampler = TMGSampler(np.array(mean).reshape(-1, 1), np.array(covariance))
    for f, c in linear:
        sampler.add_constraint(f=np.array(f, float).reshape(-1, 1), c=float(c), sparse=False)
    for A, c in quadratic:
        sampler.add_constraint(A=np.array(A, float), c=float(c), sparse=False)
    return sampler.sample(np.array(start, float).reshape(-1, 1), draws, burn_in=0)
