# SPDX-License-Identifier: Apache-2.0
"""Names that try to become commands, markup, formulas, paths or control sequences, and inputs that carry them.

If one of them is ever run it makes a file 'pwned', or sets the variable 'pwned' of a page.
"""
import gzip, json
from pathlib import Path

TOUCH = "touch pwned"
PYTHON = "open('pwned','w')"
SCRIPT = "window.pwned=1"

# Bytes; what is not UTF-8 among them is in all inputs that can hold it.
NAMES = [text if isinstance(text, bytes) else text.encode() for text in (
    "plain",
    f'"; {TOUCH} #', f"'; {TOUCH} #", f"$({TOUCH})", f"`{TOUCH}`", f'"$({TOUCH})"', f"'$({TOUCH})'", f"a\n{TOUCH}\n", f"a\r{TOUCH}\r",
    f"a\r\n{TOUCH}\r\n", f"a; {TOUCH}; b", f"| {TOUCH}", f"&& {TOUCH}", "${IFS}x", "~root", "* ? [a]", "!!", "\\", "a\\", 'a\\"', "%s%n%d%%",
    f"x\n{PYTHON}\n#", f"x\r{PYTHON}\r#", f'"]\n{PYTHON}\n["', f'"""\n{PYTHON}\n"""', f"'''\n{PYTHON}\n'''", f'\\"]+[{PYTHON}]+["',
    f"x\u2028{PYTHON}\u2029", f"x\x0c{PYTHON}", f"x\x85{PYTHON}", f"{{{PYTHON}}}", "# -*- coding: utf-7 -*-", "\\N{NO SUCH}", "\\u12",
    f"</script><script>{SCRIPT}</script>", f"<img src=x onerror={SCRIPT}>", f'"><img src=x onerror={SCRIPT}>', f"'><svg onload={SCRIPT}>",
    f"<!--<script>{SCRIPT}", "-->", "]]>", "<![CDATA[", "*/", f"javascript:{SCRIPT}", f"\\u003cscript\\u003e{SCRIPT}", "&lt;b&gt; &amp; &#60;",
    f"</title><script>{SCRIPT}</script>", f"</style><script>{SCRIPT}</script>", "<?xml version='1.0'?>", "<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;",
    f'"]; x [label="', "\\N \\G \\l \\E", "}\nsubgraph {", f"=cmd|'/c {TOUCH}'!A1", "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1",
    "a,b", 'a"b', "a;b", "a\tb", "../../pwned", "/tmp/../pwned", "..", ".", "-rf", "--help", "pwned\0.json", "con:aux", "a/b/c",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07", "\x9b31m", "\u202eevil\u202c", "\u2066x\u2069", "\u200ex", "\ufeffx", "\x7f\x08\x08", "x" * 5000,
    "nul\0inside", b"\xff\xfe\xc0\xaf", b"cut \xe2\x82", b"surrogate \xed\xa0\x80", "\U0001f525 \u878d\u5408 gr\xf6\xdfe", "\uffff", " ", "",
    'x" op: "pwned', "x }\n node { name: 'pwned'", "a = f32[] parameter(0)\n  %pwned", "a), metadata={", "%pwned", "a#1", "{...}", "HloModule pwned",
    "'; DROP TABLE events; --", "name=\"} 1\npwned 1", "# EOF\npwned")]

# A C string ends at a NUL, and is never empty here.
C_NAMES = [name for name in NAMES if name and b"\0" not in name]


def text_of(name):
    """As JSON of Python holds it; bytes that are not UTF-8 survive the way back (to_bytes)."""
    return name.decode("utf-8", "surrogateescape")


def to_bytes(document):
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")


