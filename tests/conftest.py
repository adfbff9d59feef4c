"""Numba caches a kernel by the age of its own file, not of those that it inlines functions of."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "pymc_rollback"
KERNELS = ("layout", "drift", "leapfrog", "trajectory", "repeat")


def pytest_sessionstart():
    changed = max((PACKAGE / f"{name}.py").stat().st_mtime for name in KERNELS)
    for cached in (PACKAGE / "__pycache__").glob("*.nb?"):
        if cached.stat().st_mtime < changed:
            cached.unlink()
