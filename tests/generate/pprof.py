# SPDX-License-Identifier: Apache-2.0
"""Writes a small profile of pprof: two types of values, an inlined function, a location without a name, labels.

    pprof.py FILE [--no-string-table | --missing-location]
"""
import gzip, sys


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


texts = ["", "samples", "count", "cpu", "nanoseconds", "main", "step", "inlined", "train.py", "/lib/libm.so", "thread", "loader"]


def sample(locations, values, label=b""):
    return message(2, message(1, b"".join(map(varint, locations))) + message(2, b"".join(map(varint, values))) + label)


def function(ident, name, file):
    return message(5, number(1, ident) + number(2, name) + number(4, file))


profile = message(1, number(1, 1) + number(2, 2)) + message(1, number(1, 3) + number(2, 4))
profile += sample([20, 10], [2, 20_000_000]) + sample([10], [1, 10_000_000])
profile += sample([99 if "--missing-location" in sys.argv else 30, 10], [4, 40_000_000], message(3, number(1, 10) + number(2, 11)))
profile += message(3, number(1, 1) + number(2, 0x1000) + number(5, 9))
profile += message(4, number(1, 10) + message(4, number(1, 1) + number(2, 3)))
profile += message(4, number(1, 20) + message(4, number(1, 3) + number(2, 7)) + message(4, number(1, 2) + number(2, 12)))
profile += message(4, number(1, 30) + number(2, 1) + number(3, 0x1234))
profile += function(1, 5, 8) + function(2, 6, 8) + function(3, 7, 8)
if "--no-string-table" not in sys.argv:
    profile += b"".join(message(6, t.encode()) for t in texts)
with open(sys.argv[1], "wb") as f:
    f.write(gzip.compress(profile, mtime=0))
