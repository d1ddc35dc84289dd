/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the launches of each rank by call, kernel, stream or one by one, and the samples of all
 * ranks side by side by name, sorted once for each of the three times.
 */
#include "explain/launches/launches.h"

#include "base/decides.h"
#include "base/strtab.h"
#include "dataset/question.h"
#include "explain/short_name.h"
#include "facts/host/outside.h"
#include "facts/work/launches.h"
#include "result/part.h"
#include "result/print_units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ what is kept and shown */

#define TIME(member, doc) RP_FIELD(struct rp_launch_times, member, I64, NS, NULL, doc, 0)

static const struct rp_field times_fields[] = {
    TIME(total_ns, "sum"), TIME(p50_ns, "median, by nearest rank"),
    TIME(p90_ns, "90th percentile, by nearest rank"), TIME(max_ns, "the largest"), RP_FIELD_END};
static const struct rp_type times_type = {"times", sizeof(struct rp_launch_times), times_fields,
                                          NULL};

#define THREE_TIMES(s)                                                                            \
    RP_FIELD_RECORD(s, call, &times_type, NULL, "the host's calls", 0),                           \
        RP_FIELD_RECORD(s, device, &times_type, NULL, "the work they started", 0),                \
        RP_FIELD_RECORD(                                                                          \
            s, delay, &times_type, NULL,                                                          \
            "time from the end of the call to the start of the work; 0 if it starts earlier", 0), \
        RP_FIELD(s, short_count, I64, COUNT, NULL,                                                \
                 "work shorter than its call, which took at most 50 µs", 0),                      \
        RP_FIELD(s, slow_call_count, I64, COUNT, NULL, "calls over 50 µs", 0),                    \
        RP_FIELD(s, late_count, I64, COUNT, NULL, "delays over 100 µs", 0)

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launch_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL, "what the row is about", 0),
    ROW(label, STR, NONE, "name", "shortened", RP_SCREEN | RP_SHORTEN | RP_LABEL),
    ROW(count, I64, COUNT, "count", "launches", 0),
    ROW(items, I64, COUNT, NULL, "kernels, copies and memsets that they started", 0),
    ROW(kernels, I64, COUNT, "kernels", "text output only", RP_SCREEN | RP_NULLABLE),
    ROW(call_p50_ns, I64, NS, "call", "text output only", RP_SCREEN),
    ROW(delay_p50_ns, I64, NS, "delay", "text output only", RP_SCREEN),
    ROW(delay_p90_ns, I64, NS, "p90", "text output only", RP_SCREEN),
    ROW(delay_max_ns, I64, NS, "max", "text output only", RP_SCREEN),
    ROW(device_p50_ns, I64, NS, "work", "text output only", RP_SCREEN),
    THREE_TIMES(struct rp_launch_row),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_launch_row), row_fields, NULL};

#define QUEUE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launch_queue, member, type, unit, title, doc, flags)

static const struct rp_field queue_fields[] = {
    QUEUE(rank, I64, NONE, "rank", "rank", 0),
    QUEUE(stream, STR, NONE, "stream", "which stream", 0),
    QUEUE(launches, I64, COUNT, "launches", "launches to the stream", 0),
    QUEUE(samples, I64, COUNT, NULL, "lengths: one after every launch and every start", 0),
    QUEUE(mean, F64, NONE, NULL, "mean of the lengths", 0),
    QUEUE(std, F64, NONE, NULL, "their standard deviation, of a sample", 0),
    QUEUE(p50, I64, COUNT, "p50", "median of the lengths, by nearest rank", 0),
    QUEUE(max, I64, COUNT, "max", "the longest", RP_LARGEST),
    QUEUE(time_mean, F64, NONE, NULL, "mean length, weighted by time", 0),
    QUEUE(full_ns, I64, NS, "full for", "time with 1,024 launches or more", RP_LARGEST),
    RP_FIELD_END};
static const struct rp_type queue_type = {"queue", sizeof(struct rp_launch_queue), queue_fields,
                                          NULL};

#define COPY(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launch_copy, member, type, unit, title, doc, flags)

