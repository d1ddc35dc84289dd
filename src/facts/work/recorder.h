/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Knows how to tell a recorder to record more, by recorder and framework; this is the only place
 * with these words. So advice never names options of a tool that was not used.
 */
#include "facts/work/workload.h"

/* Plain memory. */
struct rp_recorder {
    uint8_t framework; /* enum rp_framework */
    uint8_t system;    /* enum rp_system */
    bool ours;         /* `reprise record` */
    bool compiled;     /* compiled code runs */
};

enum rp_recordable {
    RP_RECORDS_SHAPES, /* shapes of the inputs of operators */
    RP_RECORDS_FRAMES, /* Python frames around launches */
    RP_RECORDS_MEMORY, /* allocations */
    RP_RECORDABLES
};

/* Linear in events. Needs RP_NEED_EVENTS. */
enum rp_code rp_recorder_find(const struct rp_trace *trace, struct rp_recorder *out,
                              struct rp_err *err);

/* "record_shapes=True", "'reprise record --set frameworks.shapes=on'": static text; NULL if there
   is no such option. */
const char *rp_recorder_option(const struct rp_recorder *recorder, enum rp_recordable what);
