/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remarks are made at the end, in the order of kinds and of the inputs, so that they do not depend
 * on which thread was first. The screen shows one line for each kind, with the first names, so that
 * a run of a thousand ranks does not make a thousand lines.
 */
#include "base/decides.h"
#include "base/escape.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"
#include "dataset/selection.h"
#include "dataset/trust.h"
#include "facts/times/intervals.h"
#include "result/print_units.h"
#include "result/sane.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_SHOWN 3
RP_LIMIT(NAMES_SHOWN, "names of files", "in a remark, which says how many more there are");
#define MOST_RANKS (1 << 20)
RP_LIMIT(MOST_RANKS, "ranks", "of a larger job those that are missing are not listed");
#define TOKEN_DIGITS 6
RP_LIMIT(TOKEN_DIGITS, "hexadecimal digits",
         "names that differ in such a token only are shown as one kind of file");

/* Returns the name of a file without the folder that the user gave. */
static const char *short_path(const struct rp_trust_log *log, const char *path)
{
    const char *given = log->given                  ? log->given
                        : log->dataset->ngiven == 1 ? log->dataset->given
                                                    : "";
    size_t n = strlen(given);

    while (n && given[n - 1] == '/')
        n--;
    if (n && !strncmp(path, given, n) && (path[n] == '/' || path[n] == '!') && path[n + 1])
        return path + n + 1;
    return path;
}

/* In the order of the remarks. */
static const struct kind {
    const char *name;
    const char *label, *one; /* the beginning of its line, and the noun that is counted */
    const char *end;         /* the rest follows from it */
} kinds[] = {
    {"not_read", "not read", "file", ""},
    {"truncated", "truncated", "file", ""},
    {"damaged", "damaged", "file", ""},
    {"killed", "did not end by itself (killed, crashed, or still running)", "file", ""},
    {"lost", "lost by the recorder", "file", ""},
    {"hidden", "graphs recorded without their kernels, each counted as one kernel", "file", ""},
    {"joined", "joined from two recorders", "file", ""},
    {"set_back", "clock set back during the recording: what came after is moved", "file", ""},
    {"overwritten", "a ring, which keeps the end of the run", "file", ""},
    {"duplicate", "there twice", "file", ": left out"},
    {"rank_clash", "same rank number", "file", ": left out"},
    {"missing_shards", NULL, NULL, ""},
    {"missing_ranks", NULL, NULL, ""},
    {"selected", NULL, NULL, ""},
    {"unrelated", NULL, NULL, ""},
    {"numbering", NULL, NULL, ""},
    {"other_file", "no traces", "file", ""},
    {"not_written", NULL, NULL, ""},
    {"impossible", NULL, NULL, ""},
};
#define NKINDS (sizeof kinds / sizeof kinds[0])

static size_t kind_of(const char *name)
{
    size_t i = 0;

    while (i + 1 < NKINDS && strcmp(kinds[i].name, name) != 0)
        i++;
    return i;
}

RP_ORDER(by_kind, struct rp_trust_note,
         RP_COMPARE(kind_of(a->remark.kind), kind_of(b->remark.kind)),
         RP_COMPARE(!a->remark.incomplete, !b->remark.incomplete), RP_UP(place))

static enum rp_code add_note(struct rp_trust_log *log, const struct rp_trust_trace *t,
                             const char *kind, bool incomplete, const char *brief, int64_t count,
                             const char *text, struct rp_err *err)
{
    struct rp_trust_note note = {.brief = brief, .place = log->notes.n};

    note.remark = (struct rp_remark){.kind = kind,
                                     .incomplete = incomplete,
                                     .path = t->path,
                                     .rank = t->number < 0 ? RP_ABSENT_I64 : t->number,
                                     .count = count,
                                     .bytes = RP_ABSENT_I64,
                                     .text = text};
    return rp_vec_push(&log->notes, note, err);
}

/* ---- what was not read */

