#!/usr/bin/env python3
"""Trains a small model with DistributedDataParallel over gloo, on CPU cores only, and measures its steps.

    python train.py [--model mlp|conv|transformer] [--ranks 2] [--record FOLDER] VARIANT…

A VARIANT is a bucket_cap_mb ("25"), or a file that `reprise optimize --export ddp=FILE` wrote: then its exact buckets are used.
Variants take turns in the same processes, a few steps each, so that what else happens on the machine affects all of them alike.
Prints JSON: {variant: {"median_ms", "q1_ms", "q3_ms", "rounds_ms": […]}}. With --record, the first variant is recorded by torch.profiler
afterwards, one file per rank."""
import argparse, importlib.util, json, os, pathlib, socket, statistics, time

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule


def mlp():
    layers = [layer for _ in range(12) for layer in (nn.Linear(768, 768), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(768, 10)), torch.randn(64, 768), 10


def conv():
    widths = [32, 64, 128, 256, 512, 512]
    layers = [layer for a, b in zip([3] + widths, widths) for layer in (nn.Conv2d(a, b, 3, 2 if a < b else 1, 1), nn.ReLU())]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 1000)), torch.randn(4, 3, 64, 64), 1000


def transformer():
    layers = [nn.TransformerEncoderLayer(256, 4, 1024, 0.0, batch_first=True) for _ in range(4)]
    return nn.Sequential(*layers, nn.Linear(256, 2000)), torch.randn(2, 64, 256), 2000


MODELS = {"mlp": mlp, "conv": conv, "transformer": transformer}


class Variant:
    """A model of its own, and how its gradients are averaged over the ranks."""

    def __init__(self, make_model, text):
        torch.manual_seed(0)
        model, self.input, classes = make_model()
        self.target = torch.randint(classes, model(self.input).shape[:-1])
        self.gradients = None
        if text.endswith(".py"):
            spec = importlib.util.spec_from_file_location("ddp_buckets", text)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.model, self.gradients = model, module.BucketedGradients(model)
        else:
            self.model = DistributedDataParallel(model, bucket_cap_mb=float(text))
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        output = self.model(self.input)
        nn.functional.cross_entropy(output.flatten(0, -2), self.target.flatten()).backward()
        if self.gradients:
            self.gradients.wait()
        self.optimizer.step()


def record(variant, path):
    """Five steps; shapes tell the sizes of gradients."""
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=1, warmup=1, active=5)) as p:
        for _ in range(7):
            variant.step()
            p.step()
    p.export_chrome_trace(str(path))


def rank_main(rank, options, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    variants = {text: Variant(MODELS[options.model], text) for text in options.variants}
    rounds = {text: [] for text in variants}
    for i in range(options.rounds + 1):  # the first round warms up
        for text, variant in variants.items():
            variant.step()
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(options.steps):
                variant.step()
            if i:
                rounds[text].append((time.perf_counter() - begin) / options.steps * 1e3)
    if options.record:
        pathlib.Path(options.record).mkdir(parents=True, exist_ok=True)
        dist.barrier()
        record(variants[options.variants[0]], pathlib.Path(options.record) / f"rank{rank}.json.gz")
    if rank == 0:
        result = {}
        for text, times in rounds.items():
            q1, median, q3 = statistics.quantiles(times, n=4)
            result[text] = {"median_ms": median, "q1_ms": q1, "q3_ms": q3, "rounds_ms": times}
        pathlib.Path(options.result).write_text(json.dumps(result))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="+")
    parser.add_argument("--model", choices=MODELS, default="mlp")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4, help="steps of a variant in a round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--record", metavar="FOLDER")
    parser.add_argument("--result", default="measured.json", metavar="FILE")
    options = parser.parse_args()
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    torch.multiprocessing.spawn(rank_main, (options, port), nprocs=options.ranks)
    print(pathlib.Path(options.result).read_text())


if __name__ == "__main__":
    main()
