#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording adds to a step, on a machine with a GPU: the same jobs without a recorder, under `reprise record` in several ways, and
under torch.profiler, taking turns.

    bench/record_cost.py [--reprise PATH] [--jobs LIST] [--variants LIST] [--turns N] [--seconds N] [--json FILE]

For each variant one process imports the framework and waits. In each turn, in an order that rotates, it forks a child that uses the
device, warms up, and times its steps; so that a turn has no imports, and all variants meet the same neighbours of the machine. A
child gives the median of its steps; the table has the median over the turns with an interval of 95 % (bootstrap), and the ratio to
the plain step, turn by turn. `--seconds` ends the turns when the time is used up.

Of `detail` a child times steps with detail and those between them apart; `overall` is what 2 of 200 and 198 of 200 of these make. The
job `generate` has no steps that the recorder sees, so that all of it is recorded in detail.
Needs PyTorch, and JAX for the job `jax`; nothing else.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

DETAIL, PERIOD = 2, 200
VARIANTS = {"plain": None, "default": [], "light": ["--light"], "detail": ["--detail", f"{DETAIL}:{PERIOD}"], "profiler": None,
            "all-operators": ["--set", "frameworks.operators=all"], "launches": ["--set", "cuda.calls=launches"],
            "kernels": ["--with", "cuda", "--set", "cuda.calls=none", "--set", "cuda.sync=off"],
            "cuda": ["--with", "cuda"], "nvtx": ["--set", "frameworks.torch=nvtx"], "all-calls": ["--set", "cuda.calls=all"]}
USUAL = "plain,default,light,detail,profiler"
STEPS = {"t5": 24, "generate": 6, "gpu": 40, "gan": 60, "jax": 200}
WARM = 5


# ------------------------------------------------------------------ the jobs: each returns a function that does one step

def job_t5(torch, device):
    """Encoder and decoder of many small kernels, in bf16 autocast, with gradients clipped: limited by the host."""
    nn = torch.nn
    model = nn.Transformer(d_model=256, nhead=4, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=512,
                           batch_first=True, norm_first=True).to(device)
    words, head = nn.Embedding(1000, 256).to(device), nn.Linear(256, 1000).to(device)
    parameters = [p for m in (model, words, head) for p in m.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    source, target = (torch.randint(0, 1000, (8, 32), device=device) for _ in range(2))

    def step():
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = head(model(words(source), words(target)))
            loss = nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    return step


def job_generate(torch, device):
    """A request of 24 tokens, one by one, with a cache: limited by the host."""
    nn = torch.nn
    layers, width, heads = 12, 512, 8
    words, head = nn.Embedding(1000, width).to(device), nn.Linear(width, 1000).to(device)
    blocks = [nn.ModuleDict({"n1": nn.LayerNorm(width), "qkv": nn.Linear(width, 3 * width), "o": nn.Linear(width, width),
                             "n2": nn.LayerNorm(width), "up": nn.Linear(width, 4 * width), "down": nn.Linear(4 * width, width)}
                            ).to(device) for _ in range(layers)]

    @torch.no_grad()
    def step():
        token = torch.zeros(4, 1, dtype=torch.long, device=device)
        caches = [None] * layers
        for _ in range(24):
            x = words(token)
            for i, b in enumerate(blocks):
                q, k, v = (t.view(4, 1, heads, -1).transpose(1, 2) for t in b["qkv"](b["n1"](x)).chunk(3, -1))
                if caches[i] is not None:
                    k, v = torch.cat((caches[i][0], k), 2), torch.cat((caches[i][1], v), 2)
                caches[i] = k, v
                y = nn.functional.scaled_dot_product_attention(q, k, v)
                x = x + b["o"](y.transpose(1, 2).reshape(4, 1, width))
                x = x + b["down"](nn.functional.gelu(b["up"](b["n2"](x))))
            token = head(x[:, -1:]).argmax(-1)
        token.cpu()
    return step


def job_gpu(torch, device):
    """Few large kernels: limited by the device."""
    size = 8192 if device.type == "cuda" else 256
    model = torch.nn.Sequential(*(torch.nn.Linear(size, size, bias=False) for _ in range(4))).to(device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(size, size, device=device, dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()
    return step


def job_gan(torch, device):
    """Two networks with an optimizer each."""
    nn = torch.nn
    make = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 128)).to(device)
    judge = nn.Sequential(nn.Linear(128, 256), nn.LeakyReLU(), nn.Linear(256, 256), nn.LeakyReLU(), nn.Linear(256, 1)).to(device)
    of_make, of_judge = torch.optim.Adam(make.parameters()), torch.optim.Adam(judge.parameters())
    real, loss = torch.randn(64, 128, device=device), nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(64, 1, device=device), torch.zeros(64, 1, device=device)

    def step():
        fake = make(torch.randn(64, 64, device=device))
        of_judge.zero_grad()
        (loss(judge(real), ones) + loss(judge(fake.detach()), zeros)).backward()
        of_judge.step()
        of_make.zero_grad()
        loss(judge(fake), ones).backward()
        of_make.step()
    return step


def job_jax():
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.PRNGKey(0), 6)
    state = [[jax.random.normal(k, (1024, 1024)) / 32 for k in keys], jax.random.normal(keys[0], (512, 1024))]

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x ** 2).mean()

    @jax.jit
    def update(weights, x):
        return [w - 0.01 * g for w, g in zip(weights, jax.grad(loss)(weights, x))]

    def step():
        state[0] = update(*state)
        state[0][-1].block_until_ready()
    return step


