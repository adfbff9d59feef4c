"""Sample a normal that is cut to a disk, print the summary, and draw the draws."""

import arviz as az
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
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
    draws = idata["posterior"]["x"].values.reshape(-1, 2)
    inside = np.sum(draws**2, axis=1) < 2
    print(f"{inside.sum()} of {inside.size} draws are inside the disk.")

    figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
    axes.plot(*draws.T, ".", markersize=3, alpha=0.5, color="tab:blue", label="draws")
    axes.add_patch(plt.Circle((0, 0), 2**0.5, fill=False, color="tab:orange", label="boundary"))
    axes.set(xlabel="x[0]", ylabel="x[1]", aspect="equal", title="A standard normal cut to a disk")
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig("demo.png", dpi=120)
    print("The picture is in demo.png.")
