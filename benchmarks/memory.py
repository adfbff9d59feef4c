"""Peak memory of a fresh process that samples the largest model, over that of PyMC's NUTS."""

import subprocess
import sys

from benchmarks.rows import Row

PEAK = """
import logging, resource, sys, warnings
import pymc as pm
import pymc_rollback as rb
from benchmarks.work.factorisation import build

logging.getLogger("pymc").setLevel(logging.ERROR)
warnings.simplefilter("ignore")
name, images, draws = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with build(images):
    chosen = {"step": rb.RollbackHMC()} if name == "rollback" else {"nuts_sampler": "pymc"}
    pm.sample(
        draws, tune=draws, chains=1, cores=1, random_seed=1, progressbar=False,
        compute_convergence_checks=False, **chosen,
    )
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(name, images, draws):
    command = [sys.executable, "-c", PEAK, name, str(images), str(draws)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(run.stdout.split()[-1])


def run(quick):
    sizes = (30, 10) if quick else (1000, 200)
    ours, theirs = (peak(name, *sizes) for name in ("rollback", "NUTS"))
    yield Row("matrix factorisation: peak memory over that of PyMC's NUTS", ours / theirs, 1.5)
