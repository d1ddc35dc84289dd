# SPDX-License-Identifier: Apache-2.0
"""Kineto traces of runs whose truth is known: pipelines, rings of sends and receives, exchanges with unequal parts.

Times are in microseconds of one clock; clocks of hosts are applied when a trace is written. A rank is a compute stream and one
stream for communication; receives are posted at once, sends when their data is there, as NCCL's kernels wait for each other."""
import json
import random
from pathlib import Path

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


class Rank:
    """Events of one rank. The host launches everything early enough: what counts are streams."""

    def __init__(self, number, world, host, device, clock=(0.0, 0.0)):
        self.number, self.world, self.host, self.device, self.clock = number, world, host, device, clock
        self.events, self.correlation, self.host_us = [], 0, 0.0
        self.ahead = float("inf")  # how far the host runs ahead of the device
        self.sets = []  # (when, by how much) its clock is set during the run

    def _add(self, cat, name, tid, begin, dur, **args):
        offset, ppm = self.clock
        offset += sum(by for at, by in self.sets if begin >= at)
        pid = self.device if cat == "kernel" else 1000 + self.number
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": round(1e6 + begin * (1 + ppm * 1e-6) + offset, 3),
                            "dur": round(max(dur, 0.05), 3), "args": args})

    def _launch(self, begin):
        self.correlation += 1
        self.host_us = max(self.host_us + 1.0, min(begin - 5.0, self.host_us + 50.0), begin - self.ahead)
        self._add("cuda_runtime", "cudaLaunchKernel", 1, self.host_us, 0.5, correlation=self.correlation)
        return self.correlation

    def step(self, number, begin, end):
        self._add("user_annotation", "ProfilerStep#%d" % number, 1, begin, end - begin)

    def compute(self, name, begin, end):
        self._add("kernel", name, 7, begin, end - begin, correlation=self._launch(begin), stream=7, device=self.device)

    def _peers(self, messages, ranks, elements):
        for sends, peer in messages:
            yield {"Collective name": "send" if sends else "recv", "Dst Rank" if sends else "Src Rank": peer, "In msg nelems": elements,
                   "Out msg nelems": elements, "dtype": "BFloat16", "Group size": len(ranks), "Process Group Name": "pp",
                   "Process Group Ranks": str(list(ranks))}

    def messages(self, messages, ranks, begin, end, elements=1 << 20, grouped=False, stream=20):
        """One kernel for a list of (sends, peer). Grouped: each is an operator on the host before the launch; else the kernel says it."""
        args = list(self._peers(messages, ranks, elements))
        if grouped:
            self.host_us += 1.0
            for a in args:
                self._add("cpu_op", "record_param_comms", 1, self.host_us, 0.4, **a)
                self.host_us += 0.5
            args = [{}]
        self._add("kernel", SEND_RECV, stream, begin, end - begin, correlation=self._launch(self.host_us + 6), stream=stream, device=self.device,
                  **args[0])

    def collective(self, kind, begin, end, ranks, group="0", stream=21, elements=6553600, own=None):
        names = {"allreduce": "AllReduce_Sum_f32_RING_LL", "all_to_allv": "SendRecv"}
        self._add("kernel", "ncclDevKernel_%s" % names[kind], stream, begin, end - begin, correlation=self._launch(begin), stream=stream,
                  device=self.device, **{"Collective name": kind, "In msg nelems": own or elements, "Out msg nelems": elements,
                                         "Group size": len(ranks), "dtype": "Float", "Process Group Name": group,
                                         "Process Group Ranks": str(list(ranks))})

    def mpi(self, call, what, begin, end, ranks, size, category="collective_comm", **more):
        """A call of MPI as `record` writes it: of one that waits for several operations, a span for each."""
        self._add(category, call, 1, begin, end - begin, **{"Collective name": what, "Process Group Name": "MPI_COMM_WORLD", "Group size": ranks,
                                                            "In msg nelems": size, "dtype": "Byte", "bytes": size, **more})

    def write(self, folder, gpu="NVIDIA H100 80GB HBM3"):
        doc = {"schemaVersion": 1, "deviceProperties": [{"id": self.device, "name": gpu}], "traceEvents": self.events,
               "distributedInfo": {"backend": "nccl", "rank": self.number, "world_size": self.world}}
        if self.host:
            doc["hostname"] = self.host
        Path(folder, "rank%d.json" % self.number).write_text(json.dumps(doc))


