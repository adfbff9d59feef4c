"""Refuse a region that cannot be sampled, before anything is sampled."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy
from pymc.blocking import DictToArrayBijection
from pymc.pytensorf import join_nonshared_inputs
from pytensor.graph.basic import equal_computations
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.tensor import TensorConstant
from pytensor.tensor.variable import TensorVariable

from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.region.constraint import (
    Constraint,
    Region,
    RegionError,
    free_inputs,
    involves_continuous,
    is_continuous,
    with_plain_inputs,
)
from pymc_rollback.region.diagnose import check_start
from pymc_rollback.region.inside import over_one_vector, shortfall
from pymc_rollback.region.search import descend, find_deepest

TRIAL_SCALES = (0.0, 0.1, 1.0, 1.0, 2.0, 2.0)
"""Jitter, in value space, of the points around the initial one at which a constraint is tried."""

WIDE_SCALES = (5.0, 10.0, 10.0, 30.0, 100.0)
"""Further starts of the search for a point that meets a constraint."""


def check_region(region: Region) -> None:
    """Raise a RegionError that names what cannot be sampled in a region, and the remedy.

    Variables must be double precision, as the kernels are. Each joint constraint must have a
    gradient; each nonlinear one must be met somewhere; the affine ones and the bounds of their
    variables must be met together.
    """
    for name, support in region.supports.items():
        if support.variable.dtype != "float64":
            raise RegionError(
                f"Variable {name!r} is {support.variable.dtype}, and trajectories need float64. "
                "Give it dtype='float64', or set pytensor.config.floatX = 'float64' first."
            )
    check_start(region)
    for constraint in region.joint:
        slack = _slack_function(region, constraint)
        _check_gradient(constraint, slack)
        if not constraint.affine:
            _check_can_be_met(constraint, slack)
    _check_affine_system(region)


def _slack_function(region: Region, constraint: Constraint) -> "_ValueFunction":
    """The slack of a constraint and what the checks derive from it, if it can be evaluated."""
    try:
        function = _ValueFunction(region, constraint.slack, _gradient_and_shortfall)
        function(function.start)
    # of NumPy and PyTensor, where shapes or indices do not fit
    except (ValueError, IndexError, AssertionError) as error:
        shapes = region.model.eval_rv_shapes()
        listed = (
            f"{x.name} has the shape {tuple(map(int, shapes[x.name]))}" for x in constraint.inputs
        )
        raise RegionError(
            f"Constraint {constraint.name!r}: `{constraint.text}` cannot be evaluated: "
            f"{str(error).splitlines()[0].strip(' .')}. Make the shapes in it fit: "
            f"{', '.join(listed)}."
        ) from error
    return function


def check_same(then: Region, now: Region) -> None:
    """Raise where data have changed a region, so that what was made for it no longer fits."""
    before, after = ([c.slack for c in region] for region in (then, now))
    if len(before) != len(after) or not equal_computations(before, after):
        raise RegionError(
            "The data have changed, and with them the constraints of the model: they were "
            f"{_listed(then)}, and now are {_listed(now)}. Make another RollbackHMC."
        )
    inputs = set(graph_inputs(after))
    resized = [
        v.name for v, x in then.data.items() if v in inputs and v.get_value().shape != x.shape
    ]
    resized += [name for name, x in then.start.items() if x.shape != now.start[name].shape]
    if resized:
        raise RegionError(
            f"The data have changed, and with them the shape of {', '.join(map(str, resized))}. "
            "Make another RollbackHMC."
        )


def _listed(region: Region) -> str:
    """The constraints of a region, in words."""
    return ", ".join(f"`{constraint.text}`" for constraint in region) or "none"


def check_potentials(region: Region, potentials: Mapping[str, TensorVariable]) -> None:
    """Raise where a Potential is not finite somewhere inside the region.

    Parameters
    ----------
    region
        The region of a model.
    potentials
        Potentials of the model without their indicators, by name.
    """
    for name, finite in potentials.items():
        values = _not_finite_inside(region, finite)
        if np.any(np.isneginf(values)):
            raise RegionError(
                f"Potential {name!r} is -inf somewhere inside the region, but not in a form that "
                "can be read as a condition. Write it as switch(condition, finite, -inf), or give "
                "by hand a slack g(x) that is positive where it is finite: "
                f"RollbackHMC(constraints={{{name!r}: g}})."
            )
        if values.size:
            raise RegionError(
                f"Potential {name!r} is {values[0]:g} somewhere inside the region, and a log "
                "density must be finite there. Look for missing values in its data, and for a "
                "logarithm, a root or a quotient of something that must be positive: constrain "
                "that, rb.constrain(name, g > 0)."
            )


def _not_finite_inside(region: Region, expression: TensorVariable) -> np.ndarray:
    """Values of an expression that are not finite, at points inside the region around its start."""
    if not involves_continuous(region.model, expression):
        values = np.asarray(region.evaluate([expression], region.start)[0])
        return values[~np.isfinite(values)]
    function = _ValueFunction(region, expression)
    found = [np.empty(0)]
    for vector in function.points(TRIAL_SCALES):
        values = np.asarray(function(vector)[0])
        if not np.all(np.isfinite(values)):
            point = {**region.start, **function.point(vector)}
            slacks = region.evaluate([c.slack for c in region], point)
            if all(np.all(slack > 0) for slack in slacks):
                found.append(values[~np.isfinite(values)].ravel())
    return np.concatenate(found)


def check_densities(region: Region) -> None:
    """Raise where a variable without bounds has a density that is ``-inf`` somewhere."""
    for name, support in region.supports.items():
        if support.bounded or support.smooth is None:
            continue
        # a cheap look at the graph first: most densities without a bound have no -inf in them
        constants = (v for v in ancestors([support.smooth]) if isinstance(v, TensorConstant))
        if not any(np.any(np.isneginf(v.data)) for v in constants if v.dtype != "bool"):
            continue
        if np.any(np.isneginf(_not_finite_inside(region, support.smooth))):
            raise RegionError(
                f"Variable {name!r}: its density is zero somewhere, but its support cannot be read "
                "from its distribution. Give it a transform (transform=Interval(lower, upper))."
            )


class _ValueFunction:
    """An expression, and what is derived from it, over its continuous variables' joined values.

    Parameters
    ----------
    region
        The region of a model, from whose start all other values are.
    expression
        An expression of the model's random variables.
    derive
        A function of the expression, the joined vector and a margin that gives further outputs.
    """

    def __init__(
        self, region: Region, expression: TensorVariable, derive: Callable = lambda *_: []
    ) -> None:
        model = region.model
        continuous = filter(is_continuous, free_inputs(model, expression))
        values = [model.rvs_to_values[rv] for rv in continuous]
        expression, joined, self._vector = over_one_vector(model, expression, values, region.start)
        margin = pt.dscalar("margin")
        outputs = [expression, *derive(expression, joined, margin)]
        self._function = interpreted([joined, margin], outputs)
        self.start = self._vector.data

    def point(self, vector: np.ndarray) -> dict[str, np.ndarray]:
        """The values of the variables, by name."""
        return DictToArrayBijection.rmap(self._vector._replace(data=vector))

    def points(self, scales: Iterable[float]) -> Iterable[np.ndarray]:
        """Vectors around the start, at random with given spreads."""
        rng = np.random.default_rng(0)
        return (self.start + scale * rng.normal(size=self.start.size) for scale in scales)

    def __call__(self, vector: np.ndarray, margin: float = 0.0) -> list[np.ndarray]:
        # trial points may lie anywhere: an overflow there is an answer, not an accident
        with np.errstate(all="ignore"):
            return self._function(vector, margin)


def _gradient_and_shortfall(
    slack: TensorVariable, joined: TensorVariable, margin: TensorVariable
) -> list[TensorVariable]:
    """Gradient of a sum of a slack's rows; their shortfall of a margin, and its gradient."""
    # unequal weights, so that the gradients of rows do not cancel
    weights = 1.0 + pt.arange(slack.size) / slack.size
    gradient = pt.grad(
        pt.sum(weights * slack), joined, null_gradients="raise", disconnected_inputs="ignore"
    )
    return [gradient, *shortfall(slack, joined, margin)]


