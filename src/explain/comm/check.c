/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls are sorted by group, number in the group, rank: the calls of one collective are neighbours.
 * The majority of ranks (a linear vote) counts as right. Numbers are those of the recorder; without
 * any, the position among the calls of the rank in that group.
 */
#include "explain/comm/check.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"
#include "explain/idle/sampled.h"
#include "facts/times/intervals.h"
#include "result/print_units.h"

#include <stdlib.h>
#include <string.h>

#define NAMED 6
RP_LIMIT(NAMED, "ranks in a sentence", "'…' stands for the others; the table has them all");

#define CALL(member, type) RP_FIELD(struct rp_comm_call, member, type, NONE, NULL, "", 0)
static const struct rp_field call_fields[] = {
    CALL(kind, STR),     CALL(group, STR), CALL(members, STR), CALL(dtype, STR),
    CALL(shapes, STR),   CALL(line, STR),  CALL(seq, I64),     CALL(in_bytes, I64),
    CALL(begin_ns, I64), CALL(ended, I64), RP_FIELD_END};
const struct rp_type rp_comm_call_type = {"call", sizeof(struct rp_comm_call), call_fields, NULL};

#define CHECK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_check, member, type, unit, title, doc, flags)
static const struct rp_field check_fields[] = {
    CHECK(collective, STR, NONE, "collective", "its kind; null: no_file", RP_SHORTEN),
    CHECK(group, STR, NONE, "group", "process group, or null", RP_SHORTEN),
    CHECK(seq, I64, NONE, "number", "sequence number in its group", RP_NULLABLE),
    CHECK(rank, I64, NONE, "rank", "the rank that differs", 0),
    CHECK(problem, STR, NONE, "problem",
          "no_file, not_entered, kind, size, type, not_left or waits", 0),
    CHECK(detail, STR, NONE, "detail", "what the rank did, and the others", RP_SHORTEN),
    CHECK(line, STR, NONE, "line", "line of the program, or null", RP_SHORTEN),
    RP_FIELD_END};
const struct rp_type rp_comm_check_type = {"check", sizeof(struct rp_comm_check), check_fields,
                                           NULL};

/* ------------------------------------------------------------------ the calls of a rank */

/* Whether a recorder has noted a long call while it was running. */
static bool is_in_flight(const struct rp_trace *t, rp_event e)
{
    return t->ev.kind[e] == RP_KIND_WAIT &&
           strcmp(rp_trace_str(t, t->origins[t->ev.origin[e]].category), "in_flight") == 0;
}

/* Whether that call has ended, because a span of its own has the same begin. */
static bool has_ended(const struct rp_trace *t, rp_event flight)
{
    for (rp_event e = 0; e < t->ev.n; e++)
        if (t->ev.ts_ns[e] == t->ev.ts_ns[flight] && t->ev.name[e] == t->ev.name[flight] &&
            !is_in_flight(t, e))
            return true;
    return false;
}

static bool is_open(const struct rp_trace *t, rp_event e)
{
    return (t->ev.kind[e] == RP_KIND_COMM_OP && t->ev.flags[e] & RP_EVENT_UNENDED) ||
           (is_in_flight(t, e) && !has_ended(t, e));
}

bool rp_comm_may_hang(const struct rp_trace *t)
{
    if (strcmp(rp_trace_str(t, t->format), "flight-recorder") == 0)
        return true;
    for (rp_event e = 0; e < t->ev.n; e++)
        if (is_open(t, e))
            return true;
    return false;
}

struct call_keys {
    struct rp_arg_key shapes, stack, state;
};

/* Whether a frame belongs to PyTorch itself, or to Python's own library, in which threads wait;
   "/opt/my-torch/bin/train.py" belongs to neither. */
static bool is_library(const char *frame, const char *end)
{
    const char *at = frame, *python = memmem(frame, (size_t)(end - frame), "/python3.", 9);

    if (python && !memmem(python, (size_t)(end - python), "-packages/", 10))
        return true;
    while ((at = memmem(at, (size_t)(end - at), "torch/", 6)) && at != frame && at[-1] != '/')
        at += 6;
    return at != NULL;
}

/* Writes "train.py:125 step" for the innermost Python frame that is not in a library, or else for
   the innermost Python frame. */
