# SPDX-License-Identifier: Apache-2.0
"""The programs that tests/live/h200_record records, and the comparison of what came out.

    gpu_record.py work [--profiler FILE] [--seconds S]   a train step, launches, a CUDA graph; JSON
    gpu_record.py endless                                train steps until it is killed
    gpu_record.py nccl                                   collectives of one rank, and a send to itself
    gpu_record.py pair                                   collectives of two ranks on one GPU
    gpu_record.py external                               launches within external correlations
    gpu_record.py loader                                 forked workers that load data
    gpu_record.py jax                                    a compiled step of JAX
    gpu_record.py compare OURS.json TORCH.json           kernels of the range "measured" in both
"""
import collections, contextlib, gzip, json, os, sys, time

STEPS, LAUNCHES, NODES, REPLAYS = 60, 20000, 200, 100


def train_setup(torch):
    torch.manual_seed(1)
    layers = [torch.nn.Linear(2048, 2048) for _ in range(8)]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(4096, 2048, device="cuda")

    def step():
        optimizer.zero_grad()
        loss = model(data).square().mean()
        loss.backward()
        optimizer.step()

    return step


def measure_steps(torch, step):
    """Milliseconds a step, GPU-bound: the best of three rounds."""
    best = 1e9
    for _ in range(3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for i in range(STEPS):
            torch.cuda.nvtx.range_push(f"step {i}")
            step()
            torch.cuda.nvtx.range_pop()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - begin) / STEPS * 1e3)
    return best


def measure_launches(torch):
    """Nanoseconds a launch of a small kernel, for the host: the fastest tenth and the median of
    batches that fit into the queue. (The machine's other tenants slow whole stretches down.)"""
    x, batches = torch.zeros(16, device="cuda"), []
    for _ in range(LAUNCHES // 100):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(100):
            x.add_(1)
        batches.append((time.perf_counter() - begin) / 100 * 1e9)
    batches.sort()
    return batches[len(batches) // 10], batches[len(batches) // 2]


def measure_graph(torch):
    """Nanoseconds a node of a CUDA graph: the best of five rounds."""
    x, graph = torch.zeros(16, device="cuda"), torch.cuda.CUDAGraph()
    x.add_(1)
    with torch.cuda.graph(graph):
        for _ in range(NODES):
            x.add_(1)
    best = 1e9
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(REPLAYS // 5):
            graph.replay()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - begin) / (REPLAYS // 5 * NODES) * 1e9)
    return best


def work(words):
    import torch
    trace = words[words.index("--profiler") + 1] if "--profiler" in words else None
    step = train_setup(torch)
    for _ in range(10):
        step()
    torch.cuda.synchronize()
    result = {}
    if trace:
        from torch.profiler import ProfilerActivity, profile, record_function
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            with record_function("measured"):
                result["step_ms"] = measure_steps(torch, step)
        p.export_chrome_trace(trace)
    else:
        torch.cuda.nvtx.range_push("measured")
        result["step_ms"] = measure_steps(torch, step)
        torch.cuda.nvtx.range_pop()
        result["launch_ns"], result["launch_median_ns"] = measure_launches(torch)
        result["node_ns"] = measure_graph(torch)
    print(json.dumps(result))


def endless(words):
    import torch
    step = train_setup(torch)
    print("begun", flush=True)
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < 60:
        step()
        torch.cuda.synchronize()
        n += 1
        print(n, flush=True)


def nccl(words):
    import torch
    import torch.distributed as dist
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29517", "RANK": "0",
                       "WORLD_SIZE": "1"})
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda:0"))
    x, y = torch.ones(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    for _ in range(20):
        dist.all_reduce(x)
        dist.all_gather_into_tensor(y, x)
        dist.broadcast(x, 0)
    torch.cuda.synchronize()
    print(json.dumps({"collectives": 60, "sends": send_to_self(torch, x, y),
                      "nccl": ".".join(map(str, torch.cuda.nccl.version()))}))
    dist.destroy_process_group()


def send_to_self(torch, x, y):
    """NCCL alone: a communicator of one rank that sends to itself, which PyTorch does not allow."""
    import ctypes

    class Id(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 128)]

    library = ctypes.CDLL("libnccl.so.2")
    name, comm = Id(), ctypes.c_void_p()
    float32, stream = 7, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    codes = [library.ncclGetUniqueId(ctypes.byref(name)),
             library.ncclCommInitRank(ctypes.byref(comm), 1, name, 0)]
    for _ in range(10):
        count = ctypes.c_size_t(1 << 16)
        codes += [library.ncclGroupStart(),
                  library.ncclSend(ctypes.c_void_p(x.data_ptr()), count, float32, 0, comm, stream),
                  library.ncclRecv(ctypes.c_void_p(y.data_ptr()), count, float32, 0, comm, stream),
                  library.ncclGroupEnd()]
    torch.cuda.synchronize()
    codes.append(library.ncclCommDestroy(comm))
    return 10 if not any(codes) else f"refused: {codes}"


def pair(words):
    """NCCL refuses two ranks on one GPU, unless they say that they are two hosts."""
    import subprocess
    ranks = []
    for rank in range(2):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0", NCCL_IB_DISABLE="1",
                   NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo",
                   MASTER_ADDR="127.0.0.1", MASTER_PORT="29519")
        ranks.append(subprocess.Popen([sys.executable, __file__, "one_of_pair"], env=env))
    codes = [r.wait(100) for r in ranks]
    print(json.dumps({"exits": codes}))
    sys.exit(max(codes))


