"""The benchmarks in their quick form: they run, keep what they find, and know right from wrong."""

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks import measure, reference, samplers
from benchmarks.__main__ import main
from benchmarks.measure import Known, Run, judge, per_gradient
from benchmarks.page import changes, losses, number, write_page
from benchmarks.samplers import Sampler
from benchmarks.suite import Store, run_work
from benchmarks.targets import targets
from benchmarks.work import nonlinear, works
from benchmarks.work.base import Normal
from benchmarks.work.gaussian import ball_moments, orthant_moments, paper_ball_moments

WORKS = works(quick=True)


def cheap(name, draw):
    """A sampler of independent draws."""

    def run(work, size):
        rng = np.random.default_rng(5)
        return Run(draw(rng, (2, 1000, 5)), seconds=1.0, first=0.1, gradients=1000)

    return Sampler(name, run, lambda work: True)


def broken(work, size):
    raise ValueError("no start\nmore")


def half_normals(rng, shape):
    return np.abs(rng.normal(size=shape))


SOME = [
    cheap("rollback", half_normals),
    cheap("shifted", lambda rng, shape: half_normals(rng, shape) + 0.1),
    cheap("stuck", lambda rng, shape: np.ones(shape)),
    Sampler("broken", broken, lambda work: True),
    Sampler("absent", broken, lambda work: True, package="no_such_peer"),
    Sampler("elsewhere", broken, lambda work: False),
]


@pytest.fixture
def store(tmp_path):
    """Results of cheap samplers on half normals."""
    found = Store(tmp_path / "benchmarks.json")
    group, work = WORKS["half normal"]
    for _ in run_work(found, group, work, quick=True, candidates=SOME):
        pass
    return found


def test_verdicts(store):
    rows = store.content["works"]["half normal"]["rows"]
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "rollback": "right",
        "shifted": "wrong",
        "stuck": "did not mix",
        "broken": "failed: no start",
        "absent": "no-such-peer is not installed",
    }


def test_every_verdict_is_on_the_page(store):
    page = write_page(store.content)
    for row in store.content["works"]["half normal"]["rows"].values():
        assert row["verdict"] in page


def test_rows_are_kept_as_they_come(tmp_path):
    path = tmp_path / "benchmarks.json"
    group, work = WORKS["half normal"]
    for name, row in run_work(Store(path), group, work, quick=True, candidates=SOME):
        assert json.loads(path.read_text())["works"]["half normal"]["rows"][name] == row


def test_other_rows_stay_and_the_run_before_is_shown(tmp_path):
    group, work = WORKS["half normal"]
    store = Store(tmp_path / "benchmarks.json")
    sizes = {"ess_mean": 10, "ess_square": 20, "seconds": 1.0, "gradients": 1000}
    old = {"verdict": "right", "divergences": 0, "first": 1.0, "threshold": 4.0}
    old |= {"error_mean": 1.0, "error_square": 1.0, **sizes}
    store.content["works"]["half normal"] = {"rows": {"rollback": old, "nutpie": old}}
    [(_, new)] = run_work(store, group, work, quick=True, candidates=[SOME[0]])
    kept = store.content["works"]["half normal"]
    assert kept["rows"] == {"rollback": new, "nutpie": old} and kept["before"] == old
    ratio = per_gradient(new) / per_gradient(old)
    line = f"| half normal | 10 | {number(1000 * per_gradient(new))} | {ratio:.2f} |"
    assert line in changes({"half normal": kept}) and line in write_page(store.content)
    # a peer that is run later is no new run of ours
    assert [*run_work(store, group, work, quick=True, candidates=[])] == []
    assert store.content["works"]["half normal"]["before"] == old


def test_faster_peers_are_named():
    def row(seconds, verdict="right"):
        return {"ess_mean": 100, "ess_square": 200, "seconds": seconds, "verdict": verdict}

    rows = {"rollback": row(9), "slow": row(5), "fast": row(3), "liar": row(1, "wrong")}
    text = losses({"a": {"rows": rows}})
    assert "a: fast, 3 times" in text
    assert "liar" not in text


def test_targets_follow_from_the_rows():
    def row(gradients):
        sizes = {"ess_mean": 700, "ess_square": 400, "seconds": 1.0, "draws": 1000}
        return {**sizes, "gradients": gradients, "divergences": 0, "verdict": "right"}

    found = targets(
        {
            "ball": {"rows": {"rollback": row(10)}},
            "uniform": {"rows": {"rollback": row(10), "nutpie": row(30)}},
            "paper's ball": {"rows": {"rollback": row(10), "paper's settings": row(300)}},
        }
    )
    assert [row.met for row in found] == ["yes", "yes", "yes", "yes", "yes", "no"]


# The measures.
def test_errors_are_in_standard_errors():
    law = stats.norm(3, 2)
    z = np.array(
        [
            measure.error(law.rvs((2, 500, 1), random_state=i) + shift, 3.0, 0.0)
            for i in range(200)
            for shift in (0.0, 4 * 2 / 1000**0.5)
        ]
    ).reshape(200, 2)
    assert np.sqrt(np.mean(z[:, 0] ** 2)) == pytest.approx(1, abs=0.15)
    assert np.mean(z[:, 1]) == pytest.approx(4, abs=0.3)


