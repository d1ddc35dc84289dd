/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.compile compiles while steps are measured, or splits a program into pieces. The recording
 * shows that something is compiled; the log of the compiler says what and why, if it lies beside
 * the recording (TORCH_TRACE, `record --with +compile`).
 */
#include "base/text.h"
#include "explain/findings/finding.h"

#include "base/order.h"
#include "facts/times/intervals.h"
#include "formats/torch_trace/torch_trace.h"
#include "xref/compiled.h"

enum { IN_STEPS, BREAKS, LIMIT, NO_GRAPHS };

#define SHOWN 3
RP_LIMIT(SHOWN, "of each",
         "further compiles and breaks are in 'dump recompiles' and 'dump breaks'");

/* Compiles, and the idle time of the device during compiles, inside runs of graphs and between the
   runs. Without a device, idle_ns is the time of the compiles. The judged time is since 1970, or 0.
 */
#define KEPT(M, s)                   \
    M(s, PLAIN, bool, on_device)     \
    M(s, PLAIN, int64_t, from_ns)    \
    M(s, PLAIN, int64_t, to_ns)      \
    M(s, PLAIN, int64_t, compiles)   \
    M(s, PLAIN, int64_t, compile_ns) \
    M(s, PLAIN, int64_t, idle_ns)    \
    M(s, PLAIN, int64_t, runs)       \
    M(s, PLAIN, int64_t, inside_ns)  \
    M(s, PLAIN, int64_t, between_ns)
RP_PART_STRUCT(kept, KEPT);
RP_PART_TYPE(rp_kept_compile, struct kept, KEPT);

struct compile_spans {
    rp_interval_vec compiles, between, runs;
    int64_t ncompiles; /* a compile may lie in several stretches of judged time */
    bool *is_run;      /* by name */
};

/* Whether a step begins in a stretch of time: what lies in it is not a pause of one step. */
static bool crosses_step(const struct rp_trace *t, int64_t begin_ns, int64_t end_ns)
{
    size_t i;

    RP_LOWER_BOUND(i, t->nsteps, t->steps[i].begin_ns < begin_ns);
    return i < t->nsteps && t->steps[i].begin_ns < end_ns;
}

/* What of compiles lies in judged time. */
static enum rp_code add_compile(const struct rp_finding_rank *rank, struct compile_spans *spans,
                                struct rp_interval time, struct rp_err *err)
{
    const struct rp_segments *judged = rank->judged;
    size_t before = spans->compiles.n;

    for (size_t i = 0; i < judged->n; i++) {
        struct rp_interval part = {
            time.begin_ns > judged->at[i].begin_ns ? time.begin_ns : judged->at[i].begin_ns,
            time.end_ns < judged->at[i].end_ns ? time.end_ns : judged->at[i].end_ns};

        if (part.begin_ns < part.end_ns)
            RP_TRY(rp_vec_push(&spans->compiles, part, err));
    }
    spans->ncompiles += spans->compiles.n > before;
    return RP_OK;
}

/* Events are by track and time, so that runs of one thread follow each other. */
static enum rp_code find_spans(const struct rp_finding_rank *rank, struct compile_spans *spans,
                               struct rp_err *err)
{
    const struct rp_trace *t = rank->trace;
    rp_event before = RP_NONE;

    for (rp_event e = 0; e < t->ev.n; e++) {
        int64_t begin = t->ev.ts_ns[e], end;

        if (!spans->is_run[t->ev.name[e]] || t->ev.dur_ns[e] < 0 ||
            t->ev.kind[e] == RP_KIND_GPU_ANNOTATION)
            continue;
        end = rp_event_end_ns(t, e);
        if (before != RP_NONE && t->ev.track[before] == t->ev.track[e] &&
            rp_event_end_ns(t, before) < begin &&
            !crosses_step(t, rp_event_end_ns(t, before), begin))
            RP_TRY(rp_vec_push(&spans->between,
                               ((struct rp_interval){rp_event_end_ns(t, before), begin}), err));
        before = e;
        RP_TRY(rp_vec_push(&spans->runs, ((struct rp_interval){begin, end}), err));
    }
    return RP_OK;
}

