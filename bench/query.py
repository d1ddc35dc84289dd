#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""query.py BUILD TRACE...: tables of a trace as Arrow, and the same SQL by `query` and by DuckDB over those tables. Answers must be
equal. Prints processor time (the first number) and time on the wall, and memory. Needs pyarrow and duckdb (PyPI).

A long trace: build/bench/bench_generate examples/gpt_bf16.json.gz t.json 4400; reprise convert t.json -o t.rpt"""
import os, resource, sys, time

BUILD = os.path.abspath(sys.argv[1])
os.environ.setdefault("REPRISE_LIBRARY", f"{BUILD}/libreprise.so.0")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import duckdb, pyarrow
import reprise as rp

QUERIES = {
    "kernels by name": "select name, count(*) n, sum(dur_ns) total_ns from kernels group by 1 order by 3 desc, 1 limit 10",
    "time by phase and step": "select step, phase, sum(dur_ns) total_ns from kernels where step is not null group by 1, 2 order by 1, 2",
    "operators by shapes": "select name, shapes, count(*) n, sum(device_ns) device_ns from operators where kernels > 0 group by 1, 2"
                           " order by 4 desc, 1, 2 limit 10",
    "gaps of a stream": "select max(gap_ns) most_ns, sum(gap_ns) total_ns from (select ts_ns - lag(end_ns) over"
                        " (partition by rank, stream order by ts_ns, event) gap_ns from kernels) where gap_ns > 0",
    "the same gaps, by their column": "select max(gap_ns) most_ns, sum(gap_ns) total_ns from kernels where gap_ns > 0",
    "delays of launches": "select k.operator, count(*) n, sum(l.delay_ns) delay_ns from kernels k join launches l"
                          " on l.rank = k.rank and l.event = k.launch group by 1 order by 3 desc, 1 limit 10",
    "one kernel by its id": "select name, dur_ns from kernels where rank = 0 and event = (select max(event) from kernels where rank = 0)",
    "events by kind": "select kind, count(*) n, sum(dur_ns) total_ns from events group by 1 order by 1",
}


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6


def timed(work):
    cpu, wall = time.process_time(), time.perf_counter()
    value = work()
    return value, time.process_time() - cpu, time.perf_counter() - wall


def main(path):
    run = rp.open(path, progress=False)
    before = resident()
    _, cpu, wall = timed(lambda: run.events.begin())
    opened = resident()
    events, more, more_wall = timed(lambda: run.events.to_arrow())
    print(f"{os.path.basename(path)}: {events.num_rows} events: opened {cpu:.2f} s ({wall:.2f} s), to Arrow {more:.2f} s ({more_wall:.2f} s); "
          f"{events.nbytes / 1e6:.0f} MB of columns, of them {resident() - opened:.0f} MB new, {opened - before:.0f} MB read")
    base = duckdb.connect()
    for name in ("kernels", "launches", "operators", "events"):
        base.register(name, getattr(run, name).to_arrow())
    print("\n| query | rows | `query` | DuckDB | `query` / DuckDB |\n|---|---|---|---|---|")
    for what, sql in QUERIES.items():
        run.query(sql).to_arrow()
        ours, cpu, _ = timed(lambda: run.query(sql).to_arrow().to_pylist())
        theirs, other, _ = timed(lambda: base.sql(sql).to_arrow_table().to_pylist())
        if [list(row.values()) for row in ours] != [[int(v) if hasattr(v, "as_tuple") else v for v in row.values()] for row in theirs]:
            sys.exit(f"query.py: {what}: {str(ours)[:300]}, not {str(theirs)[:300]}")
        print(f"| {what} | {len(ours)} | {cpu * 1e3:.1f} ms | {other * 1e3:.1f} ms | {cpu / other:.2f} |")


for trace in sys.argv[2:]:
    main(trace)
