/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A begin and its end become one event, on a thread (phases B and E) or along an async chain (b and
 * e, S and F, joined by category and id). Events are processed in time order, those of equal time
 * in the order of the file; open begins are on a stack. An end closes the last open begin or, if it
 * has a name, the last one of that name; begins above it on the stack have no end. The search for a
 * name stops after NAME_DEPTH entries, which bounds the cost of an event.
 *
 * The begin keeps its row and origin and gets the duration; the row of the end is removed (its
 * track becomes RP_NONE). The pair has the arguments of the begin, then those of the end with other
 * keys.
 */
#include "base/decides.h"
#include "base/each.h"
#include "trace/build/state.h"
#include "trace/finish/finish.h"

#define NAME_DEPTH 256
RP_LIMIT(
    NAME_DEPTH, "open begins",
    "an end that names one farther down closes the last one: the pairs are reported as unclosed");
#define KEYS_COMPARED 1024
RP_LIMIT(KEYS_COMPARED, "arguments of a begin",
         "if an end has more, an argument that both have is there twice");

enum role { NEITHER, BEGIN, END };

static enum role role_of(char phase, bool async)
{
    if (async)
        return phase == 'b' || phase == 'S' ? BEGIN : phase == 'e' || phase == 'F' ? END : NEITHER;
    return phase == 'B' ? BEGIN : phase == 'E' ? END : NEITHER;
}

struct pairing {
    struct rp_builder *b;
    bool async;
    rp_row_vec group; /* by event: its track or chain, or RP_NONE */
    rp_row_vec perm, begin;
    struct rp_sort_scratch scratch;
    RP_VEC(uint32_t) stack;
    RP_VEC(struct rp_arg) args;
};

static void release_pairing(struct pairing *w)
{
    RP_EACH(rp_vec_release, &w->group, &w->perm, &w->begin);
    rp_sort_scratch_release(&w->scratch);
    RP_EACH(rp_vec_release, &w->stack, &w->args);
}

static void leave_open(struct pairing *w, uint32_t i)
{
    w->b->ev.flags.at[i] |= RP_EVENT_UNENDED;
    w->b->ev.dur_ns.at[i] = RP_OPEN_NS;
    w->b->trace->health.unended++;
}

static void leave_unbegun(struct pairing *w, uint32_t i)
{
    w->b->ev.flags.at[i] |= RP_EVENT_NO_BEGIN;
    w->b->ev.dur_ns.at[i] = RP_OPEN_NS;
    w->b->trace->health.unbegun++;
}

/* Only begins and ends with a time and a group can be paired. */
static enum rp_code find_groups(struct pairing *w, uint32_t *count, struct rp_err *err)
{
    struct rp_build_events *ev = &w->b->ev;
    uint32_t i;

    *count = 0;
    for (i = 0; i < w->b->origins.n && !role_of(w->b->origins.at[i].phase, w->async); i++)
        ;
    if (i == w->b->origins.n)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&w->group, (size_t)ev->n + 1, err));
    for (i = 0; i < ev->n; i++) {
        enum role role = role_of(rp_build_origin_of(w->b, i)->phase, w->async);
        uint32_t group = w->async ? ev->link.at[i] : ev->track.at[i];

        w->group.at[i] = RP_NONE;
        if (role == NEITHER)
            continue;
        if (w->async && !(ev->flags.at[i] & RP_EVENT_ASYNC)) { /* the file has no id */
            ev->flags.at[i] = (ev->flags.at[i] | RP_EVENT_ASYNC) & (uint8_t)~RP_EVENT_ID_TEXT;
            ev->link.at[i] = group = RP_NONE;
        }
        if (group != RP_NONE && ev->ts_ns.at[i] != RP_NO_TS) {
            w->group.at[i] = group;
            ++*count;
        } else if (role == BEGIN) {
            leave_open(w, i);
        } else {
            leave_unbegun(w, i);
        }
    }
    return RP_OK;
}

static enum rp_code collect_args(struct pairing *w, uint32_t i, struct rp_err *err)
{
    const struct rp_args *args = &w->b->trace->args;
    uint16_t shape = w->b->ev.shape.at[i];
    uint32_t row = w->b->ev.arg_row.at[i], n = rp_args_count(args, shape, row), k;
    size_t have = w->args.n < KEYS_COMPARED ? w->args.n : KEYS_COMPARED, j;

