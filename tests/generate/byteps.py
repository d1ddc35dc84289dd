#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make the trial directory of a BytePS job with known truth (Python's standard library only).

    byteps.py OUT [--workers 3 --servers 2 --layers 6 ...] [--truth FILE]

    OUT/key_dict.txt                      tensor -> keys of its parts
    OUT/traces_<w>/0/trace.json.gz        operators of worker w, thread "TensorFlow Ops"
                     dag.gml              op graph; communication ops are ...BytePSPushPull_<tensor>
    OUT/logs/worker_<w>.log, server_<s>.log   what each sent and received (ps-lite)
    OUT/logs/sums_<s>.txt                 what the threads of server s did

Every time stamp comes from a causal simulation in integer nanoseconds; equal arguments give equal bytes.

Physics
  compute   one in-order stream a worker; a layer's gradient is ready when its backward op ends; updates run
            after the last backward op, in the order in which their tensors arrive
  network   every node sends one message at a time (of those waiting the one of the lowest tensor, --fifo: the one
            that came first) and receives one at a time, both at once; a message arrives a latency after it
            began to be sent, and takes the longer of both sides' times
  servers   a part of a tensor lives on one server and one of its threads: it is copied or summed when it came,
            and copied once more when all workers' are there
  protocol  PUSH -> answer -> PULL -> answer with the sum, for each part and worker
  clocks    every worker and server has an offset, and a drift in parts per million
