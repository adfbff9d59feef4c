import shutil

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import config
from pytensor.ifelse import ifelse
from pytensor.link.c.basic import CLinker

from pymc_rollback.graph.compat import COMPILES_INNER_GRAPHS
from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.graph.forms import constant_value, is_data
from pymc_rollback.region.conditions import UnreadableError, inequalities
from pymc_rollback.region.indicators import NEGLIGIBLE_NATS, split_indicators

POINTS = np.random.default_rng(20).normal(size=(300, 4))
THRESHOLDS = np.array([0.5, -0.5, 0.0])
MASK = np.array([True, False, True])


def compiled(x, outputs):
    return pytensor.function([x], outputs, mode="FAST_COMPILE", on_unused_input="ignore")


def disk(x):
    return pt.sum(x[:2] ** 2) < 2


def case(build, name):
    return pytest.param(build, id=name)


CONDITIONS = [
    case(lambda x: x[0] < x[1], "lt"),
    case(lambda x: x[0] <= x[1], "le"),
    case(lambda x: x[0] > x[1], "gt"),
    case(lambda x: x[0] >= x[1], "ge"),
    case(lambda x: pt.lt(x[0] + x[1], 1), "lt-function"),
    case(disk, "nonlinear"),
    case(lambda x: x[:3] < THRESHOLDS + 1, "elementwise"),
    case(lambda x: x[:2, None] < x[2:] + 1, "matrix"),
    case(lambda x: pt.all(x[1:] > x[:-1] - 1), "all"),
    case(lambda x: pt.all(x[:2, None] < x[2:] + 1, axis=0), "all-axis"),
    case(lambda x: pt.any(x > 1), "any"),
    case(lambda x: pt.any(x[:2, None] < x[2:], axis=1), "any-axis"),
    case(lambda x: (x[0] > -1) & (x[1] < 1), "and"),
    case(lambda x: pt.and_(x[0] > -1, x[1] < 1), "and-function"),
    case(lambda x: pm.math.and_(x[0] > -1, x[1] < 1), "and-pymc"),
    case(lambda x: (x[0] > 0) & (x[1] < 1) & (x[2] > -1), "and-of-three"),
    case(lambda x: (x[0] > 1) | (x[1] < -0.5), "or"),
    case(lambda x: pt.or_(x[0] > 1, x[1] < -0.5), "or-function"),
    case(lambda x: (x > 0) | (x < -0.1), "or-elementwise"),
    case(lambda x: ~(x[0] > x[1]), "not"),
    case(lambda x: pt.invert(disk(x)), "not-function"),
    case(lambda x: ~((x[0] > 0) & (x[1] > 0)), "not-and"),
    case(lambda x: ~((x[0] > 1) | (x[1] > 1)), "not-or"),
    case(lambda x: ~pt.all(x > 0), "not-all"),
    case(lambda x: ~pt.any(x > 1), "not-any"),
    case(lambda x: ~~(x[0] > 0), "not-not"),
    case(lambda x: ((x[0] > 0) & (x[1] > 0)) | ~(x[2] < x[3]), "nested"),
    case(lambda x: ((x[0] > 0) | (x[1] > 0)) & ~pt.all(x[2:] > 0), "nested-and"),
    case(lambda x: pt.stack([x[0] > -1, x[1] < 1]), "stack"),
    case(lambda x: pt.concatenate([x[:2] > -1, x[2:] < 1]), "concatenate"),
    case(lambda x: pt.all(pt.stack([x[0] > -1, x[1] < 1])), "all-of-stack"),
    case(lambda x: pt.any(pt.stack([x[0] > 1, x[1] < -1])), "any-of-stack"),
    case(lambda x: (x[0] > -1) * (x[1] < 1), "product"),
    case(lambda x: pt.prod(x > -1), "prod"),
    case(lambda x: pt.eq(x[0] > 0, np.array(True)), "eq-true"),
    case(lambda x: pt.eq(pt.cast(x[0] > 0, "int8"), 0), "eq-zero"),
    case(lambda x: pt.neq(pt.cast(x[0] > 0, "int8"), 0), "neq-zero"),
    case(lambda x: pt.switch(x[0] > 0, 1, 0), "switch-one-zero"),
    case(lambda x: pt.switch(x[0] > 0, 0, 1), "switch-zero-one"),
    case(lambda x: pt.cast(x[0] > 0, "float64"), "cast"),
    case(lambda x: (x > 0).reshape((2, 2)).T.ravel() | (x < 1), "reshape"),
    case(lambda x: (x[:3] > 0) | pt.constant(MASK), "or-mask"),
    case(lambda x: (x[:3] > 0) | ~pytensor.shared(MASK), "or-data-mask"),
    case(lambda x: pt.abs(x[0]) < 1, "abs"),
    case(lambda x: (-1 < x[0]) & (x[0] < 1), "interval"),
    case(lambda x: pt.max(x) < 1, "max"),
    case(lambda x: pt.all(pt.gt(x[0], 0) & (x[1:] < 1)), "broadcast-and"),
]


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("build", CONDITIONS)
def test_slacks_are_positive_where_a_condition_holds(build, holds):
    x = pt.vector("x", shape=(4,))
    condition = build(x)
    rows = inequalities(condition, holds)
    function = compiled(x, [condition, *(row.slack for row in rows)])
    elements = []
    for point in POINTS:
        truth, *slacks = function(point)
        elements.append(np.ravel(truth).astype(bool))
        assert all(np.all(s > 0) for s in slacks) == np.all(elements[-1] == holds)
    assert 0.01 < np.mean(elements) < 0.99
    assert all(row.text for row in rows)


