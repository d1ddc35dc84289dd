#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/replay_sizes.py [--build DIR] [--rounds N] [--only NAME ...] [--save FILE]: `fast` beside XLA on programs of real sizes.

Writes programs in JAX (decoding with a cache, LSTM, sampling, mixture of experts, selective scan, ViT,
UNet, ResNet, DLRM ...), each before and after XLA's optimization, with real inputs, into a folder
(--folder; kept and reused). Then XLA for the CPU (engine `pjrt`, on the form before optimization) and
`fast` on both forms run in turn for ROUNDS rounds. A row has the best run of each engine, their ratio, and
the compile time of each; the last line the geometric mean of the ratios. With --check, outputs are
compared with those of XLA too.

Needs a Python with jax (only to write the programs) and PyPI's xla-cpu-pjrt (`reprise replay engines --install`).
"""
import argparse, json, math, os, pathlib, subprocess, sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


# ---- programs: each returns (function, arguments) ----

def programs():
    import jax, jax.numpy as jnp, numpy as np
    from jax import lax
    rng = np.random.default_rng(7)

    def normal(*dims, scale=None, dtype=np.float32):
        scale = scale or 1 / math.sqrt(dims[0] if len(dims) > 1 else 1)
        return jnp.asarray((rng.standard_normal(dims) * scale).astype(np.float32)).astype(dtype)

    def norm(x, g):
        m = jnp.mean(x.astype(jnp.float32), -1, keepdims=True)
        v = jnp.var(x.astype(jnp.float32), -1, keepdims=True)
        return ((x - m) * lax.rsqrt(v + 1e-5)).astype(x.dtype) * g

    def block_weights(d, dtype=np.float32):
        one = jnp.ones(d, dtype)
        return dict(qkv=normal(d, 3 * d, dtype=dtype), o=normal(d, d, dtype=dtype), up=normal(d, 4 * d, dtype=dtype),
                    down=normal(4 * d, d, dtype=dtype), g1=one, g2=one)

    def block(x, w, heads, causal):
        b, t, d = x.shape
        q, k, v = (y.reshape(b, t, heads, d // heads) for y in jnp.split(norm(x, w["g1"]) @ w["qkv"], 3, -1))
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(d // heads)
        if causal:
            s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s, -1), v).reshape(b, t, d)
        x = x + y @ w["o"]
        return x + jax.nn.gelu(norm(x, w["g2"]) @ w["up"]) @ w["down"]

    def decode():
        layers, d, heads, vocab, room, batch = 6, 512, 8, 16000, 128, 4

        def step(ws, emb, x, ks, vs, at):
            for i, w in enumerate(ws):
                q, k, v = (y.reshape(batch, heads, d // heads) for y in jnp.split(norm(x, w["g1"]) @ w["qkv"], 3, -1))
                ks = lax.dynamic_update_slice(ks, k[None, :, :, None], (i, 0, 0, at, 0))
                vs = lax.dynamic_update_slice(vs, v[None, :, :, None], (i, 0, 0, at, 0))
                s = jnp.einsum("bhd,bhtd->bht", q, ks[i]) / math.sqrt(d // heads)
                s = jnp.where(jnp.arange(room) <= at, s, -1e9)
                y = jnp.einsum("bht,bhtd->bhd", jax.nn.softmax(s, -1), vs[i]).reshape(batch, d)
                x = x + y @ w["o"]
                x = x + jax.nn.gelu(norm(x, w["g2"]) @ w["up"]) @ w["down"]
            return x @ emb.T, ks, vs

        def f(ws, emb, token):
            def body(c):
                i, token, out, ks, vs = c
                logits, ks, vs = step(ws, emb, emb[token], ks, vs, i)
                token = jnp.argmax(logits, -1).astype(jnp.int32)
                return i + 1, token, lax.dynamic_update_slice(out, token[:, None], (0, i)), ks, vs
            cache = jnp.zeros((layers, batch, heads, room, d // heads))
            c = (jnp.int32(0), token, jnp.zeros((batch, 32), jnp.int32), cache, cache)
            return lax.while_loop(lambda c: c[0] < 32, body, c)[2]
        return f, ([block_weights(d) for _ in range(layers)], normal(vocab, d, scale=0.02), jnp.arange(batch, dtype=jnp.int32))

    def lstm():
        d, steps, batch = 512, 100, 64

        def f(wx, wh, b, xs):
            def cell(c, x):
                h, s = c
                i, g, o, r = jnp.split(x @ wx + h @ wh + b, 4, -1)
                s = jax.nn.sigmoid(r) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(s)
                return (h, s), h
            return lax.scan(cell, (jnp.zeros((batch, d)), jnp.zeros((batch, d))), xs)[1]
        return f, (normal(d, 4 * d), normal(d, 4 * d), normal(4 * d), normal(steps, batch, d, scale=1.0))

    def sampling():
        def f(key, logits):
            order = jnp.argsort(-logits, -1)
            ranked = jnp.take_along_axis(logits, order, -1)
            p = jax.nn.softmax(ranked / 0.8, -1)
            kept = jnp.where(jnp.cumsum(p, -1) - p < 0.9, ranked, -jnp.inf)
            pick = jax.random.categorical(jax.random.wrap_key_data(key), kept, axis=-1)
            return jnp.take_along_axis(order, pick[:, None], -1)[:, 0], p[:, :50]
        return f, (jax.random.key_data(jax.random.key(3)), normal(64, 32768, scale=2.0))

    def moe():
        tokens, d, experts, capacity = 2048, 256, 8, 512

        def f(x, gate, up, down):
            p = jax.nn.softmax(x @ gate, -1)
            top, which = lax.top_k(p, 2)
            hot = jax.nn.one_hot(which, experts)                                # t, 2, e
            place = jnp.cumsum(hot.reshape(tokens * 2, experts), 0).reshape(tokens, 2, experts) * hot - 1
            slot = jax.nn.one_hot(jnp.sum(place * hot, -1).astype(jnp.int32), capacity)  # t, 2, c
            send = jnp.einsum("tke,tkc->tec", hot, slot)
            back = jnp.einsum("tk,tke,tkc->tec", top, hot, slot)
            h = jax.nn.gelu(jnp.einsum("ecd,edf->ecf", jnp.einsum("tec,td->ecd", send, x), up))
            return jnp.einsum("tec,ecd->td", back, jnp.einsum("ecf,efd->ecd", h, down))
        return f, (normal(tokens, d, scale=1.0), normal(d, experts), normal(experts, d, 4 * d, scale=0.05), normal(experts, 4 * d, d, scale=0.05))

    def mamba(associative):
        batch, length, d, n = 2, 512, 512, 16

        def f(x, a, wb, wc, wd, dt):
            delta = jax.nn.softplus(x @ wd + dt)                                 # b, l, d
            b, c = x @ wb, x @ wc                                                # b, l, n
            da = jnp.exp(delta[..., None] * -jnp.exp(a))                         # b, l, d, n
            db = (delta * x)[..., None] * b[:, :, None]
            if associative:
                h = lax.associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (da, db), axis=1)[1]
                return jnp.einsum("bldn,bln->bld", h, c)

            def step(h, at):
                da, db, c = at
                h = da * h + db
                return h, jnp.einsum("bdn,bn->bd", h, c)
            ys = lax.scan(step, jnp.zeros((batch, d, n)), (da.swapaxes(0, 1), db.swapaxes(0, 1), c.swapaxes(0, 1)))[1]
            return ys.swapaxes(0, 1)
        return f, (normal(batch, length, d, scale=1.0), normal(d, n), normal(d, n), normal(d, n), normal(d, d), normal(d))

    def vit(dtype):
        batch, d, heads, layers = 4, 384, 6, 12

        def f(patch, place, ws, head, images):
            x = images.reshape(batch, 14, 16, 14, 16, 3).transpose(0, 1, 3, 2, 4, 5).reshape(batch, 196, 768).astype(dtype)
            x = x @ patch + place
            for w in ws:
                x = block(x, w, heads, False)
            return (jnp.mean(x, 1) @ head).astype(jnp.float32)
        return f, (normal(768, d, dtype=dtype), normal(196, d, scale=0.02, dtype=dtype), [block_weights(d, dtype) for _ in range(layers)],
                   normal(d, 1000, dtype=dtype), normal(batch, 224, 224, 3, scale=1.0))

    def gpt():
        layers, d, heads = 4, 768, 12

        def f(ws, x):
            for w in ws:
                x = block(x, w, heads, True)
            return x
        return f, ([block_weights(d) for _ in range(layers)], normal(2, 256, d, scale=1.0))

    def conv(x, w, stride=1, groups=1, out=None):
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                        feature_group_count=groups, preferred_element_type=out)

    def kernel(k, i, o):
        return normal(k, k, i, o, scale=1 / math.sqrt(k * k * i))

    def unet():
        widths = (64, 128, 256)

        def group_norm(x, g):
            b, h, w, c = x.shape
            y = x.reshape(b, h * w, 8, c // 8)
            m, v = jnp.mean(y, (1, 3), keepdims=True), jnp.var(y, (1, 3), keepdims=True)
            return ((y - m) * lax.rsqrt(v + 1e-5)).reshape(x.shape) * g

        def res(x, w):
            y = conv(jax.nn.silu(group_norm(x, w["g1"])), w["a"])
            y = conv(jax.nn.silu(group_norm(y, w["g2"])), w["b"])
            return y + (conv(x, w["skip"]) if "skip" in w else x)

        def f(w, x):
            x, kept = conv(x, w["first"]), []
            for i in range(3):
                x = res(x, w[f"down{i}"])
                kept.append(x)
                x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
            x = res(x, w["middle"])
            for i in reversed(range(3)):
                b, h, wd, c = x.shape
                x = jax.image.resize(x, (b, 2 * h, 2 * wd, c), "nearest")
                x = res(jnp.concatenate([x, kept[i]], -1), w[f"up{i}"])
            return conv(jax.nn.silu(group_norm(x, w["g"])), w["last"])

        def rw(i, o):
            w = dict(a=kernel(3, i, o), b=kernel(3, o, o), g1=jnp.ones(i), g2=jnp.ones(o))
            return w if i == o else w | dict(skip=kernel(1, i, o))
        w = dict(first=kernel(3, 4, 64), last=kernel(3, 64, 4), g=jnp.ones(64), middle=rw(256, 256))
        for i, c in enumerate(widths):
            w[f"down{i}"] = rw(widths[max(i - 1, 0)], c)
            w[f"up{i}"] = rw((widths[i + 1] if i < 2 else 256) + c, c)
        return f, (w, normal(2, 64, 64, 4, scale=1.0))

    def resnet():
        def f(w, x):
            def unit(x, p, stride):
                y = jax.nn.relu(conv(x, p["a"], stride) * p["ga"] + p["ba"])
                y = conv(y, p["b"]) * p["gb"] + p["bb"]
                return jax.nn.relu(y + (conv(x, p["s"], stride) if "s" in p else x))
            x = jax.nn.relu(conv(x, w["first"], 2))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
            for i, p in enumerate(w["units"]):
                x = unit(x, p, 2 if i in (2, 4, 6) else 1)
            return jnp.mean(x, (1, 2)) @ w["head"]

        def unit_weights(i, o):
            p = dict(a=kernel(3, i, o), b=kernel(3, o, o), ga=jnp.ones(o), gb=jnp.ones(o), ba=normal(o, scale=0.1), bb=normal(o, scale=0.1))
            return p if i == o else p | dict(s=kernel(1, i, o))
        widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
        return f, (dict(first=kernel(7, 3, 64), units=[unit_weights(i, o) for i, o in zip(widths, widths[1:])], head=normal(512, 1000)),
                   normal(4, 224, 224, 3, scale=1.0))

    def depthwise():
        def f(x, ws, points):
            for w, p in zip(ws, points):
                y = conv(x, w, 1, x.shape[-1], jnp.int32)
                x = jnp.clip(y >> 6, -128, 127).astype(jnp.int8)
                y = conv(x, p, 1, 1, jnp.int32)
                x = jnp.clip(y >> 9, -128, 127).astype(jnp.int8)
            return x

        def whole(*dims):
            return jnp.asarray(rng.integers(-127, 128, dims, dtype=np.int8))
        return f, (whole(1, 56, 56, 128), [whole(3, 3, 1, 128) for _ in range(3)], [whole(1, 1, 128, 128) for _ in range(3)])

    def dlrm():
        tables, rows, d, batch = 26, 20000, 64, 2048

        def mlp(x, ws):
            for w in ws:
                x = jax.nn.relu(x @ w)
            return x

        def f(dense, ids, emb, bottom, top, last):
            x = mlp(dense, bottom)
            e = jax.vmap(lambda t, i: t[i], (0, 1), 1)(emb, ids)                 # b, tables, d
            z = jnp.concatenate([x[:, None], e], 1)
            s = jnp.einsum("bid,bjd->bij", z, z)
            i, j = np.tril_indices(tables + 1, -1)
            return jax.nn.sigmoid(mlp(jnp.concatenate([x, s[:, i, j]], 1), top) @ last)
        return f, (normal(batch, 13, scale=1.0), jnp.asarray(rng.integers(0, rows, (batch, tables), dtype=np.int32)),
                   normal(tables, rows, d, scale=0.1), [normal(13, 512), normal(512, 256), normal(256, d)],
                   [normal(d + 351, 512), normal(512, 256)], normal(256, 1))

    return {"decode 32 tokens": decode, "LSTM 512x100": lstm, "sampling 64x32k": sampling, "MoE": moe,
            "Mamba scan": lambda: mamba(False), "Mamba associative": lambda: mamba(True),
            "ViT bf16": lambda: vit(jnp.bfloat16), "ViT f32": lambda: vit(np.float32), "UNet": unet, "DLRM": dlrm,
            "ResNet-18": resnet, "GPT-2 blocks": gpt, "int8 depthwise": depthwise}


def file_name(title):
    return title.lower().replace(" ", "_")


def write_programs(folder, only):
    """<title>.before.pb, <title>.after.pb (HLO modules) and <title>.npz; those that exist stay."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax, numpy as np
    made = programs()
    folder.mkdir(parents=True, exist_ok=True)
    for title, make in made.items():
        base = folder / file_name(title)
        if (only and title not in only) or base.with_suffix(".npz").exists():
            continue
        function, args = make()
        lowered = jax.jit(function, keep_unused=True).lower(*args)
        base.with_suffix(".before.pb").write_bytes(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
        module = lowered.compile().runtime_executable().hlo_modules()[0]
        base.with_suffix(".after.pb").write_bytes(module.as_serialized_hlo_module_proto())
        flat = [np.asarray(x) for x in jax.tree.leaves(args)]
        flat = [x.view(np.uint16) if x.dtype.name == "bfloat16" else x for x in flat]
        np.savez(base.with_suffix(".npz"), **{f"in{i}": x for i, x in enumerate(flat)})


# ---- measuring ----

def replay(reprise, program, inputs, engine, seconds, check):
    command = [reprise, "replay", program, "--engine", engine, "--inputs", inputs, "--time", seconds, "--warmup", "1",
               "--products", "f32", "--json", "-q", *check]
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode > 1 or not done.stdout:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:120]}
    return json.loads(done.stdout)


