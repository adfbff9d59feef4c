"""describe: the same table in a terminal, in a notebook and as data."""

from io import StringIO

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from rich.console import Console

import pymc_rollback as rb


@pytest.fixture(scope="module")
def description():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=(2, 3))
        scale = pm.HalfNormal("scale")
        share = pm.Uniform("share", 0, scale)
        pm.Dirichlet("weights", np.ones(3))
        pm.Exponential("steep", 2)
        rb.constrain("corner", x[0] < 2 * x[1] + 1)
        rb.constrain("ball<b>", pt.sum(x**2) < 25)
        pm.Normal("y", share, scale, observed=[0.2, 0.5])
    return rb.describe(model)


def test_variables_as_data(description):
    rows = {row["name"]: row for row in description.to_dict()["variables"]}
    assert list(rows) == ["x", "scale", "share", "weights", "steep"]
    assert rows["x"]["shape"] == (2, 3)
    assert rows["x"]["support"] == "real line"
    assert {name: row["action"] for name, row in rows.items()} == {
        "x": "free",
        "scale": "transform",
        "share": "transform",
        "weights": "transform",
        "steep": "barrier",
    }
    assert "scale = 0" in rows["scale"]["why"]
    assert rows["share"]["support"] == "(0, scale)"
    assert rows["share"]["why"] == "its bounds move with scale"


def test_constraints_as_data(description):
    rows = {row["name"]: row for row in description.to_dict()["constraints"]}
    assert rows["corner"] == {
        "name": "corner",
        "inequality": "x[0] < 2 * x[1] + 1",
        "rows": 3,
        "affine": True,
        "wall": "reflects",
        "slack": 1.0,
        "level": -np.inf,
    }
    assert rows["ball<b>"]["affine"] is False
    assert rows["ball<b>"]["slack"] == 25.0
    assert rows["share.upper"]["slack"] == pytest.approx(0.5)
    walls = {name: row["wall"] for name, row in rows.items()}
    assert walls["ball<b>"] == "barrier"
    assert walls["share.upper"] == "transform"
    assert walls["steep.lower"] == "reflects"


def test_terminal_shows_every_cell(description):
    console = Console(width=200, record=True, file=StringIO())
    console.print(description)
    text = console.export_text()
    for cell in ("2 x 3", "(0, scale)", "x[0] < 2 * x[1] + 1", "sum(x**2) < 25", "barrier"):
        assert cell in text
    assert "x[0] < 2 * x[1] + 1" in str(description)


def test_notebook_shows_escaped_html(description):
    html = description._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 2
    assert "<td>x[0] &lt; 2 * x[1] + 1</td>" in html
    assert "ball&lt;b&gt;" in html and "<b>" not in html


def test_user_overrides_are_shown():
    with pm.Model() as model:
        pm.HalfNormal("a")
        pm.Gamma("b", 0.5, 1)
    rows = rb.describe(model, barrier=["b"], transform=["a"]).to_dict()["variables"]
    assert [(row["action"], row["why"]) for row in rows] == [
        ("transform", "chosen by the user"),
        ("barrier", "chosen by the user"),
    ]


def test_model_without_constraints():
    with pm.Model() as model:
        pm.Normal("x")
    assert rb.describe(model).to_dict()["constraints"] == []


def test_model_without_continuous_variables():
    with pm.Model() as model:
        pm.Poisson("k", 3)
    assert rb.describe(model).to_dict() == {
        "variables": [],
        "constraints": [],
        "potentials": [],
    }
