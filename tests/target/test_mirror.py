"""Properties of the mirror, for thousands of coordinates, bounds and sharpnesses.

The properties hold without chance: their examples are drawn by hypothesis from a fixed seed, and
image draws are fed evenly spaced numbers instead of random ones.
"""

from dataclasses import replace
from functools import cache, partial

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pymc.distributions import transforms
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from scipy import stats

import pymc_rollback as rb
from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.target import mirror
from pymc_rollback.target.density import Density
from pymc_rollback.target.plan import Plan, choose_treatments
from pymc_rollback.target.walls import read_walls

MIRRORS = ["lower", "upper", "both"]

fixed = settings(derandomize=True, deadline=None, max_examples=300)
few = settings(fixed, max_examples=60)
positions = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-6)
widths = st.floats(-4, 3).map(lambda e: 10.0**e)
sharpnesses = st.floats(-3, 4).map(lambda e: 10.0**e)
shares = st.floats(1e-6, 1 - 1e-6)


@cache
def functions(kind):
    """The fold, and the log weight of an image, of a mirror of one kind."""
    y, lower, upper, sharpness = pt.dvectors(4)
    bounds = lower if kind != "upper" else None, upper if kind != "lower" else None
    x = mirror.fold(y, *bounds)
    energy = mirror.image_energy(y, x, *bounds, sharpness)
    log_weight = pt.switch(mirror.within_reach(y, *bounds), -energy, -np.inf)
    compiled = [
        pytensor.function(inputs, output, mode="FAST_COMPILE", on_unused_input="ignore")
        for inputs, output in (([y, lower, upper], x), ([y, lower, upper, sharpness], log_weight))
    ]
    return [partial(evaluate, function) for function in compiled]


def evaluate(function, *values):
    return function(*np.broadcast_arrays(*map(np.atleast_1d, values)))


def bounds_of(kind, lower, width):
    upper = lower + width
    assume(upper > lower)
    return (lower if kind != "upper" else -np.inf), (upper if kind != "lower" else np.inf)


def images_of(x, lower, upper):
    return np.array([x] + [2 * b - x for b in (lower, upper) if np.isfinite(b)])


def rounding(*values):
    return 1e-14 * max(1e-300, *(abs(v) for v in values if np.isfinite(v)))


@pytest.mark.parametrize("kind", MIRRORS)
@fixed
@given(y=st.floats(-1e9, 1e9), lower=positions, width=widths)
def test_fold_stays_within_the_bounds(kind, y, lower, width):
    lower, upper = bounds_of(kind, lower, width)
    [x] = functions(kind)[0](y, lower, upper)
    assert lower <= x <= upper


@pytest.mark.parametrize("kind", MIRRORS)
@fixed
@given(lower=positions, width=widths, share=shares, turns=st.integers(-3, 3))
def test_fold_stays_within_the_bounds_next_to_a_wall(kind, lower, width, share, turns):
    lower, upper = bounds_of(kind, lower, width)
    wall = (lower if np.isfinite(lower) else upper) + turns * width
    for y in (wall, np.nextafter(wall, np.inf), np.nextafter(wall, -np.inf)):
        [x] = functions(kind)[0](y, lower, upper)
        assert lower <= x <= upper


@pytest.mark.parametrize("kind", MIRRORS)
@fixed
@given(y=st.floats(-1e4, 1e4), lower=positions, width=widths)
def test_fold_is_idempotent(kind, y, lower, width):
    lower, upper = bounds_of(kind, lower, width)
    fold = functions(kind)[0]
    [x] = fold(y, lower, upper)
    [again] = fold(x, lower, upper)
    assert again == pytest.approx(x, rel=0, abs=rounding(y, lower, upper))


@pytest.mark.parametrize("kind", MIRRORS)
@fixed
@given(lower=positions, width=widths, cell=st.integers(-5, 5), one=shares, other=shares)
def test_fold_is_isometric_between_walls(kind, lower, width, cell, one, other):
    lower, upper = bounds_of(kind, lower, width)
    # a single mirror has no second wall to repeat
    wall = lower if kind != "upper" else upper
    y = wall + (cell + np.array([one, other])) * width
    x = functions(kind)[0](y, lower, upper)
    assert abs(x[1] - x[0]) == pytest.approx(abs(y[1] - y[0]), rel=0, abs=rounding(*y, *x, width))


