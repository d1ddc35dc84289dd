/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the notes of a report: what the numbers are based on, and what was missing or does not
   count. */
#include "base/decides.h"
#include "explain/findings/finding.h"
#include "explain/report/join.h"

#include <inttypes.h>
#include <string.h>

#define HALF_DIGIT   0.05
#define GRAPHS_NOTED 20
RP_FACT(HALF_DIGIT, "%", "percentages are printed with one digit behind the point");
RP_LIMIT(GRAPHS_NOTED, "of the device time, one part in", "less without operators has no note");

const char *rp_report_percent(struct rp_arena *arena, int64_t part_ns, int64_t whole_ns)
{
    double share = 100.0 * (double)part_ns / (double)whole_ns;

    if (part_ns > 0 && share < HALF_DIGIT)
        return "< 0.1 %";
    if (part_ns < whole_ns && share > 100 - HALF_DIGIT)
        return "> 99.9 %";
    return rp_arena_textf(arena, "%.1f %%", share);
}

void rp_report_add_note(struct rp_report_ctx *j, const char *text)
{
    if (text && *text)
        RP_NOTE(j->out, j->arena, text);
}

/* Notes that a model of a large trace would take longer than the rest of the report. */
void rp_report_note_model(struct rp_report_ctx *j)
{
    size_t r;

    for (r = 0; r < j->n && !rp_report_ctx_part(j, r)->model_steps; r++)
        ;
    if (r < j->n && rp_report_ctx_part(j, r)->modelled) {
        const struct rp_report_part *p = rp_report_ctx_part(j, r);

        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "changes are predicted from %" PRId64 " step%s, from step %" PRId64
                              " on: the recording is large; 'reprise optimize' takes all steps",
                              p->model_steps, p->model_steps == 1 ? "" : "s", p->model_first));
        return;
    }
    for (r = 0; r < j->n && !rp_report_ctx_part(j, r)->too_large; r++)
        ;
    if (r < j->n)
        rp_report_add_note(j, "no changes are predicted here, the recording is too large: "
                              "'reprise optimize' does it, and takes longer");
}

/* Notes how much of the device time is attributed, and what was missing in the trace. */
void rp_report_note_coverage(struct rp_report_ctx *j)
{
    const char *framework = rp_report_ctx_part(j, 0)->framework;
    bool torch =
        framework && !strcmp(framework, "pytorch") && !rp_report_ctx_part(j, 0)->workload.system;
    struct rp_coverage sum = {0};

    for (size_t r = 0; r < j->n; r++) {
        rp_ns_add(&sum.device_ns, rp_report_ctx_part(j, r)->coverage.device_ns);
        rp_ns_add(&sum.op_ns, rp_report_ctx_part(j, r)->coverage.op_ns);
        rp_ns_add(&sum.launched_ns, rp_report_ctx_part(j, r)->coverage.launched_ns);
        rp_ns_add(&sum.module_ns, rp_report_ctx_part(j, r)->coverage.module_ns);
        rp_ns_add(&sum.graph_ns, rp_report_ctx_part(j, r)->coverage.graph_ns);
        rp_ns_add(&sum.graph_op_ns, rp_report_ctx_part(j, r)->coverage.graph_op_ns);
    }
    if (!sum.device_ns)
        return;
    rp_report_add_note(
        j,
        rp_arena_textf(
            j->arena,
            "%.1f %% of the device time is attributed to a launch, %.1f %% to an operator%s",
            100.0 * (double)sum.launched_ns / (double)sum.device_ns,
            100.0 * (double)sum.op_ns / (double)sum.device_ns,
            sum.module_ns || !torch ? "" : "; no modules: record with with_stack or with_modules"));
    /* Notes kernels of graphs whose capture is not known. */
    int64_t without = rp_ns_between(sum.graph_op_ns, sum.graph_ns);
    if (!j->ranks->graphs && without > sum.device_ns / GRAPHS_NOTED)
        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "%.1f %% of the device time is kernels of graphs, which have no "
                              "operators here: record the capture of the graphs with the "
                              "profiler, and give that file beside this one",
                              100.0 * (double)without / (double)sum.device_ns));
    if (rp_report_has_only_transfers(rp_report_ctx_part(j, j->chain.lead)))
        rp_report_add_note(j,
                           "only transfers were recorded, no kernel that computes and no launch: "
                           "what the device did between them is not known");
}

void rp_report_note_trouble(struct rp_report_ctx *j)
{
    int64_t overhead = 0, inside = 0;

    for (size_t r = 0; r < j->n; r++) {
        rp_ns_add(&overhead, rp_report_ctx_part(j, r)->sums.overhead_ns);
        inside += rp_report_ctx_part(j, r)->sums.open_collectives > 0;
    }
    if (rp_report_ctx_part(j, 0)->sums.timeline_ranks)
        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "the input is a timeline of %lld ranks of a pipeline, which count as "
                              "one here: 'reprise simulate' tells them apart",
                              (long long)rp_report_ctx_part(j, 0)->sums.timeline_ranks));
    if (inside)
        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "%s of %zu %s in a collective that did not end: 'reprise comm' says "
                              "which ranks it waits for",
                              rp_units_text(j->arena, (double)inside, RP_UNIT_COUNT), j->n,
                              j->n == 1 ? "rank is" : "ranks are"));
    if (overhead && j->total_ns && overhead > j->total_ns / 100)
        rp_report_add_note(j, rp_arena_textf(j->arena, "the profiler itself took %s",
                                             rp_report_ctx_time(j, overhead)));
    if (j->chain.clocks_differ)
        rp_report_add_note(j, rp_arena_textf(j->arena,
                                             "the clocks of the ranks differ by up to %s: they are "
                                             "aligned by the ends of collectives, ± %s",
                                             rp_report_ctx_time(j, j->chain.apart_ns),
                                             rp_report_ctx_time(j, j->chain.uncertainty_ns)));
    if (j->chain.nset)
        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "the clocks of %s were set during the recording: their windows and "
                              "idle times include that, waits and delays do not",
                              rp_units_count(j->arena, (int64_t)j->chain.nset, "rank")));
}

