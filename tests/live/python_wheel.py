# SPDX-License-Identifier: Apache-2.0
"""The installed package: the program, the library, a recording. The working folder has the examples of the repository."""
import importlib.util, pathlib, shutil, subprocess, sys
import reprise as rp

failed = 0


def check(what, got, want=True):
    global failed
    if got != want:
        failed += 1
        print(f"python_wheel: {what}: {got!r}, not {want!r}")


def out(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


inside = pathlib.Path(rp.__file__).parent
check("in the environment", str(inside).startswith(sys.prefix))
check("the library of the wheel", rp._library.lib._name, str(inside / "lib" / "libreprise.so.0"))
check("nothing is compiled for this Python", [str(p) for p in inside.rglob("*cpython*.so")], [])
report = rp.open("examples/ddp").report()
check("no compiler in reach", [name for name in ("cc", "gcc", "clang", "cmake", "ld") if shutil.which(name)], [])
check("no other package", [name for name in ("pandas", "numpy", "pyarrow") if importlib.util.find_spec(name)], [])
run = rp.open("examples/ddp", progress=False)
capsule = run.kernels.__arrow_c_stream__()
check("a table as Arrow", repr(capsule).split('"')[1], "arrow_array_stream")
counted = run.query("select count(*) n, sum(dur_ns) total_ns from kernels")
check("a query as Arrow", repr(counted.__arrow_c_stream__()).split('"')[1], "arrow_array_stream")
check("draws itself", report._repr_html_().lstrip().startswith("<"))
check("the program has the same answer", out("reprise", "report", "--json", "examples/ddp"), report.to_json())
check("python -m reprise", out(sys.executable, "-m", "reprise", "version"), out("reprise", "version"))
states = {row.check: row.state for row in rp.doctor().checks}
check("record is ready", states["record host"], "ready")
script = "import reprise as rp\nfor i in range(7):\n    with rp.step(i):\n        with rp.record('work'): sum(range(1000))\n"
subprocess.run(["reprise", "record", "-q", "--with", "host", "-o", "run", "--", sys.executable, "-c", script], check=True,
               stderr=subprocess.DEVNULL)
check("recorded", {row.name: row.count for row in rp.top("run", by="annotation").rows}.get("work"), 7)
check("steps", len(rp.report("run").steps), 7)
print(f"python_wheel: python {sys.version.split()[0]}: {failed} failed")
sys.exit(1 if failed else 0)
