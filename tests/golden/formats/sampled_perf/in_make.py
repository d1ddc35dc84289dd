"""Writes profiles: perf.data as a file and as a pipe, of gperftools with words of 8 and 4 bytes and as a text, of Firefox."""
import json
import struct

TYPE = 0x1 | 0x2 | 0x4 | 0x20 | 0x100  # ip, tid, time, callchain, period


def record(kind, body, misc=2):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def text(s):
    return s.encode() + b"\0" * (8 - len(s) % 8)


def attr(config, sample_type=TYPE):
    return struct.pack("<IIQQQQQ", 1, 48, config, 1000000, sample_type, 0, 1 << 10)


def mapping(pid, at, size, offset, path, misc=2):
    return record(10, struct.pack("<IIQQQ", pid, pid, at, size, offset) + bytes(32) + text(path), misc)


def sample(pid, tid, time, chain, misc=2):
    return record(9, struct.pack("<QIIQQQ", chain[-1], pid, tid, time, 1000000, len(chain))
                  + b"".join(struct.pack("<Q", ip & (1 << 64) - 1) for ip in chain), misc)


RECORDS = b"".join([
    record(3, struct.pack("<II", 7, 7) + text("train")),
    mapping(7, 0x400000, 0x1000, 0x2000, "/opt/train"),
    mapping(0xffffffff, 0xffff000000000000, 0x10000, 0, "[kernel.kallsyms]", 1),
    sample(7, 7, 1000000, [-512, 0x400010, 0x400021]),
    record(7, struct.pack("<IIIIQ", 8, 7, 8, 7, 1500000)),                        # 8 is a child of 7
    sample(8, 8, 2000000, [-128, 0xffff000000000100, -512, 0x400010, 0x400021], 1),
    sample(7, 9, 3000000, [-512, 0x999]),
    record(68, b""),
])
with open("perf.data", "wb") as f:
    ids = 104 + 64
    f.write(b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 64, 104, 64, ids, len(RECORDS), 0, 0) + bytes(32))
    f.write(attr(0) + struct.pack("<QQ", 0, 0) + RECORDS)
with open("pipe.data", "wb") as f:
    f.write(b"PERFILE2" + struct.pack("<Q", 16) + record(64, attr(0)) + RECORDS + b"[ perf record: done ]")
# a frame of zstd with one block that is stored, in two records of perf, the first cut within a sample
frame = b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(RECORDS)) + struct.pack("<I", len(RECORDS) << 3 | 1)[:3] + RECORDS
with open("zstd.data", "wb") as f:
    f.write(b"PERFILE2" + struct.pack("<Q", 16) + record(64, attr(0)) + record(81, frame[:250]) + record(68, b"")
            + record(83, struct.pack("<Q", len(frame) - 250) + frame[250:] + bytes(5)))
with open("cut.data", "wb") as f:
    f.write(open("perf.data", "rb").read()[:300])

words = [0, 3, 0, 10000, 0, 2, 2, 0x400010, 0x400021, 1, 1, 0x5, 0, 1, 0]
maps = b"00400000-00401000 r-xp 00002000 08:01 12   /opt/train\n"
open("old8.prof", "wb").write(struct.pack("<15Q", *words) + maps)
open("old4.prof", "wb").write(struct.pack("<15I", *words) + b" 0x400010 run (Run.java:12)\n 0x400021 main (Run.java:3)\n")
open("bad.prof", "wb").write(struct.pack("<9Q", 0, 3, 0, 10000, 0, 1, 99, 1, 2))
open("old.heap", "w").write("--- heapz 1 ---\nformat = java\n  700 2 @ 0x1 0x2\n  50 1 @ 0x2\n 0x1 alloc (A.java:1)\n 0x2 main (A.java:9)\n")

thread = {"name": "main", "processName": "train", "pid": "7", "tid": 7,
          "samples": {"stack": [1, 0, None, 1], "time": [1, 2, 3, 4], "weight": None, "weightType": "samples",
                      "threadCPUDelta": [5, 0, 5, None]},
          "stackTable": {"prefix": [None, 0], "frame": [0, 1]}, "frameTable": {"func": [0, 1], "line": [3, None]},
          "funcTable": {"name": [0, 2], "fileName": [1, None], "resource": [-1, 0]},
          "resourceTable": {"lib": [0], "name": [3]}, "stringArray": ["step", "train.py", "0x10", "libx"]}
meta = {"interval": 0.5, "preprocessedProfileVersion": 49}
json.dump({"meta": meta, "libs": [{"name": "libx.so"}], "threads": [thread]}, open("in.firefox.json", "w"))
shared = {k: thread.pop(k) for k in ("stackTable", "frameTable", "funcTable", "resourceTable", "stringArray")}
thread["samples"]["timeDeltas"] = [1, 1, 1, 1]
del thread["samples"]["time"]
json.dump({"meta": meta, "threads": [thread], "libs": [{"name": "libx.so"}], "shared": shared}, open("new.firefox.json", "w"))
shared["stackTable"]["prefix"] = [1, 0]
json.dump({"meta": meta, "threads": [thread], "shared": shared}, open("loop.firefox.json", "w"))

# a program with two functions and a build id, at addresses that are not its offsets; the same place in another file has no name
import os
ID = bytes(range(1, 21))
names = b"\0main\0step\0"
note = struct.pack("<III4s", 4, 20, 3, b"GNU\0") + ID
symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", n, 2, 0, 1, at, 16) for n, at in ((6, 0x9010), (1, 0x9020)))
at = {"note": 64 + 2 * 56}
at["symbols"] = at["note"] + len(note)
at["names"] = at["symbols"] + len(symbols)
at["sections"] = at["names"] + len(names)
section = "<IIQQQQIIQQ"
elf = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 3, 62, 1, 0, 64, at["sections"], 0, 64, 56, 2, 64, 3, 2)
elf += struct.pack("<IIQQQQQQ", 1, 5, 0x2000, 0x9000, 0x9000, 0x1000, 0x1000, 4096)
elf += struct.pack("<IIQQQQQQ", 4, 4, at["note"], 0, 0, len(note), len(note), 4) + note + symbols + names
elf += bytes(64) + struct.pack(section, 0, 2, 0, 0, at["symbols"], len(symbols), 2, 0, 8, 24)
elf += struct.pack(section, 0, 3, 0, 0, at["names"], len(names), 0, 0, 1, 0)
open("train", "wb").write(elf)
open("other", "wb").write(elf.replace(ID, ID[::-1]))
MADE = 2000000001  # no process has such a number


def known(path, at, size, offset):
    return record(10, struct.pack("<IIQQQ", 7, 7, at, size, offset) + struct.pack("<BBH", 20, 0, 0) + ID + bytes(8)
                  + text(os.path.abspath(path)), 2 | 1 << 14)


named = b"".join([
    known("train", 0x400000, 0x1000, 0x2000), known("other", 0x500000, 0x1000, 0x2000),
    sample(7, 7, 1000000, [-512, 0x400015, 0x400026]), sample(7, 7, 2000000, [-512, 0x500015]),
    sample(MADE, MADE, 3000000, [-512, 0x7015, 0x7026]), sample(7, 7, 4000000, [-512, 0x7015])])
open("named.data", "wb").write(b"PERFILE2" + struct.pack("<Q", 16) + record(64, attr(0)) + named)
open("/tmp/perf-%d.map" % MADE, "w").write("7010 10 kernel_of_jit\n7020 10 py::run:/opt/run.py\n7030 10 not whole")
