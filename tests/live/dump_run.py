# SPDX-License-Identifier: Apache-2.0
"""`dump run` under a real framework gives a folder that `dump ls` and `replay import` understand."""
import json, os, subprocess, sys, tempfile
from pathlib import Path

REPRISE = os.path.abspath(os.environ.get("REPRISE", "build/reprise"))

JAX = """
import jax, jax.numpy as jnp
@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)
w, x = jnp.ones((16, 16)), jnp.ones((4, 16))
for _ in range(3):
    w = step(w, x)
print("done", w.shape)
"""

TENSORFLOW = """
import tensorflow as tf
@tf.function(jit_compile=True)
def step(x, w):
    return tf.nn.relu(tf.matmul(x, w)) + 1.0
x = tf.ones([8, 8])
print("done", step(x, x).shape)
"""


def reprise(*args, **env):
    return subprocess.run([REPRISE, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **env})


def answer(*args):
    done = reprise(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(folder, program, *options, **env):
    done = reprise("dump", "run", *options, "-o", str(folder), "--", sys.executable, str(program), **env)
    assert done.returncode == 0 and "done" in done.stdout, done.stderr
    return done.stderr


def jit_step(folder):
    found = [m for m in answer("dump", "ls", str(folder))["modules"] if m["name"] == "jit_step" and "/xla" in m["folder"]]
    assert found, f"no module jit_step in {folder}"
    return found[0]


def test_jax(tmp):
    program = tmp / "train.py"
    program.write_text(JAX)
    bad = "--xla_no_such_flag=1 --xla_cpu_enable_fast_math=false"
    alone = subprocess.run([sys.executable, str(program)], env={**os.environ, "XLA_FLAGS": bad}, capture_output=True)
    assert alone.returncode != 0, "XLA takes an unknown flag"
    said = run(tmp / "quick", program, XLA_FLAGS=bad)
    assert "'--xla_no_such_flag=1' is left out" in said and "jax 0.10.2" in said, said
    module = jit_step(tmp / "quick")
    assert module["instructions"] > 5 and module["peak_bytes"] > 0, module
    imported = answer("replay", "import", str(tmp / "quick"), "--save", str(tmp / "quick-bundles"))["imported"]
    assert any(i["module"] == "jit_step" and i["ok"] for i in imported), imported

    run(tmp / "passes", program, "--preset", "passes", "--module", "jit_step")
    module = jit_step(tmp / "passes")
    assert module["passes"] > 10, module
    passes = answer("dump", "passes", str(tmp / "passes"))
    assert "jit_step" in passes["module"] and passes["changed_count"] > 3, passes

    run(tmp / "memory", program, "--preset", "memory")
    assert list((tmp / "memory/xla").glob("*.hlo.pb"))
    assert answer("dump", "ops", str(tmp / "memory"))["unsupported"] == 0

    run(tmp / "replay", program, "--preset", "replay")
    imported = answer("replay", "import", str(tmp / "replay"), "--save", str(tmp / "bundles"))["imported"]
    bundle = [i for i in imported if i["module"] == "jit_step" and i["ok"]][0]
    assert "recorded" in bundle["inputs"], bundle
    assert answer("replay", bundle["bundle"], "--iters", "1")["ok"]

    launcher = tmp / "launcher"
    launcher.write_text("for rank in 0 1; do RANK=$rank \"$@\" || exit 1; done\n")
    done = reprise("dump", "run", "-o", str(tmp / "ranks"), "--", "sh", str(launcher), sys.executable, str(program))
    assert done.returncode == 0, done.stderr
    texts = [tmp / f"ranks/rank{r}/xla" for r in (0, 1)]
    names = [sorted(p.name for p in t.glob("*before_optimizations.txt")) for t in texts]
    assert names[0] == names[1] and names[0], names
    assert all((texts[0] / n).samefile(texts[1] / n) for n in names[0]), "equal files of two ranks are stored twice"
    print("dump_run: JAX: quick, passes, memory, replay and two ranks")


def test_tensorflow(tmp):
    program = tmp / "train.py"
    program.write_text(TENSORFLOW)
    said = run(tmp / "d", program)
    assert "tensorflow 2.21" in said, said
    graphs = {p.name for p in (tmp / "d/tensorflow").glob("*.pbtxt")}
    assert any(g.startswith("encapsulate_subgraphs_before") for g in graphs), graphs
    assert any(g.startswith("xla_compile_function") for g in graphs), graphs
    modules = answer("dump", "ls", str(tmp / "d"))["modules"]
    assert any("/xla" in m["folder"] and m["instructions"] for m in modules), modules
    bad = reprise("dump", "run", "-q", "-o", str(tmp / "e"), "--", sys.executable, str(program),
                  TF_XLA_FLAGS="--tf_xla_cluster_debug")
    assert bad.returncode == 0 and "did you mean '--tf_xla_clustering_debug'" in bad.stderr, bad.stderr
    print("dump_run: TensorFlow: graphs and HLO")


with tempfile.TemporaryDirectory() as scratch:
    globals()["test_" + sys.argv[1]](Path(scratch))
