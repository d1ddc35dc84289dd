/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoints of lttng_ranges.c: what a range of record.h has, a name and nothing. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER rp_bench
#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "./lttng_ranges.h"
#if !defined(RP_LTTNG_RANGES_H) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define RP_LTTNG_RANGES_H
#include <lttng/tracepoint.h>
TRACEPOINT_EVENT(rp_bench, range_entry, TP_ARGS(const char *, name),
                 TP_FIELDS(ctf_string(name, name)))
TRACEPOINT_EVENT(rp_bench, range_exit, TP_ARGS(int, unused), TP_FIELDS())
#endif
#include <lttng/tracepoint-event.h>
