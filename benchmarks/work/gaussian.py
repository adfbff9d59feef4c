"""Normal densities in regions: balls, a polytope, an orthant, a wedge."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy import stats

import pymc_rollback as rb
from benchmarks import reference
from benchmarks.measure import Known
from benchmarks.work.base import Normal, Work, flat

PAPER = {"sharpness": 100, "step_size": 0.0167, "n_steps": 600, "exact": False}


def ball(dimension, radius):
    """A standard normal in a ball."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=dimension)
        rb.constrain("ball", pt.sum(x**2) < radius**2)
    return model


def paper_ball(weights):
    """The paper's target of figure 4: U = sqrt(x'Ax) for |x| < 3."""
    start = np.random.default_rng(0).normal(size=len(weights)) / 10
    with pm.Model() as model:
        x = pm.Flat("x", shape=len(weights), initval=start)
        pm.Potential("density", -pt.sqrt(pt.sum(weights * x**2)))
        rb.constrain("ball", pt.sqrt(pt.sum(x**2)) < 3)
    return model


def from_the_whole_space(dimension, radius, log_density):
    """A density in a ball, by x = radius y / sqrt(1 + |y|²) from a free y."""
    with pm.Model() as model:
        y = pm.Flat("y", shape=dimension, initval=np.full(dimension, 0.1))
        far = 1 + pt.sum(y**2)
        x = pm.Deterministic("x", radius * y / pt.sqrt(far))
        pm.Potential("density", log_density(x) - (dimension / 2 + 1) * pt.log(far))
    return model


def ball_moments(dimension, radius):
    """By the distribution of |x|²: chi square, cut at radius²."""
    below = [stats.chi2(k).cdf(radius**2) for k in (dimension, dimension + 2)]
    return Known(np.zeros(dimension), np.full(dimension, below[1] / below[0]))


def paper_ball_moments(weights):
    """By the lengths of the two parts of x that have the same weight."""
    heavy = weights > 1
    sizes = heavy.sum(), (~heavy).sum()
    # the directions in the plane of the lengths: nearly all weight is where the heavy are short
    radius, radius_weight = reference.gauss_legendre(400, 0, 3)
    sine, sine_weight = reference.gauss_legendre(500, 0, 1)
    sine, sine_weight = sine**4, 4 * sine**3 * sine_weight
    s, t = radius[:, None] * sine, radius[:, None] * np.sqrt(1 - sine**2)
    energy = np.sqrt(weights.max() * s**2 + weights.min() * t**2)
    log = (sizes[0] - 1) * np.log(s) + (sizes[1] - 1) * np.log(t) - energy
    jacobian = radius[:, None] / np.sqrt(1 - sine**2) * radius_weight[:, None] * sine_weight
    share = np.exp(log - log.max()) * jacobian
    share /= share.sum()
    square = np.where(heavy, np.sum(share * s**2) / sizes[0], np.sum(share * t**2) / sizes[1])
    return Known(np.zeros(len(weights)), square)


def balls(quick):
    n = 5 if quick else 50
    radius = (0.5 * n) ** 0.5
    weights = np.exp(np.random.default_rng(0).choice([-5.0, 5.0], n))
    if quick:
        weights = np.exp([5.0, 5.0, -5.0, -5.0, -5.0])
    none = np.empty((0, n)), np.empty(0)
    return [
        Work(
            "ball",
            f"{n} standard normals where |x|² < {radius**2:g}",
            lambda: ball(n, radius),
            flat("x"),
            lambda quick: ball_moments(n, radius),
            joint=True,
            transformed=lambda: from_the_whole_space(n, radius, lambda x: -0.5 * pt.sum(x**2)),
            normal=Normal(np.zeros(n), np.eye(n), *none, np.full(n, 0.01), radius),
            quick=True,
        ),
        Work(
            "paper's ball",
            f"U = √(xᵀAx) in {n} dimensions where |x| < 3, A diagonal, of exp(5) and exp(−5)",
            lambda: paper_ball(weights),
            flat("x"),
            lambda quick: paper_ball_moments(weights),
            source="quadrature",
            joint=True,
            transformed=lambda: from_the_whole_space(
                n, 3, lambda x: -pt.sqrt(pt.sum(weights * x**2))
            ),
            settings=PAPER,
        ),
    ]


def cut(normal):
    """A normal cut by planes."""
    independent = np.array_equal(normal.covariance, np.diag(np.diag(normal.covariance)))
    with pm.Model() as model:
        if independent:
            sd = np.sqrt(np.diag(normal.covariance))
            x = pm.Normal("x", normal.mean, sd, initval=normal.start)
        else:
            x = pm.MvNormal("x", normal.mean, normal.covariance, initval=normal.start)
        rb.constrain("planes", pt.dot(normal.rows, x) + normal.offset > 0)
    return model


def polytope(rows, dimension, distance=0.8):
    """A standard normal between random planes at a distance."""
    planes = np.random.default_rng(0).normal(size=(rows, dimension))
    planes /= np.linalg.norm(planes, axis=1, keepdims=True)
    offset = np.full(rows, distance)
    return Normal(np.zeros(dimension), np.eye(dimension), -planes, offset, np.zeros(dimension))


