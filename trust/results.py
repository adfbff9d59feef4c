"""Run pieces of work on several cores, and keep what they give as it comes."""

import multiprocessing
import pickle
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.progress import Progress

import pymc_rollback.kernels
from pymc_rollback.kernels.cache import stamp

KEPT = Path("build/trust.pickle")


def timed(piece):
    """What a piece gives, and the seconds of processor time that it took."""
    start = time.process_time()
    return piece(), time.process_time() - start


class Results:
    """Results and their seconds, by section and place, on disk as they come.

    Those of other kernels, or of another form ("quick" or "full"), do not count.
    """

    def __init__(self, resume: bool, form: str):
        self.kernels = form, stamp(Path(pymc_rollback.kernels.__path__[0]))
        self.found = {}
        if resume and KEPT.exists():
            kernels, found = pickle.loads(KEPT.read_bytes())
            self.found = found if kernels == self.kernels else {}

    def add(self, key, result):
        self.found[key] = result
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_bytes(pickle.dumps((self.kernels, self.found)))

    def by_section(self):
        sections = defaultdict(list)
        for (section, _), (result, _) in sorted(self.found.items(), key=lambda item: item[0]):
            sections[section].append(result)
        return dict(sections)

    def minutes(self):
        """Of processor time, over all runs."""
        return sum(seconds for _, seconds in self.found.values()) / 60


def run_all(pieces, cores, results):
    """Run the pieces that have no result yet."""
    left = {(section, k): piece for section, k, piece in pieces}
    left = {key: piece for key, piece in left.items() if key not in results.found}
    # spawned, as Numba's and BLAS's threads do not survive a fork
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, context) as pool, Progress() as progress:
        bar = progress.add_task("trust", total=len(left))
        keys = {pool.submit(timed, piece): key for key, piece in left.items()}
        try:
            for future in as_completed(keys):
                results.add(keys[future], future.result())
                progress.update(bar, advance=1, description=keys[future][0])
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
