# SPDX-License-Identifier: Apache-2.0
"""Programs with many products, and what XLA says they cost; run by flops_against_xla.

Each is compared twice: as JAX hands it over, with XLA's analysis of that, and as XLA compiled it for
the CPU, with the analysis of the executable. Flops and bytes must agree within 5 % where products dominate;
the others are shown."""
import json, os, subprocess, sys, tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_use_onednn=false"
import jax
import jax.numpy as jnp
from jax import lax

REPRISE = os.environ.get("REPRISE", os.path.join(os.environ.get("BUILD", "build"), "reprise"))
WITHIN = 0.05
F32, BF16, F16 = jnp.float32, jnp.bfloat16, jnp.float16


def x(*shape, dtype=F32):
    return jax.ShapeDtypeStruct(shape, dtype)


def mlp(w1, w2, w3, a):
    return jax.nn.softmax(jax.nn.relu(jax.nn.relu(a @ w1) @ w2) @ w3).sum()


def attention(q, k, v):
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v)


def conv(a, w, stride=1, padding="SAME", lhs=(1, 1), rhs=(1, 1), groups=1, batch=1):
    return lax.conv_general_dilated(a, w, (stride, stride), padding, lhs, rhs, ("NHWC", "HWIO", "NHWC"),
                                    feature_group_count=groups, batch_group_count=batch)


def convnet(w1, w2, w3, a):
    a = jax.nn.relu(conv(a, w1, 2))
    a = jax.nn.relu(conv(a, w2))
    a = lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return (conv(a, w3, 1, "VALID").mean((1, 2)) ** 2).sum()


def scanned(w, a):
    return lax.scan(lambda c, m: (jnp.tanh(c @ m), None), a, w)[0]


def block(p, a):
    for w in p:
        h = attention(*(jnp.einsum("btd,dhk->bthk", a, w[i]) for i in range(3)))
        a = a + jnp.einsum("bthk,hkd->btd", h, w[3])
        a = a + jax.nn.gelu(a @ w[4]) @ w[5]
    return (a ** 2).mean()


def bn_block(w1, w2, a):
    for w in (w1, w2):
        h = conv(a, w)
        h = (h - h.mean((0, 1, 2))) * lax.rsqrt(h.var((0, 1, 2)) + 1e-5)
        a = a + jax.nn.relu(h)
    return (a ** 2).mean()


def adam_step(w, m, v, a):
    g = jax.grad(lambda w: (jnp.tanh(a @ w) ** 2).mean())(w)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