/* The idle time of the device during spans of the host, which may be nested. */
static int64_t idle_in(const struct rp_finding_rank *rank, rp_interval_vec *spans)
{
    int64_t sum = 0;

    spans->n = rp_union_sort(spans->at, spans->n);
    for (size_t i = 0; i < rank->gaps->n; i++)
        rp_ns_add(&sum, rp_union_covers(spans->at, spans->n, rank->gaps->at[i].begin_ns,
                                        rank->gaps->at[i].end_ns));
    return sum;
}

static void measure_idle(const struct rp_finding_rank *rank, struct compile_spans *spans,
                         struct kept *out)
{
    const struct rp_segments *judged = rank->judged;

    out->on_device = rank->on_device;
    if (rank->trace->has_base && judged->n) {
        out->from_ns = rp_ns_sum(judged->at[0].begin_ns, rank->trace->base_ns);
        out->to_ns = rp_ns_sum(judged->at[judged->n - 1].end_ns, rank->trace->base_ns);
    }
    out->compiles = spans->ncompiles;
    out->runs = (int64_t)spans->runs.n;
    out->idle_ns = idle_in(rank, &spans->compiles);
    out->inside_ns = idle_in(rank, &spans->runs);
    out->between_ns = idle_in(rank, &spans->between);
    out->compile_ns = rp_union_length(spans->compiles.at, spans->compiles.n);
    if (!rank->on_device)
        out->idle_ns = out->compile_ns;
}

static void compile_spans_release(struct compile_spans *spans)
{
    rp_vec_release(&spans->compiles);
    rp_vec_release(&spans->between);
    rp_vec_release(&spans->runs);
}

static enum rp_code compile_measure(const struct rp_finding_rank *rank, void *kept,
                                    struct rp_err *err)
{
    const struct rp_trace *t = rank->trace;
    RP_SCOPED(compile_spans_release)
    struct compile_spans spans = {.is_run = RP_ARENA_NEW(rank->arena, bool, t->str.n + 1)};
    bool keys = false; /* recorders that see operators only have regions instead */

    RP_TRY(rp_err_need(spans.is_run, err, "looking for compiles"));
    for (rp_str s = 0; s < t->str.n; s++)
        keys = keys || rp_compiled_name(rp_trace_str(t, s)) == RP_COMPILED_BY_KEY;
    for (rp_str s = 0; s < t->str.n; s++)
        spans.is_run[s] = rp_compiled_name(rp_trace_str(t, s)) ==
                          (keys ? RP_COMPILED_BY_KEY : RP_COMPILED_REGION);
    for (size_t i = 0; i < rank->compiles->n; i++)
        RP_TRY(add_compile(rank, &spans, rank->compiles->at[i], err));
    RP_TRY(find_spans(rank, &spans, err));
    measure_idle(rank, &spans, kept);
    return RP_OK;
}

/* ------------------------------------------------------------------ the log */

static const char *place_of(struct rp_findings *f, const char *path, int64_t line)
{
    return path ? rp_arena_textf(f->arena, "%s:%lld", rp_text_file(path), (long long)line) : "";
}

/* Adds evidence; the first line is what the screen shows: "forward (program.py:7) was compiled
 * again, 6.02 s: x: size[1] 128 -> 160; call …" */