def measure(args, title):
    """Rows of a program: XLA, then `fast` on each form, in turn."""
    base = args.folder / file_name(title)
    inputs, expected = base.with_suffix(".npz"), base.with_suffix(".expected.npz")
    sides = [("XLA", "before", "pjrt:")] + [(form, form, "fast") for form in args.forms]
    best, compiled, errors, ok = {}, {}, {}, {}
    for turn in range(args.rounds):
        for side, form, engine in sides:
            check = ["--check", "none"]
            if args.check and turn == 0:
                check = ["--expect", expected] if engine == "fast" else check + ["--save", expected]
            answer = replay(args.reprise, base.with_suffix(f".{form}.pb"), inputs, engine, args.time, check)
            if "error" in answer:
                errors[side] = answer["error"]
                continue
            if "--expect" in check:
                ok[side] = answer["ok"]
            best[side] = min(best.get(side, math.inf), answer["run_ns"]["min"])
            compiled[side] = min(compiled.get(side, math.inf), answer["compile_ns"])
    rows = []
    for form in args.forms:
        if form in errors or "XLA" in errors:
            print(f"| {title} | {form} | not measured: {errors.get(form) or errors['XLA']} | | | | |", flush=True)
            continue
        ratio = best[form] / best["XLA"]
        agrees = "" if form not in ok else " (agrees)" if ok[form] else " (DIFFERS)"
        print(f"| {title} | {form} | {best[form] / 1e6:.4g} ms{agrees} | {best['XLA'] / 1e6:.4g} ms | {ratio:.2f} "
              f"| {compiled[form] / 1e6:.3g} ms | {compiled['XLA'] / 1e6:.4g} ms |", flush=True)
        rows.append({"program": title, "form": form, "fast_ns": best[form], "xla_ns": best["XLA"], "ratio": ratio,
                     "fast_compile_ns": compiled[form], "xla_compile_ns": compiled["XLA"]})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "replay_sizes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--time", default="1s", help="of one engine in one round")
    parser.add_argument("--only", nargs="*", help="titles of programs")
    parser.add_argument("--forms", nargs="*", default=["before", "after"])
    parser.add_argument("--write", action="store_true", help="write the programs only")
    parser.add_argument("--check", action="store_true", help="compare outputs with XLA's")
    parser.add_argument("--save", type=pathlib.Path, help="rows as JSON")
    args = parser.parse_args()
    args.reprise = str(args.build / "reprise")
    titles = list(programs())
    write_programs(args.folder, args.only)
    if args.write:
        return 0
    print("| program | form | `fast` | XLA CPU | ratio | `fast` compiles | XLA compiles |\n|---|---|---|---|---|---|---|")
    rows = [r for t in titles if not args.only or t in args.only for r in measure(args, t)]
    if rows:
        mean = math.exp(sum(math.log(r["ratio"]) for r in rows) / len(rows))
        print(f"\ngeometric mean of the ratios: {mean:.2f}; worst: {max(r['ratio'] for r in rows):.2f}")
    if args.save:
        args.save.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