def one_of_pair(words):
    import torch
    import torch.distributed as dist
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    rank = dist.get_rank()
    x, y = torch.ones(1 << 20, device="cuda"), torch.empty(2 << 20, device="cuda")
    for _ in range(20):
        dist.all_reduce(x)
        dist.all_gather_into_tensor(y, x)
        dist.reduce_scatter_tensor(x, y)
        dist.broadcast(x, 0)
        (dist.send if rank == 0 else dist.recv)(x, 1 - rank)
    torch.cuda.synchronize()
    dist.destroy_process_group()


def external(words):
    """Ten launches, each within an external correlation of its own, as a framework would push it."""
    import ctypes
    import torch
    x = torch.zeros(16, device="cuda")
    x.add_(1)
    cupti = ctypes.CDLL("libcupti.so.13")
    custom0, last, codes = 3, ctypes.c_uint64(), []
    for i in range(10):
        codes.append(cupti.cuptiActivityPushExternalCorrelationId(custom0, ctypes.c_uint64(4700 + i)))
        x.add_(1)
        codes.append(cupti.cuptiActivityPopExternalCorrelationId(custom0, ctypes.byref(last)))
    torch.cuda.synchronize()
    print(json.dumps({"codes": sum(codes)}))


class Numbers:
    def __len__(self):
        return 64

    def __getitem__(self, i):
        import torch
        return torch.full((8,), float(i))


def loader(words):
    import torch
    x = torch.zeros(8, device="cuda")
    for batch in torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2):
        x += batch.cuda().sum(0)
    torch.cuda.synchronize()
    print(json.dumps({"sum": float(x[0])}))


def jax(words):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax as j
    import jax.numpy as np
    f = j.jit(lambda a: np.tanh(a @ a).sum())
    a = np.ones((1024, 1024))
    for _ in range(20):
        f(a).block_until_ready()
    print(json.dumps({"steps": 20, "backend": j.default_backend()}))


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        data = json.load(f)
    return data["traceEvents"] if isinstance(data, dict) else data


def kernels_of(path):
    """Counts and total microseconds of the kernels inside the range "measured", by name."""
    events = load(path)
    ranges = [e for e in events if e.get("name") == "measured" and e.get("ph") == "X"
              and e.get("cat") != "gpu_user_annotation"]
    begin, end = ranges[0]["ts"], ranges[0]["ts"] + ranges[0]["dur"]
    count, total = collections.Counter(), collections.Counter()
    for e in events:
        if e.get("cat") == "kernel" and e.get("ph") == "X" and begin <= e["ts"] <= end:
            count[e["name"]] += 1
            total[e["name"]] += e["dur"]
    return count, total


def compare(words):
    (ours, our_us), (theirs, their_us) = kernels_of(words[0]), kernels_of(words[1])
    a, b = sum(our_us.values()), sum(their_us.values())
    print(json.dumps({
        "names_ours": len(ours), "names_torch": len(theirs), "names_same": set(ours) == set(theirs),
        "kernels_ours": sum(ours.values()), "kernels_torch": sum(theirs.values()),
        "counts_same": ours == theirs, "total_ours_us": round(a, 1), "total_torch_us": round(b, 1),
        "total_difference_percent": round(100 * (a - b) / b, 3) if b else None,
        "only_ours": sorted((ours - theirs).items())[:5],
        "only_torch": sorted((theirs - ours).items())[:5]}))


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2:])
