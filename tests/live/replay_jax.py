#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small JAX programs of every family and type, dumped as StableHLO (text and the bytecode of jax.export) and as HLO (text and
protobuf, before and after optimisation), replayed on the built-in engines and compared with what JAX gives.

    replay_jax [NAME...]      only the programs whose name contains one of these
    REPRISE, ENGINES          the program (build/reprise), engines ("ref fast")
    KEEP                      a folder for the files; otherwise they are removed
    WRITTEN                   replays what `convert` writes of each form as StableHLO instead
"""
import collections, io, json, os, pathlib, subprocess, sys, tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
try:
    import jax, jax.numpy as jnp, ml_dtypes, numpy as np
    import jax.export
    from jax import lax
    from jaxlib import _hlo
except ImportError as why:
    print(f"replay_jax: skipped: {why}")
    sys.exit(0)
jax.config.update("jax_enable_x64", True)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import replay_jax_cases

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", ROOT / "build" / "reprise")
ANY_CALL = [jax.export.DisabledSafetyCheck.custom_call(t) for t in (
    f"lapack_{t}{r}_ffi" for t in "sdcz" for r in "getrf gesdd gesvd geev gees gehrd sytrd hetrd gtsv geqp3 ormqr unmqr".split())]
ENGINES = os.environ.get("ENGINES", "ref fast").split()
NHWC = ("NHWC", "HWIO", "NHWC")
rng = np.random.default_rng(0)
cases = {}


def normal(*shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


def below(n, *shape):
    return rng.integers(0, n, shape).astype(np.int32)


def case(name, fn, *args):
    cases[name] = fn, args


def conv(x, w, strides=(1, 1), padding="SAME", **more):
    return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=more.pop("dims", NHWC), **more)


def unary(x):
    a, c = jnp.abs(x), jnp.clip(x, -0.9, 0.9)
    return [f(x) for f in (jnp.abs, jnp.negative, jnp.exp, jnp.expm1, lax.cbrt, jnp.sin, jnp.cos, jnp.tan, jnp.tanh, lax.logistic,
                           lax.erf, jnp.floor, jnp.ceil, jnp.round, lax.round, jnp.sign, jnp.isfinite, jnp.arctan, jnp.sinh,
                           jnp.cosh, jnp.arcsinh)] + [jnp.log(a), jnp.log1p(a), jnp.sqrt(a), lax.rsqrt(a + 1), lax.erf_inv(c),
                                                      jnp.arcsin(c), jnp.arccos(c), jnp.arctanh(c), lax.lgamma(a + 1)]


def binary(x, y):
    return [x + y, x - y, x * y, x / y, jnp.maximum(x, y), jnp.minimum(x, y), jnp.power(jnp.abs(x), y), lax.rem(x, y),
            lax.atan2(x, y), x < y, x <= y, x == y, x != y, jnp.where(x < y, x, y), jnp.clip(x, -1, y), lax.reduce_precision(x, 5, 2)]


def integers(x, y):
    return [x + y, x - y, x * y, lax.div(x, y), lax.rem(x, y), x & y, x | y, x ^ y, ~x, lax.shift_left(x, y),
            lax.shift_right_logical(x, y), lax.shift_right_arithmetic(x, y), lax.population_count(x), lax.clz(x), jnp.maximum(x, y),
            jnp.sign(x), x < y, x.sum(), x.astype(jnp.float32), x.astype(jnp.int16), x.astype(bool), jnp.sort(x), jnp.argsort(x)]


def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1]).astype(q.dtype)
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s.astype(jnp.float32)).astype(q.dtype), v)


def loss_of(o, y, n):
    return -jnp.mean((jax.nn.log_softmax(o) * jax.nn.one_hot(y, n, dtype=o.dtype)).astype(jnp.float32))


def mlp_step(a, b, c, x, y):
    return jax.value_and_grad(lambda p: loss_of(jax.nn.gelu(x @ p[0] + p[1]) @ p[2], y, 10))([a, b, c])


def convnet_step(w1, w2, w3, x, y):
    def loss(p):
        h = jax.nn.relu(conv(x, p[0]))
        h = lax.reduce_window(h, np.array(-np.inf, h.dtype), lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return loss_of(jax.nn.relu(conv(h, p[1], (2, 2))).mean((1, 2)) @ p[2], y, 5)
    return jax.value_and_grad(loss)([w1, w2, w3])


for d in (jnp.float32, jnp.float64, jnp.bfloat16, jnp.float16):
    n = np.dtype(d).name
    case("unary_" + n, unary, normal(37, dtype=d))
    case("binary_" + n, binary, normal(5, 7, dtype=d), normal(5, 7, dtype=d))
    case("reduce_" + n, lambda x: [jax.nn.softmax(x), x.sum(), x.mean(0), x.max(1), x.prod(1), jnp.cumsum(x, 1), jnp.argmax(x, 1)],
         normal(9, 33, dtype=d))
    case("dot_" + n, lambda a, b, c: [a @ b, jnp.einsum("bij,bkj->bik", c, c), jnp.einsum("ij,bjk->kbi", a, c)],
         normal(5, 8, dtype=d), normal(8, 8, dtype=d), normal(3, 8, 6, dtype=d))
for d in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz,
          ml_dtypes.float8_e4m3b11fnuz):
    case("f8_" + np.dtype(d).name, lambda x, y: [x + y, (x.astype(jnp.float32) * 1e4).astype(x.dtype), x.astype(jnp.bfloat16),
         lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)], normal(6, 9, dtype=d), normal(6, 9, dtype=d))
for d in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
    ends = np.iinfo(d)
    case("int_" + np.dtype(d).name, integers, rng.integers(ends.min, ends.max, 40, dtype=d, endpoint=True),
         rng.integers(0, 7, 40).astype(d))
for d in (np.complex64, np.complex128):
    z = (normal(12) + 1j * normal(12)).astype(d)
    case("complex_" + np.dtype(d).name, lambda x, y: [x + y, x * y, x / y, jnp.exp(x), jnp.log(x), jnp.sqrt(x), jnp.abs(x), x.real,
         x.imag, jnp.conj(x), jnp.sin(x), jnp.tanh(x), x == y, jnp.sign(x), jnp.outer(x, y) @ y, x.sum(), jnp.power(x, y)], z, z[::-1].copy())
case("convert", lambda x: [x.astype(t) for t in (jnp.int8, jnp.uint8, jnp.int32, jnp.uint32, jnp.int64, bool, jnp.float16, jnp.bfloat16)],
     np.array([0.5, -1.5, 300, -300, 1e10, -1e10, np.nan, np.inf, -np.inf, 2.5], np.float32))
case("bitcast", lambda x: [lax.bitcast_convert_type(x, t) for t in (jnp.int32, jnp.uint16, jnp.uint8)], normal(3, 4))
case("shapes", lambda x: [x.reshape(6, 4), x.transpose(2, 0, 1), x[::-1, :, ::2], lax.pad(x, jnp.float32(7), ((1, 0, 1), (0, 2, 0), (-1, 1, 2))),
     jnp.concatenate([x, x * 2], 1), jnp.tile(x, (2, 1, 1)), lax.rev(x, (0, 2)), jnp.arange(7), jnp.roll(x, 1, 2)], normal(2, 3, 4))
case("slices", lambda x, i: [lax.dynamic_slice(x, (i, i + 1), (2, 3)), x[i], x.at[i].set(0.), x.at[i, 2].add(3.)], normal(5, 6), np.int32(4))
case("gather", lambda x, i, j: [x[i], x[i, j], x[:, i], x[i[:, None], j[None, :]], x.at[i].get(mode="fill", fill_value=-1.),
     jnp.take(x, i + 3, axis=0, mode="clip"), jax.vmap(lambda r, k: r[k])(x, j[:5])], normal(5, 6), below(5, 7), below(6, 7))
case("scatter", lambda x, i, j, u: [x.at[i].set(u), x.at[i].add(u), x.at[i].multiply(u), x.at[i].max(u), x.at[i, j].add(1.5),
     x.at[i + 2].add(u, mode="drop"), jax.ops.segment_sum(u, i, 5), jax.vmap(lambda r, k: r.at[k].add(1.))(x, j[:5])],
     normal(5, 6), below(5, 7), below(6, 7), normal(7, 6))
case("sort", lambda x, k: [jnp.sort(x), jnp.argsort(x, axis=0), lax.sort((k, k[::-1], x), num_keys=2), lax.top_k(x, 3), jnp.median(x)],
     np.where(normal(4, 9) > 1.2, np.nan, normal(4, 9)).astype(np.float32), below(4, 4, 9))
case("while", lambda x: [lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, jnp.sin(c[1]) + c[0]), (0, x)),
     lax.scan(lambda c, y: (c + y, c * y), x[0], x), lax.map(lambda r: r.sum(), x)], normal(6, 3))
case("cond", lambda p, x, k: [lax.cond(p, lambda y: y * 2, lambda y: y - 1, x), lax.switch(k, [jnp.sin, jnp.cos, jnp.tanh], x)],
     True, normal(4), np.int32(2))
case("windows", lambda x: [lax.reduce_window(x, -np.inf, lax.max, (2, 3), (1, 2), "SAME"), lax.cummax(x, 1), lax.cumlogsumexp(x, 0),
     lax.reduce_window(x, 0., lax.add, (2, 2), (1, 1), "VALID", (2, 1), (1, 2))], normal(7, 8))
for dims in (NHWC, ("NCHW", "OIHW", "NCHW"), ("CHWN", "IHWO", "HWNC")):
    size = dict(N=2, H=7, W=6, C=4, I=4, O=6)
    case("conv_" + dims[0], lambda x, w, dims=dims: [conv(x, w, dims=dims), conv(x, w, (2, 1), ((1, 2), (0, 1)), dims=dims,
         lhs_dilation=(1, 2), rhs_dilation=(2, 1)), jax.grad(lambda a, b: (conv(a, b, (2, 2), dims=dims) ** 2).sum(), (0, 1))(x, w)],
         normal(*(size[c] for c in dims[0])), normal(*(dict(size, H=3, W=2)[c] for c in dims[1])))
case("conv_groups", lambda x, w: jax.value_and_grad(lambda w: (conv(x, w, feature_group_count=2) ** 2).sum())(w), normal(2, 5, 5, 4), normal(3, 3, 2, 6))
case("conv_batch_groups", lambda x, w: conv(x, w, padding="VALID", batch_group_count=2), normal(4, 5, 5, 3), normal(2, 2, 3, 6))
case("pool_grad", jax.grad(lambda a: (lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME") ** 2).sum()), normal(2, 7, 6, 3))
case("fft", lambda x: [jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.rfft2(x), jnp.fft.irfft2(jnp.fft.rfft2(x)),
     jnp.fft.fft(x + 1j * x, axis=0)], normal(6, 10))
s = np.einsum("bij,bkj->bik", *2 * [normal(3, 5, 5)]) + np.eye(5, dtype=np.float32)
case("linalg", lambda s, b: [jnp.linalg.cholesky(s), jnp.linalg.solve(s, b), jnp.linalg.det(s),
     lax.linalg.triangular_solve(jnp.tril(s), b, left_side=True, lower=True)], s, normal(3, 5, 2))
case("random", lambda k: [jax.random.bits(k, (7,)), jax.random.normal(k, (5, 3)), jax.random.permutation(k, 8)], np.array([1, 2], np.uint32))
for name in ("RNG_THREE_FRY", "RNG_PHILOX"):
    for d in (jnp.uint32, jnp.uint64, jnp.uint16):
        case(f"{name}_{np.dtype(d).name}", lambda k, name=name, d=d: lax.rng_bit_generator(k, (4, 5), dtype=d,
             algorithm=getattr(lax.RandomAlgorithm, name)), np.array([3, 4, 5, 6], np.uint32))
for d in (jnp.float32, jnp.bfloat16, jnp.float16):
    case("attention_" + np.dtype(d).name, lambda q, k, v: [attention(q, k, v), jax.grad(lambda a: attention(a, k, v).astype(jnp.float32).sum())(q)],
         *(normal(2, 3, 8, 4, dtype=d) for _ in range(3)))
for d in (jnp.float32, jnp.bfloat16):
    n = np.dtype(d).name
    case("mlp_" + n, mlp_step, normal(12, 16, dtype=d), normal(16, dtype=d), normal(16, 10, dtype=d), normal(8, 12, dtype=d), below(10, 8))
    case("convnet_" + n, convnet_step, normal(3, 3, 3, 8, dtype=d), normal(3, 3, 8, 8, dtype=d), normal(8, 5, dtype=d),
         normal(4, 12, 12, 3, dtype=d), below(5, 4))


replay_jax_cases.add(case, normal, below)


def raw(a):
    """Types that NumPy does not have as their bits."""
    a = np.asarray(a)
    if a.dtype.name in ("int4", "uint4"):
        return a.astype(a.dtype.name.replace("4", "8"))
    return a.view({1: np.uint8, 2: np.uint16}[a.dtype.itemsize]) if a.dtype.kind == "V" or a.dtype.name.startswith(("bfloat", "float8")) else a


FORMS = "program.mlir program.mlirbc native.mlirbc program.hlo.txt program.hlo.pb optimized.hlo.txt optimized.hlo.pb".split()


def dump_stablehlo(jitted, lowered, args, to):
    """StableHLO as text with its places, and as bytecode: of jax.export (VHLO), and of the dialect itself."""
    module = lowered.compiler_ir("stablehlo").operation
    (to / "program.mlir").write_text(module.get_asm(enable_debug_info=True, large_elements_limit=None))
    try:
        (to / "program.mlirbc").write_bytes(jax.export.export(jitted, disabled_checks=ANY_CALL)(*args).mlir_module_serialized)
    except (ValueError, NotImplementedError, RuntimeError) as why:  # what jax.export itself refuses
        print(f"     {to.name}: jax.export: {str(why).splitlines()[0][:100]}")
    buffer = io.BytesIO()
    module.write_bytecode(buffer)
    (to / "native.mlirbc").write_bytes(buffer.getvalue())


def dump(fn, args, to):
    """The files of a program, and its inputs and outputs."""
    jitted = jax.jit(fn, keep_unused=True)
    lowered = jitted.lower(*args)
    compiled = lowered.compile()
    outputs = jax.tree.leaves(compiled(*args))
    module = compiled.runtime_executable().hlo_modules()[0]
    before = lowered.compiler_ir("hlo")
    dump_stablehlo(jitted, lowered, args, to)
    (to / "program.hlo.txt").write_text(before.as_hlo_text(True))
    (to / "program.hlo.pb").write_bytes(before.as_serialized_hlo_module_proto())
    (to / "optimized.hlo.txt").write_text(long_text(module))
    (to / "optimized.hlo.pb").write_bytes(module.as_serialized_hlo_module_proto())
    np.savez(to / "io.npz", **{f"in{i}": raw(a) for i, a in enumerate(jax.tree.leaves(args))},
             **{f"out{i}": raw(a) for i, a in enumerate(outputs)})


def long_text(module):
    """HLO text with all constants."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return module.to_string(options)


