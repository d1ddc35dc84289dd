# SPDX-License-Identifier: Apache-2.0
"""Small graphs of every TensorFlow operator that is lowered to HLO, with TensorFlow's results; run by lower_ops.

    lower_ops [--update]    --update: write tests/data/lower/corpus.txt, which unit_lower uses in `make test`;
                            otherwise the file must hold what TensorFlow computes

A case of the corpus has a name, the GraphDef as text, feeds, and what TensorFlow computed on the CPU:

    case Add.2
    graph node { name: "x" op: "Placeholder" } ...
    feed x:0 f32[2,3] 1 2 3 4 5 6              (known: its integers may be used as a shape)
    want y:0 f32[2,3] 2 4 6 8 10 12

Before the cases are the inputs that TensorFlow's operators have at least: "inputs Add 2"."""
import os, pathlib, sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import ml_dtypes
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import op_def_registry

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/data/lower/corpus.txt"
tf.compat.v1.disable_eager_execution()
rng = np.random.default_rng(27)
bf16 = ml_dtypes.bfloat16
f16, f32, f64, c64, c128 = np.float16, np.float32, np.float64, np.complex64, np.complex128
s8, s16, s32, s64, u8, u16, u32, u64 = np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64
NAMES = {np.dtype(d): n for d, n in [(f16, "f16"), (bf16, "bf16"), (f32, "f32"), (f64, "f64"), (c64, "c64"), (c128, "c128"), (s8, "s8"), (s16, "s16"), (s32, "s32"), (s64, "s64"),
                                     (u8, "u8"), (u16, "u16"), (u32, "u32"), (u64, "u64"), (np.bool_, "pred")]}
DIGITS = {"f16": 5, "bf16": 4, "f32": 7, "c64": 7, "f64": 15, "c128": 15}  # more than the comparison needs
lines, counts, refused = [], {}, []


# ---- values ----

def f(*shape, low=-2.0, high=2.0, dtype=f32):
    return np.round(rng.uniform(low, high, shape), 2).astype(dtype)


def c(*shape, dtype=c64):
    return (np.round(rng.uniform(-2, 2, shape), 2) + 1j * np.round(rng.uniform(-2, 2, shape), 2)).astype(dtype)


def i(low, high, *shape, dtype=s32):
    return rng.integers(low, high, shape).astype(dtype)


def b(*shape):
    return rng.integers(0, 2, shape).astype(np.bool_)


class K:
    """A constant of the graph, where others are fed."""

    def __init__(self, value, dtype=s32):
        self.value = np.asarray(value, dtype)


class Known:
    """Fed, and its value is known when the graph is lowered."""

    def __init__(self, value, dtype=s32):
        self.value = np.asarray(value, dtype)


def number(v, kind):
    if kind[0] == "c":
        return f"{number(v.real, 'f' + str(int(kind[1:]) // 2))} {number(v.imag, 'f' + str(int(kind[1:]) // 2))}"
    return f"{float(v):.{DIGITS[kind]}g}" if kind in DIGITS else str(int(v))


def array(word, name, a):
    a = np.asarray(a)
    kind = NAMES[a.dtype]
    return " ".join([word, name, f"{kind}[{','.join(map(str, a.shape))}]", *(number(v, kind) for v in a.reshape(-1))])


# ---- graphs ----

def plain_constants(nodes):
    """Integers as numbers, which can be read, in place of bytes."""
    for node in nodes:
        tensor = node.attr["value"].tensor if node.op == "Const" else None
        if tensor is not None and tensor.dtype in (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum):
            a = tf.make_ndarray(tensor).reshape(-1)
            tensor.ClearField("tensor_content")
            (tensor.int_val if tensor.dtype == tf.int32.as_datatype_enum else tensor.int64_val)[:] = a.tolist()


INFERRED = ("T", "Tidx", "Tshape", "Tperm", "Taxis", "Tindices", "Tparams", "Tpaddings", "Tmultiples", "Tdim", "Tlen", "Tlabels", "Tk", "Tindex", "Tnumsegments", "Tlogits", "index_type_", "N")


def tidy(graph):
    """The definition without what says nothing new: types of inputs, debugging."""
    d = graph.as_graph_def()
    for node in list(d.node) + [n for fn in d.library.function for n in fn.node_def]:
        for key in [k for k in node.attr if k.startswith("_") or k in INFERRED or (k in ("shape", "dtype") and node.op == "Placeholder")]:
            del node.attr[key]
        node.ClearField("device")
        node.ClearField("experimental_debug_info")
        node.ClearField("experimental_type")
    for fn in d.library.function:
        fn.attr.clear()
        fn.arg_attr.clear()
        plain_constants(fn.node_def)
    plain_constants(d.node)
    d.ClearField("versions")
    return d


class Build:
    """A graph, and what is fed to it."""

    def __init__(self):
        self.graph, self.feeds = tf.Graph(), []

    def tensor(self, name, v):
        if isinstance(v, K):
            return tf.constant(v.value, name=name)
        if isinstance(v, (np.ndarray, np.generic, Known)):
            known = isinstance(v, Known)
            a = v.value if known else np.asarray(v)
            t = tf.compat.v1.placeholder(a.dtype, a.shape, name=name)
            self.feeds.append(("known" if known else "feed", t, a))
            return t
        if isinstance(v, list) and v and isinstance(v[0], (K, np.ndarray, np.generic, Known)):
            return [self.tensor(f"{name}{k}", e) for k, e in enumerate(v)]
        return v

    def make(self, function, arguments):
        """Outputs of a function of tensors by name."""
        with self.graph.as_default():
            made = function(**{k: self.tensor(k, v) for k, v in arguments.items()})
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def run(self, outputs, before=()):
        with tf.compat.v1.Session(graph=self.graph) as s:
            for op in before:
                s.run(op)
            return s.run(outputs, {t: a for _, t, a in self.feeds})


def write(op, definition, feeds, names, values):
    counts[op] = counts.get(op, 0) + 1
    lines.append(f"case {op}.{counts[op]}")
    lines.append("graph " + text_format.MessageToString(definition, as_one_line=True).strip())
    lines.extend(array(word, name, a) for word, name, a in feeds)
    lines.extend(array("want", name, v) for name, v in zip(names, values))
    lines.append("")


def graph(op, function, _may_fail=False, _outputs=None, **arguments):
    """One case: a function of tensors, named as the arguments."""
    build = Build()
    try:
        outputs = build.make(function, arguments)
        outputs = [outputs[k] for k in _outputs] if _outputs else outputs
        values = build.run(outputs)
    except Exception as why:
        if not _may_fail:
            sys.exit(f"lower_ops: TensorFlow refuses {op}: {why}")
        refused.append(op)
        return
    write(op, tidy(build.graph), [(w, t.name, a) for w, t, a in build.feeds], [o.name for o in outputs], values)


def one(op, _may_fail=False, _outputs=None, **arguments):
    """One case: the operator alone. Arrays are fed; everything else is an attribute."""
    graph(op, lambda **a: getattr(tf.raw_ops, op)(**a, name="y"), _may_fail, _outputs, **arguments)


def renamed(op, definition, attributes, feeds, fetches, values, node="y"):
    """A case whose graph TensorFlow computed in another form: its node y under this name, with these attributes."""
    for n in definition.node:
        if n.name == node:
            n.op = op
            for key, value in attributes.items():
                n.attr[key].CopyFrom(value)
    write(op, definition, feeds, fetches, values)


# ---- element by element ----

FLOATS = (f32, f64, f16, bf16)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, 88.0, -88.0], f32)


