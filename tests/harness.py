"""What tests have in common: targets, samplers on them, and chains."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import arviz as az
import numpy as np
import pymc as pm
import pytensor
import xarray as xr
from pytensor.graph.replace import clone_replace

import pymc_rollback as rb
from pymc_rollback.target.ledger import empty_ledger
from pymc_rollback.target.walls import Walls


@dataclass(frozen=True)
class Target:
    """A model, and what is known about it.

    Attributes
    ----------
    build
        Makes the model.
    draw
        ``draw(rng, n)``: exact draws by variable, one a row.
    views
        Functions of the draws of which the distribution is tested.
    known
        Distributions of views, by name, where they have a closed form.
    sharpness, step_size, n_steps
        For the static sampler.
    sampled
        Names of the variables that the sampler samples; all if left out.
    """

    build: Callable[[], pm.Model]
    draw: Callable | None = None
    views: Mapping[str, Callable] = field(default_factory=dict)
    known: Mapping = field(default_factory=dict)
    sharpness: float | Mapping[str, float] = 10.0
    step_size: float = 0.15
    n_steps: int = 8
    sampled: tuple[str, ...] | None = None


def static_step(target, **options):
    """The static sampler, with a barrier at every wall."""
    given = {
        "sharpness": target.sharpness,
        "step_size": target.step_size,
        "n_steps": target.n_steps,
    }
    model = target.build()
    with model:
        sampled = target.sampled and [model[name] for name in target.sampled]
        return model, rb.RollbackHMC(sampled, **{**given, **options}, rng=1)


def new_step(target, **options):
    """The sampler with nothing else given, before its warm-up."""
    model = target.build()
    with model:
        sampled = target.sampled and [model[name] for name in target.sampled]
        return model, rb.RollbackHMC(sampled, rng=1, **options)


def automatic_step(target, **options):
    """The same after its warm-up."""
    model, step = new_step(target, **options)
    point = model.initial_point()
    for _ in range(600):
        point, _ = step.step(point)
    step.stop_tuning()
    return model, step


STEPS = {"static": static_step, "automatic": automatic_step}
"""Samplers by name: functions of a target that return its model and a step, ready to draw."""


class Chains:
    """Many chains of a model, each a draw of its variables, stepped by a step method."""

    def __init__(self, model):
        self.names = [rv.name for rv in model.free_RVs]
        self.values = [v.name for v in model.value_vars]
        x = [rv.type() for rv in model.free_RVs]
        values = [
            rv if t is None else t.forward(rv, *rv.owner.inputs)
            for rv, t in model.rvs_to_transforms.items()
            if rv in model.free_RVs
        ]
        values = clone_replace(values, dict(zip(model.free_RVs, x, strict=True)))
        self.enter = pytensor.function(x, values, mode="FAST_COMPILE")
        self.leave = pytensor.function(
            model.value_vars, model.replace_rvs_by_values(model.free_RVs), mode="FAST_COMPILE"
        )

    def run(self, step, draws, n_steps):
        """Step each of the draws some times; draws again."""
        ends = []
        for row in zip(*(draws[name] for name in self.names), strict=True):
            point = dict(zip(self.values, self.enter(*row), strict=True))
            for _ in range(n_steps):
                point, _ = step.step(point)
            ends.append(self.leave(*(point[name] for name in self.values)))
        columns = zip(*ends, strict=True)
        return {name: np.stack(x) for name, x in zip(self.names, columns, strict=True)}


def sample(step, model, draws=30, **options):
    defaults = {
        "tune": 10,
        "chains": 2,
        "cores": 1,
        "random_seed": 8,
        "progressbar": False,
        "compute_convergence_checks": False,
    }
    with model:
        return pm.sample(draws, step=step, **(defaults | options))


def evaluate(expression, inputs=(), values=()):
    return pytensor.function(list(inputs), expression, mode="FAST_COMPILE")(*values)


def free_variable(make, **kwargs):
    """Support of the variable "x" of a model that has nothing else."""
    with pm.Model() as model:
        make("x", **kwargs)
    return model, rb.read_region(model).supports["x"]


def bounds(support, shape=()):
    """Bounds of each element, infinite where there is none."""
    lower = -np.inf if support.lower is None else evaluate(support.lower)
    upper = np.inf if support.upper is None else evaluate(support.upper)
    return np.broadcast_to(lower, shape), np.broadcast_to(upper, shape)


def as_idata(axes=("chain", "draw"), coords=None, group="posterior", **values):
    """Draws of variables, chain by draw, as ``pm.sample`` returns them."""
    leading = next(iter(values.values())).shape[:2]
    numbers = {axis: np.arange(n) for axis, n in zip(axes, leading, strict=True)} | (coords or {})
    draws = {
        name: ((*axes, *(f"{name}_dim_{i}" for i in range(x.ndim - 2))), x)
        for name, x in values.items()
    }
    dataset = xr.Dataset(draws, coords=numbers)
    if az.__version__.startswith("0."):
        return az.InferenceData(**{group: dataset})
    return xr.DataTree.from_dict({group: dataset})


def no_walls(size, **given):
    """Walls of so many coordinates: none but those given."""
    nowhere = {
        "names": tuple(f"x[{i}]" for i in range(size)),
        "reflects": np.zeros(size, dtype=bool),
        "mappable": np.zeros(size, dtype=bool),
        "runs": np.empty((0, 3)),
        "run_names": (),
        "planes": np.empty((size + 1, 0)),
        "mirrors": (),
        "barrier_rows": 0,
        "is_affine": True,
        "has_energy": False,
        "sharp": (),
        "ledger": empty_ledger(size),
    }
    return Walls(**{**nowhere, **given})