static const char *line_of(const char *stack, struct rp_arena *arena)
{
    const char *open, *close, *end, *found = NULL;

    for (; *stack; stack = *end ? end + 1 : end) {
        end = strchrnul(stack, ';');
        open = memchr(stack, '(', (size_t)(end - stack));
        close = open ? memchr(open, ')', (size_t)(end - open)) : NULL;
        if (!close || close[1] != ':' || close + 2 >= end ||
            !rp_text_ends_n(stack, (size_t)(open - stack), ".py"))
            continue;
        bool library = is_library(stack, open);
        if (found && library)
            continue;
        found =
            rp_arena_textf(arena, "%.*s:%.*s%.*s", (int)(open - stack), stack,
                           (int)(close - open - 1), open + 1, (int)(end - close - 2), close + 2);
        if (!library)
            return found;
    }
    return found;
}

static const char *key_text(const struct rp_arg_key *key, const struct rp_trace *t, rp_event e)
{
    rp_str s;

    return rp_arg_key_text(key, e, &s) && rp_trace_str_len(t, s) ? rp_trace_str(t, s) : NULL;
}

static void fill_call(struct rp_comm_call *c, const struct rp_coll_reader *reader,
                      const struct call_keys *keys, rp_event e, struct rp_arena *arena)
{
    const struct rp_trace *t = reader->trace;
    struct rp_coll_facts f = rp_coll_read(reader, e, RP_NONE);
    const char *stack = key_text(&keys->stack, t, e), *shapes = key_text(&keys->shapes, t, e);
    const char *state = key_text(&keys->state, t, e);

    *c = (struct rp_comm_call){
        .kind = f.kind == RP_COLL_OTHER ? rp_arena_text(arena, rp_trace_str(t, t->ev.name[e]))
                                        : rp_coll_kind_names[f.kind],
        .group = f.group == RP_NONE ? NULL : rp_arena_text(arena, rp_trace_str(t, f.group)),
        .members = f.members == RP_NONE ? NULL : rp_arena_text(arena, rp_trace_str(t, f.members)),
        .dtype = f.dtype,
        .shapes = shapes ? rp_arena_text(arena, shapes) : NULL,
        .line = stack ? line_of(stack, arena) : NULL,
        .seq = f.seq,
        .in_bytes = f.in_elements < 0 ? -1 : f.in_elements * (f.item_bytes ? f.item_bytes : 1),
        .begin_ns = t->ev.ts_ns[e] + (t->has_base ? t->base_ns : 0),
        .ended = state ? strcmp(state, "completed") == 0
                       : !(t->ev.flags[e] & RP_EVENT_UNENDED || is_in_flight(t, e))};
}

RP_ORDER(by_begin, struct rp_comm_call, RP_UP(begin_ns), RP_DOWN(ended))

static enum rp_code calls_of_events(const struct rp_trace *t, struct rp_arena *arena,
                                    struct rp_comm_call **out, size_t *n, struct rp_err *err)
{
    struct rp_coll_reader reader = {0};
    struct call_keys keys = {0};
    enum rp_code code = rp_coll_reader_init(&reader, t, err);
    bool recorded = strcmp(rp_trace_str(t, t->format), "flight-recorder") != 0;
    size_t most = 0;

    if (code == RP_OK)
        code = rp_arg_key_init(&keys.shapes, t, "Input Dims", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&keys.stack, t, "Call stack", err);
    if (code == RP_OK)
        code = rp_arg_key_init(&keys.state, t, "State", err);
    for (rp_event e = 0; code == RP_OK && e < t->ev.n; e++)
        most += is_open(t, e) || rp_event_is_host_collective(t, e);
    *out = code == RP_OK ? RP_ARENA_NEW(arena, struct rp_comm_call, most + 1) : NULL;
    for (rp_event e = 0; *out && e < t->ev.n; e++)
        if (is_open(t, e) || rp_event_is_host_collective(t, e))
            fill_call(&(*out)[(*n)++], &reader, &keys, e, arena);
    if (*out && recorded) /* the spans belong to several threads */
        rp_sort(*out, *n, sizeof **out, by_begin);
    rp_coll_reader_release(&reader);
    rp_arg_key_release(&keys.shapes);
    rp_arg_key_release(&keys.stack);
    rp_arg_key_release(&keys.state);
    return code == RP_OK ? rp_arena_check(arena, "listing collectives", err) : code;
}

