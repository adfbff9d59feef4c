"""Random models as source text, so that one that fails is a script that can be kept.

A model is a list of statements, drawn from the templates below. In a template ``{x}`` is a new
name, ``{a}`` a number, ``{b}`` a positive one, ``{s}`` a scalar expression of the variables before,
``{v}`` a vector one, ``{c}`` a condition, and ``{plain}`` perhaps the wish for no transform. Each
occurrence is drawn anew, but for the name.
"""

import warnings

import numpy as np
import pymc as pm

HEAD = """\
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import pymc_rollback as rb

with pm.Model(coords={"k": ["one", "two", "three"]}) as model:
"""

SCALARS = (
    '{x} = pm.Normal("{x}", {s}, {b})',
    '{x} = pm.HalfNormal("{x}", {b}{plain})',
    '{x} = pm.Gamma("{x}", 2.0, {b}{plain})',
    '{x} = pm.Beta("{x}", 2.0, {b}{plain})',
    '{x} = pm.InverseGamma("{x}", 3.0, {b}{plain})',
    '{x} = pm.Pareto("{x}", 2.0, {b}{plain})',
    '{x} = pm.Triangular("{x}", -{b}, {b}, 0.0{plain})',
    '{x} = pm.Uniform("{x}", -{b}, {b}{plain})',
    '{x} = pm.Uniform("{x}", {a} - 3, pt.abs({s}) + {b}{plain})',
    '{x} = pm.TruncatedNormal("{x}", {s}, 1.0, lower=-{b}{plain})',
    '{x} = pm.Truncated("{x}", pm.StudentT.dist(4.0), upper={b}{plain})',
    '{x} = pm.Truncated("{x}", pm.Gamma.dist(2.0, 1.0), lower=0.1, upper=2 + {b}{plain})',
    '{x} = pm.Exponential("{x}", pt.exp({s} / 4){plain})',
    '{x} = pm.VonMises("{x}", 0.0, {b})',
    '{x} = pm.Flat("{x}", initval={a})\npm.Potential("{x}_density", -0.5 * {x}**2)',
    '{x} = pm.HalfFlat("{x}"{plain})\npm.Potential("{x}_density", -0.5 * {x}**2)',
    '{x} = pm.Deterministic("{x}", pt.tanh({s}) + {s})',
    '{x} = pm.Interpolated("{x}", np.linspace(0, 2, 3), np.array([0.1, {b}, 0.2]){plain})',
    'with pm.Model("{x}_inner"):\n    {x} = pm.HalfNormal("v", {b}{plain})',
    '{x} = pm.Mixture("{x}", [0.3, 0.7], [pm.Normal.dist({s}, 1.0), pm.Normal.dist({a}, {b})])',
    '{x} = pm.CustomDist("{x}", {s}, logp=lambda v, m: -0.5 * (v - m) ** 2, initval=0.5)',
    '{x} = pm.CustomDist("{x}", {s}, logp=lambda v, m: pt.switch((v > -{b}) & (v < {b}), '
    "-0.5 * (v - m) ** 2, -np.inf), initval=0.1)",
    '{x} = pm.CustomDist("{x}", {s}, dist=lambda m, size: 2 * pm.Normal.dist(m, 1.0, size=size) '
    "+ 1)",
    "{x} = pytensor.scan(lambda u, m, r: 0.5 * r * m + u, sequences=[pt.constant([0.1, {a}, 0.3])],"
    ' outputs_info=[pt.constant(1.0, dtype="float64")], non_sequences=[pt.tanh({s})], '
    "return_updates=False)[-1]",
)

