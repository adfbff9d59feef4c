# %% [markdown]
# # Figure 2b: a trajectory rolls back
#
# A standard normal cut at y = 0, μ = 1000, ε = 0.002. The leapfrog knows nothing of reflection:
# the boundary term alone turns the particle. We measure the angles, for the paper's step size and
# for others, on many trajectories.

# %%
import matplotlib.pyplot as plt
import numpy as np
from numba import njit

from examples.paper.shared import BLUE, ORANGE, RED, row, run, save, write

SHARPNESS, STEP_SIZE = 1000.0, 0.002
REACH = 0.01  # where the boundary term begins to be felt: exp(-10)


# %%
@njit
def downhill(position):
    """Force of the normal and of the boundary term of y > 0."""
    x, y = position
    return np.array([-x, -y + SHARPNESS / (1 + np.exp(SHARPNESS * y))])


@njit
def trajectory(start, momentum, step_size, time):
    """Positions and momenta of a leapfrog trajectory, one state a row."""
    path = np.empty((int(time / step_size), 4))
    x, p = np.array(start), np.array(momentum)
    for i in range(len(path)):
        path[i, :2], path[i, 2:] = x, p
        p = p + 0.5 * step_size * downhill(x)
        x = x + step_size * p
        p = p + 0.5 * step_size * downhill(x)
    return path


# %%
def angles(path):
    """Angles from the normal of the wall, before and after the first bounce, in degrees."""
    low = np.flatnonzero(path[:, 1] < REACH)
    gaps = np.flatnonzero(np.diff(low) > 1)
    first, last = low[0] - 1, low[gaps[0] if gaps.size else -1] + 1
    before, after = path[first, 2:], path[min(last, len(path) - 1), 2:]
    return [np.degrees(np.arctan2(abs(p[0]), abs(p[1]))) for p in (before, after)]


def many_angles(step_size, n, rng):
    """Incidence and reflection of trajectories that meet the wall at all angles up to 70°."""
    pairs = []
    for _ in range(n):
        tilt, height = np.radians(rng.uniform(-70, 70)), rng.uniform(0.03, 0.04)
        momentum = rng.uniform(0.7, 2) * np.array([np.sin(tilt), -np.cos(tilt)])
        pairs.append(angles(trajectory((0.0, height), tuple(momentum), step_size, 0.6)))
    return np.array(pairs)


# %%
def draw(out, path, spread):
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    left.axhspan(-0.2, 0, color="0.88")
    left.axhline(0, color="black", lw=1)
    left.plot(path[:, 0], path[:, 1], ".-", color=BLUE, markersize=2, lw=0.7)
    left.plot(*path[0, :2], "o", color=ORANGE, label="start")
    bounce = path[np.argmin(path[:, 1])]
    left.axvline(bounce[0], color="0.5", ls=":", lw=1)
    i, r = angles(path)
    left.text(bounce[0] - 0.05, 0.85, f"i = {i:.2f}°", ha="right")
    left.text(bounce[0] + 0.05, 0.85, f"r = {r:.2f}°")
    left.set(
        xlabel="x", ylabel="y", aspect="equal", ylim=(-0.15, 1.25), title="μ = 1000, ε = 0.002"
    )
    left.legend(loc="upper left")
    sizes = list(spread)
    error = [np.abs(np.diff(pairs, axis=1)[:, 0]) for pairs in spread.values()]
    middle, worst = [np.median(e) for e in error], [np.quantile(e, 0.95) for e in error]
    right.loglog(sizes, middle, "o-", color=BLUE, label="median")
    right.loglog(sizes, worst, "s--", color=RED, label="95 % of trajectories")
    right.axvline(1 / SHARPNESS, color="0.5", ls=":", label="ε = 1/μ, the paper's bound")
    right.axvline(STEP_SIZE, color=ORANGE, label="ε = 0.002, the paper's figure")
    right.set(
        xlabel="step size 1000 ε", ylabel="|r − i| (degrees)", title="error of the reflection"
    )
    right.set_xticks(sizes, [f"{1000 * e:g}" for e in sizes])
    right.minorticks_off()
    right.legend(fontsize=8, frameon=True, framealpha=1, edgecolor="none")
    save(figure, out, "figure2")


# %%
def main(quick, out):
    rng = np.random.default_rng(2)
    path = trajectory((-1.0, 1.0), (1.0, -0.7), STEP_SIZE, 2.2)
    n = 40 if quick else 1000
    spread = {e: many_angles(e, n, rng) for e in (0.00025, 0.0005, 0.001, 0.002, 0.003)}
    draw(out, path, spread)
    i, r = angles(path)
    median = {e: np.median(np.abs(np.diff(pairs, axis=1))) for e, pairs in spread.items()}
    numbers = {"incidence": i, "reflection": r, "median_error": median}
    text = f"i = {i:.2f}°, r = {r:.2f}°; median error {median[STEP_SIZE]:.2f}° at ε = 0.002, "
    text += f"{median[0.0005]:.3f}° at 0.0005"
    agreement = "yes" if abs(i - r) < 2 else "no"
    return write(
        out, "figure2", numbers, [row("2b", "incidence = reflection", "i = r", text, agreement)]
    )


# %%
if __name__ == "__main__":
    run(main)
