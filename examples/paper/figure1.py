# %% [markdown]
# # Figure 1: the sigmoid, the boundary term, and what the mirror makes of it
#
# The paper replaces the step at a wall by a sigmoid of sharpness μ = 1000. The smoothed density
# leaks a little through the wall; folding the leak back gives the density itself.

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.special import expit

from examples.paper.shared import BLUE, ORANGE, RED, row, run, save, write

SHARPNESS = 1000.0


# %%
def exponential(x):
    """The underlying density, which goes on rising beyond the wall at zero."""
    return np.exp(-x)


def smoothed(x):
    """The paper's density."""
    return exponential(x) * expit(SHARPNESS * x)


def image(y):
    """Density of the image y of x = |y|."""
    return exponential(np.abs(y)) * expit(SHARPNESS * y)


# %%
def draw(out):
    figure, axes = plt.subplots(2, 2, figsize=(8, 5.6), layout="constrained")
    near, wide = np.linspace(-0.01, 0.01, 2001), np.linspace(-0.5, 3, 7001)
    (a, b), (c, d) = axes
    a.plot(near, expit(SHARPNESS * near), color=BLUE)
    a.set(title="(a) sigmoid, μ = 1000", xlabel="x", ylabel="σ(x; μ)")
    b.plot(near, np.logaddexp(0, -SHARPNESS * near), color=BLUE)
    b.set(title="(b) boundary term", xlabel="x", ylabel="$U_σ(x)$")
    c.plot(wide, exponential(wide), "--", color=RED, label="exp(−x)")
    c.plot(wide, smoothed(wide), color=BLUE, label="exp(−x) σ(x; μ)")
    c.set(title="(c) smoothed exponential", xlabel="x", ylabel="density")
    c.legend()
    inside = near[near > 0]
    d.plot(near, smoothed(near), color=BLUE, label="smoothed x")
    d.plot(near, image(near), ":", color="black", label="image y")
    d.plot(inside, image(inside) + image(-inside), color=ORANGE, lw=3, alpha=0.6)
    d.plot([], [], color=ORANGE, lw=3, alpha=0.6, label="x = |y|")
    d.plot(inside, exponential(inside), "--", color=RED, lw=1, label="exp(−x)")
    d.set(title="(d) at the wall: folding gives the density back", xlabel="x, y", ylabel="density")
    d.legend(fontsize=8, loc="upper left")
    save(figure, out, "figure1")


# %%
def main(quick, out):
    draw(out)
    x = np.linspace(1e-6, 0.05, 10_001)
    total = quad(smoothed, -0.1, 40, points=[-0.01, 0, 0.01], limit=500)[0]
    outside = quad(smoothed, -0.1, 0, points=[-0.01, -0.001])[0] / total
    error = np.max(np.abs(image(x) + image(-x) - exponential(x)))
    numbers = {"outside": outside, "ln2/mu": np.log(2) / SHARPNESS, "fold_error": error}
    return write(
        out,
        "figure1",
        numbers,
        [
            row(
                "1",
                "share of the smoothed exponential outside",
                '"very little variations"',
                f"{outside:.2e} (ln 2/μ = {np.log(2) / SHARPNESS:.2e})",
                "yes",
            ),
            row("1", "largest error after folding", "(not in the paper)", f"{error:.0e}", "exact"),
        ],
    )


# %%
if __name__ == "__main__":
    run(main)