enum rp_code rp_comm_find_calls(const struct rp_trace *trace, const struct rp_collectives *list,
                                struct rp_arena *arena, struct rp_comm_call **out, size_t *n,
                                struct rp_err *err)
{
    *n = 0;
    return rp_comm_may_hang(trace) ? calls_of_events(trace, arena, out, n, err)
                                   : rp_comm_list_calls(list, arena, out, n, err);
}

enum rp_code rp_comm_list_calls(const struct rp_collectives *list, struct rp_arena *arena,
                                struct rp_comm_call **out, size_t *n, struct rp_err *err)
{
    *n = 0;
    *out = RP_ARENA_NEW(arena, struct rp_comm_call, list->list.n + 1);
    for (size_t i = 0; *out && i < list->list.n; i++) {
        const struct rp_collective *c = &list->list.at[i];

        (*out)[(*n)++] = (struct rp_comm_call){
            .kind = c->kind == RP_COLL_OTHER ? c->name : rp_coll_kind_names[c->kind],
            .group = c->group,
            .dtype = c->dtype,
            .seq = c->seq,
            .in_bytes = c->in_bytes,
            .begin_ns = c->begin_ns + list->base_ns,
            .ended = 1};
    }
    return rp_arena_check(arena, "listing collectives", err);
}

/* ------------------------------------------------------------------ where a rank is */

#define LONG_NS 1000000000
RP_DECISION(LONG_NS, "ns",
            "a collective that ends takes milliseconds; a watchdog ends the program after minutes",
            "explain/a_collective_that_may_not_end_has_an_edge");

/* What the stack of a sample says. */
struct place {
    uint32_t frame; /* the innermost Python frame that is not in a library, else the innermost one;
                       without Python, the innermost function in the program's own file */
    uint8_t kind;   /* enum rp_coll_kind of the function of torch.distributed around it, or OTHER */
};

static struct place place_in(const struct rp_trace *t, uint32_t stack)
{
    const struct rp_call_samples *c = &t->samples;
    struct place p = {RP_NONE, RP_COLL_OTHER};
    uint32_t native = RP_NONE;

    for (; stack != RP_NONE; stack = c->stacks[stack].parent) {
        uint32_t frame = c->stacks[stack].frame;
        const char *file = rp_trace_str(t, c->frame[frame].file);
        bool library = is_library(file, file + strlen(file));

        if (native == RP_NONE && c->frame[frame].kind == RP_FRAME_NATIVE && *file &&
            !strstr(file, ".so"))
            native = frame;
        if (c->frame[frame].kind != RP_FRAME_PYTHON)
            continue;
        if (library && strstr(file, "torch/distributed/") && p.kind == RP_COLL_OTHER)
            p.kind = (uint8_t)rp_coll_kind_of(rp_trace_str(t, c->frame[frame].name));
        if (p.frame == RP_NONE || !library)
            p.frame = frame;
        if (!library)
            break;
    }
    if (p.frame == RP_NONE)
        p.frame = native;
    return p;
}

static bool is_main_thread(const struct rp_trace *t, rp_track track)
{
    return t->tracks[track].native_id == t->processes[t->tracks[track].process].native_id;
}

/* The place where the threads (or only the main one) spent most time since then. */
static enum rp_code longest_place(const struct rp_trace *t, bool main_only, int64_t since_ns,
                                  struct place *out, int64_t *most, struct rp_err *err)
{
    const struct rp_call_samples *c = &t->samples;
    RP_VEC(int64_t) weights = {0};
    enum rp_code code = RP_OK;
    struct rp_map known = {0};

    for (uint32_t i = 0; i < c->n && code == RP_OK; i++) {
        int64_t weight = rp_sampled_weight(t, i, since_ns, INT64_MAX);
        struct place p = {RP_NONE, 0};
        uint32_t at;

        if (weight > 0 && (!main_only || is_main_thread(t, c->track[i])))
            p = place_in(t, c->stack[i]);
        if (p.frame == RP_NONE)
            continue;
        code =
            rp_map_intern(&known, (uint64_t)p.kind << 32 | p.frame, (uint32_t)weights.n, &at, err);
        if (code == RP_OK && at >= weights.n)
            code = rp_vec_push(&weights, 0, err);
        if (code != RP_OK || !weights.at)
            break;
        rp_ns_add(&weights.at[at], weight);
        if (weights.at[at] > *most) {
            *most = weights.at[at];
            *out = p;
        }
    }
    rp_map_release(&known);
    rp_vec_release(&weights);
    return code;
}