static const struct rp_field copy_fields[] = {
    COPY(rank, I64, NONE, "rank", "rank", 0),
    COPY(kind, STR, NONE, "kind", "direction", 0),
    COPY(count, I64, COUNT, "count", "number of copies", 0),
    COPY(size_bytes, I64, BYTES, "bytes", "total, where recorded", RP_NULLABLE),
    COPY(busy_ns, I64, NS, "time", "time during which at least one runs", 0),
    COPY(whole_bytes_per_s, F64, BPS, "rate", "bytes / time; null without either", 0),
    COPY(samples, I64, COUNT, NULL, "rates: one after every begin and end while copies run", 0),
    COPY(mean_bytes_per_s, F64, BPS, NULL, "mean of the rates", 0),
    COPY(min_bytes_per_s, F64, BPS, NULL, "the lowest", 0),
    COPY(p50_bytes_per_s, F64, BPS, "p50", "their median, by nearest rank", RP_WIDE),
    COPY(max_bytes_per_s, F64, BPS, "max", "the highest", 0),
    RP_FIELD_END};
static const struct rp_type copy_type = {"copy", sizeof(struct rp_launch_copy), copy_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_launches_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "launches", "text output only", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(launches, I64, COUNT, NULL, "calls that started device work; that of a graph is one", 0),
    ROOT(items, I64, COUNT, NULL, "kernels, copies and memsets that they started", 0),
    ROOT(graphs, I64, COUNT, NULL, "the launches that started several kernels", 0),
    ROOT(graph_items, I64, COUNT, NULL, "what those started", 0),
    ROOT(unlinked, I64, COUNT, NULL, "device work without a recorded launch", 0),
    THREE_TIMES(struct rp_launches_root),
    ROOT(row_count, I64, COUNT, NULL, "rows before the limit", 0),
    RP_FIELD_LIST(struct rp_launches_root, rows, &row_type, "medians of call, delay and work",
                  "the largest first", 0),
    RP_FIELD_LIST(struct rp_launches_root, queues, &queue_type, "launch queues",
                  "one row per stream and rank", 0),
    RP_FIELD_LIST(struct rp_launches_root, copies, &copy_type, "copies",
                  "one row per rank and kind of copy", 0),
    RP_FIELD_LIST(struct rp_launches_root, notes, &rp_type_string, "notes", "about the launches",
                  RP_SCREEN),
    RP_FIELD_END};

static const struct rp_type launches_type = {"launches", sizeof(struct rp_launches_root),
                                             root_fields, "rows"};

static const struct rp_field part_fields[] = {
    RP_PART_VEC(struct rp_launches_part, names, &rp_type_string),
    RP_PART_PLAIN_VEC(struct rp_launches_part, samples, struct rp_launch_sample),
    RP_PART_LIST(struct rp_launches_part, queues, &queue_type),
    RP_PART_LIST(struct rp_launches_part, copies, &copy_type),
    RP_PART_PLAIN(struct rp_launches_part, items),
    RP_PART_PLAIN(struct rp_launches_part, launched),
    RP_PART_TEXT(struct rp_launches_part, not_counted),
    RP_PART_END};
static const struct rp_type part_type = {"launches_part", sizeof(struct rp_launches_part),
                                         part_fields, NULL};

/* ------------------------------------------------------------------ one rank */

struct launch_grouping {
    const struct rp_trace *t;
    struct rp_work w;
    struct rp_queues q;
    struct rp_arena *arena;
    struct rp_launches_part *out;
    char by; /* the first letter of the word */
};