def test_a_conjunction_has_a_row_for_each_part_and_a_union_one():
    x = pt.vector("x", shape=(4,))
    both, either = (x[0] > 0) & (x[1] < 1), (x[0] > 0) | (x[1] < 1)
    assert [row.text for row in inequalities(both)] == ["x[0] > 0", "x[1] < 1"]
    assert [row.text for row in inequalities(either)] == ["(x[0] > 0) or (x[1] < 1)"]
    assert [row.text for row in inequalities(either, holds=False)] == ["x[0] <= 0", "x[1] >= 1"]


def test_the_slack_of_a_union_is_the_maximum():
    x = pt.vector("x", shape=(4,))
    [row] = inequalities((x[0] > 1) | (x[1] < 2))
    assert compiled(x, row.slack)([1.5, 1.0, 0, 0]) == 1.0
    assert compiled(x, row.slack)([3.5, 1.0, 0, 0]) == 2.5


@pytest.mark.parametrize(
    "build, text",
    [
        (lambda x: pt.eq(x[0], x[1]), "x[0] == x[1]"),
        (lambda x: pt.eq(x[0], 0), "x[0] == 0"),
        (lambda x: ~pt.neq(x[0], x[1]), "x[0] == x[1]"),
    ],
)
def test_equalities_are_refused(build, text):
    x = pt.vector("x", shape=(4,))
    with pytest.raises(UnreadableError, match="measure zero") as error:
        inequalities(build(x))
    assert text in str(error.value) and "Deterministic" in str(error.value)


@pytest.mark.parametrize("build", [lambda x: pt.isnan(x), lambda x: pt.isinf(x[0])])
def test_other_conditions_are_unreadable(build):
    with pytest.raises(UnreadableError, match="is not a comparison"):
        inequalities(build(pt.vector("x")))


def test_integer_comparisons_have_floating_slacks():
    n = pt.lvector("n")
    [row] = inequalities(n < 3)
    assert row.slack.dtype == pytensor.config.floatX


# ------------------------------------------------------------------------------------- indicators


def quadratic(x):
    return -0.5 * pt.sum(x**2)


