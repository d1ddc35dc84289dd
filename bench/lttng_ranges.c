/* SPDX-License-Identifier: Apache-2.0 */
/* bench_record.c with LTTng-UST's tracepoints in the place of the macros; bench/record builds it.
 */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "lttng_ranges.h"

#define REPRISE_RECORD_H     /* the macros are these */
#define RP_RANGE_BEGIN(name) tracepoint(rp_bench, range_entry, name)
#define RP_RANGE_END()       tracepoint(rp_bench, range_exit, 0)
#include "bench_record.c"
