"""The page of the benchmarks, from the results."""

from benchmarks.measure import FALSE_ALARMS, MIXED, per_gradient, per_second, smallest, usable
from benchmarks.rows import Row
from benchmarks.samplers import AT_ONCE, METRICS, OURS
from benchmarks.targets import measured, over_metrics, targets

LOSS = 2.0
"""How many times faster a peer must be to be named."""

TOP = f"""# Benchmarks

`make bench` runs all that is here, on one core, and writes this page and the raw results
(`benchmarks.json`); `make bench ONLY="name"` runs one work, or one table at the end, again.

{{setups}}

How to read the tables:

- **ESS**: the smallest effective number of draws over all quantities, of their means and of their
  squared deviations; the two columns after it divide the smaller one.
- **per 1000 gradients**: of the model's log density, after the warm-up; all that a sampler says it
  has evaluated. Ours counts every one (`tests/exactness/test_frozen.py`): those of a start and of a
  fresh image, too, which were left out before November 2026.
- **per second**: with the warm-up, without compilation.
- **first draw**: seconds from the model to the first draw, with compilation; for the first work of
  a new machine also of our kernels, once.
- **error**: the largest difference from the known answer, over the means of all quantities and of
  their squares, in standard errors (of the draws, and of the known answer where that is
  simulated). A row is *wrong* where it exceeds the number in brackets, as {FALSE_ALARMS:.1%} of
  right samplers do at most (Bonferroni), and *did not mix* where an ESS is below {MIXED}: then the
  error says nothing.

Ours is "rollback", which is `pm.sample(step=rb.RollbackHMC())` and asks Python for each draw, and
"rb.sample": the same chains, with many draws in one compiled call. NUTS and nutpie run under
transforms: PyMC's for bounds and orders, and for joint constraints a change of variables made by
hand, where there is one. nutpie has a diagonal metric, or a low-rank one. "NUTS over −inf" and
Metropolis meet the constraint as a Potential. hopsy and tmg-hmc sample normal densities only, and
are given them.

![Effective draws per second over the best peer's](benchmarks.png)
"""

ABOUT = {
    "scaling": """Exponentials in boxes; normals in balls that cut them at 0.7 of their typical
radius; a normal in 20 dimensions cut by random planes.

![Gradients per effective draw](scaling.png)

"""
}
"""What stands above a table of figures."""

HEAD = ("sampler", "ESS mean", "ESS square", "per 1000 gradients", "per second", "first draw")
HEAD = (*HEAD, "divergences", "error", "verdict")


def write_page(content: dict) -> str:
    """Markdown of all results."""
    works = content["works"]
    parts = [TOP.format(setups=setups(content)), losses(works), metrics(works), changes(works)]
    for group in dict.fromkeys(work["group"] for work in works.values()):
        parts.append(f"## {group.capitalize()}")
        for name, work in works.items():
            if work["group"] == group:
                parts.append(work_table(name, work))
    parts += ratio_tables(content)
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def setups(content):
    """What was run on what: one line if all was run on the same."""
    entries = {**content["works"], **content["ratios"]}
    found = {}
    for name, entry in entries.items():
        found.setdefault(entry["setup"], []).append(name)
    if len(found) == 1:
        return f"Run on {next(iter(found))}."
    return "\n".join(f"- {', '.join(names)}: run on {setup}." for setup, names in found.items())


def best_peer(work):
    """The name of the fastest of the others that are right; None if none is."""
    return _fastest(work, [name for name in work["rows"] if name not in (OURS, AT_ONCE)])


def best_of_ours(work):
    """The name of the faster of our two entries that are right; None if none is."""
    return _fastest(work, [name for name in (OURS, AT_ONCE) if name in work["rows"]])


def _fastest(work, names):
    right = {name: per_second(work["rows"][name]) for name in names if usable(work["rows"][name])}
    return max(right, key=right.get) if right else None


