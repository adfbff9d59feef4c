"""Run the benchmarks: ``python -m benchmarks [--only NAME] [--samplers NAME ...] [--quick]``."""

import argparse
from pathlib import Path

from rich.console import Console

from benchmarks import picture
from benchmarks.measure import per_second
from benchmarks.page import write_page
from benchmarks.samplers import SAMPLERS
from benchmarks.suite import RATIOS, Store, run_ratios, run_work
from benchmarks.work import GROUPS, works


def main(arguments=None):
    options = parse(arguments)
    output = options.output or Path("build/benchmarks" if options.quick else "docs")
    output.mkdir(parents=True, exist_ok=True)
    store = Store(output / "benchmarks.json")
    show = Console(highlight=False).print
    for name, (group, work) in works(options.quick).items():
        if wanted(options, name, group, work.quick):
            show(f"[bold]{name}[/bold]: {work.about}")
            chosen = [s for s in SAMPLERS if s.name in (options.samplers or [s.name])]
            for sampler, row in run_work(store, group, work, options.quick, chosen):
                speed = f"{per_second(row):,.0f} ESS/s, " if "seconds" in row else ""
                show(f"  {sampler}: {speed}{row['verdict']}")
            write(store, output)
    for name in () if options.samplers else RATIOS:
        if wanted(options, name, name, in_quick=True):
            show(f"[bold]{name}[/bold]")
            for row in run_ratios(store, name, options.quick):
                show(f"  {row.name}: {row.measured} {row.target} {row.met}")
            write(store, output)
    write(store, output)


def parse(arguments):
    names = [*works(True), *GROUPS, *RATIOS]
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="NAME", choices=names, help=f"one of: {', '.join(names)}")
    parser.add_argument(
        "--samplers",
        nargs="+",
        choices=[s.name for s in SAMPLERS],
        help="run these alone, and keep the rows of the others",
    )
    parser.add_argument("--quick", action="store_true", help="small models, few draws, some works")
    parser.add_argument("--output", type=Path, help="folder of page, picture and results")
    return parser.parse_args(arguments)


def wanted(options, name, group, in_quick):
    """Whether something is run: by its name or that of its group, or as a part of all."""
    if options.only:
        return options.only in (name, group)
    return in_quick or not options.quick


def write(store, output):
    """Page and picture, from all results that there are."""
    in_order(store.content)
    picture.draw(store.content["works"], output / "benchmarks.png")
    (output / "benchmarks.md").write_text(write_page(store.content))


def in_order(content):
    """Works in the order in which they are defined, whichever was run last."""
    order = list(works(True))
    kept = content["works"]
    content["works"] = {name: kept[name] for name in sorted(kept, key=order.index)}


if __name__ == "__main__":
    main()