static void say_recompiles(struct rp_findings *f, struct rp_report_finding *finding,
                           const struct kept *k, const struct rp_torch_trace *log)
{
    size_t said = 0;

    for (size_t i = 0; i < log->compiles.n && said < SHOWN; i++) {
        const struct rp_torch_compile *c = &log->compiles.at[i];
        struct rp_torch_guard guard;
        int64_t phases[RP_TORCH_PHASES], sum = 0;
        bool timed = k->to_ns && c->start_ns != RP_TORCH_NO_ID && c->end_ns != RP_TORCH_NO_ID;

        if (!c->nreasons || (timed && (c->end_ns <= k->from_ns || c->start_ns >= k->to_ns)))
            continue;
        rp_torch_phases(c, phases);
        for (size_t i_phase = 0; i_phase < RP_TORCH_PHASES; i_phase++)
            rp_ns_add(&sum, phases[i_phase]);
        rp_torch_guard_read(rp_arena_text(f->arena, c->reasons[0]), c->dynamic, f->arena, &guard);
        RP_SAY(f, finding, "%s (%s) was compiled again in %s: %s; %s",
               c->function ? rp_arena_text(f->arena, c->function) : c->id,
               place_of(f, c->path, c->line), rp_findings_time(f, sum), guard.what, guard.avoid);
        said++;
    }
}

static void say_breaks(struct rp_findings *f, struct rp_report_finding *finding,
                       const struct rp_torch_trace *log)
{
    for (size_t i = 0; i < log->breaks.n && i < SHOWN; i++) {
        const struct rp_torch_break *b = &log->breaks.at[i];
        const struct rp_torch_place *at = b->user.path ? &b->user : &b->at;

        RP_SAY(f, finding, "%s: %s%s%s; %s", place_of(f, at->path, at->line),
               rp_arena_text(f->arena, b->kind), b->gb ? ", " : "",
               b->gb ? rp_arena_text(f->arena, b->gb) : "",
               b->skips ? "the whole function runs eagerly" : "two graphs instead of one");
    }
}

/* Adds evidence about compiles: `of` tells which one is meant, and why; it returns NULL to leave it
   out. Equal reasons are given once. */
static void say_compiles(struct rp_findings *f, unsigned kind, int64_t cost_ns,
                         const struct rp_torch_trace *log,
                         const char *(*of)(const struct rp_torch_compile *))
{
    struct rp_report_finding *finding = NULL;
    const char *before = NULL;

    for (size_t i = 0; i < log->compiles.n && (!finding || finding->nevidence < SHOWN); i++) {
        const struct rp_torch_compile *c = &log->compiles.at[i];
        const char *why = of(c);

        if (!why || (before && !strcmp(why, before)))
            continue;
        before = why;
        finding = finding ? finding : rp_findings_add(f, kind, cost_ns);
        if (!finding)
            return;
        RP_SAY(f, finding, "%s (%s) %s", rp_arena_text(f->arena, c->function ? c->function : c->id),
               place_of(f, c->path, c->line), rp_arena_text(f->arena, why));
    }
}

static const char *limit_of(const struct rp_torch_compile *c)
{
    return c->limited ? "reached the limit of compiles and runs eagerly" : NULL;
}

static const char *graphs_of(const struct rp_torch_compile *c)
{
    return c->cudagraphs;
}

static void say_all(struct rp_findings *f, const struct kept *k, const struct rp_torch_trace *log)
{
    int rank = rp_findings_lead_number(f);
    struct rp_report_finding *finding =
        k->compiles ? rp_findings_add(f, IN_STEPS, k->idle_ns) : NULL;

    if (finding) {
        say_recompiles(f, finding, k, log);
        RP_SAY(f, finding,
               k->on_device ? "rank %d: %s in %s; the device is idle for %s of it"
                            : "rank %d: %s in %s",
               rank, rp_units_count(f->arena, k->compiles, "compile"),
               rp_findings_time(f, k->compile_ns), rp_findings_time(f, k->idle_ns));
        if (!k->on_device && log->breaks.n)
            say_breaks(f, finding, log);
    }
    finding = log->breaks.n ? rp_findings_add(f, BREAKS, k->between_ns) : NULL;
    if (finding) {
        say_breaks(f, finding, log);
        RP_SAY(f, finding, "rank %d: %s of compiled graphs; the device is idle for %s between them",
               rank, rp_units_count(f->arena, k->runs, "run"), rp_findings_time(f, k->between_ns));
    }
    say_compiles(f, LIMIT, k->between_ns, log, limit_of);
    say_compiles(f, NO_GRAPHS, rp_ns_sum(k->inside_ns, k->between_ns), log, graphs_of);
}