    for (k = 0; k < n; k++) {
        struct rp_arg arg = rp_args_at(args, shape, row, k);

        for (j = 0; j < have && w->args.at[j].key != arg.key; j++)
            ;
        if (j == have)
            RP_TRY(rp_vec_push(&w->args, arg, err));
    }
    return RP_OK;
}

static enum rp_code join_args(struct pairing *w, uint32_t begin, uint32_t end, struct rp_err *err)
{
    struct rp_build_events *ev = &w->b->ev;

    if (ev->shape.at[end] == 0)
        return RP_OK;
    w->args.n = 0;
    RP_TRY(collect_args(w, begin, err));
    RP_TRY(collect_args(w, end, err));
    ev->shape.at[begin] = RP_SHAPE_SPILLED;
    RP_TRY(rp_build_args_row(&w->b->args, RP_SHAPE_SPILLED, w->args.at, (uint32_t)w->args.n,
                             &ev->arg_row.at[begin], err));
    rp_build_args_show_spilled(w->b);
    return RP_OK;
}

static enum rp_code join_pair(struct pairing *w, uint32_t begin, uint32_t end, struct rp_err *err)
{
    struct rp_build_events *ev = &w->b->ev;
    int64_t dur;

    if (__builtin_sub_overflow(ev->ts_ns.at[end], ev->ts_ns.at[begin], &dur))
        dur = INT64_MAX;
    ev->dur_ns.at[begin] = dur;
    ev->flags.at[begin] |= RP_EVENT_PAIR;
    ev->flags.at[begin] |= ev->flags.at[end] & RP_EVENT_ROUNDED;
    if (ev->link.at[begin] == RP_NONE) {
        ev->link.at[begin] = ev->link.at[end];
        ev->flags.at[begin] |= ev->flags.at[end] & RP_EVENT_ID_TEXT;
    }
    ev->track.at[end] = RP_NONE;
    return join_args(w, begin, end, err);
}

/* The position of the begin of this end on the stack, or SIZE_MAX. */
static size_t find_begin(const struct pairing *w, uint32_t end)
{
    const uint32_t *name = w->b->ev.name.at;
    size_t n = w->stack.n, i;

    if (n == 0 || name[end] == 0)
        return n ? n - 1 : SIZE_MAX;
    for (i = n; i-- > 0 && n - i <= NAME_DEPTH;)
        if (name[w->stack.at[i]] == name[end])
            return i;
    return SIZE_MAX;
}

static enum rp_code pair_group(struct pairing *w, const uint32_t *rows, size_t n,
                               struct rp_err *err)
{
    w->stack.n = 0;
    for (size_t i = 0; i < n; i++) {
        if (role_of(rp_build_origin_of(w->b, rows[i])->phase, w->async) == BEGIN) {
            RP_TRY(rp_vec_push(&w->stack, rows[i], err));
            continue;
        }
        size_t at = find_begin(w, rows[i]);
        if (at == SIZE_MAX) {
            leave_unbegun(w, rows[i]);
            continue;
        }
        while (w->stack.n > at + 1)
            leave_open(w, w->stack.at[--w->stack.n]);
        RP_TRY(join_pair(w, w->stack.at[--w->stack.n], rows[i], err));
    }
    while (w->stack.n)
        leave_open(w, w->stack.at[--w->stack.n]);
    return RP_OK;
}

static enum rp_code pair_all(struct pairing *w, struct rp_err *err)
{
    uint32_t ngroups = (uint32_t)(w->async ? w->b->links.native_id.n : w->b->tracks.n), g, count;
    struct rp_sort_keys keys = {.n = w->b->ev.n, .ntracks = ngroups, .ts_ns = w->b->ev.ts_ns.at};

    RP_TRY(find_groups(w, &count, err));
    if (count == 0)
        return RP_OK;
    keys.track = w->group.at;
    RP_TRY(rp_index_sort(&keys, &w->perm, &w->begin, &w->scratch, err));
    for (g = 0; g < ngroups; g++)
        RP_TRY(
            pair_group(w, w->perm.at + w->begin.at[g], w->begin.at[g + 1] - w->begin.at[g], err));
    return RP_OK;
}

enum rp_code rp_pass_pairs(struct rp_builder *b, struct rp_err *err)
{
    enum rp_code code = RP_OK;

    for (int async = 0; code == RP_OK && async < 2; async++) {
        struct pairing w = {.b = b, .async = async};

        code = pair_all(&w, err);
        release_pairing(&w);
    }
    return code;
}
