"""Read and sample random models: ``python -m fuzz [--models N] [--sampled N] [--seed N]``."""

import argparse
import multiprocessing
import os
import re
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from rich.progress import Progress

from fuzz.check import check_draws, check_region
from fuzz.work import interpret, run_one


def run_all(pool, name, check, seeds):
    """Verdicts and scripts by seed."""
    found = {}
    with Progress() as progress:
        bar = progress.add_task(name, total=len(seeds))
        seed_of = {pool.submit(run_one, check, seed): seed for seed in seeds}
        for future in as_completed(seed_of):
            seed = seed_of[future]
            found[seed] = verdict, text = future.result()
            if text is not None:
                progress.print(f"\n# model {seed}: {verdict.reason}\n{text}", markup=False)
            progress.advance(bar)
    return found


def summarise(name, found):
    """How often there was each outcome, and why models were not checked."""
    verdicts = [verdict for verdict, _ in found.values()]
    outcomes = Counter(verdict.outcome for verdict in verdicts)
    print(f"{name}: " + ", ".join(f"{n} {outcome}" for outcome, n in outcomes.most_common()))
    for outcome in ("refused", "no model"):
        reasons = Counter(_in_general(v.reason) for v in verdicts if v.outcome == outcome)
        for reason, count in reasons.most_common():
            print(f"  {outcome} {count} times: {reason}")


def _in_general(reason):
    """An error without the names and numbers of one model."""
    first = re.split(r"\n|(?<=[a-z])\. ", reason)[0]
    return re.sub(r"`[^`]*`|'[^']*'|\[[^\]]*\]|-?\b\d[\w.+-]*", "…", first)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--models", type=int, default=1000, help="how many are read")
    parser.add_argument("--sampled", type=int, default=200, help="how many of them are sampled")
    parser.add_argument("--seed", type=int, default=0, help="of the first model")
    options = parser.parse_args(arguments)
    # spawned, as Numba's and BLAS's threads do not survive a fork
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=interpret) as pool:
        seeds = range(options.seed, options.seed + options.models)
        read = run_all(pool, "read", check_region, seeds)
        good = [seed for seed in seeds if read[seed][0].outcome == "agrees"]
        sampled = run_all(pool, "sampled", check_draws, good[: options.sampled])
    summarise("read", read)
    summarise("sampled", sampled)
    return int(any(text is not None for found in (read, sampled) for _, text in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