def layer(d=64, h=4):
    return [x(d, h, d // h)] * 3 + [x(h, d // h, d), x(d, 4 * d), x(4 * d, d)]


SQUARE = (x(256, 256), x(256, 256))
IMAGE, K3 = x(4, 32, 32, 16), x(3, 3, 16, 32)
PROGRAMS = {
    "dot": (jnp.dot, SQUARE),
    "dot_bf16": (jnp.dot, (x(256, 512, dtype=BF16), x(512, 128, dtype=BF16))),
    "matrix_vector": (jnp.dot, (x(512, 512), x(512))),
    "batched_dot": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), (x(8, 64, 96), x(8, 96, 32))),
    "dot_two_contracted": (lambda a, b: jnp.tensordot(a, b, 2), (x(32, 16, 24), x(16, 24, 40))),
    "mlp": (mlp, (x(128, 256), x(256, 256), x(256, 16), x(64, 128))),
    "mlp_grad": (jax.grad(mlp, (0, 1, 2)), (x(128, 256), x(256, 256), x(256, 16), x(64, 128))),
    "attention": (attention, [x(2, 64, 4, 32)] * 3),
    "attention_grad": (jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2)), [x(2, 64, 4, 32)] * 3),
    "transformer_grad": (jax.grad(block), ([layer(), layer()], x(2, 32, 64))),
    "conv": (conv, (IMAGE, K3)),
    "conv_stride": (lambda a, w: conv(a, w, 2), (IMAGE, K3)),
    "conv_valid": (lambda a, w: conv(a, w, 1, "VALID"), (IMAGE, K3)),
    "conv_input_dilated": (lambda a, w: conv(a, w, 1, ((2, 1), (1, 2)), (2, 2)), (IMAGE, K3)),
    "conv_kernel_dilated": (lambda a, w: conv(a, w, 1, "SAME", (1, 1), (3, 3)), (IMAGE, K3)),
    "conv_both_dilated": (lambda a, w: conv(a, w, 2, ((4, 5), (3, 1)), (3, 2), (2, 3)), (IMAGE, K3)),
    "conv_grouped": (lambda a, w: conv(a, w, groups=4), (IMAGE, x(3, 3, 4, 32))),
    "conv_depthwise": (lambda a, w: conv(a, w, groups=16), (IMAGE, x(3, 3, 1, 32))),
    "conv_batch_grouped": (lambda a, w: conv(a, w, batch=4), (IMAGE, K3)),
    "conv_grad": (jax.grad(lambda a, w: conv(a, w, 2).sum(), (0, 1)), (IMAGE, K3)),
    "conv_grouped_grad": (jax.grad(lambda a, w: conv(a, w, groups=4).sum(), (0, 1)), (IMAGE, x(3, 3, 4, 32))),
    "conv_1d": (lambda a, w: lax.conv_general_dilated(a, w, (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCH")),
                (x(2, 16, 100), x(24, 16, 5))),
    "conv_3d": (lambda a, w: lax.conv_general_dilated(a, w, (1, 2, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")),
                (x(1, 8, 12, 12, 8), x(3, 3, 3, 8, 16))),
    "convnet": (convnet, (x(7, 7, 3, 32), x(3, 3, 32, 64), x(3, 3, 64, 64), x(4, 64, 64, 3))),
    "convnet_grad": (jax.grad(convnet, (0, 1, 2)), (x(7, 7, 3, 32), x(3, 3, 32, 64), x(3, 3, 64, 64), x(4, 64, 64, 3))),
    "conv_transpose": (lambda a, w: lax.conv_transpose(a, w, (2, 2), "SAME"), (IMAGE, K3)),
    "conv_vmapped": (jax.vmap(conv, (None, 0)), (IMAGE, x(3, 3, 3, 16, 32))),
    "batch_norm_block_grad": (jax.grad(bn_block, (0, 1)), (x(3, 3, 16, 16), x(3, 3, 16, 16), x(8, 16, 16, 16))),
    "int8_dot": (lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32),
                 (x(64, 128, dtype=jnp.int8), x(128, 64, dtype=jnp.int8))),
    "remat_grad": (jax.grad(jax.checkpoint(mlp)), (x(128, 256), x(256, 256), x(256, 16), x(64, 128))),
    "cond_dots": (lambda c, a, b: lax.cond(c, lambda: a @ b, lambda: (a @ b) @ b), (x(dtype=bool), *SQUARE)),
    "embedding_grad": (jax.grad(lambda t, w, i: ((t[i] @ w) ** 2).sum(), (0, 1)), (x(1000, 64), x(64, 512), x(200, dtype=jnp.int32))),
    "adam_step": (adam_step, (x(256, 256), x(256, 256), x(256, 256), x(512, 256))),
    "scan": (scanned, (x(6, 128, 128), x(32, 128))),
    "reductions": (lambda a: (a.sum(0), a.max(1), a.mean(), jnp.argmax(a, 1), jnp.cumsum(a, 0)), (x(128, 256),)),
    "elementwise": (lambda a, b: jnp.exp(a) * b + jnp.where(a > b, a, b), SQUARE),
    "gather_scatter": (lambda t, i, u: t.at[i].add(u)[i], (x(1000, 64), x(50, dtype=jnp.int32), x(50, 64))),
    "fft": (jnp.fft.fft, (x(16, 256, dtype=jnp.complex64),)),
    "cholesky": (jnp.linalg.cholesky, (x(64, 64),)),
    "triangular_solve": (lambda a, b: jax.scipy.linalg.solve_triangular(a, b), (x(64, 64), x(64, 32))),
    "sort": (lambda a: jnp.sort(a, 1), (x(64, 256),)),
    "layer_norm": (lambda a, g: (a - a.mean(-1, keepdims=True)) * lax.rsqrt(a.var(-1, keepdims=True) + 1e-5) * g,
                   (x(64, 256), x(256))),
}
LOOPS = {"scan": 6}  # XLA counts one round of a loop, we as many as it says there are
BARRIERS = {"remat_grad"}  # XLA counts the bytes that an optimization barrier does not move
LIGHT = {"fft", "cholesky", "triangular_solve", "reductions", "elementwise", "gather_scatter", "sort", "layer_norm"}  # few products: shown, not held to


def ours(text):
    with tempfile.NamedTemporaryFile("w", suffix=".hlo.txt") as f:
        f.write(text)
        f.flush()
        out = subprocess.run([REPRISE, "graph", "--json", f.name], capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(f"reprise graph failed: {out.stderr}")
    return json.loads(out.stdout)


def off(got, want):
    return abs(got - want) / want if want else float(got != 0)


def compare(name, when, text, cost):
    doc = ours(text)
    flops, size = cost.get("flops", 0.0), cost.get("bytes accessed", 0.0)
    if name in LOOPS and "known_trip_count" in text:
        flops, size = flops * LOOPS[name], size * LOOPS[name]
    bad = off(doc["flops"], flops) > WITHIN and name not in LIGHT
    bad |= name not in LIGHT | LOOPS.keys() | BARRIERS and off(doc["bytes"], size) > WITHIN
    print(f"{'FAILED' if bad else 'ok':6} {name:20} {when:6} flops {doc['flops']:>14,} {flops:>16,.0f} {off(doc['flops'], flops):7.2%}"
          f"   bytes {doc['bytes']:>12,} {size:>14,.0f} {off(doc['bytes'], size):7.1%}")
    return bad


def main(names):
    failed = 0
    print(f"flops_against_xla: JAX {jax.__version__}; ours, XLA's, off")
    for name, (fn, args) in PROGRAMS.items():
        if names and not any(n in name for n in names):
            continue
        lowered = jax.jit(fn).lower(*args)
        failed += compare(name, "before", lowered.as_text(dialect="hlo"), lowered.cost_analysis())
        compiled = lowered.compile()
        cost = compiled.cost_analysis()
        failed += compare(name, "after", compiled.as_text(), cost[0] if isinstance(cost, list) else cost)
    print(f"flops_against_xla: {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