def unary():
    every = dict(low=-2, high=2)
    for op, range_ in {"Neg": every, "Abs": every, "Exp": every, "Expm1": every, "Log": dict(low=0.1, high=9), "Log1p": dict(low=-0.9, high=9), "Sqrt": dict(low=0, high=9),
                       "Rsqrt": dict(low=0.1, high=9), "Tanh": every, "Sigmoid": every, "Sin": every, "Cos": every, "Tan": dict(low=-1.4, high=1.4), "Floor": dict(low=-9, high=9),
                       "Ceil": dict(low=-9, high=9), "Round": dict(low=-9, high=9), "Rint": dict(low=-9, high=9), "Sign": every, "Erf": every, "Erfc": dict(low=-2, high=4), "IsFinite": every,
                       "IsNan": every, "IsInf": every, "Square": every, "Reciprocal": dict(low=0.2, high=4), "Inv": dict(low=0.2, high=4), "Asin": dict(low=-1, high=1),
                       "Acos": dict(low=-1, high=1), "Atan": dict(low=-9, high=9), "Sinh": every, "Cosh": every, "Asinh": dict(low=-9, high=9), "Acosh": dict(low=1, high=9),
                       "Atanh": dict(low=-0.9, high=0.9)}.items():
        for dtype in FLOATS:
            one(op, x=f(2, 3, dtype=dtype, **range_), _may_fail=dtype != f32)
        one(op, x=f(dtype=f32, **range_))
        one(op, x=f(0, 3, dtype=f32, **range_))
        if op not in ("Sin", "Cos", "Tan", "Asin", "Acos", "Acosh", "Sign"):
            one(op, x=SPECIAL)
        for dtype in (c64, c128):
            if op in ("Neg", "Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Tanh", "Sigmoid", "Sin", "Cos", "Tan", "Sign", "Square", "Reciprocal", "Inv", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh"):
                one(op, x=c(4, dtype=dtype), _may_fail=True)
        for dtype in (s32, s64, s8, u8):
            if op in ("Neg", "Abs", "Sign", "Square", "Reciprocal", "Inv"):
                one(op, x=i(0 if dtype == u8 else -9, 9, 5, dtype=dtype) | (op in ("Reciprocal", "Inv")), _may_fail=True)
    one("Round", x=np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], f32))
    one("Rint", x=np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5], f32))
    one("Sign", x=np.array([0.0, 3.0, -2.0], f32))
    one("LogicalNot", x=b(3, 4))
    for dtype in (s8, s32, s64, u8, u16):
        one("Invert", x=i(0, 99, 6, dtype=dtype))
    for op in ("Relu", "Relu6", "LeakyRelu", "Elu", "Softplus", "Softsign", "Selu"):
        for dtype in FLOATS:
            one(op, features=f(3, 4, low=-9, high=9, dtype=dtype))
        one(op, features=np.array([0.0, 6.0, -6.0, 60.0, -60.0, 1e-5], f32))
    one("LeakyRelu", features=f(6), alpha=0.5)
    one("LeakyRelu", features=f(6), alpha=1.5)
    for dtype in (s32, s64, s8, u8):
        one("Relu", features=i(0 if dtype == u8 else -9, 9, 6, dtype=dtype))
        one("Relu6", features=i(0 if dtype == u8 else -9, 19, 6, dtype=dtype))
    for op in ("ZerosLike", "OnesLike"):
        for dtype in (f32, bf16, s32, c64):
            one(op, x=f(2, 2).astype(dtype))
        one(op, x=b(3))
    for op in ("Real", "Imag", "ComplexAbs"):
        for dtype, part in ((c64, f32), (c128, f64)):
            one(op, **{"x" if op == "ComplexAbs" else "input": c(3, 2, dtype=dtype)}, Tout=part)
    for dtype in (c64, c128):
        one("Conj", input=c(3, 2, dtype=dtype))


def binary():
    pairs = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((3, 1, 2), (4, 1)), ((1,), ())]
    for op in ("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Maximum", "Minimum", "Pow", "Atan2", "SquaredDifference", "DivNoNan", "Xdivy", "Xlogy", "Xlog1py", "MulNoNan", "FloorDiv",
               "FloorMod", "TruncateMod", "Mod", "TruncateDiv"):
        low = 0.3 if op in ("Pow", "Xlogy", "Xlog1py") else -4
        a, z = ("y", "x") if op == "Atan2" else ("x", "y")
        for left, right in pairs:
            if op != "TruncateDiv":
                one(op, **{a: f(*left, low=low, high=4), z: f(*right, low=low, high=4) + f32(0.005)})
        for dtype in (f64, f16, bf16):
            one(op, **{a: f(4, low=low, high=4, dtype=dtype), z: f(4, low=0.5, high=4, dtype=dtype)}, _may_fail=True)
        for dtype in (s32, s64, s8, u8, s16, u16):
            signed = np.dtype(dtype).kind == "i"
            x, y = i(-20 if signed and op != "Pow" else 0, 20, 3, 4, dtype=dtype), i(1, 5, 4, dtype=dtype)
            if signed and op != "Pow":
                y = y * np.array([1, -1, 1, -1], dtype)
            one(op, **{a: x, z: y}, _may_fail=True)
        one(op, **{a: c(3), z: c(3)}, _may_fail=True)
        one(op, **{a: c(2, 2, dtype=c128), z: c(2, dtype=c128)}, _may_fail=True)
    with_zero = np.array([0, 1, 0, -2, 3], f32), np.array([0, 0, 4, 0.5, -3], f32)
    for op in ("DivNoNan", "MulNoNan"):
        one(op, x=np.array([0, np.inf, 2, np.nan, -1], f32), y=np.array([0, 0, 4, 0, -3], f32))
    one("Xdivy", x=with_zero[0], y=np.array([0, 2, np.nan, 0.5, -3], f32))
    one("Xlogy", x=np.array([0, 1, 0, 2], f32), y=np.array([0, 2, np.nan, 0.5], f32))
    one("Xlog1py", x=np.array([0, 1, 0, 2], f32), y=np.array([-1, 2, np.nan, 0.5], f32))
    one("FloorMod", x=np.array([5, -5, 5, -5, 0, 7.5], f32), y=np.array([3, 3, -3, -3, 3, -2.5], f32))
    one("FloorDiv", x=np.array([-2**31, 2**31 - 1, -7, 7], s32), y=np.array([2, -1, -2, -2], s32))
    one("Pow", x=np.array([2, -2, 0, 0, -8, 1], f32), y=np.array([3, 3, 0, 2, 2, 100], f32))
    for op in ("LogicalAnd", "LogicalOr"):
        one(op, x=b(2, 3), y=b(3))
        one(op, x=np.array([0, 0, 1, 1], np.bool_), y=np.array([0, 1, 0, 1], np.bool_))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift"):
        for dtype in (s32, s64, u8, s8, u32):
            one(op, x=i(0, 99, 2, 4, dtype=dtype), y=i(0, 6, 4, dtype=dtype))
    for op in ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"):
        for dtype in (f32, s32, s64, u8, bf16, f64):
            one(op, x=i(0, 3, 3, 4).astype(dtype), y=i(0, 3, 4).astype(dtype))
        one(op, x=np.array([np.nan, np.nan, 1, np.inf, 0.0], f32), y=np.array([np.nan, 1, np.nan, np.inf, -0.0], f32))
    for op in ("Equal", "NotEqual"):
        one(op, x=b(4), y=b(2, 4))
        one(op, x=np.array([1 + 2j, 1 + 2j, 3], c64), y=np.array([1 + 2j, 1 - 2j, 3], c64))
    for dtype, part in ((f32, c64), (f64, c128)):
        one("Complex", real=f(2, 3, dtype=dtype), imag=f(3, dtype=dtype), Tout=part)
    for op, key in (("AddN", "inputs"), ("AccumulateNV2", "inputs")):
        for n in (1, 2, 4):
            one(op, **{key: [f(2, 3) for _ in range(n)]}, **({"shape": (2, 3)} if op != "AddN" else {}))
    one("AddN", inputs=[i(0, 9, 4), i(0, 9, 4)])


def gradients():
    for op, (a, z) in {"ReluGrad": ("gradients", "features"), "Relu6Grad": ("gradients", "features"), "EluGrad": ("gradients", "outputs"), "LeakyReluGrad": ("gradients", "features"),
                       "SoftplusGrad": ("gradients", "features"), "TanhGrad": ("y_", "dy"), "SigmoidGrad": ("y_", "dy"), "RsqrtGrad": ("y_", "dy"), "SqrtGrad": ("y_", "dy")}.items():
        fn = lambda op=op, **t: getattr(tf.raw_ops, op)(**{k.rstrip("_"): v for k, v in t.items()}, name="out")
        for dtype in FLOATS:
            graph(op, fn, **{a: f(3, 4, low=0.2 if a == "y_" else -4, high=4, dtype=dtype), z: f(3, 4, low=-0.9 if op == "EluGrad" else -8, high=8, dtype=dtype)})
        if a == "y_":
            graph(op, fn, **{a: c(4), z: c(4)})
            graph(op, fn, **{a: f(), z: f()})
        else:
            graph(op, fn, **{a: f(5), z: np.array([0.0, 6.0, -1.0, 6.5, 3.0], f32) if op != "EluGrad" else np.array([0, 1, -0.5, 2, -0.1], f32)})
    one("LeakyReluGrad", gradients=f(6), features=f(6), alpha=0.75)


def types():
    kinds = [f32, f64, f16, bf16, s8, s32, s64, u8, u16]
    for source in kinds:
        for target in kinds:
            if source != target:
                whole = np.dtype(target).kind in "iu"
                x = f(5, low=0, high=99, dtype=f64) if whole and np.dtype(target).kind == "u" else f(5, low=-99, high=99, dtype=f64)
                x = np.abs(x) if np.dtype(source).kind == "u" else x
                one("Cast", x=x.astype(source), DstT=target)
    for target in (f32, s32, u8, bf16):
        one("Cast", x=b(4), DstT=target)
        one("Cast", x=np.array([0, 1, 3, 0], target), DstT=np.bool_)
    one("Cast", x=np.array([0.25, -0.0, np.nan, 0.0], f32), DstT=np.bool_)
    one("Cast", x=c(3), DstT=f32)
    one("Cast", x=c(3), DstT=c128)
    one("Cast", x=f(3), DstT=c64)
    one("Cast", x=f(3), DstT=c128)
    for dtype in (f32, s32, c64, bf16):
        one("Select", condition=b(2, 3), x=f(2, 3).astype(dtype), y=f(2, 3).astype(dtype))
    one("Select", condition=np.array([True, False, True]), x=f(3, 2), y=f(3, 2))
    one("Select", condition=np.array([True, False, True]), x=f(3, 2, 2), y=f(3, 2, 2))
    one("Select", condition=np.bool_(False), x=f(3, 2), y=f(3, 2))
    one("SelectV2", condition=np.array([True, False]), t=f(3, 2), e=f(3, 2))
    one("SelectV2", condition=np.array([[True], [False], [True]]), t=f(1, 2), e=f())
    one("SelectV2", condition=np.bool_(True), t=f(2), e=f(3, 2))
    one("SelectV2", condition=b(4), t=i(0, 9, 4), e=i(0, 9, 4))
    for dtype in (f32, f64, bf16, s32):
        one("ClipByValue", t=f(3, 4, low=-9, high=9).astype(dtype), clip_value_min=np.asarray(-3, dtype), clip_value_max=np.asarray(2, dtype))
    one("ClipByValue", t=f(3, 4), clip_value_min=f(3, 4, low=-1, high=0), clip_value_max=f(3, 4, low=0, high=1))
    one("ClipByValue", t=f(3, 4), clip_value_min=np.asarray(-1, f32), clip_value_max=f(3, 4, low=0, high=1))


