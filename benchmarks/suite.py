"""Run samplers on works, and keep what they give as it comes."""

import json
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import entry, loop, memory, samplers, scaling
from benchmarks.measure import judge
from benchmarks.samplers import SAMPLERS, Size
from benchmarks.work import Work

RATIOS = {"loop": loop.run, "entry": entry.run, "scaling": scaling.run, "memory": memory.run}
"""Benchmarks that yield figures with targets, and not effective draws of samplers."""
QUICK = Size(500, 500, 2)
PACKAGES = ("pymc-rollback", "pymc", "pytensor", "arviz", "numpy", "numba", "nutpie", "tmg-hmc")


class Store:
    """Results as JSON: every row is written when it is there."""

    def __init__(self, path: Path):
        self.path = path
        self.content = {"works": {}, "ratios": {}}
        if path.exists():
            self.content = json.loads(path.read_text())

    def save(self):
        """Write all, by way of a second file, so that a crash leaves one of the two."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n")
        new.replace(self.path)


def run_work(store: Store, group: str, work: Work, quick: bool, candidates=SAMPLERS):
    """Run the samplers that apply to a work; yields names and rows.

    Rows of other samplers stay as they are, and what ours gave the time before is kept beside.
    """
    last = store.content["works"].get(work.name, {"rows": {}})
    rows = {s.name: last["rows"][s.name] for s in SAMPLERS if s.name in last["rows"]}
    ours_runs = any(s.name == samplers.OURS for s in candidates)
    store.content["works"][work.name] = {
        "group": group,
        "about": work.about,
        "source": work.source,
        "setup": describe_setup(),
        "before": rows.get(samplers.OURS) if ours_runs else last.get("before"),
        "rows": rows,
    }
    size = QUICK if quick else Size(work.tune, work.draws, work.chains)
    known = work.known(quick)
    for sampler in candidates:
        if sampler.applies(work):
            rows[sampler.name] = run_sampler(sampler, work, size, known)
            store.save()
            yield sampler.name, rows[sampler.name]


def run_sampler(sampler, work, size, known):
    """The row of a sampler: what it gave, or why it gave nothing."""
    missing = sampler.missing()
    if missing:
        return {"verdict": missing}
    try:
        return judge(sampler.run(work, size), known)
    except Exception as error:  # a peer may fail in any way: that is its row
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return {"verdict": f"failed: {reason[:80]}"}


def run_ratios(store: Store, name: str, quick: bool):
    """Run one of the benchmarks that yield figures; yields them."""
    rows = []
    store.content["ratios"][name] = {"setup": describe_setup(), "rows": rows}
    for row in RATIOS[name](quick):
        rows.append(row._asdict())
        store.save()
        yield row


def describe_setup():
    """Machine and versions, in a line."""
    found = [f"{name} {installed(name)}" for name in PACKAGES if installed(name)]
    hopsy = hopsy_version()
    if hopsy:
        found.append(f"hopsy {hopsy}")
    python = f"Python {platform.python_version()}"
    return f"{processor()}, {os.cpu_count()} cores; {', '.join([python, *found])}"


def installed(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def hopsy_version():
    if not samplers.HOPSY.exists():
        return None
    code = "from importlib.metadata import version; print(version('hopsy'))"
    command = [samplers.HOPSY, "-c", code]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def processor():
    """The model of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor() or platform.machine()
