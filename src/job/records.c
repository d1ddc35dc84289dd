/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses names, so that no other file has to know how TensorFlow, Horovod and NCCL write them.
 * Records outside of steps (casts, the line of steps, the host's process) have no group, or no node
 * in the graph of operators; the model leaves them out.
 */
#include "job/records.h"

#include "base/order.h"
#include "facts/arg_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ operators */

/* Extracts "net/conv" from "StatefulPartitionedCall/net/conv:Conv2D". */
static const char *op_name(const char *long_name, struct rp_arena *arena)
{
    static const char call[] = "StatefulPartitionedCall/";

    if (!strncmp(long_name, call, sizeof call - 1))
        long_name += sizeof call - 1;
    const char *colon = strrchr(long_name, ':');
    return rp_arena_copy(arena, long_name, colon ? (size_t)(colon - long_name) : strlen(long_name));
}

/* Reads an argument that is written as a number or as a text. */
static bool number_arg(const struct rp_arg_key *key, rp_event e, int64_t *out)
{
    rp_str text;
    char *end;

    if (rp_arg_key_int(key, e, out))
        return true;
    if (!rp_arg_key_text(key, e, &text))
        return false;
    *out = strtoll(rp_trace_str(key->trace, text), &end, 10);
    return end != rp_trace_str(key->trace, text);
}

static enum rp_code add_ops(const struct rp_trace *t, const struct rp_arg_key *long_name,
                            const struct rp_arg_key *group, struct rp_job_rank *out,
                            struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        struct rp_job_op op = {NULL, t->ev.ts_ns[e], t->ev.dur_ns[e], 0};
        rp_str text;

        if (op.begin_ns == RP_NO_TS || op.dur_ns < 0 || !rp_arg_key_text(long_name, e, &text) ||
            !number_arg(group, e, &op.step))
            continue;
        op.name = op_name(rp_trace_str(t, text), &out->arena);
        RP_TRY(rp_err_need(op.name, err, "reading a job"));
        RP_TRY(rp_vec_push(&out->ops, op, err));
    }
    return RP_OK;
}

enum rp_code rp_job_read_ops(const struct rp_trace *t, struct rp_job_rank *out, struct rp_err *err)
{
    RP_SCOPED(rp_arg_key_release) struct rp_arg_key long_name = {0}, group = {0};

    RP_TRY(rp_arg_key_init(&long_name, t, "long_name", err));
    RP_TRY(rp_arg_key_init(&group, t, "group_id", err));
    return add_ops(t, &long_name, &group, out, err);
}

/* ------------------------------------------------------------------ the timeline */

/* Returns 7 for "horovod_allreduce.7_0"; -1 for another name. */
static int64_t tensor_of_process(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && dot[1] >= '0' && dot[1] <= '9' ? strtoll(dot + 1, NULL, 10) : -1;
}

static bool phase_of(const char *name, uint8_t *out)
{
    static const struct {
        const char *name;
        uint8_t phase;
    } phases[] = {{"QUEUE", RP_JOB_QUEUE},
                  {"MEMCPY_IN_FUSION_BUFFER", RP_JOB_COPY_IN},
                  {"NCCL_ALLREDUCE", RP_JOB_REDUCE},
                  {"MEMCPY_OUT_FUSION_BUFFER", RP_JOB_COPY_OUT}};

    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        if (!strcmp(name, phases[i].name)) {
            *out = phases[i].phase;
            return true;
        }
    return false;
}