def _check_gradient(constraint: Constraint, slack: _ValueFunction) -> None:
    if slack(slack.start)[0].size == 0:
        raise RegionError(
            f"Constraint {constraint.name!r}: `{constraint.text}` has no elements, so there is "
            "nothing that it constrains. Leave it out."
        )
    tried = [slack(point)[:2] for point in slack.points(TRIAL_SCALES + WIDE_SCALES)]
    if all(np.any(np.isnan(value)) for value, _ in tried):
        raise RegionError(
            f"Constraint {constraint.name!r}: the slack of `{constraint.text}` is not a number at "
            f"any of {len(tried)} points. Look for missing values in its data, and for functions "
            "that have no value there, such as log or sqrt of a negative number."
        )
    values, gradients = zip(*tried, strict=True)
    if any(np.any(g[np.isfinite(g)] != 0) for g in gradients):
        return
    # `x - x < 1`: terms that cancel, so that it holds at all points or, as the start finds, at none
    cancels = constraint.affine and np.all(np.ptp(values, axis=0) == 0)
    if not cancels:
        raise RegionError(
            f"Constraint {constraint.name!r}: the gradient of `{constraint.text}` is zero at each "
            f"of {len(gradients)} points, so nothing can roll back from its boundary. Write it "
            "without rounding, integer division or comparisons inside."
        )


