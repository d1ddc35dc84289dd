/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda-graphs: each step is captured once and launched as one graph. From the first launch of a
 * step to its last the host does nothing, and device work follows its predecessors with the gap
 * that graphs have; work that already ran in a graph stays. The host's work before that (preparing
 * the input) and after its wait for the last launch (reading results) stays, and so do data loaders
 * and other long work of the host between two launches, because a graph contains only what
 * launches. With a region, only that part becomes a graph: a phase, or operators or kernels with a
 * name. Of its host work only one call stays, the longest one that launched its work.
 */
#include "base/order.h"
#include "sim/whatif/nodes.h"
#include "sim/whatif/optimizer_kind.h"
#include "sim/whatif/repeats.h"

#include <stdlib.h>
#include <string.h>

#define GRAPH_GAP_NS 300
RP_DECISION(
    GRAPH_GAP_NS, "ns between two kernels of a graph",
    "(step - busy) / kernels of the captured steps of 19 networks on an H200: 250 to 430; on "
    "another H200 captured steps were up to 3 % shorter (docs/definitions.md)",
    "sim/a_captured_adam_becomes_capturable");

/* A capturable Adam keeps its count of steps on the device. It divides the buffers of each
   parameter by numbers there, twice and one by one, whereas a foreach Adam divides all of them at
   once. That costs four more passes over memory, and two kernels for each parameter; computing the
   numbers takes some tiny kernels. As a loop it has 14 more small kernels for each parameter.
   Counted and measured in captured steps of the same networks. */
#define CAPTURABLE_PASSES 4
RP_FACT(CAPTURABLE_PASSES, "passes over memory", "torch.optim.Adam(foreach, capturable)");
#define CAPTURABLE_FOREACH_NS (2 * (1300 + GRAPH_GAP_NS))
RP_FACT(CAPTURABLE_FOREACH_NS, "ns of a parameter", "its two kernels; measured on an H200");
#define CAPTURABLE_NUMBERS_NS 40000
RP_FACT(CAPTURABLE_NUMBERS_NS, "ns of a step", "kernels on counts of steps; measured on an H200");
#define CAPTURABLE_LOOP_NS (14 * (1500 + GRAPH_GAP_NS))
RP_FACT(CAPTURABLE_LOOP_NS, "ns of a parameter", "its 14 kernels; measured on an H200");

/* A kernel that began while the one before it still ran also does so in a graph. */
static int64_t graph_lag(uint32_t flags, int64_t lag_ns, int64_t gap_ns, bool to_device)
{
    if (flags & RP_EDGE_FROM_START && RP_SIM_EDGE_KIND(flags) != RP_SG_LAUNCH &&
        RP_SIM_EDGE_KIND(flags) != RP_SG_ORDER)
        return lag_ns;
    if (to_device && lag_ns > RP_SG_UNEXPLAINED_NS)
        return lag_ns;
    switch (RP_SIM_EDGE_KIND(flags)) {
    case RP_SG_STREAM:
    case RP_SG_EVENT:
        return gap_ns;
    case RP_SG_IN_GRAPH:
    case RP_SG_MEMBER:
        return lag_ns;
    default:
        return 0;
    }
}

/* A backward pass and an optimizer only execute what a graph remembers, however long that takes. */
#define OTHER_WORK_NS 1000000
RP_DECISION(
    OTHER_WORK_NS, "ns",
    "between two launches the host takes microseconds: what takes as long is something else "
    "than launching (docs/definitions.md, Idle, host_work)",
    "sim/a_graph_keeps_what_the_host_does_for_long");

/* When the host launches in a step, and when it first waited after that, as recorded. */
struct launching {
    int64_t first_ns, last_ns, waited_ns;
};

/* RP_PHASES stands for the whole step, or a pattern. */
struct region {
    uint8_t phase;
    const char *pattern;
    size_t nsteps;            /* the largest number of steps of a rank */
    struct launching *window; /* by rank and step */
    uint8_t *other;           /* by node: host work other than launching */
    uint8_t *place;           /* by node: IN_REGION, STAYS */
    const uint32_t *piece;    /* by node: 0 if it is in no piece that is captured (repeats.h); NULL:
                                 everything is captured */
};

enum { IN_REGION = 1, STAYS = 2 };

static bool in_region(const struct region *r, uint32_t i)
{
    return r->place[i] & IN_REGION;
}

