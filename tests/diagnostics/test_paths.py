"""Pictures of trajectories, by what is in them."""

import matplotlib
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from matplotlib import pyplot as plt

import pymc_rollback as rb

matplotlib.use("Agg")
pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def build(extra=0):
    with pm.Model(coords={"side": ["left [m]", "right [m]"]}) as model:
        x = pm.HalfNormal("x", dims="side")
        rb.constrain("sum", pt.sum(x) < 1)
        if extra:
            pm.Normal("z", shape=extra)
    return model


def lines(ax):
    """Paths, starts and bounces of the trajectories."""
    drawn = [np.c_[line.get_data()] for line in ax.lines]
    return drawn[::3], drawn[1::3], drawn[2::3]


def test_paths_and_bounces():
    ax = rb.plot_trajectory(build(), trajectories=3)
    paths, starts, bounces = lines(ax)
    assert len(paths) == 3 and ax.get_title() == "Trajectories and walls"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x[left [m]]", "x[right [m]]")
    for path, start in zip(paths, starts, strict=True):
        assert np.array_equal(path[:1], start)
        assert np.all(path > 0) and np.all(path.sum(axis=1) < 1)
        steps = np.hypot(*np.diff(path, axis=0).T)
        assert 0 < steps.max() < 0.05  # nothing is left out between two states
    met = np.concatenate(bounces)
    distance = np.min([met[:, 0], met[:, 1], 1 - met.sum(axis=1)], axis=0)
    assert len(met) > 2 and np.all(distance < 0.05)
    assert len([c for c in ax.collections if not c.get_facecolor().size]) == 2  # both walls


def test_the_same_seed_gives_the_same_picture():
    step = rb.RollbackHMC(model=build())
    first, again = (lines(rb.plot_trajectory(step, trajectories=1))[0][0] for _ in range(2))
    assert np.array_equal(first, again)
    other = lines(rb.plot_trajectory(step, trajectories=1, random_seed=2))[0][0]
    assert not np.array_equal(first, other)


def test_what_is_projected_and_held_is_said():
    ax = rb.plot_trajectory(build(extra=1), ["x"], trajectories=1)
    assert ax.get_title().startswith("Trajectories, projected; walls at z[0] = ")
    assert rb.plot_trajectory(build(extra=1), trajectories=1).get_xlabel() == "x[left [m]]"


def test_axes_and_sizes_that_are_given():
    _, mine = plt.subplots()
    with build():
        assert rb.plot_trajectory(trajectories=1, ax=mine) is mine
        ax = rb.plot_trajectory(trajectories=1, figsize=(3, 4))
    assert tuple(ax.figure.get_size_inches()) == (3, 4)


def test_over_a_barrier():
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        rb.constrain("disk", pt.sum(x**2) < 1)
    paths, _, bounces = lines(rb.plot_trajectory(model, trajectories=4))
    assert not np.concatenate(bounces).size
    assert all(np.sum(path[0] ** 2) < 1 for path in paths)


@pytest.mark.parametrize(
    ("options", "error", "parts"),
    [
        ({"source": 3}, TypeError, ("3 is neither a model nor a RollbackHMC",)),
        ({"source": None}, TypeError, ("There is no model",)),
        ({"var_names": ["y"]}, ValueError, ("'y'", "free variables of the model are x, z")),
        ({"var_names": ["z"]}, ValueError, ("(z) make 3 elements", "2")),
        ({"trajectories": 0}, ValueError, ("trajectories=0",)),
    ],
)
def test_what_is_refused(options, error, parts):
    given = {"source": build(extra=3), **options}
    with pytest.raises(error) as raised:
        rb.plot_trajectory(**given)
    for part in parts:
        assert part in str(raised.value)


def test_a_step_for_some_variables_is_refused():
    with build(extra=2) as model:
        step = rb.RollbackHMC([model["x"]])
    with pytest.raises(ValueError, match=r"leaves z to other steps"):
        rb.plot_trajectory(step)


def test_no_walls():
    with pm.Model() as model:
        pm.Normal("x", shape=2)
    with pytest.raises(ValueError, match="no bound, no order and no constraint"):
        rb.plot_trajectory(model)
