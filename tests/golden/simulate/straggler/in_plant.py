"""Runs of four ranks of which one is late, written with and without the delay: the run without it is the truth for what
'simulate straggler=' says of the run with it, and 'report' must say the same.

gloo      no device; the main thread of rank 2 sleeps at the beginning of each step; two threads carry the all-reduces in turn and
          sometimes begin late, and the first all-reduce ends last; the main thread ends its step when both are over
hooks     no device; the backward pass runs on a thread of its own, whose hooks begin three all-reduces; rank 2 sleeps in the forward
          pass, in the hook of the second all-reduce, between two operators of the backward pass, or after all of it
polling   a device; rank 1 computes longer in one of three stretches of a step; the host polls, no call says that it waits
"""
import json, pathlib, random, subprocess, sys

STEPS, RANKS = 8, 4


def write(folder, rank, events, device):
    doc = {"schemaVersion": 1, "hostname": "node0", "distributedInfo": {"backend": "nccl" if device else "gloo", "rank": rank, "world_size": RANKS},
           "deviceProperties": [{"id": rank, "name": "NVIDIA H100"}] if device else [], "traceEvents": events}
    folder.mkdir(exist_ok=True)
    (folder / f"rank{rank}.json").write_text(json.dumps(doc))


def event(cat, name, tid, begin, end, pid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": round(begin, 3), "dur": round(end - begin, 3), "args": args}


def gloo(folder, sleep):
    rng, events, t, begins = random.Random(3), [[] for _ in range(RANKS)], [1000.0] * RANKS, []
    for step in range(STEPS):
        begins.append(sum(t) / RANKS)
        begin, issued, ready = list(t), [[], []], [[], []]
        for r in range(RANKS):
            now = t[r] + 40 + (sleep if r == 2 else 0)
            for op in range(20):
                long = rng.uniform(80, 120)
                events[r].append(event("cpu_op", f"aten::op{op % 5}", 10, now, now + long))
                now += long + 5
                if op in (13, 19):
                    events[r].append(event("cpu_op", "c10d::allreduce_", 10, now, now + 20))
                    now += 25
                    issued[op == 19].append(now)
                    ready[op == 19].append(now + rng.choice((20, 30, 300)))
        over = [max(ready[k]) + (7000, 1500)[k] for k in range(2)]
        for r in range(RANKS):
            for k in range(2):
                events[r].append(event("user_annotation", "gloo:all_reduce", 20 + (step + k) % 2, ready[k][r], over[k]))
        end = max(over)
        for r in range(RANKS):
            events[r].append(event("cpu_op", "aten::add_", 10, end + 50, end + 150))
            events[r].append(event("user_annotation", f"ProfilerStep#{step}", 10, begin[r], end + 160))
            t[r] = end + 170
    begins.append(sum(t) / RANKS)
    for r in range(RANKS):
        write(folder, r, events[r], False)
    return (begins[-1] - begins[0]) / STEPS


def hooks(folder, sleep, where):
    rng, events, t, begins = random.Random(7), [[] for _ in range(RANKS)], [1000.0] * RANKS, []
    for step in range(STEPS):
        begins.append(sum(t) / RANKS)
        begin, ready, last = list(t), [[], [], []], []
        for r in range(RANKS):
            now, asleep = t[r] + 40, sleep if r == 2 else 0
            for op in range(10):
                long = rng.uniform(80, 120)
                events[r].append(event("cpu_op", f"aten::op{op % 5}", 10, now, now + long))
                now += long + 5 + (asleep if (op, where) == (4, "forward") else 0)
            now += 30
            for op in range(18):
                long, inside = rng.uniform(80, 120), now + 10
                events[r].append(event("cpu_op", f"aten::mm{op % 5}", 11, inside, inside + long))
                end = inside + long + 5
                if op % 6 == 5:
                    end += asleep if (op, where) == (11, "hook") else 0
                    events[r].append(event("cpu_op", "c10d::allreduce_", 11, end, end + 20))
                    end += 25
                    ready[op // 6].append(end + rng.choice((20, 30, 200)))
                events[r].append(event("cpu_op", f"autograd::engine::evaluate_function: Mm{op % 5}Backward0", 11, now, end + 5))
                now = end + 8 + (asleep if (op, where) == (8, "between") else 0)
            last.append(now + 20 + (asleep if where == "after" else 0))
        over, free = [], 0
        for k in range(3):
            free = max(free, max(ready[k])) + 1500
            over.append(free)
        for r in range(RANKS):
            for k in range(3):
                events[r].append(event("user_annotation", "gloo:all_reduce", 20 + (step + k) % 2, ready[k][r], over[k]))
            end = max(over[2], last[r]) + 30
            events[r].append(event("cpu_op", "Optimizer.step", 10, end, end + 400))
            events[r].append(event("user_annotation", f"ProfilerStep#{step}", 10, begin[r], end + 410))
            t[r] = end + 420
    begins.append(sum(t) / RANKS)
    for r in range(RANKS):
        write(folder, r, events[r], False)
    return (begins[-1] - begins[0]) / STEPS


def polling(folder, late):
    rng, events, t, begin = random.Random(5), [[] for _ in range(RANKS)], 1000.0, 1000.0
    for step in range(STEPS):
        first = t
        for stretch in range(3):
            work = [rng.uniform(600, 610) + (late if r == 1 and stretch == 1 else 0) for r in range(RANKS)]
            end = t + 10 + max(work) + 200
            for r in range(RANKS):
                call = 100 * step + 10 * stretch
                for k, (name, a, b, stream) in enumerate((("gemm", t + 10, t + 10 + work[r], 7),
                                                          ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", t + 10 + work[r], end, 20))):
                    events[r].append(event("cuda_runtime", "cudaLaunchKernel", 10, t + 2 * k, t + 2 * k + 1.5, correlation=call + k))
                    events[r].append(event("kernel", name, stream, a, b, 0, correlation=call + k, stream=stream, device=r))
            t = end + 8
        for r in range(RANKS):
            events[r].append(event("user_annotation", f"ProfilerStep#{step}", 10, first - 2, t - 3))
    for r in range(RANKS):
        write(folder, r, events[r], True)
    return (t - begin) / STEPS


def ask(*args):
    return json.loads(subprocess.run([*sys.argv[1:], *args, "--json"], capture_output=True, text=True, check=True).stdout)


PLANTS = [("gloo", gloo, 20000, 2), ("polling", polling, 900, 1)]
PLANTS += [(f"hooks, {w}", lambda folder, sleep, w=w: hooks(folder, sleep, w), 20000, 2) for w in ("forward", "hook", "between", "after")]
for name, plant, delay, rank in PLANTS:
    folder = pathlib.Path(name.replace(", ", "_"))
    slow, fast = plant(folder, delay), plant(pathlib.Path("fast"), 0)
    truth = 1 - fast / slow
    said = {}
    for what in ("straggler=median", f"straggler=remove:{rank}"):
        answer = ask("simulate", str(folder), "-w", what)
        said[what] = -answer["predictions"][0]["change_ratio"]
        print(f"{name}: {what} is {'right' if abs(said[what] - truth) <= 0.1 * truth else f'wrong: {said[what]:.3f}, {truth:.3f} is true'}")
    found = [f for f in ask("report", str(folder))["findings"] if f["id"] == "straggler"][0]
    same = abs(found["share"] - said["straggler=median"]) < 0.001
    print(f"{name}: report says {'the same' if same else found['share']}, and names rank {rank}: {f'rank {rank} ' in found['evidence'][0]}")
