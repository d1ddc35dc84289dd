# SPDX-License-Identifier: Apache-2.0
"""`replay capture` of a JAX training job, `replay import`, and the bundles on ref, fast and XLA.

    tests/live/replay_capture [--reprise FILE]      runs by itself in an environment with jax and xla-cpu-pjrt

Each check is a line. Times are printed, not judged: the cost of the interposer where nothing is selected, taking turns."""
import argparse, glob, json, os, pathlib, signal, statistics, subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB = r'''
import sys, time, jax, jax.numpy as jnp
D, T, B = 64, 16, 4
def init(key):
    keys = iter(jax.random.split(key, 16))
    n = lambda *s: jax.random.normal(next(keys), s) * 0.05
    return {"e": n(128, D), "q": n(D, 3 * D), "o": n(D, D), "a": n(D, 4 * D), "b": n(4 * D, D)}
def model(p, x):
    h = p["e"][x]
    q, k, v = jnp.split(h @ p["q"], 3, -1)
    s = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((T, T), bool)), q @ jnp.swapaxes(k, 1, 2) / D ** 0.5, -1e9))
    h = h + (s @ v) @ p["o"]
    return (h + jax.nn.gelu(h @ p["a"]) @ p["b"]) @ p["e"].T
def loss(p, x):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(model(p, x)), jnp.roll(x, -1, 1)[..., None], -1))
def train_step(p, m, x):
    l, g = jax.value_and_grad(loss)(p, x)
    m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
    return jax.tree.map(lambda a, b: a - 0.05 * b, p, m), m, l
train_step = jax.jit(train_step, donate_argnums=(0, 1))
p = init(jax.random.PRNGKey(0)); m = jax.tree.map(jnp.zeros_like, p)
x = jax.random.randint(jax.random.PRNGKey(1), (B, T), 0, 128)
steps = int(sys.argv[1])
for i in range(steps):
    p, m, l = train_step(p, m, x)
    if steps > 1000: print("step", i, flush=True)
print("loss", float(l).hex())
tiny = jax.jit(lambda a: a + 1)
a = tiny(jnp.zeros(4)); best = 1e9
for r in range(20 if steps < 1000 else 0):
    t = time.perf_counter()
    for i in range(200): a = tiny(a)
    jax.block_until_ready(a); best = min(best, (time.perf_counter() - t) / 200)
print("tiny", best)
'''
DEVICES = r'''
import numpy as np, jax, jax.numpy as jnp
from functools import partial
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
a = jax.device_put(np.arange(64, dtype=np.float32).reshape(8, 8) / 10, NamedSharding(mesh, P("x", "y")))
b = jax.device_put(np.arange(48, dtype=np.float32).reshape(8, 6) / 7, NamedSharding(mesh, P("y", None)))
@jax.jit
def auto(a, b): return jnp.tanh(a @ b) * 3, a + 1, jnp.sum(b)
@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
def manual(a, b): return jax.lax.psum(a @ b, "y")
jax.block_until_ready((auto(a, b), manual(a, b), jax.pmap(lambda x: x * 2 + jax.lax.psum(x, "i"), axis_name="i")(np.ones((4, 3), np.float32))))
'''
bad = 0


def check(ok, what, more=""):
    global bad
    bad += not ok
    print(f"{'ok  ' if ok else 'FAIL'} {what}{'' if ok else ': ' + str(more)[-600:]}", flush=True)


