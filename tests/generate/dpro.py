#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make a synthetic dPRO (byteprofile-analysis) trial directory with known truth.

    dpro.py OUT --preset small            # 2 hosts x 2 GPUs
    dpro.py OUT --hosts 4 --gpus 8 --layers 41 --fw 300 --bw 600 ...

The directory looks like a TensorFlow + Horovod + NCCL (ring) recording:

    OUT/host<h>/<local rank>/trace.json.gz            TF profiler, thread "TensorFlow Ops"
                             comm.json                Horovod timeline (B/E pairs)
                             comm_detail.json         SEND/RECV of the ring, one per
                                                      loop, channel, chunk step, slice
                             nccl_rank_graph.json     rings and trees as NCCL logs them
                             metadata.json            op -> type, inputs, outputs (shapes)
                             gradient_name_list.json  tensor id -> gradient name
                             dag.gml                  op graph (kept for completeness)
    OUT/graphdef_dag.gml     the same op graph with Horovod's own names for the
                             communication ops (dPRO: DPRO_GRAPHDEF_DFG_PATH)

Every time stamp comes from a causal simulation in integer nanoseconds, so the true
iteration time is known; --truth FILE writes it.  Nothing here is read from a clock
and the random numbers are seeded: equal arguments give equal bytes.

Physics
  compute   one in-order stream per rank, a short launch gap after every op; updates
            run after the last backward op, in the order their gradients arrive
  Horovod   each rank wakes every CYCLE us; a group is agreed when its last rank has
            woken with all tensors ready (Sync); agreed groups run one after another
            per rank: QUEUE, [MEMCPY_IN], NCCL, [MEMCPY_OUT] (copies only when fused)
  NCCL      ring all-reduce, 2(N-1) steps, odd channels run the ring backwards
    proxy   one thread per rank moves all data: SENDs and RECVs of all channels take
            turns (first ready, first served), RECV starts after SEND ended
    duplex  every channel has its own send and receive side; RECV is posted early and
            ends one wire latency after the peer's SEND
  clocks    every host adds a constant offset to all its time stamps