"""
import argparse
import gzip
import heapq
import json
import os
import random

BASE = 86_400_000_000_000
KINDS = {"PUSH": (1, 1), "PUSH_DONE": (1, 0), "PULL": (0, 1), "PULL_DONE": (0, 0)}


class Jitter:
    """Multiplies mean durations by a clipped normal factor; sigma 0 leaves them alone."""

    def __init__(self, seed, sigma):
        self.rng, self.sigma = random.Random(seed), sigma

    def factor(self):
        return 1.0 + self.sigma * max(-3.0, min(3.0, self.rng.gauss(0, 1))) if self.sigma else 1.0

    def us(self, mean_us):
        return max(1, round(mean_us * self.factor())) * 1000

    def ns(self, mean):
        return max(1, round(mean * self.factor()))


class Job:
    """The fixed parts: operators, tensors, keys, speeds."""

    def __init__(self, a):
        rng = random.Random(a.seed)
        self.a = a
        ns = lambda lo, hi: rng.randrange(lo, hi) * 1000 + rng.randrange(1000)
        self.ops, self.edges, before = [], [], None
        for i in range(a.layers):
            for k in range(2):
                before = self.op("net/layer%d/%s" % (i, ("MatMul", "Relu")[k]), "FW", ns(60, 300), before)
        self.maker = [None] * a.layers
        for i in reversed(range(a.layers)):
            before = self.op("gradient_tape/net/layer%d/ReluGrad" % i, "BW", ns(30, 90), before)
            self.maker[i] = self.op("gradient_tape/net/layer%d/MatMul_1" % i, "BW", ns(60, 300), before)
            before = self.op("gradient_tape/net/layer%d/MatMul" % i, "BW", ns(60, 300), before)
        self.sizes = [rng.randrange(40, 900) * 4096 for _ in range(a.layers)]
        self.update = []
        for i in range(a.layers):
            comm = "DistributedGradientTape_Push_Pull/BytePSPushPull_%d" % i
            self.edges.append((self.ops[self.maker[i]][0], comm))
            self.update.append(self.op("SGD/SGD/update_%d/ResourceApplyGradientDescent" % i, "UPD", ns(9, 28), None))
            self.edges.append((comm, self.ops[self.update[i]][0]))
        self.speed = [1.0 + (a.skew if w == a.workers - 1 else 0.0) for w in range(a.workers)]
        self.parts = {}
        for i, size in enumerate(self.sizes):
            n = -(-size // a.partition)
            for p in range(n):
                self.parts[i << 16 | p] = (i, min(a.partition, size - p * a.partition), (i + p) % a.servers)

    def op(self, name, kind, mean, before):
        self.ops.append((name, kind, mean))
        if before is not None:
            self.edges.append((self.ops[before][0], name))
        return len(self.ops) - 1


class Step:
    """One step of all workers; times in ns on one true clock."""

    def __init__(self, job, start, jit, compute=1.0, comm=1.0):
        self.job, self.jit, self.comm = job, jit, comm
        a = job.a
        n = a.workers + a.servers                       # nodes: workers, then servers
        self.heap, self.seq = [], 0
        self.out_busy, self.out_wait = [False] * n, [[] for _ in range(n)]
        self.in_free = [0] * n
        self.threads = {}                               # (server, thread) -> [busy, waiting]
        self.sent, self.got = [[] for _ in range(n)], [[] for _ in range(n)]
        self.did = [[] for _ in range(a.servers)]
        self.count, self.merged, self.asked = {}, set(), {}
        self.left = [[sum(k >> 16 == i for k in job.parts) for i in range(a.layers)] for _ in range(a.workers)]
        self.arrived = [[0] * a.layers for _ in range(a.workers)]
        self.comp = [[] for _ in range(a.workers)]
        free = list(start)
        for w in range(a.workers):
            for i, (_, kind, mean) in enumerate(job.ops):
                if kind == "UPD":
                    continue
                dur = jit.ns(mean * job.speed[w] * compute)
                self.comp[w].append((i, free[w], dur))
                if i in job.maker:
                    tensor = job.maker.index(i)
                    for key, (t, _, _) in job.parts.items():
                        if t == tensor:
                            self.at(up(free[w] + dur) + jit.us(10), self.queue, w, "PUSH", key, w)
                free[w] += dur + jit.ns(3000)
        self.run()
        for w in range(a.workers):
            for t, i in sorted((self.arrived[w][i], i) for i in range(a.layers)):
                begin = max(free[w], t + 5000)
                dur = jit.ns(job.ops[job.update[i]][2] * job.speed[w] * compute)
                self.comp[w].append((job.update[i], begin, dur))
                free[w] = begin + dur + jit.ns(3000)

    def at(self, t, what, *args):
        heapq.heappush(self.heap, (t, self.seq, what, args))
        self.seq += 1

    def run(self):
        while self.heap:
            t, _, what, args = heapq.heappop(self.heap)
            what(t, *args)

    # -- messages: `w` is the worker, whoever sends
    def server(self, key):
        return self.job.a.workers + self.job.parts[key][2]

    def queue(self, t, src, kind, key, w):
        order = self.seq if self.job.a.fifo or src >= self.job.a.workers else key >> 16
        heapq.heappush(self.out_wait[src], (order, self.seq, kind, key, w))
        self.seq += 1
        if not self.out_busy[src]:
            self.out_busy[src] = True
            self.at(t, self.send, src)

    def send(self, t, src):
        if not self.out_wait[src]:
            self.out_busy[src] = False
            return
        _, _, kind, key, w = heapq.heappop(self.out_wait[src])
        a, dst = self.job.a, self.server(key) if src < self.job.a.workers else w
        size = self.job.parts[key][1] if kind in ("PUSH", "PULL_DONE") else 64
        out = self.jit.us(size / a.out_rate * self.comm)
        into = self.jit.us(size / a.in_rate * self.comm)
        self.sent[src].append((t, kind, key, src, dst))
        self.at(t + out, self.send, src)
        self.at(t + a.latency * 1000, self.arrive, kind, key, w, src, dst, into, t + out + a.latency * 1000)

    def arrive(self, t, kind, key, w, src, dst, into, least):
        end = max(max(t, self.in_free[dst]) + into, least)
        self.in_free[dst] = end
        self.at(end, self.receive, kind, key, w, src, dst)

    def receive(self, t, kind, key, w, src, dst):
        self.got[dst].append((t, kind, key, src, dst))
        if kind == "PUSH":
            self.work(t, key, w, None)
            self.at(t + self.jit.us(3), self.queue, dst, "PUSH_DONE", key, w)
        elif kind == "PUSH_DONE":
            self.at(t + self.jit.us(4), self.queue, dst, "PULL", key, w)
        elif kind == "PULL":
            self.asked.setdefault(key, []).append(w)
            self.answer(t, key)
        else:
            self.left[w][key >> 16] -= 1
            self.arrived[w][key >> 16] = max(t, self.arrived[w][key >> 16])

    def answer(self, t, key):
        if key in self.merged:
            for w in self.asked.pop(key, []):
                self.at(t + self.jit.us(2), self.queue, self.server(key), "PULL_DONE", key, w)

    # -- work of servers
    def work(self, t, key, w, what):
        lane = (self.job.parts[key][2], key % self.job.a.threads)
        state = self.threads.setdefault(lane, [False, []])
        state[1].append((key, what))
        if not state[0]:
            state[0] = True
            self.at(t + 2000, self.begin, lane)

    def begin(self, t, lane):
        state = self.threads[lane]
        if not state[1]:
            state[0] = False
            return
        key, what = state[1].pop(0)
        if what is None:
            self.count[key] = self.count.get(key, 0) + 1
            what = "COPY_FIRST" if self.count[key] == 1 else "SUM"
        dur = self.jit.us(5 + self.job.parts[key][1] / self.job.a.sum_rate)
        self.did[lane[0]].append((t, t + dur, key, what, lane[1]))
        self.at(t + dur, self.finish, lane, key, what)

    def finish(self, t, lane, key, what):
        if what == "COPY_MERGED":
            self.merged.add(key)
            self.answer(t, key)
        elif self.count[key] == self.job.a.workers:
            self.count[key] += 1
            self.threads[lane][1].insert(0, (key, "COPY_MERGED"))
        self.begin(t, lane)


def up(t):
    return -(-t // 1000) * 1000


def simulate(job, nsteps, seed, compute=1.0, comm=1.0):
    """Step after step: a worker begins the next when it has done one."""
    jit = Jitter(seed, job.a.jitter)
    start, steps = [BASE + jit.rng.randrange(80) * 1000 for _ in range(job.a.workers)], []
    for _ in range(nsteps):
        step = Step(job, start, jit, compute, comm)
        steps.append(step)
        start = [c[-1][1] + c[-1][2] + jit.ns(250_000) for c in step.comp]
    return steps


def spans_us(steps):
    """From the first begin of any worker to the last end of any, by step."""
    return [us(max(c[-1][1] + c[-1][2] for c in s.comp) - min(c[0][1] for c in s.comp)) for s in steps]


def scaled(job, **factors):
    """The mean of eight steps of a run with other speeds; comm: what messages take both sides."""
    each = spans_us(simulate(job, 9, job.a.seed + 2000, **factors))[1:]
    return round(sum(each) / len(each), 3)


# ---------------------------------------------------------------- files

def us(ns):
    return ns // 1000 if ns % 1000 == 0 else ns / 1000


def write_trace(path, job, steps, w, clock):
    ev = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
          {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "TensorFlow Ops"}}]
    for s, step in enumerate(steps):
        for i, t, dur in step.comp[w]:
            name = job.ops[i][0]
            ev.append({"ph": "X", "pid": 1, "tid": 2, "ts": us(clock(t)), "dur": us(dur), "name": name.split("/")[-1],
                       "args": {"group_id": str(s), "long_name": "%s:%s" % (name, name.split("/")[-1])}})
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(json.dumps({"traceEvents": ev}, separators=(",", ":")).encode())


def write_graph(path, job):
    names = [o[0] for o in job.ops] + sorted({x for e in job.edges for x in e} - {o[0] for o in job.ops})
    ids = {x: i for i, x in enumerate(names)}
    with open(path, "w") as f:
        f.write("graph [\n  directed 1\n")
        for x in names:
            f.write('  node [\n    id %d\n    label "%s"\n  ]\n' % (ids[x], x))
        for u, v in job.edges:
            f.write("  edge [\n    source %d\n    target %d\n  ]\n" % (ids[u], ids[v]))
        f.write("]\n")


def write_trial(out, job, steps):
    a, clocks = job.a, clocks_of(job)
    ids = [9 + 2 * w for w in range(a.workers)] + [8 + 2 * s for s in range(a.servers)]
    os.makedirs(os.path.join(out, "logs"))
    with open(os.path.join(out, "key_dict.txt"), "w") as f:
        for i in range(a.layers):
            keys = [str(k) for k in job.parts if k >> 16 == i]
            f.write("DistributedGradientTape_Push_Pull/BytePSPushPull.%d: %s\n" % (i, " ".join(keys)))
    for w in range(a.workers):
        d = os.path.join(out, "traces_%d" % w, "0")
        os.makedirs(d)
        write_trace(os.path.join(d, "trace.json.gz"), job, steps, w, clocks[w])
        write_graph(os.path.join(d, "dag.gml"), job)
    for n, id in enumerate(ids):
        role, k = ("worker", n) if n < a.workers else ("server", n - a.workers)
        lines = []
        for step in steps:
            for begins, list_ in (("true", step.sent[n]), ("false", step.got[n])):
                for t, kind, key, src, dst in list_:
                    push, req = ("false", "true")[KINDS[kind][0]], ("false", "true")[KINDS[kind][1]]
                    lines.append((clocks[n](t) // 1000, begins, push, req, key, ids[src], ids[dst]))
        with open(os.path.join(out, "logs", "%s_%d.log" % (role, k)), "w") as f:
            f.write("role=%s, id=%d, ip=10.0.0.%d\n" % (role, id, n + 1))
            for x in sorted(lines):
                f.write("%d %s %s %s %d %d %d\n" % x)
    for s in range(a.servers):
        with open(os.path.join(out, "logs", "sums_%d.txt" % s), "w") as f:
            lines = [x for step in steps for b, e, key, what, thread in step.did[s]
                     for x in ((b, 1, "start", key, what, thread), (e, 0, "stop", key, what, thread))]
            for t, _, word, key, what, thread in sorted(lines):
                f.write("%d: %s, %d, %s, %d\n" % (clocks[a.workers + s](t) // 1000, word, key, what, thread))


def clocks_of(job):
    offsets = [int(x) for x in job.a.offset_us.split(",")]
    n = job.a.workers + job.a.servers
    offsets = (offsets + [0] * n)[:n]
    drift = [0.0 if i == 0 else job.a.drift * (-1) ** i for i in range(n)]
    return [lambda t, o=o, d=d: t + o * 1000 + round((t - BASE) * d * 1e-6) for o, d in zip(offsets, drift)]


def truth_of(job, steps):
    each = spans_us(steps)
    return {"workers": job.a.workers, "servers": job.a.servers, "tensors": job.a.layers, "parts": len(job.parts),
            "steps": job.a.steps, "offset_us": job.a.offset_us, "iteration_us_by_step": each,
            "iteration_us_all_ranks_mean": round(sum(each) / len(each), 3),
            "what_if": {"base": scaled(job), **{"%s x%g" % (what, f): scaled(job, **{what: f})
                                                for what in ("compute", "comm") for f in (0.25, 0.5, 1.1, 2, 3)}}}


def arguments(argv=None):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", help="trial directory to make (must not exist)")
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--servers", type=int, default=2)
    p.add_argument("--threads", type=int, default=2, help="of a server")
    p.add_argument("--layers", type=int, default=6, help="layers = gradient tensors")
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jitter", type=float, default=0.02)
    p.add_argument("--skew", type=float, default=0.03, help="the last worker computes this much slower")
    p.add_argument("--partition", type=int, default=1_000_000, help="bytes of a part at most")
    p.add_argument("--out-rate", type=float, default=6000, dest="out_rate", help="bytes a node sends in a us")
    p.add_argument("--in-rate", type=float, default=5000, dest="in_rate", help="bytes a node receives in a us")
    p.add_argument("--sum-rate", type=float, default=8000, dest="sum_rate", help="bytes a thread sums in a us")
    p.add_argument("--latency", type=int, default=15, help="us")
    p.add_argument("--fifo", action="store_true", help="no priorities")
    p.add_argument("--offset-us", default="0,5000,-3200,1700,-900", dest="offset_us", help="clocks of workers, then servers")
    p.add_argument("--drift", type=float, default=0.0, help="parts per million; every second clock the other way")
    p.add_argument("--truth", help="write the true times to this file")
    return p.parse_args(argv)


def main():
    a = arguments()
    job = Job(a)
    steps = simulate(job, a.steps, a.seed + 1000)
    write_trial(a.out, job, steps)
    truth = truth_of(job, steps)
    if a.truth:
        with open(a.truth, "w") as f:
            json.dump(truth, f, indent=1)
            f.write("\n")
    print("%d workers, %d servers, %d parts, true iteration %.3f us"
          % (a.workers, a.servers, truth["parts"], truth["iteration_us_all_ranks_mean"]))


if __name__ == "__main__":
    main()
