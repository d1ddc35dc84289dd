#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`replay isolate A B` and `dump passes --bisect` on a training step that XLA compiled here, with planted faults.

The step is dumped after every pass. Without a fault all programs agree. A fault is one operation that becomes another
one: in a copy of a program, which isolate must name against the program itself and find against the program before
optimization; and in all programs after a pass, which bisect must name.

    REPRISE                       the program (build/reprise)
"""
import json, os, pathlib, re, shutil, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", ROOT / "build" / "reprise")
OTHER = {"add": "subtract", "subtract": "add", "multiply": "add", "divide": "multiply", "tanh": "negate",
         "exponential": "tanh", "log": "tanh", "maximum": "minimum", "sqrt": "tanh"}
STEP = """
import jax, jax.numpy as jnp, numpy as np
def layer(x, w):
    h = jnp.tanh(x @ w[0])
    return x + h @ w[1], jnp.mean(h)
def loss(p, x, y):
    h, m = jax.lax.scan(layer, x @ p['in'], (p['a'], p['b']))
    mean = h.mean(-1, keepdims=True)
    h = (h - mean) / jnp.sqrt(((h - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    logits = jax.nn.log_softmax(h @ p['out'])
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], 1)) + 0.01 * m.sum()
@jax.jit
def step(p, x, y):
    value, g = jax.value_and_grad(loss)(p, x, y)
    return value, jax.tree.map(lambda a, b: a - 0.1 * b, p, g)
z = lambda *s: np.zeros(s, 'f4')
step({'in': z(16, 32), 'a': z(3, 32, 64), 'b': z(3, 64, 32), 'out': z(32, 10)}, z(8, 16), np.zeros(8, 'i4'))
"""


def ask(*args):
    done = subprocess.run([REPRISE, *args, "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"replay_isolate: {' '.join(map(str, args))}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def faults(text):
    """(name, text with a fault in it) of operations on f32 arrays; not of the functions of reductions."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        m = re.match(r"\s*(?:ROOT )?%?([\w.\-]+) = f32\[\d\S* ([a-z]+)\(", line)
        if m and m[2] in OTHER:
            changed = line.replace(f" {m[2]}(", f" {OTHER[m[2]]}(", 1)
            yield m[1], "\n".join(lines[:i] + [changed] + lines[i + 1:])


def isolate(against, program, scratch):
    """Faults in a program: named, listed among what may be it, not found, without effect."""
    counts = {"named": 0, "listed": 0, "missed": 0, "no effect": 0}
    for name, text in faults(program.read_text()):
        (scratch / "faulty.hlo.txt").write_text(text)
        answer = ask("replay", "isolate", against, scratch / "faulty.hlo.txt")
        others = [d["other"] or "" for d in answer["divergences"]]
        counts["no effect" if answer["ok"] else
               "named" if (answer["counterpart"] or "").split()[0].endswith(name) else
               "listed" if any(o.endswith(name) for o in others) else "missed"] += 1
    print(f"replay_isolate: {program.name} against {against.name}: {counts}")
    return counts


def bisect(dump, scratch):
    """How often the pass is named after which a fault was planted."""
    stages = sorted(f for f in dump.glob("*.jit_step.[0-9]*.txt"))
    named = tried = 0
    for at in range(2, len(stages), len(stages) // 8):
        folder = scratch / f"pass{at}"
        shutil.copytree(dump, folder)
        for stage in [*stages[at:], *dump.glob("*after_optimizations.txt")]:
            text = stage.read_text()
            assert " tanh(" in text
            (folder / stage.name).write_text(text.replace(" tanh(", " negate("))
        answer = ask("dump", "passes", folder, "--bisect", "--module", "jit_step")
        tried += 1
        named += answer["wrong"] is not None and answer["wrong"] in stages[at].name
    print(f"replay_isolate: {named} of {tried} passes named")
    return named == tried


with tempfile.TemporaryDirectory() as folder:
    scratch = pathlib.Path(folder)
    dump = scratch / "dump"
    flags = f"--xla_dump_to={dump} --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text"
    run = subprocess.run([sys.executable, "-c", STEP], env={**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags},
                         capture_output=True, text=True)
    if run.returncode:
        print(f"replay_isolate: skipped: {run.stderr.strip().splitlines()[-1]}")
        sys.exit(0)
    before, after = (next(dump.glob(f"*.jit_step.{s}.txt")) for s in ("before_optimizations", "cpu_after_optimizations"))
    ok = ask("replay", "isolate", before, after)["ok"]
    ok &= ask("dump", "passes", dump, "--bisect", "--module", "jit_step")["ok"]
    for program in (before, after):
        found = isolate(program, program, scratch)
        ok &= not found["missed"] and not found["listed"]
    found = isolate(before, after, scratch)
    ok &= found["missed"] <= sum(found.values()) / 5  # what was fused and rewritten has few counterparts
    ok &= bisect(dump, scratch)
    print("replay_isolate:", "passed" if ok else "failed")
    sys.exit(not ok)
