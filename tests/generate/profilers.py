#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make small recordings as other profilers write them (Python's standard library only).

    profilers.py OUT

    OUT/nsys.sqlite            Nsight Systems, schema 3.25: two processes (a rank each) with equal correlation ids, NVTX of
                               PyTorch and NCCL with payloads, a graph launch, waits, samples, metrics; rows in no order
    OUT/nsys_old.sqlite        Nsight Systems, schema 3.0: few columns, one process
    OUT/nsys_rare.sqlite       Nsight Systems: each kind of copy, memset, wait and payload, a captured graph, rows without names or times
    OUT/rocpd.db               rocpd, schema 3, two processes in one file, counters, a HIP graph
    OUT/trace.rpd              rocmProfileData
    OUT/7_results.json         rocprofv3 JSON
    OUT/rare_results.json      the same of two processes: numbers that are handles, absent names and times, values of other types
    OUT/9_*.csv                rocprofv3 CSV: quotes, absent columns, numbers that are none
    OUT/7_*_trace.csv, OUT/7_counter_collection.csv     rocprofv3 CSV

All times and sizes are chosen by hand, so that sums can be checked by hand. Pages have 512 bytes: the files are also the first
inputs of the fuzzers.
"""
import json, os, sqlite3, struct, sys

VM = 1 << 48
NSYS = {
    "META_DATA_EXPORT": ("name value", [("EXPORT_SCHEMA_VERSION", "3.25.0"), ("EXPORT_PRODUCT_VERSION", "2026.2.1")]),
    "META_DATA_CAPTURE": ("name value", [("PROCESS_0:ENVIRONMENT_VARIABLE", 'TOKEN="hunter2"')]),
    "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs systemClockNs", [(1700000000000000000, 5000)]),
    "TARGET_INFO_GPU": ("id cuDevice name totalMemory smCount", [(0, 1, "Test GPU", 1 << 34, 16), (1, 0, "Test GPU", 1 << 34, 16)]),
}


def make(path, tables, extra=()):
    if os.path.exists(path):
        os.remove(path)
    db = sqlite3.connect(path)
    db.execute("pragma page_size=512")
    for name, (columns, rows) in tables.items():
        columns = columns.split()
        db.execute(f'create table "{name}" ({", ".join(chr(34) + c + chr(34) for c in columns)})')
        db.executemany(f'insert into "{name}" values ({",".join("?" * len(columns))})', rows)
    for sql in extra:
        db.execute(sql)
    db.commit()
    db.execute("vacuum")
    db.close()


def texts(*values):
    """(table StringIds, number of a text)"""
    return [(i + 1, v) for i, v in enumerate(values)], {v: i + 1 for i, v in enumerate(values)}


def payload(schema, body):
    """NVTX's header: domain, schema, sizes; then the values."""
    return struct.pack("<IIIIQQ", 1, 0, schema, 0, len(body), 32 + len(body)) + body


