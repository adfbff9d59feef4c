"""Targets with exact draws or known answers."""

from functools import cache

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from harness import STEPS, Target
from pymc.distributions import transforms
from scipy import stats


@cache
def prepared(name, kind):
    """Model and step of a target, made once for all tests."""
    return STEPS[kind](TARGETS[name])


def rejection(propose, condition):
    """Exact draws of what is proposed, given a condition."""

    def draw(rng, n):
        kept, count = [], 0
        while count < n:
            proposed = propose(rng, 4 * n)
            inside = condition(**proposed)
            kept.append({name: x[inside] for name, x in proposed.items()})
            count += inside.sum()
        return {name: np.concatenate([k[name] for k in kept])[:n] for name in kept[0]}

    return draw


def each(*names):
    """Views of scalars and of the elements of vectors, such as "x" or "x[2]"."""
    return {name: lambda d, name=name: eval(name, {"abs": np.abs}, d) for name in names}


def truncated(mean, sd, lower, upper):
    return stats.truncnorm((lower - mean) / sd, (upper - mean) / sd, mean, sd)


# Bounds: lower, both, both and narrow, upper; at four sharpnesses at once.
LOWER = np.array([0.0, -0.5, 0.0, -np.inf])
UPPER = np.array([np.inf, 1.2, 0.3, 0.5])
MEAN = np.array([-1.0, 0.3, 2.0, 0.4])
SHARPNESSES = (1, 10, 100, 1000)


def bounds():
    with pm.Model() as model:
        for mu in SHARPNESSES:
            inside = [0.5, 0.5, 0.1, 0.1]
            pm.TruncatedNormal(f"x{mu}", MEAN, 1, lower=LOWER, upper=UPPER, initval=inside)
    return model


def draw_bounds(rng, n):
    law = truncated(MEAN, 1, LOWER, UPPER)
    return {f"x{mu}": law.rvs(size=(n, 4), random_state=rng) for mu in SHARPNESSES}


def soft():
    with pm.Model() as model:
        pm.TruncatedNormal("one", 0, 1, lower=0, shape=100)
        pm.TruncatedNormal("two", 0.3, 1, lower=0, upper=1, shape=10)
    return model


class Distance:
    """The distance of a variable from a point."""

    def __init__(self, law, point):
        self.law, self.point = law, point

    def cdf(self, x):
        return self.law.cdf(self.point + x) - self.law.cdf(self.point - x)


SOFT = {"one": truncated(0, 1, 0, np.inf), "two": truncated(0.3, 1, 0, 1)}


def draw_soft(rng, n):
    sizes = {"one": (n, 100), "two": (n, 10)}
    return {name: law.rvs(sizes[name], random_state=rng) for name, law in SOFT.items()}


def dependent():
    with pm.Model() as model:
        a = pm.TruncatedNormal("a", 0.5, 1, lower=0)
        b = pm.TruncatedNormal("b", 0, 1, lower=-a, upper=0.5 * a)
        pm.Uniform("c", b, a + 1)
    return model


def draw_dependent(rng, n):
    a = truncated(0.5, 1, 0, np.inf).rvs(size=n, random_state=rng)
    b = truncated(0, 1, -a, 0.5 * a).rvs(size=n, random_state=rng)
    return {"a": a, "b": b, "c": rng.uniform(b, a + 1)}


ORDERED = np.array([0.5, 0.0, -0.3]), np.array([1.0, 0.7, 1.5])


def ordered():
    with pm.Model() as model:
        pm.Normal("x", *ORDERED, transform=transforms.ordered, initval=[-1.0, 0.0, 1.0])
    return model


draw_ordered = rejection(
    lambda rng, n: {"x": rng.normal(*ORDERED, size=(n, 3))},
    lambda x: np.all(np.diff(x) > 0, axis=1),
)


# Regions of the plane, of which the density is a correlated normal, off centre.
def propose_plane(rng, n):
    x = rng.normal(0.3, 1, size=n)
    return {"x": x, "y": rng.normal(0.5 * x, 0.8)}