/* The name of a launch's group, as text in `buf` or in the trace. */
static const char *launch_name(const struct launch_grouping *g, const struct rp_launch *launch,
                               char *buf, size_t cap, size_t *len)
{
    const struct rp_work_item *x = &g->w.items.at[launch->item];
    bool one = launch->items == 1; /* kernels of a graph have no launch of their own */
    rp_str s = g->by == 'k' && one ? g->t->ev.name[x->event] : g->t->ev.name[launch->call];
    rp_link link = g->t->ev.link[launch->call];

    if (g->by == 'c' || g->by == 'k') {
        *len = rp_trace_str_len(g->t, s);
        return rp_trace_str(g->t, s);
    }
    if (g->by == 's')
        rp_work_stream_label(&g->w, x->stream, buf, cap);
    else
        snprintf(buf, cap, "%lld %.100s",
                 link == RP_NONE ? (long long)launch->call : (long long)g->t->links.native_id[link],
                 rp_trace_str(g->t, s));
    *len = strlen(buf);
    return buf;
}

static enum rp_code add_samples(struct launch_grouping *g, struct rp_strtab *names,
                                struct rp_err *err)
{
    char buf[160];
    size_t i, len;

    RP_TRY(rp_strtab_init(names, err));
    RP_TRY(rp_vec_reserve(&g->out->samples, g->q.list.n + 1, err));
    for (i = 0; i < g->q.list.n; i++) {
        const struct rp_launch *launch = &g->q.list.at[i];
        struct rp_launch_sample sample = {0, launch->items, launch->call_ns, launch->device_ns,
                                          launch->delay_ns};
        const char *name = launch_name(g, launch, buf, sizeof buf, &len);

        RP_TRY(rp_strtab_intern(names, name, len, &sample.name, err));
        RP_TRY(rp_vec_push(&g->out->samples, sample, err));
        g->out->launched += launch->items;
    }
    for (i = 0; i < names->n; i++) {
        uint32_t id = (uint32_t)i;

        RP_TRY(
            rp_vec_push(&g->out->names, rp_arena_text(g->arena, rp_strtab_borrow(names, id)), err));
    }
    return RP_OK;
}

static enum rp_code launches_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                  const struct rp_settings *settings, struct rp_rank_part *part,
                                  struct rp_err *err)
{
    struct rp_launches_part *out = part->data;
    struct launch_grouping g = {.t = loaded->trace,
                                .arena = &part->arena,
                                .out = out,
                                .by = rp_settings_text(settings, "by")[0]};
    struct rp_strtab names = {0};
    struct rp_scope steps = *scope;

    RP_TRY(rp_judged_scope(g.t, &steps, g.arena, &out->not_counted, err));
    enum rp_code code = rp_work_init(&g.w, g.t, &steps, err);
    if (code == RP_OK)
        code = rp_queues_init(&g.q, &g.w, err);
    if (code == RP_OK)
        code = add_samples(&g, &names, err);
    if (code == RP_OK)
        code = rp_launches_measure_queues(&g.w, &g.q, g.arena, out, err);
    if (code == RP_OK)
        code = rp_launches_measure_copies(&g.w, g.arena, out, err);
    out->items = (int64_t)g.w.items.n;
    rp_strtab_release(&names);
    rp_queues_release(&g.q);
    rp_work_release(&g.w);
    return code;
}

/* ------------------------------------------------------------------ all ranks */

#define SLOW_CALL_NS 50000
RP_FACT(SLOW_CALL_NS, "ns", "Holistic Trace Analysis counts so (runtime_cutoff)");
#define LATE_NS 100000
RP_FACT(LATE_NS, "ns", "Holistic Trace Analysis counts so (launch_delay_cutoff)");

struct launches_join {
    const struct rp_ranks *ranks;
    struct rp_arena *arena;
    struct rp_launches_root *out;
    struct rp_strtab names;
    struct rp_launch_sample *samples; /* of all ranks, by name */
    size_t nsamples;
    size_t *begin; /* by name */
    int64_t *scratch;
};

static const struct rp_launches_part *part_of(const struct launches_join *j, size_t r)
{
    return j->ranks->parts[r].data;
}

/* Puts the samples of all ranks next to each other, by name. */
static enum rp_code gather_samples(struct launches_join *j, struct rp_err *err)
{
    uint32_t **to = RP_ARENA_NEW(j->arena, uint32_t *, j->ranks->n + 1), g;
    size_t r, i, total = 0, *at;

