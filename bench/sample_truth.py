#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sample_truth.py REPRISE [--py-spy PATH] [--perf PATH] [--hz N] [--python PATH]: shares of functions that a program knows of itself, beside
those that 'reprise sample', py-spy and perf give it, each in a run of its own, one after another. Each function of a program runs until it has
used so much CPU time by its thread's clock, and notes what it has really used: that is the truth of the run. Prints the largest difference of a
share, in points, and exits with 1 if that of reprise is over 3."""
import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile

# used: {function: CPU seconds}. Work is done in slices, so that functions take turns.
HEAD = """
import ctypes, hashlib, json, mmap, os, subprocess, sys, threading, time, zlib
command = getattr(sys, 'orig_argv', [sys.executable] + sys.argv)  # 3.9 has no orig_argv
used = {}
def spend(name, seconds, work):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds: work()
    used[name] = used.get(name, 0) + time.thread_time() - begin
def adds(): sum(range(3000))
def done():
    with open(sys.argv[1] + "." + str(os.getpid()), "w") as f: json.dump(used, f)
"""
PROGRAMS = {
    "functions": "def one(): spend('one', .1, adds)\ndef two(): spend('two', .2, adds)\ndef three(): spend('three', .3, adds)\n"
                 "for i in range(5): one(); two(); three()",
    "recursion": "def down(n, f): return down(n - 1, f) if n else f()\n"
                 "def deep(): down(150, lambda: spend('deep', .2, adds))\ndef flat(): spend('flat', .2, adds)\n"
                 "for i in range(6): deep(); flat()",
    "threads": "def some(): spend('some', 1., adds)\ndef more(): spend('more', 2., adds)\n"
               "t = [threading.Thread(target=f) for f in (some, more)]\n[x.start() for x in t]; [x.join() for x in t]",
    "C extensions": "data = bytes(range(256)) * 200\n"
                    "def squeeze(): spend('squeeze', .2, lambda: zlib.compress(data, 9))\n"
                    "def digest(): spend('digest', .1, lambda: hashlib.sha256(data).digest())\n"
                    "def sorts(): spend('sorts', .1, lambda: sorted(data))\n"
                    "for i in range(6): squeeze(); digest(); sorts()",
    "generators": "def lazy(n):\n    for i in range(n): yield sum(range(300))\n"
                  "def pulls(): spend('pulls', .2, lambda: list(lazy(20)))\ndef loops(): spend('loops', .1, adds)\n"
                  "for i in range(8): pulls(); loops()",
    "JIT": "code = {'x86_64': '554889e548ffcf75fb5dc3', 'aarch64': '000400f1e1ffff54c0035fd6'}[os.uname().machine]\n"
           "memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\nmemory.write(bytes.fromhex(code))\n"
           "address = ctypes.addressof(ctypes.c_char.from_buffer(memory))\n"
           "open('/tmp/perf-%d.map' % os.getpid(), 'a').write('%x %x count_down\\n' % (address, len(code) // 2))\n"
           "count = ctypes.CFUNCTYPE(None, ctypes.c_uint64)(address)\n"
           "def made(): spend('made', .2, lambda: count(100000))\ndef plain(): spend('plain', .2, adds)\n"
           "for i in range(6): made(); plain()\nif '-X' not in command: os.unlink('/tmp/perf-%d.map' % os.getpid())",
    "fork and exec": "def parent(): spend('parent', 1., adds)\ndef child(): spend('child', .6, adds)\ndef other(): spend('other', .4, adds)\n"
                     "if len(sys.argv) > 2: other(); done(); sys.exit()\n"
                     "pid = os.fork()\nif not pid:\n    child(); done(); os._exit(0)\n"
                     "pid2 = os.fork()\nif not pid2: os.execv(sys.executable, command + ['again'])\n"
                     "parent(); os.waitpid(pid, 0); os.waitpid(pid2, 0)",
    "attach": "def one(): spend('one', .1, adds)\ndef three(): spend('three', .3, adds)\n"
              "print('begun', flush=True); sys.stdin.readline(); used.clear()\nfor i in range(6): one(); three()",
}
# A program without Python, compiled with frame pointers and without.
NATIVE = """
#include <stdio.h>
#include <time.h>
static volatile double x;
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
#define WORK(name, seconds) __attribute__((noinline)) double name(void) { double b = now(); \\
    while (now() < b + seconds) for (int i = 0; i < 100000; i++) x = x * 0.5 + 1; return now() - b; }
WORK(one, .1) WORK(two, .2) WORK(three, .3)
__attribute__((noinline)) double down(int n) { double d = n ? down(n - 1) : two(); x = x + 1; return d; }
int main(int n, char **v) { double a = 0, b = 0, c = 0; for (int i = 0; i < 5; i++) { a += one(); b += down(40); c += three(); }
    FILE *f = fopen(v[1], "w"); fprintf(f, "{\\"one\\": %f, \\"two\\": %f, \\"three\\": %f}", a, b, c); return n * 0 + fclose(f); }
