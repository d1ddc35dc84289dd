#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording adds to a step, on a machine with a GPU: jobs of several trainers under `reprise record` in several ways, and under
torch.profiler, beside the same job without any of them.

    bench/record_cost.py [--reprise PATH] [--jobs LIST] [--variants LIST] [--steps N] [--seconds N] [--total N]
                         [--json FILE] [--keep FOLDER]

The same step takes up to half as long again for some milliseconds or seconds on a shared machine. So processes take turns of 20 steps,
and what is compared is the time that a fifth of the steps of all turns stay below, with an interval of 95 % (turns drawn again, the same
of all processes). The row `plain2` compares two processes without a recorder: it shows what the method cannot tell apart. Of
`--detail 2:200` the steps between those with detail are compared; `all` counts each step, the switches too.

Needs PyTorch; jobs whose library is not installed are left out: lightning, trainer and generate (transformers), accelerate, jax (optax).
"""
import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

WARM_UP, TURN, SETTLE = 35, 20, 2  # steps before the first turn, of a turn, and at its begin that are not counted
WITH, PERIOD, FIRST = 2, 200, 2    # of `--detail`: from this step on
DETAIL = ["--detail", f"{WITH}:{PERIOD}"]
VARIANTS = {"plain": None, "default": ["--every-step"], "light": ["--every-step", "--light"], "detail": DETAIL, "profiler": None,
            "attached": [*DETAIL, "--set", "cuda.detach=off"],
            "no-cuda": [*DETAIL, "--with", "host,nvtx,frameworks"],
            "all-operators": ["--every-step", "--set", "frameworks.operators=all"], "all-calls": ["--every-step", "--set", "cuda.calls=all"],
            "kernels": ["--every-step", "--with", "host,cuda", "--set", "cuda.calls=none", "--set", "cuda.sync=off"]}


class Clock:
    """Told where each step ends; waits for the turn of this process."""

    def __init__(self, variant, steps, sync=lambda: None):
        self.steps = WARM_UP + (steps - WARM_UP) // TURN * TURN
        self.variant, self.sync, self.times, self.began, self.profiler = variant, sync, [], None, None

    def mark(self):
        """For jobs that the recorder finds no steps of by itself while they run."""
        mark = getattr(ctypes.CDLL(None), "reprise_record_mark", None)
        if mark:
            mark(b"step")

    def tick(self):
        step = len(self.times)
        turn_ends = step >= WARM_UP and (step + 1 - WARM_UP) % TURN == 0
        if turn_ends:
            self.sync()
        now = time.perf_counter()
        self.times.append(1e3 * (now - self.began) if self.began else 0)
        if self.variant == "profiler" and step == 10:
            import torch

            kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * torch.cuda.is_available()
            self.profiler = torch.profiler.profile(activities=kinds)
            self.profiler.start()
        if turn_ends or step + 1 == WARM_UP:
            self.sync()
            if step + 1 >= self.steps:
                return False
            print("@ready", flush=True)
            if not sys.stdin.readline():  # time is up
                return False
        self.began = time.perf_counter()
        return True


# ------------------------------------------------------------------ the jobs: each calls clock.tick() after each step, until it is false

def job_t5(torch, device, clock):
    """Encoder and decoder of many small kernels, in bf16 autocast, with gradients clipped: limited by the host."""
    nn = torch.nn
    model = nn.Transformer(d_model=256, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=512,
                           batch_first=True, norm_first=True).to(device)
    words, head = nn.Embedding(1000, 256).to(device), nn.Linear(256, 1000).to(device)
    parameters = [p for m in (model, words, head) for p in m.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    source, target = (torch.randint(0, 1000, (8, 32), device=device) for _ in range(2))
    while True:
        optimizer.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = head(model(words(source), words(target)))
            loss = nn.functional.cross_entropy(out.flatten(0, 1), target.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if not clock.tick():
            return


def job_gan(torch, device, clock):
    """Two networks with an optimizer each: limited by the host."""
    nn = torch.nn
    make = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 128)).to(device)
    judge = nn.Sequential(nn.Linear(128, 256), nn.LeakyReLU(), nn.Linear(256, 256), nn.LeakyReLU(), nn.Linear(256, 1)).to(device)
    of_make, of_judge = torch.optim.Adam(make.parameters()), torch.optim.Adam(judge.parameters())
    real, loss = torch.randn(64, 128, device=device), nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(64, 1, device=device), torch.zeros(64, 1, device=device)
    while True:
        fake = make(torch.randn(64, 64, device=device))
        of_judge.zero_grad()
        (loss(judge(real), ones) + loss(judge(fake.detach()), zeros)).backward()
        of_judge.step()
        of_make.zero_grad()
        loss(judge(fake), ones).backward()
        of_make.step()
        if not clock.tick():
            return


def job_gpu(torch, device, clock):
    """Few large kernels: limited by the device."""
    size = 8192 if device.type == "cuda" else 256
    model = torch.nn.Sequential(*(torch.nn.Linear(size, size, bias=False) for _ in range(4))).to(device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    while True:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        clock.sync()
        if not clock.tick():
            return


def small_network(torch):
    nn = torch.nn
    return nn.Sequential(*(m for _ in range(6) for m in (nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())), nn.Linear(256, 10))


def job_lightning(torch, device, clock):
    """Lightning's trainer around a small network: limited by the host."""
    import logging

    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = small_network(torch)

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    class Tick(lightning.Callback):
        def on_train_batch_end(self, trainer, *_):
            trainer.should_stop = not clock.tick() or trainer.should_stop

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    data = torch.utils.data.TensorDataset(torch.randn(64 * clock.steps, 256), torch.randint(0, 10, (64 * clock.steps,)))
    trainer = lightning.Trainer(max_steps=clock.steps, accelerator="gpu" if device.type == "cuda" else "cpu", devices=1, logger=False,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, callbacks=[Tick()])
    trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=64))