    for (r = 0; to && r < j->ranks->n; r++) {
        const struct rp_launches_part *p = part_of(j, r);

        to[r] = RP_ARENA_NEW(j->arena, uint32_t, p->names.n + 1);
        RP_TRY(rp_err_need(to[r], err, "adding up launches"));
        for (i = 0; i < p->names.n; i++)
            RP_TRY(rp_strtab_intern(&j->names, p->names.at[i], strlen(p->names.at[i]), &to[r][i],
                                    err));
        total += p->samples.n;
    }
    j->begin = RP_ARENA_NEW(j->arena, size_t, j->names.n + 2);
    at = RP_ARENA_NEW(j->arena, size_t, j->names.n + 2);
    j->samples = RP_ARENA_NEW(j->arena, struct rp_launch_sample, total + 1);
    j->scratch = RP_ARENA_NEW(j->arena, int64_t, total + 1);
    RP_TRY(
        rp_err_need(to && j->begin && at && j->samples && j->scratch, err, "adding up launches"));
    for (r = 0; r < j->ranks->n; r++)
        for (i = 0; i < part_of(j, r)->samples.n; i++)
            j->begin[to[r][part_of(j, r)->samples.at[i].name] + 1]++;
    for (g = 0; g < j->names.n; g++)
        j->begin[g + 1] += j->begin[g];
    memcpy(at, j->begin, (j->names.n + 1) * sizeof *at);
    for (r = 0; r < j->ranks->n; r++)
        for (i = 0; i < part_of(j, r)->samples.n; i++) {
            const struct rp_launch_sample *s = &part_of(j, r)->samples.at[i];

            j->samples[at[to[r][s->name]]++] = *s;
        }
    j->nsamples = total;
    return RP_OK;
}

/* Computes one of the three times of samples; `offset` says which. */
static struct rp_launch_times times_of(struct launches_join *j, const struct rp_launch_sample *s,
                                       size_t n, size_t offset)
{
    struct rp_launch_times t = {0};

    for (size_t i = 0; i < n; i++) {
        memcpy(&j->scratch[i], (const char *)&s[i] + offset, sizeof *j->scratch);
        rp_ns_add(&t.total_ns, j->scratch[i]);
    }
    if (!n)
        return t;
    rp_ns_sort(j->scratch, n);
    t.p50_ns = rp_ns_percentile(j->scratch, n, 50);
    t.p90_ns = rp_ns_percentile(j->scratch, n, 90);
    t.max_ns = j->scratch[n - 1];
    return t;
}

static void fill_row(struct launches_join *j, const struct rp_launch_sample *s, size_t n,
                     struct rp_launch_row *row)
{
    row->count = (int64_t)n;
    row->call = times_of(j, s, n, offsetof(struct rp_launch_sample, call_ns));
    row->device = times_of(j, s, n, offsetof(struct rp_launch_sample, device_ns));
    row->delay = times_of(j, s, n, offsetof(struct rp_launch_sample, delay_ns));
    for (size_t i = 0; i < n; i++) {
        row->items += s[i].items;
        row->short_count += s[i].device_ns < s[i].call_ns && s[i].call_ns <= SLOW_CALL_NS;
        row->slow_call_count += s[i].call_ns > SLOW_CALL_NS;
        row->late_count += s[i].delay_ns > LATE_NS;
    }
    row->kernels = RP_ABSENT_I64;
    row->call_p50_ns = row->call.p50_ns;
    row->device_p50_ns = row->device.p50_ns;
    row->delay_p50_ns = row->delay.p50_ns;
    row->delay_p90_ns = row->delay.p90_ns;
    row->delay_max_ns = row->delay.max_ns;
}

static int64_t weight(const struct rp_launch_row *row, const char *sort)
{
    if (!strcmp(sort, "call"))
        return row->call.total_ns;
    if (!strcmp(sort, "device"))
        return row->device.total_ns;
    return strcmp(sort, "count") ? row->delay.total_ns : row->count;
}

