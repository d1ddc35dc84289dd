/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list of output formats: one line here and one file with the row rp_writer_<name> add one. If
 * the ending of a path fits several rows, the first one writes.
 */
#include "formats/write/writers.h"

#define RP_WRITER_ROWS(X) \
    X(rpt)                \
    X(speedscope)         \
    X(firefox)            \
    X(json)               \
    X(perfetto)           \
    X(csv)                \
    X(sqlite)             \
    X(folded)             \
    X(pprof)              \
    X(hlo_text)           \
    X(hlo_proto)          \
    X(stablehlo)          \
    X(graphdef)           \
    X(pbtxt)

#define RP_DECLARE_WRITER(name) extern const struct rp_writer rp_writer_##name;
RP_WRITER_ROWS(RP_DECLARE_WRITER)
#undef RP_DECLARE_WRITER
