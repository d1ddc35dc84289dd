"""Plants one trait a trace, and prints what the commands make of it."""
import json, subprocess, sys

program = sys.argv[1]


class Run:
    def __init__(self, device="NVIDIA H100 80GB HBM3"):
        self.device, self.events, self.cpu, self.gpu, self.id = device, [], 1e6, 0.0, 0

    def add(self, cat, name, ts, dur, tid=1, **args):
        device = cat == "kernel"
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": 0 if device else 9, "tid": tid, "ts": ts, "dur": dur, "args": args})

    def kernel(self, name, dur, host=20.0, op="aten::mm", **args):
        self.id += 1
        self.add("cpu_op", op, self.cpu, host, **args)
        self.add("cuda_runtime", "cudaLaunchKernel", self.cpu + 4, 4, correlation=self.id)
        start = max(self.cpu + 11, self.gpu + 1)
        self.add("kernel", name, start, dur, 7, correlation=self.id, stream=7, device=0)
        self.cpu, self.gpu = self.cpu + host, start + dur

    def step(self, n, body):
        begin = self.cpu
        body()
        end = max(self.cpu, self.gpu) + 2
        self.id += 1
        self.add("cuda_runtime", "cudaDeviceSynchronize", self.cpu, end - self.cpu, correlation=self.id)
        self.cpu = end
        self.add("user_annotation", f"ProfilerStep#{n}", begin, self.cpu - begin)

    def save(self, name):
        with open(name, "w") as f:
            json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": self.device}], "traceEvents": self.events}, f)
        return name


def ask(*args, status=(0,)):
    p = subprocess.run([program, *args, "-q", "--json"], stdout=subprocess.PIPE)
    assert p.returncode in status, (args, p.returncode)
    return json.loads(p.stdout)


def advice(report):
    return json.dumps([report["findings"], report["opportunities"]])


def loader(r, steps=3):
    def body():
        r.add("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", r.cpu, 30000)
        r.cpu += 30000
        for _ in range(150):
            r.kernel("elementwise_kernel", 6.0, op="aten::add")
    for n in range(steps):
        r.step(n + 1, body)


def between(r, name, steps=3):
    """The host works for long between launches, under a name that says nothing."""
    def body():
        for i in range(150):
            r.kernel("elementwise_kernel", 6.0, op="aten::add")
            if i == 70:
                r.add("user_annotation", name, r.cpu, 30000)
                r.cpu += 30000
    for n in range(steps):
        r.step(n + 1, body)


def products(r, kernel, dtype, optimizer=None, shape=4096, dur=4000.0):
    def body():
        for i in range(20):
            r.kernel(kernel, dur, **{"Input Dims": [[shape, shape], [shape, shape]], "Input type": [dtype, dtype]})
        if optimizer:
            begin = r.cpu
            for _ in range(300):
                r.kernel("elementwise_kernel", 25.0, op="aten::mul_")
            r.add("user_annotation", f"Optimizer.step#{optimizer}.step", begin, r.cpu - begin)
    for n in range(3):
        r.step(n + 1, body)


r = Run(); loader(r); path = r.save("loader.json")
report, plan = ask("report", path), ask("optimize", path)
first = report["opportunities"][0]
print("loader:", first["what_if"], "answers", first["finding"], "| optimize begins with", plan["moves"][0]["what_if"],
      "| simulate agrees", ask("simulate", path, "-w", first["what_if"])["predictions"][0]["predicted_ns"] == first["step_ns"])
print("loader: others gain less than the launches take:", all(o["gain_ns"] < 4e6 for o in report["opportunities"][1:]))

r = Run(); between(r, "np.array"); path = r.save("between.json")
gain = max((o["gain_ns"] for o in ask("report", path)["opportunities"] if o["what_if"].startswith("cuda-graphs")), default=0)
print("host work between launches: graphs keep it:", gain < 4e6)

