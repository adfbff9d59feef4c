"""Rows of the table of benchmarks."""

from typing import NamedTuple

import numpy as np


class Row(NamedTuple):
    """A figure and its target: at most, or (with ``least``) at least; NaN for none."""

    name: str
    figure: float
    limit: float
    least: bool = False

    @property
    def measured(self):
        return f"{self.figure:.2f}"

    @property
    def target(self):
        return "" if np.isnan(self.limit) else f"{'≥' if self.least else '≤'} {self.limit:g}"

    @property
    def met(self):
        if np.isnan(self.limit):
            return ""
        return (
            "yes"
            if (self.figure >= self.limit if self.least else self.figure <= self.limit)
            else "no"
        )
