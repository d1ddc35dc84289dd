# SPDX-License-Identifier: Apache-2.0
"""Constants of every type and syntax as XLA reads them; run by literals.

    literals [--update]    --update: write tests/data/literals/corpus.txt, which tests/replay/check_literals
                           and `make test` use; otherwise the file must be what XLA says

XLA parses the HLO text or the StableHLO and gives the protobuf, whose literals are the expected bits. Constants of StableHLO are
also replayed from bytecode and from portable artifacts."""
import importlib.machinery, importlib.util, os, pathlib, re, sys, tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
import ml_dtypes
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.xla_client import hlo

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/data/literals/corpus.txt"
loader = importlib.machinery.SourceFileLoader("check_literals", str(ROOT / "tests/replay/check_literals"))
checker = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_literals", loader))
loader.exec_module(checker)

FLOATS = [("f64", "f64", np.float64), ("f32", "f32", np.float32), ("f16", "f16", np.float16), ("bf16", "bf16", ml_dtypes.bfloat16)] + [
    (name, name.replace("e", "E").replace("m", "M").replace("fn", "FN").replace("uz", "UZ").replace("b", "B").replace("u", "U") , getattr(ml_dtypes, kind))
    for name, kind in [("f8e5m2", "float8_e5m2"), ("f8e4m3fn", "float8_e4m3fn"), ("f8e4m3", "float8_e4m3"), ("f8e3m4", "float8_e3m4"), ("f8e4m3b11fnuz", "float8_e4m3b11fnuz"),
                       ("f8e5m2fnuz", "float8_e5m2fnuz"), ("f8e4m3fnuz", "float8_e4m3fnuz"), ("f8e8m0fnu", "float8_e8m0fnu"), ("f4e2m1fn", "float4_e2m1fn")]]
INTEGERS = [(f"{s}{bits}", ("u" if s == "u" else "") + f"i{bits}", bits, s == "s") for s in "su" for bits in (2, 4, 8, 16, 32, 64)]


# ---- what XLA says ----

