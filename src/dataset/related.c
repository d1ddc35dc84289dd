/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares every rank with the first. Ranks of one run have different numbers, one world size,
 * overlapping times and mostly the same kernels; a pipeline has other kernels on each rank, but
 * shares some. Different devices alone are possible in one run if the files state their numbers; so
 * are different times if a clock may be wrong: recordings of one boot of a machine have one clock.
 */
#include "dataset/related.h"
#include "base/escape.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "base/text.h"
#include "facts/host/trace_host.h"
#include "facts/times/intervals.h"
#include "result/print_units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART_NS 1000000000
RP_DECISION(
    APART_NS, "ns",
    "between recordings that do not overlap: ranks of one job are started and stopped together, and clocks of hosts agree within it",
    "dataset/recordings_that_are_a_second_apart_are_apart");
#define COMMON_LEAST 0.1
RP_DECISION(
    COMMON_LEAST, "of the kernel time",
    "of two ranks: the stages of a pipeline share the kernels of their layers, other models hardly one",
    "dataset/ranks_share_a_tenth_of_their_kernels");
#define SAME_MODEL 0.7
RP_DECISION(
    SAME_MODEL, "of the operators",
    "two recordings of a model are a pair to compare: code that changed has most of them still",
    "dataset/a_pair_has_most_operators_in_common");
#define MOST_SHOWN 3
RP_LIMIT(MOST_SHOWN, "names of files", "in a warning, which says how many more there are");
#define HOUR_NS 3.6e12
RP_FACT(HOUR_NS, "ns", "of an hour");
#define DAY_HOURS 24
RP_FACT(DAY_HOURS, "hours", "of a day");
#define HOUR_MINUTES 60
RP_FACT(HOUR_MINUTES, "minutes", "of an hour");
#define FEW_MINUTES 3
RP_LIMIT(FEW_MINUTES, "minutes", "below them a distance is shown in seconds");

/* ------------------------------------------------------------------ sketches */

RP_ORDER(by_hash, struct rp_sketch_name, RP_UP(hash))

/* Lists the strings with a weight, by hash. */
static enum rp_code list_names(const struct rp_trace *t, const int64_t *weight,
                               struct rp_sketch_name **at, size_t *n, struct rp_err *err)
{
    rp_str s;
    size_t count = 0;

    for (s = 0; s < t->str.n; s++)
        count += weight[s] > 0;
    *at = malloc((count + 1) * sizeof **at);
    RP_TRY(rp_err_need(*at, err, "comparing traces"));
    for (s = 0, *n = 0; s < t->str.n; s++)
        if (weight[s] > 0)
            (*at)[(*n)++] = (struct rp_sketch_name){
                rp_hash_bytes(rp_trace_str(t, s), rp_trace_str_len(t, s)), weight[s]};
    qsort(*at, *n, sizeof **at, by_hash);
    return RP_OK;
}

enum rp_code rp_sketch_init(struct rp_sketch *out, const struct rp_trace *trace, struct rp_err *err)
{
    const struct rp_events *ev = &trace->ev;
    RP_FREED int64_t *kernels = NULL;

    *out = (struct rp_sketch){.boot = rp_trace_boot(trace)};
    if (trace->ndevices)
        snprintf(out->device, sizeof out->device, "%s",
                 rp_trace_str(trace, trace->devices[0].name));
    kernels = calloc(2 * ((size_t)trace->str.n + 1), sizeof *kernels);
    RP_TRY(rp_err_need(kernels, err, "comparing traces"));
    int64_t *ops = kernels + trace->str.n + 1;
    for (rp_event e = 0; e < ev->n; e++)
        if (ev->kind[e] == RP_KIND_CPU_OP)
            ops[ev->name[e]]++;
        else if (trace->ev.kind[e] == RP_KIND_KERNEL && trace->ev.dur_ns[e] > 0)
            rp_ns_add(&kernels[ev->name[e]], ev->dur_ns[e]);
    RP_TRY(list_names(trace, kernels, &out->kernels.at, &out->kernels.n, err));
    return list_names(trace, ops, &out->ops.at, &out->ops.n, err);
}

void rp_sketch_release(struct rp_sketch *sketch)
{
    rp_vec_release(&sketch->kernels);
    rp_vec_release(&sketch->ops);
}

/* The larger of the shares of a's and of b's weight in names that both have; NAN if one has no
   names. */
static double common_share(const struct rp_sketch_name *a, size_t na,
                           const struct rp_sketch_name *b, size_t nb)
{
    double all[2] = {0, 0}, both[2] = {0, 0};
    size_t i = 0, k = 0;

    if (!na || !nb)
        return NAN;
    while (i < na || k < nb) {
        bool left = k == nb || (i < na && a[i].hash <= b[k].hash);
        bool right = i == na || (k < nb && b[k].hash <= a[i].hash);

        if (left && right) {
            both[0] += (double)a[i].weight;
            both[1] += (double)b[k].weight;
        }
        all[0] += left ? (double)a[i++].weight : 0;
        all[1] += right ? (double)b[k++].weight : 0;
    }
    return both[0] / all[0] > both[1] / all[1] ? both[0] / all[0] : both[1] / all[1];
}

