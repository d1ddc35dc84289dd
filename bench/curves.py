# SPDX-License-Identifier: Apache-2.0
"""How commands grow with their inputs: bench/run --curves, and the step `curves` of tools/check.

Each command runs on generated inputs of n, 2n and 4n (bench/growth_inputs.py), and valgrind counts what it executes, in blocks of
instructions: that is exact where times on a busy machine are not. With f(n) = a + b n^p the exponent is
p = log2((f(4n) - f(2n)) / (f(2n) - f(n))), which does not depend on the constant a. Sorting has about 1.1 at these sizes. More than
LIMIT fails. bench_curves.c says how it is run.
"""
import concurrent.futures, math, os, pathlib, queue, re, subprocess, sys, tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from growth_inputs import FILES

LIMIT = 1.3
LEAST = 20000  # blocks between n and 4n: a command that executes fewer more does not depend on n
TRACE = ("info", "report", "top", "roofline", "fusions", "idle", "comm", "critpath", "stalls", "launches", "memory",
         "merge {in} -o {out}.rpt", "convert {in} -o {out}.rpt", "convert {in} -o {out}.json", "diff {in} {in}", "simulate")
RANKS = tuple(c for c in TRACE if not c.startswith("convert"))  # a folder of ranks: each is a file of its own
FEW = ("info", "report", "top")
PROGRAM = ("graph", "convert {in} -o {out}.pb", "convert {in} -o {out}.hlo", "diff {in} {in}", "graph {in} --html {out}.html",
           "replay {in} --engine ref --iters 1 --warmup 0", "replay {in} --engine fast --iters 1 --warmup 0")
READ = ("graph",)

# What the check leaves out, where an input has all commands of its kind: they share most of their code.
SLOW = set(TRACE) - {"info", "report", "diff {in} {in}", "simulate"} | set(PROGRAM) - {PROGRAM[0], PROGRAM[1], PROGRAM[6]}

# input: (n of the check, commands); bench/run --curves takes SCALE times as much
SCALE = 4
CASES = {
    "training": (200, TRACE + ("convert {in} -o {out}.csv", "convert {in} -o {out}.sqlite")),
    "many_names": (200, TRACE),
    "many_steps": (100, TRACE),
    "many_streams": (100, TRACE),
    "many_threads": (200, TRACE),
    "many_processes": (400, TRACE),
    "many_devices": (128, TRACE),
    "named_threads": (300, FEW),
    "deep_spans": (500, TRACE),
    "equal_spans": (500, TRACE),
    "open_spans": (1000, TRACE),
    "async_spans": (500, TRACE),
    "many_flows": (300, TRACE),
    "one_flow": (600, FEW),
    "one_correlation": (400, TRACE),
    "equal_correlations": (400, TRACE),
    "many_graphs": (100, TRACE),
    "many_counters": (300, TRACE),
    "many_arguments": (800, FEW + ("convert {in} -o {out}.json",)),
    "wide_event": (800, FEW + ("convert {in} -o {out}.json",)),
    "overlapping_kernels": (300, TRACE),
    "synchronisations": (100, TRACE),
    "python_stacks": (1000, TRACE), # from there on changes of a step are tried
    "memory_events": (400, TRACE),
    "backward_order": (300, FEW),
    "long_text": (10, FEW),
    "many_collectives": (40, RANKS),
    "many_groups": (60, RANKS),
    "many_ranks": (5, RANKS),
    "xplane_events": (400, FEW),
    "xplane_names": (400, FEW),
    "xplane_lines": (200, TRACE),
    "xplane_planes": (100, ("info", "top")),
    "run_metadata": (400, FEW),
    "run_metadata_devices": (200, FEW),
    "byteps_worker": (200, FEW),
    "chakra_chain": (600, READ),
    "execution_trace": (300, READ),
    "snapshot_events": (400, ("memory", "info")),
    "snapshot_descending": (800, ("memory", "info")),
    "snapshot_segments": (300, ("memory", "info")),
    "snapshot_stacks": (300, ("memory", "info")),
    "shared_dict": (800, ("memory", "info")),
    "shared_frames": (200, ("memory", "info")),
    "buffer_assignment": (500, ("memory",)),
    "buffer_allocations": (500, ("memory",)),
    "hlo_chain": (200, PROGRAM),
    "hlo_wide": (200, PROGRAM),
    "hlo_parameters": (200, PROGRAM),
    "hlo_constants": (200, PROGRAM),
    "hlo_large_constant": (3000, PROGRAM),
    "hlo_calls": (30, PROGRAM),
    "hlo_fusions": (100, PROGRAM),
    "hlo_shared_call": (200, PROGRAM),
    "hlo_reduces": (100, PROGRAM),
    "hlo_tuples": (200, PROGRAM),
    "hlo_diamonds": (200, PROGRAM),
    "hlo_collectives": (100, PROGRAM[:-2]),
    "mlir_chain": (200, PROGRAM),
    "mlir_functions": (30, PROGRAM),
    "mlir_wide": (200, PROGRAM),
    "mlir_constants": (200, PROGRAM),
    "graphdef_chain": (300, PROGRAM[:1] + PROGRAM[3:5]),
    "graphdef_controls": (300, PROGRAM[:1] + PROGRAM[3:5]),
    "repeated_constants": (100, ("graph", "replay pack {in} --redact --save {out}.tar")),
    "lazy_graphs": (100, READ),
    "lazy_chain": (400, READ),
    "tar_of_traces": (10, ("info", "report")),
    "tar_of_others": (200, ("info",)),
    "bundle_one_file": (200, ("replay info {in}",)),
    "bundle_files": (100, ("replay info {in}", "replay {in} --engine ref --iters 1 --warmup 0")),
    "arrays": (200, ("replay {in}/p.hlo.txt --inputs {in}/in.npz --engine fast --iters 1 --warmup 0",)),
    "dump_folder": (10, ("dump ls {in}", "dump passes {in}", "graph {in}")),
    "dump_passes": (10, ("dump ls {in}", "dump passes {in}")),
    "torch_compiles": (100, ("dump ls {in}", "dump compiles {in}", "dump breaks {in}", "dump recompiles {in}")),
    "torch_recompiles": (100, ("dump compiles {in}", "dump recompiles {in}")),
    "torch_calls": (100, ("dump compiles --json {in}",)),
}


