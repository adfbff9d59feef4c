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
from trust.onestep import all_cases, audit_cases, judge, one_in
from trust.page import Found, write_page
from trust.peers import NAMES, run_peers
from trust.results import Results, run_all

AUDIT = 0.0013, 3e9
"""Smallest shift, for which the rows take ten million transitions and more, and most steps."""
CHAIN = 50_000
"""Draws of each long chain."""
SHRINK = 20.0
"""How many times fewer draws the quick form has."""
FINE = 0.001, 5e7
GRID = 0.03, 5e6


def plan(quick: bool):
    """All pieces of work, the longest first: a section, a place in it, and a function."""
    shrink = SHRINK if quick else 1.0
    rows = {"audit": audit_cases(), "fine": one_in(30, all_cases()), "grid": all_cases()}
    if quick:
        rows["grid"] = one_in(20, rows["grid"])
    limits = {"audit": AUDIT, "fine": FINE, "grid": GRID}
    pieces = [
        ("chains", k, partial(run_chain, name, int(CHAIN / shrink)))
        for k, name in enumerate(MODELS)
    ]
    pieces += [("peers", k, partial(run_peers, name)) for k, name in enumerate(NAMES)]
    pieces += [("breaks", k, partial(judge_named, b.name)) for k, b in enumerate(BREAKS)]
    for section, cases in rows.items():
        smallest, most = limits[section]
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
