"""Regressions without walls but that of the noise, where only the metric counts."""

import numpy as np
import pymc as pm

from benchmarks import reference, synthetic
from benchmarks.work.base import Work, flat

NOISE = 5.0
"""Scale of the half-Cauchy prior of the standard deviation of the noise."""


def regression(y, X, prior_sd):
    with pm.Model() as model:
        b = pm.Normal("b", 0, prior_sd, shape=X.shape[1])
        pm.Normal("y", X @ b, pm.HalfCauchy("sd", NOISE), observed=y)
    return model


def regression_moments(y, X, prior_sd):
    """Given the standard deviation of the noise, the coefficients are normal."""
    prior = prior_sd**2 * np.eye(X.shape[1])
    sd, weight = reference.log_grid(400, 1e-2, 1e3)
    found = [reference.given(X, y, np.full(len(y), each), prior) for each in sd]
    log_prior = -np.log1p((sd / NOISE) ** 2)
    return reference.mixed(found, log_prior + np.log(weight), sd[:, None])


def regression_work(name, about, y, X, prior_sd):
    return Work(
        name,
        about,
        lambda: regression(y, X, prior_sd),
        flat("b", "sd"),
        lambda quick: regression_moments(y, X, prior_sd),
        source="quadrature",
    )


def works(quick):
    y, lags = synthetic.lagged(
        synthetic.autoregressive(np.array([0.7, -0.4, 0.3, -0.2, 0.1]), 200, 1.0, seed=1), 5
    )
    return [
        regression_work(
            "AR(5)",
            "an autoregression of fifth order through 200 values, stationary or not",
            y,
            np.column_stack([np.ones(len(y)), lags]),
            10.0,
        ),
        regression_work(
            "collinear",
            "a regression on 5 predictors with correlations of 0.9999",
            *synthetic.collinear(),
            10.0,
        ),
        regression_work(
            "interaction",
            "a regression on a group, a predictor that is not centred, and their product",
            *synthetic.interacting(),
            100.0,
        ),
    ]