class Driver:
    """A bench_curves that runs commands on request; with valgrind it counts blocks of instructions."""

    def __init__(self, program, scratch, valgrind=True):
        self.scratch, self.valgrind = scratch, valgrind
        tool = ["valgrind", "--tool=none", "--stats=yes", f"--log-file={scratch}/count.%p"] if valgrind else []
        self.errors = open(scratch / f"errors.{id(self)}", "w+b")
        self.process = subprocess.Popen([*tool, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)

    def ask(self, *words):
        """The counted blocks, or the peak of memory in bytes; a text where the command failed."""
        self.errors.seek(0)
        self.errors.truncate()
        self.process.stdin.write("\t".join(words).encode() + b"\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 3 or int(answer[1]) > 1:  # 1: the answer is no
            self.errors.seek(0)
            lines = [l for l in self.errors.read().decode("utf-8", "replace").splitlines() if l.strip()]
            return f"status {answer[1].decode() if answer else 'none'}: {(lines or ['no message'])[-1][:150]}"
        if not self.valgrind:
            return int(answer[2]) * 1024
        if words[0] == "here":
            return 0
        log = self.scratch / f"count.{answer[0].decode()}"
        found = re.search(r"([\d,]+) event checks", log.read_text())
        log.unlink()
        return int(found[1].replace(",", ""))

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()


class Row:
    """One command on one input."""

    def __init__(self, name, n, command):
        self.name, self.n, self.command = name, n, command if "{in}" in command else command + " {in}"
        self.counts, self.memory, self.error = [], [], ""

    def label(self):
        words = re.sub(r" (--iters 1|--warmup 0|--engine|--inputs|-o|\{in\}\S*)(?= |$)", "", self.command)
        return words.replace("{out}", "to ") if " -o " in self.command else re.sub(r" \{out\}\S*", "", words)

    def exponent(self):
        f1, f2, f4 = self.counts
        return math.log2(max(f4 - f2, 1) / max(f2 - f1, 1)) if f4 - f1 > LEAST else 0.0

    def failed(self):
        return self.error or self.exponent() > LIMIT

    def run(self, driver, inputs, out):
        words = lambda path: [w.replace("{in}", str(path)).replace("{out}", str(out)) for w in self.command.split()]
        if driver.valgrind:
            driver.ask("here", *words(inputs[0]))
        base = driver.ask("child") if driver.valgrind else 0
        for path in inputs[1:]:
            got = driver.ask("child", *words(path))
            if isinstance(got, str):
                self.error = got
                return
            (self.counts if driver.valgrind else self.memory).append(got - base)


def print_row(r):
    """Says why the row fails, as soon as that is known."""
    if r.failed():
        why = r.error or (f"grows with n^{r.exponent():.2f}: {', '.join(f'{c:,}' for c in r.counts)} blocks of instructions where n is "
                          f"{r.n:,}, {2 * r.n:,}, {4 * r.n:,} ({FILES[r.name][0].__doc__})")
        print(f"curves: {r.name}, {r.label()}: {why}", flush=True)


def make_inputs(name, n, folder):
    """Paths of the input of sizes n/8 (to be run once before), n, 2n, 4n."""
    make, suffix = FILES[name]
    paths = []
    for size in (max(4, n // 8), n, 2 * n, 4 * n):
        path = folder / f"{name}.{size}{suffix or ''}"
        if suffix is None:
            path.mkdir()
        make(size, path)
        paths.append(path)
    return paths


def measure(program, rows, jobs, folder, memory):
    """Runs the rows, those of one input by one driver; an input is made when it is needed, and removed behind it."""
    drivers = queue.Queue()
    for i in range(jobs):
        (folder / str(i)).mkdir()
        drivers.put(Driver(program, folder / str(i)))
    groups = {}
    for row in rows:
        groups.setdefault(row.name, []).append(row)

    def work(group):
        driver = drivers.get()
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            scratch = pathlib.Path(scratch)
            inputs = make_inputs(group[0].name, group[0].n, scratch)
            native = Driver(program, scratch, False) if memory else None
            for row in group:
                row.run(driver, inputs, scratch / "out")
                if native and not row.error:
                    row.run(native, inputs, scratch / "out")
                print_row(row)
                if driver.process.poll() is not None:
                    driver = Driver(program, driver.scratch)
            if native:
                native.close()
        drivers.put(driver)

    order = sorted(groups.values(), key=lambda g: -len(g))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, order))
    while not drivers.empty():
        drivers.get().close()


def table(rows):
    """One line an input: the command that grows fastest, and the one whose memory does."""
    lines = ["| input | n counts | n | commands | fastest growth | blocks at n, 4n | memory |", "|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys(r.name for r in rows):
        own = [r for r in rows if r.name == name]
        worst = max(own, key=Row.exponent)
        large = max(own, key=lambda r: r.memory[2] if r.memory else 0)
        memory = f"{large.memory[2] / 1e6:.0f} MB, {large.label()}" if large.memory else ""
        lines.append(f"| {name} | {FILES[name][0].__doc__} | {worst.n:,} | {len(own)} | {worst.exponent():.2f}, {worst.label()} | "
                     f"{worst.counts[0]:,}, {worst.counts[2]:,} | {memory} |")
    return lines


def rows_of(names, quick):
    for name, (n, commands) in CASES.items():
        whole = name == "training" or len(commands) < len(PROGRAM)
        if not names or name in names:
            yield from (Row(name, n if quick else n * SCALE, c) for c in commands if whole or not quick or c not in SLOW)


def main(program, names=(), quick=False, jobs=None):
    """Prints the table, and the rows that fail as soon as they do. Returns the number of those."""
    unknown = sorted(set(names) - set(CASES))
    if unknown:
        sys.exit(f"bench/run: no input is called '{unknown[0]}'; there are {', '.join(CASES)}")
    rows = list(rows_of(names, quick))
    with tempfile.TemporaryDirectory(prefix="curves-") as folder:
        measure(program, rows, jobs or len(os.sched_getaffinity(0)), pathlib.Path(folder), not quick)
    if not quick:
        print("\n".join(table([r for r in rows if len(r.counts) == 3])))
    return sum(1 for r in rows if r.failed())
