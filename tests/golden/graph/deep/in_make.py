"""Inputs that nest 100,000 levels, or for ever, one for each way a reader or an engine descends."""
import json, sys
from pathlib import Path

N = 100000
OUT = Path(sys.argv[1])


def varint(v):
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def messages(field, inner, levels):
    """A protobuf message with a message in it, and so on: `field` is what comes before each length."""
    heads = []
    n = len(inner)
    for _ in range(levels):
        heads.append(field + varint(n))
        n += len(heads[-1])
    return b"".join(reversed(heads)) + inner


# ---- MLIR bytecode
def mlir(v):
    for n in range(1, 9):
        if v < 1 << (7 * n):
            return ((v << 1 | 1) << (n - 1)).to_bytes(n, "little")
    return b"\0" + v.to_bytes(8, "little")


def section(number, data):
    return bytes([number]) + mlir(len(data)) + data


class Bytecode:
    """One function: its argument has the type `argument`, its operation the attribute `value`."""
    def __init__(self):
        self.strings, self.attrs, self.types = [], [], []

    def string(self, text):
        self.strings.append(text)
        return self.attr(2, len(self.strings) - 1)

    def attr(self, *fields):
        self.attrs.append(b"".join(map(mlir, fields)))
        return len(self.attrs) - 1

    def type(self, *fields):
        self.types.append(b"".join(map(mlir, fields)))
        return len(self.types) - 1

    def write(self, argument, value, regions=0, functions=0):
        names = ["module", "func", "return", "custom", "builtin", "func", "stablehlo"]
        place = self.attr(15)
        described = self.attr(1, 1, self.string("sym_name"), self.string("main"))
        decorated = self.attr(1, 1, self.string("x"), value)
        own = len(self.strings)
        self.strings += names

        def op(name, mask, rest=b""):
            return mlir(name) + bytes([mask]) + mlir(place) + rest

        # a region: one block, one value; its argument, the operations
        def block(ops, n, args=0):
            return mlir(1) + mlir(args) + mlir(n << 1 | (args > 0)) + \
                (mlir(1) + mlir(argument) + mlir(place) if args else b"") + ops
        custom = op(3, 1, mlir(decorated))
        head = op(3, 16, mlir(2) + mlir(1) + mlir(0) + mlir(2))
        custom = head * regions + custom
        body = block(custom + op(2, 0), 2, 1)
        func = op(1, 17, mlir(described) + mlir(3))
        if functions:
            body = (mlir(1) + mlir(0) + mlir(2) + func) * functions + body
        module = op(0, 16, mlir(3) + block(func + body, 1))
        strings = [text.encode() + b"\0" for text in self.strings]
        sections = [
            mlir(len(strings)) + b"".join(mlir(len(t)) for t in reversed(strings)) + b"".join(strings),
            mlir(3) + b"".join(mlir(own + 4 + i << 1) for i in range(3)) + mlir(0) + mlir(1) + mlir(own) +
            mlir(1) + mlir(2) + mlir(own + 1) + mlir(own + 2) + mlir(2) + mlir(1) + mlir(own + 3),
            b"".join(self.attrs + self.types),
            mlir(len(self.attrs)) + mlir(len(self.types)) +
            b"".join(mlir(0) + mlir(len(t)) + b"".join(mlir(len(e) << 1 | 1) for e in t)
                     for t in (self.attrs, self.types)),
            mlir(2) + module]
        return b"ML\xefR" + mlir(1) + b"deep\0" + b"".join(section(i, s) for i, s in enumerate(sections))


def bytecode(attrs=0, types=0, regions=0, functions=0):
    b = Bytecode()
    value, last = b.string("end"), b.type(13, 0, b.type(5))
    for _ in range(attrs):
        value = b.attr(0, 1, value)
    for _ in range(types):
        last = b.type(15, 1, last)
    return b.write(last, value, regions, functions)


def itself(*fields, is_type=False):
    """An attribute or a type whose last field is itself."""
    b = Bytecode()
    value, last = b.string("end"), b.type(13, 0, b.type(5))
    if is_type:
        return b.write(b.type(*fields, len(b.types)), value)
    return b.write(last, b.attr(*fields, len(b.attrs)))