static int by_weight(const void *pa, const void *pb, void *user)
{
    const struct rp_launch_row *a = pa, *b = pb;
    const char *const *sort = user;
    int64_t x = weight(a, *sort), y = weight(b, *sort);

    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Makes labels such that no two rows look the same. */
static void label_rows(struct rp_launches_root *out, struct rp_arena *arena)
{
    const char **names = RP_ARENA_NEW(arena, const char *, out->nrows + 1);
    const char **labels = RP_ARENA_NEW(arena, const char *, out->nrows + 1);

    if (!names || !labels)
        return;
    for (size_t i = 0; i < out->nrows; i++)
        names[i] = out->rows[i].name;
    rp_short_names(names, labels, out->nrows, arena);
    for (size_t i = 0; i < out->nrows; i++)
        out->rows[i].label = labels[i];
}

static enum rp_code make_rows(struct launches_join *j, const char *sort, int64_t limit,
                              struct rp_err *err)
{
    struct rp_launches_root *out = j->out;
    bool graphs = false;

    out->rows = RP_ARENA_NEW(j->arena, struct rp_launch_row, j->names.n + 1);
    RP_TRY(rp_err_need(out->rows, err, "adding up launches"));
    for (uint32_t g = 0; g < j->names.n; g++) {
        struct rp_launch_row *row = &out->rows[out->nrows];

        if (j->begin[g + 1] == j->begin[g])
            continue;
        fill_row(j, j->samples + j->begin[g], j->begin[g + 1] - j->begin[g], row);
        row->name = rp_arena_text(j->arena, rp_strtab_borrow(&j->names, g));
        out->nrows++;
    }
    out->row_count = (int64_t)out->nrows;
    for (size_t i = 0; i < out->nrows; i++)
        graphs = graphs || out->rows[i].items > out->rows[i].count;
    for (size_t i = 0; i < out->nrows && graphs; i++)
        out->rows[i].kernels = out->rows[i].items;
    if (out->nrows)
        qsort_r(out->rows, out->nrows, sizeof *out->rows, by_weight, &sort);
    if (limit > 0 && out->nrows > (size_t)limit)
        out->nrows = (size_t)limit;
    label_rows(out, j->arena);
    return RP_OK;
}

static enum rp_code list_queues_and_copies(struct launches_join *j, struct rp_err *err)
{
    struct rp_launches_root *out = j->out;
    size_t r, i, queues = 0, copies = 0;

    for (r = 0; r < j->ranks->n; r++) {
        queues += part_of(j, r)->nqueues;
        copies += part_of(j, r)->ncopies;
    }
    out->queues = RP_ARENA_NEW(j->arena, struct rp_launch_queue, queues + 1);
    out->copies = RP_ARENA_NEW(j->arena, struct rp_launch_copy, copies + 1);
    RP_TRY(rp_err_need(out->queues && out->copies, err, "adding up launches"));
    for (r = 0; r < j->ranks->n; r++) {
        const struct rp_launches_part *p = part_of(j, r);

        for (i = 0; i < p->nqueues; i++) {
            struct rp_launch_queue *q = &out->queues[out->nqueues++];

            *q = p->queues[i];
            q->rank = j->ranks->parts[r].number;
        }
        for (i = 0; i < p->ncopies; i++) {
            struct rp_launch_copy *c = &out->copies[out->ncopies++];

            *c = p->copies[i];
            c->rank = j->ranks->parts[r].number;
        }
    }
    return RP_OK;
}

/* "3 launches start graphs of 400 kernels, copies and memsets" */
static const char *graphs_text(struct launches_join *j)
{
    const struct rp_launches_root *out = j->out;
    int64_t each = out->graph_items / out->graphs;
    bool exact = each * out->graphs == out->graph_items;

    return rp_arena_textf(j->arena, "%s %s graph%s of %s%s kernels, copies and memsets",
                          rp_units_count(j->arena, out->graphs, "launch"),
                          out->graphs == 1 ? "starts a" : "start", out->graphs == 1 ? "" : "s",
                          exact ? "" : "on average ", rp_units_number(j->arena, each));
}

static void fill_texts(struct launches_join *j)
{
    struct rp_launches_root *out = j->out;
    struct rp_launch_row all = {0};

    fill_row(j, j->samples, j->nsamples, &all);
    out->launches = all.count;
    out->items = all.items;
    for (size_t i = 0; i < j->nsamples; i++) {
        bool graph = j->samples[i].items > 1;

        out->graphs += graph;
        out->graph_items += graph ? j->samples[i].items : 0;
    }
    out->call = all.call;
    out->device = all.device;
    out->delay = all.delay;
    out->short_count = all.short_count;
    out->slow_call_count = all.slow_call_count;
    out->late_count = all.late_count;
    for (size_t r = 0; r < j->ranks->n; r++)
        out->unlinked += part_of(j, r)->items - part_of(j, r)->launched;
    out->summary = out->launches
                       ? rp_arena_textf(j->arena,
                                        "%s %s %s of host time (median %s); work starts %s after "
                                        "the call (median), %s (p90)",
                                        rp_units_count(j->arena, out->launches, "launch"),
                                        out->launches == 1 ? "takes" : "take",
                                        rp_units_time(j->arena, all.call.total_ns),
                                        rp_units_time(j->arena, all.call.p50_ns),
                                        rp_units_time(j->arena, all.delay.p50_ns),
                                        rp_units_time(j->arena, all.delay.p90_ns))
                       : "no launch of device work was recorded";
    if (out->launches)
        RP_NOTE(out, j->arena,
                rp_arena_textf(
                    j->arena,
                    "work shorter than its call: %s; calls over 50 µs: %s; delays over 100 µs: "
                    "%s",
                    rp_units_number(j->arena, out->short_count),
                    rp_units_number(j->arena, out->slow_call_count),
                    rp_units_number(j->arena, out->late_count)));
    if (out->graphs)
        RP_NOTE(out, j->arena, graphs_text(j));
    if (j->ranks->ncaptures)
        RP_NOTE(out, j->arena, j->ranks->graphs);
    if (out->unlinked)
        RP_NOTE(out, j->arena,
                rp_arena_textf(j->arena, "%s (kernels, copies, memsets) without a recorded launch",
                               rp_units_count(j->arena, out->unlinked, "item")));
    if (j->ranks->n)
        RP_NOTE(out, j->arena, part_of(j, 0)->not_counted);
}

static enum rp_code launches_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                  struct rp_result *result, struct rp_err *err)
{
    struct launches_join j = {.ranks = ranks, .arena = &result->arena, .out = result->root};

