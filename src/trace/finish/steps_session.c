/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorFlow's RunMetadata, and a Timeline made from one, record exactly one run of a session: that
 * is the step, from the first start to the last end.
 */
#include "trace/finish/steps.h"

#include <string.h>

static bool is_session(const struct rp_builder *b)
{
    const char *format = rp_strtab_borrow(&b->str, b->trace->format);
    const char *framework = rp_strtab_borrow(&b->str, b->trace->framework);

    return !strcmp(format, "runmetadata") ||
           (!strcmp(format, "chrome-json") && !strcmp(framework, "tensorflow"));
}

static bool is_work(uint8_t kind)
{
    return kind == RP_KIND_CPU_OP || kind == RP_KIND_TRANSFER || kind == RP_KIND_COMM_OP ||
           rp_kind_is_device_work(kind);
}

enum rp_code rp_steps_by_session(struct rp_builder *b, struct rp_err *err)
{
    struct rp_step step = rp_step_from(RP_STEP_SESSION);

    if (!is_session(b))
        return RP_OK;
    step.begin_ns = INT64_MAX;
    step.end_ns = INT64_MIN;
    for (rp_event e = 0; e < b->ev.n; e++) {
        if (!rp_step_is_span(b, e) || !is_work(rp_build_origin_of(b, e)->kind))
            continue;
        if (b->ev.ts_ns.at[e] < step.begin_ns)
            step.begin_ns = b->ev.ts_ns.at[e];
        if (rp_build_end_ns(b, e) > step.end_ns)
            step.end_ns = rp_build_end_ns(b, e);
    }
    if (step.end_ns < step.begin_ns)
        return RP_OK;
    RP_TRY(rp_strtab_intern(&b->str, "session run", 11, &step.name, err));
    return rp_vec_push(&b->steps, step, err);
}
