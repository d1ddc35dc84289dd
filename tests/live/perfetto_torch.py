#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own Perfetto files (2.15 and later): its encoder writes a window of made-up CUPTI records, and reprise reads it.

    perfetto_torch.py [PROGRAM] [--keep FILE]     with a Python that has torch; no GPU is needed

What must be read: operators with their arguments, calls, kernels on their streams with grid, block and launch, collectives with their
group, copies, waits, annotations of the device, counters by their names.
"""
import csv, enum, pathlib, subprocess, sys, tempfile, types

BASE = 1_700_000_000_000_000_000


class Runtime(enum.IntEnum):
    cudaLaunchKernel_v7000 = 211
    cudaMemcpyAsync_v3020 = 41
    cudaStreamSynchronize_v3020 = 131


class Driver(enum.IntEnum):
    cuLaunchKernel = 307


def encoder():
    """The module that shapes windows; of CUPTI's Python package it needs the names of calls only."""
    package, module = types.ModuleType("cupti"), types.ModuleType("cupti.cupti")
    module.Runtime_api_trace_cbid, module.Driver_api_trace_cbid = Runtime, Driver
    package.cupti = module
    sys.modules |= {"cupti": package, "cupti.cupti": module}
    import torch.profiler._cuspy.trace as trace
    return trace


def window():
    import numpy as np
    i64 = lambda *x: np.array(x, dtype=np.int64)
    texts = lambda *x: np.array(x, dtype=object)
    cpu = {"traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 100, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 100, "tid": 101, "args": {"name": "main"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 101, "ts": 1.0, "dur": 20.0, "args": {"External id": 1, "Input Dims": [[4, 8], [8, 2]]}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 100, "tid": 101, "ts": 0.5, "dur": 90.0, "args": {}}]}
    device = {"device_id": i64(0, 0), "context_id": i64(1, 1)}
    columns = {
        "cuda_runtime": {"cbid": i64(211, 211, 41, 131), "process_id": i64(100, 100, 100, 100), "thread_id": i64(101, 101, 101, 101),
                         "correlation_id": i64(1, 2, 3, 4), "start_ns": BASE + i64(2000, 6000, 30000, 40000), "end_ns": BASE + i64(3000, 7000, 31000, 60000)},
        "kernel": device | {"start_ns": BASE + i64(8000, 9000), "end_ns": BASE + i64(20000, 15000), "stream_id": i64(7, 9), "correlation_id": i64(1, 2),
                            "name": texts("gemm<float>", "ncclDevKernel_AllReduce"), "grid_x": i64(4, 2), "grid_y": i64(1, 1), "grid_z": i64(1, 1),
                            "block_x": i64(128, 512), "block_y": i64(1, 1), "block_z": i64(1, 1), "registers_per_thread": i64(32, 96),
                            "static_shared_memory": i64(0, 0), "dynamic_shared_memory": i64(1024, 0), "graph_node_id": i64(0, 0), "graph_id": i64(0, 0),
                            "metadata": texts(None, '{"Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float", "Process Group Name": "0"}')},
        "gpu_memcpy": {"start_ns": BASE + i64(32000), "end_ns": BASE + i64(33000), "device_id": i64(0), "context_id": i64(1), "stream_id": i64(7),
                       "correlation_id": i64(3), "bytes": i64(4096), "copy_kind": i64(1), "src_kind": i64(2), "dst_kind": i64(3)},
        "cuda_sync": {"start_ns": BASE + i64(40000), "end_ns": BASE + i64(60000), "sync_type": i64(3), "context_id": i64(1), "stream_id": i64(7),
                      "correlation_id": i64(4), "cuda_event_sync_id": i64(0), "cuda_event_id": i64(0)},
        "gpu_annotation": {"start_ns": BASE + i64(8000), "end_ns": BASE + i64(20000), "device_id": i64(0), "context_id": i64(1), "stream_id": i64(7),
                           "name": texts("forward")},
        "environment": {"start_ns": BASE + i64(8000, 9000), "environment_kind": i64(3, 1), "device_id": i64(0, 0),
                        "data": np.array([300000, 1500 | 2000 << 32], dtype=np.uint64)},
    }
    return cpu, {"columns": columns, "thread_resource_map": {}}


def main():
    words = sys.argv[1:]
    keep = words[words.index("--keep") + 1] if "--keep" in words else None
    program = words[0] if words and words[0] != "--keep" else "build/reprise"
    try:
        trace = encoder()
        with tempfile.TemporaryDirectory() as tmp:
            path = pathlib.Path(keep or tmp + "/torch.pftrace")
            trace._window_to_pftrace(*window(), BASE, str(path))
            out = subprocess.run([program, "convert", path, "--to", "csv", "-q", "-o", "-"], capture_output=True, text=True, check=True).stdout
    except (ImportError, AttributeError) as why:
        print(f"perfetto_torch: skipped: {why}")
        return 0
    rows = [r for r in csv.DictReader(out.splitlines()) if r["kind"] != "metadata"]
    have = {(r["name"], r["kind"], r["thread"], r["correlation"]) for r in rows}
    want = {("aten::mm", "cpu_op", "101", ""), ("gemm<float>", "kernel", "7", "1"), ("ncclDevKernel_AllReduce", "kernel", "9", "2"), ("Memcpy", "memcpy", "7", "3"),
            ("Stream Sync", "sync", "7", "4"), ("forward", "gpu_annotation", "7", "")}
    counters = {r["name"] for r in rows if r["kind"] == "counter"}
    assert want <= have, want - have
    assert counters >= {"Power (W)", "SM Clock (MHz)"}, counters
    gemm = next(r["args"] for r in rows if r["name"] == "gemm<float>")
    assert '"grid":[4, 1, 1]' in gemm and '"block":[128, 1, 1]' in gemm and '"registers per thread":32' in gemm, gemm
    print(f"perfetto_torch: passed, {len(rows)} events")
    return 0


if __name__ == "__main__":
    sys.exit(main())
