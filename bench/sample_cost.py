#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sample_cost.py REPRISE [NAME=OTHER...] [--turns N] [--seconds S] [--py-spy PATH]: what sampling costs a busy Python program, at 100
and 1000 samples a second, beside other builds and py-spy in the same run. Each turn runs every way twice, for a quarter of the time and for all of it;
two runs of the same length do the same work. Medians with their quartiles over the turns:

  process     CPU time of the whole process in the long run
  recorder    what the recorder spends in it, on its own thread (all but the program's one thread) and in the handler of signals, as a share of the
              program's own time in the same run, which does not depend on the machine's speed from one run to the next
  others      what other processes spend (of py-spy everything, of reprise its command), likewise
  once        CPU time of the recorder's thread that does not depend on the length of the run: by the line through the two runs
  a sample    CPU time of the recorder's thread for each sample, by the same line; and of the handler

The kernel's delivery of a signal, and the time in which py-spy stops the program, are in none of them."""
import argparse
import glob
import re
import resource
import shutil
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


def run_once(folder, words, work, out):
    """(process, recorder's thread, handler, other processes) in seconds of CPU time, and the number of samples."""
    before = children()
    words = [out if w == "%OUT" else w for w in words]
    subprocess.run(words + [sys.executable, folder + "/work.py", folder + "/cpu", str(work)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    total, own = map(float, open(folder + "/cpu").read().split())
    count = fact(out, "sample.count")
    handler = fact(out, "sample.handler_ticks") / ticks_a_second(out) if count else 0
    shutil.rmtree(out, ignore_errors=True)
    return total, total - own, handler, children() - before - total, count


def main():
    p = argparse.ArgumentParser()
    p.add_argument("reprise")
    p.add_argument("other", nargs="*")
    p.add_argument("--turns", type=int, default=5)
    p.add_argument("--seconds", type=float, default=5, help="about the length of a long run")
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
        work = int(20000 * a.seconds / run_once(folder, [], 20000, folder + "/none")[0])
        seen = {way: [] for way in ways}
        for turn in range(a.turns):
            for way, words in ways.items():
                seen[way].append([run_once(folder, words, n, folder + "/out") for n in (work // 4, work)])
        form = "%-18s %-19s %-18s %-20s %-17s %-18s %-15s %s"
        print(form % ("median, quartiles", "process, CPU s", "recorder, %", "others, %", "once, ms", "a sample, us", "handler, us", "samples"))
        for way, turns in seen.items():
            long = [t[1] for t in turns]
            once = each = handler = ""
            if all(t[1][4] > t[0][4] > 0 for t in turns):
                slopes = [(t[1][1] - t[0][1]) / (t[1][4] - t[0][4]) for t in turns]
                once = spread([1e3 * (r[1] - s * r[4]) for s, r in zip(slopes, long)], "%.1f")
                each = spread([1e6 * s for s in slopes], "%.1f")
                handler = spread([1e6 * r[2] / r[4] for r in long], "%.1f")
            print(form % (way, spread([r[0] for r in long], "%.3f"), spread([100 * (r[1] + r[2]) / (r[0] - r[1] - r[2]) for r in long], "%.2f"),
                          spread([100 * r[3] / r[0] for r in long], "%.2f"), once, each, handler, long[0][4] or ""))


main()
