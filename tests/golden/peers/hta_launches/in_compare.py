# SPDX-License-Identifier: Apache-2.0
"""`launches` against what HolisticTraceAnalysis gave for the same traces, where it is right: traces in
whole microseconds (it rounds the others). Each launch by its correlation, sums, queues, bandwidth."""
import csv, io, json, pathlib, shlex, subprocess, sys

REPRISE, DATA = shlex.split(sys.argv[1]), pathlib.Path(sys.argv[2])
CALLS = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}
MEGATRON = [f"public/astra-sim/megatron-tp8/megatron_kineto_{r}.json.gz" for r in range(8)]
RUNS = {"hta_alexnet_a100": ["public/hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"],
        "hta_simple_add_a100": ["public/hta/critical_path/simple_add/benchmark_result_493459_1694039959_trace.json.gz"],
        "megatron_tp8": MEGATRON}
wrong = 0


def say(right, text):
    global wrong
    wrong += not right
    if not right:
        print("differs:", text)


def ask(*args):
    return subprocess.run([*REPRISE, "launches", *args], capture_output=True, text=True, check=True).stdout


def table(run, name):
    with open(DATA / "expected/hta_expected" / run / name) as f:
        return list(csv.DictReader(f))


def near(a, b):
    return abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


def one_by_one(run, path):
    ours = {}
    for row in csv.DictReader(io.StringIO(ask("--by", "launch", "--limit", "0", "--csv", path))):
        correlation, call = row["name"].split(" ", 1)
        if call in CALLS:
            ours[int(correlation)] = [int(row[k + ".total_ns"]) for k in ("call", "device", "delay")]
    want = {int(r["correlation"]): [round(float(r[k]) * 1000) for k in ("cpu_duration", "gpu_duration", "launch_delay")]
            for r in table(run, "launch_stats_rank0.csv")}
    differ = [c for c in want if ours.get(c) != want[c]]
    say(not differ and len(ours) == len(want), f"{run}: {len(differ)} of {len(want)} launches, {len(ours)} here")
    return len(want)


def sums(run, rank, doc):
    rows = [r for r in doc["rows"] if r["name"] in CALLS]
    want = next(r for r in table(run, "launch_stats_summary.csv") if int(r["rank"]) == rank)
    got = {"n": sum(r["count"] for r in rows), "cpu_sum": sum(r["call"]["total_ns"] for r in rows) / 1000,
           "gpu_sum": sum(r["device"]["total_ns"] for r in rows) / 1000,
           "delay_sum": sum(r["delay"]["total_ns"] for r in rows) / 1000,
           "short_kernels": sum(r["short_count"] for r in rows),
           "runtime_outliers": sum(r["slow_call_count"] for r in rows),
           "launch_delay_outliers": sum(r["late_count"] for r in rows)}
    for key, value in got.items():
        say(near(float(want[key]), value), f"{run} rank {rank} {key}: {want[key]} there, {value} here")


def queues(run, rank, doc):
    want = {r["stream"]: r for r in table(run, "queue_length_summary.csv") if int(r["rank"]) == rank}
    say(set(want) == {q["stream"] for q in doc["queues"]}, f"{run} rank {rank}: streams")
    for q in doc["queues"]:
        w = want.get(q["stream"], {})
        for theirs, ours, slack in (("count", "samples", 0), ("mean", "mean", 4.1 / q["samples"]), ("std", "std", 2e-3),
                                    ("max", "max", 0)):  # two pairs of equal times, which it takes in the order of the file
            there = float(w.get("queue_length_" + theirs, "nan"))
            say(abs(there - q[ours]) <= slack + 1e-9, f"{run} rank {rank} stream {q['stream']} {theirs}: {there} there, {q[ours]} here")


def bandwidth(run, rank, doc):
    want = {r["name"]: r for r in table(run, "memory_bw_summary.csv") if int(r["rank"]) == rank}
    for c in doc["copies"]:
        w = want.get(c["kind"], {})
        for theirs, ours in (("count", "samples"), ("mean", "mean_bytes_per_s"), ("min", "min_bytes_per_s"),
                             ("max", "max_bytes_per_s")):
            scale = 1 if theirs == "count" else 1e9
            say(w and near(float(w["memory_bw_gbps_" + theirs]), c[ours] / scale),
                f"{run} rank {rank} {c['kind']} {theirs}: {w.get('memory_bw_gbps_' + theirs)} there, {c[ours] / scale} here")
    say(set(want) == {c["kind"] for c in doc["copies"]}, f"{run} rank {rank}: kinds of copies")


for run, files in RUNS.items():
    count = one_by_one(run, DATA / files[0])
    for rank, path in enumerate(files):
        doc = json.loads(ask("--limit", "0", "--json", DATA / path))
        sums(run, rank, doc)
        queues(run, rank, doc)
        bandwidth(run, rank, doc)
    print(f"{run}: {count} launches of rank 0 one by one, {len(files)} rank{'s' * (len(files) > 1)} in sums, queues and bandwidth")
sys.exit(wrong > 0)
