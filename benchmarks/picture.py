"""The picture of the benchmarks: who is how fast where."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from benchmarks.measure import per_second, usable
from benchmarks.page import best_peer
from benchmarks.samplers import AT_ONCE, OURS

STYLES = {
    OURS: ("o", "#0072B2"),
    AT_ONCE: ("h", "#0072B2"),
    "paper's settings": ("v", "#56B4E9"),
    "nutpie": ("s", "#E69F00"),
    "nutpie, low rank": ("d", "#F0E442"),
    "NUTS": ("D", "#D55E00"),
    "NUTS over −inf": ("X", "#999999"),
    "Metropolis": ("^", "#000000"),
    "hopsy": ("P", "#009E73"),
    "tmg-hmc": ("*", "#CC79A7"),
}
"""Marker and colour of each sampler: told apart without colour, and by the colour-blind."""


def draw(works: dict, path):
    """One line for each work: ESS per second of the right samplers, over the best peer's."""
    names = list(works)[::-1]
    figure, panel = plt.subplots(figsize=(9, 1.6 + 0.3 * len(names)), layout="constrained")
    for height, name in enumerate(names):
        rows = {n: row for n, row in works[name]["rows"].items() if usable(row)}
        peer = best_peer(works[name])
        if peer is None:
            note = f"no peer is right; {OURS} is" if OURS in rows else "no sampler is right"
            panel.annotate(f"{note}  ", (1, height), va="center", ha="right", fontsize=8)
            continue
        for sampler, row in rows.items():
            marker, colour = STYLES.get(sampler, ("o", "#999999"))
            size, zorder = (110, 4) if sampler in (OURS, AT_ONCE) else (45, 3)
            ratio = per_second(row) / per_second(rows[peer])
            panel.scatter(ratio, height, s=size, color=colour, marker=marker, zorder=zorder)
        if OURS not in rows:
            panel.annotate(
                f"{OURS}: {works[name]['rows'].get(OURS, {'verdict': 'not run'})['verdict']}  ",
                (1, height),
                va="center",
                ha="right",
                fontsize=8,
            )
    panel.axvline(1, color="#999999", linewidth=1)
    panel.set_xscale("log")
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("effective draws per second, over those of the fastest right peer")
    for sampler, (marker, colour) in STYLES.items():
        panel.scatter([], [], s=45, color=colour, marker=marker, label=sampler)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    panel.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)
