"""Finite penalties: a jump of the density, unless nothing could ever outweigh it."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_rollback as rb
from pymc_rollback.region.indicators import NEGLIGIBLE_NATS


def with_penalty(penalty):
    """A normal around 3 with a standard deviation of 0.1, and a penalty above 1."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1)
        pm.Normal("y", x, 0.1, observed=3.0)
        pm.Potential("fine", pt.switch(x < 1, 0.0, -penalty))
    return model


def test_data_may_outweigh_a_finite_penalty():
    """The mean is 3 / 1.01; its error, of 400 draws that forget at once, is 0.005."""
    model = with_penalty(40.0)
    assert len(rb.read_region(model)) == 0
    with model:
        step, point, draws = rb.RollbackHMC(rng=1), model.initial_point(), []
        for _ in range(600):
            point, _ = step.step(point)
            draws.append(float(point["x"]))
            if len(draws) == 200:
                step.stop_tuning()
    assert np.mean(draws[200:]) == pytest.approx(3 / 1.01, abs=0.025)


@pytest.mark.parametrize(
    ("penalty", "wall"), [(40.0, False), (0.99 * NEGLIGIBLE_NATS, False), (NEGLIGIBLE_NATS, True)]
)
def test_only_what_nothing_outweighs_is_a_wall(penalty, wall):
    region = rb.read_region(with_penalty(penalty))
    assert [c.level for c in region] == [-penalty] * wall


LEVELS = [
    pytest.param(lambda x: pt.switch(x < 1, 0.0, -1e10), -1e10, id="switch"),
    pytest.param(lambda x: -1e9 * pt.switch(x < 1, 0, 1), -1e9, id="multiple"),
    pytest.param(lambda x: -1e9 * ~(x < 1), -1e9, id="indicator"),
    pytest.param(lambda x: pt.switch(x < 1, -(x**2), -np.inf), -np.inf, id="infinite"),
    pytest.param(lambda x: pt.log(x < 1), -np.inf, id="log"),
]


@pytest.mark.parametrize(("potential", "level"), LEVELS)
def test_the_level_of_a_wall(potential, level):
    with pm.Model() as model:
        pm.Potential("wall", potential(pm.Normal("x")))
    assert [c.level for c in rb.read_region(model)] == [level]


def test_describe_says_which_penalties_are_walls_and_which_stay():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("wall", pt.switch(x < 1, 0.0, -1e10))
        pm.Potential("jump", pt.switch(x < 0, 0.0, -40.0))
        pm.Potential("smooth", -(x**4))
        rb.constrain("hard", x > -5)
    description = rb.describe(model)
    walls = {row["name"]: row["level"] for row in description.to_dict()["constraints"]}
    assert walls == {"wall": -1e10, "hard": -np.inf}
    assert [row["name"] for row in description.to_dict()["potentials"]] == ["jump", "smooth"]
    html = description._repr_html_()
    assert html.count("read as a wall (-1e+10)") == 1
    assert html.count("stays in the density") == 2 and "jump" in html
