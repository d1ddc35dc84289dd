/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls of all ranks: medians of names over all ranks decide which long calls are stalls; these
 * are added up by name, cause, thread, step or rank. Names, threads and texts of the parts are
 * copied: parts do not outlive the join.
 */
#include "explain/short_name.h"
#include "explain/stalls/stalls.h"
#include "explain/stalls/together.h"

#include "base/strtab.h"
#include "result/print_units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct joiner {
    const struct rp_stalls_input *in;
    size_t n;
    const struct rp_stall_rule *rule;
    struct rp_arena *arena;
    struct rp_stalls_root *out;
    struct rp_call_names names;
    size_t nstalls;
    struct rp_stall *stalls;
    uint32_t *place;        /* by stall: of its rank */
    int64_t *offset_ns;     /* by rank */
    int64_t waits, wait_ns; /* calls that wait for the device by their meaning */
    int64_t few, few_ns;    /* long calls of names with too few calls */
    bool failed;
};

static const char *kept(struct joiner *j, const char *made)
{
    j->failed |= !made;
    return made ? made : "";
}

static const char *when(struct joiner *j, int64_t ns)
{
    char text[64];

    rp_units_format((double)ns, RP_UNIT_NS, text, sizeof text);
    return kept(j, rp_arena_strdup(j->arena, text));
}

static const char *copied(struct joiner *j, const char *s)
{
    return s ? kept(j, rp_arena_strdup(j->arena, s)) : NULL;
}

static void take(struct joiner *j, size_t r, size_t i)
{
    const struct rp_stalls_part *p = j->in[r].part;
    struct rp_call_name *name = &j->names.at[j->names.to[r][p->list[i].group]];
    struct rp_stall *s = &j->stalls[j->nstalls];

    if (!rp_is_stall(name, p->list[i].self_ns, j->rule)) {
        bool waits = name->flags & RP_CALL_WAITS;

        if (waits || ((int64_t)name->count < j->rule->calls && !(name->flags & RP_CALL_STEP))) {
            *(waits ? &j->waits : &j->few) += 1;
            rp_ns_add(waits ? &j->wait_ns : &j->few_ns, p->list[i].self_ns);
        }
        return;
    }
    *s = p->list[i];
    s->rank = j->in[r].number;
    s->group = j->names.to[r][s->group];
    s->median_ns = name->median_ns;
    s->times = name->median_ns > 0 ? (double)s->self_ns / (double)name->median_ns : NAN;
    s->thread = copied(j, s->thread);
    s->name = copied(j, s->name);
    s->during = copied(j, s->during);
    j->place[j->nstalls++] = (uint32_t)r;
}

static enum rp_code find_stalls(struct joiner *j, struct rp_err *err)
{
    const struct rp_host_calls **calls =
        RP_ARENA_NEW(j->arena, const struct rp_host_calls *, j->n + 1);
    size_t r, i, most = 0;

    j->offset_ns = RP_ARENA_NEW(j->arena, int64_t, j->n + 1);
    if (!calls || !j->offset_ns)
        return rp_err_nomem(err, "adding up stalls");
    for (r = 0; r < j->n; r++) {
        calls[r] = &j->in[r].part->calls;
        most += calls[r]->slow.n;
        j->offset_ns[r] = rp_ns_between(j->in[0].part->base_ns, j->in[r].part->base_ns);
    }
    RP_TRY(rp_call_names_join(calls, j->n, j->arena, &j->names, err));
    j->stalls = RP_ARENA_NEW(j->arena, struct rp_stall, most + 1);
    j->place = RP_ARENA_NEW(j->arena, uint32_t, most + 1);
    if (!j->stalls || !j->place)
        return rp_err_nomem(err, "adding up stalls");
    for (r = 0; r < j->n; r++)
        for (i = 0; i < calls[r]->slow.n && !j->failed; i++)
            take(j, r, i);
    if (j->failed)
        return rp_err_nomem(err, "adding up stalls");
    RP_TRY(rp_stalls_find_together(j->stalls, j->place, j->nstalls, j->offset_ns, j->n, j->arena,
                                   err));
    for (i = 0; i < j->nstalls; i++) {
        j->stalls[i].cause = rp_stall_cause_names[j->stalls[i].why];
        j->stalls[i].hint = rp_stall_hints[j->stalls[i].why];
    }
    return RP_OK;
}

