"""When kernels are compiled, and graphs that Numba cannot: one warning, and the same draws."""

import ctypes
import signal
import subprocess
import sys
import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba import njit
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch import numba_funcify

import pymc_rollback as rb

# PyTensor says so once a process, if there is no BLAS that it can link to
pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning"),
]

NUMBERS = {"sharpness": 20.0, "step_size": 0.1, "n_steps": 8}


class Double(Op):
    """2·x, with Python code alone; may fail from some call on."""

    def __init__(self, error=None):
        self.error, self.calls_left = error, np.inf

    def make_node(self, x):
        x = pt.as_tensor_variable(x)
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        self.calls_left -= 1
        if self.calls_left < 0:
            raise self.error
        outputs[0][0] = np.asarray(2 * inputs[0])

    def L_op(self, inputs, outputs, output_gradients):
        return [2 * output_gradients[0]]

    pullback = L_op


def build(double, **options):
    """A model with a bound, a constraint and a doubled variable; and the step."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=2)
        scale = pm.Exponential("scale", 1.0)
        rb.constrain("disk", (x**2).sum() < 2)
        pm.Normal("y", double(x).sum() + scale, 1.0, observed=0.7)
        return model, rb.RollbackHMC(rng=5, **NUMBERS | options)


def raise_timeout(*signal_and_frame):
    raise TimeoutError


def walk(model, step, n=30):
    point, draws = model.initial_point(), []
    for _ in range(n):
        point, _ = step.step(point)
        draws.append(np.concatenate([np.ravel(value) for value in point.values()]))
    return np.array(draws)


@pytest.fixture(scope="module")
def compiled_draws():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
        draws = walk(*build(lambda x: 2 * x))
    assert len(np.unique(draws[:, 0])) > 20
    return draws


def only_warning(caught):
    """The one warning; those of PyTensor about its environment do not count."""
    [warning] = [w for w in caught if "BLAS" not in str(w.message)]
    return str(warning.message)


class Looked(Double):
    """An Op whose own code for Numba fails."""

    def __init__(self, error):
        super().__init__()
        self.error = error


@numba_funcify.register(Looked)
def look_up(op, **kwargs):
    raise op.error


def test_an_error_in_the_code_of_a_user_is_not_hidden():
    with pytest.raises(KeyError, match="no such table"):
        build(Looked(KeyError("no such table")))


def test_code_of_a_user_may_have_nothing_for_numba():
    with pytest.warns(UserWarning, match="call back into Python.*nothing for Numba"):
        build(Looked(NotImplementedError("nothing for Numba")))


def test_an_op_without_numba_code(compiled_draws):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, step = build(Double())
        draws = walk(model, step)
    message = only_warning(caught)
    assert "slower" in message and "Double" in message
    np.testing.assert_allclose(draws, compiled_draws, rtol=1e-8)


def test_another_backend(compiled_draws):
    with pytest.warns(UserWarning, match="CVM") as caught:
        model, step = build(lambda x: 2 * x, compile_kwargs={"mode": "CVM"})
        draws = walk(model, step)
    assert "slower" in only_warning(caught)
    np.testing.assert_allclose(draws, compiled_draws, rtol=1e-8)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("error", [RuntimeError("out of cheese"), KeyboardInterrupt("stop")])
def test_an_exception_in_the_model_comes_out(error, exact):
    double = Double(error)
    with pm.Model() as model, warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        x = pm.Normal("x")
        pm.Potential("doubled", -double(x))
        step = rb.RollbackHMC(rng=5, exact=exact, **NUMBERS)
    start = model.initial_point()
    point, _ = step.step(start)
    double.calls_left = 3
    with pytest.raises(type(error), match=str(error)):
        step.step(point)
    # and once only: the step goes on where it was
    double.calls_left = np.inf
    moved, _ = step.step(point)
    assert np.isfinite(moved["x"])


@pytest.mark.parametrize("answer", [signal.default_int_handler, raise_timeout])
def test_a_signal_in_compiled_code_comes_out(answer):
    """It is handled as a callback is entered, where no clause of the callback can catch it."""
    send = ctypes.CDLL(None)["raise"]
    send.argtypes, send.restype = [ctypes.c_int], ctypes.c_int
    number = int(signal.SIGALRM)

    @njit
    def interrupted(model, x, others):
        send(number)
        return model(x, others)[0]

    with pytest.warns(UserWarning, match="CVM"):
        _, step = build(lambda x: 2 * x, compile_kwargs={"mode": "CVM"})
    functions, before = step.compiled(), signal.signal(signal.SIGALRM, answer)
    try:
        with pytest.raises((KeyboardInterrupt, TimeoutError)), functions.interrupt:
            interrupted(functions.model, np.full(3, 0.1), np.empty(0))
    finally:
        signal.signal(signal.SIGALRM, before)
    # and once only
    with functions.interrupt:
        assert np.all(np.isfinite(functions.model(np.full(3, 0.1), np.empty(0))[0]))


def test_data_may_change_between_runs():
    """A data container is compiled in, and compiled again where it has changed."""
    with pm.Model():
        centre = pm.Data("centre", 0.0)
        pm.Normal("x", centre, 0.1)
        step = rb.RollbackHMC(**NUMBERS)
        options = {
            "tune": 100,
            "chains": 1,
            "cores": 1,
            "random_seed": 1,
            "progressbar": False,
            "compute_convergence_checks": False,
        }
        first = pm.sample(100, step=step, **options)
        pm.set_data({"centre": 5.0})
        second = pm.sample(100, step=step, **options)
    assert abs(float(first.posterior["x"].mean())) < 0.5
    assert abs(float(second.posterior["x"].mean()) - 5) < 0.5


IN_A_NEW_PROCESS = """
import pymc as pm
import pymc_rollback as rb
from pymc_rollback.kernels.run import ready
with pm.Model() as model:
    pm.HalfNormal("x")
    step = rb.RollbackHMC({numbers})
assert ready.cache_info().currsize == {kernels}
step.step(model.initial_point())
assert ready.cache_info().currsize == {kernels}
"""


@pytest.mark.parametrize(("numbers", "kernels"), [("", 3), ("step_size=0.1, n_steps=5", 2)])
def test_kernels_are_compiled_before_there_are_workers(numbers, kernels):
    """Those of all trajectories that a race may choose, and that which repeats them."""
    code = IN_A_NEW_PROCESS.format(numbers=numbers, kernels=kernels)
    subprocess.run([sys.executable, "-c", code], check=True)
