import os, subprocess, sys

program, data, traces = sys.argv[1:]
for question in "info report top roofline fusions idle comm critpath stalls launches memory simulate".split():
    for trace in open(traces).read().split():
        for width in 60, 80:
            p = subprocess.run([program, question, "-q", trace], stdout=subprocess.PIPE, text=True, cwd=data, env={**os.environ, "COLUMNS": str(width)})
            assert p.returncode in (0, 1) and p.stdout, (question, trace, p.returncode)
            for line in p.stdout.splitlines():
                if len(line) > width and len(line.split()[-1]) + len(line) - len(line.lstrip()) <= width:
                    print(f"{question}: {len(line)} columns of {width}: {line}")
