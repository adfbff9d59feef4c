"""The benchmarks in their quick form: they run, keep what they find, and know right from wrong."""

import json
import time

import numpy as np
import pytensor
import pytest
from scipy import stats

from benchmarks import measure, reference, samplers, synthetic
from benchmarks import targets as targets_of
from benchmarks.__main__ import main
from benchmarks.measure import Known, Run, judge, per_gradient
from benchmarks.page import changes, losses, metrics, number, write_page
from benchmarks.samplers import Sampler, Size, run_at_once
from benchmarks.suite import Store, run_work
from benchmarks.targets import targets
from benchmarks.work import gaussian, glm, mixtures, nonlinear, series, works
from benchmarks.work.base import Normal
from benchmarks.work.gaussian import ball_moments, orthant_moments, paper_ball_moments

pytestmark = pytest.mark.newest

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
    rows["rb.sample"] = row(5)
    assert "Nowhere" in losses({"a": {"rows": rows}})


def test_rb_sample_is_timed_without_compilation():
    """All draws are those of ``rb.sample``, and the time of its own draws is within the whole."""
    _, work = WORKS["wedge"]
    before = time.perf_counter()
    run = run_at_once(work, Size(100, 50, 2))
    whole = time.perf_counter() - before
    assert run.draws.shape[:2] == (2, 50) and run.gradients >= 100
    assert 0 < run.seconds < run.seconds + run.first < whole


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
    met = {row.name: row.met for row in found}
    assert met == {
        "uniform: ESS per 1000 gradients": "yes",
        "ball: ESS per 1000 gradients": "yes",
        "all: ESS per gradient over the better of nutpie's metrics, geometric mean of 1": "yes",
        "all: ESS per gradient over the better of nutpie's metrics, worst (uniform)": "yes",
        "uniform: ESS per gradient over nutpie's": "yes",
        "uniform: ESS per second over nutpie's": "yes",
        "ball: ESS of means per draw": "yes",
        "ball: ESS of squares per draw": "yes",
        "ball: divergences": "yes",
        "paper's ball: ESS per gradient over the paper's settings'": "no",
    }


def test_targets_name_works():
    named = {*targets_of.PER_GRADIENT, *targets_of.PER_SECOND, *targets_of.COORDINATES}
    assert named <= {*WORKS}
    assert set(targets_of.METRICS) < {sampler.name for sampler in samplers.SAMPLERS}


def test_the_better_metric_counts():
    def row(gradients, verdict="right"):
        sizes = {"ess_mean": 700, "ess_square": 400, "seconds": 1.0, "draws": 1000}
        return {**sizes, "gradients": gradients, "divergences": 0, "verdict": verdict}

    works = {
        "band": {"rows": {"rollback": row(1000), "nutpie": row(4000)}},
        "mixture": {
            "rows": {
                "rollback": row(1000),
                "nutpie": row(3000),
                "nutpie, low rank": row(2000),
            }
        },
        "AR(5)": {
            "rows": {
                "rollback": row(1000),
                "nutpie": row(100, "wrong"),
                "nutpie, low rank": row(500),
            }
        },
        "wedge": {"rows": {"rollback": row(1000), "nutpie": row(100, "did not mix")}},
    }
    assert targets_of.over_metrics(works) == {"band": 4, "mixture": 2, "AR(5)": 0.5}
    figures = {row.name: row.figure for row in targets(works) if "geometric" in row.name}
    assert [*figures.values()] == pytest.approx([4 ** (1 / 3), 8**0.5])
    assert "| AR(5) | 400 | (4,000) | 800 | 0.50 |" in metrics(works)


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
    assert agrees(orthant_moments(3, 0.5), x)


@pytest.mark.slow
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


def test_long_runs_are_kept():
    """Of works that need one, and of no other."""
    kept = {*json.loads(reference.STORE.read_text())}
    assert kept <= {name for name, (_, work) in WORKS.items() if work.source == reference.LONG}
    for name in kept:
        known = WORKS[name][1].known(True)
        assert len({part.shape for part in known}) == 1
        assert np.all(known.square > known.mean**2)
        # as small as those of the runs that are compared with them, or smaller
        assert np.all(known.mean_error < 0.02 * np.sqrt(known.square - known.mean**2))


def test_moments_of_sorted_normals():
    x = np.sort(np.random.default_rng(6).normal(size=(20_000, 5)))
    assert agrees(reference.order_statistics(5), x)


@pytest.mark.parametrize("order", [3, 4])
def test_stationary_autoregressions(order):
    """The conditions are those on the roots, and the partial autocorrelations meet them."""
    rng = np.random.default_rng(7)
    a = rng.uniform(-2, 2, size=(order, 4000))
    inside = np.all(series.stationary(a), axis=0)
    roots = [np.roots([*-each[::-1], 1]) for each in a.T]
    assert inside.sum() > 100
    assert np.array_equal(inside, [np.abs(r).min() > 1 for r in roots])
    r = rng.uniform(-1, 1, size=(order, 2000))
    assert np.all(series.stationary(series.from_partial(r)[0]))


def test_jacobian_of_partial_autocorrelations():
    r = np.array([0.5, -0.3, 0.2, 0.7])
    ends = [
        np.array(series.from_partial(r + 1e-6 * sign * row)[0])
        for row in np.eye(4)
        for sign in (1, -1)
    ]
    slopes = (np.array(ends[::2]) - np.array(ends[1::2])) / 2e-6
    assert np.linalg.det(slopes) == pytest.approx(series.from_partial(r)[1])