@pytest.mark.parametrize("kind", MIRRORS)
@fixed
@given(lower=positions, width=widths, share=shares, sharpness=sharpnesses)
def test_image_weights_sum_to_one(kind, lower, width, share, sharpness):
    x = lower + share * width
    lower, upper = bounds_of(kind, lower, width)
    images = images_of(x, lower, upper)
    assume(np.all(functions(kind)[0](images, lower, upper) - x < 1e-9 * width))
    weights = np.exp(functions(kind)[1](images, lower, upper, sharpness))
    assert len(weights) == (3 if kind == "both" else 2)
    assert weights.sum() == pytest.approx(1.0, rel=1e-6)


def test_control_a_product_of_sigmoids_does_not():
    """The boundary terms of the two bounds, as in the paper, each on its own."""
    lower, upper, sharpness = 0.0, 1.0, 2.0
    images = images_of(0.5, lower, upper)
    inside = stats.logistic.cdf(sharpness * (images - lower))
    inside *= stats.logistic.cdf(sharpness * (upper - images))
    assert abs(inside.sum() - 1) > 0.04


@fixed
@given(lower=positions, width=widths, share=shares, sharpness=sharpnesses, turns=st.integers(1, 9))
def test_images_further_away_have_no_weight(lower, width, share, sharpness, turns):
    lower, upper = bounds_of("both", lower, width)
    x = lower + share * width
    further = np.array([x + 2 * turns * width, x - 2 * turns * width])
    assert np.all(functions("both")[1](further, lower, upper, sharpness) == -np.inf)


@fixed
@given(x=st.floats(-50, 50), bound=st.floats(-50, 50), sharpness=sharpnesses)
def test_infinite_elements_are_as_if_there_were_no_bound(x, bound, sharpness):
    fold, log_weight = functions("both")
    lower = np.array([-np.inf, bound, -np.inf])
    upper = np.array([np.inf, np.inf, bound])
    y = np.full(3, x)
    assert fold(y, lower, upper) == pytest.approx(
        [x, bound + abs(x - bound), bound - abs(x - bound)], abs=1e-13
    )
    one_sided = [0.0, *-np.logaddexp(0, sharpness * (bound - x) * np.array([1, -1]))]
    assert log_weight(y, lower, upper, sharpness) == pytest.approx(one_sided, rel=1e-9, abs=1e-12)


class Even:
    """Evenly spaced numbers in the place of random ones: shares are counted without error."""

    def random(self, shape):
        [n] = shape
        return (np.arange(n) + 0.5) / n


@pytest.mark.parametrize("kind", MIRRORS)
@fixed
@given(lower=st.floats(-5, 5), width=st.floats(0.1, 5), share=shares, sharpness=sharpnesses)
def test_images_are_drawn_with_their_weights(kind, lower, width, share, sharpness):
    n = 2000
    x = lower + share * width
    lower, upper = bounds_of(kind, lower, width)
    images = images_of(x, lower, upper)
    assume(len(set(images)) == len(images))
    weights = np.exp(functions(kind)[1](images, lower, upper, sharpness))
    vectors = [np.full(n, v) for v in (x, lower, upper, sharpness)]
    drawn = mirror.draw_image(*vectors, Even())
    counts = np.array([np.sum(drawn == image) for image in images])
    assert counts.sum() == n
    assert counts / n == pytest.approx(weights, rel=0, abs=1.01 / n)


def density_of(model, action=None):
    """The density of a model, all its bounded variables with a barrier."""
    region = rb.read_region(model)
    names = [rv.name for rv in model.free_RVs]
    treatments = choose_treatments(region, reflect=names)
    if action is not None:
        treatments = {name: replace(t, action=action) for name, t in treatments.items()}
    return Density(Plan(region, treatments, True, names), model.initial_point())


def placed(density, *names):
    """Variables as a function of the coordinates, and the Jacobian of it."""
    [x] = density.in_coordinates([pt.concatenate([density.model[name].ravel() for name in names])])
    weights = pt.vector("weights")
    slope = pt.grad(pt.dot(weights, x), density.coordinates)
    place = interpreted([density.coordinates, density.others, weights], [x, slope])

    def evaluate(*inputs):
        rows = [place(*inputs, unit) for unit in np.eye(density.size)]
        return rows[0][0], np.stack([row[1] for row in rows])

    return evaluate


@cache
def dependent():
    with pm.Model() as model:
        a = pm.TruncatedNormal("a", 0, 1, lower=-1)
        b = pm.Uniform("b", a - 2, a, shape=2)
        pm.TruncatedNormal("c", a, 1, lower=b[0] + b[1] - 5 * a - 30, upper=b.max() + a + 20)
    return placed(density_of(model), "a", "b", "c")


