/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up collectives by kind and size, and writes the parts of the text output: two sentences, the
 * ranks by how much they delay the others, the collectives with the longest delays, and notes about
 * what was not recorded.
 */
#include "explain/comm/comm.h"

#include "base/decides.h"
#include "base/order.h"
#include "explain/comm/shared.h"
#include "explain/short_name.h"
#include "places/transfers.h"
#include "result/print_units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define END_SHARE 0.25
RP_DECISION(END_SHARE, "of the transfer",
            "ends that differ by less cost less than what ranks gain by leaving at different times",
            "explain/ends_that_are_apart_have_an_edge");

#define END_OFTEN 0.1
RP_DECISION(END_OFTEN, "of the collectives", "fewer are accidents of a run, not its paths",
            "explain/ends_that_are_apart_have_an_edge");

static int by_size(const void *pa, const void *pb)
{
    const struct rp_comm_collective *a = *(struct rp_comm_collective *const *)pa;
    const struct rp_comm_collective *b = *(struct rp_comm_collective *const *)pb;
    int kind = strcmp(a->kind, b->kind);

    if (kind)
        return kind;
    if (a->size_bytes != b->size_bytes)
        return a->size_bytes < b->size_bytes ? -1 : 1;
    if (a->rank_count != b->rank_count)
        return a->rank_count < b->rank_count ? -1 : 1;
    if (a->seen_count != b->seen_count)
        return a->seen_count < b->seen_count ? -1 : 1;
    if (a->at_place != b->at_place)
        return a->at_place < b->at_place ? -1 : 1;
    if (isnan(a->algorithm_bytes_per_s) || isnan(b->algorithm_bytes_per_s))
        return !isnan(b->algorithm_bytes_per_s) - !isnan(a->algorithm_bytes_per_s);
    return (a->algorithm_bytes_per_s > b->algorithm_bytes_per_s) -
           (a->algorithm_bytes_per_s < b->algorithm_bytes_per_s);
}

static bool same_size(const struct rp_comm_collective *a, const struct rp_comm_collective *b)
{
    return a->kind == b->kind && a->size_bytes == b->size_bytes && a->rank_count == b->rank_count &&
           a->seen_count == b->seen_count && a->at_place == b->at_place;
}

static void add_to_size(struct rp_comm_size *s, const struct rp_comm_collective *c, int64_t ranks,
                        int64_t *overlap_ns, int64_t *dur_ns)
{
    bool matched = c->transfer_ns != RP_ABSENT_I64;

    s->count++;
    if (c->algorithm != s->algorithm)
        s->algorithm = NULL;
    rp_ns_add(&s->transfer_ns, matched ? c->transfer_ns : c->max_dur_ns);
    rp_ns_add(&s->wait_ns, c->wait_ns / (ranks > 0 ? ranks : 1));
    rp_ns_add(overlap_ns, c->overlap_ns);
    rp_ns_add(dur_ns, c->dur_ns);
    if (!isnan(c->imbalance_ratio) &&
        (isnan(s->imbalance_ratio) || c->imbalance_ratio > s->imbalance_ratio))
        s->imbalance_ratio = c->imbalance_ratio;
}

static struct rp_comm_size size_of(struct rp_comm_collective **rows, size_t n, int64_t recorded)
{
    const struct rp_comm_collective *middle = rows[(n - 1) / 2];
    bool matched = rows[0]->transfer_ns != RP_ABSENT_I64;
    struct rp_comm_size s = {.kind = rows[0]->kind,
                             .algorithm = rows[0]->algorithm,
                             .size_bytes = rows[0]->size_bytes,
                             .rank_count = rows[0]->rank_count,
                             .seen_count = rows[0]->seen_count,
                             .algorithm_bytes_per_s = middle->algorithm_bytes_per_s,
                             .bus_bytes_per_s = middle->bus_bytes_per_s,
                             .place = rp_place_names[rows[0]->at_place],
                             .link_share = NAN,
                             .overlap_share = NAN,
                             .imbalance_ratio = NAN};
    int64_t overlap = 0, dur = 0, ranks;

    ranks = rows[0]->seen_count < recorded ? rows[0]->seen_count : recorded;
    for (size_t i = 0; i < n; i++)
        add_to_size(&s, rows[i], ranks, &overlap, &dur);
    if (middle->link_can > 0)
        s.link_share = middle->bus_bytes_per_s / middle->link_can;
    if (dur > 0)
        s.overlap_share = (double)overlap / (double)dur;
    if (!matched)
        s.wait_ns = RP_ABSENT_I64;
    return s;
}

