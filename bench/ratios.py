# SPDX-License-Identifier: Apache-2.0
"""What commands cost beside reading their input: bench/run --ratios, and the step `ratios` of tools/check.

--ratios prints, for inputs of several formats, the processor time of each command as a multiple of that of `gzip -dc` on the same
bytes, and its peak memory as a multiple of the bytes inside. Times cannot be judged on a machine that others use. So the check counts
what valgrind executes, in blocks of instructions, of a few small inputs, one thread each, and compares with bench/ratios.txt: what
grew by more than GROWTH fails until the file has the new number, with a line that says why.
"""
import concurrent.futures, datetime, gzip, os, pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
KEPT = ROOT / "bench" / "ratios.txt"
GROWTH = 0.10
COUNTED = (
    "version",
    "info examples/gpt_bf16.json.gz", "report examples/gpt_bf16.json.gz", "report --no-simulate examples/gpt_bf16.json.gz",
    "report examples/ddp", "report --no-simulate examples/ddp", "comm examples/ddp", "idle examples/gpt_bf16.json.gz",
    "top examples/gpt_bf16.json.gz", "critpath examples/gpt_bf16.json.gz", "roofline examples/gpt_foreach.json.gz",
    "simulate -w cuda-graphs examples/gpt_foreach.json.gz",
    "memory examples/gpt_memory.pickle.gz", "convert examples/gpt_bf16.json.gz -o {out}.json", "convert examples/gpt_bf16.json.gz -o {out}.rpt",
    "diff examples/gpt_bf16.json.gz examples/gpt_foreach.json.gz", "view examples/gpt_cudagraph.json.gz --save {out}.html",
    "report examples/byteps.tar.gz", "graph examples/sharded_step.hlo.txt", "graph examples/xla_step.tar.gz",
    "replay examples/mlp.hlo.txt --inputs examples/mlp.npz --iters 1 --warmup 0")
TIMED = ("info {in}", "report --no-simulate {in}", "report {in}", "idle {in}", "simulate {in}", "convert {in} -o {out}.rpt",
         "convert {in} -o {out}.json", "view {in} --save {out}.html")


def compiler():
    """Of the build on this machine: counts of another one differ by more than any change."""
    said = subprocess.run(["cc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"{os.uname().machine} gcc {said.split('.')[0]}"


def count(reprise, command, folder):
    """Blocks of instructions that a command executes; a text where it failed."""
    log = folder / f"{abs(hash(command))}"
    words = command.replace("{out}", str(folder / "out")).split()
    # address space layout moves nothing that is counted, and one processor means one thread
    done = subprocess.run(["valgrind", "--tool=none", "--stats=yes", f"--log-file={log}", str(reprise), *words], cwd=ROOT,
                          stdin=subprocess.DEVNULL, capture_output=True, env={**os.environ, "LC_ALL": "C", "COLUMNS": "120"},
                          preexec_fn=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]))
    found = re.search(r"([\d,]+) event checks", log.read_text())
    if done.returncode > 1 or not found:
        return f"exit {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[-150:]}"
    return int(found[1].replace(",", ""))


def count_all(reprise, names):
    wanted = [c for c in COUNTED if not names or any(n in c for n in names)]
    with tempfile.TemporaryDirectory(prefix="ratios-") as folder:
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            jobs = {}
            for i, command in enumerate(wanted):
                own = pathlib.Path(folder) / str(i)
                own.mkdir()
                jobs[command] = pool.submit(count, reprise, command, own)
            return {command: job.result() for command, job in jobs.items()}


def read_kept():
    """The numbers by command, the compiler that they are of, and the lines that say why."""
    kept, of, why = {}, "", []
    for line in KEPT.read_text().splitlines() if KEPT.exists() else []:
        if line.startswith("# of "):
            of = line[5:]
        elif line.startswith("why "):
            why.append(line)
        elif line and not line.startswith("#"):
            number, command = line.split(None, 1)
            kept[command] = int(number)
    return kept, of, why


def write_kept(counts, why):
    head = ["# Blocks of instructions that commands execute (bench/README.md, \"Ratios\"): bench/run --ratios --write [REASON].",
            "# A number that grows by more than a tenth needs a line `why DATE COMMAND +N %: REASON`.", f"# of {compiler()}"]
    KEPT.write_text("\n".join(head + why + [f"{counts[c]:>12} {c}" for c in COUNTED if c in counts]) + "\n")


def check(reprise, names=(), write=None):
    """Compares with bench/ratios.txt, or writes it (write: the reason, which may be empty). Returns the number of failures."""
    kept, of, why = read_kept()
    if write is None and of != compiler():
        print(f"ratios: not compared: counted on {of or 'nothing'}, this is {compiler()}")
        return 0
    counts, failed = count_all(reprise, names), 0
    for command, n in counts.items():
        was = kept.get(command)
        if isinstance(n, str):
            print(f"ratios: {command}: {n}")
            failed += 1
        elif was is None and write is None:
            print(f"ratios: {command}: {n:,} blocks of instructions, and none in bench/ratios.txt: bench/run --ratios --write adds it")
            failed += 1
        elif was and n > was * (1 + GROWTH):
            more = f"+{100 * (n / was - 1):.0f} %"
            if write:
                why.append(f"why {datetime.date.today()} {command} {more}: {write}")
            else:
                print(f"ratios: {command}: {was:,} -> {n:,} blocks of instructions ({more}): if it must cost that, "
                      "bench/run --ratios --write 'REASON' says why in bench/ratios.txt")
                failed += 1
        elif was and write is None and n < was * (1 - GROWTH):
            print(f"ratios: {command}: {was:,} -> {n:,} blocks of instructions: bench/run --ratios --write keeps it so")
    if write is not None and not failed:
        write_kept({**kept, **counts}, why)
    return failed


# ---------------------------------------------------------------- times and memory

def spend(spawn, command):
    """Processor seconds and peak bytes of a command; None where it failed."""
    done = subprocess.run([spawn, *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = done.stderr.decode("utf-8", "replace").split()
    return (float(said[-1]), int(said[-3]) * 1024) if done.returncode in (0, 1) else None


def table(reprise, spawn, traces, runs=3):
    """One line a command: multiples of `gzip -dc`, and of the bytes inside."""
    lines = ["| input | command | processor time / gzip -dc | peak memory / input |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="ratios-") as folder:
        for trace in traces:
            files = sorted(str(p) for p in pathlib.Path(trace).glob("*.json.gz")) or [str(trace)]
            inside = sum(len(gzip.open(f).read()) for f in files)
            rows = {c: [] for c in ("gzip", *TIMED) if len(files) == 1 or not c.startswith("convert")}
            for _ in range(runs):
                for c in rows:
                    words = ["gzip", "-dc", *files] if c == "gzip" else [str(reprise), *c.replace("{out}", f"{folder}/out").replace("{in}", str(trace)).split()]
                    rows[c].append(spend(spawn, words))
            base = min(s for s, _ in rows.pop("gzip"))
            for c, got in rows.items():
                done = [g for g in got if g]
                lines.append(f"| {pathlib.Path(trace).name} ({inside / 1e6:.0f} MB) | {re.sub(' .in.| -o .out.| .out.*', '', c) if 'convert' not in c else 'convert, ' + c[-4:]} | " +
                             (f"{min(s for s, _ in done) / base:.2f} | {min(m for _, m in done) / inside:.2f} |" if done else "failed | |"))
    return lines
