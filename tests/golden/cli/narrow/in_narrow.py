import os, subprocess, sys

program, examples = sys.argv[1:]
one, other, ranks = (f"{examples}/{name}" for name in ("gpt_bf16.json.gz", "gpt_foreach.json.gz", "ddp"))


def ask(width, question, *paths):
    p = subprocess.run([program, question, "-q", *paths], stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": str(width)})
    assert p.returncode in (0, 1) and p.stdout, (question, paths, p.returncode)
    return p.stdout.splitlines()


for question in "info report top roofline fusions idle comm critpath stalls launches memory simulate optimize diff".split():
    for paths in ((one, other), (other, one), (ranks, ranks)) if question == "diff" else ((one,), (other,), (ranks,)):
        for width in 60, 80:
            for line in ask(width, question, *paths):
                if len(line) > width and len(line.split()[-1]) + len(line) - len(line.lstrip()) <= width:
                    print(f"{question}: {len(line)} columns of {width}: {line}")
lines = ask(60, "launches", one)
at = next(i for i, line in enumerate(lines) if line.split()[:2] == ["name", "count"])
print("\n".join(lines[at:at + 4]))
