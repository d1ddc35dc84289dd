# SPDX-License-Identifier: Apache-2.0
"""A server that launches a graph of six kernels in two decode steps, and the recordings of its captures for batches of 4 and
8. The second launch runs one kernel that the capture does not have."""
import gzip, json, os, sys

KERNELS = ["embed", "gemm_qkv", "attention", "gemm_out", "gemm_qkv", "attention"]


def event(cat, name, pid, tid, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def save(path, events):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}).encode())


def capture(path, batch):
    events = [event("user_annotation", f"capture_{batch}_decode", 1, 1, 0, 300),
              event("python_function", "runner.py(10): capture_one", 1, 1, 1, 298),
              event("cuda_runtime", "hipStreamBeginCapture", 1, 1, 2, 3, correlation=1),
              event("python_function", "nn.Module: Model_0", 1, 1, 10, 200)]
    at = 12
    for i, kernel in enumerate(KERNELS):
        layer = "nn.Module: Embedding_0" if not i else f"nn.Module: Layer_{(i - 1) // 3}"
        events += [event("python_function", layer, 1, 1, at, 20),
                   event("cpu_op", "aten::" + ("mm" if kernel.startswith("gemm") else kernel), 1, 1, at + 2, 15,
                         **{"Input Dims": [[batch, 64], [64, 64]]}),
                   event("cuda_runtime", "hipLaunchKernel", 1, 1, at + 5, 5, correlation=10 + i, kernel=kernel)]
        at += 25
    events.append(event("cuda_runtime", "hipStreamEndCapture", 1, 1, 250, 3, correlation=99))
    save(path, events)


def run(path):
    events, at, correlation = [], 0, 1000
    for step in range(2):
        correlation += 1
        events += [event("user_annotation", "step[DECODE bs=5]", 1, 1, at, 190),
                   event("python_function", "runner.py(20): replay", 1, 1, at + 5, 60),
                   event("cuda_runtime", "hipGraphLaunch", 1, 1, at + 10, 30, correlation=correlation)]
        start = at + 50
        for kernel in KERNELS[:3] + (["profiler_marker"] if step else []) + KERNELS[3:]:
            events.append(event("kernel", kernel, 0, 7, start, 20, correlation=correlation, stream=7, device=0))
            start += 20
        correlation += 1
        events += [event("cpu_op", "aten::argmax", 1, 1, at + 100, 20),
                   event("cuda_runtime", "hipLaunchKernel", 1, 1, at + 105, 10, correlation=correlation),
                   event("kernel", "argmax", 0, 7, start, 10, correlation=correlation, stream=7, device=0)]
        at += 300
    save(path, events)


if __name__ == "__main__":
    run("server/decode.json.gz")
    for batch in (4, 8):
        capture(f"server/capture_traces/graph_capture_rank_0_bs{batch}.json.gz", batch)
    with open("server/capture_traces/execution_details.json", "w") as f:
        json.dump([{"file": f"graph_capture_rank_0_bs{b}.json.gz", "batch_size": b, "mode": "FULL"} for b in (4, 8)], f)
