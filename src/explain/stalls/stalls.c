/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the stalls of all ranks: medians of names over all ranks decide which long calls are
 * stalls; these are added up by name, cause, thread, step or rank.
 */
#include "explain/stalls/stalls.h"

#include "base/order.h"
#include "base/strtab.h"
#include "dataset/question.h"
#include "facts/work/modes.h"
#include "result/part.h"
#include "result/print_units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const cause_docs[RP_STALL_CAUSES] = {
#define CAUSE_DOC(name, text, doc, hint) doc,
    RP_STALL_CAUSE_MAP(CAUSE_DOC)
#undef CAUSE_DOC
};
static const char *const cause_hints[RP_STALL_CAUSES] = {
#define CAUSE_HINT(name, text, doc, hint) hint,
    RP_STALL_CAUSE_MAP(CAUSE_HINT)
#undef CAUSE_HINT
};

/* ------------------------------------------------------------------ what is kept and shown */

#define MODE(member, unit, doc) RP_FIELD(struct rp_stall_mode, member, I64, unit, NULL, doc, 0)

static const struct rp_field mode_fields[] = {
    MODE(at_ns, NS, "where calls are densest"), MODE(min_ns, NS, "the shortest of the mode"),
    MODE(max_ns, NS, "the longest of the mode"), MODE(count, COUNT, "calls in it"), RP_FIELD_END};
static const struct rp_type mode_type = {"mode", sizeof(struct rp_stall_mode), mode_fields, NULL};

#define ROW(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stall_row, member, type, unit, title, doc, flags)

static const struct rp_field row_fields[] = {
    ROW(name, STR, NONE, NULL, "what the row is about", 0),
    ROW(label, STR, NONE, "name", "shortened", RP_SCREEN | RP_SHORTEN),
    ROW(kind, STR, NONE, NULL,
        "operator, annotation, runtime, python …; null if rows are not names", 0),
    ROW(count, I64, COUNT, "stalls", "how many", 0),
    ROW(total_ns, I64, NS, "total", "own time of the stalls", 0),
    ROW(share, F64, RATIO, NULL, "share of the time of all stalls", 0),
    ROW(max_ns, I64, NS, "longest", "the longest", 0),
    ROW(device_idle_ns, I64, NS, "gpu idle",
        "part of it in which the device did nothing; null without one", RP_NULLABLE),
    ROW(calls, I64, COUNT, "calls", "all calls of the name, or null", RP_NULLABLE | RP_WIDE),
    ROW(median_ns, I64, NS, "median", "median own time of all calls of the name, or null",
        RP_NULLABLE),
    ROW(cause, STR, NONE, "cause", "main cause, by time", 0),
    ROW(mostly, STR, NONE, "mainly", "main name, by time", RP_SHORTEN),
    RP_FIELD_LIST(struct rp_stall_row, modes, &mode_type, NULL,
                  "durations around which all calls of the name cluster", 0),
    RP_FIELD_END};
static const struct rp_type row_type = {"row", sizeof(struct rp_stall_row), row_fields, NULL};

#define NAMED "label, count, total_ns, max_ns, median_ns, calls, device_idle_ns, cause"
#define PLAIN "label, count, total_ns, max_ns, device_idle_ns, cause, mostly"

#define STALL(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stall, member, type, unit, title, doc, flags)

static const struct rp_field stall_fields[] = {
    STALL(rank, I64, NONE, "rank", "whose", 0),
    STALL(step, I64, NONE, "step", "number of its step, or null", RP_NULLABLE | RP_WIDE),
    STALL(thread, STR, NONE, "thread", "which thread", RP_SHORTEN),
    STALL(begin_ns, I64, NS, NULL, "recorded time at which it began", 0),
    STALL(dur_ns, I64, NS, NULL, "how long the call took", 0),
    STALL(self_ns, I64, NS, "took", "own time: without the spans inside it", 0),
    STALL(median_ns, I64, NS, "median", "median of all calls of its name", 0),
    STALL(times, F64, NONE, NULL, "own time / median; null where that is 0", 0),
    STALL(device_idle_ns, I64, NS, "gpu idle",
          "part of it in which the device did nothing; null without one", RP_NULLABLE),
    STALL(ready_ns, I64, NS, NULL,
          "part of it in which its thread was ready and had no processor, at most; null where "
          "nothing was counted",
          RP_NULLABLE),
    STALL(cause, STR, NONE, "cause", "cause, as far as it was recorded", 0),
    STALL(name, STR, NONE, "call", "what was called", RP_SHORTEN),
    STALL(kind, STR, NONE, NULL, "operator, annotation, runtime, python …", 0),
    STALL(during, STR, NONE, NULL,
          "the span around it, or the call of another thread that blocked it, or null", 0),
    STALL(sampled, STR, NONE, "in", "where most samples found its thread, or null", RP_SHORTEN),
    STALL(hint, STR, NONE, NULL, "what to try", 0),
    RP_FIELD_END};
