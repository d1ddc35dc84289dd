#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measured truth for the what-ifs of `simulate`, on a machine with a GPU: training steps of networks as they are published, eager in
fp32, and the same with a fused optimizer, in bf16, as one CUDA graph, compiled, and combined.

    bench/whatif_truth.py FOLDER [--models LIST] [--rounds N]   measures: NAME.json.gz (a Kineto trace of the eager step, with
                                                                                shapes), NAME_bf16.json.gz and NAME.truth.json for each network
    bench/whatif_truth.py FOLDER --table [--reprise PATH]              predictions from the traces beside the measured steps

One process a network: first all of them compile at once, then each measures alone, its variants taking turns of a few steps, without a
profiler; the trace is made last. What a network does not allow (a step that cannot be captured) is left out, and named.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

TURN = 4  # steps
VARIANTS = ["eager", "fused", "bf16", "tf32", "graph", "fused_graph", "bf16_graph", "tf32_graph", "bf16_fused_graph", "compile", "compile_bf16", "compile_bf16_fused"]
WHAT_IF = {"eager": None, "fused": "fused-optimizer", "bf16": "dtype=bf16", "tf32": "tf32", "tf32_graph": "tf32+cuda-graphs", "graph": "cuda-graphs", "fused_graph": "fused-optimizer+cuda-graphs",
           "bf16_graph": "dtype=bf16+cuda-graphs", "bf16_fused_graph": "dtype=bf16+fused-optimizer+cuda-graphs", "compile": "compile",
           "compile_bf16": "compile+dtype=bf16", "compile_bf16_fused": "compile+dtype=bf16+fused-optimizer"}


# ------------------------------------------------------------------ the networks: each gives a module and a function of it that is the loss

def vision(name, batch, side=224):
    def make(torch, device):
        import torchvision

        model = getattr(torchvision.models, name)(num_classes=100).to(device)
        x, y = torch.randn(batch, 3, side, side, device=device), torch.randint(0, 100, (batch,), device=device)

        def loss(net):
            out = net(x)
            return torch.nn.functional.cross_entropy(out if torch.is_tensor(out) else out[0], y)
        return model, loss
    return make


def segmentation(name):
    def make(torch, device):
        import torchvision

        model = getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None, num_classes=21).to(device)
        x, y = torch.randn(8, 3, 256, 256, device=device), torch.randint(0, 21, (8, 256, 256), device=device)
        return model, lambda net: torch.nn.functional.cross_entropy(net(x)["out"], y)
    return make


def text(kind, batch, length, **size):
    def make(torch, device):
        import transformers

        config = getattr(transformers, kind + "Config")(vocab_size=8192, **size)
        head = {"GPT2": "GPT2LMHeadModel", "Bert": "BertForMaskedLM", "Llama": "LlamaForCausalLM", "T5": "T5ForConditionalGeneration",
                "OPT": "OPTForCausalLM", "Qwen2": "Qwen2ForCausalLM", "Roberta": "RobertaForMaskedLM", "Mistral": "MistralForCausalLM",
                "GPTNeoX": "GPTNeoXForCausalLM", "DistilBert": "DistilBertForMaskedLM"}[kind]
        config.use_cache = False
        model = getattr(transformers, head)(config).to(device)
        words = torch.randint(0, 8192, (batch, length), device=device)
        return model, lambda net: net(input_ids=words, labels=words).loss
    return make


