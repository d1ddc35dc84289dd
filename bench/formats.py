#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/formats.py [--reprise FILE] [--load bench_load --speed]: every format against its file read by plain SQL or Python.

For each file: how many pieces of device work (or spans, or samples) it has and how long they last in all, as
reprise reads it and as a few lines of Python or SQL that know nothing of reprise do. Prints a table in
Markdown, and ends with 1 where two numbers differ. Files that are not there are left out. --speed adds what
reading costs: events a second of processor time, by bench_load on one thread, without decompressing.
"""
import argparse, atexit, csv, gzip, json, os, pathlib, pickle, re, resource, shutil, sqlite3, struct, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATA = pathlib.Path(os.environ.get("REPRISE_DATA", ROOT.parent / "shared/data")) / "public"
RUNS, REPEATS = 3, 4
WORK = ("kernel", "memcpy", "memset")
csv.field_size_limit(1 << 30)


def text(path):
    return (gzip.open if path.name.endswith(".gz") else open)(path, "rb").read()


def ns(us):
    """Microseconds as a JSON number has them, without the error of a float."""
    whole, _, part = str(us).partition(".")
    return int(whole) * 1000 + round(float("0." + (part or "0")) * 1000)


def sql(path, *queries):
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as f:
        f.write(text(path))
        f.flush()
        db = sqlite3.connect(f"file:{f.name}?mode=ro", uri=True)
        have = {r[0] for r in db.execute("select name from sqlite_master")}
        rows = [db.execute(q).fetchone() for table, q in queries if table in have]
    return sum(r[0] for r in rows), sum(r[1] or 0 for r in rows)


# ---- the files, by plain means: (number, nanoseconds or weight)

def chrome(path):
    events = json.loads(text(path), parse_float=str)
    events = events["traceEvents"] if isinstance(events, dict) else events
    cats = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset")
    work = [e for e in events if e.get("ph") == "X" and e.get("cat") in cats]
    return len(work), sum(ns(e["dur"]) for e in work)


def nsys(path):
    tables = [f"CUPTI_ACTIVITY_KIND_{k}" for k in ("KERNEL", "MEMCPY", "MEMSET")]
    return sql(path, *((t, f'select count(*), sum("end" - start) from {t}') for t in tables))


def rocpd(path):
    return sql(path, *((f"rocpd_{t}", f'select count(*), sum("end" - start) from rocpd_{t}')
                       for t in ("kernel_dispatch", "memory_copy")))


def rpd(path):
    return sql(path, ("rocpd_op", 'select count(*), sum("end" - start) from rocpd_op'))


def rocprof_json(path):
    work = [x for p in json.loads(text(path))["rocprofiler-sdk-tool"] for k in ("kernel_dispatch", "memory_copy")
            for x in p["buffer_records"].get(k, [])]
    return len(work), sum(x["end_timestamp"] - x["start_timestamp"] for x in work)


def rocprof_csv(path):
    rows = list(csv.DictReader(text(path).decode().splitlines()))
    return len(rows), sum(int(r["End_Timestamp"]) - int(r["Start_Timestamp"]) for r in rows)


def nccl(path):
    lines = [json.loads(line, parse_float=str) for line in text(path).splitlines()]
    work = [x for x in lines if x.get("type") == "KERNEL"]
    return len(work), sum(ns(x["stop"]["ts"]) - ns(x["start"]["ts"]) for x in work)


def dftracer(path):
    lines = [x.rstrip(b",") for x in text(path).splitlines() if x.startswith(b"{")]
    spans = [e for e in map(json.loads, lines) if e["ph"] == "X"]
    return len(spans), sum(e["dur"] for e in spans) * 1000


def rocprof_counters(path):
    return len({r["Dispatch_Id"] for r in csv.DictReader(text(path).decode().splitlines())}), None


def inspector(path):
    """Bytes, files and processes of the lines do not matter; a collective took what the line says."""
    work = [next(v for k, v in json.loads(line).items() if k.endswith("_perf")) for line in text(path).splitlines()]
    times = [next(v for k, v in x.items() if k.endswith("exec_time_us")) for x in work]
    return len(times), sum(times) * 1000


def flight_recorder(path):
    return len((json if path.suffix == ".json" else pickle).loads(text(path))["entries"]), None


def proton(path):
    def walk(node):
        yield node.get("metrics", {}).get("time (ns)", 0)
        for child in node.get("children", []):
            yield from walk(child)
    weights = [w for root in json.loads(text(path)) for w in walk(root) if w]
    return len(weights), sum(weights)


def folded(path):
    weights = [int(line.rsplit(b" ", 1)[1]) for line in text(path).splitlines() if line.strip()]
    return len(weights), sum(weights)


def speedscope(path):
    scale = {"nanoseconds": 1, "microseconds": 1000, "milliseconds": 10**6, "seconds": 10**9}
    weights = [w * scale.get(p["unit"], 1) for p in json.loads(text(path))["profiles"] for w in p["weights"]]
    return len(weights), sum(weights)


def fields(b):
    """The fields of a protobuf message: (number, value)."""
    i = 0

    def varint():
        nonlocal i
        n = shift = 0
        while True:
            n |= (b[i] & 127) << shift
            shift, i = shift + 7, i + 1
            if b[i - 1] < 128:
                return n
    while i < len(b):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = varint() if key & 7 == 2 else 8 if key & 7 == 1 else 4
            yield key >> 3, b[i:i + size]
            i += size


def xplane(path):
    """Events on the streams of devices; other lines of a device are derived from them."""
    planes = [list(fields(p)) for n, p in fields(text(path)) if n == 1]
    lines = [list(fields(v)) for p in planes if dict(p)[2].startswith(b"/device:GPU") for n, v in p if n == 3]
    work = [dict(fields(e)).get(3, 0) for line in lines if dict(line)[2].startswith(b"Stream #") for n, e in line if n == 4]
    return len(work), sum(work) // 1000


def pprof(path):
    """The last value of a sample is the one that is shown."""
    def last(sample):
        value = [v for n, v in fields(sample) if n == 2][-1]
        if isinstance(value, bytes):  # packed: the last varint of the list
            value = sum((b & 127) << 7 * i for i, b in enumerate(re.search(rb"[\x80-\xff]*[\0-\x7f]$", value)[0]))
        return value
    weights = [last(v) for n, v in fields(text(path)) if n == 2]
    return len(weights), sum(weights)


def perf_script(path):
    """A sample begins at the left margin, with its time and sometimes its period."""
    heads = re.findall(rb"^\S.*?\s\d+\.\d+:\s+(\d+ )?\s*\S+:", text(path), re.M)
    return len(heads), sum(int(h or 1) for h in heads)


def perf_data(path):
    """Records of type 9 in the data section; periods are behind a bit mask that the attributes have."""
    data = text(path)
    at, size = struct.unpack_from("<QQ", data, 40)
    n, end = 0, at + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        n, at = n + (kind == 9), at + length
    return n, None


def gperftools(path):
    """Words of 8 bytes: a header with the period, then count, depth and addresses of each stack."""
    data = text(path)
    word = struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])
    at, n, total = 2 + word[1], 0, 0
    while at + 2 < len(word) and not (word[at] == 0 and word[at + 1] == 1 and word[at + 2] == 0):
        n, total, at = n + 1, total + word[at] * word[3] * 1000, at + 2 + word[at + 1]
    return n, total


def firefox(path):
    return sum(len(t["samples"]["stack"]) for t in json.loads(text(path))["threads"]), None


def bpftrace(path):
    weights = [int(n) for n in re.findall(rb"\]: (\d+)$", text(path), re.M)]
    return len(weights), sum(weights)


def perfetto(path):
    """Slices: begins and ends of a track pair as brackets do; ends carry no name."""
    count = total = track = 0
    open_slices = {}
    for packet in (dict(fields(p)) for n, p in fields(text(path)) if n == 1):
        if 59 in packet and 11 in (d := dict(fields(packet[59]))):
            track = dict(fields(d[11])).get(11, track)
        if 11 not in packet:
            continue
        event = dict(fields(packet[11]))
        stack = open_slices.setdefault(event.get(11, track), [])
        if event.get(9) == 1:
            stack.append(packet[8])
            count += 1
        elif event.get(9) == 2 and stack:
            total += packet[8] - stack.pop()
    return count, total


def run_metadata(path):
    """Nodes of all devices, from their begin to their end."""
    nodes = [dict(fields(v)) for n, stats in fields(text(path)) if n == 1 for m, device in fields(stats) if m == 1 for k, v in fields(device) if k == 2]
    return len(nodes), sum(n.get(16) or n.get(5, 0) * 1000 for n in nodes)


def torch_memory(path):
    return sum(map(len, pickle.loads(text(path))["device_traces"])), None


def byteps(path):
    return len(re.findall(rb"^\d+ (true|false) ", text(path), re.M)), None


def ctf(path):
    """By babeltrace2, the reference reader of the format."""
    out = subprocess.run(["babeltrace2", path], capture_output=True, text=True, check=True).stdout
    times = re.findall(r"kernel_activity:.* start = (\d+), end = (\d+)", out)
    return len(times), sum(int(e) - int(b) for b, e in times)


# ---- the same as reprise reads it

def by_csv(reprise, path, kinds):
    out = subprocess.run([reprise, "convert", path, "--to", "csv", "-q", "-o", "-"], capture_output=True, check=True).stdout
    rows = [r for r in csv.DictReader(out.decode().splitlines())
            if (kinds(r) if callable(kinds) else r["kind"] in kinds if kinds else r["phase"] in "XB" and r["dur_ns"])]
    return len(rows), sum(int(r["dur_ns"] or 0) for r in rows)


def by_samples(reprise, path):
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([reprise, "convert", path, "-q", "-o", d + "/x.sqlite"], capture_output=True, check=True)
        return sqlite3.connect(d + "/x.sqlite").execute("select count(*), sum(weight) from sample").fetchone()


FILES = [  # format, file, plain reader, what is counted
    ("chrome-json (Kineto 2021)", "kineto/*.json.gz", chrome, WORK),
    ("chrome-json (Kineto, ROCm)", "tracelens/xdit_sd_3.5_mi300x_rank0.json.gz", chrome, WORK),
    ("chrome-json (Kineto, CUDA)", "tracelens/timesformer_h100_STRIPPED.json.gz", chrome, WORK),
    ("chrome-json (TraceFusion, 4 ranks)", "amd-hpctraining/merged_all_events.json.gz", chrome, WORK),
    ("dftracer", "dftracer/cm1/*3537780*", dftracer, None),
    ("rpt (written by convert)", "tracelens/timesformer_h100_STRIPPED.json.gz", chrome, WORK),
    ("perfetto (written by convert)", "tracelens/timesformer_h100_STRIPPED.json.gz", perfetto, None),
    ("perfetto (tracks)", "perfetto/track_event_tracks.pftrace", perfetto, None),
    ("nsys-sqlite (3.25, 2 H100)", "nsys/nsys-ai_h100_2gpu_1s.sqlite.gz", nsys, WORK),
    ("nsys-sqlite (3.25, training)", "nsys/nsys-ai_mfu_2gpu_before.sqlite.gz", nsys, WORK),
    ("nsys-sqlite (old)", "nsys/pipit_perlmutter-cloverleaf-cuda.sqlite.gz", nsys, WORK),
    ("nsys-sqlite (synthetic)", "nsys-ai/healthy_1pct.sqlite", nsys, WORK),
    ("rocpd (derived)", "rocpd-derived/908_head_results.db", rocpd, WORK),
    ("rpd", "rocmProfileData/matmul_result.rpd", rpd, WORK),
    ("rocprofv3-json", "tracelens/rocprofv3_908_results_mi350x.json.gz", rocprof_json, WORK),
    ("rocprofv3-csv", "rocprof-unified-viewer/decode_kernel_trace.csv", rocprof_csv, WORK),
    ("nccl-profiler (4 ranks)", "nccl-profiler/*.jsonl", nccl, WORK),
    ("rocprofv3-csv (counters)", "rocprofiler-sdk-docs/counter_collection.csv", rocprof_counters, WORK),
    ("xplane (TensorFlow, 3 devices)", "xprof/GPU-multi-worker*.xplane.pb.gz", xplane, WORK),
    ("runmetadata (TensorFlow 1)", "tests/data/tf/runmeta_2dev_step.pb", run_metadata, None),
    ("ctf (LTTng)", "tests/data/ctf/lttng_toy.tar.xz:lttng_toy/toy", ctf, WORK),
    ("torch-memory", "examples/gpt_memory.pickle.gz", torch_memory, lambda r: r["phase"] == "i" and r["name"] not in ("[block]", "[segment]")),
    ("byteps-log", "examples/byteps.tar.gz:byteps/logs/worker_1.log", byteps, lambda r: r["phase"] in "be"),
    ("nccl-inspector (synthetic)", "tests/golden/formats/nccl_inspector/verbose-rank1.log", inspector, WORK),
    ("flight-recorder (synthetic, JSON)", "flight-recorder-synthetic/*json*", flight_recorder, ("comm_op",)),
    ("flight-recorder (synthetic, pickle)", "flight-recorder-synthetic/nccl_trace_rank_0", flight_recorder, ("comm_op",)),
    ("proton", "proton/triton.json", proton, "samples"),
    ("proton", "proton/leaf_nodes.json", proton, "samples"),
    ("folded", "speedscope/stackcollapse/perf-vertx-stacks-01-collapsed-all.txt", folded, "samples"),
    ("pprof (Parca)", "parca-pprof/fgprof.pb.gz", pprof, "samples"),
    ("pprof (Parca)", "parca-pprof/profile-with-labels.pb.gz", pprof, "samples"),
    ("gperftools", "google-pprof/cppbench.cpu", gperftools, "samples"),
    ("perf-data", "linux-perf-data/sleep.data", perf_data, "samples"),
    ("perf-script", "speedscope/linux-perf/forks.linux-perf.txt", perf_script, "samples"),
    ("perf-script", "flamescope/perf.test01.txt", perf_script, "samples"),
    ("bpftrace (synthetic)", "tests/golden/formats/sampled/in.bpf", bpftrace, "samples"),
    ("firefox (samply)", "samply/ls-profile.json", firefox, "samples"),
    ("speedscope", "speedscope/speedscope/0.6.0/two-sampled.speedscope.json", speedscope, "samples"),
]


def speed(path, load):
    """Events a second of processor time, of a file that is not compressed, with all passes behind reading."""
    if path.is_dir():
        return "-"
    with tempfile.TemporaryDirectory() as d:
        plain = pathlib.Path(d) / path.name.removesuffix(".gz")
        plain.write_bytes(text(path))
        seconds = float("inf")
        for _ in range(REPEATS):  # the best: whatever else runs only makes it slower
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            out = subprocess.run([load, plain, str(RUNS), "1"], capture_output=True, text=True, check=True).stdout
            seconds = min(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    events = int(out.split()[1].rstrip(","))
    return f"{events * RUNS / seconds / 1e6:.2f} M/s" if events >= 2000 else "-"


def written(reprise, path, ending, folder):
    """A trace in a format that is written and read again."""
    out = pathlib.Path(folder) / f"written.{ending}"
    subprocess.run([reprise, "convert", path, "-q", "-o", out], capture_output=True, check=True)
    return out


def find(pattern, folder):
    """The first file that fits, of this repository or public; of "archive:path" the path in the archive."""
    top = ROOT if pattern.startswith(("tests/", "examples/")) else DATA
    name, _, inside = pattern.partition(":")
    path = next(iter(sorted(top.glob(name))), None)
    if path is None or not inside:
        return path, path and path.relative_to(top)
    shutil.unpack_archive(path, folder)
    return pathlib.Path(folder) / inside, pattern


def main():
    args = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    args.add_argument("--reprise", default=ROOT / "build/reprise")
    args.add_argument("--load", default=ROOT / "build/bench/bench_load")
    args.add_argument("--speed", action="store_true")
    args = args.parse_args()
    wrong, tmp = 0, tempfile.mkdtemp()
    atexit.register(shutil.rmtree, tmp)
    print("| format | file | count | total (ns, or weight) | agrees |" + (" speed |" if args.speed else ""))
    print("|---|---|---|---|---|" + ("---|" if args.speed else ""))
    for name, pattern, plain, kinds in FILES:
        path, shown = find(pattern, tmp)
        if path is None or (plain is ctf and not shutil.which("babeltrace2")):
            print(f"left out, because it, or what reads it, is not there: {pattern}", file=sys.stderr)
            continue
        original = path
        if "written" in name:
            path = written(args.reprise, path, "rpt" if plain is chrome else "pftrace", tmp)
        want = plain(original if plain is chrome else path)
        got = by_samples(args.reprise, path) if kinds == "samples" else by_csv(args.reprise, path, kinds)
        same = got[0] == want[0] and want[1] in (None, got[1])
        wrong += not same
        print(f"| {name} | `{shown}` | {want[0]:,} | {'-' if want[1] is None else f'{want[1]:,}'} | "
              f"{'yes' if same else f'NO: {got[0]:,}, {got[1]:,}'} |" + (f" {speed(path, args.load)} |" if args.speed else ""),
              flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
