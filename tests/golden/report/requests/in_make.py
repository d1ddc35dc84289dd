"""Traces of programs that generate: calls of generate() one after another, requests of a server that overlap."""
import json, sys

events, corr = [], 0


def span(cat, name, ts, dur, pid=1, tid=1, **args):
    events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})


def forward(ts, host, device):
    """A step: an embedding, a launch, its kernel, and the copy of the token; when the token is there."""
    global corr
    corr += 1
    span("cpu_op", "aten::embedding", ts, 10)
    span("cpu_op", "aten::mm", ts + 20, host - 20)
    span("cuda_runtime", "cudaLaunchKernel", ts + 30, 5, correlation=corr)
    span("kernel", "gemm", ts + 40, device, pid=0, tid=7, correlation=corr, device=0, stream=7)
    return ts + 40 + device


def calls():
    ts = 1000
    for prompt in 400, 600, 500:
        begin = ts
        done = forward(ts + 50, 100, prompt)
        for token in range(5):
            done = forward(done + 20, 60, 100 + token)
        span("python_function", "transformers/generation/utils.py(2215): generate", begin, done + 30 - begin)
        ts = done + 400


def server():
    for i in range(6):
        forward(1000 + 200 * i, 60, 100)
        span("user_annotation", "step[DECODE bs=2]", 1000 + 200 * i, 190)
    for i, (begin, end) in enumerate(((900, 1800), (950, 2100), (1500, 2180))):
        common = {"cat": "request", "pid": 1, "id": i}
        for ph, name, ts in ("b", "llm_request", begin), ("b", "queue", begin), ("e", "queue", begin + 40 + 10 * i), ("b", "prefill", begin + 60), \
                ("e", "prefill", begin + 150), ("e", "llm_request", end):
            events.append({"ph": ph, "name": name, "ts": ts, **common})


{"calls": calls, "server": server}[sys.argv[1]]()
json.dump({"traceEvents": events}, sys.stdout)
