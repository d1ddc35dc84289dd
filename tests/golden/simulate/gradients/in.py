"""Two ranks of DistributedDataParallel over gloo as `record` writes them: no shapes, but notes about the model. The first step has one
bucket, which takes long; later ones have those given (numbers of gradients). A millisecond and 0.5 ms a MB an all-reduce.

    in.py FOLDER BUCKETS [KEY=VALUE]...     metadata; passes=2: gradients are accumulated"""
import json, pathlib, sys

SIZES = [4_000_000, 500_000, 500_000, 500_000]
folder, buckets = pathlib.Path(sys.argv[1]), [int(n) for n in sys.argv[2].split(",")]
meta = dict(word.split("=", 1) for word in sys.argv[3:])
passes = int(meta.pop("passes", 1))
folder.mkdir()
for rank in range(2):
    events = []

    def span(cat, name, tid, at, ms, **args):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 100 + rank, "tid": tid, "ts": at * 1000, "dur": ms * 1000, "args": args})

    for step in range(6):
        begin = at = step * 100
        free = 0
        for part in range(passes):
            span("cpu_op", "forward", 1, at, 5)
            at += 5
            ready = []
            for _ in SIZES:
                span("cpu_op", "AddmmBackward0", 1, at, 4)
                span("cpu_op", "torch::autograd::AccumulateGrad", 1, at + 4, 0.1)
                at += 4.1
                ready.append(at)
        first = 0
        for count in [len(SIZES)] if step == 0 else buckets:
            size, first = sum(SIZES[first:first + count]), first + count
            free = max(free, ready[first - 1] + 0.01)
            ms = 30 if step == 0 else 1 + size / 2e6
            span("collective_comm", "gloo:all_reduce", 2, free, ms, **{"Collective name": "all_reduce", "In msg nelems": size, "dtype": "Byte", "Group size": 2})
            free += ms + 0.001
        span("user_annotation", "Optimizer.step#SGD.step", 1, free + 0.01, 2)
        span("cpu_op", "aten::add_", 1, free + 0.01, 2)
        span("user_annotation", f"ProfilerStep#{step}", 1, begin, 100)
    trace = {**meta, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": sorted(events, key=lambda e: (e["ts"], -e["dur"]))}
    (folder / f"rank{rank}.json").write_text(json.dumps(trace))
