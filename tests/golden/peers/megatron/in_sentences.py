# SPDX-License-Identifier: Apache-2.0
"""Every sentence of `report` about a rank of the Megatron run, held against the events of that rank alone. A sentence of another form is
an error: then this script does not know how to check it."""
import gzip, json, pathlib, re, shlex, subprocess, sys

REPRISE, DATA = shlex.split(sys.argv[1]), pathlib.Path(sys.argv[2])
FILES = [DATA / f"public/astra-sim/megatron-tp8/megatron_kineto_{r}.json.gz" for r in range(8)]
UNITS = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1}
TIME = r"([\d.]+) (s|ms|µs|ns)"
IDLE = re.compile(rf"rank (\d+): {TIME} idle in (\d+) gaps?, the longest {TIME}(?:; mainly (.+) \((\d+) % of it\))?$")
LATE = re.compile(rf"rank (\d+) arrived last (\d+) of (\d+) times and delayed the others by {TIME}(?:; before that a host call took far longer than usual \((.+)\))?$")
ALL = re.compile(r"(\d+) collectives of (\d+) ranks, transfer only: waiting for late ranks is not included$")
WRITTEN = re.compile(rf"rank (\d+): (\d+) times a softmax runs between two batched products; what is between them takes {TIME}$")
PRODUCT = re.compile(r"aten::(mm|addmm|bmm|baddbmm|matmul|linear|_scaled_mm|addmv|mv|dot)$")
wrong = checked = 0


def that(good, *what):
    global wrong, checked
    checked += 1
    wrong += not good
    if not good:
        print("wrong:", *what)


def close(text, unit, ns):
    """A number as it is printed: three digits, or one behind the point."""
    said = float(text) * UNITS[unit]
    return abs(said - ns) <= max(0.006 * said, 0.051 * UNITS[unit] if "." in text else 0.51 * UNITS[unit])


def union(spans):
    out = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1]:
            out[-1][1] = max(out[-1][1], b)
        else:
            out.append([a, b])
    return out


def written_out(events, span):
    """How often a softmax is between two batched products of a stream, and how long what is between them takes."""
    ops, launch, streams, found = {}, {}, {}, []
    for e in events:
        if e.get("cat") == "cpu_op":
            ops.setdefault(e["tid"], []).append((*span(e), e["name"]))
        elif e.get("cat") == "cuda_runtime" and "correlation" in e.get("args", {}):
            launch[e["args"]["correlation"]] = (e["tid"], span(e)[0])
    for e in sorted((e for e in events if e.get("cat") == "kernel" and "nccl" not in e["name"].lower()), key=lambda e: e["ts"]):
        tid, at = launch.get(e["args"]["correlation"], (None, 0))
        around = [(b - a, name) for a, b, name in ops.get(tid, []) if a <= at < b]
        op = min(around)[1] if around else ""
        stream = streams.setdefault(e["args"]["stream"], [False, False, 0])  # open, a softmax was there, time
        if not PRODUCT.match(op):
            stream[1] |= "softmax" in (op + e["name"]).lower()
            stream[2] += span(e)[1] - span(e)[0]
            continue
        batched = "bmm" in op
        if stream[0] and stream[1] and batched:
            found.append(stream[2])
        stream[:] = [batched, False, 0]
    return found


class Rank:
    def __init__(self, path):
        events = [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e.get("ph") == "X"]
        span = lambda e: (round(e["ts"] * 1e3), round((e["ts"] + e["dur"]) * 1e3))
        device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        self.host = [(*span(e), e["name"]) for e in events if e.get("cat") in ("cpu_op", "cuda_runtime", "python_function", "user_annotation")]
        busy = union(map(span, device))
        begin, end = min(s[0] for s in self.host), max(s[1] for s in self.host)  # the device may be idle before and after all its work
        self.gaps = [(a[1], b[0]) for a, b in zip([[begin, begin], *busy], [*busy, [end, end]]) if b[0] > a[1]]
        self.comm = sorted(span(e) for e in device if "nccl" in e["name"].lower())
        self.attention = written_out(events, span)


ranks = [Rank(path) for path in FILES]
report = json.loads(subprocess.run([*REPRISE, "report", "-q", "--json", *FILES], capture_output=True, text=True, check=True).stdout)
meetings = list(zip(*(r.comm for r in ranks)))  # the ranks of a host have one clock, and run their collectives in the same order
last, delay, until = [0] * 8, [0] * 8, [0] * 8
for m in sorted(meetings, key=lambda m: max(a for a, _ in m)):
    order = sorted(range(8), key=lambda r: (m[r][0], -r))  # of several the first
    late, second = order[-1], m[order[-2]][0]
    last[late] += 1
    begin = max(second, until[late])  # what is delayed at the same time counts once
    delay[late] += max(0, m[late][0] - begin)
    until[late] = max(until[late], m[late][0])
idle = [0.0] * 8
for finding in report["findings"]:
    for text in finding["evidence"]:
        if not re.search(r"\branks?\b", text):
            continue
        if found := IDLE.match(text):
            r, sum_ns, n, longest = int(found[1]), float(found[2]) * UNITS[found[3]], int(found[4]), float(found[5]) * UNITS[found[6]]
            # its last microseconds, from the launch to the begin of the work, have a cause of their own
            that(any(close(found[5], found[6], b - a) or 0 <= b - a - longest <= 5000 for a, b in ranks[r].gaps), "no gap is as long:", text)
            that(longest <= sum_ns * 1.01 and sum_ns <= n * longest * 1.01, "the sum is not that of so many:", text)
            idle[r] += sum_ns
            if found[7] and found[7] != "nothing recorded on the thread":
                spans = [s for s in ranks[r].host if s[2] == found[7]]
                that(any(a < g[1] and b > g[0] for a, b, _ in spans for g in ranks[r].gaps), "that call is in no gap:", text)
        elif found := LATE.match(text):
            r = int(found[1])
            that(int(found[2]) == last[r] and int(found[3]) == len(meetings), "last", last[r], "of", len(meetings), text)
            that(close(found[4], found[5], delay[r]), "delay", delay[r], text)
            if found[6]:
                long = sorted(b - a for a, b, name in ranks[r].host if name == found[6])
                that(len(long) > 0 and long[-1] > 10 * long[len(long) // 2] or len(long) == 1, "that call is as long as usual:", text)
        elif found := WRITTEN.match(text):
            times = ranks[int(found[1])].attention
            that(int(found[2]) == len(times) and close(found[3], found[4], sum(times)), "written out", len(times), sum(times), text)
        elif found := ALL.match(text):
            that((int(found[1]), int(found[2])) == (len(meetings), 8), len(meetings), text)
        else:
            that(False, "is not checked:", text)
for r, rank in enumerate(ranks):
    that(idle[r] <= 1.01 * sum(b - a for a, b in rank.gaps), "rank", r, "is idle for", idle[r])
print("every sentence about a rank is what its events say" if checked > 20 else "only %d checks" % checked)
sys.exit(wrong > 0)
