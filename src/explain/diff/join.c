/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two runs as a whole: ranks are paired by number, times are means over the pairs, and the
 * change of the step is compared with what the steps differ anyway.
 */
#include "explain/diff/diff.h"

#include "base/decides.h"
#include "base/order.h"
#include "explain/diff/noise.h"
#include "facts/host/signs.h"
#include "result/print_units.h"
#include "trace/names.h"
#include "trace/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANK_ROWS 16
RP_LIMIT(MOST_RANK_ROWS, "rows on the screen", "a note says how many ranks there are");
#define OTHER_MIX 0.1
RP_DECISION(
    OTHER_MIX, "of the steps",
    "prefill steps are several times as long: with a tenth more of them the mean step moves as well",
    "explain/another_mix_of_phases_has_an_edge");
#define COMPARABLE 0.5
RP_DECISION(
    COMPARABLE, "of the time of each run",
    "programs of which less has a counterpart are different: no number of one is about the other",
    "explain/comparable_runs_have_edges");
#define ALONE_TOO 0.25
RP_DECISION(ALONE_TOO, "of the time without a counterpart",
            "one slow operator is a regression; beside so much that is new, it is other work",
            "explain/comparable_runs_have_edges");

struct diff_join {
    const struct rp_trace_diff_input *in[2];
    size_t n[2];
    const struct rp_trace_diff_options *options;
    struct rp_arena *arena;
    struct rp_trace_diff_root *out;
    struct rp_diff_pair *pairs;
    size_t npairs;
    double spread_ns[2]; /* spread of a step; below 0: not known */
    double count[2];     /* number of steps from which the step time is computed */
};

static void add_note(struct diff_join *j, const char *text)
{
    RP_NOTE(j->out, j->arena, text);
}

static const struct rp_trace_diff_part *part_of(const struct diff_join *j, int side, size_t pair)
{
    const struct rp_diff_pair *p = &j->pairs[pair];

    return side ? j->in[1][p->fresh].part : j->in[0][p->base].part;
}

/* The mean of a sum over the pairs of ranks. */
static int64_t mean(const struct diff_join *j, int64_t sum)
{
    return j->npairs ? sum / (int64_t)j->npairs : 0;
}

/* Pairs ranks with the same number; if the runs share no number, in their order. */
static void pair_ranks(struct diff_join *j)
{
    size_t i = 0, k = 0, most = j->n[0] < j->n[1] ? j->n[0] : j->n[1];

    while (i < j->n[0] && k < j->n[1]) {
        int32_t left = j->in[0][i].number, right = j->in[1][k].number;

        if (left == right)
            j->pairs[j->npairs++] = (struct rp_diff_pair){i++, k++};
        else if (left < right)
            i++;
        else
            k++;
    }
    if (!j->npairs) {
        for (i = 0; i < most; i++)
            j->pairs[j->npairs++] = (struct rp_diff_pair){i, i};
        add_note(j,
                 rp_arena_textf(j->arena,
                                "no rank number is in both runs: ranks are compared in order, the "
                                "first with the first (%d with %d)",
                                j->in[0][0].number, j->in[1][0].number));
    }
    if (j->n[0] != j->npairs || j->n[1] != j->npairs)
        add_note(j, rp_arena_textf(j->arena,
                                   "%zu ranks are in both runs (of %zu and %zu) and compared",
                                   j->npairs, j->n[0], j->n[1]));
}

/* The steps of a run, as means over its ranks if all have equally many; else NULL. */
static int64_t *steps_of(struct diff_join *j, int side, size_t *n)
{
    *n = part_of(j, side, 0)->nsteps;
    for (size_t p = 1; p < j->npairs; p++)
        if (part_of(j, side, p)->nsteps != *n)
            return NULL;
    int64_t *steps = RP_ARENA_NEW(j->arena, int64_t, *n + 1);
    for (size_t i = 0; steps && i < *n; i++) {
        for (size_t p = 0; p < j->npairs; p++)
            rp_ns_add(&steps[i], part_of(j, side, p)->step_ns[i]);
        steps[i] = mean(j, steps[i]);
    }
    return steps;
}

/* Measures the spread of the steps and the error of the step time. Ranks of a run wait for each
   other, so together they do not count as more values than one rank has. */