def same():
    for op, key in (("Identity", "input"), ("StopGradient", "input"), ("PreventGradient", "input"), ("Snapshot", "input")):
        one(op, **{key: f(2, 3)})
        one(op, **{key: i(0, 9, 4, dtype=s64)})
        one(op, **{key: b(2)})
    one("IdentityN", input=[f(2), i(0, 9, 3), b(2, 1)])
    one("IdentityN", input=[f(3)])
    one("CheckNumerics", tensor=f(2, 3), message="bad")
    one("CheckNumerics", tensor=f(2, dtype=f64), message="bad")
    for fed in (True, False):
        graph("PlaceholderWithDefault", lambda x, fed=fed: tf.raw_ops.PlaceholderWithDefault(input=x, shape=(2, 3), name="y"), x=f(2, 3) if fed else K(f(2, 3), f32))
    one("EnsureShape", input=f(2, 3), shape=(2, 3))
    one("EnsureShape", input=i(0, 9, 4), shape=(None,))


def internal():
    """Operators that TensorFlow's runtime adds: their nodes cannot be made from Python. And Round of integers, of which its CPU kernel makes zeros."""
    for op in ("_EagerConst", "_Retval", "DisableCopyOnRead", "DebugIdentity", "Round"):
        for a in (i(-9, 9, 5, dtype=s64) if op == "Round" else f(2, 3), i(-9, 9, 4)):
            build = Build()
            [y] = build.make(lambda x: tf.raw_ops.Neg(x=tf.raw_ops.Identity(input=x, name="y"), name="z"), {"x": a})
            values = build.run([y])
            definition = tidy(build.graph)
            renamed(op, definition, {}, [(w, t.name, v) for w, t, v in build.feeds], [y.name], values)


def variables():
    cases = {"ReadVariableOp": [lambda v: tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32, name="y")],
             "ResourceGather": [lambda v: tf.raw_ops.ResourceGather(resource=v, indices=tf.constant([2, 0, 2]), dtype=tf.float32, name="y"),
                                lambda v: tf.raw_ops.ResourceGather(resource=v, indices=tf.constant([[1, 0], [2, 1], [3, 3], [0, 0]]), dtype=tf.float32, batch_dims=1, name="y")],
             "ResourceGatherNd": [lambda v: tf.raw_ops.ResourceGatherNd(resource=v, indices=tf.constant([[2, 0], [0, 3]]), dtype=tf.float32, name="y"),
                                  lambda v: tf.raw_ops.ResourceGatherNd(resource=v, indices=tf.constant([[3], [1]]), dtype=tf.float32, name="y")]}
    for op, functions in cases.items():
        for function in functions:
            build, a = Build(), f(4, 4, 2)
            with build.graph.as_default():
                v = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=a.shape, name="v")
                y = function(v)
            definition = tidy(build.graph)
            with build.graph.as_default():
                assign = tf.raw_ops.AssignVariableOp(resource=v, value=tf.constant(a))
            values = build.run([y], [assign])
            write(op, definition, [("feed", "v:0", a)], [y.name], values)


# ---- arrays ----

def arrays():
    for dtype in (f32, s32, bf16, c64):
        one("Reshape", tensor=f(2, 6).astype(dtype), shape=K([3, 4]))
    one("Reshape", tensor=f(2, 6), shape=K([-1]))
    one("Reshape", tensor=f(2, 6), shape=K([2, -1, 3], s64))
    one("Reshape", tensor=f(1, 1), shape=K(np.zeros(0)))
    one("Reshape", tensor=f(2, 6), shape=Known([4, 3]))
    for axis in (0, 1, 2, -1, -2):
        one("ExpandDims", input=f(2, 3), axis=K(axis))
        one("Pack", values=[f(2, 3), f(2, 3), f(2, 3)], axis=axis)
    one("ExpandDims", input=f(), axis=K(0))
    one("Pack", values=[f(), f()], axis=0)
    for dims in ([], [1], [-1], [0, 2]):
        one("Squeeze", input=f(1, 1, 1) if len(dims) == 2 else f(2, 1, 1) if dims == [-1] else f(2, 1, 3), axis=dims)
    for perm in ([0, 1, 2], [2, 0, 1], [1, 0, 2], [2, 1, 0], [1, 2, 0]):
        one("Transpose", x=f(2, 3, 4), perm=K(perm))
    one("Transpose", x=i(0, 9, 2, 3), perm=K([-1, 0], s64))
    for axis in (0, 1, -1):
        one("ConcatV2", values=[f(2, 3) if axis else f(1, 3), f(2, 1) if axis else f(2, 3), f(2, 2) if axis else f(0, 3)], axis=K(axis))
    one("ConcatV2", values=[i(0, 9, 3), i(0, 9, 2)], axis=K(0))
    one("Fill", dims=K([2, 3]), value=f())
    one("Fill", dims=K([4], s64), value=np.asarray(7, s32))
    one("Fill", dims=K(np.zeros(0)), value=f())
    one("Fill", dims=Known([2, 2]), value=f())
    for shape in ([4, 3], [2, 4, 3], [2, 5, 4, 3]):
        one("BroadcastTo", input=f(1, 3) if len(shape) == 2 else f(4, 1) if len(shape) == 3 else f(3), shape=K(shape))
    one("BroadcastTo", input=f(), shape=K([2, 2]))
    one("Tile", input=f(2, 3), multiples=K([2, 1]))
    one("Tile", input=f(2, 3), multiples=K([1, 3], s64))
    one("Tile", input=i(0, 9, 2, 1, 2), multiples=K([2, 3, 2]))
    one("Tile", input=f(2, 3), multiples=K([0, 1]))
    one("Pad", input=f(2, 3), paddings=K([[1, 0], [2, 1]]))
    one("Pad", input=i(1, 9, 4), paddings=K([[0, 2]], s64))
    one("Pad", input=f(2, 1, 2), paddings=K([[0, 0], [1, 1], [0, 2]]))
    one("PadV2", input=f(2, 3), paddings=K([[0, 1], [1, 0]]), constant_values=np.asarray(7, f32))
    one("PadV2", input=i(1, 9, 2, 2), paddings=K([[1, 1], [0, 3]]), constant_values=np.asarray(-1, s32))
    for out in (s32, s64):
        one("Shape", input=f(2, 3, 1), out_type=out)
        one("ShapeN", input=[f(2, 3), f(4), f(1, 5)], out_type=out)
        one("Size", input=f(2, 3, 4), out_type=out)
    one("Rank", input=f(2, 3, 4))
    one("Rank", input=f())
    for start, limit, delta in ((0, 5, 1), (3, 18, 3), (5, 0, -2), (0, 0, 1), (2, 9, 4)):
        one("Range", start=K(start), limit=K(limit), delta=K(delta))
    one("Range", start=K(1, s64), limit=K(10, s64), delta=K(5, s64))
    for a, z in (([2, 3], [3]), ([4, 1, 3], [1, 5, 1]), ([2], [2]), ([1], [7]), ([3, 1], [])):
        one("BroadcastGradientArgs", s0=K(a), s1=K(z))
        one("BroadcastGradientArgs", s0=K(a, s64), s1=K(z, s64))
    # what is known of integers, as shapes
    graph("Reshape", lambda x: tf.raw_ops.Reshape(tensor=x, shape=tf.raw_ops.Pack(values=[tf.raw_ops.StridedSlice(input=tf.raw_ops.Shape(input=x), begin=[1], end=[2], strides=[1],
          shrink_axis_mask=1), 2 * tf.raw_ops.StridedSlice(input=tf.raw_ops.Shape(input=x), begin=[0], end=[1], strides=[1], shrink_axis_mask=1)]), name="y"), x=f(2, 3, 2))
    graph("Fill", lambda x: tf.raw_ops.Fill(dims=tf.raw_ops.ConcatV2(values=[tf.raw_ops.Shape(input=x), [2]], axis=0), value=1.5, name="y"), x=f(2, 3))
    graph("Fill", lambda x: tf.raw_ops.Fill(dims=tf.raw_ops.GatherV2(params=tf.raw_ops.Shape(input=x), indices=[2, 0], axis=0), value=1.5, name="y"), x=f(2, 3, 4))
    graph("Reshape", lambda x: tf.raw_ops.Reshape(tensor=x, shape=tf.raw_ops.Reshape(tensor=tf.raw_ops.Prod(input=tf.raw_ops.Shape(input=x), axis=[0]), shape=[1]), name="y"), x=f(2, 3))
    graph("Reshape", lambda x: tf.raw_ops.Reshape(tensor=x, shape=tf.raw_ops.StridedSlice(input=tf.constant([9, 2, 3]), begin=[2], end=[0], strides=[-1]), name="y"), x=f(2, 3))
    graph("Reshape", lambda x: tf.raw_ops.Reshape(tensor=x, shape=tf.raw_ops.Slice(input=tf.constant([9, 3, 2, 7]), begin=[1], size=[2]), name="y"), x=f(2, 3))
    for op, n in (("AddV2", [1, -1]), ("Sub", [-1, 1]), ("Mul", [1, 1]), ("Maximum", [3, 1]), ("Minimum", [2, 3]), ("FloorDiv", [1, 1])):
        graph("Reshape", lambda x, op=op, n=n: tf.raw_ops.Reshape(tensor=x, shape=getattr(tf.raw_ops, op)(x=tf.constant([2, 3]), y=tf.constant(n)), name="y"),
              x=f(3, 2) if op in ("AddV2", "Sub") else f(3, 3) if op == "Maximum" else f(2, 3))


