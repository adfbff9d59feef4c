"""Long chains through ``pm.sample``, against known answers."""

import warnings
from typing import NamedTuple

import arviz as az
import numpy as np
import pymc as pm
from scipy import stats

from benchmarks.samplers import only_errors
from trust.models import MODELS, Known

FALSE_ALARMS = 1e-3
"""Chance that a right sampler is called wrong, over all statistics of all models."""


class Statistic(NamedTuple):
    """A mean, its truth, its standard error, and how many standard errors it is off."""

    model: str
    expression: str
    mean: float
    truth: float
    error: float
    z: float


def threshold(count: int | None = None) -> float:
    """Standard errors that the farthest of so many statistics rarely exceeds (Bonferroni)."""
    count = count or sum(len(known.answers) for known in MODELS.values())
    return float(stats.norm.isf(FALSE_ALARMS / (2 * count)))


def run_chain(name: str, draws: int = 50_000, chains: int = 4, seed: int = 1) -> list[Statistic]:
    """Statistics of a model."""
    known = MODELS[name]
    return compare(name, known, sample(known, draws, chains, seed))


def sample(known: Known, draws: int, chains: int, seed: int) -> dict[str, np.ndarray]:
    """Draws of the variables of a model."""
    with known.model() as model, warnings.catch_warnings(), only_errors():
        warnings.simplefilter("ignore")
        trace = pm.sample(
            draws,
            tune=1000,
            chains=chains,
            cores=1,
            step=known.step(model),
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return {name: x.values for name, x in trace["posterior"].data_vars.items()}


def compare(name: str, known: Known, draws: dict[str, np.ndarray]) -> list[Statistic]:
    """Means of all functions of the draws, with their Monte Carlo errors."""
    rows = []
    for expression, truth in known.answers.items():
        values = eval(expression, {**draws, "np": np})
        size = float(az.ess(az.convert_to_dataset({"x": values * 1.0}), method="mean")["x"].values)
        error = float(values.std() / np.sqrt(size))
        mean = float(values.mean())
        rows.append(Statistic(name, expression, mean, truth, error, (mean - truth) / error))
    return rows