static void measure_spread(struct diff_join *j, int side, struct rp_trace_diff_run *run)
{
    size_t n, p;
    int64_t *steps = steps_of(j, side, &n);
    int64_t *scratch = RP_ARENA_NEW(j->arena, int64_t, n + 1);

    j->spread_ns[side] = -1;
    j->count[side] = (double)n;
    if (!scratch)
        return;
    if (steps)
        j->spread_ns[side] = rp_diff_spread(steps, n, scratch);
    for (p = 0; !steps && p < j->npairs;
         p++) { /* takes the rank that varies most and the shortest list */
        const struct rp_trace_diff_part *part = part_of(j, side, p);
        size_t count = part->nsteps;
        int64_t *own = RP_ARENA_NEW(j->arena, int64_t, count + 1);
        double spread = own ? rp_diff_spread(part->step_ns, count, own) : -1;

        j->spread_ns[side] = spread > j->spread_ns[side] ? spread : j->spread_ns[side];
        j->count[side] = (double)count < j->count[side] ? (double)count : j->count[side];
    }
    run->spread_ns = j->spread_ns[side] < 0 ? RP_ABSENT_I64 : rp_diff_whole_ns(j->spread_ns[side]);
}

static void describe_run(struct diff_join *j, const struct rp_trace_diff_part *part,
                         struct rp_trace_diff_run *run)
{
    const char *ranks =
        run->ranks > 1 ? rp_arena_textf(j->arena, "%lld ranks, ", (long long)run->ranks) : "";
    const char *what;

    if (!part->has_steps)
        what = part->limited ? "what was selected" : "the whole recording: no steps found";
    else if (run->steps == 1)
        what = "one step";
    else
        what =
            rp_arena_textf(j->arena, "median of %s", rp_units_count(j->arena, run->steps, "step"));
    run->text =
        rp_arena_textf(j->arena, "%s, %s%s%s%s: %s", rp_units_time(j->arena, run->step_ns), ranks,
                       run->device ? run->device : "", run->device ? ", " : "", what, run->path);
}

static int64_t mean_of(const struct diff_join *j, int side, int time)
{
    int64_t before = 0, sum = 0;

    /* rounded along the running sum of the parts, so that they add up to the mean step */
    for (int t = 0; t <= time; t++) {
        before = mean(j, sum);
        for (size_t p = 0; p < j->npairs; p++)
            rp_ns_add(&sum, part_of(j, side, p)->time_ns[t]);
    }
    return rp_ns_between(before, mean(j, sum));
}

static void fill_run(struct diff_join *j, int side, struct rp_trace_diff_run *run)
{
    const struct rp_trace_diff_part *part = part_of(j, side, 0);

    run->unprofiled_ns = run->unprofiled_low_ns = run->unprofiled_high_ns = RP_ABSENT_I64;
    run->path = rp_arena_text(j->arena, j->options->paths[side]);
    run->device = part->on_device ? part->device : NULL;
    run->framework = part->framework;
    run->clock_mhz = part->clock.samples ? part->clock.mhz : (double)NAN;
    run->ranks = (int64_t)j->n[side];
    run->steps = part->has_steps ? (int64_t)part->nsteps : 0;
    run->typical_steps = part->has_steps ? part->taken : 0;
    for (int t = 0; t < RP_DIFF_TIMES; t++)
        rp_ns_add(&run->step_ns, mean_of(j, side, t));
    for (size_t p = 0; p < j->npairs; p++) {
        rp_ns_add(&run->work_ns, part_of(j, side, p)->tree.total_ns);
        rp_ns_add(&run->host_ns, part_of(j, side, p)->tree.host_ns);
    }
    run->work_ns = mean(j, run->work_ns);
    run->host_ns = mean(j, run->host_ns);
    measure_spread(j, side, run);
    describe_run(j, part, run);
}

static double share_of(int64_t ns, int64_t whole)
{
    return whole ? (double)ns / (double)whole : (double)NAN;
}

double rp_trace_diff_share_of(const struct rp_trace_diff_root *root, int64_t delta_ns)
{
    return root->changed ? share_of(delta_ns, root->delta_ns) : (double)NAN;
}

static void add_share(struct diff_join *j, struct rp_trace_diff_share *list, size_t *n,
                      const char *part, const char *word, int64_t base_ns, int64_t new_ns)
{
    int64_t delta = rp_ns_between(base_ns, new_ns);

    list[(*n)++] = (struct rp_trace_diff_share){
        part, word, base_ns, new_ns, delta, rp_trace_diff_share_of(j->out, delta), NULL};
}

static void fill_parts(struct diff_join *j)
{
    static const char *const names[RP_DIFF_TIMES] = {"compute", "exposed_comm", "exposed_memory",
                                                     "idle"};
    static const char *const words[RP_DIFF_TIMES] = {"compute", "exposed communication",
                                                     "copies alone", "idle"};
    struct rp_trace_diff_root *out = j->out;

    out->parts = RP_ARENA_NEW(j->arena, struct rp_trace_diff_share, RP_DIFF_TIMES);
    for (int t = 0; t < RP_DIFF_TIMES && out->parts; t++)
        add_share(j, out->parts, &out->nparts, names[t], words[t], mean_of(j, 0, t),
                  mean_of(j, 1, t));
}

/* Computes the means of all causes, rounded along the running sum that begins after the other
   parts. */