enum rp_code rp_comm_find_place(const struct rp_trace *trace, int64_t since_ns,
                                struct rp_arena *arena, struct rp_comm_place *out,
                                struct rp_err *err)
{
    const struct rp_call_samples *c = &trace->samples;
    struct place found = {RP_NONE, RP_COLL_OTHER};
    int64_t most = 0;

    *out = (struct rp_comm_place){0};
    if (!c->n)
        return RP_OK;
    RP_TRY(rp_trace_require(trace, RP_NEED_SAMPLES, err));
    RP_TRY(longest_place(trace, true, since_ns, &found, &most, err));
    if (found.frame == RP_NONE)
        RP_TRY(longest_place(trace, false, since_ns, &found, &most, err));
    if (found.frame == RP_NONE)
        return RP_OK;

    /* "train.py:125 step", "main (solver)" */
    uint32_t frame = found.frame;
    const struct rp_call_frame *f = &trace->samples.frame[frame];
    const char *file = rp_trace_str(trace, f->file), *name = rp_trace_str(trace, f->name);
    out->line = f->line ? rp_arena_textf(arena, "%s:%u %s", file, f->line, name)
                        : rp_arena_textf(arena, "%s (%s)", name, rp_text_file(file));

    if (found.kind != RP_COLL_OTHER && c->unit == RP_WEIGHT_NS && most >= LONG_NS &&
        most > rp_ns_between(since_ns, trace->totals.span_end_ns) / 2)
        out->kind = rp_coll_kind_names[found.kind];
    return RP_OK;
}

void rp_comm_add_open(const struct rp_comm_place *place, int64_t begin_ns,
                      struct rp_comm_call *calls, size_t *n)
{
    const struct rp_comm_call *last = calls && *n ? &calls[*n - 1] : NULL;

    if (!calls) /* the caller notices that memory ran out */
        return;
    calls[(*n)++] = (struct rp_comm_call){.kind = place->kind,
                                          .group = last ? last->group : NULL,
                                          .members = last ? last->members : NULL,
                                          .line = place->line,
                                          .seq = last && last->seq >= 0 ? last->seq + 1 : -1,
                                          .in_bytes = -1,
                                          .begin_ns = begin_ns};
}

/* ------------------------------------------------------------------ comparing */

struct item { /* item: a call, and the collective it belongs to */
    uint64_t group;
    int64_t pos, rank;
    size_t caller;
    const struct rp_comm_call *call;
};

struct seat { /* a rank in a group */
    uint64_t group;
    int64_t rank, first, last;
    const struct rp_comm_call *last_call; /* NULL: it made none */
    bool missed;                          /* the rank was reported not to have entered */
};

struct compare {
    const struct rp_comm_caller *callers;
    size_t ncallers;
    struct rp_arena *arena;
    struct item *items;
    struct seat *seats;
    size_t nitems, nseats;
    struct rp_comm_checks *out;
    size_t room;
};

RP_ORDER(by_rank, struct item, RP_UP(group), RP_UP(rank), RP_UP(pos))
RP_ORDER(by_position, struct item, RP_UP(group), RP_UP(pos), RP_UP(rank))
RP_ORDER(by_seat, struct seat, RP_UP(group), RP_UP(rank))
RP_ORDER(by_time, struct rp_comm_check, RP_UP(at_ns), RP_UP(seq), RP_UP(order), RP_UP(rank))

static uint64_t text_hash(const char *text)
{
    return text ? rp_hash_bytes(text, strlen(text)) : 0;
}

/* Groups of the same name with other ranks are different groups, because names are just numbers in
   jobs with many groups. Sends and receives have two ranks and are not compared. */
static uint64_t group_of(const struct rp_comm_call *c)
{
    return rp_hash_join(text_hash(c->group), text_hash(c->members));
}

