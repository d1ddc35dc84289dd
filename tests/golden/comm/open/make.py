"""Three ranks of a job that hangs, as they are recorded: rank 2 left the loop after two collectives and waits in a function of Python's own, the others are in the third,
which the recording has (open) or does not have (closed), because a collective is written when it ends. Weights of samples are nanoseconds."""
import json, os

for folder in ("open", "closed"):
    os.makedirs(folder, exist_ok=True)
    for rank in range(3):
        events = [{"ph": "M", "pid": 10, "tid": 10, "name": "thread_name", "args": {"name": "python"}}]
        for i in range(2 if rank == 2 or folder == "closed" else 3):
            span = {"pid": 10, "tid": 11, "cat": "collective_comm", "name": "gloo::allreduce", "ts": 100 * i + rank,
                    "args": {"Collective name": "allreduce", "In msg nelems": 64, "dtype": "Float"}}
            events += [{**span, "ph": "X", "dur": 10} if i < 2 else {**span, "ph": "B"}]
        frames = {"1": {"name": "main", "category": "/job/train.py", "line": 20, "kind": "python"},
                  "2": {"name": "step", "category": "/job/train.py", "line": 12, "kind": "python", "parent": 1},
                  "3": {"name": "all_reduce", "category": "/opt/my-torch/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", "line": 900, "kind": "python", "parent": 2},
                  "4": {"name": "save", "category": "/job/checkpoint.py", "line": 7, "kind": "python", "parent": 1},
                  "5": {"name": "run", "category": "/job/loader.py", "line": 3, "kind": "python"},
                  "6": {"name": "_shutdown", "category": "/usr/lib/threading.py", "line": 5, "kind": "python"},
                  "7": {"name": "Condition.wait", "category": "/usr/lib/python3.11/threading.py", "line": 327, "kind": "python", "parent": 4}}
        sample = lambda tid, ts, sf, weight: {"name": "cpu", "pid": 10, "tid": tid, "ts": ts, "sf": sf, "weight": weight}
        # where it hangs, then what Ctrl-C leads to; another thread waits longer
        samples = [sample(10, 50, 3, 50000), sample(10, 210, 7 if rank == 2 else 3, 3000000000), sample(10, 3000300, 6, 1000), sample(12, 300, 5, 9000000000)]
        events += [{"ph": "i", "s": "t", "name": "end", "pid": 10, "tid": 10, "ts": 3000400}]
        json.dump({"distributedInfo": {"rank": rank, "world_size": 3}, "repriseSamples": {"unit": "ns"}, "traceEvents": events, "stackFrames": frames, "samples": samples},
                  open(f"{folder}/rank{rank}.json", "w"))