static void mean_causes(const struct diff_join *j, int side, int64_t causes[RP_GAP_CAUSES + 1])
{
    int64_t sum = 0, before, now;

    for (size_t p = 0; p < j->npairs; p++)
        for (int t = 0; t < RP_DIFF_IDLE; t++)
            rp_ns_add(&sum, part_of(j, side, p)->time_ns[t]);
    before = mean(j, sum);
    for (int c = 0; c <= RP_GAP_CAUSES; c++) {
        for (size_t p = 0; p < j->npairs; p++)
            rp_ns_add(&sum, part_of(j, side, p)->cause_ns[c]);
        now = mean(j, sum);
        causes[c] = rp_ns_between(before, now);
        before = now;
    }
}

RP_ORDER(by_change, struct rp_trace_diff_share, RP_COMPARE(llabs(b->delta_ns), llabs(a->delta_ns)),
         strcmp(a->part, b->part))

static void fill_causes(struct diff_join *j)
{
    int64_t causes[2][RP_GAP_CAUSES + 1];
    struct rp_trace_diff_root *out = j->out;

    out->idle_causes = RP_ARENA_NEW(j->arena, struct rp_trace_diff_share, RP_GAP_CAUSES + 1);
    if (!out->idle_causes || !part_of(j, 0, 0)->on_device || !part_of(j, 1, 0)->on_device)
        return;
    mean_causes(j, 0, causes[0]);
    mean_causes(j, 1, causes[1]);
    for (int c = 0; c <= RP_GAP_CAUSES; c++) {
        if (!causes[0][c] && !causes[1][c])
            continue;
        add_share(j, out->idle_causes, &out->nidle_causes,
                  c < RP_GAP_CAUSES ? rp_gap_cause_names[c] : "outside", NULL, causes[0][c],
                  causes[1][c]);
        if (c < RP_GAP_CAUSES)
            out->idle_causes[out->nidle_causes - 1].host =
                part_of(j, causes[1][c] >= causes[0][c], 0)->cause_host[c];
    }
    rp_sort(out->idle_causes, out->nidle_causes, sizeof *out->idle_causes, by_change);
}

/* Counts and times of a phase, means over the ranks that have it. */
static struct rp_diff_phase mean_phase(const struct diff_join *j, int side, uint8_t phase)
{
    struct rp_diff_phase sum = {0};
    int64_t having = 0;

    for (size_t p = 0; p < j->npairs; p++) {
        const struct rp_diff_phase *of = &part_of(j, side, p)->phase[phase];

        having += of->steps > 0;
        rp_ns_add(&sum.steps, of->steps);
        rp_ns_add(&sum.median_ns, of->median_ns);
    }
    if (!having)
        return sum;
    return (struct rp_diff_phase){sum.steps / having, sum.median_ns / having};
}

static void fill_phases(struct diff_join *j)
{
    struct rp_trace_diff_root *out = j->out;

    out->phases = RP_ARENA_NEW(j->arena, struct rp_trace_diff_phase, RP_STEP_PHASES);
    for (uint8_t phase = RP_PHASE_NONE + 1; phase < RP_STEP_PHASES && out->phases; phase++) {
        struct rp_diff_phase a = mean_phase(j, 0, phase), b = mean_phase(j, 1, phase);

        if (!a.steps && !b.steps)
            continue;
        out->phases[out->nphases++] = (struct rp_trace_diff_phase){
            .phase = rp_word_step_phase(phase),
            .base_steps = a.steps,
            .new_steps = b.steps,
            .base_ns = a.steps ? a.median_ns : RP_ABSENT_I64,
            .new_ns = b.steps ? b.median_ns : RP_ABSENT_I64,
            .delta_ns =
                a.steps && b.steps ? rp_ns_between(a.median_ns, b.median_ns) : RP_ABSENT_I64};
    }
}

/* If the runs do not have the same phases, their median steps are not of one kind. */
static void note_phases(struct diff_join *j)
{
    const struct rp_trace_diff_root *out = j->out;
    bool other = false;

    for (size_t i = 0; i < out->nphases; i++) {
        const struct rp_trace_diff_phase *p = &out->phases[i];
        double a = share_of(p->base_steps, out->base.steps);
        double b = share_of(p->new_steps, out->new_run.steps);

        other = other || fabs(a - b) > OTHER_MIX;
    }
    if (other)
        add_note(j, "the runs have different shares of prefill and decode steps: compare them by "
                    "phase");
}

/* The part of a rank's change outside of communication, in which it may wait for others. */
static int64_t own_change(const struct rp_trace_diff_rank *r)
{
    return llabs(rp_ns_between(r->exposed_comm_delta_ns, r->delta_ns));
}

RP_ORDER(by_own_change, struct rp_trace_diff_rank, RP_COMPARE(own_change(b), own_change(a)),
         RP_UP(rank))