def nsys(path):
    strings, s = texts("void gemm<float>(float*)", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)", "cudaLaunchKernel_v7000",
                       "cudaLaunchKernelExC_v11060", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020", "cuGraphLaunch",
                       "ncclAllReduce", "ncclCommInitRank", "poll", "fopen", "main", "train", "/opt/lib/libfoo.so", "worker",
                       "Buffer flush", "cudaMemsetAsync_v3020", "SECRET OUTPUT")
    kernels, copies, sets, calls, nvtx, sync, graph, records = [], [], [], [], [], [], [], []
    for rank, pid in ((0, 200), (1, 100)):       # the process with the higher id has device 0
        g, t = VM | pid << 24, VM | pid << 24 | pid
        at = 1000 * (rank + 1)
        dev, stream, context = rank, 7, rank + 1
        comm = struct.pack("<QiiiI", 0xABCD, 2, 1 - rank, rank, 0)    # NCCL numbers them the other way round
        nvtx += [(at - 900, at - 800, 59, t, None, s["ncclCommInitRank"], 1, payload(2, comm)),
                 (at, at + 400, 59, t, "aten::mm, seq = 12, op_id = 34, sizes = [[4, 8], [8, 16]]", None, 0, None),
                 (at - 50, at + 5000, 59, t, "iteration 3", None, 0, None),
                 (at - 20, at + 4000, 60, t, "epoch", None, 0, None),
                 (at + 10, None, 34, t, "a mark", None, 0, None),
                 (at + 500, at + 700, 59, t, None, s["ncclAllReduce"], 1, payload(3, struct.pack("<QQ", 0xABCD, 4096)))]
        calls += [(at + 100, at + 150, t, 11, s["cudaLaunchKernel_v7000"], 0),
                  (at + 550, at + 600, t, 12, s["cudaLaunchKernelExC_v11060"], 0),
                  (at + 800, at + 850, t, 13, s["cudaMemcpyAsync_v3020"], 0),
                  (at + 860, at + 870, t, 14, s["cudaMemsetAsync_v3020"], 0),
                  (at + 900, at + 950, t, 15, s["cuGraphLaunch"], 0),
                  (at + 1000, at + 4000, t, 16, s["cudaStreamSynchronize_v3020"], 0)]
        kernels += [(at + 700, at + 1700 + 100 * rank, g, dev, stream, 12, context, s["ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)"], 2, 1, 1, 512, 1, 1, 96, 0, 1024, None),
                    (at + 200, at + 700, g, dev, stream, 11, context, s["void gemm<float>(float*)"], 4, 2, 1, 128, 1, 1, 32, 16, 0, None)]
        copies += [(at + 1900, at + 2000, g, dev, stream, 13, context, 65536, 1, 0, 2)]
        sets += [(at + 2000, at + 2010, g, dev, stream, 14, context, 256, 2)]
        graph += [(at + 2100, at + 3900, g, dev, stream, 15, context, 5, 6)]
        sync += [(at + 1000, at + 4000, g, 0, stream, 16, context, 3, 0), (at + 1001, at + 1002, g, 0, stream, 17, context, 2, 77)]
        records += [(g, 77, 12, 7)]
    tid = VM | 200 << 24 | 201
    make(path, NSYS | {
        "StringIds": ("id value", strings[::-1]),
        "PROCESSES": ("globalPid pid name", [(VM | 200 << 24, 200, "python3"), (VM | 100 << 24, 100, "python3"), (VM | 50 << 24, 50, "bash")]),
        "ThreadNames": ("nameId globalTid", [(s["worker"], tid)]),
        "ENUM_CUDA_MEM_KIND": ("id name label", [(0, "X", "Pageable"), (2, "X", "Device")]),
        "CUPTI_ACTIVITY_KIND_KERNEL": ("start end globalPid deviceId streamId correlationId contextId demangledName gridX gridY gridZ blockX blockY blockZ "
                                       "registersPerThread staticSharedMemory dynamicSharedMemory graphNodeId", kernels),
        "CUPTI_ACTIVITY_KIND_MEMCPY": ("start end globalPid deviceId streamId correlationId contextId bytes copyKind srcKind dstKind", copies),
        "CUPTI_ACTIVITY_KIND_MEMSET": ("start end globalPid deviceId streamId correlationId contextId bytes memKind", sets),
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ("start end globalPid deviceId streamId correlationId contextId graphId graphExecId", graph),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": ("start end globalPid deviceId streamId correlationId contextId syncType eventSyncId", sync),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ("globalPid eventSyncId correlationId streamId", records),
        "CUPTI_ACTIVITY_KIND_RUNTIME": ("start end globalTid correlationId nameId returnValue", calls[::-1]),
        "NVTX_EVENTS": ("start end eventType globalTid text textId domainId binaryData", nvtx[::-1]),
        "NVTX_PAYLOAD_SCHEMA_ENTRIES": ("domainId schemaId idx type name offset", [
            (1, 2, 0, 18, "NCCL communicator ID", None), (1, 2, 1, 5, "No. of ranks", 8), (1, 2, 2, 5, "Rank", 12), (1, 2, 3, 5, "CUDA device", 16),
            (1, 3, 0, 18, "NCCL communicator ID", None), (1, 3, 1, 22, "Message size [bytes]", 8)] * 2),
        "OSRT_API": ("start end globalTid nameId", [(1200, 1900, tid, s["poll"]), (2000, 2100, tid, s["fopen"])]),
        "PROFILER_OVERHEAD": ("start end globalTid nameId", [(3000, 3100, tid, s["Buffer flush"])]),
        "COMPOSITE_EVENTS": ("id start cpu globalTid", [(1, 1300, 3, tid)]),
        "SAMPLING_CALLCHAINS": ("id symbol module unresolved stackDepth", [(1, s["main"], s["/opt/lib/libfoo.so"], None, 2), (1, s["train"], s["/opt/lib/libfoo.so"], None, 1),
                                                                         (1, s["main"], s["/opt/lib/libfoo.so"], 1, 0)]),
        "TARGET_INFO_GPU_METRICS": ("typeId metricId metricName", [(256, 1, "SMs Active [%]"), (257, 1, "SMs Active [%]")]),
        "GPU_METRICS": ("timestamp typeId metricId value", [(1500, 256, 1, 80), (2500, 257, 1, 90)]),
        "DIAGNOSTIC_EVENT": ("severity text", [(1, "Profiling has started."), (2, "CUDA events were dropped.\nSee the log.")]),
        "ProcessStreams": ("globalPid filenameId contentId", [(VM | 200 << 24, 1, s["SECRET OUTPUT"])]),
    })