/* Is 1 if operators are the same and equally frequent, and 0 if none is common. */
static double same_ops(const struct rp_sketch *a, const struct rp_sketch *b)
{
    double all = 0, both = 0;
    size_t i = 0, k = 0;

    while (i < a->ops.n || k < b->ops.n) {
        bool left = k == b->ops.n || (i < a->ops.n && a->ops.at[i].hash <= b->ops.at[k].hash);
        bool right = i == a->ops.n || (k < b->ops.n && b->ops.at[k].hash <= a->ops.at[i].hash);

        if (left && right)
            both += 2.0 * (double)(a->ops.at[i].weight < b->ops.at[k].weight ? a->ops.at[i].weight
                                                                             : b->ops.at[k].weight);
        all += left ? (double)a->ops.at[i++].weight : 0;
        all += right ? (double)b->ops.at[k++].weight : 0;
    }
    return all > 0 ? both / all : 0;
}

/* ------------------------------------------------------------------ comparing */

struct differences {
    bool number, world, time, device, kernels, framework;
    bool one_clock; /* both times are from the same clock */
    int64_t apart_ns;
};

int64_t rp_digests_apart(const struct rp_digest *a, const struct rp_digest *b)
{
    int64_t begin[2], end[2], gap;

    if (!a->has_base || !b->has_base)
        return 0;
    begin[0] = rp_ns_sum(a->totals.span_begin_ns, a->base_ns);
    end[0] = rp_ns_sum(a->totals.span_end_ns, a->base_ns);
    begin[1] = rp_ns_sum(b->totals.span_begin_ns, b->base_ns);
    end[1] = rp_ns_sum(b->totals.span_end_ns, b->base_ns);
    gap = begin[0] > end[1]   ? rp_ns_between(end[1], begin[0])
          : begin[1] > end[0] ? rp_ns_between(end[0], begin[1])
                              : 0;
    return gap > APART_NS ? gap : 0;
}

static struct differences compare(const struct rp_digest *a, const struct rp_sketch *x,
                                  const struct rp_digest *b, const struct rp_sketch *y)
{
    struct differences d = {
        .number = a->rank >= 0 && a->rank == b->rank,
        .world = a->world_size > 0 && b->world_size > 0 && a->world_size != b->world_size,
        .framework = *a->framework && *b->framework && strcmp(a->framework, b->framework) != 0,
        .apart_ns = rp_digests_apart(a, b)};

    d.time = d.apart_ns > 0;
    if (!x || !y)
        return d;
    d.one_clock = x->boot && x->boot == y->boot;
    d.device = *x->device && *y->device && strcmp(x->device, y->device) != 0;
    d.kernels = common_share(x->kernels.at, x->kernels.n, y->kernels.at, y->kernels.n) <
                COMMON_LEAST; /* false for NAN */
    return d;
}

/* Whether two files cannot be ranks of one run. */
static bool contradicts(const struct differences *d, bool numbered)
{
    return d->number || d->world || d->kernels || d->framework || (d->device && !numbered) ||
           (d->time && (!numbered || d->one_clock));
}

bool rp_digests_contradict(const struct rp_digest *a, const struct rp_sketch *x,
                           const struct rp_digest *b, const struct rp_sketch *y)
{
    struct differences d = compare(a, x, b, y);

    d.number = false;
    return contradicts(&d, a->rank >= 0 && b->rank >= 0);
}

/* ------------------------------------------------------------------ saying it */

struct checking {
    struct rp_run *run;
    const struct rp_sketch *const *sketches;
    struct rp_relation *out;
};

static const struct rp_sketch *sketch_of(const struct checking *c, const struct rp_rank *rank)
{
    return c->sketches ? c->sketches[rank->file] : NULL;
}

static const char *days_text(struct rp_arena *arena, int64_t ns)
{
    double hours = (double)ns / HOUR_NS, minutes = hours * HOUR_MINUTES;

    return hours >= 2 * DAY_HOURS   ? rp_arena_textf(arena, "%.0f days", hours / DAY_HOURS)
           : hours >= 2             ? rp_arena_textf(arena, "%.0f hours", hours)
           : minutes >= FEW_MINUTES ? rp_arena_textf(arena, "%.0f minutes", minutes)
                                    : rp_units_time(arena, ns);
}

/* Says what differs between two of them: ", the devices (H100 and MI300X)". */
static const char *what_differs(struct checking *c, const struct differences *d,
                                const struct rp_rank *a, const struct rp_rank *b)
{
    const struct rp_sketch *x = sketch_of(c, a), *y = sketch_of(c, b);
    struct rp_arena *arena = &c->run->arena;
    const char *text = "";

    if (d->number)
        text = rp_arena_textf(arena, "; both are of rank %d", a->digest->rank);
    if (d->device)
        text = rp_arena_textf(arena, "%s; their devices are %s and %s", text, x->device, y->device);
    if (d->framework)
        text = rp_arena_textf(arena, "%s; they were written by %s and %s", text,
                              a->digest->framework, b->digest->framework);
    if (d->world)
        text = rp_arena_textf(arena, "%s; their jobs have %d and %d ranks", text,
                              a->digest->world_size, b->digest->world_size);
    if (d->time)
        text = rp_arena_textf(arena, "%s; they were recorded %s apart", text,
                              days_text(arena, d->apart_ns));
    if (d->kernels)
        text = rp_arena_textf(arena, "%s; they have hardly a kernel in common", text);
    return *text ? text + 2 : text;
}