static void fill_ranks(struct diff_join *j)
{
    struct rp_trace_diff_root *out = j->out;

    out->ranks = RP_ARENA_NEW(j->arena, struct rp_trace_diff_rank, j->npairs + 1);
    for (size_t p = 0; p < j->npairs && out->ranks; p++) {
        const struct rp_trace_diff_part *a = part_of(j, 0, p), *b = part_of(j, 1, p);
        struct rp_trace_diff_rank *r = &out->ranks[out->nranks++];
        int64_t *deltas[RP_DIFF_TIMES] = {&r->compute_delta_ns, &r->exposed_comm_delta_ns,
                                          &r->exposed_memory_delta_ns, &r->idle_delta_ns};

        r->rank = j->in[0][j->pairs[p].base].number;
        r->new_rank = j->in[1][j->pairs[p].fresh].number;
        r->base_ns = a->median_ns;
        r->new_ns = b->median_ns;
        r->delta_ns = rp_ns_between(r->base_ns, r->new_ns);
        for (int t = 0; t < RP_DIFF_TIMES; t++)
            *deltas[t] = rp_ns_between(a->time_ns[t], b->time_ns[t]);
    }
    if (out->nranks < 2)
        return;
    qsort(out->ranks, out->nranks, sizeof *out->ranks, by_own_change);
    out->rank_rows = out->ranks;
    out->nrank_rows = out->nranks < MOST_RANK_ROWS ? out->nranks : MOST_RANK_ROWS;
    if (out->nrank_rows < out->nranks)
        add_note(j, rp_arena_textf(j->arena, "%zu of %zu ranks", out->nrank_rows, out->nranks));
    if (own_change(&out->ranks[0]))
        add_note(j, rp_arena_textf(
                        j->arena,
                        "rank %lld has the largest change of its own: %s without communication",
                        (long long)out->ranks[0].rank,
                        rp_units_time(j->arena, rp_ns_between(out->ranks[0].exposed_comm_delta_ns,
                                                              out->ranks[0].delta_ns))));
}

static void decide(struct diff_join *j)
{
    struct rp_trace_diff_root *out = j->out;
    bool known = out->noise_ns != RP_ABSENT_I64, quiet;
    double least = j->options->fail_share * (double)out->base.step_ns;

    quiet = known && llabs(out->delta_ns) <= out->noise_ns;
    out->changed = out->delta_ns && !quiet;
    out->verdict = !out->delta_ns      ? "same"
                   : quiet             ? "within the noise"
                   : out->delta_ns > 0 ? "slower"
                                       : "faster";
    out->threshold_ns = RP_ABSENT_I64;
    if (j->options->fail_share >= 0)
        out->threshold_ns = rp_diff_whole_ns(floor(least));
    if (j->options->fail_ns >= 0)
        out->threshold_ns = j->options->fail_ns;
    out->failed =
        out->threshold_ns != RP_ABSENT_I64 && out->changed && out->delta_ns > out->threshold_ns;
}

static bool has_gates(const struct diff_join *j)
{
    return j->options->fail_share >= 0 || j->options->fail_ns >= 0 ||
           (j->options->gates && j->options->gates->list.n);
}

/* Leaves out communication without a counterpart: it says nothing about the program, because the
   number of collectives in a step depends on the sizes of buckets. */
static void leave_out_comm(const struct diff_join *j, int64_t alone[2], int64_t all[2])
{
    const struct rp_trace_diff_root *out = j->out;
    struct rp_name_matcher m;
    size_t n;
    const struct rp_name_pattern *table = rp_name_patterns(&n);

    rp_name_matcher_init(&m, table, n);
    for (size_t i = 0; i < out->nrows; i++) {
        const struct rp_trace_diff_row *row = &out->rows[i];
        const int64_t ns[2] = {row->base_ns, row->new_ns};

        if (strcmp(row->rule, rp_diff_rule_names[RP_DIFF_ALONE]) != 0 ||
            (rp_name_classify(&m, row->what, strlen(row->what)) != RP_NAME_COMM &&
             !(rp_host_signs(row->what) & RP_SIGN_RANKS)))
            continue;
        for (int k = 0; k < 2; k++) {
            rp_ns_add(&alone[k], -ns[k]);
            rp_ns_add(&all[k], -ns[k]);
        }
    }
}

/* Whether both ran on a device of the same name; otherwise times say nothing about what they
   computed. */
static bool is_on_one_device(const struct rp_trace_diff_root *out)
{
    return out->base.device && out->new_run.device &&
           !strcmp(out->base.device, out->new_run.device);
}

/* Whether the recordings name other libraries, as in "pytorch 2.11.0, lightning 2.6.0". Another
   version of a library does not make another program. */
