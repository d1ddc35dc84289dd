#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loops with tiny bodies, scans with small states, gathers, scatters and sorts, drawn apart from those of cliffs.py: by JAX and by `replay` in turns.

    draw.py [--cpu] [NAME...]    only the programs whose name contains one of these; needs JAX

in_turns.py says how they are timed. Prints a row for each program: milliseconds of both and the ratio, then the geometric mean."""
import in_turns
import jax, jax.numpy as jnp, numpy as np
from jax import lax

rng = np.random.default_rng(7)
N = lambda *s: rng.standard_normal(s).astype(np.float32)
I = lambda hi, *s: rng.integers(0, hi, s).astype(np.int32)


def gcd(a, b):
    return lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]


def collatz(n):
    return lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))


def many_collatz(n):
    return lax.fori_loop(1, 300, lambda i, t: t + collatz(i)[1], n)


def mandel(c):
    def body(s):
        x, y, i = s
        return x * x - y * y + c[0], 2 * x * y + c[1], i + 1
    return lax.while_loop(lambda s: (s[0] * s[0] + s[1] * s[1] < 4) & (s[2] < 10000), body, (jnp.float32(0), jnp.float32(0), 0))


def newton(x):
    return lax.fori_loop(0, 10000, lambda i, y: 0.5 * (y + x / y), x)


def rk4(s):
    f = lambda a, b: (b, -a)
    def body(i, s):
        h = 0.01
        x, y = s
        k1 = f(x, y); k2 = f(x + h / 2 * k1[0], y + h / 2 * k1[1]); k3 = f(x + h / 2 * k2[0], y + h / 2 * k2[1]); k4 = f(x + h * k3[0], y + h * k3[1])
        return x + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0]), y + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
    return lax.fori_loop(0, 10000, body, s)


def lcg(x):
    return lax.fori_loop(0, 10000, lambda i, v: v * jnp.uint32(1664525) + jnp.uint32(1013904223), x)


def xorshift(x):
    def body(i, v):
        v = v ^ (v << 13); v = v ^ (v >> 17); return v ^ (v << 5)
    return lax.fori_loop(0, 10000, body, x)


def bisect(x):
    def body(i, s):
        lo, hi = s
        m = 0.5 * (lo + hi)
        l = m * m < x
        return jnp.where(l, m, lo), jnp.where(l, hi, m)
    return lax.fori_loop(0, 10000, body, (jnp.float32(0), x))


def table_walk(t, i):
    return lax.fori_loop(0, 10000, lambda k, j: t[j], i)


def sum_table(t):
    return lax.fori_loop(0, 10000, lambda k, a: a + t[k], jnp.float32(0))


def fill_table(t):
    return lax.fori_loop(0, 10000, lambda k, a: a.at[k].set(k * 2.0), t)


def sieve(t):
    return lax.fori_loop(0, 10000, lambda k, a: a.at[(k * 7) % 10000].add(1.0), t)


def cond_loop(x):
    return lax.fori_loop(0, 10000, lambda i, v: lax.cond(v > 1, lambda v: v * 0.5, lambda v: v + 0.3, v), x)


def switch_loop(x):
    return lax.fori_loop(0, 10000, lambda i, v: lax.switch(i % 3, [lambda v: v * 0.5, lambda v: v + 0.3, lambda v: -v], v), x)


def ema(c, x): return lax.scan(lambda h, t: (0.9 * h + 0.1 * t, h), c, x)


def rnn(w, c, x): return lax.scan(lambda h, t: (jnp.tanh(h @ w + t), h), c, x)


def kalman(x):
    def step(s, z):
        m, p = s
        p = p + 0.01; k = p / (p + 0.1)
        m = m + k * (z - m); p = (1 - k) * p
        return (m, p), m
    return lax.scan(step, (jnp.float32(0), jnp.float32(1)), x)


def matpow(a, v): return lax.fori_loop(0, 2000, lambda i, v: a @ v, v)


def viterbi(t, e):
    def step(s, x):
        m = s[:, None] + t
        return m.max(0) + x, m.argmax(0)
    return lax.scan(step, e[0], e)


def life(x):
    def body(i, x):
        n = sum(jnp.roll(jnp.roll(x, a, 0), b, 1) for a in (-1, 0, 1) for b in (-1, 0, 1)) - x
        return jnp.where((n == 3) | ((n == 2) & (x == 1)), 1, 0).astype(jnp.int32)
    return lax.fori_loop(0, 500, body, x)


def heat(x): return lax.fori_loop(0, 2000, lambda i, x: x + 0.1 * (jnp.roll(x, 1) - 2 * x + jnp.roll(x, -1)), x)


def trig(x): return lax.fori_loop(0, 10000, lambda i, v: jnp.sin(v) + 0.5 * jnp.cos(v), x)


def loge(x): return lax.fori_loop(0, 10000, lambda i, v: jnp.log1p(jnp.exp(v)) * 0.5, x)


def fib(n): return lax.fori_loop(0, 10000, lambda i, s: (s[1], s[0] + s[1]), (n, n))


def bigcount(n): return lax.while_loop(lambda s: s < 10000, lambda s: s + 1, n)


def jacobi(a, b): return lax.fori_loop(0, 1000, lambda i, x: (b - a @ x + jnp.diag(a) * x) / jnp.diag(a), b)


def bubble(x):
    def inner(j, x):
        a, b = x[j], x[j + 1]
        return x.at[j].set(jnp.minimum(a, b)).at[j + 1].set(jnp.maximum(a, b))
    return lax.fori_loop(0, 100, lambda i, x: lax.fori_loop(0, 99, inner, x), x)


def edit_distance(a, b):
    def row(prev, ca):
        def cell(left, t):
            up, diag, cb = t
            v = jnp.minimum(jnp.minimum(left, up) + 1, diag + (ca != cb))
            return v, v
        first = prev[0] + 1
        _, rest = lax.scan(cell, first, (prev[1:], prev[:-1], b))
        return jnp.concatenate([first[None], rest]), None
    return lax.scan(row, jnp.arange(b.shape[0] + 1, dtype=jnp.int32), a)[0]


def cumlogsum(x): return lax.associative_scan(jnp.logaddexp, x)

PROGRAMS = {
 "scalar loop": (lambda x: lax.fori_loop(0, 10000, lambda i, v: v * 0.999 + 0.1, x), np.float32(1)),
 "division and remainder": (lambda x: lax.fori_loop(0, 10000, lambda i, v: (v * 7 + i) % 1000 // 3 + v, x), np.int32(1)),
 "eight numbers": (lambda x: lax.fori_loop(0, 10000, lambda i, v: v * 0.999 + 0.1, x), N(8)),
 "loop gcd": (lambda a, b: lax.fori_loop(0, 1000, lambda i, t: t + gcd(a + i, b), jnp.int32(0)), np.int32(832040), np.int32(514229)),
 "loop collatz": (many_collatz, np.int32(0)),
 "loop mandel": (mandel, np.array([-0.1, 0.2], np.float32)),
 "loop newton": (newton, np.float32(3)),
 "loop rk4": (rk4, (np.float32(1), np.float32(0))),
 "loop lcg": (lcg, np.uint32(5)),
 "loop xorshift": (xorshift, np.uint32(5)),
 "loop bisect": (bisect, np.float32(2)),
 "loop fib": (fib, np.int32(1)),
 "loop count": (bigcount, np.int32(0)),
 "loop trig": (trig, np.float32(0.3)),
 "loop softplus": (loge, np.float32(0.3)),
 "loop table walk": (table_walk, I(1000, 1000), np.int32(3)),
 "loop table sum": (sum_table, N(10000)),
 "loop table fill": (fill_table, N(10000)),
 "loop histogram": (sieve, N(10000)),
 "loop cond": (cond_loop, np.float32(1)),
 "loop switch": (switch_loop, np.float32(1)),
 "loop bubble": (bubble, N(100)),
 "loop edit distance": (edit_distance, I(4, 100), I(4, 100)),
 "loop matvec 4": (matpow, N(4, 4) * 0.4, N(4)),
 "loop heat 256": (heat, N(256)),
 "loop life 32": (life, I(2, 32, 32)),
 "loop jacobi 16": (jacobi, N(16, 16) + 30 * np.eye(16, dtype=np.float32), N(16)),
 "scan ema scalar 10000": (ema, np.float32(0), N(10000)),
 "scan ema 64 x 2000": (ema, N(64), N(2000, 64)),
 "scan kalman 5000": (kalman, N(5000)),
 "scan rnn 16 x 1000": (rnn, N(16, 16), N(16), N(1000, 16)),
 "scan viterbi 8 x 1000": (viterbi, N(8, 8), N(1000, 8)),
 "scan cumsum s32": (lambda x: lax.scan(lambda a, t: (a + t, a + t), jnp.int32(0), x), I(100, 10000)),
 "gather fill scalars": (lambda x, i: jnp.take(x, i, mode="fill", fill_value=0), N(100000), I(120000, 1000000)),
 "gather fill nan default": (lambda x, i: x.at[i].get(mode="fill"), N(100000), I(120000, 1000000)),
 "gather fill rows 64": (lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=0), N(1000, 64), I(1200, 10000)),
 "gather fill rows 4": (lambda x, i: jnp.take(x, i, axis=0, mode="fill", fill_value=0), N(1000, 4), I(1200, 100000)),
 "gather fill columns": (lambda x, i: jnp.take(x, i, axis=1, mode="fill", fill_value=0), N(64, 1000), I(1200, 10000)),
 "gather fill 2d": (lambda x, i, j: x.at[i, j].get(mode="fill", fill_value=1), N(300, 300), I(320, 100000), I(320, 100000)),
 "gather fill bf16": (lambda x, i: x.at[i].get(mode="fill", fill_value=0), jnp.asarray(N(1000, 64)).astype(jnp.bfloat16), I(1200, 10000)),
 "gather fill s32": (lambda x, i: x.at[i].get(mode="fill", fill_value=-1), I(5, 100000), I(120000, 1000000)),
 "gather clip rows": (lambda x, i: jnp.take(x, i, axis=0, mode="clip"), N(1000, 64), I(1200, 10000)),
 "gather wrap": (lambda x, i: jnp.take(x, i, mode="wrap"), N(100000), I(120000, 1000000)),
 "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i, 1), N(1000, 1000), I(1000, 1000, 100)),
 "take_along_axis 0": (lambda x, i: jnp.take_along_axis(x, i, 0), N(1000, 1000), I(1000, 100, 1000)),
 "gather u8": (lambda x, i: x[i], rng.integers(0, 255, 100000).astype(np.uint8), I(100000, 1000000)),
 "gather 2 indices": (lambda x, i, j: x[i, j], N(1000, 1000), I(1000, 500000), I(1000, 500000)),
 "one hot": (lambda i: jax.nn.one_hot(i, 100), I(100, 10000)),
 "scatter set": (lambda x, i, u: x.at[i].set(u), N(100000), I(100000, 100000), N(100000)),
 "scatter max rows": (lambda x, i, u: x.at[i].max(u), N(1000, 16), I(1000, 100000), N(100000, 16)),
 "scatter 2 indices": (lambda x, i, j, u: x.at[i, j].add(u), N(300, 300), I(300, 100000), I(300, 100000), N(100000)),
 "scatter s32 add": (lambda x, i: x.at[i].add(1), I(5, 1000), I(1000, 100000)),
 "scatter apply": (lambda x, i: x.at[i].apply(jnp.sin), N(10000), I(10000, 10000)),
 "scatter columns": (lambda x, i, u: x.at[:, i].add(u), N(64, 1000), I(1000, 5000), N(64, 5000)),
 "bincount": (lambda i: jnp.bincount(i, length=1000), I(1000, 100000)),
 "histogram": (lambda x: jnp.histogram(x, bins=64)[0], N(100000)),
 "unique": (lambda x: jnp.unique(x, size=1000, fill_value=-1), I(1000, 100000)),
 "searchsorted": (lambda a, v: jnp.searchsorted(a, v), np.sort(N(10000)), N(100000)),
 "sort s32": (lambda x: jnp.sort(x), I(1 << 30, 100000)),
 "sort columns": (lambda x: jnp.sort(x, 0), N(1000, 100)),
 "lexsort": (lambda a, b: jnp.lexsort((a, b)), I(100, 100000), I(100, 100000)),
 "sort pairs": (lambda a, b: lax.sort((a, b), num_keys=1), I(1 << 30, 100000), N(100000)),
 "median": (lambda x: jnp.median(x, 1), N(100, 1000)),
 "cumsum": (lambda x: jnp.cumsum(x), N(1000000)),
 "cummax": (lambda x: lax.cummax(x), N(1000000)),
 "cumprod s32": (lambda x: jnp.cumsum(x, 0), I(5, 1000, 1000)),
 "logaddexp scan": (cumlogsum, N(100000)),
 "nonzero": (lambda x: jnp.nonzero(x > 0.5, size=50000, fill_value=0)[0], N(100000)),
 "where roll": (lambda x: jnp.roll(x, 5, 1), N(1000, 1000)),
 "interp": (lambda x, a, b: jnp.interp(x, a, b), N(100000), np.sort(N(1000)), N(1000)),
 "einsum ijk": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), N(1000, 8, 8), N(1000, 8, 8)),
 "tril": (lambda x: jnp.tril(x), N(1000, 1000)),
 "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (500, 500)) * 2, N(1000, 1000), np.int32(77)),
 "reverse": (lambda x: x[::-1, ::-1], N(1000, 1000)),
 "pad": (lambda x: jnp.pad(x, 3, mode="reflect"), N(1000, 1000)),
 "stride": (lambda x: x[::2, ::3] + 1, N(1500, 1500)),
 "concat": (lambda a, b: jnp.concatenate([a, b], 1) * 2, N(1000, 500), N(1000, 300)),
 "argsort s32": (lambda x: jnp.argsort(x), I(1000, 100000)),
}
in_turns.table((n, lambda p=p: p) for n, p in PROGRAMS.items())