def small_gpt(torch):
    import transformers

    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=4, n_head=4, n_embd=256, vocab_size=1000, n_positions=128,
                                                                 bos_token_id=0, eos_token_id=0))


def job_trainer(torch, device, clock):
    """transformers.Trainer, gradients accumulated over 2: limited by the host."""
    import transformers

    class Tick(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            control.should_training_stop = not clock.tick()

    rows = [{"input_ids": r, "labels": r} for r in torch.randint(0, 1000, (256, 64))]
    with tempfile.TemporaryDirectory() as folder:
        options = transformers.TrainingArguments(output_dir=folder, max_steps=clock.steps, per_device_train_batch_size=4, report_to=[],
                                                 gradient_accumulation_steps=2, disable_tqdm=True, save_strategy="no",
                                                 logging_strategy="no", use_cpu=device.type == "cpu")
        transformers.Trainer(model=small_gpt(torch), args=options, train_dataset=rows, callbacks=[Tick()]).train()


def job_accelerate(torch, device, clock):
    """Accelerate, gradients accumulated over 2: limited by the host."""
    import accelerate

    accelerator = accelerate.Accelerator(gradient_accumulation_steps=2, cpu=device.type == "cpu")
    model = small_network(torch)
    data = torch.utils.data.TensorDataset(torch.randn(64 * 64, 256), torch.randint(0, 10, (64 * 64,)))
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()),
                                                   torch.utils.data.DataLoader(data, batch_size=64))
    while True:
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients and not clock.tick():
                return


def job_generate(torch, device, clock):
    """transformers' generate, a request of 8 tokens: limited by the host."""
    model = small_gpt(torch).to(device).eval()
    start = torch.ones(4, 8, dtype=torch.long, device=device)
    with torch.no_grad():
        while True:
            model.generate(start, attention_mask=torch.ones_like(start), max_new_tokens=8, min_new_tokens=8, do_sample=False,
                           pad_token_id=0)
            clock.mark()
            if not clock.tick():
                return


