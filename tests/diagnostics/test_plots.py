"""Pictures, by what is in them."""

import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from harness import as_idata
from matplotlib import pyplot as plt
from matplotlib.path import Path

import pymc_rollback as rb
from pymc_rollback.diagnostics.nested import Probability
from pymc_rollback.diagnostics.probability import ConstraintProbability, ProbabilityRow

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def build(extra=0):
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("disk", pt.sum(x**2) < 2)
        rb.constrain("line", x[0] > x[1] - 1)
        if extra:
            pm.Normal("z", shape=extra)
    return model


@pytest.fixture(scope="module")
def draws():
    x = np.random.default_rng(1).normal(size=(4000, 2))
    inside = (np.sum(x**2, axis=1) < 2) & (x[:, 0] > x[:, 1] - 1)
    return x[inside][:1000].reshape(2, 500, 2)


def paths(ax):
    """Vertices of the walls that are drawn: contours of zero, one for each wall."""
    filled = [c for c in ax.collections if c.get_facecolor().size]
    return [
        np.concatenate([p.vertices for p in c.get_paths()])
        for c in ax.collections
        if c not in filled
    ]


def test_walls_of_a_region(draws):
    ax = rb.plot_region(build(), as_idata(x=draws))
    circle, line = paths(ax)
    np.testing.assert_allclose(np.hypot(*circle.T), np.sqrt(2), atol=0.01)
    np.testing.assert_allclose(line[:, 0], line[:, 1] - 1, atol=1e-6)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("x[0]", "x[1]", "Draws and walls")
    drawn = np.concatenate([np.c_[handle.get_data()] for handle in ax.lines])
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, draws.reshape(-1, 2)))
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(label.split()[0] for label in labels) == ["disk", "line"]
    shares = [int(label.split("(")[1].rstrip("%)")) for label in labels]
    assert sum(shares) == pytest.approx(100, abs=1) and shares[0] >= shares[1]


def test_a_draw_has_the_colour_of_the_nearest_wall(draws):
    ax = rb.plot_region(build(), as_idata(x=draws))
    disk, line = (np.c_[handle.get_data()] for handle in ax.lines)
    slack = np.stack([2 - np.sum(draws**2, axis=2), draws[..., 0] - draws[..., 1] + 1])
    spread = slack.std(axis=(1, 2))

    def distances(points):
        return (2 - np.sum(points**2, axis=1)) / spread[0], (
            points[:, 0] - points[:, 1] + 1
        ) / spread[1]

    assert np.all(np.less(*distances(disk))) and np.all(np.greater(*distances(line)))
    assert ax.lines[0].get_color() == "C0" and ax.lines[1].get_color() == "C1"


def test_outside_is_shaded(draws):
    ax = rb.plot_region(build(), as_idata(x=draws))
    [shade] = [c for c in ax.collections if c.get_facecolor().size]
    [path] = [p for p in shade.get_paths() if len(p.vertices)]
    outlines = [Path(polygon) for polygon in path.to_polygons()]
    for point, outside in (((-1.2, 1.2), True), ((0.0, 0.0), False), ((1.4, -1.4), True)):
        assert sum(outline.contains_point(point) for outline in outlines) % 2 == outside


def test_what_is_held_is_said(draws):
    z = np.random.default_rng(2).normal(size=(2, 500, 5))
    ax = rb.plot_region(build(extra=2), as_idata(x=draws, z=z[..., :2]), ["x"])
    assert ax.get_title().startswith("Draws, and walls at z[0] = ")
    ax = rb.plot_region(build(extra=5), as_idata(x=draws, z=z), ["x"])
    assert ax.get_title() == "Draws, and walls with all else held at a central draw"


def test_a_grid_of_pairs(draws):
    z = np.random.default_rng(2).normal(size=(2, 500, 1))
    axes = rb.plot_region(build(extra=1), as_idata(x=draws, z=z))
    assert axes.shape == (2, 2) and not axes[0, 1].get_visible()
    assert [ax.get_xlabel() for ax in axes[1]] == ["x[0]", "x[1]"]
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["x[1]", "z[0]"]
    figure = axes[0, 0].figure
    assert figure.get_suptitle() == "Draws, and walls with all else held at a central draw"
    assert len(figure.legends) == 1


def test_elements_are_named_by_coordinates(draws):
    with pm.Model(coords={"side": ["left", "right"]}) as model:
        pm.Uniform("x", -2, 2, dims="side")
    ax = rb.plot_region(model, as_idata(x=draws))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x[left]", "x[right]")


def test_axes_and_sizes_that_are_given(draws):
    _, mine = plt.subplots()
    assert rb.plot_region(build(), as_idata(x=draws), ax=mine) is mine
    assert rb.plot_walls(as_idata(x=draws), build(), ax=mine) is mine
    ax = rb.plot_region(build(), as_idata(x=draws), figsize=(3, 4))
    assert tuple(ax.figure.get_size_inches()) == (3, 4)
    ax = rb.plot_walls(as_idata(x=draws), build(), figsize=(3, 4))
    assert tuple(ax.figure.get_size_inches()) == (3, 4)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"var_names": ["y"]}, ("'y'", "free variables of the model are x, z")),
        ({"var_names": "x"}, ("var_names='x'", "['x']")),
        ({"var_names": []}, ("(nothing) make 0 elements", "2 to 6")),
        ({"var_names": ["x", "z"]}, ("(x, z) make 7 elements", "2 to 6")),
    ],
)
def test_variables_that_are_refused(draws, options, parts):
    z = np.zeros((2, 500, 5))
    with pytest.raises(ValueError) as raised:
        rb.plot_region(build(extra=5), as_idata(x=draws, z=z), **options)
    for part in parts:
        assert part in str(raised.value)


