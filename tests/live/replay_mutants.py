#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `replay --expect` finds: twenty programs of JAX, each with faults planted in its HLO (a wrong sign, a dropped term, a wrong axis, a
slice that is off by one, swapped operands), judged by the outputs of the right program, which XLA computed.

    replay_mutants [NAME...]      only the programs whose name contains one of these
    REPRISE, ENGINES              the program (build/reprise), engines ("fast")
    MOST                          faults of one kind in one program (2)
    FLAGS                         of replay ("--products f32": what XLA computed on a CPU was not multiplied in TF32)

A mutant that is not wrong (its outputs differ from the right ones by less than 2e-6 of the largest value) is not counted. Prints
a row for each kind: planted, found; then the right programs that were called wrong. Exit status 1: fewer than 99 % found, or a false alarm."""
import os, pathlib, re, subprocess, sys, tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
except ImportError as why:
    print(f"replay_mutants: skipped: {why}")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", ROOT / "build" / "reprise")
ENGINES = os.environ.get("ENGINES", "fast").split()
MOST = int(os.environ.get("MOST", "2"))
FLAGS = os.environ.get("FLAGS", "--products f32").split()
N = 32
rng = np.random.default_rng(5)


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


# ---- the programs: square arrays, so that a wrong axis still has the right shape ----

def layer_norm(x, g, b):
    m = x.mean(1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(1, keepdims=True) + 1e-5) * g + b


def sgd(loss, lr):
    def step(*args):
        grads = jax.grad(loss)(args[0], *args[1:])
        return jax.tree.map(lambda p, g: p - lr * g, args[0], grads)
    return step


def mlp_loss(p, x, y):
    h = jnp.tanh(x @ p[0] + p[1])
    return jnp.mean((h @ p[2] - y) ** 2)


def adam(p, m, v, g):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def attention(q, k, v):
    s = q @ k.T / np.sqrt(N).astype(np.float32)
    s = jnp.where(jnp.tril(jnp.ones((N, N), bool)), s, -1e9)
    return jax.nn.softmax(s, axis=1) @ v


def gru(h, x, w, u):
    def cell(h, x):
        z = jax.nn.sigmoid(x @ w + h @ u)
        n = jnp.tanh(x @ u - h @ w)
        return (1 - z) * n + z * h, h[1:] - h[:-1]
    return lax.scan(cell, h, x)


def heat(u):
    def step(i, u):
        return u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1) - 4 * u)
    return lax.fori_loop(0, 5, step, u)


def rotary(x):
    a = jnp.outer(jnp.arange(N, dtype=jnp.float32), 1.0 / 10.0 ** (jnp.arange(N // 2) / N))
    l, r = x[:, :N // 2], x[:, N // 2:]
    return jnp.concatenate([l * jnp.cos(a) - r * jnp.sin(a), r * jnp.cos(a) + l * jnp.sin(a)], 1)


def kalman(x, p, f, z):
    x, p = f @ x, f @ p @ f.T + 0.01 * jnp.eye(N)
    k = p / (p + 1.0)
    return x + k @ (z - x), p - k @ p


PROGRAMS = {
    "layer norm": (layer_norm, normal(N, N), normal(N), normal(N)),
    "sgd, linear": (sgd(lambda w, x, y: jnp.mean((x @ w - y) ** 2), 1e-3), normal(N, N), normal(N, N), normal(N, N)),
    "sgd, mlp": (sgd(mlp_loss, 1e-2), [normal(N, N), normal(N), normal(N, N)], normal(N, N), normal(N, N)),
    "adam": (adam, normal(N, N), normal(N, N), abs(normal(N, N)), normal(N, N)),
    "attention": (attention, normal(N, N), normal(N, N), normal(N, N)),
    "attention, gradient": (jax.grad(lambda q, k, v: (attention(q, k, v) ** 2).sum()), normal(N, N), normal(N, N), normal(N, N)),
    "gru": (gru, normal(N, N), normal(4, N, N), normal(N, N) / 8, normal(N, N) / 8),
    "heat": (heat, normal(N, N)),
    "rotary": (rotary, normal(N, N)),
    "kalman": (kalman, normal(N, N), normal(N, N) ** 2, normal(N, N) / 8, normal(N, N)),
    "cross entropy": (lambda x, y: -(jax.nn.log_softmax(x, 1) * jax.nn.softmax(y, 1)).sum(1) - 0.1 * x.mean(0), normal(N, N), normal(N, N)),
    "batch norm": (lambda x, g: ((x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5) * g, x.mean(0) - x.mean(1)), normal(N, N), normal(N)),
    "differences": (lambda x: (jnp.diff(x, axis=0), jnp.diff(x, axis=1), x[1:-1] - 0.5 * (x[2:] + x[:-2])), normal(N, N)),
    "gelu mlp": (lambda x, a, b: x + jax.nn.gelu(x @ a - x.mean(1, keepdims=True)) @ b, normal(N, N), normal(N, N) / 6, normal(N, N) / 6),
    "running sums": (lambda x: jnp.cumsum(x, 0) - jnp.cumsum(x, 1) + x[::-1] / (1 + x * x), normal(N, N)),
    "polynomial": (lambda x: ((0.3 * x - 1.2) * x + 0.7) * x - 2 / (1 + x * x) + jnp.pad(x, ((1, 0), (0, 0)))[:-1], normal(N, N)),
    "distances": (lambda a, b: jnp.sqrt((a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T + 1e-3), normal(N, N), normal(N, N)),
    "weight decay": (lambda w, g: w * (1 - 1e-4) - 1e-3 * (g - g.mean(0)), normal(N, N), normal(N, N)),
    "convolution": (lambda x, k: lax.conv(x[None, None], k[None, None], (1, 1), "SAME")[0, 0] - 0.5 * x.T, normal(N, N), normal(3, 3)),
    "contrastive": (lambda a, b: (jax.nn.log_softmax(a @ b.T, 0) + jax.nn.log_softmax(a @ b.T, 1)).diagonal() - (a * b).sum(1), normal(N, N), normal(N, N)),
}


# ---- the faults: each yields lines that may stand for a line of HLO ----

LINE = re.compile(r"^(\s*(?:ROOT )?\S+ = )(\S+) ([\w-]+)\(([^()]*)\)(.*)$")


def sign(shape, op, args, rest):
    if op in ("add", "subtract"):
        yield f"{shape} {'subtract' if op == 'add' else 'add'}({args}){rest}"
    if op == "negate":
        yield f"{shape} copy({args}){rest}"


def dropped(shape, op, args, rest):
    if op in ("add", "subtract"):
        yield f"{shape} copy({args.split(',')[0]})"
    if op == "add":
        yield f"{shape} copy({args.split(',')[1].strip()})"


def axis(shape, op, args, rest):
    def other(m):
        return m.group(1) + {"0": "1", "1": "0", "0,1": "1,0", "1,0": "0,1"}[m.group(2)] + "}"
    if op in ("reduce", "broadcast", "transpose", "reverse", "reduce-window"):
        new = re.sub(r"(dimensions=\{)(0|1|0,1|1,0)\}", other, rest)
        if new != rest:
            yield f"{shape} {op}({args}){new}"
        new = re.sub(r"size=(\d+)x(\d+) pad=(\S+?)x(\S+?)\}", r"size=\2x\1 pad=\4x\3}", rest)
        if op == "reduce-window" and new != rest:
            yield f"{shape} {op}({args}){new}"
    if op == "dot":
        for side in ("lhs", "rhs"):
            new = re.sub(side + r"(_contracting_dims=\{)([01])\}", lambda m: side + m.group(1) + str(1 - int(m.group(2))) + "}", rest)
            yield f"{shape} {op}({args}){new}"


def off_by_one(shape, op, args, rest):
    if op == "slice":
        for m in re.finditer(r"\[(\d+):(\d+)(:\d+)?\]", rest):
            for by in (1, -1):
                if int(m.group(1)) + by >= 0:
                    yield f"{shape} {op}({args}){rest[:m.start()]}[{int(m.group(1)) + by}:{int(m.group(2)) + by}{m.group(3) or ''}]{rest[m.end():]}"
    if op == "pad":
        for m in re.finditer(r"(\d+)_(\d+)", rest):
            if m.group(1) != m.group(2):
                yield f"{shape} {op}({args}){rest[:m.start()]}{m.group(2)}_{m.group(1)}{rest[m.end():]}"


def swapped(shape, op, args, rest):
    if op in ("subtract", "divide", "dot", "concatenate") and args.count(",") == 1:
        a, b = (x.strip() for x in args.split(","))
        if a != b:
            yield f"{shape} {op}({b}, {a}){rest}"


KINDS = {"wrong sign": sign, "dropped term": dropped, "wrong axis": axis, "off by one": off_by_one, "swapped operands": swapped}


def mutants(text, kind):
    lines = text.split("\n")
    for i, line in enumerate(lines):
        m = LINE.match(line)
        if m and m.group(2).startswith("f32"):
            for new in kind(*m.groups()[1:]):
                yield "\n".join(lines[:i] + [m.group(1) + new] + lines[i + 1:])


# ---- judging ----

def replay(*words):
    return subprocess.run([str(REPRISE), "replay", *map(str, words), *FLAGS, "-n", "1", "--warmup", "0"], capture_output=True, text=True)


def is_wrong(program, arrays, want, out):
    """None: it does not run."""
    if replay(program, "-i", arrays, "-e", "ref", "--save", out).returncode != 0:
        return None
    got = np.load(out)
    return any(not np.allclose(got[f"out{i}"], w, rtol=0, atol=max(2e-6 * np.abs(w).max(), 1e-30)) for i, w in enumerate(want))


def main(to):
    program, arrays, expected, out = (to / name for name in ("p.hlo.txt", "in.npz", "want.npz", "got.npz"))
    planted, found, missed, alarms, programs = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0), [], [], 0
    for name, (fn, *args) in PROGRAMS.items():
        if sys.argv[1:] and not any(w in name for w in sys.argv[1:]):
            continue
        programs += 1
        want = [np.asarray(a) for a in jax.tree.leaves(jax.jit(fn)(*args))]
        text = jax.jit(fn).lower(*args).compiler_ir("hlo").as_hlo_text()
        np.savez(arrays, **{f"in{i}": a for i, a in enumerate(jax.tree.leaves(args))})
        np.savez(expected, **{f"out{i}": a for i, a in enumerate(want)})
        for engine in ENGINES:
            program.write_text(text)
            if replay(program, "-i", arrays, "--expect", expected, "-e", engine).returncode != 0:
                alarms.append(f"{name} on {engine}")
            for kind, make in KINDS.items():
                n = 0
                for mutant in mutants(text, make):
                    program.write_text(mutant)
                    if n == MOST or not is_wrong(program, arrays, want, out):
                        continue
                    n += 1
                    planted[kind] += 1
                    if replay(program, "-i", arrays, "--expect", expected, "-e", engine).returncode == 1:
                        found[kind] += 1
                    else:
                        missed.append(f"{name}, {kind}, on {engine}")
                        if os.environ.get("KEEP"):
                            pathlib.Path(os.environ["KEEP"], f"missed{len(missed)}.hlo.txt").write_text(mutant)
    print("| fault | planted | found |\n|---|---:|---:|")
    for kind in KINDS:
        print(f"| {kind} | {planted[kind]} | {found[kind]} |")
    total, right = sum(planted.values()), sum(found.values())
    print(f"| all, in {programs} programs | {total} | {right} |")
    for line in missed:
        print("missed:", line)
    for line in alarms:
        print("called wrong, and right:", line)
    return 1 if alarms or right < 0.99 * total else 0


with tempfile.TemporaryDirectory() as folder:
    sys.exit(main(pathlib.Path(folder)))
