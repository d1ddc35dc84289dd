/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of all ranks: samples side by side by name, sorted once for each of the three times. */
#include "explain/launches/launches.h"
#include "explain/short_name.h"

#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

/* HTA's limits, so that the counts compare. */
#define SLOW_CALL_NS 50000
#define LATE_NS      100000

struct joiner {
    const struct rp_launches_input *in;
    size_t n;
    struct rp_arena *arena;
    struct rp_launches_root *out;
    struct rp_strtab names;
    struct rp_launch_sample *samples; /* of all ranks, by name */
    size_t nsamples;
    size_t *begin; /* by name */
    int64_t *scratch;
    bool failed;
};

/* Puts the samples of all ranks behind each other, by name. */
static enum rp_code gather(struct joiner *j, struct rp_err *err)
{
    uint32_t **to = RP_ARENA_NEW(j->arena, uint32_t *, j->n + 1), g;
    size_t r, i, total = 0, *at;

    for (r = 0; to && r < j->n; r++) {
        const struct rp_launches_part *p = j->in[r].part;

        to[r] = RP_ARENA_NEW(j->arena, uint32_t, p->names.n + 1);
        if (!to[r])
            return rp_err_nomem(err, "adding up launches");
        for (g = 0; g < p->names.n; g++)
            RP_TRY(rp_strtab_intern(&j->names, rp_strtab_borrow(&p->names, g),
                                    rp_strtab_len(&p->names, g), &to[r][g], err));
        total += p->samples.n;
    }
    j->begin = RP_ARENA_NEW(j->arena, size_t, j->names.n + 2);
    at = RP_ARENA_NEW(j->arena, size_t, j->names.n + 2);
    j->samples = RP_ARENA_NEW(j->arena, struct rp_launch_sample, total + 1);
    j->scratch = RP_ARENA_NEW(j->arena, int64_t, total + 1);
    if (!to || !j->begin || !at || !j->samples || !j->scratch)
        return rp_err_nomem(err, "adding up launches");
    for (r = 0; r < j->n; r++)
        for (i = 0; i < j->in[r].part->samples.n; i++)
            j->begin[to[r][j->in[r].part->samples.at[i].name] + 1]++;
    for (g = 0; g < j->names.n; g++)
        j->begin[g + 1] += j->begin[g];
    memcpy(at, j->begin, (j->names.n + 1) * sizeof *at);
    for (r = 0; r < j->n; r++)
        for (i = 0; i < j->in[r].part->samples.n; i++) {
            const struct rp_launch_sample *s = &j->in[r].part->samples.at[i];

            j->samples[at[to[r][s->name]]++] = *s;
        }
    j->nsamples = total;
    return RP_OK;
}

/* One of the three times of samples; `offset` says which. */
static struct rp_launch_times times_of(struct joiner *j, const struct rp_launch_sample *s, size_t n,
                                       size_t offset)
{
    struct rp_launch_times t = {0};
    size_t i;

    for (i = 0; i < n; i++) {
        memcpy(&j->scratch[i], (const char *)&s[i] + offset, sizeof *j->scratch);
        rp_ns_add(&t.total_ns, j->scratch[i]);
    }
    if (!n)
        return t;
    qsort(j->scratch, n, sizeof *j->scratch, rp_ns_order);
    t.p50_ns = j->scratch[(n + 1) / 2 - 1];
    t.p90_ns = j->scratch[(n * 90 + 99) / 100 - 1];
    t.max_ns = j->scratch[n - 1];
    return t;
}

static void fill_row(struct joiner *j, const struct rp_launch_sample *s, size_t n,
                     struct rp_launch_row *row)
{
    size_t i;

    row->count = (int64_t)n;
    row->call = times_of(j, s, n, offsetof(struct rp_launch_sample, call_ns));
    row->device = times_of(j, s, n, offsetof(struct rp_launch_sample, device_ns));
    row->delay = times_of(j, s, n, offsetof(struct rp_launch_sample, delay_ns));
    for (i = 0; i < n; i++) {
        row->short_count += s[i].device_ns < s[i].call_ns && s[i].call_ns <= SLOW_CALL_NS;
        row->slow_call_count += s[i].call_ns > SLOW_CALL_NS;
        row->late_count += s[i].delay_ns > LATE_NS;
    }
    row->call_p50_ns = row->call.p50_ns;
    row->device_p50_ns = row->device.p50_ns;
    row->delay_p50_ns = row->delay.p50_ns;
    row->delay_p90_ns = row->delay.p90_ns;
    row->delay_max_ns = row->delay.max_ns;
}

struct order {
    const char *sort;
};

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
    const struct order *order = user;
    int64_t x = weight(a, order->sort), y = weight(b, order->sort);

    if (x != y)
        return x > y ? -1 : 1;
    return strcmp(a->name, b->name);
}

static enum rp_code make_rows(struct joiner *j, const char *sort, int64_t limit, struct rp_err *err)
{
    struct rp_launches_root *out = j->out;
    struct order order = {sort};
    char label[160];
    uint32_t g;

