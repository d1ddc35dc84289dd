/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads lines of NCCL Inspector, the profiler plugin that comes with NCCL: one for each collective
 * or message of a process.
 *
 *     {"header":{"id":"0xe62d…","rank":4,"n_ranks":8,"nnodes":1},
 *      "metadata":{"dump_timestamp_us":1752867229276385,"hostname":"node7", …},
 *      "coll_perf":{"coll":"ReduceScatter","coll_sn":1231,"coll_msg_size_bytes":2147483648,
 *                   "coll_exec_time_us":41057,"event_trace_ts":{"coll_start_ts":…,"coll_stop_ts":…,
 *                   "kernel_events":[{"kernel_start_ts":…,"kernel_stop_ts":…}]}}}
 *
 * Each becomes a kernel on a stream of its communicator. With NCCL_INSPECTOR_DUMP_VERBOSE=1 a line
 * has times: from the first channel's start to the last one's stop. Otherwise it says only how long
 * the operation took and when the line was written; then the operation is placed as late as that
 * allows, in the order of the sequence numbers, and a warning says so.
 *
 * `rank` is the rank in the communicator. The rank of a process is its rank in its largest
 * communicator; a process that has several of its ranks (one for each device) is a merged trace.
 */
#include "base/clock.h"
#include "base/decimal.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"
#include "formats/activity/activity.h"
#include "io/escaped.h"
#include "io/json_pull.h"

#include <stdio.h>
#include <stdlib.h>

struct inspected { /* one line; times that are not given are -1 */
    int64_t rank, nranks, sn, bytes, peer;
    int64_t exec_ns, dump_ns, begin_ns, end_ns;
    rp_str comm, func;
    uint32_t line;
    bool p2p, timed;
};

struct inspector {
    struct rp_activity *a;
    struct rp_json *json;
    RP_VEC(struct inspected) all;
    rp_str widest; /* the communicator whose ranks number the processes */
    rp_str host;   /* from the first line that names one; RP_NONE if none does */
    int64_t world;
    uint64_t strange, untimed, elsewhere;
    struct rp_err *err;
};

/* ------------------------------------------------------------------ a line */

static int64_t number(const struct rp_json_token *v, unsigned scale)
{
    int64_t n = -1;

    if (v->kind != RP_JSON_NUMBER ||
        rp_decimal_parse(v->text, v->len, scale, &n) & (RP_DECIMAL_INVALID | RP_DECIMAL_RANGE) ||
        n < 0 || n > RP_TIME_MAX_NS)
        return -1;
    return n;
}

static enum rp_code text(struct inspector *r, struct rp_json_token *v, rp_str *out)
{
    if (v->kind != RP_JSON_STRING)
        return RP_OK;
    if (v->has_escapes && !rp_json_decode(r->json, v))
        return rp_json_finish(r->json, r->err);
    return rp_activity_intern(r->a, v->text, v->len, out, r->err);
}

/* Keys of collectives begin with coll_, of messages with p2p_; times are microseconds. */
static enum rp_code set_value(struct inspector *r, struct inspected *x,
                              const struct rp_json_token *key, struct rp_json_token *v)
{
    int64_t ns;

    if (rp_json_key_is(key, "id"))
        return text(r, v, &x->comm);
    if (rp_json_key_is(key, "hostname"))
        return r->host == RP_NONE ? text(r, v, &r->host) : RP_OK;
    if (rp_json_key_is(key, "coll") || rp_json_key_is(key, "p2p")) {
        x->p2p = key->text[0] == 'p';
        return text(r, v, &x->func);
    }
    if (rp_json_key_is(key, "rank"))
        x->rank = number(v, 0);
    else if (rp_json_key_is(key, "n_ranks"))
        x->nranks = number(v, 0);
    else if (rp_json_key_is(key, "coll_sn") || rp_json_key_is(key, "p2p_sn"))
        x->sn = number(v, 0);
    else if (rp_json_key_is(key, "p2p_peer"))
        x->peer = number(v, 0);
    else if (rp_text_ends_n(key->text, key->len, "_msg_size_bytes"))
        x->bytes = number(v, 0);
    else if (rp_text_ends_n(key->text, key->len, "_exec_time_us"))
        x->exec_ns = number(v, 3);
    else if (rp_json_key_is(key, "dump_timestamp_us"))
        x->dump_ns = number(v, 3);
    else if (rp_json_key_is(key, "kernel_start_ts") && (ns = number(v, 3)) > 0)
        x->begin_ns = x->begin_ns < 0 || ns < x->begin_ns ? ns : x->begin_ns;
    else if (rp_json_key_is(key, "kernel_stop_ts") && (ns = number(v, 3)) > 0)
        x->end_ns = ns > x->end_ns ? ns : x->end_ns;
    return RP_OK;
}