/* "rank12.json.gz" and "rank3.json" have the shape "rank#.json": numbers, tokens of hexadecimal
   digits and compression do not count. */
static void shape_of(const char *path, char *out, size_t size)
{
    static const char *const packed[] = {".gz", ".zst", ".xz"};
    const char *slash = strrchr(path, '/'), *p;
    size_t n = 0, k;

    p = strrchr(slash ? slash : path, '!');
    p = p ? p + 1 : slash ? slash + 1 : path;
    while (*p && n + 1 < size) {
        for (k = 0; isxdigit((unsigned char)p[k]);)
            k++;
        if (k >= TOKEN_DIGITS || isdigit((unsigned char)*p)) {
            out[n++] = '#';
            p += k >= TOKEN_DIGITS ? k : strspn(p, "0123456789");
        } else {
            out[n++] = *p++;
        }
    }
    out[n] = '\0';
    for (k = 0; k < sizeof packed / sizeof packed[0]; k++) {
        size_t len = strlen(packed[k]);

        if (n > len && !strcmp(out + n - len, packed[k]))
            out[n - len] = '\0';
    }
}

static bool has_trace_ending(const char *path)
{
    static const char *const endings[] = {".json", ".rpt", ".pb", ".tar", ".tgz"};
    char shape[256];

    shape_of(path, shape, sizeof shape);
    size_t n = strlen(shape);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t k = strlen(endings[i]);
        if (n > k && !strcmp(shape + n - k, endings[i]))
            return true;
    }
    return false;
}

static uint64_t shape_key(const char *path)
{
    char shape[256];

    shape_of(path, shape, sizeof shape);
    return strchr(shape, '#') ? rp_hash_bytes(shape, strlen(shape)) | 1 : 0;
}

/* Whether a file is named like a rank, or like one of the traces that were read. */
static bool is_named_like_trace(const struct rp_map *shapes, const char *path)
{
    uint64_t key = shape_key(path);

    return rp_rank_in_name(path) != RP_NO_RANK || (key && rp_map_get(shapes, key) != RP_MAP_NONE);
}

/* Whether an unread file may be missed: a JSON configuration beside the traces is not, while the
   content of a folder that may not be read is unknown. */
static bool is_missed(const struct rp_map *shapes, const struct rp_unread *u)
{
    bool closed = u->why == RP_UNREAD_HOLE && strcmp(u->reason, RP_HOLE_LINK) != 0;
    bool unseen =
        u->why == RP_UNREAD_EMPTY || u->why == RP_UNREAD_UNOPENED || u->why == RP_UNREAD_HOLE;

    return u->why == RP_UNREAD_DAMAGED || closed || is_named_like_trace(shapes, u->path) ||
           (unseen && has_trace_ending(u->path));
}

/* Whether its name begins with a '.': such files are notes of tools, not of people. */
static bool is_hidden(const char *path)
{
    return *rp_text_file(path) == '.';
}

/* Whether it is known to lie beside traces without being one: the files of an XLA dump, TraceLens'
   notes, counters of a recorded program. */
static bool is_companion(const char *path)
{
    const char *name = rp_text_file(path);

    return strstr(path, "/module_") || rp_text_begins(name, "module_") ||
           !strcmp(name, "execution_details.json") || rp_text_ends(name, ".metrics");
}

/* Returns the text of an error after the name of its file. */
static const char *without_name(const struct rp_unread *u)
{
    const char *at = strstr(u->reason, "': ");

    return at ? at + 3 : u->reason;
}

