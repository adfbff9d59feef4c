"""Agreement with other exact samplers, on normals between planes."""

from typing import NamedTuple

import numpy as np

from benchmarks.measure import error, ess
from benchmarks.samplers import SAMPLERS, Size
from benchmarks.work import works

NAMES = ("half normal", "wedge", "orthant 10", "polytope")
"""Works of the benchmarks that all of them can do."""
PEERS = ("hopsy", "tmg-hmc")
OURS = "rollback"


class Agreement(NamedTuple):
    """The farthest of the means and squares of all quantities, in standard errors of both."""

    work: str
    peer: str
    statistics: int
    z: float
    note: str = ""


def run_peers(name: str, draws: int = 20_000) -> list[Agreement]:
    """Our means against those of each peer that is installed."""
    _, work = works(False)[name]
    size, by_name = Size(1000, draws, 2), {sampler.name: sampler for sampler in SAMPLERS}
    ours = by_name[OURS].run(work, size).draws
    rows = []
    for peer in PEERS:
        missing = by_name[peer].missing()
        if missing:
            rows.append(Agreement(name, peer, 0, np.nan, missing))
            continue
        try:
            theirs = by_name[peer].run(work, size).draws
        except Exception as error:  # a peer may fail in any way: that is its row
            rows.append(Agreement(name, peer, 0, np.nan, f"failed: {type(error).__name__}"))
            continue
        z = max(farthest(f(ours), f(theirs)) for f in (np.asarray, np.square))
        rows.append(Agreement(name, peer, 2 * ours.shape[2], z))
    return rows


def farthest(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Largest difference of means, in standard errors of the difference."""
    own = theirs.std(axis=(0, 1)) / np.sqrt(np.maximum(ess(theirs), 1.0))
    return float(error(ours, theirs.mean(axis=(0, 1)), own).max())
