#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write small Perfetto traces, field by field (Python's standard library only).

    perfetto.py OUT     one file OUT/<case>.pftrace for each case below

The field numbers are those of Perfetto's .proto files; nothing here is shared with the reader.
"""
import os
import struct
import sys
import zlib


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """An int becomes a varint, a float a double, text and bytes a length and their bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields):
    return b"".join(field(n, v) for n, v in fields)


def fixed64(number, value):
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def packet(*fields, seq=1, ts=None, flags=0):
    out = [(10, seq)] + ([(8, ts)] if ts is not None else []) + ([(13, flags)] if flags else [])
    return field(1, message(*out, *fields))


def event(kind, *fields, raw=b"", **kw):
    return packet((11, (message((9, kind)) if kind else b"") + message(*fields) + raw), **kw)


BEGIN, END, INSTANT, COUNTER, STATE = 1, 2, 3, 4, 5


def process(uuid, pid, name, *fields):
    return packet((60, message((1, uuid), (3, message((1, pid), (6, name), *fields)))))


def thread(uuid, pid, tid, name, **kw):
    return packet((60, message((1, uuid), (4, message((1, pid), (2, tid), (5, name))))), **kw)


def training():
    """A launch and two kernels that overlap on one stream, in two lanes; arrows, interned texts, a counter, clocks."""
    def named(iid, text):
        return message((1, iid), (2, text))

    def int_arg(iid, value):
        return (4, message((1, iid), (4, value)))
    interned = message((1, named(1, "cuda_runtime")), (1, named(2, "kernel")), (2, named(1, "cudaLaunchKernel")),
                       (2, named(2, "gemm")), (2, named(3, "relu")), (3, named(1, "correlation")), (3, named(2, "stream")),
                       (3, named(3, "tags")), (29, named(1, "bf16")))
    out = packet((59, message((58, 6))), flags=1)
    out += packet((6, message((1, message((1, 6), (2, 1000))), (1, message((1, 1), (2, 1700000000000001000))),
                              (1, message((1, 64), (2, 1), (3, 1), (4, 1000))))))
    out += packet((5, message((2, message((1, "distributedInfo"), (5, '{"rank": 3, "world_size": 8}'))),
                              (2, message((1, "note"), (2, 'say "hi"'))))))
    out += process(1, 100, "python") + thread(2, 100, 101, "main")
    out += process(3, 0, "python", (8, "GPU 0"))
    for uuid in (4, 5):
        out += packet((60, message((1, uuid), (5, 3), (2, "stream 7"), (15, 3), (17, 77))))
    out += packet((12, interned), (59, message((58, 6), (11, message((11, 2))))), flags=2)
    for i, (at, kernel) in enumerate(((2000, 2), (2100, 3))):
        out += event(BEGIN, (3, 1), (10, 1), int_arg(1, 40 + i), raw=fixed64(47, 900 + i), ts=at, flags=2)
        out += event(END, ts=at + 50, flags=2)
        args = [int_arg(1, 40 + i), int_arg(2, 7), (4, message((1, 3), (17, 1)))]
        out += event(BEGIN, (11, 4 + i), (3, 2), (10, kernel), *args, raw=fixed64(48, 900 + i), ts=3000 + 100 * i, flags=2)
    out += event(END, (11, 5), ts=3700, flags=2) + event(END, (11, 4), ts=3501, flags=2)
    # a counter of differences, and packets of a clock that counts microseconds from the packet before
    out += packet((60, message((1, 6), (5, 1), (2, "memory"), (8, message((3, 3), (4, 1024), (5, 1))))))
    out += event(COUNTER, (11, 6), (30, 4), ts=2000, flags=2) + event(COUNTER, (11, 6), (30, 2), ts=2500, flags=2)
    out += packet((58, 64), (11, message((9, INSTANT), (23, "mark"))), ts=3, flags=2)
    out += packet((58, 64), (11, message((9, INSTANT), (23, "mark"))), ts=2, flags=2)
    return out


