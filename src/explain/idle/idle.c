/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaps added up by cause and class. The evidence of a row is what was met in most of its time: the
 * host span of late launches, the work before the gap where the device waited.
 */
#include "explain/idle/idle.h"

#include "base/hash.h"
#include "explain/short_name.h"

#include <stdio.h>
#include <stdlib.h>

#define ROWS (RP_GAP_CAUSES * RP_GAP_CLASSES)

struct adder {
    const struct rp_trace *t;
    const struct rp_work *w;
    struct rp_arena *arena;
    struct rp_idle_rank *out;
    struct rp_idle_cause rows[ROWS];
    struct rp_map seen; /* (row, name) -> index into weight */
    RP_VEC(struct {
        uint32_t row;
        rp_str name;
        int64_t ns;
    })
    weight;
    bool failed;
};

/* What a gap is blamed on: a name, or 0. */
static rp_str blamed(const struct adder *a, const struct rp_gap *gap)
{
    if (gap->cause == RP_GAP_EVENT_WAIT || gap->cause == RP_GAP_COPY)
        return a->t->ev.name[a->w->items.at[gap->before].event];
    if (gap->cause == RP_GAP_UNRECORDED)
        return a->t->ev.name[a->w->items.at[gap->after].event];
    return gap->host == RP_NONE ? 0 : a->t->ev.name[gap->host];
}

static enum rp_code add_gap(struct adder *a, const struct rp_gap *gap, struct rp_err *err)
{
    uint32_t row = gap->cause * RP_GAP_CLASSES + gap->cls, fresh = (uint32_t)a->weight.n, at;
    int64_t length = rp_ns_between(gap->begin_ns, gap->end_ns);
    rp_str name = blamed(a, gap);

    a->rows[row].count++;
    a->rows[row].total_ns = rp_ns_sum(a->rows[row].total_ns, length);
    if (length > a->rows[row].longest_ns)
        a->rows[row].longest_ns = length;
    RP_TRY(rp_map_intern(&a->seen, (uint64_t)row << 32 | name, fresh, &at, err));
    if (at == fresh) {
        RP_TRY(rp_vec_reserve(&a->weight, 1, err));
        a->weight.at[at].row = row;
        a->weight.at[at].name = name;
        a->weight.at[at].ns = 0;
        a->weight.n++;
    }
    a->weight.at[at].ns = rp_ns_sum(a->weight.at[at].ns, length);
    return RP_OK;
}

static const char *kept(struct adder *a, const char *made)
{
    a->failed |= !made;
    return made;
}

static const char *text(struct adder *a, rp_str s)
{
    return kept(a, rp_arena_copy(a->arena, rp_trace_str(a->t, s), rp_trace_str_len(a->t, s)));
}

/* The name with most of a row's time. Nothing recorded is an answer only where it is most. */
static size_t heaviest(const struct adder *a, uint32_t row)
{
    size_t i, best = SIZE_MAX;

    for (i = 0; i < a->weight.n; i++) {
        if (a->weight.at[i].row != row ||
            (!a->weight.at[i].name && a->weight.at[i].ns < a->rows[row].total_ns / 2))
            continue;
        if (best == SIZE_MAX || a->weight.at[i].ns > a->weight.at[best].ns)
            best = i;
    }
    return best;
}

/* Names of over 60 letters are cut in the middle: evidence stands inside a sentence. */
static void cut(char *label)
{
    size_t len = strlen(label);

    if (len > 60) {
        memmove(label + 44, label + len - 14, 15);
        memcpy(label + 41, "\xe2\x80\xa6", 3); /* an ellipsis */
    }
}

/* "cudaStreamSynchronize (83 % of it)" */
static const char *evidence(struct adder *a, uint32_t row)
{
    const char *name = "nothing recorded on the thread";
    size_t best = heaviest(a, row);
    char label[160];

    if (best == SIZE_MAX)
        return NULL;
    if (a->weight.at[best].name) {
        rp_short_name(rp_trace_str(a->t, a->weight.at[best].name), label, sizeof label);
        cut(label);
        name = label;
    }
    return kept(
        a, rp_arena_printf(a->arena, "%s (%.0f %% of it)", name,
                           100.0 * (double)a->weight.at[best].ns / (double)a->rows[row].total_ns));
}

static int by_total(const void *pa, const void *pb)
{
    const struct rp_idle_cause *a = pa, *b = pb;

    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->cause, b->cause);
}

