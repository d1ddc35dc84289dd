#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""many_ranks.py [--ranks 8,48] [--events 50000] [--from FOLDER] [--keep FOLDER] REPRISE QUESTION…: time and peak memory of questions about many ranks.

Each generated rank is different: the times of its operators, launches and kernels vary by a few percent around a common schedule, and every
25th kernel is an all-reduce on a stream of its own that runs beside the next kernels. A third of the events are kernels, which is the
most that a trace has: other events are kept by fewer questions. Equal arguments give equal bytes. The files are written as plain
JSON into a temporary folder (about 160 bytes an event) and removed afterwards, or kept in FOLDER and used again.

With --from the ranks are those of the Kineto traces in a folder, in turn: rank r has the events of trace r modulo their number, as often
one after the other as gives --events, on a host of eight ranks whose clock is its own. The events of a trace are compressed once, and a
file is a short member of gzip before them, so that thousands of ranks are written in seconds."""
import argparse, gzip, json, os, random, shutil, sys, tempfile, time
from pathlib import Path

OP = '{"ph":"X","cat":"cpu_op","name":"aten::op%d","pid":%d,"tid":1,"ts":%.3f,"dur":%.3f,"args":{"External id":%d}}'
LAUNCH = '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%d,"tid":1,"ts":%.3f,"dur":%.3f,"args":{"correlation":%d}}'
KERNEL = '{"ph":"X","cat":"kernel","name":"kernel_%d","pid":%d,"tid":7,"ts":%.3f,"dur":%.3f,"args":{"correlation":%d,"stream":7,"device":%d}}'
COMM = ('{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL","pid":%d,"tid":20,"ts":%.3f,"dur":%.3f,"args":{"correlation":%d,'
        '"stream":20,"device":%d,"Collective name":"allreduce","In msg nelems":1048576,"Out msg nelems":1048576,"Group size":%d,"dtype":"Float",'
        '"Process Group Name":"0","Process Group Description":"default_pg","Process Group Ranks":"","Seq":%d}}')
STEP = '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":%d,"tid":1,"ts":%.3f,"dur":%.3f,"args":{}}'
STEPS, BESIDE, GPUS = 5, 25, 8


def write_rank(path, rank, world, events):
    """Collectives of all ranks end together: that time is of the common schedule."""
    rng, device, pid, out = random.Random(rank), rank % GPUS, 1000 + rank, []
    count, corr, t, seq = events // 3 // STEPS, 0, 1e6, 0
    for step in range(STEPS):
        begin = t
        free = t + 5  # of the device
        for i in range(count):
            corr += 1
            host = t + i * 20
            out.append(OP % (i % 40, pid, host, 12 + rng.random(), corr))
            out.append(LAUNCH % (pid, host + 2, 4 + rng.random(), corr))
            if i % BESIDE == BESIDE - 1:
                start = max(free, host + 8) + rng.random()
                seq += 1
                out.append(COMM % (device, start, host + 120 - start, corr, device, world, seq))
            else:
                free = max(free, host + 9 + rng.random()) + rng.random()
                out.append(KERNEL % (i % 40, device, free, 14 + rng.random(), corr, device))
                free += 15
        t += count * 20 + 150
        out.append(STEP % (step, pid, begin - 1, t - begin - 1))
    head = {"schemaVersion": 1, "deviceProperties": [{"id": device, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85000000000, "numSms": 132}],
            "hostname": "node%03d" % (rank // GPUS), "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    path.write_text(json.dumps(head)[:-1] + ',"traceEvents":[\n' + ",\n".join(out) + "\n]}\n")


def repeated(path, events):
    """The head of a trace, and its events from "traceEvents" on, several times one after the other, as a member of gzip."""
    trace = json.loads(gzip.decompress(path.read_bytes()))
    once = trace.pop("traceEvents")
    timed = [e for e in once if "dur" in e]
    begin, end = min(e["ts"] for e in timed), max(e["ts"] + e["dur"] for e in timed)
    times, out = max(1, round(events / len(once))), []
    for k in range(times):
        for e in once:
            if "ts" not in e or (k and e["ph"] == "M"):
                if not k:
                    out.append(e)
                continue
            args = {a: v + k * 10000000 if a in ("correlation", "External id") and isinstance(v, int) else v for a, v in e.get("args", {}).items()}
            more = {"id": e["id"] + k * 10000000} if isinstance(e.get("id"), int) else {}
            out.append({**e, **more, "ts": e["ts"] + k * (end - begin + 1000), **({"args": args} if args else {})})
    text = json.dumps(out, separators=(",", ":"))
    return trace, gzip.compress(('"traceEvents":' + text + "}").encode(), 6, mtime=0)


def write_copies(folder, world, events, source):
    bases = [repeated(path, events) for path in sorted(source.glob("*kineto*.json*"))]
    if not bases:
        sys.exit("no trace '*kineto*.json*' in '%s'" % source)
    for rank in range(world):
        head, body = bases[rank % len(bases)]
        host = rank // GPUS
        head = {**head, "hostname": "node%04d" % host, "baseTimeNanoseconds": 1700000000000000000 + host * 37123,
                "distributedInfo": {**head.get("distributedInfo", {}), "rank": rank, "world_size": world}}
        (folder / ("rank%05d.json.gz" % rank)).write_bytes(gzip.compress((json.dumps(head)[:-1] + ",").encode(), 1, mtime=0) + body)


def generate(folder, world, events, source):
    folder.mkdir(parents=True, exist_ok=True)
    if source:
        write_copies(folder, world, events, source)
        return
    for rank in range(world):
        path = folder / ("rank%05d.json" % rank)
        if not path.exists():
            write_rank(path, rank, world, events)


def measure(command):
    """Seconds, peak in MB. A child inherits the peak of its parent, so that a small one starts it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.execvp("/usr/bin/env", ["env", *command])
    os.close(write)
    begin = time.monotonic()
    while os.read(read, 1 << 16):
        pass
    os.close(read)
    _, status, usage = os.wait4(child, 0)
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="8,48")
    parser.add_argument("--events", type=int, default=50000)
    parser.add_argument("--from", dest="source", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--threads", default="2")
    parser.add_argument("reprise")
    parser.add_argument("questions", nargs="+")
    given = parser.parse_args()
    print("| ranks | events each | question | time s | CPU s | peak MB |\n|---|---|---|---|---|---|")
    for world in map(int, given.ranks.split(",")):
        base = given.keep or Path(tempfile.mkdtemp())
        folder = base / ("%d_%d" % (world, given.events))
        generate(folder, world, given.events, given.source)
        for question in given.questions:
            wall, cpu, peak, code = measure([given.reprise, *question.split(), "-q", "--json", "--threads", given.threads, str(folder)])
            print("| %d | %d | %s | %.1f | %.1f | %.0f%s |" % (world, given.events, question, wall, cpu, peak, "" if code == 0 else " (failed: %d)" % code), flush=True)
        if not given.keep:
            shutil.rmtree(base)


sys.exit(main())