"""
import argparse
import gzip
import heapq
import json
import os
import random

CYCLE = 500                 # us, Horovod cycle
BASE = 86_400_000_000_000   # ns, first time stamp of the recording (before offsets)
BATCH = 32

PRESETS = {
    "small": dict(hosts=2, gpus=2, layers=8, steps=5, seed=11, slices=2, fuse_kb=3000),
    "medium": dict(hosts=2, gpus=4, layers=30, fw=125, bw=145, steps=4, seed=29, fuse_kb=5000),
    "r8": dict(hosts=1, gpus=8, layers=41, fw=300, bw=600, steps=2, seed=3, fuse_kb=0),
    "r16": dict(hosts=2, gpus=8, layers=41, fw=300, bw=600, steps=2, seed=3, fuse_kb=0),
    "r32": dict(hosts=4, gpus=8, layers=41, fw=300, bw=600, steps=2, seed=3, fuse_kb=0),
}


# ---------------------------------------------------------------- model graph

class Op:
    """One node of the local graph. `mean` is its duration in ns, `kind` FW, BW, COMM or UPD."""

    def __init__(self, name, op, kind, ins, outs, mean=0, tensor=None):
        self.name, self.op, self.kind = name, op, kind
        self.ins, self.outs, self.mean, self.tensor = ins, outs, mean, tensor


def var(name, *shape):
    return {"name": name, "shape": list(shape), "dtype": "float32"}


def build_model(layers, fw_target, bw_target, rng):
    """A residual network of `layers`-1 convolutions and one dense layer.

    Layer i owns gradient tensor i.  Elementwise ops are spread over the layers until
    the wanted numbers of forward and backward ops are reached (0: no extra ops).
    Returns the ops in program order and the gradient names by tensor id.
    """
    convs = layers - 1
    shortcut = [i for i in range(convs) if i % 3 == 1]
    base_fw = 3 * convs + 2 * len(shortcut) + 4
    base_bw = 4 * convs + 2 * len(shortcut) + 4
    extra_fw = max(0, fw_target - base_fw)
    extra_bw = max(0, bw_target - base_bw)
    per = lambda total, i: total // convs + (1 if i < total % convs else 0)

    def ns(lo, hi):
        return rng.randrange(lo, hi) * 1000 + rng.randrange(1000)

    fwd, grads, ops = [], [], []
    x = var("input/images:0", BATCH, 56, 56, 32)
    width = [32 * (2 + 9 * i // convs) for i in range(convs)]      # 64 .. 320 channels
    saved = []                                                     # per layer: its variables
    for i in range(convs):
        cin, cout = x["shape"][3], width[i]
        p = "net/layer%d" % i
        size = x["shape"][1]
        kernel = var(p + "/conv/Conv2D/ReadVariableOp:0", 3, 3, cin, cout)
        act = lambda leaf, c=cout, s=size: var("%s/%s:0" % (p, leaf), BATCH, s, s, c)
        first = x
        cost = ns(180, 520)
        out = act("conv/Conv2D")
        fwd.append(Op(p + "/conv/Conv2D", "Conv2D", "FW", [x, kernel], [out], cost))
        x = out
        for leaf, kind, lo, hi in (("bn/FusedBatchNormV3", "FusedBatchNormV3", 40, 90),
                                   ("relu/Relu", "Relu", 20, 45)):
            out = act(leaf)
            fwd.append(Op("%s/%s" % (p, leaf), kind, "FW", [x], [out], ns(lo, hi)))
            x = out
        for k in range(per(extra_fw, i)):
            out = act("scale_%d/Mul" % k)
            fwd.append(Op("%s/scale_%d/Mul" % (p, k), "Mul", "FW", [x], [out], ns(12, 40)))
            x = out
        if i in shortcut:                   # a second branch from the layer's input
            side = act("short/Conv2D_like")
            fwd.append(Op(p + "/short/Conv2D_like", "Tile", "FW", [first], [side], ns(30, 60)))
            out = act("join/AddV2")
            fwd.append(Op(p + "/join/AddV2", "AddV2", "FW", [x, side], [out], ns(25, 50)))
            x = out
        saved.append((p, first, kernel, cost, x))
    cin, cout = width[-1], 1000
    pooled, dense = var("net/pool/Mean:0", BATCH, cin), var("net/fc/MatMul:0", BATCH, cout)
    kernel = var("net/fc/MatMul/ReadVariableOp:0", cin, cout)
    biased, loss = var("net/fc/BiasAdd:0", BATCH, cout), var("loss/xent:0", BATCH)
    fwd += [Op("net/pool/Mean", "Mean", "FW", [x], [pooled], ns(30, 60)),
            Op("net/fc/MatMul", "MatMul", "FW", [pooled, kernel], [dense], ns(60, 120)),
            Op("net/fc/BiasAdd", "BiasAdd", "FW", [dense], [biased], ns(12, 24)),
            Op("loss/xent", "SparseSoftmaxCrossEntropyWithLogits", "FW", [biased], [loss], ns(30, 60))]

    back, grads = [], [None] * layers
    t = "gradient_tape/"
    g = var(t + "loss/xent/mul:0", BATCH, cout)
    back.append(Op(t + "loss/xent/mul", "Mul", "BW", [loss], [g], ns(15, 30)))
    wg = var(t + "net/fc/MatMul/MatMul_1:0", cin, cout)
    back.append(Op(t + "net/fc/MatMul/MatMul_1", "MatMul", "BW", [pooled, g], [wg], ns(60, 120)))
    grads[layers - 1] = wg
    xg = var(t + "net/fc/MatMul/MatMul:0", BATCH, cin)
    back.append(Op(t + "net/fc/MatMul/MatMul", "MatMul", "BW", [g, kernel], [xg], ns(60, 120)))
    g = var(t + "net/pool/truediv:0", *x["shape"])
    back.append(Op(t + "net/pool/truediv", "RealDiv", "BW", [xg], [g], ns(25, 50)))
    for i in reversed(range(convs)):
        p, first, kernel, cost, last = saved[i]
        q, shape = t + p, last["shape"]
        grad = lambda leaf: var("%s/%s:0" % (q, leaf), *shape)
        side = None
        if i in shortcut:
            side = var(q + "/short/Slice:0", *first["shape"])
            back.append(Op(q + "/short/Slice", "Slice", "BW", [g], [side], ns(30, 60)))
        for k in reversed(range(per(extra_bw, i))):
            out = grad("scale_%d/Mul" % k)
            back.append(Op("%s/scale_%d/Mul" % (q, k), "Mul", "BW", [g], [out], ns(12, 40)))
            g = out
        for leaf, kind, lo, hi in (("relu/ReluGrad", "ReluGrad", 25, 50),
                                   ("bn/FusedBatchNormGradV3", "FusedBatchNormGradV3", 60, 120)):
            out = grad(leaf)
            back.append(Op("%s/%s" % (q, leaf), kind, "BW", [g], [out], ns(lo, hi)))
            g = out
        wg = var(q + "/conv/Conv2D/Conv2DBackpropFilter:0", *kernel["shape"])
        back.append(Op(q + "/conv/Conv2D/Conv2DBackpropFilter", "Conv2DBackpropFilter", "BW",
                       [first, g], [wg], cost * 11 // 10))
        grads[i] = wg
        xg = var(q + "/conv/Conv2D/Conv2DBackpropInput:0", *first["shape"])
        back.append(Op(q + "/conv/Conv2D/Conv2DBackpropInput", "Conv2DBackpropInput", "BW",
                       [g, kernel], [xg], cost))
        g = xg
        if side:
            out = var(q + "/join/AddN:0", *first["shape"])
            back.append(Op(q + "/join/AddN", "AddN", "BW", [g, side], [out], ns(25, 50)))
            g = out

    comm, upd, done = [], [], []
    for i in range(layers):
        red = dict(grads[i], name="DistributedGradientTape_Allreduce/BytePSPushPull_%d:0" % i)
        comm.append(Op(red["name"][:-2], "HorovodAllreduce", "COMM", [grads[i]], [red], 0, i))
        u = "SGD/SGD/update_%d/ResourceApplyGradientDescent" % i
        done.append(var(u + ":0"))
        upd.append(Op(u, "ResourceApplyGradientDescent", "UPD", [red], [done[-1]], ns(9, 28), i))
    upd.append(Op("SGD/SGD/AssignAddVariableOp", "AssignAddVariableOp", "UPD", done, [], 8000))
    ops = fwd + back + comm + upd
    return ops, [g["name"] for g in grads], [bytes_of(g) for g in grads]


def bytes_of(v):
    n = 4
    for d in v["shape"]:
        n *= d
    return n


def make_groups(sizes, fuse_bytes):
    """Contiguous tensor groups in the order backward makes them ready.

    The first group is always a single tensor: dPRO stops when the first communication
    event of a step belongs to a fused group.  Tensor 0 is always fused: dPRO stops on
    a lone tensor 0 that has MEMCPY_OUT events (ours would not have them).
    """
    n = len(sizes)
    groups, cur, total = [[n - 1]], [], 0
    for i in reversed(range(n - 1)):
        cur.append(i)
        total += sizes[i]
        if total >= fuse_bytes and i > 1:
            groups.append(cur)
            cur, total = [], 0
    groups.append(cur)
    return groups                       # ids descending, as Horovod sees them


def given_groups(text, layers):
    """Groups written as "7,5+6,0+1+2+3+4"; every tensor once, in the order to run them."""
    groups = [sorted(map(int, g.split("+")), reverse=True) for g in text.split(",") if g]
    if groups and sorted(sum(groups, [])) != list(range(layers)):
        raise SystemExit("--groups must name every tensor 0..%d once" % (layers - 1))
    return groups


# ---------------------------------------------------------------- simulation

class Job:
    """Fixed description of the job: graph, groups, ring, mean durations."""

    def __init__(self, a):
        rng = random.Random(a.seed)
        self.a, self.n = a, a.hosts * a.gpus
        self.ops, self.grad_names, self.sizes = build_model(a.layers, a.fw, a.bw, rng)
        self.groups = given_groups(a.groups, a.layers) or make_groups(self.sizes, a.fuse_kb * 1000)
        self.speed = [1.0 + a.skew * (r == self.n - 1) for r in range(self.n)]
        self.phase = [rng.randrange(CYCLE) * 1000 for _ in range(self.n)]
        self.steps2 = 2 * (self.n - 1)
        made_by = {o.outs[0]["name"]: i for i, o in enumerate(self.ops) if o.outs}
        self.maker = [made_by[g] for g in self.grad_names]      # op index of tensor i
        self.loops = [1 + (sum(self.sizes[t] for t in g) > 3_000_000) for g in self.groups]

    def host(self, r):
        return r // self.a.gpus

    def next(self, r, c):
        return (r + (1 if c % 2 == 0 else -1)) % self.n

    def wire_us(self, nbytes, src, dst):
        """Mean microseconds to push one slice over the link src -> dst."""
        near = self.host(src) == self.host(dst)
        return (4 + nbytes / 5000.0) if near else (9 + nbytes / 2200.0)


class Jitter:
    """Multiplies mean durations by a clipped normal factor; sigma 0 leaves them alone."""

    def __init__(self, seed, sigma):
        self.rng, self.sigma = random.Random(seed), sigma

    def ns(self, mean):
        return max(1, round(mean * self.factor()))

    def us(self, mean_us):              # whole microseconds, returned in ns
        return max(1, round(mean_us * self.factor())) * 1000

    def below(self, n):                 # 0 .. n-1, or the middle without noise
        return self.rng.randrange(n) if self.sigma else n // 2

    def factor(self):
        if not self.sigma:
            return 1.0
        return 1.0 + self.sigma * max(-3.0, min(3.0, self.rng.gauss(0, 1)))


def ring_proxy(job, g, start, jit, out):
    """Ring all-reduce of group g, one mover per rank. Returns finish time per rank."""
    a, n = job.a, job.n
    loops = job.loops[g]
    part = sum(job.sizes[t] for t in job.groups[g]) / (a.channels * loops * n * a.slices)
    heap, seq = [], 0
    busy, wait, finish = [False] * n, [[] for _ in range(n)], list(start)

    def put(t, what):
        nonlocal seq
        heapq.heappush(heap, (t, seq, what))
        seq += 1

    def begin(t, task):
        kind, r, l, c, k, s = task
        if kind == "SEND":
            mean = job.wire_us(part, r, job.next(r, c))
        else:
            mean = 0.8 * job.wire_us(part, (r - (1 if c % 2 == 0 else -1)) % n, r)
        dur = jit.us(mean)
        busy[r] = True
        out[r].append((kind, l, c, k, s, t, dur))
        put(t + dur, ("end", task))

    for r in range(n):
        for l in range(loops):
            for s in range(a.slices):
                for c in range(a.channels):
                    put(start[r], ("ready", ("SEND", r, l, c, 0, s)))
    while heap:
        t, _, (what, task) = heapq.heappop(heap)
        kind, r, l, c, k, s = task
        if what == "ready":
            if busy[r]:
                wait[r].append(task)
            else:
                begin(t, task)
            continue
        busy[r] = False
        finish[r] = max(finish[r], t)
        if kind == "SEND":
            peer = job.next(r, c)
            put(max(t, start[peer]), ("ready", ("RECV", peer, l, c, k, s)))
        elif k + 1 < job.steps2:
            put(t, ("ready", ("SEND", r, l, c, k + 1, s)))
        if wait[r]:
            begin(t, wait[r].pop(0))
    return finish


def ring_duplex(job, g, start, jit, out):
    """Ring all-reduce of group g with full-duplex channels. Returns finish time per rank."""
    a, n = job.a, job.n
    loops = job.loops[g]
    part = sum(job.sizes[t] for t in job.groups[g]) / (a.channels * loops * n * a.slices)
    finish = list(start)
    for c in range(a.channels):
        send_free, recv_free = list(start), list(start)
        for l in range(loops):
            have = [[start[r]] * a.slices for r in range(n)]    # data of the step before
            for k in range(job.steps2):
                got = [[0] * a.slices for _ in range(n)]
                for s in range(a.slices):
                    for r in range(n):
                        peer = job.next(r, c)
                        t = max(have[r][s], send_free[r])
                        dur = jit.us(job.wire_us(part, r, peer))
                        send_free[r] = t + dur
                        out[r].append(("SEND", l, c, k, s, t, dur))
                        lat = jit.us(2 if job.host(r) == job.host(peer) else 12)
                        post = recv_free[peer]
                        end = max(t + dur, post) + lat
                        recv_free[peer] = got[peer][s] = end
                        out[peer].append(("RECV", l, c, k, s, post, end - post))
                        finish[r] = max(finish[r], t + dur)
                        finish[peer] = max(finish[peer], end)
                have = got
    return finish


def simulate_step(job, start, jit):
    """One training step from the ranks' start times. Times in ns on one true clock.

    Returns per rank: comp [(op index, start, dur)], sync [(group, start, end)],
    kern [(group, phase, start, dur)], ring [(group, SEND/RECV, l, c, k, s, start, dur)].
    """
    a, n = job.a, job.n
    up = lambda t: -(-t // 1000) * 1000         # to whole microseconds
    comp = [[] for _ in range(n)]
    sync, kern, ring = [[] for _ in range(n)], [[] for _ in range(n)], [[] for _ in range(n)]
    ends, free = [{} for _ in range(n)], list(start)
    for r in range(n):
        for i, o in enumerate(job.ops):
            if o.kind in ("FW", "BW"):
                dur = jit.ns(o.mean * job.speed[r])
                comp[r].append((i, free[r], dur))
                ends[r][i] = free[r] + dur
                free[r] += dur + jit.ns(3000)
    agreed, lane, got = 0, list(start), [{} for _ in range(n)]
    for g, ids in enumerate(job.groups):
        tick = []
        for r in range(n):
            ready = up(max(ends[r][job.maker[t]] for t in ids))
            tick.append(job.phase[r] + -(-(ready - job.phase[r]) // (CYCLE * 1000)) * CYCLE * 1000)
        agreed = max(max(tick) + jit.us(60), agreed + 20_000)
        begin = []
        for r in range(n):
            first = max(tick[r], sync[r][-1][2] + 2000) if sync[r] else tick[r]
            end = agreed + jit.below(7) * 1000
            sync[r].append((g, min(first, end), end))
            t = max(end, up(lane[r])) + 1000
            for phase, mean in (("QUEUE", 18), ("MEMCPY_IN_FUSION_BUFFER", 6 + sum(
                    job.sizes[i] for i in ids) / 300e3)):
                if phase == "QUEUE" or len(ids) > 1:
                    dur = jit.us(mean)
                    kern[r].append((g, phase, t, dur))
                    t += dur
            begin.append(t)
        part = [[] for _ in range(n)]
        run = ring_proxy if a.transport == "proxy" else ring_duplex
        finish = run(job, g, begin, jit, part)
        for r in range(n):
            ring[r] += [(g,) + e for e in part[r]]
            kern[r].append((g, "NCCL_ALLREDUCE", begin[r], finish[r] - begin[r]))
            t = finish[r]
            if len(ids) > 1:
                dur = jit.us(6 + sum(job.sizes[i] for i in ids) / 300e3)
                kern[r].append((g, "MEMCPY_OUT_FUSION_BUFFER", t, dur))
                t += dur
            lane[r] = t
            for i in ids:
                got[r][i] = t
    last = len(job.ops) - 1
    for r in range(n):
        todo = sorted((got[r][o.tensor], i) for i, o in enumerate(job.ops)
                      if o.kind == "UPD" and i != last)
        for ready, i in todo + [(0, last)]:
            t = max(free[r], ready + 5000 if ready else 0)
            dur = jit.ns(job.ops[i].mean * job.speed[r])
            comp[r].append((i, t, dur))
            free[r] = t + dur + jit.ns(3000)
    return comp, sync, kern, ring


def simulate(job):
    """All steps; every rank starts a step when it has finished the one before."""
    jit = Jitter(job.a.seed + 1000, job.a.jitter)
    start = [BASE + jit.below(80) * 1000 for _ in range(job.n)]
    steps = []
    for _ in range(job.a.steps):
        step = simulate_step(job, start, jit)
        steps.append(step)
        start = [c[-1][1] + c[-1][2] + jit.ns(250_000) for c in step[0]]
    return steps


# ---------------------------------------------------------------- files

def us(ns):
    return ns // 1000 if ns % 1000 == 0 else ns / 1000


def dump(path, obj, pack=False):
    text = json.dumps(obj, separators=(",", ":"))
    if pack:
        with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
            z.write(text.encode())
    else:
        with open(path, "w") as f:
            f.write(text + "\n")


def write_trace(path, job, steps, r, off):
    ev = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
          {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "Steps"}},
          {"ph": "M", "pid": 1, "tid": 2, "name": "thread_name", "args": {"name": "TensorFlow Ops"}},
          {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
          {"ph": "M", "pid": 701, "tid": 9, "name": "thread_name", "args": {"name": "python3"}}]
    for s, (comp, _, _, _) in enumerate(steps):
        first, end = comp[r][0][1], comp[r][-1][1] + comp[r][-1][2]
        ev.append({"ph": "X", "pid": 701, "tid": 9, "ts": us(first - 90_000 + off), "dur": us(end - first),
                   "name": "train", "args": {"group_id": str(s), "step_num": str(s)}})
        ev.append({"ph": "X", "pid": 1, "tid": 1, "ts": us(first + off), "dur": us(end - first),
                   "name": str(s), "args": {"group_id": str(s)}})
        ev.append({"ph": "X", "pid": 1, "tid": 2, "ts": us(first - 20_000 + off), "dur": 6,
                   "name": "Cast", "args": {"group_id": str(s), "long_name": "Cast:Cast"}})
        for i, t, dur in comp[r]:
            o = job.ops[i]
            ev.append({"ph": "X", "pid": 1, "tid": 2, "ts": us(t + off), "dur": us(dur), "name": o.op,
                       "args": {"group_id": str(s),
                                "long_name": "StatefulPartitionedCall/%s:%s" % (o.name, o.op)}})
    ev.append({})
    dump(path, {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": ev}, True)


def write_comm(path, job, steps, r, off):
    """Horovod timeline: one pid per tensor, one pid for Sync; copies are per tensor."""
    n = len(job.sizes)
    ev = [{"name": "process_name", "ph": "M", "pid": i + 1, "args": {"name": "horovod_allreduce.%d_0" % i}}
          for i in range(n)]
    ev.append({"name": "process_name", "ph": "M", "pid": n + 1, "args": {"name": "Sync"}})
    body = []

    def b(pid, name, t):
        body.append({"ph": "B", "name": name, "ts": us(t + off), "pid": pid})

    def e(pid, t):
        body.append({"ph": "E", "ts": us(t + off), "pid": pid})

    for _, sync, kern, _ in steps:
        for g, t0, t1 in sync[r]:
            ids = job.groups[g]
            for i in ids:
                b(n + 1, str(i), t0)
                b(i + 1, "NEGOTIATE_ALLREDUCE", t0)
            for i in ids:
                e(n + 1, t1)
                e(i + 1, t1)
            mine = [k for k in kern[r] if k[0] == g]
            for i in ids:
                b(i + 1, "ALLREDUCE", mine[0][2])
            for _, phase, t, dur in mine:
                for i in ids:
                    b(i + 1, phase, t)
                for i in ids:
                    e(i + 1, t + dur)
            for i in ids:
                e(i + 1, mine[-1][2] + mine[-1][3])
    body.sort(key=lambda x: x["ts"])            # stable: nesting is kept
    with open(path, "w") as f:                  # one event per line, as Horovod writes it
        f.write("[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in ev + body) + "\n]\n")


def write_detail(path, job, steps, r, off):
    """SEND/RECV events. Odd ranks carry a <<mark>> in the name, which readers must drop."""
    mark = "<<%d>>" % r if r % 2 else ""
    ev = []
    for _, _, _, ring in steps:
        for g, kind, l, c, k, s, t, dur in sorted(ring[r], key=lambda x: (x[6], x[1], x[3])):
            ids = "+".join(map(str, job.groups[g]))
            ev.append('{"name":"horovod_allreduce%s.%s.%s","cat":"Comm","ph":"X","ts":%d,"dur":%d,"pid":"comm_detail",'
                      '"tid":"%s","args":{"loopId":%d,"channelId":%d,"chunkId":%d,"sliceId":%d}}'
                      % (mark, ids, kind, us(t + off), us(dur), kind, l, c, k, s))
    with open(path, "w") as f:
        f.write('{"traceEvents":[\n' + ",\n".join(ev) + "\n]}\n")


def write_rings(path, job, r):
    """Connections of rank r in NCCL's log words; a chain of ranks as the tree."""
    bus = lambda q: "%d[%x000]" % (q, 2 + q % job.a.gpus)
    rings, tree = {}, []
    for c in range(job.a.channels):
        nxt, prv, con = job.next(r, c), (r - (1 if c % 2 == 0 else -1)) % job.n, []
        if job.host(prv) != job.host(r):
            con.append("%s -> %s [receive] via NET/Socket/0" % (bus(prv), bus(r)))
        if job.host(nxt) != job.host(r):
            con.append("%s -> %s [send] via NET/Socket/0" % (bus(r), bus(nxt)))
        else:
            con.append("%s -> %s via direct shared memory" % (bus(r), bus(nxt)))
        rings[str(c)] = ",".join(con)
        down, parent = (r + 1 if r + 1 < job.n else -1), r - 1
        tree.append("[%d] %d/-1/-1->%d->%d|%d->%d->%d/-1/-1" % (c, down, r, parent, parent, r, down))
    dump(path, {"Tree": {"-1": " ".join(tree)}, "Ring": rings, "RealRing": rings})


