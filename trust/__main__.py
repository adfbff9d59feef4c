"""Run all, on both cores: ``python -m trust [--output FILE] [--quick] [--resume]``.

Results are kept in ``build/trust.pickle`` as they come; with ``--resume`` those of the same kernels
are not made again.
"""

import argparse
import os
from functools import partial
from pathlib import Path

from trust.breaks import BREAKS, judge_named
from trust.chains import run_chain, threshold
from trust.models import MODELS
from trust.onestep import all_cases, audit_cases, judge, judge_count, one_in
from trust.page import Found, write_page
from trust.peers import NAMES, run_peers
from trust.results import Results, run_all

AUDIT = 10**7
"""Transitions of each of its rows."""
CHAIN = 50_000
"""Draws of each long chain."""
SHRINK = 20.0
"""How many times fewer draws the quick form has."""
FINE, GRID = (0.001, 1.6e7), (0.04, 4e6)
"""Smallest shift of a row, and most steps: what keeps the whole below 80 minutes of one core."""


def plan(quick: bool):
    """All pieces of work, the longest first: a section, a place in it, and a function."""
    shrink = SHRINK if quick else 1.0
    fine, grid = one_in(60, all_cases()), one_in(20 if quick else 1, all_cases())
    pieces = [
        ("chains", k, partial(run_chain, name, int(CHAIN / shrink)))
        for k, name in enumerate(MODELS)
    ]
    pieces += [("peers", k, partial(run_peers, name)) for k, name in enumerate(NAMES)]
    pieces += [("breaks", k, partial(judge_named, b.name)) for k, b in enumerate(BREAKS)]
    pieces += [
        ("audit", k, partial(judge_count, case, int(AUDIT / shrink)))
        for k, case in enumerate(audit_cases())
    ]
    for section, cases, (smallest, most) in (("fine", fine, FINE), ("grid", grid, GRID)):
        scale = (shrink**0.5 * smallest, most / shrink)
        pieces += [(section, k, partial(judge, case, *scale)) for k, case in enumerate(cases)]
    return pieces


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="trust", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/trust.md"))
    parser.add_argument("--quick", action="store_true", help="a twentieth of the draws")
    parser.add_argument("--resume", action="store_true", help="go on where a run was stopped")
    options = parser.parse_args(arguments)
    results = Results(options.resume, "quick" if options.quick else "full")
    run_all(plan(options.quick), os.cpu_count() or 1, results)
    rows = results.by_section()
    for section in ("chains", "peers"):
        rows[section] = [row for part in rows[section] for row in part]
    draws = int(CHAIN / SHRINK) if options.quick else CHAIN
    found = Found(**rows, draws=draws, minutes=results.minutes())
    options.output.write_text(write_page(found))
    failures = [v.case.text for name in ("audit", "fine", "grid") for v in rows[name] if v.wrong]
    failures += [v.case.text for name in ("audit", "fine", "grid") for v in rows[name] if v.outside]
    failures += [b.name for b, v in zip(BREAKS, found.breaks, strict=True) if not v.wrong]
    failures += [f"{s.model}: {s.expression}" for s in found.chains if abs(s.z) > threshold()]
    for failure in failures:
        print(f"failed: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
