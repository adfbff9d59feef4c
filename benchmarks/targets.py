"""Targets that follow from the rows of the works."""

import numpy as np

from benchmarks.measure import per_gradient, per_second, smallest, usable
from benchmarks.rows import Row
from benchmarks.samplers import AT_ONCE, METRICS, OURS

OVER_NUTPIE = ("half normal", "uniform", "exponential", "cut normal", "ordered")
PER_GRADIENT = {
    "half normal": 450,
    "uniform": 400,
    "exponential": 150,
    "cut normal": 120,
    "ordered": 300,
    "ball": 250,
    "close orthant 10": 350,
    "close orthant 50": 280,
    "close orthant 100": 200,
    "positive coefficients": 130,
    "signs and sum": 220,
    "portfolio": 180,
    "monotone 30": 400,
    "monotone 100": 200,
    "convex 30": 150,
    "convex 100": 60,
    "logistic": 150,
    "Poisson GLM": 25,
    "Poisson trend": 400,
    "AR(5)": 180,
    "collinear": 280,
    "interaction": 350,
    "two rates": 300,
    "Michaelis-Menten": 22,
    "growth curve": 100,
    "Gaussian process": 192,
    "stationary AR(4)": 70,
    "GARCH(1,1)": 110,
    "mixture": 350,
    "hidden chain": 64,
    "eight schools": 80,
    "matrix factorisation": 11.5,
}
"""Effective draws that 1000 gradients shall give at least."""
PER_SECOND = {
    **dict.fromkeys(("monotone 30", "monotone 100", "convex 30", "convex 100"), (METRICS, 2.0)),
    **{f"close orthant {n}": (("tmg-hmc",), 10.0) for n in (10, 50, 100)},
}
"""Of some works: peers, and how many times as many effective draws a second as theirs."""
COORDINATES = (
    "mixture",
    "growth curve",
    "eight schools",
    "Gaussian process",
    "stationary AR(4)",
    "hidden chain",
    "Michaelis-Menten",
    "matrix factorisation",
    "band",
    "Poisson GLM",
    "GARCH(1,1)",
    "portfolio",
    "positive coefficients",
    "half normal",
)
"""Works in which either the variables or their transforms are the better coordinates."""


def measured(works, work, sampler):
    """The row of a sampler, if it gave draws."""
    row = works.get(work, {"rows": {}})["rows"].get(sampler, {})
    return row if "ess_mean" in row else None


def best(works, work, samplers, figure):
    """The largest figure of those of some samplers that are right; None if none is."""
    rows = (measured(works, work, name) for name in samplers)
    return max((figure(row) for row in rows if row and usable(row)), default=None)


def over(works, work, peers, figure):
    """Our figure over the best of the peers' that are right; None without one of them.

    Per second, that of our faster entry: both make the same draws for a gradient.
    """
    entries = (OURS, AT_ONCE) if figure is per_second else (OURS,)
    ours = [figure(row) for name in entries if (row := measured(works, work, name))]
    theirs = best(works, work, peers, figure)
    return max(ours) / theirs if ours and theirs else None


def over_metrics(works) -> dict[str, float]:
    """By work: our effective draws per gradient over those of the better of nutpie's metrics."""
    found = {name: over(works, name, METRICS, per_gradient) for name in works}
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def targets(works: dict) -> list[Row]:
    """Those of which the rows are there."""
    parts = (each_per_gradient, together, each_over_nutpie, each_per_second, of_balls)
    return [row for part in parts for row in part(works)]


def each_per_gradient(works):
    for name, least in PER_GRADIENT.items():
        if ours := measured(works, name, OURS):
            yield Row(f"{name}: ESS per 1000 gradients", 1000 * per_gradient(ours), least, True)
    if ours := measured(works, "band", OURS):
        yield Row("band: ESS per draw", smallest(ours) / ours["draws"], 0.37, True)


def together(works):
    """Of all works that nutpie can do, and of those of the coordinates: the mean, and the worst."""
    ratios = over_metrics(works)
    of_coordinates = {name: ratios[name] for name in COORDINATES if name in ratios}
    for which, found, least in (("all", ratios, 2.5), ("coordinates", of_coordinates, 1.5)):
        if found:
            name = f"{which}: ESS per gradient over the better of nutpie's metrics"
            mean = np.exp(np.mean(np.log(np.maximum([*found.values()], 1e-12))))
            yield Row(f"{name}, geometric mean of {len(found)}", float(mean), least, True)
            worst = min(found, key=found.get)
            yield Row(f"{name}, worst ({worst})", found[worst], 0.9, True)


def each_over_nutpie(works):
    for name in OVER_NUTPIE:
        for unit, figure in (("gradient", per_gradient), ("second", per_second)):
            ratio = over(works, name, METRICS[:1], figure)
            if ratio is not None:
                yield Row(f"{name}: ESS per {unit} over nutpie's", ratio, 1.0, True)


def each_per_second(works):
    for name, (peers, least) in PER_SECOND.items():
        ratio = over(works, name, peers, per_second)
        if ratio is not None:
            others = "the better of nutpie's metrics" if peers == METRICS else peers[0]
            yield Row(f"{name}: ESS per second over that of {others}", ratio, least, True)


def of_balls(works):
    if ours := measured(works, "ball", OURS):
        each = ours["ess_mean"] / ours["draws"], ours["ess_square"] / ours["draws"]
        yield Row("ball: ESS of means per draw", each[0], 0.6, True)
        yield Row("ball: ESS of squares per draw", each[1], 0.3, True)
        yield Row("ball: divergences", ours["divergences"], 0)
    ours, theirs = (measured(works, "paper's ball", name) for name in (OURS, "paper's settings"))
    if ours and theirs:
        ratio = per_gradient(ours) / per_gradient(theirs)
        yield Row("paper's ball: ESS per gradient over the paper's settings'", ratio, 40, True)