RP_ORDER(by_time, struct rp_comm_size, RP_DOWN(transfer_ns), RP_DOWN(size_bytes),
         strcmp(a->kind, b->kind))

enum rp_code rp_comm_add_sizes(struct rp_comm_root *out, struct rp_arena *arena, struct rp_err *err)
{
    struct rp_comm_collective **rows =
        RP_ARENA_NEW(arena, struct rp_comm_collective *, out->ncollectives + 1);
    size_t i, end, n = out->ncollectives;

    out->sizes = RP_ARENA_NEW(arena, struct rp_comm_size, n + 1);
    RP_TRY(rp_err_need(rows && out->sizes, err, "adding up collectives"));
    for (i = 0; i < n; i++)
        rows[i] = &out->collectives[i];
    rp_sort(rows, n, sizeof *rows, by_size);
    for (i = 0; i < n; i = end) {
        for (end = i + 1; end < n && same_size(rows[i], rows[end]); end++)
            ;
        out->sizes[out->nsizes++] = size_of(&rows[i], end - i, (int64_t)out->nranks);
    }
    rp_sort(out->sizes, out->nsizes, sizeof *out->sizes, by_time);
    return RP_OK;
}

struct comm_text {
    struct rp_comm_root *out;
    struct rp_arena *arena;
};

RP_ORDER(by_margin, struct rp_comm_rank, RP_DOWN(margin_ns), RP_DOWN(last_count), RP_UP(rank))

/* "host_stall: aten::empty", "rank 3: compute: gemm" */
static const char *cause_text(struct comm_text *w, const char *cause, const char *evidence,
                              int64_t rank)
{
    char label[120];

    if (cause && evidence) {
        rp_short_name(evidence, label, sizeof label);
        cause = rp_arena_textf(w->arena, "%s: %s", cause, label);
    }
    return cause && rank != RP_ABSENT_I64
               ? rp_arena_textf(w->arena, "rank %lld: %s", (long long)rank, cause)
               : cause;
}

static void write_ranks(struct comm_text *w)
{
    struct rp_comm_root *out = w->out;

    out->rank_rows = RP_ARENA_NEW(w->arena, struct rp_comm_rank, out->nranks + 1);
    if (!out->rank_rows || !out->collective_count)
        return;
    for (size_t r = 0; r < out->nranks; r++) {
        out->rank_rows[r] = out->ranks[r];
        out->rank_rows[r].cause_text =
            cause_text(w, out->ranks[r].cause, out->ranks[r].evidence, out->ranks[r].cause_rank);
    }
    out->alone_rows = out->device_rows = out->rank_rows;
    *(out->several         ? &out->ndevice_rows
      : out->matched_count ? &out->nrank_rows
                           : &out->nalone_rows) = out->nranks;
    qsort(out->rank_rows, out->nranks, sizeof *out->rank_rows, by_margin);
}

static int64_t delay_of(const struct rp_comm_collective *c)
{
    return c->margin_ns == RP_ABSENT_I64 ? c->max_dur_ns : c->margin_ns;
}

RP_ORDER(by_delay, struct rp_comm_collective, RP_COMPARE(delay_of(b), delay_of(a)), RP_UP(begin_ns))

/* "all_reduce 67.1 MB" */
static const char *collective_label(struct comm_text *w, const struct rp_comm_collective *c)
{
    char size[RP_CELL_BYTES], name[80];

    if (c->size_bytes != RP_ABSENT_I64) {
        rp_units_format((double)c->size_bytes, RP_UNIT_BYTES, size, sizeof size);
        return rp_arena_textf(w->arena, "%s %s", c->kind, size);
    }
    if (strcmp(c->kind, "other") != 0)
        return c->kind;
    rp_short_name(c->name, name, sizeof name);
    return rp_arena_text(w->arena, name);
}

static void write_worst(struct comm_text *w, size_t limit)
{
    struct rp_comm_root *out = w->out;
    int64_t first = INT64_MAX;

    out->worst = RP_ARENA_NEW(w->arena, struct rp_comm_collective, out->ncollectives + 1);
    if (!out->worst || !out->ncollectives)
        return;
    memcpy(out->worst, out->collectives, out->ncollectives * sizeof *out->worst);
    for (size_t i = 0; i < out->ncollectives; i++)
        first = out->worst[i].begin_ns < first ? out->worst[i].begin_ns : first;
    qsort(out->worst, out->ncollectives, sizeof *out->worst, by_delay);
    limit = out->ncollectives < limit ? out->ncollectives : limit;
    out->longest = out->worst_devices = out->worst;
    *(!out->matched_count ? &out->nlongest
      : out->several      ? &out->nworst_devices
                          : &out->nworst) = limit;
    for (size_t i = 0; i < limit; i++) {
        out->worst[i].at_ns = rp_ns_between(first, out->worst[i].begin_ns);
        out->worst[i].label = collective_label(w, &out->worst[i]);
        out->worst[i].cause_text =
            cause_text(w, out->worst[i].cause, out->worst[i].evidence, out->worst[i].cause_rank);
    }
}

