#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`try` on jobs of several trainers, on a machine with a GPU: what each change was predicted to bring, what it brought, and how
much faster the program became without a line of it being touched.

    bench/try_device.py [--reprise PATH] [--jobs LIST] [--only LIST] [--time SECONDS] [--keep FOLDER]
    bench/try_device.py --table FOLDER      the table of the answers that were kept there
    bench/try_device.py --run JOB [--stop STEPS]      the job alone, as for `reprise record`

Jobs: trainer and lightning are examples/try_*.py, the others are below. Those whose library is not installed are left out. Without
a GPU the jobs are small, and nothing is predicted.
"""
import argparse
import itertools
import json
import math
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
STEPS = 100000  # no job comes to its end


def batches(torch, size, *tensors):
    """A loader as people write it, without workers."""
    while True:
        yield from torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*tensors), batch_size=size, shuffle=True)


# ------------------------------------------------------------------ the jobs: nothing in them is set for speed

def job_gpt(torch, large):
    """A plain loop around a GPT of transformers."""
    import transformers

    size = {"n_layer": 12, "n_embd": 768, "n_head": 12} if large else {"n_layer": 2, "n_embd": 64, "n_head": 2}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=8192, bos_token_id=0, eos_token_id=0, **size)).to(place(torch))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    length = 512 if large else 32
    for (words,) in batches(torch, 8, torch.randint(0, 8192, (512, length))):
        words = words.to(place(torch))
        loss = model(input_ids=words, labels=words).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def job_resnet(torch, large):
    """A plain loop around torchvision's ResNet-50, SGD with momentum."""
    import torchvision

    model = (torchvision.models.resnet50 if large else torchvision.models.resnet18)(num_classes=100).to(place(torch))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    side = 224 if large else 32
    images, labels = torch.randn(256, 3, side, side), torch.randint(0, 100, (256,))
    for x, y in batches(torch, 64 if large else 4, images, labels):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x.to(place(torch))), y.to(place(torch))).backward()
        optimizer.step()


def job_accelerate(torch, large):
    """Accelerate around a vision transformer of torchvision, gradients accumulated over 2."""
    import accelerate
    import torchvision

    accelerator = accelerate.Accelerator(gradient_accumulation_steps=2)
    model = torchvision.models.vit_b_16(num_classes=100) if large else torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=100)
    side = 224 if large else 32
    data = torch.utils.data.TensorDataset(torch.randn(512, 3, side, side), torch.randint(0, 100, (512,)))
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters()),
                                                   torch.utils.data.DataLoader(data, batch_size=32 if large else 4, shuffle=True))
    while True:
        for x, y in loader:
            with accelerator.accumulate(model):
                accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
                optimizer.step()
                optimizer.zero_grad()


def job_sentence(_torch, large):
    """sentence-transformers' trainer around a BERT: short texts, many small kernels."""
    import datasets
    import sentence_transformers
    import sentence_transformers.losses
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(200))])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    size = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536} if large else \
           {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    text = lambda i, n: " ".join(str((i * k) % 200) for k in range(1, n))
    rows = {"anchor": [text(i, 60) for i in range(4096)], "positive": [text(i + 1, 60) for i in range(4096)]}
    with tempfile.TemporaryDirectory() as folder:
        transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                             sep_token="[SEP]", mask_token="[MASK]").save_pretrained(folder)
        transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **size)).save_pretrained(folder)
        model = sentence_transformers.SentenceTransformer(folder)
    options = sentence_transformers.SentenceTransformerTrainingArguments(output_dir="bert", max_steps=STEPS, per_device_train_batch_size=32,
                                                                         report_to=[], save_strategy="no", disable_tqdm=True)
    sentence_transformers.SentenceTransformerTrainer(model, options, train_dataset=datasets.Dataset.from_dict(rows),
                                                     loss=sentence_transformers.losses.MultipleNegativesRankingLoss(model)).train()


def job_gnn(torch, large):
    """torch-geometric: a graph network, its loss printed every fifth step."""
    import torch_geometric

    width, nodes = (256, 20000) if large else (32, 500)
    layers = torch.nn.ModuleList(torch_geometric.nn.GCNConv(width, width) for _ in range(6)).to(place(torch))
    optimizer = torch.optim.Adam(layers.parameters(), lr=1e-3)
    x, edges = torch.randn(nodes, width, device=place(torch)), torch.randint(0, nodes, (2, 8 * nodes), device=place(torch))
    y = torch.randn(nodes, width, device=place(torch))
    for step in range(STEPS):
        optimizer.zero_grad()
        h = x
        for layer in layers:
            h = torch.relu(layer(h, edges))
        loss = torch.nn.functional.mse_loss(h, y)
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(step, loss.item())


def job_optax(_torch, large):
    """JAX and optax: a network of eight layers in float32."""
    import jax
    import jax.numpy as jnp
    import optax

    width, batch = (4096, 4096) if large else (64, 32)
    keys = jax.random.split(jax.random.PRNGKey(0), 8)
    weights, x = [jax.random.normal(k, (width, width)) / width ** 0.5 for k in keys], jax.random.normal(keys[0], (batch, width))
    adam = optax.adam(1e-3)

    def loss(weights, x):
        for w in weights:
            x = jax.nn.gelu(x @ w)
        return (x ** 2).mean()

    @jax.jit
    def update(weights, state, x):
        gradients = jax.grad(loss)(weights, x)
        change, state = adam.update(gradients, state)
        return optax.apply_updates(weights, change), state

    state = adam.init(weights)
    for _ in range(STEPS):
        weights, state = update(weights, state, x)


