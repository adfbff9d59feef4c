"""The walls in numbers, and their slacks as functions of a position."""

import pickle
from dataclasses import fields

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_rollback as rb
from pymc_rollback.target.walls import keep_inside


@pytest.fixture(scope="module")
def step():
    """Order of three, a bound, a mirrored bound, a plane of two normals, a barrier of two rows."""
    ordered = pm.distributions.transforms.ordered
    with pm.Model():
        pm.Normal("order", shape=3, transform=ordered, initval=[-1.0, 0.0, 1.0])
        pm.HalfNormal("bound")
        pm.HalfNormal("mirror")
        x = pm.Normal("x", shape=2)
        rb.constrain("plane", 3 * x[0] + 4 * x[1] < 10)
        rb.constrain("barrier", pt.stack([x[0] * x[1], x[0] ** 2]) < 4)
        return rb.RollbackHMC(sharpness={"mirror": 5.0})


def test_walls_of_each_kind(step):
    walls = step.walls
    assert (walls.size, walls.barrier_rows) == (7, 2)
    assert (walls.is_affine, walls.has_energy) == (False, True)
    assert walls.reflects.tolist() == [True] * 4 + [False] * 3
    assert (walls.runs.tolist(), walls.run_names) == ([[0.0, 3.0, 1.0]], ("order",))
    assert walls.mirrors == ((slice(4, 5), (), False),)
    assert walls.sharp == ((("mirror",), slice(4, 5)), (("barrier",), slice(7, 9)))
    np.testing.assert_allclose(walls.planes[:, 0], [0, 0, 0, 0, 0, -0.6, -0.8, 2.0])
    assert walls.planar.tolist() == [False] * 5 + [True] * 2


def test_walls_are_arrays_and_numbers_that_can_be_pickled(step):
    """Without cloudpickle, which takes whole functions and models."""
    copied = pickle.loads(pickle.dumps(step.walls))
    for field in fields(step.walls):
        np.testing.assert_equal(getattr(copied, field.name), getattr(step.walls, field.name))


def test_clipped_is_inside_and_in_order(step):
    lower, upper = np.full(7, -np.inf), np.full(7, np.inf)
    lower[3:5], upper[4] = 0.0, 2.0
    x = step.walls.clip(np.array([2.0, -1.0, 0.5, -3.0, 7.0, -4.0, 4.0]), lower, upper)
    assert x.tolist() == [-1.0, 0.5, 2.0, np.nextafter(0, 1), np.nextafter(2, 0), -4.0, 4.0]
    assert np.all(step.walls.order_rows() @ x > 0)
    assert not np.all(step.walls.order_rows() @ x[::-1] > 0)


def test_what_is_inside_is_kept_as_it_is():
    x = np.array([0.5, 1.5])
    assert keep_inside(x, np.zeros(2), np.full(2, 2.0)) is x


def test_values_of_an_order_are_shared(step):
    assert step.walls.share(np.arange(7.0) ** 2).tolist() == [5 / 3] * 3 + [9.0, 16.0, 25.0, 36.0]


@pytest.mark.parametrize("copied", [False, True])
def test_slacks_and_their_gradients(step, copied):
    """Also where they arrive in another process, with functions that are compiled anew."""
    slacks = cloudpickle.loads(cloudpickle.dumps(step.slacks)) if copied else step.slacks
    at = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 3.0]), np.empty(0)
    assert [name for name, _ in slacks.named(*at)] == ["barrier", "plane"]
    np.testing.assert_allclose(slacks.rows(*at), [2.5, 3.75, -3.5])
    gradients = [[-3.0, -0.5], [-1.0, 0.0], [-3.0, -4.0]]
    np.testing.assert_allclose(slacks.gradients(*at)[:, 5:], gradients)
    assert not np.any(slacks.gradients(*at)[:, :5])
