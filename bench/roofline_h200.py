#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of known work on one GPU: each is measured alone, then all are profiled, so that `reprise roofline` of the trace can be
compared with the work counted here and the time measured here.

    python3 bench/roofline_h200.py OUT      needs PyTorch and a GPU; takes about two minutes

writes OUT/roofline.json.gz (a Kineto trace with shapes; each case is in an annotation "case NAME") and OUT/roofline_truth.json:
{"device", "torch", "cases": [{"name", "flops", "bytes", "us": {"median", "q25", "q75"}, "calls"}]}. us: time of one call by events of the
device around many calls, without the profiler. flops and bytes are counted from the sizes in this file, null where a case has none.
`bench/roofline_h200.py --compare REPRISE OUT` prints both side by side (no GPU needed)."""
import gzip, json, os, subprocess, sys

CALLS = 5


def cases(torch):
    """name, function, flops, bytes; a case that this PyTorch or device cannot make is skipped."""
    F, dev = torch.nn.functional, "cuda"
    size = {torch.float64: 8, torch.float32: 4, torch.bfloat16: 2, torch.float16: 2, torch.int8: 1}

    def rand(*shape, dtype=torch.bfloat16, grad=False):
        x = torch.randn(*shape, device=dev, dtype=torch.float32).to(dtype)
        return x.requires_grad_(grad)

    def mm(n, dtype, tf32=False):
        a, b = rand(n, n, dtype=dtype), rand(n, n, dtype=dtype)

        def run():
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.mm(a, b)
            torch.backends.cuda.matmul.allow_tf32 = False
        return run, 2 * n**3, 3 * n * n * size[dtype]

    yield "mm_bf16_8192", lambda: mm(8192, torch.bfloat16)
    yield "mm_fp16_4096", lambda: mm(4096, torch.float16)
    yield "mm_fp32_4096", lambda: mm(4096, torch.float32)
    yield "mm_tf32_8192", lambda: mm(8192, torch.float32, True)
    yield "mm_fp64_4096", lambda: mm(4096, torch.float64)

    def bmm(b, m, n, k):
        x, y = rand(b, m, k), rand(b, k, n)
        return lambda: torch.bmm(x, y), 2 * b * m * n * k, 2 * b * (m * k + k * n + m * n)

    yield "bmm_bf16_64x1024", lambda: bmm(64, 1024, 1024, 128)
    yield "bmm_bf16_odd_k", lambda: bmm(512, 197, 197, 63)

    def addmm():
        c, a, b = rand(8192), rand(4096, 2048), rand(2048, 8192)
        return lambda: torch.addmm(c, a, b), 2 * 4096 * 2048 * 8192, 2 * (8192 + 4096 * 2048 + 2048 * 8192 + 4096 * 8192)

    def baddbmm():
        c, a, b = rand(32, 512, 512), rand(32, 512, 256), rand(32, 256, 512)
        return lambda: torch.baddbmm(c, a, b), 2 * 32 * 512 * 512 * 256, 2 * 32 * (2 * 512 * 512 + 2 * 512 * 256)

    def linear():
        x, w, b = rand(16, 1024, 1024), rand(4096, 1024), rand(4096)
        return lambda: F.linear(x, w, b), 2 * 16384 * 1024 * 4096, 2 * (16384 * 1024 + 4096 * 1024 + 4096 + 16384 * 4096)

    def scaled_mm():
        n, kind = 8192, torch.float8_e4m3fn
        a, b = rand(n, n).to(kind), rand(n, n).to(kind).t()
        one = torch.ones((), device=dev)
        return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16), 2 * n**3, n * n * (1 + 1 + 2)

    def int_mm():
        n = 8192
        a = torch.randint(-8, 8, (n, n), device=dev, dtype=torch.int8)
        return lambda: torch._int_mm(a, a.t()), 2 * n**3, n * n * (1 + 1 + 4)

    def grouped_mm():
        g, m, k, n = 8, 4096, 2048, 2048
        a, b = rand(m, k), rand(g, n, k).transpose(-2, -1)
        offs = torch.arange(m // g, m + 1, m // g, device=dev, dtype=torch.int32)
        return lambda: torch._grouped_mm(a, b, offs), 2 * m * k * n, 2 * (m * k + g * k * n + m * n)

    yield "addmm_bf16", addmm
    yield "baddbmm_bf16", baddbmm
    yield "linear_bf16", linear
    yield "scaled_mm_fp8_8192", scaled_mm
    yield "int_mm_8192", int_mm
    yield "grouped_mm_bf16", grouped_mm

    def conv(n, c, f, h, r, stride=1, dilation=1, groups=1, transposed=False, backward=False, dtype=torch.float16):
        pad = dilation * (r - 1) // 2
        shape = (c, f // groups, r, r) if transposed else (f, c // groups, r, r)
        x = rand(n, c, h, h, dtype=dtype).to(memory_format=torch.channels_last).requires_grad_(backward)
        w = rand(*shape, dtype=dtype).to(memory_format=torch.channels_last).requires_grad_(backward)
        op = F.conv_transpose2d if transposed else F.conv2d
        kw = dict(stride=stride, padding=pad, dilation=dilation, groups=groups)
        y = op(x, w, **kw)
        macs = (x.numel() * shape[1] if transposed else y.numel() * shape[1]) * r * r
        moved = size[dtype] * (x.numel() + w.numel() + y.numel())
        if not backward:
            return lambda: op(x, w, **kw), 2 * macs, moved
        g = torch.ones_like(y)

        def run():
            torch.autograd.grad(y, (x, w), g, retain_graph=True)
        return run, 4 * macs, size[dtype] * (y.numel() + 2 * x.numel() + 2 * w.numel())

    yield "conv3x3_fp16", lambda: conv(32, 256, 256, 56, 3)
    yield "conv1x1_fp16", lambda: conv(32, 256, 1024, 28, 1)
    yield "conv3x3_stride2_fp16", lambda: conv(32, 128, 256, 56, 3, stride=2)
    yield "conv3x3_dilated_fp16", lambda: conv(16, 128, 128, 56, 3, dilation=2)
    yield "conv3x3_groups_fp16", lambda: conv(32, 256, 256, 56, 3, groups=32)
    yield "conv3x3_depthwise_fp16", lambda: conv(32, 256, 256, 56, 3, groups=256)
    yield "conv3x3_transposed_fp16", lambda: conv(16, 128, 128, 56, 3, transposed=True)
    yield "conv3x3_backward_fp16", lambda: conv(32, 256, 256, 56, 3, backward=True)
    yield "conv3x3_fp32", lambda: conv(32, 128, 128, 56, 3, dtype=torch.float32)

    def sdpa(backend, b, h, hk, s, d, causal=False, backward=False):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        q, k, v = rand(b, h, s, d, grad=backward), rand(b, hk, s, d, grad=backward), rand(b, hk, s, d, grad=backward)
        pairs = s * (s + 1) // 2 if causal else s * s
        flops, moved = 4 * b * h * pairs * d, 2 * b * d * s * (2 * h + 2 * hk)
        kw = dict(is_causal=causal)
        if hk != h:
            kw["enable_gqa"] = True
        chosen = getattr(SDPBackend, backend)
        with sdpa_kernel([chosen]):
            y = F.scaled_dot_product_attention(q, k, v, **kw)
        if not backward:
            def run():
                with sdpa_kernel([chosen]):
                    F.scaled_dot_product_attention(q, k, v, **kw)
            return run, flops, moved
        g = torch.ones_like(y)
        return lambda: torch.autograd.grad(y, (q, k, v), g, retain_graph=True), 5 * flops // 2, None

    for backend in ("FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"):
        short, s = backend.split("_")[0].lower(), 1024 if backend == "MATH" else 4096
        yield f"sdpa_{short}", lambda backend=backend, s=s: sdpa(backend, 4, 16, 16, s, 128)
        yield f"sdpa_{short}_causal", lambda backend=backend, s=s: sdpa(backend, 4, 16, 16, s, 128, True)
        if backend != "MATH":
            yield f"sdpa_{short}_backward", lambda backend=backend, s=s: sdpa(backend, 4, 16, 16, s, 128, False, True)
            yield f"sdpa_{short}_causal_backward", lambda backend=backend, s=s: sdpa(backend, 4, 16, 16, s, 128, True, True)
    yield "sdpa_flash_gqa", lambda: sdpa("FLASH_ATTENTION", 4, 32, 8, 4096, 128, True)

    big = (64, 1024, 1024)
    n = big[0] * big[1] * big[2]

    def plain(make, flops, moved):
        return lambda: (make(), flops, moved)

    x, y = rand(*big), rand(*big)
    w, b, row = rand(1024), rand(1024), rand(1024)
    yield "add", plain(lambda: lambda: torch.add(x, y), n, 6 * n)
    yield "mul_row", plain(lambda: lambda: torch.mul(x, row), n, 4 * n + 2048)
    yield "gelu", plain(lambda: lambda: F.gelu(x), None, 4 * n)
    yield "cast_fp32", plain(lambda: lambda: x.float(), 0, 6 * n)
    yield "copy", plain(lambda: lambda: y.copy_(x), 0, 4 * n)
    yield "transpose_copy", plain(lambda: lambda: x.transpose(1, 2).contiguous(), 0, 4 * n)
    yield "cat", plain(lambda: lambda: torch.cat([x, y]), 0, 8 * n)
    yield "fill", plain(lambda: lambda: y.fill_(1), 0, 2 * n)
    yield "sum_all", plain(lambda: lambda: x.sum(), n, 2 * n)
    yield "sum_rows", plain(lambda: lambda: x.sum(-1), n, 2 * n + 2 * n // 1024)
    yield "softmax", plain(lambda: lambda: F.softmax(x, -1), None, 4 * n)
    yield "layer_norm", plain(lambda: lambda: F.layer_norm(x, (1024,), w, b), None, 4 * n + 4096)
    yield "rms_norm", plain(lambda: lambda: F.rms_norm(x, (1024,), w), None, 4 * n + 2048)
    yield "small_add", plain(lambda: lambda p=rand(64), q=rand(64): torch.add(p, q), 64, 384)

    def norm_backward():
        p = rand(*big, grad=True)
        z = F.layer_norm(p, (1024,), w.clone().requires_grad_(True), b)
        g = torch.ones_like(z)
        return lambda: torch.autograd.grad(z, (p,), g, retain_graph=True), None, 6 * n

    def embedding(backward):
        t = rand(50304, 1024, grad=backward)
        i = torch.randint(0, 50304, (32768,), device=dev)
        e = F.embedding(i, t)
        if not backward:
            return lambda: F.embedding(i, t), 0, 8 * 32768 + 4 * 32768 * 1024
        g = torch.ones_like(e)
        return lambda: torch.autograd.grad(e, (t,), g, retain_graph=True), None, None

    def batch_norm():
        p = rand(32, 256, 56, 56)
        m, v, a = torch.zeros(256, device=dev), torch.ones(256, device=dev), torch.ones(256, device=dev)
        return lambda: F.batch_norm(p, m, v, a, a, True), None, 4 * p.numel()

    def cross_entropy():
        p, i = rand(8192, 50304), torch.randint(0, 50304, (8192,), device=dev)
        return lambda: F.cross_entropy(p, i), None, None

    def optimizer(**kw):
        ps = [torch.nn.Parameter(rand(1024, 4096, dtype=torch.float32)) for _ in range(12)]
        for p in ps:
            p.grad = torch.ones_like(p)
        o, k = torch.optim.AdamW(ps, **kw), 12 * 1024 * 4096
        return o.step, None, 28 * k if kw.get("fused") else None  # reads p, g, m, v, writes p, m, v

    def compiled():
        f = torch.compile(lambda p, q: F.gelu(p + q) * q)
        f(x, y)
        return lambda: f(x, y), None, 6 * n

    def compiled_norm():
        f = torch.compile(lambda p: F.layer_norm(p.float(), (1024,)).to(torch.bfloat16))
        f(x)
        return lambda: f(x), None, 4 * n

    def graphed():
        a = rand(2048, 2048)
        out = torch.empty_like(a)
        g = torch.cuda.CUDAGraph()
        torch.mm(a, a, out=out)
        torch.cuda.synchronize()
        with torch.cuda.graph(g):
            torch.mm(a, a, out=out)
            torch.add(out, a, out=out)
        return g.replay, None, None

    yield "layer_norm_backward", norm_backward
    yield "embedding", lambda: embedding(False)
    yield "embedding_backward", lambda: embedding(True)
    yield "batch_norm", batch_norm
    yield "cross_entropy", cross_entropy
    yield "adamw_fused", lambda: optimizer(fused=True)
    yield "adamw_foreach", lambda: optimizer(foreach=True)
    yield "compiled_pointwise", compiled
    yield "compiled_layer_norm", compiled_norm
    yield "graph_replay", graphed


def measure(torch, run):
    """Microseconds of one call: batches of calls between two events, so that launching is hidden."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(15):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(2_000_000)  # the host runs ahead meanwhile
        begin.record()
        for _ in range(CALLS):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    times.sort()
    return {"median": times[7], "q25": times[3], "q75": times[11]}


