"""Inputs that nest 100,000 levels, or for ever: spans, scopes, functions of graphs, values of snapshots."""
import json, sys
from pathlib import Path

N = 100000
OUT = Path(sys.argv[1])


def write(name, content):
    (OUT / name).write_bytes(content if isinstance(content, bytes) else content.encode())


# ---- spans in spans, with a kernel that the innermost one launches
def spans(name, cat, **args):
    events = [{"ph": "X", "cat": cat, "name": name % (i % 50), "pid": 1, "tid": 1, "ts": i, "dur": 4 * N - 2 * i,
               "args": {k: v(i) for k, v in args.items()}} for i in range(N)]
    events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": N + 1, "dur": 2, "args": {"correlation": 7}},
               {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": N + 5, "dur": 50,
                "args": {"correlation": 7, "device": 0, "stream": 7}}]
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


write("operators.json", spans("aten::op%d", "cpu_op"))
write("modules.json", spans("nn.Module: M_%d", "python_function", **{"Python id": lambda i: i, "Python parent id": lambda i: i - 1 if i else None}))

# ---- scopes of programs
HLO = "HloModule m\n%sENTRY main {\n  p = f32[] parameter(0)\n%s  ROOT r = f32[] negate(p), metadata={op_name=\"%s\"}\n}\n"
write("scopes.hlo.txt", HLO % ("", "", "s/" * N + "r"))
write("scopes_apart.hlo.txt", HLO % ("", "".join('  a%d = f32[] negate(p), metadata={op_name="%sa"}\n' % (i, "s/" * i) for i in range(1000)), "r"))

# ---- graphs of TensorFlow: functions that call the next, or themselves; operations of operations
FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'
X = 'node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { } } } }\n'
CALL = ('op: "%s" input: "%s" attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } '
        'attr { key: "f" value { func { name: "%s" } } }')
FUNCTION = ('function { signature { name: "%s" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "o" type: DT_FLOAT } } '
            'node_def { name: "c" %s } ret { key: "o" value: "c:%s:0" } }\n')
RELU = 'op: "Relu" input: "a" ' + FLOAT
IF = ('op: "If" input: "a" input: "a" attr { key: "Tcond" value { type: DT_FLOAT } } attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } '
      'attr { key: "then_branch" value { func { name: "f" } } } attr { key: "else_branch" value { func { name: "f" } } }')
WHILE = ('op: "While" input: "%s" attr { key: "T" value { list { type: DT_FLOAT } } } attr { key: "cond" value { func { name: "%s" } } } '
         'attr { key: "body" value { func { name: "%s" } } }')


def graph(first, functions):
    return X + 'node { name: "y" %s }\nlibrary {\n%s}\nversions { producer: 1 }\n' % (CALL % ("PartitionedCall", "x", first), "".join(functions))


write("functions.pbtxt", graph("f0", [FUNCTION % ("f%d" % i, CALL % ("PartitionedCall", "a", "f%d" % (i + 1)) if i < N // 10 else RELU,
                                                  "output" if i < N // 10 else "activations") for i in range(N // 10 + 1)]))
write("itself.pbtxt", graph("f", [FUNCTION % ("f", CALL % ("PartitionedCall", "a", "f"), "output")]))
write("each_other.pbtxt", graph("f", [FUNCTION % ("f", CALL % ("PartitionedCall", "a", "g"), "output"),
                                      FUNCTION % ("g", CALL % ("StatefulPartitionedCall", "a", "f"), "output")]))
write("whiles.pbtxt", graph("f", [FUNCTION % ("f", WHILE % ("a", "f", "f"), "output")]))
write("ifs.pbtxt", graph("f", [FUNCTION % ("f", IF, "output")]))
write("nodes.pbtxt", X + "".join('node { name: "n%d" op: "Relu" input: "%s" %s }\n' % (i, "n%d" % (i - 1) if i else "x", FLOAT) for i in range(N // 5)))
write("loop.pbtxt", X + 'node { name: "a" op: "Relu" input: "b" %s }\nnode { name: "b" op: "Relu" input: "a" %s }\n' % (FLOAT, FLOAT))

# ---- memory snapshots: values in values of a pickle
def pickled(value):
    """{"segments": [], "device_traces": [[{"action": "alloc", "frames": value}]]}, the value as it is written"""
    text = lambda s: b"X" + len(s).to_bytes(4, "little") + s.encode()
    return (b"\x80\x02}(" + text("segments") + b"]" + text("device_traces") + b"](](}(" + text("action") + text("alloc") + text("addr") + b"K\x01" +
            text("size") + b"K\x01" + text("stream") + b"K\x00" + text("frames") + value + b"ueeu.")


write("lists.pickle", pickled(b"]" * N + b"a" * (N - 1)))
write("tuples.pickle", pickled(b")" + b"\x85" * N))
write("dicts.pickle", pickled(b"}K\x01" * N + b"K\x01" + b"s" * N))
write("marks.pickle", pickled(b"(" * N + b"l" * N))
write("objects.pickle", pickled(b"cm\nc\n" + b")R" * N))
write("in_itself.pickle", pickled(b"]q\x01h\x01a"))
frame = b"}(" + b"X\x04\0\0\0name" + b"X\x01\0\0\0f" + b"X\x04\0\0\0line" + b"K\x01" + b"X\x08\0\0\0filename" + b"X\x01\0\0\0m" + b"u"
write("frames.pickle", pickled(b"](" + frame * N + b"e"))
write("states.json", '{"segments": [{"blocks": ' * 2000 + "[]" + "}]" * 2000 + "}")
