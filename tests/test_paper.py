"""The experiments of the paper, in their quick form: they run, and show what they claim."""

import importlib
import json

import pytest

from examples.paper import shared
from examples.paper.__main__ import BEGIN, END, NAMES, PAGE, fill

SLOW = {"figure3", "figure4", "factorisation", "others"}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """Numbers of an experiment, run once."""
    out, kept = tmp_path_factory.mktemp("paper"), {}

    def get(name):
        if name not in kept:
            rows = importlib.import_module(f"examples.paper.{name}").main(True, out)
            kept[name] = json.loads((out / f"{name}.json").read_text())
            assert kept[name]["rows"] == rows
            assert list(rows[0]) == ["experiment", "measure", "paper", "ours", "agreement"]
            assert name == "others" or list(out.glob("figure*.png"))
        return kept[name]["numbers"]

    return get


def test_every_experiment_is_tested():
    assert set(NAMES) == SLOW | {"figure1", "figure2"}


def test_figure1_the_fold_gives_the_density_back(numbers):
    found = numbers("figure1")
    assert found["fold_error"] < 1e-14
    assert found["outside"] == pytest.approx(found["ln2/mu"], rel=0.01)


def test_figure2_incidence_is_reflection(numbers):
    found = numbers("figure2")
    assert abs(found["incidence"] - found["reflection"]) < 1
    # the control: the angle is not right whatever the step size
    assert found["median_error"]["0.003"] > 3 * found["median_error"]["0.001"]


@pytest.mark.slow
def test_figure3_the_smoothed_sampler_leaks_and_the_exact_one_does_not(numbers):
    """Leaks to a factor of three: the few draws outside are not independent."""
    found = numbers("figure3")
    for name, leak in found["leak"].items():
        smoothed, exact = found["smoothed"][name], found["exact"][name]
        expected = leak * smoothed["draws"]
        assert expected / 3 < smoothed["outside"] < 3 * expected
        assert exact["outside"] == 0
        assert exact["p"] > 1e-4
        assert smoothed["gradient_error"] < 1e-9


@pytest.mark.slow
def test_figure3_the_chi_square_test_can_fail():
    """Draws of one region against the probabilities of another."""
    import numpy as np

    from examples.paper.figure3 import REGIONS, chi_square, probabilities

    draws = np.random.default_rng(1).standard_normal((4000, 2))
    disk = draws[np.sum(draws**2, axis=1) < 2]
    assert chi_square(disk, probabilities(REGIONS["(d) x² + y² < 2"]))[2] > 1e-3
    assert chi_square(0.95 * disk, probabilities(REGIONS["(d) x² + y² < 2"]))[2] < 1e-3


@pytest.mark.slow
def test_figure4_the_baseline_is_stuck_where_the_others_move(numbers):
    [found] = numbers("figure4").values()
    assert found["accepted"]["baseline"] < 0.01
    for name in ("automatic", "RBHMC", "RHMC"):
        assert found["accepted"][name] > 0.5
        assert found["error"][name] < 0.3 * found["error"]["baseline"]


@pytest.mark.slow
def test_factorisation_all_samplers_agree(numbers):
    found = numbers("factorisation")
    means = [sampler["mean"] for sampler in found["samplers"].values()]
    assert max(means) - min(means) < 0.004
    assert min(min(x) for x in found["likeness"].values()) > 0.8


@pytest.mark.slow
def test_others_agree_with_the_truth(numbers):
    pytest.importorskip("tmg_hmc")
    for target in numbers("others").values():
        for name, found in target.items():
            if name != "truth":
                assert abs(found["z"]) < 4, name


def test_table_is_put_between_its_markers(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"a\n{BEGIN}\nold\n{END}\nb\n")
    fill(page, shared.table([shared.row(1, 2, 3, 4, 5)]))
    text = page.read_text()
    assert text.startswith("a\n") and text.endswith("\nb\n")
    assert "old" not in text and "| 1 | 2 | 3 | 4 | 5 |" in text
    assert PAGE.read_text().count(BEGIN) == PAGE.read_text().count(END) == 1