static enum rp_code remark_unread(struct rp_trust_log *log, const struct rp_map *shapes,
                                  const struct rp_unread *u, struct rp_err *err)
{
    const char *list = log->dataset->wanted;
    static const char *const briefs[] = {
        [RP_UNREAD_EMPTY] = "empty",       [RP_UNREAD_UNKNOWN] = "of no known format",
        [RP_UNREAD_OTHER] = "not a trace", [RP_UNREAD_DAMAGED] = "damaged",
        [RP_UNREAD_UNOPENED] = NULL,       [RP_UNREAD_HOLE] = NULL};

    /* The rank that a file would have been, by its beginning or by its name. */
    const struct rp_selection *s = log->dataset->selection;
    int32_t number = s && u->source < rp_sources_count(log->dataset->sources) &&
                             s[u->source].by == RP_KNOWN_BY_HEAD
                         ? s[u->source].number
                         : rp_rank_in_name(u->path);
    struct rp_trust_trace t = {.path = u->path, .number = number};
    const char *brief = briefs[u->why], *text;

    if (list && number >= 0 && !rp_rank_wanted(list, number))
        return RP_OK;
    if (!is_missed(shapes, u))
        return brief && !log->is_job && !is_hidden(u->path) && !is_companion(u->path)
                   ? add_note(
                         log, &t, "other_file", false, brief, RP_ABSENT_I64,
                         rp_arena_textf(&log->arena, "'%s' was not read: it is %s", u->path, brief),
                         err)
                   : RP_OK;
    if (u->why == RP_UNREAD_HOLE || u->why == RP_UNREAD_UNOPENED)
        brief = without_name(u);
    else if (u->why == RP_UNREAD_DAMAGED && !log->dataset->salvage)
        brief = "damaged: --salvage may read a part";
    text = u->why == RP_UNREAD_DAMAGED || u->why == RP_UNREAD_UNOPENED
               ? u->reason
               : rp_arena_textf(&log->arena, "'%s' was not read: it is %s", u->path, brief);
    return add_note(log, &t, "not_read", true, brief, RP_ABSENT_I64, text, err);
}

RP_ORDER(by_unread_source, struct rp_unread, RP_UP(source), rp_natural_compare(a->path, b->path))

static enum rp_code remark_with(struct rp_trust_log *log, const struct rp_map *shapes,
                                struct rp_err *err)
{
    size_t i, n;
    const struct rp_hole *holes = rp_sources_borrow_holes(log->dataset->sources, &n);

    for (i = 0; i < log->unread.n; i++)
        if (!i || log->unread.at[i].source != log->unread.at[i - 1].source ||
            strcmp(log->unread.at[i].path, log->unread.at[i - 1].path) != 0)
            RP_TRY(remark_unread(log, shapes, &log->unread.at[i], err));
    for (i = 0; i < n; i++) {
        struct rp_unread hole = {SIZE_MAX, RP_UNREAD_HOLE,
                                 rp_arena_text(&log->arena, holes[i].path),
                                 rp_arena_text(&log->arena, holes[i].reason)};

        RP_TRY(remark_unread(log, shapes, &hole, err));
    }
    return RP_OK;
}

/* ---- what was read */

static const char *rank_text(struct rp_trust_log *log, const struct rp_trust_trace *t)
{
    return t->number < 0 ? "" : rp_arena_textf(&log->arena, "rank %d, ", t->number);
}

static enum rp_code remark_losses(struct rp_trust_log *log, const struct rp_trust_trace *t,
                                  struct rp_err *err)
{
    struct rp_arena *arena = &log->arena;
    const struct rp_health *h = &t->health;
    int64_t wrong = h->bad_time + h->huge_time + h->negative_dur + h->absurd_dur + h->missing_ts +
                    h->missing_dur + h->ts_zero_gpu;
    const char *many, *why;