/* PyTorch does not mark the forward pass, so it is what is neither backward nor optimizer. */
static bool is_of_region(const struct rp_sim_run *run, const struct region *r, uint32_t i)
{
    uint8_t phase = rp_sim_note_of(run, i)->phase;

    if (r->piece && !r->piece[i])
        return false;
    if (!r->pattern)
        return true;
    if (rp_sim_note_of(run, i)->step == RP_NO_STEP)
        return false;
    if (r->phase != RP_PHASES)
        return phase == r->phase || (r->phase == RP_PHASE_FORWARD && phase == RP_PHASE_OTHER);
    return rp_sim_name_fits(run, r->pattern, i);
}

/* The window for the step of a node; NULL if it belongs to none. */
static struct launching *window_of(const struct rp_sim_run *run, const struct region *r, uint32_t i)
{
    uint32_t rank = run->nranks > 1 ? rp_sim_node(run, i)->rank : 0;
    uint16_t step = rp_sim_note_of(run, i)->step;

    return step == RP_NO_STEP ? NULL : &r->window[rank * r->nsteps + step];
}

/* Marks long work of the host between two launches of a thread. */
static enum rp_code find_other_work(const struct rp_sim_run *run, struct region *r,
                                    struct rp_arena *arena, struct rp_err *err)
{
    r->other = RP_ARENA_NEW(arena, uint8_t, rp_sim_nnodes(run) + 1);
    RP_TRY(rp_arena_check(arena, "simulating", err));

    /* Mark long calls that allocate or free device memory: a program that does this in every step
       has no memory to keep for a graph, or no allocator that could. */
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        r->other[i] = rp_sim_allocates(run, i);
    for (size_t k = 0; k < run->graph->lanes.n; k++) {
        const struct rp_sg_lane *lane = &run->graph->lanes.at[k];
        uint32_t i, first = lane->first;
        int64_t ns = 0;
        size_t at;

        RP_LOWER_BOUND(at, run->launches.n, run->launches.at[at].from < first);
        for (i = lane->first; !lane->device && i < lane->end; i++) {
            uint8_t phase = rp_sim_note_of(run, i)->phase;

            if (rp_sim_node(run, i)->kind == RP_SG_HOST && phase != RP_PHASE_BACKWARD &&
                phase != RP_PHASE_OPTIMIZER)
                ns = rp_ns_sum(ns, run->overlay.dur_ns.at[i]);
            while (at < run->launches.n && run->launches.at[at].from < i)
                at++;
            if (at == run->launches.n || run->launches.at[at].from != i)
                continue;
            if (ns >= OTHER_WORK_NS)
                memset(&r->other[first], 1, i - first);
            first = i + 1;
            ns = 0;
        }
    }
    return RP_OK;
}

static enum rp_code place_nodes(const struct rp_sim_run *run, struct region *r,
                                struct rp_arena *arena, struct rp_err *err)
{
    uint32_t i, n = (uint32_t)rp_sim_nnodes(run);

    r->place = RP_ARENA_NEW(arena, uint8_t, n + 1);
    RP_TRY(rp_arena_check(arena, "simulating", err));
    for (i = 0; i < n; i++)
        r->place[i] = is_of_region(run, r, i) ? IN_REGION : 0;
    return RP_OK;
}

/* Finds when each step of each rank launches device work of the region. */
static enum rp_code find_launching(const struct rp_sim_run *run, struct region *r,
                                   struct rp_arena *arena, struct rp_err *err)
{
    for (size_t i = 0; i < run->nranks; i++)
        r->nsteps = run->parts[i]->nsteps > r->nsteps ? run->parts[i]->nsteps : r->nsteps;
    size_t n = r->nsteps * run->nranks;
    r->window = RP_ARENA_NEW(arena, struct launching, n + 1);
    RP_TRY(rp_arena_check(arena, "simulating", err));
    for (size_t i = 0; i < n; i++)
        r->window[i] = (struct launching){INT64_MAX, INT64_MIN, INT64_MAX};
    for (size_t k = 0; k < run->launches.n; k++) {
        uint32_t v = run->launches.at[k].from;
        struct launching *w = in_region(r, run->launches.at[k].to) ? window_of(run, r, v) : NULL;
        int64_t ns = rp_sim_node(run, v)->start_ns;

        if (w) {
            w->first_ns = ns < w->first_ns ? ns : w->first_ns;
            w->last_ns = ns > w->last_ns ? ns : w->last_ns;
        }
    }
    for (size_t k = 0; k < run->waits.n; k++) {
        uint32_t v = run->waits.at[k].to;
        struct launching *w = window_of(run, r, v);
        int64_t ns = rp_sim_node(run, v)->start_ns;

        if (w && ns > w->last_ns && ns < w->waited_ns)
            w->waited_ns = ns;
    }
    return RP_OK;
}

