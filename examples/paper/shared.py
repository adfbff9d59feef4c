"""What the experiments share: options, colours, files, and the measure of autocorrelation."""

import argparse
import json
import time
from importlib import import_module
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

matplotlib.use("Agg")

import matplotlib.pyplot as plt

# Okabe and Ito: distinct to the colour-blind
BLUE, ORANGE, GREEN, RED, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9"
LARGE = 150_000  # bytes; pictures beyond get a palette
FULL, QUICK = Path("docs/paper"), Path("build/paper")

plt.rcParams.update({"font.size": 9, "axes.titlesize": 9, "legend.frameon": False})


def options(only=False):
    """``--quick``, ``--out`` and perhaps ``--only``; what a notebook adds is ignored."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="small sizes, for the tests")
    parser.add_argument("--out", type=Path, help=f"folder; {FULL}, or {QUICK} for --quick")
    if only:
        parser.add_argument("--only", help="name of one experiment")
    given, _ = parser.parse_known_args()
    given.out = given.out or (QUICK if given.quick else FULL)
    return given


def run(main):
    """Run one experiment from the command line or a notebook, and print its rows."""
    given = options()
    print(table(main(given.quick, given.out)))


def run_named(name, quick, out):
    """Run an experiment by its name; says how long it took."""
    started = time.perf_counter()
    import_module(f"examples.paper.{name}").main(quick, out)
    return f"{name}: {time.perf_counter() - started:.0f} s"


def save(figure, out, name):
    """Write a picture."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.png"
    figure.savefig(path, dpi=100)
    plt.close(figure)
    if path.stat().st_size > LARGE:
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


def write(out, name, numbers, rows):
    """Write the numbers of an experiment; its rows of the table are returned."""
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"numbers": numbers, "rows": rows}, indent=1, default=_plain)
    (out / f"{name}.json").write_text(text + "\n")
    return rows


def _plain(value):
    return value.tolist() if hasattr(value, "tolist") else str(value)


def row(experiment, measure, paper, ours, agreement):
    return {
        "experiment": experiment,
        "measure": measure,
        "paper": paper,
        "ours": ours,
        "agreement": agreement,
    }


def table(rows):
    """Rows as a Markdown table."""
    head = list(rows[0])
    lines = [head, ["---"] * len(head), *(list(r.values()) for r in rows)]
    return "\n".join("| " + " | ".join(str(x) for x in line) + " |" for line in lines)


def autocorrelation_time(x):
    """Integrated autocorrelation time of a series, by Geyer's initial monotone sequence."""
    n = len(x)
    centred = np.asarray(x, float) - np.mean(x)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(spectrum)[:n] / n
    if covariance[0] <= 0:
        return float(n)
    pairs = covariance[: n // 2 * 2].reshape(-1, 2).sum(axis=1) / covariance[0]
    negative = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if negative.size else None])
    return max(2 * pairs.sum() - 1, 1 / np.log10(n))