def _check_can_be_met(constraint: Constraint, slack: _ValueFunction) -> None:
    best = -np.inf
    for point in slack.points(TRIAL_SCALES + WIDE_SCALES):
        for margin in (1.0, 1e-3, 1e-6):
            best = max(best, _least(slack(point)[0]))
            if best > 0:
                return
            point = descend(lambda q, m: slack(q, m)[2:], point, margin)
        best = max(best, _least(slack(point)[0]))
    if best <= 0:
        raise RegionError(
            f"Constraint {constraint.name!r}: no point was found at which `{constraint.text}` "
            f"holds; its slack, which must be positive, was {best:.3g} at best. Check the "
            "inequality and the bounds of its variables."
        )


def _least(rows: np.ndarray) -> float:
    return -np.inf if np.any(np.isnan(rows)) else float(np.min(rows))


def _check_affine_system(region: Region) -> None:
    """Raise where affine constraints have no common interior, naming a smallest set of culprits."""
    model = region.model
    affine = [c for c in region.joint if c.affine]
    names = {x.name for c in affine for x in c.inputs}
    own = [c for c in region if c.kind != "joint" and c.affine]
    own = [c for c in own if {x.name for x in c.inputs} <= names]
    if not affine:
        return
    shapes = model.eval_rv_shapes()
    systems = {c: _affine_rows(model, c, names, shapes) for c in [*affine, *own]}
    if _has_interior(systems.values()):
        return
    culprits = list(systems)
    for constraint in systems:
        rest = [c for c in culprits if c is not constraint]
        if rest and not _has_interior([systems[c] for c in rest]):
            culprits = rest
    listed = "; ".join(f"{c.name!r} ({c.text})" for c in culprits)
    if len(culprits) > 1:
        raise RegionError(f"No point satisfies together: {listed}. Remove or relax one of them.")
    raise RegionError(f"No point satisfies {listed}. Remove or relax it.")


def _affine_rows(
    model: pm.Model, constraint: Constraint, names: set[str], shapes: dict[str, tuple[int, ...]]
) -> tuple["scipy.sparse.csr_array", np.ndarray]:
    """Write a slack as ``J x + c`` over the named variables, with rows of J of unit length."""
    [slack], plain = with_plain_inputs(model, [constraint.slack])
    zeros = {name: np.zeros(shapes[name]) for name in sorted(names)}
    others = {
        plain[rv.name]: pt.zeros(shapes[rv.name], dtype=rv.dtype)
        for rv in model.free_RVs
        if rv.name not in names
    }
    [slack] = clone_replace([slack], others)
    [slack], joined = join_nonshared_inputs(zeros, [slack], [plain[name] for name in zeros])
    function = interpreted([joined], slack)
    size = sum(x.size for x in zeros.values())
    intercept = function(np.zeros(size))
    rows = scipy.sparse.csr_array(
        np.stack([function(unit) - intercept for unit in np.eye(size)], axis=1)
    )
    length = scipy.sparse.linalg.norm(rows, axis=1)
    length = np.where(length > 0, length, 1.0)
    return scipy.sparse.diags_array(1 / length) @ rows, intercept / length


def _has_interior(systems: Iterable[tuple["scipy.sparse.csr_array", np.ndarray]]) -> bool:
    """Whether ``J x + c >= t`` for some x and t > 0."""
    rows, intercepts = zip(*systems, strict=True)
    rows, intercept = scipy.sparse.vstack(rows), np.concatenate(intercepts)
    finite = np.isfinite(intercept)
    rows, intercept = rows[finite], intercept[finite]
    answer = find_deepest(rows, intercept, [(None, None)] * rows.shape[1])
    return answer.status != 0 or -answer.fun > 1e-12 * np.abs(intercept).max(initial=0.0)