def test_normal_given_the_noise():
    """Mean, variances and evidence, from the joint law of coefficients and data."""
    rng = np.random.default_rng(8)
    X, y, noise = rng.normal(size=(6, 2)), rng.normal(size=6), rng.uniform(1, 2, 6)
    prior = np.array([[2.0, 0.5], [0.5, 1.0]])
    log_evidence, mean, variance = reference.given(X, y, noise, prior)
    covariance = X @ prior @ X.T + np.diag(noise**2)
    gain = prior @ X.T @ np.linalg.inv(covariance)
    assert mean == pytest.approx(gain @ y)
    assert variance == pytest.approx(np.diag(prior - gain @ X @ prior))
    expected = stats.multivariate_normal(cov=covariance).logpdf(y) + 3 * np.log(2 * np.pi)
    assert log_evidence == pytest.approx(expected)


def test_moments_of_numbers_in_order():
    laws = [stats.norm(0.5, 1), stats.norm(0, 0.5), stats.norm(-0.5, 1)]
    x = np.column_stack([law.rvs(200_000, random_state=i) for i, law in enumerate(laws)])
    x = x[np.all(np.diff(x, axis=1) > 0, axis=1)]
    grid = np.linspace(-6, 6, 2001)
    known = reference.in_order(grid, np.array([law.logpdf(grid) for law in laws]))
    assert len(x) > 10_000 and agrees(known, x[:10_000])


def test_moments_in_the_band():
    x = np.abs(np.random.default_rng(9).normal(size=(3_000_000, 2)))
    x = x[np.abs(x.sum(axis=1) - 6.5) < 0.5]
    assert agrees(gaussian.band_moments(), x[: len(x) // 2 * 2])


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
def as_function(model, outputs):
    """Interpreted: a function of a model's values, and the values to start from."""
    values = model.value_vars
    function = pytensor.function(
        values,
        model.replace_rvs_by_values(outputs),
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    return function, [model.initial_point(0)[value.name] for value in values]


def split(numbers, shapes):
    """Arrays of these shapes, from all their numbers."""
    parts = np.split(numbers, np.cumsum([np.prod(shape, dtype=int) for shape in shapes])[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def values_at(model, point):
    """A model's values where its variables are as in a point, in their order."""
    found = []
    for rv, x in zip(model.free_RVs, point, strict=True):
        transform = model.rvs_to_transforms[rv]
        found.append(x if transform is None else transform.forward(x, *rv.owner.inputs).eval())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_every_work_can_be_built_and_is_known(name):
    """There is a mean and a square for each quantity."""
    _, work = WORKS[name]
    model = work.build()
    variables = [*model.free_RVs, *model.deterministics]
    function, start = as_function(model, variables)
    values = zip(variables, function(*start), strict=True)
    quantities = work.view({variable.name: value[None, None] for variable, value in values})
    known = work.known(True)
    for part in (known.mean, known.square):
        assert part.shape == quantities.shape[2:] and np.all(np.isfinite(part))
    assert np.all(known.square > known.mean**2)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, (_, w) in WORKS.items() if w.joint and w.transformed])
def test_reparametrised_density_is_the_same(name):
    """Densities differ by the Jacobian alone, which is found by differences."""
    _, work = WORKS[name]
    model, free = work.build(), work.transformed()
    variables = [free[rv.name] for rv in model.free_RVs]
    function, start = as_function(free, [*variables, free.logp()])
    density, _ = as_function(model, [model.logp(jacobian=False)])
    shapes = [np.shape(x) for x in start]

    def evaluate(u):
        *x, log = function(*split(u, shapes))
        return x, log

    def map_of(u):
        return np.concatenate([np.ravel(x) for x in evaluate(u)[0]])

    rng, u0 = np.random.default_rng(10), np.concatenate([np.ravel(x) for x in start])
    constants = []
    for _ in range(3):
        u = u0 + 0.3 * rng.normal(size=u0.size)
        slopes = [(map_of(u + d) - map_of(u - d)) / 2e-5 for d in 1e-5 * np.eye(u.size)]
        x, log = evaluate(u)
        constants.append(log - np.linalg.slogdet(slopes)[1] - density(*values_at(model, x))[0])
    assert constants == pytest.approx([constants[0]] * 3, abs=1e-3)


def trend_log_density(points):
    y, X = glm.yearly()
    return glm.poisson_log_density(points, y, X, glm.WIDE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "output", "log_density", "points"),
    [
        (
            series.garch,
            lambda model: model["y"],
            lambda points: series.garch_log_likelihood(points, synthetic.volatile()),
            [[5, 0.5, 0.3, 0.4], [4.5, 1, 0.1, 0.2]],
        ),
        (
            mixtures.hidden_chain,
            lambda model: model["y"],
            lambda points: mixtures.chain_log_likelihood(points, synthetic.two_states()),
            [[1, 5, 0.8, 0.9], [2, 4, 0.3, 0.7]],
        ),
        (
            glm.trend,
            lambda model: model.logp(jacobian=False),
            trend_log_density,
            [[3, 1, 0, -1], [3, 0, 1, 0]],
        ),
    ],
)
def test_densities_of_known_answers_are_the_models(build, output, log_density, points):
    model = build()
    function, start = as_function(model, [output(model)])
    points, shapes = np.array(points, float), [np.shape(x) for x in start]
    theirs = [function(*values_at(model, split(point, shapes)))[0] for point in points]
    assert np.diff(log_density(points)) == pytest.approx(np.diff(theirs))


@pytest.mark.slow
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
