#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `convert --to chakra` writes, read by Google's protobuf with the published field numbers, and by Chakra's own tools.

    chakra_files.py [PROGRAM]     build/reprise, the recordings in examples/

Every field must be one of the schema's; ids are unique and dependencies come before the nodes that wait for them; the attributes have the
types that Chakra's feeder reads; the kernels have the times of the recording. With LIVE_CHAKRA, the folder of a checkout of
mlcommons/chakra (its packages on PyPI are another project's), its jsonizer and visualizer must read every node, too.
"""
import collections, csv, os, pathlib, shutil, subprocess, sys, tempfile
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields

ROOT = pathlib.Path(__file__).resolve().parents[2]
ATTRIBUTES = {3: "double", 5: "float", 7: "int32", 9: "int64", 11: "uint32", 13: "uint64", 15: "sint32", 17: "sint64", 27: "bool", 29: "string", 31: "bytes"}
SCHEMA = {
    "AttributeProto": [(1, "name", "string"), (2, "doc_string", "string")] + [(n, f"{kind}_val", kind) for n, kind in ATTRIBUTES.items()],
    "GlobalMetadata": [(1, "version", "string"), (2, "attr", "*AttributeProto")],
    "IOInfo": [(1, "values", "string"), (2, "shapes", "string"), (3, "types", "string")],
    "Node": [(1, "id", "uint64"), (2, "name", "string"), (3, "type", "uint32"), (4, "ctrl_deps", "*uint64"), (5, "data_deps", "*uint64"),
             (6, "start_time_micros", "uint64"), (7, "duration_micros", "uint64"), (8, "inputs", "IOInfo"), (9, "outputs", "IOInfo"),
             (10, "attr", "*AttributeProto")],
}
MEM_LOAD, MEM_STORE, COMP, COMM_SEND, COMM_RECV, COMM_COLL = range(2, 8)
# what the feeder takes each attribute from; others are passed on as they are
FEEDER = {"is_cpu_op": "bool_val", "num_ops": "int64_val", "tensor_size": "uint64_val", "comm_type": "int64_val", "comm_size": "int64_val", "pg_name": "string_val"}


def schema():
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="c", syntax="proto3")
    for name, fields in SCHEMA.items():
        m = file.message_type.add(name=name)
        if name == "AttributeProto":
            m.oneof_decl.add(name="value")
        for number, key, kind in fields:
            f = m.field.add(name=key, number=number, label=3 if kind[0] == "*" else 1)
            if key.endswith("_val"):
                f.oneof_index = 0
            kind = kind.lstrip("*")
            if kind in SCHEMA:
                f.type, f.type_name = f.TYPE_MESSAGE, ".c." + kind
            else:
                f.type = getattr(f, "TYPE_" + kind.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName("c." + name)) for name in ("GlobalMetadata", "Node")]


def frames(data):
    at = 0
    while at < len(data):
        n = shift = 0
        while True:
            byte, at = data[at], at + 1
            n, shift = n | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        assert at + n <= len(data), "the last message is cut"
        yield data[at:at + n]
        at += n


def check(path, metadata_class, node_class):
    """The nodes; fails where a field, a dependency or an attribute is not as it must be."""
    first, *rest = frames(path.read_bytes())
    assert metadata_class.FromString(first).version, "no version"
    seen, nodes = set(), []
    for data in rest:
        node = node_class.FromString(data)
        for message in (node, *node.attr):
            assert not list(unknown_fields.UnknownFieldSet(message)), (path, node.id)
        assert node.id not in seen and MEM_LOAD <= node.type <= COMM_COLL and node.name, (path, node.id)
        assert seen.issuperset(node.data_deps) and seen.issuperset(node.ctrl_deps), (path, node.id)
        seen.add(node.id)
        attrs = {a.name: (a.WhichOneof("value"), getattr(a, a.WhichOneof("value"))) for a in node.attr}
        assert len(attrs) == len(node.attr) and "is_cpu_op" in attrs, (path, node.id)
        for name, (kind, _) in attrs.items():
            assert kind == FEEDER.get(name, kind), (path, node.id, name, kind)
        if node.type == COMM_COLL:
            assert 0 <= attrs["comm_type"][1] <= 9, (path, node.id)
        nodes.append((node, {name: value for name, (_, value) in attrs.items()}))
    return nodes


def kernels(program, trace):
    out = subprocess.run([program, "convert", trace, "--to", "csv", "-q", "-o", "-"], capture_output=True, check=True).stdout
    return [(r["name"], int(r["dur_ns"])) for r in csv.DictReader(out.decode().splitlines()) if r["kind"] == "kernel"]


def chakra_tools(tmp):
    """The checkout as a package, with its schema compiled; None without one."""
    checkout = os.environ.get("LIVE_CHAKRA")
    if not checkout:
        return None
    package = tmp / "package/chakra"
    for part in ("schema", "src"):
        shutil.copytree(pathlib.Path(checkout) / part, package / part)
    proto = package / "schema/protobuf"
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{proto}", f"--python_out={proto}", proto / "et_def.proto"], check=True)
    return package.parent


def check_tools(package, path, count):
    out = path.with_suffix(".out")
    subprocess.run([sys.executable, "-m", "chakra.src.jsonizer.jsonizer", "--input_filename", path, "--output_filename", out], cwd=package, check=True)
    assert out.read_text().count('"id":') == count, path
    graph = path.with_suffix(".graphml")
    subprocess.run([sys.executable, "-m", "chakra.src.visualizer.visualizer", "--input_filename", path, "--output_filename", graph], cwd=package, check=True)
    assert graph.read_text().count("<node ") == count, path


def main():
    program = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/reprise").resolve())
    with tempfile.TemporaryDirectory() as folder:
        tmp = pathlib.Path(folder)
        package, classes = chakra_tools(tmp), schema()
        traces = {"rank.0": ROOT / "examples/ddp/rank0.json.gz", "rank.1": ROOT / "examples/ddp/rank1.json.gz"}
        subprocess.run([program, "convert", *traces.values(), "--to", "chakra", "-q", "-o", tmp / "job"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([program, "convert", ROOT / "examples/gpt_bf16.json.gz", "-q", "-o", tmp / "job/gpt.et"], check=True, stdout=subprocess.DEVNULL)
        for name, trace in (traces | {"gpt": ROOT / "examples/gpt_bf16.json.gz"}).items():
            path = tmp / f"job/{name}.et"
            nodes = check(path, *classes)
            device = collections.Counter((n.name, a["duration_ns"]) for n, a in nodes if not a["is_cpu_op"])
            missing = collections.Counter(kernels(program, trace)) - device
            assert not missing, (path, list(missing.items())[:3])
            if package:
                check_tools(package, path, len(nodes))
            print(f"{name}: {len(nodes)} nodes, {len(kernels(program, trace))} kernels" + (", read by Chakra's jsonizer and visualizer" if package else ""))
    print("chakra_files: passed" + ("" if package else "; Chakra's own tools were not tried: LIVE_CHAKRA is not set"))


if __name__ == "__main__":
    main()
