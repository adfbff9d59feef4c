r"""Boundary terms: :math:`U_\sigma(x) = \sum_j \log(1 + e^{-\mu_j g_j(x)})`, in PyTensor.

PyTensor differentiates them; no derivative is written by hand.
"""

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable


def boundary_term(slack: TensorVariable, sharpness: TensorVariable | float) -> TensorVariable:
    r"""Energy that stands for the indicator of ``slack > 0``.

    A softplus of :math:`-\mu g`: nothing overflows, whatever ``mu`` and ``g`` are.

    Parameters
    ----------
    slack
        ``g(x)``, an element a row.
    sharpness
        ``mu``, for all rows or of the shape of the slack.
    """
    return pt.sum(pt.softplus(-sharpness * slack))


def lean(slack: TensorVariable, sharpness: TensorVariable | float) -> TensorVariable:
    r"""How steep a boundary term is in each row, as a share of ``mu``: :math:`\sigma(-\mu g)`."""
    return pt.sigmoid(-sharpness * slack)