VECTORS = (
    '{x} = pm.Normal("{x}", {s}, 1.0, shape=3)',
    '{x} = pm.Normal("{x}", [{a}, {a}, {a}], {b}, dims="k")',
    '{x} = pm.HalfNormal("{x}", {b}, dims="k"{plain})',
    '{x} = pm.Uniform("{x}", [-{b}, -1.0, {a} - 3], [{b}, 2.0, {b}]{plain})',
    '{x} = pm.TruncatedNormal("{x}", {a}, 1.0, lower=[-{b}, -np.inf, -1.0], shape=3, '
    "default_transform=None)",
    '{x} = pm.Truncated("{x}", pm.Normal.dist({s}, 1.0), lower=[-{b}, -np.inf, -1.0], '
    "upper=[np.inf, np.inf, {b}], shape=3, default_transform=None)",
    '{x} = pm.Uniform("{x}", -{b}, pt.abs({v}) + {b}{plain})',
    '{x} = pm.Normal("{x}", 0.0, {b}, shape=3, transform=pm.distributions.transforms.ordered, '
    "initval=[-1.0, 0.0, 1.0])",
    '{x} = pm.Gamma("{x}", 2.0, {b}, shape=3, transform=pm.distributions.transforms.ordered, '
    "initval=[0.5, 1.0, 2.0])",
    '{x} = pm.Uniform("{x}", 0.0, 3.0, shape=3, transform=pm.distributions.transforms.ordered)',
    '{x} = pm.Dirichlet("{x}", [1.0, 2.0, {b}])',
    '{x} = pm.MvNormal("{x}", [{a}, 0.0, 0.0], np.eye(3) + 0.5)',
    '{x} = pm.MvNormal("{x}", np.zeros(3), np.eye(3) + {b}, shape=(2, 3))[1]',
    '{x} = pm.ZeroSumNormal("{x}", {b}, shape=3)',
    '{x} = pm.GaussianRandomWalk("{x}", {a}, {b}, init_dist=pm.Normal.dist(0.0, 1.0), shape=3)',
    '{x} = pm.AR("{x}", [0.5], {b}, init_dist=pm.Normal.dist(0.0, 1.0), shape=3)',
    '{x} = pt.atleast_2d(pm.LKJCorr("{x}", n=3, eta=2.0))[0]',
    '{x} = pm.LKJCholeskyCov("{x}", n=3, eta=2.0, sd_dist=pm.Exponential.dist(1.0))[2]',
    '{x} = pm.Deterministic("{x}", pt.cumsum({v}))',
    'with pm.Model("{x}_inner"):\n    {x} = pm.Uniform("v", {a} - 3, {b}, dims="k"{plain})',
)

OTHERS = (
    '{x} = pm.Poisson("{x}", {b})',
    '{x} = pm.Bernoulli("{x}", 0.4)',
    '{x} = pm.Truncated("{x}", pm.Poisson.dist(2.0), upper=4)',
    '{x} = pm.Data("{x}", {b})',
    '{x}_all = pm.Poisson("{x}", {b}, shape=3)\n{x} = {x}_all[1]',
    '{x}_all = pm.Categorical("{x}", [0.2, 0.3, 0.5], shape=3)\n{x} = {x}_all[1]',
    '{x}_all = pm.Data("{x}", [{a}, {b}, {a}])\n{x} = {x}_all[1]',
)
"""Scalars that no trajectory moves."""

PARTS = ("{x}[0]", "{x}[-1]", "pt.sum({x})", "pt.max({x})")

CONDITIONS = (
    "{s} < {b}",
    "{a} - 1 <= {s}",
    "{s} - {s} < {b}",
    "2 * {s} + {s} > -{b}",
    "{s} ** 2 + {s} ** 2 < 2 + {b}",
    "{s} ** 2 + {s} ** 2 >= 0.2 * {b}",
    "pt.log({s}) < {b}",
    "pt.sqrt({s} + 1) > {s} - 1",
    "1 / {s} > {a}",
    "pt.exp({s}) < 2 + {b} + {s}",
    "pt.abs({s}) < 1 + {b}",
    "{s} * {s} > -{b}",
    "pt.maximum({s}, {s}) < 1 + {b}",
    "({s} < -{b} / 4) | ({s} > {b} / 4)",
    "({s} > -1 - {b}) & ({s} < 1 + {b})",
    "~(({s} > 1 + {b}) | ({s} < -1 - {b}))",
    "({s} > -2) & (({s} < {a}) | ({s} > {a})) & ~({s} > 2 + {b})",
    "pt.all(pt.stack([{s}, {s}]) > -1 - {b})",
    "pt.any(pt.stack([{s}, {s}]) > {a})",
    "~pt.any(pt.stack([{s}, {s}]) > 1 + {b})",
    "pt.stack([{s}, {s}]) < [1 + {b}, 2 + {b}]",
    "pt.stack([{s} < 1 + {b}, {s} > -1 - {b}])",
    "np.array([[1.0, -1.0], [0.5, {a}], [-1.0, 0.0]]) @ pt.stack([{s}, {s}]) < 2.0",
    "{v} < 2 + {b}",
    "{v} > [-1 - {b}, -np.inf, -2.0]",
    "pt.sum({v} ** 2) < 4 + {b}",
    "pt.max({v}) - pt.min({v}) < 3 + {b}",
    "pt.diff({v}) > -2.0",
    "pt.linalg.det(pt.stacklists([[1 + {b}, {s}], [{s}, 2.0]])) > 0",
    "pt.linalg.eigh(pt.stacklists([[2.0, {s}], [{s}, 1 + {b}]]))[0] > 1e-6",
)

