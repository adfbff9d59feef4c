"""The page of ``make trust``, and results that are kept as they come."""

import pickle

import pytest

from trust import results as module
from trust.__main__ import plan
from trust.breaks import BREAKS
from trust.chains import Statistic
from trust.onestep import Verdict, make_case
from trust.page import Found, write_page
from trust.peers import Agreement
from trust.results import Results

pytestmark = pytest.mark.newest


def verdict(case=None, wrong=False, **given):
    case = case or make_case("lower", "doubling", 2, 0.3)
    defaults = {"draws": 1234, "view": "mean", "z": 1.5, "shift": 0.002, "seen": 0.01, "outside": 0}
    return Verdict(case=case, wrong=wrong, **{**defaults, **given})


def page(wrong=False, outside=0, missed=0):
    caught = [verdict(b.case, wrong=k >= missed) for k, b in enumerate(BREAKS)]
    return write_page(
        Found(
            audit=[verdict(wrong=wrong)],
            fine=[verdict(outside=outside)],
            grid=[verdict(make_case("none", "window", 1, 1.0))],
            breaks=caught,
            chains=[Statistic("order", "x", 0.5, 0.4, 0.1, 1.0)],
            peers=[Agreement("wedge", "hopsy", 4, 1.2), Agreement("wedge", "absent", 0, 0, "none")],
            draws=500,
            minutes=3.0,
        )
    )


def test_a_clean_page():
    text = " ".join(page().split())
    assert "3 one-step rows, 0 wrong" in text and f"{len(BREAKS)} of {len(BREAKS)} wrong" in text
    # the one without walls is no region
    assert "2,468 draws over 1 regions, 0 outside" in text
    assert "**" not in text.split("## One transition")[1]
    assert "| wedge | hopsy | 4 | 1.2 | |" in text and "| wedge | absent | | | none |" in text


def test_what_is_wrong_is_on_the_page():
    text = " ".join(page(wrong=True, outside=7, missed=2).split())
    assert "1 wrong;" in text and f"{len(BREAKS) - 2} of {len(BREAKS)} wrong samplers" in text
    assert "7 outside" in text and text.count("**no**") == 2 and "**wrong**" in text


@pytest.mark.parametrize("quick", [True, False])
def test_every_piece_can_be_sent_to_another_process(quick):
    pieces = plan(quick)
    assert {section for section, _, _ in pieces} | {"draws", "minutes"} == set(Found._fields)
    assert all(pickle.loads(pickle.dumps(piece)) for *_, piece in pieces)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "KEPT", tmp_path / "build" / "trust.pickle")


def test_results_are_kept_for_the_same_kernels(kept, monkeypatch):
    results = Results(False, "full")
    results.add(("grid", 1), ("second", 2.0))
    results.add(("grid", 0), ("first", 4.0))
    assert Results(True, "full").by_section() == {"grid": ["first", "second"]}
    assert Results(True, "full").minutes() == 0.1
    assert Results(False, "full").found == Results(True, "quick").found == {}
    monkeypatch.setattr(module, "stamp", lambda folder: "another")
    assert Results(True, "full").found == {}
