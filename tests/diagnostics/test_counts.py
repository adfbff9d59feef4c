"""What is counted at walls while they are sampled, and what it says of the density there.

A force must be within 5 of its own standard errors of the truth: a right one fails for one seed in
a million. Standard errors are below 6 % of the truth, so that errors of 30 % are always seen. The
control are the same contacts in another metric.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from harness import as_idata

import pymc_rollback as rb
from pymc_rollback.chain import tally
from pymc_rollback.chain.tally import WALL_STATS
from pymc_rollback.diagnostics.counts import read_counts
from pymc_rollback.diagnostics.density import terms_by_slope
from pymc_rollback.diagnostics.draws import RegionDraws
from pymc_rollback.diagnostics.errors import standard_error
from pymc_rollback.graph.compat import datasets, from_datasets
from pymc_rollback.target import ledger

OPTIONS = {"chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}


def test_a_trajectory_without_a_step_met_nothing():
    """And no warning of NumPy's, which the tests have as errors."""
    plain = tally.Tally(
        silent=np.zeros((2, 1), np.float32),
        counted=1,
        columns=np.array([1]),
        places=np.array([0]),
        forces=np.array([3.0]),
        barriers=np.empty(0, int),
        apart=True,
    )
    counts = np.array([[0.0, 0.0], [2.0, 4.0]])
    told = tally.tell(plain, counts, np.empty(0), np.ones(2))
    assert told[..., 0].tolist() == [[0.0, 0.0], [4.0, 6.0]]


def build():
    with pm.Model() as model:
        pm.HalfNormal("half", shape=2)
        pm.Uniform("share", 0, 2)
        pm.Gamma("rises", 0.5, 1)
        pair = pm.Normal("pair", shape=2)
        rb.constrain("sum", 2 * pt.sum(pair) > 0)
        cut = pm.Normal("cut")
        rb.constrain("near", cut > 0.5)
        rb.constrain("far", cut > -3)
        ball = pm.Normal("ball", shape=2)
        rb.constrain("in_ball", pt.sum(ball**2) < 2)
    return model


TRUTHS = {
    "half.lower": [0.7979, 0.7979],
    "share.lower": [0.5],
    "share.upper": [0.5],
    "sum": [0.2821],
    "near": [1.1411],
    "far": [0.0],
}
"""Densities of the slacks at the walls that reflect."""


@pytest.fixture(scope="module")
def model():
    return build()


@pytest.fixture(scope="module")
def idata(model):
    return rb.sample(2000, tune=500, model=model, **OPTIONS)


@pytest.fixture(scope="module")
def counts(model, idata):
    return read_counts(RegionDraws(model, idata), idata)


def assert_truths(counts):
    for name, truths in TRUTHS.items():
        for k, truth in enumerate(truths):
            force = counts[name].force[..., k]
            error = standard_error(force)
            assert error <= 0.06 * truth
            assert abs(force.mean() - truth) <= 5 * error


@pytest.mark.compiled
def test_forces_are_densities(counts):
    assert_truths(counts)


@pytest.mark.compiled
def test_lengths_in_another_metric_are_seen(model, monkeypatch):
    right = tally._contacts

    def wrong(*given, **options):
        rows, lengths = right(*given, **options)
        return rows, np.ones_like(lengths)

    monkeypatch.setattr(tally, "_contacts", wrong)
    idata = rb.sample(1000, tune=500, model=model, **OPTIONS)
    with pytest.raises(AssertionError):
        assert_truths(read_counts(RegionDraws(model, idata), idata))


@pytest.mark.compiled
def test_what_is_not_counted(counts):
    """A variable under a transform meets no wall; a barrier has states outside, and no contacts."""
    assert set(counts) == {*TRUTHS, "in_ball"}
    outside = counts["in_ball"].outside
    assert 0 < outside.mean() < 0.5 and np.all((outside >= 0) & (outside <= 1))
    assert np.all(np.isnan(counts["in_ball"].contacts)) and counts["in_ball"].force.mean() > 0
    assert np.all(np.isnan(counts["sum"].outside))


@pytest.mark.compiled
def test_contacts_are_whole_numbers(counts):
    contacts = counts["half.lower"].contacts
    assert contacts.mean() > 0.3 and np.array_equal(contacts, np.round(contacts))
    assert np.all(counts["far"].contacts == 0)


