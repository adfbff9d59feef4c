"""hopsy on a normal between planes: ``python peer_hopsy.py given.npz found.npz``.

Run by the benchmarks in an environment of its own; needs hopsy and NumPy alone.
"""

import sys
import time

import hopsy
import numpy as np

THINNING = 10
"""Draws are cheap: one in ten is kept, and the time of all is counted."""


def main(given, found):
    with np.load(given) as file:
        law = dict(file)
    begin = time.perf_counter()
    density = hopsy.Gaussian(mean=law["mean"], covariance=law["covariance"])
    problem = hopsy.Problem(-law["rows"], law["offset"], density)
    chains = [
        hopsy.MarkovChain(
            problem, proposal=hopsy.TruncatedGaussianProposal, starting_point=law["start"]
        )
        for _ in range(law["chains"])
    ]
    rngs = [hopsy.RandomNumberGenerator(int(law["seed"]) + i) for i in range(len(chains))]
    hopsy.sample(chains, rngs, 1)
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    draws, warm_up = int(law["draws"]), int(law["draws"]) // 10
    _, x = hopsy.sample(chains, rngs, warm_up + draws, thinning=THINNING)
    seconds = time.perf_counter() - begin
    np.savez(found, draws=x[:, warm_up:], seconds=seconds, first=first)


if __name__ == "__main__":
    main(*sys.argv[1:])