def words(text, word):
    return [l.split()[1] for l in text.splitlines() if l.startswith(word + " ")]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--reprise", default=str(ROOT / "build" / "reprise"))
    reprise = options.parse_args().reprise
    plugins = [f for d in sys.path for f in glob.glob(d + "/xla_plugins/*/xla_cpu_pjrt.so")]
    if not plugins:
        print("skip replay_capture: xla-cpu-pjrt has no plugin")
        return 0
    plugin, tmp = plugins[0], pathlib.Path(tempfile.mkdtemp())
    (tmp / "job.py").write_text(JOB)
    job = [sys.executable, str(tmp / "job.py")]

    def run(*args, env=None):
        return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=600, env={**os.environ, **(env or {})})

    direct = {"PJRT_NAMES_AND_LIBRARY_PATHS": "direct:" + plugin, "JAX_PLATFORMS": "direct"}
    plain = run(*job, 20, env=direct)
    check(plain.returncode == 0, "JAX on the plugin alone", plain.stderr)
    r = run(reprise, "replay", "capture", "--engine", f"pjrt:{plugin}", "--module", "jit_train_step", "--first", "2", "--every", "10", "--save",
            tmp / "c", "--", *job, 20)
    check(r.returncode == 0 and "3 executions captured" in r.stderr, "captured: the first two and the eleventh", r.stderr)
    check(words(r.stdout, "loss") == words(plain.stdout, "loss"), "the same loss, to the last bit")
    imported = json.loads(run(reprise, "replay", "import", tmp / "c", "--save", tmp / "b", "--json").stdout)
    check(imported["ok"] and len(imported["imported"]) == 3, "imported as bundles", imported)
    for row in imported["imported"]:
        for engine in ("ref", "fast", "pjrt:" + plugin):
            d = run(reprise, "replay", row["bundle"], "-e", engine, "--iters", "2", "--json")
            ok = d.returncode == 0 and json.loads(d.stdout)["ok"] and json.loads(d.stdout)["checked"] == "the bundle"
            check(ok, f"{pathlib.Path(row['bundle']).name} is right on {engine.split(':')[0]}", d.stdout + d.stderr)
    isolated = run(reprise, "replay", "isolate", imported["imported"][0]["bundle"], "-e", "pjrt:" + plugin, "--json")
    d = json.loads(isolated.stdout)
    check(d["ok"] and d["isolated"] > 50, f"isolate on XLA blames nothing in {d.get('isolated')} operations", d["divergences"])

    (tmp / "devices.py").write_text(DEVICES)
    r = run(reprise, "replay", "capture", "--engine", f"pjrt:{plugin}", "--save", tmp / "d", "--", sys.executable, tmp / "devices.py",
            env={"XLA_FLAGS": "--xla_force_host_platform_device_count=4"})
    rows = json.loads(run(reprise, "replay", "import", tmp / "d", "--save", tmp / "db", "--json").stdout)["imported"]
    check(r.returncode == 0 and len(rows) >= 3 and all(x["ok"] for x in rows), "four devices: auto, shard_map and pmap are imported", rows)
    for row in rows:
        for engine in ("ref", "fast"):
            d = run(reprise, "replay", row["bundle"], "-e", engine, "--iters", "1", "--json")
            ok = d.returncode == 0 and json.loads(d.stdout)["ok"] and json.loads(d.stdout)["checked"] == "the bundle"
            check(ok, f"four devices: {row['module']} is right on {engine}", d.stdout + d.stderr)

    killed = subprocess.Popen([reprise, "replay", "capture", "--engine", f"pjrt:{plugin}", "--module", "jit_train_step", "--every", "1", "--save",
                               str(tmp / "k"), "--", *job, "100000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              start_new_session=True)
    for line in killed.stdout:
        if line.split()[:1] == ["step"] and int(line.split()[1]) >= 30:
            break
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    rows = json.loads(run(reprise, "replay", "import", tmp / "k", "--save", tmp / "kb", "--json").stdout)["imported"]
    good = [x for x in rows if x["ok"]]
    check(len(good) >= 30 and len(rows) - len(good) <= 1, f"killed in the middle: {len(good)} earlier captures are usable", rows[-1])
    last = run(reprise, "replay", good[-1]["bundle"], "--iters", "1", "--json")
    check(json.loads(last.stdout)["ok"], "and the last of them replays right", last.stdout)

    times = {"alone": [], "behind": []}
    for turn in range(5):
        times["alone"].append(float(words(run(*job, 5, env=direct).stdout, "tiny")[0]))
        r = run(reprise, "replay", "capture", "--engine", f"pjrt:{plugin}", "--first", "0", "--save", tmp / "n", "--", *job, 5)
        times["behind"].append(float(words(r.stdout, "tiny")[0]))
    alone, behind = (statistics.median(times[k]) * 1e6 for k in ("alone", "behind"))
    print(f"     an execution that is not selected: {alone:.2f} us alone, {behind:.2f} us behind the interposer ({behind - alone:+.2f})")
    print(f"replay_capture: {'failed' if bad else 'passed'}")
    return bad > 0


sys.exit(main())