def record(out):
    import torch
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    ready, truth = [], []
    for name, make in cases(torch):
        try:
            run, flops, moved = make()
            us = measure(torch, run)
        except Exception as e:  # a case that this build cannot make
            print(f"{name}: skipped: {type(e).__name__}: {str(e)[:120]}", file=sys.stderr)
            continue
        ready.append((name, run))
        truth.append({"name": name, "flops": flops, "bytes": moved, "us": us, "calls": CALLS})
        rate = f"{flops / us['median'] / 1e6:8.1f} TFLOP/s" if flops else " " * 16
        print(f"{name:32} {us['median']:10.1f} us {rate}", flush=True)
    path = os.path.join(out, "roofline.json")
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds, record_shapes=True) as p:
        for name, run in ready:
            with torch.profiler.record_function("case " + name):
                for _ in range(CALLS):
                    run()
            torch.cuda.synchronize()
    p.export_chrome_trace(path)
    with open(path, "rb") as f, gzip.open(path + ".gz", "wb") as g:
        g.write(f.read())
    os.remove(path)
    with open(os.path.join(out, "roofline_truth.json"), "w") as f:
        json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cases": truth}, f, indent=1)


def windows(path):
    """name of a case -> the time from its annotation to the next one, counted from the first event; in microseconds."""
    events = [e for e in json.load(gzip.open(path))["traceEvents"] if e.get("ph") == "X" and isinstance(e.get("ts"), (int, float))]
    first = min(e["ts"] for e in events)
    marks = sorted({e["ts"]: e["name"][5:] for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("case ")}.items())
    ends = [ts for ts, _ in marks[1:]] + [max(e["ts"] + e["dur"] for e in events)]
    return {name: (ts - first, end - first) for (ts, name), end in zip(marks, ends)}