def planar(condition, start):
    """A target in a region of the plane, given as a condition on x and y."""

    def build():
        with pm.Model() as model:
            x = pm.Normal("x", 0.3, 1, initval=start[0])
            y = pm.Normal("y", 0.5 * x, 0.8, initval=start[1])
            pm.Potential("inside", pt.switch(condition(x, y), 0.0, -np.inf))
        return model

    views = {**each("x", "y", "x + y", "x - y"), "radius": lambda d: np.hypot(d["x"], d["y"])}
    return Target(build, rejection(propose_plane, condition), views, sharpness=5.0)


def strip(x, y):
    """Bounds of each variable, but for where they are read from."""
    return (x > 0) & (x < 1.5) & (y > 0.2)


def disk(x, y):
    return x**2 + y**2 < 1


def wedge(x, y):
    return (y > -0.3 * x) & (y < x)


def crescent(x, y):
    return (x**2 + y**2 < 2.25) & ((x - 0.7) ** 2 + y**2 > 1)


def touching_disks(x, y):
    return ((x + 1) ** 2 + y**2 < 1) | ((x - 1) ** 2 + y**2 < 1)


# All kinds of variables at once, tied together by two constraints.
def tied(a, b, g, o, z):
    return (z**2 + a < g + 1) & (o[..., 0] + z < b)


def mixture():
    with pm.Model() as model:
        a = pm.Exponential("a", 1)
        b = pm.Uniform("b", -a, 1)
        g = pm.Gamma("g", 2, 1)
        o = pm.Normal("o", 0, 1, shape=2, transform=transforms.ordered, initval=[-1.0, 1.0])
        z = pm.Normal("z", 0.5, 1)
        pm.Potential("tied", pt.switch(tied(a, b, g, o, z), 0.0, -np.inf))
    return model


def propose_mixture(rng, n):
    a = rng.exponential(size=n)
    return {
        "a": a,
        "b": rng.uniform(-a, 1),
        "g": rng.gamma(2, size=n),
        "o": np.sort(rng.normal(size=(n, 2)), axis=1),
        "z": rng.normal(0.5, 1, size=n),
    }


# Variables of other steps: a discrete parent of the bounds, and a child bounded by ours.
def discrete_parent():
    with pm.Model() as model:
        k = pm.Poisson("k", 1.0)
        pm.TruncatedNormal("x", k, 1, lower=0.5 - k, upper=1 + k)
    return model


def draw_discrete_parent(rng, n):
    k = rng.poisson(1.0, size=n)
    return {"k": k, "x": truncated(k, 1, 0.5 - k, 1 + k).rvs(size=n, random_state=rng)}


def bounded_child():
    with pm.Model() as model:
        top = pm.Gamma("top", 2, 1)
        pm.Uniform("child", 0, top, default_transform=None, initval=0.5)
    return model


def draw_bounded_child(rng, n):
    top = rng.gamma(2, size=n)
    return {"top": top, "child": rng.uniform(0, top)}


# Known answers: eighteen independent targets, several to a model to save compilation.
class Numeric:
    """A distribution on the line, given by a density that need not be normalised."""

    def __init__(self, density, lower, upper):
        width = (upper - lower) / 200_000
        self.grid = lower + width * (np.arange(200_000) + 0.5)
        self.mass = density(self.grid) / density(self.grid).sum()

    def mean(self):
        return self.mass @ self.grid

    def std(self):
        return np.sqrt(self.mass @ (self.grid - self.mean()) ** 2)

    def ppf(self, share):
        return np.interp(share, np.cumsum(self.mass), self.grid)


def fifty():
    with pm.Model() as model:
        pm.TruncatedNormal("x", np.linspace(-2, 2, 50), 1, lower=0, upper=np.linspace(1, 5, 50))
    return model


FIFTY = {
    f"x[:, {i}]": truncated(mean, 1, 0, upper)
    for i, (mean, upper) in enumerate(
        zip(np.linspace(-2, 2, 50), np.linspace(1, 5, 50), strict=True)
    )
}


def conjugate():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        pm.Binomial("wins", 10, p, observed=8)
        rate = pm.Gamma("rate", 2, 1)
        pm.Exponential("waits", rate, observed=[0.3, 1.1, 0.6])
        w = pm.Dirichlet("w", np.array([1.0, 2.0, 3.0]))
        pm.Multinomial("votes", 12, w, observed=[7, 4, 1])
    return model