def test_axes_for_a_grid_are_refused(draws):
    _, mine = plt.subplots()
    with pytest.raises(ValueError, match=r"ax is for one pair, and x\[0\], x\[1\], z\[0\]"):
        rb.plot_region(build(extra=1), as_idata(x=draws, z=np.zeros((2, 500, 1))), ax=mine)


def test_a_forest_of_walls():
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        pm.Exponential("near", 3.0)
        pm.TruncatedNormal("far", 20.0, 1.0, lower=0.0)
    near, far = rng.exponential(1 / 3, size=(2, 500)), rng.normal(20, 1, size=(2, 500))
    idata = as_idata(near=near, far=far)
    ax = rb.plot_walls(idata, model)
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels == ["far.lower", "near.lower"]  # from below
    assert "standard deviations" in ax.get_xlabel()
    intervals = [line for line in ax.lines if len(line.get_xdata()) == 2][:2]
    for line, x, colour in zip(intervals, (far, near), ("C0", "C1"), strict=True):
        wanted = np.quantile(x / x.std(), [0.03, 0.97])
        np.testing.assert_allclose(line.get_xdata(), wanted)
        assert line.get_color() == colour
    notes = [text.get_text() for text in ax.texts]
    assert notes[0] == "0.00 ± 0.00" and notes[1].startswith(("0.9", "1.0"))
    assert notes[-1] == "pressure"
    assert [t.get_text() for t in rb.plot_walls(idata, model, names=["far"]).get_yticklabels()] == [
        "far.lower"
    ]


def table(*rows):
    """A table of rows of a name, and of prior and posterior probability, each with its error."""
    made = []
    for name, (prior, prior_error), (posterior, posterior_error) in rows:
        log = Probability(np.log(posterior / prior), 0.1)
        values = (prior, prior_error, posterior, posterior_error, log.value, log.value_error)
        made.append(ProbabilityRow(name, "", *values, *log))
    return ConstraintProbability(tuple(made))


NONE = (np.nan, np.nan)


def test_bars_of_probabilities():
    given = table(("a", (0.5, 0.02), (0.9, 0.01)), ("b", (0.2, 0.03), (0.1, 0.04)))
    ax = rb.plot_constraint_probability(given)
    bars, errors = ax.containers[::2], ax.containers[1::2]
    bars = [c for c in ax.containers if hasattr(c, "patches")]
    assert [[round(p.get_height(), 6) for p in c] for c in bars] == [[0.5, 0.2], [0.9, 0.1]]
    errors = [c for c in ax.containers if not hasattr(c, "patches")]
    tops = [[segment[:, 1] for segment in c.lines[2][0].get_segments()] for c in errors]
    np.testing.assert_allclose(tops[0], [[0.48, 0.52], [0.17, 0.23]])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["prior", "posterior"]
    labels = [t.get_text() for t in ax.get_xticklabels()]
    assert labels == ["a\nBayes factor 1.8", "b\nBayes factor 0.5"]
    assert ax.get_yscale() == "linear" and ax.get_ylim() == (0, 1)


def test_bars_of_small_probabilities_of_one_kind():
    ax = rb.plot_constraint_probability(table(("a", (1e-9, 1e-10), NONE), ("b", (0.2, 0.1), NONE)))
    assert ax.get_yscale() == "log" and ax.get_ylim()[0] < 1e-9
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b"]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["prior"]


def test_labels_of_bars_do_not_overlap():
    """Eight with Bayes factors, and two in a narrow figure: tilted; three in their own are not."""
    rows = [(f"c{k}", (0.5, 0.02), (0.123456, 0.01)) for k in range(8)]
    _, narrow = plt.subplots(figsize=(3, 3))
    for ax, tilted in (
        (rb.plot_constraint_probability(table(*rows)), True),
        (rb.plot_constraint_probability(table(*rows[:2]), ax=narrow), True),
        (rb.plot_constraint_probability(table(*rows[:3]), figsize=(9, 3)), False),
    ):
        ax.figure.canvas.draw()
        boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
        assert {label.get_rotation() > 0 for label in ax.get_xticklabels()} == {tilted}
        flat = all(a.x1 < b.x0 for a, b in pairwise(boxes))
        assert flat or tilted


def test_bars_of_something_else():
    with pytest.raises(TypeError, match=r"table=3 is not what constraint_probability returns"):
        rb.plot_constraint_probability(3)


@pytest.mark.parametrize("plot", [rb.plot_region, rb.plot_walls])
def test_draws_of_another_model(draws, plot):
    given = {"model": build(extra=1), "idata": as_idata(x=draws)}
    with pytest.raises(ValueError, match=r"another model: its posterior has no 'z'"):
        plot(**given)


def test_matplotlib_is_optional(draws, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot in (
        lambda: rb.plot_walls(as_idata(x=draws), build()),
        lambda: rb.plot_region(build(), as_idata(x=draws)),
        lambda: rb.plot_constraint_probability(table(("a", (0.5, 0.1), NONE))),
    ):
        with pytest.raises(
            ImportError, match=r"matplotlib is not installed.*pymc-rollback\[plot\]"
        ):
            plot()