static bool use_other_libraries(const struct diff_join *j)
{
    const char *base = part_of(j, 0, 0)->libraries, *new_run = part_of(j, 1, 0)->libraries;

    while (base && new_run && *base && *new_run) {
        size_t n = strcspn(base, " ");

        if (n != strcspn(new_run, " ") || strncmp(base, new_run, n) != 0)
            return true;
        base = strstr(base, ", ");
        new_run = strstr(new_run, ", ");
        if (!base != !new_run)
            return true;
        base = base ? base + 2 : NULL;
        new_run = new_run ? new_run + 2 : NULL;
    }
    return false;
}

/* Why the runs are taken for different programs. */
static const char *difference_text(const struct diff_join *j)
{
    const struct rp_trace_diff_root *out = j->out;
    const char *libraries[2] = {part_of(j, 0, 0)->libraries, part_of(j, 1, 0)->libraries};
    const char *text = rp_arena_textf(
        j->arena,
        "not comparable, these look like different programs: less than half of the %s of a run has a "
        "counterpart in the other",
        out->measure);

    if (is_on_one_device(out) && out->unlike_ns[0])
        text =
            rp_arena_textf(j->arena,
                           "%s (operators of the same name are not counterparts where a call takes "
                           "over 16 times as long, in other kernels, and no shapes were recorded)",
                           text);
    if (use_other_libraries(j))
        text = rp_arena_textf(j->arena, "%s; the base uses %s, the new run %s", text, libraries[0],
                              libraries[1]);
    return text;
}

/* Judges whether the runs are of one program; otherwise no number of one says anything about the
   other. */
static void judge_alignment(struct diff_join *j)
{
    struct rp_trace_diff_root *out = j->out;
    int64_t alone[2] = {0}, all[2] = {0};

    for (size_t i = 0; i < out->ncoverage; i++) {
        const struct rp_trace_diff_rule *c = &out->coverage[i];
        bool none = !strcmp(c->rule, rp_diff_rule_names[RP_DIFF_ALONE]);

        rp_ns_add(&all[0], c->base_ns);
        rp_ns_add(&all[1], c->new_ns);
        rp_ns_add(&alone[0], none ? c->base_ns : 0);
        rp_ns_add(&alone[1], none ? c->new_ns : 0);
    }
    leave_out_comm(j, alone, all);
    /* a slow operator is a regression, unless other signs show that the programs differ */
    for (size_t i = 0; i < 2 && is_on_one_device(out); i++)
        if (use_other_libraries(j) || (double)alone[i] > ALONE_TOO * (double)all[i])
            rp_ns_add(&alone[i], out->unlike_ns[i]);
    out->comparable = true;
    for (size_t i = 0; i < 2; i++)
        if (all[0] && all[1] && (double)alone[i] > (1 - COMPARABLE) * (double)all[i])
            out->comparable = false;
    if (j->options->captures[0] || j->options->captures[1])
        out->comparable = true; /* nothing ran that could be compared */
    if (out->comparable)
        return;
    out->verdict = "not comparable";
    out->changed = false;
    out->failed = out->threshold_ns != RP_ABSENT_I64;
    out->gates_failed = has_gates(j);
}

/* The verdict about the recorded steps decides. */
static const char *gate_text(const struct rp_trace_diff_root *out)
{
    if (out->contradicted && out->failed != out->unprofiled_failed)
        return out->failed ? "failed as recorded, passes without the profiler"
                           : "passed as recorded, fails without the profiler";
    return out->failed ? "failed" : "passed";
}

static void write_verdict(struct diff_join *j)
{
    struct rp_trace_diff_root *out = j->out;
    bool known = out->noise_ns != RP_ABSENT_I64;
    const char *noise =
        known ? rp_arena_textf(j->arena, "noise ±%s", rp_units_time(j->arena, out->noise_ns))
              : "noise unknown: too few steps";

    out->verdict_text =
        rp_arena_textf(j->arena, "%s%s: %s%s (%+.1f %%); %s", out->verdict,
                       out->contradicted ? " as recorded" : "", out->delta_ns > 0 ? "+" : "",
                       rp_units_time(j->arena, out->delta_ns),
                       100 * (isnan(out->delta_share) ? 0 : out->delta_share), noise);
    if (!out->comparable)
        out->verdict_text = difference_text(j);
    else if (out->contradicted)
        out->verdict_text = rp_arena_textf(
            j->arena, "%s; %s without the profiler: about %s%s (%+.1f %%)", out->verdict_text,
            out->unprofiled_verdict, out->unprofiled_delta_ns > 0 ? "+" : "",
            rp_units_time(j->arena, out->unprofiled_delta_ns), 100 * out->unprofiled_delta_share);
    if (j->options->captures[0] || j->options->captures[1])
        out->verdict_text = rp_arena_textf(
            j->arena, "no comparison of work: the %s of a graph capture, see the notes",
            !j->options->captures[0]   ? "new run is a recording"
            : !j->options->captures[1] ? "base is a recording"
                                       : "runs are recordings");
    else if (out->threshold_ns != RP_ABSENT_I64)
        out->verdict_text =
            rp_arena_textf(j->arena, "%s; limit %s: %s", out->verdict_text,
                           rp_units_time(j->arena, out->threshold_ns), gate_text(out));
}