def slices():
    one("Unpack", value=f(3, 2), num=3, axis=0)
    one("Unpack", value=f(3, 2), num=2, axis=1)
    one("Unpack", value=f(2, 3, 2), num=3, axis=-2)
    one("Slice", input=f(4, 5), begin=K([1, 2]), size=K([2, 3]))
    one("Slice", input=f(4, 5), begin=K([0, 4], s64), size=K([-1, -1], s64))
    one("Slice", input=i(0, 9, 6), begin=K([2]), size=K([0]))
    x = f(4, 5, 3)
    for index in (np.s_[1:3], np.s_[::2], np.s_[::-1], np.s_[3:0:-2], np.s_[..., 1], np.s_[:, None, 2:4], np.s_[-2, 1:, None, -3:-1], np.s_[1:1], np.s_[:, 4:1:-1], np.s_[-1], np.s_[..., ::2, 0],
                  np.s_[-9:9], np.s_[:, -2:-9:-1], np.s_[2:, 1, 2], np.s_[None, ..., None], np.s_[5:9]):
        graph("StridedSlice", lambda x, index=index: x[tuple(tf.newaxis if e is None else e for e in (index if isinstance(index, tuple) else (index,)))], x=x)
    one("StridedSlice", input=x, begin=K([1, 7]), end=K([9, 0]), strides=K([2, -3]), begin_mask=0, end_mask=2)
    one("StridedSlice", input=i(0, 9, 7), begin=Known([1]), end=Known([6]), strides=Known([2]))
    for axis in (0, 1, -1):
        one("Split", axis=K(axis), value=f(4, 6), num_split=2)
        one("SplitV", value=f(4, 6), size_splits=K([1, -1, 2] if axis == 0 else [4, 2, 0], s64), axis=K(axis), num_split=3)
    one("Split", axis=K(1), value=f(2, 3), num_split=3)
    for axes in ([0], [1], [-1], [0, 2], []):
        one("ReverseV2", tensor=f(2, 3, 2), axis=K(axes))
    for dims in ([True, False], [False, True], [True, True], [False, False]):
        one("Reverse", tensor=f(2, 3), dims=K(dims, np.bool_))
    for low, high in ((0, 0), (1, 2), (-1, 0), (0, -1), (-1, -1), (2, 1)):
        one("MatrixBandPart", input=f(4, 3), num_lower=K(low, s64), num_upper=K(high, s64))
    one("MatrixBandPart", input=i(1, 9, 2, 3, 4), num_lower=K(1), num_upper=K(0))
    for mode in ("REFLECT", "SYMMETRIC"):
        one("MirrorPad", input=f(3, 4), paddings=K([[1, 2], [0, 3]]), mode=mode)
        one("MirrorPad", input=i(0, 9, 4), paddings=K([[3, 0]], s64), mode=mode)
    one("MirrorPad", input=f(2), paddings=K([[2, 2]]), mode="SYMMETRIC")


def tables():
    for op in ("Gather", "GatherV2"):
        for shape in ((), (3,), (2, 2)):
            one(op, params=f(4, 3), indices=i(0, 4, *shape), **({"axis": K(0)} if op == "GatherV2" else {}))
        one(op, params=i(0, 99, 5), indices=i(0, 5, 3, dtype=s64), **({"axis": K(0)} if op == "GatherV2" else {}))
    for axis, batch in ((1, 0), (-1, 0), (2, 0), (1, 1), (2, 1), (-1, -1), (2, 2)):
        one("GatherV2", params=f(2, 3, 4), indices=i(0, 3, *((2, 3)[:max(batch, 1)] if batch else ()), 2), axis=K(axis), batch_dims=batch)
    one("GatherNd", params=f(3, 4), indices=i(0, 3, 2, 2))
    one("GatherNd", params=f(3, 4, 2), indices=i(0, 3, 2, 3, 1))
    one("GatherNd", params=f(3, 4, 2), indices=i(0, 3, 2))
    one("GatherNd", params=i(0, 9, 3, 2), indices=i(0, 2, 4, 2, dtype=s64))
    for axis in (-1, 0, 1):
        one("OneHot", indices=np.array([[0, 2], [-1, 5]], s32), depth=K(4), on_value=f(), off_value=f(), axis=axis)
    one("OneHot", indices=np.array([1, 0], s64), depth=K(3), on_value=np.asarray(5, s32), off_value=np.asarray(-1, s32), axis=-1)
    one("OneHot", indices=np.asarray(1, u8), depth=K(3), on_value=np.bool_(True), off_value=np.bool_(False), axis=-1)
    unique, twice = np.array([[4], [1], [3]], s32), np.array([[1], [1], [3]], s32)
    for dtype in (f32, s32, f64):
        one("ScatterNd", indices=twice, updates=f(3, 2).astype(dtype), shape=K([5, 2]))
        one("TensorScatterAdd", tensor=f(5, 2).astype(dtype), indices=twice, updates=f(3, 2).astype(dtype))
        one("TensorScatterUpdate", tensor=f(5, 2).astype(dtype), indices=unique, updates=f(3, 2).astype(dtype))
        one("TensorScatterMax", tensor=f(5, 2, low=-9, high=9).astype(dtype), indices=twice, updates=f(3, 2, low=-9, high=9).astype(dtype))
        one("TensorScatterMin", tensor=f(5, 2, low=-9, high=9).astype(dtype), indices=twice, updates=f(3, 2, low=-9, high=9).astype(dtype))
        one("UnsortedSegmentSum", data=f(4, 2).astype(dtype), segment_ids=np.array([2, 0, 2, -1], s32), num_segments=K(3))
    pairs = np.array([[[0, 1], [2, 0]], [[1, 1], [0, 0]]], s64)
    one("ScatterNd", indices=pairs, updates=f(2, 2), shape=K([3, 2], s64))
    one("ScatterNd", indices=pairs, updates=f(2, 2, 4), shape=K([3, 2, 4], s64))
    one("TensorScatterUpdate", tensor=f(3, 2), indices=pairs, updates=f(2, 2))
    one("TensorScatterAdd", tensor=f(3, 2), indices=pairs, updates=f(2, 2))
    one("UnsortedSegmentSum", data=f(2, 3), segment_ids=np.array([[0, 1, 1], [2, 0, 2]], s32), num_segments=K(4))
    one("UnsortedSegmentSum", data=f(3, 2, 2), segment_ids=np.array([1, 1, 0], s64), num_segments=K(2, s64))


# ---- along dimensions ----

