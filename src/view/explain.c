/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places the answers of questions on the timeline. A page asks for them after its first picture;
 * each question is asked once per run, about all of it, and its answer is kept.
 *
 *     explain?run=0&what=findings   `report`: findings with the times at which they happen,
 *                                   opportunities, phases of steps
 *     explain?run=0&what=idle       `idle`: gaps of the devices, with their causes
 *     explain?run=0&what=comm       `comm`: who met whom when, and who came last; the ranks
 *     explain?run=0&what=path       `critpath`: where the critical path is
 *     explain?run=0&what=memory     `memory`: what was allocated over time, and the peak
 *
 * Ranks are places in the list of "meta", times those of the view.
 */
#include "base/names.h"
#include "base/order.h"
#include "dataset/question.h"
#include "explain/comm/answer.h"
#include "explain/critpath/answer.h"
#include "explain/idle/answer.h"
#include "explain/memory/memory.h"
#include "explain/report/answer.h"
#include "explain/short_name.h"
#include "io/escaped.h"
#include "view/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAPS_MOST        200000 /* of a run */
#define GAPS_LEAST       200    /* of a rank */
#define TIES_MOST        4000
#define SEGMENTS_MOST    40000
#define MARKS_MOST       400 /* of a finding */
#define RANKS_PREDICTED  16
#define EVENTS_PREDICTED 1000000

/* ------------------------------------------------------------------ asking once */

static const struct {
    const char *what;
    const struct rp_question_row *row;
} asked[RP_VIEW_EXPLAINED] = {{"findings", &rp_ask_report},
                              {"idle", &rp_ask_idle},
                              {"comm", &rp_ask_comm},
                              {"path", &rp_ask_critpath},
                              {"memory", &rp_ask_memory}};
enum { FINDINGS, IDLE, COMM, CRITPATH, MEMORY };

struct explain {
    const struct rp_view *view;
    const struct rp_view_run *run;
    struct rp_view_part part;
    struct rp_out *to;
    bool first;          /* the list being written is still empty */
    struct rp_names ids; /* of texts */
};

/* A page waits for the answer, so changes are predicted only if that takes no longer than the
   rest. */
static bool predicts(const struct explain *x)
{
    return !x->view->swift && x->run->n <= RANKS_PREDICTED && x->view->nevents <= EVENTS_PREDICTED;
}

static enum rp_code ask_once(const struct explain *x, size_t what, const void **root,
                             struct rp_err *err)
{
    struct rp_setting limit = {"limit", NULL}, swift = {"no-simulate", "yes"};
    size_t most = GAPS_MOST / x->run->n;
    char text[24];

    snprintf(text, sizeof text, "%zu", most > GAPS_LEAST ? most : GAPS_LEAST);
    limit.value = text;
    if (!x->run->explained[what].answer)
        RP_TRY(rp_view_ask(x->view, x->run->first, x->run->n, asked[what].row, 1, 0,
                           what == IDLE ? &limit : &swift,
                           what == IDLE || (what == FINDINGS && !predicts(x)),
                           &x->run->explained[what].answer, err));
    *root = x->run->explained[what].answer->root;
    return RP_OK;
}

/* ------------------------------------------------------------------ writing */

static const struct rp_view_rank *rank_at(const struct explain *x, size_t i)
{
    return &x->view->ranks.at[x->run->first + i];
}

