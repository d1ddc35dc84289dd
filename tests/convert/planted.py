# SPDX-License-Identifier: Apache-2.0
"""Files of recorders whose formats reprise reads and does not write, with given texts in every place that such a file has for texts: names,
arguments, threads, frames, commands, hosts. Each function takes the path and the texts."""
import json, pickle, struct
from pathlib import Path

# ---- protobuf


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def xplane(path, texts):
    """Names of events, of lines and of planes, texts of statistics and those that statistics refer to, hosts, errors."""
    def entry(i, *fields):
        return message((1, i), (2, message((1, i), *fields)))

    note, refs = len(texts) + 1, [(len(texts) + 2 + i, text) for i, text in enumerate(texts)]
    events = [entry(i + 1, (2, text), (4, text), (5, message((1, note), (5, text)))) for i, text in enumerate(texts)]
    stats = [entry(note, (2, "note"))] + [entry(i, (2, text)) for i, text in refs]
    line = message((1, 7), (2, texts[0]), (3, 1000), *((4, message((1, i + 1), (2, 1000 * i), (3, 500), (4, message((1, note), (5, text))),
                                                                  (4, message((1, note), (7, refs[i][0])))))
                                                       for i, text in enumerate(texts)))
    plane = message((1, 1), (2, "/host:CPU"), (3, line), *((4, e) for e in events), *((5, s) for s in stats),
                    *((6, message((1, note), (5, text))) for text in texts))
    environment = message((1, 2), (2, "Task Environment"), (5, entry(1, (2, "hostname"))), (6, message((1, 1), (5, "gpunode17"))))
    path.write_bytes(message((1, plane), (1, environment), (2, texts[0]), (3, texts[1]), (4, "gpunode17")))


def runmetadata(path, texts):
    nodes = [message((1, text), (2, 1000 + 10 * i), (3, 1), (4, 5), (5, 6), (8, text), (10, 7)) for i, text in enumerate(texts)]
    device = message((1, "/job:worker/replica:0/task:0/device:CPU:0"), *((2, node) for node in nodes), (3, message((1, 7), (2, texts[0]))))
    path.write_bytes(message((1, message((1, device)))))


# ---- recordings of `reprise record`


def ctf(path, texts):
    """A folder: path is its metadata. Ranges, marks, arguments, samples of stacks, a process with its host and command, facts."""
    words, out = {}, bytearray()

    def event(kind, body, at):
        return struct.pack("<Q", at << 8 | kind) + body

    def number(text):
        if text not in words:
            words[text] = len(words) + 1
            out.extend(event(0, struct.pack("<I", words[text]) + text.encode() + b"\0", 1000))
        return words[text]

    host, program, command = number("gpunode17"), number("/home/bobjones/venv/bin/python"), number("python train.py --password hunter2")
    out += event(11, struct.pack("<IIiiiIII", 7, 1, 0, 1, 0, host, program, command), 1000)
    for i, text in enumerate(texts):
        at, name, key, frame = 2000 + 100 * i, number(text), number("note"), number(f"python\t{text}\t{text}\t3".replace("\n", " "))
        category = number("cpu_op")
        out += event(1, struct.pack("<I", name), at) + event(3, struct.pack("<I", name), at + 10) + event(2, b"", at + 50)
        out += event(9, struct.pack("<BBQQIIiQQB", 1, 0, at, at + 40, name, category, -1, 7, 0, 1) + struct.pack("<IBq", key, 1, name), at + 60)
        out += event(16, struct.pack("<II", key, name), at + 70) + event(13, struct.pack("<I", name), at + 71) + event(14, struct.pack("<I", name), at + 72)
        out += event(19, struct.pack("<IQQIBBBI", 7, at + 5, 1000, 0, 0, 0, 1, frame), at + 80)
    out += event(10, struct.pack("<II", 7, number(texts[0])), 9999)
    head = struct.pack("<IIQQQQQQQQIIIIII", 0xC1FC1FC1, 0, 5, 1000, 10000, 8 * (96 + len(out)), 8 * (96 + len(out)), 0, 0, 0, 7, 7, 1, 0, 0, 0)
    path.write_text('/* CTF 1.8 */\nenv { tracer_name = "reprise"; reprise_layout = 1; rank = 0; world_size = 1; hostname = "gpunode17"; };\n'
                    'clock { name = "counter"; freq = 1000000000; offset_s = 100; offset = 0; };\n')
    (path.parent / "s_7_7_0000000000000005_000000").write_bytes(head + bytes(out))


# ---- PyTorch


