# SPDX-License-Identifier: Apache-2.0
"""Counts through libreprise.so by ctypes, then reads the counts back: as JSON, as text, and as OpenMetrics and the text of
Prometheus by the official parsers (PyPI: prometheus-client) and promtool."""
import ctypes, json, os, pathlib, subprocess, sys, tempfile
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as prometheus_families

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "metrics"))
import exposition

BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
REPRISE = os.environ.get("REPRISE", str(BUILD / "reprise"))
failed = 0


def check(what, got, want):
    global failed
    if got != want:
        failed += 1
        print(f"metrics_prometheus: {what}: {got!r}, not {want!r}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REPRISE_METRICS_DIR"] = folder
        lib = ctypes.CDLL(str(BUILD / "libreprise.so"))
        for name in ("time", "value", "bytes", "count"):
            getattr(lib, f"rp_metrics_call_{name}").argtypes = [ctypes.c_char_p, ctypes.c_int64]
        lib.rp_metrics_call_report.restype = ctypes.c_void_p
        lib.rp_metrics_call_report.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        lib.rp_metrics_call_free.argtypes = [ctypes.c_void_p]
        for i in range(1000):
            lib.rp_metrics_call_time(b"load", 1_000_000 + i)
            lib.rp_metrics_call_bytes(b'strange "name"\\\n', 4096)
            lib.rp_metrics_call_value(b"nodes", i)
            lib.rp_metrics_call_count(b"aten::mm", 3)
            lib.rp_metrics_call_count(b"balance", -1)
        text = lib.rp_metrics_call_report(None, None)
        check("report", b"Metric: load\n  TotalSamples: 1000\n" in ctypes.string_at(text), True)
        lib.rp_metrics_call_free(text)

        # this process, while it runs
        d = json.loads(subprocess.run([REPRISE, "metrics", "--json", str(os.getpid())], capture_output=True, check=True).stdout)
        metrics = {m["name"]: m for m in d["metrics"]}
        check("count", metrics["load"]["count"], 1000)
        check("total", metrics["load"]["total_ns"], sum(1_000_000 + i for i in range(1000)))
        check("median", abs(metrics["load"]["percentiles"]["50"] / 1_000_500 - 1) < 0.01, True)
        check("counter", {c["name"]: c["value"] for c in d["counters"]}, {"aten::mm": 3000, "balance": -1000})
        check("state", d["sources"][0]["state"], "running")

        text = subprocess.run([REPRISE, "metrics", "--openmetrics", "-", folder], capture_output=True, check=True, text=True).stdout
        families = {f.name: f for f in text_string_to_metric_families(text)}
        samples = {(s.name, s.labels.get("name"), s.labels.get("le")): s.value for f in families.values() for s in f.samples}
        check("families", sorted(families), ["reprise_balance", "reprise_count", "reprise_size_bytes", "reprise_time_seconds", "reprise_value"])
        check("time count", samples["reprise_time_seconds_count", "load", None], 1000)
        check("last bucket", samples["reprise_time_seconds_bucket", "load", "+Inf"], 1000)
        check("escaped name", samples["reprise_size_bytes_count", 'strange "name"\\\n', None], 1000)
        check("counter", samples["reprise_count_total", "aten::mm", None], 3000)
        check("gauge", samples["reprise_balance", "balance", None], -1000)
        check("processes", {s.labels["process"] for f in families.values() for s in f.samples}, {str(os.getpid())})

        # the text of Prometheus: the official parser and the one of the tests read the same, and both texts have the same samples
        text = subprocess.run([REPRISE, "metrics", "--prometheus", "-", folder], capture_output=True, check=True, text=True).stdout
        official = {f.name: f for f in prometheus_families(text)}
        ours = exposition.parse(text)
        check("the rules of promtool", list(exposition.lint(ours)), [])
        if os.environ.get("PROMTOOL"):
            done = subprocess.run([os.environ["PROMTOOL"], "check", "metrics"], input=text, capture_output=True, text=True)
            check("promtool", (done.returncode, done.stdout, done.stderr), (0, "", ""))
            broken = text.replace("# HELP reprise_value", "# REM reprise_value")
            done = subprocess.run([os.environ["PROMTOOL"], "check", "metrics"], input=broken, capture_output=True, text=True)
            check("promtool says what is wrong", (done.returncode, "no help text" in done.stderr), (3, True))
        print(f"metrics_prometheus: promtool: {os.environ.get('PROMTOOL') or 'not found, its rules only'}")
        flat = lambda fs: {(s.name, tuple(sorted(s.labels.items()))): s.value for f in fs.values() for s in f.samples}
        check("samples", {key: value for f in ours.values() for key, value in f.samples.items()}, flat(official))
        check("samples of OpenMetrics", flat(families), flat(official))
        check("help", [f.name for f in [*official.values(), *families.values()] if not f.documentation], [])
    print(f"metrics_prometheus: {failed} failed")
    return 1 if failed else 0


sys.exit(main())
