#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `convert --to perfetto` writes, read by Google's protobuf and by the rules of Perfetto's trace processor.

    perfetto_protobuf.py [PROGRAM] [TRACE.json.gz ...]     build/reprise, the recordings in examples/

The messages below are the published ones of google/perfetto (protos/perfetto/trace), as far as they are needed. Every
field of the file must be known; begins and ends must nest on their track; each slice must have the name, times, category
and number arguments of the event in the JSON file it was made from, and each arrow both its ends.
"""
import collections, decimal, gzip, json, subprocess, sys, tempfile
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SCHEMA = {
    "Trace": [(1, "packet", "*TracePacket")],
    "TracePacket": [(5, "chrome_events", "ChromeEventBundle"), (6, "clock_snapshot", "ClockSnapshot"), (8, "timestamp", "uint64"),
                    (10, "trusted_packet_sequence_id", "uint32"), (11, "track_event", "TrackEvent"), (12, "interned_data", "InternedData"),
                    (13, "sequence_flags", "uint32"), (59, "trace_packet_defaults", "TracePacketDefaults"), (60, "track_descriptor", "TrackDescriptor")],
    "ChromeEventBundle": [(2, "metadata", "*ChromeMetadata")],
    "ChromeMetadata": [(1, "name", "string"), (5, "json_value", "string")],
    "ClockSnapshot": [(1, "clocks", "*Clock"), (2, "primary_trace_clock", "uint32")],
    "Clock": [(1, "clock_id", "uint32"), (2, "timestamp", "uint64")],
    "TracePacketDefaults": [(11, "track_event_defaults", "TrackEventDefaults"), (58, "timestamp_clock_id", "uint32")],
    "TrackEventDefaults": [(11, "track_uuid", "uint64")],
    "TrackDescriptor": [(1, "uuid", "uint64"), (2, "name", "string"), (3, "process", "ProcessDescriptor"), (4, "thread", "ThreadDescriptor"),
                        (5, "parent_uuid", "uint64"), (8, "counter", "CounterDescriptor"), (11, "child_ordering", "uint32"),
                        (12, "sibling_order_rank", "int32"), (14, "description", "string"), (15, "sibling_merge_behavior", "uint32"),
                        (17, "sibling_merge_key_int", "uint64")],
    "ProcessDescriptor": [(1, "pid", "int32"), (6, "process_name", "string"), (8, "process_labels", "*string")],
    "ThreadDescriptor": [(1, "pid", "int32"), (2, "tid", "int32"), (5, "thread_name", "string")],
    "CounterDescriptor": [],
    "InternedData": [(1, "event_categories", "*Named"), (2, "event_names", "*Named"), (3, "debug_annotation_names", "*Named"),
                     (29, "debug_annotation_string_values", "*Named")],
    "Named": [(1, "iid", "uint64"), (2, "str", "bytes")],
    "TrackEvent": [(3, "category_iids", "*uint64"), (4, "debug_annotations", "*DebugAnnotation"), (9, "type", "uint32"), (10, "name_iid", "uint64"),
                   (11, "track_uuid", "uint64"), (30, "counter_value", "int64"), (44, "double_counter_value", "double"),
                   (47, "flow_ids", "*fixed64"), (48, "terminating_flow_ids", "*fixed64")],
    "DebugAnnotation": [(1, "name_iid", "uint64"), (2, "bool_value", "bool"), (4, "int_value", "int64"), (5, "double_value", "double"),
                        (9, "legacy_json_value", "string"), (10, "name", "string"), (17, "string_value_iid", "uint64")],
}


def schema():
    file = descriptor_pb2.FileDescriptorProto(name="perfetto.proto", package="p", syntax="proto2")
    for name, fields in SCHEMA.items():
        m = file.message_type.add(name=name)
        for number, key, kind in fields:
            f = m.field.add(name=key, number=number, label=3 if kind[0] == "*" else 1)
            kind = kind.lstrip("*")
            if kind in SCHEMA:
                f.type, f.type_name = f.TYPE_MESSAGE, ".p." + kind
            else:
                f.type = getattr(f, "TYPE_" + kind.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Trace"))


def unknown(message, path=""):
    """The fields that the messages above do not have."""
    from google.protobuf import unknown_fields
    found = [f"{path}{f.field_number}" for f in unknown_fields.UnknownFieldSet(message)]
    for f, value in message.ListFields():
        if f.type == f.TYPE_MESSAGE:
            for one in (value if isinstance(value, collections.abc.Sequence) or hasattr(value, "append") else [value]):
                found += unknown(one, path + f.name + ".")
    return found


def slices(trace):
    """(name, ts, dur, category, int arguments) of every slice, and how often each arrow has an end."""
    names, cats, keys, default, parents = {}, {}, {}, 0, {}
    events, found, arrows = [], [], collections.Counter()
    for n, p in enumerate(trace.packet):
        assert (p.sequence_flags == 1) == (n == 0) and p.trusted_packet_sequence_id
        for table, entries in ((cats, p.interned_data.event_categories), (names, p.interned_data.event_names), (keys, p.interned_data.debug_annotation_names)):
            for e in entries:
                assert e.iid not in table, "interned twice"
                table[e.iid] = e.str.decode()
        if p.HasField("trace_packet_defaults"):
            default = p.trace_packet_defaults.track_event_defaults.track_uuid
        if p.HasField("track_descriptor"):
            d = p.track_descriptor
            assert d.uuid not in parents, "described twice"
            parents[d.uuid] = d.parent_uuid
        if p.HasField("track_event"):
            e = p.track_event
            uuid = e.track_uuid or default
            assert uuid in parents, "a track that is not described"
            events.append((p.timestamp, n, uuid, e))
            arrows.update(list(e.flow_ids) + list(e.terminating_flow_ids))
    assert all(not p or p in parents for p in parents.values())
    open_ = collections.defaultdict(list)
    for ts, _, uuid, e in sorted(events, key=lambda x: x[:2]):  # as the trace processor sorts
        if e.type == 1:
            args = {keys.get(a.name_iid, a.name): a.int_value for a in e.debug_annotations if a.HasField("int_value")}
            open_[uuid].append((names[e.name_iid], ts, [cats[i] for i in e.category_iids], args))
        elif e.type == 2:
            name, begin, cat, args = open_[uuid].pop()
            found.append((name, begin, ts - begin, cat, args))
    assert not any(open_.values()), "slices without an end"
    return found, arrows


def expected(path):
    events = json.load(gzip.open(path), parse_float=decimal.Decimal)["traceEvents"]
    ns = lambda x: int(decimal.Decimal(x) * 1000)
    return [(e["name"], ns(e["ts"]), ns(e["dur"]), e.get("cat"), {k: v for k, v in e.get("args", {}).items() if type(v) is int})
            for e in events if e["ph"] == "X"]


def check(program, path, trace_class):
    with tempfile.NamedTemporaryFile(suffix=".pftrace") as f:
        subprocess.run([program, "convert", "-q", path, "--to", "perfetto", "-o", f.name], check=True, stdout=subprocess.DEVNULL)
        data = open(f.name, "rb").read()
    trace = trace_class.FromString(data)
    assert not unknown(trace), unknown(trace)[:5]
    got, arrows = slices(trace)
    key = lambda s: (s[0], s[1], s[2])
    want = sorted(expected(path), key=key)
    got = sorted(got, key=key)
    assert len(got) == len(want), (len(got), len(want))
    left = collections.Counter((n, t, d, str(c), json.dumps(a, sort_keys=True)) for n, t, d, c, a in want)
    left.subtract((n, t, d, c[0] if c else "None", json.dumps(a, sort_keys=True)) for n, t, d, c, a in got)
    wrong = [k for k, v in left.items() if v]
    assert not wrong, wrong[:3]
    json_bytes = len(gzip.open(path).read())
    print(f"{path}: {len(got)} slices, {len(arrows)} arrows, {sum(n > 1 for n in arrows.values())} with both ends; "
          f"{len(data)} bytes, JSON {json_bytes}")
    assert len(data) < json_bytes


if __name__ == "__main__":
    program = sys.argv[1] if len(sys.argv) > 1 else "build/reprise"
    for path in sys.argv[2:] or ["examples/gpt_bf16.json.gz", "examples/gpt_cudagraph.json.gz", "examples/gpt_foreach.json.gz"]:
        check(program, path, schema())
    print("perfetto_protobuf: passed")
