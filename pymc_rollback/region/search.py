"""A search for a point inside, in numbers: by descent, and in an affine system."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy


def descend(
    function: Callable[..., Sequence], vector: np.ndarray, *arguments: Any, **options: Any
) -> np.ndarray:
    """Where a descent from a vector ends.

    Parameters
    ----------
    function
        What is to be small, and its gradient. It may be anything on the way: an overflow there is
        an answer, not an accident.
    vector, arguments
        Where to begin, and what else the function takes.
    options
        Passed to ``scipy.optimize.minimize``.
    """

    def objective(q: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(all="ignore"):
            value, gradient = function(q, *arguments)
        usable = np.isfinite(value) and np.all(np.isfinite(gradient))
        return (float(value), gradient) if usable else (1e300, np.zeros_like(q))

    return scipy.optimize.minimize(objective, vector, jac=True, method="L-BFGS-B", **options).x


def find_deepest(
    rows: "np.ndarray | scipy.sparse.csr_array",
    offset: np.ndarray,
    bounds: list[tuple[float | None, float | None]],
) -> "scipy.optimize.OptimizeResult":
    """Maximise ``t`` where ``A x + c >= t``: a linear program in ``x`` and ``t``, the last of both.

    Parameters
    ----------
    rows, offset
        ``A``, of rows of unit length, and ``c``, finite. How deep a point can be is limited by
        their size, or an open system would have no deepest point.
    bounds
        Bounds of each ``x``.
    """
    size = rows.shape[1]
    return scipy.optimize.linprog(
        np.r_[np.zeros(size), -1.0],
        A_ub=scipy.sparse.hstack([-scipy.sparse.csr_array(rows), np.ones((rows.shape[0], 1))]),
        b_ub=offset,
        bounds=[*bounds, (None, 1.0 + np.abs(offset).max(initial=0.0))],
    )