def losses(works):
    """Where a peer is more than twice as fast, and where we fail."""
    lines = []
    for name, work in works.items():
        rows, ours, peer = work["rows"], best_of_ours(work), best_peer(work)
        if OURS not in rows:
            continue
        if ours is None:
            others = f"{peer} is right" if peer else "so is no other"
            lines.append(f"- {name}: {OURS} {rows[OURS]['verdict']}; {others}.")
        elif peer and per_second(rows[peer]) > LOSS * per_second(rows[ours]):
            ratio = per_second(rows[peer]) / per_second(rows[ours])
            lines.append(f"- {name}: {peer}, {number(ratio)} times.")
    wins = sum(
        best_of_ours(work) is not None and best_peer(work) is None for work in works.values()
    )
    text = f"## Where a peer is more than {LOSS:g} times faster, in ESS per second\n\n"
    text += "\n".join(lines) if lines else "Nowhere."
    return text + (f"\n\nOn {wins} of the works no peer is right." if wins else "")


def metrics(works):
    """Our effective draws per gradient beside those of nutpie's metrics."""
    lines = []
    for name, ratio in over_metrics(works).items():
        rows = (measured(works, name, sampler) for sampler in (OURS, *METRICS))
        each = ("" if row is None else per_thousand(row) for row in rows)
        lines.append((name, *each, f"{ratio:.2f}"))
    if not lines:
        return ""
    text = (
        "## Against nutpie, per gradient\n\nEffective draws per 1000 gradients, and the ratio of "
        "ours to the better of nutpie's metrics. In brackets: not right, and not compared with."
    )
    return f"{text}\n\n{table(('work', OURS, *METRICS, 'ratio'), lines)}"


def per_thousand(row):
    text = number(1000 * per_gradient(row))
    return text if usable(row) else f"({text})"


def changes(works):
    """Our effective draws per gradient in the run before, and now."""
    lines = []
    for name, work in works.items():
        before, now = work.get("before"), work["rows"].get(OURS)
        if all(row and row.get("gradients") for row in (before, now)):
            old, new = (1000 * per_gradient(row) for row in (before, now))
            lines.append((name, number(old), number(new), f"{new / old:.2f}"))
    if not lines:
        return ""
    head = ("work", "before", "now", "ratio")
    text = (
        "## What changed since the run before\n\nOurs, effective draws per 1000 gradients. Each "
        "figure is of one seed and of the slowest quantity: several rows tell more than one."
    )
    return f"{text}\n\n{table(head, lines)}"


def work_table(name, work):
    text = f"### {name}\n\n{work['about'][0].upper()}{work['about'][1:]}."
    text += f" Known answer: {work['source']}."
    lines = [work_row(sampler, row) for sampler, row in work["rows"].items()]
    return f"{text}\n\n{table(HEAD, lines)}"


def work_row(sampler, row):
    if "ess_mean" not in row:
        return (sampler, *[""] * (len(HEAD) - 2), row["verdict"])
    gradients = per_gradient(row)
    far = max(row["error_mean"], row["error_square"])
    verdict = row["verdict"] if usable(row) else f"**{row['verdict']}**"
    return (
        sampler,
        number(row["ess_mean"]),
        number(row["ess_square"]),
        "" if gradients is None else number(1000 * gradients),
        number(per_second(row)),
        f"{row['first']:.1f}",
        "" if row["divergences"] is None else str(row["divergences"]),
        f"{far:.1f} (of {row['threshold']:.1f})" if smallest(row) >= MIXED else "",
        verdict,
    )


def ratio_tables(content):
    found = {"targets": targets(content["works"])}
    for name, entry in content["ratios"].items():
        found[name] = [Row(**row) for row in entry["rows"]]
    head = ("figure", "measured", "target", "met")
    return [
        f"## {name.capitalize()}\n\n{ABOUT.get(name, '')}"
        + table(head, [(row.name, row.measured, row.target, row.met) for row in rows])
        for name, rows in found.items()
        if rows
    ]


def table(head, rows):
    """A table in Markdown; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    rule = "|---|" + "---:|" * (len(head) - 1)
    return "\n".join([lines[0], rule, *lines[1:]])


def number(x):
    """Three digits."""
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"
