"""RollbackHMC: the sampler as a PyMC step method."""

import time
from collections.abc import Collection, Mapping, Sequence
from inspect import Signature, signature
from typing import Any, NoReturn, Self

import numpy as np
import pymc as pm
from pymc.exceptions import SamplingError
from pymc.initial_point import PointType
from pymc.stats.convergence import SamplerWarning, WarningType
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import DataClassState, WithSamplingState, dataclass_state
from pymc.util import RandomGenerator, get_random_generator
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor.variable import TensorVariable
from rich.progress import TextColumn

from pymc_rollback.chain.chain import Chain
from pymc_rollback.chain.draw import Draw, Given
from pymc_rollback.chain.learnt import Learnt
from pymc_rollback.chain.options import Options
from pymc_rollback.chain.start import OutsideError
from pymc_rollback.chain.tally import wall_stats
from pymc_rollback.describe import summarise
from pymc_rollback.entry import take_coordinates
from pymc_rollback.graph.evaluate import has_changed
from pymc_rollback.guard import Guard, OneThread
from pymc_rollback.kernels.stats import TYPES
from pymc_rollback.mass import check_exchangeable, check_planes_stay, read_metric
from pymc_rollback.options import (
    check_blocked,
    check_bool,
    check_compile_kwargs,
    check_options,
    check_point,
    check_positive,
    check_rng,
    check_time,
    check_variables,
    check_whole,
)
from pymc_rollback.prepare import (
    as_reflect,
    read_plan,
    refuse_transforms,
    require_all,
    sampled_values,
    spread_sharpness,
)
from pymc_rollback.progress import progressbar_config, progressbar_update
from pymc_rollback.region.arguments import require_model
from pymc_rollback.region.diagnose import complain
from pymc_rollback.region.feasibility import check_same
from pymc_rollback.region.inside import settle
from pymc_rollback.region.read import read_region
from pymc_rollback.target.compile import Compiled, compile_density
from pymc_rollback.target.density import Density
from pymc_rollback.target.plan import Plan
from pymc_rollback.target.slacks import Slacks
from pymc_rollback.target.walls import read_walls

AHEAD, AHEAD_SECONDS = 20, 0.002
"""Draws that are made at once where each takes less than so long: a call costs as much as ten."""


@dataclass_state
class ChainState(DataClassState):
    """What changes in a chain while it draws."""

    learnt: Learnt
    before: Learnt | None
    spent: int


class StatefulChain(Chain, WithSamplingState):
    """A chain whose state PyMC can save and restore."""

    _state_class = ChainState


@dataclass_state
class RollbackState(StepMethodState):
    """What changes while a chain is sampled."""

    tune: bool
    iteration: int
    divergences: int
    judged: bool
    ahead: list
    handed_out: list
    point: np.ndarray | None
    given: Given | None
    chain: ChainState


NUMPY_TYPES = {float: np.float64, int: np.int64, bool: bool}
"""Types as other step methods have them: PyMC wants the same in a compound step."""

SHOWN = {name: NUMPY_TYPES[kind] for name, kind in TYPES.items() if name != "steps"}
"""Statistics of trajectories that are shown as they are; steps are among the gradients."""


