#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Device times of `reprise report` beside those of TraceLens, trace by trace.

    bench/agree.py TRACE...      with REPRISE (default build/reprise); needs TraceLens in this Python

Both measure from the first to the last device work: compute (kernels), exposed communication, busy and idle. TraceLens leaves out
work whose launch was not recorded, and counts memsets as compute: where a trace has much of either, the rows differ by it.
"""
import contextlib, io, json, os, subprocess, sys, warnings

REPRISE = os.environ.get("REPRISE", "build/reprise")


def ours(path):
    d = json.loads(subprocess.run([REPRISE, "report", "--json", "--no-simulate", path], capture_output=True, check=True).stdout)
    r = d["ranks"][0]
    return {"compute": r["compute_ns"], "exposed comm": r["exposed_comm_ns"], "busy": r["busy_ns"], "idle": r["idle_ns"]}


def theirs(path):
    from TraceLens import TreePerfAnalyzer
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = TreePerfAnalyzer.from_file(path).get_df_gpu_timeline()
    ms = {row["type"]: row["time ms"] * 1e6 for _, row in table.iterrows()}
    return {"compute": ms["computation_time"], "exposed comm": ms["exposed_comm_time"], "busy": ms["busy_time"], "idle": ms["idle_time"]}


def main():
    print(f"{'trace':44} {'':13} {'reprise':>12} {'TraceLens':>12}  difference")
    for path in sys.argv[1:]:
        name = os.path.basename(path)[:44]
        try:
            a, b = ours(path), theirs(path)
        except Exception as why:  # a peer that cannot read a trace is a row too
            print(f"{name:44} {type(why).__name__}: {str(why)[:60]}")
            continue
        for key in a:
            gap = abs(a[key] - b[key])
            small = gap <= 0.002 * max(a["busy"] + a["idle"], 1)
            print(f"{name:44} {key:13} {a[key] / 1e6:9.3f} ms {b[key] / 1e6:9.3f} ms  {'equal' if small else f'{gap / 1e6:.3f} ms'}")
            name = ""
    return 0


sys.exit(main())
