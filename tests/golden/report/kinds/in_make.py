"""Steps of 30 kernels; every third has 6 more, and one has other kernels instead of 4. One kernel more, or a copy, makes no other kind."""
import json, sys

events, corr = [], 0


def span(cat, name, ts, dur, pid=1, tid=1, **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})


def launch(name, at, dur=20, cat="kernel"):
    global corr
    corr += 1
    span("cuda_runtime", "cudaLaunchKernel", at, 3, correlation=corr)
    span(cat, name, at + 5, dur, pid=0, tid=7, correlation=corr, device=0, stream=7)
    return at + 5 + dur


ts = 0
span("kernel", "gemm", 5, 20, pid=0, tid=7, correlation=9999, device=0, stream=7)  # of a step before: without a launch
for step in range(8):
    begin = at = ts + 30
    names = ["gemm"] * 20 + ["relu"] * 10
    if step % 3 == 2:
        names += ["adam"] * 6
    if step == 4:
        names[16:20] = ["gemm_tail"] * 4
    if step == 1:
        names += ["relu"]
    for name in names:
        at = launch(name, at)
    if step == 6:
        at = launch("Memcpy DtoH (Device -> Pageable)", at, cat="gpu_memcpy")
    span("user_annotation", f"ProfilerStep#{step}", begin, at - begin)
    ts = at
json.dump({"traceEvents": events}, sys.stdout)
