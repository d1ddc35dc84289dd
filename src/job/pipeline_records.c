/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the events one by one and sorts them; steps are numbered densely afterwards. */
#include "job/pipeline_records.h"

#include "facts/arg_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS                                                                 \
    65536 /* of data parallelism, and stages: numbers of the file, so hostile ones \
           */

static bool read_thread(const struct rp_trace *t, rp_track track, uint32_t *stage, uint32_t *tp)
{
    const char *name = rp_trace_str(t, t->tracks[track].name);
    unsigned a, b;

    if (strncmp(name, "PP rank ", 8) != 0 || sscanf(name, "PP rank %5u, TP rank %5u,", &a, &b) != 2)
        return false;
    *stage = a;
    *tp = b;
    return true;
}

bool rp_trace_is_pipeline(const struct rp_trace *t)
{
    uint32_t i, stage, tp;

    for (i = 0; i < t->ntracks; i++)
        if (read_thread(t, i, &stage, &tp))
            return true;
    return false;
}

static int by_place(const void *pa, const void *pb)
{
    const struct rp_pipeline_op *a = pa, *b = pb;

    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    if (a->dp != b->dp)
        return a->dp < b->dp ? -1 : 1;
    if (a->stage != b->stage)
        return a->stage < b->stage ? -1 : 1;
    if (a->type != b->type)
        return a->type < b->type ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

struct keys {
    rp_str step, seq, chunk;
};

static bool number(const struct rp_trace *t, rp_event e, rp_str key, int64_t *out)
{
    struct rp_arg arg;

    if (key == RP_NONE || !rp_args_find(&t->args, t->ev.shape[e], t->ev.arg_row[e], key, &arg) ||
        arg.type != RP_ARG_I64)
        return false;
    *out = arg.v.i;
    return true;
}

static enum rp_code read_op(struct rp_pipeline *p, const struct keys *keys, rp_event e,
                            uint32_t stage, struct rp_err *err)
{
    const struct rp_trace *t = p->trace;
    int64_t dp = t->processes[t->tracks[t->ev.track[e]].process].native_id;
    int64_t step, seq, chunk = -1;
    struct rp_pipeline_op op;

    if (t->ev.dur_ns[e] < 0 || t->ev.ts_ns[e] == RP_NO_TS)
        return RP_OK;
    if (!number(t, e, keys->step, &step) || !number(t, e, keys->seq, &seq) || step < 0 || seq < 0 ||
        step >= UINT32_MAX || seq >= UINT32_MAX || dp < 0 || dp >= MOST_RANKS)
        return rp_err_set(err, RP_FORMAT,
                          "event %u '%s' of a pipeline's timeline has no step, number or rank", e,
                          rp_trace_str(t, t->ev.name[e]));
    number(t, e, keys->chunk, &chunk);
    op = (struct rp_pipeline_op){t->ev.ts_ns[e], t->ev.dur_ns[e], t->ev.name[e], (uint32_t)step,
                                 (uint32_t)dp,   stage,           (uint32_t)seq, (int32_t)chunk};
    p->ndp = op.dp + 1 > p->ndp ? op.dp + 1 : p->ndp;
    p->nstages = stage + 1 > p->nstages ? stage + 1 : p->nstages;
    return rp_vec_push(&p->ops, op, err);
}

static enum rp_code read_all(struct rp_pipeline *p, const struct keys *keys, struct rp_err *err)
{
    const struct rp_trace *t = p->trace;
    uint32_t k, stage, tp;
    rp_event e;

    for (k = 0; k < t->ntracks; k++) {
        if (!read_thread(t, k, &stage, &tp))
            continue;
        if (tp > 0 && t->tracks[k].end > t->tracks[k].first + 2)
            return rp_err_set(err, RP_UNSUPPORTED,
                              "a pipeline's timeline with several tensor-parallel ranks");
        for (e = t->tracks[k].first; e < t->tracks[k].end; e++)
            if (t->origins[t->ev.origin[e]].phase == 'X')
                RP_TRY(read_op(p, keys, e, stage, err));
    }
    return RP_OK;
}

static rp_str find(const struct rp_trace *t, const char *text)
{
    rp_str i;

    for (i = 0; i < t->str.n; i++)
        if (!strcmp(rp_trace_str(t, i), text))
            return i;
    return RP_NONE;
}

enum rp_code rp_pipeline_read(const struct rp_trace *t, struct rp_pipeline *out, struct rp_err *err)
{
    struct keys keys = {find(t, "step"), find(t, "seq_id"), find(t, "model_chunk")};
    uint32_t before = 0;
    size_t i;

    *out = (struct rp_pipeline){.trace = t};
    RP_TRY(read_all(out, &keys, err));
    if (!out->ops.n)
        return rp_err_set(err, RP_FORMAT, "a pipeline's timeline without operations");
    qsort(out->ops.at, out->ops.n, sizeof *out->ops.at, by_place);
    for (i = 0; i < out->ops.n; i++) {
        uint32_t step = out->ops.at[i].step;

        out->nsteps += i > 0 && step != before;
        before = step;
        out->ops.at[i].step = out->nsteps;
    }
    out->nsteps++;
    return RP_OK;
}

void rp_pipeline_release(struct rp_pipeline *p)
{
    rp_vec_release(&p->ops);
}
