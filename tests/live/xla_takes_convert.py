# SPDX-License-Identifier: Apache-2.0
"""Programs of many kinds, and XLA as the judge of what `convert` makes of them; run by xla_takes_convert.

Of every program the compiled module is taken as text and as protobuf: both must have one hash, each is
converted to both, XLA must load all four and print the same operations for them. The StableHLO of the
program must be read in all four ways of printing it, with one hash, and as HLO text, protobuf and StableHLO
XLA must load it, compile it, and get the program's own results; so it must for the compiled module as
StableHLO. Prints how many conversions of each kind XLA took.

    xla_takes_convert [NAME...]     only the programs whose name contains one of these
    MORE=1                          also those of replay_jax_cases.py, whose StableHLO is converted
    IREE=PATH                       iree-compile (pip install iree-base-compiler), which must take every StableHLO that is written, up to
                                    its own input dialects, unless it does not take JAX's StableHLO of the program either"""
import collections, json, os, subprocess, sys, tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.interpreters import mlir
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir
from jaxlib.xla_client import XlaComputation, hlo

jax.config.update("jax_enable_x64", True)
REPRISE = os.environ.get("REPRISE", os.path.join(os.environ.get("BUILD", "build"), "reprise"))
PRINT = hlo.HloPrintOptions.canonical()
FULL = hlo.HloPrintOptions()
FULL.print_large_constants = True


def x(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def pieces(a, i):
    return (lax.pad(a, jnp.float32(0), ((1, 2, 1), (-1, 0, 0))), lax.dynamic_slice(a, (i[0], i[1]), (2, 3)), a[::-1, ::2],
            lax.dynamic_update_slice(a, a[:2, :2], (i[0], i[1])), jnp.roll(a, 1), jnp.concatenate([a, a], 1))


def small_types(a, b):
    return a.astype(jnp.int8) @ b.astype(jnp.int8), a + jnp.int4(3), jnp.array([1, -2, 3], jnp.int4)


def odd_constants(a):
    return a + 1, jnp.zeros((0,)), jnp.array([jnp.nan, jnp.inf, 1e-310]), jnp.array([1 + 2j, -3j])


def linalg(a):
    s = a @ a.T + jnp.eye(8)
    return jnp.linalg.cholesky(s), jnp.linalg.solve(s, a), jnp.linalg.eigh(s), jnp.linalg.qr(a), jnp.linalg.svd(a)


def scatters(a, i, u):
    return a.at[i].add(u), a.at[i].set(u, unique_indices=True), a[i], jnp.take_along_axis(a, a.astype(jnp.int32) % 3, axis=0)


PROGRAMS = {
    "while": (lambda a: lax.while_loop(lambda c: c[0] < 10, lambda c: (c[0] + 1, c[1] @ c[1]), (0, a)), [x(4, 4)]),
    "scan": (lambda c, s: lax.scan(lambda c, v: (jnp.tanh(c + v), c.sum()), c, s), [x(8, 16), x(20, 8, 16)]),
    "cond": (lambda p, a: lax.cond(p > 0, lambda a: a * 2, jnp.sin, a), [x(), x(5)]),
    "sort": (lambda a, b: (lax.sort((a, b), num_keys=2), lax.top_k(a, 3)), [x(10, 20), x(10, 20, dtype=jnp.int32)]),
    "scatters": (scatters, [x(100, 32), x(7, dtype=jnp.int32), x(7, 32)]),
    "fft": (lambda a: (jnp.fft.irfft(jnp.fft.rfft(a)), jnp.fft.fft2(a).real), [x(4, 64)]),
    "conv": (lambda a, w: lax.conv_general_dilated(a, w, (1, 1), [(2, 3), (-1, 2)], (2, 1), (1, 2)), [x(8, 16, 32, 32), x(32, 16, 3, 3)]),
    "pieces": (pieces, [x(4, 6), x(3, dtype=jnp.int32)]),
    "small_types": (small_types, [x(16, 16, dtype=jnp.int4), x(16, 16, dtype=jnp.uint4)]),
    "odd_constants": (odd_constants, [x(4)]),
    "callback": (lambda a: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((4,), jnp.float32), a), [x(4)]),
    "linalg": (linalg, [x(8, 8)]),
    "lambda": (lambda a: jnp.sin(a) + jax.jit(lambda b: b * 2, inline=False)(a), [x(4)]),
    "reduce_precision": (lambda a: lax.reduce_precision(a, 5, 0), [x(4)]),
    "algorithms": (lambda a, b: [lax.dot(a, b, precision=p) for p in ("BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F32_F32_F32")], [x(16, 32), x(32, 8)]),
    "rng": (lambda k: (lax.rng_bit_generator(k, (10,)), jax.random.normal(jax.random.key(0), (5,))), [x(4, dtype=jnp.uint32)]),
}