/* "idle +46.7 ms, compute -36.1 ms": the parts that changed most, the largest first. */
static void write_mainly(struct diff_join *j)
{
    struct rp_trace_diff_root *out = j->out;
    struct rp_trace_diff_share parts[RP_DIFF_TIMES];
    const char *text = NULL;

    if (!out->changed || out->nparts != RP_DIFF_TIMES)
        return;
    memcpy(parts, out->parts, sizeof parts);
    qsort(parts, RP_DIFF_TIMES, sizeof *parts, by_change);
    for (size_t i = 0; i < RP_DIFF_TIMES; i++) {
        int64_t ns = parts[i].delta_ns;

        if (!ns || (double)llabs(ns) < RP_DIFF_MAINLY * (double)llabs(parts[0].delta_ns))
            break;
        text = rp_arena_textf(j->arena, "%s%s%s %s%s", text ? text : "", text ? ", " : "",
                              parts[i].word, ns > 0 ? "+" : "", rp_units_time(j->arena, ns));
    }
    out->mainly_text = text;
}

static void write_coverage(struct diff_join *j)
{
    struct rp_trace_diff_root *out = j->out;

    if (!out->ncoverage)
        return;
    const char *text =
        rp_arena_textf(j->arena, "%.1f %% of the %s", 100 * out->aligned_share, out->measure);
    for (size_t i = 0; i < out->ncoverage; i++)
        if (strcmp(out->coverage[i].rule, rp_diff_rule_names[RP_DIFF_ALONE]) != 0)
            text = rp_arena_textf(j->arena, "%s%s %.1f %% by %s", text, i ? "," : ":",
                                  100 * out->coverage[i].share, out->coverage[i].rule);
    out->aligned_text = text;
}

/* Where devices of one run had a lower clock, their kernels took longer for that reason: the ranks
   whose clocks differ most. */
static void compare_clocks(struct diff_join *j)
{
    const struct rp_device_clock *from = NULL, *to = NULL;
    double most = 0;

    for (size_t p = 0; p < j->npairs; p++) {
        const struct rp_device_clock *a = &part_of(j, 0, p)->clock, *b = &part_of(j, 1, p)->clock;
        double change = a->mhz > 0 ? fabs(b->mhz / a->mhz - 1) : 0;

        if (change > most && (rp_device_clock_is_lower(a, b) || rp_device_clock_is_lower(b, a))) {
            most = change;
            from = a;
            to = b;
        }
    }
    if (from)
        j->out->clock_text = rp_arena_textf(
            j->arena, "%s -> %s, %+.1f %%: kernels take %s for that",
            rp_device_clock_text(from, j->arena), rp_device_clock_text(to, j->arena),
            100 * (to->mhz / from->mhz - 1), to->mhz < from->mhz ? "longer" : "less time");
}

/* Idle time of a device mostly comes from the host, so this notes what changed most there. */
static void note_host(struct diff_join *j)
{
    const struct rp_trace_diff_root *out = j->out;
    const struct rp_trace_diff_row *row = &out->host;
    int64_t idle = out->nparts ? out->parts[RP_DIFF_IDLE].delta_ns : 0;
    const char *most = "";

    if (!out->nidle_causes || !idle || llabs(idle) <= llabs(out->delta_ns) / 2)
        return;
    if (!out->base.host_ns && !out->new_run.host_ns)
        return; /* no operators were recorded */
    if (row->what && (double)llabs(row->host_delta_ns) >= RP_DIFF_MAINLY * (double)llabs(idle))
        most = rp_arena_textf(j->arena, ", of it '%s' %s -> %s", row->label,
                              rp_units_time(j->arena, row->base_host_ns),
                              rp_units_time(j->arena, row->new_host_ns));
    add_note(j, rp_arena_textf(
                    j->arena,
                    "idle time changed by %s; on the host the operators that launch work take "
                    "%s -> %s a step%s",
                    rp_units_time(j->arena, idle), rp_units_time(j->arena, out->base.host_ns),
                    rp_units_time(j->arena, out->new_run.host_ns), most));
}

