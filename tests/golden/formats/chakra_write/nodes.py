"""The nodes of Chakra execution traces, by the published schema (et_def.proto) and nothing of reprise."""
import sys

TYPES = ["INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"]


def varint(b, i):
    n = shift = 0
    while True:
        n |= (b[i] & 127) << shift
        shift, i = shift + 7, i + 1
        if b[i - 1] < 128:
            return n, i


def fields(b):
    i = 0
    while i < len(b):
        key, i = varint(b, i)
        value, i = varint(b, i)
        if key & 7 == 2:
            value, i = b[i:i + value], i + value
        yield key >> 3, value


def attrs(message, number):
    for attr in (dict(fields(v)) for k, v in fields(message) if k == number):
        name = attr.pop(1).decode()
        (kind, value), = attr.items()
        assert kind == {"is_cpu_op": 27, "start_ns": 13, "duration_ns": 13, "tensor_size": 13, "lane": 29, "pg_name": 29, "process_group": 29,
                        "generated_by": 29}.get(name, 9), (name, kind)
        yield name, value.decode() if kind == 29 else value


def ids(message, number):
    for k, v in fields(message):
        i = 0
        while k == number and i < len(v):
            n, i = varint(v, i)
            yield n


for path in sys.argv[1:]:
    data, messages, i = open(path, "rb").read(), [], 0
    while i < len(data):
        n, i = varint(data, i)
        messages.append(data[i:i + n])
        i += n
    print(path, "schema", dict(fields(messages[0]))[1].decode(), *(f"{k}={v}" for k, v in attrs(messages[0], 2)))
    numbers = {}
    for m in messages[1:]:
        f = dict(fields(m))
        deps, control = ([numbers[d] for d in ids(m, k)] for k in (5, 4))  # a KeyError: a node comes before what it waits for
        numbers[f[1]] = len(numbers)
        a = dict(attrs(m, 10))
        assert f.get(7, 0) == (a["duration_ns"] + 500) // 1000 and f.get(6, 0) == (a["start_ns"] + 500) // 1000
        rest = " ".join(f"{k}={v}" for k, v in a.items() if k not in ("start_ns", "duration_ns", "is_cpu_op"))
        print(f"  {numbers[f[1]]:2} {TYPES[f[3]]:9} {'host' if a['is_cpu_op'] else 'device':6} {a['start_ns']:6} +{a['duration_ns']:<6} after {deps} "
              f"control {control} {f[2].decode()}: {rest}")
