#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The usual networks of PyTorch, exported with torch.export and torch_xla to StableHLO (text and bytecode): replayed on the
built-in engines and compared with what PyTorch gives.

    replay_torch [NAME...]        only the networks whose name contains one of these
    REPRISE, ENGINES              the program (build/reprise), engines ("ref fast")
    SIZE                          height and width of the images (64)
"""
import json, os, pathlib, subprocess, sys, tempfile, time

os.environ.setdefault("PJRT_DEVICE", "CPU")
try:
    import numpy as np, torch, torchvision
    from torch_xla.stablehlo import VariableType, exported_program_to_stablehlo
except ImportError as why:
    print(f"replay_torch: skipped: {why}")
    sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", ROOT / "build" / "reprise")
ENGINES = os.environ.get("ENGINES", "ref fast").split()
SIZE = int(os.environ.get("SIZE", "64"))
torch.manual_seed(3)
nn, vision = torch.nn, torchvision.models


def images(build, **more):
    return lambda: (build(weights=None, num_classes=10, **more), (torch.randn(2, 3, SIZE, SIZE),))


class Bert(nn.Module):
    def __init__(self, vocabulary=50, width=32, heads=4, depth=2, length=12):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 4 * width, activation="gelu", batch_first=True) for _ in range(depth))
        self.pool = nn.Linear(width, width)

    def forward(self, ids):
        h = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for layer in self.layers:
            h = layer(h)
        return h, torch.tanh(self.pool(h[:, 0]))


class Recurrent(nn.Module):
    def __init__(self, cell):
        super().__init__()
        self.cell, self.out = cell(6, 8, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.out(self.cell(x)[0][:, -1])


ZOO = {"resnet50": images(vision.resnet50), "mobilenet_v2": images(vision.mobilenet_v2), "mobilenet_v3": images(vision.mobilenet_v3_small), "efficientnet_b0": images(vision.efficientnet_b0),
       "convnext_tiny": images(vision.convnext_tiny), "densenet121": images(vision.densenet121), "vit": images(vision.vit_b_32, image_size=SIZE),
       "bert": lambda: (Bert(), (torch.randint(0, 50, (3, 12)),)), "lstm": lambda: (Recurrent(nn.LSTM), (torch.randn(3, 9, 6),)), "gru": lambda: (Recurrent(nn.GRU), (torch.randn(3, 9, 6),))}
passed = failed = 0


def arrays(module, args):
    """The inputs of the exported function, in order."""
    bundle = module._bundle
    for place in bundle.stablehlo_funcs[0].meta.input_locations:
        if place.type_ == VariableType.INPUT_ARG:
            yield args[place.position].numpy()
        elif place.type_ == VariableType.PARAMETER:
            yield np.asarray(bundle.state_dict[place.name])
        else:
            yield np.asarray(bundle.additional_constants[place.position])


for name, build in ZOO.items():
    if sys.argv[1:] and not any(w in name for w in sys.argv[1:]):
        continue
    model, args = build()
    model.eval()
    for b in model.buffers():  # moving averages that are not all 0 or 1
        if b.dtype == torch.float32 and b.dim() == 1:
            b += torch.rand_like(b) * 0.2
    with torch.no_grad(), tempfile.TemporaryDirectory() as to:
        want = model(*args)
        want = want if isinstance(want, tuple) else (want,)
        try:
            module = exported_program_to_stablehlo(torch.export.export(model, args))
        except Exception as why:
            print(f"replay_torch: {name}: not exported: {str(why).splitlines()[0][:150]}")
            continue
        pathlib.Path(to, "p.mlir").write_text(module.get_stablehlo_text())
        pathlib.Path(to, "p.mlirbc").write_bytes(module.get_stablehlo_bytecode())
        np.savez(f"{to}/io.npz", **{f"in{i}": a for i, a in enumerate(arrays(module, args))}, **{f"out{i}": w.numpy() for i, w in enumerate(want)})
        for form in ("p.mlir", "p.mlirbc"):
            for engine in ENGINES:
                begin = time.time()
                p = subprocess.run([REPRISE, "replay", f"{to}/{form}", "--inputs", f"{to}/io.npz", "--expect", f"{to}/io.npz", "-e", engine, "-n", "1", "--warmup", "0", "--json"],
                                   text=True, capture_output=True)
                doc = json.loads(p.stdout) if p.returncode in (0, 1) and p.stdout else {}
                ok = p.returncode == 0 and doc.get("ok") and doc.get("checked")
                passed, failed = passed + bool(ok), failed + (not ok)
                print(f"{'  ok' if ok else 'FAIL'} {name} {form} on {engine}: {time.time() - begin:.1f} s {'' if ok else (p.stderr.strip() or str(doc.get('outputs')))[:400]}", flush=True)
print(f"replay_torch: {passed} passed, {failed} failed")
sys.exit(failed > 0)