static const char *rule_text(const char *rule)
{
    if (!strcmp(rule, "sequence"))
        return "process group and sequence number";
    if (!strcmp(rule, "group"))
        return "process group and order";
    if (!strcmp(rule, "order"))
        return "their order on the stream";
    if (!strcmp(rule, "time"))
        return "name and the time at which they end";
    if (!strcmp(rule, "peer"))
        return "their peers";
    return "name, size and order";
}

#define MOST_NAMED 3
RP_LIMIT(MOST_NAMED, "ranks in a sentence",
         "it says what part of the delay these cause; the table has them all");

/* Most of the delay is that of one rank, through others that it made late; else NULL. */
static const char *cause_of_most(struct comm_text *w)
{
    const struct rp_comm_root *out = w->out;
    const struct rp_comm_rank *rank = out->rank_rows;
    double most = RP_COMM_MOST * (double)out->margin_ns;

    if (out->several || (double)rank->margin_ns >= most)
        return NULL;
    for (size_t r = 1; r < out->nranks; r++)
        if (out->rank_rows[r].caused_ns > rank->caused_ns)
            rank = &out->rank_rows[r];
    return (double)rank->caused_ns < most
               ? NULL
               : rp_arena_textf(w->arena,
                                "%srank %lld: delayed the others by %s, %.0f %% of all delay (%s), "
                                "also through ranks that were late because of it",
                                out->incomplete_count ? "of the ranks given, " : "",
                                (long long)rank->rank, rp_units_time(w->arena, rank->caused_ns),
                                100.0 * (double)rank->caused_ns / (double)out->margin_ns,
                                rp_units_time(w->arena, out->margin_ns));
}

/* Writes "ranks 0, 6 arrived last in 60 of 84 collectives …" with the fewest ranks that cause most
 * of the delay. */
static const char *delay_text(struct comm_text *w)
{
    const struct rp_comm_root *out = w->out;
    int64_t margin = 0, count = 0;
    const char *names = "", *one;
    size_t i;

    if (out->margin_ns <= 0 && out->doubtful_count)
        return rp_arena_textf(w->arena,
                              "no rank can be blamed: no delay exceeds the uncertainty of the "
                              "clocks, ± %s",
                              rp_units_time(w->arena, out->uncertainty_ns));
    if (out->margin_ns <= 0 && out->pipeline_text)
        return "no rank: the stages of the pipeline wait for each other, see below";
    if (out->margin_ns <= 0)
        return "no rank: in every collective the last ranks arrived together";
    one = cause_of_most(w);
    if (one)
        return one;
    for (i = 0; i < out->nranks && i < MOST_NAMED; i++) {
        if (i && (double)margin >= RP_COMM_MOST * (double)out->margin_ns)
            break;
        rp_ns_add(&margin, out->rank_rows[i].margin_ns);
        count += out->rank_rows[i].last_count;
        names = out->several && out->rank_rows[i].device != RP_ABSENT_I64
                    ? rp_arena_textf(w->arena, "%s%s%lld of rank %lld", names, i ? ", " : "",
                                     (long long)out->rank_rows[i].device,
                                     (long long)out->rank_rows[i].rank)
                    : rp_arena_textf(w->arena, "%s%s%lld", names, i ? ", " : "",
                                     (long long)out->rank_rows[i].rank);
    }
    return rp_arena_textf(
        w->arena,
        "%s%s%s %s: arrived last in %s of %s collectives and delayed the others by %s, %.0f %% "
        "of all delay (%s)",
        out->incomplete_count ? "of the ranks given, " : "", out->several ? "device" : "rank",
        i > 1 ? "s" : "", names, rp_units_number(w->arena, count),
        rp_units_number(w->arena, out->matched_count), rp_units_time(w->arena, margin),
        100.0 * (double)margin / (double)out->margin_ns, rp_units_time(w->arena, out->margin_ns));
}

