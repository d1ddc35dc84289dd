# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's RunMetadata and Timeline: the step is the run, and operators start so long after their last input."""
import gzip, json, pathlib, re, shlex, subprocess, sys

REPRISE, DATA, TIMELINE = shlex.split(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
# nanoseconds from the first operator's start to the last one's end, by a script over the protobuf
SPANS = {"runmeta_2dev_step.pb": 3716594, "runmeta_mnist_step.pb": 3850741, "runmeta_ps_worker_step.pb": 13008693}
wrong = 0


def same(what, want, got):
    global wrong
    if want != got:
        wrong += 1
        print(f"differs: {what}: {want} expected, {got} found")


def report(name):
    return json.loads(subprocess.run([*REPRISE, "report", "--json", DATA / name], capture_output=True, text=True, check=True).stdout)


def latencies(name):
    """Start - latest end among the inputs that had ended by name before, by the definition, of a Timeline."""
    with gzip.open(DATA / name) as f:
        rows = sorted((e for e in json.load(f)["traceEvents"] if e.get("ph") == "X"), key=lambda e: e["ts"])
    known, ended, found = {e["args"]["name"] for e in rows}, {}, []
    for e in rows:
        inputs = [v.lstrip("^").split(":")[0] for k, v in e["args"].items() if re.fullmatch(r"input\d+", k)]
        inputs = [n if n in known else re.sub(r"(/_|_S)\d+$", "", n) for n in inputs]
        ready = max((ended[n] for n in inputs if n in ended), default=None)
        if ready is not None and ready <= e["ts"]:
            found.append(e["ts"] - ready)
        ended[e["args"]["name"]] = e["ts"] + e["dur"]
    return sorted(found)


for name, span in SPANS.items():
    doc = report(name)
    same(f"{name} steps", [span], [s["dur_ns"] for s in doc["steps"]])
    same(f"{name} step", span, doc["step_ns"])
    same(f"{name} parts", doc["window_ns"], sum(p["total_ns"] for p in doc["parts"]))
for name in (TIMELINE, "timeline_2dev_step.json.gz", "timeline_ps_worker_step.json.gz"):
    want, got = latencies(name), report(name)["latency"]
    n = len(want)
    same(f"{name} operators with inputs", n, got["ops"])
    for key, value in (("p50_ns", want[(n + 1) // 2 - 1]), ("p90_ns", want[(n * 90 + 99) // 100 - 1]), ("max_ns", want[-1])):
        same(f"{name} {key}", value * 1000, got[key])
print("3 runs, 3 timelines")
sys.exit(wrong > 0)