/* Takes it from the first rank whose operators name their inputs. */
void rp_report_fill_latency(struct rp_report_ctx *j)
{
    struct rp_report_latency *latency = &j->out->latency;

    for (size_t r = 0; r < j->n && !latency->ops; r++)
        *latency = rp_report_ctx_part(j, r)->latency;
    if (!latency->ops)
        return;
    rp_report_add_note(
        j,
        rp_arena_textf(
            j->arena,
            "operators start %s (median) and %s (p90) after their last input, '%.60s' starts %s after it",
            rp_report_ctx_time(j, latency->p50_ns), rp_report_ctx_time(j, latency->p90_ns),
            latency->slowest, rp_report_ctx_time(j, latency->max_ns)));
}

/* Notes ranges of idle workers, which are normal, apart from threads that work. */
static void note_ranges(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);
    int64_t whole = rp_ns_sum(p->whole.window_ns, 0) * (p->waits.workers ? p->waits.workers : 1);

    if (p->by_calls)
        rp_report_add_note(
            j, rp_arena_textf(
                   j->arena,
                   "no device work, operators or ranges were recorded: user code is what runs "
                   "between calls that communicate%s",
                   p->waits.rows.n ? " or wait"
                                   : "; 'record --with +blocking' also records "
                                     "where it waits"));
    else
        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "no device work and no operators were recorded: work is what the "
                              "program's own ranges contain%s",
                              p->waits.rows.n ? " without the waits in them"
                              : rp_report_is_ours(p)
                                  ? "; 'record --with +blocking' also records where it waits"
                                  : ""));
    if (p->waits.workers && whole > 0)
        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "%s without ranges wait%s during %s of the time: normal for "
                              "threads that have nothing to do",
                              rp_units_count(j->arena, p->waits.workers, "thread"),
                              p->waits.workers == 1 ? "s" : "",
                              rp_report_percent(j->arena, p->waits.worker_ns, whole)));
}

void rp_report_note_host(struct rp_report_ctx *j)
{
    const struct rp_report_part *p = rp_report_ctx_part(j, 0);

    if (rp_report_knows_no_work(p) && !rp_report_is_sampled(p) && p->whole.window_ns > 0)
        rp_report_add_note(
            j,
            p->waits.main_ns
                ? "only calls in which threads wait were recorded: what the program does between "
                  "them is not known; 'reprise idle' lists the calls"
                : "no device work and no operators were recorded, so nothing is concluded: record "
                  "kernels, too; 'reprise top' lists what is there");
    if (j->ranks->parts[0].digest && !j->ranks->parts[0].digest->nevents &&
        !rp_report_is_sampled(p))
        rp_report_add_note(j, "the file has no events: nothing was recorded, or its export was "
                              "made before the recording had ended");
    if (p->sums.lost_work)
        rp_report_add_note(
            j, rp_arena_textf(j->arena,
                              "device work was not recorded: %s %s, and nothing of what they "
                              "started is there; the profiler was not permitted to record it%s, or "
                              "another one did. What ran on the host is judged",
                              rp_units_count(j->arena, p->sums.lost_work, "call"),
                              p->sums.lost_work == 1 ? "launches or copies" : "launch or copy",
                              p->workload.vendor == RP_VENDOR_NVIDIA
                                  ? " (CUPTI: NVreg_RestrictProfilingToAdminUsers=0)"
                                  : ""));
    if (p->on_device || !p->b.busy_ns)
        return;
    if (p->by_ranges) {
        note_ranges(j);
        return;
    }
    rp_report_add_note(
        j, rp_arena_textf(j->arena,
                          "no device work was recorded: %s on the host, on average %.2f at once",
                          rp_units_count(j->arena, p->sums.host_ops, "operator"),
                          (double)p->sums.host_op_ns / (double)p->b.busy_ns));
}

/* Notes that a rank that is late because of its host is a straggler and also has a finding about
   its host. */
void rp_report_note_overlap(struct rp_report_ctx *j)
{
    const struct rp_report_root *out = j->out;
    bool overlap = false;
    double shares = 0;

    for (size_t i = 0; i < out->nfindings; i++) {
        shares += out->findings[i].share;
        overlap |= out->nfindings > 1 && out->findings[i].row->overlaps;
    }
    if (overlap || shares > 1)
        rp_report_add_note(
            j, "the costs of the findings overlap and must not be added up: each is what the run "
               "would save if only that one were fixed");
}
