#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times of matrix products, convolutions and attention on this GPU, in several number formats: a table for `reprise model train`.

    bench/measure_ops.py TABLE.csv [--ops LIST] [--shapes N] [--seed S] [--seconds T]

Half of the shapes are drawn as networks have them (widths, resolutions and batches that go together), half at random from powers of
two. A time is the sum of the operator's kernels, the mean of several calls after a warm-up, by torch.profiler. Convolutions and
attention are measured forwards and backwards, with the library's default choice of algorithms; tensors are contiguous, but those of
attention are cut out of one projection, as networks have them.
"""
import argparse
import bisect
import csv
import random
import time

CALLS, WARM_UP, BATCH = 5, 2, 40
LARGEST_FLOPS, LARGEST_ELEMENTS = 2e12, 4e8
FORMATS = {"matmul": ["fp32", "tf32", "bf16"], "bmm": ["fp32", "tf32", "bf16"], "conv2d": ["fp32", "bf16"],
           "sdpa": ["fp32", "bf16"], "sdpa_causal": ["fp32", "bf16"]}


# ------------------------------------------------------------------ shapes

def network_conv(r):
    """A convolution of a residual, dense, inverted-bottleneck or U-shaped network: fewer pixels, more channels."""
    stage, side = r.randint(0, 5), r.choice([224, 224, 256, 192, 299, 128, 64, 512])
    side = max(side // 2 ** stage, 4)
    width = r.choice([16, 24, 32, 40, 48, 64, 80, 96, 128])
    c = 3 if stage == 0 and r.random() < 0.6 else int(width * 2 ** r.uniform(0, stage)) // 8 * 8
    k = max(8, int(c * r.choice([0.25, 0.5, 1, 1, 1, 2, 4, 6]))) // 8 * 8 if c > 3 else r.choice([16, 32, 64, 96])
    kernel = r.choice([1, 1, 1, 3, 3, 3, 5, 7] if c > 3 else [3, 4, 7, 7])
    return r.choice([1, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256]), c, side, side, min(k, 2048), kernel, r.choice([1, 1, 1, 2])


def random_conv(r):
    side = r.choice([7, 14, 28, 56, 112, 224])
    return (2 ** r.randint(0, 7), r.choice([3, 4, 8, 16, 32, 64, 128, 256, 512, 1024]), side, side, 2 ** r.randint(3, 10), r.choice([1, 3, 5, 7]),
            r.choice([1, 2]))


def network_matmul(r):
    """A projection of a transformer (tokens x width), forwards or one of the products of its backward pass."""
    tokens, width = r.choice([1, 2, 4, 8, 16, 32, 64]) * r.choice([64, 77, 128, 196, 197, 256, 384, 512, 1024, 2048]), r.choice([
        128, 192, 256, 384, 512, 640, 768, 896, 1024, 1280, 1536, 2048, 2560, 3072, 4096, 5120])
    other = r.choice([width, width, 3 * width, 4 * width, int(width * 8 / 3) // 64 * 64, 1000, 8192, 30522, 32000, 50257])
    return r.choice([(tokens, width, other), (tokens, other, width), (width, tokens, other), (other, tokens, width)])


def random_matmul(r):
    return tuple(max(1, int(2 ** r.uniform(4, 13)) // 16 * 16) if r.random() < 0.7 else int(2 ** r.uniform(3, 13)) for _ in range(3))


def some_bmm(r):
    heads, width = r.choice([4, 8, 12, 16, 32, 64, 128, 256, 512, 768]), r.choice([32, 64, 64, 80, 96, 128])
    a, b = r.choice([49, 64, 77, 128, 196, 197, 256, 512, 1024]), r.choice([64, 128, 197, 256, 512, 1024])
    return r.choice([(heads, a, width, b), (heads, a, b, width), (heads, width, a, b)])


def some_attention(r):
    return (r.choice([1, 2, 4, 8, 16, 32, 64]), r.choice([4, 6, 8, 12, 14, 16, 20, 32]),
            r.choice([49, 64, 77, 80, 96, 128, 196, 197, 256, 384, 512, 577, 1024, 1500, 2048]), r.choice([32, 64, 64, 64, 80, 96, 128]))


DRAW = {"sdpa": [some_attention], "sdpa_causal": [some_attention], "conv2d": [network_conv, random_conv], "matmul": [network_matmul, random_matmul], "bmm": [some_bmm, some_bmm]}


def flops(op, s):
    if op == "conv2d":
        pad = s[5] // 2
        out = [(side + 2 * pad - s[5]) // s[6] + 1 for side in s[2:4]]
        return 2 * s[0] * out[0] * out[1] * s[1] * s[5] ** 2 * s[4] if min(out) > 0 else 0
    if op.startswith("sdpa"):
        return 4 * s[0] * s[1] * s[2] ** 2 * s[3]
    size = 2
    for x in s:
        size *= x
    return size


def elements(op, s):
    if op == "conv2d":
        return s[0] * s[2] * s[3] * (s[1] + s[4])
    if op.startswith("sdpa"):
        return 4 * s[0] * s[1] * s[2] * s[3]
    *batch, m, k, n = s
    return (batch[0] if batch else 1) * (m * k + k * n + m * n)


def draw(r, count, ops):
    """Operators and shapes, each once: of all operators half are convolutions, three tenths products."""
    seen, weights = [], {"conv2d": 5, "matmul": 3}
    while len(seen) < count:
        op = r.choices(ops, [weights.get(op, 1) for op in ops])[0]
        shape = r.choice(DRAW[op])(r)
        if 0 < flops(op, shape) < LARGEST_FLOPS and elements(op, shape) < LARGEST_ELEMENTS and (op, shape) not in seen:
            seen.append((op, shape))
    return seen


# ------------------------------------------------------------------ measuring

def calls_of(torch, op, shape, kind):
    """[(name in the table, function)] of an operator in a number format."""
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32

    def tensor(*size):
        return torch.randn(*size, device="cuda", dtype=dtype)
    if op == "conv2d":
        n, c, h, w, k, size, stride = shape
        x, weight, pad = tensor(n, c, h, w), tensor(k, c, size, size), size // 2
        grad = torch.nn.functional.conv2d(x, weight, None, stride, pad)
        rest = [None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, [True, True, False]]
        return [("conv2d", lambda: torch.nn.functional.conv2d(x, weight, None, stride, pad)),
                ("conv2d_backward", lambda: torch.ops.aten.convolution_backward(grad, x, weight, *rest))]
    if op.startswith("sdpa"):
        b, h, n, d = shape
        q, k, v = (x.transpose(1, 2).requires_grad_() for x in tensor(3, b, n, h, d))

        def forward():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=op == "sdpa_causal")
        result, grad = forward(), tensor(b, n, h, d).transpose(1, 2)
        return [(op, forward), (op + "_backward", lambda: torch.autograd.grad(result, (q, k, v), grad, retain_graph=True))]
    *batch, m, k, n = shape
    a, b = tensor(*batch, m, k), tensor(*batch, k, n)
    return [(op, lambda: torch.matmul(a, b))]


def measure(torch, todo):
    """[(op, shape, format)] -> rows of the table."""
    from torch.profiler import ProfilerActivity, profile, record_function

    made = []
    for op, shape, kind in todo:
        made += [(name, "x".join(map(str, shape)), kind, call) for name, call in calls_of(torch, op, shape, kind)]
    for *_, kind, call in made:
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        for _ in range(WARM_UP):
            call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
        for name, shape, kind, call in made:
            torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
            with record_function(f"row {name} {kind} {shape}"):
                for _ in range(CALLS):
                    call()
                torch.cuda.synchronize()  # gradients are launched by another thread: kernels are found by time
    events = [(e.time_range.start, e.time_range.end, e.name, e.device_type == torch.autograd.DeviceType.CUDA) for e in p.events()]
    work = sorted((begin, end - begin) for begin, end, name, device in events if device and not name.startswith("row "))
    starts, rows = [begin for begin, _ in work], []
    for begin, end, name, device in events:
        if name.startswith("row ") and not device:
            ran = work[bisect.bisect(starts, begin):bisect.bisect(starts, end)]
            if ran:
                rows.append([*name.split()[1:3], name.split()[3], f"{sum(t for _, t in ran) / CALLS:.3f}"])
    return rows


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("table")
    args.add_argument("--ops", default="conv2d,matmul,bmm", help=f"of {', '.join(FORMATS)}")
    args.add_argument("--shapes", type=int, default=2000)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--seconds", type=float, default=1e9, help="end after the first batch beyond this")
    args = args.parse_args()
    import torch

    began, drawn, done = time.monotonic(), draw(random.Random(args.seed), args.shapes, args.ops.split(",")), 0
    with open(args.table, "w", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["op", "dtype", "shape", "kernel_us"])
        for at in range(0, len(drawn), BATCH):
            todo = [(op, shape, kind) for op, shape in drawn[at:at + BATCH] for kind in FORMATS[op]]
            for part in ([x for x in todo if x[2] == kind] for kind in ("fp32", "tf32", "bf16")):
                table.writerows(measure(torch, part))
            out.flush()
            torch.cuda.empty_cache()
            done += len(drawn[at:at + BATCH])
            if time.monotonic() - began > args.seconds:
                break
    print(f"{done} shapes in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