def nested():
    """Annotations of all types, an argument that is a tree, states, a slice without an end and an end without a begin."""
    def arg(name, *value):
        return (4, message((10, name), *value))
    tree = [(11, message((10, "sizes"), (12, message((4, 2))), (12, message((5, 0.5))))), (11, message((10, "ok"), (2, 1)))]
    old = message((1, 1), (2, "k"), (3, message((1, 2), (4, message((5, 7))), (4, message((8, "x"))))))
    out = thread(1, 5, 6, "t", flags=1)
    out += event(BEGIN, (11, 1), (23, "all"), (22, "cpu_op"), arg("b", (2, 1)), arg("u", (3, 1 << 63)), arg("i", (4, -5)),
                 arg("d", (5, 1.25)), arg("s", (6, 'a "quoted" text')), arg("p", (7, 255)), arg("j", (9, "[1, 2]")),
                 arg("t", *tree), arg("n", (8, old)), ts=10)
    out += event(BEGIN, (11, 1), (23, "open"), ts=20) + event(END, (11, 1), ts=30) + event(END, (11, 1), ts=40)
    out += event(END, (11, 1), ts=50)
    out += packet((60, message((1, 2), (5, 1), (2, "state"), (18, b""))))
    # ends with names: that of "middle" ends "inner", too; there is no "other"
    out += event(BEGIN, (11, 1), (23, "outer"), ts=60) + event(BEGIN, (11, 1), (23, "middle"), ts=61) + event(BEGIN, (11, 1), (23, "inner"), ts=62)
    out += event(END, (11, 1), (23, "middle"), ts=70) + event(END, (11, 1), (23, "other"), ts=71) + event(END, (11, 1), (23, "outer"), ts=72)
    out += event(STATE, (11, 2), (23, "waits"), ts=12) + event(STATE, (11, 2), (23, "runs"), ts=25)
    return out


def lost():
    """Packets that refer to texts of packets that were lost, then a new beginning."""
    out = thread(1, 5, 6, "t", flags=0)
    out += event(INSTANT, (11, 1), (10, 1), ts=10, flags=2)
    out += packet((12, message((2, message((1, 1), (2, "known"))))), (42, 1), flags=1)
    out += event(INSTANT, (11, 1), (10, 1), ts=20, flags=2)
    return out + packet((2, message((1, message((1, 5), (3, "python"), (3, "train.py")))))) + packet((4, message((1, 1))))


def legacy():
    """Chrome's old events: complete, arrows, asynchronous ones, and a thread of their own choice."""
    def old(*fields, ts, name="x", uuid=1):
        return packet((11, message((11, uuid), (22, "test"), (23, name), (6, message(*fields)))), ts=ts)
    out = thread(1, 1, 1, "a", flags=1) + thread(2, 1, 2, "b")
    out += old((2, ord("X")), (3, 10), ts=10000, name="first") + old((2, ord("s")), (6, 330), ts=10000, name="arrow")
    out += old((2, ord("X")), (3, 5), ts=30000, name="second", uuid=2) + old((2, ord("f")), (6, 330), (12, 1), ts=30000, name="arrow", uuid=2)
    out += old((2, ord("b")), (11, 7), ts=1000, name="request") + old((2, ord("e")), (11, 7), ts=9000, name="request")
    return out + old((2, ord("I")), (14, 2), (18, 1), (19, 2), ts=500, name="instant")


def gpu():
    """Render stages and counters of a driver."""
    specs = message((24, message((1, 1), (2, "compute queue"))), (24, message((1, 2), (2, "dispatch"))))
    out = packet((12, specs), flags=1)
    out += packet((53, message((1, 0), (2, 500), (13, 1), (14, 2), (11, 1), (10, 9), (17, "saxpy"))), ts=100, flags=2)
    out += packet((53, message((1, 1), (2, 25), (13, 1), (14, 2), (11, 1))), ts=700, flags=2)
    out += packet((53, message((1, 2), (2, 25), (13, 3), (14, 2))), ts=800, flags=2)
    out += packet((52, message((1, message((1, message((1, 1), (2, "occupancy"))))), (2, message((1, 1), (3, 0.5))), (2, message((1, 2), (2, 3))))), ts=100)
    return out + packet((128, message((1, message((1, "Some GPU"))))))


def packed():
    """Packets inside a compressed packet."""
    inner = thread(1, 5, 6, "t", flags=1) + event(BEGIN, (11, 1), (23, "inside"), ts=5) + event(END, (11, 1), ts=9)
    return packet((50, zlib.compress(inner, 9)))


CASES = {f.__name__: f for f in (training, nested, lost, legacy, gpu, packed)}


def main():
    for name, make in CASES.items():
        with open(os.path.join(sys.argv[1], name + ".pftrace"), "wb") as f:
            f.write(make())


if __name__ == "__main__":
    main()
