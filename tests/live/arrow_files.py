#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrow files of `reprise query`, read by pyarrow, polars and DuckDB: every value is that of --json.

    arrow_files.py [PROGRAM] [RUN ...]     build/reprise, the recordings in examples/
"""
import json, subprocess, sys, tempfile
import duckdb, polars, pyarrow.ipc

TABLES = "ranks events kernels launches operators steps collectives findings".split()
QUERIES = {
    "all of a table": "select * from kernels",
    "sums": "select name, count(*) calls, sum(dur_ns) total_ns, avg(dur_ns) mean_ns from kernels group by 1 order by 3 desc, 1",
    "types": "select 9223372036854775807 as large, -1 as small, 0.1 as fraction, 'ü€😀' as word, '' as empty, null as absent",
    "nulls between": "select nullif(id % 3, 0) as number, case id % 3 when 1 then name end as text, id % 2 / 0.7 as real from events",
    "no rows": "select * from events where 0",
}


def run(program, *arguments):
    return subprocess.run([program, "query", "-q", *arguments], check=True, capture_output=True, text=True).stdout


def read_by_pyarrow(path):
    with pyarrow.ipc.open_file(path) as file:
        table = file.read_all()
    table.validate(full=True)
    with open(path, "rb") as file:  # the same messages in their order, without the footer
        file.seek(8)
        assert pyarrow.ipc.open_stream(file).read_all().equals(table), f"{path}: differs when read as a stream"
    return table


def read_by_duckdb(table):
    cursor = duckdb.sql("select * from table_of_arrow", connection=connect(table))
    return [dict(zip(cursor.columns, row)) for row in cursor.fetchall()]


def connect(table):
    connection = duckdb.connect()
    connection.register("table_of_arrow", table)
    return connection


def check(program, trace, sql, path):
    told = json.loads(run(program, trace, sql, "--arrow", path, "--json"))["rows"]
    rows = json.loads(run(program, trace, sql, "--limit", "0", "--json"))["rows"]
    table = read_by_pyarrow(path)
    assert told == [{"output": path, "row_count": len(rows)}], told
    if rows:
        assert table.column_names == list(rows[0]), (sql, table.column_names)
    for reader, read in (("pyarrow", table.to_pylist()), ("polars", polars.read_ipc(path).to_dicts()),
                         ("polars, lazily", polars.scan_ipc(path).collect().to_dicts()), ("DuckDB", read_by_duckdb(table))):
        assert len(read) == len(rows), f"{reader}: {len(read)} rows of '{sql}', not {len(rows)}"
        for i, (one, other) in enumerate(zip(read, rows)):
            assert one == other, f"{reader}: row {i} of '{sql}': {one}, not {other}"
    return table


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/reprise"
    traces = sys.argv[2:] or ["examples/ddp", "examples/gpt_bf16.json.gz"]
    with tempfile.TemporaryDirectory() as folder:
        for trace in traces:
            for sql in TABLES + list(QUERIES.values()):
                table = check(program, trace, sql, f"{folder}/x.arrow")
                if sql in TABLES:
                    print(f"{trace}: {sql}: {table.num_rows} rows, {table.num_columns} columns")
            kernels = check(program, trace, "kernels", f"{folder}/x.arrow")
            assert str(kernels.schema.field("name").type).startswith("dictionary<values=large_string, indices=int32")
            assert kernels.schema.field("dur_ns").metadata[b"unit"] == b"ns"
    print(f"arrow_files: {len(traces)} runs, {len(TABLES)} tables and {len(QUERIES)} queries each: all values are those of --json")


if __name__ == "__main__":
    main()