/* "8 ranks", "2 of 128 ranks", "8 devices of 1 rank" */
static const char *ranks_text(struct comm_text *w)
{
    const struct rp_comm_root *out = w->out;
    const char *ranks = rp_units_count(w->arena, out->given_count, "rank");

    if (out->world_size > out->given_count)
        ranks = rp_arena_textf(w->arena, "%lld of %lld ranks", (long long)out->given_count,
                               (long long)out->world_size);
    if (out->several)
        ranks = rp_arena_textf(w->arena, "%zu devices of %s", out->nranks, ranks);
    return ranks;
}

static void write_sentences(struct comm_text *w)
{
    struct rp_comm_root *out = w->out;

    if (!out->collective_count && out->ntransfers) {
        out->run_text =
            rp_arena_textf(w->arena, "%s between processes",
                           rp_units_count(w->arena, (int64_t)out->ntransfers, "tensor"));
        return;
    }
    if (!out->collective_count) {
        out->run_text = "no communication was recorded";
        return;
    }
    if (!out->matched_count) {
        out->run_text = rp_arena_textf(
            w->arena, "%s of %s, not matched",
            rp_units_count(w->arena, out->collective_count, "collective"), ranks_text(w));
        return;
    }
    out->run_text = rp_arena_textf(w->arena, "%s of %s, matched by %s",
                                   rp_units_count(w->arena, out->matched_count, "collective"),
                                   ranks_text(w), rule_text(out->matched_by));
    out->delay_text = delay_text(w);
}

static void add_note(struct comm_text *w, const char *text)
{
    RP_NOTE(w->out, w->arena, text);
}

/* Notes the most uneven exchange, if it matters. */
static void note_imbalance(struct comm_text *w)
{
    const struct rp_comm_size *worst = NULL;

    for (size_t i = 0; i < w->out->nsizes; i++) {
        const struct rp_comm_size *s = &w->out->sizes[i];

        if (s->imbalance_ratio >= RP_COMM_UNEVEN &&
            (!worst || s->imbalance_ratio > worst->imbalance_ratio))
            worst = s;
    }
    if (worst)
        add_note(w, rp_arena_textf(w->arena,
                                   "imbalance: in one %s a rank sends %.0f %% more than the mean",
                                   worst->kind, 100.0 * worst->imbalance_ratio));
}

static void note_shared(struct comm_text *w)
{
    const struct rp_comm_root *out = w->out;
    struct rp_late_rank *ranks = RP_ARENA_NEW(w->arena, struct rp_late_rank, out->nranks + 1);

    if (!ranks || out->margin_ns <= 0)
        return;
    for (size_t r = 0; r < out->nranks; r++)
        ranks[r] = (struct rp_late_rank){out->rank_rows[r].host, out->rank_rows[r].device,
                                         out->rank_rows[r].margin_ns};
    const char *shared = rp_late_shared(ranks, out->nranks, w->arena);
    if (shared)
        add_note(w, shared);
}

/* Notes ends of large collectives that are far apart, because a rank gets its data late on its
   way. */
static void note_ends(struct comm_text *w)
{
    const struct rp_comm_root *out = w->out;
    const struct rp_comm_collective *worst = NULL;
    int64_t n = 0, apart = 0;

    for (size_t i = 0; i < out->ncollectives; i++) {
        const struct rp_comm_collective *c = &out->collectives[i];

        if (c->end_spread_ns == RP_ABSENT_I64 || !c->mutual || c->transfer_ns <= 0)
            continue;
        n++;
        if ((double)c->end_spread_ns < RP_COMM_START_S * 1e9 + 2 * (double)out->uncertainty_ns ||
            (double)c->end_spread_ns < END_SHARE * (double)c->transfer_ns)
            continue;
        apart++;
        worst = !worst || c->end_spread_ns > worst->end_spread_ns ? c : worst;
    }
    if (!worst || (double)apart < END_OFTEN * (double)n)
        return;
    add_note(w,
             rp_arena_textf(w->arena,
                            "in %s of %s collectives the ranks do not leave together: in one %s "
                            "the last leaves %s after the first, of a transfer of %s; its path or "
                            "the start of what follows differs",
                            rp_units_number(w->arena, apart), rp_units_number(w->arena, n),
                            worst->kind, rp_units_time(w->arena, worst->end_spread_ns),
                            rp_units_time(w->arena, worst->transfer_ns)));
}

/* A slow path between two hosts that costs more than all late ranks is looked at first. */
static void note_slow_path(struct comm_text *w)
{
    const struct rp_comm_path *path = w->out->links;
    int64_t more = 0;

    if (!w->out->nlinks || !(path->slower_ratio >= RP_PLACE_GROUP_SHARE))
        return;
    more = rp_ns_between(path->expected_ns, path->compared_ns);
    if (more > w->out->margin_ns)
        add_note(w, rp_arena_textf(w->arena,
                                   "transfers between hosts %s and %s took %.1f times as long as "
                                   "the same elsewhere, %s more: more than all late ranks cost",
                                   path->hosts[0], path->hosts[1], 1 + path->slower_ratio,
                                   rp_units_time(w->arena, more)));
}