def unet(torch, device):
    """Down and up with skips, group normalization and attention in the middle, as diffusion models have it."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.a, self.b = nn.Sequential(nn.GroupNorm(8, i), nn.SiLU(), nn.Conv2d(i, o, 3, padding=1)), \
                nn.Sequential(nn.GroupNorm(8, o), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1))
            self.skip = nn.Conv2d(i, o, 1) if i != o else nn.Identity()

        def forward(self, x):
            return self.b(self.a(x)) + self.skip(x)

    class Net(nn.Module):
        def __init__(self, w=(96, 192, 384)):
            super().__init__()
            self.first, self.last = nn.Conv2d(4, w[0], 3, padding=1), nn.Conv2d(w[0], 4, 3, padding=1)
            self.down = nn.ModuleList([Block(w[0], w[0]), Block(w[0], w[1]), Block(w[1], w[2])])
            self.pool = nn.ModuleList(nn.Conv2d(c, c, 3, stride=2, padding=1) for c in w[:2])
            self.attention, self.middle = nn.MultiheadAttention(w[2], 8, batch_first=True), Block(w[2], w[2])
            self.up = nn.ModuleList([Block(2 * w[2], w[1]), Block(2 * w[1], w[0]), Block(2 * w[0], w[0])])

        def forward(self, x):
            x, kept = self.first(x), []
            for i, block in enumerate(self.down):
                x = block(x)
                kept.append(x)
                x = self.pool[i](x) if i < 2 else x
            flat = x.flatten(2).transpose(1, 2)
            x = self.middle(x + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(x.shape))
            for i, block in enumerate(self.up):
                x = block(torch.cat([x, kept.pop()], 1))
                x = nn.functional.interpolate(x, scale_factor=2.0) if i < 2 else x
            return self.last(x)

    model, x, noise = Net().to(device), torch.randn(16, 4, 64, 64, device=device), torch.randn(16, 4, 64, 64, device=device)
    return model, lambda net: torch.nn.functional.mse_loss(net(x), noise)


def mixer(torch, device):
    """Layers of plain products and norms, wide: limited by the device."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(512, 2048), *(m for _ in range(8) for m in (nn.LayerNorm(2048), nn.Linear(2048, 2048), nn.GELU())),
                          nn.Linear(2048, 100)).to(device)
    x, y = torch.randn(8192, 512, device=device), torch.randint(0, 100, (8192,), device=device)
    return model, lambda net: torch.nn.functional.cross_entropy(net(x), y)


def recurrent(torch, device):
    """A language model of cuDNN's LSTM."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.lstm, self.out = nn.Embedding(8192, 512), nn.LSTM(512, 768, 3, batch_first=True), nn.Linear(768, 8192)

        def forward(self, tokens):
            return self.out(self.lstm(self.embed(tokens))[0])
    model, tokens = Net().to(device), torch.randint(0, 8192, (32, 129), device=device)
    return model, lambda net: nn.functional.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def translation(torch, device):
    """PyTorch's own encoder and decoder."""
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Embedding(8192, 512), nn.Linear(512, 8192)
            self.core = nn.Transformer(512, 8, 4, 4, 2048, dropout=0.1, batch_first=True)

        def forward(self, source, target):
            return self.out(self.core(self.embed(source), self.embed(target)))
    model = Net().to(device)
    source, target = (torch.randint(0, 8192, (32, n), device=device) for n in (96, 80))
    return model, lambda net: nn.functional.cross_entropy(net(source, target).flatten(0, 1), target.flatten())