    if (h->lost_events > 0) {
        many = rp_units_count(arena, h->lost_events, "event");
        why = t->lost && strstr(t->lost, " lost: ") ? strstr(t->lost, " lost: ") + 7 : NULL;
        RP_TRY(add_note(
            log, t, "lost", true,
            rp_arena_textf(arena, "%s%s%s%s", rank_text(log, t), many, why ? ": " : "",
                           why ? why : ""),
            h->lost_events,
            rp_arena_textf(arena, "'%s': %s", t->path,
                           t->lost ? t->lost
                                   : rp_arena_textf(arena, "the recorder dropped %s", many)),
            err));
    }
    if (t->overwritten > 0) {
        many = rp_units_count(arena, t->overwritten, "older event");
        RP_TRY(add_note(log, t, "overwritten", true,
                        rp_arena_textf(arena, "%s%s overwritten", rank_text(log, t), many),
                        t->overwritten,
                        rp_arena_textf(arena,
                                       "'%s' is a ring that kept the end of the run: %s %s "
                                       "overwritten",
                                       t->path, many, t->overwritten == 1 ? "was" : "were"),
                        err));
    }
    if (wrong <= 0)
        return RP_OK;
    many = rp_units_count(arena, wrong, "time");
    return add_note(log, t, "damaged", wrong >= h->events / 100,
                    rp_arena_textf(arena, "%s%s that cannot be right", rank_text(log, t), many),
                    wrong,
                    rp_arena_textf(arena,
                                   "'%s': %s and durations are missing, negative, zero on a "
                                   "device, or longer than a week",
                                   t->path, many),
                    err);
}

#define FIRST_NS 20000000
RP_DECISION(FIRST_NS, "ns",
            "two samples of a stack, so that the last is not by chance the earlier one; launchers "
            "look for dead ranks every 100 ms before they end the others",
            "dataset/the_first_to_stop_has_an_edge");

/* Finds the rank that stopped first of those that did not end by themselves, by the clocks of their
   hosts, because others may have been ended by it. NULL if it cannot be known. */
static const struct rp_trust_trace *first_death(const struct rp_trust_log *log, int64_t *before_ns)
{
    const struct rp_trust_trace *first = NULL;
    int64_t next_ns = INT64_MAX;

    for (size_t i = 0; i < log->traces.n; i++) {
        const struct rp_trust_trace *t = &log->traces.at[i];

        if (!t->died || t->verdict != RP_VERDICT_RANK || t->unselected || t->number < 0)
            continue;
        if (!t->stopped_ns)
            return NULL;
        if (!first || t->stopped_ns < first->stopped_ns) {
            next_ns = first ? first->stopped_ns : INT64_MAX;
            first = t;
        } else if (t->stopped_ns < next_ns) {
            next_ns = t->stopped_ns;
        }
    }
    *before_ns = first ? rp_ns_between(first->stopped_ns, next_ns) : 0;
    return next_ns < INT64_MAX && *before_ns >= FIRST_NS ? first : NULL;
}

static enum rp_code remark_death(struct rp_trust_log *log, const struct rp_trust_trace *t,
                                 const char *first, struct rp_err *err)
{
    return add_note(
        log, t, "killed", true,
        rp_arena_textf(&log->arena, "%s%s%s", rank_text(log, t), first, t->died), RP_ABSENT_I64,
        rp_arena_textf(&log->arena,
                       "'%s': the program did not end by itself: it was killed, crashed, "
                       "or still runs (%s%s)",
                       t->path, first, t->died),
        err);
}

/* The first one comes first, because its line names only a few. */
static enum rp_code remark_deaths(struct rp_trust_log *log, struct rp_err *err)
{
    int64_t before_ns;
    const struct rp_trust_trace *first = first_death(log, &before_ns);

    if (first)
        RP_TRY(remark_death(log, first,
                            rp_arena_textf(&log->arena, "the first to stop, %s before the others, ",
                                           rp_units_time(&log->arena, before_ns)),
                            err));
    for (size_t i = 0; i < log->traces.n; i++) {
        const struct rp_trust_trace *t = &log->traces.at[i];

        if (t != first && t->died && t->verdict == RP_VERDICT_RANK && !t->unselected)
            RP_TRY(remark_death(log, t, "", err));
    }
    return RP_OK;
}

static enum rp_code remark_verdict(struct rp_trust_log *log, const struct rp_trust_trace *t,
                                   struct rp_err *err)
{
    struct rp_arena *arena = &log->arena;
    const char *instead = t->instead ? t->instead : "another file";
    const char *brief = short_path(log, instead);
    const char *text;