"""


def shares(weights):
    total = sum(weights.values())
    return {k: 100 * v / total for k, v in weights.items()} if total else {}


def count_folded(path, names):
    """Weights of stacks by the innermost of the known functions."""
    out = collections.Counter()
    for line in open(path, errors="replace"):
        stack, _, n = line.rstrip("\n").rpartition(" ")
        for frame in reversed(stack.split(";")):
            word = re.match(r"(?:py::)?([A-Za-z_]+)", frame.strip())
            if word and word[1] in names:
                out[word[1]] += float(n)
                break
    return out


def by_reprise(reprise, folder, hz, words, names, pid=None):
    what = ["--pid", str(pid)] if pid else ["--"] + words
    subprocess.run([reprise, "sample", "-q", "--clock", "cpu", "--hz", hz, "-o", folder + "/run"] + what, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([reprise, "convert", folder + "/run", "-o", folder + "/stacks.folded"], check=True, capture_output=True)
    return count_folded(folder + "/stacks.folded", names)


def by_py_spy(spy, folder, hz, words, names, pid=None):
    what = ["--pid", str(pid)] if pid else ["--"] + words
    subprocess.run([spy, "record", "-r", hz, "--subprocesses", "-f", "raw", "-o", folder + "/spy"] + what, check=True, capture_output=True)
    return count_folded(folder + "/spy", names)


def by_perf(perf, folder, hz, words, names, pid=None):
    data = folder + "/perf.data"
    what = ["-p", str(pid)] if pid else ["--"] + words
    subprocess.run([perf, "record", "-q", "-F", hz, "-e", "cpu-clock", "-g", "-o", data] + what, check=True, capture_output=True)
    text = subprocess.run([perf, "script", "-i", data, "-F", "comm,period,ip,sym"], capture_output=True, text=True).stdout
    out = collections.Counter()
    for block in text.split("\n\n"):
        frames = re.findall(r"^\s+[0-9a-f]+ (?:py::)?([A-Za-z_]+)", block, re.M)
        first = next((f for f in frames if f in names), None)
        out[first] += bool(first)
    return out


def truth_of(folder):
    used = collections.Counter()
    for name in os.listdir(folder):
        if name.startswith("used"):
            used.update(json.load(open(folder + "/" + name)))
    return used


def run(by, tool, folder, hz, words, names, attached):
    if not attached:
        return by(tool, folder, hz, words, names)
    p = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    p.stdin.write("\n" * 2)
    p.stdin.flush()
    got = by(tool, folder, hz, [], names, p.pid)
    p.communicate(timeout=60)
    return got


def main():
    p = argparse.ArgumentParser()
    p.add_argument("reprise")
    p.add_argument("--py-spy")
    p.add_argument("--perf")
    p.add_argument("--hz", default="500")
    p.add_argument("--python", default=sys.executable)
    a = p.parse_args()
    tools = [("reprise", by_reprise, a.reprise), ("py-spy", by_py_spy, a.py_spy), ("perf", by_perf, a.perf)]
    tools = [t for t in tools if t[2]]
    worst = collections.Counter()
    with tempfile.TemporaryDirectory() as top:
        programs = {name: ["python", HEAD + text + "\ndone()\n"] for name, text in PROGRAMS.items()}
        for flag in ("-fno-omit-frame-pointer", "-fomit-frame-pointer"):
            open(top + "/native.c", "w").write(NATIVE)
            subprocess.run(["cc", "-O1", flag, "-fno-optimize-sibling-calls", "-o", top + "/native" + flag, top + "/native.c"], check=True)
            programs["C, " + flag] = [top + "/native" + flag, None]
        print("%-26s %s" % ("points off, at most", " ".join("%12s" % t[0] for t in tools)))
        for k, (name, (program, text)) in enumerate(programs.items()):
            row = []
            for tool, by, path in tools:
                folder = "%s/%d_%s" % (top, k, tool)
                os.mkdir(folder)
                words = [program, folder + "/used"]
                if text:
                    open(folder + "/program.py", "w").write(text)
                    words = [a.python] + (["-X", "perf"] if tool == "perf" else []) + [folder + "/program.py", folder + "/used"]
                elif tool == "py-spy":
                    row.append("%12s" % "no Python")
                    continue
                names = set(re.findall(r"'([a-z]+)', [.0-9]+", text)) if text else {"one", "two", "three"}
                got, truth = shares(run(by, path, folder, a.hz, words, names, name == "attach")), shares(truth_of(folder))
                off = max(abs(got.get(n, 0) - truth[n]) for n in truth)
                worst[tool] = max(worst[tool], off)
                row.append("%12.1f" % off)
            print("%-26s %s" % (name, " ".join(row)), flush=True)
    return worst["reprise"] > 3


sys.exit(main())
