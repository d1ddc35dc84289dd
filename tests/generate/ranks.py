#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make Kineto traces of many ranks whose clocks are known (Python's standard library only).

    ranks.py OUT [--ranks 8 --per-host 4 --steps 20 --kernels 0 ...]

Every step has kernels and three all-reduces: a rank comes after 0.3 to 0.7 ms of work, all leave 0.2 to 0.4 ms after the last
came, within 3 us of each other. Times are of the host's clock, which is off by --offset-us and drifts. Prints the offsets.
"""
import argparse
import json
import os
import random


def run(a):
    """Per rank: (category, name, track, begin, duration) in us on one clock."""
    rng = random.Random(a.seed)
    events, now, met = [[] for _ in range(a.ranks)], 0.0, 0
    for step in range(a.steps):
        ready = [now + rng.uniform(0, 200) for _ in range(a.ranks)]
        for r in range(a.ranks):
            events[r].append(("user_annotation", "ProfilerStep#%d" % step, 1, ready[r], 4000, step))
            events[r] += [("kernel", "kernel_%d" % (k % 50), 7, ready[r] + k * 0.01, 0.005, step) for k in range(a.kernels)]
        for _ in range(3):
            came = [t + rng.uniform(300, 700) for t in ready]
            if a.slow:
                rank, late = a.slow[met % len(a.slow)]
                came[rank] = max(came) + late
            met += 1
            left = max(came) + rng.uniform(200, 400)
            for r in range(a.ranks):
                ready[r] = left + rng.uniform(0, 3)
                events[r].append(("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, came[r], ready[r] - came[r], step))
        now = max(ready) + 500
    return events


def write(a, r, events, offset, drift):
    out, reduces = [], 0
    for cat, name, track, begin, dur, step in events:
        set_by = a.set.get(r // a.per_host, 0) if step >= a.steps // 2 else 0
        if cat == "kernel" and track == 20:
            reduces += 1
            if (r, reduces) in a.lost or step < a.late.get(r, 0) or r in a.silent:
                continue
        event = {"ph": "X", "cat": cat, "name": name, "pid": 0 if cat == "kernel" else 1, "tid": track,
                 "ts": round(1e9 + begin + offset + begin * drift * 1e-6 + set_by, 3), "dur": round(dur, 3)}
        if cat == "kernel":
            event["args"] = {"stream": track, "device": r % a.per_host}
        if track == 20:
            event["args"].update({"Collective name": "allreduce", "Group size": a.ranks, "In msg nelems": 1000, "dtype": "Float"})
        out.append(event)
    doc = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": r, "world_size": a.ranks}, "traceEvents": out}
    if a.hostname:
        doc["hostname"] = a.hostname.replace("%", str(r // a.per_host))
    with open(os.path.join(a.out, "rank%d.json" % r), "w") as f:
        json.dump(doc, f)


def pairs(text):
    return [tuple(int(x) for x in p.split(":")) for p in text.split(",") if p]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", help="folder to make")
    p.add_argument("--ranks", type=int, default=8)
    p.add_argument("--per-host", type=int, default=4, dest="per_host")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--kernels", type=int, default=0, help="more of them a step")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--hostname", default="node%", help="as the traces have it, %% for its number; empty: they have none")
    p.add_argument("--offset-us", default="", dest="offset_us", help="by host; random where none is given")
    p.add_argument("--drift", default="", help="by host, parts per million")
    p.add_argument("--set", default="", type=lambda t: dict(pairs(t)), help="host:us,...: its clock is set forward in the middle")
    p.add_argument("--slow", default="", type=pairs, help="rank:us,...: in turn they come so much after the others")
    p.add_argument("--lost", default="", type=pairs, help="rank:n,...: its n-th all-reduce was not recorded")
    p.add_argument("--late", default="", type=lambda t: dict(pairs(t)), help="rank:step,...: it recorded all-reduces from there on")
    p.add_argument("--silent", default="", type=lambda t: [x[0] for x in pairs(t)], help="ranks without any")
    a = p.parse_args()
    rng, hosts = random.Random(a.seed + 1), -(-a.ranks // a.per_host)
    offsets = [float(x) for x in a.offset_us.split(",") if x] or [0.0] + [rng.randrange(-5000, 5000) for _ in range(hosts - 1)]
    drift = [float(x) for x in a.drift.split(",") if x] or [0.0] * hosts
    os.makedirs(a.out)
    for r, events in enumerate(run(a)):
        write(a, r, events, offsets[r // a.per_host], drift[r // a.per_host])
    print("offsets", *offsets)


if __name__ == "__main__":
    main()