class Renamed:
    """Adds a hostile ending to every text of a recording; equal texts stay equal."""

    KEPT = {"ph", "cat", "s", "displayTimeUnit", "schemaVersion", "id"}

    def __init__(self):
        self.known = {}

    def name(self, text):
        if text not in self.known:
            self.known[text] = text + " " + text_of(NAMES[len(self.known) % len(NAMES)])
        return self.known[text]

    def value(self, key, value):
        if isinstance(value, dict):
            return {k: self.value(k, v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(key, v) for v in value]
        if isinstance(value, str) and key not in self.KEPT and not value.startswith("ProfilerStep"):
            return self.name(value)
        return value


def rename_trace(source, to, most=4000):
    """The first events of a trace, each text of them with a hostile ending."""
    document = json.loads(gzip.open(source).read())
    document["traceEvents"] = document["traceEvents"][:most]
    renamed = Renamed()
    for event in document["traceEvents"]:
        if event.get("ph") == "M":
            event["args"] = renamed.value("args", event.get("args", {}))
        else:
            for key, value in list(event.items()):
                event[key] = renamed.value(key, value)
    Path(to).write_bytes(to_bytes(document))


def make_trace(to, rank):
    """Operators, launches and kernels of a step, all with hostile names; host, process and thread too."""
    events, at = [], 1000.0

    def add(name, cat, tid, ts, dur, **args):
        events.append({"ph": "X", "name": name, "cat": cat, "pid": 0 if cat == "kernel" else 1, "tid": tid, "ts": ts, "dur": dur, "args": args})

    for i, name in enumerate(map(text_of, NAMES)):
        add(name, "cpu_op", 1, at, 20.0, **{"External id": i, "Input Dims": [[2, 2]], "Call stack": name, name or "key": name})
        add("nn.Module: " + name, "python_function", 1, at + 1, 18.0, **{"Python id": i, "Python module id": i})
        add("cudaLaunchKernel", "cuda_runtime", 1, at + 5, 5.0, correlation=i)
        add(("ncclDevKernel_AllReduce " if i % 9 == 0 else "") + name, "kernel", 7, at + 12, 12.0,
            correlation=i, stream=7, device=0, **{"External id": i, "Collective name": name, "Process Group Name": name})
        at += 30
    add("ProfilerStep#1", "user_annotation", 1, 999.0, at - 999.0)
    name = text_of(NAMES[rank + 1])
    events += [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": name}},
               {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": name}},
               {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": name}}]
    Path(to).write_bytes(to_bytes({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": name, "totalGlobalMem": 1 << 34}],
                                   "distributedInfo": {"rank": rank, "world_size": 2, "backend": name},
                                   "hostname": name, "traceEvents": events}))


# ---- programs ----

def field(number, value):
    """A field of a protobuf: a number, or bytes."""
    def varint(v):
        out = b""
        while v > 127:
            out, v = out + bytes([v & 127 | 128]), v >> 7
        return out + bytes([v])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def make_hlo_proto(to):
    """A chain of operations with hostile names, scopes, files and attributes, in a module of such a name."""
    shape = field(2, 11) + field(3, b"\2\2") + field(5, field(1, b"\1\0"))
    instructions = b""
    for i, name in enumerate(NAMES):
        meta = field(1, name) + field(2, b"jit(f)/" + name) + field(3, name + b".py") + field(4, i + 1)
        one = field(1, name) + field(2, b"negate" if i else b"parameter") + field(3, shape) + field(7, meta) + field(35, i + 1)
        one += field(36, bytes([i])) if i else field(9, 0)
        instructions += field(2, one)
    n = len(NAMES)
    call = field(1, NAMES[1] + b"call") + field(2, b"custom-call") + field(3, shape) + field(28, NAMES[2]) + field(43, NAMES[3])
    instructions += field(2, call + field(35, n + 1) + field(36, bytes([n])))
    signature = field(1, shape) + field(2, shape) + field(3, NAMES[4])
    computation = field(1, NAMES[5]) + instructions + field(4, signature) + field(5, 1) + field(6, n + 1)
    module = field(1, NAMES[6]) + field(2, NAMES[5]) + field(3, computation) + field(4, signature) + field(5, 1) + field(6, 1)
    Path(to).write_bytes(field(1, module))


def quoted(name):
    """A string of protobuf's text form."""
    return '"' + "".join(f"\\{b:03o}" for b in name) + '"'


def make_graphdef(to):
    """A chain of nodes of TensorFlow."""
    nodes = ['node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }']
    before = b"x"
    for i, name in enumerate(NAMES):
        name = name.replace(b":", b"") + b" %d" % i  # a ':' is followed by the number of an output
        nodes.append(f"node {{ name: {quoted(name)} op: \"Neg\" input: {quoted(before)} device: {quoted(name)} "
                     f"attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} attr {{ key: {quoted(name)} value {{ s: {quoted(name)} }} }} }}")
        before = name
    Path(to).write_text("\n".join(nodes) + "\n")


def make_stablehlo(to):
    """Operations with hostile locations and targets of calls."""
    lines, before = [], "%arg0"
    for i, name in enumerate(NAMES):
        text = "".join(f"\\{b:02X}" for b in name)
        op = f'stablehlo.custom_call @"{text}"({before}) {{backend_config = "{text}"}} : (tensor<2xf32>) -> tensor<2xf32>' if i % 2 else \
            f"stablehlo.negate {before} : tensor<2xf32>"
        lines.append(f'    %{i} = {op} loc("{text}"("{text}.py":{i + 1}:2))')
        before = f"%{i}"
    text = "".join(f"\\{b:02X}" for b in NAMES[1])
    Path(to).write_text(f'module @"{text}" {{\n  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {{\n' + "\n".join(lines) +
                        f"\n    return {before} : tensor<2xf32>\n  }}\n}}\n")
