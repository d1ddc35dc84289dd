#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that jax.export made for inputs of any size (symbolic dimensions), as text and as bytecode, replayed with inputs of several
sizes on the built-in engines and compared with what JAX gives; and refined by `convert --refine`, compiled
and run by XLA.

    replay_dynamic [NAME...]      only the programs whose name contains one of these
    REPRISE, ENGINES              the program (build/reprise), engines ("ref fast")
    KEEP                          a folder for the files; otherwise they are removed
"""
import json, os, pathlib, subprocess, sys, tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax, jax.numpy as jnp, numpy as np
    from jax import export, lax
    from jaxlib import _jax, xla_client
except ImportError as why:
    print(f"replay_dynamic: skipped: {why}")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", ROOT / "build" / "reprise")
ENGINES = os.environ.get("ENGINES", "ref fast").split()
rng = np.random.default_rng(3)
cases = {}


def case(name, fn, *args, constraints=(), sizes=({"b": 3, "n": 4, "k": 5}, {"b": 8, "n": 6, "k": 2})):
    """args: "b,8" or ("b,8", dtype, bound of integers)"""
    cases[name] = fn, args, constraints, sizes


def core_max(a, b):
    return jax._src.core.max_dim(a, b)


def mlp(x, w1, b1, w2):
    return jax.nn.log_softmax(jax.nn.gelu(x @ w1 + b1) @ w2)


def mlp_step(x, y, w1, w2):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)
    value, grads = jax.value_and_grad(loss)((w1, w2))
    return value, [w - 0.1 * g for w, g in zip((w1, w2), grads)]


def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(8).astype(np.float32)
    mask = jnp.tril(jnp.ones(s.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, s, -1e9)), v)


def conv(x, w):
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convnet(x, w):
    h = jax.nn.relu(conv(x, w))
    return lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").mean((1, 2))


def scanned(x, w):
    def cell(h, t):
        h = jnp.tanh(t @ w + h)
        return h, h.sum()
    return lax.scan(cell, jnp.zeros(x.shape[1:]), x)


def looped(x):
    def body(c):
        i, v = c
        return i + 1, jnp.roll(v, 1) * 0.5 + jnp.arange(v.shape[0])
    return lax.while_loop(lambda c: c[0] < c[1].shape[0], body, (0, x))


@jax.jit
def inner(x):
    return jnp.concatenate([x, x[:1]]) * x.shape[0]


case("mlp", mlp, "b,16", "16,32", "32", "32,4")
case("mlp_step", mlp_step, "b,n", "b,k", "n,8", "8,k")
case("attention", attention, "b,2,n,8", "b,2,n,8", "b,2,n,8")
case("conv", conv, "b,2*n,2*k,3", "3,3,3,4")
case("convnet", convnet, "b,8*n,8*n,3", "3,3,3,4", sizes=({"b": 2, "n": 1}, {"b": 3, "n": 2}))
case("conv_grad", jax.grad(lambda w, x: (conv(x, w) ** 2).sum()), "3,3,3,4", "b,2*n,2*n,3")
case("gather", lambda x, i: (x[i], x[1:], x[:, -1], jnp.take(x, i, axis=0, mode="clip")), "b,n", ("k", np.int32, 3), constraints=("b>=2",))
case("scatter", lambda x, i, u: (x.at[i].add(u), x.at[i].set(2 * u, mode="drop")), "b,n", ("k", np.int32, 2), "k,n", sizes=({"b": 3, "n": 4, "k": 2},))
case("concatenate", lambda x, y: (jnp.concatenate([x, y, jnp.zeros((1, x.shape[1]))]), jnp.stack([x, x]), jnp.tile(x, (2, 3)),
                                  jnp.pad(x, ((1, 2), (0, x.shape[0])))), "b,n", "2*b,n")
case("sizes", lambda x: (jnp.arange(x.shape[0] + 1), jnp.zeros(x.shape[0] // 2 + x.shape[1] % 3), jnp.ones((2 * x.shape[0], x.shape[1] - 1)),
                         x.reshape(-1), x.reshape(x.shape[1], x.shape[0]), x.sum() / x.shape[0], x.shape[0] * 1.5), "b,n", constraints=("n>=1",))
case("max_sizes", lambda x, y: jnp.ones(core_max(x.shape[0], y.shape[0])) * 2, "b", "n")
case("vmap", jax.vmap(lambda m, v: (m @ v, jnp.sort(m, axis=-1), jnp.argmax(m, -1)), in_axes=(0, None)), "b,n,k", "k")
case("scan", scanned, "n,b,8", "8,8")
case("while", looped, "n")
case("functions", lambda x: inner(x) + inner(inner(x))[:-1], "b")
case("norms", lambda x, g: ((x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * g, jnp.linalg.norm(x, axis=0)), "b,n,16", "16")
case("cumsum", lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), lax.cummax(x, axis=0)), "b,n")
case("top_k", lambda x: lax.top_k(x, 2), "b,n", constraints=("n>=2",))
case("cond", lambda x: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - v.shape[0], x), "b,n")
case("switch_sort", lambda i, x: lax.switch(i, [lambda v: jnp.sort(v), lambda v: jnp.flip(v), lambda v: v + 1], x), ("", np.int32, 3), "b,n")
case("dynamic_slice", lambda x, i: (lax.dynamic_slice_in_dim(x, i, 2, 0), lax.dynamic_slice(x, (i, 0), (1, x.shape[1])),
                                    lax.dynamic_update_slice(x, jnp.ones((1, x.shape[1])), (i, 0))), "b,n", ("", np.int32, 2), constraints=("b>=2",))
case("one_hot", lambda i: jax.nn.one_hot(i, 7).sum(0), ("b,n", np.int32, 7))
case("embedding", lambda e, i: e[i] @ e.T, "50,16", ("b,n", np.int32, 50))
case("cholesky", lambda x: jnp.linalg.cholesky(x @ x.swapaxes(-1, -2) + 9 * jnp.eye(4)), "b,4,4")
case("eigh", lambda x: jnp.linalg.eigh(x + x.swapaxes(-1, -2))[0], "b,4,4")
case("einsum", lambda x, y: jnp.einsum("bnk,bmk->nm", x, y), "b,n,k", "b,2*n,k")
case("fft", lambda x: jnp.abs(jnp.fft.rfft(x)), "b,16")
case("random", lambda key, x: x + jax.random.normal(key, x.shape), ("2", np.uint32, 1000), "b,n")
case("where_clip", lambda x: (jnp.where(x > 0, x, 0), jnp.clip(x, -1, 1), jnp.nan_to_num(x), x.astype(jnp.bfloat16).astype(jnp.float32)), "b,n")
case("select_scatter", jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID").sum()), "b,2*n")
case("nested_scan", lambda x: lax.scan(lambda c, r: lax.scan(lambda d, e: (d + e * r.shape[0], d), c, r), jnp.float32(0), x), "b,n")


def array(spec, dims):
    text, dtype, bound = spec if isinstance(spec, tuple) else (spec, np.float32, 0)
    shape = tuple(int(eval(d, {}, dict(dims))) for d in text.split(",") if d)
    return rng.integers(0, bound, shape).astype(dtype) if bound else rng.standard_normal(shape).astype(dtype)


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


def xla(path, values):
    """What XLA computes from a module that convert wrote: an HloProto with the module in field 1."""
    data, at, n, shift = path.read_bytes(), 1, 0, 0
    while True:
        n |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            break
    program = _jax.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(data[at:at + n]))
    made = jax.devices()[0].client.compile_and_load(program, xla_client.DeviceList(tuple(jax.devices()[:1])), xla_client.CompileOptions())
    done = made.execute_sharded([jax.device_put(v) for v in values]).disassemble_into_single_device_arrays()
    return [np.asarray(array[0]) for array in done]


def wrong_in_xla(first, path, values, want):
    """Why XLA does not give these results from the converted module, or nothing."""
    if first.returncode:
        return first.stderr.strip()
    try:
        got = xla(path, values)
    except Exception as refused:
        return " ".join(str(refused).split())
    return "" if len(got) == len(want) and all(np.allclose(a, b, 1e-3, 1e-4, True) for a, b in zip(got, want)) else "XLA computes something else"


passed, failed = 0, []
here = pathlib.Path(os.environ["KEEP"]) if os.environ.get("KEEP") else None
with tempfile.TemporaryDirectory() as made:
    to = here or pathlib.Path(made)
    for name, (fn, args, constraints, sizes) in cases.items():
        if sys.argv[1:] and not any(w in name for w in sys.argv[1:]):
            continue
        scope = export.SymbolicScope(constraints)
        specs = [jax.ShapeDtypeStruct(export.symbolic_shape(a[0] if isinstance(a, tuple) else a, scope=scope), a[1] if isinstance(a, tuple) else np.float32) for a in args]
        exported = export.export(jax.jit(fn), disabled_checks=[export.DisabledSafetyCheck.custom_call("lapack_ssyevd_ffi")])(*specs)
        (to / f"{name}.mlir").write_text(exported.mlir_module())
        (to / f"{name}.bin").write_bytes(exported.serialize())
        for k, dims in enumerate(sizes):
            values = [array(a, dims) for a in args]
            want = jax.tree.leaves(exported.call(*values))
            io = to / f"{name}{k}.npz"
            np.savez(io, **{f"in{i}": v for i, v in enumerate(values)}, **{f"out{i}": np.asarray(v) for i, v in enumerate(want)})
            shapes = ",".join(f"in{i}=" + "x".join(map(str, v.shape)) for i, v in enumerate(values))
            refined = to / f"{name}{k}.hlo.pb"
            first = run(REPRISE, "convert", to / f"{name}.mlir", "--refine", shapes, "-o", refined)
            why = {(refined.name, "xla"): wrong_in_xla(first, refined, values, want)}
            for file, engine in [(f, e) for f in (f"{name}.mlir", f"{name}.bin") for e in ENGINES]:
                got = run(REPRISE, "replay", to / file, "--inputs", io, "--expect", io, "-e", engine, "--time", "1ms", "--json")
                ok = got.returncode == 0 and got.stdout.startswith("{") and json.loads(got.stdout)["ok"]
                why[file, engine] = "" if ok else got.stderr.strip() or got.stdout
            passed += sum(not text for text in why.values())
            failed += [f"{file} {dims} {engine}: {text[:300]}" for (file, engine), text in why.items() if text]
for line in failed:
    print("FAILED", line)
print(f"replay_dynamic: {passed} right, {len(failed)} wrong or refused")
sys.exit(bool(failed))