/* Whether the host does this also with a graph. */
static bool stays_on_host(const struct rp_sim_run *run, const struct region *r, uint32_t i)
{
    int64_t start = rp_sim_node(run, i)->start_ns;

    if (!rp_sim_is_host(run, i))
        return false;
    if (r->other[i] || rp_sim_note_of(run, i)->flags & RP_SIM_LOADER)
        return true;
    if (r->piece || (r->phase == RP_PHASES && r->pattern))
        return false;
    const struct launching *w = window_of(run, r, i);
    return !w || start < w->first_ns || start >= w->waited_ns;
}

/* Whether this call becomes the launch of the graph: in each step and rank, or in each piece, one
   call stays. */
static bool launches_graph(const struct rp_sim_run *run, const struct region *r, uint32_t i,
                           uint32_t *last)
{
    uint32_t key =
        r->piece ? r->piece[i] : rp_sim_node(run, i)->rank << 16 | rp_sim_note_of(run, i)->step;

    if ((!r->pattern && !r->piece) || rp_sim_node(run, i)->kind != RP_SG_RUNTIME || key == *last)
        return false;
    *last = key;
    return true;
}

static enum rp_code empty_host(struct rp_sim_run *run, const struct region *r, size_t *n,
                               struct rp_err *err)
{
    uint32_t i, last = UINT32_MAX;

    for (i = 0; i < run->tasks.tasks.n; i++) {
        if (stays_on_host(run, r, i))
            r->place[i] |= STAYS;
        if (!in_region(r, i))
            continue;
        *n += rp_sim_is_device_work(run, i);
        if (rp_sim_is_host(run, i) && !(r->place[i] & STAYS) && !launches_graph(run, r, i, &last))
            RP_TRY(rp_overlay_set_dur(&run->overlay, i, 0, err));
    }
    return RP_OK;
}

static enum rp_code shrink_lags(struct rp_sim_run *run, const struct region *r, struct rp_err *err)
{
    const struct rp_task_graph *g = &run->tasks;
    struct rp_overlay *o = &run->overlay;
    int64_t gap = rp_sim_scaled(GRAPH_GAP_NS, rp_sim_lean_by(run, 1));

    for (uint32_t v = 0; v < g->tasks.n; v++) {
        if (!in_region(r, v))
            continue;
        for (uint32_t i = g->first.at[v]; i < g->first.at[v + 1]; i++) {
            uint32_t to = g->edges.at[i].to;

            if (o->lag_ns.at[i] == RP_LAG_CUT || r->place[to] != IN_REGION ||
                (r->piece && r->piece[v] != r->piece[to]))
                continue;
            RP_TRY(rp_overlay_set_lag(
                o, i,
                graph_lag(g->edges.at[i].flags, o->lag_ns.at[i], gap, rp_sim_on_device(run, to)),
                err));
        }
    }
    return RP_OK;
}

/* Adds the extra time of an update of the rank in a step, besides the passes over memory. Not if
   another what-if fuses the optimizer. */
static enum rp_code make_capturable(struct rp_sim_run *run, const struct region *r, uint32_t rank,
                                    bool fused, struct rp_err *err)
{
    struct rp_optimizer_kind kind;
    uint32_t i, last = RP_NONE;

    rp_optimizer_kind(run, rank, &kind);
    if (!kind.reads_host || kind.style == RP_OPTIMIZER_FUSED || fused)
        return RP_OK;
    double more = kind.style == RP_OPTIMIZER_LOOP
                      ? kind.parameters * CAPTURABLE_LOOP_NS
                      : kind.parameters * CAPTURABLE_FOREACH_NS + CAPTURABLE_NUMBERS_NS;
    double factor = (kind.passes + CAPTURABLE_PASSES) / kind.passes;
    for (i = rp_sim_first_node(run, rank); i < rp_sim_end_node(run, rank); i++) {
        if (rp_sim_node(run, i)->rank != rank || !rp_sim_is_update(run, i) || !in_region(r, i))
            continue;
        if (last == RP_NONE || rp_sim_note_of(run, last)->step != rp_sim_note_of(run, i)->step)
            RP_TRY(rp_overlay_set_dur(&run->overlay, i,
                                      run->overlay.dur_ns.at[i] + (int64_t)(more / factor), err));
        RP_TRY(rp_sim_scale_node(run, i, factor, err));
        last = i;
    }
    return RP_OK;
}