def schedule(kind, stage, stages, batches):
    """The order of a stage's work: ("F" or "B", micro-batch)."""
    if kind == "gpipe":
        return [("F", m) for m in range(batches)] + [("B", m) for m in range(batches)]
    first = min(stages - 1 - stage, batches)
    order = [("F", m) for m in range(first)]
    for m in range(first, batches):
        order += [("F", m), ("B", m - first)]
    return order + [("B", m) for m in range(batches - first, batches)]


def pipeline(folder, seed, kind="1f1b", stages=4, batches=6, steps=2, slow=None, grouped=False, per_host=2, offset=0.0):
    """Returns {(stage, "F" or "B", micro-batch): what the stage waited for the data, summed over the steps, in us}."""
    rng = random.Random(seed)
    clocks = [(0.0, 0.0)] + [(rng.uniform(0.4, 1) * rng.choice((-1, 1)) * offset, rng.uniform(-20, 20) if offset else 0.0)
                             for _ in range(stages)]
    ranks = [Rank(s, stages, "node%d" % (s // per_host), s % per_host, clocks[s // per_host]) for s in range(stages)]
    forward, transfer, everyone = rng.uniform(300, 400), 20.0, range(stages)
    free, waited, start = [0.0] * stages, {}, 0.0
    orders = [schedule(kind, s, stages, batches) for s in range(stages)]
    for step in range(steps):
        sent, at, begun = {}, [0] * stages, list(free)  # sent: (from, to, what, m) -> [send begin, post of the receive]
        while any(at[s] < len(orders[s]) for s in range(stages)):
            before = list(at)
            for s in range(stages):
                if at[s] == len(orders[s]):
                    continue
                what, m = orders[s][at[s]]
                source = s - 1 if what == "F" else s + 1
                begin = free[s]
                if 0 <= source < stages:
                    if (source, what, m) not in sent:
                        continue
                    ready = sent[source, what, m]
                    end = max(ready, free[s]) + transfer
                    waited[s, what, m] = waited.get((s, what, m), 0.0) + max(0.0, ready - free[s])
                    ranks[s].messages([(False, source)], everyone, free[s], end, grouped=grouped)
                    ranks[source].messages([(True, s)], everyone, ready, end, grouped=grouped, stream=22 if what == "F" else 23)
                    begin = end
                length = forward * (1 if what == "F" else 2) * rng.uniform(0.97, 1.03) * (1.4 if s == slow else 1)
                ranks[s].compute("gemm_%s" % what, begin, begin + length)
                free[s] = begin + length
                sent[s, what, m] = free[s]
                at[s] += 1
            assert at != before
        for s in range(stages):
            ranks[s].step(step, begun[s] - 1, free[s])
    for r in ranks:
        r.write(folder)
    return waited


def ring(folder, seed, world=8, rounds=40, late=300.0, grouped=True, per_host=4, offset=0.0):
    """Each rank sends to the next and receives from the one before, in one kernel. Returns (late rank, what it cost in us)."""
    rng = random.Random(seed)
    clocks = [(0.0, 0.0)] + [(rng.uniform(0.4, 1) * rng.choice((-1, 1)) * offset, 0.0) for _ in range(world)]
    ranks = [Rank(r, world, "node%d" % (r // per_host), r % per_host, clocks[r // per_host]) for r in range(world)]
    slow, cost, free = rng.randrange(1, world), 0.0, [0.0] * world
    for _ in range(rounds):
        length = [rng.uniform(500, 505) + (late if r == slow else 0.0) for r in range(world)]
        ready = [free[r] + length[r] for r in range(world)]
        ends = []
        for r in range(world):
            before, after = (r - 1) % world, (r + 1) % world
            ends.append(max(ready[r], ready[before], ready[after]) + 60 + rng.uniform(-1, 1))
            ranks[r].compute("gemm", free[r], ready[r])
        for r in range(world):
            ranks[r].messages([(True, (r + 1) % world), (False, (r - 1) % world)], range(world), ready[r], ends[r], grouped=grouped)
        around = [ready[(slow + d) % world] for d in (-1, 1)]
        cost += max(0.0, ready[slow] - min(around))
        free = [max(ends) + 5.0] * world
    for r in ranks:
        r.write(folder)
    return slow, cost


def exchange(folder, seed, world=8, rounds=40, late=300.0, per_host=4, offset=0.0):
    """All-to-all with unequal parts: a rank leaves when what it sends is sent, and one sends most each time. Another one is late.
    Returns (late rank, what it cost in us, the largest share above the mean in each round)."""
    rng, now, cost, shares = random.Random(seed), 0.0, 0.0, []
    clocks = [(0.0, 0.0)] + [(rng.uniform(0.4, 1) * rng.choice((-1, 1)) * offset, 0.0) for _ in range(world)]
    ranks = [Rank(r, world, "node%d" % (r // per_host), r % per_host, clocks[r // per_host]) for r in range(world)]
    slow, heavy = rng.sample(range(1, world), 2)
    for _ in range(rounds):
        ready = [now + rng.uniform(500, 505) + (late if r == slow else 0.0) for r in range(world)]
        own = [rng.randrange(4 << 20, 6 << 20) * (3 if r == heavy else 1) for r in range(world)]
        ends = [max(ready) + 100.0 * elements / (5 << 20) for elements in own]
        for r in ranks:
            r.compute("gemm", now, ready[r.number])
            r.collective("all_to_allv", ready[r.number], ends[r.number], range(world), "ep", elements=5 << 20, own=own[r.number])
        cost += ready[slow] - max(x for r, x in enumerate(ready) if r != slow)
        shares.append(max(own) * world / sum(own) - 1)
        now = max(ends) + 5.0
    for r in ranks:
        r.write(folder)
    return slow, cost, shares


def halo(folder, seed, world=8, rounds=40, late=300.0, per_host=4, offset=0.0, beside=0.0):
    """MPI: each rank starts sends to and receives from both neighbours, computes `beside`, and waits for all four at once. Small messages are
    there as soon as their send was started. Returns (late rank, {rank: what it waited, in us})."""
    rng = random.Random(seed)
    clocks = [(0.0, 0.0)] + [(rng.uniform(0.4, 1) * rng.choice((-1, 1)) * offset, 0.0) for _ in range(world)]
    ranks = [Rank(r, world, "node%d" % (r // per_host), r % per_host, clocks[r // per_host]) for r in range(world)]
    slow, free, waited = rng.randrange(1, world), [0.0] * world, {r: 0.0 for r in range(world)}
    for i in range(rounds):
        ready = [free[r] + rng.uniform(500, 505) + (late if r == slow else 0.0) for r in range(world)]
        begins = [ready[r] + 4 + beside for r in range(world)]
        for r in range(world):
            near = ((r - 1) % world, (r + 1) % world)
            end = max([begins[r] + 1] + [ready[n] + 8 for n in near])
            waited[r] += end - begins[r]
            ranks[r]._add("cpu_op", "stencil", 1, free[r], ready[r] - free[r])
            for k, (what, peer) in enumerate((w, n) for w in ("Irecv", "Isend") for n in near):
                said = {"peer": peer, "Group rank": r}
                ranks[r].mpi("MPI_" + what, what, ready[r] + k, ready[r] + k + 0.8, world, 8192, category="mpi", **said)
                ranks[r].mpi("MPI_Waitall", what, begins[r], end, world, 8192, **said)
            if beside:
                ranks[r]._add("cpu_op", "inner", 1, ready[r] + 4, beside)
            free[r] = end + 2
        if i % 10 == 9:  # what shows the clocks
            end = max(free) + 20
            for r in range(world):
                waited[r] += max(free) - free[r]
                ranks[r].mpi("MPI_Allreduce", "Allreduce", free[r], end + rng.uniform(-1, 1), world, 8, Seq=i // 10)
            free = [end + 2] * world
    for r in ranks:
        r.write(folder)
    return slow, waited


def alltoallv(folder, seed, world=8, rounds=40, late=300.0, per_host=4, offset=0.0):
    """MPI_Alltoallv with unequal parts: all leave when the last has come and their own part is there. Returns (late rank, its cost in us)."""
    rng, now, cost = random.Random(seed), 0.0, 0.0
    clocks = [(0.0, 0.0)] + [(rng.uniform(0.4, 1) * rng.choice((-1, 1)) * offset, 0.0) for _ in range(world)]
    ranks = [Rank(r, world, "node%d" % (r // per_host), r % per_host, clocks[r // per_host]) for r in range(world)]
    slow = rng.randrange(1, world)
    for i in range(rounds):
        ready = [now + rng.uniform(500, 505) + (late if r == slow else 0.0) for r in range(world)]
        sizes = [rng.randrange(1 << 16, 1 << 20) for _ in range(world)]
        ends = [max(ready) + 20 + size / 5000 for size in sizes]
        for r in ranks:
            r._add("cpu_op", "compute", 1, now, ready[r.number] - now)
            r.mpi("MPI_Alltoallv", "Alltoallv", ready[r.number], ends[r.number], world, sizes[r.number], Seq=2 * i)
        cost += ready[slow] - max(x for r, x in enumerate(ready) if r != slow)
        now = max(ends) + 5
        for r in ranks:
            r.mpi("MPI_Barrier", "Barrier", ends[r.number] + 1, now + rng.uniform(-1, 1), world, 0, Seq=2 * i + 1)
        now += 3
    for r in ranks:
        r.write(folder)
    return slow, cost


def clock_set(folder, seed, world=8, rounds=60, late=300.0, per_host=2, by=(40000.0,)):
    """All-reduces of which one rank is late each time; the clock of a host is set between two rounds, each time by one of `by`. Returns
    (late rank, what it cost in us, {rank: its events as (name, begin in us of the true clock, duration)})."""
    rng, now, cost = random.Random(seed), 0.0, 0.0
    clocks = [(0.0, 0.0)] + [(rng.uniform(-200, 200), rng.uniform(-20, 20)) for _ in range(world // per_host)]
    ranks = [Rank(r, world, "node%d" % (r // per_host), r % per_host, clocks[r // per_host]) for r in range(world)]
    slow, host = rng.randrange(1, world), rng.randrange(world // per_host)
    for r in ranks:
        r.ahead = 2000.0
    truth, times = {r: [] for r in range(world)}, [rounds * (k + 1) // (len(by) + 1) for k in range(len(by))]
    for i in range(rounds):
        if i in times:
            for r in ranks[host * per_host:(host + 1) * per_host]:
                r.sets.append((now - 5, by[times.index(i)]))
        ready = [now + rng.uniform(500, 505) + (late if r == slow else 0.0) for r in range(world)]
        end = max(ready) + 200
        cost += ready[slow] - max(x for r, x in enumerate(ready) if r != slow)
        for r in ranks:
            begin = ready[r.number]
            r.compute("gemm", now, begin)
            r.collective("allreduce", begin, end + rng.uniform(-0.5, 0.5), range(world))
            truth[r.number] += [("gemm", now, begin - now), ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin, end - begin)]
        now = end + 10
    for r in ranks:
        r.write(folder)
    return slow, cost, truth


def nodes(folder, seed, between_us, within_us, hosts=2, per_host=4, rounds=20):
    """All-reduces of 100 MB within each node, then between the nodes (a rank of each), nothing else running: their transfers are given."""
    rng, world, now = random.Random(seed), hosts * per_host, 0.0
    ranks = [Rank(r, world, "node%d" % (r // per_host), r % per_host) for r in range(world)]
    for _ in range(rounds):
        for r in ranks:
            r.compute("gemm", now, now + 500)
        now += 500
        for r in ranks:
            group = [h for h in range(world) if h // per_host == r.number // per_host]
            r.collective("allreduce", now, now + within_us + rng.uniform(0, 1), group, "tp", 21, elements=25 << 20)
            group = [h for h in range(world) if h % per_host == r.number % per_host]
            r.collective("allreduce", now + within_us + 5, now + within_us + 5 + between_us + rng.uniform(0, 1), group, "dp", 22, elements=25 << 20)
        now += within_us + between_us + 20
    for r in ranks:
        r.write(folder)
    return within_us * rounds, between_us * rounds