static struct rp_stall_mode *modes_of(struct joiner *j, const int64_t *sorted, size_t n,
                                      size_t *count)
{
    struct rp_mode found[RP_MODES_MOST];
    size_t i, nfound = rp_modes_find(sorted, n, found);
    struct rp_stall_mode *modes = RP_ARENA_NEW(j->arena, struct rp_stall_mode, nfound + 1);

    j->failed |= !modes;
    *count = modes ? nfound : 0;
    for (i = 0; i < *count; i++)
        modes[i] = (struct rp_stall_mode){found[i].at_ns, found[i].min_ns, found[i].max_ns,
                                          found[i].count};
    return modes;
}

/* What a stall belongs to. */
static const char *key_of(struct joiner *j, const struct rp_stall *s, char *buf, size_t cap)
{
    const char *by = j->out->by;

    if (!strcmp(by, "name"))
        return j->names.at[s->group].name;
    if (!strcmp(by, "cause"))
        return s->cause;
    if (!strcmp(by, "thread"))
        snprintf(buf, cap, "rank %lld thread %s", (long long)s->rank, s->thread);
    else if (!strcmp(by, "rank"))
        snprintf(buf, cap, "rank %lld", (long long)s->rank);
    else if (s->step == RP_ABSENT_I64)
        snprintf(buf, cap, "outside of steps");
    else
        snprintf(buf, cap, "step %lld", (long long)s->step);
    return buf;
}

/* Of a row's stalls: the time of each cause and name, to say what they mostly are. */
struct tally {
    int64_t cause_ns[RP_STALL_CAUSES];
    int64_t most_ns; /* of the name that weighs most: by Boyer-Moore's vote on time */
    uint32_t name;
};

static void vote(struct tally *t, const struct rp_stall *s)
{
    rp_ns_add(&t->cause_ns[s->why], s->self_ns);
    if (t->most_ns <= 0)
        t->name = s->group;
    if (t->name == s->group) {
        rp_ns_add(&t->most_ns, s->self_ns);
        return;
    }
    t->most_ns = rp_ns_between(s->self_ns, t->most_ns);
    if (t->most_ns < 0) {
        t->name = s->group;
        t->most_ns = -t->most_ns;
    }
}

static void add_stall(struct rp_stall_row *row, const struct rp_stall *s)
{
    row->count++;
    rp_ns_add(&row->total_ns, s->self_ns);
    row->max_ns = s->self_ns > row->max_ns ? s->self_ns : row->max_ns;
    if (s->device_idle_ns != RP_ABSENT_I64)
        rp_ns_add(&row->device_idle_ns, s->device_idle_ns);
}

static void finish_row(struct joiner *j, struct rp_stall_row *row, const struct tally *t,
                       uint32_t first)
{
    struct rp_call_name *name = &j->names.at[j->stalls[first].group];
    bool named = !strcmp(j->out->by, "name");
    char label[160];
    int c, best = 0;

    for (c = 1; c < RP_STALL_CAUSES; c++)
        best = t->cause_ns[c] > t->cause_ns[best] ? c : best;
    row->cause = rp_stall_cause_names[best];
    row->share = j->out->total_ns ? (double)row->total_ns / (double)j->out->total_ns : 0;
    rp_short_name(row->name, label, sizeof label);
    row->label = named ? kept(j, rp_arena_strdup(j->arena, label)) : row->name;
    row->mostly = j->names.at[t->name].name;
    row->calls = row->median_ns = RP_ABSENT_I64;
    if (!named)
        return;
    row->kind = j->stalls[first].kind;
    row->calls = (int64_t)name->count;
    row->median_ns = name->median_ns;
    row->modes = modes_of(j, rp_call_times(&j->names, name), name->count, &row->nmodes);
}