def compare(reprise, out):
    truth = json.load(open(os.path.join(out, "roofline_truth.json")))
    trace = os.path.join(out, "roofline.json.gz")
    at = windows(trace)
    print(f"{truth['device']}, PyTorch {truth['torch']}; ratios are roofline / counted here, and device time / measured here")
    for c in truth["cases"]:
        a, b = at[c["name"]]
        got = json.loads(subprocess.run([reprise, "roofline", "--by", "category", "--limit", "0", "--json", "--window", f"{a:.3f}us..{b:.3f}us", trace],
                                        check=True, capture_output=True).stdout)
        rows = [r for r in got["rows"] if r["peak_share"] is not None]
        add = lambda key: sum(r[key] for r in rows)
        ratio = lambda a, b: f"{a / b / c['calls']:6.3f}" if a and b else "     -"
        t = add("device_ns") / 1e9
        share = sum(r["peak_share"] * r["device_ns"] for r in rows) / 1e9 / t if t else 0
        print(f"{c['name']:32} flops {ratio(add('flops'), c['flops'])} bytes {ratio(add('bytes'), c['bytes'])} "
              f"time {ratio(got['device_ns'] / 1e3, c['us']['median'])} {add('flops') / t / 1e12 if t else 0:7.1f} TFLOP/s "
              f"{add('bytes') / t / 1e12 if t else 0:5.2f} TB/s {100 * share:5.1f} % {max(rows, key=lambda r: r['device_ns'])['bound'] if rows else '-'}"
              f"  modelled {100 * got['modelled_share']:5.1f} %")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--compare":
        compare(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        record(sys.argv[1])
    else:
        sys.exit(__doc__)
