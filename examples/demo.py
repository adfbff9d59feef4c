"""Sample a normal that is cut to a disk, print the summary, and draw the draws."""

import arviz as az
import matplotlib

matplotlib.use("Agg")

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from rich import print

import pymc_rollback as rb

if __name__ == "__main__":
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=2)
        rb.constrain("disk", pt.sum(x**2) < 2)
        print(rb.describe(model))
        idata = pm.sample(step=rb.RollbackHMC(), chains=2, random_seed=1)

    print(az.summary(idata))
    print(rb.wall_summary(idata, model))
    print(rb.cost_by_wall(idata, model))
    draws = idata["posterior"]["x"].values.reshape(-1, 2)
    inside = np.sum(draws**2, axis=1) < 2
    print(f"{inside.sum()} of {inside.size} draws are inside the disk.")

    figure = rb.plot_region(model, idata, ["x"]).figure
    figure.savefig("demo.png", dpi=120)
    print("The picture is in demo.png.")