@pytest.mark.compiled
def test_they_are_saved_and_loaded(model, idata, tmp_path):
    """As netCDF, by the one engine that is always there, which knows neither flags nor groups."""
    groups = datasets(idata)
    names = [name for name in groups["sample_stats"].data_vars if name in WALL_STATS]
    groups["sample_stats"][names].drop_attrs().to_netcdf(tmp_path / "stats.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "stats.nc", engine="scipy") as loaded:
        again = from_datasets({**groups, "sample_stats": loaded.load()}, idata)
    table = rb.wall_summary(again, model)
    assert table.to_frame().equals(rb.wall_summary(idata, model).to_frame())


@pytest.mark.compiled
def test_pm_sample_has_them_too():
    with pm.Model() as model:
        pm.HalfNormal("x", shape=2)
        idata = pm.sample(
            200, tune=200, step=rb.RollbackHMC(), compute_convergence_checks=False, **OPTIONS
        )
    counted = read_counts(RegionDraws(model, idata), idata)["x.lower"]
    assert counted.contacts.shape == (2, 200, 2) and counted.contacts.mean() > 0.3


@pytest.mark.compiled
def test_many_rows_are_counted_together(monkeypatch):
    """Where there are many, all rows of a constraint have one place, with the sum over them."""
    with pm.Model() as model:
        x = pm.HalfNormal("x", shape=6)
        rb.constrain("sum", pt.sum(x) < 20)
        rb.constrain("bowl", x**2 < 9)
    one_by_one = rb.sample(100, tune=100, model=model, **OPTIONS)
    each = read_counts(RegionDraws(model, one_by_one), one_by_one)
    monkeypatch.setattr(ledger, "MOST_ROWS", 10)
    together = rb.sample(100, tune=100, model=model, **OPTIONS)
    summed = read_counts(RegionDraws(model, together), together)
    for name in ("x.lower", "sum", "bowl"):
        assert summed[name].contacts.shape[2] == 1
        np.testing.assert_allclose(
            summed[name].force[..., 0], each[name].force.sum(axis=2), rtol=1e-5, atol=1e-6
        )
    frame = rb.wall_summary(together, model, elements=True).to_frame()
    assert np.isnan(frame.loc["x.lower[0]", "contacts"])


@pytest.mark.compiled
@pytest.mark.parametrize("exchange", [True, False])
def test_orders(exchange):
    """Three normals: gaps of zero have the density 3 / sqrt(pi), together; none is met twice."""
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        scale = [1.0, 1.0, 1.0] if exchange else [1.0, 1.0, 1.0001]
        pm.Normal("x", 0, scale, shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0])
    idata = rb.sample(2000, tune=500, model=model, **OPTIONS)
    counted = read_counts(RegionDraws(model, idata), idata)["x.order"]
    force = counted.force.sum(axis=2)
    error = standard_error(force)
    assert error < 0.05 and abs(force.mean() - 3 / np.sqrt(np.pi)) < 5 * error


def test_draws_of_others_have_none(model):
    with pm.Model() as other:
        pm.HalfNormal("half", shape=2)
    idata = as_idata(half=np.abs(np.random.default_rng(1).normal(size=(2, 50, 2))))
    assert read_counts(RegionDraws(other, idata), idata) == {}


@pytest.mark.compiled
def test_draws_with_other_constraints_have_none(model, idata):
    with build() as more:
        rb.constrain("another", more["cut"] < 100)
    assert read_counts(RegionDraws(more, idata), idata) == {}
    row = rb.wall_summary(idata, more, names=["sum"]).rows[0]
    assert row.contacts is None and row.estimate == "slacks"


@pytest.mark.compiled
def test_the_summary_takes_the_better_estimate(model, idata):
    frame = rb.wall_summary(idata, model).to_frame()
    assert set(frame["estimate"]) == {"contacts", "slopes", "slacks"}
    assert frame.loc["sum", "estimate"] == frame.loc["near", "estimate"] == "contacts"
    assert frame.loc["in_ball", "estimate"] == "slacks"
    assert list(frame["pressure"]) == sorted(frame["pressure"], reverse=True)
    row = frame.loc["half.lower"]
    assert abs(row["density"] - 2 * 0.7979) < 5 * row["density_error"]


@pytest.mark.compiled
def test_contacts_agree_with_slopes_at_a_half_normal():
    """Both within 5 standard errors of 0.798, and of each other."""
    with pm.Model() as model:
        pm.HalfNormal("x")
    idata = rb.sample(2000, tune=500, model=model, **OPTIONS)
    draws = RegionDraws(model, idata)
    slopes = terms_by_slope(draws)["x.lower"][..., 0]
    contacts = read_counts(draws, idata)["x.lower"].force[..., 0]
    errors = standard_error(slopes), standard_error(contacts)
    assert max(errors) < 0.03
    for terms, error in zip((slopes, contacts), errors, strict=True):
        assert abs(terms.mean() - 0.79788) < 5 * error
    assert abs(slopes.mean() - contacts.mean()) < 5 * np.hypot(*errors)