    switch (t->verdict) {
    case RP_VERDICT_COPY:
        text = rp_arena_textf(arena, "'%s' is the same recording as '%s', which is used", t->path,
                              instead);
        RP_TRY(add_note(log, t, "duplicate", true,
                        rp_arena_textf(arena, "%sa copy of %s", rank_text(log, t), brief),
                        RP_ABSENT_I64, text, err));
        break;
    case RP_VERDICT_CLASH:
        text = rp_arena_textf(arena, "'%s' states rank %d, as '%s' does, which is used: %s",
                              t->path, t->number, instead,
                              t->nevents ? "it is of another run or another part of this one"
                                         : "it has no events");
        RP_TRY(add_note(log, t, "rank_clash", true,
                        rp_arena_textf(arena, "%sas %s%s", rank_text(log, t), brief,
                                       t->nevents ? "" : ", without events"),
                        RP_ABSENT_I64, text, err));
        break;
    case RP_VERDICT_EMPTY:
        text = rp_arena_textf(arena, "'%s' has no events", t->path);
        RP_TRY(add_note(log, t, "not_read", true,
                        rp_arena_textf(arena, "%sno events", rank_text(log, t)), 0, text, err));
        return RP_OK;
    default:
        return RP_OK;
    }
    log->notes.at[log->notes.n - 1].remark.instead = t->instead;
    return RP_OK;
}

static enum rp_code remark_trace(struct rp_trust_log *log, const struct rp_trust_trace *t,
                                 struct rp_err *err)
{
    const struct rp_health *h = &t->health;

    if (t->unselected)
        return RP_OK;
    RP_TRY(remark_verdict(log, t, err));
    if (t->verdict != RP_VERDICT_RANK && t->verdict != RP_VERDICT_CUT)
        return RP_OK;
    if (h->truncated || h->salvaged || h->skipped_bytes || t->cut_archive) {
        /* Only a part of the file could be read. */
        const char *events = rp_units_count(&log->arena, t->nevents, "event");
        const char *brief = rp_arena_textf(&log->arena, "%s%s read%s", rank_text(log, t), events,
                                           t->verdict == RP_VERDICT_CUT ? ", left out" : "");
        const char *why = t->cut           ? t->cut
                          : t->cut_archive ? "the archive is truncated"
                                           : "bytes were skipped to find the next event";
        const char *text = rp_arena_textf(
            &log->arena, "'%s': %s; %s %s read%s", t->path, why, events,
            t->nevents == 1 ? "was" : "were",
            t->verdict == RP_VERDICT_CUT
                ? "; it is left out of the answer, because other ranks are whole (--salvage "
                  "keeps it)"
                : "");
        bool damaged = t->health.salvaged || t->health.skipped_bytes;
        RP_TRY(add_note(log, t, damaged ? "damaged" : "truncated", true, brief, t->nevents, text,
                        err));
        if (t->health.skipped_bytes)
            log->notes.at[log->notes.n - 1].remark.bytes = t->health.skipped_bytes;
    }
    if (t->hidden) {
        /* Work that the recorder has hidden in whole graphs. */
        struct rp_arena *arena = &log->arena;
        const char *many = rp_units_count(arena, t->hidden, "launch");
        RP_TRY(add_note(
            log, t, "hidden", true,
            rp_arena_textf(arena, "%s%s of %s", rank_text(log, t), many,
                           rp_units_time(arena, t->hidden_ns)),
            t->hidden,
            rp_arena_textf(
                arena,
                "'%s': %s of graphs were recorded as a whole, %s of device time: their "
                "kernels are hidden, and each launch counts as one kernel; record with 'nsys "
                "profile --cuda-graph-trace=node'",
                t->path, many, rp_units_time(arena, t->hidden_ns)),
            err));
    }
    if (t->joined) {
        RP_TRY(add_note(
            log, t, "joined", t->unsure,
            rp_arena_textf(&log->arena, "%s%s", rank_text(log, t), t->joined), RP_ABSENT_I64,
            rp_arena_textf(&log->arena, "'%s' is of two recorders: %s", t->path, t->joined), err));
    }
    if (t->set_back) {
        RP_TRY(add_note(log, t, "set_back", false,
                        rp_arena_textf(&log->arena, "%s%s", rank_text(log, t), t->set_back),
                        RP_ABSENT_I64,
                        rp_arena_textf(&log->arena, "'%s': %s", t->path, t->set_back), err));
    }
    return t->verdict == RP_VERDICT_RANK ? remark_losses(log, t, err) : RP_OK;
}