static void list_items(struct compare *w)
{
    for (size_t i = 0; i < w->ncallers; i++)
        for (size_t k = 0; k < w->callers[i].n; k++) {
            const struct rp_comm_call *c = &w->callers[i].calls[k];

            if (strcmp(c->kind, rp_coll_kind_names[RP_COLL_SEND_RECV]) != 0)
                w->items[w->nitems++] = (struct item){.group = group_of(c),
                                                      .pos = c->seq >= 0 ? c->seq : (int64_t)k,
                                                      .rank = w->callers[i].rank,
                                                      .caller = i,
                                                      .call = c};
        }
    qsort(w->items, w->nitems, sizeof *w->items, by_rank);
    for (size_t i = 0, at = 0; i < w->nitems; i++) { /* calls without numbers get their positions */
        struct item *x = &w->items[i];
        bool first = !i || x->group != x[-1].group || x->rank != x[-1].rank;

        at = first ? 0 : at + 1;
        if (x->call->seq < 0)
            x->pos = (int64_t)at;
        if (first)
            w->seats[w->nseats++] =
                (struct seat){.group = x->group, .rank = x->rank, .first = x->pos};
        w->seats[w->nseats - 1].last = x->pos;
        w->seats[w->nseats - 1].last_call = x->call;
    }
}

static const struct rp_comm_caller *caller_of(const struct compare *w, int64_t rank)
{
    size_t i;

    RP_LOWER_BOUND(i, w->ncallers, w->callers[i].rank < rank);
    return i < w->ncallers && w->callers[i].rank == rank ? &w->callers[i] : NULL;
}

static struct rp_comm_check *new_row(struct compare *w, const struct rp_comm_call *c, int64_t rank,
                                     const char *problem, int64_t order, const char *detail)
{
    struct rp_comm_check *row = &w->out->rows[w->out->n];

    if (w->out->n == w->room)
        return NULL;
    w->out->n++;
    *row = (struct rp_comm_check){.group = c->group,
                                  .collective = c->kind,
                                  .problem = problem,
                                  .detail = detail,
                                  .line = c->line,
                                  .seq = c->seq < 0 ? RP_ABSENT_I64 : c->seq,
                                  .rank = rank,
                                  .at_ns = c->begin_ns,
                                  .order = order};
    return row;
}

/* Adds ranks of a group that were given but made no call in it, and ranks that have no file. */
static void add_members(struct compare *w)
{
    size_t known = w->nseats, nothing;
    struct rp_map absent = {0};

    for (size_t i = 0; i < known; i++) {
        const struct seat *s = &w->seats[i];
        const char *at = s->last_call->members;

        if ((i && s[-1].group == s->group) || !at)
            continue;
        for (; (at = strpbrk(at, "0123456789")); at += strspn(at, "0123456789")) {
            int64_t rank = strtoll(at, NULL, 10);
            struct seat key = {.group = s->group, .rank = rank};

            if (bsearch(&key, w->seats, known, sizeof key, by_seat))
                continue;
            if (caller_of(w, rank)) {
                key.first = INT64_MIN;
                key.last = INT64_MIN;
                if (w->nseats < 2 * known + w->room)
                    w->seats[w->nseats++] = key;
            } else if (rp_map_get(&absent, (uint64_t)rank) == RP_MAP_NONE &&
                       rp_map_put(&absent, (uint64_t)rank, 1, NULL) == RP_OK) {
                static const struct rp_comm_call none = {.seq = -1, .begin_ns = INT64_MIN};

                new_row(w, &none, rank, "no_file", 0,
                        "died before it could write one, or its file was not given");
            }
        }
    }
    nothing = w->nseats - known;
    if (nothing)
        qsort(w->seats, w->nseats, sizeof *w->seats, by_seat);
    rp_map_release(&absent);
}

/* ------------------------------------------------------------------ one collective */

typedef uint64_t value_fn(const struct rp_comm_call *c);

static uint64_t kind_value(const struct rp_comm_call *c)
{
    return text_hash(c->kind);
}

static uint64_t size_value(const struct rp_comm_call *c)
{
    return c->in_bytes < 0 || strcmp(c->kind, rp_coll_kind_names[RP_COLL_ALL_TO_ALL]) == 0
               ? 0
               : (uint64_t)c->in_bytes + 1;
}

static uint64_t type_value(const struct rp_comm_call *c)
{
    return text_hash(c->dtype);
}