static const struct rp_type stall_type = {"stall", sizeof(struct rp_stall), stall_fields, NULL};

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stall_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(count, I64, COUNT, "stalls", "how many", 0),
    RANK(total_ns, I64, NS, "total", "own time of the stalls", RP_LARGEST),
    RANK(max_ns, I64, NS, "longest", "the longest", 0),
    RANK(device_idle_ns, I64, NS, "gpu idle",
         "part of it in which the device did nothing; null without one", RP_NULLABLE),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_stall_rank), rank_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_stalls_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(summary, STR, NONE, "stalls", "text output only", RP_SCREEN),
    ROOT(modes_text, STR, NONE, "modes", "text output only", RP_SCREEN),
    ROOT(by, STR, NONE, NULL, "what the rows are", 0),
    ROOT(floor_ns, I64, NS, NULL, "a stall has more own time than this", 0),
    ROOT(ratio, I64, NONE, NULL, "and more own time than this multiple of the median of its name",
         0),
    ROOT(stall_count, I64, COUNT, NULL, "stalls before the limit", 0),
    ROOT(total_ns, I64, NS, NULL, "own time of all stalls", 0),
    ROOT(device_idle_ns, I64, NS, NULL, "part of it in which the device did nothing", 0),
    RP_FIELD_LIST(struct rp_stalls_root, modes, &mode_type, NULL,
                  "durations around which stalls cluster", 0),
    RP_FIELD_SHOWN(struct rp_stalls_root, rank_rows, &rank_type, "ranks", NULL, 0),
    RP_FIELD_LIST(struct rp_stalls_root, ranks, &rank_type, NULL, "one record per rank", 0),
    RP_FIELD_LIST(struct rp_stalls_root, rows, &row_type, NULL, "the largest first", 0),
    RP_FIELD_SHOWN(struct rp_stalls_root, named, &row_type, "calls", NAMED, 0),
    RP_FIELD_SHOWN(struct rp_stalls_root, plain, &row_type, "rows", PLAIN, 0),
    RP_FIELD_LIST(struct rp_stalls_root, stalls, &stall_type, "longest stalls",
                  "the longest of all ranks", 0),
    RP_FIELD_LIST(struct rp_stalls_root, hints, &rp_type_string, "what to try",
                  "one for each cause that occurs", 0),
    RP_FIELD_LIST(struct rp_stalls_root, notes, &rp_type_string, "notes", "what was left out", 0),
    RP_FIELD_END};

static const struct rp_type stalls_type = {"stalls", sizeof(struct rp_stalls_root), root_fields,
                                           "rows"};

/* A call as its rank sees it; the join fills the other members. */
#define CALL(kind, member) RP_PART_##kind(struct rp_stall, member)

static const struct rp_field call_fields[] = {CALL(PLAIN, step),     CALL(TEXT, thread),
                                              CALL(TEXT, name),      CALL(TEXT, kind),
                                              CALL(TEXT, during),    CALL(TEXT, sampled),
                                              CALL(PLAIN, begin_ns), CALL(PLAIN, dur_ns),
                                              CALL(PLAIN, self_ns),  CALL(PLAIN, device_idle_ns),
                                              CALL(PLAIN, ready_ns), CALL(PLAIN, group),
                                              CALL(PLAIN, why),      RP_PART_END};
static const struct rp_type call_type = {"call", sizeof(struct rp_stall), call_fields, NULL};

static const struct rp_field part_fields[] = {
    RP_PART_RECORD(struct rp_stalls_part, calls, &rp_host_calls_type),
    RP_PART_LIST(struct rp_stalls_part, list, &call_type),
    RP_PART_PLAIN(struct rp_stalls_part, on_device),
    RP_PART_PLAIN(struct rp_stalls_part, base_ns),
    RP_PART_TEXT(struct rp_stalls_part, judged),
    RP_PART_TEXT(struct rp_stalls_part, outside),
    RP_PART_TEXT(struct rp_stalls_part, uncached),
    RP_PART_END};