static enum rp_code capture(struct rp_sim_run *run, const struct rp_whatif_args *args,
                            struct region *r, struct rp_arena *scratch, struct rp_err *err)
{
    size_t n = 0;

    RP_TRY(place_nodes(run, r, scratch, err));
    RP_TRY(find_launching(run, r, scratch, err));
    RP_TRY(find_other_work(run, r, scratch, err));
    RP_TRY(empty_host(run, r, &n, err));
    if (!n)
        return rp_err_set(err, RP_UNSUPPORTED, "'%s': no device work belongs to '%s'", args->text,
                          args->value ? args->value : "the step");
    for (uint32_t rank = 0; rank < run->nranks; rank++)
        RP_TRY(make_capturable(run, r, rank,
                               rp_whatif_list_has(args->list, &rp_whatif_fused_optimizer), err));

    /* Change attention in the region that gets a mask; most recordings have none. */
    bool compiled = rp_whatif_list_has(args->list, &rp_whatif_compile);
    for (size_t rank = 0; rank < run->nranks; rank++)
        for (size_t k = 0; k < run->parts[rank]->ratios.n; k++) {
            uint32_t i = rp_sim_first_node(run, rank) + (uint32_t)k;

            if (run->parts[rank]->ratios.at[k].masked > 0 && i < rp_sim_end_node(run, rank) &&
                in_region(r, i) && (!compiled || rp_sim_is_masked(run, i, false)))
                RP_TRY(rp_sim_mask_attention(run, i, args->list, err));
        }

    return shrink_lags(run, r, err);
}

/* Whether most kernels are launched by CUDA graphs already; each name is examined once. */
static enum rp_code is_graphed(const struct rp_sim_run *run, bool *out, struct rp_err *err)
{
    size_t nnames = run->graph->names.n;
    RP_FREED uint8_t *launches = calloc(nnames + 1, 1);
    size_t graphs = 0, single = 0,
           kernels =
               0; /* kernels are counted, because not every kernel of a graph shows its launch */

    RP_TRY(rp_err_need(launches, err, "simulating"));
    for (size_t i = 0; i < nnames; i++)
        launches[i] = rp_sim_means(run->graph->names.at[i], RP_SIM_LAUNCHES_GRAPH);
    for (uint32_t v = 0; v < rp_sim_nnodes(run); v++)
        graphs += launches[rp_sim_node(run, v)->name] && rp_sim_in_steps(run, v);
    for (size_t k = 0; k < run->kernels.n; k++)
        kernels += rp_sim_in_steps(run, run->kernels.at[k]);
    for (size_t k = 0; k < run->launches.n; k++) {
        uint32_t v = run->launches.at[k].from;

        single += !launches[rp_sim_node(run, v)->name] && rp_sim_in_steps(run, v);
    }
    *out = graphs && 2 * single < kernels;
    return RP_OK;
}

/* Whether threads carry collectives. */
static bool has_host_collectives(const struct rp_sim_run *run)
{
    return run->parts[0]->collectives.on_host && run->parts[0]->collectives.list.n;
}

static enum rp_whatif_verdict verdict_of(const struct rp_sim_repeats *r)
{
    return r->how >= RP_REPEATS_MANY     ? RP_WHATIF_NOT
           : r->how == RP_REPEATS_PIECES ? RP_WHATIF_PART
                                         : RP_WHATIF_APPLIES;
}

static enum rp_whatif_verdict cuda_graphs_applies(const struct rp_sim_run *run,
                                                  const struct rp_whatif_args *args,
                                                  struct rp_err *why)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    enum rp_whatif_verdict verdict = RP_WHATIF_APPLIES;
    struct rp_sim_repeats r;

    if (!run->launches.n)
        return RP_WHATIF_SAY(why, CANNOT, "no launches of device work were recorded");
    if (args && !args->value && has_host_collectives(run))
        return RP_WHATIF_SAY(
            why, CANNOT,
            "the step has host collectives (gloo), which cannot be captured: give a "
            "part of the step, as in cuda-graphs=forward");
    if (args)
        return RP_WHATIF_APPLIES;
    bool graphed = false;
    if (is_graphed(run, &graphed, why) != RP_OK)
        return RP_WHATIF_CANNOT;
    if (graphed)
        return RP_WHATIF_SAY(why, NOT, "most kernels are launched by CUDA graphs already");
    if (rp_sim_repeats_find(run, &scratch, &r, why) == RP_OK) {
        verdict = verdict_of(&r);
        const char *text = rp_sim_repeats_text(&r, &scratch);
        if (text)
            rp_err_set(why, RP_UNSUPPORTED, "%s", text);
    }
    rp_arena_release(&scratch);
    return verdict;
}

