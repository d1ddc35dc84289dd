# SPDX-License-Identifier: Apache-2.0
"""in_mojo.py PATH: stacks as austin 4 writes them: of a thread that works and of one that waits, with a frame of the kernel and memory, which a file of times does not count."""
import sys


def number(n):
    bits, out = abs(n), []
    first = (bits & 63) | (64 if n < 0 else 0)
    bits >>= 6
    while bits:
        out.append(bits & 127)
        bits >>= 7
    out = [first] + out
    return bytes([b | 128 for b in out[:-1]] + [out[-1]])


def text(s):
    return s.encode() + b"\0"


def metadata(key, value):
    return b"\1" + text(key) + text(value)


def string(key, s):
    return b"\x0b" + number(key) + text(s)


def frame(key, file, name, line):
    return b"\3" + b"".join(map(number, (key, file, name, line, line, 1, 9)))


def stack(pid, tid, events):
    return b"\2" + number(pid) + number(0) + text("%x" % tid) + events


def ref(key):
    return b"\5" + number(key)


data = b"MOJ\3" + metadata("austin", "4.0.0") + metadata("mode", "full")
data += stack(70, 4096, string(1, "train.py") + string(2, "main") + string(3, "step") + frame(1 << 40, 1, 2, 7) + frame(2 << 40, 1, 3, 12)
              + ref(1 << 40) + ref(2 << 40) + b"\x09" + number(5000) + b"\x0a" + number(-64))
data += stack(70, 4096, ref(1 << 40) + ref(2 << 40) + b"\6" + text("vfs_read") + b"\x09" + number(3000))
data += stack(70, 4097, ref(1 << 40) + b"\x08" + b"\x09" + number(10000))
data += stack(71, 4098, string(1, "other.py") + string(2, "run") + frame(1 << 40, 1, 2, 3) + ref(1 << 40) + b"\x07" + b"\x09" + number(2000) + b"\x0a" + number(100))
open(sys.argv[1], "wb").write(data)