/* Reads all objects of a line, however they are nested, since their keys differ. */
static enum rp_code read_line(struct inspector *r, struct inspected *x)
{
    uint32_t depth = rp_json_depth(r->json);
    struct rp_json_token key, v;

    *x = (struct inspected){.rank = -1,
                            .nranks = -1,
                            .sn = -1,
                            .bytes = -1,
                            .peer = -1,
                            .exec_ns = -1,
                            .dump_ns = -1,
                            .begin_ns = -1,
                            .end_ns = -1};
    if (rp_json_value(r->json, &v) != RP_JSON_OBJECT)
        return RP_OK;
    while (!rp_json_failed(r->json) && rp_json_depth(r->json) > depth) {
        bool object = rp_json_in_object(r->json);

        if (object ? !rp_json_field(r->json, &key) : !rp_json_element(r->json))
            continue;
        if (rp_json_value(r->json, &v) != RP_JSON_NONE && object && v.kind != RP_JSON_OBJECT &&
            v.kind != RP_JSON_ARRAY)
            RP_TRY(set_value(r, x, &key, &v));
    }
    return RP_OK;
}

/* Corrects the error of the parser, which saw one more byte at the beginning and at the end. */
static enum rp_code line_error(struct inspector *r)
{
    uint64_t at = rp_json_offset(r->json), line = 1;
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = rp_json_finish(r->json, &why);

    if (code != RP_FORMAT) {
        if (r->err)
            *r->err = why;
        return code;
    }
    at = at > r->a->t.n ? r->a->t.n : at - (at > 0);
    for (uint64_t i = 0; i < at; i++)
        line += r->a->t.bytes[i] == '\n';
    return rp_err_set_at(r->err, RP_FORMAT, at, "byte %llu: line %llu is not a JSON object",
                         (unsigned long long)at, (unsigned long long)line);
}

static enum rp_code read_lines(struct inspector *r)
{
    struct rp_json_token v;
    struct inspected x;

    if (rp_json_value(r->json, &v) != RP_JSON_ARRAY)
        return line_error(r);
    while (rp_json_element(r->json)) {
        RP_TRY(read_line(r, &x));
        if (rp_json_failed(r->json))
            break;

        /* A line counts if it says who did what, and when. */
        x.line = (uint32_t)r->all.n;
        x.timed = x.begin_ns >= 0 && x.end_ns >= x.begin_ns;
        if (!x.func || x.rank < 0 || x.exec_ns < 0 || (!x.timed && x.dump_ns < 0)) {
            r->strange++;
            continue;
        }
        if (x.nranks > r->world) {
            r->world = x.nranks;
            r->widest = x.comm;
        }
        if (r->all.n >= r->a->t.limits.events)
            return rp_err_set(r->err, RP_LIMIT, "more than %llu collectives in one file",
                              (unsigned long long)r->a->t.limits.events);
        RP_TRY(rp_vec_push(&r->all, x, r->err));
    }
    return rp_json_failed(r->json) ? line_error(r) : RP_OK;
}

