# SPDX-License-Identifier: Apache-2.0
"""h200_steps.py FOLDER: steps in JAX for h200_replay: writes NAME.hlo.pb (before optimisation),
NAME.npz (in0 ..., out0 ...) and times.json (median seconds of JAX's own compiled call). With --time
NAME it only measures that one again, and prints the median in nanoseconds; with --once NAME it runs
that one once between cudaProfilerStart and cudaProfilerStop."""
import ctypes, json, pathlib, statistics, sys, time

import jax, jax.numpy as jnp, numpy as np


def mlp(w1, w2, x, y):
    def loss(w1, w2):
        h = jax.nn.relu(x @ w1)
        return jnp.mean((h @ w2 - y) ** 2)
    value, (g1, g2) = jax.value_and_grad(loss, argnums=(0, 1))(w1, w2)
    return w1 - 0.01 * g1, w2 - 0.01 * g2, value


def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s, axis=-1), v)


def conv(w, x):
    y = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jax.nn.relu(y).sum(axis=(1, 2))


def matmul(a, b):
    return jnp.tanh(a @ b)


rng = np.random.default_rng(7)
f32 = lambda *s: rng.standard_normal(s, dtype=np.float32) * 0.1
STEPS = {"mlp": (mlp, [f32(2048, 4096), f32(4096, 1024), f32(1024, 2048), f32(1024, 1024)]),
         "attention": (attention, [f32(4, 16, 1024, 64)] * 3),
         "conv": (conv, [f32(3, 3, 64, 128), f32(32, 56, 56, 64)]),
         "matmul": (matmul, [f32(4096, 4096), f32(4096, 4096)])}


def prepare(name):
    f, args = STEPS[name]
    args = [jax.device_put(a) for a in args]
    return jax.jit(f).lower(*args).compile(), args


def cuda_runtime():
    """The CUDA runtime that is loaded already; a second one would have a profiler state of its own."""
    for line in open("/proc/self/maps"):
        if "libcudart.so" in line:
            return ctypes.CDLL(line.split()[-1])
    return ctypes.CDLL("libcudart.so")


def once(name):
    compiled, args = prepare(name)
    for _ in range(2):
        jax.block_until_ready(compiled(*args))
    cuda = cuda_runtime()
    cuda.cudaProfilerStart()
    jax.block_until_ready(compiled(*args))
    cuda.cudaProfilerStop()


def measure(name, runs=200):
    compiled, args = prepare(name)
    for _ in range(30):
        jax.block_until_ready(compiled(*args))
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    if sys.argv[1] == "--time":
        print(int(measure(sys.argv[2]) * 1e9))
        return
    if sys.argv[1] == "--once":
        return once(sys.argv[2])
    folder = pathlib.Path(sys.argv[1])
    for name, (f, args) in STEPS.items():
        lowered = jax.jit(f).lower(*args)
        (folder / f"{name}.hlo.pb").write_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
        outputs = jax.tree_util.tree_leaves(jax.jit(f)(*args))
        np.savez(folder / f"{name}.npz", **{f"in{i}": a for i, a in enumerate(args)},
                 **{f"out{i}": np.asarray(o) for i, o in enumerate(outputs)})
    print(json.dumps({"jax": jax.__version__, "device": jax.devices()[0].device_kind, "steps": list(STEPS)}))


main()