WITHOUT_RUN = ("callback", "linalg")  # the program's own callbacks; vectors whose signs are free


counts = collections.defaultdict(lambda: [0, 0, 0])  # by kind: taken, not written as it has no form in HLO, refused or wrong


def tool(*args):
    done = subprocess.run([REPRISE, *args], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(args)}: {done.stderr.strip()}")
    return done.stdout


def hash_of(path):
    return json.loads(tool("graph", "--json", path))["hash"]


def module_of(path):
    """XLA's module of a file that convert wrote; the protobuf is an HloProto with the module in field 1."""
    if path.endswith(".txt"):
        return hlo.hlo_module_from_text(open(path).read())
    data, at, n, shift = open(path, "rb").read(), 1, 0, 0
    while True:
        n |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return XlaComputation(data[at:at + n]).get_hlo_module()


def body(module):
    """The operations; the computations before the entry come in any order."""
    return sorted(module.to_string(PRINT).split("\n", 1)[1].strip().split("\n\n"))


def stablehlo_of(path):
    """The module of a file, which MLIR parses and verifies."""
    with mlir.make_ir_context():
        module = ir.Module.parse(open(path).read())
        module.operation.verify()
        return mlir.module_to_bytecode(module)


def results(path, values):
    """What XLA computes from a file that convert wrote."""
    client, device = jax.devices()[0].client, jax.devices()[:1]
    if path.endswith(".mlir"):
        program = stablehlo_of(path)
    else:
        program = _jax.mlir.xla_computation_to_mlir_module(XlaComputation(module_of(path).as_serialized_hlo_module_proto()))
    made = client.compile_and_load(program, xla_client.DeviceList(tuple(device)), xla_client.CompileOptions())
    done = made.execute_sharded([jax.device_put(v) for v in values]).disassemble_into_single_device_arrays()
    return [np.asarray(array[0]) for array in done]


def some_values(args):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(a.shape).astype(a.dtype) if a.dtype.kind == "f" else rng.integers(0, 3, a.shape).astype(a.dtype) for a in args]


def iree_refuses(path):
    done = subprocess.run([os.environ["IREE"], "--iree-input-type=stablehlo", "--compile-to=input", path, "-o", os.devnull], capture_output=True, text=True)
    return done.stderr.strip() or "no reason" if done.returncode else ""


def check_iree(kind, path, folder):
    why = iree_refuses(path)
    own = why and iree_refuses(os.path.join(folder, "a.mlir"))
    counts[f"{kind} to mlir, IREE"][1 if own else 2 if why else 0] += 1
    if why and (not own or os.environ.get("NAMED")):
        yield f"{kind} to mlir: IREE refuses {'also JAX, ' if own else ''}{' '.join(why.split())[:300]}"


def check_run(kind, path, forms, meant, values, folder):
    """A program converted to each of the forms computes what is meant."""
    for form in forms:
        out = os.path.join(folder, f"out.{form}")
        try:
            tool("convert", path, "-o", out)
            got = results(out, values)
        except Exception as refused:
            named = "cannot be written as" in str(refused)  # what has no form is named
            counts[f"{kind} to {form}, run"][1 if named else 2] += 1
            if not named or os.environ.get("NAMED"):
                yield f"{kind} to {form}: {' '.join(str(refused).split())[:300]}"
            continue
        if form == "mlir" and os.environ.get("IREE"):
            yield from check_iree(kind, out, folder)
        same = len(got) == len(meant) and all(np.allclose(a.astype(complex), b.astype(complex), 1e-3, 1e-4, True) for a, b in zip(got, meant))
        counts[f"{kind} to {form}, run"][0 if same else 2] += 1
        if not same:
            yield f"{kind} to {form}: XLA computes something else"


def meant_results(function, values):
    return [np.asarray(v) for v in jax.tree.leaves(jax.jit(function)(*values))]


