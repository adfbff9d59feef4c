"""Targets that follow from the rows of the works."""

from benchmarks.measure import per_gradient, per_second
from benchmarks.rows import Row
from benchmarks.samplers import OURS

OVER_NUTPIE = ("half normal", "uniform", "exponential", "cut normal", "ordered")


def targets(works: dict) -> list[Row]:
    """Those of which both rows are there."""

    def row(work, sampler):
        found = works.get(work, {}).get("rows", {}).get(sampler, {})
        return found if "ess_mean" in found else None

    found = []
    for name in OVER_NUTPIE:
        ours, theirs = row(name, OURS), row(name, "nutpie")
        if ours and theirs:
            ratio = per_gradient(ours) / per_gradient(theirs)
            found.append(Row(f"{name}: ESS per gradient over nutpie's", ratio, 1.0, True))
            ratio = per_second(ours) / per_second(theirs)
            found.append(Row(f"{name}: ESS per second over nutpie's", ratio, 1.0, True))
    if ours := row("ball", OURS):
        each = ours["ess_mean"] / ours["draws"], ours["ess_square"] / ours["draws"]
        found.append(Row("ball: ESS of means per draw", each[0], 0.6, True))
        found.append(Row("ball: ESS of squares per draw", each[1], 0.3, True))
        found.append(Row("ball: divergences", ours["divergences"], 0))
    ours, theirs = row("paper's ball", OURS), row("paper's ball", "paper's settings")
    if ours and theirs:
        ratio = per_gradient(ours) / per_gradient(theirs)
        name = "paper's ball: ESS per gradient over the paper's settings'"
        found.append(Row(name, ratio, 40, True))
    return found