/* The call whose value the majority has (Boyer and Moore). */
static const struct rp_comm_call *usual(const struct item *x, size_t n, value_fn *value)
{
    const struct rp_comm_call *best = x[0].call;
    size_t votes = 0;

    for (size_t i = 0; i < n; i++) {
        if (!votes)
            best = x[i].call;
        votes = value(x[i].call) == value(best) ? votes + 1 : votes - 1;
    }
    return best;
}

static const char *size_text(const struct compare *w, const struct rp_comm_call *c)
{
    if (c->shapes)
        return c->shapes;
    return rp_arena_textf(w->arena, "%lld bytes", (long long)c->in_bytes);
}

/* Returns true if something differs. */
static bool compare_values(struct compare *w, const struct item *x, size_t n, value_fn *value,
                           const char *problem, int64_t order)
{
    const struct rp_comm_call *u = usual(x, n, value);
    bool differs = false;

    for (size_t i = 0; i < n; i++) {
        const struct rp_comm_call *c = x[i].call;

        if (value(c) == value(u) || !value(c) || !value(u) ||
            (value == size_value && type_value(c) != type_value(u))) /* bytes of another type */
            continue;
        differs = true;
        const char *own = value == kind_value   ? c->kind
                          : value == type_value ? c->dtype
                                                : size_text(w, c);
        const char *others = value == kind_value   ? u->kind
                             : value == type_value ? u->dtype
                                                   : size_text(w, u);
        new_row(w, c, x[i].rank, problem, order,
                rp_arena_textf(w->arena, "%s, others %s", own, others));
    }
    return differs;
}

/* Where a rank is now, or else the line of its last call. */
static const char *place_of(const struct compare *w, int64_t rank, const char *otherwise)
{
    const struct rp_comm_caller *caller = caller_of(w, rank);

    return caller && caller->now ? caller->now : otherwise;
}

/* Adds ranks of the group that are not in this collective. */
static size_t find_missing(struct compare *w, const struct item *x, size_t n, struct seat *seats,
                           size_t nseats)
{
    size_t k = 0, missing = 0;

    for (size_t i = 0; i < nseats; i++) {
        struct seat *s = &seats[i];

        while (k < n && x[k].rank < s->rank)
            k++;
        if ((k < n && x[k].rank == s->rank) || (s->last_call && x->pos < s->first))
            continue; /* comes before the first one that its recorder kept */
        missing++;
        if (s->missed)
            continue;
        s->missed = true;
        struct rp_comm_check *row =
            new_row(w, usual(x, n, kind_value), s->rank, "not_entered", 1,
                    !s->last_call ? "made no call in this group"
                                  : rp_arena_textf(w->arena, "its last: %s, number %lld",
                                                   s->last_call->kind, (long long)s->last));
        if (row)
            row->line = place_of(w, s->rank, s->last_call ? s->last_call->line : NULL);
    }
    return missing;
}

static void compare_collective(struct compare *w, const struct item *x, size_t n,
                               struct seat *seats, size_t nseats)
{
    size_t ended = 0, before = w->out->n;

    w->out->compared++;
    find_missing(w, x, n, seats, nseats);
    if (!compare_values(w, x, n, kind_value, "kind", 2)) {
        compare_values(w, x, n, size_value, "size", 3);
        compare_values(w, x, n, type_value, "type", 4);
    }
    for (size_t i = 0; i < n; i++)
        ended += x[i].call->ended != 0;
    for (size_t i = 0; i < n; i++)
        if (!x[i].call->ended) {
            struct rp_comm_check *row =
                ended ? new_row(w, x[i].call, x[i].rank, "not_left", 5, "others have left it")
                      : new_row(w, x[i].call, x[i].rank, "waits", 6, "in it, not ended");

            if (row && !row->line)
                row->line = place_of(w, x[i].rank, NULL);
        }
    for (size_t i = before; i < w->out->n; i++) /* all get the time of the first one */
        w->out->rows[i].at_ns = w->out->rows[before].at_ns;
}