bool rp_digest_of_trial(const struct rp_digest *digest)
{
    return digest && !strcmp(rp_text_file(digest->name), "comm_detail.json");
}

/* Two traces of the same model are a pair to compare. */
static const char *advice(struct checking *c, const struct rp_rank *a, const struct rp_rank *b)
{
    const struct rp_sketch *x = sketch_of(c, a), *y = sketch_of(c, b);

    for (size_t i = 0; i < c->run->ranks.n; i++)
        if (rp_digest_of_trial(c->run->ranks.at[i].digest))
            return "a trial of dPRO is one job for 'reprise simulate' and 'reprise optimize'";
    if (c->run->ranks.n != 2 || !x || !y || same_ops(x, y) < SAME_MODEL)
        return "ask about each run alone";
    return rp_arena_textf(&c->run->arena, "to compare them: reprise diff %s %s",
                          rp_arena_escaped(&c->run->arena, RP_IN_SHELL, a->digest->name),
                          rp_arena_escaped(&c->run->arena, RP_IN_SHELL, b->digest->name));
}

/* Finds the first pair that contradicts, and how many files do. */
static void check_pairs(struct checking *c)
{
    const struct rp_rank *first = c->run->ranks.at, *other = NULL, *before = NULL;
    struct differences d = {0};
    int64_t apart_ns = 0;
    size_t i, k, n = 0;

    for (i = 1; i < c->run->ranks.n; i++) {
        const struct rp_rank *rank = &first[i];

        /* two files of one rank are compared with each other, and all others with the first */
        for (k = 0;
             k < i && (rank->digest->rank < 0 || first[k].digest->rank != rank->digest->rank); k++)
            ;
        k = k < i ? k : 0;
        struct differences now =
            compare(first[k].digest, sketch_of(c, &first[k]), rank->digest, sketch_of(c, rank));
        apart_ns = now.apart_ns > apart_ns ? now.apart_ns : apart_ns;
        if (!contradicts(&now, first[k].digest->rank >= 0 && rank->digest->rank >= 0))
            continue;
        if (!n++) {
            d = now;
            before = &first[k];
            other = rank;
        }
    }
    c->out->unrelated = n > 0;
    c->out->strangers = n;
    if (!n && apart_ns)
        c->out->why = rp_arena_textf(&c->run->arena,
                                     "these traces were recorded %s apart, by their own clocks: "
                                     "they are of different runs, or a clock is wrong",
                                     days_text(&c->run->arena, apart_ns));
    else if (n && c->run->ranks.n == 2)
        c->out->why = rp_arena_textf(&c->run->arena, "these are not two ranks of one run: %s; %s",
                                     what_differs(c, &d, before, other), advice(c, before, other));
    else if (n)
        c->out->why = rp_arena_textf(
            &c->run->arena,
            "these are not all ranks of one run: of %zu traces, %zu %s not "
            "belong to the others, such as '%s' and '%s' (%s); %s",
            c->run->ranks.n, n, n == 1 ? "does" : "do", before->digest->name, other->digest->name,
            what_differs(c, &d, before, other), advice(c, before, other));
}

enum rp_code rp_run_check(struct rp_run *run, const struct rp_sketch *const *sketches,
                          struct rp_relation *out, struct rp_err *err)
{
    struct checking c = {.run = run, .sketches = sketches, .out = out};

    *out = (struct rp_relation){0};
    if (run->ranks.n < 2)
        return RP_OK;
    check_pairs(&c);

    /* Finds files that do not state their number, or whose number another file has. */
    struct rp_arena *arena = &c.run->arena;
    const char *text = "rank numbers: ";
    size_t i, n = 0;
    for (i = 0; i < c.run->ranks.n; i++) {
        const struct rp_rank *rank = &c.run->ranks.at[i];
        if (rank->digest->rank == rank->number || rank->named || n++ >= MOST_SHOWN)
            continue;
        text = rp_arena_textf(arena, "%s%s'%s' ", text, n > 1 ? "; " : "", rank->digest->name);
        text =
            rank->digest->rank < 0
                ? rp_arena_textf(arena, "%sstates none and is shown as rank %d", text, rank->number)
                : rp_arena_textf(arena,
                                 "%sstates %d, which another trace has, and is shown as rank %d",
                                 text, rank->digest->rank, rank->number);
    }
    if (n)
        c.out->numbers =
            n > MOST_SHOWN ? rp_arena_textf(arena, "%s; and %zu more", text, n - MOST_SHOWN) : text;
    return rp_arena_check(&run->arena, "comparing traces", err);
}
