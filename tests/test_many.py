"""``rb.sample_many``: many fits of one model, compiled once."""

import sys

import numpy as np
import pymc as pm
import pytest
from pymc.exceptions import SamplingError
from scipy.stats import kstest

import pymc_rollback as rb
from pymc_rollback import many, runner
from pymc_rollback import step as step_module
from pymc_rollback.graph.compat import datasets
from pymc_rollback.ranks import rank_truths

pytestmark = pytest.mark.filterwarnings("ignore:The kernels call back into Python:UserWarning")

GIVEN = {"step_size": 0.05, "n_steps": 5, "metric": np.ones(2), "tune": 0}
"""Nothing is tuned, so that draws can be compared one by one."""

FITS = [{"y": [1.0, 1.1]}, {"y": [3.0, 3.2], "which": [1, 1]}, {"y": [2.0, 5.0]}]


def build():
    """Two positive means, one for each element of the data."""
    with pm.Model(coords={"row": [10, 20]}) as model:
        y = pm.Data("y", [0.5, 0.7], dims="row")
        which = pm.Data("which", [0, 1])
        pm.Data("unused", 1.0)
        x = pm.HalfNormal("x", 10.0, shape=2)
        rb.constrain("sum", x.sum() < 50)
        mean = pm.Deterministic("mean", x[which], dims="row")
        pm.Normal("seen", mean, 0.2, observed=y, dims="row")
    return model


def fit(model, fits=FITS, draws=40, **options):
    defaults = {"random_seed": 3, "progressbar": False, "tune": 100, "chains": 2}
    return rb.sample_many(model, fits, draws, **(defaults | options))


@pytest.fixture(scope="module")
def fitted():
    with pytest.MonkeyPatch.context() as patch:
        interpreted = {"mode": "FAST_COMPILE"}
        compile_density = step_module.compile_density
        patch.setattr(step_module, "compile_density", lambda d, k: compile_density(d, interpreted))
        model = build()
        return model, fit(model, draws=150)


def test_dimensions(fitted):
    _, tree = fitted
    groups = datasets(tree)
    assert groups["posterior"]["mean"].dims == ("replicate", "chain", "draw", "row")
    assert groups["posterior"]["x"].shape == (3, 2, 150, 2)
    assert groups["posterior"]["row"].values.tolist() == [10, 20]
    assert groups["posterior"]["replicate"].values.tolist() == [0, 1, 2]
    assert groups["sample_stats"]["diverging"].shape == (3, 2, 150)
    assert groups["observed_data"]["seen"].dims == ("replicate", "row")
    assert groups["observed_data"]["seen"].values.tolist() == [f["y"] for f in FITS]
    assert groups["constant_data"]["which"].values.tolist() == [[0, 1], [1, 1], [0, 1]]
    assert groups["constant_data"]["unused"].dims == ()


def test_each_fit_is_to_its_own_data(fitted):
    """Means of 300 draws are within 0.2 of the data, whose own error is 0.2."""
    model, tree = fitted
    found = datasets(tree)["posterior"]["mean"].mean(["chain", "draw"]).values
    np.testing.assert_allclose(found, [[1.0, 1.1], [3.1, 3.1], [2.0, 5.0]], atol=0.2)
    assert model["y"].get_value().tolist() == [0.5, 0.7]


def test_the_first_fit_is_that_of_sample():
    """Whose chains have the same generators."""
    model = build()
    several = fit(model, **GIVEN)
    with model:
        pm.set_data(FITS[0])
    alone = rb.sample(40, chains=2, model=model, random_seed=3, progressbar=False, **GIVEN)
    for group, name in (("posterior", "x"), ("sample_stats", "lp"), ("sample_stats", "energy")):
        first = datasets(several)[group][name].values[0]
        np.testing.assert_allclose(first, datasets(alone)[group][name].values, rtol=1e-8)


@pytest.mark.slow
def test_fits_do_not_depend_on_cores():
    model = build()
    one, two = (datasets(fit(model, cores=cores, **GIVEN)) for cores in (1, 2))
    assert np.array_equal(one["posterior"]["x"], two["posterior"]["x"])


