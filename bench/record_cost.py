#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording adds to a step, on a machine with a GPU: jobs of several trainers under `reprise record` in several ways, and under
torch.profiler.

    bench/record_cost.py [--reprise PATH] [--jobs LIST] [--variants LIST] [--turns N] [--seconds N] [--json FILE]
                         [--keep FOLDER]

A turn is half steps with recording and half without, in the same process: processes differ, and so do cores and minutes on a shared
machine, by more than what is measured. `reprise record --detail 4:9` takes such turns; of torch.profiler each turn starts and stops one.
The steps next to a switch are not counted. All processes start together and then wait for each other, so that one runs at a time. The
table has the medians over the turns with an interval of 95 % (bootstrap). `between` is what is left of the recorder in the steps without
detail: their ratio to steps of a process without it; that compares processes, and is as uncertain as its interval says.

Needs PyTorch; jobs whose library is not installed are left out: lightning, trainer and generate (transformers), accelerate, jax (optax).
"""
import argparse
import ctypes
import fcntl
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

WITH, PERIOD, FIRST = 4, 9, 2  # as `--detail 4:9`: of each 9 steps from the second on, 4 and the one of the switch
LONG = (2, 200)                 # the usual sampling, for which the cost is computed
DETAIL = ["--detail", f"{WITH}:{PERIOD}"]
VARIANTS = {"plain": None, "profiler": None, "default": DETAIL, "light": [*DETAIL, "--light"],
            "records": [*DETAIL, "--set", "cuda.calls=records"], "all-operators": [*DETAIL, "--set", "frameworks.operators=all"],
            "no-operators": [*DETAIL, "--set", "frameworks.operators=none"], "all-calls": [*DETAIL, "--set", "cuda.calls=all"],
            "kernels": [*DETAIL, "--with", "host,cuda", "--set", "cuda.calls=none", "--set", "cuda.sync=off"]}


class Clock:
    """Told where each step ends. Starts and stops what is compared, and waits for the turn of this process."""

    def __init__(self, variant, turns, gate, sync=lambda: None):
        self.steps = FIRST + PERIOD * (turns + 1) + 1  # the first turn warms up
        self.variant, self.gate, self.sync, self.at, self.profiler = variant, gate, sync, [], None
        recorder = ctypes.CDLL(None)
        self.mark = getattr(recorder, "reprise_record_mark", None)

    def tick(self):
        step = len(self.at)
        if step == FIRST + PERIOD - 2:
            self.sync()
            fcntl.flock(self.gate, fcntl.LOCK_EX)
        if self.mark:
            self.mark(b"step")
        self.at.append(time.perf_counter())
        if self.variant == "profiler" and step >= FIRST:
            self.switch((step - FIRST) % PERIOD)
        return step + 1 < self.steps

    def switch(self, at):
        import torch

        if at == 0:
            kinds = [torch.profiler.ProfilerActivity.CPU] + [torch.profiler.ProfilerActivity.CUDA] * torch.cuda.is_available()
            self.profiler = torch.profiler.profile(activities=kinds)
            self.profiler.start()
        elif at == WITH + 1 and self.profiler:
            self.profiler.stop()
            self.profiler = None

    def turns(self):
        """Of each turn the times of its steps, in milliseconds: with, without, and those of the switches."""
        times = [1e3 * (b - a) for a, b in zip(self.at, self.at[1:])]
        result = []
        for i in range(FIRST + PERIOD, len(times) - PERIOD + 1, PERIOD):
            result.append({"with": times[i + 1:i + WITH + 1], "without": times[i + WITH + 2:i + PERIOD],
                           "switch": [times[i], times[i + WITH + 1]]})
        return result


# ------------------------------------------------------------------ the jobs: each calls clock.tick() after each step, until it is false

def job_t5(torch, device, clock):
    """Encoder and decoder of many small kernels, in bf16 autocast, with gradients clipped: limited by the host."""
    nn = torch.nn
    model = nn.Transformer(d_model=256, nhead=4, num_encoder_layers=4, num_decoder_layers=4, dim_feedforward=512,
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
            if not clock.tick():
                return


def job_jax(_torch, _device, clock):
    """optax: a network of six layers, its loss read in each step."""
    import jax
    import jax.numpy as jnp
    import optax

    keys = jax.random.split(jax.random.PRNGKey(0), 6)
    weights, x = [jax.random.normal(k, (1024, 1024)) / 32 for k in keys], jax.random.normal(keys[0], (512, 1024))
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


JOBS = {"t5": job_t5, "gan": job_gan, "gpu": job_gpu, "lightning": job_lightning, "trainer": job_trainer, "accelerate": job_accelerate,
        "generate": job_generate, "jax": job_jax}


# ------------------------------------------------------------------ processes

def run_job(variant, job, turns, gate):
    """In a process of its own: prints its turns."""
    torch = device = None
    if job != "jax":
        import torch
        torch.manual_seed(0)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with open(gate, "w") as lock:
        clock = Clock(variant, turns * (4 if job == "jax" else 1), lock,
                      torch.cuda.synchronize if device and device.type == "cuda" else lambda: None)
        try:
            JOBS[job](torch, device, clock)
        except ImportError as missing:
            print(json.dumps({"missing": missing.name}))
            return
    print(json.dumps({"turns": clock.turns()}), flush=True)


def start(variant, job, args, folder):
    command = [sys.executable, os.path.abspath(__file__), "--run", variant, job, str(args.turns), f"{folder}/gate"]
    options = VARIANTS[variant]
    if options is not None:
        command = [args.reprise, "record", "-q", "-o", f"{folder}/{variant}-{job}", *options, "--", *command]
    with open(f"{folder}/{variant}-{job}.log", "w") as log:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)


def result_of(process, variant, job, folder, until):
    try:
        out = process.communicate(timeout=max(0.1, until - time.time()))[0]
    except subprocess.TimeoutExpired:
        process.terminate()
        out = process.communicate()[0]
    out = [line for line in out.splitlines() if line.startswith("{")]
    if out:
        return json.loads(out[-1])
    with open(f"{folder}/{variant}-{job}.log") as log:
        return {"error": log.read()[-300:]}


# ------------------------------------------------------------------ the table

def interval(values, seed=1):
    """The median, and an interval of 95 % by bootstrap."""
    chance = random.Random(seed)
    middles = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), middles[50], middles[1949]


def row_of(turns, plain):
    """plain: times of steps of a process without the recorder."""
    pairs = [(statistics.median(t["with"]), statistics.median(t["without"])) for t in turns]
    row = {"turns": len(pairs), "without_ms": statistics.median(b for _, b in pairs), "with_ms": statistics.median(a for a, _ in pairs)}
    row["added_ms"], row["added_low_ms"], row["added_high_ms"] = interval([a - b for a, b in pairs])
    row["added"], row["added_low"], row["added_high"] = interval([a / b - 1 for a, b in pairs])
    row["switch_ms"] = statistics.median(sum(t["switch"]) - 2 * b for t, (_, b) in zip(turns, pairs))
    row["sampled"] = (LONG[0] * row["added_ms"] + row["switch_ms"]) / LONG[1] / row["without_ms"]
    if plain:
        row["between"], row["between_low"], row["between_high"] = interval([b / p for (_, b), p in zip(pairs, plain)])
    return row


def report(results, args):
    rows = []
    for job in args.jobs.split(","):
        plain = [statistics.median(t["with"] + t["without"]) for t in results.get((job, "plain"), {}).get("turns", [])]
        profiler = results.get((job, "profiler"), {}).get("turns")
        base = row_of(profiler, None)["added_ms"] if profiler else 0
        for variant in args.variants.split(","):
            result = results.get((job, variant), {})
            if result.get("turns"):
                row = {"job": job, "variant": variant, **row_of(result["turns"], plain if VARIANTS[variant] else None)}
                if base > 0.02 * row["without_ms"]:
                    row["of_profiler"] = row["added_ms"] / base
                rows.append(row)
            elif result:
                print(f"{job}, {variant}: {result}")
    print(f"\n{'job':10} {'variant':13} {'turns':>5} {'without':>9} {'with':>9} {'added':>8} {'95 %':>17} {'of profiler':>11} {'2 of 200':>8} "
          f"{'between':>7} {'95 %':>13}")
    for r in rows:
        share = f"{r['of_profiler']:.2f}" if "of_profiler" in r else ""
        between = f"{r['between']:7.3f} {r['between_low']:6.3f}-{r['between_high']:6.3f}" if "between" in r else ""
        print(f"{r['job']:10} {r['variant']:13} {r['turns']:5} {r['without_ms']:6.3f} ms {r['with_ms']:6.3f} ms {100 * r['added']:6.1f} % "
              f"{100 * r['added_low']:6.1f}-{100 * r['added_high']:6.1f} % {share:>11} {100 * r['sampled']:6.2f} % {between}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"rows": rows, "results": [{"job": j, "variant": v, **r} for (j, v), r in results.items()]}, out, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reprise", default="build/reprise")
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--variants", default="plain,profiler,default,light", help="of " + ", ".join(VARIANTS))
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=1e6, help="then end the processes that have not")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the recordings there")
    parser.add_argument("--json")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run_job(args.run[0], args.run[1], int(args.run[2]), args.run[3])
    asked = [(j, v) for j in args.jobs.split(",") for v in args.variants.split(",") if (j, v) != ("jax", "profiler")]
    with tempfile.TemporaryDirectory(prefix="record_cost-") as folder:
        folder = args.keep or folder
        os.makedirs(folder, exist_ok=True)
        until = time.time() + args.seconds
        processes = {(j, v): start(v, j, args, folder) for j, v in asked}
        results = {(j, v): result_of(p, v, j, folder, until) for (j, v), p in processes.items()}
    report(results, args)


if __name__ == "__main__":
    sys.exit(main())