def job_jax(_torch, _device, clock, width=1024, batch=512):
    """optax: a network of six layers, its loss read in each step: one CUDA graph of some fifty small kernels."""
    import jax
    import jax.numpy as jnp
    import optax

    keys = jax.random.split(jax.random.PRNGKey(0), 6)
    weights, x = [jax.random.normal(k, (width, width)) / width ** 0.5 for k in keys], jax.random.normal(keys[0], (batch, width))
    adam = optax.adam(1e-3)

    def loss(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return (x ** 2).mean()

    @jax.jit
    def update(weights, state, x):
        value, gradients = jax.value_and_grad(loss)(weights, x)
        change, state = adam.update(gradients, state)
        return optax.apply_updates(weights, change), state, value

    state = adam.init(weights)
    while True:
        weights, state, value = update(weights, state, x)
        value.block_until_ready()
        if not clock.tick():
            return


def job_jax_large(torch, device, clock):
    """The same, limited by the device."""
    job_jax(torch, device, clock, 4096, 8192)


JOBS = {"t5": job_t5, "gan": job_gan, "gpu": job_gpu, "lightning": job_lightning, "trainer": job_trainer, "accelerate": job_accelerate,
        "generate": job_generate, "jax": job_jax, "jax_large": job_jax_large}


# ------------------------------------------------------------------ processes

def run_job(variant, job, steps):
    """In a process of its own: prints the times of its steps."""
    torch = device = None
    if not job.startswith("jax"):
        import torch
        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    clock = Clock(variant, steps, torch.cuda.synchronize if device and device.type == "cuda" else lambda: None)
    try:
        JOBS[job](torch, device, clock)
    except ImportError as missing:
        clock.times = []
        print(f"@missing {missing.name}", flush=True)
    print("@times " + json.dumps([round(t, 5) for t in clock.times]), flush=True)
    if clock.profiler:
        os._exit(0)  # to stop it takes minutes


class Process:
    def __init__(self, name, job, args, folder):
        variant = name.rstrip("2")
        command = [sys.executable, os.path.abspath(__file__), "--run", variant, job, str(args.steps)]
        if VARIANTS[variant] is not None:
            command = [args.reprise, "record", "-o", f"{folder}/{name}-{job}", *VARIANTS[variant], "--", *command]
        self.name, self.job, self.said, self.times = name, job, "", None
        self.log = f"{folder}/{name}-{job}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                                            env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})

    def listen(self):
        """Until it has run its turn; whether it has another."""
        for line in self.process.stdout:
            if line.startswith("@ready"):
                return True
            if line.startswith("@times"):
                self.times = json.loads(line[7:])
                return False
            self.said = line if line.startswith("@") else self.said
        return False

    def turn(self):
        try:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        except OSError:
            return False
        return self.listen()

    def end(self):
        try:
            self.process.stdin.close()
            while self.listen():
                pass
            self.process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
        if not self.times:
            with open(self.log) as log:
                self.said += log.read()[-300:]


def take_turns(processes, seconds, end):
    ready = [p for p in processes if p.listen()]
    until = min(time.time() + seconds, end)
    while len(ready) > 1 and time.time() < until:
        ready = [p for p in ready if p.turn()]


# ------------------------------------------------------------------ the table

def low(turns):
    """The time that a fifth of the steps stay below."""
    times = sorted(t for turn in turns for t in turn)
    return times[len(times) // 5]


def longer(mine, plain, seed=1):
    """How much longer steps are, and an interval of 95 %: by turns that are drawn again."""
    chance, n = random.Random(seed), min(len(t) for t in (mine, *plain))

    def ratio(turns):
        return low([mine[i] for i in turns]) / low([p[i] for p in plain for i in turns]) - 1

    drawn = sorted(ratio(chance.choices(range(n), k=n)) for _ in range(1000))
    return ratio(range(n)), drawn[25], drawn[974]


def has_detail(step):
    """Or is next to one that has."""
    return (step - FIRST + 2) % PERIOD < WITH + 6


def turns_of(process, choose=lambda step: True):
    """The times of each turn, without its first steps."""
    n = len(process.times or [])
    return [[process.times[i] for i in range(at + SETTLE, at + TURN) if choose(i)] for at in range(WARM_UP, n - TURN + 1, TURN)]


def row_of(process, plain):
    sampled = process.name in ("detail", "attached", "no-cuda")
    others = [turns_of(p) for p in plain]
    mine = turns_of(process, lambda i: not (sampled and has_detail(i)))
    row = {"job": process.job, "variant": process.name, "turns": len(mine), "plain_ms": low([t for turns in others for t in turns])}
    row["added"], row["low"], row["high"] = longer(mine, others)
    row["added_ms"] = row["added"] * row["plain_ms"]
    if sampled:  # what steps with detail and the switches have beyond their neighbours, over a cycle
        beyond = [t - statistics.median(m) for turn, m, at in zip(turns_of(process), mine, range(WARM_UP, 1 << 30, TURN))
                  for i, t in enumerate(turn) if has_detail(at + SETTLE + i)]
        cycles = max(1, sum(has_detail(i) and not has_detail(i + 1) for i in range(WARM_UP, len(process.times))))
        row["switch_ms"] = sum(beyond) / cycles
        row["all"] = row["added"] + row["switch_ms"] / PERIOD / row["plain_ms"]
    return row


def report(processes, args):
    rows = []
    for job in args.jobs.split(","):
        of = {p.name: p for p in processes if p.job == job}
        for p in of.values():
            if len(p.times or []) < WARM_UP + TURN:
                p.times = None
                print(f"{job}, {p.name}: {p.said.strip()}")
        plain = [p for p in (of["plain"], of["plain2"]) if p.times]
        if len(plain) < 2:
            continue
        mine = [row_of(p, [of["plain"]] if p.name == "plain2" else plain) for p in of.values() if p.times and p.name != "plain"]
        base = next((r["added_ms"] for r in mine if r["variant"] == "profiler"), 0)
        for row in mine:
            if row["variant"] != "profiler" and base > 0.02 * row["plain_ms"]:
                row["of_profiler"] = row["added_ms"] / base
        rows += mine
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"rows": rows, "times": [{"job": p.job, "variant": p.name, "ms": p.times} for p in processes]}, out)
    print(f"\n{'job':10} {'variant':13} {'turns':>5} {'plain':>9} {'added':>8} {'95 %':>17} {'of profiler':>11} {'all':>8} {'switches':>9}")
    for r in rows:
        share = f"{r['of_profiler']:.2f}" if "of_profiler" in r else ""
        whole = f"{100 * r['all']:6.2f} % {r['switch_ms']:6.1f} ms" if "all" in r else ""
        print(f"{r['job']:10} {r['variant']:13} {r['turns']:5} {r['plain_ms']:6.3f} ms {100 * r['added']:6.1f} % "
              f"{100 * r['low']:7.1f} to {100 * r['high']:5.1f} % {share:>11} {whole}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reprise", default="build/reprise")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--variants", default="default,detail,profiler", help="of " + ", ".join(VARIANTS))
    parser.add_argument("--steps", type=int, default=635)
    parser.add_argument("--seconds", type=float, default=1e6, help="for each job")
    parser.add_argument("--total", type=float, default=1e6, help="seconds for all of them")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the recordings there")
    parser.add_argument("--json")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run_job(args.run[0], args.run[1], int(args.run[2]))
    names = ["plain", *args.variants.split(","), "plain2"]
    asked = [(j, v) for j in args.jobs.split(",") for v in names if not (j.startswith("jax") and v == "profiler")]
    with tempfile.TemporaryDirectory(prefix="record_cost-") as folder:
        folder = args.keep or folder
        os.makedirs(folder, exist_ok=True)
        end = time.time() + args.total
        processes = [Process(v, j, args, folder) for j, v in asked]
        for job in args.jobs.split(","):
            mine = [p for p in processes if p.job == job]
            take_turns(mine, args.seconds, end)
            for p in mine:
                p.end()
    report(processes, args)


if __name__ == "__main__":
    sys.exit(main())
