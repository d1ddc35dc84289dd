/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self times come from one pass: every call starts with its duration, and the duration of each call
 * is subtracted from its parent. They are then packed by name (time_lists.h); when ranks are
 * joined, only times of names with a slow call are unpacked, one name after the other, for its
 * median.
 */
#include "facts/host/calls.h"

#include "base/decides.h"
#include "base/filled.h"
#include "base/strtab.h"
#include "facts/host/signs.h"
#include "facts/host/waits.h"
#include "facts/times/durations.h"
#include "facts/work/attribution.h"
#include "facts/work/call_work.h"
#include "result/part.h"

#define STALL_RATIO 50
RP_DECISION(
    STALL_RATIO, "medians of its name",
    "a call that takes so many times as long as usual did not do the same work; what has more to "
    "do is told by its inputs",
    "facts/a_stall_has_edges");
#define STALL_CALLS 16
RP_DECISION(STALL_CALLS, "calls", "a name with fewer has no usual duration",
            "facts/a_stall_has_edges");
const struct rp_stall_rule rp_stall_usual = {
    .floor_ns = RP_LONG_NS, .ratio = STALL_RATIO, .calls = STALL_CALLS};

static const struct rp_field host_calls_fields[] = {
    RP_PART_VEC(struct rp_host_calls, names, &rp_type_string),
    RP_PART_PLAIN_VEC(struct rp_host_calls, kind, uint8_t),
    RP_PART_PLAIN_VEC(struct rp_host_calls, flags, uint8_t),
    RP_PART_RECORD(struct rp_host_calls, self, &rp_time_lists_type),
    RP_PART_PLAIN_VEC(struct rp_host_calls, slow, struct rp_slow_call),
    RP_PART_END};
const struct rp_type rp_host_calls_type = {"host_calls", sizeof(struct rp_host_calls),
                                           host_calls_fields, NULL};

struct call_ctx {
    const struct rp_trace *t;
    const struct rp_scope *scope;
    struct rp_host_calls *out;
    struct rp_arena *arena;
    struct rp_strtab names;
    struct rp_name_series series;
    RP_VEC(uint32_t) group; /* by string of the trace: index of its name, or RP_NONE */
    RP_VEC(int64_t) self;   /* by event; -1: not a call */
    RP_VEC(uint32_t) begin; /* by name: index of the first of its times, in the list of all */
    RP_VEC(int64_t) times;
    RP_VEC(char) text;
};

static bool is_call(const struct call_ctx *c, rp_event e)
{
    const struct rp_events *ev = &c->t->ev;

    if (ev->dur_ns[e] < 0 || ev->ts_ns[e] == RP_NO_TS ||
        c->t->tracks[ev->track[e]].kind != RP_TRACK_THREAD)
        return false;
    switch (ev->kind[e]) {
    case RP_KIND_CPU_OP:
    case RP_KIND_ANNOTATION:
    case RP_KIND_RUNTIME:
    case RP_KIND_PYTHON:
    case RP_KIND_COMM_OP:
    case RP_KIND_OTHER:
        return true;
    case RP_KIND_WAIT: /* counted separately for threads with work */
        return rp_event_is_host_wait(c->t, e) &&
               rp_event_around(c->t, ev->parent[e], RP_KIND_RUNTIME) == RP_NONE &&
               (rp_event_around(c->t, ev->parent[e], RP_KIND_ANNOTATION) != RP_NONE ||
                rp_event_around(c->t, ev->parent[e], RP_KIND_CPU_OP) != RP_NONE);
    default:
        return false;
    }
}

static bool in_scope(const struct call_ctx *c, rp_event e)
{
    return rp_scope_has(c->scope, c->t->ev.ts_ns[e]);
}

/* Self times of all calls; parents come before their children. */
static enum rp_code measure_self_times(struct call_ctx *c, struct rp_err *err)
{
    const struct rp_events *ev = &c->t->ev;
    rp_event e, p;

    RP_TRY(rp_vec_reserve(&c->self, ev->n + 1, err));
    for (e = 0; e < ev->n; e++) {
        c->self.at[e] = is_call(c, e) ? ev->dur_ns[e] : -1;
        if (c->self.at[e] < 0)
            continue;
        for (p = ev->parent[e]; p != RP_NONE && c->self.at[p] < 0; p = ev->parent[p])
            ;
        if (p != RP_NONE)
            c->self.at[p] =
                c->self.at[p] > ev->dur_ns[e] ? rp_ns_between(ev->dur_ns[e], c->self.at[p]) : 0;
    }
    return RP_OK;
}

static uint8_t flags_of(const char *name, uint8_t kind)
{
    uint16_t signs = rp_host_signs(name);

    return (uint8_t)((signs & RP_SIGN_BLOCKS ? RP_CALL_WAITS : 0) |
                     (!strncmp(name, "Profiler", 8) ? RP_CALL_STEP : 0) |
                     (rp_call_time_varies(kind, signs) ? RP_CALL_VARIES : 0));
}