/* ---- the run */

static const char *number_text(struct rp_arena *arena, int64_t n)
{
    char text[32];

    rp_units_thousands(n, text, sizeof text);
    return rp_arena_text(arena, text);
}

/* Lists missing ranks: "2, 5-7 and 12 more". */
static const char *list_missing(struct rp_arena *arena, const bool *here, int32_t world,
                                int64_t missing)
{
    const char *text = "";
    int32_t i, end;
    int64_t listed = 0;
    size_t shown = 0;

    for (i = 0; i < world && shown < 2 * (size_t)NAMES_SHOWN; i = end) {
        for (end = i + 1; end < world && here[end] == here[i];)
            end++;
        if (here[i])
            continue;
        text = end - i > 2 ? rp_arena_textf(arena, "%s%s%d-%d", text, shown ? ", " : "", i, end - 1)
                           : rp_arena_textf(arena, "%s%s%d", text, shown ? ", " : "", i);
        end = end - i > 2 ? end : i + 1;
        listed += end - i;
        shown++;
    }
    return listed < missing
               ? rp_arena_textf(arena, "%s and %s more", text, number_text(arena, missing - listed))
               : text;
}

static void mark_here(bool *here, int32_t world, int64_t number)
{
    if (number >= 0 && number < world)
        here[number] = true;
}

/* Remarks on ranks that the job has, or that --rank names, and of which there is no file. Files
   that are not used have a remark of their own. */
static enum rp_code remark_missing(struct rp_trust_log *log, const struct rp_trust_run *run,
                                   struct rp_err *err)
{
    RP_FREED bool *here = NULL;
    int64_t wanted = 0, missing = 0;

    if (run->world > MOST_RANKS)
        return RP_OK; /* nobody has such a job */
    here = calloc((size_t)(run->world > 0 ? run->world : 0) + 1, sizeof *here);
    RP_TRY(rp_err_need(here, err, "looking for ranks"));
    for (size_t i = 0; i < run->n; i++)
        mark_here(here, run->world, run->numbers[i]);
    for (size_t i = 0; i < log->notes.n; i++)
        mark_here(here, run->world, log->notes.at[i].remark.rank);
    for (int32_t r = 0; r < run->world; r++) {
        bool asked = !run->list || rp_rank_wanted(run->list, r);

        wanted += asked;
        missing += asked && !here[r];
        here[r] = here[r] || !asked;
    }
    const char *text = rp_arena_textf(
        &log->arena, "missing%s: %s of %s: %s%s", run->where, number_text(&log->arena, missing),
        rp_units_count(&log->arena, wanted, run->list ? "selected rank" : "rank"),
        list_missing(&log->arena, here, run->world, missing),
        run->waits ? "; where a collective waits for one of them, that looks like transfer" : "");
    if (missing)
        RP_TRY(rp_trust_note(log, "missing_ranks", true, missing, text, err));
    return RP_OK;
}

/* Finds contradictions to files with numbers being one run. They are only worth a remark, since the
   question is about each file. The run gets their digests. */
static enum rp_code check_files(struct rp_trust_log *log, struct rp_run *run, struct rp_err *err)
{
    struct rp_relation relation;

