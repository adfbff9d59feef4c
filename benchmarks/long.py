"""Long runs of nutpie, for works of which nothing better is known.

``python -m benchmarks.long [NAME ...]`` makes those that are named, or all that are needed, and
writes them to ``benchmarks/data/long.json``: a run of the benchmarks reads them.
"""

import json
import sys

from benchmarks.measure import smallest_ess
from benchmarks.reference import LONG, STORE, of_draws
from benchmarks.samplers import Size, run_nutpie
from benchmarks.work import works

SIZE, LARGE = (Size(tune=1000, draws=draws, chains=4) for draws in (20_000, 4000))
"""Of most works, and of those with many unknowns."""


def main(names):
    store = json.loads(STORE.read_text()) if STORE.exists() else {}
    needed = {name: work for name, (_, work) in works(quick=False).items() if work.source == LONG}
    for name in names or needed:
        work = needed[name]
        size = LARGE if work.large else SIZE
        draws = run_nutpie(work, size, adaptation="low_rank").draws
        mean, square = smallest_ess(draws)
        print(f"{name}: {mean:,.0f} effective draws of means, {square:,.0f} of squares")
        store[name] = {
            part: [float(f"{x:.7g}") for x in values]
            for part, values in of_draws(draws)._asdict().items()
        }
    STORE.write_text(as_text({name: store[name] for name in needed if name in store}))


def as_text(store):
    """JSON with a line for each list of numbers."""
    lines = {
        name: ",\n  ".join(f"{json.dumps(part)}: {json.dumps(x)}" for part, x in known.items())
        for name, known in store.items()
    }
    entries = [f"{json.dumps(name)}: {{\n  {text}\n}}" for name, text in lines.items()]
    return "{" + ",\n".join(entries) + "}\n"


if __name__ == "__main__":
    main(sys.argv[1:])