r = Run("Tesla V100-SXM2-32GB"); products(r, "volta_sgemm_128x64_nn", "float", dur=9800.0); path = r.save("v100.json")
report = ask("report", path)
print("V100:", report["opportunities"][0]["what_if"], "| bf16 advised:", "bf16" in advice(report) or "bfloat16" in advice(report))
p = subprocess.run([program, "simulate", path, "-w", "dtype=bf16"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
print("V100: simulate:", p.stderr.strip().splitlines()[0])

r = Run(); products(r, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "c10::BFloat16"); path = r.save("half.json")
print("16 bits already:", [o["what_if"] for o in ask("report", path)["opportunities"] if o["applies"] != "no"])

r = Run()
for n in range(3):
    r.step(n + 1, lambda: [r.kernel("gemm_kernel", 4000.0) for _ in range(20)])
print("products of an unknown format:", [o["what_if"] for o in ask("report", r.save("unknown.json"))["opportunities"] if o["applies"] != "no"])

for optimizer in ("NorMuon", "AdamW8bit", "AdamW", "SGD"):
    r = Run(); products(r, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "c10::BFloat16", optimizer)
    path = r.save("optimizer.json")
    text = advice(ask("report", path)) + json.dumps(ask("optimize", path)["moves"])
    print(f"{optimizer}: fused=True is offered:", "fused=True" in text)

r = Run()
at = r.cpu - 20
while at < r.cpu + 4000:
    r.id += 1
    r.add("kernel", "gemm_kernel", at, 99.0, 7, correlation=r.id, stream=7, device=0)
    at += 100
r.gpu = at - 1
r.step(9, lambda: [r.kernel("gemm_kernel", 99.0) for _ in range(100)])
report = ask("report", r.save("previous.json"))
print("previous step:", report["step_ns"], [(p["part"], p["total_ns"]) for p in report["parts"] if p["part"] in ("compute", "previous step")],
      "simulated", ask("simulate", "previous.json")["baseline"]["simulated_step_ns"])

for frames, kernel in ((("vllm/v1/worker/gpu_model_runner.py(12): execute_model",), "tensorrt_llm::kernels::moe"), ((), "tensorrt_llm::kernels::moe")):
    r = Run()
    for f in frames:
        r.add("python_function", f, r.cpu, 10)
    r.step(1, lambda: [r.kernel(kernel, 50.0) for _ in range(10)])
    print("server:", ask("report", r.save("server.json"))["workload"]["framework"])

r = Run(); loader(r); a = r.save("a.json")
r = Run(); products(r, "cutlass_80_tensorop_bf16_s16816gemm", "c10::BFloat16"); b = r.save("b.json")
for args in ((a, b), (a, a), (a, b, "--fail-over", "500%")):
    doc = ask("diff", *args, status=(0, 1))
    print("diff:", doc["comparable"], doc["verdict"], "failed" if doc["failed"] else "not failed",
          subprocess.run([program, "diff", *args], stdout=subprocess.DEVNULL).returncode)

# A server: the device still runs the iteration before, of which nothing was recorded; a small copy of another stream may run.
for copy in (False, True):
    r = Run()
    if copy:
        r.add("kernel", "Memcpy DtoD", r.cpu + 5, 3.0, 20, correlation=999, stream=20, device=0)
        r.add("cuda_runtime", "cudaMemcpyAsync", r.cpu - 3, 2, correlation=999)
    r.gpu = r.cpu + 400000
    r.step(1, lambda: [r.kernel("gemm_kernel", 99.0) for _ in range(100)])
    path = r.save("waited.json")
    report, idle = ask("report", path), ask("idle", path)["ranks"][0]
    print("unrecorded iteration before:", report["step_ns"], [f["id"] for f in report["findings"]], "simulated",
          ask("simulate", path)["baseline"]["simulated_step_ns"], "| idle and report:",
          idle["span_idle_ns"] == sum(p["total_ns"] for p in report["parts"] if p["part"].startswith("idle")), *report["notes"][-1:])

# Before the first kernel of a step the device waits for the host: 'idle' counts it as 'report' does.
r = Run()
r.step(1, lambda: (r.add("cpu_op", "prepare", r.cpu, 5000), setattr(r, "cpu", r.cpu + 5000), [r.kernel("gemm_kernel", 99.0) for _ in range(50)]))
path = r.save("edge.json")
report, idle = ask("report", path), ask("idle", path)["ranks"][0]
print("idle at the edges:", idle["idle_ns"] < 100000, idle["span_idle_ns"] == sum(p["total_ns"] for p in report["parts"] if p["part"].startswith("idle")),
      sum(c["total_ns"] for c in idle["span_causes"]) == idle["span_idle_ns"] > 5000000)

# What the device still ran of the step before is not a part of what fusing would save.
r = Run()
at = r.cpu - 20
while at < r.cpu + 8000:
    r.id += 1
    r.add("kernel", "gemm_kernel", at, 99.0, 7, correlation=r.id, stream=7, device=0)
    at += 100
r.gpu = at - 1
r.step(9, lambda: [r.kernel("vectorized_elementwise_kernel<add>", 60.0, op="aten::add", **{"Input Dims": [[4096, 4096]] * 2, "Input type": ["float"] * 2})
                   for _ in range(100)])
report = ask("report", r.save("fuse.json"))
found = next(f for f in report["findings"] if f["id"] == "unfused-kernels")
print("fusing:", found["lost_ns"] <= 1.02 * next(o["gain_ns"] for o in report["opportunities"] if o["what_if"] == "fuse"))

# No caching allocator: report and stalls give one advice, and the headline leads to it although no what-if predicts it.
r = Run()
def uncached():
    for i in range(60):
        r.kernel("gemm_kernel", 50.0, host=8.0)
        for name, dur in (("cudaMalloc", 5.0), ("cudaFree", 60000.0 if i == 30 else 1000.0)):
            r.id += 1
            r.add("cuda_runtime", name, r.cpu, dur, correlation=r.id)
            r.cpu += dur
for n in range(3):
    r.step(n + 1, uncached)
path = r.save("uncached.json")
report, stalls = ask("report", path), ask("stalls", path)
first = report["findings"][0]
print("no caching allocator:", first["id"], "|", first["tries"][0]["text"] in stalls["stalls"][0]["hint"], "|",
      subprocess.run([program, "report", "-q", path], stdout=subprocess.PIPE, text=True).stdout.split("time  ")[0].split("sure")[1].split())

# A change that brings something only after another one is not said to bring nothing at all.
r = Run()
for n in range(3):
    r.step(n + 1, lambda: [r.kernel("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x128x8", 40.0, host=100.0,
                                    **{"Input Dims": [[1024, 1024]] * 2, "Input type": ["float"] * 2}) for _ in range(60)])
text = subprocess.run([program, "report", "-q", r.save("alone.json")], stdout=subprocess.PIPE, text=True).stdout
print("after another change:", "alone brings nothing" in " ".join(text.split()), [m["move"] for m in ask("optimize", "alone.json")["moves"]])

# One step of one rank, where nothing tells what recording costs: how far a prediction may be off is not known, and no least gain is claimed.
r = Run()
def waits():
    for _ in range(5):
        for _ in range(10):
            r.kernel("gemm_kernel", 99.0)
        r.id += 1
        r.add("cuda_runtime", "cudaStreamSynchronize", r.cpu, r.gpu + 2 - r.cpu, correlation=r.id)
        r.cpu = r.gpu + 102
r.step(1, waits)
text = subprocess.run([program, "report", "-q", r.save("once.json")], stdout=subprocess.PIPE, text=True).stdout
print("one step:", [line for line in text.splitlines() if line.startswith("1st change")])
move = (ask("optimize", "once.json")["moves"] or [{}])[0]
print("one step: the interval of its gain has a width:", move["gain_low_ns"] < move["gain_ns"] < move["gain_high_ns"])

# A step that is mostly a start-up: nothing is predicted of it, in report and in the plan, unless it is asked for.
r = Run()
def starts_up():
    for i in range(40):
        r.kernel("elementwise_kernel", 6.0, op="aten::add")
        if i == 3:
            r.id += 1
            r.add("cuda_runtime", "cuModuleLoadDataEx", r.cpu, 6000, correlation=r.id)
            r.cpu += 6000
r.step(1, starts_up)
path = r.save("starts_up.json")
report, plan = ask("report", path), ask("optimize", path)
print("start-up:", report["findings"][0]["id"], len(report["opportunities"]), len(plan["moves"]),
      any("start-up" in note for note in plan["notes"]), [t["why"] for t in plan["tried"] if t["move"] == "cuda-graphs"],
      [m["move"] for m in ask("optimize", path, "--moves", "graphs")["moves"]])

# One call of forty takes 20 ms: with the input of the others it is a stall, with a million times as much it is work. The line of report says so, too.
for rows in (1, 1000000):
    r = Run()
    def copies():
        for i in range(40):
            long = i == 20
            r.kernel("copy_kernel", 6.0, host=20000.0 if long else 20.0, op="aten::copy_", **{"Input Dims": [[rows if long else 1, 64]]})
    for n in range(3):
        r.step(n + 1, copies)
    path = r.save("larger.json")
    text = subprocess.run([program, "report", "-q", path], stdout=subprocess.PIPE, text=True).stdout
    print("a long call:", ask("stalls", path)["stalls"][0]["cause"], "| report calls it a stall:", "that usually take" in text)

# Device memory that operators take and free for long: generated code does so, too.
for name in ("cudaFree", "prepare"):
    r = Run()
    def allocating():
        for _ in range(30):
            r.id += 1
            r.add("cpu_op", "aten::relu", r.cpu, 1100)
            r.add("cuda_runtime", name, r.cpu + 50, 1000, correlation=r.id)
            r.cpu += 1100
            r.kernel("gemm_kernel", 50.0)
    for n in range(3):
        r.step(n + 1, allocating)
    change = ask("simulate", r.save("allocating.json"), "-w", "compile")["predictions"][0]["change_ratio"]
    print(f"compile: {name} in operators takes as long:", abs(change) < 0.15)