WALLS = (
    'rb.constrain("{x}", {c})',
    'rb.constrain("{x}", {s}, between=({a} - 2, 1 + {b}))',
    'rb.constrain("{x}", {v}, between=(None, [2.0, np.inf, 1 + {b}]))',
    'rb.constrain("{x}", {s}, between=(-1 - pt.abs({s}), 1 + pt.abs({s})))',
    'pm.Potential("{x}", pt.switch({c}, 0.0, -np.inf))',
    'pm.Potential("{x}", pt.switch({c}, -0.1 * {s} ** 2, -np.inf))',
    'pm.Potential("{x}", pt.switch(~({c}), -np.inf, 0.0))',
    'pm.Potential("{x}", pt.switch({c}, 0.0, -1e10))',
    'pm.Potential("{x}", pt.switch({c}, 0.0, -40.0))',
    'pm.Potential("{x}", pt.log({c}))',
    'pm.Potential("{x}", pt.log(pt.all({c})) + pt.switch(pt.all({c}), 0.0, -np.inf) '
    "- 0.1 * {s} ** 2)",
    'pm.Potential("{x}", pt.sum(pt.switch({c}, 0.0, -np.inf)))',
    'pm.Potential("{x}", -0.1 * ({s} - {a}) ** 2)',
    'pm.Potential("{x}", pm.logp(pm.HalfNormal.dist({b}), {s}))',
)

LIKELIHOODS = (
    'pm.Normal("{x}", {s}, 1.0, observed=[0.3, {b}])',
    'pm.Normal("{x}", {s}, pt.exp({s} / 4), observed=pm.Data("{x}_data", [{a}, 0.5]))',
    'pm.Normal("{x}", {s}, 1.0, observed=[0.3, np.nan, {a}])',
    'pm.TruncatedNormal("{x}", {s}, 1.0, lower=-3.0, observed=[0.3, np.nan, {b}])',
    'pm.Truncated("{x}", pm.Normal.dist({s}, 1.0), lower=-3.0, observed=[np.nan, {b}])',
    'pm.Uniform("{x}", -4.0, {s}, observed=[{a} - 3, 0.1])',
    'pm.Uniform("{x}", {s} - 3, {s} + 3, observed=[{a}, {b}])',
    'pm.Exponential("{x}", pt.exp({s}), observed=[{b}, {b}])',
    'pm.Exponential("{x}", {s}, observed=[{b}, {b}])',
    'pm.Normal("{x}", 0.0, {s}, observed=[{a}, {b}])',
    'pm.Truncated("{x}", pm.StudentT.dist(4.0), lower={s} - 3, observed=[{b}, {b}])',
    'pm.Wald("{x}", mu=1.0, lam=1.0, alpha={s} - 2, observed=[2 + {b}])',
    'pm.Censored("{x}", pm.Normal.dist({s}, 1.0), -1.0, 2.0, observed=[-1.0, 0.3, 2.0])',
    'pm.Censored("{x}", pm.Weibull.dist(1.5, pt.exp({s})), None, 3.0, observed=[{b}, 3.0])',
    'pm.Mixture("{x}", [0.4, 0.6], [pm.Normal.dist({s}, 1.0), pm.Normal.dist({s}, 2.0)], '
    "observed=[{a}, {b}])",
    'pm.NormalMixture("{x}", pt.special.softmax(pt.stack([{s}, 0.0])), pt.stack([{s}, {a}]), 1.0, '
    "observed=[{a}, {b}])",
    'pm.Binomial("{x}", 5, pt.sigmoid({s}), observed=[1, 4])',
    'pm.Bernoulli("{x}", {s}, observed=[0, 1])',
    'pm.Poisson("{x}", pt.exp({s}), observed=[1, 0])',
    'pm.Poisson("{x}", {s}, observed=[1, 2])',
    'pm.Multinomial("{x}", 6, pt.special.softmax({v}), observed=[1, 2, 3])',
    'pm.OrderedLogistic("{x}", {s}, [-1.0, {b}], observed=[0, 1, 2])',
    'pm.MvNormal("{x}", pt.stack([{s}, {s}]), np.eye(2), observed=[{a}, {b}])',
    'pm.MvNormal("{x}", [0.0, 0.0], pt.stacklists([[2.0, {s}], [{s}, 1 + {b}]]), '
    "observed=[{a}, {b}])",
    'pm.CustomDist("{x}", {s}, logp=lambda v, m: pt.switch(v < m + 3, m - v, -np.inf), '
    "observed=[{a}, {b}])",
    'pm.GaussianRandomWalk("{x}", {s}, 1.0, init_dist=pm.Normal.dist(0.0, 1.0), '
    "observed=[0.1, {a}, {b}])",
)