MODELS = {"resnet50": vision("resnet50", 32), "convnext_tiny": vision("convnext_tiny", 32), "efficientnet_b0": vision("efficientnet_b0", 64),
          "mobilenet_v3": vision("mobilenet_v3_large", 64), "densenet121": vision("densenet121", 32), "vit_b_16": vision("vit_b_16", 32),
          "swin_t": vision("swin_t", 32), "regnet_y_3_2gf": vision("regnet_y_3_2gf", 48), "deeplab": segmentation("deeplabv3_mobilenet_v3_large"), "unet": unet, "mixer": mixer,
          "gpt2": text("GPT2", 8, 512, n_layer=12, n_embd=768, n_head=12, bos_token_id=0, eos_token_id=0),
          "bert": text("Bert", 32, 128, num_hidden_layers=12),
          "llama": text("Llama", 8, 512, hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4),
          "t5": text("T5", 16, 128, d_model=512, num_layers=6, num_heads=8, d_ff=2048, decoder_start_token_id=0),
          "opt": text("OPT", 16, 256, hidden_size=512, num_hidden_layers=8, num_attention_heads=8, ffn_dim=2048, word_embed_proj_dim=512),
          # what the cost model was not trained with:
          "vgg16": vision("vgg16", 32), "efficientnet_v2_s": vision("efficientnet_v2_s", 32), "shufflenet": vision("shufflenet_v2_x1_0", 128),
          "inception": vision("inception_v3", 32, 299), "maxvit": vision("maxvit_t", 16), "fcn": segmentation("fcn_resnet50"), "lstm": recurrent,
          "nmt": translation, "roberta": text("Roberta", 16, 256, num_hidden_layers=8, hidden_size=512, num_attention_heads=8, intermediate_size=2048),
          "qwen2": text("Qwen2", 4, 1024, hidden_size=896, intermediate_size=4864, num_hidden_layers=8, num_attention_heads=14, num_key_value_heads=2),
          "mistral": text("Mistral", 4, 768, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4),
          "gpt_neox": text("GPTNeoX", 8, 384, hidden_size=768, intermediate_size=3072, num_hidden_layers=8, num_attention_heads=12),
          "distilbert": text("DistilBert", 32, 192, n_layers=6), "resnext50": vision("resnext50_32x4d", 32),
          "wide_resnet50": vision("wide_resnet50_2", 32), "vit_b_32": vision("vit_b_32", 64)}


# ------------------------------------------------------------------ measuring one of them

class Variant:
    pool = None  # all graphs of a process share their memory: they never run at a time

    def __init__(self, torch, make, device, name):
        torch.manual_seed(0)
        self.torch, self.bf16, self.tf32, self.graph = torch, "bf16" in name, "tf32" in name, None
        self.model, self.loss = make(torch, device)
        self.net = torch.compile(self.model) if "compile" in name else self.model
        captured = "graph" in name
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused="fused" in name or None, capturable=captured)
        if captured:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    self.work()
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            self.optimizer.zero_grad()
            with torch.cuda.graph(self.graph, pool=Variant.pool):
                self.work()
            Variant.pool = Variant.pool or self.graph.pool()
        for _ in range(8 if self.graph else 5):
            self.step()
        torch.cuda.synchronize()

    def work(self):
        self.torch.backends.cuda.matmul.allow_tf32 = self.tf32
        self.optimizer.zero_grad()
        with self.torch.autocast("cuda", dtype=self.torch.bfloat16, enabled=self.bf16):
            loss = self.loss(self.net)
        loss.backward()
        self.optimizer.step()

    def step(self):
        if self.graph:
            self.graph.replay()
        else:
            self.work()


def profile(torch, variant, path):
    kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=kinds, record_shapes=True, schedule=torch.profiler.schedule(wait=1, warmup=2, active=4),
                                on_trace_ready=lambda p: p.export_chrome_trace(str(path))) as profiler:
        for _ in range(7):
            variant.step()
            profiler.step()
    torch.cuda.synchronize()


def measure(args, folder, name):
    import torch

    device, variants, failed = torch.device("cuda"), {}, {}
    for kind in args.variants.split(","):
        try:
            variants[kind] = Variant(torch, MODELS[name], device, kind)
        except Exception as why:
            failed[kind] = f"{type(why).__name__}: {str(why)[:200]}"
            torch.cuda.synchronize()
    print("@ready", flush=True)
    sys.stdin.readline()
    times, end = {k: [] for k in variants}, time.time() + args.seconds
    for turn in range(-1, args.rounds):
        for kind in list(variants)[::1 if turn % 2 else -1]:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(TURN):
                variants[kind].step()
            torch.cuda.synchronize()
            if turn >= 0:
                times[kind].append((time.perf_counter() - begin) / TURN * 1e3)
        if time.time() > end and turn > 4:
            break
    truth = {k: {"median_ms": round(statistics.median(t), 4), "min": round(min(t), 4), "max": round(max(t), 4), "turns": len(t)} for k, t in times.items()}
    for kind, path in (("eager", f"{name}.json.gz"), ("bf16", f"{name}_bf16.json.gz")):
        if kind in variants:
            profile(torch, variants[kind], folder / path)
    (folder / f"{name}.truth.json").write_text(json.dumps({"variants": truth, "failed": failed, "torch": torch.__version__,
                                                           "device": torch.cuda.get_device_name()}, indent=1))
    print("@done " + " ".join(f"{k} {v['median_ms']:.2f}" for k, v in truth.items()) + (f"; failed {failed}" if failed else ""), flush=True)
    os._exit(0)


