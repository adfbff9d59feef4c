"""``docs/trust.md``, from what was found."""

from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.page import table
from benchmarks.suite import describe_setup
from trust.breaks import AROUND, BREAKS, SMALLEST
from trust.chains import FALSE_ALARMS, Statistic, threshold
from trust.onestep import SUSPECT, VIEWS, WRONG, Verdict
from trust.peers import Agreement


class Found(NamedTuple):
    """All that ``make trust`` finds.

    Attributes
    ----------
    audit, fine, grid
        One-step rows: the audit's, one for each kernel on each wall, and all.
    breaks
        Verdicts on the wrong samplers.
    chains, peers
        Long chains, and other samplers.
    draws
        Of each of four long chains.
    minutes
        Of one core.
    """

    audit: Sequence[Verdict]
    fine: Sequence[Verdict]
    grid: Sequence[Verdict]
    breaks: Sequence[Verdict]
    chains: Sequence[Statistic]
    peers: Sequence[Agreement]
    draws: int
    minutes: float


def write_page(found: Found) -> str:
    """The page in Markdown."""
    rows = [*found.audit, *found.fine, *found.grid]
    regions = {(v.case.target, v.case.n) for v in rows if v.case.target not in ("none", "smoothed")}
    inside = [v for v in rows if (v.case.target, v.case.n) in regions]
    draws, outside = sum(v.draws for v in inside), sum(v.outside for v in inside)
    return f"""# Can the draws be trusted?

`make trust` runs all that is here and writes this page; it took {found.minutes:.0f} minutes of one
core of {describe_setup()}. [Why the draws are exact](exactness.md) says what each row is about.

**In short**: {len(rows):,} one-step rows, {wrong(rows)} wrong; {caught(found)} of {len(BREAKS)}
wrong samplers caught; the farthest of {len(found.chains)} statistics of long chains is
{max(abs(s.z) for s in found.chains):.1f} standard errors off (limit {threshold():.1f});
{draws:,} draws over {len(regions)} regions, {outside} outside.

## One transition from exact draws

Exact draws, one transition each, and the mean change of {len(VIEWS)} functions of the draw
({", ".join(VIEWS)}). A right kernel changes none. *z* is the change that is farthest from
zero, over its standard error; *shift* the same over the standard deviation of the function; *seen*
the smallest shift that would have been seen in every function (in half of all cases): {SUSPECT:g}
standard errors. A row beyond {SUSPECT:g} is run again from another seed with four times the draws,
and is wrong beyond {WRONG:g}: a right sampler fails one of a thousand rows with a chance of 2 in a
million.

### The audit's rows

Those in which doubled trajectories of version 0.1 were off by up to 0.015 standard deviations
(z = −52), with at least {min(v.draws for v in found.audit):,} transitions each.

{verdicts(found.audit)}

### Each kernel on each kind of wall

{verdicts(found.fine)}

### All kernels, walls, dimensions, step sizes and metrics

{len(found.grid):,} rows, of which the ten farthest are shown; the smallest shift seen is
{max(v.seen for v in found.grid):.3f} in the worst row.

{verdicts(sorted(found.grid, key=lambda v: -abs(v.z))[:10])}

## Wrong samplers

Each is the package with one small mistake, judged by the row that should see it, with as many draws
as show a shift of {SMALLEST:g}.

{breaks(found)}

Mistakes in the code around the kernels are controls of tests: {around()}.

## Long chains through `pm.sample`

4 × {found.draws:,} draws of small models, each beside two normals with a correlation of 0.99, which
force short steps. Errors are Monte Carlo errors by the effective number of draws. The limit,
{threshold():.2f} standard errors, is exceeded by {FALSE_ALARMS:.1%} of right samplers in any of the
{len(found.chains)} statistics (Bonferroni).

{statistics(found.chains)}

## No draw outside

{draws:,} draws of the rows above, over {len(regions)} regions (kind of wall × dimension): {outside}
outside.

## Other exact samplers

The farthest of the means and squares of all quantities from those of a peer, in standard errors of
the difference.

{agreements(found.peers)}
"""


def wrong(rows: Sequence[Verdict]) -> int:
    return sum(v.wrong for v in rows)


def caught(found: Found) -> int:
    return wrong(found.breaks)


def verdicts(rows: Sequence[Verdict]) -> str:
    head = ("row", "transitions", "farthest", "z", "shift", "seen", "verdict")
    return table(
        head, [(v.case.text, *cells(v), "**wrong**" if v.wrong else "right") for v in rows]
    )


def cells(v: Verdict) -> tuple[str, ...]:
    return f"{v.draws:,}", v.view, f"{v.z:.1f}", f"{v.shift:.5f}", f"{v.seen:.4f}"


def breaks(found: Found) -> str:
    head = ("mistake", "row that sees it", "farthest", "z", "shift", "caught")
    pairs = zip(BREAKS, found.breaks, strict=True)
    lines = [
        (
            b.name,
            v.case.text,
            v.view,
            f"{v.z:.1f}",
            f"{v.shift:.4f}",
            "yes" if v.wrong else "**no**",
        )
        for b, v in pairs
    ]
    return table(head, lines)


def around() -> str:
    return "; ".join(f"{name} (`{test}`)" for name, test in AROUND.items())


def statistics(rows: Sequence[Statistic]) -> str:
    head = ("model", "mean of", "found", "truth", "z")
    lines = [
        (s.model, f"`{s.expression}`", f"{s.mean:.5f}", f"{s.truth:.5f}", f"{s.z:.2f}")
        for s in rows
    ]
    return table(head, lines)


def agreements(rows: Sequence[Agreement]) -> str:
    head = ("work", "peer", "statistics", "z", "")
    return table(
        head,
        [
            (a.work, a.peer, str(a.statistics or ""), "" if a.note else f"{a.z:.1f}", a.note)
            for a in rows
        ],
    )
