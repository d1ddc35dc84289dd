# SPDX-License-Identifier: Apache-2.0
"""What `report` and `comm` say about the ranks of Flight Recorder dumps, of a file of an NCCL profiler plugin and of a merged trace, held against
their entries."""
import collections, gzip, json, pathlib, shlex, statistics, subprocess, sys

REPRISE, DATA = shlex.split(sys.argv[1]), pathlib.Path(sys.argv[2]) / "public"
wrong = checked = 0


def that(said, true, *what):
    global wrong, checked
    checked += 1
    wrong += said != true
    if said != true:
        print("wrong:", *what, "says", said, "where the events say", true)


def ask(question, *paths):
    return json.loads(subprocess.run([*REPRISE, question, "-q", "--json", *paths], capture_output=True, text=True, check=True).stdout)


def length(spans):
    total, until = 0, -1
    for a, b in sorted(spans):
        total += max(0, b - max(a, until))
        until = max(until, b)
    return total


def flight_recorder():
    files = [DATA / "flight-recorder-synthetic" / ("fr_rank_%d.json" % r) for r in range(4)]
    dumps = [json.loads(f.read_text())["entries"] for f in files]
    report, comm = ask("report", *files), ask("comm", *files)
    ended = [{e["collective_seq_id"]: (e["time_created_ns"], e["time_discovered_completed_ns"]) for e in d if e["state"] == "completed"} for d in dumps]
    common = set.intersection(*map(set, ended))
    that(comm["matched_count"], len(common), "comm: collectives of all ranks")
    # what ends together is one moment: clocks differ by the median of the ends
    offsets = [statistics.median(ended[r][s][1] - ended[0][s][1] for s in common) for r in range(4)]
    that(comm["clocks_differ"], max(offsets) > min(offsets), "comm: clocks differ")
    begins = {s: sorted(ended[r][s][0] - offsets[r] for r in range(4)) for s in common}
    that(comm["margin_ns"], sum(b[-1] - b[-2] for b in begins.values()), "comm: delay of all")
    for r in range(4):
        row = report["ranks"][r]
        spans = list(ended[r].values())
        that(row["comm_ns"], length(spans), "report: rank", r, "communicates")
        that(row["compute_ns"], max(b for _, b in spans) - min(a for a, _ in spans) - length(spans), "report: rank", r, "runs user code")
        that(row["wait_ns"], sum(b[-1] - (ended[r][s][0] - offsets[r]) for s, b in begins.items()), "report: rank", r, "waits")
    first = min(s for s in {e["collective_seq_id"] for d in dumps for e in d} if s not in common)
    there = {r: next((e for e in d if e["collective_seq_id"] == first), None) for r, d in enumerate(dumps)}
    sizes = collections.Counter(str(e["input_sizes"]) for e in there.values() if e)
    true = {(r, "not_entered") for r, e in there.items() if not e} | {(r, "waits") for r, e in there.items() if e and e["state"] != "completed"}
    true |= {(r, "size") for r, e in there.items() if e and str(e["input_sizes"]) != sizes.most_common(1)[0][0]}
    that({(c["rank"], c["problem"]) for c in comm["checks"]}, true, "comm: what differs")
    inside = sum(any(e["state"] != "completed" for e in d) for d in dumps)
    that(sum("%d of 4 ranks are in a collective that did not end" % inside in note for note in report["notes"]), 1, "report: ranks that wait")


def nccl_profiler():
    path = next((DATA / "nccl-profiler").iterdir())
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    launched = {r["extCorrId"]: r["rank"] for r in rows if r.get("type") == "ncclProfileKernelLaunch"}
    kernels = {launched[r["extCorrId"]]: (round(r["start"]["ts"] * 1e3), round(r["stop"]["ts"] * 1e3)) for r in rows if r.get("type") == "KERNEL"}
    report, comm = ask("report", path), ask("comm", path)
    begins = sorted((a, r) for r, (a, _) in kernels.items())
    that(comm["collectives"][0]["last_rank"], begins[-1][1], "comm: who arrives last")
    that(comm["margin_ns"], begins[-1][0] - begins[-2][0], "comm: delay of all")
    that(comm["collectives"][0]["skew_ns"], begins[-1][0] - begins[0][0], "comm: from the first to the last")
    for r, (a, b) in kernels.items():
        that(report["ranks"][r]["comm_ns"], b - a, "report: rank", r, "communicates")
        that(report["ranks"][r]["wait_ns"], begins[-1][0] - a, "report: rank", r, "waits")
        that(report["ranks"][r]["stall_count"], 0, "report: stalls of rank", r)  # the proxy threads sleep


def merged_by_tracefusion():
    """All ranks in one file, on one clock: all-reduces, and broadcasts over a ring from rank 0, which leaves first."""
    path = DATA / "amd-hpctraining" / "merged_nccl_only.json.gz"
    kernels = collections.defaultdict(list)
    for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if e.get("ph") == "X" and e["cat"] == "kernel":
            kernels[e["args"]["rank"]].append((round(e["ts"] * 1e3), round((e["ts"] + e["dur"]) * 1e3), e["args"]["Collective name"]))
    waits, last, delay = [0] * 4, [0] * 4, 0
    for meeting in zip(*(sorted(kernels[r]) for r in range(4))):
        order = sorted(range(4), key=lambda r: meeting[r][0])
        late, awaited = order[-1], 0
        arrives, ends, kind = meeting[late]
        last[late] += 1
        for r in order[:-1]:
            with_it = kind != "broadcast" or (r and abs(meeting[r][1] - ends) <= 10000 and meeting[r][1] > arrives)
            gate = arrives if with_it else meeting[0][0]
            waits[r] += max(0, gate - meeting[r][0])
            awaited |= with_it
        delay += arrives - meeting[order[-2]][0] if awaited else 0
    comm = ask("comm", path)
    for r in range(4):
        row = next(row for row in comm["ranks"] if row["rank"] == r)
        that(abs(row["wait_ns"] - waits[r]) < 100, True, "comm: rank", r, "waits", row["wait_ns"], waits[r])
        that(row["last_count"], last[r], "comm: rank", r, "arrives last")
    that(abs(comm["margin_ns"] - delay) < 100, True, "comm: delay of all", comm["margin_ns"], delay)


flight_recorder()
nccl_profiler()
merged_by_tracefusion()
print(f"{wrong} wrong" if wrong else f"{checked} statements about ranks are what the events say")
