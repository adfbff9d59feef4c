"""What Numba does not offer: functions and generators by address, tuples that are only borrowed.

Kernels see functions over one raveled vector and import neither PyMC nor PyTensor.
"""

from collections.abc import Callable

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

# with Python's model each division could raise, which keeps Numba from dropping reference counts
inlined = njit(inline="always", error_model="numpy")

VECTOR = types.float64[::1]
MATRIX = types.float64[:, ::1]
MATRICES = types.float64[:, :, ::1]

MODEL = types.FunctionType(types.UniTuple(VECTOR, 1)(types.UniTuple(VECTOR, 2)))
"""``model((position, others)) -> (answer,)``: the gradient, then the log density.

The form of a function that PyTensor has compiled: kernels take it as it is, so that nothing is
compiled anew.
"""

WALLS = types.FunctionType(types.UniTuple(VECTOR, 1)(types.UniTuple(VECTOR, 3)))
"""``walls((position, others, sharpness)) -> (answer,)``: gradient, energy, log weight, slack.

The gradient and the value of the boundary energy, the log weight with which a position may be
selected, and the smallest of the slacks there; then, where they are counted, how steep each row of
a barrier is, from zero far inside to one far outside.
"""


def address_of(function: Dispatcher, kind: types.FunctionType) -> int:
    """Where the machine code of a model or of walls is; valid as long as the function lives.

    Kernels take addresses: to hand over a function itself takes Numba 0.1 ms a call.
    """
    compiled = function.get_compile_result(kind.signature)
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def function_at(kind: types.FunctionType) -> Callable:
    """Make a function, for kernels, from an address to the function whose machine code is there."""

    @intrinsic
    def at(typing_context, address):
        def generate(context, builder, signature, arguments):
            pointer = builder.inttoptr(arguments[0], cgutils.voidptr_t)
            function = cgutils.create_struct_proxy(kind)(context, builder)
            function.c_addr = function.py_addr = cgutils.get_null_value(cgutils.voidptr_t)
            function.jit_addr = pointer
            return function._getvalue()

        return kind(types.intp), generate

    return at


model_at, walls_at = function_at(MODEL), function_at(WALLS)


@intrinsic
def generator_at(typing_context, address):
    """NumPy's generator over the bit generator at an address, which its caller keeps.

    To hand over the generator itself takes Numba 10 microseconds a call.
    """

    def generate(context, builder, signature, arguments):
        word = context.get_value_type(types.uintp)
        fields = builder.inttoptr(arguments[0], word.as_pointer())
        bits = cgutils.create_struct_proxy(types.npy_bitgen)(context, builder)
        # in the order of NumPy's bitgen_t
        names = "state", "fnptr_next_uint64", "fnptr_next_uint32", "fnptr_next_double"
        for k, name in enumerate(names):
            place = builder.gep(fields, [context.get_constant(types.intp, k)])
            setattr(bits, name, builder.load(place))
        generator = cgutils.create_struct_proxy(types.npy_rng)(context, builder)
        generator.bit_generator = bits._getvalue()
        generator.meminfo = cgutils.get_null_value(generator.meminfo.type)
        return generator._getvalue()

    return types.npy_rng(types.intp), generate


def address_of_generator(rng: np.random.Generator) -> int:
    """Where a generator has its bit generator; valid as long as the generator lives."""
    return rng.bit_generator.ctypes.bit_generator.value


@intrinsic
def borrowed(typing_context, arrays):
    """A tuple of arrays whose caller keeps it, so that no references need to be counted.

    Numba would count them each time that an array is taken out of the tuple, a dozen times a step.
    """

    def generate(context, builder, signature, arguments):
        members = cgutils.unpack_tuple(builder, arguments[0])
        for k, kind in enumerate(arrays.types):
            if isinstance(kind, types.Array):
                array = cgutils.create_struct_proxy(kind)(context, builder, value=members[k])
                array.meminfo = cgutils.get_null_value(array.meminfo.type)
                members[k] = array._getvalue()
        return context.make_tuple(builder, arrays, members)

    return arrays(arrays), generate