def measure_all(args, folder):
    folder.mkdir(parents=True, exist_ok=True)
    began, names = time.time(), args.models.split(",")

    def listen(process):
        return next((line for line in process.stdout if line.startswith("@")), "")

    for wave in (names[i:i + args.together] for i in range(0, len(names), args.together)):
        command = [sys.executable, os.path.abspath(__file__), str(folder), "--rounds", str(args.rounds), "--seconds", str(args.seconds),
                   "--variants", args.variants, "--one"]
        running = [(n, subprocess.Popen([*command, n], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={"TORCHINDUCTOR_COMPILE_THREADS": "1", **os.environ})) for n in wave]
        ready = [(n, p) for n, p in running if listen(p)]
        print(f"{len(ready)} of {len(wave)} networks ready after {time.time() - began:.0f} s", flush=True)
        for name, process in ready:
            process.stdin.write("go\n")
            process.stdin.flush()
            print(f"{name}: {listen(process)[6:].strip()} ({time.time() - began:.0f} s)", flush=True)
            process.wait()


# ------------------------------------------------------------------ the table

def table(args, folder):
    errors = {}
    print(f"{'network':16} {'variant':18} {'measured':>9} {'predicted':>9} {'error':>8}   interval")
    for path in sorted(folder.glob("*.truth.json")):
        name, truth = path.name[:-len(".truth.json")], json.loads(path.read_text())["variants"]
        trace = folder / f"{name}.json.gz"
        if not trace.exists() or (args.models != ",".join(MODELS) and name not in args.models.split(",")):
            continue
        asked = [x for k in truth if WHAT_IF[k] for x in ("--what-if", WHAT_IF[k])]
        done = subprocess.run([args.reprise, "simulate", "-q", "--json", *args.option, *asked, str(trace)], capture_output=True, text=True)
        if done.returncode:
            print(f"{name}: {done.stderr.strip()[:200]}")
            continue
        answer = json.loads(done.stdout)
        found = {p["what_if"]: (p["predicted_ns"], p["low_ns"], p["high_ns"]) for p in answer["predictions"]}
        base = answer["baseline"]
        found[None] = (base["unprofiled_ns"], base["unprofiled_low_ns"], base["unprofiled_high_ns"])
        for kind, true in truth.items():
            got, low, high = ((v or 0) / 1e6 for v in found[WHAT_IF[kind]])
            if not got:
                print(f"{name:16} {kind:18} {true['median_ms']:9.2f}  not predicted")
                continue
            error, inside = got / true["median_ms"] - 1, low <= true["median_ms"] <= high
            errors.setdefault(kind, []).append((abs(error), inside, name))
            print(f"{name:16} {kind:18} {true['median_ms']:9.2f} {got:9.2f} {error:+8.1%}   {low:.2f} to {high:.2f}{'' if inside else '  outside'}")
    print(f"\n{'variant':18} {'networks':>8} {'median':>8} {'worst':>8}  inside")
    for kind, rows in errors.items():
        rows.sort()
        print(f"{kind:18} {len(rows):8} {rows[len(rows) // 2][0]:8.1%} {rows[-1][0]:8.1%}  {sum(r[1] for r in rows)}   worst {rows[-1][2]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--variants", default=",".join(VARIANTS), help="those that are compiled take minutes to start")
    parser.add_argument("--together", type=int, default=8, help="networks that compile at a time; all their variants must fit into memory")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=12, help="for the turns of a network")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--reprise", default="build/reprise")
    parser.add_argument("--option", action="append", default=[], help="of simulate, for the table")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return measure(args, args.folder, args.one)
    (table if args.table else measure_all)(args, args.folder)


main()