static void compile_find(struct rp_findings *f)
{
    const struct kept *k = rp_findings_kept(f, f->chain->lead);
    struct rp_torch_trace log;

    if (!k || (!k->compiles && !k->runs))
        return;
    rp_torch_trace_init(&log);
    if (rp_torch_trace_beside(&log, f->ranks->parts[f->chain->lead].path, RP_TORCH_NO_ID, NULL,
                              NULL) != RP_OK) {
        rp_torch_trace_release(&log); /* findings without the log are still worth telling */
        rp_torch_trace_init(&log);
    }
    say_all(f, k, &log);
    rp_torch_trace_release(&log);
}

static const struct rp_advice_row advice[] = {
    {RP_ADVISE_LOOK, OF(IN_STEPS),
     .text = "'reprise dump recompiles' says what differed ('record --with +compile' takes the log "
             "along); judge the steps after the last compile"},
    {RP_ADVISE_CALL, OF(IN_STEPS), .frameworks = FW(PYTORCH),
     .text = "torch._dynamo.mark_dynamic for sizes that change, or batches of one size"},
    {RP_ADVISE_LOOK, OF(BREAKS), .text = "'reprise dump breaks' lists them with PyTorch's hints"},
    {RP_ADVISE_LOOK, OF(BREAKS), .frameworks = FW(PYTORCH),
     .text = "'reprise dump breaks' lists them with PyTorch's hints; torch.compile(fullgraph=True) "
             "stops at the first"},
    {RP_ADVISE_CALL, OF(BREAKS), .frameworks = FW(PYTORCH), .graphs = RP_KEY_NO,
     .text = "without the breaks a part of the step becomes one graph, which "
             "torch.compile(mode=\"reduce-overhead\") replays",
     .what_if = "no-sync+cuda-graphs"},
    {RP_ADVISE_CALL, OF(LIMIT) | OF(NO_GRAPHS),
     .text = "'reprise dump compiles' lists them, 'reprise dump recompiles' what differed"},
    {RP_ADVISE_CALL, OF(LIMIT), .frameworks = FW(PYTORCH),
     .text = "torch._dynamo.mark_dynamic for what differs ('reprise dump recompiles'), or a higher "
             "torch._dynamo.config.recompile_limit"},
    {RP_ADVISE_CALL, OF(NO_GRAPHS), .frameworks = FW(PYTORCH), .graphs = RP_KEY_NO,
     .text =
         "remove what the reason names from the compiled function: its graphs are then replayed",
     .what_if = "cuda-graphs"},
};

const struct rp_finding rp_finding_compile = {
    .id = "compile",
    .kinds = {{"in-steps", "torch.compile compiles during the steps"},
              {"breaks", "graph breaks: the device waits between compiled graphs"},
              {"limit", "the limit of compiles was reached: a function runs eagerly"},
              {"no-graphs", "torch.compile skipped CUDA graphs, and says why"}},
    .condition = "compiles: spans of Dynamo are recorded, or spans of compiled code and a log of "
                 "torch.compile (`TORCH_TRACE`) beside them; the others: a log of torch.compile "
                 "(`TORCH_TRACE`) lies beside the recording and has them",
    .cost =
        "idle time of the device while a thread compiles (without a device: that time); or between runs of compiled graphs "
        "of one thread in one step; of skipped CUDA graphs also within these runs",
    RP_KEEPS(compile, compile_measure),
    .find = compile_find,
    RP_ADVICE(advice),
    .overlaps = true,
    .of_any_rank = true,
};