TORCH_JOBS = {"t5": job_t5, "generate": job_generate, "gpu": job_gpu, "gan": job_gan}


# ------------------------------------------------------------------ a child: times the steps of jobs

def timed(step, n, sync):
    """Times of n steps in milliseconds: of the host, which does not wait for the device at each, but at the end."""
    at = [time.perf_counter()]
    for _ in range(n):
        step()
        at.append(time.perf_counter())
    sync()
    at[-1] = time.perf_counter()
    return [1e3 * (b - a) for a, b in zip(at, at[1:])]


def run_job(name, variant):
    n = STEPS[name]
    if name == "jax":
        step, sync, torch = job_jax(), (lambda: None), None
    else:
        import torch
        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        step, sync = TORCH_JOBS[name](torch, device), (torch.cuda.synchronize if device.type == "cuda" else lambda: None)
    if variant == "detail":  # counted from the first step on: there is no warm-up of which the recorder does not know
        times = timed(step, max(60, n), sync)
        detailed, between = times[3:3 + DETAIL], times[DETAIL + 3 + WARM:]
        inside, outside = statistics.median(detailed), statistics.median(between)
        return {"ms": outside, "detailed_ms": inside, "overall_ms": (DETAIL * inside + (PERIOD - DETAIL) * outside) / PERIOD}
    timed(step, WARM, sync)
    if variant == "profiler" and torch:
        kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * torch.cuda.is_available()
        with torch.profiler.profile(activities=kinds):
            timed(step, 2, sync)
            times = timed(step, n, sync)
    else:
        times = timed(step, n, sync)
    return {"ms": statistics.median(times), "mean_ms": statistics.fmean(times)}


def serve(variant, framework):
    """Imports the framework; then forks a child for each line of standard input, which names jobs."""
    __import__(framework)
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            result = {}
            for name in line.split():
                try:
                    result[name] = run_job(name, variant)
                except Exception as problem:
                    result[name] = {"error": f"{type(problem).__name__}: {problem}"[:200]}
            print(json.dumps(result), flush=True)
            sys.exit(0)
        os.waitpid(child, 0)
        print("end", flush=True)


# ------------------------------------------------------------------ the turns

class Server:
    def __init__(self, variant, framework, args, folder):
        command = [sys.executable, os.path.abspath(__file__), "--serve", variant, framework]
        options = VARIANTS[variant]
        if options is not None:
            command = [args.reprise, "record", "-q", "-o", f"{folder}/{variant}-{framework}", *options, "--", *command]
        self.log = open(f"{folder}/{variant}-{framework}.log", "w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        if self.process.stdout.readline().strip() != "ready":
            self.log.seek(0)
            raise SystemExit(f"variant '{variant}' did not start: {self.log.read()[-600:]}")

    def ask(self, jobs):
        self.process.stdin.write(" ".join(jobs) + "\n")
        self.process.stdin.flush()
        result = {}
        for line in self.process.stdout:
            if line.strip() == "end":
                return result
            if line.startswith("{"):
                result.update(json.loads(line))
        raise SystemExit("a recorded process ended")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def interval(values, seed=1):
    """The median, and an interval of 95 % by bootstrap."""
    chance = random.Random(seed)
    middles = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), middles[50], middles[1949]


