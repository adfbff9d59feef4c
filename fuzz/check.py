"""What is read and sampled of a model, compared with PyMC's own log density at many points."""

import traceback
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytensor
from pymc.exceptions import SamplingError
from pymc.logprob.utils import ParameterValueError
from pytensor.compile.mode import Mode

import pymc_rollback as rb
from fuzz.models import build
from pymc_rollback.graph.evaluate import interpreted
from pymc_rollback.guard import DensityError
from pymc_rollback.region.indicators import NEGLIGIBLE_NATS

POINTS = 200
SPREADS = 0.01, 0.1, 0.3, 1.0, 3.0
FARTHEST = 5.0
DRAWS = 40
ROUNDING = 1e-8
"""Difference of two log densities, relative to their size, that rounding explains."""

EDGE = 1e-12
"""Slacks of points that rounding puts on either side of a wall."""

FALL = 30.0
"""Nats by which a log density falls before it is too small for a number: 1 - p is 0 from 36 on."""

OURS = str(Path(rb.__file__).parent)


class MismatchError(AssertionError):
    """The region, its density or a draw is not the model's."""


@dataclass(frozen=True)
class Verdict:
    """What became of a model.

    Attributes
    ----------
    outcome
        "agrees"; "refused" by us, with our own error; "empty" where no point inside was found;
        "no model" where PyMC itself cannot build or evaluate it; "failed".
    reason
        The error, or what differs.
    """

    outcome: str
    reason: str = ""


def judge(statements, check, seed):
    """Build a model and check it; every error is a failure, but for a refusal in our own words."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = build(statements)
        except Exception as error:
            return _verdict(error, "no model")
        try:
            return check(model, seed)
        except Exception as error:
            return _verdict(error, "failed" if _has_density(model) else "no model")


def _has_density(model):
    """Whether PyMC itself can write down the log density of a model."""
    try:
        model.logp()
    except Exception:
        return False
    return True


class Graphs:
    """Functions of a model's values: interpreted, or, to ask again in doubt, compiled.

    What is interpreted is not rewritten, and so overflows where the compiled function does not.
    """

    def __init__(self, model, outputs):
        self.model = model
        self.graphs = model.value_vars, outputs
        self.quick = interpreted(*self.graphs)

    def __call__(self, point):
        return self.quick(*point)

    def again(self, point):
        return self.compiled(*point)

    @cached_property
    def compiled(self):
        return interpreted(*self.graphs, mode=None)

    def may_be_zero(self, point, base):
        """Whether the density may be zero inside the region.

        Conditions on discrete variables alone are no walls, and neither is that a parameter must be
        valid (the scale of a normal positive): both stay in the density. And a density may be too
        small for a number: then it has fallen far on the way from a base where it is positive.
        """
        if self.model.discrete_value_vars:
            return True
        try:
            self.raising(*point)
        except ParameterValueError:
            return True
        return self._last(point, base) < self.again(base)[0] - FALL

    def _last(self, point, base):
        """The last finite log density on the way from a base to a point, by bisection."""
        near, far, last = 0.0, 1.0, np.inf
        for _ in range(40):
            middle = (near + far) / 2
            way = [x + middle * (y - x) for x, y in zip(base, point, strict=True)]
            log_density = self.again(way)[0]
            if np.isfinite(log_density):
                near, last = middle, log_density
            else:
                far = middle
        return last

    @cached_property
    def raising(self):
        # no rewrites at all: there is one that makes -inf of PyMC's checks
        return pytensor.function(*self.graphs, mode=Mode("py", None), on_unused_input="ignore")


def _verdict(error, otherwise):
    """Refused where we raise it on purpose: in a line of ours, with a ValueError or its like."""
    where = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    on_purpose = isinstance(error, ValueError | TypeError | SamplingError)
    on_purpose &= not isinstance(error, DensityError)
    reason = f"{type(error).__name__}: {error}"
    if where[-1].startswith(OURS) and on_purpose:
        return Verdict("refused", reason)
    ours = any(name.startswith(OURS) for name in where)
    return Verdict("failed" if ours else otherwise, reason)


def check_region(model, seed):
    """Inside the region is where the log density is finite, and there the smooth one is the same.

    A penalty that is read as a wall counts as infinite. Points are around those found inside.
    """
    region, rng = rb.read_region(model), np.random.default_rng(seed)
    values = model.value_vars
    slacks = model.replace_rvs_by_values([c.slack for c in region]) if len(region) else []
    graphs = Graphs(model, [model.logp(), region.smooth_logp(), *slacks])
    bases, found = [[region.start[v.name] for v in values]], 0
    for _ in range(POINTS):
        base, spread = bases[rng.integers(len(bases))], rng.choice(SPREADS)
        point = [_near(x, spread, v.dtype, rng) for x, v in zip(base, values, strict=True)]
        place = _compare(*graphs(point))
        if place == "disagree" or (place == "zero" and not graphs.may_be_zero(point, base)):
            place = _compare(*graphs.again(point))
        if place == "disagree" or (place == "zero" and not graphs.may_be_zero(point, base)):
            hard, smooth, *rows = graphs.again(point)
            least = min((np.min(row) for row in rows), default=np.inf)
            at = ", ".join(f"{v.name}={x.tolist()}" for v, x in zip(values, point, strict=True))
            raise MismatchError(
                f"log density {hard}, {smooth} as read, least slack {least}, at {at}"
            )
        if place == "inside":
            found += 1
            bases.append(point)
    return Verdict("agrees" if found else "empty", f"{found} points inside")


def _compare(hard, smooth, *rows):
    """Where a point is; inside the region, but where the density is zero, is "zero"."""
    if any(np.any(np.abs(row) < EDGE) for row in rows):
        return "edge"
    if not all(np.all(row > 0) for row in rows):
        return "disagree" if hard > -NEGLIGIBLE_NATS else "outside"
    if not _is_same(hard, smooth):
        return "disagree"
    return "inside" if np.isfinite(hard) else "zero"


def check_draws(model, seed):
    """Every draw of a short chain is inside, and the chain moves."""
    log_density = Graphs(model, [model.logp()])
    step = rb.RollbackHMC(model=model, rng=seed, compile_kwargs={"mode": "FAST_COMPILE"})
    point, draws = model.initial_point(random_seed=0), []
    for draw in range(DRAWS):
        if draw == DRAWS // 2:
            step.stop_tuning()
        point, [stats] = step.step(point)
        values = [point[v.name] for v in model.value_vars]
        [hard] = log_density(values)
        if not (np.isfinite(hard) and _is_same(hard, stats["model_logp"])):
            [hard] = log_density.again(values)
        if not (np.isfinite(hard) and _is_same(hard, stats["model_logp"])):
            raise MismatchError(
                f"draw {draw} has log density {hard}, not {stats['model_logp']}, at {point}"
            )
        draws.append(point)
    if all(np.array_equal(draws[0][v.name], draws[-1][v.name]) for v in step.vars):
        raise MismatchError(f"the chain stayed at its first draw, {point}")
    return Verdict("agrees")


def _near(x, spread, dtype, rng):
    # farther out the exponential of an exponential, as in an ordered positive vector, overflows
    moved = np.clip(x + spread * rng.normal(size=np.shape(x)), -FARTHEST, FARTHEST)
    return np.asarray(moved if dtype.startswith("float") else np.round(moved)).astype(dtype)


def _is_same(one, other):
    return np.isclose(one, other, rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
