#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every trace is told: the headline, the first opportunity, and whether report, optimize and simulate say the same.

    bench/voice.py [TRACE or folder of ranks...]     with REPRISE (default build/reprise); without arguments all traces of $REPRISE_DATA

One row is one trace (a run of several ranks: its folder). Columns: the step and its source; the first finding with its share of the
span; the first opportunity with its step; the first move of the plan; and the disagreements, if any: the step of an opportunity that
simulate predicts differently (by more than 0.1 %), a plan that begins with something else (unless two are within 10 %), a try with a
number that is not an opportunity, a total that idle or fusions state differently. The exit status is 1 if there is one.
"""
import json, os, pathlib, subprocess, sys, time

REPRISE = os.environ.get("REPRISE", "build/reprise")
DATA = pathlib.Path(os.environ.get("REPRISE_DATA", "../shared/data"))
ENDINGS = (".json", ".json.gz", ".json.xz", ".xplane.pb", ".xplane.pb.gz", ".sqlite", ".sqlite.gz", ".rpd", ".db", ".tar.xz", ".tar.gz")


def ask(question, path, *more):
    """The answer, or the reason why there is none."""
    p = subprocess.run([REPRISE, question, "--json", *more, str(path)], capture_output=True, text=True)
    return (json.loads(p.stdout), None) if p.stdout.startswith("{") else (None, p.stderr.strip().split("\n")[-1])


def family(what_if):
    name = what_if.replace(":", "=").replace("+", "=").split("=")[0]
    return "cuda-graphs" if name == "graphs" else name


def of_step(ns, step):
    return f"{ns / 1e6:.4g} ms ({100 * (ns / step - 1):+.1f} %)" if step else f"{ns / 1e6:.4g} ms"


def compare_simulate(path, ops):
    for o in ops[:3]:
        doc, why = ask("simulate", path, "-w", o["what_if"])
        got = doc and doc["predictions"][0].get("predicted_ns")
        if not got or abs(got / o["step_ns"] - 1) > 0.001:
            yield f"simulate {o['what_if']}: {got or why}, report {o['step_ns']}"


def compare_plan(plan, ops):
    moves = plan["moves"] if plan else []
    if bool(moves) != bool(ops):
        yield f"{len(moves)} moves, {len(ops)} opportunities"
    elif moves:
        first = moves[0]["what_if"] or moves[0]["move"]
        best = {family(o["what_if"]) for o in ops if o["gain_ns"] >= 0.9 * ops[0]["gain_ns"]}
        if family(first) not in best:
            yield f"optimize begins with {first}"


def compare_tries(report, ops):
    listed = {family(o["what_if"]) for o in ops}
    for f in report["findings"]:
        for t in f["tries"]:
            if t["what_if"] and (t["change_ratio"] or 0) < -0.01 and family(t["what_if"]) not in listed:
                yield f"{f['id']} advises {t['what_if']}, which is not an opportunity"


def compare_idle(path, report):
    doc, _ = ask("idle", path)
    if not doc or len(report["ranks"]) != 1:
        return
    ours = sum(p["total_ns"] for p in report["parts"] if p["part"].startswith("idle"))
    theirs = doc["ranks"][0]["span_idle_ns"]
    if theirs is not None and theirs != ours:
        yield f"idle {theirs / 1e6:.4g} ms, report {ours / 1e6:.4g} ms"


def row_of(path):
    begin = time.monotonic()
    report, why = ask("report", path)
    took = time.monotonic() - begin
    if not report:
        return None, why
    ops = [o for o in report["opportunities"] if o["applies"] != "no"]
    plan, no_plan = ask("optimize", path, "--budget", "3")
    found = report["findings"][0] if report["findings"] else None
    said = [*compare_simulate(path, ops), *compare_plan(plan, ops), *compare_tries(report, ops), *compare_idle(path, report)]
    step = report["unprofiled_ns"]
    first = ops[0] if ops else None
    return {"step": f"{report['step_ns'] / 1e6:.4g} ms, {report['step_source']}" if report["step_ns"] else "none",
            "unprofiled": f"{step / 1e6:.4g} ms" if step else "-",
            "first finding": f"{found['id']} {100 * found['share']:.1f} %" if found else "-",
            "opportunity": f"{first['what_if']}: {of_step(first['step_ns'], step)}" if first else "-",
            "move": (plan["moves"][0]["what_if"] or plan["moves"][0]["move"]) if plan and plan["moves"] else no_plan or "-",
            "report took": f"{took:.1f} s", "disagreements": "; ".join(said) or "-"}, None


def traces():
    """Files of each folder; a folder whose files are the ranks of one run is one."""
    for folder in sorted({p.parent for p in DATA.rglob("*") if p.name.endswith(ENDINGS)}):
        files = sorted(p for p in folder.iterdir() if p.name.endswith(ENDINGS))
        ranks = len(files) > 1 and all("rank" in p.name or "kineto" in p.name for p in files)
        yield from [folder] if ranks else files


def main():
    bad, begun = 0, False
    for path in [pathlib.Path(p) for p in sys.argv[1:]] or traces():
        row, why = row_of(path)
        if not row:
            continue  # not a trace: a program, a list of facts
        name = str(path.relative_to(DATA)) if path.is_relative_to(DATA) else path.name
        if not begun:
            print("| trace |", " | ".join(row), "|\n|---" + "|---" * len(row) + "|")
            begun = True
        print(f"| {name} |", " | ".join(row.values()), "|", flush=True)
        bad += row["disagreements"] != "-"
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