def reductions():
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"):
        for axes, keep in (([0], False), ([1], True), ([-1], False), ([0, 2], False), ([0, 1, 2], True), ([], False), ([1, -1], True)):
            one(op, input=f(2, 3, 4), axis=K(axes), keep_dims=keep)
        one(op, input=f(2, 3), axis=K(1))
        one(op, input=f(3, dtype=f64), axis=K(0, s64))
        for dtype in (f16, bf16):
            one(op, input=f(3, 4, dtype=dtype), axis=K([1]))
        for dtype in (s32, s64, s8, s16, u8, u16, u32, u64):
            one(op, input=i(0 if np.dtype(dtype).kind == "u" else -3, 4, 2, 4, dtype=dtype), axis=K([1]), _may_fail=True)
        one(op, input=c(2, 3), axis=K([1]), _may_fail=True)
        if op in ("Sum", "Prod"):
            one(op, input=f(2, 0), axis=K([1]))
    for dtype in (s8, s16, s32, s64, u8, u16, u32, u64):
        ends = np.iinfo(dtype)
        one("Max", input=np.array([[ends.min, ends.min], [ends.min, ends.max]], dtype), axis=K([1]), _may_fail=True)
        one("Min", input=np.array([[ends.max, ends.max], [ends.min, ends.max]], dtype), axis=K([1]), _may_fail=True)
    one("Max", input=np.full((1, 2), -np.inf, f32), axis=K([1]))
    one("Min", input=np.full((1, 2), np.inf, f32), axis=K([1]))
    for op in ("All", "Any"):
        for axes, keep in (([0], False), ([1], True), ([0, 1], False), ([-1], False)):
            one(op, input=b(3, 4), axis=K(axes), keep_dims=keep)
        one(op, input=np.array([[0, 0], [0, 1], [1, 1]], np.bool_), axis=K([1]))
    for op, key in (("Softmax", "logits"), ("LogSoftmax", "logits")):
        for shape in ((2, 5), (4,), (2, 3, 2)):
            one(op, **{key: f(*shape)})
        for dtype in (f64, f16, bf16):
            one(op, **{key: f(2, 3, dtype=dtype)})
        one(op, **{key: np.array([[1000, 1001], [-1000, -1001]], f32)})
    for op, keys in (("BiasAdd", {"data_format": ("NHWC", "NCHW")}), ("BiasAddV1", {})):
        one(op, value=f(2, 3), bias=f(3))
        one(op, value=f(2, 2, 2, 3), bias=f(3))
        one(op, value=f(2, 4, 3), bias=f(3))
        one(op, value=i(0, 9, 2, 3), bias=i(0, 9, 3))
    one("BiasAdd", value=f(2, 3, 2, 2), bias=f(3), data_format="NCHW")
    one("BiasAdd", value=f(2, 3, 2), bias=f(3), data_format="NCHW")
    for shape, layout in (((2, 3), "NHWC"), ((2, 2, 2, 3), "NHWC"), ((2, 3, 2, 2), "NCHW"), ((2, 4, 3), "NHWC")):
        one("BiasAddGrad", out_backprop=f(*shape), data_format=layout)
    for dtype in (f32, f64, bf16):
        one("L2Loss", t=f(2, 3, dtype=dtype))
    one("L2Loss", t=f(5))
    soft = np.array([[0.2, 0.3, 0.5], [1, 0, 0]], f32)
    one("SoftmaxCrossEntropyWithLogits", features=f(2, 3), labels=soft)
    one("SoftmaxCrossEntropyWithLogits", features=f(2, 3, dtype=f64, low=-50, high=50), labels=soft.astype(f64))
    one("SoftmaxCrossEntropyWithLogits", features=f(2, 3), labels=soft[:1])
    one("SparseSoftmaxCrossEntropyWithLogits", features=f(3, 4), labels=np.array([0, 3, 1], s32))
    one("SparseSoftmaxCrossEntropyWithLogits", features=f(3, 4, low=-50, high=50), labels=np.array([2, 2, 0], s64))
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1, -1):
            for out in (s32, s64):
                one(op, input=f(3, 4), dimension=K(axis), output_type=out)
        one(op, input=np.array([3, 1, 3, 1, 2], f32), dimension=K(0))
        one(op, input=i(-9, 9, 2, 5), dimension=K(1, s64))
        one(op, input=i(0, 9, 2, 5, dtype=u8), dimension=K(1))
        one(op, input=f(2, 3, 2, dtype=bf16), dimension=K(1))
    for op in ("Cumsum", "Cumprod"):
        for axis in (0, 1, -1):
            for exclusive in (False, True):
                for reverse in (False, True):
                    one(op, x=f(3, 4), axis=K(axis), exclusive=exclusive, reverse=reverse)
        one(op, x=i(-3, 4, 5), axis=K(0))
        one(op, x=i(-3, 4, 2, 3, dtype=s64), axis=K(1, s64), exclusive=True)
        one(op, x=c(4), axis=K(0))
    for k in (0, 1, 3):
        one("TopKV2", input=f(2, 5), k=K(k))
    one("TopKV2", input=np.array([2, 7, 2, 7, 1], s32), k=K(4))
    one("TopKV2", input=f(2, 2, 3, dtype=f64), k=K(2))
    one("TopKV2", input=f(6), k=K(3), index_type=s64)