INDICATORS = [
    case(lambda x: pt.switch(disk(x), 0, -np.inf), "switch"),
    case(lambda x: pt.switch(disk(x), 0.0, -np.inf), "switch-float"),
    case(lambda x: pt.where(disk(x), 0, -np.inf), "where"),
    case(lambda x: pm.math.switch(disk(x), 0, -np.inf), "switch-pymc"),
    case(lambda x: pt.switch(disk(x), -np.inf, 0), "reverse"),
    case(lambda x: pt.switch(~disk(x), -np.inf, 0), "reverse-not"),
    case(lambda x: pm.math.log(pm.math.switch(disk(x), 1, 0)), "log-switch"),
    case(lambda x: pm.math.log(pm.math.switch(disk(x), 0, 1)), "log-switch-reverse"),
    case(lambda x: pm.math.log(pm.math.switch(disk(x), 1.0, 0.0)), "log-switch-float"),
    case(lambda x: pt.log(disk(x)), "log"),
    case(lambda x: pt.log(~disk(x)), "log-not"),
    case(lambda x: pt.log(pt.cast(disk(x), "float64")), "log-cast"),
    case(lambda x: pt.log(disk(x) * (x[2] > 0)), "log-product"),
    case(lambda x: pt.log(pt.all(x > -1)), "log-all"),
    case(lambda x: pt.log(pt.switch(disk(x), pt.exp(x[2]), 0)), "log-switch-finite"),
    case(lambda x: pt.log(pt.exp(x[2]) * disk(x)), "log-density-times-condition"),
    case(lambda x: pt.switch(disk(x), quadratic(x), -np.inf), "finite-part"),
    case(lambda x: pt.switch(disk(x), -np.inf, quadratic(x)), "finite-part-reverse"),
    case(lambda x: pt.switch(disk(x), 0, -1e10), "very-negative"),
    case(lambda x: pt.switch(disk(x), 0, -1e5), "hundred-thousand-nats"),
    case(lambda x: pt.switch(disk(x), -1e6, 0), "very-negative-reverse"),
    case(lambda x: pt.switch(disk(x), quadratic(x), -1e20), "very-negative-finite-part"),
    case(lambda x: -pt.switch(disk(x), 0, np.inf), "minus-inf"),
    case(lambda x: -1e9 * pt.switch(disk(x), 0, 1), "penalty"),
    case(lambda x: -1e9 * ~disk(x), "penalty-not"),
    case(lambda x: pt.switch(x[:3] < 1 + THRESHOLDS, 0, -np.inf), "elementwise"),
    case(lambda x: pt.sum(pt.switch(x[:3] < 1 + THRESHOLDS, 0, -np.inf)), "sum-of-elementwise"),
    case(lambda x: pt.log(x[:3] < 1 + THRESHOLDS).sum(), "sum-of-logs"),
    case(lambda x: pt.switch(pt.all(x > -1), 0, -np.inf), "all"),
    case(lambda x: pt.switch((x[0] > -1) & (x[1] < 1), 0, -np.inf), "and"),
    case(lambda x: pt.switch((x[0] > 1) | (x[1] < 0), 0, -np.inf), "or"),
    case(lambda x: pt.switch(~((x[0] > 1) | (x[1] < 0)), 0, -np.inf), "not"),
    case(lambda x: pt.switch(disk(x), 0, -np.inf) + pt.log(x[2] > x[3]), "sum"),
    case(lambda x: pt.switch(disk(x), 0, -np.inf) + quadratic(x), "sum-with-finite"),
    case(lambda x: quadratic(x) - pt.switch(disk(x), 0, np.inf), "difference"),
    case(
        lambda x: pt.switch(disk(x), x[2], -np.inf) + pt.switch(x[2] > x[3], -np.inf, x[3] ** 2),
        "sum-of-finite-parts",
    ),
    case(
        lambda x: sum(pt.switch(x[i] < 1, 0, -np.inf) for i in range(3)) + pt.log(x[3] > -1),
        "sum-of-many",
    ),
    case(lambda x: 2 * pt.switch(disk(x), x[0], -np.inf), "multiple"),
    case(lambda x: pt.switch(disk(x), x[0], -np.inf) / 2, "quotient"),
    case(
        lambda x: pt.switch(x[0] > -1, pt.switch(x[1] < 1, x[2], -np.inf), -np.inf), "nested-switch"
    ),
    case(
        lambda x: pt.switch(x[0] > 0, pt.switch(x[1] < 1, x[2], -np.inf), x[3]),
        "switch-in-branch",
    ),
    case(lambda x: pt.stack([pt.log(x[0] > -1), pt.log(x[1] < 1)]), "stack"),
    case(lambda x: pt.concatenate([pt.log(x[:1] > -1), pt.log(x[1:3] < 1)]), "concatenate"),
    case(lambda x: ifelse(disk(x), pt.constant(0.0), pt.constant(-np.inf)), "ifelse"),
    case(lambda x: pt.switch(x > -1, -x, -np.inf)[:, None], "shape"),
]


@pytest.mark.parametrize("build", INDICATORS)
def test_indicators(build):
    """Slacks are positive where the indicator is finite, and there the finite part is the same."""
    x = pt.vector("x", shape=(4,))
    potential = build(x)
    finite, indicators = split_indicators(potential, floor=-NEGLIGIBLE_NATS)
    slacks = [row.slack for condition, _ in indicators for row in inequalities(condition)]
    function = compiled(x, [potential, finite, *slacks])
    inside = []
    for point in POINTS:
        with np.errstate(divide="ignore"):
            value, rest, *rows = function(point)
        inside.append(np.all(value > -0.99e5))
        assert all(np.all(row > 0) for row in rows) == inside[-1]
        assert np.all(np.isfinite(rest)) and np.all(np.abs(rest) < 100)
        if inside[-1]:
            np.testing.assert_allclose(rest, value)
    assert 5 < sum(inside) < len(inside) - 5


