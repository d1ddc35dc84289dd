# SPDX-License-Identifier: Apache-2.0
"""Takes the script from the section "Ray" of docs/many_ranks.md and runs it on examples/ddp with three shards."""
import os, pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("REPRISE", pathlib.Path(os.environ.get("BUILD", "build")) / "reprise")).resolve()


def main():
    section = re.search(r"\n## Ray\n(.*?)\n## ", (ROOT / "docs/many_ranks.md").read_text(), re.S).group(1)
    script = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    ") or not line)
    run = str(ROOT / "examples/ddp")
    env = {**os.environ, "PATH": "%s:%s" % (PROGRAM.parent, os.environ["PATH"]), "RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "digests.py").write_text(script)
        done = subprocess.run([sys.executable, "digests.py", run, folder, "3"], cwd=folder, env=env, capture_output=True, text=True, timeout=600)
        parts = sorted(p.name for p in pathlib.Path(folder).glob("*.rpd"))
    alone = subprocess.run([str(PROGRAM), "report", run], capture_output=True, text=True)
    good = done.returncode == 0 and parts == ["0.rpd", "1.rpd", "2.rpd"] and alone.stdout in done.stdout
    print("ray_digests: %s" % ("the answer of three shards is that of the traces" if good else
                               "%d, %s\n%s%s" % (done.returncode, parts, done.stdout[-1500:], done.stderr[-1500:])))
    return not good


sys.exit(main())