static void add_notes(struct diff_join *j)
{
    const struct rp_trace_diff_part *a = part_of(j, 0, 0), *b = part_of(j, 1, 0);
    struct rp_trace_diff_root *out = j->out;

    if (out->threshold_ns != RP_ABSENT_I64 && out->delta_ns > out->threshold_ns && !out->failed)
        add_note(j,
                 "slower than the limit, but not beyond the noise: record more steps to be sure");
    if (out->contradicted)
        add_note(j, rp_arena_textf(
                        j->arena,
                        "recorded idle time before launches is partly the profiler's cost: measure "
                        "the step time without a profiler%s",
                        out->threshold_ns == RP_ABSENT_I64
                            ? ""
                            : "; '--fail-over' decides by the recorded steps"));
    if (out->failed && out->noise_ns == RP_ABSENT_I64)
        add_note(j, "with so few steps the noise is unknown, and the limit alone decides");
    if (!out->base.step_ns || !out->new_run.step_ns)
        add_note(j, rp_arena_textf(j->arena, "no work was recorded in the %s",
                                   out->base.step_ns ? "new run" : "base"));
    if (a->on_device != b->on_device)
        add_note(j, "only one of the runs has device work: device time is compared with host time");
    if (a->has_steps != b->has_steps)
        add_note(j, "only one of the runs has steps: a step is compared with a whole recording");
    if (out->base.device && out->new_run.device &&
        strcmp(out->base.device, out->new_run.device) != 0)
        add_note(j, rp_arena_textf(j->arena, "different devices: %s -> %s", out->base.device,
                                   out->new_run.device));
    for (size_t i = 0; i < out->ncoverage; i++)
        if (!strcmp(out->coverage[i].rule, rp_diff_rule_names[RP_DIFF_ALONE]))
            add_note(j, rp_arena_textf(j->arena,
                                       "only in the base: %s a step; only in the new run: %s",
                                       rp_units_time(j->arena, out->coverage[i].base_ns),
                                       rp_units_time(j->arena, out->coverage[i].new_ns)));
    if (out->row_count && !out->nlook)
        add_note(j, "no operator changed");
    if (out->nlook && out->row_count > (int64_t)out->nrows)
        add_note(j, rp_arena_textf(j->arena, "%zu of %s rows: '--limit 0' shows all", out->nrows,
                                   rp_units_number(j->arena, out->row_count)));
    if (out->aligned_share < COMPARABLE)
        add_note(j, "less than half of the time was aligned: the runs do different work");
}

/* ------------------------------------------------------------------ gates */

static struct rp_report_speed speed_of(struct diff_join *j, int side)
{
    struct rp_speed_rank *ranks = RP_ARENA_NEW(j->arena, struct rp_speed_rank, j->npairs + 1);

    for (size_t p = 0; p < j->npairs && ranks; p++) {
        const struct rp_trace_diff_part *part = part_of(j, side, p);

        ranks[p] =
            (struct rp_speed_rank){&part->speed, part->window_ns, part->judged, part->tokens};
    }
    return rp_report_speed_of(ranks, ranks ? j->npairs : 0);
}

/* The largest value of all ranks; NaN if it was not recorded. */
static double memory_of(const struct diff_join *j, int side)
{
    int64_t most = 0;

    for (size_t p = 0; p < j->npairs; p++)
        if (part_of(j, side, p)->memory_bytes > most)
            most = part_of(j, side, p)->memory_bytes;
    return most ? (double)most : NAN;
}

/* The noise of a part of the step, from the rank that varies most. */
static double noise_of(const struct diff_join *j, int time)
{
    double spread[2] = {-1, -1}, noise;

    for (int s = 0; s < 2; s++)
        for (size_t p = 0; p < j->npairs; p++)
            spread[s] = fmax(spread[s], part_of(j, s, p)->spread_ns[time]);
    noise = rp_diff_noise(spread, j->count);
    return noise < 0 ? NAN : noise;
}

/* Rates vary like the step time. */
static struct rp_gate_values rate_values(const struct rp_trace_diff_root *out, double base,
                                         double fresh)
{
    double noise = out->noise_ns == RP_ABSENT_I64 || !out->base.step_ns
                       ? NAN
                       : base * (double)out->noise_ns / (double)out->base.step_ns;

    return (struct rp_gate_values){base, fresh, noise};
}

static enum rp_code decide_gates(struct diff_join *j, struct rp_err *err)
{
    struct rp_trace_diff_root *out = j->out;
    struct rp_report_speed a = speed_of(j, 0), b = speed_of(j, 1);
    struct rp_gate_values v[RP_GATE_METRICS];

    if (!j->options->gates || !out->parts)
        return RP_OK;
    v[RP_GATE_STEP] =
        (struct rp_gate_values){(double)out->base.step_ns, (double)out->new_run.step_ns,
                                out->noise_ns == RP_ABSENT_I64 ? NAN : (double)out->noise_ns};
    for (int t = 0; t < RP_DIFF_TIMES; t++)
        v[RP_GATE_COMPUTE + t] = (struct rp_gate_values){
            (double)out->parts[t].base_ns, (double)out->parts[t].new_ns, noise_of(j, t)};
    v[RP_GATE_MFU] = rate_values(out, a.mfu_share, b.mfu_share);
    v[RP_GATE_TOKENS] = rate_values(out, a.tokens_per_s, b.tokens_per_s);
    v[RP_GATE_SAMPLES] = rate_values(out, a.samples_per_s, b.samples_per_s);
    v[RP_GATE_MEMORY] = (struct rp_gate_values){memory_of(j, 0), memory_of(j, 1), NAN};
    return rp_gates_decide(j->options->gates, v, j->arena, &out->gates, &out->ngates,
                           &out->gates_failed, err);
}