NOT_INDICATORS = [
    case(quadratic, "no-switch"),
    case(lambda x: pt.switch(disk(x), 0, -0.99e5), "less-than-1e5-nats"),
    case(lambda x: pt.switch(disk(x), -1e10, -1e10), "no-drop"),
    case(lambda x: pt.switch(disk(x), quadratic(x), x[0]), "two-finite-branches"),
    case(lambda x: pt.exp(pt.switch(disk(x), 0, -np.inf)), "not-in-a-sum"),
    case(lambda x: pt.log(1 + pt.cast(disk(x), "float64")), "log-of-no-indicator"),
]


@pytest.mark.parametrize("build", NOT_INDICATORS)
def test_finite_terms_are_left_alone(build):
    term = build(pt.vector("x", shape=(4,)))
    assert split_indicators(term, floor=-NEGLIGIBLE_NATS) == (term, [])


def test_a_very_negative_number_is_not_minus_infinity_by_default():
    term = pt.switch(disk(pt.vector("x")), 0, -1e10)
    assert split_indicators(term) == (term, [])


def test_a_guard_at_a_point_is_kept():
    """``0 log 0``: the switch has measure zero and must stay in the density."""
    x = pt.vector("x", shape=(4,))
    term = pt.switch(pt.eq(x[0], 0), 0, x[0] * pt.log(pt.abs(x[0])))
    assert split_indicators(term, floor=-NEGLIGIBLE_NATS) == (term, [])


def test_the_finite_part_keeps_the_shape():
    x = pt.vector("x", shape=(4,))
    term = pt.switch(x > 0, 0.0, -np.inf)
    finite, _ = split_indicators(term)
    np.testing.assert_array_equal(compiled(x, finite)(np.full(4, -1.0)), np.zeros(4))


def test_constant_value_and_data():
    x, data = pt.vector("x"), pytensor.shared(np.ones(2), name="data")
    assert constant_value(pt.constant(1.0) + 2) == 3
    assert constant_value(data) is None and constant_value(x) is None
    assert is_data(data + 1) and is_data(pt.constant(2.0)) and not is_data(data + x)


def test_interpreted_sums_of_many_terms():
    inputs = [pt.dscalar() for _ in range(40)]
    assert interpreted(inputs, pt.add(*inputs))(*range(40)) == sum(range(40))


@pytest.mark.parametrize("container", [pt.constant, pytensor.shared])
def test_data_decide_a_union(container):
    x, data = pt.dvector(), container(np.array([0.0, 1.0]))
    [row] = inequalities(pt.neq(data, 2) | (x > 1) | pt.eq(x, 0))
    assert np.array_equal(compiled(x, row.slack)([-5.0, 5.0]), [np.inf, np.inf])
    with pytest.raises(UnreadableError, match="equality"):
        inequalities(pt.neq(data, 1) | (x > 1) | pt.eq(x, 0))


@pytest.mark.parametrize("build", [lambda data: data >= 0, lambda data: ~(data < 0)])
def test_equal_data_satisfy_a_condition(build):
    x = pt.dvector()
    [row] = inequalities(build(pytensor.shared(np.array([0.0, -1.0]))) | (x > 1))
    assert np.array_equal(row.slack.eval({x: [-5.0, -5.0]}), [np.inf, -6.0])


def test_a_union_that_is_decided_keeps_its_shape():
    x, flag = pt.dvector(), pytensor.shared(np.array(True))
    first = pt.concatenate([pt.or_(flag, x > 0), x < 1])
    [row] = inequalities(first | (pt.concatenate([x, x]) > 5))
    assert np.array_equal(row.slack.eval({x: [-1.0, 2.0]}), [np.inf, np.inf, 2.0, -1.0])


@pytest.mark.skipif(not COMPILES_INNER_GRAPHS, reason="PyTensor 2 cannot do without")
def test_nothing_is_compiled_to_c(monkeypatch):
    """Neither a graph nor what is inside of it: a scan, a softmax."""
    interpreted([], [])
    monkeypatch.setattr(CLinker, "make_thunk", None)
    x = pt.dvector("x")

    def step(y):
        return pt.special.softmax(y) + 1

    steps = pytensor.scan(step, [], [x], n_steps=3, return_updates=False)
    slope = interpreted([x], pt.grad(pt.logsumexp(steps[-1]), x))([0.3, 0.4])
    assert np.all(np.isfinite(slope))
    assert config.cxx or not shutil.which("g++")