static void fill_causes(struct adder *a)
{
    struct rp_idle_rank *out = a->out;
    int64_t unknown = 0;
    uint32_t row;

    out->causes = RP_ARENA_NEW(a->arena, struct rp_idle_cause, ROWS);
    a->failed |= !out->causes;
    for (row = 0; row < ROWS && !a->failed; row++) {
        struct rp_idle_cause *c = &a->rows[row];

        if (!c->count)
            continue;
        c->cause = rp_gap_cause_names[row / RP_GAP_CLASSES];
        c->meaning = rp_gap_cause_docs[row / RP_GAP_CLASSES];
        c->cls = rp_gap_class_names[row % RP_GAP_CLASSES];
        c->evidence = evidence(a, row);
        c->share = out->idle_ns > 0 ? (double)c->total_ns / (double)out->idle_ns : 0;
        rp_ns_add(&unknown, row / RP_GAP_CLASSES == RP_GAP_UNKNOWN ? c->total_ns : 0);
        out->gap_count += c->count;
        out->causes[out->ncauses++] = *c;
    }
    if (out->ncauses)
        qsort(out->causes, out->ncauses, sizeof *out->causes, by_total);
    out->explained_share = out->idle_ns > 0 ? 1 - (double)unknown / (double)out->idle_ns : 1;
}

static int by_length(const void *pa, const void *pb)
{
    const struct rp_gap *a = pa, *b = pb;
    int64_t x = rp_ns_between(a->begin_ns, a->end_ns), y = rp_ns_between(b->begin_ns, b->end_ns);

    if (x != y)
        return x > y ? -1 : 1;
    return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

static const char *thread_of(struct adder *a, const struct rp_gap *gap)
{
    rp_event launch = a->w->items.at[gap->after].launch;
    const struct rp_track_info *track;

    if (launch == RP_NONE)
        return NULL;
    track = &a->t->tracks[a->t->ev.track[launch]];
    if (track->text)
        return text(a, track->text);
    return kept(a, rp_arena_printf(a->arena, "%lld", (long long)track->native_id));
}

static void fill_gap(struct adder *a, const struct rp_gap *gap, struct rp_idle_gap *out)
{
    const struct rp_work_item *items = a->w->items.at;
    rp_str after = a->t->ev.name[items[gap->after].event];
    char label[160];

    rp_short_name(rp_trace_str(a->t, after), label, sizeof label);
    *out = (struct rp_idle_gap){.begin_ns = gap->begin_ns,
                                .dur_ns = rp_ns_between(gap->begin_ns, gap->end_ns),
                                .cause = rp_gap_cause_names[gap->cause],
                                .cls = rp_gap_class_names[gap->cls],
                                .before = text(a, a->t->ev.name[items[gap->before].event]),
                                .after = text(a, after),
                                .thread = thread_of(a, gap),
                                .after_label = kept(a, rp_arena_strdup(a->arena, label))};
    if (gap->host != RP_NONE)
        out->host = text(a, a->t->ev.name[gap->host]);
}

/* The longest gaps; puts the list out of order. */
static void fill_gaps(struct adder *a, rp_gap_vec *gaps, size_t limit)
{
    size_t i, n = gaps->n < limit ? gaps->n : limit;

    a->out->gaps = RP_ARENA_NEW(a->arena, struct rp_idle_gap, n + 1);
    a->failed |= !a->out->gaps;
    if (gaps->n)
        qsort(gaps->at, gaps->n, sizeof *gaps->at, by_length);
    for (i = 0; i < n && !a->failed; i++)
        fill_gap(a, &gaps->at[i], &a->out->gaps[a->out->ngaps++]);
}

static enum rp_code add_window(struct adder *a, struct rp_err *err)
{
    struct rp_work_unions u;
    enum rp_code code = rp_work_unite(a->w, &u, err);
    struct rp_breakdown b = rp_work_breakdown(&u);

    a->out->window_ns = b.window_ns;
    a->out->busy_ns = b.busy_ns;
    a->out->idle_ns = b.idle_ns;
    a->out->idle_share = b.window_ns > 0 ? (double)b.idle_ns / (double)b.window_ns : 0;
    rp_work_unions_release(&u);
    return code;
}

enum rp_code rp_idle_fill(const struct rp_work *work, rp_gap_vec *gaps, size_t limit,
                          struct rp_arena *arena, struct rp_idle_rank *out, struct rp_err *err)
{
    struct adder a = {.t = work->trace, .w = work, .arena = arena, .out = out};
    enum rp_code code;
    size_t i;

    rp_map_init(&a.seen);
    code = add_window(&a, err);
    for (i = 0; i < gaps->n && code == RP_OK; i++)
        code = add_gap(&a, &gaps->at[i], err);
    if (code == RP_OK) {
        fill_causes(&a);
        fill_gaps(&a, gaps, limit);
    }
    rp_map_release(&a.seen);
    rp_vec_release(&a.weight);
    return code == RP_OK && a.failed ? rp_err_nomem(err, "explaining idle time") : code;
}

enum rp_code rp_idle_rank(const struct rp_trace *trace, const struct rp_scope *scope, size_t limit,
                          struct rp_arena *arena, struct rp_idle_rank *out, struct rp_err *err)
{
    rp_gap_vec gaps = {0};
    struct rp_work w;
    enum rp_code code = rp_work_init(&w, trace, scope, err);

    if (code == RP_OK)
        code = rp_gaps_find(&w, &gaps, err);
    if (code == RP_OK)
        code = rp_idle_fill(&w, &gaps, limit, arena, out, err);
    rp_vec_release(&gaps);
    rp_work_release(&w);
    return code;
}
