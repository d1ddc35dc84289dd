#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the commands say of one file, beside what a few lines of Python find in it, and whether they contradict each other.

    bench/witness.py [PART of a name…] [--reprise FILE]      files of $REPRISE_DATA; one that is absent is named and left out

A row is a file. Columns: what an expert sees (written by hand), the largest kernel, busy share and longest gap that Python finds in the device's work (of
files without it: the function or operator with most own time, the peak of memory), what report says first, and the same subject in critpath, simulate,
idle, stalls, comm and top. The last column has the contradictions:
  top       its first row is not the script's kernel, or takes another time
  busy      info's busy time is not the script's
  gap       idle's longest gap is in none of the script's
  report    its parts of the judged time do not add up; idle's total differs from it
  path      the device takes 85 % of the judged time, and critpath or simulate find the host on most of the path, or the other way round
  window    critpath's path is over twice as long as what report judges (breaks between steps are on it)
  stalls    more idle time of the device in stalls than in report
  comm      collectives where no kernel or record of one is in the file, or none where there are
The exit status is 1 if there is one. Nothing of the program is used to read the files, except where a file is unpacked for it.
"""
import argparse, collections, csv, gzip, json, lzma, os, pathlib, pickle, re, sqlite3, subprocess, sys, tarfile, tempfile

from formats import fields  # wire format of protobuf

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("REPRISE_DATA", ROOT.parent / "shared/data"))
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
NS, SURE, MOST = 2, 0.85, 0.5  # a rounding of microseconds; the device or host decides; "most of the path"
BLOCKS, STEPS = 0.005, 0.05  # blocks of memory are so much larger than asked for; marks and device work tell steps that differ so much
csv.field_size_limit(1 << 30)


def text(path):
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "rb") as f:
        return f.read()


def ns(us):
    whole, _, part = str(us).partition(".")
    sign = -1 if whole.startswith("-") else 1
    return int(whole) * 1000 + sign * round(float("0." + (part or "0")) * 1000)


# ---- independent readers: a list of (begin, end, name, is_kernel) of the device, else a dict of weights by name

def events_of(data):
    doc = json.loads(data, parse_float=str, strict=False)
    return [e for e in (doc["traceEvents"] if isinstance(doc, dict) else doc) if isinstance(e, dict) and e.get("ph") == "X" and "dur" in e]


def kineto(path):
    return [(ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"], str(e["cat"]).lower() == "kernel")
            for e in events_of(text(path)) if str(e.get("cat")).lower() in DEVICE]


def operators(path):
    """Own time of operators on the host: what no operator inside of them takes."""
    own, stacks = collections.Counter(), {}
    ops = [(e["pid"], e["tid"], ns(e["ts"]), -ns(e["dur"]), e["name"]) for e in events_of(text(path)) if str(e.get("cat")).lower() in ("cpu_op", "operator")]
    for pid, tid, begin, minus, name in sorted(ops, key=lambda o: (str(o[0]), str(o[1]), o[2], o[3])):
        stack = stacks.setdefault((pid, tid), [])
        while stack and stack[-1][0] <= begin:
            stack.pop()
        if stack:
            own[stack[-1][1]] += minus
        own[name] -= minus
        stack.append((begin - minus, name))
    return own


def archive(path):
    """Kineto files in an archive: the first one."""
    with tarfile.open(path) as t:
        inside = sorted((m for m in t.getmembers() if m.isfile() and ".json" in m.name and "/._" not in m.name), key=lambda m: m.name)
        with tempfile.TemporaryDirectory() as d:
            t.extract(inside[0], d, filter="data")
            return kineto(pathlib.Path(d) / inside[0].name)


def sql(path, *queries):
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as f:
        f.write(text(path))
        f.flush()
        db = sqlite3.connect(f"file:{f.name}?mode=ro", uri=True)
        have = {r[0] for r in db.execute("select name from sqlite_master")}
        return [row for table, q in queries if table in have for row in db.execute(q)]


def nsys(path):
    kernel = "CUPTI_ACTIVITY_KIND_KERNEL"
    return sql(path, (kernel, f'select k.start, k."end", s.value, 1 from {kernel} k join StringIds s on s.id = k.demangledName'),
               *((f"CUPTI_ACTIVITY_KIND_{k}", f"""select start, "end", '{k}', 0 from CUPTI_ACTIVITY_KIND_{k}""") for k in ("MEMCPY", "MEMSET")))


def rocpd(path):
    return sql(path, ("rocpd_kernel_dispatch", 'select start, "end", cast(kernel_id as text), 1 from rocpd_kernel_dispatch'),
               ("rocpd_memory_copy", """select start, "end", 'copy', 0 from rocpd_memory_copy"""))


def rpd(path):
    return sql(path, ("rocpd_op", """select o.start, o."end", s.string, t.string like '%Kernel%' from rocpd_op o
                                     join rocpd_string s on s.id = o.description_id join rocpd_string t on t.id = o.opType_id"""))


def rocprof_json(path):
    out = []
    for p in json.loads(text(path))["rocprofiler-sdk-tool"]:
        for k in ("kernel_dispatch", "memory_copy"):
            for x in p["buffer_records"].get(k, []):
                name = str(x["dispatch_info"]["kernel_id"]) if k == "kernel_dispatch" else "copy"
                out.append((x["start_timestamp"], x["end_timestamp"], name, k == "kernel_dispatch"))
    return out


def rocprof_csv(path):
    return [(int(r["Start_Timestamp"]), int(r["End_Timestamp"]), r["Kernel_Name"], True) for r in csv.DictReader(text(path).decode().splitlines())]


def rocprof_v1(path):
    return [(ns(e["ts"]), ns(e["ts"]) + ns(e["dur"]), e["name"], "Copy" not in e["name"]) for e in events_of(text(path))
            if "BeginNs" in e.get("args", {}) and "GPU" in json.dumps(e["args"]) + str(e.get("cat", "")) + "GPU"]


def xplane(path):
    out = []
    for plane in (list(fields(p)) for n, p in fields(text(path)) if n == 1):
        if not dict(plane)[2].startswith(b"/device:GPU"):
            continue
        names = {}
        for n, entry in plane:
            if n == 4:
                e = dict(fields(entry))
                names[e.get(1, 0)] = dict(fields(e[2])).get(2, b"").decode(errors="replace")
        for n, line in plane:
            line = list(fields(line)) if n == 3 else []
            head = dict(line)
            if not head.get(2, b"").startswith(b"Stream #"):
                continue
            for k, e in line:
                if k == 4:
                    e = dict(fields(e))
                    begin = head.get(3, 0) * 1000 + e.get(2, 0)
                    name = names.get(e.get(1, 0), "")
                    out.append((begin // 1000, (begin + e.get(3, 0)) // 1000, name, not re.match("Mem(cpy|set)", name)))
    return out


def nccl(path):
    lines = [json.loads(line, parse_float=str) for line in text(path).splitlines()]
    return [(ns(x["start"]["ts"]), ns(x["stop"]["ts"]), x.get("name", "kernel"), True) for x in lines if x.get("type") == "KERNEL"]


def dftracer(path):
    own = collections.Counter()
    for line in text(path).splitlines():
        if line.startswith(b"{"):
            e = json.loads(line.rstrip(b","))
            if e["ph"] == "X":
                own[e["name"]] += e["dur"] * 1000
    return own


def proton(path):
    own = collections.Counter()

    def walk(node):
        own[node["frame"]["name"]] += node.get("metrics", {}).get("time (ns)", 0)
        for child in node.get("children", []):
            walk(child)
    for root in json.loads(text(path)):
        if "frame" in root:
            walk(root)
    return own


def folded(path):
    own = collections.Counter()
    for line in text(path).decode().splitlines():
        stack, _, n = line.rpartition(" ")
        if stack:
            own[stack.split(";")[-1]] += int(n)
    return own


def perf_script(path):
    own = collections.Counter()
    for block in re.split(r"\n\s*\n", text(path).decode(errors="replace")):
        frames = [line.split(None, 1)[1] for line in block.splitlines() if re.match(r"\s+[0-9a-f]+ ", line)]
        if frames:
            own[re.sub(r"\+0x[0-9a-f]+$", "", frames[0].rsplit(" (", 1)[0])] += 1
    return own


STEP = "a step by the program's own clock"


def truth(path):
    """The median distance of the marks that the recorded program wrote down itself."""
    with tarfile.open(path) as t:
        inside = next(m for m in t.getmembers() if m.name.endswith("truth.json"))
        marks = json.load(t.extractfile(inside))["marks"]
    return {STEP: sorted(b - a for a, b in zip(marks, marks[1:]))[(len(marks) - 1) // 2]}


def memory_peak(path):
    """Bytes in use when most were, from the end of the history back: what is there at its end, less what was allocated. The history has
    the sizes that were asked for, and blocks are a little larger."""
    class Any(pickle.Unpickler):
        def find_class(self, module, name):
            raise pickle.UnpicklingError(f"{module}.{name}")
    import io
    doc = Any(io.BytesIO(text(path))).load()
    now = sum(b["size"] for s in doc["segments"] for b in s["blocks"] if b["state"].startswith("active_allocated"))
    peak = now
    for e in reversed([e for trace in doc["device_traces"] for e in trace]):
        now += {"alloc": -e["size"], "free_completed": e["size"]}.get(e["action"], 0)
        peak = max(peak, now)
    return {"peak of memory": peak}


# ---- the files: kind, path, reader, what an expert says of it

FILES = [
    ("training, one step", "public/tracelens/qwen1.5-0.5b_h100_STRIPPED.json.gz", kineto, "device 92 % busy; products, and a third element-wise kernels that could be one"),
    ("training, one step", "public/tracelens/timesformer_mi300x_STRIPPED.json.gz", kineto, "the host prepares images for 69 % of the step, the device waits for input"),
    ("training", "public/hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", kineto, "device-bound fp32 convolutions and products on a V100"),
    ("training, loader", "public/kineto/worker0.1623143089861.pt.trace_769c3eb7.json.gz", kineto, "the loader in the loop takes 69 of 177 ms a step"),
    ("training, compiled", "public/modded-nanogpt/2025-10-31_AdamSyncGradientHook/modded-nanogpt-current-gpu-rank-00-chrome-trace.json.gz", kineto, "98 % busy; a little exposed communication; nothing easy is left"),
    ("training, small", "public/hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz", kineto, "a toy: the first launches load code, the device does almost nothing"),
    ("training, DDP", "public/tracelens/ddp_resnet18_no_pool_mi300x.json.gz", kineto, "the caching allocator is off: hipFree takes nearly all of the time"),
    ("training, DDP", "public/hta/trace_diff/control/control.json.gz", kineto, "DLRM: exposed collectives, then late launches"),
    ("training, many ranks", "public/param/dlrm_kineto.tar.gz", archive, "eight ranks launch late; waiting for others is most of NCCL's time"),
    ("training, tensor parallel", "public/astra-sim/megatron-tp8/megatron_kineto_0.json.gz", kineto, "all-reduces that wait for ranks whose hosts stall"),
    ("training, 16 ranks", "public/hta/negative_queue_length_values_check/rank0.json.gz", kineto, "the device waits for work that was launched: another rank or process holds it"),
    ("training, eager", "own/loop/t5_eager.json.xz", kineto, "launch-bound: small fp32 kernels; a graph makes it 18.5 ms (measured)"),
    ("training, eager", "own/loop/unet_eager.json.xz", kineto, "launch-bound; a graph helps (measured)"),
    ("training, captured", "own/whatif/gpt_fp32_foreach_cudagraph.json.gz", kineto, "one graph a step: the device is busy, products in fp32"),
    ("training, attention", "own/torch/gpt_bf16_inductor.json.gz", kineto, "launch-bound although compiled"),
    ("MoE, training", "deepseek/train.json", kineto, "device-bound: experts' dispatch and combine overlap products; the host runs ahead"),
    ("serving, decode", "public/tracelens/sglang_qwen3_decode_mi300x.json.gz", kineto, "one graph of 10 ms; before it nothing was recorded for 460 ms"),
    ("serving, prefill", "public/tracelens/sglang_qwen3_prefilldecode_mi300x.json.gz", kineto, "products, device-bound"),
    ("serving, MoE", "public/tracelens/vllm_decode_hipgraph_mi300x.json.gz", kineto, "experts' products take two thirds of a decode step that is one graph"),
    ("serving, piecewise", "public/tracelens/vllm_prefilldecode_piecewise_mi300x.json.gz", kineto, "device-bound, in pieces of graphs"),
    ("diffusion, compiled", "public/tracelens/xdit_sd_3.5_mi300x_rank0.json.gz", kineto, "40 % idle between kernels of compiled code: launches"),
    ("one operator", "public/tracelens/normalization_mi300x.json.gz", kineto, "first uses of kernels load modules for a second"),
    ("device only", "public/tracelens/gpu_only_mi210.json.gz", kineto, "kernels without a host: gaps cannot be explained"),
    ("JAX, XPlane", "public/tracelens/jax_xplane/jax_conv_minimal_08_tw003.xplane.pb", xplane, "convolutions; idle between executions"),
    ("JAX, XPlane", "public/tracelens/jax_xplane/jax08_gemm_tw003.xplane.pb", xplane, "one product, repeated"),
    ("JAX, XPlane", "public/tracelens/jax_xplane/test_data_jax_te_fused_attn_categorization_934987a2fc2f.xplane.pb", xplane, "fused attention and products, 92 % busy"),
    ("TensorFlow, XPlane", "public/xprof/GPU-multi-worker_34.83.195.179_6003.xplane.pb.gz", xplane, "BERT on two workers; 70 % busy"),
    ("nsys", "public/nsys/nsys-ai_h100_2gpu_1s.sqlite.gz", nsys, "copies, nearly no kernels"),
    ("nsys, training", "public/nsys/nsys-ai_mfu_2gpu_before.sqlite.gz", nsys, "flash attention; 85 % busy; exchanges between two devices"),
    ("nsys, HPC", "public/nsys/pipit_perlmutter-cloverleaf-cuda.sqlite.gz", nsys, "kernels, with a read of the result after each"),
    ("nsys, HPC", "public/openhackathons-nways/jacobi_report.sqlite", nsys, "kernels 98.6 %; the copies of the residual wait for them"),
    ("rocprofv3 JSON", "public/tracelens/rocprofv3_908_results_mi350x.json.gz", rocprof_json, "RCCL 4.2 of 15 s, the rest idle without a host"),
    ("rocpd", "public/rocpd-derived/908_head_results.db", rocpd, "communication kernels, no host"),
    ("RPD", "public/rocmProfileData/matmul_result.rpd", rpd, "a product; most of the time nothing was recorded"),
    ("rocprofv3 CSV", "public/rocprof-unified-viewer/decode_kernel_trace.csv", rocprof_csv, "decode kernels without a host"),
    ("NCCL profiler", "public/nccl-profiler/trace_2762285_allreduce_single_node.jsonl", nccl, "all-reduces of one node, nothing else"),
    ("CPU only", "public/dtu_mlops/cpu_resnet.json.xz", operators, "a ResNet on the CPU: convolutions 68 %"),
    ("CPU only, recsys", "public/hta/rank_non_gpu/rank_non_gpu.json.gz", operators, "operators on the host alone"),
    ("CPU only, DDP", "own/ddp_cpu/cpu_gpt_w4_bucket1/rank0.json.gz", operators, "a GPT on one core: products"),
    ("dftracer", "public/dftracer/cm1/cm1-DEFAULT-3537780-preload.pfw.gz", dftracer, "file operations"),
    ("Proton", "public/proton/triton.json", proton, "kernels of the device by Python stack"),
    ("stacks, folded", "public/speedscope/stackcollapse/perf-vertx-stacks-01-collapsed-all.txt", folded, "a Java server: system calls and the interpreter"),
    ("perf script", "public/flamescope/perf.test01.txt", perf_script, "an idle processor: the swapper"),
    ("memory snapshot", "public/cs336/forward_backward_200.pickle.xz", memory_peak, "a peak of activations"),
    ("memory snapshot", "own/torch/gpt12_memory.pickle.xz", memory_peak, "a training step's peak"),
    ("recording, graph network", "own/recordings/gnn.tar.xz", truth, "launch-bound: small kernels; the loss is read in every fifth step"),
    ("recording, ODE", "own/recordings/ode.tar.xz", truth, "an adaptive solver: host-bound, reads in every stage, steps differ"),
    ("recording, RL", "own/recordings/ppo.tar.xz", truth, "the environment runs on the host, and 16 updates are launch-bound"),
    ("recording, lengths", "own/recordings/sentence.tar.xz", truth, "plans of attention for new lengths take two thirds"),
    ("recording, JAX", "own/recordings/jax_mlp.tar.xz", truth, "a compiled step of 2.2 ms, device 78 % busy"),
    ("planted: end of a process", "own/planted/end_of_process.json.gz", kineto, "99 % busy; 5,000 unloads after that are not part of it"),
    ("planted: no model", "own/planted/unmodelled.json.gz", kineto, "experts 82 %"),
    ("planted: new shapes", "own/planted/new_shapes.json.gz", kineto, "plans of attention for new lengths"),
]


# ---- facts of the device's work

def union(spans):
    total, end, gaps = 0, None, []
    for a, b in sorted(spans):
        if end is None or a > end:
            if end is not None:
                gaps.append((a - end, end, a))
            total, end = total + b - a, b
        elif b > end:
            total, end = total + b - end, b
    return total, gaps


class Facts:
    def __init__(self, read):
        self.own = read if isinstance(read, dict) else None
        self.work = [] if self.own is not None else read
        by_name = collections.Counter()
        for a, b, name, kernel in self.work:
            if kernel:
                by_name[name] += b - a
        source = self.own if self.own is not None else by_name
        self.top, self.top_ns = max(source.items(), key=lambda x: x[1]) if source else ("-", 0)
        self.all = sum(source.values()) or 1
        self.busy, self.gaps = union((a, b) for a, b, _, _ in self.work)
        self.window = max((w[1] for w in self.work), default=0) - min((w[0] for w in self.work), default=0)
        self.comm = any(re.search("nccl|rccl", w[2], re.I) for w in self.work)

    def say(self):
        if self.own is not None:
            if len(self.own) == 1:
                return f"{self.top} {ms(self.top_ns) if self.top == STEP else self.top_ns}"
            return f"{short(self.top)} {ms(self.top_ns) if self.top_ns > 1e5 else self.top_ns} ({100 * self.top_ns / self.all:.0f} %)"
        gap = max(self.gaps)[0] if self.gaps else 0
        return f"{short(self.top)} {ms(self.top_ns)} ({100 * self.top_ns / self.all:.0f} %), {100 * self.busy / (self.window or 1):.1f} % of {ms(self.window)} busy, a gap of {ms(gap)}"


def ms(x):
    return f"{x / 1e6:,.4g} ms"


def short(name):
    name = re.sub(r"^void ", "", re.sub(r"[(<|].*", "", str(name)) or str(name))
    return name[-36:]


# ---- what the commands say

class Told:
    def __init__(self, reprise, path):
        self.reprise, self.path, self.cache = reprise, path, {}

    def ask(self, question, *more):
        key = (question, *more)
        if key not in self.cache:
            p = subprocess.run([self.reprise, question, "--json", *more, str(self.path)], capture_output=True, text=True)
            self.cache[key] = json.loads(p.stdout) if p.stdout.lstrip().startswith("{") else None
        return self.cache[key]

    def screen(self, question):
        return subprocess.run([self.reprise, question, str(self.path)], capture_output=True, text=True).stdout


def path_shares(d):
    """Share of the device on the critical path."""
    block = d["run"] if d["run"]["joined"] else d["ranks"][0] if d["ranks"] else None
    if not block or not block["window_ns"]:
        return None
    kinds = {k["kind"]: k["total_ns"] for k in block["kinds"]}
    return sum(kinds.get(k, 0) for k in ("compute", "comm", "memory")) / block["window_ns"], block["window_ns"]


def compare(f, told):
    """Pairs (what a command says, a contradiction or None)."""
    report, out = told.ask("report"), {}
    if "peak of memory" in (f.own or {}):
        memory = told.ask("memory")
        got = memory and max((v for k, v in walk(memory) if k == "peak_bytes" and v), default=None)
        return {"report": ("'memory' answers", None), "memory": (f"peak {got}", None if abs(got - f.top_ns) <= BLOCKS * f.top_ns else f"memory: peak {got}, script {f.top_ns}")}
    if report is None:
        return {"report": ("refused", "report refuses it")}
    parts = {p["part"]: p["total_ns"] for p in report["parts"]}
    span = report["span_ns"] or 0
    busy = 1 - sum(v for k, v in parts.items() if k.startswith(("idle", "no operator", "waiting"))) / (sum(parts.values()) or 1)
    screen = told.screen("report")
    first = " ".join(re.sub(r".*?\ntime +(.*?)\n(?! ).*", r"\1", screen, flags=re.S).split()) if "\ntime" in screen else ""
    lead = report["findings"][0] if report["findings"] else None
    out["report"] = (f"{first.rstrip(',')}; first {lead['id']} {100 * lead['share']:.1f} %" if lead else first, None)
    if STEP in (f.own or {}) and abs((report["step_ns"] or 0) - f.top_ns) > STEPS * f.top_ns:
        out["report"] = (out["report"][0], f"report: a step of {report['step_ns']}, script {f.top_ns}")
    if parts and span and len(report["ranks"]) == 1 and abs(sum(parts.values()) - span) > NS:
        out["report"] = (out["report"][0], f"report: parts {sum(parts.values())} of {span}")

    top = told.ask("top")
    if top and top["rows"]:
        row = next((r for r in top["rows"] if r.get("kind") != "memory"), top["rows"][0])
        total = row.get("total_ns") or row.get("self_ns") or row.get("self") or 0
        wrong = f"top: {row['name'][:40]} {total}, script {f.top[:40]} {f.top_ns}" if f.work and len(report["ranks"]) == 1 and abs(total - f.top_ns) > NS * max(1, row.get("count") or 1) else None
        out["top"] = (f"{short(row['name'])} {ms(total)}", wrong)
    info = told.ask("info")
    if info and f.work and len(info["files"]) == 1 and not info["files"][0].get("merged_ranks"):
        got = info["files"][0]["gpu_busy_ns"]
        out["info"] = (ms(got or 0), None if got is not None and abs(got - f.busy) <= NS * len(f.work) else f"busy: info {got}, script {f.busy}")
    idle = told.ask("idle")
    if idle and idle["gaps"] and f.work:
        g = idle["gaps"][0]
        inside = any(length + NS >= g["dur_ns"] for length, _, _ in f.gaps) or len(idle["devices"]) > 1 or str(g["before"]).startswith("the begin") or str(g["after"]).startswith("the end")
        ours = sum(v for k, v in parts.items() if k.startswith("idle"))
        theirs = idle["ranks"][0]["span_idle_ns"]
        wrong = None if inside else f"gap: idle {g['dur_ns']}, script {max(f.gaps)[0] if f.gaps else 0}"
        if not wrong and len(report["ranks"]) == 1 and theirs is not None and theirs != ours:
            wrong = f"idle {theirs}, report {ours}"
        out["idle"] = (f"{ms(theirs or 0)} ({100 * (theirs or 0) / (span or 1):.0f} %), longest {ms(g['dur_ns'])} {g['cause']}", wrong)
    critpath = told.ask("critpath")
    share = critpath and path_shares(critpath)
    if share:
        device, window = share
        wrong = None
        if "which 'report' does not count" in str(critpath["notes"]):
            pass  # it is about the whole recording, and says so
        elif f.work and busy >= SURE and device < MOST:
            wrong = f"path: {100 * busy:.0f} % busy, critpath {100 * device:.0f} % device"
        elif f.work and busy <= 1 - SURE and device > MOST:
            wrong = f"path: {100 * busy:.0f} % busy, critpath {100 * device:.0f} % device"
        elif span and len(report["ranks"]) == 1 and window > 2 * span + 1e6:
            wrong = f"window: critpath {ms(window)}, report {ms(span)}"
        out["critpath"] = (f"device {100 * device:.0f} % of {ms(window)}", wrong)
    simulate = told.ask("simulate")
    if simulate and simulate.get("path"):
        shares = {p["what"]: p["ratio"] for p in simulate["path"]}
        device = sum(shares.get(k, 0) for k in ("kernels", "communication", "copies"))
        wrong = f"path: {100 * busy:.0f} % busy, simulate {100 * device:.0f} % device" if f.work and (busy >= SURE and device < MOST or busy <= 1 - SURE and device > MOST) else None
        base = simulate["baseline"]
        if not wrong and len(report["ranks"]) == 1 and report["step_ns"] and base["step_ns"] and "without detail" not in str(simulate["notes"]) and abs(base["step_ns"] - report["step_ns"]) > NS:
            wrong = f"step: simulate {base['step_ns']}, report {report['step_ns']}"
        out["simulate"] = (f"device {100 * device:.0f} %, error {100 * (base['error_ratio'] or 0):.1f} %", wrong)
    stalls = told.ask("stalls")
    if stalls:
        ours = sum(v for k, v in parts.items() if k.startswith("idle"))
        wrong = f"stalls: {stalls['device_idle_ns']} idle, report {ours}" if f.work and len(report["ranks"]) == 1 and stalls["device_idle_ns"] > ours + NS else None
        out["stalls"] = (f"{stalls['stall_count']}, {ms(stalls['total_ns'])}" if stalls["stall_count"] else "none", wrong)
    comm = told.ask("comm")
    if comm and f.work:
        wrong = "comm: no collectives, the file has kernels of NCCL" if f.comm and not comm["collective_count"] else None
        out["comm"] = (f"{comm['collective_count']} collectives", wrong)
    return out


def walk(x):
    for k, v in x.items() if isinstance(x, dict) else enumerate(x):
        if isinstance(v, (dict, list)):
            yield from walk(v)
        elif isinstance(v, int):
            yield k, v


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("names", nargs="*")
    args.add_argument("--reprise", default=os.environ.get("REPRISE", ROOT / "build/reprise"))
    args = args.parse_args()
    bad, kinds, files = 0, set(), 0
    print("| kind | file | an expert | script | report | the others | contradictions |\n|---|---|---|---|---|---|---|")
    for kind, name, read, expert in FILES:
        if args.names and not any(n in name or n in kind for n in args.names):
            continue
        path = DATA / name
        if not path.exists():
            print(f"left out, because it is not there: {name}", file=sys.stderr)
            continue
        try:
            facts = Facts(read(path))
        except Exception as why:  # a reader of ten lines does not know every file
            print(f"{name}: {type(why).__name__}: {why}", file=sys.stderr)
            continue
        said = compare(facts, Told(args.reprise, path))
        wrong = [w for _, w in said.values() if w]
        others = "; ".join(f"{k}: {v}" for k, (v, _) in said.items() if k != "report")
        print(f"| {kind} | `{'/'.join(pathlib.Path(name).parts[1:])}` | {expert} | {facts.say()} | {said['report'][0]} | {others} | {'; '.join(wrong) or '-'} |".replace("\n", " "), flush=True)
        bad, files = bad + bool(wrong), files + 1
        kinds.add(kind.split(",")[0] if not kind.startswith(("training", "serving", "nsys")) else kind)
    print(f"{files} files of {len(kinds)} kinds, {files - bad} without a contradiction", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
