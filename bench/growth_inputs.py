# SPDX-License-Identifier: Apache-2.0
"""Generated inputs of a given size for bench/curves.py (Python's standard library only).

A function marked with @file or @folder writes one input of size n; what n counts is its first line. Nothing is random, and equal sizes
give equal bytes. Each function makes one dimension large, because what is quadratic in the number of processes does not show
where there are two.
"""
import hashlib, io, json, pickle, struct, tarfile, zipfile

FILES = {}  # name of the input -> (function(n, path), suffix; None: a folder)


def file(suffix):
    def add(make):
        def write(n, path):
            made = make(n)
            path.write_bytes(made if isinstance(made, (bytes, bytearray)) else made.encode())
        write.__doc__ = make.__doc__
        FILES[make.__name__] = (write, suffix)
        return make
    return add


def folder(make):
    FILES[make.__name__] = (make, None)
    return make


# ------------------------------------------------------------------ Chrome traces

def span(name, ts, dur, pid=1, tid=1, cat="cpu_op", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name, ts, dur, corr, stream=7, device=0, cat="kernel", **args):
    return span(name, ts, dur, device, stream, cat, correlation=corr, stream=stream, device=device, **args)


def trace(events, **head):
    lines = ",\n".join(json.dumps(e, separators=(",", ":")) for e in events)
    return '{"schemaVersion":1,%s"traceEvents":[\n%s\n]}\n' % ("".join(json.dumps(k) + ":" + json.dumps(v) + "," for k, v in head.items()), lines)


def launches(n, op="aten::op%d", kernel_name="kernel_%d", names=40, begin=1000, gap=20, streams=1, tid=1, first=1, **args):
    """n operators of 10 us, each with a launch and a kernel of 8 us."""
    for i in range(n):
        t = begin + i * gap
        yield span(op % (i % names), t, 10, 1, tid, **{"External id": first + i, "Input Dims": [[64, 64], [64, 64]],
                                                        "Input type": ["float", "float"]})
        yield span("cudaLaunchKernel", t + 2, 5, 1, tid, "cuda_runtime", correlation=first + i, **{"External id": first + i})
        yield kernel(kernel_name % (i % names), t + 9, 8, first + i, 7 + i % streams, grid=[64, 1, 1], block=[256, 1, 1],
                     **{"External id": first + i}, **args)


def step(number, begin, dur):
    return span("ProfilerStep#%d" % number, begin, dur, cat="user_annotation")


