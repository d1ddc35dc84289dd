# SPDX-License-Identifier: Apache-2.0
"""Runs examples/notebook.ipynb as nbconvert does: no cell fails, answers draw their pictures, the search shows its progress. Then, in a
kernel: an error is an exception with its message, and an interrupt ends what runs."""
import pathlib, re, sys, time
import jupyter_client, nbconvert, nbformat
from nbconvert.preprocessors import ExecutePreprocessor

failed = 0


def check(what, got, want=True):
    global failed
    if got != want:
        failed += 1
        print(f"python_notebook: {what}: {str(got)[:300]}, not {str(want)[:300]}")


def outputs(cell, kind):
    """What a cell shows in that MIME type, or in the stream of that name."""
    return "".join(out.get("data", {}).get(kind, "") or (out.get("text", "") if out.get("name") == kind else "") for out in cell.outputs)


def notebook():
    book = nbformat.read("examples/notebook.ipynb", as_version=4)
    check("kept without outputs", all(not cell.outputs and cell.execution_count is None for cell in book.cells if cell.cell_type == "code"))
    ExecutePreprocessor(timeout=300).preprocess(book, {"metadata": {"path": "examples"}})  # raises where a cell does
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    by = {cell.source.strip().splitlines()[-1]: cell for cell in code}
    pictures = [last for last, cell in by.items() if "data:image/svg+xml;base64," in outputs(cell, "text/html")]
    check("pictures", [last.split("(")[0] for last in pictures], ["run.report", "run.roofline", "rp.graph"])
    check("a table", outputs(by["run.kernels"], "text/html").count("<tr>"), 11)
    check("findings", "('launch-bound', 43154833)" in outputs(by["[(finding.id, finding.lost_ns) for finding in report.findings]"], "text/plain"))
    check("every answer shows something", [last for last, cell in by.items() if not cell.outputs], [])
    check("progress", "searching" in outputs(by["print(plan.to_text(width=110))"], "stderr"))
    check("an error is caught", re.search("USAGE 2 .*colour", outputs(by["    print(error.kind, error.exit_status, error.message)"], "stdout")) is not None)
    check("metrics", "tokens" in outputs(by["rp.ask(\"metrics\", str(os.getpid()))"], "text/html"))
    page, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    check("as a page", page.count("data:image/svg+xml;base64,") >= len(pictures))
    print(f"python_notebook: {len(code)} cells, pictures of {', '.join(pictures)}; {len(page)} bytes of HTML")


def kernel():
    manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3", cwd="examples")
    try:
        def run(source, interrupt_after=None):
            message = client.execute(source)
            if interrupt_after:
                time.sleep(interrupt_after)
                manager.interrupt_kernel()
            while (reply := client.get_shell_msg(timeout=60))["parent_header"].get("msg_id") != message:
                pass
            return reply["content"]
        check("import", run("import reprise as rp; ddp = rp.open('ddp')")["status"], "ok")
        error = run("rp.open('ddp').top(by='colour')")
        check("an error", (error["status"], error["ename"]), ("error", "UsageError"))
        check("its message", "colour" in error["evalue"])
        begin = time.monotonic()
        check("a stopped search answers", run("plan = ddp.optimize(budget=600); assert 'interrupted' in plan.to_text()", 4)["status"], "ok")
        check("soon", time.monotonic() - begin < 60)
        error = run("while True: ddp.report()", 3)
        check("a stopped question raises", (error["status"], error["ename"]), ("error", "KeyboardInterrupt"))
        check("and the run can be asked again", run("assert ddp.report().step_ns > 0")["status"], "ok")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


notebook()
kernel()
print(f"python_notebook: nbconvert {nbconvert.__version__}: {failed} failed")
sys.exit(1 if failed else 0)