static void write_notes(struct comm_text *w)
{
    struct rp_comm_root *out = w->out;
    size_t i, sized = 0;

    if (!out->collective_count)
        return;
    if (out->clocks_differ)
        add_note(w, rp_arena_textf(w->arena,
                                   "the clocks of the ranks differ by up to %s: times are on a "
                                   "common clock, ± %s, see 'reprise merge'",
                                   rp_units_time(w->arena, out->apart_ns),
                                   rp_units_time(w->arena, out->uncertainty_ns)));
    if (out->set_count)
        add_note(w, rp_arena_textf(w->arena,
                                   "the clocks of %s were set during the recording: what comes "
                                   "after is moved",
                                   rp_units_count(w->arena, out->set_count, "rank")));
    if (out->contradict)
        add_note(w, "on no common clock do all collectives end after their last rank has arrived: "
                    "delays and waiting are not certain");
    if (out->doubtful_count && out->margin_ns > 0)
        add_note(w, rp_arena_textf(w->arena,
                                   "in %s of %s collectives the last two ranks are closer than "
                                   "the clocks are certain: nobody is blamed for these",
                                   rp_units_number(w->arena, out->doubtful_count),
                                   rp_units_number(w->arena, out->matched_count)));
    if (out->dropped)
        add_note(w,
                 "not matched: the times of the ranks contradict the order of their collectives, "
                 "whatever their clocks; they are of different groups, or of different parts of "
                 "the run");
    if (out->matched_count && out->incomplete_count)
        add_note(w,
                 rp_arena_textf(
                     w->arena,
                     "%s of %s collectives include ranks that were not given: any of these may "
                     "have arrived last, so the transfer of these collectives includes waiting for "
                     "them, and their bandwidth is not known",
                     rp_units_number(w->arena, out->incomplete_count),
                     rp_units_number(w->arena, out->matched_count)));
    else if (out->timeline_ranks)
        add_note(w,
                 rp_arena_textf(w->arena,
                                "the input is a timeline of %lld ranks of a pipeline, which count "
                                "as one here: 'reprise simulate' tells them apart",
                                (long long)out->timeline_ranks));
    else if (out->nranks == 1 && out->incomplete_count)
        add_note(w, "one rank: waiting cannot be separated from transfer, so bandwidths are not "
                    "known; pass the traces of all ranks");
    if (out->matched_count && out->unmatched_count)
        add_note(w, rp_arena_textf(w->arena, "%s of %s collectives have no match on another rank",
                                   rp_units_number(w->arena, out->unmatched_count),
                                   rp_units_number(w->arena, out->collective_count)));
    if (out->start_up_count)
        add_note(w, rp_arena_textf(w->arena, "not judged: %s before the first step",
                                   rp_units_count(w->arena, out->start_up_count, "collective")));
    for (i = 0; i < out->ncollectives; i++)
        sized += out->collectives[i].size_bytes != RP_ABSENT_I64;
    if (sized < out->ncollectives)
        add_note(w, rp_arena_textf(w->arena, "the size of %s of %s is not recorded%s%s%s",
                                   rp_units_number(w->arena, (int64_t)(out->ncollectives - sized)),
                                   rp_units_number(w->arena, (int64_t)out->ncollectives),
                                   out->sizes_option ? " (" : "",
                                   out->sizes_option ? out->sizes_option : "",
                                   out->sizes_option ? ")" : ""));
    note_slow_path(w);
    note_imbalance(w);
    for (i = 0; i < RP_PLACES; i++)
        if (out->slow_link[i])
            add_note(w, out->slow_link[i]);
    if (out->matched_count)
        note_ends(w);
    if (out->matched_count)
        note_shared(w);
}

enum rp_code rp_comm_add_texts(struct rp_comm_root *out, size_t limit, struct rp_arena *arena,
                               struct rp_err *err)
{
    struct comm_text w = {.out = out, .arena = arena};

    write_ranks(&w);
    write_worst(&w, limit);
    out->size_rows = out->sizes;
    out->nsize_rows = out->nsizes < limit ? out->nsizes : limit;
    RP_TRY(rp_arena_check(arena, "describing collectives", err));
    write_sentences(&w);
    write_notes(&w);
    return rp_arena_check(arena, "describing collectives", err);
}
