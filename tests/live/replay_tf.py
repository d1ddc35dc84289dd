#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's graphs and SavedModels of every family of operators, with random feeds, replayed on ref, fast and
TensorFlow itself and compared with what TensorFlow gave; and their bundles.

    replay_tf [NAME...]       only the programs whose name contains one of these
    REPRISE, ENGINES          the program (build/reprise), engines ("ref fast" and TensorFlow's own library)
"""
import json, os, pathlib, subprocess, sys, tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
try:
    import numpy as np
    import tensorflow as tf
except ImportError as why:
    print(f"replay_tf: skipped: {why}")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", ROOT / "build" / "reprise")
LIBRARY = pathlib.Path(tf.__file__).parent / "libtensorflow_cc.so.2"
ENGINES = os.environ.get("ENGINES", f"ref fast tf:{LIBRARY}").split()
scratch = tempfile.TemporaryDirectory()
to = scratch.name
rng = np.random.default_rng(5)
fetches = {}


def f(*shape, low=None, dtype=np.float32):
    a = rng.standard_normal(shape)
    return (np.abs(a) + low if low is not None else a).astype(dtype)


def i(top, *shape, dtype=np.int32):
    return rng.integers(0, top, shape).astype(dtype)


def graph(name, function, *arrays):
    """The function's graph, with placeholders in0 ... and identities out_0 ..."""
    g = tf.Graph()
    with g.as_default():
        ins = [tf.compat.v1.placeholder(a.dtype, a.shape, name=f"in{k}") for k, a in enumerate(arrays)]
        outs = function(*ins)
        outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
        outs = [tf.identity(o, name=f"out_{k}") for k, o in enumerate(outs)]
    with tf.compat.v1.Session(graph=g) as s:
        values = s.run(outs, dict(zip(ins, arrays)))
    open(f"{to}/{name}.pb", "wb").write(g.as_graph_def().SerializeToString())
    np.savez(f"{to}/{name}.npz", **{f"in{k}": a for k, a in enumerate(arrays)}, **{f"out{k}": v for k, v in enumerate(values)})
    fetches[name] = [w for k in range(len(outs)) for w in ("--fetch", f"out_{k}")]


raw = tf.raw_ops
x, y, m = f(4, 6), f(4, 6), f(6, 5)
for name, fn in {"erf": tf.math.erf, "erfc": tf.math.erfc, "gelu": tf.nn.gelu, "gelu_tanh": lambda a: tf.nn.gelu(a, approximate=True),
                 "selu": tf.nn.selu, "swish": tf.nn.swish, "softplus": tf.nn.softplus, "sinh": tf.sinh, "atan": tf.atan,
                 "is_nan": tf.math.is_nan, "is_inf": tf.math.is_inf, "cumsum": lambda a: tf.cumsum(a, 1),
                 "cumsum_back": lambda a: tf.cumsum(a, 0, exclusive=True, reverse=True), "cumprod": lambda a: tf.math.cumprod(a, 1, exclusive=True),
                 "argmax": lambda a: tf.argmax(a, 1), "argmin": lambda a: tf.argmin(a, 0, output_type=tf.int32),
                 "topk": lambda a: tf.math.top_k(a, 3), "reverse": lambda a: tf.reverse(a, [1]), "norm": lambda a: tf.norm(a, axis=1),
                 "band": lambda a: tf.linalg.band_part(a, 1, 2), "lower": lambda a: tf.linalg.band_part(a, -1, 0),
                 "logsumexp": lambda a: tf.reduce_logsumexp(a, 1), "l2_normalize": lambda a: tf.nn.l2_normalize(a, 1),
                 "moments": lambda a: tf.nn.moments(a, [1]), "clip": lambda a: tf.clip_by_value(a, -0.5, 0.5),
                 "var": lambda a: tf.math.reduce_variance(a, 1), "std": lambda a: tf.math.reduce_std(a), "any": lambda a: tf.reduce_any(a > 1, 1)}.items():
    graph(f"one_{name}", fn, x)
for name, fn in {"floormod": tf.math.floormod, "floordiv": tf.math.floordiv, "xlogy": lambda a, b: tf.math.xlogy(a, tf.abs(b)),
                 "xdivy": tf.math.xdivy, "mul_no_nan": tf.math.multiply_no_nan, "atan2": tf.atan2,
                 "where": lambda a, b: tf.where(a > b, a, 2 * b), "squared": tf.math.squared_difference}.items():
    graph(f"two_{name}", fn, x, y)
n, d = i(20, 5, 4) - 10, i(6, 5, 4) + 1
graph("int_floormod", tf.math.floormod, n, d - 8 * (d > 3).astype(np.int32))
graph("int_mix", lambda a, b: (a // b, a % b, tf.bitwise.bitwise_and(a, b), tf.bitwise.left_shift(b, 2), tf.cast(a, tf.float32)), n, d)
graph("complex", lambda a, b: (tf.math.real(tf.complex(a, b)), tf.abs(tf.complex(a, b)), tf.matmul(tf.complex(a, b), tf.complex(b, a), adjoint_b=True)), x, y)
a3, b3 = f(2, 5, 3, 4), f(1, 5, 4, 6)
graph("batch", lambda a, b: tf.matmul(a, b), a3, b3)
graph("batch_wide", lambda a, b: tf.matmul(a, b), f(4, 6), f(3, 6, 2))
graph("batch_turned", lambda a, b: tf.matmul(a, b, transpose_a=True, transpose_b=True), f(2, 4, 3), f(2, 6, 4))
for k, (eq, sa, sb) in enumerate([("bsd,de->bse", (2, 3, 4), (4, 5)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)),
                                  ("...d,de->...e", (2, 3, 4), (4, 5)), ("ij,jk->ki", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("i,j->ij", (3,), (4,)),
                                  ("abc,cd->a", (2, 3, 4), (4, 5)), ("ab,ab->", (3, 4), (3, 4)), ("bhqk,bkhd->bqhd", (2, 3, 4, 6), (2, 6, 3, 5))]):
    graph(f"einsum_{k}", lambda a, b, eq=eq: tf.einsum(eq, a, b), f(*sa), f(*sb))
graph("einsum_one", lambda a: raw.Einsum(inputs=[a], equation="abc->ca"), f(2, 3, 4))
t3 = f(4, 5, 6)
graph("slices", lambda a: (a[..., 1], a[:, tf.newaxis, 2:4], a[::-1], a[3:0:-2, ..., ::2], a[-2, 1:, tf.newaxis, -3:-1], a[:, 4:1:-1], a[1:1]), t3)
graph("gathers", lambda a, k, q: (tf.gather(a, k, axis=1), tf.gather(a, q, axis=1, batch_dims=1), tf.gather_nd(a, tf.stack([k, k], 1)), tf.gather(a, k)), t3, i(4, 3), i(5, 4, 2))
graph("scatters", lambda k, u: (tf.scatter_nd(k[:, tf.newaxis], u, [7, 3]), tf.tensor_scatter_nd_update(tf.ones([7, 3]), k[:, tf.newaxis], u), tf.tensor_scatter_nd_add(tf.ones([7, 3]), k[:, tf.newaxis], u), tf.math.unsorted_segment_sum(u, k, 7)), np.array([1, 4, 6], np.int32), f(3, 3))
graph("one_hot", lambda k: (tf.one_hot(k, 5), tf.one_hot(k, 5, axis=0), tf.one_hot(k, 4, on_value=2.0, off_value=-1.0)), i(5, 3))
graph("arrays", lambda a: (tf.concat([a, 2 * a], 1), tf.stack(tf.unstack(a), 2), tf.split(a, [2, -1], 1)[1], tf.tile(a, [1, 2, 3]), tf.transpose(a, [2, 0, 1]), tf.pad(a, [[1, 0], [0, 2], [1, 1]]),
                           tf.pad(a, [[0, 0], [2, 1], [0, 3]], "REFLECT"), tf.pad(a, [[1, 1], [0, 0], [2, 2]], "SYMMETRIC"), tf.squeeze(a[:1], 0), tf.expand_dims(a, 1), tf.broadcast_to(a[:, :1], [4, 5, 6]), tf.reshape(a, [-1, 10])), t3)
graph("shapes", lambda a: (tf.reshape(a, [tf.shape(a)[0], -1]), tf.zeros(tf.shape(a)[1:]), tf.range(tf.shape(a)[1]), tf.fill([tf.size(a) // 4], 2.5)), t3)
image, kernel = f(2, 9, 8, 3), f(3, 3, 3, 4)
for pad in ("SAME", "VALID", [[0, 0], [1, 2], [0, 1], [0, 0]]):
    name = pad.lower() if isinstance(pad, str) else "given"
    for stride in (1, 2):
        graph(f"conv_{name}_{stride}", lambda a, b, p=pad, s=stride: tf.nn.conv2d(a, b, s, p), image, kernel)
        shape = tf.nn.conv2d(image, kernel, stride, pad).shape
        graph(f"conv_input_{name}_{stride}", lambda b, g, p=pad, s=stride: raw.Conv2DBackpropInput(input_sizes=image.shape, filter=b, out_backprop=g, strides=[1, s, s, 1],
              padding=p if isinstance(p, str) else "EXPLICIT", explicit_paddings=[] if isinstance(p, str) else sum(p, [])), kernel, f(*shape))
        graph(f"conv_kernel_{name}_{stride}", lambda a, g, p=pad, s=stride: raw.Conv2DBackpropFilter(input=a, filter_sizes=kernel.shape, out_backprop=g, strides=[1, s, s, 1],
              padding=p if isinstance(p, str) else "EXPLICIT", explicit_paddings=[] if isinstance(p, str) else sum(p, [])), image, f(*shape))
graph("conv_dilated", lambda a, b: tf.nn.conv2d(a, b, 1, "SAME", dilations=2), image, kernel)
graph("depthwise", lambda a, b: tf.nn.depthwise_conv2d(a, b, [1, 2, 2, 1], "SAME"), image, f(3, 3, 3, 2))
for pad in ("SAME", "VALID"):
    graph(f"pool_{pad.lower()}", lambda a, p=pad: (tf.nn.max_pool2d(a, 3, 2, p), tf.nn.avg_pool2d(a, 2, 1, p), tf.nn.avg_pool2d(a, 3, 2, p)), image)
    pooled = tf.nn.max_pool2d(image, 3, 2, pad)
    graph(f"pool_grads_{pad.lower()}", lambda a, o, g, p=pad: (raw.MaxPoolGrad(orig_input=a, orig_output=o, grad=g, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding=p),
          raw.AvgPoolGrad(orig_input_shape=tf.constant(image.shape), grad=g, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding=p)), image, pooled.numpy(), f(*pooled.shape))
c = [f(3), f(3), f(3), f(3, low=0.2)]
graph("batch_norm", lambda a, s, o, mean, v: raw.FusedBatchNormV3(x=a, scale=s, offset=o, mean=mean, variance=v, is_training=False, epsilon=1e-3)[0], image, *c)
graph("batch_norm_training", lambda a, s, o: list(raw.FusedBatchNormV3(x=a, scale=s, offset=o, mean=[], variance=[], is_training=True, epsilon=1e-3, exponential_avg_factor=1.0)[:3]), image, *c[:2])
graph("batch_norm_grad", lambda g, a, s: list(raw.FusedBatchNormGradV3(y_backprop=g, x=a, scale=s, reserve_space_1=tf.reduce_mean(a, [0, 1, 2]), reserve_space_2=tf.math.reduce_variance(a, [0, 1, 2]), reserve_space_3=[], is_training=True, epsilon=1e-3)[:3]), f(2, 9, 8, 3), image, c[0])
graph("loss_sparse", lambda a, k: tf.nn.sparse_softmax_cross_entropy_with_logits(k, a), f(4, 6), i(6, 4))
graph("loss_dense", lambda a, b: tf.nn.softmax_cross_entropy_with_logits(tf.nn.softmax(b), a), x, y)
graph("layer_norm", lambda a, s, o: tf.nn.batch_normalization(a, *tf.nn.moments(a, [-1], keepdims=True), o, s, 1e-5), f(2, 5, 8), f(8), f(8))
for dtype in (np.float64, np.float16):
    graph(f"types_{np.dtype(dtype).name}", lambda a, b: (tf.matmul(a, b), tf.nn.softmax(a), tf.reduce_sum(a, 0), tf.tanh(a)), f(4, 6, dtype=dtype), f(6, 5, dtype=dtype))
graph("large_constant", lambda a: tf.matmul(a, tf.constant(f(6, 4000))), x)


def attention(q, k, v, mask):
    s = tf.einsum("bqhd,bkhd->bhqk", q, k) / 2.0 + (1.0 - tf.cast(mask, tf.float32)[:, tf.newaxis, tf.newaxis]) * -1e9
    return tf.einsum("bhqk,bkhd->bqhd", tf.nn.softmax(s), v)


graph("choice", lambda a, b: tf.cond(tf.reduce_sum(a) > 0, lambda: (a + b, tf.matmul(a, b, transpose_b=True)), lambda: (a - b, tf.matmul(b, a, transpose_b=True))), x, y)
graph("loop", lambda a: tf.while_loop(lambda k, v: k < 5, lambda k, v: (k + 1, tf.tanh(tf.matmul(v, tf.constant(f(6, 6)))) + v), (0, a)), x)
graph("scan", lambda a: tf.scan(lambda s, e: s * 0.5 + e, a), x)
q = [f(2, 7, 3, 4) for _ in range(3)]
graph("attention", attention, *q, i(2, 2, 7))


# Gradients through a convolution, a product and a loss.
def frozen(a, k, w0, w1):
    h = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(a, w0, 1, "SAME")), 2, 2, "SAME")
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(k, tf.matmul(tf.reshape(h, [2, -1]), w1)))
    return [loss] + tf.gradients(loss, [w0, w1])


graph("train_step", frozen, image, i(5, 2), kernel, f(80, 5))


class Bert(tf.Module):
    """Embeddings, a block of attention and a feed-forward part, over variables."""

    def __init__(self, vocabulary=40, width=16, heads=2):
        self.heads = heads
        self.words = tf.Variable(f(vocabulary, width), name="words")
        self.places = tf.Variable(f(12, width), name="places")
        self.weights = [tf.Variable(f(*s) / 4, name=f"w{k}") for k, s in enumerate([(width, width)] * 4 + [(width, 32), (32, width)])]
        self.scale = [tf.Variable(np.ones(width, np.float32), name=f"s{k}") for k in range(2)]

    @tf.function(input_signature=[tf.TensorSpec([3, 7], tf.int32, name="ids"), tf.TensorSpec([3, 7], tf.int32, name="mask")])
    def run(self, ids, mask):
        def norm(a, scale):
            mean, var = tf.nn.moments(a, [-1], keepdims=True)
            return (a - mean) * tf.math.rsqrt(var + 1e-6) * scale

        h = tf.gather(self.words, ids) + self.places[: tf.shape(ids)[1]]
        q, k, v = [tf.reshape(tf.tensordot(h, w, 1), [3, 7, self.heads, -1]) for w in self.weights[:3]]
        a = tf.reshape(attention(q, k, v, mask), [3, 7, -1])
        h = norm(h + tf.tensordot(a, self.weights[3], 1), self.scale[0])
        h = norm(h + tf.matmul(tf.nn.gelu(tf.matmul(h, self.weights[4])), self.weights[5]), self.scale[1])
        return {"hidden": h, "pooled": tf.tanh(h[:, 0])}


def saved(name, module, *arrays, names):
    tf.saved_model.save(module, f"{to}/{name}", signatures={"serving_default": module.run})
    out = module.run(*map(tf.constant, arrays))
    np.savez(f"{to}/{name}.npz", **dict(zip(names, arrays)), **{k: v.numpy() for k, v in out.items()})
    fetches[name] = []


saved("bert", Bert(), i(40, 3, 7), i(2, 3, 7), names=["ids", "mask"])
try:
    import keras

    layers = keras.layers
    net = keras.Sequential([layers.Input((16, 16, 3)), layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(), layers.DepthwiseConv2D(3),
                            layers.Conv2D(4, 3, strides=2), layers.GlobalAveragePooling2D(), layers.Dense(5, activation="softmax")])
    net.export(f"{to}/keras", verbose=False)
    a = f(2, 16, 16, 3)
    call = tf.saved_model.load(f"{to}/keras").signatures["serving_default"]
    key = list(call.structured_input_signature[1])[0]
    rnn = keras.Sequential([layers.Input((7, 5), batch_size=2), layers.LSTM(4), layers.Dense(3)])
    rnn.export(f"{to}/rnn", verbose=False)
    b = f(2, 7, 5)
    call_rnn = tf.saved_model.load(f"{to}/rnn").signatures["serving_default"]
    np.savez(f"{to}/rnn.npz", **{list(call_rnn.structured_input_signature[1])[0]: b}, **{k: v.numpy() for k, v in call_rnn(tf.constant(b)).items()})
    fetches["rnn"] = []
    np.savez(f"{to}/keras.npz", **{key: a}, **{k: v.numpy() for k, v in call(tf.constant(a)).items()})
    fetches["keras"] = []
except ImportError as why:
    print(f"replay_tf: a model of Keras: skipped: {why}")

passed = failed = 0


def check(ok, what, why=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAIL replay_tf: {what}: {why}")


def replay(*args):
    p = subprocess.run([REPRISE, "replay", *args, "--iters", "1", "--warmup", "0", "--json"], text=True, capture_output=True)
    doc = json.loads(p.stdout) if p.returncode in (0, 1) and p.stdout else {}
    return p.returncode == 0 and doc.get("ok") and doc.get("checked"), p.stderr.strip() or str(doc.get("outputs"))[:300]


for name, fetch in fetches.items():
    if sys.argv[1:] and not any(w in name for w in sys.argv[1:]):
        continue
    program = f"{to}/{name}.pb" if fetch else f"{to}/{name}"
    for engine in ENGINES:
        ok, why = replay(program, *fetch, "--inputs", f"{to}/{name}.npz", "--expect", f"{to}/{name}.npz", "-e", engine)
        check(ok, f"{name} on {engine.split(':')[0]}", why)
    for redact in ([], ["--redact"]):  # without weights: any engine against ref
        expect = [] if redact else ["--expect", f"{to}/{name}.npz"]
        subprocess.run([REPRISE, "replay", "pack", program, *fetch, "--inputs", f"{to}/{name}.npz", *expect, *redact, "--save", f"{to}/b.tar"], capture_output=True)
        for engine in ENGINES if not fetch else ENGINES[1:2]:
            ok, why = replay(f"{to}/b.tar", "-e", engine, *(["--check", "engine:ref"] if redact else []))
            check(ok, f"{name}, {'redacted ' if redact else ''}bundle on {engine.split(':')[0]}", why)
print(f"replay_tf: {passed} passed, {failed} failed")
sys.exit(failed > 0)
