/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that TraceLens' TraceFusion made of the files of all ranks: every event has its rank and
 * the ids it had before as arguments (rank, pid_raw, correlation_raw, id_raw), and its own ids are
 * made different by adding a multiple of 10^8 for each rank. Ids of text ("Traces") are shared by
 * all ranks. Here each rank gets processes of its own, and metadata says which process belongs to
 * which rank (trace/merged.h), as if we had joined the files, so that all questions see ranks.
 */
#include "base/order.h"
#include "formats/chrome/chrome.h"
#include "io/emit.h"
#include "trace/merged.h"

#include <stdlib.h>

#define PIDS       1000 /* processes of a rank */
#define RANKS      1000000
#define FUSED_STEP 100000000 /* difference between the pids of two ranks in the file */

void rp_chrome_note_key(struct rp_chrome *r, const struct rp_json_token *token, rp_str str)
{
    if (rp_json_key_is(token, "rank"))
        r->fused.rank = str;
    else if (rp_json_key_is(token, "pid_raw"))
        r->fused.pid_raw = str;
    else if (rp_json_key_is(token, "id_raw"))
        r->fused.id_raw = str;
    else if (rp_json_key_is(token, "correlation_raw"))
        r->fused.correlation_raw = str;
}

static const struct rp_arg *find_arg(const struct rp_chrome *r, uint32_t n, rp_str key)
{
    for (uint32_t i = n; key && i > 0; i--)
        if (r->args.at[i - 1].key == key)
            return &r->args.at[i - 1];
    return NULL;
}

/* Finds the rank of an event and the process it had. Names of processes are added without a
   rank. */
static bool find_owner(const struct rp_chrome *r, const struct rp_chrome_event *e,
                       struct rp_chrome_fused_process *out)
{
    const struct rp_arg *rank = find_arg(r, e->args.n, r->fused.rank);
    const struct rp_arg *raw = find_arg(r, e->args.n, r->fused.pid_raw);

    *out = (struct rp_chrome_fused_process){0};
    if (rank && raw && rank->type == RP_ARG_I64 && rank->v.i >= 0 && rank->v.i < RANKS) {
        out->rank = rank->v.i;
        out->number = raw->type == RP_ARG_I64 ? raw->v.i : 0;
        return raw->type == RP_ARG_I64;
    }
    if (e->phase != 'M' || e->pid.text || e->pid.number < 0 ||
        e->pid.number >= (int64_t)RANKS * FUSED_STEP)
        return false;
    out->rank = e->pid.number / FUSED_STEP;
    out->number = e->pid.number % FUSED_STEP;
    return true;
}

static enum rp_code number_process(struct rp_chrome *r, struct rp_chrome_fused_process *p,
                                   struct rp_err *err)
{
    uint64_t key = rp_hash_join((uint64_t)p->rank, (uint64_t)p->number);
    uint32_t at, n;

    RP_TRY(rp_map_intern(&r->fused.process_of, key, (uint32_t)r->fused.processes.n, &at, err));
    if (at < r->fused.processes.n) {
        p->k = r->fused.processes.at[at].k;
        return RP_OK;
    }
    n = rp_map_get(&r->fused.count_of, (uint64_t)p->rank);
    p->k = n == RP_MAP_NONE ? 0 : n;
    RP_TRY(rp_map_put(&r->fused.count_of, (uint64_t)p->rank, p->k + 1, err));
    if (p->k >= PIDS)
        return rp_err_set(err, RP_LIMIT, "rank %lld has more than %d processes", (long long)p->rank,
                          PIDS);
    return rp_vec_push(&r->fused.processes, *p, err);
}

enum rp_code rp_chrome_unfuse(struct rp_chrome *r, struct rp_chrome_event *e, struct rp_err *err)
{
    const struct rp_arg *id = find_arg(r, e->args.n, r->fused.id_raw);
    const struct rp_arg *correlation = find_arg(r, e->args.n, r->fused.correlation_raw);
    struct rp_chrome_fused_process p;

    if (!find_owner(r, e, &p))
        return RP_OK;
    RP_TRY(number_process(r, &p, err));
    e->pid = (struct rp_chrome_ident){.number = p.rank * PIDS + p.k, .given = true};
    if (id && id->type == RP_ARG_I64 && e->id.given && !e->id.text)
        e->id.number = p.rank * RP_MERGED_ID_STEP + id->v.i % RP_MERGED_ID_STEP;
    if (correlation && correlation->type == RP_ARG_I64 && e->args.has_correlation &&
        !e->args.correlation_is_text)
        e->args.correlation = p.rank * RP_MERGED_ID_STEP + correlation->v.i % RP_MERGED_ID_STEP;
    return RP_OK;
}

/* ------------------------------------------------------------------ the record of the ranks */

RP_ORDER(by_rank, struct rp_chrome_fused_process, RP_UP(rank), RP_UP(k))

static void put_rank(struct rp_chrome *r, struct rp_emit *e, size_t from, size_t end)
{
    const struct rp_chrome_fused_process *p = r->fused.processes.at;
    int64_t rank = p[from].rank;

    rp_emit_text(e, from ? ",{\"rank\":" : "[{\"rank\":");
    rp_emit_i64(e, rank);
    rp_emit_text(e, ",\"world_size\":");
    rp_emit_i64(e, (int64_t)r->fused.count_of.n);
    rp_emit_text(e, ",\"label\":\"rank ");
    rp_emit_i64(e, rank);
    rp_emit_text(e, "\",\"first_pid\":");
    rp_emit_i64(e, rank * PIDS);
    rp_emit_text(e, ",\"pids\":[");
    for (size_t i = from; i < end; i++) {
        if (i > from)
            rp_emit_char(e, ',');
        rp_emit_i64(e, p[i].number);
    }
    rp_emit_text(e, "]}");
}

enum rp_code rp_chrome_end_fused(struct rp_chrome *r, struct rp_err *err)
{
    size_t n = r->fused.processes.n, end;
    struct rp_emit e;
    rp_str key, value;

    if (r->fused.count_of.n < 2) /* one rank is no join */
        return RP_OK;
    RP_TRY(rp_emit_open_memory(&e, err));
    qsort(r->fused.processes.at, n, sizeof *r->fused.processes.at, by_rank);
    for (size_t i = 0; i < n; i = end) {
        for (end = i + 1;
             end < n && r->fused.processes.at[end].rank == r->fused.processes.at[i].rank; end++)
            ;
        put_rank(r, &e, i, end);
    }
    rp_emit_char(&e, ']');
    enum rp_code code = e.failure.code == RP_OK
                            ? rp_chrome_intern(r, RP_MERGED_KEY, strlen(RP_MERGED_KEY), &key, err)
                            : rp_err_nomem(err, "joining ranks");
    if (code == RP_OK)
        code = rp_chrome_intern(r, e.buffer, rp_emit_length(&e), &value, err);
    rp_emit_abandon(&e);
    return code == RP_OK ? rp_builder_add_meta(r->builder, key, value, true, err) : code;
}