def test_a_function_makes_the_data():
    made = fit(build(), lambda k: {"y": [k + 1.0, 2.0]}, replicates=2, draws=5, **GIVEN)
    assert datasets(made)["observed_data"]["seen"].values.tolist() == [[1.0, 2.0], [2.0, 2.0]]


def test_a_fit_that_fails_is_left_out(monkeypatch):
    draw = runner.Runner._draw

    def fail(self, count):
        if self.data["y"][0] == 3.0:
            raise SamplingError("the culprit")
        draw(self, count)

    monkeypatch.setattr(runner.Runner, "_draw", fail)
    with pytest.warns(UserWarning, match="Fit 1 failed, and is left out: the culprit"):
        tree = fit(build(), draws=5, **GIVEN)
    assert datasets(tree)["posterior"]["replicate"].values.tolist() == [0, 2]
    with pytest.raises(SamplingError, match="the culprit"):
        fit(build(), FITS[1:2], draws=5, **GIVEN)


@pytest.mark.parametrize(
    ("fits", "options", "message"),
    [
        ([], {}, "must be a list with a dict for each fit"),
        ({"y": [1.0, 2.0]}, {}, "must be a list with a dict for each fit"),
        ([{"y": [1.0]}], {}, r"'y' of the shape \(1,\), and the container has the shape \(2,\)"),
        ([{"z": 1}], {}, r"datasets\[0\] names 'z', but the data containers .* are y, which"),
        ([{"y": ["a", "b"]}], {}, "'y' of the type <U1"),
        ([{"which": [0.5, 1.0]}], {}, "'which' of the type float64"),
        ([3], {}, r"datasets\[0\]=3 must be a dict"),
        (lambda k: {}, {}, "replicates is left out"),
        (lambda k: {}, {"replicates": 0}, "replicates=0"),
        (FITS, {"replicates": 3}, "which has 3. Leave it out"),
        (FITS, {"chains": 0}, "chains=0"),
        (FITS, {"tune": "auto"}, "tune='auto' must be a whole number"),
        (FITS, {"rng": 1}, "random_seed"),
    ],
)
def test_bad_input_is_refused_before_anything_is_compiled(fits, options, message, monkeypatch):
    monkeypatch.setattr(step_module, "compile_density", None)
    with pytest.raises((ValueError, TypeError), match=message):
        fit(build(), fits, **options)


def test_data_in_a_wall_are_refused():
    with pm.Model() as model:
        most = pm.Data("most", 2.0)
        pm.Uniform("x", 0, most)
    with pytest.raises(ValueError, match="The data in most are in bounds"):
        fit(model, [{"most": 3.0}])


def same(one, other, group):
    return datasets(one)[group].equals(datasets(other)[group])


def test_a_single_fit_has_its_own_data():
    groups = datasets(fit(build(), FITS[1:2], draws=5, **GIVEN))
    assert groups["observed_data"]["seen"].values.tolist() == [3.0, 3.2]
    assert groups["constant_data"]["which"].values.tolist() == [1, 1]


def test_fits_are_stored_and_the_others_are_run(tmp_path, monkeypatch):
    """One is interrupted at first. Then it alone is run, and then none."""
    expected, ran = fit(build(), draws=20, **GIVEN), []
    draw = runner.Runner._draw

    def interrupt(self, count):
        ran.append(self.data["y"][0])
        if self.data["y"][0] == 3.0 and len(set(ran)) < 4:
            raise KeyboardInterrupt
        draw(self, count)

    monkeypatch.setattr(runner.Runner, "_draw", interrupt)
    monkeypatch.setattr(many, "STORED_TOGETHER", 1)
    options = {**GIVEN, "draws": 20, "store": tmp_path / "fits", "cores": 1}
    with pytest.warns(UserWarning, match="interrupted: 1 of 3 fits are whole"):
        assert datasets(fit(build(), **options))["posterior"]["replicate"].values.tolist() == [0]
    assert set(ran) == {1.0, 3.0}
    monkeypatch.setattr(runner.Runner, "_draw", lambda self, n: (ran.append("now"), draw(self, n)))
    ran.clear()
    again = fit(build(), **options)
    assert 0 < len(ran)
    ran.clear()
    taken = fit(build(), **options)
    assert ran == []
    for found in (again, taken):
        for group in ("posterior", "observed_data", "constant_data"):
            assert same(found, expected, group), group
        assert datasets(found).keys() == datasets(expected).keys()
        assert same(found, taken, "sample_stats")