    RP_TRY(rp_run_settle(run, err));
    RP_TRY(rp_run_check(run, NULL, &relation, err));
    if (relation.why)
        RP_TRY(rp_trust_note(log, "unrelated", false, RP_ABSENT_I64, relation.why, err));
    int32_t *numbers = RP_ARENA_NEW(&log->arena, int32_t, run->ranks.n + 1);
    RP_TRY(rp_err_need(numbers, err, "comparing traces"));
    for (size_t i = 0; i < run->ranks.n; i++)
        numbers[i] = run->ranks.at[i].number;
    if (run->ranks.n < 2 || relation.unrelated)
        return RP_OK;
    return rp_trust_run(
        log,
        &(struct rp_trust_run){
            .where = "", .world = run->world_size, .numbers = numbers, .n = run->ranks.n},
        err);
}

/* Decides by their stated numbers which files are ranks, if no question numbers them. */
static enum rp_code judge_files(struct rp_trust_log *log, struct rp_err *err)
{
    size_t i, n = 0, all = log->traces.n, stated = 0;
    struct rp_claim *claims = RP_ARENA_NEW(&log->arena, struct rp_claim, all + 1);
    size_t *source = RP_ARENA_NEW(&log->arena, size_t, all + 1);
    uint32_t *part = RP_ARENA_NEW(&log->arena, uint32_t, all + 1);
    struct rp_run *run = NULL;
    enum rp_code code;

    RP_TRY(rp_arena_check(&log->arena, "comparing traces", err));
    for (i = 0; i < all; i++) {
        if (log->traces.at[i].capture)
            continue;
        claims[n].digest = log->traces.at[i].digest;
        source[n] = log->traces.at[i].source;
        part[n++] = log->traces.at[i].part;
    }
    RP_TRY(rp_claims_settle(claims, n, true, err));
    rp_trust_judge(log, claims, source, part, n);
    RP_TRY(rp_run_new(&run, err));
    for (i = 0, code = RP_OK; i < all && code == RP_OK; i++) {
        struct rp_trust_trace *t = &log->traces.at[i];

        if (t->capture || t->verdict != RP_VERDICT_RANK)
            continue;
        stated += t->digest->rank >= 0;
        code = rp_run_add(run, &t->digest, i, err);
    }
    if (code == RP_OK && stated == run->ranks.n)
        code = check_files(log, run, err);
    rp_run_free(run);
    return code;
}

/* ------------------------------------------------------------------ lines */

/* Makes the line of n notes of a kind: "truncated: 2 of 8 files: rank1.json (rank 1, 8,218 events
   read), …". */
static const char *line_of(const struct rp_trust_log *log, struct rp_arena *arena,
                           const struct rp_trust_note *note, size_t n)
{
    const struct kind *kind = &kinds[kind_of(note->remark.kind)];
    const char *end = log->ranked ? kind->end : "";
    size_t i, holes, files = rp_dataset_count(log->dataset);

    if (!note->remark.path)
        return note->remark.text;
    rp_sources_borrow_holes(log->dataset->sources, &holes);
    files = log->nfiles ? log->nfiles : files + holes;
    const char *text = files < 2 ? rp_arena_textf(arena, "%s: ", kind->label)
                                 : rp_arena_textf(arena, "%s: %s of %s: ", kind->label,
                                                  number_text(arena, (int64_t)n),
                                                  rp_units_count(arena, (int64_t)files, kind->one));
    for (i = 0; i < n && i < NAMES_SHOWN; i++)
        text = rp_arena_textf(arena, "%s%s%s%s%s%s", text, i ? ", " : "",
                              short_path(log, note[i].remark.path), note[i].brief ? " (" : "",
                              note[i].brief ? note[i].brief : "", note[i].brief ? ")" : "");
    return n > NAMES_SHOWN ? rp_arena_textf(arena, "%s and %s more%s", text,
                                            number_text(arena, (int64_t)(n - NAMES_SHOWN)), end)
                           : rp_arena_textf(arena, "%s%s", text, end);
}

static enum rp_code write_lines(struct rp_trust_log *log, struct rp_result *result,
                                struct rp_err *err)
{
    struct rp_trust *trust = &result->trust;
    size_t i, k, n = log->notes.n;

