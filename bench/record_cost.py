#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording adds to a step, on a machine with a GPU: the same jobs without a recorder, under `reprise record` in several ways, and
under torch.profiler, taking turns.

    bench/record_cost.py [--reprise PATH] [--jobs LIST] [--variants LIST] [--turns N] [--seconds N] [--generations N] [--json FILE]

Each job has one process for each variant, which warms up and waits. In each turn, in an order that rotates, each runs a few steps, so
that all variants meet the same neighbours of the machine; the others sleep. A turn gives the median of its steps; the table has the
median over the turns with an interval of 95 % (bootstrap), and the ratio to the plain step, turn by turn. `--seconds` ends the turns
when the time is used up; `--generations` starts all processes anew so many times, because where a process lies in memory makes it faster
or slower, too.

Of `detail` steps with detail and those between them are timed apart, with a short period; `overall` is what the cycle comes to with the
long one, its switches included. The job `generate` has no steps that the recorder sees, so that all of it is recorded in detail.
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

DETAIL, PERIOD, SHORT = 2, 200, 20
VARIANTS = {"plain": None, "default": [], "light": ["--light"], "detail": ["--detail", f"{DETAIL}:{SHORT}"], "profiler": None,
            "all-operators": ["--set", "frameworks.operators=all"], "launches": ["--set", "cuda.calls=launches"],
            "kernels": ["--with", "cuda", "--set", "cuda.calls=none", "--set", "cuda.sync=off"],
            "cuda": ["--with", "cuda"], "nvtx": ["--set", "frameworks.torch=nvtx"], "all-calls": ["--set", "cuda.calls=all"]}
USUAL = "plain,default,light,detail,profiler"
STEPS = {"t5": 6, "generate": 3, "gpu": 10, "gan": 30, "mlp": 60, "jax": 100}
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


def job_mlp(torch, device):
    """The loop of a trainer around a small network: a batch is copied to the device, its loss is read every tenth step."""
    nn = torch.nn
    model = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(256, 256), nn.ReLU())), nn.Linear(256, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    batches = [(torch.randn(64, 256), torch.randint(0, 10, (64,))) for _ in range(10)]
    done = [0]

    def step():
        x, y = (t.to(device) for t in batches[done[0] % 10])
        done[0] += 1
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if done[0] % 10 == 0:
            loss.item()
    return step


TORCH_JOBS = {"t5": job_t5, "generate": job_generate, "gpu": job_gpu, "gan": job_gan, "mlp": job_mlp}


# ------------------------------------------------------------------ a server: runs steps of a job when it is asked to

def timed(step, n, sync):
    """Times of n steps in milliseconds: of the host, which does not wait for the device at each, but at the end."""
    at = [time.perf_counter()]
    for _ in range(n):
        step()
        at.append(time.perf_counter())
    sync()
    at[-1] = time.perf_counter()
    return [1e3 * (b - a) for a, b in zip(at, at[1:])]


def prepare(job):
    """A function that does a step, one that waits for the device, and PyTorch, if the job uses it."""
    if job == "jax":
        return job_jax(), (lambda: None), None
    import torch
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return TORCH_JOBS[job](torch, device), (torch.cuda.synchronize if device.type == "cuda" else lambda: None), torch


def turn_of_profiler(step, n, sync, torch):
    kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * torch.cuda.is_available()
    with torch.profiler.profile(activities=kinds):
        timed(step, 2, sync)
        return timed(step, n, sync)


def serve(variant, job):
    """Answers each line of standard input with the times of some steps."""
    step, sync, torch = prepare(job)
    done = 0 if variant == "detail" else len(timed(step, WARM, sync))  # the recorder counts from the first step on
    print("ready", flush=True)
    for line in sys.stdin:
        if variant == "profiler" and torch:
            times = turn_of_profiler(step, int(line), sync, torch)
        else:
            times = timed(step, int(line), sync)
        print(json.dumps({"first": done, "times": times}), flush=True)
        done += len(times)


def summary(variant, turns):
    """One result a turn, of the answers of a process."""
    if variant != "detail":
        return [{"ms": statistics.median(t["times"]), "mean_ms": statistics.fmean(t["times"])} for t in turns]
    results = []
    for t in turns:
        kinds = {"between": [], "cycle": []}
        for i, ms in enumerate(t["times"], t["first"]):
            at = (i - 2) % SHORT  # 0: the switch to detail, then the detail, then the switch back
            if i >= SHORT:
                kinds["between" if at > DETAIL + 1 else "cycle"].append((at, ms))
        between = statistics.median(ms for _, ms in kinds["between"]) if kinds["between"] else None
        detailed = [ms for at, ms in kinds["cycle"] if 0 < at <= DETAIL]
        results.append({"ms": between, "detailed_ms": statistics.median(detailed) if detailed else None,
                        "overall_ms": (between + sum(ms - between for _, ms in kinds["cycle"]) / PERIOD)
                        if between and len(kinds["cycle"]) == DETAIL + 2 else None})
    return results


# ------------------------------------------------------------------ the turns

class Server:
    def __init__(self, variant, job, args, folder):
        command = [sys.executable, os.path.abspath(__file__), "--serve", variant, job]
        options = VARIANTS[variant]
        if options is not None:
            command = [args.reprise, "record", "-q", "-o", f"{folder}/{variant}-{job}", *options, "--", *command]
        self.variant, self.job, self.turns = variant, job, []
        self.log = open(f"{folder}/{variant}-{job}.log", "w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)

    def read(self, begin):
        for line in self.process.stdout:
            if line.startswith(begin):
                return line
        self.log.seek(0)
        raise SystemExit(f"job '{self.job}' ended, variant '{self.variant}': {self.log.read()[-600:]}")

    def ask(self):
        n = SHORT if self.variant == "detail" else STEPS[self.job]  # of detail, a whole cycle
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        self.turns.append(json.loads(self.read("{")))

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
    parser.add_argument("--generations", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER", help="keep the recordings there; with one generation")
    parser.add_argument("--json")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve(*args.serve)
    jobs, variants = args.jobs.split(","), args.variants.split(",")
    asked = [(v, j) for j in jobs for v in variants if (j, v) != ("jax", "profiler")]
    begun, samples = time.time(), {j: {v: [] for v, of in asked if of == j} for j in jobs}
    for generation in range(args.generations):
        with tempfile.TemporaryDirectory(prefix="record_cost-") as folder:
            servers = [Server(v, j, args, args.keep or folder) for v, j in asked]
            for server in servers:
                server.read("ready")
            for turn in range(args.turns // args.generations):
                for server in servers[turn % len(servers):] + servers[:turn % len(servers)]:
                    server.ask()
                used = time.time() - begun
                print(f"turn {turn + 1}: {used:.0f} s", file=sys.stderr, flush=True)
                if used * (1 + 1 / (turn + 1)) > args.seconds * (generation + 1) / args.generations:
                    break
            for server in servers:
                server.close()
                samples[server.job][server.variant] += summary(server.variant, server.turns)
    report(samples, args)


if __name__ == "__main__":
    sys.exit(main())
