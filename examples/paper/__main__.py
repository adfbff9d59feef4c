"""Run the experiments of the paper: ``python -m examples.paper [--quick] [--only NAME]``."""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from examples.paper.shared import FULL, options, run_named, table

NAMES = ("figure1", "figure2", "figure3", "figure4", "factorisation", "others")
LONGEST_FIRST = ("factorisation", "figure4", "figure3", "others", "figure2", "figure1")
PAGE = Path("docs/paper.md")
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def main():
    given = options(only=True)
    if given.only and given.only not in NAMES:
        raise SystemExit(f"--only {given.only}: the experiments are {', '.join(NAMES)}.")
    chosen = [given.only] if given.only else LONGEST_FIRST
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for line in pool.map(partial(run_named, quick=given.quick, out=given.out), chosen):
            print(line, flush=True)
    rows = []
    for name in NAMES:  # those of an earlier run too
        path = given.out / f"{name}.json"
        rows += json.loads(path.read_text())["rows"] if path.exists() else []
    (given.out / "results.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    print(table(rows))
    if given.out == FULL:
        fill(PAGE, table(rows))


def fill(page, text):
    """Put the table between its markers."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