def edges_of(ops):
    maker = {v["name"]: o.name for o in ops for v in o.outs}
    return [(maker[v["name"]], o.name) for o in ops for v in o.ins if v["name"] in maker]


def write_gml(path, ops, rename):
    ids = {o.name: i for i, o in enumerate(ops)}
    with open(path, "w") as f:
        f.write("graph [\n  directed 1\n")
        for o in ops:
            f.write('  node [\n    id %d\n    label "%s"\n  ]\n' % (ids[o.name], rename(o)))
        for u, v in edges_of(ops):
            f.write("  edge [\n    source %d\n    target %d\n  ]\n" % (ids[u], ids[v]))
        f.write("]\n")


def write_trial(out, job, steps, offsets):
    a = job.a
    for r in range(job.n):
        d = os.path.join(out, "host%d" % job.host(r), str(r % a.gpus))
        os.makedirs(d)
        off = offsets[job.host(r)] * 1000
        at = lambda name: os.path.join(d, name)
        write_trace(at("trace.json.gz"), job, steps, r, off)
        write_comm(at("comm.json"), job, steps, r, off)
        write_detail(at("comm_detail.json"), job, steps, r, off)
        write_rings(at("nccl_rank_graph.json"), job, r)
        dump(at("metadata.json"), {o.name: {"op": o.op, "input": o.ins, "output": o.outs} for o in job.ops})
        dump(at("gradient_name_list.json"),
             {"gradient_name_list": job.grad_names, "model_name": "toyresnet"})
        write_gml(at("dag.gml"), job.ops, lambda o: o.name)
    write_gml(os.path.join(out, "graphdef_dag.gml"), job.ops, lambda o: o.name if o.kind != "COMM" else
              "DistributedGradientTape_Allreduce/cond_%d/HorovodAllreduce.%d_0" % (o.tensor, o.tensor))