static int by_total(const void *pa, const void *pb)
{
    const struct rp_stall_row *a = pa, *b = pb;

    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

static enum rp_code make_rows(struct joiner *j, struct rp_err *err)
{
    struct rp_stall_row *rows = RP_ARENA_NEW(j->arena, struct rp_stall_row, j->nstalls + 1);
    struct tally *tally = RP_ARENA_NEW(j->arena, struct tally, j->nstalls + 1);
    uint32_t *first = RP_ARENA_NEW(j->arena, uint32_t, j->nstalls + 1), at;
    struct rp_strtab keys;
    enum rp_code code = rp_strtab_init(&keys, err);
    char buf[160];
    size_t i;

    for (i = 0; i < j->nstalls && rows && tally && first && code == RP_OK; i++) {
        const char *key = key_of(j, &j->stalls[i], buf, sizeof buf);
        uint32_t before = keys.n;

        key = *key ? key : "(no name)";
        code = rp_strtab_intern(&keys, key, strlen(key), &at, err);
        if (code == RP_OK && keys.n > before) {
            rows[at].name = kept(j, rp_arena_strdup(j->arena, key));
            first[at] = (uint32_t)i;
        }
        if (code == RP_OK) {
            add_stall(&rows[at], &j->stalls[i]);
            vote(&tally[at], &j->stalls[i]);
        }
    }
    if (!rows || !tally || !first)
        code = rp_err_nomem(err, "adding up stalls");
    for (i = 1; i < keys.n && code == RP_OK; i++) /* string 0 is "", which no key is */
        finish_row(j, &rows[i], &tally[i], first[i]);
    j->out->nrows = code == RP_OK ? keys.n - 1 : 0;
    rp_strtab_release(&keys);
    RP_TRY(code);
    j->out->rows = rows + 1;
    if (j->out->nrows)
        qsort(j->out->rows, j->out->nrows, sizeof *rows, by_total);
    return RP_OK;
}

static void fill_ranks(struct joiner *j)
{
    size_t r, i;

    j->out->ranks = RP_ARENA_NEW(j->arena, struct rp_stall_rank, j->n + 1);
    j->failed |= !j->out->ranks;
    if (j->failed)
        return;
    j->out->nranks = j->n;
    for (r = 0; r < j->n; r++)
        j->out->ranks[r] =
            (struct rp_stall_rank){.path = copied(j, j->in[r].path),
                                   .rank = j->in[r].number,
                                   .device_idle_ns = j->in[r].part->on_device ? 0 : RP_ABSENT_I64};
    for (i = 0; i < j->nstalls; i++) {
        struct rp_stall_rank *rank = &j->out->ranks[j->place[i]];
        const struct rp_stall *s = &j->stalls[i];

        rank->count++;
        rp_ns_add(&rank->total_ns, s->self_ns);
        rp_ns_add(&j->out->total_ns, s->self_ns);
        rank->max_ns = s->self_ns > rank->max_ns ? s->self_ns : rank->max_ns;
        if (s->device_idle_ns != RP_ABSENT_I64) {
            rp_ns_add(&rank->device_idle_ns, s->device_idle_ns);
            rp_ns_add(&j->out->device_idle_ns, s->device_idle_ns);
        }
    }
    if (j->n > 1) {
        j->out->rank_rows = j->out->ranks;
        j->out->nrank_rows = j->n;
    }
}

/* "8.03 ms (46 of them), 21.1 ms (54), 28.0 ms (30)": those with a tenth of all stalls. */
static void fill_modes(struct joiner *j)
{
    int64_t *v = RP_ARENA_NEW(j->arena, int64_t, j->nstalls + 1);
    const char *text = NULL;
    size_t i;

    j->failed |= !v;
    if (j->failed || !j->nstalls)
        return;
    for (i = 0; i < j->nstalls; i++)
        v[i] = j->stalls[i].self_ns;
    qsort(v, j->nstalls, sizeof *v, rp_ns_order);
    j->out->modes = modes_of(j, v, j->nstalls, &j->out->nmodes);
    for (i = 0; i < j->out->nmodes; i++) {
        const struct rp_stall_mode *m = &j->out->modes[i];

        if (j->nstalls < 8 || m->count < 3 || m->count * 10 < (int64_t)j->nstalls)
            continue;
        text = text ? kept(j, rp_arena_printf(j->arena, "%s, %s (%lld)", text, when(j, m->at_ns),
                                              (long long)m->count))
                    : kept(j, rp_arena_printf(j->arena, "they gather around %s (%lld stalls)",
                                              when(j, m->at_ns), (long long)m->count));
    }
    j->out->modes_text = text;
}

static int by_length(const void *pa, const void *pb)
{
    const struct rp_stall *a = pa, *b = pb;

    if (a->self_ns != b->self_ns)
        return a->self_ns > b->self_ns ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* What to try for each cause that is met, the heaviest first. */
static void fill_hints(struct joiner *j)
{
    int64_t cause_ns[RP_STALL_CAUSES] = {0}, count[RP_STALL_CAUSES] = {0};
    size_t i;
    int c, best, round;

    j->out->hints = RP_ARENA_NEW(j->arena, const char *, RP_STALL_CAUSES + 1);
    j->failed |= !j->out->hints;
    for (i = 0; i < j->nstalls; i++) {
        rp_ns_add(&cause_ns[j->stalls[i].why], j->stalls[i].self_ns);
        count[j->stalls[i].why]++;
    }
    for (round = 0; round < RP_STALL_CAUSES && !j->failed; round++) {
        for (best = 0, c = 1; c < RP_STALL_CAUSES; c++)
            best = cause_ns[c] > cause_ns[best] ? c : best;
        if (cause_ns[best] <= 0)
            return;
        j->out->hints[j->out->nhints++] = kept(
            j, rp_arena_printf(j->arena, "%s (%lld, %s): %s. Try: %s", rp_stall_cause_names[best],
                               (long long)count[best], when(j, cause_ns[best]),
                               rp_stall_cause_docs[best], rp_stall_hints[best]));
        cause_ns[best] = 0;
    }
}

static void note(struct joiner *j, const char *text)
{
    j->out->notes[j->out->nnotes++] = text;
}

static void fill_texts(struct joiner *j)
{
    struct rp_stalls_root *out = j->out;
    bool device = j->in[0].part->on_device;

    out->summary = kept(
        j, j->nstalls ? rp_arena_printf(
                            j->arena,
                            "%zu host call%s took %s: %sover %s and %lld times the median of "
                            "its name%s%s%s",
                            j->nstalls, j->nstalls == 1 ? "" : "s", when(j, out->total_ns),
                            j->nstalls == 1 ? "" : "each ", when(j, j->rule->floor_ns),
                            (long long)j->rule->ratio, device ? "; the device did nothing in " : "",
                            device ? when(j, out->device_idle_ns) : "", device ? " of it" : "")
                      : rp_arena_printf(j->arena,
                                        "no host call took over %s and %lld times the median of "
                                        "its name",
                                        when(j, j->rule->floor_ns), (long long)j->rule->ratio));
    out->notes = RP_ARENA_NEW(j->arena, const char *, 4);
    j->failed |= !out->notes;
    if (j->failed)
        return;
    if (j->waits)
        note(j, kept(j, rp_arena_printf(
                            j->arena,
                            "%lld synchronising call%s over %s (%s in all) wait for the device and "
                            "are no stalls: see 'reprise idle'",
                            (long long)j->waits, j->waits == 1 ? "" : "s",
                            when(j, j->rule->floor_ns), when(j, j->wait_ns))));
    if (j->few)
        note(j, kept(j, rp_arena_printf(
                            j->arena,
                            "%lld call%s over %s (%s in all) left out: names with under %lld calls "
                            "have no usual length",
                            (long long)j->few, j->few == 1 ? "" : "s", when(j, j->rule->floor_ns),
                            when(j, j->few_ns), (long long)j->rule->calls)));
}

/* The limit is for the screen's lists: rows and single stalls. */
static void cut(struct joiner *j, int64_t limit)
{
    struct rp_stalls_root *out = j->out;

    out->stall_count = (int64_t)j->nstalls;
    out->stalls = j->stalls;
    out->nstalls = j->nstalls;
    if (j->nstalls)
        qsort(j->stalls, j->nstalls, sizeof *j->stalls, by_length);
    if (limit > 0 && out->nstalls > (size_t)limit)
        out->nstalls = (size_t)limit;
    if (limit > 0 && out->nrows > (size_t)limit)
        out->nrows = (size_t)limit;
    if (!strcmp(out->by, "name")) {
        out->named = out->rows;
        out->nnamed = out->nrows;
    } else {
        out->plain = out->rows;
        out->nplain = out->nrows;
    }
}

enum rp_code rp_stalls_join(const struct rp_stalls_input *ranks, size_t n,
                            const struct rp_stall_rule *rule, const char *by, int64_t limit,
                            struct rp_arena *arena, struct rp_stalls_root *out, struct rp_err *err)
{
    struct joiner j = {.in = ranks, .n = n, .rule = rule, .arena = arena, .out = out};

    *out = (struct rp_stalls_root){.by = by, .floor_ns = rule->floor_ns, .ratio = rule->ratio};
    RP_TRY(find_stalls(&j, err));
    fill_ranks(&j);
    RP_TRY(make_rows(&j, err));
    fill_modes(&j);
    fill_hints(&j);
    if (!j.failed)
        fill_texts(&j);
    cut(&j, limit);
    return j.failed ? rp_err_nomem(err, "adding up stalls") : RP_OK;
}