static const struct rp_type part_type = {"stalls_part", sizeof(struct rp_stalls_part), part_fields,
                                         NULL};

/* ------------------------------------------------------------------ which calls are stalls */

struct stall_sums {
    const struct rp_ranks *ranks;
    size_t n;
    struct rp_stall_rule rule;
    struct rp_arena *arena;
    struct rp_stalls_root *out;
    struct rp_call_names names;
    size_t nstalls;
    struct rp_stall *stalls;
    uint32_t *place;        /* by stall: index of its rank */
    int64_t waits, wait_ns; /* long calls that are meant to wait for the device */
    int64_t few, few_ns;    /* long calls of names with too few calls */
};

static const struct rp_stalls_part *part_of(const struct stall_sums *j, size_t rank)
{
    return j->ranks->parts[rank].data;
}

/* What to try against a cause; for allocations, what report says if it knows more. */
static const char *hint_of(const struct stall_sums *j, uint8_t cause)
{
    for (size_t r = 0; cause == RP_STALL_ALLOCATION && r < j->n; r++)
        if (part_of(j, r)->uncached)
            return part_of(j, r)->uncached;
    return cause_hints[cause];
}

static const char *duration(const struct stall_sums *j, int64_t ns)
{
    return rp_units_time(j->arena, ns);
}

/* Takes a long call as a stall, or counts why it is not one. */
static void add_call(struct stall_sums *j, size_t r, const struct rp_stall *call)
{
    uint32_t group = j->names.to[r][call->group];
    const struct rp_call_name *name = &j->names.at[group];
    bool waits = name->flags & RP_CALL_WAITS;
    struct rp_stall *s = &j->stalls[j->nstalls];

    if (rp_is_stall(name, call->self_ns, &j->rule)) {
        *s = *call;
        s->rank = j->ranks->parts[r].number;
        s->group = group;
        s->median_ns = name->median_ns;
        s->times = name->median_ns > 0 ? (double)s->self_ns / (double)name->median_ns : NAN;
        j->place[j->nstalls++] = (uint32_t)r;
    } else if (waits) {
        j->waits++;
        rp_ns_add(&j->wait_ns, call->self_ns);
    } else if ((int64_t)name->count < j->rule.calls && !(name->flags & RP_CALL_STEP)) {
        j->few++;
        rp_ns_add(&j->few_ns, call->self_ns);
    }
}

static enum rp_code find_stalls(struct stall_sums *j, struct rp_err *err)
{
    const struct rp_host_calls **calls =
        RP_ARENA_NEW(j->arena, const struct rp_host_calls *, j->n + 1);
    int64_t *offset_ns = RP_ARENA_NEW(j->arena, int64_t, j->n + 1);
    size_t r, i, most = 0;

