"""The point that is farthest inside an affine system."""

import numpy as np
import scipy


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