enum rp_code rp_job_read_timeline(const struct rp_trace *t, struct rp_job_rank *out,
                                  struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        const char *name = rp_trace_str(t, t->ev.name[e]);
        const char *process = rp_trace_str(t, t->processes[t->tracks[t->ev.track[e]].process].name);
        struct rp_job_span span = {t->ev.ts_ns[e], rp_event_end_ns(t, e), -1, RP_JOB_SYNC};

        if (span.begin_ns == RP_NO_TS || t->ev.dur_ns[e] < 0)
            continue;
        if (!strcmp(process, "Sync"))
            span.tensor = strtoll(name, NULL, 10);
        else if (phase_of(name, &span.phase))
            span.tensor = tensor_of_process(process);
        if (span.tensor >= 0)
            RP_TRY(rp_vec_push(&out->spans, span, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ transfers */

RP_ORDER(by_number, long, RP_COMPARE(*a, *b))

/* Sorts "6+5" into "5+6", in the arena; NULL if there are no ids or no memory (*failed). */
static const char *sorted_tensors(const char *text, size_t len, struct rp_arena *arena)
{
    enum { MOST = 4096 };
    char *copy = rp_arena_copy(arena, text, len), *at = copy, *out;
    long *ids = copy ? rp_arena_alloc(arena, (len + 1) * sizeof *ids, 8) : NULL;
    size_t n = 0, i, size = 0;

    if (!ids)
        return NULL;
    while (*at && n < MOST) {
        ids[n++] = strtol(at, &at, 10);
        if (*at != '+')
            break;
        at++;
    }
    qsort(ids, n, sizeof *ids, by_number);
    out = rp_arena_alloc(arena, 2 * len + 24, 1);
    for (i = 0; out && i < n; i++)
        size += (size_t)snprintf(out + size, 2 * len + 24 - size, i ? "+%ld" : "%ld", ids[i]);
    return out;
}

struct transfer_keys {
    struct rp_arg_key loop, channel, chunk, slice;
};

#define MOST_LOOPS 65535
RP_LIMIT(MOST_LOOPS, "loops, or chunks", "a record with more is of no transfer");
#define MOST_CHANNELS 1023
RP_LIMIT(MOST_CHANNELS, "channels, or slices", "a record with more is of no transfer");

static bool read_place(const struct transfer_keys *k, rp_event e, struct rp_job_transfer *x)
{
    int64_t loop, channel, chunk, slice;

    if (!number_arg(&k->loop, e, &loop) || !number_arg(&k->channel, e, &channel) ||
        !number_arg(&k->chunk, e, &chunk) || !number_arg(&k->slice, e, &slice) || loop < 0 ||
        channel < 0 || chunk < 0 || slice < 0 || loop > MOST_LOOPS || chunk > MOST_LOOPS ||
        channel > MOST_CHANNELS || slice > MOST_CHANNELS)
        return false;
    x->loop = (int32_t)loop;
    x->channel = (int32_t)channel;
    x->chunk = (int32_t)chunk;
    x->slice = (int32_t)slice;
    return true;
}

/* "horovod_allreduce<<3>>.6+5.SEND" */
static enum rp_code add_transfers(const struct rp_trace *t, const struct transfer_keys *k,
                                  struct rp_job_rank *out, struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        const char *name = rp_trace_str(t, t->ev.name[e]), *last = strrchr(name, '.'), *dot = last;
        struct rp_job_transfer x = {.begin_ns = t->ev.ts_ns[e], .dur_ns = t->ev.dur_ns[e]};

        if (!last || x.begin_ns == RP_NO_TS || x.dur_ns < 0 ||
            (strcmp(last, ".SEND") != 0 && strcmp(last, ".RECV") != 0) || !read_place(k, e, &x))
            continue;
        while (dot > name && dot[-1] != '.')
            dot--;
        x.is_send = last[1] == 'S';
        x.tensors = sorted_tensors(dot, (size_t)(last - dot), &out->arena);
        RP_TRY(rp_err_need(x.tensors, err, "reading a job"));
        RP_TRY(rp_vec_push(&out->transfers, x, err));
    }
    return RP_OK;
}

enum rp_code rp_job_read_transfers(const struct rp_trace *t, struct rp_job_rank *out,
                                   struct rp_err *err)
{
    struct transfer_keys k = {0};
    enum rp_code code = rp_arg_key_init(&k.loop, t, "loopId", err);

    if (code == RP_OK)
        code = rp_arg_key_init(&k.channel, t, "channelId", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&k.chunk, t, "chunkId", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&k.slice, t, "sliceId", err);
    if (code == RP_OK)
        code = add_transfers(t, &k, out, err);
    rp_arg_key_release(&k.loop);
    rp_arg_key_release(&k.channel);
    rp_arg_key_release(&k.chunk);
    rp_arg_key_release(&k.slice);
    return code;
}

/* ------------------------------------------------------------------ BytePS */

struct byteps_keys {
    struct rp_arg_key key, sender, receiver;
};

/* "tensor.PUSH_REQ" */
static bool message_kind(const char *name, uint8_t *out)
{
    static const char *const kinds[RP_JOB_MESSAGES] = {[RP_JOB_PUSH] = "PUSH_REQ",
                                                       [RP_JOB_PUSH_DONE] = "PUSH_RES",
                                                       [RP_JOB_PULL] = "PULL_REQ",
                                                       [RP_JOB_PULL_DONE] = "PULL_RES"};
    const char *dot = strrchr(name, '.');

    for (uint8_t i = 0; dot && i < RP_JOB_MESSAGES; i++)
        if (!strcmp(dot + 1, kinds[i])) {
            *out = i;
            return true;
        }
    return false;
}

static enum rp_code add_server_op(const struct rp_trace *t, rp_event e, int64_t key,
                                  struct rp_job_node *out, struct rp_err *err)
{
    const char *dot = strrchr(rp_trace_str(t, t->ev.name[e]), '.');
    struct rp_job_server_op op = {.begin_ns = t->ev.ts_ns[e],
                                  .dur_ns = t->ev.dur_ns[e],
                                  .key = key,
                                  .thread = t->ev.track[e]};

    if (!dot || op.dur_ns < 0 || t->ev.flags[e] & (RP_EVENT_NO_BEGIN | RP_EVENT_UNENDED))
        return RP_OK;
    op.merged = !strcmp(dot + 1, "COPY_MERGED");
    if (!op.merged && strcmp(dot + 1, "COPY_FIRST") != 0 && strcmp(dot + 1, "SUM") != 0)
        return RP_OK;
    return rp_vec_push(&out->ops, op, err);
}

static enum rp_code add_records(const struct rp_trace *t, const struct byteps_keys *k,
                                struct rp_job_node *out, struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        struct rp_job_half half = {0};
        int64_t sender, receiver;

        if (t->ev.ts_ns[e] == RP_NO_TS || !rp_arg_key_int(&k->key, e, &half.key))
            continue;
        if (!rp_arg_key_int(&k->sender, e, &sender)) {
            RP_TRY(add_server_op(t, e, half.key, out, err));
            continue;
        }
        if (!rp_arg_key_int(&k->receiver, e, &receiver) ||
            !message_kind(rp_trace_str(t, t->ev.name[e]), &half.kind))
            continue;
        half.sender = (int32_t)sender;
        half.receiver = (int32_t)receiver;
        half.ns = t->ev.ts_ns[e];
        half.sent = !(t->ev.flags[e] & RP_EVENT_NO_BEGIN);
        RP_TRY(rp_vec_push(&out->halves, half, err));
        if (!(t->ev.flags[e] & (RP_EVENT_NO_BEGIN | RP_EVENT_UNENDED)) && t->ev.dur_ns[e] >= 0) {
            half.ns = rp_event_end_ns(t, e);
            half.sent = false;
            RP_TRY(rp_vec_push(&out->halves, half, err));
        }
    }
    return RP_OK;
}

/* Returns who wrote a log of messages, which is the sender of those sent and the receiver of those
   received. */
static int32_t writer_of(const struct rp_job_node *n)
{
    int32_t found = -1;

    for (size_t i = 0; i < n->halves.n; i++) {
        const struct rp_job_half *h = &n->halves.at[i];
        int32_t id = h->sent ? h->sender : h->receiver;

        if (found >= 0 && found != id)
            return -1;
        found = id;
    }
    return found;
}

enum rp_code rp_job_read_byteps(const struct rp_trace *t, struct rp_job_node *out,
                                struct rp_err *err)
{
    struct byteps_keys k = {0};
    enum rp_code code = rp_arg_key_init(&k.key, t, "key", err);

    if (code == RP_OK)
        code = rp_arg_key_init(&k.sender, t, "sender", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&k.receiver, t, "receiver", err);
    if (code == RP_OK)
        code = add_records(t, &k, out, err);
    if (code == RP_OK && out->halves.n)
        out->id = writer_of(out);
    rp_arg_key_release(&k.key);
    rp_arg_key_release(&k.sender);
    rp_arg_key_release(&k.receiver);
    return code;
}