    out->rows = RP_ARENA_NEW(j->arena, struct rp_launch_row, j->names.n + 1);
    if (!out->rows)
        return rp_err_nomem(err, "adding up launches");
    for (g = 0; g < j->names.n; g++) {
        struct rp_launch_row *row = &out->rows[out->nrows];

        if (j->begin[g + 1] == j->begin[g])
            continue;
        fill_row(j, j->samples + j->begin[g], j->begin[g + 1] - j->begin[g], row);
        row->name =
            rp_arena_copy(j->arena, rp_strtab_borrow(&j->names, g), rp_strtab_len(&j->names, g));
        rp_short_name(rp_strtab_borrow(&j->names, g), label, sizeof label);
        row->label = rp_arena_strdup(j->arena, label);
        if (!row->name || !row->label)
            return rp_err_nomem(err, "adding up launches");
        out->nrows++;
    }
    out->row_count = (int64_t)out->nrows;
    if (out->nrows)
        qsort_r(out->rows, out->nrows, sizeof *out->rows, by_weight, &order);
    if (limit > 0 && out->nrows > (size_t)limit)
        out->nrows = (size_t)limit;
    return RP_OK;
}

/* Queues and copies, a row a rank each; texts are copied. */
static enum rp_code copy_parts(struct joiner *j, struct rp_err *err)
{
    struct rp_launches_root *out = j->out;
    size_t r, i, queues = 0, copies = 0;

    for (r = 0; r < j->n; r++) {
        queues += j->in[r].part->nqueues;
        copies += j->in[r].part->ncopies;
    }
    out->queues = RP_ARENA_NEW(j->arena, struct rp_launch_queue, queues + 1);
    out->copies = RP_ARENA_NEW(j->arena, struct rp_launch_copy, copies + 1);
    if (!out->queues || !out->copies)
        return rp_err_nomem(err, "adding up launches");
    for (r = 0; r < j->n; r++) {
        const struct rp_launches_part *p = j->in[r].part;

        for (i = 0; i < p->nqueues; i++) {
            struct rp_launch_queue *q = &out->queues[out->nqueues++];

            *q = p->queues[i];
            q->rank = j->in[r].number;
            j->failed |= !(q->stream = rp_arena_strdup(j->arena, q->stream));
        }
        for (i = 0; i < p->ncopies; i++) {
            struct rp_launch_copy *c = &out->copies[out->ncopies++];

            *c = p->copies[i];
            c->rank = j->in[r].number;
            j->failed |= !(c->kind = rp_arena_strdup(j->arena, c->kind));
        }
    }
    return j->failed ? rp_err_nomem(err, "adding up launches") : RP_OK;
}

static const char *when(struct joiner *j, int64_t ns)
{
    char text[64];
    const char *made;

    rp_units_format((double)ns, RP_UNIT_NS, text, sizeof text);
    made = rp_arena_strdup(j->arena, text);
    j->failed |= !made;
    return made ? made : "";
}

static void fill_texts(struct joiner *j)
{
    struct rp_launches_root *out = j->out;
    struct rp_launch_row all = {0};
    size_t r;

    fill_row(j, j->samples, j->nsamples, &all);
    out->launches = all.count;
    out->call = all.call;
    out->device = all.device;
    out->delay = all.delay;
    out->short_count = all.short_count;
    out->slow_call_count = all.slow_call_count;
    out->late_count = all.late_count;
    for (r = 0; r < j->n; r++)
        out->unlinked += j->in[r].part->items - j->in[r].part->launched;
    out->summary =
        out->launches
            ? rp_arena_printf(j->arena,
                              "%lld launches take %s of the host (median %s); the work starts %s "
                              "(median), %s (p90) after",
                              (long long)out->launches, when(j, all.call.total_ns),
                              when(j, all.call.p50_ns), when(j, all.delay.p50_ns),
                              when(j, all.delay.p90_ns))
            : "no launch of device work was recorded";
    out->notes = RP_ARENA_NEW(j->arena, const char *, 4);
    j->failed |= !out->summary || !out->notes;
    if (j->failed)
        return;
    if (out->launches)
        out->notes[out->nnotes++] = rp_arena_printf(
            j->arena,
            "work shorter than its launch: %lld; calls over 50 us: %lld; starts over 100 us late: "
            "%lld",
            (long long)out->short_count, (long long)out->slow_call_count,
            (long long)out->late_count);
    if (out->unlinked)
        out->notes[out->nnotes++] =
            rp_arena_printf(j->arena, "%lld kernels, copies and memsets have no recorded launch",
                            (long long)out->unlinked);
    for (r = 0; r < out->nnotes; r++)
        j->failed |= !out->notes[r];
}

enum rp_code rp_launches_join(const struct rp_launches_input *ranks, size_t n, const char *by,
                              const char *sort, int64_t limit, struct rp_arena *arena,
                              struct rp_launches_root *out, struct rp_err *err)
{
    struct joiner j = {.in = ranks, .n = n, .arena = arena, .out = out};
    enum rp_code code;

    *out = (struct rp_launches_root){.by = by};
    code = rp_strtab_init(&j.names, err);
    if (code == RP_OK)
        code = gather(&j, err);
    if (code == RP_OK)
        code = make_rows(&j, sort, limit, err);
    if (code == RP_OK)
        code = copy_parts(&j, err);
    if (code == RP_OK)
        fill_texts(&j);
    rp_strtab_release(&j.names);
    return code == RP_OK && j.failed ? rp_err_nomem(err, "adding up launches") : code;
}
