/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list of formats that can be read: one line here and one reader with the row rp_format_<name>
 * add a format. Of formats that are equally confident about a file, the first one reads it. Only
 * formats.c and tests include this header, so that a new line recompiles nothing else.
 */
#include "formats/formats.h"

#define RP_FORMAT_ROWS(X) \
    X(rpt)                \
    X(digest)             \
    X(dftracer)           \
    X(chrome_json)        \
    X(lazy)               \
    X(hlo_text)           \
    X(hlo_proto)          \
    X(hlo_pbtxt)          \
    X(graphdef)           \
    X(graphdef_text)      \
    X(saved_model)        \
    X(meta_graph)         \
    X(tf_library)         \
    X(tao)                \
    X(stablehlo)          \
    X(mlir_bytecode)      \
    X(chakra)             \
    X(chakra_json)        \
    X(raf)                \
    X(exec_trace)         \
    X(xplane)             \
    X(runmeta)            \
    X(perfetto)           \
    X(ctf)                \
    X(flight_recorder)    \
    X(nccl_profiler)      \
    X(nccl_inspector)     \
    X(torch_memory)       \
    X(xla_buffers)        \
    X(torch_trace)        \
    X(fx)                 \
    X(byteps)             \
    X(nsys)               \
    X(rocpd)              \
    X(rpd)                \
    X(rocprof_json)       \
    X(rocprof_csv)        \
    X(speedscope)         \
    X(firefox)            \
    X(proton)             \
    X(pprof)              \
    X(perf_data)          \
    X(gperftools)         \
    X(perf_script)        \
    X(folded)             \
    X(bpftrace)           \
    X(austin)

#define RP_DECLARE_FORMAT(name) extern const struct rp_format rp_format_##name;
RP_FORMAT_ROWS(RP_DECLARE_FORMAT)
#undef RP_DECLARE_FORMAT
