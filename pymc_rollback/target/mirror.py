r"""The mirror: fold the line into the support, so that draws at a wall are exact.

A coordinate with bounds lives on the whole line as an *image* ``y`` of ``x = fold(y)``. With
``t = x - lower`` and ``u = upper - x``, the images of ``x`` are ``x`` itself and its reflections
about either bound, with weights :math:`1 : e^{-\mu t} : e^{-\mu u}`. Normalised over the images of
an ``x`` they sum to one, so that a density ``f(fold(y)) w(y)`` of ``y`` has exactly the density
``f(x)`` of ``x``, for every sharpness ``mu``. For one bound the weight is the sigmoid
:math:`\sigma(\mu (y - \mathrm{lower}))`.

Bounds here are arrays or expressions of the shape of the coordinate; None or infinite elements
mean that there is no bound.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

OptionalBound: TypeAlias = TensorVariable | None

LEAST_SHARPNESS = 8.0
"""Sharpness times width of two bounds that move with other variables, if no sharpness is given."""


def fold(y: TensorVariable, lower: OptionalBound, upper: OptionalBound) -> TensorVariable:
    r"""Reflect a coordinate into its support.

    ``lower + |y - lower|`` at one bound; between two bounds at distance ``h``,
    :math:`\mathrm{lower} + h - |h - (|y - \mathrm{lower}| \bmod 2h)|`.
    """
    if lower is None and upper is None:
        return y
    if upper is None:
        return _where_finite(lower, lambda a: a + pt.abs(y - a), y)
    if lower is None:
        return _where_finite(upper, lambda b: b - pt.abs(b - y), y)

    def between(a: TensorVariable) -> TensorVariable:
        return _where_finite(upper, lambda b: _fold_twice(y, a, b), a + pt.abs(y - a))

    return _where_finite(lower, between, fold(y, None, upper))


def _fold_twice(y: TensorVariable, lower: TensorVariable, upper: TensorVariable) -> TensorVariable:
    width = upper - lower
    height = pt.mod(pt.abs(y - lower), 2 * width)
    x = pt.switch(height <= width, lower + height, upper - (height - width))
    return pt.clip(x, lower, upper)  # against rounding


def _where_finite(
    bound: TensorVariable, bounded: Callable, unbounded: TensorVariable
) -> TensorVariable:
    """Apply a function of a bound where it is finite, and keep infinities out of its gradient."""
    if isinstance(bound, pt.TensorConstant):
        if np.all(np.isfinite(bound.data)):
            return bounded(bound)
        if not np.any(np.isfinite(bound.data)):
            return unbounded
    finite = pt.invert(pt.isinf(bound))
    return pt.switch(finite, bounded(pt.switch(finite, bound, 0.0)), unbounded)


def image_energy(
    y: TensorVariable,
    x: TensorVariable,
    lower: OptionalBound,
    upper: OptionalBound,
    sharpness: TensorVariable,
) -> TensorVariable:
    r"""Minus the log weight of an image: the boundary term of a mirrored coordinate.

    :math:`\mu\,d(y) + \log(1 + e^{-\mu t} + e^{-\mu u})`, with ``d`` the distance of ``y`` from the
    support. With one bound it is the softplus :math:`\log(1 + e^{-\mu (y - \mathrm{lower})})`.

    Parameters
    ----------
    y, x
        The coordinate and its fold.
    lower, upper
        Bounds.
    sharpness
        ``mu``, of the shape of the coordinate.
    """
    if lower is None or upper is None:
        outward = upper - y if lower is None else y - lower
        return pt.softplus(-sharpness * outward)
    beyond = pt.maximum(pt.maximum(lower - y, y - upper), 0.0)
    images = pt.exp(-sharpness * (x - lower)) + pt.exp(-sharpness * (upper - x))
    return sharpness * beyond + pt.log1p(images)


def within_reach(y: TensorVariable, lower: OptionalBound, upper: OptionalBound) -> TensorVariable:
    """Whether a coordinate is one of the images: at most one reflection away from its support."""
    if lower is None or upper is None:
        return pt.ones_like(y, dtype=bool)
    width = upper - lower
    return pt.and_(y > lower - width, y < upper + width)


def draw_image(
    x: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    sharpness: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw an image of each coordinate from its weights: a Gibbs update of the image.

    Parameters
    ----------
    x
        Coordinates inside their bounds.
    lower, upper
        Bounds, infinite where there is none.
    sharpness
        ``mu`` of each coordinate.
    rng
        The chain's generator.
    """
    low, high = (
        np.exp(-sharpness * np.where(np.isinf(bound), 0.0, np.abs(x - bound))) * np.isfinite(bound)
        for bound in (lower, upper)
    )
    pick = rng.random(x.shape) * (1.0 + low + high)
    reflected = np.where(pick < 1.0 + low, 2 * lower - x, 2 * upper - x)
    return np.where(pick < 1.0, x, reflected)
