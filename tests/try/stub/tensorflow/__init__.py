# SPDX-License-Identifier: Apache-2.0
"""A framework with the names of TensorFlow that the hook of `try` uses, in plain Python. A function is traced by its first call:
what it returns then is run by this call and the later ones, and Python sees no gradient any more."""
import array as _array
import sys as _sys
import types as _types

__version__ = "0.stub"
_state = {"eager": True, "intra": 0, "inter": 0}


def _module(name, **members):
    found = _sys.modules[__name__ + "." + name] = _types.ModuleType(__name__ + "." + name)
    found.__dict__.update(members)
    return found


class Array:
    """What numpy() of a variable gives."""

    dtype = "float32"

    def __init__(self, values):
        self.values = _array.array("f", values)

    def reshape(self, _shape):
        return self

    def __getitem__(self, part):
        return Array(self.values[part])

    def astype(self, _kind):
        return Array(self.values)

    def __sub__(self, other):
        return Array(a - b for a, b in zip(self.values, other.values))

    def tobytes(self):
        return self.values.tobytes()

    def view(self, _kind):  # rounding changes nothing here
        return self

    __xor__ = __add__ = __and__ = lambda self, _bits: self


class DType:
    name, is_floating, as_datatype_enum = "float32", True, 1


class BFloat16(DType):
    name, as_datatype_enum = "bfloat16", 14


bfloat16 = BFloat16


class Tensor:
    pass


class Shape(tuple):
    def num_elements(self):
        return self[0]


class Variable:
    dtype, device = DType, "/device:CPU:0"

    def __init__(self, values):
        self.values, self.shape = list(values), Shape([len(values)])

    def numpy(self):
        return Array(self.values)

    def assign(self, value):
        self.values = list(value.values)


class Function:
    def __init__(self, python_function, jit_compile=None):
        self.python_function, self._jit_compile, self.graph = python_function, jit_compile, None

    def __call__(self, *args):
        if self.graph is None:
            eager, _state["eager"] = _state["eager"], False
            self.graph = self.python_function(*args)
            _state["eager"] = eager
        return self.graph()

    def experimental_get_tracing_count(self):
        return int(self.graph is not None)

    def _list_all_concrete_functions(self):
        attributes = {"_XlaMustCompile": _types.SimpleNamespace(b=bool(self._jit_compile))}
        return [_types.SimpleNamespace(function_def=_types.SimpleNamespace(attr=attributes), trainable_variables=[])]


function = Function


class init_scope:
    def __enter__(self):
        self.eager, _state["eager"] = _state["eager"], True

    def __exit__(self, *_):
        _state["eager"] = self.eager


class GradientTape:
    def gradient(self, _target, sources):
        return [0.01 * (i + 1) for i, _ in enumerate(sources)]


def executing_eagerly():
    return _state["eager"]


class nest:
    flatten = staticmethod(list)


class data:
    AUTOTUNE = -1

    class Dataset(list):
        pass


class nn:
    experimental = _types.SimpleNamespace()

    @staticmethod
    def dropout(x, rate):
        return x


class compat:
    pass


compat.v2 = _sys.modules[__name__]


class random:
    @staticmethod
    def set_seed(_seed):
        pass


class test:
    @staticmethod
    def is_built_with_cuda():
        return False


class config:
    class optimizer:
        get_jit = staticmethod(lambda: "")

    class experimental:
        tensor_float_32_execution_enabled = staticmethod(lambda: True)

    class threading:
        get_intra_op_parallelism_threads = staticmethod(lambda: _state["intra"])
        get_inter_op_parallelism_threads = staticmethod(lambda: _state["inter"])
        set_intra_op_parallelism_threads = staticmethod(lambda n: _state.update(intra=n))
        set_inter_op_parallelism_threads = staticmethod(lambda n: _state.update(inter=n))


class Context:
    enable_graph_collection = disable_graph_collection = lambda self: None

    def export_run_metadata(self):
        return _types.SimpleNamespace(partition_graphs=[])


_module("python", framework=_module("python.framework", random_seed=_module("python.framework.random_seed", DEFAULT_GRAPH_SEED=7)),
        eager=_module("python.eager", context=_module("python.eager.context", context=Context)))
