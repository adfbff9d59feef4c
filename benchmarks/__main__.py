"""Run the benchmarks: ``python -m benchmarks [--only NAME] [--quick]``."""

import argparse

from rich.console import Console
from rich.table import Table

from benchmarks import loop, scaling, tuning

BENCHMARKS = {"loop": loop.run, "tuning": tuning.run, "scaling": scaling.run}


def main():
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", choices=BENCHMARKS, help="run one benchmark")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args()
    table = Table("benchmark", "measured", "target", "met")
    for name in [options.only] if options.only else BENCHMARKS:
        for row in BENCHMARKS[name](options.quick):
            table.add_row(f"{name}: {row.name}", row.measured, row.target, row.met)
    Console().print(table)


if __name__ == "__main__":
    main()