static enum rp_code add_name(struct call_ctx *c, const char *name, uint8_t kind, struct rp_err *err)
{
    RP_TRY(rp_vec_push(&c->out->names, rp_arena_text(c->arena, name), err));
    RP_TRY(rp_vec_push(&c->out->kind, kind, err));
    RP_TRY(rp_vec_push(&c->out->flags, flags_of(name, kind), err));
    return rp_vec_push(&c->begin, 0, err);
}

/* The index of the name of a call, added on first use. */
static enum rp_code name_of(struct call_ctx *c, rp_event e, uint32_t *name, struct rp_err *err)
{
    rp_str s = c->t->ev.name[e];

    *name = c->group.at[s];
    if (*name != RP_NONE)
        return RP_OK;

    /* Remove numbers that count calls: after '#', and those of a series. */
    const char *series = rp_name_series_of(&c->series, s);
    const char *p = series ? series : rp_trace_str(c->t, s);
    const char *end = p + (series ? strlen(series) : rp_trace_str_len(c->t, s));
    c->text.n = 0;
    RP_TRY(rp_vec_reserve(&c->text, (size_t)(end - p) + 1, err));
    while (p < end) {
        bool number = *p == '#';

        c->text.at[c->text.n++] = *p++;
        while (number && p < end && *p >= '0' && *p <= '9')
            p++;
    }
    c->text.at[c->text.n] = '\0';

    RP_TRY(rp_strtab_intern(&c->names, c->text.at, c->text.n, name, err));
    if (c->out->names.n <= *name)
        RP_TRY(add_name(c, c->text.at, c->t->ev.kind[e], err));
    c->group.at[s] = *name;
    return RP_OK;
}

/* Counts calls by name in begin[name], and notes the slow ones. */
static enum rp_code count_calls(struct call_ctx *c, int64_t floor_ns, struct rp_err *err)
{
    uint32_t name;

    RP_TRY(rp_vec_nones(&c->group, c->t->str.n, err));
    RP_TRY(add_name(c, "", RP_KIND_OTHER, err)); /* index 0 is the empty name */
    for (rp_event e = 0; e < c->t->ev.n; e++) {
        struct rp_slow_call slow = {e, 0, c->self.at[e], 0};

        if (c->self.at[e] < 0 || !in_scope(c, e))
            continue;
        RP_TRY(name_of(c, e, &name, err));
        c->begin.at[name]++;
        slow.name = name;
        if (slow.self_ns > floor_ns)
            RP_TRY(rp_vec_push(&c->out->slow, slow, err));
    }
    return RP_OK;
}

/* Groups the self times by name, and packs them. */
static enum rp_code place_times(struct call_ctx *c, struct rp_err *err)
{
    uint32_t i, begin, sum = 0;

    for (i = 0; i < c->begin.n; i++) {
        uint32_t count = c->begin.at[i];

        c->begin.at[i] = sum;
        sum += count;
    }
    RP_TRY(rp_vec_reserve(&c->times, sum + 1, err));
    for (rp_event e = 0; e < c->t->ev.n; e++)
        if (c->self.at[e] >= 0 && in_scope(c, e))
            c->times.at[c->begin.at[c->group.at[c->t->ev.name[e]]]++] = c->self.at[e];
    for (i = 0, begin = 0; i < c->begin.n; begin = c->begin.at[i++]) /* which is now its end */
        RP_TRY(rp_time_lists_add(&c->out->self, c->times.at + begin, c->begin.at[i] - begin, err));
    return RP_OK;
}

enum rp_code rp_host_calls_init(struct rp_host_calls *out, const struct rp_trace *trace,
                                const struct rp_scope *scope, int64_t floor_ns,
                                struct rp_arena *arena, struct rp_err *err)
{
    static const struct rp_scope whole = {0};
    struct call_ctx c = {.t = trace, .scope = scope ? scope : &whole, .out = out, .arena = arena};

    *out = (struct rp_host_calls){0};
    enum rp_code code = rp_strtab_init(&c.names, err);
    if (code == RP_OK)
        code = rp_name_series_init(&c.series, trace, err);
    if (code == RP_OK)
        code = measure_self_times(&c, err);
    if (code == RP_OK)
        code = count_calls(&c, floor_ns, err);
    if (code == RP_OK)
        code = place_times(&c, err);
    if (code == RP_OK)
        code = rp_arena_check(arena, "listing host calls", err);
    rp_strtab_release(&c.names);
    rp_name_series_release(&c.series);
    rp_vec_release(&c.group);
    rp_vec_release(&c.self);
    rp_vec_release(&c.begin);
    rp_vec_release(&c.times);
    rp_vec_release(&c.text);
    return code;
}

void rp_host_calls_release(struct rp_host_calls *calls)
{
    rp_vec_release(&calls->names);
    rp_vec_release(&calls->kind);
    rp_vec_release(&calls->flags);
    rp_time_lists_release(&calls->self);
    rp_vec_release(&calls->slow);
}

