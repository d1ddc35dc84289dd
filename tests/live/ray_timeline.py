# SPDX-License-Identifier: Apache-2.0
"""A job of Ray with tasks and an actor, whose timeline reprise must read: all spans, their times by name, a process for each node and a thread for
each worker. `scrub` leaves neither the address of the node nor the numbers of workers, and keeps the workers apart."""
import collections, decimal, json, os, pathlib, subprocess, sys, tempfile, time

import ray

PROGRAM = pathlib.Path(os.environ.get("REPRISE", pathlib.Path(os.environ.get("BUILD", "build")) / "reprise")).resolve()


def run_job(path):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    @ray.remote
    def square(i):
        time.sleep(0.02)
        return i * i

    @ray.remote
    class Counter:
        def __init__(self):
            self.n = 0

        def add(self, k):
            time.sleep(0.01)
            self.n += k
            return self.n

    counter = Counter.remote()
    ray.get([square.remote(i) for i in range(12)] + [counter.add.remote(i) for i in range(5)])
    for _ in range(60):  # workers report their spans now and then
        time.sleep(1)
        ray.timeline(str(path))
        events = json.loads(path.read_text())
        if sum(e["name"] == "task:execute" for e in events) >= 18:
            break
    ray.shutdown()
    return json.loads(path.read_text(), parse_float=decimal.Decimal)


def ask(*words):
    return json.loads(subprocess.run([PROGRAM, *map(str, words), "--json"], capture_output=True, check=True).stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, clean = pathlib.Path(folder, "timeline.json"), pathlib.Path(folder, "clean.json")
        spans = [e for e in run_job(path) if e["ph"] == "X"]
        info = ask("info", path)["files"][0]
        workers = {(e["pid"], e["tid"]) for e in spans}
        assert info["framework"] == "ray" and info["spans"] == len(spans) and len(info["tracks"]) == len(workers), (info, len(spans), len(workers))
        want = collections.Counter()
        for e in spans:
            if e["cat"] != "submit_task":  # a call of the driver, and no range of the user
                want[e["name"]] += int((e["dur"] * 1000).to_integral_value(decimal.ROUND_HALF_EVEN))
        got = {r["name"]: r["total_ns"] for r in ask("top", "--by", "annotation", "--limit", 0, path)["rows"]}
        assert got.keys() == want.keys() and all(abs(got[k] - want[k]) <= 1000 for k in want), (got, want)
        subprocess.run([PROGRAM, "scrub", path, "-o", clean], check=True, stdout=subprocess.DEVNULL)
        text = clean.read_text()
        assert not any(str(name).split(":")[-1] in text for worker in workers for name in worker), "scrub leaves an address or a number"
        assert len(ask("info", clean)["files"][0]["tracks"]) == len(workers), "scrub joins workers"
    print(f"ray_timeline: passed; Ray {ray.__version__}, {len(spans)} spans of {len(workers)} workers")


main()