JOBS = {"gpt": job_gpt, "trainer": ROOT / "examples/try_trainer.py", "lightning": ROOT / "examples/try_lightning.py", "resnet": job_resnet,
        "accelerate": job_accelerate, "sentence": job_sentence, "gnn": job_gnn, "optax": job_optax}


def place(torch):
    return "cuda" if torch.cuda.is_available() else "cpu"


def run_job(name, stop):
    torch, large, steps = None, bool(os.environ.get("CUDA_VISIBLE_DEVICES", "0")), itertools.count(1)
    if name != "optax":
        import torch
        torch.manual_seed(0)
        large = torch.cuda.is_available()
    if torch and stop:
        from torch.optim.optimizer import register_optimizer_step_post_hook
        register_optimizer_step_post_hook(lambda *_: sys.exit() if next(steps) >= stop else None)
    if isinstance(JOBS[name], pathlib.Path):
        runpy.run_path(str(JOBS[name]), run_name="__main__")
    else:
        JOBS[name](torch, large)


# ------------------------------------------------------------------ the answers

def try_job(args, name, folder):
    script = [sys.executable, str(JOBS[name])] if isinstance(JOBS[name], pathlib.Path) else \
        [sys.executable, os.path.abspath(__file__), "--run", name]
    command = [args.reprise, "try", "--json", "--time", f"{args.time}s", "--learn", *(["--only", args.only] if args.only else []),
               *(["--allow-writes"] if args.allow_writes else []), "--", *script]
    begin = time.time()
    with open(f"{folder}/{name}.json", "w") as out, open(f"{folder}/{name}.log", "w") as log:
        done = subprocess.run(command, stdout=out, stderr=log, cwd=folder, env={**os.environ, "HF_HUB_OFFLINE": "1", "WANDB_MODE": "offline"})
    if done.returncode:
        print(f"{name}: exit {done.returncode}: {open(f'{folder}/{name}.log').read()[-500:]}", flush=True)
    print(f"{name}: {time.time() - begin:.0f} s", flush=True)


def percent(ratio):
    return "-" if ratio is None else f"{100 * ratio:+.1f} %"


def interval(row, kind):
    low, high = row[f"{kind}_low_ratio"], row[f"{kind}_high_ratio"]
    return "" if low is None else f" [{100 * low:+.1f}, {100 * high:+.1f}]"


def table(folder):
    errors, signs, inside, gains = [], [], [], []
    print("| job | step | change | predicted | measured | same? | verdict |\n|---|---|---|---|---|---|---|")
    for name in JOBS:
        path = pathlib.Path(folder, name + ".json")
        if not path.exists() or not path.stat().st_size:
            continue
        answer = json.loads(path.read_text())
        gains.append(answer["speedup_ratio"] or 1)
        for row in answer["changes"]:
            predicted, measured = row["predicted_ratio"], row["measured_ratio"]
            print(f"| {name} | {(answer['step_ns'] or 0) / 1e6:.2f} ms | {row['change']} | {percent(predicted)}{interval(row, 'predicted')} | "
                  f"{percent(measured)}{interval(row, 'measured')} | {row['same']} | {row['verdict']}{': ' + row['reason'] if row['reason'] else ''} |")
            if predicted is None or measured is None:
                continue
            errors.append(abs((1 + predicted) / (1 + measured) - 1))
            if row["verdict"] in ("faster", "slower"):
                signs.append((predicted < 0) == (measured < 0))
            if row["predicted_low_ratio"] is not None:
                inside.append(row["predicted_low_ratio"] <= measured <= row["predicted_high_ratio"])
        print(f"| {name} | | all that helped | | {gains[-1]:.2f} times as fast | | |")
    if errors:
        errors.sort()
        print(f"\npredictions {len(errors)}: median error {100 * errors[len(errors) // 2]:.1f} %, largest {100 * errors[-1]:.1f} %; sign right {sum(signs)} of "
              f"{len(signs)}; inside the interval {sum(inside)} of {len(inside)}")
    if gains:
        print(f"jobs {len(gains)}: geometric mean of how many times as fast {math.exp(sum(map(math.log, gains)) / len(gains)):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reprise", default=str(ROOT / "build/reprise"))
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--only", help="changes, as of `try --only`")
    parser.add_argument("--time", type=int, default=300, help="seconds for each job")
    parser.add_argument("--allow-writes", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the answers there")
    parser.add_argument("--table", metavar="FOLDER")
    parser.add_argument("--run", choices=JOBS)
    parser.add_argument("--stop", type=int, metavar="STEPS")
    args = parser.parse_args()
    if args.run:
        return run_job(args.run, args.stop)
    if args.table:
        return table(args.table)
    args.reprise = os.path.abspath(args.reprise)
    with tempfile.TemporaryDirectory(prefix="try_device-") as folder:
        folder = os.path.abspath(args.keep or folder)
        os.makedirs(folder, exist_ok=True)
        for name in args.jobs.split(","):
            try_job(args, name, folder)
        table(folder)


main()
