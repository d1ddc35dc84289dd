#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Facts about a Kineto trace that a verdict of report can be held against, from the events alone.

    bench/judge.py TRACE.json.gz...

Device window and its busy share; the share of gaps whose next kernel was launched only after the gap began, and of other gaps; time in spans of a
DataLoader, in calls that allocate or free device memory and in kernels of NCCL; kernels below 10 us; distances between the profiler's marks.
Nothing of the program is used: plain JSON and unions of intervals.
"""
import gzip, json, pathlib, sys

DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}


def span(e):
    return float(e["ts"]), float(e["ts"]) + float(e["dur"])


def union(spans):
    """Its length, and the gaps in it."""
    total, end, gaps = 0.0, None, []
    for a, b in sorted(spans):
        if end is None or a > end:
            if end is not None:
                gaps.append((end, a))
            total, end = total + b - a, b
        elif b > end:
            total, end = total + b - end, b
    return total, gaps


def facts(path):
    doc = json.load(gzip.open(path))
    events = [e for e in (doc["traceEvents"] if isinstance(doc, dict) else doc) if e.get("ph") == "X" and "dur" in e]
    device = [e for e in events if str(e.get("cat")).lower() in DEVICE]
    calls = {e["args"]["correlation"]: e for e in events
             if e.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime") and e.get("args", {}).get("correlation") is not None}
    marks = sorted({span(e) for e in events if e["name"].startswith("ProfilerStep#") and e["cat"] in ("user_annotation", "cpu_op", "Operator")})
    named = lambda *words: union(span(e) for e in events if any(w in e["name"] for w in words))[0]
    busy, gaps = union(map(span, device))
    window = max(span(e)[1] for e in device) - min(span(e)[0] for e in device)
    first = {}
    for e in device:
        first.setdefault(span(e)[0], e)
    late = other = 0.0
    for a, b in gaps:
        call = calls.get(first[b].get("args", {}).get("correlation"))
        if call and span(call)[0] > a:
            late += b - a
        else:
            other += b - a
    return {"window ms": window / 1e3, "busy %": 100 * busy / window, "late launch %": 100 * late / window, "other gaps %": 100 * other / window,
            "loader ms": named("DataLoader") / 1e3, "allocation ms": named("cudaMalloc", "cudaFree", "hipMalloc", "hipFree") / 1e3,
            "nccl ms": union(span(e) for e in device if "nccl" in e["name"].lower())[0] / 1e3,
            "below 10 us %": 100 * sum(e["dur"] < 10 for e in device) / len(device),
            "marks ms": [round((b[0] - a[0]) / 1e3, 2) for a, b in zip(marks, marks[1:])] or [round((b - a) / 1e3, 2) for a, b in marks]}


for name in sys.argv[1:]:
    print(pathlib.Path(name).name, *(f"{k} {v:.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in facts(name).items()), sep="\n  ")
