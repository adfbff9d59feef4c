"""The wheel: all of the package is in it, and it samples where nothing else of ours is."""

import configparser
import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")

REPORT = """
import json, pkgutil
import pymc as pm
import pymc_rollback

modules = [m.name for m in pkgutil.walk_packages(pymc_rollback.__path__, "pymc_rollback.")]
with pm.Model():
    x = pm.Normal("x", shape=2)
    pymc_rollback.constrain("c", x[0] < x[1])
    sampled = pm.sample(
        20, tune=20, chains=1, cores=1, step=pymc_rollback.RollbackHMC(), random_seed=1,
        progressbar=False, compute_convergence_checks=False,
    )
print(json.dumps({
    "file": pymc_rollback.__file__,
    "version": pymc_rollback.__version__,
    "modules": modules,
    "draws": sampled.posterior["x"].values[0].tolist(),
}))
"""


def run(*command, **options):
    """Output of a command; what it printed is part of the error if it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder):
    """Build a wheel as ``make wheel`` does, from a copy: building leaves files in the sources."""
    sources = folder / "sources"
    shutil.copytree(
        ROOT / "pymc_rollback",
        sources / "pymc_rollback",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for part in PARTS:
        shutil.copy(ROOT / part, sources)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", sources)
    [wheel] = folder.glob("dist/*.whl")
    return wheel


def install(wheel, folder):
    """Install a wheel into a new environment, which then sees the present one's packages, too."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    # before the other packages can be seen: this one is among them, and pip would leave it at that
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    [site] = folder.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    return python


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What a process finds that has the wheel, and not the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    python = install(build(folder), folder / "venv")
    found = json.loads(run(python, "-I", "-c", REPORT, cwd=folder).splitlines()[-1])
    return {**found, "folder": folder}


@pytest.mark.slow
def test_wheel_is_imported_from_its_own_environment(report):
    assert Path(report["file"]).is_relative_to(report["folder"] / "venv")


@pytest.mark.slow
def test_wheel_has_all_modules(report):
    paths = (path.relative_to(ROOT) for path in (ROOT / "pymc_rollback").rglob("*.py"))
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths}
    assert {"pymc_rollback", *report["modules"]} == names
    assert (Path(report["file"]).parent / "py.typed").exists()


@pytest.mark.slow
def test_wheel_has_the_version_of_its_metadata(report):
    given = configparser.ConfigParser()
    given.read(ROOT / "setup.cfg")
    assert report["version"] == given["metadata"]["version"]


@pytest.mark.slow
def test_wheel_samples(report):
    assert len(report["draws"]) == 20
    assert all(first < second for first, second in report["draws"])
    assert len({first for first, _ in report["draws"]}) > 10
