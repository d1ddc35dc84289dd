# SPDX-License-Identifier: Apache-2.0
"""Programs of JAX, run by XLA on the CPU and by `replay` on `fast` in turns, ROUNDS times; the least of the medians counts, since the machine is
shared, and results must agree. One thread pool each, as large as the machine; with --cpu one thread each, and CPU time instead, for a machine that others keep busy."""
import json, math, os, pathlib, subprocess, sys, tempfile, time

CPU = "--cpu" in sys.argv
NAMES = [a for a in sys.argv[1:] if a != "--cpu"]
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if CPU:
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
import jax, numpy as np

REPRISE = os.environ.get("REPRISE", pathlib.Path(__file__).resolve().parents[1] / "build" / "reprise")
ROUNDS, SECONDS = int(os.environ.get("ROUNDS", "3")), float(os.environ.get("SECONDS", "0.3"))


def raw(a):
    """.npy has no bf16 and no f8."""
    a = np.asarray(a)
    return a if a.dtype.kind in "fiubc" and a.dtype.name in np.sctypeDict else a.view(f"u{a.dtype.itemsize}")


def median_of_xla(run, args):
    clock = time.process_time if CPU else time.perf_counter
    times, end = [], clock() + SECONDS
    while clock() < end or len(times) < 3:
        begin = clock()
        jax.block_until_ready(run(*args))
        times.append(clock() - begin)
    return sorted(times)[len(times) // 2] * 1e3


def median_of_fast(program, arrays, check):
    command = [str(REPRISE), "replay", str(program), "-i", str(arrays), "-e", "fast", "--time", f"{int(SECONDS * 1000)}ms", "--json"]
    done = subprocess.run(command + ["--threads", "1"] * CPU + ["--expect", str(arrays)] * check, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError("another result than XLA's" if done.returncode == 1 else done.stderr.strip())
    run = json.loads(done.stdout)["run_ns"]
    return (max(run["min"], min(run["p50"], run["mean"] * (1 - run["waited_ratio"]))) if CPU else run["p50"]) / 1e6  # most short runs do not wait; what they waited is not exact


def pair(fn, args, to):
    """Milliseconds of both. The folder is for the program and its inputs."""
    program, arrays = pathlib.Path(to) / "p.mlir", pathlib.Path(to) / "p.npz"
    lowered, args = jax.jit(fn, keep_unused=True).lower(*args), jax.device_put(args)
    program.write_text(lowered.as_text())
    run = lowered.compile()
    np.savez(arrays, **{f"{side}{i}": raw(a) for side, values in (("in", args), ("out", run(*args))) for i, a in enumerate(jax.tree.leaves(values))})
    pairs = [(median_of_xla(run, args), median_of_fast(program, arrays, i == 0)) for i in range(ROUNDS)]
    return min(p[0] for p in pairs), min(p[1] for p in pairs)


def table(programs):
    """programs: pairs of a name and a function that gives the function and its arguments. Prints a row each, and the geometric mean of the ratios."""
    ratios = []
    print("| program | XLA | fast | ratio |\n|---|---:|---:|---:|")
    for name, make in programs:
        if NAMES and not any(w in name for w in NAMES):
            continue
        try:
            fn, *args = make()
            with tempfile.TemporaryDirectory() as to:
                xla, fast = pair(fn, args, to)
        except Exception as why:
            print(f"| {name} | {type(why).__name__}: {' '.join(str(why).split())[:120]} | | |", flush=True)
            continue
        ratios.append(fast / xla)
        print(f"| {name} | {xla:.3g} ms | {fast:.3g} ms | {fast / xla:.2f} |", flush=True)
    print(f"\ngeometric mean of {len(ratios)}: {math.exp(sum(map(math.log, ratios)) / max(len(ratios), 1)):.2f}")
