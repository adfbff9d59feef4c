"""Regressions: with signs, with a sum, monotone, convex."""

from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt

import pymc_rollback as rb
from benchmarks import reference, synthetic
from benchmarks.work.base import Normal, Work, flat

DATA = Path(__file__).parent.parent / "data"
SHAPE, SCALE = 2.0, 0.1
"""Of the inverse gamma prior of the variance of the noise, in standardised data."""
SIGNS = np.array([1, 1, -1, -1, 1, 1])
"""Of Longley's coefficients: people out of work or in the army are not employed."""
CAP = 0.15
"""The largest weight in a portfolio."""
NOISE, WIDE = 0.5, 10.0
"""Standard deviations of the noise about curves and of the prior of their values."""


def read(name):
    """Response and predictors, standardised; the response is the first column."""
    table = np.loadtxt(DATA / f"{name}.csv", delimiter=",", skiprows=1)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    return table[:, 0], table[:, 1:]


def observe(y, mean):
    """Observations with noise of an unknown variance."""
    variance = pm.InverseGamma("variance", SHAPE, SCALE)
    pm.Normal("y", mean, pt.sqrt(variance), observed=y)


def positive():
    y, X = read("stackloss")
    with pm.Model() as model:
        observe(y, X @ pm.HalfNormal("b", shape=X.shape[1]))
    return model


def signs_and_sum():
    y, X = read("longley")
    with pm.Model() as model:
        b = pm.Normal("b", shape=6, initval=SIGNS / 12)
        observe(y, X @ b)
        rb.constrain("signs", SIGNS * b > 0)
        rb.constrain("sum", pt.sum(SIGNS * b) < 1)
    return model


def on_a_simplex():
    """The sizes of the coefficients and what is left of their sum, as a simplex."""
    y, X = read("longley")
    with pm.Model() as model:
        sizes = pm.Dirichlet("sizes", np.ones(7))
        b = pm.Deterministic("b", SIGNS * sizes[:6])
        pm.Potential("prior", -0.5 * pt.sum(b**2))
        observe(y, X @ b)
    return model


def coefficients(name, rows, offset, start):
    """Draws of coefficients and variance, by exact HMC and Gibbs steps."""

    def known(quick):
        y, X = read(name)
        prior = np.eye(X.shape[1])
        draws = 2000 if quick else 40_000
        return reference.of_draws(
            reference.cut_regression(X, y, prior, SHAPE, SCALE, rows, offset, start, draws)
        )

    return known


# An index as a portfolio of assets: positive weights of sum 1, of which none is large.
def tracked():
    """Index and assets, less the last asset, of which the weight is what the others leave."""
    y, X = synthetic.returns()
    return y - X[:, -1], X[:, :-1] - X[:, -1:]


def portfolio():
    y, X = tracked()
    count = X.shape[1]
    with pm.Model() as model:
        w = pm.Uniform("w", 0, CAP, shape=count, initval=np.full(count, 1 / (count + 1)))
        rb.constrain("last", 1 - pt.sum(w), between=(0, CAP))
        observe(y, X @ w)
    return model


def portfolio_in_turn():
    """Each weight by its place between the least and the most that the ones before leave."""
    y, X = tracked()
    count = X.shape[1]
    with pm.Model() as model:
        place = pm.Uniform("place", shape=count)
        rest, weights, widths = 1.0, [], []
        for i in range(count):
            least = pt.maximum(0.0, rest - CAP * (count - i))
            widths.append(pt.minimum(CAP, rest) - least)
            weights.append(least + place[i] * widths[-1])
            rest = rest - weights[-1]
        w = pm.Deterministic("w", pt.stack(weights))
        pm.Potential("jacobian", pt.sum(pt.log(pt.stack(widths))))
        observe(y, X @ w)
    return model


def portfolio_draws(quick):
    y, X = tracked()
    count = X.shape[1]
    eye, ones = np.eye(count), np.ones((1, count))
    rows = np.vstack([eye, -eye, -ones, ones])
    offset = np.repeat([0, CAP, 1, CAP - 1], [count, count, 1, 1])
    start, draws = np.full(count, 1 / (count + 1)), 2000 if quick else 40_000
    none = np.zeros((count, count))
    return reference.of_draws(
        reference.cut_regression(X, y, none, SHAPE, SCALE, rows, offset, start, draws)
    )