def truth_of(job, steps, offsets):
    """The answers: everything in microseconds on the true clock."""
    per_step, makespan = [], []
    for comp, _, _, _ in steps:
        spans = [(c[0][1], c[-1][1] + c[-1][2]) for c in comp]
        per_step.append([us(e - s) for s, e in spans])
        makespan.append(us(max(e for _, e in spans) - min(s for s, _ in spans)))
    first = [s[0][0][0][1] for s in steps]
    quiet = simulate_step(job, [0] * job.n, Jitter(0, 0))[0]
    kinds = {k: sum(o.kind == k for o in job.ops) for k in ("FW", "BW", "UPD", "COMM")}
    mean = lambda x: round(sum(x) / len(x), 3)
    return {
        "transport": job.a.transport, "hosts": job.a.hosts, "gpus_per_host": job.a.gpus,
        "steps": job.a.steps, "seed": job.a.seed, "jitter_sigma": job.a.jitter,
        "slow_last_rank": job.a.skew, "channels": job.a.channels, "slices": job.a.slices,
        "ops": kinds, "tensor_bytes": job.sizes,
        "groups": ["+".join(map(str, sorted(g))) for g in job.groups], "group_loops": job.loops,
        "send_recv_events_per_step": sum(len(x) for x in steps[0][3]),
        "host_clock_offset_us": offsets,
        "iteration_us_by_step_and_rank": per_step,
        "iteration_us_mean": mean([x for s in per_step for x in s]),
        "iteration_us_all_ranks_by_step": makespan,
        "iteration_us_all_ranks_mean": mean(makespan),
        "start_to_start_us_rank0": [us(b - x) for x, b in zip(first, first[1:])],
        "iteration_us_without_jitter": us(max(c[-1][1] + c[-1][2] for c in quiet)),
        "compute_us_by_rank_mean": [mean([us(sum(d for i, _, d in s[0][r] if job.ops[i].kind != "UPD"))
                                          for s in steps]) for r in range(job.n)],
        "comm_busy_us_by_rank_mean": [mean([us(sum(k[3] for k in s[2][r])) for s in steps])
                                      for r in range(job.n)],
    }


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", help="trial directory to make (must not exist)")
    p.add_argument("--preset", choices=sorted(PRESETS))
    p.add_argument("--hosts", type=int, default=2)
    p.add_argument("--gpus", type=int, default=2, help="local ranks per host")
    p.add_argument("--layers", type=int, default=8, help="layers = gradient tensors (at least 4)")
    p.add_argument("--fw", type=int, default=0, help="forward ops to reach (0: no extra ops)")
    p.add_argument("--bw", type=int, default=0, help="backward ops to reach")
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jitter", type=float, default=0.02, help="relative sigma of every duration")
    p.add_argument("--skew", type=float, default=0.03, help="the last rank computes this much slower")
    p.add_argument("--channels", type=int, default=2)
    p.add_argument("--slices", type=int, default=1)
    p.add_argument("--fuse-kb", type=int, default=3000, dest="fuse_kb", help="tensor fusion threshold")
    p.add_argument("--groups", default="", help='tensor groups instead, e.g. "7,5+6,0+1+2+3+4"')
    p.add_argument("--transport", choices=("proxy", "duplex"), default="proxy")
    p.add_argument("--offset-us", default="0,5000,-3200,1700", dest="offset_us", help="clock offset by host")
    p.add_argument("--truth", help="write the true times to this file")
    preset = p.parse_known_args()[0].preset
    if preset:
        p.set_defaults(**PRESETS[preset])
    a = p.parse_args()
    if a.layers < 4 or a.hosts * a.gpus < 2 or a.steps < 2:
        p.error("need at least 4 layers, 2 ranks and 2 steps")
    offsets = [int(x) for x in a.offset_us.split(",")]
    offsets = (offsets + [0] * a.hosts)[:a.hosts]
    job = Job(a)
    steps = simulate(job)
    write_trial(a.out, job, steps, offsets)
    truth = truth_of(job, steps, offsets)
    if a.truth:
        with open(a.truth, "w") as f:
            json.dump(truth, f, indent=1)
            f.write("\n")
    print("%s: %d ranks, ops %s, groups %s, true iteration %.3f us" % (
        os.path.basename(a.out), job.n, truth["ops"], truth["groups"], truth["iteration_us_mean"]))


if __name__ == "__main__":
    main()