enum rp_code rp_call_times(struct rp_call_names *names, const struct rp_call_name *name,
                           const int64_t **out, struct rp_err *err)
{
    *out = names->times;
    return rp_time_lists_join(name->lists, name->nlists, names->times, err);
}

/* Counts the calls of each name, and lists the ranks that have times of it. */
static enum rp_code gather_calls(const struct rp_host_calls *const *ranks, size_t n,
                                 struct rp_arena *arena, struct rp_call_names *out,
                                 struct rp_err *err)
{
    size_t r, g, most = 0;

    for (r = 0; r < n; r++)
        for (g = 0; g < ranks[r]->names.n; g++) {
            struct rp_call_name *name = &out->at[out->to[r][g]];

            name->name = ranks[r]->names.at[g];
            name->kind = ranks[r]->kind.at[g];
            name->flags = ranks[r]->flags.at[g];
            name->count += ranks[r]->self.count.at[g];
            name->nlists++;
        }
    for (g = 0; g < out->n; g++) {
        struct rp_call_name *name = &out->at[g];

        if (!name->slow)
            continue;
        most = name->count > most ? name->count : most;
        name->lists = RP_ARENA_NEW(arena, struct rp_time_list, name->nlists + 1);
        name->nlists = 0;
    }
    out->times = RP_ARENA_NEW(arena, int64_t, most + 1);
    RP_TRY(rp_arena_check(arena, "comparing host calls", err));
    for (r = 0; r < n; r++)
        for (g = 0; g < ranks[r]->names.n; g++) {
            struct rp_call_name *name = &out->at[out->to[r][g]];

            if (name->slow)
                name->lists[name->nlists++] = (struct rp_time_list){&ranks[r]->self, (uint32_t)g};
        }
    return RP_OK;
}

enum rp_code rp_call_names_join(const struct rp_host_calls *const *ranks, size_t n,
                                struct rp_arena *arena, struct rp_call_names *out,
                                struct rp_err *err)
{
    RP_SCOPED(rp_strtab_release) struct rp_strtab tab = {0};

    *out = (struct rp_call_names){0};
    for (size_t r = 0; r < n; r++)
        RP_TRY(rp_time_lists_check(&ranks[r]->self, ranks[r]->names.n, err));
    RP_TRY(rp_strtab_init(&tab, err));

    /* Map every name of every rank to one list of names. */
    out->to = RP_ARENA_NEW(arena, uint32_t *, n + 1);
    for (size_t r = 0; out->to && r < n; r++) {
        out->to[r] = RP_ARENA_NEW(arena, uint32_t, ranks[r]->names.n + 1);
        RP_TRY(rp_err_need(out->to[r], err, "comparing host calls"));
        for (size_t g = 0; g < ranks[r]->names.n; g++)
            RP_TRY(rp_strtab_intern(&tab, ranks[r]->names.at[g], strlen(ranks[r]->names.at[g]),
                                    &out->to[r][g], err));
    }
    out->n = tab.n;
    out->at = RP_ARENA_NEW(arena, struct rp_call_name, tab.n + 1);
    RP_TRY(rp_err_need(out->to && out->at, err, "comparing host calls"));
    for (size_t g = 0; g < tab.n; g++)
        out->at[g].median_ns = RP_ABSENT_I64;

    for (size_t r = 0; r < n; r++)
        for (size_t i = 0; i < ranks[r]->slow.n; i++)
            out->at[out->to[r][ranks[r]->slow.at[i].name]].slow = true;
    RP_TRY(gather_calls(ranks, n, arena, out, err));

    const int64_t *times;
    for (size_t g = 0; g < out->n; g++)
        if (out->at[g].slow) {
            RP_TRY(rp_call_times(out, &out->at[g], &times, err));
            out->at[g].median_ns = rp_ns_median(times, out->at[g].count);
            out->at[g].often_ns = times[out->at[g].count - 1 - out->at[g].count / 10];
        }
    return RP_OK;
}

static bool is_far_above(const struct rp_call_name *name, int64_t self_ns,
                         const struct rp_stall_rule *rule)
{
    int64_t usual =
        name->median_ns > RP_CLOCK_RESOLUTION_NS ? name->median_ns : RP_CLOCK_RESOLUTION_NS;

    return self_ns > rule->floor_ns && self_ns / rule->ratio >= usual &&
           (self_ns / rule->ratio > usual || self_ns % rule->ratio);
}

bool rp_is_stall(const struct rp_call_name *name, int64_t self_ns, const struct rp_stall_rule *rule)
{
    return !(name->flags & (RP_CALL_WAITS | RP_CALL_STEP | RP_CALL_VARIES)) &&
           (int64_t)name->count >= rule->calls && is_far_above(name, self_ns, rule) &&
           !(name->kind == RP_KIND_ANNOTATION && is_far_above(name, name->often_ns, rule));
}