static void compare_all(struct compare *w)
{
    size_t seat = 0, i = 0, nseats, n;

    qsort(w->items, w->nitems, sizeof *w->items, by_position);
    for (; i < w->nitems; i += n) {
        const struct item *x = &w->items[i];

        for (n = 1; i + n < w->nitems && x[n].group == x->group && x[n].pos == x->pos; n++)
            ;
        while (seat < w->nseats && w->seats[seat].group != x->group)
            seat++;
        for (nseats = 0; seat + nseats < w->nseats && w->seats[seat + nseats].group == x->group;)
            nseats++;
        compare_collective(w, x, n, &w->seats[seat], nseats);
    }
}

/* ------------------------------------------------------------------ the sentence */

static const char *problem_words(const char *problem)
{
    static const char *const words[][2] = {
        {"no_file", "no file"},   {"not_entered", "did not enter"}, {"kind", "another collective"},
        {"size", "another size"}, {"type", "another type"},         {"not_left", "did not leave"},
        {"waits", "waiting"}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], problem) == 0)
            return words[i][1];
    return problem;
}

/* "no file: rank 5, 7" */
static const char *name_ranks(struct compare *w, const char *text, const struct rp_comm_check *rows,
                              size_t n, const char **last, size_t *named)
{
    for (size_t i = 0; i < n; i++) {
        bool same = *last && strcmp(rows[i].problem, *last) == 0;

        *named = same ? *named + 1 : 1;
        if (!same)
            text = rp_arena_textf(w->arena, "%s%s%s: rank %lld", text, *last ? "; " : "",
                                  problem_words(rows[i].problem), (long long)rows[i].rank);
        else if (*named <= NAMED)
            text = rp_arena_textf(w->arena, "%s, %lld", text, (long long)rows[i].rank);
        else if (*named == NAMED + 1)
            text = rp_arena_textf(w->arena, "%s …", text);
        *last = rows[i].problem;
    }
    return text;
}

/* Describes what is wrong with the first collective that differs, after the ranks without a file:
   "all_reduce 6 of group '0': did not enter: rank 3; another size: rank 1; waiting: rank 0, 2". */
static const char *first_problem(struct compare *w)
{
    const struct rp_comm_check *rows = w->out->rows, *first;
    const char *text = "", *last = NULL;
    size_t absent = 0, n = 0, named = 0;

    while (absent < w->out->n && rows[absent].order == 0)
        absent++;
    text = name_ranks(w, text, rows, absent, &last, &named);
    first = rows + absent;
    while (absent + n < w->out->n && first[n].seq == first->seq && first[n].at_ns == first->at_ns)
        n++;
    if (!n)
        return text;
    text = rp_arena_textf(w->arena, "%s%s%s", text, absent ? "; " : "", first->collective);
    if (first->seq != RP_ABSENT_I64)
        text = rp_arena_textf(w->arena, "%s %lld", text, (long long)first->seq);
    if (first->group)
        text = rp_arena_textf(w->arena, "%s of group '%s'", text, first->group);
    last = NULL;
    return name_ranks(w, rp_arena_textf(w->arena, "%s: ", text), first, n, &last, &named);
}

enum rp_code rp_comm_compare(const struct rp_comm_caller *callers, size_t n, int64_t world_size,
                             struct rp_arena *arena, struct rp_comm_checks *out, struct rp_err *err)
{
    struct compare w = {.callers = callers, .ncallers = n, .arena = arena, .out = out};
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += callers[i].n;
    *out = (struct rp_comm_checks){0};
    w.room = 3 * total + (size_t)(world_size > 0 ? world_size : 0) + n + 16;
    w.items = RP_ARENA_NEW(arena, struct item, total + 1);
    w.seats = RP_ARENA_NEW(arena, struct seat, 2 * total + w.room + 1);
    out->rows = RP_ARENA_NEW(arena, struct rp_comm_check, w.room + 1);
    RP_TRY(rp_arena_check(arena, "comparing collectives", err));
    list_items(&w);
    add_members(&w);
    compare_all(&w);
    qsort(out->rows, out->n, sizeof *out->rows, by_time);
    if (out->n)
        out->text = first_problem(&w);
    else
        out->text = rp_arena_textf(
            arena, "%s of %s: order, kinds, sizes and types are the same on all ranks",
            rp_units_count(arena, out->compared, "collective"),
            rp_units_count(arena, (int64_t)n, "rank"));
    return rp_arena_check(arena, "comparing collectives", err);
}
