#!/usr/bin/env python3
"""Predictions of `simulate` against measured steps of DistributedDataParallel.

    bench/accuracy.py build/reprise FOLDER…

A FOLDER has recordings `<model>_w<ranks>_bucket<MB>/rank*.json.gz` and `truth.json`: {"runs": {"<model>_w<ranks>": {"<MB>":
{"unprofiled_ms": {"median", "q1", "q3"}}}}}. From every recording every other measured size and number of ranks is predicted.
Prints one row per pair, and a summary: errors of the step, and how many measured steps lie in their interval; then the same of the
change against the recorded size and ranks, which is what a search compares: what makes the whole recording slower or faster than the
measured steps (another load of the machine) is not in it."""
import json, pathlib, subprocess, sys


def pairs(truth, name):
    """The what-ifs that lead from a recording to the measured steps, with those; None: as it is."""
    run, size = name.rsplit("_bucket", 1)
    model, ranks = run.rsplit("_w", 1)
    for other, sizes in truth.items():
        other_model, other_ranks = other.rsplit("_w", 1)
        for other_size, measured in sizes.items():
            if other_model != model or other_size == "None":
                continue
            parts = [f"bucket={other_size}MB"] * (other_size != size) + [f"ranks={other_ranks}"] * (other_ranks != ranks)
            yield "+".join(parts) or None, measured["unprofiled_ms"]


def summary(title, rows):
    errors = sorted(abs(error) for _, error, _ in rows)
    if errors:
        print(f"{title:8} n {len(errors):3}  median {errors[len(errors) // 2]:6.1%}  p90 {errors[int(len(errors) * 0.9)]:6.1%}  "
              f"worst {errors[-1]:6.1%}  in their interval {sum(inside for _, _, inside in rows)}")


def main():
    program, folders = sys.argv[1], [pathlib.Path(x) for x in sys.argv[2:]]
    rows, changes = [], []
    print(f"{'recording':24} {'what if':24} {'measured':>8} {'q1-q3':>13} {'predicted':>9} {'error':>7}   interval")
    for folder in folders:
        truth = json.loads((folder / "truth.json").read_text())["runs"]
        for run in sorted(x for x in folder.iterdir() if x.is_dir() and x.name.rsplit("_bucket", 1)[0] in truth):
            asked = list(pairs(truth, run.name))
            options = [x for what, _ in asked if what for x in ("--what-if", what)]
            doc = json.loads(subprocess.run([program, "simulate", "-q", "--json", *options, run], stdout=subprocess.PIPE, check=True).stdout)
            base = doc["baseline"]
            found = {p["what_if"]: (p["predicted_ns"], p["low_ns"], p["high_ns"]) for p in doc["predictions"]}
            change = {p["what_if"]: (p["change_ratio"], p["change_low_ratio"], p["change_high_ratio"]) for p in doc["predictions"]}
            recorded = next((ms["median"] for what, ms in asked if not what), None)
            found[None] = (base["unprofiled_ns"], base["unprofiled_low_ns"], base["unprofiled_high_ns"])
            for what, ms in asked:
                if found[what][0] is None:
                    continue
                got, low, high = ((x or 0) / 1e6 for x in found[what])
                error, inside = got / ms["median"] - 1, low <= ms["median"] <= high
                rows.append((what, error, inside))
                if what and recorded and change[what][0] is not None:
                    real, (middle, least, most) = ms["median"] / recorded - 1, change[what]
                    changes.append((what, (1 + middle) / (1 + real) - 1, least is not None and least <= real <= most))
                print(f"{run.name:24} {what or 'as it is':24} {ms['median']:8.1f} {ms['q1']:6.1f}-{ms['q3']:6.1f} {got:9.1f} {error:+7.1%}"
                      f"   {low:.1f} to {high:.1f}{'' if inside else '  outside'}")
    summary("as it is", [r for r in rows if not r[0]])
    summary("bucket", [r for r in rows if r[0] and "ranks" not in r[0]])
    summary("ranks", [r for r in rows if r[0] and "ranks" in r[0]])
    print("change")
    summary("bucket", [r for r in changes if "ranks" not in r[0]])
    summary("ranks", [r for r in changes if "ranks" in r[0]])


main()