/* Reads the lines as one list in which commas may be missing. */
static enum rp_code read_text(struct inspector *r)
{
    struct rp_json_options options = {.limits = &r->a->t.limits, .missing_comma = true};
    struct rp_input *list = NULL;
    size_t n = r->a->t.n;
    char *copy = malloc(n + 2);

    RP_TRY(rp_err_need(copy, r->err, "reading lines"));
    copy[0] = '[';
    memcpy(copy + 1, r->a->t.bytes, n);
    copy[n + 1] = ']';
    enum rp_code code = rp_input_open_memory("lines", copy, n + 2, NULL, &list, r->err);
    if (code == RP_OK)
        code = rp_json_open(list, &options, &r->json, r->err);
    if (code == RP_OK)
        code = read_lines(r);
    rp_json_close(r->json);
    rp_input_close(list);
    free(copy);
    return code;
}

/* ------------------------------------------------------------------ times and ranks */

RP_ORDER(by_comm, struct inspected, RP_UP(comm), RP_UP(rank), RP_UP(p2p), RP_UP(sn), RP_UP(line))

/* Finds the ranks of the process in its largest communicator; if there is one, all lines belong to
   it. */
static enum rp_code find_ranks(struct inspector *r, int64_t *only)
{
    bool several = false;

    *only = -1;
    for (size_t i = 0; i < r->all.n; i++)
        if (r->all.at[i].comm == r->widest) {
            several |= *only >= 0 && *only != r->all.at[i].rank;
            *only = r->all.at[i].rank;
        }
    for (size_t i = 0; i < r->all.n; i++) {
        const struct inspected *x = &r->all.at[i];

        if (x->comm != r->widest)
            continue;
        RP_TRY(rp_activity_process(r->a, (uint64_t)x->rank + 1, x->rank, 0, r->err));
        RP_TRY(rp_activity_set_rank(r->a, (uint64_t)x->rank + 1, x->rank, r->world, r->err));
        RP_TRY(rp_activity_add_rank(r->a, (uint64_t)x->rank + 1, x->rank, r->err));
    }
    *only = several ? -1 : *only;
    return rp_activity_order_ranks(r->a, r->err);
}

static enum rp_code add_line(struct inspector *r, const struct inspected *x, int64_t only)
{
    struct rp_activity_event e = {.kind = RP_ACTIVITY_KERNEL,
                                  .process = (uint64_t)(only >= 0 ? only : x->rank) + 1,
                                  .device = only >= 0 ? only : x->rank,
                                  .track = x->comm,
                                  .begin_ns = x->begin_ns,
                                  .end_ns = x->end_ns};
    const char *func = rp_builder_borrow_str(r->a->t.builder, x->func, NULL);
    char name[80];

    if (only < 0 && x->comm != r->widest) {
        r->elsewhere++;
        return RP_OK;
    }
    snprintf(name, sizeof name, "nccl %.60s", func);
    RP_TRY(rp_activity_intern(r->a, name, strlen(name), &e.name, r->err));
    RP_TRY(rp_activity_text(r->a, &e, "Collective name", x->func, r->err));
    RP_TRY(rp_activity_text(r->a, &e, "Process Group Name", x->comm, r->err));
    if (x->nranks > 0)
        RP_TRY(rp_activity_int(r->a, &e, "Group size", x->nranks, r->err));
    if (x->sn >= 0)
        RP_TRY(rp_activity_int(r->a, &e, "Seq", x->sn, r->err));
    if (x->bytes >= 0)
        RP_TRY(rp_activity_int(r->a, &e, "Message size [bytes]", x->bytes, r->err));
    if (x->peer >= 0)
        RP_TRY(rp_activity_int(r->a, &e, "peer", x->peer, r->err));
    RP_TRY(rp_activity_int(r->a, &e, "exec time (us)", x->exec_ns / 1000, r->err));
    return rp_activity_add(r->a, &e, r->err);
}

static enum rp_code warn_lines(struct inspector *r, uint64_t n, const char *what)
{
    return n ? rp_builder_warn(r->a->t.builder, r->err, "%llu %s", (unsigned long long)n, what)
             : RP_OK;
}