    j.out->by = rp_arena_text(j.arena, rp_settings_text(settings, "by"));
    enum rp_code code = rp_strtab_init(&j.names, err);
    if (code == RP_OK)
        code = gather_samples(&j, err);
    if (code == RP_OK)
        code = make_rows(&j, rp_settings_text(settings, "sort"), rp_settings_int(settings, "limit"),
                         err);
    if (code == RP_OK)
        code = list_queues_and_copies(&j, err);
    if (code == RP_OK)
        fill_texts(&j);
    rp_strtab_release(&j.names);
    return code == RP_OK ? rp_arena_check(j.arena, "adding up launches", err) : code;
}

/* ------------------------------------------------------------------ the question */

static const struct rp_option launches_options[] = {
    {"by", 'b', RP_OPT_CHOICE, "call|kernel|stream|launch", "call",
     "what the rows are; launch: one row per launch, by correlation id", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "10", "at most N rows; 0: all", 0},
    {"sort", 's', RP_OPT_CHOICE, "delay|call|device|count", "delay",
     "sort key: the largest total first", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_launches = {
    .question =
        {.name = "launches",
         .group = "traces",
         .summary = "how work gets to the device: calls, delays, queues, copies",
         .details = "How long the launch calls take on the host, how long after them the work "
                    "starts, how many launches are queued in each stream, and how fast copies run.",
         .examples = "reprise launches trace.json.gz\tby runtime call\n"
                     "reprise launches --by kernel run/\twhich kernels start late\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = launches_options,
         .type = &launches_type},
    .ranks = {.part = &part_type, .rank = launches_rank, .join = launches_join}};