CONJUGATE = {
    "p": stats.beta(10, 5),
    "rate": stats.gamma(5, scale=1 / 3),
    "w[:, 0]": stats.beta(8, 10),
    "w[:, 1]": stats.beta(6, 12),
    "w[:, 2]": stats.beta(4, 14),
}


def counts():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        pm.Poisson("counts", rate, observed=[3, 1, 4])
    return model


def walls():
    with pm.Model() as model:
        pm.Exponential("steep", 2)
        pm.Truncated("cut", pm.Exponential.dist(2.0), lower=0.0, upper=1.0, initval=0.5)
        tilted = pm.Uniform("tilted", 0, 1)
        pm.Potential("tilt", pt.log(tilted + 0.1))
        above = pm.Uniform("above", 0, 1)
        pm.Uniform("below", 0, above)
        x, y = pm.HalfNormal("x"), pm.HalfNormal("y")
        pm.Potential("correlated", 0.5 * x * y)
        free = np.array([-1.0, -0.3, 0.3, 1.0])
        pm.Normal("o", 0, 1, shape=4, transform=transforms.ordered, initval=free)
    return model


WALLS = {
    "steep": stats.expon(scale=1 / 2),
    "cut": stats.truncexpon(2, scale=1 / 2),
    "tilted": Numeric(lambda x: x + 0.1, 0, 1),
    "above": stats.uniform(0, 1),
    "below": Numeric(lambda x: -np.log(x), 0, 1),
    "x": Numeric(lambda x: np.exp(-0.375 * x**2) * stats.norm.cdf(x / 2), 0, 10),
    "y": Numeric(lambda x: np.exp(-0.375 * x**2) * stats.norm.cdf(x / 2), 0, 10),
    "o[:, 0]": Numeric(lambda x: stats.norm.pdf(x) * stats.norm.sf(x) ** 3, -9, 9),
    "o[:, 2]": Numeric(
        lambda x: stats.norm.pdf(x) * stats.norm.cdf(x) ** 2 * stats.norm.sf(x), -9, 9
    ),
}


def regions():
    with pm.Model() as model:
        q = pm.MvNormal("q", np.zeros(2), np.array([[1, 0.75], [0.75, 1]]), initval=np.zeros(2))
        pm.Potential("half_plane", pt.switch(q[0] - 2 * q[1] + 1 > 0, 0.0, -np.inf))
        # below a plane in the positive octant: a flat Dirichlet, three of its four parts
        c = pm.Uniform("c", 0, 1, shape=3, initval=np.full(3, 0.2))
        pm.Potential("corner", pt.switch(pt.sum(c) < 1, 0.0, -np.inf))
        # the end of a uniform sample: a Pareto posterior
        top = pm.Pareto("top", 4, 1, initval=6.0)
        pm.Uniform("seen", 0, top, observed=[1.0, 5.0, 3.0])
        z = pm.Normal("z", 0, 1, shape=2)
        pm.Potential("disk", pt.switch(pt.sum(z**2) < 2, 0.0, -np.inf))
    return model


def gaussian_disk():
    with pm.Model() as model:
        z = pm.Normal("z", 0, 1, shape=2)
        pm.Potential("disk", pt.switch(pt.sum(z**2) < 2, 0.0, -np.inf))
    return model


RADIUS = stats.truncexpon(1, scale=2)
HALF_PLANE = Numeric(
    lambda x: stats.norm.pdf(x) * stats.norm.cdf((1 - x / 2) / (2 * np.sqrt(1 - 0.75**2))), -9, 9
)
REGIONS = {
    "q[:, 0]": HALF_PLANE,
    "c[:, 0]": stats.beta(1, 3),
    "c[:, 2]": stats.beta(1, 3),
    "top": stats.pareto(7, scale=5),
    "z[:, 0]": Numeric(
        lambda x: stats.norm.pdf(x) * (2 * stats.norm.cdf(np.sqrt(2 - x**2)) - 1),
        -np.sqrt(2),
        np.sqrt(2),
    ),
    "z[:, 0]**2 + z[:, 1]**2": RADIUS,
}


