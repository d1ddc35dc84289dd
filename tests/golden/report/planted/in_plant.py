# SPDX-License-Identifier: Apache-2.0
"""Traces with one planted fault on the device or in the recorder: `report` finds it, with its cost, and nothing else."""
import json, random, shlex, subprocess, sys

REPRISE = shlex.split(sys.argv[1])
STEPS, OPS, HOST_US = 6, 60, 20.0
DEVICE = ("kernel", "gpu_memcpy")


class Trace:
    """One host thread that launches to one stream. Times in microseconds."""

    def __init__(self, seed):
        self.rng, self.events, self.correlation, self.cpu, self.gpu = random.Random(seed), [], 1000, 1e6, 0.0

    def add(self, category, name, ts, dur, tid=1, **args):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 0 if category in DEVICE else 9000, "tid": tid,
                            "ts": round(ts, 3), "dur": round(dur, 3), "args": args})

    def call(self, category, name, dur):
        self.correlation += 1
        self.add(category, name, self.cpu, dur, correlation=self.correlation)
        self.cpu += dur

    def op(self, name, host, kernel, **args):
        self.correlation += 1
        launch = self.cpu + host * 0.4
        start = max(launch + 3.0, self.gpu + 1.0)
        self.add("cpu_op", "aten::" + name, self.cpu, host)
        self.add("cuda_runtime", "cudaLaunchKernel", launch, min(4.0, host * 0.4), correlation=self.correlation)
        self.add("kernel", name + "_kernel", start, kernel, 7, correlation=self.correlation, stream=7, device=0, **args)
        self.gpu = start + kernel
        self.cpu += host + 0.5

    def copy(self, dur):
        self.call("cuda_runtime", "cudaMemcpyAsync", 10.0)
        start = max(self.cpu, self.gpu + 1.0)
        self.add("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", start, dur, 7, correlation=self.correlation, stream=7, device=0)
        self.gpu = start + dur

    def wait(self):
        self.call("cuda_runtime", "cudaDeviceSynchronize", max(2.0, self.gpu - self.cpu) + 1.0)


def fault_before(t, fault, step, i):
    """What the host does before an operator; returns what it costs."""
    if fault == "fragmentation" and i % 20 == 5:
        t.wait()
        t.call("cuda_runtime", "cudaFree", 1500.0)
        t.call("cuda_runtime", "cudaMalloc", 1500.0)
        return 3000.0
    if fault == "profiler-overhead" and i == 30:
        t.wait()
        t.call("overhead", "Activity Buffer Request", 4000.0)
        return 4000.0
    if fault == "copies" and i == 0:
        t.copy(3000.0)
        return 3000.0
    if fault == "atypical-step" and (step, i) == (3, 0):  # a checkpoint behind a synchronisation
        t.wait()
        t.call("python_function", "torch/serialization.py(600): save", 200000.0)
        return 200000.0
    return 0.0


def build(fault):
    t, lost = Trace(fault), 0.0
    usual = t.rng.uniform(250, 400)
    for step in range(STEPS):
        begin = t.cpu
        for i in range(OPS):
            lost += fault_before(t, fault, step, i)
            host, kernel, args = HOST_US * t.rng.uniform(0.9, 1.1), usual * t.rng.uniform(0.97, 1.03), {"blocks per SM": 2.0}
            if fault == "low-occupancy" and i % 3 == 0:
                args, lost = {"blocks per SM": 0.0625}, lost + kernel * 0.9375
            if fault == "clock-trouble" and step >= 2:
                kernel, lost = kernel * 1.25, lost + kernel * 0.25
            if fault == "tiny-kernels":
                host, kernel, lost = 0.9, 3.0, lost + 1.0
            t.op(("mm", "add", "softmax")[i % 3], host, kernel, grid=[128, 1, 1], **args)
        if step == STEPS - 1:
            t.wait()
        t.add("user_annotation", f"ProfilerStep#{step + 3}", begin, t.cpu - begin)
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Planted GPU"}], "traceEvents": t.events}, lost * 1000


for fault in ("nothing", "low-occupancy", "clock-trouble", "fragmentation", "profiler-overhead", "tiny-kernels", "copies", "atypical-step"):
    doc, lost = build(fault)
    with open("planted.json", "w") as f:
        json.dump(doc, f)
    done = subprocess.run([*REPRISE, "report", "--json", "planted.json"], capture_output=True, text=True, check=True)
    found = {f["id"]: f["lost_ns"] for f in json.loads(done.stdout)["findings"]}
    if fault == "nothing":
        print(fault, "planted:", "nothing found" if not found else found)
        continue
    near = abs(found.get(fault, 0) - lost) <= 0.1 * lost
    print(fault, "planted:", "found with its cost, alone" if near and len(found) == 1 else f"{found}, true {lost:.0f}")
