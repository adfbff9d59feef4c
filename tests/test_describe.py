"""describe: the same table in a terminal, in a notebook and as data."""

import sys
from inspect import signature
from io import StringIO

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from rich.console import Console

import pymc_rollback as rb
from pymc_rollback.chain.chain import Chain


@pytest.fixture
def uncompiled(monkeypatch):
    """Steps that are made, and not run, need no machine code."""
    monkeypatch.setattr(rb.RollbackHMC, "compiled", lambda step: None)
    monkeypatch.setattr(Chain, "compile_kernels", lambda chain: None)


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


def test_options_of_a_step_are_in_its_signature():
    options = signature(rb.RollbackHMC).parameters
    assert next(iter(options)) == "vars"
    assert options["target_accept"].default == 0.8


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
        "steep": "reflect",
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


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_printed_in_the_width_of_the_terminal(description, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = str(description).splitlines()
    assert columns - 20 < max(map(len, lines)) <= columns
    # each cell is whole, wrapped within its column
    text = "".join(str(description).split())
    assert "…" not in text
    for part in ("x", "scale", "share", "weights", "steep", "corner", "ball<b>", "transform"):
        assert part in text


def test_printed_in_80_columns_where_there_is_no_terminal(description, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "__stdout__", StringIO())
    assert max(map(len, str(description).splitlines())) == 80


def test_a_row_of_80_columns_can_be_read(description, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    [row] = [line for line in repr(description).splitlines() if "share.upper" in line]
    assert row.split() == ["share.upper", "share", "<", "scale", "1", "yes", "transform", "0.5"]


def test_long_names_are_told_apart(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "the_share_of_a_variable_with_a_name_that_is_far_too_long_for_a_column"
    with pm.Model() as model:
        pm.Uniform(name, 0.0, 1.0)
    text = str(rb.describe(model))
    first = text[text.index("Constraints") :].splitlines()
    column = "".join(line[: line.index("  ", 1)].strip() for line in first[3:] if line.strip())
    assert column == f"{name}.lower{name}.upper"


def test_a_start_outside_is_searched_not_shown_as_a_negative_slack():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("far", pt.sum(x**2) > 4)
        rb.constrain("zero", x[0] > -0.0)
    description = rb.describe(model)
    assert [row.slack for row in description.constraints] == [-4.0, 0.0]
    text = " ".join(str(description).split())
    assert "far sum(x**2) > 4 1 no barrier a start is searched" in text
    assert "zero x[0] > 0 1 yes reflects a start is searched" in text
    assert "-4" not in text and "-0" not in text


def test_frames(description):
    frames = description.to_frame()
    assert list(frames) == ["variables", "constraints", "potentials"]
    assert frames["variables"].loc["share", "support"] == "(0, scale)"
    assert frames["constraints"].loc["corner", "slack"] == 1.0
    columns = ["inequality", "rows", "affine", "wall", "slack", "level"]
    assert list(frames["constraints"].columns) == columns
    assert frames["constraints"].index.name == "name"


def test_notebook_shows_escaped_html(description):
    html = description._repr_html_()
    assert html.count("<table>") == html.count("</table>") == 2
    assert '<td style="text-align: left">x[0] &lt; 2 * x[1] + 1</td>' in html
    assert html.count("<th ") + html.count("<td ") == html.count("text-align: left") - 2
    assert "ball&lt;b&gt;" in html and "<b>" not in html


def test_text_in_a_notebook_is_text(description, monkeypatch):
    """Where rich would display it, beside the HTML."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "corner" in repr(description)


def test_user_overrides_are_shown():
    with pm.Model() as model:
        pm.HalfNormal("a")
        pm.Gamma("b", 0.5, 1)
    rows = rb.describe(model, reflect=["b"], transform=["a"]).to_dict()["variables"]
    assert [(row["action"], row["why"]) for row in rows] == [
        ("transform", "chosen by the user"),
        ("reflect", "chosen by the user"),
    ]


def test_a_sharpness_and_a_choice_of_variables_are_shown():
    with pm.Model() as model:
        a = pm.HalfNormal("a")
        pm.HalfNormal("b")

    def shown(**options):
        found = rb.describe(model, **options)
        return [r.name for r in found.variables], [r.wall for r in found.constraints]

    assert shown() == (["a", "b"], ["reflects", "reflects"])
    assert shown(sharpness={"b": 5.0}) == (["a", "b"], ["reflects", "barrier"])
    assert shown(sharpness=5.0) == (["a", "b"], ["barrier", "barrier"])
    assert shown(vars=[a])[0] == ["a"]


@pytest.mark.usefixtures("uncompiled")
def test_a_step_is_described_with_its_options():
    with pm.Model() as model:
        x = pm.HalfNormal("x")
        pm.HalfNormal("other")
        rb.constrain("low", x < 2 * model["other"] + 3)
    step = rb.RollbackHMC([x], model=model, sharpness={"x": 5.0})
    found = rb.describe(step)
    assert [(row.name, row.action) for row in found.variables] == [("x", "reflect")]
    assert {row.name: row.wall for row in found.constraints}["x.lower"] == "barrier"
    assert found == rb.describe(model, vars=[x], sharpness={"x": 5.0}) != rb.describe(model)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"reflect": ["x"]}, r"reflect=\['x'\]: "),
        ({"transform": ["x"], "sharpness": 5.0}, r"transform=\['x'\], sharpness=5.0: "),
        ({"constraints": {}}, r"constraints=\{\}: "),
        ({"barrier": ["x"]}, r"barrier=\['x'\]: "),
        ({"vars": "x"}, "vars='x': "),
    ],
)
def test_options_beside_a_step_are_refused(options, named):
    with pm.Model() as model:
        pm.HalfNormal("x")
    step = rb.RollbackHMC(model=model)
    remedy = r"own options. Describe the step alone, describe\(step\), or its model"
    with pytest.raises(ValueError, match=f"^{named}a step is described with its {remedy}"):
        rb.describe(step, **options)


@pytest.mark.usefixtures("uncompiled")
def test_the_former_name_of_reflect():
    with pm.Model() as model:
        pm.Gamma("b", 0.5, 1)
    wanted = rb.describe(model, reflect=["b"])
    assert wanted != rb.describe(model)
    with pytest.warns(FutureWarning, match=r"barrier=\['b'\] is now called reflect") as warned:
        assert rb.describe(model, barrier=["b"]) == wanted
        assert rb.describe(rb.RollbackHMC(model=model, barrier=["b"])) == wanted
    assert [w.filename for w in warned] == [__file__, __file__]


@pytest.mark.parametrize("call", [rb.describe, rb.RollbackHMC])
def test_an_option_under_both_its_names_is_refused(call):
    with pm.Model() as model:
        pm.HalfNormal("b")
    with (
        pytest.raises(ValueError, match=r"reflect=\['b'\] and barrier=\['b'\] are the same"),
        pytest.warns(FutureWarning, match="reflect"),
    ):
        call(model=model, reflect=["b"], barrier=["b"])


def test_model_without_constraints():
    with pm.Model() as model:
        pm.Normal("x")
    description = rb.describe(model)
    assert description.to_dict()["constraints"] == []
    assert description.to_frame()["constraints"].empty
    assert "Constraints: none" in str(description)


def test_model_without_continuous_variables():
    with pm.Model() as model:
        pm.Poisson("k", 3)
    assert rb.describe(model).to_dict() == {
        "variables": [],
        "constraints": [],
        "potentials": [],
    }


@pytest.mark.usefixtures("uncompiled")
def test_a_step_says_what_it_will_do():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        pm.Exponential("scale", 1.0)
        rb.constrain("disk", (x**2).sum() < 2)
        rb.constrain("sum", x.sum() < 1)
    assert repr(rb.RollbackHMC(model=model)) == (
        "<RollbackHMC: exact draws of x (free), scale (reflect), inside disk (barrier), sum "
        "(reflects); tunes step_size, n_steps, sharpness, metric>"
    )
    step = rb.RollbackHMC([x], model=model, step_size=0.1, n_steps=5, sharpness={"disk": 20.0})
    assert repr(step) == (
        "<RollbackHMC: exact draws of x (free), inside disk (barrier), sum (reflects); "
        "step_size=0.1, n_steps=5, tunes nothing>"
    )


@pytest.mark.usefixtures("uncompiled")
def test_a_step_of_many_variables_names_some():
    with pm.Model() as model:
        for i in range(9):
            pm.Normal(f"x{i}")
    numbers = {"step_size": 0.1, "n_steps": 2}
    assert "x5 (free), and 3 more;" in repr(rb.RollbackHMC(model=model, **numbers))
