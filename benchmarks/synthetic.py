"""Data that the repo does not ship, made with fixed seeds."""

import numpy as np


def autoregressive(coefficients, length, noise, seed):
    """A series about zero, after as many values as it takes to forget its start."""
    rng = np.random.default_rng(seed)
    order = len(coefficients)
    y = np.zeros(length + 100)
    for t in range(order, len(y)):
        y[t] = coefficients @ y[t - order : t][::-1] + rng.normal(0, noise)
    return y[100:]


def lagged(y, order):
    """The values from ``order`` on, and those before each, the last one first."""
    return y[order:], np.column_stack([y[order - k : len(y) - k] for k in range(1, order + 1)])


def collinear(n=100, predictors=5, apart=0.01, seed=2):
    """A response, and predictors that differ from each other by a hundredth of what they share."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) + apart * rng.normal(size=(n, predictors))
    return X.sum(axis=1) / predictors + rng.normal(0, 1, n), X


def interacting(n=400, seed=3):
    """Scores of children by their mothers' school and test result, as they are measured."""
    rng = np.random.default_rng(seed)
    school, result = rng.integers(0, 2, n), rng.normal(100, 15, n)
    X = np.column_stack([np.ones(n), school, result, school * result])
    return X @ [-11.0, 51.0, 1.0, -0.5] + rng.normal(0, 18, n), X


def clicks(n=200, predictors=8, seed=4):
    """Yes or no, by predictors of which each makes a yes likelier, some of them hardly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, predictors))
    chance = 1 / (1 + np.exp(0.5 - X @ np.linspace(0, 1, predictors)))
    return (rng.random(n) < chance).astype(int), X


def yearly(n=40, seed=5):
    """Yearly counts that rise and fall; years from -1 to 1."""
    year = np.linspace(-1, 1, n)
    return np.random.default_rng(seed).poisson(np.exp(3.3 + year - 0.5 * year**2 - year**3)), year


def rising_counts(knots=30, seed=6):
    """Counts at knots, of a rate that does not fall."""
    place = np.linspace(-1, 1, knots)
    return np.random.default_rng(seed).poisson(np.exp(1.5 + np.tanh(3 * place)))


def events(n=100, seed=7):
    """Counts, by three predictors of which each makes more of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return rng.poisson(np.exp(0.5 + X @ [0.02, 0.2, 0.5])), X


def exposed(n=40, seed=8):
    """Counts by dose, from 0 to 1, in two groups; hardly any without a dose."""
    dose, group = np.tile(np.linspace(0, 1, n // 2), 2), np.repeat([0, 1], n // 2)
    return np.random.default_rng(seed).poisson(0.2 + (2 + 2 * group) * dose), dose, group


def returns(months=60, assets=10, seed=9):
    """Monthly returns, in percent, of an index and of assets that follow the market."""
    rng = np.random.default_rng(seed)
    X = 0.5 + rng.normal(0, 4, (months, 1)) + rng.normal(0, 3, (months, assets))
    return X @ (np.arange(assets) / np.arange(assets).sum()) + rng.normal(0, 1, months), X


def volatile(length=200, seed=10):
    """A series about 5, of which a large step makes the next one likely to be large."""
    rng = np.random.default_rng(seed)
    y, variance = np.empty(length), 1.0
    for t in range(length):
        y[t] = 5 + rng.normal(0, variance**0.5)
        variance = 0.5 + 0.3 * (y[t] - 5) ** 2 + 0.4 * variance
    return y


def two_normals(n=1000, seed=11):
    """Draws of a mixture of two normals that hardly overlap."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.4, -2.75, 2.75) + rng.normal(size=n)


def two_states(length=128, seed=12):
    """Counts of a hidden chain that stays in each of two states for a while."""
    rng = np.random.default_rng(seed)
    state = np.cumsum(rng.random(length) < 0.1) % 2
    return rng.poisson(np.array([2.0, 6.0])[state])


def lengths(n=27, seed=13):
    """Age and length of animals, which grow to a largest length."""
    rng = np.random.default_rng(seed)
    age = np.sort(rng.uniform(1, 30, n))
    return 2.65 - 1.5 * 0.8**age + rng.normal(0, 0.09, n), age


def smooth(n=15, seed=14):
    """A smooth curve at places from 0 to 1, with noise."""
    place = np.linspace(0, 1, n)
    return np.sin(6 * place) + np.random.default_rng(seed).normal(0, 0.2, n), place


def groups(count=20, each=5, seed=15):
    """Observations in groups, a row for each."""
    rng = np.random.default_rng(seed)
    return 1 + rng.normal(0, 0.5, (count, 1)) + rng.normal(0, 1, (count, each))


def hospitals(count=12, seed=16):
    """Operations and deaths in hospitals."""
    rng = np.random.default_rng(seed)
    operations = rng.integers(40, 800, count)
    chance = 1 / (1 + np.exp(2.5 - 0.4 * rng.normal(size=count)))
    return rng.binomial(operations, chance), operations


def answers(persons=200, items=20, seed=17):
    """Right and wrong answers of persons, a row for each, to items."""
    rng = np.random.default_rng(seed)
    slope, level = rng.lognormal(0, 0.5, items), rng.normal(size=items)
    chance = 1 / (1 + np.exp(-slope * (rng.normal(size=(persons, 1)) - level)))
    return (rng.random(chance.shape) < chance).astype(int)


def responders(doses=8, each=20, seed=18):
    """How many of so many react, at rising doses."""
    chance = np.linspace(0.1, 0.7, doses) ** 1.5
    return np.random.default_rng(seed).binomial(each, chance), each