class Writer:
    """Fills templates; remembers the variables before."""

    def __init__(self, rng):
        self.rng = rng
        self.scalars, self.vectors, self.others = [], [], []
        self.x = self.last = None

    def __getitem__(self, key):
        return self.x if key == "x" else getattr(self, f"_{key}")()

    def write(self, templates, name):
        self.x = name
        return self._pick(templates).format_map(self)

    def _pick(self, choices):
        return choices[self.rng.integers(len(choices))]

    def _a(self):
        return f"{self.rng.uniform(-1, 1):.2f}"

    def _b(self):
        return f"{self.rng.uniform(0.3, 2.5):.2f}"

    def _s(self):
        parts = [part.format(x=x) for x in self.vectors for part in PARTS]
        kinds = [kind for kind in (self.scalars, parts) if kind]
        if self.others and (not kinds or self.rng.random() < 0.15):
            return self._pick(self.others)
        if not kinds:
            return self._b()
        # `x - x < 1` is no constraint
        kind = self._pick(kinds)
        self.last = self._pick([s for s in kind if s != self.last] or kind)
        return self.last

    def _v(self):
        return self._pick(self.vectors) if self.vectors else f"pt.stack([{self._s()}] * 3)"

    def _c(self):
        return self._pick(CONDITIONS).format_map(self)

    def _plain(self):
        return self._pick(("", ", default_transform=None"))


def write_model(seed):
    """Statements that build a random model."""
    rng = np.random.default_rng(seed)
    writer = Writer(rng)
    kinds = (SCALARS, writer.scalars), (VECTORS, writer.vectors), (OTHERS, writer.others)
    statements, writer.scalars[:] = ['x0 = pm.Normal("x0", 0.0, 1.5)'], ["x0"]
    for k in range(1, rng.integers(2, 6)):
        templates, known = kinds[rng.choice(3, p=(0.5, 0.35, 0.15))]
        statements.append(writer.write(templates, f"x{k}"))
        known.append(f"x{k}")
    statements += [writer.write(WALLS, f"c{k}") for k in range(rng.integers(0, 4))]
    statements += [writer.write(LIKELIHOODS, f"y{k}") for k in range(rng.integers(0, 3))]
    return statements


def script(statements):
    """The script that builds a model."""
    lines = [line for statement in statements for line in statement.splitlines()]
    return HEAD + "".join(f"    {line}\n" for line in lines or ["pass"])


def build(statements) -> pm.Model:
    """The model; what PyMC warns of, as of missing values, is not what is tested."""
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(script(statements), names)
    return names["model"]