    trust->incomplete = RP_ARENA_NEW(&result->arena, const char *, n + 1);
    trust->notes = RP_ARENA_NEW(&result->arena, const char *, n + 1);
    RP_TRY(rp_arena_check(&result->arena, "noting remarks", err));
    for (i = 0; i < n; i += k) {
        const struct rp_trust_note *note = &log->notes.at[i];

        for (k = 1; i + k < n && note->remark.path &&
                    !strcmp(note[k].remark.kind, note->remark.kind) &&
                    note[k].remark.incomplete == note->remark.incomplete && note[k].remark.path;)
            k++;
        const char *line =
            rp_arena_escaped(&result->arena, RP_IN_LINE, line_of(log, &result->arena, note, k));
        if (note->remark.incomplete)
            trust->incomplete[trust->nincomplete++] = line;
        else
            trust->notes[trust->nnotes++] = line;
    }
    return RP_OK;
}

RP_ORDER(by_trace_source, struct rp_trust_trace, RP_UP(source), RP_UP(part))

enum rp_code rp_trust_finish(struct rp_trust_log *log, const struct rp_dataset *dataset, bool judge,
                             struct rp_result *result, struct rp_err *err)
{
    struct rp_trust *trust = &result->trust;

    result->has_trust = true;
    log->dataset = dataset;
    rp_sort(log->traces.at, log->traces.n, sizeof *log->traces.at, by_trace_source);
    if (judge && log->traces.n > 1)
        RP_TRY(judge_files(log, err));

    /* A source may have been looked at several times. */
    enum rp_code code = RP_OK;
    struct rp_map shapes = {0};
    for (size_t i = 0; i < log->traces.n && code == RP_OK; i++) {
        uint64_t key = shape_key(log->traces.at[i].path);
        if (key)
            code = rp_map_put(&shapes, key, 1, err);
    }
    rp_sort(log->unread.at, log->unread.n, sizeof *log->unread.at, by_unread_source);
    if (code == RP_OK)
        code = remark_with(log, &shapes, err);
    rp_map_release(&shapes);
    RP_TRY(code);
    for (size_t i = 0; i < log->traces.n; i++)
        RP_TRY(remark_trace(log, &log->traces.at[i], err));
    RP_TRY(remark_deaths(log, err));
    for (size_t i = 0; i < log->runs.n; i++)
        RP_TRY(remark_missing(log, &log->runs.at[i], err));

    /* An impossible answer is a defect of reprise, or of a recording that it took for sound: nobody
       should act on it unwarned. */
    char why[240], text[400];
    size_t n = rp_record_impossible(result->type, result->root, why, sizeof why);
    if (n) {
        snprintf(
            text, sizeof text,
            "%zu time%s of this answer cannot be (%s): do not rely on %s, and report it as a defect "
            "of reprise",
            n, n == 1 ? "" : "s", why, n == 1 ? "it" : "them");
        RP_TRY(rp_trust_note(log, "impossible", true, (int64_t)n, text, err));
    }
    for (size_t i = 0; i < log->notes.n; i++)
        log->notes.at[i].place = i;
    rp_sort(log->notes.at, log->notes.n, sizeof *log->notes.at, by_kind);
    RP_TRY(write_lines(log, result, err));
    trust->complete = true;
    if (log->traces.n == 1 && log->traces.at[0].world_size > 1)
        trust->absent = log->traces.at[0].world_size - 1;
    trust->remarks = RP_ARENA_NEW(&result->arena, struct rp_remark, log->notes.n + 1);
    for (size_t i = 0; trust->remarks && i < log->notes.n; i++) {
        trust->remarks[trust->nremarks++] = log->notes.at[i].remark;
        trust->complete = trust->complete && !log->notes.at[i].remark.incomplete;
    }
    RP_TRY(rp_arena_check(&log->arena, "noting remarks", err));
    rp_arena_adopt(&result->arena, &log->arena);
    return rp_arena_check(&result->arena, "noting remarks", err);
}
