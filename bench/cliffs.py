#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where `fast` is far from XLA on the CPU: forty-nine programs of one operation each, or a few, at sizes that occur, timed in turns by JAX and by `replay`.

    cliffs.py [--cpu] [NAME...]    only the programs whose name contains one of these; needs JAX

in_turns.py says how they are timed. Prints a row for each program: milliseconds of both and the ratio, then the geometric mean."""
import in_turns
import jax, jax.numpy as jnp, ml_dtypes, numpy as np
from jax import lax

rng = np.random.default_rng(1)


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def small(*shape):
    return rng.integers(-100, 100, shape).astype(np.int8)


def adamw(x, y, state):
    def loss(p):
        return jnp.mean((jax.nn.relu(x @ p[0] + p[1]) @ p[2] - y) ** 2)
    p, m, v, t = state
    g = jax.grad(loss)(p)
    m = [0.9 * a + 0.1 * b for a, b in zip(m, g)]
    v = [0.999 * a + 0.001 * b * b for a, b in zip(v, g)]
    return [a - 1e-3 * (b / (1 - 0.9 ** t) / (jnp.sqrt(c / (1 - 0.999 ** t)) + 1e-8) + 0.01 * a) for a, b, c in zip(p, m, v)], m, v, t + 1


def adamw_args():
    p = [normal(64, 128), normal(128), normal(128, 10)]
    return normal(32, 64), normal(32, 10), (p, [0 * a for a in p], [0 * a for a in p], np.float32(1))


PROGRAMS = {
    "fft 64 x 4096": (jnp.fft.fft, normal(64, 4096).astype(np.complex64)),
    "fft 256 x 1000": (jnp.fft.fft, normal(256, 1000).astype(np.complex64)),
    "fft 64 x 1009 (prime)": (jnp.fft.fft, normal(64, 1009).astype(np.complex64)),
    "rfft 64 x 4096": (jnp.fft.rfft, normal(64, 4096)),
    "irfft 64 x 2049": (jnp.fft.irfft, normal(64, 2049).astype(np.complex64)),
    "fft2 8 x 256 x 256": (jnp.fft.fft2, normal(8, 256, 256).astype(np.complex64)),
    "int8 product 512": (lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), small(512, 512), small(512, 512)),
    "int8 product 32 x 4096 x 1024": (lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), small(32, 4096), small(4096, 1024)),
    "top_k 64 x 50257, k 50": (lambda x: lax.top_k(x, 50), normal(64, 50257)),
    "sort 64 x 16384": (lambda x: jnp.sort(x), normal(64, 16384)),
    "argsort 64 x 4096": (lambda x: jnp.argsort(x), normal(64, 4096)),
    "scalar loop 10,000": (lambda x: lax.fori_loop(0, 10000, lambda i, v: v * 0.999 + 0.1, x), np.float32(1)),
    "loop of division and remainder, 10,000": (lambda x: lax.fori_loop(0, 10000, lambda i, v: (v * 7 + i) % 1000 // 3 + v, x), np.int32(1)),
    "loop of eight numbers, 10,000": (lambda x: lax.fori_loop(0, 10000, lambda i, v: v * 0.999 + 0.1, x), normal(8)),
    "scan 2,000 of 16": (lambda c, x: lax.scan(lambda h, t: (jnp.tanh(h + t), h.sum()), c, x), normal(16), normal(2000, 16)),
    "scalar scatter 100,000": (lambda x, i, u: x.at[i].add(u), normal(10000), rng.integers(0, 10000, 100000).astype(np.int32), normal(100000)),
    "narrow rows scattered, 100,000 x 16": (lambda x, i, u: x.at[i].add(u), normal(1000, 16), rng.integers(0, 1000, 100000).astype(np.int32), normal(100000, 16)),
    "segment sum, 100,000 x 4": (lambda x, i: jax.ops.segment_sum(x, i, 1000), normal(100000, 4), rng.integers(0, 1000, 100000).astype(np.int32)),
    "segment maximum, 100,000": (lambda x, i: jax.ops.segment_max(x, i, 1000), normal(100000), rng.integers(0, 1000, 100000).astype(np.int32)),
    "segment maximum, 100,000 x 16": (lambda x, i: jax.ops.segment_max(x, i, 1000), normal(100000, 16), rng.integers(0, 1000, 100000).astype(np.int32)),
    "segment product, 100,000 x 4": (lambda x, i: jax.ops.segment_prod(x, i, 1000), normal(100000, 4), rng.integers(0, 1000, 100000).astype(np.int32)),
    "rows with fill, 10,000 of 1,000 x 64": (lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=0), normal(1000, 64), rng.integers(0, 1200, 10000).astype(np.int32)),
    "gather with fill, 1,000,000": (lambda x, i: jnp.take(x, i, mode="fill", fill_value=0), normal(100000), rng.integers(0, 120000, 1000000).astype(np.int32)),
    "scalar gather 1,000,000": (lambda x, i: x[i], normal(100000), rng.integers(0, 100000, 1000000).astype(np.int32)),
    "f8 product 512": (lambda a, b: lax.dot(a, b, preferred_element_type=jnp.float32), normal(512, 512).astype(ml_dtypes.float8_e4m3fn), normal(512, 512).astype(ml_dtypes.float8_e4m3fn)),
    "bf16 product 512": (lambda a, b: a @ b, normal(512, 512).astype(ml_dtypes.bfloat16), normal(512, 512).astype(ml_dtypes.bfloat16)),
    "complex product 512": (lambda a, b: a @ b, normal(512, 512).astype(np.complex64), normal(512, 512).astype(np.complex64)),
    "threefry 1,000,000": (lambda k: jax.random.bits(k, (1000000,)), np.array([1, 2], np.uint32)),
    "normal 1,000,000": (lambda k: jax.random.normal(k, (1000000,)), np.array([1, 2], np.uint32)),
    "adamw mlp 32 x 64": (adamw, *adamw_args()),
    "f32 product 1024": (lambda a, b: a @ b, normal(1024, 1024), normal(1024, 1024)),
    "f64 product 512": (lambda a, b: a @ b, normal(512, 512, dtype=np.float64), normal(512, 512, dtype=np.float64)),
    "s32 product 512": (lambda a, b: a @ b, small(512, 512).astype(np.int32), small(512, 512).astype(np.int32)),
    "batched product 96 x 128 x 64": (lambda a, b: a @ b, normal(96, 128, 64), normal(96, 64, 128)),
    "one row, 4096 x 4096": (lambda a, b: a @ b, normal(1, 4096), normal(4096, 4096)),
    "softmax 64 x 50257": (lambda x: jax.nn.softmax(x), normal(64, 50257)),
    "argmax 64 x 50257": (lambda x: jnp.argmax(x, -1), normal(64, 50257)),
    "layer norm 4096 x 1024": (lambda x, g: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * g, normal(4096, 1024), normal(1024)),
    "gelu by erf 4,000,000": (lambda x: jax.nn.gelu(x, approximate=False), normal(4000000)),
    "attention 16 x 512 x 64": (lambda q, k, v: jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) / 8) @ v, normal(16, 512, 64), normal(16, 512, 64), normal(16, 512, 64)),
    "convolution 8 x 56 x 56 x 64": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), normal(8, 56, 56, 64), normal(3, 3, 64, 64)),
    "depthwise 8 x 56 x 56 x 64": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=64), normal(8, 56, 56, 64), normal(3, 3, 1, 64)),
    "max pool 8 x 112 x 112 x 64": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME"), normal(8, 112, 112, 64)),
    "running sum 512 x 4096": (lambda x: jnp.cumsum(x, 1), normal(512, 4096)),
    "sum of columns 4096 x 4096": (lambda x: x.sum(0), normal(4096, 4096)),
    "transpose 4096 x 4096": (lambda x: x.T + 1, normal(4096, 4096)),
    "embedding 8192 of 50257 x 768": (lambda t, i: t[i], normal(50257, 768), rng.integers(0, 50257, 8192).astype(np.int32)),
    "embedding, gradient": (lambda t, i, g: t.at[i].add(g), normal(50257, 256), rng.integers(0, 50257, 8192).astype(np.int32), normal(8192, 256)),
    "one step of a cache 32 x 2048 x 128": (lambda c, x, i: lax.dynamic_update_slice(c, x, (0, i, 0)).sum(-1), normal(32, 2048, 128), normal(32, 1, 128), np.int32(77)),
}


in_turns.table((name, lambda name=name, program=program: (jax.config.update("jax_enable_x64", "f64" in name), program)[1]) for name, program in PROGRAMS.items())
