#!/usr/bin/env python3
"""Apply and verify: train, record, optimize, train again with the plan, and compare what was predicted with what was measured.

    python optimize_ddp.py [--reprise reprise] [--model mlp] [--ranks 2] [--bucket 25] [--folder optimize_ddp.out]

Needs PyTorch (PyPI, CPU is enough) in the Python that runs it, and `reprise` in PATH."""
import argparse, json, pathlib, subprocess, sys

HERE = pathlib.Path(__file__).resolve().parent


def run(*words):
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def ms(ns):
    return "" if ns is None else f"{ns / 1e6:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", default="reprise")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--bucket", default="25", help="bucket_cap_mb of the run that is recorded")
    parser.add_argument("--rounds", default="8")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("optimize_ddp.out"))
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    recording, plan = folder / "recording", folder / "ddp_buckets.py"

    def train(result, *rest):
        run(sys.executable, HERE / "train.py", "--model", options.model, "--ranks", options.ranks, "--rounds", options.rounds,
            "--result", folder / result, *rest)
        return json.loads((folder / result).read_text())

    print(f"1. train and record: bucket_cap_mb={options.bucket}", flush=True)
    train("before.json", "--record", recording, options.bucket)
    print("2. optimize", flush=True)
    found = json.loads(run(options.reprise, "optimize", "-q", "--json", "--moves", "tensor", "--export", f"ddp={plan}", recording))
    size = f"{found['exports']['ddp']['bucket_cap_mb']:g}"
    print(f"   bucket_cap_mb={size}, buckets of {', '.join(str(b) for b in found['exports']['ddp']['buckets'])} bytes", flush=True)
    print("3. train again: as recorded, with bucket_cap_mb, with the exact buckets; they take turns", flush=True)
    variants = list(dict.fromkeys([options.bucket, size, str(plan)]))
    measured = train("after.json", *variants)
    asked = json.loads(run(options.reprise, "simulate", "-q", "--json", "--what-if", f"bucket={size}MB", recording))
    before, after = asked["baseline"], asked["predictions"][0]
    print("\n                          predicted, ms          measured, ms")
    rows = [(options.bucket, f"bucket_cap_mb={options.bucket}", before["unprofiled_ns"], before["unprofiled_low_ns"], before["unprofiled_high_ns"]),
            (size, f"bucket_cap_mb={size}", after["predicted_ns"], after["low_ns"], after["high_ns"]),
            (str(plan), "the exact buckets", found["best_ns"], None, None)]
    for key, name, predicted, low, high in rows:
        m = measured[key]
        interval = f"({ms(low)} to {ms(high)})" if low is not None else ""
        print(f"{name:24}{ms(predicted):>8}  {interval:20}{m['median_ms']:8.1f}  (quartiles {m['q1_ms']:.1f} to {m['q3_ms']:.1f})")
    gain = 1 - found["best_ns"] / found["baseline_ns"]
    real = [1 - b / a for a, b in zip(measured[options.bucket]["rounds_ms"], measured[size]["rounds_ms"])]
    print(f"\ngain: predicted {gain:.1%} ({-after['change_high_ratio']:.1%} to {-after['change_low_ratio']:.1%}), measured {sorted(real)[len(real) // 2]:.1%}"
          f" (median of {len(real)} rounds, {min(real):.1%} to {max(real):.1%})")


main()