def test_errors_of_the_truth_count():
    x = np.random.default_rng(1).normal(size=(2, 500, 1))
    assert measure.error(x, 1.0, 0.0) > 20
    assert measure.error(x, 1.0, 1.0) < 1.2


def test_threshold_is_exceeded_as_rarely_as_said():
    comparisons = 50
    inside = 1 - 2 * stats.norm.sf(measure.threshold(comparisons))
    assert 1 - inside**comparisons == pytest.approx(measure.FALSE_ALARMS, rel=0.01)


def test_what_does_not_move_has_no_effective_draws():
    x = np.random.default_rng(1).normal(size=(2, 500, 2))
    x[:, :, 1] = 0.5
    assert measure.ess(x)[0] > 500
    assert measure.ess(x)[1] == 0


def test_an_error_that_is_not_a_number_is_wrong():
    x = np.random.default_rng(1).normal(size=(2, 500, 1))
    assert judge(Run(x, 1.0, 1.0), Known(np.array([np.nan]), np.ones(1)))["verdict"] == "wrong"


# The known answers, against draws by rejection.
def agrees(known, draws):
    row = judge(Run(draws.reshape(2, -1, draws.shape[-1]), 1.0, 1.0), known)
    return row["verdict"] == "right"


@pytest.mark.slow
@pytest.mark.newest
def test_exact_hmc_between_planes():
    rng = np.random.default_rng(2)
    covariance = np.array([[1.0, 0.6], [0.6, 2.0]])
    rows, offset = np.array([[1.0, -0.3], [-0.5, 1.0], [-1.0, -1.0]]), np.array([0.2, 0.5, 1.5])
    normal = Normal(np.array([0.3, -0.2]), covariance, rows, offset, np.zeros(2))
    x = rng.multivariate_normal(normal.mean, covariance, 100_000)
    x = x[np.all(x @ rows.T + offset > 0, axis=1)][:15_000]
    assert len(x) == 15_000
    assert agrees(reference.of_draws(reference.cut_normal(normal, 10_000)), x)


def test_moments_in_the_orthant():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(200_000, 3)) + rng.normal(size=(200_000, 1))
    x = x[np.all(x > 0, axis=1)][:40_000] / 2**0.5
    assert agrees(orthant_moments(3), x)


@pytest.mark.slow
@pytest.mark.newest
def test_moments_in_balls():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(100_000, 3))
    assert agrees(ball_moments(3, 1.5), x[np.sum(x**2, axis=1) < 1.5**2][:20_000])
    weights = np.exp([2.0, -1.0, -1.0])
    weights[1:] = weights[1]
    x = rng.uniform(-3, 3, size=(2_000_000, 3))
    keep = rng.random(len(x)) < np.exp(-np.sqrt(x**2 @ weights))
    x = x[keep & (np.sum(x**2, axis=1) < 9)][:40_000]
    assert agrees(paper_ball_moments(weights), x)


def test_moments_of_sorted_normals():
    x = np.sort(np.random.default_rng(6).normal(size=(20_000, 5)))
    assert agrees(reference.order_statistics(5), x)


def test_stationary_autoregressions():
    """The conditions are those on the roots, and the partial autocorrelations meet them."""
    rng = np.random.default_rng(7)
    a = rng.uniform(-2, 2, size=(3, 2000))
    inside = np.all(nonlinear.stationary(a), axis=0)
    roots = [np.roots([-a3, -a2, -a1, 1]) for a1, a2, a3 in a.T]
    assert inside.sum() > 100
    assert np.array_equal(inside, [np.abs(r).min() > 1 for r in roots])
    r = rng.uniform(-1, 1, size=(3, 2000))
    assert np.all(nonlinear.stationary(nonlinear.from_partial(r)[0]))


def test_the_decay_solves_its_equation():
    rate, half = 0.7, 0.3
    s = nonlinear.substrate(rate, half)
    # the time as a function of the substrate, from separated variables
    assert (1 - s - half * np.log(s)) / rate == pytest.approx(nonlinear.TIMES)
    assert nonlinear.substrate_graph(rate, half).eval() == pytest.approx(s)
    assert nonlinear.substrate_graph(rate, 1e-3).eval() == pytest.approx(
        nonlinear.substrate(rate, 1e-3), abs=1e-8
    )


# All of it.
@pytest.mark.slow
@pytest.mark.newest
def test_every_work_can_be_built():
    for _, work in WORKS.values():
        assert work.build().free_RVs
        assert work.known is not None


@pytest.mark.slow
@pytest.mark.newest
def test_quick_form(store, monkeypatch):
    """One work is run; what is known of another stays."""
    folder = store.path.parent
    monkeypatch.setattr(samplers, "HOPSY", folder / "nothing")
    monkeypatch.setattr(samplers, "PATIENCE", 1.0)
    main(["--quick", "--only", "wedge", "--output", str(folder)])
    found = json.loads(store.path.read_text())["works"]
    assert list(found) == ["half normal", "wedge"]
    assert found["half normal"] == store.content["works"]["half normal"]
    assert found["wedge"]["rows"]["hopsy"]["verdict"] == "hopsy is not installed"
    assert found["wedge"]["rows"]["rollback"]["verdict"] == "right"
    assert "hopsy is not installed" in (folder / "benchmarks.md").read_text()
    assert (folder / "benchmarks.png").stat().st_size > 0