/* Captures only pieces if nothing else can be captured. */
static enum rp_code find_pieces(const struct rp_sim_run *run, struct region *r,
                                struct rp_arena *arena, struct rp_err *err)
{
    struct rp_sim_repeats found;
    uint32_t *piece;

    RP_TRY(rp_sim_repeats_find(run, arena, &found, err));
    if (found.how != RP_REPEATS_PIECES && found.how != RP_REPEATS_MANY)
        return RP_OK;
    RP_TRY(rp_sim_list_pieces(run, true, arena, &piece, err));
    r->piece = piece;
    return RP_OK;
}

static enum rp_code cuda_graphs_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                      struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;

    struct region r = {.phase = RP_PHASES, .pattern = args->value};
    for (uint8_t i = RP_PHASE_FORWARD; args->value && i < RP_PHASES; i++)
        if (!strcmp(args->value, rp_phase_names[i]))
            r.phase = i;

    if (args->value && !*args->value)
        return rp_err_set(
            err, RP_USAGE,
            "'%s': expected cuda-graphs, or cuda-graphs=forward, backward, optimizer or "
            "a name",
            args->text);
    RP_TRY(rp_whatif_check(&rp_whatif_cuda_graphs, run, args, err));
    RP_TRY(find_pieces(run, &r, &scratch, err));
    return capture(run, args, &r, &scratch, err);
}

/* Proposes phases that are a part of the step. Backward passes with all-reduces on the host cannot
   be captured, because DistributedDataParallel starts these from hooks. */
static enum rp_code cuda_graphs_propose(const struct rp_sim_run *run, struct rp_arena *arena,
                                        rp_whatif_texts *out, struct rp_err *err)
{
    static const struct {
        const char *text;
        unsigned needs;
    } parts[] = {
        {"cuda-graphs=forward", 1u << RP_PHASE_BACKWARD | 1u << RP_PHASE_OPTIMIZER},
        {"cuda-graphs=optimizer", 1u << RP_PHASE_OPTIMIZER},
        {"cuda-graphs=forward+cuda-graphs=backward", 1u << RP_PHASE_BACKWARD},
    };
    size_t n = sizeof parts / sizeof parts[0];

    /* The phases that have device work in the steps, as bits. */
    unsigned has = 0;
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++)
        if (rp_sim_is_device_work(run, i) && rp_sim_note_of(run, i)->step != RP_NO_STEP)
            has |= 1u << rp_sim_note_of(run, i)->phase;

    (void)arena;
    RP_TRY(rp_vec_push(out, "cuda-graphs", err));
    for (size_t i = 0; i < n - has_host_collectives(run); i++)
        if (has & parts[i].needs || (!i && has_host_collectives(run)))
            RP_TRY(rp_vec_push(out, parts[i].text, err));
    return RP_OK;
}

static const struct rp_whatif_move cuda_graphs_move = {
    .family = "graphs",
    .effort = 4,
    .apply = "capture it once with torch.cuda.graph (torch.cuda.make_graphed_callables, or "
             "torch.compile(mode='reduce-overhead')) and replay it in each step",
    .propose = cuda_graphs_propose};

const struct rp_whatif rp_whatif_cuda_graphs = {
    .name = "cuda-graphs",
    .alias = "graphs",
    .form = "cuda-graphs[=<region>]",
    .summary =
        "each step, or only its forward pass, backward pass, optimizer or the operators of a name, is "
        "one captured graph: the host launches it once",
    .assumes = "shapes and control flow are the same in every step, and no launch in it depends on "
               "a value that the host reads; PyTorch's Adam becomes capturable",
    .assumes_elsewhere = "shapes and control flow are the same in every step, and no launch in it "
                         "depends on a value that the host reads",
    .value = RP_WHATIF_NAME,
    .move = &cuda_graphs_move,
    .applies = cuda_graphs_applies,
    .apply = cuda_graphs_apply};
