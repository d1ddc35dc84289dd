#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write dumps of a Flight Recorder with a known fault (Python's standard library only).

    flight_recorder.py OUT [--ranks 4] [--json] [--fault missing:3@6 ...]

A rank makes an all_reduce and an all_gather of the whole job in turn, and an all_reduce of its pair (groups "pair0" ...).
Faults, of rank R in collective N of the whole job (all but `skew` make the job hang there):
    missing:R@N   the rank never enters it            kind:R@N   it makes a broadcast instead
    size:R@N      half the elements                    type:R@N   another type (the job does not hang)
    stuck:R@N     it does not leave it, the others do  dead:R@N   there is no file of the rank
    ring:R@N      its recorder has kept nothing before it (nothing is wrong)
"""
import argparse
import json
import os
import pickle

STEPS = 8
START_NS = 1_700_000_000_000_000_000


def dump(rank, args, faults):
    world = list(range(args.ranks))
    pair = [rank // 2 * 2, rank // 2 * 2 + 1]
    name = f"pair{rank // 2}"
    hang = min([n for kind, _, n in faults if kind in ("missing", "kind", "size", "dead")], default=STEPS)
    entries = []

    def add(group, desc, seq, op, size, dtype, state, at):
        done = state == "completed"
        entries.append({
            "frames": [{"name": "all_reduce", "filename": "torch/distributed.py", "line": 40}, {"name": "step", "filename": "train.py", "line": 100 + seq}][seq % 2:],
            "record_id": len(entries), "pg_id": 0, "process_group": (group, desc), "collective_seq_id": seq, "p2p_seq_id": 0, "op_id": seq,
            "profiling_name": "nccl:" + op, "time_created_ns": at, "input_sizes": [[size, 256]], "input_dtypes": [dtype],
            "output_sizes": [[size, 256]], "output_dtypes": [dtype], "state": state, "time_discovered_started_ns": at + 1000 if state != "scheduled" else None,
            "time_discovered_completed_ns": at + 500_000 if done else None, "retired": done, "timeout_ms": 600000, "is_p2p": False})
    mine = {(kind, n) for kind, r, n in faults if r == rank}
    for seq in range(1, hang + 1):
        at = START_NS + seq * 1_000_000 + rank * 1000
        if seq < hang:
            add(name, "pair", seq, "all_reduce", 8, "Float", "completed", at - 400_000)
        if ("missing", seq) in mine:
            break
        op = "broadcast" if ("kind", seq) in mine else "_all_gather_base" if seq % 2 == 0 else "all_reduce"
        stuck = seq == hang < STEPS or ("stuck", seq) in mine
        add("0", "default_pg", seq, op, 512 if ("size", seq) in mine else 1024, "Float" if ("type", seq) in mine else "BFloat16",
            "started" if stuck else "completed", at)
    kept = min([n for kind, n in mine if kind == "ring"], default=1)
    return {"version": "2.10", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": str(world)}, name: {"name": name, "desc": "pair", "ranks": str(pair)}},
            "pg_status": {}, "entries": [e for e in entries if e["collective_seq_id"] >= kept]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--fault", action="append", default=[])
    args = parser.parse_args()
    faults = [(kind, *map(int, where.split("@"))) for kind, where in (f.split(":") for f in args.fault)]
    os.makedirs(args.out, exist_ok=True)
    for rank in range(args.ranks):
        if any(kind == "dead" and r == rank for kind, r, _ in faults):
            continue
        path, data = os.path.join(args.out, f"nccl_trace_rank_{rank}"), dump(rank, args, faults)
        if args.json:
            json.dump(data, open(path + ".json", "w"))
        else:
            pickle.dump(data, open(path, "wb"), protocol=2)


if __name__ == "__main__":
    main()
