# SPDX-License-Identifier: Apache-2.0
"""The official client works with `reprise mcp` as docs/agents.md says, and finds five faults that were planted in recordings: an optimizer
that is a loop over the parameters, products in fp32, gradients that go through collectives of the host, a rank that delays the others, and a
loader that is waited for. It also asks wrongly, and must be told what is right. The dialogue is written to
build/mcp_dialogue.log."""
import asyncio, json, os, pathlib, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
REPRISE = os.environ.get("REPRISE", str(BUILD / "reprise"))
DATA = pathlib.Path("tests/data").resolve()
# the run, the finding, the change that is tried
PLANTED = [("whatif/gpt_fp32_loop.json.gz", "launch-bound", "fused-optimizer"),
           ("whatif/gpt_fp32_fused.json.gz", "slow-operator", "dtype=bf16"),
           ("ddp_gpu/gpu_gpt_w4_bucket1", "host-collectives", "bucket=10MB"),
           ("ddp_cpu/cpu_gpt_w4_bucket25", "straggler", "straggler=median"),
           ("loader.json", "data-loader", "dataloader=free")]
# what is asked wrongly, and a word of the answer that is right
WRONG = [("top", {"lmit": 3}, "'limit'"), ("top", {"by": "colour"}, "kernel|op|shape"), ("top", {"limit": "many"}, "a whole number"),
         ("report", {"paths": ["/etc"]}, "below"), ("simulate", {"what-if": ["grphs"]}, "help"), ("diff", {}, "two files or folders"),
         ("query", {"sql": "select * from kernel"}, "'kernels'"), ("report", {"json": True, "words": 5}, "'words'")]
failed, log = 0, []


def plant_loader(path):
    """A loop on the CPU that waits 60 of 80 ms for its loader."""
    events = []
    span = lambda cat, name, ts, dur: events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur})
    for step in range(4):
        at = 80000 * step
        span("user_annotation", f"ProfilerStep#{step}", at, 79990)
        span("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 60000)
        for i in range(19):
            span("cpu_op", "aten::mm", at + 60000 + 1000 * i, 990)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"traceEvents": events}))



def check(what, got, want=True):
    global failed
    if got != want:
        failed += 1
        print(f"mcp_client: {what}: {got!r}, not {want!r}")


def plain(model):
    """As the protocol names the members; the client's own names differ between its versions."""
    return model.model_dump(by_alias=True, mode="json")


async def ask(session, tool, **arguments):
    answer = plain(await session.call_tool(tool, arguments))
    text = answer["content"][0]["text"]
    log.append(f">>> {tool} {json.dumps(arguments)}\n{text}\n")
    check(f"{tool}: answered", answer["isError"], False)
    return text


def record(text):
    check("trust comes first", text.startswith("trust: "))
    return json.loads(text.split("\n\n", 1)[1])


async def investigate(session, path, finding, change):
    """info, report, the largest finding, the change that the report advises, simulate."""
    check(f"{path}: info", "rank" in await ask(session, "info", paths=[path]))
    report = record(await ask(session, "report", paths=[path], json=True, words=100000))
    worst = report["findings"][0]
    tries = [one["what_if"] for one in worst["tries"] if one["what_if"]]
    check(f"{path}: finding", worst["id"], finding)
    check(f"{path}: advice", change in tries)
    predicted = await ask(session, "simulate", **{"paths": [path], "what-if": [change], "words": 100})
    check(f"{path}: prediction", change.split("=")[0] in predicted)


async def main():
    loader = BUILD / "mcp_planted" / PLANTED[-1][0]
    plant_loader(loader)
    server = StdioServerParameters(command=REPRISE, args=["mcp", str(DATA), str(loader.parent)])
    async with stdio_client(server) as (reads, writes), ClientSession(reads, writes) as session:
        check("server", plain(await session.initialize())["serverInfo"]["name"], "reprise")
        tools = {tool["name"]: tool for tool in plain(await session.list_tools())["tools"]}
        check("tools", {"info", "report", "simulate", "diff"} <= set(tools) and "convert" not in tools)
        check("schema", tools["top"]["inputSchema"]["properties"]["depth"]["type"], "integer")
        resources = {str(resource.uri): resource.uri for resource in (await session.list_resources()).resources}
        read = lambda uri: session.read_resource(resources.get(uri) or type(resources["reprise://skill"])(uri))
        check("skill", (await read("reprise://skill")).contents[0].text, pathlib.Path("docs/agents.md").read_text())
        check("pages", {"reprise://page/report", "reprise://picture/roofline"} <= set(resources))
        page, picture = [(await read(f"reprise://{kind}/report/{PLANTED[0][0]}")).contents[0].text for kind in ("page", "picture")]
        check("a page", "<html" in page[:300] and "</html>" in page[-100:])
        check("a picture", picture.lstrip().startswith("<svg") and "</svg>" in picture[-20:])
        log.append(f">>> resources: {', '.join(resources)}\npage of {len(page)} bytes, picture of {len(picture)} bytes\n")
        for path, finding, change in PLANTED:
            await investigate(session, str(loader) if path == loader.name else path, finding, change)
        for tool, arguments, right in WRONG:
            answer = plain(await session.call_tool(tool, {"paths": [PLANTED[0][0]], **arguments}))
            text = answer["content"][0]["text"]
            log.append(f">>> {tool} {json.dumps(arguments)}\n{text}\n")
            check(f"{tool} {arguments}: what is right", (answer["isError"], right in text), (True, True))
        schema = await ask(session, "query", sql=".schema", words=20, paths=[PLANTED[0][0]])
        check("the schema is whole", "cut after" not in schema and "findings" in schema)
        alone = await ask(session, "info", paths=["ddp_cpu/cpu_gpt_w4_bucket25/" + sorted(p.name for p in (DATA / PLANTED[3][0]).glob("*rank*"))[0]])
        check("one rank of four", alone.startswith("trust: incomplete: 1 of 4 ranks"))
        listed = (await session.list_tools()).model_dump_json(by_alias=True, exclude_none=True)
        check("the list of tools is short", len(listed) < 12000)  # about 4 bytes a token: under 3,000
        prompts = {prompt["name"] for prompt in plain(await session.list_prompts())["prompts"]}
        check("prompts", prompts, {"why-is-my-job-slow", "what-changed"})
        asked = plain(await session.get_prompt("why-is-my-job-slow", {"path": PLANTED[0][0]}))["messages"][0]["content"]["text"]
        check("a prompt", PLANTED[0][0] in asked and "reprise://skill" in asked)
        verified = await ask(session, "diff", paths=[PLANTED[0][0], PLANTED[1][0]], words=40)
        check("verified", verified.splitlines()[2].startswith("new run    faster"))
        short = await ask(session, "top", paths=[PLANTED[0][0]], words=20)
        check("cut", "[cut after 20 words" in short)
    (BUILD / "mcp_dialogue.log").write_text("\n".join(log))
    print(f"mcp_client: {len(log)} questions, {failed} failed")
    return 1 if failed else 0


sys.exit(asyncio.run(main()))
