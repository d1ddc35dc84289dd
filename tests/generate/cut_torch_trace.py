#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cut_torch_trace.py LOG OUT: a structured log of torch.compile without what makes it large.

Leaves out the events of the compiler's own timeline, descriptions of tensors, configurations and the components of cache
keys, which are nine tenths of a log; what is left is as PyTorch wrote it, with new checksums."""
import gzip, hashlib, json, lzma, sys

DROP = {"chromium_event", "describe_storage", "describe_tensor", "describe_source", "dynamo_cpp_guards_str", "aot_joint_graph"}
DROP_ARTIFACTS = {"fx_graph_runnable", "aot_forward_graph_fw_metadata", "torch._functorch.config", "aot_autograd_runtime_wrappers",
                  "before_pre_grad_graph", "after_pre_grad_graph", "before_joint_graph", "after_joint_graph", "before_post_grad_graph",
                  "inductor_provenance_tracking_node_mappings"}
DROP_METRICS = {"exception_stack_trace", "dynamo_config", "inductor_config", "functorch_config", "compiler_config", "graph_node_shapes"}


def main(source, target):
    opened = lzma.open if source.endswith(".xz") else open
    out, record = [], None

    def flush():
        nonlocal record
        if record is None:
            return
        prefix, meta, lines = record
        record = None
        kind = next(k for k in meta if k in KINDS or isinstance(meta[k], (dict, list)))
        name = meta[kind].get("name", "") if kind == "artifact" else ""
        if kind in DROP or name in DROP_ARTIFACTS or name.endswith("_BYTECODE"):
            return
        text = "\n".join(lines)
        if "cache_" in name and text.startswith("{"):
            text = json.dumps({k: v for k, v in json.loads(text).items() if k != "components"})
        if kind.endswith("compilation_metrics") or kind.endswith("metrics_runtime"):
            meta[kind] = {k: v for k, v in meta[kind].items() if k not in DROP_METRICS}
        if "has_payload" in meta:
            meta["has_payload"] = hashlib.md5(text.encode()).hexdigest()
        out.append(prefix + json.dumps(meta))
        if "has_payload" in meta:
            out.extend("\t" + line for line in text.split("\n"))

    KINDS = {"str"}
    with opened(source, "rt", encoding="utf-8", newline="\n") as f:
        for line in f:
            line = line.rstrip("\n")
            if line.startswith("\t"):
                record[2].append(line[1:])
            else:
                flush()
                i = line.index("] {") + 2
                record = (line[:i], json.loads(line[i:]), [])
    flush()
    with gzip.GzipFile(target, "wb", 9, mtime=0) as f:
        f.write(("\n".join(out) + "\n").encode())


main(*sys.argv[1:])
