#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether replay tells planted faults from rounding, in programs of bf16 and f16.

    bench/replay_faults.py [--faults 40] [--right 100] [--seed 1] [--keep FOLDER] [--reprise build/reprise]

Needs JAX, which computes what is expected on the CPU. A program is one of the steps below with random weights; a
fault is one changed line of its HLO: another function, a sign, a factor, an operand. It counts if it changes an
output by a hundredth of its root mean square or more. Prints each fault that was missed and each right program
that was refused, and ends with 1 where fewer than 95 % were found or any right one was refused. With
XLA_FLAGS=--xla_allow_excess_precision=false what is expected is rounded in other places."""
import argparse, json, pathlib, random, re, subprocess, sys, tempfile

import jax, jax.numpy as jnp, numpy as np


# ---- programs: name -> (function, inputs), of a type ----

def normal(rng, shape, dtype, scale=1.0):
    return jnp.asarray(rng.standard_normal(shape) * scale, dtype)


def mlp_sgd(rng, t):
    n, d = int(rng.integers(8, 48)), int(rng.integers(16, 80))

    def loss(p, x, y):
        h = jnp.tanh(x @ p[0] + p[1])
        return jnp.mean((h @ p[2] - y).astype(jnp.float32) ** 2)

    def step(w, b, v, x, y):
        l, g = jax.value_and_grad(loss)((w, b, v), x, y)
        return l, *[p - jnp.asarray(0.05, t) * q for p, q in zip((w, b, v), g)]
    return step, [normal(rng, (d, d), t, d ** -.5), normal(rng, (d,), t, .1), normal(rng, (d, 8), t, d ** -.5),
                  normal(rng, (n, d), t), normal(rng, (n, 8), t)]


def adam(rng, t):
    d = int(rng.integers(16, 64))

    def step(w, m, v, x, y):
        def loss(w):
            return jnp.mean(jnp.cos(x @ w - y).astype(jnp.float32))
        l, g = jax.value_and_grad(loss)(w)
        g = g.astype(jnp.float32)
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return l, (w.astype(jnp.float32) - 1e-2 * m / (jnp.sqrt(v) + 1e-6)).astype(t), m, v
    return step, [normal(rng, (d, d), t, d ** -.5), normal(rng, (d, d), jnp.float32, .01),
                  jnp.abs(normal(rng, (d, d), jnp.float32, 1e-4)), normal(rng, (32, d), t), normal(rng, (32, d), t)]


def norm(x, g, b):
    f = x.astype(jnp.float32)
    m = f.mean(-1, keepdims=True)
    return ((f - m) * jax.lax.rsqrt(((f - m) ** 2).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * g + b


def block(p, x, heads):
    n, d = x.shape
    h = norm(x, p[0], p[1])
    q, k, v = jnp.split(h @ p[2], 3, -1)
    q, k, v = [a.reshape(n, heads, d // heads).transpose(1, 0, 2) for a in (q, k, v)]
    s = jnp.einsum("hqd,hkd->hqk", q, k) * jnp.asarray((d // heads) ** -.5, x.dtype)
    s = jnp.where(jnp.tril(jnp.ones((n, n), bool)), s, jnp.asarray(-1e4, x.dtype))
    a = jax.nn.softmax(s.astype(jnp.float32), -1).astype(x.dtype)
    x = x + jnp.einsum("hqk,hkd->hqd", a, v).transpose(1, 0, 2).reshape(n, d) @ p[3]
    return x + jax.nn.gelu(norm(x, p[4], p[5]) @ p[6]) @ p[7]


def block_weights(rng, d, t):
    one = lambda: jnp.ones((d,), t) + normal(rng, (d,), t, .1)
    return [one(), normal(rng, (d,), t, .1), normal(rng, (d, 3 * d), t, d ** -.5), normal(rng, (d, d), t, d ** -.5),
            one(), normal(rng, (d,), t, .1), normal(rng, (d, 2 * d), t, d ** -.5), normal(rng, (2 * d, d), t, d ** -.5)]


def gpt(rng, t):
    n, d = int(rng.integers(8, 33)), 16 * int(rng.integers(1, 5))
    words = 50

    def loss(p, emb, ids):
        x = emb[ids[:-1]] + jnp.cos(jnp.arange(n)[:, None] * jnp.exp(-jnp.arange(d) / d)).astype(emb.dtype)
        for k in range(2):
            x = block(p[8 * k:8 * k + 8], x, 4)
        logits = (x @ emb.T).astype(jnp.float32)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), ids[1:, None], -1))

    def step(emb, ids, *p):
        l, (g, ge) = jax.value_and_grad(loss, (0, 1))(list(p), emb, ids)
        moments = [0.1 * a.astype(jnp.float32) for a in g[:4]]
        return (l, emb - jnp.asarray(.1, t) * ge, *moments)
    return step, [normal(rng, (words, d), t, .3), jnp.asarray(rng.integers(0, words, n + 1), jnp.int32),
                  *block_weights(rng, d, t), *block_weights(rng, d, t)]


def attention(rng, t):
    n, d = int(rng.integers(8, 64)), 8 * int(rng.integers(1, 8))
    return (lambda q, k, v: jax.nn.softmax(q @ k.T * jnp.asarray(d ** -.5, t), -1) @ v,
            [normal(rng, (n, d), t) for _ in range(3)])


def rope(rng, t):
    n, d = int(rng.integers(8, 64)), 8 * int(rng.integers(1, 8))

    def f(x, g, w):
        x = (x.astype(jnp.float32) * jax.lax.rsqrt(jnp.mean(x.astype(jnp.float32) ** 2, -1, keepdims=True) + 1e-6)
             ).astype(t) * g
        a = jnp.arange(n, dtype=jnp.float32)[:, None] * 100. ** (-jnp.arange(d // 2) / (d // 2))
        c, s = jnp.cos(a).astype(t), jnp.sin(a).astype(t)
        l, r = x[:, :d // 2], x[:, d // 2:]
        return jax.nn.silu(jnp.concatenate([l * c - r * s, l * s + r * c], -1) @ w)
    return f, [normal(rng, (n, d), t), normal(rng, (d,), t), normal(rng, (d, d), t, d ** -.5)]


def conv(rng, t):
    c = int(rng.integers(4, 12))

    def step(k, w, x, y):
        def loss(k, w):
            h = jax.nn.relu(jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            h = h.reshape(x.shape[0], 4, 2, 4, 2, c).max((2, 4))
            return jnp.mean((h.reshape(x.shape[0], -1) @ w - y).astype(jnp.float32) ** 2)
        l, g = jax.value_and_grad(loss, (0, 1))(k, w)
        return l, k - jnp.asarray(.1, t) * g[0], w - jnp.asarray(.1, t) * g[1]
    return step, [normal(rng, (3, 3, 3, c), t, .2), normal(rng, (16 * c, 5), t, (16 * c) ** -.5),
                  normal(rng, (4, 8, 8, 3), t), normal(rng, (4, 5), t)]


def rnn(rng, t):
    d = int(rng.integers(8, 40))

    def f(w, u, xs):
        def one(h, x):
            h = jnp.tanh(h @ w + x @ u)
            return h, h
        return jax.lax.scan(one, jnp.zeros((4, d), t), xs)
    return f, [normal(rng, (d, d), t, .5 * d ** -.5), normal(rng, (d, d), t, d ** -.5),
               normal(rng, (int(rng.integers(4, 20)), 4, d), t)]


def batch_norm(rng, t):
    d = int(rng.integers(8, 64))

    def f(x, g, b, w):
        def loss(x, g, b):
            f = x.astype(jnp.float32)
            y = ((f - f.mean(0)) / jnp.sqrt(f.var(0) + 1e-5)).astype(t) * g + b
            return jnp.mean((jax.nn.sigmoid(y @ w)).astype(jnp.float32))
        return jax.value_and_grad(loss, (0, 1, 2))(x, g, b)
    return f, [normal(rng, (24, d), t), normal(rng, (d,), t), normal(rng, (d,), t), normal(rng, (d, d), t, d ** -.5)]


def mixed(rng, t):
    d = int(rng.integers(16, 64))

    def f(w, v, x, ids):
        def loss(w, v):
            h = jax.nn.gelu(x.astype(t) @ w.astype(t))
            z = (h @ v.astype(t)).astype(jnp.float32)
            return jnp.mean(jax.nn.logsumexp(z, -1) - jnp.take_along_axis(z, ids[:, None], -1)[:, 0])
        l, g = jax.value_and_grad(loss, (0, 1))(w, v)
        return l, w - .3 * g[0], v - .3 * g[1], jnp.argmax(x, -1)
    return f, [normal(rng, (d, d), jnp.float32, d ** -.5), normal(rng, (d, 10), jnp.float32, d ** -.5),
               normal(rng, (32, d), jnp.float32), jnp.asarray(rng.integers(0, 10, 32), jnp.int32)]


def element(rng, t):
    n = int(rng.integers(20, 400))
    return (lambda x, y: (jnp.exp(-x * x) * y + jnp.log1p(jnp.abs(y)), jnp.sqrt(jnp.abs(x)) / (1 + y * y),
                          jnp.sum(x * y), jnp.cumsum(x.astype(jnp.float32) * .1).astype(t)),
            [normal(rng, (n,), t), normal(rng, (n,), t)])


PROGRAMS = [mlp_sgd, adam, gpt, attention, rope, conv, rnn, batch_norm, mixed, element]


# ---- faults: (pattern, replacement) of one line ----

FUNCTIONS = {"cosine": "exponential", "sine": "cosine", "tanh": "logistic", "exponential": "exponential-minus-one",
             "rsqrt": "sqrt", "sqrt": "cbrt", "log": "log-plus-one", "log-plus-one": "log", "logistic": "tanh",
             "add": "subtract", "subtract": "add", "multiply": "divide", "divide": "multiply", "maximum": "minimum",
             "negate": "copy"}


def faults(text):
    """(kind, changed text) of every line that can be changed."""
    lines, entry = text.split("\n"), False
    region = set(re.findall(r"to_apply=%?([\w.\-]+)", "\n".join(l for l in lines if " reduce(" in l or "scatter(" in l or "reduce-window(" in l)))
    inside = ""
    for i, line in enumerate(lines):
        head = re.match(r"(?:ENTRY )?%?([\w.\-]+)(?: \([^)]*\))?.* \{$", line)
        if head:
            inside = head[1]
        if inside in region:
            continue
        def changed(new):
            return "\n".join(lines[:i] + [new] + lines[i + 1:])
        op = re.match(r"(\s+(?:ROOT )?%?[\w.\-]+ = )(f32|bf16|f16)(\[[^\]]*\]\S* )([\w\-]+)\((.*)$", line)
        if not op:
            continue
        pre, t, shape, code, rest = op.groups()
        if code in FUNCTIONS:
            yield f"{code} for {FUNCTIONS[code]}", changed(f"{pre}{t}{shape}{FUNCTIONS[code]}({rest}")
        if code == "constant" and re.match(r"[-\d.e+]+\)", rest) and float(rest.split(")")[0]) not in (0, 1, -1):
            for by in (1.03, 1.1, .7):
                x = float(rest.split(")")[0])
                yield f"constant times {by}", changed(f"{pre}{t}{shape}constant({x * by:.6g})")
        if code in ("subtract", "divide", "dot") and shape.count(",") == 1 and code != "dot":
            args = rest.split(")")[0].split(", ")
            if len(args) == 2 and args[0] != args[1]:
                yield f"{code} turned round", changed(f"{pre}{t}{shape}{code}({args[1]}, {args[0]})" + rest[rest.index(")") + 1:])
        if code in ("multiply", "add") and shape.startswith("["):
            args = rest.split(")")[0].split(", ")
            if len(args) == 2 and args[0] != args[1]:
                yield f"{code} of one operand twice", changed(f"{pre}{t}{shape}{code}({args[1]}, {args[1]})" + rest[rest.index(")") + 1:])


# ---- runs ----

def bits(x):
    x = np.asarray(x)
    return x.view(np.uint16) if x.dtype == jnp.bfloat16 else x


def real(x, t):
    x = np.asarray(x)
    return x.view(jnp.bfloat16).astype(np.float64) if x.dtype == np.uint16 else x.astype(np.float64)


def replay(reprise, program, arrays, save=None, engine="fast"):
    out = subprocess.run([reprise, "replay", program, "--inputs", arrays, "--expect", arrays, "-n", "1", "--warmup", "0", "-e", engine, "--json",
                          *(["--save", save] if save else [])], capture_output=True, text=True)
    if out.returncode not in (0, 1):
        return None, out.stderr.strip()[:300]
    return json.loads(out.stdout), ""


def effect(a, b):
    """The largest change of an output, of its root mean square."""
    most = 0.
    for k in a.files:
        x, y = real(a[k], k), real(b[k], k)
        size = np.sqrt(np.mean(x ** 2)) if x.size else 0
        if size > 0 and np.isfinite(x).all():
            most = max(most, np.sqrt(np.mean((x - y) ** 2)) / size if np.isfinite(y).all() else np.inf)
    return most


def make(folder, k, seed):
    rng = np.random.default_rng(seed * 1000 + k)
    t = jnp.float16 if (k // len(PROGRAMS)) % 3 == 2 else jnp.bfloat16
    f, inputs = PROGRAMS[k % len(PROGRAMS)](rng, t)
    lowered = jax.jit(f, keep_unused=True).lower(*inputs)
    outputs = jax.tree.leaves(lowered.compile()(*inputs))
    name = folder / f"{k:03d}_{PROGRAMS[k % len(PROGRAMS)].__name__}_{t.__name__}"
    path = name.with_suffix(".hlo.txt")
    path.write_text(lowered.compiler_ir("hlo").as_hlo_text())
    arrays = name.with_suffix(".npz")
    np.savez(arrays, **{f"in{i}": bits(x) for i, x in enumerate(jax.tree.leaves(inputs))},
             **{f"out{i}": bits(x) for i, x in enumerate(outputs)})
    return path, arrays


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--faults", type=int, default=40)
    a.add_argument("--right", type=int, default=100)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--keep")
    a.add_argument("--engine", default="fast")
    a.add_argument("--reprise", default="build/reprise")
    a = a.parse_args()
    folder = pathlib.Path(a.keep or tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    made, refused, undecided = [], 0, 0
    for k in range(a.right):
        path, arrays = make(folder, k, a.seed)
        doc, why = replay(a.reprise, path, arrays, str(path) + ".out.npz", a.engine)
        if doc is None:
            print(f"cannot run: {path.name}: {why}")
            continue
        made.append((path, arrays))
        undecided += any("undecided" in (o.get("verdict") or "") for o in doc["outputs"])
        if not doc["ok"] or any(o.get("verdict") == "wrong" for o in doc["outputs"]):
            refused += 1
            print(f"refused: {path.name}: {doc['warnings'][:2]}")
    rng, found, planted, kinds = random.Random(a.seed), 0, 0, {}
    while planted < a.faults:
        path, arrays = made[rng.randrange(len(made))]
        kind, text = rng.choice(list(faults(path.read_text())))
        if kinds.get(kind, 0) > a.faults / 8:
            continue
        bad = folder / f"fault_{planted:03d}.hlo.txt"
        bad.write_text(text)
        doc, why = replay(a.reprise, bad, arrays, folder / "bad.npz", a.engine)
        if doc is None:
            continue
        size = effect(np.load(str(path) + ".out.npz"), np.load(folder / "bad.npz"))
        if not size >= .01:
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        planted += 1
        if not doc["ok"]:
            found += 1
        else:
            print(f"missed: {bad.name}: {kind} in {path.name}, changes an output by {size:.3g}: "
                  f"{[o['verdict'] for o in doc['outputs']]}")
    print(f"{len(made)} right programs: {refused} refused, {undecided} with an output that is undecided; "
          f"{planted} faults of {len(kinds)} kinds: {found} found")
    return 1 if refused or found < .95 * planted else 0


if __name__ == "__main__":
    sys.exit(main())
