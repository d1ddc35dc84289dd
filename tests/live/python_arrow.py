# SPDX-License-Identifier: Apache-2.0
"""Tables of the Python package in pyarrow, polars, pandas and DuckDB: every value is that of `query --json`, SQL has the same answers
here and in DuckDB, and the times, names and kinds of events are not copied."""
import gc, json, subprocess, sys
import duckdb, pandas, polars, pyarrow
import reprise as rp

TABLES = ["ranks", "events", "kernels", "launches", "operators", "steps", "collectives", "findings"]
QUERIES = ["select name, count(*) n, sum(dur_ns) total_ns from kernels group by name order by total_ns desc, name",
           "select rank, step, max(end_ns) - min(ts_ns) span_ns from kernels where step is not null group by 1, 2 order by 1, 2",
           "select k.operator, sum(l.delay_ns) delay_ns from kernels k join launches l on l.rank = k.rank and l.event = k.launch"
           " group by 1 order by 2 desc, 1",
           "select kind, count(*) n, sum(dur_ns) total_ns from events group by kind order by kind",
           "select rank, name, ts_ns - lag(end_ns) over (partition by rank, stream order by ts_ns, event) gap_ns from kernels"
           " order by rank, ts_ns, event"]
failed = 0


def check(what, got, want=True):
    global failed
    if got != want:
        failed += 1
        print(f"python_arrow: {what}: {str(got)[:300]}, not {str(want)[:300]}")


def asked(path, sql):
    done = subprocess.run([sys.argv[1], "query", "--json", "--limit", "0", "--sql", sql, path], capture_output=True, check=True)
    return json.loads(done.stdout)["rows"]


def of_pandas(frame):
    """Rows with None for what pandas has for a missing value."""
    columns = [[None if value is pandas.NA or value != value else value for value in frame[name].tolist()] for name in frame]
    return [dict(zip(frame.columns, row)) for row in zip(*columns)]


def same_values(path, run):
    for name in TABLES:
        rows = table = getattr(run, name)  # `rows`: a name that DuckDB can look up
        want = asked(path, f"select * from {name}")
        check(f"{path}: {name}: pyarrow", table.to_arrow().to_pylist() == want)
        table.to_arrow().validate(full=True)
        check(f"{path}: {name}: polars", table.to_polars().to_dicts() == want)
        check(f"{path}: {name}: pandas", of_pandas(table.to_pandas()) == want)
        relation = duckdb.sql("from rows")
        check(f"{path}: {name}: duckdb", [dict(zip(relation.columns, row)) for row in relation.fetchall()] == want)
        check(f"{path}: {name}: schema", pyarrow.schema(table).equals(table.to_arrow().schema, check_metadata=True))
        print(f"python_arrow: {path}: {name}: {len(want)} rows")


def same_answers(path, run):
    base = duckdb.connect()
    for name in TABLES:
        base.register(name, getattr(run, name).to_arrow())
    for query in QUERIES:
        relation = base.sql(query.replace("order by 2 desc, 1", "order by 2 desc, 1 nulls first"))
        check(f"{path}: {query}", [dict(zip(relation.columns, row)) for row in relation.fetchall()], run.query(query).to_arrow().to_pylist())


def not_copied(path, run):
    before = pyarrow.total_allocated_bytes()
    first, second = run.events.to_arrow(), run.events.to_arrow()
    check("pyarrow allocates nothing", pyarrow.total_allocated_bytes(), before)
    shared = []
    for name in first.column_names:
        pairs = zip(first[name].chunks, second[name].chunks)
        if all(a.buffers()[1].address == b.buffers()[1].address for a, b in pairs):
            shared.append(name)
    check("shared", {"ts_ns", "dur_ns", "name", "kind", "track"} <= set(shared))
    size = sum(chunk.buffers()[1].size for name in shared for chunk in first[name].chunks)
    print(f"python_arrow: {path}: two exports of events share {size} bytes: {', '.join(shared)}")
    seen = [chunk.to_arrow().buffers()[1].address for chunk in run.events.to_polars()["ts_ns"].get_chunks()]
    check("polars has the same memory", seen, [chunk.buffers()[1].address for chunk in first["ts_ns"].chunks])


def lifetimes(path):
    """Data outlives the run; what is not read to its end is released."""
    run = rp.open(path)
    kernels, want = run.kernels.to_arrow(), run.kernels.to_polars()["dur_ns"].sum()
    reader = pyarrow.RecordBatchReader.from_stream(run.events)
    reader.read_next_batch()
    run.close()
    del run, reader
    gc.collect()
    check("after the run", sum(kernels["dur_ns"].to_pylist()), want)
    check("capsules", len(rp._tables._held), 0)


for trace in ("examples/gpt_bf16.json.gz", "examples/ddp"):
    with rp.open(trace) as opened:
        same_values(trace, opened)
        same_answers(trace, opened)
        not_copied(trace, opened)
    lifetimes(trace)
print(f"python_arrow: pyarrow {pyarrow.__version__}, polars {polars.__version__}, pandas {pandas.__version__}, "
      f"duckdb {duckdb.__version__}: {failed} failed")
sys.exit(1 if failed else 0)
