#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peak of a PyTorch memory snapshot by replaying its log, for comparison with `reprise memory`.

    snapshot_peak.py snapshot.pickle[.gz]     prints: bytes at the begin, at the peak, at the end

Independent of the C code: Python's own unpickler (use it on snapshots you made yourself only), and free memory as a list of
holes instead of live blocks. The allocator takes the hole that begins at the address in the log, and splits it if more than 1 MiB
(in a segment of 2 MiB: 512 bytes or more) would be left.
"""
import gzip
import pickle
import sys

MIB = 1 << 20


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as f:
        return pickle.load(f)


def rounded(size):
    return max(512, (size + 511) // 512 * 512)


class Segment:
    def __init__(self, address, size):
        self.address, self.size, self.holes, self.blocks = address, size, {address: size}, {}

    def take(self, address, size):
        """A block of exactly this size, anywhere in a hole."""
        start = max(h for h in self.holes if h <= address)
        length = self.holes.pop(start)
        assert start + length >= address + size
        if address > start:
            self.holes[start] = address - start
        if start + length > address + size:
            self.holes[address + size] = start + length - address - size
        self.blocks[address] = size
        return size

    def allocate(self, address, requested):
        hole, size = self.holes[address], rounded(requested)
        rest = hole - size
        split = rest >= 512 if self.size == 2 * MIB else rest > MIB
        return self.take(address, size if split else hole)

    def free(self, address):
        size = self.blocks.pop(address)
        if address + size in self.holes:
            size += self.holes.pop(address + size)
        for start in list(self.holes):
            if start + self.holes[start] == address:
                self.holes[start] += size
                return
        self.holes[address] = size


def first_frees(log):
    """Blocks that the log frees before it allocates at their address."""
    seen = set()
    for e in log:
        if e["action"] in ("alloc", "free_requested"):
            if e["action"] == "free_requested" and e["addr"] not in seen:
                yield e["addr"], e["size"]
            seen.add(e["addr"])


def replay(snapshot, device=0):
    log = snapshot["device_traces"][device]
    segments = {s["address"]: Segment(s["address"], s["total_size"]) for s in snapshot["segments"] if s["device"] == device}
    touched = {e["addr"] for e in log if e["action"] in ("alloc", "free_requested")}
    find = lambda a: next(s for s in segments.values() if s.address <= a < s.address + s.size)
    end = 0
    for s in snapshot["segments"]:
        at = s["address"]
        for b in s["blocks"]:
            at = b.get("address", at)
            if b["state"] != "inactive":
                end += b["size"]
                if at not in touched:
                    segments[s["address"]].take(at, b["size"])
            at += b["size"]
    early = sorted(first_frees(log), reverse=True)  # from above: what follows a block is known
    for address, requested in early:
        s = find(address)
        hole = next(h for h in s.holes if h <= address < h + s.holes[h])
        rest = hole + s.holes[hole] - address - rounded(requested)
        split = rest >= 512 if s.size == 2 * MIB else rest > MIB
        s.take(address, rounded(requested) + (0 if split else rest))
    now = begin = peak = sum(sum(s.blocks.values()) for s in segments.values())
    for e in log:
        if e["action"] == "alloc":
            now += find(e["addr"]).allocate(e["addr"], e["size"])
        elif e["action"] == "free_requested":
            now -= find(e["addr"]).blocks[e["addr"]]
        elif e["action"] == "free_completed":
            find(e["addr"]).free(e["addr"])
        elif e["action"].startswith("segment"):
            raise SystemExit("segments change: not replayed here")
        peak = max(peak, now)
    assert now == end, (now, end)
    return begin, peak, end


if __name__ == "__main__":
    print(*replay(load(sys.argv[1])))
