"""Run all, on both cores: ``python -m trust [--output FILE] [--quick]``."""

import argparse
import multiprocessing
import os
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from rich.progress import Progress

from trust.breaks import BREAKS, judge_break
from trust.chains import run_chain, threshold
from trust.models import MODELS
from trust.onestep import all_cases, audit_cases, judge, one_in
from trust.page import Found, write_page
from trust.peers import NAMES, run_peers

AUDIT = 0.0013, 3e9
"""Smallest shift, for which the rows take ten million transitions and more, and most steps."""
FINE = 0.001, 3e8
GRID = 0.02, 2e7


def plan(quick: bool):
    """All pieces of work, the longest first: a section, a place in it, and a function."""
    shrink = 20.0 if quick else 1.0
    rows = {"audit": audit_cases(), "fine": one_in(30, all_cases()), "grid": all_cases()}
    if quick:
        rows["grid"] = one_in(20, rows["grid"])
    limits = {"audit": AUDIT, "fine": FINE, "grid": GRID}
    pieces = [
        ("chains", k, partial(run_chain, name, int(50_000 / shrink)))
        for k, name in enumerate(MODELS)
    ]
    pieces += [("peers", k, partial(run_peers, name)) for k, name in enumerate(NAMES)]
    pieces += [("breaks", k, partial(judge_break, b)) for k, b in enumerate(BREAKS)]
    for section, cases in rows.items():
        smallest, most = limits[section]
        scale = (shrink**0.5 * smallest, most / shrink)
        pieces += [(section, k, partial(judge, case, *scale)) for k, case in enumerate(cases)]
    return pieces


def run_all(pieces, cores):
    """What all pieces give, by section, in their order."""
    found = defaultdict(dict)
    # spawned, as Numba's and BLAS's threads do not survive a fork
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, context) as pool, Progress() as progress:
        bar = progress.add_task("trust", total=len(pieces))
        places = {pool.submit(piece): (section, k) for section, k, piece in pieces}
        for future in as_completed(places):
            section, k = places[future]
            found[section][k] = future.result()
            progress.update(bar, advance=1, description=section)
    return {section: [rows[k] for k in sorted(rows)] for section, rows in found.items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="trust", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/trust.md"))
    parser.add_argument("--quick", action="store_true", help="a twentieth of the draws")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    rows = run_all(plan(options.quick), os.cpu_count() or 1)
    for section in ("chains", "peers"):
        rows[section] = [row for part in rows[section] for row in part]
    found = Found(**rows, minutes=(time.perf_counter() - start) / 60)
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