FORMS = ("hlo.txt", "hlo.pb", "mlir")


def check(name, function, args, folder):
    lowered = jax.jit(function).lower(*args)
    module = lowered.compile().runtime_executable().hlo_modules()[0]
    text, proto, path = (os.path.join(folder, name) for name in ("a.hlo.txt", "a.hlo.pb", "a.mlir"))
    open(text, "w").write(module.to_string(FULL))
    open(proto, "wb").write(module.as_serialized_hlo_module_proto())
    meant, said = body(module), body(module_of(text))
    wrong = [] if hash_of(text) == hash_of(proto) else ["text and protobuf have two hashes"]
    for source in (text, proto):
        for form in ("txt", "pb"):
            out = os.path.join(folder, f"out.hlo.{form}")
            tool("convert", source, "-o", out)
            if hash_of(out) != hash_of(source):
                wrong.append(f"{source[-3:]} to {form} has another hash")
            try:
                # XLA's own parser makes 0 of the -0 in a text: what it makes of its own is the measure.
                same = body(module_of(out)) == (said if form == "txt" else meant)
                counts[f"{source[-3:].strip('.')} to {form}"][0 if same else 2] += 1
                if not same:
                    wrong.append(f"{source[-3:]} to {form}: XLA prints another program")
            except Exception as refused:
                counts[f"{source[-3:].strip('.')} to {form}"][2] += 1
                wrong.append(f"{source[-3:]} to {form}: XLA refuses it: {str(refused)[:200]}")
    operation = lowered.compiler_ir("stablehlo").operation
    hashes = set()
    for generic in (False, True):
        for debug in (False, True):
            open(path, "w").write(operation.get_asm(print_generic_op_form=generic, enable_debug_info=debug))
            hashes.add(hash_of(path))
    wrong += ["StableHLO has more than one hash"] if len(hashes) > 1 else []
    if name in WITHOUT_RUN:
        return wrong
    values = some_values(args)
    meant = meant_results(function, values)
    wrong += check_run("StableHLO", path, FORMS, meant, values, folder)
    return wrong + list(check_run("HLO", text, FORMS[2:], meant, values, folder))


BY_STABLEHLO_ONLY = ("approximate_top",)  # XLA does not take its own StableHLO of the HLO that JAX makes of it ("xla_shape")


def more_programs():
    """Those of replay_jax_cases, with their values."""
    import replay_jax_cases
    rng, found = np.random.default_rng(0), {}
    replay_jax_cases.add(lambda name, fn, *args: found.update({name: (fn, args)}), lambda *shape, dtype=np.float32: rng.standard_normal(shape).astype(dtype),
                         lambda n, *shape: rng.integers(0, n, shape).astype(np.int32))
    return {name: what for name, what in found.items() if name not in BY_STABLEHLO_ONLY}


def check_more(function, values, folder):
    path = os.path.join(folder, "a.mlir")
    try:
        lowered = jax.jit(function, keep_unused=True).lower(*values)
        open(path, "w").write(lowered.as_text())
        meant = meant_results(function, values)
    except Exception:  # a type that this JAX does not have
        return []
    leaves = jax.tree.leaves(values)
    wrong = list(check_run("StableHLO", path, FORMS, meant, leaves, folder))
    text = os.path.join(folder, "a.hlo.txt")
    open(text, "w").write(lowered.compile().runtime_executable().hlo_modules()[0].to_string(FULL))
    return wrong + list(check_run("HLO", text, FORMS[2:], meant, leaves, folder))


failed = 0
with tempfile.TemporaryDirectory() as folder:
    jobs = [(name, check, (name, *what)) for name, what in PROGRAMS.items()]
    if os.environ.get("MORE"):
        jobs += [(name, check_more, what) for name, what in more_programs().items()]
    for name, how, what in jobs:
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        try:
            wrong = how(*what, folder)
        except RuntimeError as problem:
            wrong = [str(problem)]
        failed += bool(wrong)
        if wrong or how is check:
            print(f"{name}: {'; '.join(wrong) if wrong else 'as XLA has it'}", flush=True)
print(f"{'conversion':24}{'taken':>7}{'no form':>9}{'not':>6}")
for kind, n in counts.items():
    print(f"{kind:24}{n[0]:7}{n[1]:9}{n[2]:6}")
sys.exit(1 if failed else 0)
