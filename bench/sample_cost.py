#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sample_cost.py REPRISE [NAME=OTHER...] [--turns N] [--py-spy PATH]: what sampling costs a busy Python program, at 100
and 1000 samples a second, beside other builds and py-spy in the same run. Each turn runs every way once; each run does
the same work, and is compared with the run without a recorder of its turn. Medians with their quartiles
of the CPU time of the whole process; of what the recorder spends in it, on its own thread (all but the program's one thread) and in the
handler of signals, as a share of the program's own time in the same run, which does not depend on the machine's speed from one run
to the next; and of what other processes spend (of py-spy everything, of reprise its command), likewise. The kernel's delivery of a signal, and the time
in which py-spy stops the program, are in none of them."""
import argparse
import glob
import re
import resource
import statistics
import subprocess
import sys
import tempfile

WORK = """
import sys, time
def leaf(n): return n * n % 7
def middle(n): return sum(leaf(i) for i in range(n))
def work():
    for i in range(int(sys.argv[2])): middle(100)
def deep(n): return deep(n - 1) if n else work()
deep(20)
open(sys.argv[1], 'w').write('%r %r' % (time.process_time(), time.thread_time()))
"""


def spread(values, form):
    low, mid, high = statistics.quantiles(values, n=4, method="inclusive")
    return " ".join(form % v for v in (mid, low, high))


def fact(folder, key):
    """A number that the recording says about itself, of its one process."""
    for path in glob.glob(folder + "/*/s_*"):
        data = open(path, "rb").read()
        at = data.find(key.encode() + b"\0")
        if at >= 0:
            text = data[at + len(key) + 1 + 12:].split(b"\0")[0]  # of the next text, after its header and number
            return int(text) if text.isdigit() else 0
    return 0


def children():
    """CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ticks_a_second(folder):
    return int(re.search(r"freq = (\d+)", open(glob.glob(folder + "/*/metadata")[0]).read())[1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("reprise")
    p.add_argument("other", nargs="*")
    p.add_argument("--turns", type=int, default=10)
    p.add_argument("--work", type=int, default=120000)
    p.add_argument("--py-spy")
    a = p.parse_args()
    builds = {"": a.reprise, **dict(o.split("=", 1) for o in a.other)}
    with tempfile.TemporaryDirectory() as folder:
        open(folder + "/work.py", "w").write(WORK)
        ways = {"without": []}
        for name, reprise in builds.items():
            record = [reprise, "record", "-q", "-o", "%OUT", "--with"]
            ways["host %s" % name] = record + ["host", "--"]
            for hz in (100, 1000):
                ways["sample %d %s" % (hz, name)] = record + ["sample=%d" % hz, "--"]
        for hz in (100, 1000) if a.py_spy else ():
            for native in ([], ["-n"]):
                ways[" ".join(["py-spy %d" % hz] + native)] = [a.py_spy, "record", "-r", str(hz), *native, "-f", "raw", "-o", folder + "/spy", "--"]
        seen = {way: [] for way in ways}
        for turn in range(a.turns):
            for k, (way, words) in enumerate(ways.items()):
                out = "%s/r%d_%d" % (folder, turn, k)
                before = children()
                words = [out if w == "%OUT" else w for w in words]
                subprocess.run(words + [sys.executable, folder + "/work.py", folder + "/cpu", str(a.work)], check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                total, own = map(float, open(folder + "/cpu").read().split())
                count = fact(out, "sample.count")
                handler = 1e6 * fact(out, "sample.handler_ticks") / ticks_a_second(out) / count if count else 0
                seen[way].append((total, total - own, count, handler, children() - before))
        form = "%-18s %-20s %-22s %-22s %-20s %-18s %s"
        print(form % ("median, quartiles", "process, CPU s", "recorder in it, %", "other processes, %", "thread, us a sample", "handler, us", "samples"))
        for way, runs in seen.items():
            inside = [r[1] + r[2] * r[3] / 1e6 if r[2] else 0 for r in runs]
            each = handler = ""
            if all(r[2] for r in runs):
                each = spread([1e6 * r[1] / r[2] for r in runs], "%.1f")
                handler = spread([r[3] for r in runs], "%.1f")
            print(form % (way, spread([r[0] for r in runs], "%.3f"), spread([100 * i / (r[0] - i) for i, r in zip(inside, runs)], "%.2f"),
                          spread([100 * (r[4] - r[0]) / r[0] for r in runs], "%.2f"), each, handler, runs[0][2] or ""))


main()
