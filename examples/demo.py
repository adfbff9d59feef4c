"""Read the region of a small constrained model and show it."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from rich import print

import pymc_rollback as rb

with pm.Model() as model:
    x = pm.Normal("x", 0, 1, shape=2)
    scale = pm.HalfNormal("scale")
    share = pm.Uniform("share", 0, scale)
    pm.Potential("own", pt.switch(x[0] > x[1] ** 2 - 1, 0, -np.inf))
    rb.constrain("disk", pt.sum(x**2) < 2)
    pm.Normal("y", share, scale, observed=[0.2, 0.5, 0.3])

print(rb.describe(model))