# Curves: the values at knots, observed once each.
def curve(knots, differences):
    """The posterior of a curve of which the first or second differences are positive."""
    place = np.linspace(-1, 1, knots)
    truth = np.tanh(3 * place) if differences == 1 else 2 * place**2
    y = truth + np.random.default_rng(1).normal(0, NOISE, knots)
    precision = NOISE**-2 + WIDE**-2
    rows = np.diff(np.eye(knots), n=differences, axis=0)
    start = place if differences == 1 else place**2
    mean = y * NOISE**-2 / precision
    return y, Normal(mean, np.eye(knots) / precision, rows, np.zeros(len(rows)), start)


def constrained(y, differences, start):
    with pm.Model() as model:
        f = pm.Normal("f", 0, WIDE, shape=len(y), initval=start)
        pm.Normal("y", f, NOISE, observed=y)
        slope = f[1:] - f[:-1]
        if differences == 1:
            rb.constrain("monotone", slope > 0)
        else:
            rb.constrain("convex", slope[1:] - slope[:-1] > 0)
    return model


def by_differences(y, differences, start):
    """The first values free, and then positive differences under log transforms."""
    bends = np.diff(start, n=differences)
    with pm.Model() as model:
        f0 = pm.Flat("f0", initval=start[0])
        steps = pm.HalfFlat("steps", shape=len(bends), initval=bends)
        if differences == 2:
            s0 = pm.Flat("s0", initval=start[1] - start[0])
            steps = pt.concatenate([s0[None], s0 + pt.cumsum(steps)])
        f = pm.Deterministic("f", pt.concatenate([f0[None], f0 + pt.cumsum(steps)]))
        pm.Potential("prior", -0.5 * pt.sum((f / WIDE) ** 2))
        pm.Normal("y", f, NOISE, observed=y)
    return model


def curve_work(knots, differences, draws):
    """A curve, of which the known answer takes so many draws."""
    y, normal = curve(knots, differences)
    name = {1: "monotone", 2: "convex"}[differences]
    return Work(
        f"{name} {knots}",
        f"a {name} curve through {knots} knots, {len(normal.rows)} affine constraints",
        lambda: constrained(y, differences, normal.start),
        flat("f"),
        lambda quick: reference.of_draws(reference.cut_normal(normal, 1000 if quick else draws)),
        source="exact HMC for Gaussians",
        joint=True,
        transformed=lambda: by_differences(y, differences, normal.start),
        normal=normal,
        large=knots > 50,
    )


def works(quick):
    seven = np.vstack([np.diag(SIGNS), -SIGNS])
    return [
        Work(
            "positive coefficients",
            "stack loss on 3 predictors with positive coefficients (Brownlee's data)",
            positive,
            flat("b", "variance"),
            coefficients("stackloss", np.eye(3), np.zeros(3), np.ones(3)),
            source="exact HMC for Gaussians and Gibbs steps",
            quick=True,
        ),
        Work(
            "signs and sum",
            "employment on 6 collinear predictors, 6 signs and a bounded sum (Longley's data)",
            signs_and_sum,
            flat("b", "variance"),
            coefficients("longley", seven, np.array([0, 0, 0, 0, 0, 0, 1.0]), SIGNS / 12),
            source="exact HMC for Gaussians and Gibbs steps",
            joint=True,
            transformed=on_a_simplex,
        ),
        Work(
            "portfolio",
            "an index as a portfolio of 10 assets, with weights on a simplex and below 0.15",
            portfolio,
            flat("w", "variance"),
            portfolio_draws,
            source="exact HMC for Gaussians and Gibbs steps",
            joint=True,
            transformed=portfolio_in_turn,
        ),
        curve_work(30, 1, 10_000),
        curve_work(100, 1, 5000),
        curve_work(30, 2, 10_000),
        curve_work(100, 2, 1000),
    ]