MLIR = "module {\nfunc.func public @main(%a: tensor<f32>) -> tensor<f32> {\n"
FILES = {
    "attributes.mlirbc": bytecode(attrs=N),
    "tuples.mlirbc": bytecode(types=N),
    "regions.mlirbc": bytecode(regions=N),
    "functions.mlirbc": bytecode(functions=N),
    "self_array.mlirbc": itself(0, 1),
    "self_dictionary.mlirbc": itself(1, 1, 0),
    "self_symbol.mlirbc": itself(4),
    "self_tuple.mlirbc": itself(15, 1, is_type=True),
    "plain.mlirbc": bytecode(attrs=3, types=3, regions=3),
    "regions.mlir": MLIR + '%0 = "stablehlo.if"(%a) ({\n' * N,
    "tuples.mlir": MLIR + "%0 = stablehlo.custom_call @f(%a) : (tensor<f32>) -> " + "tuple<" * N + "tensor<f32>" +
    ">" * N + "\nreturn %a : tensor<f32>\n}\n}\n",
    "brackets.mlir": MLIR + "%0 = stablehlo.foreign %a " + "[" * N + "]" * N + " : tensor<f32>\nreturn %a : tensor<f32>\n}\n}\n",
    "tuples.hlo.txt": "HloModule m\nENTRY main {\n  ROOT p = " + "(" * N + "f32[]" + ")" * N + " parameter(0)\n}\n",
    "operands.hlo.txt": "HloModule m\nENTRY main {\n  ROOT p = " + "f32[] negate(" * N + "f32[] parameter(0" + ")" * N + ")\n}\n",
    "sharding.hlo.txt": "HloModule m\nENTRY main {\n  ROOT p = f32[] parameter(0), sharding=" + "{" * N + "}" * N + "\n}\n",
    "calls.hlo.txt": "HloModule m\nc0 {\n  ROOT p = f32[] parameter(0)\n}\n" + "".join(
        f"c{i} {{\n  p{i} = f32[] parameter(0)\n  ROOT r{i} = f32[] call(p{i}), to_apply=c{i - 1}\n}}\n" for i in range(1, N // 10)) +
    f"ENTRY main {{\n  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply=c{N // 10 - 1}\n}}\n",
    # computations.instructions.shape.tuple_shapes, each a tuple
    "tuples.hlo.pb": b"\x0a\x01m" + messages(b"\x1a", b"\x0a\x01c" + messages(b"\x12", b"\x0a\x01p\x12\x09parameter" + messages(
        b"\x1a", messages(b"\x10\x0d\x22", b"\x10\x0b", N), 1), 1), 1),
    "messages.pbtxt": 'node { name: "a" op: "Const" ' + 'attr { key: "f" value { func { name: "f" ' * N + "}" * (3 * N + 1) + "\n",
    "values.json": '{"segments": [], "device_traces": ' + "[" * N + "]" * N + "}",
    "arguments.json": '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1, "args": {"a": ' +
    "[" * N + "]" * N + "}}]}",
    "types.json": json.dumps({"root": 1, "nodes": [
        {"type_key": ""}, {"type_key": "IRModule", "attrs": {"functions": "2"}}, {"type_key": "Map", "data": [3, 4]},
        {"type_key": "GlobalVar", "attrs": {"name_hint": "main"}},
        {"type_key": "relay.Function", "attrs": {"params": "5", "body": "6"}}, {"type_key": "Array", "data": [6]},
        {"type_key": "relay.Var", "attrs": {"vid": "7", "_checked_type_": "8", "type_annotation": "8"}},
        {"type_key": "relay.Id", "attrs": {"name_hint": "x"}}, {"type_key": "TupleType", "attrs": {"fields": "9"}},
        {"type_key": "Array", "data": [8] * 200}]}),
}
for name, content in FILES.items():
    (OUT / name).write_bytes(content if isinstance(content, bytes) else content.encode())