def dump_parts(fn, mesh, specs, args, to):
    """A program of several partitions after optimisation; arrays of partition 1 are p1_in0 and so on."""
    args = [jax.device_put(a, jax.sharding.NamedSharding(mesh, s)) for a, s in zip(args, specs)]
    compiled = jax.jit(fn).lower(*args).compile()
    arrays = {}
    for kind, values in (("in", args), ("out", jax.tree.leaves(compiled(*args)))):
        for i, value in enumerate(values):
            for part in value.addressable_shards:
                arrays[f"p{list(mesh.devices.flat).index(part.device)}_{kind}{i}"] = np.asarray(part.data)
    (to / "optimized.hlo.txt").write_text(compiled.as_text())
    (to / "optimized.hlo.pb").write_bytes(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    np.savez(to / "io.npz", **arrays)


def dump_whole(fn, mesh, specs, args, to, shardy=True):
    """A program of several partitions in all forms, with whole arrays; by GSPMD where Shardy is off."""
    where = [jax.sharding.NamedSharding(mesh, s) for s in specs]
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        jitted = jax.jit(lambda *a: fn(*a), in_shardings=where)
        placed = [jax.device_put(a, w) for a, w in zip(args, where)]
        lowered = jitted.lower(*placed)
        compiled = lowered.compile()
        dump_stablehlo(jitted, lowered, placed, to)
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    before, module = lowered.compiler_ir("hlo"), compiled.runtime_executable().hlo_modules()[0]
    (to / "program.hlo.txt").write_text(before.as_hlo_text(True))
    (to / "program.hlo.pb").write_bytes(before.as_serialized_hlo_module_proto())
    (to / "optimized.hlo.pb").write_bytes(module.as_serialized_hlo_module_proto())
    np.savez(to / "io.npz", **{f"in{i}": np.asarray(a) for i, a in enumerate(args)},
             **{f"out{i}": np.asarray(a) for i, a in enumerate(jax.tree.leaves(compiled(*placed)))})


def dump_gspmd(*what):
    dump_whole(*what, shardy=False)


def written(label, folder, program, table):
    """The name of a form as StableHLO that `convert` wrote; None: it has no form there, which is counted."""
    name = program + ".written.mlir"
    got = subprocess.run([REPRISE, "convert", folder / program, "-o", folder / name], capture_output=True, text=True)
    if got.returncode:
        named = "cannot be written as StableHLO" in got.stderr
        table[name, "none"][1 if named else 2] += 1
        print(f"{'not ' if named else 'FAIL'} {label}/{program}: {got.stderr.strip()}")
    return None if got.returncode else name


def replays(label, folder, table):
    """Counts the replays of each form on each engine: right, refused, wrong."""
    forms = [form for form in FORMS if (folder / form).exists()]
    if os.environ.get("WRITTEN"):
        forms = [name for form in forms if (name := written(label, folder, form, table))]
    for engine in ENGINES:
        for program in forms:
            got = subprocess.run([REPRISE, "replay", folder / program, "--inputs", folder / "io.npz", "--expect", folder / "io.npz",
                                  "-e", engine, "-n", "1", "--warmup", "0", "--json"], capture_output=True, text=True)
            table[program, engine][0 if not got.returncode else 2 if got.returncode == 1 else 1] += 1
            if got.returncode == 1:
                wrong = [(o["index"], o["dtype"], o["worst"][:1]) for o in json.loads(got.stdout)["outputs"] if not o["ok"]]
                print(f"FAIL {label}/{program} on {engine}: {wrong}")
            elif got.returncode:
                print(f"FAIL {label}/{program} on {engine}: {got.stderr.strip()}")


def main(only):
    count, table = 0, collections.defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(os.environ.get("KEEP", scratch))
        jobs = [(n, dump, c) for n, c in cases.items()]
        for kind, how in (("parts_", dump_parts), ("whole_", dump_whole), ("gspmd_", dump_gspmd)):
            jobs += [(kind + n, how, c) for n, c in replay_jax_cases.partitioned().items()]
        for label, how, what in jobs:
            if only and not any(o in label for o in only):
                continue
            folder = root / label
            if not (folder / "io.npz").exists():
                folder.mkdir(parents=True, exist_ok=True)
                how(*what, folder)
            replays(label, folder, table)
            count += 1
    print(f"{'form':20}{'engine':8}{'right':>7}{'refused':>9}{'wrong':>7}")
    for (form, engine), n in table.items():
        print(f"{form:20}{engine:8}{n[0]:7}{n[1]:9}{n[2]:7}")
    failed = sum((0 if os.environ.get("WRITTEN") else n[1]) + n[2] for n in table.values())
    print(f"replay_jax: {count} programs, {sum(n[0] for n in table.values())} replays right, {failed} not")
    return failed != 0


sys.exit(main(sys.argv[1:]))