/* A gate must not pass because nothing, or something else, was recorded. */
static enum rp_code check_alike(const struct diff_join *j, struct rp_err *err)
{
    const struct rp_trace_diff_part *a = part_of(j, 0, 0), *b = part_of(j, 1, 0);
    int64_t steps[2] = {j->out->base.step_ns, j->out->new_run.step_ns};

    if (!has_gates(j))
        return RP_OK;
    for (int s = 0; s < 2; s++)
        if (j->options->captures[s])
            return rp_err_set(err, RP_FORMAT,
                              "'%s' is a recording of a graph capture, so a gate cannot decide",
                              j->options->paths[s]);
    for (int s = 0; s < 2; s++)
        if (!steps[s])
            return rp_err_set(err, RP_FORMAT, "'%s' has no recorded work, so a gate cannot decide",
                              j->options->paths[s]);
    if (a->has_steps != b->has_steps)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' has steps and '%s' has none, so a gate cannot decide",
                          j->options->paths[b->has_steps], j->options->paths[a->has_steps]);
    if (a->on_device != b->on_device)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' has device work and '%s' has none, so a gate cannot decide",
                          j->options->paths[b->on_device], j->options->paths[a->on_device]);
    return RP_OK;
}

static enum rp_code join_all(struct diff_join *j, struct rp_err *err)
{
    struct rp_trace_diff_root *out = j->out;

    out->inputs = "traces";
    fill_run(j, 0, &out->base);
    fill_run(j, 1, &out->new_run);
    RP_TRY(check_alike(j, err));
    out->measure =
        part_of(j, 0, 0)->on_device || part_of(j, 1, 0)->on_device ? "device time" : "host time";
    out->delta_ns = rp_ns_between(out->base.step_ns, out->new_run.step_ns);
    out->delta_share = share_of(out->delta_ns, out->base.step_ns);

    for (int s = 0; s < 2; s++)
        if (j->count[s] > 1)
            j->count[s] /= M_PI / 2; /* a median is as certain as the mean of fewer normal values */
    double noise = rp_diff_noise(j->spread_ns, j->count);
    j->out->noise_ns = noise < 0 ? RP_ABSENT_I64 : rp_diff_whole_ns(noise);
    decide(j);
    fill_parts(j);
    fill_causes(j);
    fill_phases(j);
    fill_ranks(j);
    RP_TRY(rp_arena_check(j->arena, "comparing runs", err));
    RP_TRY(rp_trace_diff_rows(j->in[0], j->in[1], j->pairs, j->npairs, j->options->limit, j->arena,
                              out, err));
    RP_TRY(decide_gates(j, err));
    judge_alignment(j);
    if (out->comparable && !j->options->captures[0] && !j->options->captures[1])
        RP_TRY(rp_trace_diff_profiler(j->in[0], j->in[1], j->pairs, j->npairs, j->options, j->arena,
                                      out, err));
    write_verdict(j);
    write_mainly(j);
    compare_clocks(j);
    write_coverage(j);
    note_phases(j);
    note_host(j);

    /* Runs that are captures, or take their operators from some. */
    const char *const *text = j->options->graphs;

    if (text[0])
        add_note(j, text[0]);
    if (text[1] && (!text[0] || strcmp(text[0], text[1]) != 0))
        add_note(j, text[1]);

    add_notes(j);
    return rp_arena_check(j->arena, "comparing runs", err);
}

enum rp_code rp_trace_diff_join(const struct rp_trace_diff_input *base, size_t nbase,
                                const struct rp_trace_diff_input *fresh, size_t nfresh,
                                const struct rp_trace_diff_options *options, struct rp_arena *arena,
                                struct rp_trace_diff_root *out, struct rp_err *err)
{
    struct diff_join j = {
        .in = {base, fresh}, .n = {nbase, nfresh}, .options = options, .arena = arena, .out = out};

    *out = (struct rp_trace_diff_root){.unprofiled_delta_ns = RP_ABSENT_I64,
                                       .unprofiled_delta_share = NAN};
    j.pairs = RP_ARENA_NEW(arena, struct rp_diff_pair, nbase + nfresh + 1);
    RP_TRY(rp_err_need(j.pairs, err, "comparing runs"));
    pair_ranks(&j);
    return j.npairs ? join_all(&j, err) : rp_err_set(err, RP_USAGE, "no ranks to compare");
}
