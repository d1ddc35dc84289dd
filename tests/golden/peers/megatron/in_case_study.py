# SPDX-License-Identifier: Apache-2.0
"""The eight Megatron ranks: `report`, `comm` and `stalls` say what exact scripts found in the same files."""
import csv, json, pathlib, re, shlex, subprocess, sys

REPRISE, DATA = shlex.split(sys.argv[1]), pathlib.Path(sys.argv[2])
FILES = [DATA / f"public/astra-sim/megatron-tp8/megatron_kineto_{r}.json.gz" for r in range(8)]
ORACLE = DATA / "expected/oracle/megatron_tp8"
# rank: idle %, compute, communication, wait, transfer ms, times last, margin, idle before launch ms, stalls ms (n)
TABLE = """0 37.4 131.4 241.2 191.4 49.8 32 167.4 205.9 424 35
1 1.2 131.9 481.3 431.0 50.3 4 0.0 5.9 361 26
2 10.8 131.5 413.3 362.8 50.5 4 22.0 58.6 339 15
3 3.2 132.7 472.4 421.8 50.6 15 2.0 16.1 456 26
4 0.5 131.9 495.2 445.1 50.2 0 0 1.8 311 26
5 1.3 131.5 490.9 441.1 49.9 1 0 6.4 374 19
6 34.4 133.6 263.8 214.1 49.8 28 135.1 173.7 390 19
7 1.8 132.3 481.9 432.2 49.7 0 0 9.5 260 17"""
wrong = 0


def same(what, want, got, slack=0.0):
    global wrong
    if want is None or got is None or abs(want - got) > slack:
        wrong += 1
        print(f"differs: {what}: {want} expected, {got} found")


def ask(*args):
    return json.loads(subprocess.run([*REPRISE, *args, "--json", *FILES], capture_output=True, text=True, check=True).stdout)


report, comm, stalls = ask("report"), ask("comm"), ask("stalls", "--limit", "0")
for line in TABLE.splitlines():
    rank, idle, comp, com, wait, transfer, last, margin, late, stall, count = (float(x) for x in line.split())
    r = report["ranks"][int(rank)]
    for key, want, scale, slack in (("idle_share", idle, 0.01, 0.05), ("compute_ns", comp, 1e6, 0.05), ("comm_ns", com, 1e6, 0.05),
                                    ("wait_ns", wait, 1e6, 0.05), ("transfer_ns", transfer, 1e6, 0.05), ("last_count", last, 1, 0),
                                    ("margin_ns", margin, 1e6, 0.05), ("late_ns", late, 1e6, 0.05), ("stall_ns", stall, 1e6, 0.5),
                                    ("stall_count", count, 1, 0)):
        same(f"rank {rank:.0f} {key}", want, r[key] / scale, slack + 1e-9)
part = {p["part"]: p["mean_ns"] / 1e6 for p in report["parts"]}
same("step, ms", 628.127, report["collective_span_ns"] / 1e6, 1e-6)
same("needed, ms", 182, part["compute"] + part["exposed communication"], 1)
same("collectives", 84, len(comm["collectives"]))
same("late ranks, of 84", 60, sum(report["ranks"][r]["last_count"] for r in (0, 6)))
same("their margin, ms", 302.5, sum(report["ranks"][r]["margin_ns"] for r in (0, 6)) / 1e6, 0.1)
same("margin, ms", 326.4, next(f["lost_ns"] for f in report["findings"] if f["id"] == "straggler") / 1e6, 0.1)
same("stalls", 183, report["stall_count"])
same("a stall, ms", 44, max(s["self_ns"] for s in stalls["stalls"]) / 1e6, 0.5)
for mode in (8, 21, 28):
    same(f"mode near {mode} ms", mode, min((m["at_ns"] / 1e6 for m in report["stall_modes"]), key=lambda x: abs(x - mode)), 1)
same("end spread, us", 49, max(c["end_spread_ns"] for c in comm["collectives"]) / 1000, 0.5)
same("first finding is the host", 1, report["findings"][0]["id"] == "host-stall")

with open(ORACLE / "collective_wait_by_rank_ns.csv") as f:  # to the nanosecond
    for row in csv.DictReader(f):
        for key, name in (("wait_ns", "wait_ns"), ("transfer_ns", "xfer_ns"), ("last_count", "times_last"),
                          ("margin_ns", "last_margin_sum_ns")):
            same(f"rank {row['rank']} {key} exactly", int(row[name]), report["ranks"][int(row["rank"])][key])
for rank, count, total in re.findall(r"rank (\d+) stalls (\d+) total us (\d+)", (ORACLE / "host_stalls.txt").read_text()):
    same(f"rank {rank} stalls exactly", int(count), stalls["ranks"][int(rank)]["count"])
    same(f"rank {rank} stall time exactly", int(total) * 1000, stalls["ranks"][int(rank)]["total_ns"])
print("8 ranks, 84 collectives, 183 stalls")
sys.exit(wrong > 0)
