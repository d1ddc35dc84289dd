#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FLOPs and bytes of `reprise roofline` beside those of TraceLens, operator by operator, on the same traces.

    bench/roofline_peer.py TRACE...      with REPRISE (default build/reprise); needs TraceLens (0.7) in this Python

Operators with the same name and input shapes are compared: how many have the same FLOPs (within 1 %), the ratio of those that differ, and
which share of the device time each tool has a model for. The last lines are wall-clock times of both on each trace, best of three."""
import collections, contextlib, io, json, math, os, re, subprocess, sys, time, warnings

REPRISE = os.environ.get("REPRISE", "build/reprise")


def shape_of(dims):
    """Input Dims as reprise writes them; None for what it shortens (lists of tensors)."""
    out = []
    for d in dims:
        if isinstance(d, (list, tuple)) and d and isinstance(d[0], (list, tuple)):
            return None
        if isinstance(d, (list, tuple)) and d:
            out.append("[" + ",".join(str(int(x)) for x in d) + "]")
    return " ".join(out)


# Operators that one tool counts at the wrapper and the other at what it calls.
ALIASES = {"aten::_scaled_dot_product_flash_attention": ["aten::scaled_dot_product_attention"],
           "aten::convolution": ["aten::cudnn_convolution", "aten::miopen_convolution"],
           "aten::layer_norm": ["aten::native_layer_norm"], "aten::group_norm": ["aten::native_group_norm", "aiter::_groupnorm_run"],
           "aten::batch_norm": ["aten::native_batch_norm", "aten::miopen_batch_norm", "aten::cudnn_batch_norm"],
           "aiter::gemm_a16w16": ["aten::mm"]}


def find(rows, key):
    """The row of the same operator and shapes, or of an alias with the same first shapes (weights of a product may be turned)."""
    if key in rows:
        return rows[key]
    first = key[1].split(" ")[:2]
    turned = first[:1] + ["[" + ",".join(reversed(first[1].strip("[]").split(","))) + "]"] if len(first) > 1 else first
    for name in ALIASES.get(key[0], []):
        for (other, shape), row in rows.items():
            if other == name and shape.split(" ")[:2] in (first, turned):
                return row
    return None


def ours(path):
    d = json.loads(subprocess.run([REPRISE, "roofline", "--limit", "0", "--json", path], capture_output=True, check=True).stdout)
    rows = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for r in d["rows"]:
        if r["flops"] is not None:
            row = rows[r["name"], r["shape"] or ""]
            row[0] += r["calls"]
            row[1] += r["flops"]
            row[2] += r["bytes"]
    return rows, d["modelled_share"], d["device_ns"]


def theirs(path):
    from TraceLens import TreePerfAnalyzer
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a = TreePerfAnalyzer.from_file(path)
        table = a.build_df_unified_perf_table(a.collect_unified_perf_events())
    rows, modelled, whole = collections.defaultdict(lambda: [0, 0.0, 0.0]), 0.0, 0.0
    for _, r in table.iterrows():
        t = r["Kernel Time (µs)"]
        whole += t if t == t else 0
        if not r["has_perf_model"] or r["GFLOPS"] != r["GFLOPS"]:
            continue
        modelled += t if t == t else 0
        shape = shape_of(r["Input Dims"]) if isinstance(r["Input Dims"], (list, tuple)) else None
        if shape is not None:
            row = rows[r["name"], shape]
            row[0] += 1
            row[1] += r["GFLOPS"] * 1e9
            row[2] += (r["Data Moved (MB)"] or 0) * 1024 * 1024
    return rows, modelled / whole if whole else 0


def timed(run):
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def compare(path):
    name = os.path.basename(path)
    a, share_a, _ = ours(path)
    b, share_b = theirs(path)
    print(f"\n{name}: modelled {100 * share_a:.1f} % of the device time, TraceLens {100 * share_b:.1f} % of what it links")
    groups = collections.defaultdict(lambda: [0, 0, [], []])
    for key, row in b.items():
        g = groups[key[0]]
        mine = find(a, key)
        if not mine:
            g[1] += 1
            continue
        g[0] += 1
        # kernels without a launch are calls here and not there: compare single calls
        f = (mine[1] / mine[0]) / (row[1] / row[0]) if row[1] else (1.0 if mine[1] == 0 else math.inf)
        m = (mine[2] / mine[0]) / (row[2] / row[0]) if row[2] else math.inf
        g[2].append(f)
        g[3].append(m)
    for op, (n, absent, flops, size) in sorted(groups.items()):
        near = sum(abs(x - 1) < 0.01 for x in flops)
        near_m = sum(abs(x - 1) < 0.01 for x in size)
        other = sorted({f"{x:.3g}" for x in flops if abs(x - 1) >= 0.01})[:4]
        other_m = sorted({f"{x:.3g}" for x in size if abs(x - 1) >= 0.01})[:4]
        print(f"  {op[:52]:52} shapes {n:3}  FLOPs same {near:3} {'ratio ' + ', '.join(other) if other else '':28}"
              f" bytes same {near_m:3} {'ratio ' + ', '.join(other_m) if other_m else ''}{f'  not here {absent}' if absent else ''}")
    only = collections.Counter(k[0] for k in a if k not in b)
    if only:
        print("  only here:", ", ".join(f"{k} ({v})" for k, v in only.most_common(12)))


def main():
    for path in sys.argv[1:]:
        try:
            compare(path)
        except Exception as why:  # a peer that cannot read a trace is a row too
            print(f"\n{os.path.basename(path)}: {type(why).__name__}: {str(why)[:100]}")
    code = "import sys, io, contextlib, warnings; warnings.simplefilter('ignore'); from TraceLens import TreePerfAnalyzer as T\n" \
           "with contextlib.redirect_stdout(io.StringIO()): a = T.from_file(sys.argv[1]); a.build_df_unified_perf_table(a.collect_unified_perf_events())"
    print()
    for path in sys.argv[1:]:
        quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        mine = timed(lambda: subprocess.run([REPRISE, "roofline", path], **quiet))
        info = timed(lambda: subprocess.run([REPRISE, "info", path], **quiet))
        peer = timed(lambda: subprocess.run([sys.executable, "-c", code, path], **quiet))
        print(f"{os.path.basename(path)[:48]:48} roofline {mine:6.3f} s ({mine / info:.2f} of info), TraceLens {peer:6.2f} s: {peer / mine:.0f} times as long")


if __name__ == "__main__":
    main() if len(sys.argv) > 1 else sys.exit(__doc__)