def products():
    for ta in (False, True):
        for tb in (False, True):
            one("MatMul", a=f(*((4, 2) if ta else (2, 4))), b=f(*((3, 4) if tb else (4, 3))), transpose_a=ta, transpose_b=tb)
            for op in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
                more = {"Tout": f32} if op == "BatchMatMulV3" else {}
                one(op, x=f(2, *((4, 2) if ta else (2, 4))), y=f(2, *((3, 4) if tb else (4, 3))), adj_x=ta, adj_y=tb, **more)
                more = {"Tout": c64} if op == "BatchMatMulV3" else {}
                one(op, x=c(2, *((2, 1) if ta else (1, 2))), y=c(2, *((3, 2) if tb else (2, 3))), adj_x=ta, adj_y=tb, **more)
    for dtype in (f64, f16, bf16, s32, c64):
        one("MatMul", a=f(2, 3).astype(dtype), b=f(3, 2).astype(dtype))
    for op in ("BatchMatMulV2", "BatchMatMulV3"):
        more = {"Tout": f32} if op == "BatchMatMulV3" else {}
        for x, y in (((2, 1, 2, 3), (3, 3, 2)), ((2, 3), (4, 3, 2)), ((2, 2, 2, 3), (1, 2, 3, 1)), ((1, 2, 3), (2, 3, 2))):
            one(op, x=f(*x), y=f(*y), **more)
    one("BatchMatMulV3", x=i(-9, 9, 2, 2, 3, dtype=s8), y=i(-9, 9, 2, 3, 2, dtype=s8), Tout=s32, _may_fail=True)
    one("BatchMatMulV3", x=i(0, 9, 2, 2, 3, dtype=u8), y=i(-9, 9, 2, 3, 2, dtype=s8), Tout=s32, _may_fail=True)
    for equation, *shapes in (("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("bsd,de->bse", (2, 2, 3), (3, 2)),
                              ("bqhd,bkhd->bhqk", (1, 2, 2, 3), (1, 3, 2, 3)), ("i,j->ij", (3,), (2,)), ("ab,ab->", (2, 3), (2, 3)), ("abc,cd->a", (2, 2, 3), (3, 2)),
                              ("...d,de->...e", (2, 2, 3), (3, 2)), ("...ij,...jk->...ik", (2, 2, 3), (2, 3, 2)), ("b...,b...->b...", (2, 3), (2, 3)), ("a,a->a", (3,), (3,)),
                              ("ab,bc->ac", (1, 3), (3, 1)), ("abc->ca", (2, 3, 2)), ("abc->b", (2, 3, 2)), ("ab->", (2, 3)), ("ij->ji", (2, 3)), ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
                              ("A,aB->BA", (2,), (2, 3)), ("...a->a...", (2, 2, 3)), ("...ij,...jk->...ik", (2, 2, 3), (1, 3, 2))):
        one("Einsum", inputs=[f(*s) for s in shapes], equation=equation)
    one("Einsum", inputs=[f(2, 3, dtype=f64), f(3, 2, dtype=f64)], equation="ij,jk->ik")


# ---- images ----

def turned(op, arguments, images, layouts, outputs=1):
    """The case in NCHW, which TensorFlow does not compute on the CPU: from the one in NHWC. layouts: attributes by dimension."""
    build = Build()
    made = build.make(lambda **a: getattr(tf.raw_ops, op)(**a, name="y"), arguments)
    values = build.run(made[:outputs])
    swap = lambda l: [l[0], l[3], l[1], l[2]]
    feeds = []
    definition = tidy(build.graph)
    for n in definition.node:
        if n.name == "y":
            n.attr["data_format"].s = b"NCHW"
            for key in layouts:
                held = list(n.attr[key].list.i)
                n.attr[key].list.i[:] = swap(held) if len(held) == 4 else held[:2] + held[6:] + held[2:6]
        if n.op == "Const" and n.name in images:
            held = list(n.attr["value"].tensor.int_val)
            n.attr["value"].tensor.int_val[:] = swap(held)
    for w, t, a in build.feeds:
        feeds.append((w, t.name, np.transpose(a, (0, 3, 1, 2)) if t.op.name in images else a))
    write(op, definition, feeds, [o.name for o in made[:outputs]], [np.transpose(v, (0, 3, 1, 2)) if "y" in images and v.ndim == 4 else v for v in values])


def both_layouts(op, images, layouts, outputs=1, **arguments):
    one(op, **arguments, _outputs=list(range(outputs)))
    turned(op, arguments, images, layouts, outputs)


def windows():
    image, kernel = f(2, 5, 4, 2), f(3, 2, 2, 3)
    for padding, explicit in (("SAME", []), ("VALID", []), ("EXPLICIT", [0, 0, 1, 2, 0, 1, 0, 0])):
        for stride, dilation in (([1, 1, 1, 1], [1, 1, 1, 1]), ([1, 2, 2, 1], [1, 1, 1, 1]), ([1, 1, 1, 1], [1, 2, 1, 1]), ([1, 2, 1, 1], [1, 1, 1, 1])):
            same = dict(strides=stride, padding=padding, explicit_paddings=explicit, dilations=dilation)
            keys = ["strides", "dilations"] + (["explicit_paddings"] if explicit else [])
            both_layouts("Conv2D", ("input", "y"), keys, input=image, filter=kernel, **same)
            size = shape_of("Conv2D", input=image, filter=kernel, **same)
            if dilation[1] == 1:
                both_layouts("Conv2DBackpropInput", ("input_sizes", "out_backprop", "y"), keys, input_sizes=K(image.shape), filter=kernel, out_backprop=f(*size), **same)
                both_layouts("Conv2DBackpropFilter", ("input", "out_backprop"), keys, input=image, filter_sizes=K(kernel.shape), out_backprop=f(*size), **same)
            if stride[1] == stride[2] and dilation[1] == 1:
                both_layouts("DepthwiseConv2dNative", ("input", "y"), keys, input=f(1, 5, 5, 2), filter=f(3, 2, 2, 2), **same)
    one("Conv2D", input=f(1, 4, 4, 4), filter=f(2, 2, 2, 4), strides=[1, 1, 1, 1], padding="VALID")  # in groups
    for dtype in (f64, f16, bf16):
        one("Conv2D", input=f(1, 3, 3, 1, dtype=dtype), filter=f(2, 2, 1, 1, dtype=dtype), strides=[1, 1, 1, 1], padding="SAME")
    image = f(1, 5, 4, 2, low=-9, high=9)
    for padding in ("SAME", "VALID"):
        for size, stride in (([1, 2, 2, 1], [1, 2, 2, 1]), ([1, 3, 2, 1], [1, 2, 1, 1]), ([1, 2, 3, 1], [1, 1, 1, 1]), ([1, 1, 2, 1], [1, 2, 3, 1])):
            same = dict(ksize=size, strides=stride, padding=padding)
            both_layouts("MaxPool", ("input", "y"), ("ksize", "strides"), input=image, **same)
            both_layouts("AvgPool", ("value", "y"), ("ksize", "strides"), value=image, **same)
            pooled = value_of("MaxPool", input=image, **same)
            both_layouts("MaxPoolGrad", ("orig_input", "orig_output", "grad", "y"), ("ksize", "strides"), orig_input=image, orig_output=pooled, grad=f(*pooled.shape), **same)
            both_layouts("AvgPoolGrad", ("orig_input_shape", "grad", "y"), ("ksize", "strides"), orig_input_shape=K(image.shape), grad=f(*pooled.shape), **same)
    for op, key in (("MaxPool", "input"), ("AvgPool", "value")):
        for dtype in (f64, f16, bf16):
            one(op, **{key: f(1, 4, 4, 1, dtype=dtype)}, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    one("MaxPool", input=image, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0])
    equal = np.array([1, 1, 2, 2, 2, 1], f32).reshape(1, 2, 3, 1)
    one("MaxPoolGrad", orig_input=equal, orig_output=np.array([2, 2], f32).reshape(1, 1, 2, 1), grad=f(1, 1, 2, 1), ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding="VALID")


def value_of(op, **arguments):
    build = Build()
    return build.run(build.make(getattr(tf.raw_ops, op), arguments))[0]


def shape_of(op, **arguments):
    return value_of(op, **arguments).shape


def normalisation():
    image = f(2, 3, 2, 3)
    channel = lambda **k: f(3, **k)
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        both_layouts(op, ("x", "y"), (), x=image, scale=channel(), offset=channel(), mean=channel(), variance=channel(low=0.2), is_training=False, epsilon=0.01)
        both_layouts(op, ("x", "y"), (), outputs=3, x=image, scale=channel(), offset=channel(), mean=np.zeros(0, f32), variance=np.zeros(0, f32), is_training=True, epsilon=0.01)
        one(op, x=f(1, 1, 1, 3), scale=channel(), offset=channel(), mean=np.zeros(0, f32), variance=np.zeros(0, f32), is_training=True, epsilon=0.01, _outputs=[0, 1, 2])
        one(op, x=image, scale=channel(), offset=channel(), mean=channel(), variance=channel(low=0.2), is_training=False, _outputs=[0, 1, 2])
    one("FusedBatchNormV3", x=image, scale=channel(), offset=channel(), mean=channel(), variance=channel(low=0.2), is_training=True, epsilon=0.01, exponential_avg_factor=0.25, _outputs=[0, 1, 2])
    for dtype in (f16, bf16):
        one("FusedBatchNormV3", x=f(2, 2, 2, 3, dtype=dtype), scale=channel(), offset=channel(), mean=channel(), variance=channel(low=0.2), is_training=False, _outputs=[0], _may_fail=True)
    mean, variance = image.mean((0, 1, 2)).astype(f32), image.var((0, 1, 2)).astype(f32)
    for op in ("FusedBatchNormGradV2", "FusedBatchNormGradV3"):
        more = {"reserve_space_3": np.zeros(0, f32)} if op.endswith("V3") else {}
        both_layouts(op, ("y_backprop", "x", "y"), (), outputs=3, y_backprop=f(2, 3, 2, 3), x=image, scale=channel(), reserve_space_1=mean, reserve_space_2=variance, **more, epsilon=0.01, is_training=True)
        one(op, y_backprop=f(2, 3, 2, 3), x=image, scale=channel(), reserve_space_1=mean, reserve_space_2=variance, **more, is_training=True, _outputs=[0, 1, 2])
        one(op, y_backprop=f(2, 3, 2, 3), x=image, scale=channel(), reserve_space_1=mean, reserve_space_2=variance, **more, epsilon=0.01, is_training=False, _outputs=[0, 1, 2])


def fused():
    """The operators of TensorFlow's own optimiser, also as its oneDNN version names them."""
    text = lambda words: tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(s=[w.encode() for w in words]))
    alpha = {"leakyrelu_alpha": tf.compat.v1.AttrValue(f=0.375)}
    after = {"Relu": tf.nn.relu, "Relu6": tf.nn.relu6, "Elu": tf.nn.elu, "LeakyRelu": lambda t: tf.nn.leaky_relu(t, 0.375), "Tanh": tf.tanh, "Sigmoid": tf.sigmoid}
    kinds = {"MatMul": (dict(a=f(2, 3), b=f(3, 4)), dict(transpose_a=False, transpose_b=False)), "Conv2D": (dict(input=f(1, 4, 4, 2), filter=f(2, 2, 2, 4)), dict(strides=[1, 2, 1, 1], padding="SAME")),
             "DepthwiseConv2dNative": (dict(input=f(1, 4, 4, 2), filter=f(2, 2, 2, 2)), dict(strides=[1, 1, 1, 1], padding="VALID"))}
    for kind, (inputs, attributes) in kinds.items():
        for words in (["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Relu6"], ["BiasAdd", "Elu"], ["BiasAdd", "LeakyRelu"], ["BiasAdd", "Tanh"], ["BiasAdd", "Sigmoid"], ["BiasAdd", "Add"],
                      ["BiasAdd", "Add", "Relu"]):
            for op in (f"_Fused{kind}", f"_MklFused{kind}", f"_MklNativeFused{kind}"):
                if words[1:] not in ([], ["LeakyRelu"], ["Add", "Relu"]) and op[1] == "M":
                    continue
                plain = Build()
                product = plain.make(lambda **a: getattr(tf.raw_ops, kind)(**a, **attributes, name="y"), inputs)[0]
                definition = tidy(plain.graph)
                bias, other = f(4), f(*product.shape)
                with plain.graph.as_default():
                    out = product
                    for w in words:
                        out = out + bias if w == "BiasAdd" else out + other if w == "Add" else after[w](out)
                values = plain.run([out])
                feeds = [(w, t.name, a) for w, t, a in plain.feeds]
                for n in definition.node:
                    if n.name == "y":
                        n.input.append("bias")
                        feeds.append(("feed", "bias:0", bias))
                        if "Add" in words:
                            n.input.append("other")
                            feeds.append(("feed", "other:0", other))
                for name in ("bias", "other")[:1 + ("Add" in words)]:
                    definition.node.add(name=name, op="Placeholder").attr["dtype"].type = tf.float32.as_datatype_enum
                renamed(op, definition, {"fused_ops": text(words), **(alpha if "LeakyRelu" in words else {})}, feeds, ["y:0"], values)


# ---- functions, conditionals, loops, lists ----