class RollbackHMC(BlockedStep):
    r"""Roll-back Hamiltonian Monte Carlo on the region of a model.

    A step method for ``pm.sample(step=...)``. Each constraint :math:`g(x) > 0` adds the boundary
    term :math:`\log(1 + e^{-\mu g(x)})` to the potential energy, so that a trajectory that leaves
    the region climbs a slope and rolls back. What is left out of ``sharpness``, ``step_size``,
    ``n_steps`` and ``metric`` is tuned while the chain tunes, and frozen after.

    Parameters
    ----------
    vars
        Continuous variables to sample; all of the model's if left out.
    sharpness
        :math:`\mu`: a number, or a dict of numbers by variable (for its bounds or order) or
        constraint. Bounds that are given none have no barrier: they reflect.
    step_size
        :math:`\epsilon`.
    n_steps
        :math:`L`, the number of leapfrog steps of a trajectory. Left out, trajectories double
        until they turn, or have one time, whichever is better by a race in warm-up.
    trajectory_time
        :math:`L \epsilon`, the time of a trajectory, shortened by up to a fifth at random. In
        units of the metric: with a metric that is tuned, 1.6 is the quarter of an oscillation.
    exact
        True: draws from the model's density, never outside the region, for every sharpness.
        False: the paper's sampler, which draws from the smoothed density.
    target_accept
        Acceptance rate that the step size is tuned for.
    metric
        The inverse mass matrix, tuned: "diag" (variances), "dense" (correlations, too), or "auto",
        the better of the two by a race in warm-up, for up to 300 coordinates, and "diag" beyond. Or
        an array of the variances of the coordinates, or their covariance matrix.
    max_treedepth
        How often a trajectory is doubled at most.
    constraints
        Slacks given by hand, by name: ``g`` for a constraint ``g > 0``. One that has the name of a
        Potential or of an observed variable stands for the indicators in it.
    reflect, transform
        Names of bounded variables that are reflected, or keep a transform, whatever the density
        does at their walls. :func:`describe` shows what is done with each variable.
    model
        The model; the context's if left out.
    compile_kwargs
        Passed to PyTensor, such as ``{"mode": ...}``.
    rng
        Seed or generator; ``pm.sample`` sets one for each chain.
    initial_point
        A point of the model, for the shapes of its values.
    blocked
        Whether the variables share one trajectory.
    barrier
        The former name of ``reflect``.

    Examples
    --------
    >>> import pymc as pm
    >>> import pymc_rollback as rb
    >>> with pm.Model() as model:
    ...     x = pm.HalfNormal("x", shape=2)
    ...     c = rb.constrain("sum", x.sum() < 2)
    ...     step = rb.RollbackHMC(target_accept=0.9)
    ...     idata = pm.sample(step=step, chains=2, cores=1, progressbar=False, random_seed=1)
    >>> bool((idata["posterior"]["x"].sum("x_dim_0") < 2).all())
    True
    """

    name = "rollback_hmc"
    default_blocked = True
    _state_class = RollbackState

    stats_dtypes_shapes: dict[str, tuple[type, list[int] | None]] = {  # noqa: RUF012  as PyMC's
        **{name: (kind, []) for name, kind in SHOWN.items()},
        "divergences": (int, []),
        "model_logp": (np.float64, []),
        "n_steps": (np.int64, []),
        "step_size": (np.float64, []),
        "sharpness": (np.float64, []),
        "reached_max_treedepth": (bool, []),
        "wall_steps": (np.int64, []),
        "dense_metric": (bool, []),
        "follows_curvature": (bool, []),
        "mapped": (np.int64, []),
        "trajectory_time": (np.float64, []),
        "tune": (bool, []),
        "perf_counter_diff": (np.float64, []),
        "perf_counter_start": (np.float64, []),
        "process_time_diff": (np.float64, []),
        "warning": (SamplerWarning, None),
    }

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse what PyMC stumbles over before it calls ``__init__``."""
        check_options(options, cls.__init__)
        model = require_model(options.get("model"))
        if not model.free_RVs:
            raise ValueError("The model has no free variables for RollbackHMC to sample.")
        check_variables(options["vars"] if "vars" in options else next(iter(args), None), model)
        check_blocked(options.get("blocked"))
        check_rng(options.get("rng"))
        return super().__new__(cls, *args, **options)

    def __init__(
        self,
        vars: Sequence[TensorVariable] | None = None,
        *,
        sharpness: float | Mapping[str, float] | None = None,
        step_size: float | None = None,
        n_steps: int | None = None,
        trajectory_time: float | None = None,
        exact: bool = True,
        target_accept: float = 0.8,
        metric: str | np.ndarray = "auto",
        max_treedepth: int = 10,
        constraints: Mapping[str, TensorVariable] | None = None,
        reflect: Collection[str] = (),
        transform: Collection[str] = (),
        model: pm.Model | None = None,
        compile_kwargs: Mapping[str, Any] | None = None,
        rng: RandomGenerator = None,
        initial_point: PointType | None = None,
        blocked: bool = True,
        barrier: Collection[str] | None = None,
    ) -> None:
        model = require_model(model)
        self.vars = sampled_values(model, vars)
        if step_size is not None:
            check_positive("step_size", step_size)
        if n_steps is not None:
            check_whole("n_steps", n_steps)
        if trajectory_time is not None:
            check_time(trajectory_time, step_size, n_steps, exact)
        check_bool("exact", exact)
        check_positive("target_accept", target_accept, below=1.0)
        check_whole("max_treedepth", max_treedepth)
        check_compile_kwargs(compile_kwargs)
        plan = read_plan(
            model,
            self.vars,
            constraints=constraints,
            reflect=as_reflect(reflect, barrier),
            transform=transform,
            sharpness=sharpness,
            exact=exact,
        )
        start = plan.region.start if initial_point is None else initial_point
        check_point(start, plan.region.start)
        self.density = Density(plan, start)
        self.walls, self.slacks = read_walls(self.density), Slacks(self.density)
        masses = read_metric(metric, self.density.size)
        check_exchangeable(masses, self.walls)
        check_planes_stay(masses, self.walls, bool(self.density.other_blocks))
        self.options = Options(
            step_size=None if step_size is None else float(step_size),
            n_steps=None if n_steps is None else int(n_steps),
            trajectory_time=None if trajectory_time is None else float(trajectory_time),
            sharpness=spread_sharpness(sharpness, plan, self.walls),
            variances=masses.variances,
            covariance=masses.covariance,
            metric=masses.kind,
            target_accept=float(target_accept),
            max_treedepth=int(max_treedepth),
            exact=bool(exact),
        )
        if not exact:
            require_all(self.options)
            refuse_transforms(plan)
        self._declare_wall_stats()
        self._constraints = constraints
        self._compile_kwargs = dict(compile_kwargs or {})
        self._compiled: Compiled | None = None
        self.guard, self._one_thread = Guard(plan.region), OneThread()
        self.rng = get_random_generator(rng)
        self._begin()
        self.compiled()
        self.chain.compile_kernels()

    # what can be given: __new__ takes everything, to check it
    __signature__ = Signature(list(signature(__init__).parameters.values())[1:])

    def _declare_wall_stats(self) -> None:
        """Add a vector for the walls to the statistics, where there are any."""
        self._wall_stats, places = wall_stats(self.walls), self.walls.ledger.places
        # PyMC makes room for a statistic by its type alone
        kind: Any = np.dtype((np.float32, (places,)))
        own = dict.fromkeys(self._wall_stats, (kind, [places]))
        self.stats_dtypes_shapes = {**self.stats_dtypes_shapes, **own}
        self.stats_dtypes = [{name: kind for name, (kind, _) in self.stats_dtypes_shapes.items()}]

    def __repr__(self) -> str:
        return f"<RollbackHMC: {summarise(self.plan, self.options)}>"

    @property
    def plan(self) -> Plan:
        """What is done with each variable, and what keeps trajectories inside each constraint."""
        return self.density.plan

    def take_data(self, data: Sequence[SharedVariable]) -> None:
        """Have data containers be inputs of the compiled log density, not constants in it."""
        self.density = Density(self.plan, self.density.start, data)
        self.walls, self.slacks = read_walls(self.density), Slacks(self.density)
        self._compiled = None
        self._begin()

    def _begin(self) -> None:
        """Start a chain: one step may serve several chains, one after the other."""
        self.tune = True
        self.iteration = 0
        self.divergences = 0
        self.judged = False
        self.ahead: list[Draw] = []
        self.handed_out: list[np.ndarray] = []
        self.point: np.ndarray | None = None
        self.given: Given | None = None
        self._seconds = np.inf
        self.chain = StatefulChain(self.walls, self.slacks, self.options)

    def set_rng(self, rng: RandomGenerator) -> None:
        """Start a chain (PyMC 5)."""
        self._one_thread.claim()
        self.rng = get_random_generator(rng, copy=False)
        self._begin()

    def setup_chain(self, rng: RandomGenerator, tune: int, draws: int) -> None:
        """Start a chain (PyMC 6)."""
        self.set_rng(rng)

    def reset_tuning(self, start: PointType | None = None) -> None:
        """Forget what a chain has tuned."""
        self._one_thread.claim()
        self._begin()

    def stop_tuning(self) -> None:
        """Freeze what was tuned."""
        if self.tune:
            self.point = self.chain.finish(self.point)
        self.tune = False

    @staticmethod
    def competence(var: TensorVariable, has_grad: bool) -> Competence:
        """Never assigned by PyMC: the user names it."""
        return Competence.INCOMPATIBLE

    def __getstate__(self) -> dict[str, Any]:
        # jitted functions are compiled anew where they arrive, not pickled
        return {**self.__dict__, "_compiled": None}

    def compiled(self) -> Compiled:
        """Compiled functions, made again where data containers have changed."""
        region = self.density.region
        if self.iteration == 0 and has_changed(region.data):
            check_same(region, read_region(region.model, self._constraints))
        if self._compiled is None or (self.iteration == 0 and has_changed(self._compiled.data)):
            self._compiled = compile_density(self.density, self._compile_kwargs)
        return self._compiled

    def step(self, point: PointType) -> tuple[PointType, list[dict[str, Any]]]:
        """Draw the next point of a chain."""
        self._one_thread.claim()
        wall_start, process_start = time.perf_counter(), time.process_time()
        functions = self.compiled()
        goes_on = self._was_handed_out(point)
        if not goes_on:
            self.point, self.given = self._enter(functions, point)
            self.ahead = []
        here, given = self.point, self.given
        assert here is not None and given is not None  # a chain that goes on has entered
        if not self.ahead:
            # nothing can happen between two draws, and a callback may want to be interrupted
            several = goes_on and not self.tune and not functions.calls_back
            self.ahead = self._draw(functions, here, given, several)
        draw = self.ahead.pop(0)
        if not np.isfinite(draw.outcome.energy):
            self._complain(functions, draw, given, point)
        self.point = draw.point
        position, smooth_logp, _ = draw.drawn
        *values, difference = functions.leave(position, given.others)
        if draw.outcome.accepted or self.iteration == 0:
            new = zip(self.vars, values, strict=True)
            point = {**point, **{v.name: np.array(value) for v, value in new}}
        self.handed_out = [point[v.name] for v in self.vars] if self.density.is_alone else []
        self.divergences += draw.outcome.diverging and not self.tune
        self.iteration += 1
        stats = {
            **self._stats(draw),
            "model_logp": smooth_logp + float(difference),
            "warning": self._warning(draw, given),
        }
        self.guard.check(self.iteration, point, stats["model_logp"])
        if self.tune and self.options.tunes:
            self.point = self.chain.learn(functions, draw, given, self.rng)
        stats["perf_counter_start"] = wall_start
        stats["perf_counter_diff"] = time.perf_counter() - wall_start
        stats["process_time_diff"] = time.process_time() - process_start
        return point, [stats]

    def _complain(
        self, functions: Compiled, draw: Draw, given: Given, point: PointType
    ) -> NoReturn:
        """Say which term of the log density is not finite."""
        *values, _ = functions.leave(draw.drawn.position, given.others)
        at = {**point, **{v.name: x for v, x in zip(self.vars, values, strict=True)}}
        raise SamplingError(complain(self.density.model, at))

    def _was_handed_out(self, point: PointType) -> bool:
        """Whether a point is the one that was drawn last, so that the chain goes on from there."""
        return bool(self.handed_out) and all(
            point[v.name] is value or np.array_equal(point[v.name], value)
            for v, value in zip(self.vars, self.handed_out, strict=True)
        )

    def _enter(self, functions: Compiled, point: PointType) -> tuple[np.ndarray, Given]:
        """Take the coordinates from a point, and what surrounds them there."""
        if self.iteration == 0:
            point = settle(self.density.model, point, self.vars)
        position, given = take_coordinates(self.density, self.walls, functions, point)
        if self.iteration == 0 and self.options.tunes:
            try:
                position = self.chain.begin(functions, position, given, self.rng, self.tune)
            except OutsideError as error:
                raise SamplingError(str(error)) from None
        elif self.iteration == 0:
            self.slacks.check_start(point)
        return self.chain.enter(functions, position, given, self.rng), given

    def _draw(
        self, functions: Compiled, here: np.ndarray, given: Given, several: bool
    ) -> list[Draw]:
        """Draw once, or several times where that is quick."""
        count = AHEAD if several and self._seconds < AHEAD_SECONDS else 1
        start = time.perf_counter()
        draws = self.chain.draw(functions, here, given, self.rng, self.tune, count)
        self._seconds = (time.perf_counter() - start) / count
        return draws

    def _stats(self, draw: Draw) -> dict[str, Any]:
        outcome, options = draw.outcome, self.options
        return {
            **{name: getattr(outcome, name) for name in SHOWN},
            "divergences": self.divergences,
            "n_steps": draw.gradients,
            "step_size": draw.step_size,
            "sharpness": self.walls.typical_sharpness(draw.system.sharpness),
            "reached_max_treedepth": outcome.tree_depth == options.max_treedepth,
            "wall_steps": outcome.steps * draw.system.inner,
            "dense_metric": bool(draw.choice.dense),
            "follows_curvature": bool(draw.choice.curved),
            "mapped": draw.mapped,
            "trajectory_time": draw.choice.time,
            "tune": self.tune,
            **dict(zip(self._wall_stats, draw.told, strict=True)),
        }

    def _warning(self, draw: Draw, given: Given) -> SamplerWarning | None:
        """A divergence and where it was, or, once after warm-up, what that has come to."""
        if draw.outcome.diverging:
            position, _, slope = draw.diverged_at
            culprit = self.slacks.blame(position, given.others, slope)
            return SamplerWarning(
                WarningType.TUNING_DIVERGENCE if self.tune else WarningType.DIVERGENCE,
                f"The trajectory diverged at {culprit}. Increase target_accept, or decrease the "
                "step_size or sharpness that you gave.",
                "debug",
                self.iteration,
            )
        if self.tune or self.judged:
            return None
        self.judged = True
        chain = self.chain
        said = [
            (WarningType.BAD_ACCEPTANCE, chain.complaint(), "warn"),
            (WarningType.BAD_PARAMS, chain.verdict(), "info"),
        ]
        for kind, text, level in said:
            if text is not None:
                return SamplerWarning(kind, text, level, self.iteration)
        return None

    @staticmethod
    def _progressbar_config(n_chains: int = 1) -> tuple[list[TextColumn], dict[str, list]]:
        return progressbar_config(n_chains)

    @staticmethod
    def _make_progressbar_update_functions() -> tuple:
        return (progressbar_update,)