# PyMC starts both outside: shares that sum to one, and rates in order that are tied.
def shares():
    with pm.Model() as model:
        a, b = pm.Uniform("a", 0, 1), pm.Uniform("b", 0, 1)
        pm.Potential("rest", pt.switch(1 - a - b > 0, 0.0, -np.inf))
        pm.Multinomial("votes", 12, pt.stack([a, b, 1 - a - b]), observed=[3, 4, 5])
        p = pm.Uniform("p", 0, 1, shape=2, transform=transforms.ordered)
        pm.Binomial("wins", 10, p, observed=[2, 5])
    return model


SHARES = {
    "a": stats.beta(4, 11),
    "b": stats.beta(5, 10),
    "p[:, 0]": Numeric(lambda x: stats.beta.pdf(x, 3, 9) * stats.beta.sf(x, 6, 6), 0, 1),
    "p[:, 1]": Numeric(lambda x: stats.beta.pdf(x, 6, 6) * stats.beta.cdf(x, 3, 9), 0, 1),
}


# Many walls at once, without transforms, which would hide a draw outside.
def many():
    with pm.Model() as model:
        pm.HalfNormal("one", shape=500, default_transform=None)
        pm.Uniform("two", 0.1, 0.3, shape=500, default_transform=None)
        x = pm.Normal("x", 0.3, 1, shape=20, initval=-np.ones(20))
        y = pm.Normal("y", 0.5 * x, 0.8, shape=20, initval=np.zeros(20))
        pm.Potential("crescents", pt.switch(pt.all(crescent(x, y)), 0.0, -np.inf))
    return model


TARGETS = {
    "fifty": Target(fifty, None, each(*FIFTY), FIFTY),
    "conjugate": Target(conjugate, None, each(*CONJUGATE), CONJUGATE),
    "counts": Target(counts, None, each("rate"), {"rate": stats.gamma(10, scale=1 / 4)}),
    "walls": Target(walls, None, each(*WALLS), WALLS),
    "regions": Target(regions, None, each(*REGIONS), REGIONS),
    "shares": Target(shares, None, each(*SHARES), SHARES),
    "radius": Target(
        gaussian_disk, None, each("z[:, 0]**2 + z[:, 1]**2"), {"z[:, 0]**2 + z[:, 1]**2": RADIUS}
    ),
    "many": Target(many, sharpness=20.0, step_size=0.02, n_steps=8),
    "bounds": Target(
        bounds,
        draw_bounds,
        each(*(f"x{mu}[:, {i}]" for mu in SHARPNESSES for i in range(4))),
        {
            f"x{mu}[:, {i}]": truncated(MEAN[i], 1, LOWER[i], UPPER[i])
            for mu in SHARPNESSES
            for i in range(4)
        },
        sharpness={f"x{mu}": mu for mu in SHARPNESSES},
        step_size=0.003,
        n_steps=100,
    ),
    "soft": Target(
        soft,
        draw_soft,
        each("one.ravel()", "two.ravel()", "abs(two - 0.5).ravel()"),
        {
            "one.ravel()": SOFT["one"],
            "two.ravel()": SOFT["two"],
            "abs(two - 0.5).ravel()": Distance(SOFT["two"], 0.5),
        },
        sharpness=1.5,
        step_size=0.1,
        n_steps=6,
    ),
    "dependent": Target(dependent, draw_dependent, each("a", "b", "c", "b / a", "a + b + c")),
    "ordered": Target(
        ordered, draw_ordered, each(*(f"x[:, {i}]" for i in range(3)), "x[:, 2] - x[:, 1]")
    ),
    "strip": planar(strip, (0.6, 0.6)),
    "disk": planar(disk, (0.0, 0.0)),
    "wedge": planar(wedge, (1.0, 0.5)),
    "crescent": planar(crescent, (-1.0, 0.0)),
    "touching disks": planar(touching_disks, (1.0, 0.0)),
    "mixture": Target(
        mixture,
        rejection(propose_mixture, tied),
        each("a", "b", "g", "o[:, 0]", "o[:, 1]", "z", "a - g", "z - o[:, 0] - b"),
        sharpness=5.0,
    ),
    "discrete parent": Target(
        discrete_parent, draw_discrete_parent, each("x", "x - k"), sampled=("x",)
    ),
    "bounded child": Target(
        bounded_child, draw_bounded_child, each("top", "top - child"), sampled=("top",)
    ),
}