    RP_TRY(rp_arena_check(j->arena, "adding up stalls", err));
    for (r = 0; r < j->n; r++) {
        calls[r] = &part_of(j, r)->calls;
        most += part_of(j, r)->nlist;
        offset_ns[r] = rp_ns_between(part_of(j, 0)->base_ns, part_of(j, r)->base_ns);
    }
    RP_TRY(rp_call_names_join(calls, j->n, j->arena, &j->names, err));
    j->stalls = RP_ARENA_NEW(j->arena, struct rp_stall, most + 1);
    j->place = RP_ARENA_NEW(j->arena, uint32_t, most + 1);
    RP_TRY(rp_arena_check(j->arena, "adding up stalls", err));
    for (r = 0; r < j->n; r++)
        for (i = 0; i < part_of(j, r)->nlist; i++)
            add_call(j, r, &part_of(j, r)->list[i]);
    RP_TRY(
        rp_stalls_find_together(j->stalls, j->place, j->nstalls, offset_ns, j->n, j->arena, err));
    for (i = 0; i < j->nstalls; i++) {
        j->stalls[i].cause = rp_stall_cause_names[j->stalls[i].why];
        j->stalls[i].hint = hint_of(j, j->stalls[i].why);
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ adding up */

static struct rp_stall_mode *modes_of(struct stall_sums *j, const int64_t *sorted, size_t n,
                                      size_t *count)
{
    struct rp_mode found[RP_MODES_MOST];
    size_t i, nfound = rp_modes_find(sorted, n, found);
    struct rp_stall_mode *modes = RP_ARENA_NEW(j->arena, struct rp_stall_mode, nfound + 1);

    *count = modes ? nfound : 0;
    for (i = 0; i < *count; i++)
        modes[i] = (struct rp_stall_mode){found[i].at_ns, found[i].min_ns, found[i].max_ns,
                                          found[i].count};
    return modes;
}

/* The row that a stall belongs to. */
static const char *row_key(const struct stall_sums *j, const struct rp_stall *s, char *buf,
                           size_t cap)
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

/* The time of a row's stalls by cause, and the name with the most time. */
struct tally {
    int64_t cause_ns[RP_STALL_CAUSES];
    int64_t most_ns; /* time of the name in Boyer and Moore's majority vote, weighted by time */
    uint32_t name;
};

static void tally_stall(struct tally *t, const struct rp_stall *s)
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

static enum rp_code finish_row(struct stall_sums *j, struct rp_stall_row *row,
                               const struct tally *t, uint32_t first, struct rp_err *err)
{
    struct rp_call_name *name = &j->names.at[j->stalls[first].group];
    bool named = !strcmp(j->out->by, "name");
    const int64_t *times;
    int c, best = 0;

    for (c = 1; c < RP_STALL_CAUSES; c++)
        best = t->cause_ns[c] > t->cause_ns[best] ? c : best;
    row->cause = rp_stall_cause_names[best];
    row->share = j->out->total_ns ? (double)row->total_ns / (double)j->out->total_ns : 0;
    row->label = row->name;
    row->mostly = j->names.at[t->name].name;
    row->calls = row->median_ns = RP_ABSENT_I64;
    if (!named)
        return RP_OK;
    row->kind = j->stalls[first].kind;
    row->calls = (int64_t)name->count;
    row->median_ns = name->median_ns;
    RP_TRY(rp_call_times(&j->names, name, &times, err));
    row->modes = modes_of(j, times, name->count, &row->nmodes);
    return RP_OK;
}

RP_ORDER(by_total, struct rp_stall_row, RP_DOWN(total_ns), strcmp(a->name, b->name))

static enum rp_code make_rows(struct stall_sums *j, struct rp_err *err)
{
    struct rp_stall_row *rows = RP_ARENA_NEW(j->arena, struct rp_stall_row, j->nstalls + 1);
    struct tally *tally = RP_ARENA_NEW(j->arena, struct tally, j->nstalls + 1);
    uint32_t *first = RP_ARENA_NEW(j->arena, uint32_t, j->nstalls + 1), at;
    struct rp_strtab keys;
    enum rp_code code = rp_strtab_init(&keys, err);
    char buf[160];

    for (size_t i = 0; i < j->nstalls && rows && tally && first && code == RP_OK; i++) {
        const char *key = row_key(j, &j->stalls[i], buf, sizeof buf);
        uint32_t before = keys.n;

        key = *key ? key : "(no name)";
        code = rp_strtab_intern(&keys, key, strlen(key), &at, err);
        if (code == RP_OK && keys.n > before) {
            rows[at].name = rp_arena_text(j->arena, key);
            rows[at].device_idle_ns = RP_ABSENT_I64;
            first[at] = (uint32_t)i;
        }
        if (code == RP_OK) {
            struct rp_stall_row *row = &rows[at];
            const struct rp_stall *s = &j->stalls[i];
            row->count++;
            rp_ns_add(&row->total_ns, s->self_ns);
            row->max_ns = s->self_ns > row->max_ns ? s->self_ns : row->max_ns;
            if (s->device_idle_ns != RP_ABSENT_I64) {
                row->device_idle_ns =
                    row->device_idle_ns == RP_ABSENT_I64 ? 0 : row->device_idle_ns;
                rp_ns_add(&row->device_idle_ns, s->device_idle_ns);
            }
            tally_stall(&tally[at], &j->stalls[i]);
        }
    }
    if (!rows || !tally || !first)
        code = rp_err_nomem(err, "adding up stalls");
    for (size_t i = 1; i < keys.n && code == RP_OK; i++) /* string 0 is "", which is not a key */
        code = finish_row(j, &rows[i], &tally[i], first[i], err);
    j->out->nrows = code == RP_OK ? keys.n - 1 : 0;
    rp_strtab_release(&keys);
    RP_TRY(code);
    j->out->rows = rows + 1;
    rp_sort(j->out->rows, j->out->nrows, sizeof *rows, by_total);
    return RP_OK;
}

static void fill_ranks(struct stall_sums *j)
{
    j->out->ranks = RP_ARENA_NEW(j->arena, struct rp_stall_rank, j->n + 1);
    if (!j->out->ranks)
        return;
    j->out->nranks = j->n;
    for (size_t r = 0; r < j->n; r++)
        j->out->ranks[r] =
            (struct rp_stall_rank){.path = j->ranks->parts[r].path,
                                   .rank = j->ranks->parts[r].number,
                                   .device_idle_ns = part_of(j, r)->on_device ? 0 : RP_ABSENT_I64};
    for (size_t i = 0; i < j->nstalls; i++) {
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
    if (j->n > 1 && j->out->total_ns) {
        j->out->rank_rows = j->out->ranks;
        j->out->nrank_rows = j->n;
    }
}

/* "they cluster around 8.03 ms (46 stalls), 21.1 ms (54)": modes with a tenth of all stalls. */
static void fill_modes(struct stall_sums *j)
{
    int64_t *v = RP_ARENA_NEW(j->arena, int64_t, j->nstalls + 1);
    const char *text = NULL;

    if (!v || !j->nstalls)
        return;
    for (size_t i = 0; i < j->nstalls; i++)
        v[i] = j->stalls[i].self_ns;
    rp_ns_sort(v, j->nstalls);
    j->out->modes = modes_of(j, v, j->nstalls, &j->out->nmodes);
    for (size_t i = 0; i < j->out->nmodes; i++) {
        const struct rp_stall_mode *m = &j->out->modes[i];

        if (m->count <= 2 || m->count * 10 < (int64_t)j->nstalls)
            continue;
        text = text ? rp_arena_textf(j->arena, "%s, %s (%lld)", text, duration(j, m->at_ns),
                                     (long long)m->count)
                    : rp_arena_textf(j->arena, "they cluster around %s (%lld stalls)",
                                     duration(j, m->at_ns), (long long)m->count);
    }
    j->out->modes_text = text;
}

RP_ORDER(by_length, struct rp_stall, RP_DOWN(self_ns), RP_UP(rank), RP_UP(begin_ns))

/* Fills what to try for each cause that occurs, the one with most time first. */
static void fill_hints(struct stall_sums *j)
{
    int64_t cause_ns[RP_STALL_CAUSES] = {0}, count[RP_STALL_CAUSES] = {0};
    int c, best, round;

    j->out->hints = RP_ARENA_NEW(j->arena, const char *, RP_STALL_CAUSES + 1);
    for (size_t i = 0; i < j->nstalls; i++) {
        rp_ns_add(&cause_ns[j->stalls[i].why], j->stalls[i].self_ns);
        count[j->stalls[i].why]++;
    }
    for (round = 0; round < RP_STALL_CAUSES && j->out->hints; round++) {
        for (best = 0, c = 1; c < RP_STALL_CAUSES; c++)
            best = cause_ns[c] > cause_ns[best] ? c : best;
        if (cause_ns[best] <= 0)
            return;
        j->out->hints[j->out->nhints++] =
            rp_arena_textf(j->arena, "%s (%lld, %s): %s. Try: %s", rp_stall_cause_names[best],
                           (long long)count[best], duration(j, cause_ns[best]), cause_docs[best],
                           hint_of(j, (uint8_t)best));
        cause_ns[best] = 0;
    }
}

static void fill_summary(struct stall_sums *j)
{
    struct rp_stalls_root *out = j->out;
    const char *idle = "", *floor = duration(j, j->rule.floor_ns);

    if (part_of(j, 0)->on_device)
        idle = rp_arena_textf(j->arena, "; the device did nothing in %s of it",
                              duration(j, out->device_idle_ns));
    out->summary =
        j->nstalls
            ? rp_arena_textf(j->arena,
                             "%s%s took %s: %sover %s and %lld times the "
                             "median of its name%s",
                             rp_units_count(j->arena, (int64_t)j->nstalls, "host call"),
                             part_of(j, 0)->judged, duration(j, out->total_ns),
                             j->nstalls == 1 ? "" : "each ", floor, (long long)j->rule.ratio, idle)
            : rp_arena_textf(j->arena,
                             "no host call%s took over %s and %lld times the median of its "
                             "name",
                             part_of(j, 0)->judged, floor, (long long)j->rule.ratio);
}

static void fill_notes(struct stall_sums *j)
{
    struct rp_stalls_root *out = j->out;
    const char *floor = duration(j, j->rule.floor_ns);

    if (part_of(j, 0)->outside)
        RP_NOTE(out, j->arena, part_of(j, 0)->outside);
    if (j->waits)
        RP_NOTE(out, j->arena,
                rp_arena_textf(
                    j->arena,
                    "%s over %s (%s in all) %s for the device and %s stall%s: see 'reprise idle'",
                    rp_units_count(j->arena, j->waits, "synchronizing call"), floor,
                    duration(j, j->wait_ns), j->waits == 1 ? "waits" : "wait",
                    j->waits == 1 ? "is no" : "are no", j->waits == 1 ? "" : "s"));
    if (j->few)
        RP_NOTE(out, j->arena,
                rp_arena_textf(
                    j->arena,
                    "%s over %s (%s in all) left out: names with fewer than %lld calls have no "
                    "usual duration",
                    rp_units_count(j->arena, j->few, "call"), floor, duration(j, j->few_ns),
                    (long long)j->rule.calls));
}

static enum rp_code stalls_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                                struct rp_result *result, struct rp_err *err)
{
    struct stall_sums j = {.ranks = ranks,
                           .n = ranks->n,
                           .rule = {.floor_ns = rp_settings_int(settings, "least"),
                                    .ratio = rp_settings_int(settings, "over"),
                                    .calls = rp_stall_usual.calls},
                           .arena = &result->arena,
                           .out = result->root};

    j.out->by = rp_arena_text(j.arena, rp_settings_text(settings, "by"));
    j.out->floor_ns = j.rule.floor_ns;
    j.out->ratio = j.rule.ratio;
    RP_TRY(find_stalls(&j, err));
    fill_ranks(&j);
    RP_TRY(make_rows(&j, err));
    fill_modes(&j);
    fill_hints(&j);
    fill_summary(&j);
    fill_notes(&j);

    /* The limit is for the lists of the text output: rows and single stalls. */
    int64_t limit = rp_settings_int(settings, "limit");
    struct rp_stalls_root *out = j.out;
    out->stall_count = (int64_t)j.nstalls;
    out->stalls = j.stalls;
    out->nstalls = j.nstalls;
    rp_sort(j.stalls, j.nstalls, sizeof *j.stalls, by_length);
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

    return rp_arena_check(j.arena, "adding up stalls", err);
}

/* ------------------------------------------------------------------ the row */

static enum rp_code stalls_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                                const struct rp_settings *settings, struct rp_rank_part *part,
                                struct rp_err *err)
{
    return rp_stalls_list_calls(loaded->trace, scope, rp_settings_int(settings, "least"),
                                &part->arena, part->data, err);
}

static const struct rp_option options[] = {
    {"by", 'b', RP_OPT_CHOICE, "name|cause|thread|step|rank", "name", "what the rows are", 0},
    {"limit", 'n', RP_OPT_COUNT, "N", "10", "at most N rows and N single stalls; 0: all", 0},
    {"over", 0, RP_OPT_INT, "1..1000000", "50",
     "minimum ratio of a stall to the median of its name", 0},
    {"least", 0, RP_OPT_DURATION, "TIME", "1ms", "minimum stall duration", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_stalls = {
    .question =
        {.name = "stalls",
         .group = "traces",
         .summary = "host calls far above their own median, and why",
         .details =
             "Compares the own time of every operator, annotation, runtime call and Python "
             "frame (without the spans inside it) with the median of its name on all "
             "ranks. Each stall is shown with its thread, its step, how long the device was idle meanwhile, and a cause where the trace shows one.",
         .examples = "reprise stalls run/\twhat delayed the hosts\n"
                     "reprise stalls --by step trace.json.gz\tin which steps\n"
                     "reprise stalls --over 10 --least 200us trace.json.gz\tshorter ones\n",
         .accepts = RP_ACCEPTS_TRACES,
         .options = options,
         .type = &stalls_type},
    .ranks = {.part = &part_type, .rank = stalls_rank, .join = stalls_join}};