def report(samples, args):
    """samples[job][variant]: one result a turn."""
    rows = []
    for job, by_variant in samples.items():
        plain = [s.get("ms") for s in by_variant.get("plain", [])]
        base = statistics.median([p for p in plain if p] or [0])
        profiler = [s["ms"] - p for s, p in zip(by_variant.get("profiler", []), plain) if s.get("ms") and p]
        for variant, results in by_variant.items():
            for key in ("ms", "detailed_ms", "overall_ms"):
                pairs = [(s[key], p) for s, p in zip(results, plain) if s.get(key) and p]
                if not pairs:
                    continue
                row = {"job": job, "variant": variant + {"ms": " between" if variant == "detail" else "", "detailed_ms": " in detail",
                                                         "overall_ms": " overall"}[key], "turns": len(pairs)}
                row["ms"], row["ms_low"], row["ms_high"] = interval([a for a, _ in pairs])
                row["ratio"], row["ratio_low"], row["ratio_high"] = interval([a / b for a, b in pairs])
                if profiler and statistics.median(profiler) > 0.02 * base:
                    row["of_profiler"] = statistics.median([a - b for a, b in pairs]) / statistics.median(profiler)
                rows.append(row)
        rows += [{"job": job, "variant": v, "error": r[0]["error"]} for v, r in by_variant.items() if r and all("error" in s for s in r)]
    print(f"\n{'job':9} {'variant':17} {'turns':>5} {'step ms':>9} {'95 %':>19} {'of plain':>8} {'95 %':>15} {'of profiler':>11}")
    for r in rows:
        if "error" in r:
            print(f"{r['job']:9} {r['variant']:17} {r['error']}")
            continue
        share = f"{r['of_profiler']:.2f}" if "of_profiler" in r else ""
        print(f"{r['job']:9} {r['variant']:17} {r['turns']:5} {r['ms']:9.3f} {r['ms_low']:9.3f}-{r['ms_high']:9.3f} {r['ratio']:8.3f} "
              f"{r['ratio_low']:7.3f}-{r['ratio_high']:7.3f} {share:>11}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"rows": rows, "samples": samples}, out, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reprise", default="build/reprise")
    parser.add_argument("--jobs", default="t5,generate,gpu,gan,jax")
    parser.add_argument("--variants", default=USUAL, help="of " + ", ".join(VARIANTS))
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--json")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(*args.serve)
    jobs, variants = args.jobs.split(","), args.variants.split(",")
    begun, samples = time.time(), {j: {v: [] for v in variants if (j, v) != ("jax", "profiler")} for j in jobs}
    with tempfile.TemporaryDirectory(prefix="record_cost-") as folder:
        groups = {"torch": [j for j in jobs if j != "jax"], "jax": [j for j in jobs if j == "jax"]}
        servers = {(v, f): Server(v, f, args, folder) for f, of in groups.items() if of for v in variants
                   if (f, v) != ("jax", "profiler")}
        for turn in range(args.turns):
            order = list(servers)
            order = order[turn % len(order):] + order[:turn % len(order)]
            for variant, framework in order:
                asked = groups[framework]
                for some in [[j] for j in asked] if variant == "detail" else [asked]:  # its steps are counted in each process
                    results = servers[variant, framework].ask(some)
                    for job in some:  # one a turn, so that turns can be compared
                        samples[job][variant].append(results.get(job, {"error": "no result"}))
            print(f"turn {turn + 1}: {time.time() - begun:.0f} s", file=sys.stderr, flush=True)
            if time.time() - begun > args.seconds * (turn + 1) / (turn + 2):
                break
        for server in servers.values():
            server.close()
    report(samples, args)


if __name__ == "__main__":
    sys.exit(main())