/* Returns the place of a rank in its run, by number; SIZE_MAX if it is missing. */
static size_t find_rank(const struct explain *x, int64_t number)
{
    size_t low = 0, high = x->run->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (rank_at(x, middle)->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x->run->n && rank_at(x, low)->number == number ? low : SIZE_MAX;
}

static void put_list(struct explain *x, const char *key)
{
    rp_out_printf(x->to, "\"%s\":[", key);
    x->first = true;
}

static void put_next(struct explain *x)
{
    if (!x->first)
        rp_out_char(x->to, ',');
    x->first = false;
}

static void put_texts(struct explain *x, const char *key, const char *const *texts, size_t n)
{
    put_list(x, key);
    for (size_t i = 0; i < n; i++) {
        put_next(x);
        rp_out_escaped(x->to, RP_IN_SCRIPT, texts[i]);
    }
    rp_out_text(x->to, "]");
}

/* Returns the number of a text in "texts"; -1 for none. */
static int64_t text_id(struct explain *x, const char *text)
{
    uint32_t id = rp_names_find(&x->ids, text);

    if (!text || id != RP_NONE)
        return text ? (int64_t)id : -1;
    id = (uint32_t)x->ids.entries.n;
    return rp_names_add(&x->ids, text, id, NULL) == RP_OK ? (int64_t)id : -1;
}

static void put_ids(struct explain *x)
{
    put_list(x, "texts");
    for (size_t i = 0; i < x->ids.entries.n; i++) {
        put_next(x);
        rp_out_escaped(x->to, RP_IN_SCRIPT, x->ids.entries.at[i].text);
    }
    rp_out_char(x->to, ']');
}

static void put_number(struct explain *x, const char *key, int64_t value)
{
    if (value == RP_ABSENT_I64)
        rp_out_printf(x->to, "\"%s\":null,", key);
    else
        rp_out_printf(x->to, "\"%s\":%" PRId64 ",", key, value);
}

static bool is_seen(const struct explain *x, int64_t begin_ns, int64_t end_ns)
{
    return begin_ns < x->part.to_ns && end_ns >= x->part.from_ns;
}

/* ------------------------------------------------------------------ idle */

static size_t cause_id(const char *name)
{
    size_t i = 0;

    while (i < RP_GAP_CAUSES && strcmp(name, rp_gap_cause_names[i]) != 0)
        i++;
    return i;
}

static void put_gap(struct explain *x, const struct rp_idle_rank *device,
                    const struct rp_idle_gap *gap)
{
    size_t r = find_rank(x, device->rank);

    if (r == SIZE_MAX)
        return;
    int64_t begin = rp_view_time(rank_at(x, r), gap->begin_ns);
    int64_t end = rp_view_time(rank_at(x, r), rp_ns_sum(gap->begin_ns, gap->dur_ns));
    if (!is_seen(x, begin, end))
        return;
    /* A new text gets the next number, so the order of these two is not left to the compiler. */
    const int64_t after = text_id(x, gap->after), host = text_id(x, gap->host);

    put_next(x);
    rp_out_printf(
        x->to, "[%zu,%" PRId64 ",%" PRId64 ",%" PRId64 ",%zu,%" PRId64 ",%" PRId64 ",%" PRId64 "]",
        x->run->first + r, device->device == RP_ABSENT_I64 ? -1 : device->device, begin,
        rp_ns_between(begin, end), cause_id(gap->cause), gap->cause_ns, host, after);
}

/* ------------------------------------------------------------------ pauses of the host */

static bool is_on_host(const struct rp_trace *t)
{
    const int64_t *count = t->totals.count;

    return !count[RP_KIND_KERNEL] && !count[RP_KIND_MEMCPY] && !count[RP_KIND_MEMSET];
}

RP_ORDER(shorter, int64_t, RP_COMPARE(*a, *b))

/* Keeps at most `most` of the longest, in the order of time. */
static enum rp_code keep_longest(rp_gap_vec *pauses, size_t most, struct rp_err *err)
{
    size_t n = pauses->n, kept = 0;
    int64_t *lengths, least;

    if (n <= most)
        return RP_OK;
    lengths = malloc(n * sizeof *lengths);
    RP_TRY(rp_err_need(lengths, err, "looking for pauses"));
    for (size_t i = 0; i < n; i++)
        lengths[i] = rp_ns_between(pauses->at[i].begin_ns, pauses->at[i].end_ns);
    qsort(lengths, n, sizeof *lengths, shorter);
    least = lengths[n - most];
    free(lengths);
    for (size_t i = 0; i < n && kept < most; i++)
        if (rp_ns_between(pauses->at[i].begin_ns, pauses->at[i].end_ns) >= least)
            pauses->at[kept++] = pauses->at[i];
    pauses->n = kept;
    return RP_OK;
}

/* Writes gaps of a rank without device work; the work of the host is in the lanes below. */
static enum rp_code put_pauses(struct explain *x, size_t r, struct rp_err *err)
{
    const struct rp_view_rank *rank = rank_at(x, r);
    size_t most = GAPS_MOST / x->run->n;
    struct rp_arena arena;
    rp_gap_vec pauses = {0};

    rp_arena_init(&arena);
    enum rp_code code = rp_report_list_pauses(rank->trace, &arena, &pauses, err);
    if (code == RP_OK)
        code = keep_longest(&pauses, most > GAPS_LEAST ? most : GAPS_LEAST, err);
    for (size_t i = 0; i < pauses.n && code == RP_OK; i++) {
        int64_t begin = rp_view_time(rank, pauses.at[i].begin_ns);
        int64_t end = rp_view_time(rank, pauses.at[i].end_ns);

        if (!is_seen(x, begin, end))
            continue;
        put_next(x);
        rp_out_printf(x->to, "[%zu,-1,%" PRId64 ",%" PRId64 ",%u,%" PRId64 ",-1,-1]",
                      x->run->first + r, begin, rp_ns_between(begin, end), pauses.at[i].cause,
                      rp_ns_between(begin, end));
    }
    rp_vec_release(&pauses);
    rp_arena_release(&arena);
    return code;
}

/* By the cause of a gap: those of devices, one that is not known, and the pauses of hosts. */
#define CAUSE_NAME(name, text, doc) text,
#define CAUSE_DOC(name, text, doc)  doc,
static const char *const cause_names[] = {RP_GAP_CAUSE_MAP(CAUSE_NAME) "",
                                          RP_PAUSE_MAP(CAUSE_NAME)};
static const char *const cause_docs[] = {RP_GAP_CAUSE_MAP(CAUSE_DOC) "", RP_PAUSE_MAP(CAUSE_DOC)};

/* Writes "gaps": [[rank, device, begin, duration, cause, time of it, host, after], …] */
static enum rp_code put_idle(struct explain *x, struct rp_err *err)
{
    const void *answer;
    bool on_host = false;

    RP_TRY(ask_once(x, IDLE, &answer, err));
    const struct rp_idle_root *root = answer;
    for (size_t r = 0; r < x->run->n; r++)
        on_host = on_host || is_on_host(rank_at(x, r)->trace);
    size_t ncauses = on_host ? sizeof cause_names / sizeof *cause_names : RP_GAP_CAUSES;
    put_texts(x, "causes", cause_names, ncauses);
    rp_out_char(x->to, ',');
    put_texts(x, "meanings", cause_docs, ncauses);
    rp_out_char(x->to, ',');
    put_list(x, "gaps");
    for (size_t d = 0; d < root->ndevices; d++)
        for (size_t i = 0; i < root->devices[d].ngaps; i++)
            put_gap(x, &root->devices[d], &root->devices[d].gaps[i]);
    for (size_t r = 0; r < x->run->n; r++)
        if (is_on_host(rank_at(x, r)->trace))
            RP_TRY(put_pauses(x, r, err));
    rp_out_text(x->to, "],");
    put_ids(x);
    return RP_OK;
}

/* ------------------------------------------------------------------ collectives */

RP_ORDER(by_margin, struct rp_comm_collective, RP_DOWN(margin_ns), RP_UP(begin_ns))

static void put_tie(struct explain *x, const struct rp_comm_collective *c)
{
    int64_t begin = INT64_MAX, end = INT64_MIN;

    for (int64_t i = 0; i < c->seen_count; i++) {
        const struct rp_view_rank *rank = rank_at(x, c->arrivals[i].rank);
        int64_t from = rp_view_time(rank, c->arrivals[i].begin_ns);
        int64_t to = rp_view_time(rank, c->arrivals[i].end_ns);

        begin = from < begin ? from : begin;
        end = to > end ? to : end;
    }
    if (!is_seen(x, begin, end))
        return;
    put_next(x);
    rp_out_text(x->to, "\n{");
    put_number(x, "size_bytes", c->size_bytes);
    put_number(x, "margin_ns", c->margin_ns);
    put_number(x, "wait_ns", c->wait_ns);
    put_number(x, "transfer_ns", c->transfer_ns);
    rp_view_put_text(x->to, "name", c->name);
    rp_out_char(x->to, ',');
    rp_view_put_text(x->to, "cause", c->cause);
    rp_out_char(x->to, ',');
    rp_view_put_text(x->to, "evidence", c->evidence);
    rp_out_printf(x->to, ",\"late\":%u,\"at\":[", c->last);
    for (int64_t i = 0; i < c->seen_count; i++) {
        const struct rp_comm_arrival *a = &c->arrivals[i];
        int64_t from = rp_view_time(rank_at(x, a->rank), a->begin_ns);

        rp_out_printf(x->to, "%s%zu,%" PRId64 ",%" PRId64, i ? "," : "", x->run->first + a->rank,
                      from, rp_ns_between(from, rp_view_time(rank_at(x, a->rank), a->end_ns)));
    }
    rp_out_text(x->to, "]}");
}

/* Chooses the matched collectives with the longest delays; the caller frees the *n of them. */
static struct rp_comm_collective *choose_ties(const struct rp_comm_root *root, size_t *n)
{
    struct rp_comm_collective *list = malloc((root->ncollectives + 1) * sizeof *list);

    *n = 0;
    for (size_t i = 0; list && i < root->ncollectives; i++)
        if (root->collectives[i].arrivals && root->collectives[i].seen_count > 1)
            list[(*n)++] = root->collectives[i];
    rp_sort(list, *n, sizeof *list, by_margin);
    *n = *n < TIES_MOST ? *n : TIES_MOST;
    return list;
}

/* "ties": [{…, "at": [rank, begin, duration, …], "late": which of them}, …], the longest delay
   first; "ranks": [{rank, host, …}, …] */
static enum rp_code put_comm(struct explain *x, struct rp_err *err)
{
    const void *answer;
    size_t n;

    RP_TRY(ask_once(x, COMM, &answer, err));
    const struct rp_comm_root *root = answer;
    struct rp_comm_collective *ties = choose_ties(root, &n);
    RP_TRY(rp_err_need(ties, err, "placing collectives"));
    put_number(x, "matched_count", root->matched_count);
    put_list(x, "ties");
    for (size_t i = 0; i < n; i++)
        put_tie(x, &ties[i]);
    free(ties);
    rp_out_text(x->to, "],");
    put_list(x, "ranks");
    for (size_t i = 0; i < root->nranks; i++) {
        const struct rp_comm_rank *rank = &root->ranks[i];
        size_t r = find_rank(x, rank->rank);

        if (r == SIZE_MAX)
            continue;
        put_next(x);
        rp_out_char(x->to, '{');
        put_number(x, "wait_ns", rank->wait_ns);
        put_number(x, "margin_ns", rank->margin_ns);
        put_number(x, "last_count", rank->last_count);
        rp_view_put_text(x->to, "host", rank->host);
        rp_out_printf(x->to, ",\"rank\":%zu}", x->run->first + r);
    }
    rp_out_text(x->to, "]");
    return RP_OK;
}

/* ------------------------------------------------------------------ the critical path */

/* A stretch of the path on one track. */
struct stretch {
    size_t rank;
    rp_track track; /* RP_NONE: it waits */
    int64_t begin_ns, end_ns, longest_ns;
    const char *kind, *name; /* of the longest segment */
};

typedef RP_VEC(struct stretch) stretch_vec;

/* Joins consecutive stretches on one track, and short ones below least_ns with the one before. */
static enum rp_code add_stretch(stretch_vec *list, const struct stretch *next, int64_t least_ns,
                                struct rp_err *err)
{
    struct stretch *last = list->n ? &list->at[list->n - 1] : NULL;
    int64_t ns = rp_ns_between(next->begin_ns, next->end_ns);

    if (last && last->rank == next->rank &&
        (last->track == next->track || ns < least_ns ||
         rp_ns_between(last->begin_ns, last->end_ns) < least_ns)) {
        if (ns > last->longest_ns) {
            last->longest_ns = ns;
            last->track = next->track;
            last->kind = next->kind;
            last->name = next->name;
        }
        last->end_ns = next->end_ns;
        return RP_OK;
    }
    return rp_vec_push(list, *next, err);
}

/* clocks: those of the ranks if the path is that of the run and on the clock of its first rank; or
   NULL. */
static enum rp_code add_path(const struct explain *x, const struct rp_critpath_path *path,
                             const struct rp_critpath_rank_share *clocks, stretch_vec *list,
                             struct rp_err *err)
{
    int64_t least = path->nsegments > SEGMENTS_MOST ? path->window_ns / SEGMENTS_MOST : 0;

    for (size_t i = 0; i < path->nsegments; i++) {
        const struct rp_critpath_segment *s = &path->segments[i];
        int64_t begin = s->start_ns, end = rp_ns_sum(s->start_ns, s->dur_ns);
        size_t r = find_rank(x, s->rank);

        if (r == SIZE_MAX)
            continue;
        if (clocks) {
            begin = rp_clock_own_time(&clocks[r].clock, begin);
            end = rp_clock_own_time(&clocks[r].clock, end);
        }
        struct stretch next = {r,
                               s->track,
                               rp_view_time(rank_at(x, r), begin),
                               rp_view_time(rank_at(x, r), end),
                               s->dur_ns,
                               s->kind,
                               s->name ? s->name : s->cause};
        RP_TRY(add_stretch(list, &next, least, err));
    }
    return RP_OK;
}

static void put_stretches(struct explain *x, const stretch_vec *list)
{
    put_list(x, "paths");
    for (size_t i = 0; i < list->n; i++) {
        const struct stretch *s = &list->at[i];

        if (!is_seen(x, s->begin_ns, s->end_ns))
            continue;
        /* A new text gets the next number, so the order of these two is not left to the compiler.
         */
        const int64_t name = text_id(x, s->name), kind = text_id(x, s->kind);

        put_next(x);
        rp_out_printf(x->to, "%zu,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
                      x->run->first + s->rank, s->track == RP_NONE ? -1 : (int64_t)s->track,
                      s->begin_ns, rp_ns_between(s->begin_ns, s->end_ns), kind, name);
    }
    rp_out_text(x->to, "],");
}

/* "paths": [rank, track or -1, begin, duration, kind, name, …], of the run where its ranks meet,
   else of each rank, one after the other; "joined" tells which. */
static enum rp_code put_path(struct explain *x, struct rp_err *err)
{
    stretch_vec list = {0};
    const void *answer;
    enum rp_code code = RP_OK;

    RP_TRY(ask_once(x, CRITPATH, &answer, err));
    const struct rp_critpath_root *root = answer;
    if (root->run.joined && root->run.nshares == x->run->n)
        code = add_path(x, &root->run, root->run.shares, &list, err);
    for (size_t i = 0; !root->run.joined && code == RP_OK && i < root->nranks; i++)
        code = add_path(x, &root->ranks[i], NULL, &list, err);
    rp_out_printf(x->to, "\"joined\":%s,", root->run.joined ? "true" : "false");
    put_stretches(x, &list);
    put_ids(x);
    rp_vec_release(&list);
    return code;
}

/* ------------------------------------------------------------------ findings */

struct mark {
    size_t rank;
    int64_t begin_ns, end_ns; /* of the view */
};

typedef RP_VEC(struct mark) mark_vec;

RP_ORDER(by_length, struct mark,
         RP_COMPARE(rp_ns_between(b->begin_ns, b->end_ns), rp_ns_between(a->begin_ns, a->end_ns)),
         RP_UP(begin_ns), RP_UP(rank))

static enum rp_code add_mark(const struct explain *x, mark_vec *marks, size_t r, int64_t begin_ns,
                             int64_t end_ns, struct rp_err *err)
{
    struct mark mark = {r, rp_view_time(rank_at(x, r), begin_ns),
                        rp_view_time(rank_at(x, r), end_ns)};

    return is_seen(x, mark.begin_ns, mark.end_ns) ? rp_vec_push(marks, mark, err) : RP_OK;
}

static enum rp_code mark_gaps(const struct explain *x, uint32_t causes, mark_vec *marks,
                              struct rp_err *err)
{
    const void *answer;

    RP_TRY(ask_once(x, IDLE, &answer, err));
    const struct rp_idle_root *root = answer;
    for (size_t d = 0; d < root->ndevices; d++)
        for (size_t i = 0; i < root->devices[d].ngaps; i++) {
            const struct rp_idle_gap *gap = &root->devices[d].gaps[i];
            size_t r = find_rank(x, root->devices[d].rank);

            if (r != SIZE_MAX && causes >> cause_id(gap->cause) & 1)
                RP_TRY(add_mark(x, marks, r, gap->begin_ns, rp_ns_sum(gap->begin_ns, gap->dur_ns),
                                err));
        }
    return RP_OK;
}

static bool is_named(const char *name, const char *const *names)
{
    char brief[120];

    rp_short_name(name, brief, sizeof brief);
    for (size_t i = 0; i < RP_WHERE_NAMES; i++)
        if (names[i] && (!strcmp(name, names[i]) || !strcmp(brief, names[i])))
            return true;
    return false;
}

static enum rp_code mark_events(const struct explain *x, size_t r, const char *const *names,
                                mark_vec *marks, struct rp_err *err)
{
    const struct rp_trace *t = rank_at(x, r)->trace;
    RP_FREED uint8_t *known = calloc((size_t)t->str.n + 1, 1); /* by name: 1 for no, 2 for yes */

    RP_TRY(rp_err_need(known, err, "placing a finding"));
    for (rp_event e = 0; e < t->ev.n; e++) {
        rp_str name = t->ev.name[e];

        if (t->ev.ts_ns[e] == RP_NO_TS || t->ev.dur_ns[e] < 0)
            continue;
        if (!known[name])
            known[name] = is_named(rp_trace_str(t, name), names) ? 2 : 1;
        if (known[name] == 2)
            RP_TRY(add_mark(x, marks, r, t->ev.ts_ns[e], rp_event_end_ns(t, e), err));
    }
    return RP_OK;
}

static enum rp_code mark_step(const struct explain *x, size_t r, int64_t number, mark_vec *marks,
                              struct rp_err *err)
{
    const struct rp_view_rank *rank = rank_at(x, r);

    for (uint32_t i = 0; i < rank->trace->nsteps; i++)
        if (rank->trace->steps[i].number == number)
            return add_mark(x, marks, r, rank->steps[i].begin_ns, rank->steps[i].end_ns, err);
    return RP_OK;
}

static enum rp_code find_marks(const struct explain *x, const struct rp_report_where *where,
                               mark_vec *marks, struct rp_err *err)
{
    size_t r = find_rank(x, where->rank);

    if (where->causes)
        RP_TRY(mark_gaps(x, where->causes, marks, err));
    if (where->late || where->exposed) {
        /* Mark in a delayed collective the rank that came last, from the first arrival to its own,
           or all ranks. */
        bool all = where->exposed;
        const void *answer;

        RP_TRY(ask_once(x, COMM, &answer, err));
        const struct rp_comm_root *root = answer;
        for (size_t i = 0; i < root->ncollectives; i++) {
            const struct rp_comm_collective *c = &root->collectives[i];

            for (int64_t k = 0; c->arrivals && k < c->seen_count; k++) {
                const struct rp_comm_arrival *a = &c->arrivals[k];

                if (all)
                    RP_TRY(add_mark(x, marks, a->rank, a->begin_ns, a->end_ns, err));
                else if (k == (int64_t)c->last && c->margin_ns > 0)
                    RP_TRY(add_mark(x, marks, a->rank, rp_ns_between(c->skew_ns, a->begin_ns),
                                    a->begin_ns, err));
            }
        }
    }
    if (where->names[0] && r != SIZE_MAX)
        RP_TRY(mark_events(x, r, where->names, marks, err));
    if (where->step != RP_ABSENT_I64 && r != SIZE_MAX)
        RP_TRY(mark_step(x, r, where->step, marks, err));
    return RP_OK;
}

/* "marks": [rank, begin, duration, …], the longest first. */
static enum rp_code put_marks(struct explain *x, const struct rp_report_where *where,
                              struct rp_err *err)
{
    mark_vec marks = {0};
    enum rp_code code = find_marks(x, where, &marks, err);

    rp_sort(marks.at, marks.n, sizeof *marks.at, by_length);
    rp_out_printf(x->to, "\"mark_count\":%zu,\"marks\":[", marks.n);
    for (size_t i = 0; i < marks.n && i < MARKS_MOST; i++)
        rp_out_printf(x->to, "%s%zu,%" PRId64 ",%" PRId64, i ? "," : "",
                      x->run->first + marks.at[i].rank, marks.at[i].begin_ns,
                      rp_ns_between(marks.at[i].begin_ns, marks.at[i].end_ns));
    rp_out_char(x->to, ']');
    rp_vec_release(&marks);
    return code;
}

static enum rp_code put_finding(struct explain *x, const struct rp_report_finding *f,
                                struct rp_err *err)
{
    rp_out_text(x->to, "\n{");
    rp_view_put_text(x->to, "id", f->id);
    rp_out_char(x->to, ',');
    rp_view_put_text(x->to, "title", f->title);
    rp_out_printf(x->to, ",\"lost_ns\":%" PRId64 ",\"share\":%.6f,\"at_most\":%s,", f->lost_ns,
                  f->share, f->at_most ? "true" : "false");
    put_texts(x, "evidence", f->evidence, f->nevidence);
    rp_out_char(x->to, ',');
    put_list(x, "tries");
    for (size_t i = 0; i < f->ntries; i++) {
        put_next(x);
        rp_out_escaped(x->to, RP_IN_SCRIPT, f->tries[i].text);
    }
    rp_out_text(x->to, "],");
    RP_TRY(put_marks(x, &f->where, err));
    rp_out_char(x->to, '}');
    return RP_OK;
}

static enum rp_code put_findings(struct explain *x, struct rp_err *err)
{
    const void *answer;

    RP_TRY(ask_once(x, FINDINGS, &answer, err));
    const struct rp_report_root *root = answer;
    put_list(x, "findings");
    for (size_t i = 0; i < root->nfindings; i++) {
        rp_out_text(x->to, i ? "," : "");
        RP_TRY(put_finding(x, &root->findings[i], err));
    }
    rp_out_text(x->to, "],");
    rp_out_printf(x->to, "\"predicted\":%s,", predicts(x) ? "true" : "false");
    put_list(x, "opportunities");
    for (size_t i = 0; i < root->napplying; i++) {
        const struct rp_report_opportunity *o = &root->opportunities[i];
        put_next(x);
        rp_out_char(x->to, '{');
        put_number(x, "gain_ns", o->gain_ns);
        put_number(x, "step_ns", o->step_ns);
        rp_view_put_text(x->to, "what_if", o->what_if);
        rp_out_char(x->to, ',');
        rp_view_put_text(x->to, "finding", o->finding);
        rp_out_char(x->to, ',');
        rp_view_put_text(x->to, "apply", o->apply);
        rp_out_char(x->to, '}');
    }
    rp_out_text(x->to, "],");

    /* Write "phases": [[rank, step, "decode"], …] for steps that have one. */
    put_list(x, "phases");
    for (size_t i = 0; i < root->nsteps; i++) {
        size_t r = find_rank(x, root->steps[i].rank);

        if (r == SIZE_MAX || !root->steps[i].phase)
            continue;
        put_next(x);
        rp_out_printf(x->to, "[%zu,%" PRId64 ",", x->run->first + r, root->steps[i].number);
        rp_out_escaped(x->to, RP_IN_SCRIPT, root->steps[i].phase);
        rp_out_char(x->to, ']');
    }
    rp_out_char(x->to, ']');

    return RP_OK;
}

/* ------------------------------------------------------------------ memory */

static void put_memory_device(struct explain *x, const struct rp_memory_device *d, size_t r)
{
    const struct rp_view_rank *rank = rank_at(x, r);
    int64_t begin = rank->trace->totals.span_begin_ns;

    rp_out_printf(x->to, "\n{\"rank\":%zu,", x->run->first + r);
    rp_view_put_text(x->to, "device", d->device);
    rp_out_char(x->to, ',');
    put_number(x, "peak_bytes", d->peak_bytes);
    put_number(x, "peak_ns", rp_view_time(rank, rp_ns_sum(begin, d->peak_ns)));
    put_list(x, "holders");
    for (size_t i = 0; i < d->nholders && i < 5; i++) {
        put_next(x);
        rp_out_printf(x->to, "{\"bytes\":%" PRId64 ",", d->holders[i].bytes);
        rp_view_put_text(x->to, "category", d->holders[i].category);
        rp_out_char(x->to, ',');
        rp_view_put_text(x->to, "where", d->holders[i].where);
        rp_out_char(x->to, '}');
    }
    rp_out_text(x->to, "],");
    put_list(x, "points");
    for (size_t i = 0; i < d->ntimeline; i++) {
        const struct rp_memory_point *p = &d->timeline[i];

        put_next(x);
        rp_out_printf(x->to, "%" PRId64 ",%" PRId64, rp_view_time(rank, rp_ns_sum(begin, p->ts_ns)),
                      p->allocated_bytes);
        for (int c = 0; c < RP_MEMORY_CATEGORIES; c++)
            rp_out_printf(x->to, ",%" PRId64, p->category_bytes[c]);
    }
    rp_out_text(x->to, "]}");
}

/* "devices": [{rank, device, peak, holders, "points": [time, bytes, bytes by category …, …]}, …] */
static enum rp_code put_memory(struct explain *x, struct rp_err *err)
{
    bool first = true;
    const void *answer;

    RP_TRY(ask_once(x, MEMORY, &answer, err));
    const struct rp_memory_root *root = answer;
    put_texts(x, "categories", rp_memory_category_names, RP_MEMORY_CATEGORIES);
    rp_out_text(x->to, ",\"devices\":[");
    for (size_t i = 0; i < root->ndevices; i++) {
        size_t r = find_rank(x, root->devices[i].rank);

        if (r == SIZE_MAX || !root->devices[i].ntimeline)
            continue;
        rp_out_text(x->to, first ? "" : ",");
        put_memory_device(x, &root->devices[i], r);
        first = false;
    }
    rp_out_char(x->to, ']');
    return RP_OK;
}

/* ------------------------------------------------------------------ the answer */

enum rp_code rp_view_put_explained(const struct rp_view *view, size_t run, size_t what,
                                   const struct rp_view_part *part, struct rp_out *to,
                                   struct rp_err *err)
{
    static enum rp_code (*const put[RP_VIEW_EXPLAINED])(struct explain *, struct rp_err *) = {
        [FINDINGS] = put_findings, [IDLE] = put_idle,     [COMM] = put_comm,
        [CRITPATH] = put_path,     [MEMORY] = put_memory,
    };
    struct explain x = {.view = view, .run = &view->runs[run], .part = *part, .to = to};

    rp_out_char(to, '{');
    enum rp_code code = put[what](&x, err);
    rp_out_char(to, '}');
    rp_names_release(&x.ids);
    return code;
}

/* Makes the text once; only answers from which other texts are made are kept. */
static enum rp_code explain_once(const struct rp_view *view, size_t run, size_t what,
                                 struct rp_err *err)
{
    struct rp_view_part all = {INT64_MIN, INT64_MAX};
    struct rp_view_explained *e = &view->runs[run].explained[what];
    struct rp_out *text;

    if (e->text)
        return RP_OK;
    RP_TRY(rp_out_open_memory(&text, err));
    enum rp_code code = rp_view_put_explained(view, run, what, &all, text, err);
    if (code == RP_OK)
        code = rp_out_flush(text, err);
    if (code == RP_OK)
        e->text = text;
    else
        rp_out_abandon(text);
    if (code == RP_OK && what != IDLE && what != COMM) {
        rp_result_free(e->answer);
        e->answer = NULL;
    }
    return code;
}

enum rp_code rp_view_explain(const struct rp_view *view, const char *query, struct rp_out *to,
                             struct rp_err *err)
{
    char what[16];
    int64_t run;
    size_t n;

    RP_TRY(rp_view_number(query, "run", (int64_t)view->nruns - 1, &run, err));
    RP_TRY(rp_view_text(query, "what", what, sizeof what, err));
    for (size_t i = 0; i < RP_VIEW_EXPLAINED; i++)
        if (!strcmp(what, asked[i].what)) {
            RP_TRY(explain_once(view, (size_t)run, i, err));
            const char *text = rp_out_borrow_memory(view->runs[run].explained[i].text, &n);
            rp_out_write(to, text, n);
            return RP_OK;
        }
    return rp_err_set(err, RP_USAGE, "there is nothing to explain as '%s'", what);
}

const char *rp_view_explained_name(size_t what)
{
    return asked[what].what;
}