def control():
    @tf.function
    def up(a, z):
        return a + z, tf.matmul(a, z, transpose_b=True)

    @tf.function
    def down(a, z):
        return a - z, tf.matmul(z, a, transpose_b=True)

    spec = tf.TensorSpec([2, 3], tf.float32)
    for op in ("If", "StatelessIf"):
        for cond in (np.bool_(True), np.bool_(False), np.asarray(0, s32), np.asarray(-2, s32), np.asarray(0.5, f32)):
            graph(op, lambda cond, a, z, op=op: getattr(tf.raw_ops, op)(cond=cond, input=[a, z], Tout=[tf.float32, tf.float32], then_branch=up.get_concrete_function(spec, spec),
                  else_branch=down.get_concrete_function(spec, spec), output_shapes=[], name="y"), cond=cond, a=f(2, 3), z=f(2, 3))
    for op in ("PartitionedCall", "StatefulPartitionedCall"):
        graph(op, lambda a, z, op=op: getattr(tf.raw_ops, op)(args=[a, z], Tout=[tf.float32, tf.float32], f=down.get_concrete_function(spec, spec), name="y"), a=f(2, 3), z=f(2, 3))

    @tf.function
    def goes_on(k, v):
        return k < 4

    @tf.function
    def grows(k, v):
        return k + 1, v * 1.5 + tf.cast(k, tf.float32)

    specs = tf.TensorSpec([], tf.int32), tf.TensorSpec([3], tf.float32)
    for op in ("While", "StatelessWhile"):
        for start in (0, 3, 9):
            graph(op, lambda k, v, op=op: getattr(tf.raw_ops, op)(input=[k, v], cond=goes_on.get_concrete_function(*specs), body=grows.get_concrete_function(*specs), output_shapes=[], name="y"),
                  k=np.asarray(start, s32), v=f(3))
    raw = tf.raw_ops
    graph("TensorListStack", lambda x: raw.TensorListStack(input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[2]), element_shape=[2], element_dtype=tf.float32, name="y"), x=f(3, 2))
    graph("TensorListLength", lambda x: raw.TensorListLength(input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[2]), name="y"), x=f(3, 2))
    graph("TensorListGetItem", lambda x, k: raw.TensorListGetItem(input_handle=raw.TensorListFromTensor(tensor=x, element_shape=[2]), index=k, element_shape=[2], element_dtype=tf.float32, name="y"),
          x=f(3, 2), k=np.asarray(2, s32))
    for shape in ([2, 2], [-1, 2], -1):
        graph("TensorListSetItem", lambda x, z, k, shape=shape: raw.TensorListStack(input_handle=raw.TensorListSetItem(input_handle=raw.TensorListSetItem(input_handle=raw.TensorListReserve(
              element_shape=shape, num_elements=2, element_dtype=tf.float32), index=k, item=x), index=1 - k, item=z), element_shape=[2, 2], element_dtype=tf.float32, name="y"),
              x=f(2, 2), z=f(2, 2), k=np.asarray(1, s32))
    graph("TensorListReserve", lambda n: raw.TensorListLength(input_handle=raw.TensorListReserve(element_shape=[2], num_elements=n, element_dtype=tf.float32), name="y"), n=K(5))
    graph("TensorListReserve", lambda x: tf.scan(lambda s, e: s * 0.5 + e, x), x=f(4, 3))
    graph("TensorListGetItem", lambda x: tf.map_fn(lambda e: tf.reduce_sum(e * e), x), x=f(4, 3))
    for a in (f(3), i(0, 9, 2, 2), i(0, 9, 3, dtype=s64), b(3), c(2), f(2, dtype=bf16), f(2, dtype=f64), i(0, 9, 3, dtype=u8), f()):
        graph("Const", lambda a=a: tf.raw_ops.Identity(input=tf.constant(a), name="y"))


def folded():
    """Arithmetic of known integers, scalars among them, that gives a shape."""
    shape = lambda op, a, z: lambda x: tf.raw_ops.Reshape(tensor=x, shape=getattr(tf.raw_ops, op)(x=tf.constant(a), y=tf.constant(z)), name="y")
    for op, a, z in (("AddV2", [1, 2], 1), ("AddV2", 1, [1, 2]), ("AddV2", [1, 2], [1]), ("Sub", [4, 5], 2), ("Sub", 4, [2, 1]), ("Mul", [2, 3], 1), ("FloorDiv", [5, 7], 2), ("FloorDiv", 6, [3, 2]),
                     ("Maximum", [1, 3], 2), ("Minimum", [2, 4], 3)):
        graph("Reshape", shape(op, a, z), x=f(3, 2))
    graph("Fill", lambda: tf.raw_ops.Fill(dims=tf.raw_ops.Range(start=tf.raw_ops.Rank(input=tf.zeros([3])), limit=tf.raw_ops.Size(input=tf.zeros([2, 2])), delta=1), value=2.5, name="y"))
    graph("Fill", lambda: tf.raw_ops.Fill(dims=tf.raw_ops.Cast(x=tf.raw_ops.Shape(input=tf.zeros([3, 2]), out_type=tf.int64), DstT=tf.int32), value=2.5, name="y"))
    graph("Fill", lambda: tf.raw_ops.Fill(dims=tf.raw_ops.ExpandDims(input=tf.raw_ops.Prod(input=[2, 3], axis=[0]), axis=0), value=2.5, name="y"))