def snapshot(texts):
    def frames(text):
        return [{"name": text, "filename": text, "line": 3}, {"name": "step", "filename": text + ".py", "line": 4}]
    return {
        "segments": [{"device": 0, "address": 4096, "total_size": 4096, "allocated_size": 512, "stream": 0, "segment_type": "small",
                      "frames": frames(text), "blocks": [{"size": 512, "requested_size": 512, "address": 4096, "state": "active_allocated",
                                                          "frames": frames(text)}]} for text in texts],
        "device_traces": [[{"action": action, "addr": 4096 + 512 * i, "size": 512, "stream": 0, "time_us": 1000 + i, "frames": frames(text),
                            "user_metadata": text, "compile_context": text} for i, text in enumerate(texts) for action in ("alloc", text)]],
        "external_annotations": [{"stage": stage, "name": text, "device": 0, "time_us": 1000 + i} for i, text in enumerate(texts) for stage in ("START", "END")],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": texts[0]},
    }


def torch_memory(path, texts):
    path.write_bytes(pickle.dumps(snapshot(texts), protocol=4))


def torch_memory_json(path, texts):
    path.write_text(json.dumps(snapshot(texts)))


def flight_recorder(texts):
    return {"version": "2.10", "hostname": "gpunode17", "pg_config": {"0": {"name": "0", "desc": texts[0], "ranks": "[0, 1]"}}, "pg_status": {}, "entries": [
        {"record_id": i, "pg_id": 0, "process_group": ["0", text], "collective_seq_id": i + 1, "p2p_seq_id": 0, "op_id": i + 1,
         "profiling_name": "nccl:all_reduce", "time_created_ns": 1700000000000000000 + i, "input_sizes": [[4]], "output_sizes": [[4]], "input_dtypes": ["Float"],
         "output_dtypes": ["Float"], "state": "completed", "thread_name": text, "frames": [{"name": text, "filename": text, "line": 3}]}
        for i, text in enumerate(texts)]}


def flight_recorder_json(path, texts):
    path.write_text(json.dumps(flight_recorder(texts)))


def flight_recorder_pickle(path, texts):
    path.write_bytes(pickle.dumps(flight_recorder(texts), protocol=2))


# ---- NCCL


def nccl_profiler(path, texts):
    lines = [{"type": "ProfilerLifecycle", "func": text, "gpuUuid": text, "commId": 5, "rank": 0, "details": {"nranks": 2, "commName": text, "hostname": "gpunode17"}}
             for text in texts]
    moment = lambda ts: {"ts": ts, "pid": 7, "tid": 7}
    lines += [{"recordType": "event", "type": kind, "gpuUuid": text, "commId": 5, "rank": 0, "start": moment(1000 + i), "stop": moment(1001 + i), "name": text,
               "details": {"func": text, "seq": i, "count": 4, "dtype": text, "algo": text, "user": "alicesmith"}}
              for i, text in enumerate(texts) for kind in ("ncclProfileColl", text)]
    lines += [{"recordType": "cuptiActivity", "type": "KERNEL", "gpuUuid": text, "extCorrId": i, "name": text, "start": moment(1000 + i), "stop": moment(1001 + i)}
              for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def nccl_inspector(path, texts):
    path.write_text("".join(json.dumps({
        "header": {"id": text, "rank": 0, "n_ranks": 2, "nnodes": 1},
        "metadata": {"inspector_output_format_version": "v4.0", "git_rev": text, "dump_timestamp_us": 1752867229237181 + i, "hostname": "gpunode17", "pid": 7},
        "coll_perf": {"coll": text, "coll_sn": i, "coll_msg_size_bytes": 8192, "coll_exec_time_us": 4}}) + "\n" for i, text in enumerate(texts)))


# ---- perf and other profilers

SAMPLE_TYPE = 0x1 | 0x2 | 0x4 | 0x20 | 0x100  # ip, tid, time, callchain, period
HOSTNAME, CMDLINE = 3, 11


def perf_records(texts):
    def record(kind, body, misc=2):
        return struct.pack("<IHH", kind, misc, 8 + len(body)) + body

    def word(text):
        text = text.encode().replace(b"\n", b" ")
        return text + b"\0" * (8 - len(text) % 8)

    out = b""
    for i, text in enumerate(texts):
        at = 0x400000 + 0x10000 * i
        out += record(3, struct.pack("<II", 7, 7 + i) + word(text))
        out += record(10, struct.pack("<IIQQQ", 7, 7, at, 0x1000, 0) + bytes(32) + word(text))
        out += record(9, struct.pack("<QIIQQQQQ", at + 16, 7, 7 + i, 1000000 + i, 1000000, 2, (1 << 64) - 512, at + 16))
    return record, word, out


def perf_data(path, texts):
    record, word, records = perf_records(texts)
    texts_at = lambda text: struct.pack("<I", len(word(text))) + word(text)
    host, command = texts_at("gpunode17"), struct.pack("<I", 4) + b"".join(map(texts_at, ("python", "train.py", "--password", "hunter2")))
    data = 104 + 64
    table = data + len(records)
    sections = struct.pack("<QQQQ", table + 32, len(host), table + 32 + len(host), len(command))
    path.write_bytes(b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 64, 104, 64, data, len(records), 0, 0) + struct.pack("<QQQQ", 1 << HOSTNAME | 1 << CMDLINE, 0, 0, 0)
                     + struct.pack("<IIQQQQQ", 1, 48, 0, 1000000, SAMPLE_TYPE, 0, 1 << 10) + struct.pack("<QQ", 0, 0) + records + sections + host + command)