def fields(data):
    """(number, value) of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        n = shift = 0
        while True:
            n, shift, at = n | (data[at] & 127) << shift, shift + 7, at + 1
            if data[at - 1] < 128:
                return n

    while at < len(data):
        key = varint()
        size = {0: 0, 1: 8, 5: 4}.get(key & 7)
        if size == 0:
            yield key >> 3, varint()
            continue
        size = varint() if size is None else size
        yield key >> 3, data[at:at + size]
        at += size


def varints(data):
    """Packed ones: as the fields of a message, whose keys they are not."""
    out, n, shift = [], 0, 0
    for c in data:
        n, shift = n | (c & 127) << shift, shift + 7
        if c < 128:
            out, n, shift = out + [n], 0, 0
    return out


WIDTH = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 4, 16: 2, 18: 8}  # by the number of the type, of a part; others 1
SMALL = {21: (4, True), 22: (4, False), 26: (2, True), 27: (2, False), 30: (1, True), 31: (1, False)}


def literal_bits(literal):
    """Of one LiteralProto in row-major order: the shapes of the corpus have no other layout than {0,1} of two dimensions."""
    kind, dims, order, width, values = 0, [], [], 1, []
    for number, value in fields(literal):
        if number == 1:
            for n, v in fields(value):
                if n == 2:
                    kind, width = v, WIDTH.get(v, 1)
                elif n == 3:
                    dims = varints(v) if isinstance(v, bytes) else dims + [v]
                elif n == 5:
                    order = next((varints(o) for k, o in fields(v) if k == 1), [])
        elif kind in (1, 4, 5, 8, 9):
            values = [v & (1 << 8 * width) - 1 for v in varints(value)]
        else:
            values = [int.from_bytes(value[i:i + width], "little") for i in range(0, len(value), width)]
    if kind in SMALL:  # one byte each; the tool's arrays have the sign in all its bits
        bits, signed = SMALL[kind]
        values = [v & (1 << bits) - 1 for v in values]
        values = [v | 0x100 - (1 << bits) if signed and v >> bits - 1 else v for v in values]
    if order == [0, 1]:
        parts = len(values) // (dims[0] * dims[1])
        values = [values[(j * dims[0] + i) * parts + k] for i in range(dims[0]) for j in range(dims[1]) for k in range(parts)]
    return [f"{v:0{2 * width}x}" for v in values]


def module_bits(proto):
    """Of the constant of a module that has one."""
    for number, computation in fields(proto):
        for n, instruction in fields(computation) if number == 3 else ():
            for k, literal in fields(instruction) if n == 2 else ():
                if k == 8:
                    return literal_bits(literal)


def read(language, kind, text):
    """What XLA makes of a constant: its bits, or "refused"."""
    source = checker.module(language, [(kind, text)])
    try:
        if language == "hlo":
            proto = hlo.hlo_module_from_text(source).as_serialized_hlo_module_proto()
        else:
            proto = xla_client._xla.mlir.mlir_module_to_xla_computation(source, False, False).as_serialized_hlo_module_proto()
    except Exception:
        return "refused"
    bits = module_bits(proto)
    count = re.match(r"tensor<(\d+)x(?!\d+x)", kind)
    if count and len(bits) == (2 if "complex" in kind else 1):  # one value for all: XLA broadcasts it
        bits = bits * int(count[1])
    return checker.join(bits)


# ---- what it is asked ----

def float_words(dtype):
    f = ml_dtypes.finfo(dtype)
    top, tiny = float(f.max), float(f.smallest_subnormal) if dtype != ml_dtypes.float8_e8m0fnu else 2.0**-127
    yield from ("0.0", "-0.0", "1.0", "-1.0", "1.", "1.5", "0.1", "3.14159265358979", "1.0e+00", "1.0E-1", "-2.5e0", "1e2", "1E-2", "00012.50")
    for v in (top, -top, tiny, -tiny, tiny / 2, tiny * 0.75, 1 + float(f.eps) / 2, 1 + float(f.eps) * 1.5):
        yield f"{v:.17e}"
    yield from (f"{top * 1.01:.17e}", f"{top * 1.1:.6e}", "1.0e+39", "1.0e+308", "16777217.0", "9007199254740993.0", "1.00000005960464477539062500001", "65519.9", "65520.0", "464.0", "465.0")


def corpus():
    """(language, type, text)"""
    for name, other, dtype in FLOATS:
        width = np.dtype(dtype).itemsize * 2
        for word in float_words(dtype):
            yield "hlo", f"{name}[]", word
            if name != "f8e8m0fnu" or float(word) > 0:  # MLIR reads a number of the other sign there
                yield "mlir", f"tensor<{other}>", word
        for word in ("0", "1", "-1", "12", "inf", "-inf", "nan", "-nan", "nan(0x1)", "-nan(0x2)") + (("infinity", "NaN", "+1", ".5", "0x10", "1.0f", "1,5", "", "1e400") if name == "f32" else ()):
            yield "hlo", f"{name}[]", word
        for bits in ("0" * width, "F" * width, "7" + "F" * (width - 1), "8" + "0" * (width - 1), "7" + "E" * (width - 1), "3" + "1" * (width - 1), "0" * (width - 1) + "1", "1" + "0" * width):
            yield "mlir", f"tensor<{other}>", f"0x{bits}"
            yield "mlir", f"tensor<{other}>", f'"0x{bits}"'
        for word in ("-0x10", "nan", "inf", "1", "1.0f", ".5", "+1.0", "true", "1.0e+400") if name == "f32" else ():
            yield "mlir", f"tensor<{other}>", word
        yield "hlo", f"{name}[2,2]", "{{1.0, 2.0}, {0.5, 4.0}}"
        yield "hlo", f"{name}[2,2]{{0,1}}", "{ { /*i0=0*/ 1.0, 2.0}, {0.5, 4.0}}"
        yield "hlo", f"{name}[2]", "{1.0}"
        yield "hlo", f"{name}[0]", "{}"
        yield "mlir", f"tensor<2x2x{other}>", "[[1.0, 2.0], [0.5, 4.0]]"
        yield "mlir", f"tensor<3x{other}>", "2.0"
        yield "mlir", f"tensor<3x{other}>", "[2.0]"
        yield "mlir", f"tensor<65x{other}>", "2.0"
        yield "mlir", f"tensor<0x{other}>", ""
        yield "mlir", f"tensor<2x{other}>", f'"0x{"01" * width}"'
        yield "mlir", f"tensor<3x{other}>", f'"0x{"01" * (width // 2)}"'
        yield "mlir", f"tensor<3x{other}>", f'"0x{"01" * width}"'
    for name, other, bits, signed in INTEGERS:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        words = ["0", "1", "001", str(low), str(high), str(low - 1), str(high + 1), str((1 << bits) - 1), str(1 << bits), "0x1", "0x0", f"0x{(1 << bits) - 1:X}", f"0x{1 << bits:X}"]
        for word in dict.fromkeys(words):
            if bits < 64 or int(word) in range(low, high + 1) if word.lstrip("-").isdigit() else True:  # XLA's own int64 wraps silently
                yield "hlo", f"{name}[]", word
            yield "mlir", f"tensor<{other}>", word
        for word in ("1.0", "1e0", "1x", "1 1", "") if name == "s32" else ():
            yield "hlo", f"{name}[]", word
            yield "mlir", f"tensor<{other}>", word
        for word in ("true", "-0x1", f'"0x{"01" * max(1, bits // 8)}"', f'"0x{"FE" * (bits // 8)}"'):
            yield "mlir", f"tensor<{other}>", word
        yield "hlo", f"{name}[2,2]", f"{{{{1, 0}}, {{{low}, {high}}}}}"
        yield "hlo", f"{name}[2,2]{{0,1}}", f"{{{{1, 0}}, {{{low}, {high}}}}}"
        yield "mlir", f"tensor<2x2x{other}>", f"[[1, 0], [{low}, {high}]]"
        yield "mlir", f"tensor<5x{other}>", f"{low}"
        yield "mlir", f"tensor<65x{other}>", f"{high}"
        yield "mlir", f"tensor<2x{other}>", f'"0x{"01" * 2 * max(1, bits // 8)}"'
    for word in ("true", "false", "0", "1", "2", "-1", "yes", "TRUE", "1.0"):
        yield "hlo", "pred[]", word
        yield "mlir", "tensor<i1>", word
    yield "hlo", "pred[2,2]", "{{true, false}, {0, 1}}"
    for kind, text in (("2xi1", "[true, false]"), ("3xi1", "true"), ("65xi1", "true"), ("3xi1", '"0x00FF01"'), ("3xi1", '"0xFF"'), ("3xi1", '"0x00"'), ("12xi1", '"0x' + "00FF" * 6 + '"')):
        yield "mlir", f"tensor<{kind}>", text
    for name, other, width in (("c64", "f32", 8), ("c128", "f64", 16)):
        for word in ("(1, 2)", "(1.5, -2.5)", "(-1e3,1E-3)", "(0.1, 0.2)", "(1)", "1", "(1, 2, 3)", "()", "(0x1, 2)"):
            yield "hlo", f"{name}[]", word
        yield "hlo", f"{name}[2]", "{(1, 2), (3, 4)}"
        yield "hlo", f"{name}[2,2]{{0,1}}", "{{(1, 2), (3, 4)}, {(5, 6), (7, 8)}}"
        a, b = ("4B83F7C0", "7FC00001") if width == 8 else ("40E1234567890ABC", "FFF8000000000001")
        for word in ("(1.0,2.0)", "(-0.0,0.0)", f"(0x{a},0.0)", f"(1.0,0x{a})", f"(0x{b},0x{a})", "(1,2)", "1.0", "(1.0)", "(0.1, 1.0e-3)", f'"0x{a}{b}"', f'"0x{a}"', "(1.0,2.0,3.0)", f"(-0x{a},1.0)"):
            yield "mlir", f"tensor<complex<{other}>>", word
        yield "mlir", f"tensor<2xcomplex<{other}>>", f"[(1.0,0x{a}), (0x{b},2.0)]"
        yield "mlir", f"tensor<3xcomplex<{other}>>", f"(0x{a},2.0)"
        yield "mlir", f"tensor<65xcomplex<{other}>>", f"(0x{a},2.0)"
        yield "mlir", f"tensor<2xcomplex<{other}>>", f'"0x{a}{b}{b}{a}"'


# Where XLA's own parser of text loses what the text says: a sign of zero, an infinite or undefined part of a complex number. Such texts
# are not in the corpus, or their bits are those that the text says.
def is_negative_zero(word):
    try:
        return float(word) == 0 and word.startswith("-")
    except ValueError:
        return False


def expected():
    for language, kind, text in dict.fromkeys(corpus()):
        if language == "hlo" and is_negative_zero(text):
            continue
        bits = read(language, kind, text)
        if bits != "refused" or re.search(r"\b(f32|f8e4m3fn|f8E4M3FN|[su]?i?[48]|ui[48]|pred|i1|c64)\b", kind):  # of the others the rules are the same
            yield language, kind, text, bits


# ---- other forms of StableHLO ----

def check_bytecode(rows, folder):
    """Constants of StableHLO as bytecode and as portable artifacts: all that XLA takes, in one module."""
    rows = [r for r in rows if r[0] == "mlir" and r[3] != "refused"]
    wrong = 0
    with mlir.make_ir_context():
        module = ir.Module.parse(checker.module("mlir", [r[1:3] for r in rows]))
        forms = {"generic": module.operation.get_asm(print_generic_op_form=True), "hex": module.operation.get_asm(large_elements_limit=None)}
        path = folder / "written"
        with open(path, "wb") as out:
            module.operation.write_bytecode(out)
        forms["bytecode"] = path.read_bytes()
        forms["portable artifact"] = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
    for name, form in forms.items():
        for engine in checker.ENGINES:
            wrong += checker.compare([r[1:] for r in rows], checker.replay(form, engine, folder, "mlir"), f"{name} on {engine}")
    return wrong


said = list(expected())
lines = "".join("\t".join(row) + "\n" for row in said)
head = "# Constants and the bits that XLA reads: language, type, text, elements. Written by tests/live/literals --update.\n"
if "--update" in sys.argv:
    CORPUS.parent.mkdir(exist_ok=True)
    CORPUS.write_text(head + lines)
stale = CORPUS.read_text() != head + lines
if stale:
    print("tests/data/literals/corpus.txt is not what XLA says: run tests/live/literals --update and read the difference")
with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    total, wrong = checker.check([CORPUS], folder)
    wrong += check_bytecode(said, folder)
print(f"literals: {total} constants, {wrong} wrong")
sys.exit(stale or wrong > 0)
