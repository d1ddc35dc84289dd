# SPDX-License-Identifier: Apache-2.0
"""No flag that `dump flags` calls known to a release is refused by it, and no flag that it accepts is missing."""
import glob, json, os, re, subprocess, sys, tempfile

REPRISE = os.environ.get("REPRISE", "build/reprise")
RELEASE = sys.argv[1]
# a client is enough: flags are read when it is made
START = "from jaxlib import xla_client; c = xla_client.CompileOptions(); b = c.executable_build_options; d = b.debug_options"
UNKNOWN = re.compile(r"Unknown flags? in XLA_FLAGS: (.*)")


def start(flags):
    """The names that XLA does not know; None where it refused something else (a value), [] where it started."""
    with tempfile.NamedTemporaryFile("w", suffix=".flags") as f:
        f.write("\n".join(flags) + "\n")
        f.flush()
        done = subprocess.run([sys.executable, "-c", START], env={**os.environ, "XLA_FLAGS": f.name}, text=True,
                              capture_output=True)
    if done.returncode == 0:
        return []
    unknown = UNKNOWN.search(done.stderr)
    return [w.lstrip("-").split("=")[0] for w in unknown.group(1).split()] if unknown else None


def refused(flags):
    """Of flags, those that are unknown; halves the list where a value hides the rest."""
    names = start(flags)
    if names is not None:
        return names
    if len(flags) == 1:
        return []
    half = len(flags) // 2
    return refused(flags[:half]) + refused(flags[half:])


def known():
    rows = json.loads(subprocess.run([REPRISE, "dump", "flags", "--every", "--json"], stdout=subprocess.PIPE,
                                     check=True).stdout)["flags"]
    return rows, [r for r in rows if r["where"] == "XLA_FLAGS" and RELEASE in re.findall(r"[\d.]+\d", r["versions"])
                  and not r["versions"].startswith("none")]


def names_in_library():
    import jaxlib
    folder = os.path.dirname(jaxlib.__file__)
    library = [p for p in (f"{folder}/libjax_common.so", f"{folder}/xla_extension.so") if os.path.exists(p)][0]
    with open(library, "rb") as f:
        return {m.decode() for m in re.findall(rb"(?<![A-Za-z0-9_])xla_[a-z0-9_]{3,85}(?![A-Za-z0-9_.])", f.read())}


def main():
    rows, ours = known()
    assert len(ours) > 150, len(ours)
    plain = [f"--{r['name']}={r['default']}" for r in ours if r["type"] != "text"]
    texts = [f"--{r['name']}={r['default']}" for r in ours if r["type"] == "text"]
    assert start(plain) == [], f"defaults refused: {start(plain)}"
    bad = refused(texts)
    assert not bad, f"called known, but refused: {bad}"
    table = {r["name"] for r in ours}
    rest = sorted(names_in_library() - table - {"xla_flags"})
    accepted = set(rest)
    for i in range(0, len(rest), 40):
        accepted -= set(refused([f"--{n}=1" for n in rest[i:i + 40]]))
    missing = sorted(accepted)
    assert not missing, f"accepted, but not in the table: {missing}"
    print(f"dump_flags: {len(ours)} flags that are called known to jaxlib {RELEASE} are accepted, none is missing")


main()