static enum rp_code add_lines(struct inspector *r)
{
    int64_t only;

    if (!r->all.n)
        return rp_err_set(r->err, RP_FORMAT, "no collective in the file");

    /* Goes through lines without times from the last one of a communicator to the first: each ends
       when it was written, or when the next one began. */
    rp_sort(r->all.at, r->all.n, sizeof *r->all.at, by_comm);
    for (size_t i = r->all.n; i-- > 0;) {
        struct inspected *x = &r->all.at[i];
        const struct inspected *next = i + 1 < r->all.n ? x + 1 : NULL;

        if (x->timed)
            continue;
        x->end_ns = x->dump_ns;
        if (next && next->comm == x->comm && next->rank == x->rank && next->begin_ns < x->end_ns)
            x->end_ns = next->begin_ns;
        x->begin_ns = x->end_ns - x->exec_ns;
        r->untimed++;
    }
    RP_TRY(find_ranks(r, &only));

    /* Notes where the process ran, in the form that facts look for (facts/host/trace_host.h). */
    struct rp_emit e;
    size_t n;
    if (r->host != RP_NONE) {
        const char *host = rp_builder_borrow_str(r->a->t.builder, r->host, &n);
        RP_TRY(rp_emit_open_memory(&e, r->err));
        rp_emit_escaped(&e, RP_IN_JSON, host, n);
        enum rp_code code = rp_proto_trace_meta(&r->a->t, "hostname", &e, r->err);
        rp_emit_abandon(&e);
        RP_TRY(code);
    }
    for (size_t i = 0; i < r->all.n; i++)
        RP_TRY(add_line(r, &r->all.at[i], only));
    r->a->t.trace->has_base = 1; /* the times count since 1970 */
    RP_TRY(warn_lines(r, r->untimed,
                      "collectives have no times, only how long they took and when they were "
                      "written: they are shown as late as that allows, and gaps and waits between "
                      "them mean nothing. Record with NCCL_INSPECTOR_DUMP_VERBOSE=1"));
    RP_TRY(warn_lines(r, r->elsewhere,
                      "lines were ignored: the process has several ranks, and which of them a "
                      "smaller communicator belongs to is not in the file"));
    return warn_lines(r, r->strange, "lines without a rank, an operation or a time were ignored");
}

static enum rp_code read_inspector(struct rp_input *in, const struct rp_read_options *options,
                                   struct rp_import *to, struct rp_err *err)
{
    struct inspector r = {.a = calloc(1, sizeof *r.a), .host = RP_NONE, .err = err};
    int64_t begin_ns = rp_clock_ns();

    RP_TRY(rp_err_need(r.a, err, "reading a trace"));
    enum rp_code code = rp_activity_init(r.a, in, options, "nccl-inspector", err);
    if (code == RP_OK)
        code = read_text(&r);
    if (code == RP_OK)
        code = add_lines(&r);
    if (code == RP_OK)
        code = rp_activity_finish(r.a, to, begin_ns, err);
    rp_vec_release(&r.all);
    rp_activity_release(r.a);
    free(r.a);
    return code;
}

static enum rp_sniff sniff_inspector(const uint8_t *head, size_t n, const char *file)
{
    size_t at = rp_sniff_space(head, n, 0);

    (void)file;
    if (at == n || head[at] != '{' || !memmem(head, n, "\"inspector_output_format_version\"", 33))
        return RP_SNIFF_NO;
    return memmem(head, n, "\"coll_perf\"", 11) || memmem(head, n, "\"p2p_perf\"", 10)
               ? RP_SNIFF_CERTAIN
               : RP_SNIFF_NO;
}

const struct rp_format rp_format_nccl_inspector = {
    .name = "nccl-inspector",
    .summary = "collectives of a process, as NCCL Inspector writes them, one a line",
    .files = "*.log, *.jsonl",
    .written_by = "libnccl-profiler-inspector.so",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_inspector,
    .read = read_inspector,
};