def spectral():
    """Blocks, sizes of images, matrices, frequencies, quantized values, segments."""
    for layout, shape in (("NHWC", (2, 4, 6, 3)),):
        one("SpaceToDepth", input=f(*shape), block_size=2, data_format=layout)
        one("DepthToSpace", input=f(2, 2, 3, 8), block_size=2, data_format=layout)
    one("SpaceToDepth", input=f(1, 3, 6, 2), block_size=3)
    one("SpaceToDepth", input=f(1, 2, 2, 1), block_size=2)
    for op in ("ResizeBilinear", "ResizeNearestNeighbor"):
        for size in ((7, 5), (2, 3), (3, 4), (1, 1), (8, 12)):
            for corners, half in ((False, False), (True, False), (False, True)):
                one(op, images=f(2, 3, 4, 2), size=K(size), align_corners=corners, half_pixel_centers=half)
    for size in ((7, 5), (2, 3), (3, 4), (1, 1), (8, 12)):
        for corners, half in ((False, False), (True, False), (False, True)):
            one("ResizeBicubic", images=f(2, 3, 4, 2), size=K(size), align_corners=corners, half_pixel_centers=half)
        for corners in (False, True):
            one("ResizeArea", images=f(2, 3, 4, 2), size=K(size), align_corners=corners)
    one("ResizeNearestNeighbor", images=i(0, 99, 1, 3, 2, 1, dtype=u8), size=K((6, 4)))
    for to in ((7, 5), (2, 3), (3, 4), (1, 1), (8, 12)):
        for corners, half in ((False, False), (True, False), (False, True)):
            one("ResizeNearestNeighborGrad", grads=f(2, *to, 2), size=K((3, 4)), align_corners=corners, half_pixel_centers=half)
            for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
                one(op, grads=f(2, *to, 2), original_image=f(2, 3, 4, 2), align_corners=corners, half_pixel_centers=half)
    one("ResizeNearestNeighborGrad", grads=i(0, 9, 1, 6, 4, 1), size=K((3, 2)))
    boxes = np.array([[0, 0, 1, 1], [0.1, 0.25, 0.8, 0.6], [1, 1, 0, 0], [-0.5, 0.2, 1.2, 1.5], [0.5, 0.5, 0.5, 0.5]], f32)
    for size in ((2, 3), (1, 4), (5, 1), (3, 3)):
        for method in ("bilinear", "nearest"):
            one("CropAndResize", image=f(2, 4, 5, 3), boxes=boxes, box_ind=np.array([0, 1, 1, 0, 1], s32), crop_size=K(size), method=method, extrapolation_value=-7.5)
    one("CropAndResize", image=i(0, 99, 1, 3, 3, 1, dtype=u8), boxes=boxes[1:3], box_ind=np.array([0, 0], s32), crop_size=K((2, 2)))
    for n, dtype in ((1, f32), (3, f64), (5, f32)):
        for adjoint in (False, True):
            one("MatrixInverse", input=f(2, n, n, dtype=dtype) + np.eye(n, dtype=dtype)[::-1] * 3, adjoint=adjoint)
            one("MatrixSolve", matrix=f(n, n, dtype=dtype) + np.eye(n, dtype=dtype)[::-1] * 3, rhs=f(n, 2, dtype=dtype), adjoint=adjoint)
    for length in (5, 8):
        one("RFFT", input=f(2, 8), fft_length=K([length]), Tcomplex=c64)
        one("IRFFT", input=c(2, 6), fft_length=K([length]), Treal=f32)
    one("RFFT2D", input=f(4, 6), fft_length=K([3, 4]), Tcomplex=c64)
    one("IRFFT2D", input=c(4, 4), fft_length=K([2, 5]), Treal=f32)
    one("RFFT3D", input=f(2, 3, 4), fft_length=K([1, 2, 3]), Tcomplex=c64)
    one("IRFFT3D", input=c(2, 3, 3), fft_length=K([2, 2, 4]), Treal=f32)
    for n, dtype in ((1, f32), (4, f32), (3, f64)):
        a = f(2, n, n, dtype=dtype)
        one("Cholesky", input=a @ a.transpose(0, 2, 1) + 3 * np.eye(n, dtype=dtype))
    one("MatrixDiag", diagonal=f(2, 3))
    one("MatrixDiagV3", diagonal=f(2, 3), k=K(0), num_rows=K(-1), num_cols=K(-1), padding_value=np.asarray(7, f32), align="RIGHT_LEFT")
    for n in (8, 6, 5):
        one("FFT", input=c(2, n))
        one("IFFT", input=c(n))
        one("RFFT", input=f(2, n), fft_length=K([n]), Tcomplex=c64)
        one("IRFFT", input=c(n // 2 + 1), fft_length=K([n]), Treal=f32)
    one("FFT2D", input=c(3, 4))
    one("IFFT2D", input=c(2, 3, 4, dtype=c128))
    one("FFT3D", input=c(2, 3, 4))
    one("IFFT3D", input=c(2, 2, 3))
    one("IRFFT2D", input=c(4, 4), fft_length=K([4, 6]), Treal=f32)
    one("RFFT2D", input=f(4, 6), fft_length=K([4, 6]), Tcomplex=c64)
    for a, to in ((f(3), s32), (i(0, 99, 4), f32), (f(2), u8), (i(0, 99, 3, 4, dtype=u8), f32), (f(2, dtype=f64), s32), (f(3, dtype=bf16), u16)):
        one("Bitcast", input=a, type=to)
    one("Erfinv", x=np.array([-0.99999, -0.9, -0.5, -0.01, 0, 0.3, 0.75, 0.999, 1, -1], f32))
    for bits, narrow in ((8, False), (8, True), (4, False)):
        one("FakeQuantWithMinMaxArgs", inputs=f(3, 4, low=-3, high=3), min=-1.1, max=2.3, num_bits=bits, narrow_range=narrow)
        one("FakeQuantWithMinMaxVars", inputs=f(3, 4, low=-3, high=3), min=np.asarray(-1.5, f32), max=np.asarray(2, f32), num_bits=bits, narrow_range=narrow)
        one("FakeQuantWithMinMaxVarsPerChannel", inputs=f(3, 2, low=-3, high=3), min=np.array([-1.5, 0], f32), max=np.array([2, 3.3], f32), num_bits=bits, narrow_range=narrow)
    for op in ("SegmentSum", "SegmentProd"):
        one(op, data=f(4, 2), segment_ids=K([0, 0, 2, 3]))
    for op in ("UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"):
        for dtype in (f32, f64, s32):
            one(op, data=f(4, 2, low=-9, high=9).astype(dtype), segment_ids=np.array([2, 0, 2, -1], s32), num_segments=K(4))


def data_decides():
    """Shapes that depend on values, which are known; conditions of TensorFlow 1."""
    one("Where", condition=K([[1, 0, 3], [0, 0, 2]]))
    one("Where", condition=K([True, False, True], np.bool_))
    one("Where", condition=K([0, 0]))
    for op, outputs in (("Unique", ("y", "idx")), ("UniqueWithCounts", ("y", "idx", "count"))):
        graph(op, lambda x, op=op: list(getattr(tf.raw_ops, op)(x=x)), x=K([4, 1, 4, -7, 1, 4]))
    raw = tf.raw_ops
    for x in (f(3, 4), i(-1, 2, 5), b(2, 3), np.array([0, -0.0, np.nan, 1], f64), i(0, 2, 2, 2, 3, dtype=u8), b(0)):
        one("Where", condition=x)
    for x in (i(0, 4, 9), i(-3, 3, 9, dtype=s64), np.array([2.5, 0, -1, 2.5, 1e30, -1], f32), i(0, 3, 7, dtype=u8), np.array([1, 3, 1], f16)):
        for op in ("Unique", "UniqueWithCounts"):
            graph(op, lambda x, op=op: list(getattr(raw, op)(x=x)), x=x)
    graph("Where", lambda x: raw.GatherNd(params=x, indices=raw.Where(condition=x > 0.5)), x=f(3, 4))
    graph("Where", lambda x: raw.Fill(dims=raw.Shape(input=raw.Where(condition=raw.Unique(x=x)[0] > 1)), value=2.5), x=i(0, 5, 8))
    graph("Reshape", lambda x: raw.Reshape(tensor=x, shape=raw.Pack(values=[raw.Max(input=raw.Cast(x=x, DstT=tf.int32), axis=[0, 1]), -1])), x=np.array([[1, 2], [0.5, 1]], f32))
    for taken in (True, False):
        def one_switch(x, p):
            no, yes = raw.Switch(data=x, pred=p)
            return list(raw.Merge(inputs=[tf.exp(no), yes * yes - 1]))
        graph("Switch", one_switch, x=f(2, 3), p=np.asarray(taken))

        def constants(x, p):
            no, yes = raw.Switch(data=p, pred=p)
            no, yes = tf.identity(no), tf.identity(yes)
            with tf.control_dependencies([no]):
                a = tf.constant(np.asarray([1.5, 2], f32))
            with tf.control_dependencies([yes]):
                b = tf.constant(np.asarray([-3, 4], f32))
            return [raw.Merge(inputs=[a, b])[0] + x, raw.Merge(inputs=[b, a])[1]]
        graph("Merge", constants, x=f(2), p=np.asarray(taken))
        build = Build()
        [y] = build.make(lambda x, p: [(lambda sides: raw.Merge(inputs=[tf.exp(sides[0]), sides[1] - 1])[0])(raw.Switch(data=x, pred=p, name="y"))], {"x": f(2, 3), "p": np.asarray(taken)})
        values = build.run([y])
        renamed("_SwitchN", tidy(build.graph), {"num_outs": attr_value_pb2.AttrValue(i=2)}, [(w, t.name, v) for w, t, v in build.feeds], [y.name], values)
        for inner in (True, False):
            def nested(x, p, q):
                no, yes = raw.Switch(data=x, pred=p)
                q_no, q_yes = raw.Switch(data=q, pred=p)
                a, b = raw.Switch(data=yes, pred=q_yes)
                return raw.Merge(inputs=[raw.Merge(inputs=[a + 1, b * 2])[0], tf.sin(no)])[0]
            graph("Switch", nested, x=f(3), p=np.asarray(taken), q=np.asarray(inner))


def circles():
    """Loops of version 1, which are circles of the graph."""
    tf.compat.v1.disable_control_flow_v2()
    loop = tf.compat.v1.while_loop

    def sums(x, n):
        return loop(lambda k, y, s: k < n, lambda k, y, s: [k + 1, y * 1.5 - x, s + tf.reduce_sum(y)], [tf.constant(0), x, tf.constant(0.0)])
    for times in (0, 1, 5):
        graph("Exit", sums, x=f(2, 3), n=np.asarray(times, s32))
        graph("Exit", lambda x, n: sums(x, n)[2], x=f(2, 3), n=np.asarray(times, s32))

    def nested(x, n):
        def row(k, y):
            inner = loop(lambda j, z: j <= k, lambda j, z: [j + 1, tf.sin(z) + x], [tf.constant(0), y])
            return [k + inner[0], inner[1] / tf.cast(n, tf.float32)]
        return loop(lambda k, y: k < n, row, [tf.constant(0), x])
    graph("NextIteration", nested, x=f(4), n=np.asarray(9, s32))

    def chosen(x, n):
        def step(k, y):
            return [k + 1, tf.compat.v1.cond(tf.equal(k % 2, 0), lambda: y * x, lambda: y - 1)]
        return loop(lambda k, y: tf.logical_and(k < n, tf.reduce_max(y) < 50), step, [tf.constant(0), x])
    graph("LoopCond", chosen, x=f(3), n=np.asarray(7, s32))

    def after_another(x, n):
        first = loop(lambda k, y: k < n, lambda k, y: [k + 1, tf.reshape(tf.transpose(tf.reshape(y, [2, 3])), [6])], [tf.constant(0), x])
        return tf.compat.v1.cond(first[0] > 2, lambda: loop(lambda k, y: k < 2 * n, lambda k, y: [k + 1, y + first[1]], [first[0], x])[1], lambda: first[1])
    for times in (2, 3):
        graph("Enter", after_another, x=f(6), n=np.asarray(times, s32))

    def gradient(x, n):
        y = loop(lambda k, y: k < 3, lambda k, y: [k + 1, y * x], [tf.constant(0), x], maximum_iterations=3)[1]
        return y
    graph("Exit", gradient, x=f(2), n=np.asarray(1, s32))

    def called(x, n):
        @tf.function(autograph=False)
        def inside(x, n):
            return sums(x, n)[1]
        return raw_call(inside, x, n)

    def raw_call(inside, x, n):
        concrete = inside.get_concrete_function(tf.TensorSpec([2], tf.float32), tf.TensorSpec([], tf.int32))
        return tf.raw_ops.StatefulPartitionedCall(args=[x, n], Tout=[tf.float32], f=concrete)[0]
    graph("Exit", called, _may_fail=True, x=f(2), n=np.asarray(4, s32))


def least_inputs(op):
    """How many inputs it must have: of a list the smallest length, but one where it may be longer."""
    definition = op_def_registry.get(op)
    least = {a.name: min(a.minimum, 1) for a in definition.attr}
    return sum(least.get(a.number_attr or a.type_list_attr, 1) for a in definition.input_arg)


for part in (unary, binary, gradients, types, same, internal, variables, arrays, slices, tables, reductions, products, windows, normalisation, fused, control, folded, spectral, data_decides, circles):
    rng = np.random.default_rng(27)
    part()
known = sorted(op for op in counts if op_def_registry.get(op))
text = "# made by tests/live/lower_ops\n" + "".join(f"inputs {op} {least_inputs(op)}\n" for op in known) + "\n".join(lines)
print(f"lower_ops: {sum(counts.values())} graphs of {len(counts)} operators, {len(text) / 1e6:.2f} MB; {len(refused)} that TensorFlow's CPU refuses")
if "--update" in sys.argv:
    CORPUS.parent.mkdir(parents=True, exist_ok=True)
    CORPUS.write_text(text)
elif CORPUS.read_text() != text:
    sys.exit("lower_ops: the corpus differs: tests/live/lower_ops --update")
