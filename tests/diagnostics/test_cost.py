"""What each wall costs: the table, its advice, and what is refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from harness import as_idata

import pymc_rollback as rb
from pymc_rollback.graph.compat import datasets, from_datasets

SHAPE = (2, 100)


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        pm.HalfNormal("half")
        x = pm.Normal("x", shape=2)
        rb.constrain("sum", pt.sum(x) > 0)
        rb.constrain("ball", pt.sum(x**2) < 4)
    return model


def draws(contacts=(0.5, 2.0, np.nan), outside=(np.nan, np.nan, 0.1), diverging=0):
    """Draws, and what the sampler counted at the three walls; some that diverged at half.lower."""
    rng = np.random.default_rng(1)
    half, x = np.abs(rng.normal(size=SHAPE)), np.full((*SHAPE, 2), 0.6)
    x += rng.uniform(-0.1, 0.1, size=x.shape)
    diverged = np.zeros(SHAPE, dtype=bool)
    diverged[0, :diverging] = True
    half[0, :diverging] = 1e-6
    idata = as_idata(half=half, x=x)
    axes = ("chain", "draw")
    told = {"wall_contacts": contacts, "wall_outside": outside, "wall_force": (1.0, 1.0, 1.0)}
    stats = {name: ((*axes, f"{name}_dim_0"), np.tile(v, (*SHAPE, 1))) for name, v in told.items()}
    stats = xr.Dataset({**stats, "diverging": (axes, diverged)})
    return from_datasets({**datasets(idata), "sample_stats": stats}, idata)


def test_costs(model):
    table = rb.cost_by_wall(draws(), model)
    frame = table.to_frame()
    assert list(frame.index) == ["ball", "sum", "half.lower"]
    assert frame.loc["sum", "contacts"] == 2.0 and np.isnan(frame.loc["ball", "contacts"])
    assert frame.loc["ball", "outside"] == pytest.approx(0.1)
    assert np.isnan(frame.loc["sum", "outside"])
    assert not frame["divergences"].any() and not frame["advice"].any()
    text = str(table)
    for part in ("What walls cost", "half.lower", "10.0%", "divergences"):
        assert part in text
    assert "half.lower" in table._repr_html_()


@pytest.mark.parametrize(
    ("given", "name", "advice"),
    [
        ({"contacts": (0.5, 80.0, np.nan)}, "sum", "many reflections"),
        ({"outside": (np.nan, np.nan, 0.6)}, "ball", "sharpness={'ball': ...}"),
        ({"diverging": 5}, "half.lower", "transform=['half']"),
    ],
)
def test_advice_where_there_is_one(model, given, name, advice):
    frame = rb.cost_by_wall(draws(**given), model).to_frame()
    assert frame.index[0] == name and advice in frame.loc[name, "advice"]
    assert not frame["advice"].drop(name).any()
    assert frame.loc[name, "divergences"] == given.get("diverging", 0)


def test_the_model_of_the_context(model):
    with model:
        assert rb.cost_by_wall(draws()).rows == rb.cost_by_wall(draws(), model).rows


def test_draws_without_counts(model):
    given = datasets(draws())
    other = as_idata(half=given["posterior"]["half"].values, x=given["posterior"]["x"].values)
    with pytest.raises(ValueError, match=r"no counts of contacts.*another sampler.*rb.sample"):
        rb.cost_by_wall(other, model)


def test_of_another_model(model):
    with pytest.raises(ValueError, match="another model: its posterior has no 'half'"):
        rb.cost_by_wall(as_idata(x=np.zeros((1, 5, 2))), model)


def test_no_walls():
    with pm.Model() as model:
        pm.Normal("x")
    with pytest.raises(ValueError, match="no bound, no order and no constraint"):
        rb.cost_by_wall(as_idata(x=np.zeros((1, 5))), model)


@pytest.mark.compiled
def test_of_sampled_draws(model):
    options = {"chains": 2, "cores": 1, "random_seed": 1, "progressbar": False}
    frame = rb.cost_by_wall(rb.sample(100, tune=200, model=model, **options), model).to_frame()
    assert frame.loc["half.lower", "contacts"] > 0.3 and frame.loc["sum", "contacts"] > 0.1
    assert 0 <= frame.loc["ball", "outside"] < 0.5