def stepped(n, steps=4, each=launches, **args):
    """The launches of n operators in a few equal steps."""
    count, out = max(1, n // steps), []
    for s in range(steps):
        begin = 1000 + s * (count * 20 + 100)
        out.append(step(s, begin - 10, count * 20 + 50))
        out += each(count, begin=begin, first=1 + s * count, **args)
    return out


@file(".json")
def training(n):
    "operators with their kernels, in four steps"
    return trace(stepped(n))


@file(".json")
def many_names(n):
    "names of operators and kernels"
    return trace(stepped(n, names=n))


@file(".json")
def many_steps(n):
    "steps of two kernels"
    return trace(stepped(2 * n, steps=n))


@file(".json")
def many_streams(n):
    "streams with four kernels each"
    return trace(stepped(4 * n, streams=n))


@file(".json")
def many_threads(n):
    "threads with an operator and its kernel each"
    return trace([e for i in range(n) for e in launches(1, begin=1000 + 20 * i, tid=10 + i, first=1 + i)])


@file(".json")
def many_processes(n):
    "process ids with one span each"
    return trace([span("work", 10 * i, 5, pid=i + 1, tid=i + 1) for i in range(n)])


@file(".json")
def many_devices(n):
    "devices with a kernel each"
    return trace([e for i in range(n) for e in
                  (span("cudaLaunchKernel", 10 * i, 5, 100000, 1, "cuda_runtime", correlation=i + 1), kernel("k", 10 * i + 6, 3, i + 1, 7, i))])


@file(".json")
def named_threads(n):
    "threads with a name, a sort index and labels of their process"
    meta = lambda kind, i, **args: {"ph": "M", "name": kind, "pid": i + 1, "tid": i + 1, "args": args}
    return trace([e for i in range(n) for e in (meta("process_name", i, name="p%d" % i), meta("thread_name", i, name="t%d" % i),
                  meta("process_labels", i, labels="l%d" % i), meta("thread_sort_index", i, sort_index=i), span("x", i, 1, i + 1, i + 1))])


@file(".json")
def deep_spans(n):
    "spans, each inside the one before"
    return trace([span("f%d" % (i % 50), i, 2 * (n - i) + 1) for i in range(n)])


@file(".json")
def equal_spans(n):
    "spans with the same name, begin and end"
    return trace([span("same", 100, 1000) for _ in range(n)])


@file(".json")
def open_spans(n):
    "begins and ends (B, E) in four depths, then begins without an end"
    return trace([{"ph": p, "name": "r%d" % (i % 9), "pid": 1, "tid": 1, "ts": i}
                  for i, p in enumerate("BBBBEEEE" * (n // 8) + "B" * (n // 4))])


@file(".json")
def async_spans(n):
    "asynchronous spans that are all open at once"
    events = [{"ph": "b", "cat": "a", "name": "w", "id": i, "pid": 1, "tid": 1, "ts": i} for i in range(n)]
    return trace(events + [{**e, "ph": "e", "ts": 2 * n + e["ts"]} for e in events])


@file(".json")
def many_flows(n):
    "arrows between two threads"
    return trace([e for i in range(n) for e in (span("fwd", 10 * i, 5), span("bwd", 10 * i, 5, tid=2),
                  {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": 1, "tid": 1, "ts": 10 * i},
                  {"ph": "f", "bp": "e", "cat": "fwdbwd", "name": "fwdbwd", "id": i, "pid": 1, "tid": 2, "ts": 10 * i})])


@file(".json")
def one_flow(n):
    "arrows with the same id"
    return trace([e for i in range(n) for e in (span("fwd", 10 * i, 5),
                  {"ph": "s" if i % 2 == 0 else "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 1, "tid": 1, "ts": 10 * i})])


@file(".json")
def one_correlation(n):
    "kernels with the same correlation (a launched graph)"
    return trace([step(0, 0, 20 * n), span("cudaGraphLaunch", 10, 5, cat="cuda_runtime", correlation=1)] +
                 [kernel("k%d" % (i % 30), 20 + 10 * i, 8, 1, **{"graph id": 1, "graph node id": i}) for i in range(n)])


@file(".json")
def equal_correlations(n):
    "launches and kernels that all have the same correlation"
    return trace([step(0, 0, 20 * n)] +
                 [e for i in range(n) for e in (span("cudaLaunchKernel", 10 + 10 * i, 5, cat="cuda_runtime", correlation=1), kernel("k%d" % (i % 30), 20 + 10 * i, 8, 1))])


@file(".json")
def many_graphs(n):
    "launches of graphs of four kernels, each of another graph"
    return trace([step(0, 0, 60 * n)] + [e for g in range(n) for e in
                 [span("cudaGraphLaunch", 50 * g + 1, 5, cat="cuda_runtime", correlation=g + 1)] +
                 [kernel("k%d" % i, 50 * g + 10 + 10 * i, 8, g + 1, **{"graph id": g + 1, "graph node id": i}) for i in range(4)]])


@file(".json")
def many_counters(n):
    "counters with four samples each"
    return trace([{"ph": "C", "name": "c%d" % (i % n), "pid": 1, "ts": i, "args": {"v": i % 7, "w": i}} for i in range(4 * n)])


@file(".json")
def many_arguments(n):
    "different keys of arguments, four an event"
    return trace([span("x", i, 1, **{"k%d" % (i * 4 + k): i for k in range(4)}) for i in range(n // 4)])


@file(".json")
def wide_event(n):
    "arguments of one event, and elements of one list in it"
    return trace([span("x", 0, 1, **{"k%d" % i: i for i in range(n)}, list=list(range(n)))])


@file(".json")
def overlapping_kernels(n):
    "kernels of one stream that all overlap"
    return trace([e for i in range(n) for e in (span("cudaLaunchKernel", i, 0.5, cat="cuda_runtime", correlation=i + 1),
                                                 kernel("k%d" % (i % 20), 10 + i, 2 * n, i + 1))])


@file(".json")
def synchronisations(n):
    "kernels, each waited for by the host and by an event on another stream"
    events = [step(0, 0, 40 * n)]
    for i in range(n):
        t, c = 10 + 30 * i, 4 * i + 1
        events += [span("cudaLaunchKernel", t, 3, cat="cuda_runtime", correlation=c), kernel("k%d" % (i % 20), t + 5, 9, c),
                   span("cudaEventRecord", t + 3, 1, cat="cuda_runtime", correlation=c + 1),
                   span("cudaStreamWaitEvent", t + 4, 1, cat="cuda_runtime", correlation=c + 2),
                   span("cudaStreamSynchronize", t + 6, 9, cat="cuda_runtime", correlation=c + 3),
                   kernel("Stream Synchronize", t + 6, 9, c + 3, 7, 0, "cuda_sync"),
                   kernel("Stream Wait Event", t + 6, 2, c + 2, 8, 0, "cuda_sync", wait_on_stream=7, wait_on_cuda_event_record_corr_id=c + 1,
                          wait_on_cuda_event_id=i)]
    return trace(events)


@file(".json")
def python_stacks(n):
    "calls of Python in a stack of 20, with modules"
    out = []
    for i in range(n):
        depth = i % 20
        out.append(span("nn.Module: M_%d" % (i % 60) if depth % 3 == 0 else "model.py(%d): forward" % (i % 90), (i - depth) * 10 + depth,
                        200 - 2 * depth, cat="python_function", **{"Python id": i, "Python parent id": i - 1 if depth else None}))
    return trace(out + stepped(n // 4))


@file(".json")
def memory_events(n):
    "allocations and frees recorded in the trace"
    return trace([{"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 10 * i, "args":
                   {"Total Reserved": 1 << 30, "Total Allocated": 1024 * (n - abs(n - i)), "Bytes": 1024 if i < n else -1024,
                    "Addr": 4096 + 1024 * (i if i < n else i - n), "Device Id": 0, "Device Type": 1}} for i in range(2 * n)] + stepped(n // 2))


@file(".json")
def backward_order(n):
    "spans that are written last first"
    return trace(list(stepped(n))[::-1])


@file(".json")
def long_text(n):
    "kilobytes of one name, in a trace that has it twice"
    return trace([span("x" * 1000 * n, 0, 1), span("x" * 1000 * n, 2, 1)])


def rank_trace(rank, world, n, name):
    def each(count, begin, first):
        for i in range(count):
            c, t = first + 2 * i, begin + 20 * i
            yield span("aten::mm", t, 8, **{"External id": c})
            yield span("cudaLaunchKernel", t + 1, 4, cat="cuda_runtime", correlation=c)
            yield kernel("gemm", t + 6, 5 + rank % 3, c)
            yield kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", t + 13, 5, c + 1, 20, **{"Collective name": "allreduce",
                         "In msg nelems": 1024, "Out msg nelems": 1024, "dtype": "Float", "Group size": world, "Process Group Name": name(i),
                         "Process Group Ranks": json.dumps(list(range(min(world, 64))))})
            yield span("record_param_comms", t + 9, 3, **{"Collective name": "allreduce", "Seq": i, "Process Group Name": name(i),
                                                          "Group size": world})
    return trace(stepped(n, each=each), distributedInfo={"backend": "nccl", "rank": rank, "world_size": world})


@folder
def many_collectives(n, path):
    "all-reduces of each of four ranks"
    for r in range(4):
        (path / ("rank%d.json" % r)).write_text(rank_trace(r, 4, n, lambda i: "0"))


@folder
def many_groups(n, path):
    "process groups of two ranks"
    for r in range(2):
        (path / ("rank%d.json" % r)).write_text(rank_trace(r, 2, n, lambda i: str(i)))


@folder
def many_ranks(n, path):
    "ranks with eight all-reduces each"
    for r in range(n):
        (path / ("rank%d.json" % r)).write_text(rank_trace(r, n, 8, lambda i: "0"))


# ------------------------------------------------------------------ protobuf

def varint(value):
    out, value = bytearray(), value & (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def pb(*fields):
    """A message of (number, value): an int is a varint, bytes or text are what they are, a float a double."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            out += varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


def plane(number, name, lines, names, stats=("correlation_id", "hlo_op", "hlo_module")):
    """lines: of (id, name, events); an event is (number of its name, offset_ps, duration_ps, stats)."""
    made = [(3, pb((1, i), (2, label), (3, 1000), *((4, pb((1, e[0] + 1), (2, e[1]), (3, e[2]), *((4, s) for s in e[3]))) for e in events)))
            for i, label, events in lines]
    meta = [(4, pb((1, i + 1), (2, pb((1, i + 1), (2, text))))) for i, text in enumerate(names)]
    return pb((1, number), (2, name), *made, *meta, *((5, pb((1, i + 1), (2, pb((1, i + 1), (2, s))))) for i, s in enumerate(stats)))


def xspace(n, names, lines):
    host = [(i + 1, "thread/%d" % i, [(k % names, k * 20000000, 10000000, [pb((1, 1), (3, k + 1))]) for k in range(i, n, lines)])
            for i in range(lines)]
    device = [(i + 1, "Stream #%d" % i, [(k % names, k * 20000000 + 5000000, 9000000, [pb((1, 1), (3, k + 1)), pb((1, 2), (5, "op.%d" % k))])
               for k in range(i, n, lines)]) for i in range(lines)]
    texts = ["name_%d" % i for i in range(names)]
    return pb((1, plane(1, "/host:CPU", host, texts)), (1, plane(2, "/device:GPU:0", device, texts)))


@file(".xplane.pb")
def xplane_events(n):
    "events of a host thread and of a stream"
    return xspace(n, 40, 1)


@file(".xplane.pb")
def xplane_names(n):
    "names"
    return xspace(n, n, 1)


@file(".xplane.pb")
def xplane_lines(n):
    "lines with one event each"
    return xspace(n, 40, n)


@file(".xplane.pb")
def xplane_planes(n):
    "planes with one event each"
    return pb(*((1, plane(i, "/device:GPU:%d" % i, [(1, "Stream #1", [(0, 5000, 1000, [])])], ["k"])) for i in range(n)))


@file(".pb")
def run_metadata(n):
    "nodes of a TensorFlow step"
    return pb((1, pb((1, pb((1, "/job:worker/replica:0/task:0/device:CPU:0"), *((2, pb((1, "layer%d/MatMul" % i), (2, 1000000 + 20 * i), (3, 1), (4, 15),
              (5, 16), (8, "layer%d/MatMul = MatMul(layer%d/MatMul, w)" % (i, i - 1)), (10, 1 + i % 4))) for i in range(n)))))))


@file(".pb")
def run_metadata_devices(n):
    "devices of a TensorFlow step"
    return pb((1, pb(*((1, pb((1, "/job:worker/replica:0/task:%d/device:CPU:0" % i),
                              (2, pb((1, "a"), (2, 1000000 + 20 * i), (3, 1), (4, 15), (5, 16), (8, "a = MatMul(x, w)"))))) for i in range(n)))))


def delimited(*messages):
    return b"".join(varint(len(m)) + m for m in messages)


@file(".et")
def chakra_chain(n):
    "nodes, each after the one before"
    return delimited(pb((1, "0.0.4")), *(pb((1, i + 1), (2, "node%d" % i), (3, 4), *([(5, varint(i))] if i else []), (7, 5),
                                            (10, pb((1, "num_ops"), (7, 5)))) for i in range(n)))


@file(".json")
def execution_trace(n):
    "nodes of a PyTorch execution trace"
    tensor = lambda i: [i, i, 0, 4096, 4, "cuda:0"]
    nodes = [{"id": i + 2, "name": "aten::mm", "ctrl_deps": 1, "inputs": {"values": [tensor(i), tensor(0)], "shapes": [[64, 64], [64, 64]],
              "types": ["Tensor(float)"] * 2, "strides": [[64, 1]] * 2}, "outputs": {"values": [tensor(i + 1)], "shapes": [[64, 64]],
              "types": ["Tensor(float)"], "strides": [[64, 1]]}, "attrs": [{"name": "rf_id", "type": "uint64", "value": i}]} for i in range(n)]
    return json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "time": "2026-11-15 00:37:03", "start_ts": 1, "nodes": nodes})


@file(".log")
def byteps_worker(n):
    "parts of tensors that a worker of BytePS sends"
    return "role=worker, id=9, num_workers=2\n" + "".join(
        "%d %s %s %s %d %s\n" % (1620000000000000 + 100 * i + 10 * k, begin, push, request, 65536 * i, "9 8" if request == "true" else "8 9")
        for i in range(n) for k, (push, request, begin) in enumerate(
            [(p, r, b) for p in ("true", "false") for r in ("true", "false") for b in ("true", "false")]))


# ------------------------------------------------------------------ memory

def snapshot(segments, events, **more):
    return pickle.dumps({"segments": segments, "device_traces": [events], "allocator_settings": {}, "external_annotations": [], **more}, 4)


def allocated(i, address, frames, action="alloc", size=512):
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 1000 + i, "frames": frames}


def blocks_of(addresses, frames=()):
    return [{"address": a, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": list(frames)} for a in addresses]


def segment(address, size, blocks):
    return {"device": 0, "address": address, "total_size": size, "allocated_size": size, "active_size": size, "requested_size": size,
            "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}


FRAME = {"filename": "model.py", "line": 3, "name": "forward"}


@file(".pickle")
def snapshot_events(n):
    "allocations of a snapshot, all freed in the end"
    addresses = [(1 << 20) + 512 * i for i in range(n)]
    return snapshot([segment(1 << 20, 512 * n, blocks_of([]))], [allocated(i, a, [{**FRAME, "line": i % 90}]) for i, a in enumerate(addresses)] +
                    [allocated(n + i, a, [], "free_completed") for i, a in enumerate(addresses)])


@file(".pickle")
def snapshot_descending(n):
    "blocks of a snapshot, allocated from high to low addresses"
    addresses = [(1 << 20) + 512 * i for i in range(n)]
    return snapshot([segment(1 << 20, 512 * n, blocks_of(addresses))], [allocated(i, a, [FRAME]) for i, a in enumerate(addresses[::-1])])


@file(".pickle")
def snapshot_segments(n):
    "segments with a block each"
    return snapshot([segment((1 << 30) - (i << 12), 512, blocks_of([(1 << 30) - (i << 12)])) for i in range(n)],
                    [allocated(i, (1 << 30) - (i << 12), [FRAME]) for i in range(n)])


@file(".pickle")
def snapshot_stacks(n):
    "different stacks of four frames"
    return snapshot([segment(1 << 20, 512 * n, [])], [allocated(i, (1 << 20) + 512 * i, [{**FRAME, "line": i, "name": "f%d" % i} for _ in range(4)])
                                                      for i in range(n)])


@file(".pickle")
def shared_dict(n):
    "keys of a dictionary, and how often the log refers to it"
    event = {**allocated(0, 1 << 20, []), **{"k%d" % i: None for i in range(n)}}
    return snapshot([], [event] * n)


@file(".pickle")
def shared_frames(n):
    "frames of a stack, and how many allocations refer to it"
    stack = [{**FRAME, "line": i} for i in range(n)]
    return snapshot([segment(1 << 20, 512 * n, [])], [allocated(i, (1 << 20) + 512 * i, stack) for i in range(n)])


@file(".txt")
def buffer_assignment(n):
    "buffers of XLA, four a slice of one allocation"
    values = "".join(" value: <%d op.%d @0> (size=256,offset=%d): f32[64]{0}\n" % (i, i, 256 * (i % (n // 4))) for i in range(n))
    ranges = "".join("    op.%d{}:%d-%d\n" % (i, i, i + 4) for i in range(n))
    return ("BufferAssignment:\nallocation 0: size %d, preallocated-temp:\n%s\nHloLiveRange (max %d):\n  InstructionSequence:\n%s  BufferLiveRange:\n%s"
            % (64 * n, values, n + 4, "".join("    %d:op.%d\n" % (i, i) for i in range(n)), ranges))


@file(".txt")
def buffer_allocations(n):
    "allocations of XLA with a buffer each"
    return "BufferAssignment:\n" + "".join("allocation %d: size 256, page 0, maybe-live-out:\n value: <%d op.%d @0> (size=256,offset=0): f32[64]{0}\n"
                                           % (i, i, i) for i in range(n))


# ------------------------------------------------------------------ programs

def hlo(entry, before="", root="ROOT r = f32[64] negate(p)"):
    return "HloModule m\n\n%sENTRY main {\n  p = f32[64] parameter(0)\n%s  %s\n}\n" % (before, "".join("  %s\n" % line for line in entry), root)


def chain(n, op="add", first="p"):
    return ["c%d = f32[64] %s(%s, p), metadata={op_name=\"jit(f)/layer%d/%s\" source_file=\"model.py\" source_line=%d}"
            % (i, op, "c%d" % (i - 1) if i else first, i % 50, op, i % 300) for i in range(n)]


@file(".hlo.txt")
def hlo_chain(n):
    "additions, each of the one before"
    return hlo(chain(n), root="ROOT r = f32[64] negate(c%d)" % (n - 1))


@file(".hlo.txt")
def hlo_wide(n):
    "operations on one parameter, and operands of one tuple"
    return hlo(["w%d = f32[64] multiply(p, p)" % i for i in range(n)],
               root="ROOT r = (%s) tuple(%s)" % (", ".join(["f32[64]"] * n), ", ".join("w%d" % i for i in range(n))))


@file(".hlo.txt")
def hlo_parameters(n):
    "parameters, each added to the sum of those before"
    return "HloModule m\n\nENTRY main {\n%s%s  ROOT r = f32[4] negate(s%d)\n}\n" % (
        "".join("  a%d = f32[4] parameter(%d)\n" % (i, i) for i in range(n)),
        "".join("  s%d = f32[4] add(%s, a%d)\n" % (i, "s%d" % (i - 1) if i else "a0", i) for i in range(n)), n - 1)


@file(".hlo.txt")
def hlo_constants(n):
    "constants, each added to the sum of those before"
    return hlo([line for i in range(n) for line in ("k%d = f32[4] constant({%d, 2, 3, 4})" % (i, i), "s%d = f32[4] add(%s, k%d)"
               % (i, "s%d" % (i - 1) if i else "k0", i))], root="ROOT r = f32[4] negate(s%d)" % (n - 1))


@file(".hlo.txt")
def hlo_large_constant(n):
    "elements of one constant"
    return hlo(["k = f32[%d] constant({%s})" % (n, ", ".join("%d.5" % (i % 9) for i in range(n)))], root="ROOT r = f32[%d] negate(k)" % n)


@file(".hlo.txt")
def hlo_calls(n):
    "computations, each calling the one before"
    comp = lambda i: "f%d {\n  a = f32[64] parameter(0)\n  ROOT b = f32[64] %s\n}\n\n" % (
        i, "call(a), to_apply=f%d" % (i - 1) if i else "negate(a)")
    return hlo([], "".join(comp(i) for i in range(n)), "ROOT r = f32[64] call(p), to_apply=f%d" % (n - 1))


@file(".hlo.txt")
def hlo_fusions(n):
    "fusions, each of the one before"
    comp = lambda i: "f%d {\n  a = f32[64] parameter(0)\n  b = f32[64] exponential(a)\n  ROOT c = f32[64] add(a, b)\n}\n\n" % i
    return hlo(["c%d = f32[64] fusion(%s), kind=kLoop, calls=f%d" % (i, "c%d" % (i - 1) if i else "p", i) for i in range(n)],
               "".join(comp(i) for i in range(n)), "ROOT r = f32[64] negate(c%d)" % (n - 1))


@file(".hlo.txt")
def hlo_shared_call(n):
    "calls of one computation"
    return hlo(["c%d = f32[64] call(%s), to_apply=f" % (i, "c%d" % (i - 1) if i else "p") for i in range(n)],
               "f {\n  a = f32[64] parameter(0)\n  ROOT b = f32[64] negate(a)\n}\n\n", "ROOT r = f32[64] negate(c%d)" % (n - 1))


@file(".hlo.txt")
def hlo_reduces(n):
    "reductions with a computation of their own"
    comp = lambda i: "add%d {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n\n" % i
    return hlo(["z = f32[] constant(0)"] + [line for i in range(n) for line in (
        "s%d = f32[] reduce(%s, z), dimensions={0}, to_apply=add%d" % (i, "b%d" % (i - 1) if i else "p", i),
        "b%d = f32[64] broadcast(s%d), dimensions={}" % (i, i))], "".join(comp(i) for i in range(n)), "ROOT r = f32[64] negate(b%d)" % (n - 1))


@file(".hlo.txt")
def hlo_tuples(n):
    "elements that are taken from a tuple"
    return hlo(["t = (%s) tuple(%s)" % (", ".join(["f32[64]"] * n), ", ".join(["p"] * n))] +
               ["g%d = f32[64] get-tuple-element(t), index=%d" % (i, i) for i in range(n)] +
               ["s%d = f32[64] add(%s, g%d)" % (i, "s%d" % (i - 1) if i else "p", i) for i in range(n)], root="ROOT r = f32[64] negate(s%d)" % (n - 1))


@file(".hlo.txt")
def hlo_diamonds(n):
    "operations that use the one before twice"
    return hlo(["c%d = f32[64] multiply(%s, %s)" % ((i,) + (("c%d" % (i - 1) if i else "p"),) * 2) for i in range(n)],
               root="ROOT r = f32[64] negate(c%d)" % (n - 1))


@file(".hlo.txt")
def hlo_collectives(n):
    "all-reduces, begun and ended apart"
    return hlo([line for i in range(n) for line in (
        "a%d = f32[64] all-reduce-start(%s), channel_id=%d, replica_groups={{0,1}}, to_apply=add" % (i, "d%d" % (i - 1) if i else "p", i + 1),
        "d%d = f32[64] all-reduce-done(a%d)" % (i, i))],
        "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n\n", "ROOT r = f32[64] negate(d%d)" % (n - 1))


@file(".mlir")
def mlir_chain(n):
    "operations of StableHLO, each of the one before"
    return "module @m {\n  func.func public @main(%%arg0: tensor<64xf32>) -> tensor<64xf32> {\n%s    return %%%d : tensor<64xf32>\n  }\n}\n" % (
        "".join("    %%%d = stablehlo.add %s, %%arg0 : tensor<64xf32>\n" % (i, "%%%d" % (i - 1) if i else "%arg0") for i in range(n)), n - 1)


@file(".mlir")
def mlir_functions(n):
    "functions of StableHLO, each calling the one before"
    one = lambda i: "  func.func private @f%d(%%arg0: tensor<64xf32>) -> tensor<64xf32> {\n    %%0 = %s\n    return %%0 : tensor<64xf32>\n  }\n" % (
        i, "call @f%d(%%arg0) : (tensor<64xf32>) -> tensor<64xf32>" % (i - 1) if i else "stablehlo.negate %arg0 : tensor<64xf32>")
    main = "  func.func public @main(%%arg0: tensor<64xf32>) -> tensor<64xf32> {\n    %%0 = call @f%d(%%arg0) : (tensor<64xf32>) -> tensor<64xf32>\n    return %%0 : tensor<64xf32>\n  }\n"
    return "module @m {\n" + main % (n - 1) + "".join(one(i) for i in range(n)) + "}\n"


@file(".mlir")
def mlir_wide(n):
    "arguments and results of a StableHLO function"
    return "module @m {\n  func.func public @main(%s) -> (%s) {\n    return %s : %s\n  }\n}\n" % (
        ", ".join("%%arg%d: tensor<4xf32>" % i for i in range(n)), ", ".join(["tensor<4xf32>"] * n),
        ", ".join("%%arg%d" % i for i in range(n)), ", ".join(["tensor<4xf32>"] * n))


@file(".mlir")
def mlir_constants(n):
    "constants of StableHLO, and locations"
    return ("#loc = loc(unknown)\nmodule @m {\n  func.func public @main(%%arg0: tensor<4xf32> loc(\"x\")) -> tensor<4xf32> {\n%s    return %%s%d : tensor<4xf32> loc(#loc)\n"
            "  } loc(#loc)\n} loc(#loc)\n%s") % ("".join(
                "    %%k%d = stablehlo.constant dense<[%d.0, 2.0, 3.0, 4.0]> : tensor<4xf32> loc(#loc%d)\n"
                "    %%s%d = stablehlo.add %s, %%k%d : tensor<4xf32> loc(#loc%d)\n" % (i, i, i + 1, i, "%%s%d" % (i - 1) if i else "%arg0", i, i + 1)
                for i in range(n)), n - 1, "".join('#loc%d = loc("model.py":%d:1)\n' % (i + 1, i) for i in range(n)))


def graph_node(name, op, inputs=(), attrs=""):
    return 'node {\n  name: "%s"\n  op: "%s"\n%s%s}\n' % (name, op, "".join('  input: "%s"\n' % i for i in inputs), attrs)


FLOAT = '  attr { key: "T" value { type: DT_FLOAT } }\n'
INPUT = graph_node("x", "Placeholder", (), '  attr { key: "dtype" value { type: DT_FLOAT } }\n  attr { key: "shape" value { shape { dim { size: 64 } } } }\n')


@file(".pbtxt")
def graphdef_chain(n):
    "nodes of a TensorFlow graph, each of the one before"
    return INPUT + "".join(graph_node("layer%d/Relu" % i, "Relu", ["layer%d/Relu" % (i - 1) if i else "x"], FLOAT) for i in range(n))


@file(".pbtxt")
def graphdef_controls(n):
    "nodes of a TensorFlow graph, and control inputs of its last"
    return INPUT + "".join(graph_node("a%d" % i, "Relu", ["x"], FLOAT) for i in range(n)) + graph_node("last", "Identity", ["x"] + ["^a%d" % i for i in range(n)], FLOAT)


@file(".pbtxt")
def repeated_constants(n):
    "constants of a TensorFlow graph, each one number for n times as many elements"
    constant = ('  attr { key: "dtype" value { type: DT_FLOAT } }\n  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: %d } } '
                'float_val: 7.5 } } }\n' % (64 * n))
    return INPUT + "".join(graph_node("k%d" % i, "Const", (), constant) for i in range(n)) + graph_node("last", "Identity", ["x"] + ["^k%d" % i for i in range(n)], FLOAT)


@file(".txt")
def lazy_graphs(n):
    "graphs in a file of torch_xla"
    one = ("[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n  mark_step (model.py:%d)\n\nHashes: (%x)\n\n## BEGIN_GRAPH\nIR {\n  %%0 = [Float[4,4]] lazy_tensors::device_data(), device=CPU0\n"
           "  %%1 = [Float[4,4]] aten::mul(%%0, %%0), ROOT=0\n}\n\nGraph Hash: %x\n\n## END_GRAPH\n\n")
    return "".join(one % (i, i + 1, i + 1) for i in range(n))


@file(".txt")
def lazy_chain(n):
    "operations of one lazy graph"
    return "## BEGIN_GRAPH\nIR {\n  %%0 = [Float[4,4]] lazy_tensors::device_data(), device=CPU0\n%s}\n\n## END_GRAPH\n" % "".join(
        "  %%%d = [Float[4,4]] aten::mul(%%%d, %%0)%s\n" % (i + 1, i, ", ROOT=0" if i == n - 1 else "") for i in range(n))


# ------------------------------------------------------------------ archives, arrays, folders

def npy(shape=(4,)):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % repr(shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(16)


def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


@file(".tar")
def tar_of_traces(n):
    "traces in an archive"
    return tar(("rank%d.json" % i, trace([span("x", 0, 5)], distributedInfo={"rank": i, "world_size": n}).encode()) for i in range(n))


@file(".tar")
def tar_of_others(n):
    "files in an archive that are not traces"
    return tar([("notes/%d.txt" % i, b"hello") for i in range(n)] + [("rank0.json", trace([span("x", 0, 5)]).encode())])


def bundle(n, name):
    """A bundle for `replay`: n inputs, of which name(i) says the file."""
    program = hlo_parameters(n).encode()
    files = {name(i): npy() for i in range(n)}
    listed = [{"path": p, "bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for p, d in [("program.txt", program), *files.items()]]
    manifest = {"schema": "reprise.bundle/1", "reprise": "1", "program": "program.txt", "partitions": 1, "seed": 0, "redacted": False,
                "arrays": [{"name": "in%d" % i, "file": name(i), "type": "f32[4]"} for i in range(n)], "files": listed}
    return tar([("manifest.json", json.dumps(manifest).encode()), ("program.txt", program), *files.items()])


@file(".tar")
def bundle_one_file(n):
    "arrays of a bundle that name one file"
    return bundle(n, lambda i: "in.npy")


@file(".tar")
def bundle_files(n):
    "arrays of a bundle with a file each"
    return bundle(n, lambda i: "in%d.npy" % i)


@folder
def arrays(n, path):
    "parameters of a program, and arrays for them"
    (path / "p.hlo.txt").write_text(hlo_parameters(n))
    with zipfile.ZipFile(path / "in.npz", "w") as z:
        for i in range(n):
            z.writestr("in%d.npy" % i, npy())


@folder
def dump_folder(n, path):
    "modules in a dump of XLA"
    for i in range(n):
        for stage in ("before_optimizations", "after_optimizations"):
            (path / ("module_%04d.jit_f%d.%s.txt" % (i, i, stage))).write_text(hlo(chain(3), root="ROOT r = f32[64] negate(c2)"))


@folder
def dump_passes(n, path):
    "passes of one module in a dump of XLA"
    for i in range(n):
        (path / ("module_0001.jit_f.%04d.pipeline.after_p%d.before_p%d.txt" % (i, i, i + 1))).write_text(
            hlo(chain(3 + i % 2), root="ROOT r = f32[64] negate(c2)"))
    (path / "module_0001.jit_f.before_optimizations.txt").write_text(hlo(chain(3), root="ROOT r = f32[64] negate(c2)"))
    (path / "module_0001.jit_f.after_optimizations.txt").write_text(hlo(chain(3), root="ROOT r = f32[64] negate(c2)"))


def torch_record(kind, value, frame, compile=0, payload=None, attempt=0):
    meta = {kind: value, "frame_id": frame, "frame_compile_id": compile, "attempt": attempt}
    if payload is not None:
        meta["has_payload"] = hashlib.md5(payload.encode()).hexdigest()
    return "V1118 15:12:37.851000 17703 torch/a.py:1] %s\n" % json.dumps(meta) + (
        "".join("\t%s\n" % line for line in payload.split("\n")) if payload is not None else "")


def torch_compile(i, compile=0, reasons=None, calls=1):
    graph = "class GraphModule(torch.nn.Module):\n    def forward(self):\n" + "".join(
        '        # File: /home/m.py:%d in f, code: x\n        mm_%d: "f32[8]" = torch.ops.aten.mm.default(a, b)\n' % (10 + k, k)
        for k in range(calls))
    code = "# AOT ID: ['%d_forward']\ndef call(args):\n" % i + "".join(
        "    # Topologically Sorted Source Nodes: [mm_%d], Original ATen: []\n    extern_kernels.mm(a, b)\n" % k for k in range(calls))
    return "".join((
        torch_record("artifact", {"name": "recompile_reasons"}, i, compile, json.dumps(reasons)) if reasons else "",
        torch_record("dynamo_start", {"stack": [{"line": i, "name": "f%d" % i, "filename": "/home/m.py"}]}, i, compile),
        torch_record("artifact", {"name": "dynamo_graph_break_reason"}, i, compile,
                     "Graph break in user code at /home/m.py:%d\nGraph Break Reason: a\n\nkind" % i),
        torch_record("dynamo_output_graph", {}, i, compile, graph),
        torch_record("artifact", {"name": "inductor_post_grad_graph"}, i, compile, graph),
        torch_record("inductor_output_code", {}, i, compile, code),
        torch_record("artifact", {"name": "fx_graph_cache_miss"}, i, compile, json.dumps({"key": "f%d_%d" % (i, compile)})),
        torch_record("compilation_metrics", {"co_name": "torch_dynamo_resume_in_f_at_%d" % i, "co_filename": "/home/m.py",
                                             "co_firstlineno": i, "duration_us": 100}, i, compile)))


@file(".log")
def torch_compiles(n):
    "functions that torch.compile compiled, each with a graph break"
    return "".join(torch_compile(i) for i in range(n))


@file(".log")
def torch_recompiles(n):
    "compiles of one function"
    return "".join(torch_compile(0, i, ["0/%d: x == %d" % (i - 1, i)]) for i in range(n))


@file(".log")
def torch_calls(n):
    "calls of one compiled graph"
    return torch_compile(0, calls=n)