@few
@given(y=st.lists(st.floats(-20, 20), min_size=4, max_size=4))
def test_dependent_bounds_have_a_unit_jacobian(y):
    # hypothesis likes round numbers, at which walls meet
    x, slope = dependent()(np.array(y) + np.sqrt([0.02, 0.03, 0.05, 0.07]), np.empty(0))
    assert abs(np.linalg.det(slope)) == pytest.approx(1.0, abs=1e-9)
    a, b, c = x[0], x[1:3], x[3]
    assert a >= -1
    assert np.all((a - 2 <= b) & (b <= a))
    assert b.sum() - 5 * a - 30 <= c <= b.max() + a + 20


@cache
def ordered():
    with pm.Model() as model:
        pm.Normal("x", 0, 1, shape=3, transform=transforms.ordered, initval=[-1.0, 0.0, 1.0])
    return density_of(model)


@cache
def placed_order():
    return placed(ordered(), "x")


@fixed
@given(y=st.lists(st.floats(-20, 20), min_size=3, max_size=3, unique=True))
def test_an_order_is_a_sort_with_a_unit_jacobian(y):
    x, slope = placed_order()(np.array(y), np.empty(0))
    assert np.array_equal(x, np.sort(y))
    assert np.array_equal(np.sort(slope, axis=None), [0] * 6 + [1] * 3)
    assert abs(np.linalg.det(slope)) == pytest.approx(1.0)


def test_all_permutations_of_an_order_are_equally_likely():
    """A right sampler fails with a probability of 1e-4."""
    walls, rng = read_walls(ordered()), np.random.default_rng(1)
    x, unbounded = np.array([-1.0, 0.0, 1.0]), np.full(3, np.inf)
    draws = [walls.draw_image(x, -unbounded, unbounded, np.ones(3), rng) for _ in range(6000)]
    _, counts = np.unique(np.argsort(draws, axis=1) @ [9, 3, 1], return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-4


class Watch(Op):
    """The identity, which fails on a value outside some bounds."""

    def make_node(self, x, lower, upper):
        return Apply(self, [x, lower, upper], [x.type()])

    def perform(self, node, inputs, outputs):
        x, lower, upper = inputs
        assert np.all((lower <= x) & (x <= upper)), f"evaluated at {x}, not in {lower}, {upper}"
        outputs[0][0] = x.copy()

    def L_op(self, inputs, outputs, gradients):
        return [gradients[0], *(pt.zeros_like(x) for x in inputs[1:])]

    grad = L_op
    pullback = L_op


@cache
def watched(mirrored):
    """A log density and its gradient that fail outside the support."""
    watch = Watch()
    with pm.Model() as model:
        one = pm.HalfNormal("one")
        two = pm.TruncatedNormal("two", 0.0, 1.0, lower=-0.1, upper=0.3)
        low, high = np.array([0.1, -np.inf]), np.array([np.inf, 0.7])
        parts = pm.TruncatedNormal("parts", 0, 1, lower=low, upper=high, initval=[0.5, 0.5])
        child = pm.Uniform("child", one - 0.2, one + two)
        for x, lower, upper in (
            (one, 0.0, np.inf),
            (two, -0.1, 0.3),
            (parts, low, high),
            (child, one - 0.2, one + two),
        ):
            tensors = [pt.as_tensor_variable(b) for b in (x, lower, upper)]
            pm.Potential(f"watch_{x.name}", pt.sum(-(watch(*tensors) ** 2)))
    density = density_of(model, None if mirrored else "free")
    inputs = [density.coordinates, density.others]
    return pytensor.function(
        inputs, density.log_density(), mode="FAST_COMPILE", on_unused_input="ignore"
    )


far = st.tuples(st.sampled_from([-1, 1]), st.floats(-6, 6)).map(lambda x: x[0] * 10.0 ** x[1])


@fixed
@given(y=st.lists(far, min_size=5, max_size=5))
def test_the_density_is_never_evaluated_outside(y):
    """Coordinates up to a million widths away."""
    gradient_and_logp = watched(mirrored=True)(np.array(y), np.empty(0))
    assert np.all(np.isfinite(gradient_and_logp))


def test_control_without_the_mirror_it_is():
    with pytest.raises(AssertionError, match="evaluated at"):
        watched(mirrored=False)(np.full(5, -0.5), np.empty(0))