def perf_pipe(path, texts):
    record, word, records = perf_records(texts)
    command = struct.pack("<I", 1) + struct.pack("<I", len(word("train.py --password hunter2"))) + word("train.py --password hunter2")
    path.write_bytes(b"PERFILE2" + struct.pack("<Q", 16) + record(64, struct.pack("<IIQQQQQ", 1, 48, 0, 1000000, SAMPLE_TYPE, 0, 1 << 10))
                     + record(80, struct.pack("<Q", CMDLINE) + command) + records)


def perf_script(path, texts):
    path.write_text("# hostname : gpunode17\n# cmdline : /usr/bin/perf record python train.py --password hunter2\n#\n" + "".join(
        f"python3    7/8  [001] 100.{i:06}:    1000000 cpu-clock:ppp: \n\t    6f1 {text} ({text})\n\t    789 main (/home/bobjones/run)\n\n"
        for i, text in enumerate(t.replace("\n", " ") for t in texts)))


def gperftools(path, texts):
    words = [0, 3, 0, 10000, 0] + [n for i in range(len(texts)) for n in (1, 1, 0x400010 + 0x10000 * i)] + [0, 1, 0]
    path.write_bytes(struct.pack(f"<{len(words)}Q", *words) + "".join(
        f"{0x400000 + 0x10000 * i:08x}-{0x401000 + 0x10000 * i:08x} r-xp 00000000 08:01 12   {text}\n" for i, text in enumerate(t.replace("\n", " ") for t in texts)).encode())


def bpftrace(path, texts):
    path.write_text("Attaching 1 probe...\n\n" + "".join(f"@[\n    {text}\n    main+40\n, python3]: 12\n" for text in (t.replace("\n", " ") for t in texts)))


def proton(path, texts):
    leaves = [{"children": [], "frame": {"name": text, "type": "function"}, "metrics": {"count": 1, "device_id": "0", "device_type": "CUDA", "time (ns)": 9}}
              for text in texts]
    path.write_text(json.dumps([{"children": leaves, "frame": {"name": "ROOT"}, "metrics": {}}, {"CUDA": {"0": {"arch": "90", "name": texts[0]}}}]))


def byteps(path, texts):
    """Names of tensors are in a file beside the log."""
    texts = [text for text in texts if ":" not in text]
    (path.parent / "key_dict.txt").write_text("".join(f"{text}: {i}\n" for i, text in enumerate(texts)))
    path.write_text("role=worker, id=9, host=gpunode17\n" + "".join(
        f"{1620000000000000 + 10 * i} true true true {i} 9 8\n{1620000000000005 + 10 * i} false true true {i} 9 8\n" for i in range(len(texts))))


TOKEN = "something like a token or password"
# the name of the file, how it is made, what `info` says that it holds; without times: the samples are written as they can be
RECORDERS = {
    "t.xplane.pb": (xplane, TOKEN),
    "run_metadata.pb": (runmetadata, TOKEN),
    "metadata": (ctf, f"a command line and {TOKEN}"),
    "snapshot.pickle": (torch_memory, TOKEN),
    "snapshot.json": (torch_memory_json, TOKEN),
    "nccl_trace_rank_0.json": (flight_recorder_json, TOKEN),
    "nccl_trace_rank_0": (flight_recorder_pickle, TOKEN),
    "plugin.jsonl": (nccl_profiler, TOKEN),
    "inspector.log": (nccl_inspector, TOKEN),
    "perf.data": (perf_data, f"a command line and {TOKEN}"),
    "pipe.data": (perf_pipe, f"a command line and {TOKEN}"),
    "perf.txt": (perf_script, f"a command line and {TOKEN}"),
    "worker_0.log": (byteps, TOKEN),
    "cpu.prof": (gperftools, TOKEN),
    "stacks.bt.out": (bpftrace, TOKEN),
    "tree.hatchet": (proton, TOKEN),
}
WITHOUT_TIMES = (gperftools, bpftrace, proton)