def orthant(n, correlation):
    """Standard normals with a correlation, all positive."""
    covariance = np.full((n, n), correlation) + (1 - correlation) * np.eye(n)
    return Normal(np.zeros(n), covariance, np.eye(n), np.zeros(n), np.ones(n))


def positive(normal):
    """A normal in the positive orthant, under log transforms."""
    with pm.Model() as model:
        x = pm.HalfFlat("x", shape=len(normal.mean), initval=normal.start)
        law = pm.MvNormal.dist(normal.mean, normal.covariance)
        pm.Potential("density", pm.logp(law, x))
    return model


def orthant_moments(n, correlation):
    """x = s (z + u), s² = 1 - r, with a common u: given u, each coordinate is cut by itself."""
    scale = np.sqrt(1 - correlation)
    sd = np.sqrt(correlation) / scale
    u, weight = reference.gauss_legendre(400, -9, 12 * sd)
    law = stats.norm
    weight = weight * law.pdf(u / sd) * law.cdf(u) ** n
    tail = np.exp(law.logpdf(u) - law.logcdf(u))  # of z > -u
    mean = scale * (u + tail)
    square = scale**2 * (u**2 + u * tail + 1)
    return Known(
        np.full(n, weight @ mean / weight.sum()), np.full(n, weight @ square / weight.sum())
    )


WEDGE = Normal(
    np.full(2, 4.0),
    np.eye(2),
    np.array([[-1.0, 1.0], [1.1, -1.0]]),
    np.zeros(2),
    np.array([4, 4.2]),
)


def wedge_between():
    """x2 by its place between the bounds."""
    with pm.Model() as model:
        x1 = pm.HalfFlat("x1", initval=4.0)
        share = pm.Uniform("share", 0, 1)
        x = pm.Deterministic("x", pt.stack([x1, x1 * (1 + 0.1 * share)]))
        pm.Potential("density", -0.5 * pt.sum((x - 4) ** 2) + pt.log(x1))
    return model


def wedge_moments():
    x1, weight1 = reference.gauss_legendre(400, 0, 14)
    share, weight2 = reference.gauss_legendre(100, 0, 1)
    x = np.stack(np.broadcast_arrays(x1[:, None], x1[:, None] * (1 + 0.1 * share)), axis=-1)
    density = np.exp(-0.5 * np.sum((x - 4) ** 2, axis=-1)) * x1[:, None]
    return reference.of_grid(x, density * weight1[:, None] * weight2)


BAND = Normal(
    np.zeros(2),
    np.eye(2),
    np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, -1.0]]),
    np.array([0.0, 0.0, -6.0, 7.0]),
    np.array([3.0, 3.5]),
)


def band():
    with pm.Model() as model:
        x, y = pm.HalfNormal("x", initval=3.0), pm.HalfNormal("y", initval=3.5)
        rb.constrain("sum", x + y, between=(6, 7))
    return model


def band_by_sum():
    """The sum, and x's share of it."""
    with pm.Model() as model:
        total, share = pm.Uniform("total", 6, 7), pm.Uniform("share")
        x = pm.Deterministic("x", total * share)
        y = pm.Deterministic("y", total * (1 - share))
        pm.Potential("density", -(x**2 + y**2) / 2 + pt.log(total))
    return model


def band_moments():
    points, weights = reference.product(
        reference.gauss_legendre(100, 6, 7), reference.gauss_legendre(100, 0, 1)
    )
    total, share = points.T
    x = np.column_stack([total * share, total * (1 - share)])
    return reference.of_log(x, -np.sum(x**2, axis=1) / 2, weights * total)


def works(quick):
    cube = polytope(*((20, 5) if quick else (100, 20)))
    rows, n = cube.rows.shape
    found = [
        Work(
            "polytope",
            f"{n} standard normals between {rows} random planes at a distance of 0.8",
            lambda: cut(cube),
            flat("x"),
            lambda quick: reference.of_draws(reference.cut_normal(cube, 2000 if quick else 50_000)),
            source="exact HMC for Gaussians",
            joint=True,
            normal=cube,
            quick=True,
        ),
        Work(
            "wedge",
            "two normals of mean 4 and unit variance where x1 < x2 < 1.1 x1",
            lambda: cut(WEDGE),
            flat("x"),
            lambda quick: wedge_moments(),
            source="quadrature",
            joint=True,
            transformed=wedge_between,
            normal=WEDGE,
        ),
        Work(
            "band",
            "two half normals where 6 < x + y < 7",
            band,
            flat("x", "y"),
            lambda quick: band_moments(),
            source="quadrature",
            joint=True,
            transformed=band_by_sum,
            normal=BAND,
        ),
    ]
    for name, n, r in (
        *((f"orthant {n}", n, 0.5) for n in (10, 100)),
        *((f"close orthant {n}", n, 0.9) for n in (10, 50, 100)),
    ):
        found.append(
            Work(
                name,
                f"{n} standard normals with correlations of {r}, all positive",
                lambda n=n, r=r: cut(orthant(n, r)),
                flat("x"),
                lambda quick, n=n, r=r: orthant_moments(n, r),
                source="quadrature",
                joint=True,
                transformed=lambda n=n, r=r: positive(orthant(n, r)),
                normal=orthant(n, r),
            )
        )
    return found
