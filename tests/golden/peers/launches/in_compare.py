# SPDX-License-Identifier: Apache-2.0
"""`launches --by launch` against the definition, computed here from the events: the call, the work it launched, and the
time between the end of the one and the start of the other, for each correlation."""
import csv, decimal, gzip, io, json, os, shlex, subprocess, sys

REPRISE = shlex.split(sys.argv[1])
WORK = {"kernel", "gpu_memcpy", "gpu_memset"}


def ns(us):
    return int(decimal.Decimal(us) * 1000)


def expected(path):
    calls, work = {}, {}
    with gzip.open(path) as f:
        for e in json.load(f, parse_float=str)["traceEvents"]:
            if e["ph"] == "X" and "correlation" in e.get("args", {}):
                where = work if e["cat"] in WORK else calls
                where[e["args"]["correlation"]] = (ns(e["ts"]), ns(e["dur"]))
    for c in calls.keys() & work.keys():
        (start, dur), (begin, device) = calls[c], work[c]
        yield c, (dur, device, max(0, begin - start - dur))


wrong = 0
for path in sys.argv[2:]:
    out = subprocess.run([*REPRISE, "launches", "--by", "launch", "--limit", "0", "--csv", path], stdout=subprocess.PIPE,
                         text=True, check=True).stdout
    found = {int(r["name"].split()[0]): tuple(int(r[k + ".total_ns"]) for k in ("call", "device", "delay"))
             for r in csv.DictReader(io.StringIO(out))}
    want = dict(expected(path))
    differ = [c for c in want.keys() | found.keys() if want.get(c) != found.get(c)]
    for c in differ[:5]:
        print(f"correlation {c}: {want.get(c)} expected, {found.get(c)} found")
    wrong += len(differ)
    print(f"{os.path.basename(path)}: {len(want)} launches, {len(differ)} differ")
sys.exit(wrong > 0)