def test_a_store_of_other_fits_is_refused(tmp_path):
    options = {**GIVEN, "store": tmp_path}
    fit(build(), FITS[:1], draws=5, **options)
    with pytest.raises(ValueError, match="has fits with draws='5', and not '6'"):
        fit(build(), FITS[:1], draws=6, **options)
    with pytest.raises(ValueError, match="has a fit 0 to other data"):
        fit(build(), FITS[1:2], draws=5, **options)


def test_a_store_that_is_a_file_is_refused(tmp_path):
    path = tmp_path / "fits.nc"
    path.write_text("")
    with pytest.raises(ValueError, match=r"fits.nc' is a file. Give a folder"):
        fit(build(), store=path)


def test_zarr_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match="pip install zarr"):
        fit(build(), store=tmp_path)


def test_ranks_of_truths():
    truths = [{"x": [0.0, 0.0]}, {"x": [99.0, 0.0]}, {"x": [2.0, 5.0]}]
    ranks = datasets(fit(build(), truths=truths, draws=100))["prior_sbc"]["x"]
    assert ranks.dims == ("chain", "draw", "x_dim_0")
    assert ranks.shape == (1, 3, 2)
    assert np.all((ranks > 0) & (ranks < 1))
    assert np.all(ranks[0, 0] < 0.05) and ranks[0, 1, 0] > 0.95 and ranks[0, 1, 1] < 0.05
    assert np.all((ranks[0, 2] > 0.1) & (ranks[0, 2] < 0.9))


@pytest.mark.slow
@pytest.mark.newest
def test_ranks_are_uniform():
    """A Kolmogorov-Smirnov test that one of ten thousand right samplers fails; and its control."""
    rng = np.random.default_rng(5)
    with pm.Model() as model:
        y = pm.Data("y", [0.0])
        x = pm.HalfNormal("x")
        pm.Normal("seen", x, 0.7, observed=y)
    true = np.abs(rng.normal(size=300))
    fits = [{"y": [rng.normal(value, 0.7)]} for value in true]
    truths = [{"x": value} for value in true]
    tree = fit(model, fits, 100, truths=truths, tune=200, chains=1, metric="diag")
    found = datasets(tree)
    shifted = [{"x": value + 0.2} for value in true]
    wrong = rank_truths(found["posterior"], shifted, rng)
    assert kstest(found["prior_sbc"]["x"].values[0], "uniform").pvalue > 1e-4
    assert kstest(wrong["x"].values[0], "uniform").pvalue < 1e-4


@pytest.mark.parametrize(
    ("truths", "message"),
    [
        ({"x": [1.0, 1.0]}, "must be a list with a dict for each fit"),
        ([{}, {}, {}], "must be a list with a dict for each fit"),
        ([{"x": [1.0, 1.0]}], "truths has 1 dicts, and there are 3 fits"),
        ([{"mean": [1.0, 1.0]}] * 3, "names 'mean', but the free variables of the model are x"),
        ([{"x": 1.0}] * 3, r"has 'x' of the shape \(\), and the variable has the shape \(2,\)"),
        ([{"x": [1.0, 1.0]}, {"z": 1}, {"x": [1.0, 1.0]}], "Name the same variables in each"),
    ],
)
def test_bad_truths_are_refused(truths, message, monkeypatch):
    monkeypatch.setattr(step_module, "compile_density", None)
    with pytest.raises(ValueError, match=message):
        fit(build(), truths=truths)
