"""Two ranks: an operator launches a kernel, copies go to the device and back, an all-reduce and a send follow."""
import json

for rank in range(2):
    host = {"pid": 1, "tid": 1}
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", **host, "ts": 2, "dur": 20,
               "args": {"Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"]}}]
    work = [(0, "cudaMemcpyAsync", 2, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 6, 4, {"bytes": 4096}, 7),
            (6, "cudaLaunchKernel", 3, "kernel", "gemm", 14, 9.5, {}, 7),
            (24, "cudaLaunchKernel", 2, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 30, 20 - rank,
             {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 256, "Out msg nelems": 256, "Group size": 2,
              "Process Group Name": "default_pg", "Process Group Ranks": "[0, 1]"}, 9),
            (30, "cudaLaunchKernel", 2, "kernel", "ncclDevKernel_SendRecv", 52, 4, {}, 9),
            (34, "cudaMemcpyAsync", 2, "gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 60, 3, {"bytes": 64}, 7)]
    for i, (at, call, took, cat, name, ts, dur, args, stream) in enumerate(work):
        events += [{"ph": "X", "cat": "cuda_runtime", "name": call, **host, "ts": 4 + at, "dur": took, "args": {"correlation": i + 1}},
                   {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": ts + 4, "dur": dur,
                    "args": {**args, "correlation": i + 1, "device": 0, "stream": stream}}]
    json.dump({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, open(f"rank{rank}.json", "w"))