def nsys_old(path):
    strings, s = texts("add_kernel", "cudaLaunchKernel_v7000")
    make(path, {
        "StringIds": ("id value", strings),
        "CUPTI_ACTIVITY_KIND_KERNEL": ("start end deviceId streamId correlationId shortName", [(100, 300, 0, 7, 1, s["add_kernel"]), (None, 9, 0, 7, 2, s["add_kernel"])]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": ("start end globalTid correlationId nameId", [(10, 60, VM | 9 << 24 | 9, 1, s["cudaLaunchKernel_v7000"])]),
    })


def nsys_rare(path):
    """One process. Values that most recordings do not have: unknown numbers, absent names, all types of payloads."""
    strings, s = texts("gemm", "cudaLaunchKernel_v7000", "cuLaunchKernel", "customCall", "outer", "inner", "/opt/lib/libbar.so", "plain.so", "worker",
                       "cudaErrorCall_v3020", "cu", '{"a": 1}', "a text by number", "cudnnConvolutionForward")
    pid, tid = VM | 300 << 24, VM | 300 << 24 | 301
    device = lambda at, n, *own, stream=7, context=1, number=0: (at, n, pid, number, stream, 0, context, *own)
    kernels = [device(100, 110, None, *[None] * 8, None, None, None), device(120, 130, s["gemm"], 4, 2, None, 128, None, 1, 40, 100, 28, 200, 9),
               device(140, 150, s["gemm"], 1, 1, 1, 32, 1, 1, None, 5, 5, 999, 0, number=-3), device(160, None, s["gemm"], *[None] * 11)]
    copies = [device(1000 + 10 * i, 1005 + 10 * i, 64 + i, kind, i % 9, (i + 1) % 9, 200 if i == 1 else 0)
              for i, kind in enumerate((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 99, -1, None))]
    copies += [device(1200, 1205, 9, 1, -1, None, None), device(1210, 1215, 9, 1, 14, 15, None)]
    sets = [device(1300, 1301, 5, 3, 200), device(1302, 1303, 6, 20, 0), device(1304, 1305, 7, None, None), device(1306, "soon", 7, None, None)]
    waits = [device(2000 + 10 * i, 2005 + 10 * i, kind, 1, version, number=0, context=context, stream=stream)
             for i, (kind, version, context, stream) in enumerate(((0, None, 1, 7), (1, 70, 1, 7), (2, 71, 1, 8), (3, None, 5, 7), (4, None, 1, 4294967295), (5, None, 1, 7), (-1, 72, 1, 7)))]
    kernels += [device(170, 175, s["gemm"], 1, 1, 1, 1, 1, 1, 8, 0, 0, 0, 0, context=5, number=2), device(180, 190, s["gemm"], 1, 1, 1, 1, 1, 1, 8, 0, 0, 301, 0)]
    types = [(1, kind, f"type {kind}", 32 * i % 96) for i, kind in enumerate(range(1, 25))]   # 8 bytes at 0, 32, 64 of the payload
    values = [(1 << 24, "an enumeration", 8)]
    body = struct.pack("<q24xQ24xq", -2, 0xFEDCBA9876543210, 77) + struct.pack("<i", 3)
    entries = [(1, 1 + i // 11, i, kind, name, offset) for i, (_, kind, name, offset) in enumerate(types)]
    entries += [(1, 9, 0, kind, name, offset) for kind, name, offset in values] + [(1, 9, 1, 5, None, 0), (1, 9, 2, 5, "outside", 9), (1, 9, 3, 5, "before", -1), (1, 9, 4, 5, "at the end", 8)]
    nvtx = [(10 * i, 10 * i + 5, 59, tid, f"schema {n}", None, payload(n, body), None, None, None) for i, n in ((1, 1), (2, 2), (3, 3))]
    nvtx += [(40, 45, 59, tid, "words", None, payload(9, struct.pack("<qi", 0, 3)), None, None, None), (50, 55, 59, tid, "short", None, b"x" * 32, None, None, None),
             (60, 65, 59, tid, None, s["a text by number"], None, '{"json": 2}', None, None), (70, 75, 59, tid, "number", None, None, None, -5, None),
             (80, 85, 59, tid, "real", None, None, None, None, 0.5), (90, 95, 75, tid, "another type", None, None, None, None, None),
             (96, None, 59, tid, "open", None, None, None, None, None), ("x", 98, 59, tid, "no time", None, None, None, None, None),
             (200, 210, 59, tid, "Thunk:#name=jit(f)/dot,hlo_op=dot.1#", None, None, None, None, None), (190, 220, 59, tid, "XlaModule:#hlo_module=jit_f,program_id=2651#", None, None, None, None, None),
             (230, 240, 59, tid, "ncclSend", None, None, None, None, None)]
    make(path, {
        "StringIds": ("id value", strings),
        "META_DATA_EXPORT": ("name value", [("EXPORT_SCHEMA_VERSION", "3.10.0"), ("OTHER", "secret")]),
        "TARGET_INFO_SESSION_START_TIME": ("utcEpochNs systemClockNs", [(1700000000000000000, 5)]),
        "ANALYSIS_DETAILS": ("duration", [(2000,)]),      # times later than that are of the system's clock
        "PROCESSES": ("globalPid pid name", [(pid, 300, "train"), (VM | 5 << 24, 5, "bash")]),
        "ThreadNames": ("nameId globalTid", [(s["worker"], tid), (s["worker"], tid + 1)]),
        "TARGET_INFO_GPU": ("id cuDevice name totalMemory smCount", [(4, None, "Own GPU", 1 << 30, 8), (5, -1, "Bad", 1, 1), (6, 2, "Bad", -1, 1), (7, 2, "Bad", 1, -1)]),
        "CUPTI_ACTIVITY_KIND_KERNEL": ("start end globalPid deviceId streamId correlationId contextId shortName gridX gridY gridZ blockX blockY blockZ "
                                       "registersPerThread staticSharedMemory dynamicSharedMemory graphNodeId graphId", kernels),
        "CUPTI_ACTIVITY_KIND_MEMCPY": ("start end globalPid deviceId streamId correlationId contextId bytes copyKind srcKind dstKind graphNodeId", copies),
        "CUPTI_ACTIVITY_KIND_MEMSET": ("start end globalPid deviceId streamId correlationId contextId bytes memKind graphNodeId", sets),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": ("start end globalPid deviceId streamId correlationId contextId deprecatedSyncType eventId eventSyncId", waits),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": ("globalPid eventSyncId correlationId streamId", [(pid, 70, 4, 7), (pid, 71, 5, 9), (pid, None, 6, 9)]),
        "CUPTI_ACTIVITY_KIND_RUNTIME": ("start end globalTid correlationId nameId returnValue", [
            (300, 310, tid, 1, s["cudaLaunchKernel_v7000"], 0), (320, 330, tid, 2, s["cuLaunchKernel"], 0), (340, 350, tid, 3, s["cudaErrorCall_v3020"], 2),
            (360, 370, tid, 4, s["cu"], 0), (380, 390, tid, 5, 999, 0), (None, 400, tid, 6, s["cu"], 0)]),
        # node 100 was captured by the first call, 200 is its clone (with a row that does not say so); 301 and 302 are clones of each other
        "CUDA_GRAPH_NODE_EVENTS": ("start globalTid graphNodeId originalGraphNodeId", [
            (310, tid, 100, None), (500, tid, 200, None), (500, tid, 200, 100), (320, tid + 1, 400, None), (500, tid, 301, 302), (500, tid, 302, 301), (501, tid, 0, 5), (502, tid, 6, 6)]),
        "CUDNN_EVENTS": ("start end globalTid nameId", [(300, 305, tid, s["cudnnConvolutionForward"])]),
        "NVTX_EVENTS": ("start end eventType globalTid text textId binaryData jsonText int64Value doubleValue", nvtx),
        "NVTX_PAYLOAD_SCHEMA_ENTRIES": ("domainId schemaId idx type name offset", entries),
        "NVTX_PAYLOAD_ENUM_ENTRIES": ("domainId schemaId name value", [(1, 1 << 24, "two", 2), (1, 1 << 24, "three", 3), (2, 1 << 24, "of another domain", 3)]),
        "COMPOSITE_EVENTS": ("id start cpu globalTid", [(1, 600, 3, tid), (2, 610, None, tid), (3, 620, 0, tid)]),
        "SAMPLING_CALLCHAINS": ("id symbol module unresolved stackDepth", [
            (2, s["inner"], s["plain.so"], 0, 0), (1, s["inner"], s["plain.so"], 0, 0), (2, 999, s["plain.so"], 0, 1), (1, s["outer"], s["plain.so"], 0, 2), (1, s["inner"], s["/opt/lib/libbar.so"], 1, 1)]),
        "TARGET_INFO_GPU_METRICS": ("typeId metricId metricName", [(256, 1, "SMs Active [%]")]),
        "GPU_METRICS": ("timestamp typeId metricId value", [(700, 256, 1, 80), (710, 256, 2, 0.25), (None, 256, 1, 1)]),
        "DIAGNOSTIC_EVENT": ("severity text", [(3, "e" * 250), (2, "not a loss"), (2, "Buffer OVERFLOW\nmore"), (1, "lost"), (4, "lost")]),
    })


def rocpd(path):
    tables, views = {}, []
    for n, uuid in enumerate(("_0198_a", "_0198_b")):
        strings, s = texts("HIP_RUNTIME_API_EXT", "KERNEL_DISPATCH", "MARKER_CORE_API", "RCCL_API", "MEMORY_COPY", "hipLaunchKernel", "hipGraphLaunch",
                           "roctxThreadRangeA", "ncclAllReduce", "MEMORY_COPY_HOST_TO_DEVICE", "")
        at = 10000 * (n + 1)
        part = {
            "metadata": ("id tag value", [(1, "schema_version", "3")]),
            "string": ("id guid string", [(i, uuid, v) for i, v in strings]),
            "info_process": ("id guid pid command environment", [(1, uuid, 500 - n, "/usr/bin/python train.py --key secret", '{"TOKEN": "hunter2"}')]),
            "info_thread": ("id guid pid tid name", [(1, uuid, 1, 500 - n, "")]),
            "info_agent": ("id guid type logical_index type_index name product_name", [(1, uuid, "CPU", 0, 0, "EPYC", "EPYC"), (2, uuid, "GPU", 1, n, "gfx942", "Test MI")]),
            "info_kernel_symbol": ("id guid kernel_name display_name", [(7, uuid, "_Z3addv.kd", "add(float*)"), (8, uuid, "_Z3mulv.kd", "")]),
            "info_pmc": ("id guid symbol name", [(1, uuid, "SQ_WAVES", "SQ_WAVES")]),
            "event": ("id guid category_id stack_id extdata", [
                (1, uuid, s["HIP_RUNTIME_API_EXT"], 31, "{}"), (2, uuid, s["KERNEL_DISPATCH"], 31, "{}"), (3, uuid, s["HIP_RUNTIME_API_EXT"], 32, "{}"),
                (4, uuid, s["KERNEL_DISPATCH"], 32, "{}"), (5, uuid, s["KERNEL_DISPATCH"], 32, "{}"), (6, uuid, s["MARKER_CORE_API"], 33, '{"message": "step \\"1\\""}'),
                (7, uuid, s["RCCL_API"], 34, "{}"), (8, uuid, s["MEMORY_COPY"], 35, "{}"), (9, uuid, s["KERNEL_DISPATCH"], 0, "{}")]),
            "region": ("id guid pid tid start end name_id event_id", [
                (1, uuid, 1, 1, at, at + 50, s["hipLaunchKernel"], 1), (2, uuid, 1, 1, at + 100, at + 160, s["hipGraphLaunch"], 3),
                (3, uuid, 1, 1, at - 10, at + 900, s["roctxThreadRangeA"], 6), (4, uuid, 1, 1, at + 200, at + 260, s["ncclAllReduce"], 7)]),
            "arg": ("id guid event_id position type name value", [(1, uuid, 7, 2, "size_t", "count", "1024"), (2, uuid, 7, 3, "ncclDataType_t", "datatype", "ncclFloat16")]),
            "kernel_dispatch": ("id guid pid tid agent_id kernel_id dispatch_id queue_id stream_id start end workgroup_size_x workgroup_size_y workgroup_size_z "
                                "grid_size_x grid_size_y grid_size_z event_id", [
                (1, uuid, 1, 1, 2, 7, 1, 16, 3, at + 100, at + 400, 256, 1, 1, 1000, 1, 1, 2),
                (2, uuid, 1, 1, 2, 8, 2, 16, 3, at + 300, at + 600, 64, 1, 1, 64, 2, 1, 4),         # overlaps its predecessor
                (3, uuid, 1, 1, 2, 8, 3, 16, 3, at + 600, at + 700, 64, 1, 1, 64, 2, 1, 5)]),
            "memory_copy": ("id guid pid tid start end name_id dst_agent_id src_agent_id size queue_id stream_id event_id",
                            [(1, uuid, 1, 1, at + 700, at + 750, s["MEMORY_COPY_HOST_TO_DEVICE"], 2, 1, 4096, 0, 3, 8)]),
            "pmc_event": ("id guid event_id pmc_id value", [(1, uuid, 2, 1, 16.0), (2, uuid, 2, 1, 4.0), (3, uuid, 4, 1, 8.0), (4, uuid, 9, 1, 0.5)]),
            "sample": ("id guid track_id timestamp event_id", [(1, uuid, 1, at + 500, 9)]),
        }
        tables |= {f"rocpd_{k}{uuid}": v for k, v in part.items()}
    for k in part:
        views.append(f"create view rocpd_{k} as select * from rocpd_{k}_0198_a union all select * from rocpd_{k}_0198_b")
    make(path, tables, views)


def rpd(path):
    strings, s = texts("", "KernelExecution", "CopyHostToDevice", "FillBuffer", "hipLaunchKernel", "hipMemcpy", "hipMemsetAsync", "UserMarker", "forward", "sgemm", "Barrier")
    shard = 40 << 32
    make(path, {
        "rocpd_metadata": ("id tag value", [(1, "schema_version", "2")]),
        "rocpd_string": ("id string", strings),
        "rocpd_api": ("id pid tid start end apiName_id args_id", [
            (shard + 1, 77, 78, 100, 150, s["hipLaunchKernel"], s[""]), (shard + 2, 77, 78, 160, 170, s["hipMemcpy"], s[""]),
            (shard + 3, 77, 78, 180, 190, s["hipMemsetAsync"], s[""]), (shard + 4, 77, 78, 90, 900, s["UserMarker"], s["forward"])]),
        "rocpd_api_ops": ("id api_id op_id", [(1, shard + 1, 1), (2, shard + 2, 2), (3, shard + 3, 3)]),
        "rocpd_op": ("id gpuId queueId start end description_id opType_id", [
            (1, 2, 0, 200, 500, s["sgemm"], s["KernelExecution"]), (2, 2, 0, 500, 600, s[""], s["CopyHostToDevice"]),
            (3, 2, 0, 600, 610, s[""], s["FillBuffer"]), (4, 2, 1, 600, 601, s[""], s["Barrier"])]),
        "rocpd_kernelapi": ("api_ptr_id gridX gridY gridZ workgroupX workgroupY workgroupZ", [(shard + 1, 16, 2, 1, 256, 1, 1)]),
        "rocpd_copyapi": ("api_ptr_id size", [(shard + 2, 8192)]),
        "rocpd_monitor": ("deviceType deviceId monitorType start end value", [("gpu", 2, "sclk", 100, 200, "1700")]),
    }, ["create view top as select * from rocpd_op union all select * from rocpd_op"])


def rocprof_json(path):
    def api(kind, operation, start, end, correlation):
        return {"kind": kind, "operation": operation, "thread_id": 8, "correlation_id": {"internal": correlation, "external": 0}, "start_timestamp": start, "end_timestamp": end}

    def dispatch(start, end, correlation, number, kernel):
        return api(2, 1, start, end, correlation) | {"dispatch_info": {
            "agent_id": {"handle": 90}, "queue_id": {"handle": 4}, "kernel_id": kernel, "dispatch_id": number, "workgroup_size": {"x": 64, "y": 1, "z": 1},
            "grid_size": {"x": 1000, "y": 1, "z": 1}}, "stream_id": {"handle": 3}}
    element = {
        "metadata": {"node": {"hostname": "secret-host"}, "pid": 7, "command": ["/usr/bin/python", "train.py", "--token=hunter2"]},
        "buffer_records": {
            "kernel_dispatch": [dispatch(1000, 1300, 5, 1, 11), dispatch(1200, 1500, 6, 2, 12)],      # the second overlaps the first
            "hip_api": [api(1, 0, 900, 950, 5), api(1, 1, 960, 990, 6)],
            "marker_api": [api(3, 0, 800, 2000, 9)],
            "memory_copy": [api(4, 1, 1500, 1550, 7) | {"dst_agent_id": {"handle": 90}, "src_agent_id": {"handle": 80}, "bytes": 512}]},
        "callback_records": {"counter_collection": [
            {"dispatch_data": dispatch(1000, 1300, 5, 1, 11), "records": [{"counter_id": {"handle": 1}, "value": 10.0}, {"counter_id": {"handle": 1}, "value": 6.0}]}]},
        "counters": [{"id": {"handle": 1}, "name": "SQ_WAVES"}],
        "agents": [{"id": {"handle": 80}, "type": 1}, {"id": {"handle": 90}, "type": 2, "logical_node_type_id": 0, "product_name": "Test MI", "cu_count": 100}],
        "strings": {"buffer_records": [{"kind": "NONE", "operations": []}, {"kind": "HIP_RUNTIME_API", "operations": ["hipLaunchKernel", "hipGraphLaunch"]},
                                       {"kind": "KERNEL_DISPATCH", "operations": ["NONE", "COMPLETE"]}, {"kind": "MARKER_CORE_API", "operations": ["roctxRangePushA"]},
                                       {"kind": "MEMORY_COPY", "operations": ["NONE", "MEMORY_COPY_HOST_TO_DEVICE"]}],
                    "marker_api": [{"key": 9, "value": "step \"1\""}]},
        "kernel_symbols": [{"kernel_id": 11, "kernel_name": "_Z3addv.kd", "formatted_kernel_name": "add(float*)"}, {"kernel_id": 12, "kernel_name": "mul.kd"}]}
    with open(path, "w") as f:
        json.dump({"rocprofiler-sdk-tool": [element]}, f, indent=1)


def rocprof_rare(path):
    def record(kind, operation, start, end, **more):
        return {"kind": kind, "operation": operation, "thread_id": 8, "correlation_id": {"internal": start}, "start_timestamp": start, "end_timestamp": end} | more
    kinds = [{"kind": k, "operations": o} for k, o in (
        ("NONE", []), ("HIP_RUNTIME_API", ["hipMalloc", 7]), ("KERNEL_DISPATCH", "no list"), ("MARKER_CORE_API", ["roctxMark"]), ("RCCL_API", ["ncclAllGather", "ncclGroupStart"]),
        ("HSA_CORE_API", ["hsa_queue_create"]), ("MEMORY_COPY", ["MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE", "MEMORY_COPY_HOST_TO_HOST", "MEMORY_COPY_OTHER"]), ("ROCDECODE_API", ["rocDecCreate"]))]
    first = {
        "metadata": {"pid": 70, "command": ["train", "two"]},
        "agents": [{"id": 5, "type": 2, "logical_node_type_id": 3, "product_name": "GPU three", "cu_count": 4}, {"id": {"handle": 6}, "type": 2, "logical_node_type_id": 70000, "cu_count": -1},
                   {"id": {"handle": 18446744073709551615}, "type": 1, "product_name": ["no text"]}, "no agent"],
        "strings": {"buffer_records": kinds, "marker_api": [{"value": "before its key", "key": 1}, {"key": 40, "value": "forty"}], "other": {}},
        "kernel_symbols": [{"kernel_name": "plain", "formatted_kernel_name": "", "kernel_id": 1}, {"formatted_kernel_name": "best", "kernel_name": "plain 2", "kernel_id": 2}],
        "counters": [{"id": {"handle": 3}, "symbol": "S", "name": "N"}, {"id": {"handle": 4}, "symbol": "only symbol"}],
        "buffer_records": {
            "memory_copy": [record(6, 0, 1, 3, src_agent_id=5, dst_agent_id={"handle": 18446744073709551615}, bytes=9), record(6, 1, 4, 6, agent_id=6, stream_id=2),
                            record(6, 2, 7, 8, bytes=-1), record(6, 3, 9, 10), {"operation": 3, "start_timestamp": 11}],
            "memory_allocation": [record(1, 0, 20, 21, allocation_size=4096)], "scratch_memory": [record(1, 1, 22, 23)],
            "rccl_api": [record(4, 0, 30, 31), record(4, 1, 32, 33)], "hsa_api": [record(5, 0, 34, 35)], "marker_api": [record(3, 0, 40, 41), record(3, 0, 42, 43)],
            "rocdecode_api": [record(7, 0, 44, 45)], "api": [record(1, 0, 46, 47)], "unknown": [record(1, 0, 48, 49)], "hip_api": {"no": "list"}},
        "callback_records": {"counter_collection": [{"records": [{"value": 2.5, "counter_id": {"handle": 3}}, {"value": 4, "counter_id": 4}, {"value": "x"}], "dispatch_data": record(
            2, 0, 50, 60, dispatch_info={"agent_id": {"handle": 5}, "queue_id": {"handle": 4}, "kernel_id": 1, "dispatch_id": 1, "workgroup_size": {"x": 7, "y": 2, "z": 0, "w": 1}, "grid_size": {"x": 15, "y": 3, "z": 4}})}, 7]}}
    second = {"metadata": {"pid": 60, "command": "no list"}, "agents": [{"id": 9, "type": 2, "logical_node_type_id": 1}], "kernel_symbols": {"no": "list"},
              "buffer_records": {"kernel_dispatch": [record(-3, 1 << 33, 100, 101, dispatch_info={"agent_id": 9, "kernel_id": {"x": 1}, "dispatch_id": [1]}), record(0, 0, 102, [1])]},
              "callback_records": {"counter_collection": [{"records": [], "dispatch_data": record(2, 0, 1, 2)}]}}
    with open(path, "w") as f:
        json.dump({"other": [], "rocprofiler-sdk-tool": [first, "no element", second]}, f)


CSV = {
    "kernel_trace": ['"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",'
                     '"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"',
                     '"KERNEL_DISPATCH","Agent 1","2","3","8","1","11","void add<float, ""x"">(float*, int)","5","1000","1300","64","1","1","1000","1","1"',
                     '"KERNEL_DISPATCH","Agent 1","2","3","8","2","12","mul","6","1200","1500","64","1","1","64","1","1"'],
    "hip_api_trace": ['"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"',
                      '"HIP_RUNTIME_API_EXT","hipLaunchKernel","7","8","5","900","950"', '"HIP_RUNTIME_API_EXT","hipGraphLaunch","7","8","6","960","990"'],
    "marker_api_trace": ['"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"',
                         '"MARKER_CORE_API","step 1",7,8,9,800,2000', '"MARKER_CORE_API","now",7,8,10,850,850'],
    "memory_copy_trace": ['"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"',
                          '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",0,1,7,1500,1550', '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",0,1,7,soon,1550'],
    "memory_allocation_trace": ['"Kind","Operation","Agent_Id","Allocation_Size","Address","Correlation_Id","Start_Timestamp","End_Timestamp"',
                                '"MEMORY_ALLOCATION","MEMORY_ALLOCATION_ALLOCATE","Agent 1","4096","0x7f","11","820","830"'],
    "counter_collection": ['"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id","Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","Counter_Name","Counter_Value"',
                           '6,2,1,2,7,8,64,12,"mul",64,"SQ_WAVES",1', '5,1,1,2,7,8,1000,11,"void add<float, ""x"">(float*, int)",64,"SQ_WAVES",10',
                           '5,1,1,2,7,8,1000,11,"void add<float, ""x"">(float*, int)",64,"SQ_WAVES",6', '5,1,1,2,7,8,1000,11,"void add<float, ""x"">(float*, int)",64,"GRBM_COUNT",2.5'],
}


RARE_CSV = {
    "kernel_trace": ['\ufeff"Kernel_Name","Start_Timestamp","End_Timestamp","Kind","Agent_Id","Queue_Id","Workgroup_Size","Grid_Size","Dispatch_Id","Workgroup_Size_Y"',
                     'bare,10,20,K,Agent 12,3,64,130,1,2', '"a ""quoted"" name, ""twice""",30,40,K,x,y,0,5,2,', '"two\nlines",50,60,K,4,,,,3', 'no times,,,K', '', '"open,70,80'],
    "counter_collection": ['"Counter_Name","Counter_Value","Dispatch_Id","Process_Id","Start_Timestamp","End_Timestamp","Kernel_Name"',
                           '"B",2,1,9,10,20,"k"', '"A",1.5,1,9,10,20,"k"', '"B",3,1,9,10,20,"k"', f'"{"L" * 150}",7,2,9,30,40,"k"'],
    "rccl_api_trace": ['"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"',
                       '"RCCL_API","ncclReduceScatter",9,8,1,5,6', '"RCCL_API","ncclGroupEnd",9,8,2,7,8', f'"HSA_API","{"f" * 90}",9,8,3,9,10'],
    "memory_copy_trace": ['"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Stream_Id","Correlation_Id","Start_Timestamp","End_Timestamp"',
                          '"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_HOST","Agent 2","Agent 0",6,7,90,95', '"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_DEVICE",2,3,6,8,96,97'],
}


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    nsys(f"{out}/nsys.sqlite")
    nsys_old(f"{out}/nsys_old.sqlite")
    nsys_rare(f"{out}/nsys_rare.sqlite")
    rocpd(f"{out}/rocpd.db")
    rpd(f"{out}/trace.rpd")
    rocprof_json(f"{out}/7_results.json")
    rocprof_rare(f"{out}/rare_results.json")
    for number, files in ((7, CSV), (9, RARE_CSV)):
        for kind, lines in files.items():
            with open(f"{out}/{number}_{kind}.csv", "w") as f:
                f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
