/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bucket: DistributedDataParallel gathers gradients into buckets of another size. The recorded
 * all-reduces are removed; new ones begin when the last gradient of their bucket is ready on every
 * rank, share the transport as it was measured, and what waited for the last of the old ones waits
 * for all of the new ones.
 *
 *     gradients  g1  g2 g3    g4         ready in the recorded order (AccumulateGrad)
 *     bucket 1    `---+->[all-reduce ....][copy back] -> copied into g1, g2
 *     bucket 2            `----`->[all-reduce ....][copy back] -> g3, g4 -> optimizer
 *
 * PyTorch waits for one bucket after the other and copies each into its gradients, so the copies of
 * early buckets overlap the transfers of later ones: each recorded copy waits for the new bucket of
 * its gradient.
 *
 * The same is done first with the recorded buckets. The time by which that falls short of the
 * recording (hooks, waking of threads) is added after the last transfer of a step.
 */
#include "base/copies.h"
#include "base/order.h"
#include "base/scope.h"
#include "sim/model/simulated_steps.h"
#include "sim/model/transport.h"
#include "sim/whatif/buckets.h"
#include "sim/whatif/nodes.h"
#include "sim/whatif/whatifs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the work after the collectives of one step of one rank begins. */
struct last_ends {
    int64_t host_end_ns, device_end_ns; /* last end of the removed collectives */
};

/* way_on: an edge from the collectives of a step to what came after the last of them. */
struct way_on {
    uint32_t from, to;
    int64_t lag_ns;
};

struct bucket_ctx {
    struct rp_sim_run *run;
    struct rp_transport transport;
    int64_t cap_bytes;      /* 0: the recorded buckets */
    const char *counts;     /* "4,8,3": number of gradients in each bucket; NULL: by size */
    bool as_recorded;       /* temporarily, use the recorded buckets instead of these */
    double to_ns_by_byte;   /* time of copies from the device before a transfer */
    double back_ns_by_byte; /* and to it after */
    int64_t rest_ns;        /* time that the model lacks in each step */
    size_t nsteps;
    size_t high;             /* end of the gradients of the current step */
    struct last_ends *after; /* by rank and step */
    uint32_t *copies; /* by rank and gradient: the host node that copies it back, or RP_NONE */
    RP_VEC(uint32_t)
    transfer; /* new transfers of the current step: one for each rank, bucket by bucket */
    RP_VEC(struct way_on) ways_on; /* of the step at hand */
    RP_VEC(uint32_t) gone;         /* what is removed */
    RP_VEC(uint32_t) cut_edges;    /* edges into it and out of it */
    RP_VEC(uint32_t) out_edges;    /* edges out of it */
    RP_VEC(uint32_t) out_from;     /* where they begin */
    RP_VEC(int64_t) out_lags;      /* as recorded */
    RP_VEC(uint32_t) back;         /* host nodes that copy from a bucket into its gradients */
    uint8_t *removed;              /* by node */
};

static bool is_replaced(const struct rp_sim_run *run, uint32_t task)
{
    const struct rp_sg_node *node = rp_sim_node(run, task);
    const struct rp_collectives *c = &rp_sim_part_of(run, task)->collectives;

    if (rp_sim_note_of(run, task)->flags & RP_SIM_REMOTE)
        return true;
    return node->collective != RP_NONE &&
           (node->kind == RP_SG_COMM || node->kind == RP_SG_ARRIVE) &&
           c->list.at[node->collective].kind == RP_COLL_ALL_REDUCE;
}

static bool on_device(const struct rp_sim_run *run, uint32_t task)
{
    uint32_t lane = rp_sim_node(run, task)->lane;

    return lane != RP_NONE && run->graph->lanes.at[lane].device;
}

/* Examines every node once. */
static enum rp_code find_kinds(struct bucket_ctx *m, struct rp_err *err)
{
    const struct rp_sim_run *run = m->run;
    size_t nnames = run->graph->names.n;
    RP_FREED uint8_t *copies = calloc(nnames + 1, 1);

    m->removed = calloc(rp_sim_nnodes(run) + 1, 1);
    RP_TRY(rp_err_need(copies && m->removed, err, "simulating"));
    for (uint32_t i = 0; i < nnames; i++)
        copies[i] = rp_sim_means(run->graph->names.at[i], RP_SIM_COPIES_BACK);
    for (uint32_t i = 0; i < rp_sim_nnodes(run); i++) {
        m->removed[i] = is_replaced(run, i);
        if (m->removed[i])
            RP_TRY(rp_vec_push(&m->gone, i, err));
        if (copies[rp_sim_node(run, i)->name] && rp_sim_note_of(run, i)->flags & RP_SIM_OPENS &&
            !on_device(run, i))
            RP_TRY(rp_vec_push(&m->back, i, err));
    }
    return RP_OK;
}

static struct last_ends *after_of(const struct bucket_ctx *m, uint32_t task)
{
    uint16_t step = rp_sim_note_of(m->run, task)->step;

    return step == RP_NO_STEP || step >= m->nsteps
               ? NULL
               : &m->after[rp_sim_node(m->run, task)->rank * m->nsteps + step];
}

/* ------------------------------------------------------------------ copies into gradients */

static uint32_t *copy_of(const struct bucket_ctx *m, size_t rank, size_t gradient)
{
    return &m->copies[rank * m->run->parts[0]->gradients.n + gradient];
}

/* Copies are in the order of the buckets, and thus of the gradients. If their number in a step
   differs, they are not used. */
static void find_copies(struct bucket_ctx *m, size_t rank, size_t low, size_t high)
{
    uint16_t step = m->run->parts[0]->gradients.at[low].step;
    uint32_t first = rp_sim_first_node(m->run, rank), end = rp_sim_end_node(m->run, rank);
    size_t i, k, n = 0;

    RP_LOWER_BOUND(i, m->back.n, m->back.at[i] < first);
    for (k = i; k < m->back.n && m->back.at[k] < end; k++)
        n += rp_sim_note_of(m->run, m->back.at[k])->step == step;
    if (n != high - low)
        return;
    for (k = i; k < m->back.n && m->back.at[k] < end; k++)
        if (rp_sim_note_of(m->run, m->back.at[k])->step == step)
            *copy_of(m, rank, low++) = m->back.at[k];
}

/* Whether a node waits for a bucket only to copy it, because each copy waits for its own bucket. */
static bool precedes_copies(const struct bucket_ctx *m, uint32_t node, size_t last)
{
    uint32_t copy = *copy_of(m, rp_sim_node(m->run, node)->rank, last);

    return copy != RP_NONE && rp_sim_node(m->run, copy)->lane == rp_sim_node(m->run, node)->lane &&
           rp_sim_node(m->run, copy)->start_ns >= rp_sim_node(m->run, node)->start_ns;
}

/* ------------------------------------------------------------------ putting in */

/* Adds a bucket with gradients [low, high) of the first rank's list, which is the same on all
   ranks. */
static enum rp_code add_bucket(struct bucket_ctx *m, size_t low, size_t high, int64_t bytes,
                               struct rp_err *err)
{
    struct rp_sim_run *run = m->run;
    uint16_t step = run->parts[0]->gradients.at[low].step;
    struct rp_task meet = {.device = RP_NO_DEVICE, .step = step, .kind = RP_SG_RENDEZVOUS};
    int64_t copy_ns = (int64_t)(m->to_ns_by_byte * (double)bytes);
    uint32_t met, id, rank;

    RP_TRY(rp_overlay_add(&run->overlay, meet, &met, err));
    for (rank = 0; rank < run->nranks; rank++)
        for (size_t i = low; i < high; i++) {
            /* A transfer starts when the gradient is ready and was copied from the device. */
            uint32_t first = rp_sim_first_node(m->run, rank);

            RP_TRY(rp_overlay_link(&m->run->overlay, first + run->parts[rank]->gradients.at[i].node,
                                   met, copy_ns, 0, err));
            if (run->parts[rank]->gradients.at[i].work != RP_NONE)
                RP_TRY(rp_overlay_link(&m->run->overlay,
                                       first + run->parts[rank]->gradients.at[i].work, met, copy_ns,
                                       0, err));
        }
    for (rank = 0; rank < run->nranks; rank++) {
        struct rp_task transfer = {.dur_ns = rp_transport_ns(&m->transport, bytes),
                                   .device = rank,
                                   .rank = rank,
                                   .step = step,
                                   .kind = RP_SG_COMM};
        struct rp_task back = {.dur_ns = (int64_t)(m->back_ns_by_byte * (double)bytes),
                               .device = RP_NO_DEVICE,
                               .rank = rank,
                               .step = step,
                               .kind = RP_SG_MEMORY};

        RP_TRY(rp_overlay_add(&run->overlay, transfer, &id, err));
        RP_TRY(rp_overlay_link(&run->overlay, met, id, 0, 0, err));
        RP_TRY(rp_overlay_add(&run->overlay, back, &id, err));
        RP_TRY(rp_overlay_link(&run->overlay, id - 1, id, 0, 0, err));
        RP_TRY(rp_vec_push(&m->transfer, id, err));
        if (*copy_of(m, rank, low) != RP_NONE)
            RP_TRY(rp_overlay_link(&run->overlay, id, *copy_of(m, rank, low),
                                   high == m->high ? m->rest_ns : 0, 0, err));
    }
    return RP_OK;
}

/* Whether a bucket is full, by the gradient with which it reaches its size; n: number of gradients
   in it; *counts: position in the list. */
static bool is_full(const struct bucket_ctx *m, int64_t bytes, size_t n, const char **counts)
{
    const struct rp_collectives *c = &m->run->parts[0]->collectives;

    if (m->counts && !m->as_recorded) {
        if (n < strtoull(*counts, NULL, 10))
            return false;
        *counts += strcspn(*counts, ",");
        *counts += **counts == ',' && (*counts)[1];
        return true;
    }
    if (m->cap_bytes && !m->as_recorded)
        return bytes >= m->cap_bytes;
    for (size_t i = 0; i < c->list.n; i++)
        if (c->list.at[i].kind == RP_COLL_ALL_REDUCE && c->list.at[i].in_bytes == bytes)
            return true;
    return false;
}

static enum rp_code add_buckets(struct bucket_ctx *m, size_t low, size_t high, struct rp_err *err)
{
    const struct rp_sim_gradient *x = m->run->parts[0]->gradients.at;
    const char *counts = m->counts;
    int64_t bytes = 0;
    size_t i, first = low;

    m->transfer.n = 0;
    for (i = low; i < high; i++) {
        bytes += x[i].bytes;
        if (!is_full(m, bytes, i + 1 - first, &counts) && i + 1 < high)
            continue;
        RP_TRY(add_bucket(m, first, i + 1, bytes, err));
        first = i + 1;
        bytes = 0;
    }
    return RP_OK;
}

/* Whether an edge led from the collectives of a step to what came after the last of them. */
static bool leads_after(const struct bucket_ctx *m, uint32_t from, uint32_t to, uint16_t step)
{
    int64_t start = rp_sim_node(m->run, to)->start_ns;

    if (rp_sim_note_of(m->run, from)->step != step)
        return false;
    const struct last_ends *a = after_of(m, from);
    return a && start >= (on_device(m->run, to) ? a->device_end_ns : a->host_end_ns);
}

/* Finds the edges of what is removed, and the recorded lags of those out of it; they are the same
   for every step. */
static enum rp_code find_edges(struct bucket_ctx *m, struct rp_err *err)
{
    const struct rp_task_graph *g = &m->run->tasks;

    for (uint32_t v = 0; v < g->tasks.n; v++)
        for (uint32_t i = g->first.at[v]; i < g->first.at[v + 1]; i++) {
            if (m->removed[v] == m->removed[g->edges.at[i].to])
                continue;
            RP_TRY(rp_vec_push(&m->cut_edges, i, err));
            if (!m->removed[v])
                continue;
            RP_TRY(rp_vec_push(&m->out_edges, i, err));
            RP_TRY(rp_vec_push(&m->out_from, v, err));
        }
    RP_TRY(rp_vec_reserve(&m->out_lags, m->out_edges.n + 1, err));
    rp_overlay_base_lags(&m->run->overlay, m->out_edges.at, m->out_edges.n, m->out_lags.at);
    return RP_OK;
}

static enum rp_code make_buckets(struct bucket_ctx *m, struct rp_err *err)
{
    const struct rp_sim_part *first = m->run->parts[0];
    size_t low, high, rank;

    /* The last ends of what is removed, on the host and on the device. */
    for (size_t k = 0; k < m->gone.n; k++) {
        uint32_t i = m->gone.at[k];
        struct last_ends *a = after_of(m, i);

        if (!a)
            continue;
        int64_t *end = on_device(m->run, i) ? &a->device_end_ns : &a->host_end_ns;
        if (rp_sg_end_ns(rp_sim_node(m->run, i)) > *end)
            *end = rp_sg_end_ns(rp_sim_node(m->run, i));
    }
    for (low = 0; low < first->gradients.n; low = high) {
        uint16_t step = first->gradients.at[low].step;

        for (high = low; high < first->gradients.n && first->gradients.at[high].step == step;)
            high++;
        if (step == RP_NO_STEP)
            continue;
        m->high = high;
        for (rank = 0; rank < m->run->nranks; rank++)
            find_copies(m, rank, low, high);
        RP_TRY(add_buckets(m, low, high, err));

        /* Let what waited for the old collectives of a step wait for the new ones of its rank. */
        struct rp_sim_run *run = m->run;
        m->ways_on.n = 0;
        for (size_t i = 0; i < m->out_edges.n; i++) {
            struct way_on way = {m->out_from.at[i], m->run->tasks.edges.at[m->out_edges.at[i]].to,
                                 m->out_lags.at[i]};

            if (leads_after(m, way.from, way.to, step) && !precedes_copies(m, way.to, m->high - 1))
                RP_TRY(rp_vec_push(&m->ways_on, way, err));
        }
        for (size_t i = 0; i < m->ways_on.n; i++)
            for (size_t k = rp_sim_node(run, m->ways_on.at[i].from)->rank; k < m->transfer.n;
                 k += run->nranks)
                RP_TRY(rp_overlay_link(&run->overlay, m->transfer.at[k], m->ways_on.at[i].to,
                                       m->ways_on.at[i].lag_ns + m->rest_ns, 0, err));
    }

    /* Cut every edge into and out of what is removed; it takes no time and does not begin a step.
     */
    struct rp_sim_run *run = m->run;
    for (size_t i = 0; i < m->gone.n; i++) {
        run->gone.at[m->gone.at[i]] = 1;
        RP_TRY(rp_overlay_set_dur(&run->overlay, m->gone.at[i], 0, err));
    }
    for (size_t i = 0; i < m->cut_edges.n; i++)
        RP_TRY(rp_overlay_set_lag(&run->overlay, m->cut_edges.at[i], RP_LAG_CUT, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ what the model lacks */

/* Whether streams that carry copies back from collectives also carry those to them. */
static bool carries_collectives(const struct rp_sim_run *run, const struct rp_sg_lane *l)
{
    for (uint32_t i = l->first; l->device && i < l->end; i++)
        if (rp_sim_note_of(run, i)->flags & RP_SIM_REMOTE)
            return true;
    return false;
}

/* The time for a byte of copies in one direction that belong to the collectives of the first
   rank. */
static double copy_ns_by_byte(const struct rp_sim_run *run, enum rp_copy_way way)
{
    const struct rp_stepgraph *g = run->graph;
    const struct rp_collectives *c = &run->parts[0]->collectives;
    double ns = 0, bytes = 0;

    for (size_t k = 0; k < g->lanes.n; k++) {
        if ((run->nranks > 1 && g->lanes.at[k].rank) || !carries_collectives(run, &g->lanes.at[k]))
            continue;
        for (uint32_t i = g->lanes.at[k].first; i < g->lanes.at[k].end; i++)
            if (rp_sim_node(run, i)->kind == RP_SG_MEMORY &&
                rp_copy_way(g->names.at[rp_sim_node(run, i)->name]) == way)
                ns += (double)rp_sim_node(run, i)->dur_ns;
    }
    for (size_t k = 0; k < c->list.n; k++)
        if (c->list.at[k].kind == RP_COLL_ALL_REDUCE && c->list.at[k].in_bytes > 0)
            bytes += (double)c->list.at[k].in_bytes;
    return bytes > 0 ? ns / bytes : 0;
}

static enum rp_code step_now(struct bucket_ctx *m, int64_t *out, struct rp_err *err)
{
    RP_SCOPED(rp_sim_result_release) struct rp_sim_result r = {0};

    RP_TRY(rp_simulate(&m->run->overlay, &r, err));
    return rp_sim_step_ns(m->run, &r, out, err);
}

/* Models the recorded buckets, compares, and removes them again. The result does not depend on the
   new buckets, so it is kept for other tries on the same run. */
static enum rp_code find_unexplained(struct bucket_ctx *m, struct rp_err *err)
{
    struct rp_sim_run *run = m->run;
    uint64_t stamp = rp_overlay_stamp(&run->overlay);
    struct rp_sim_lack *known = &run->lacks[stamp % RP_SIM_LACKS];
    size_t mark = rp_overlay_mark(&run->overlay);
    int64_t before, modelled;

    if (known->known && known->stamp == stamp) {
        m->rest_ns = known->ns;
        memset(run->gone.at, 0, run->gone.n); /* as below */
        return RP_OK;
    }
    RP_TRY(step_now(m, &before, err));
    m->as_recorded = true;
    enum rp_code code = make_buckets(m, err);
    if (code == RP_OK)
        code = step_now(m, &modelled, err);
    rp_overlay_undo(&run->overlay, mark);
    memset(run->gone.at, 0, run->gone.n);
    m->as_recorded = false;
    if (code != RP_OK)
        return code;
    m->rest_ns = before > modelled ? before - modelled : 0;
    *known = (struct rp_sim_lack){stamp, m->rest_ns, true};
    return RP_OK;
}

/* ------------------------------------------------------------------ asking */

/* "4,8,3": numbers above 0. */
static bool is_list(const char *text)
{
    if (!strchr(text, ','))
        return false;
    for (size_t len; *text; text += len, text += *text == ',') {
        len = strspn(text, "0123456789");
        if (*text == '0' || !len || len > 9 || !strchr(",", text[len]))
            return false;
    }
    return true;
}

/* Reads "25MB" in the units of bucket_cap_mb: 1 MB is 1,048,576 bytes. */
static enum rp_code read_cap(const struct rp_whatif_args *args, int64_t *out, struct rp_err *err)
{
    char *end = NULL;
    double mb = args->value ? strtod(args->value, &end) : 0;

    if (args->value && is_list(args->value))
        return RP_OK;

    if (!end || end == args->value || (*end && strcmp(end, "MB") != 0 && strcmp(end, "MiB") != 0) ||
        !(mb > 0) || mb > 1e6)
        return rp_err_set(
            err, RP_USAGE,
            "'%s': a size such as bucket=25MB is expected, or numbers of gradients such "
            "as bucket=4,8,3",
            args->text);
    *out = (int64_t)llround(mb * RP_SIM_MIB);
    return RP_OK;
}

static enum rp_whatif_verdict bucket_applies(const struct rp_sim_run *run,
                                             const struct rp_whatif_args *args, struct rp_err *why)
{
    const struct rp_sim_part *first = run->parts[0];

    if (!first->gradients.n)
        return RP_WHATIF_SAY(why, CANNOT,
                             "the recording has no AccumulateGrad, so no backward pass of PyTorch");
    if (rp_sim_needs_comm(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    for (size_t i = 0; i < first->gradients.n; i++)
        if (first->gradients.at[i].bytes < 0)
            return RP_WHATIF_SAY(why, CANNOT,
                                 "sizes of gradients are not recorded: %s records them",
                                 rp_sim_shapes_option(first));
    for (size_t rank = 1; rank < run->nranks; rank++)
        if (run->parts[rank]->gradients.n != first->gradients.n)
            return RP_WHATIF_SAY(why, CANNOT, "rank %zu has %zu gradients, the first rank %zu",
                                 rank, run->parts[rank]->gradients.n, first->gradients.n);
    return RP_WHATIF_APPLIES;
}

/* Fits the transport without a lean, because what the model lacks is found with the recorded
   transport. */
static enum rp_code fit_plainly(struct rp_sim_run *run, struct rp_transport *out,
                                struct rp_err *err)
{
    enum rp_sim_lean lean = run->lean;

    run->lean = RP_LEAN_NONE;
    enum rp_code code = rp_transport_fit(run, out, err);
    run->lean = lean;
    return code;
}

enum rp_code rp_sim_bucket_costs(const struct rp_sim_run *run, struct rp_sim_bucket_costs *out,
                                 struct rp_err *err)
{
    RP_TRY(rp_whatif_check(&rp_whatif_bucket, run, NULL, err));
    RP_TRY(rp_transport_fit(run, &out->transport, err));
    if (!out->transport.n)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "bucket: no all-reduce with a known size was recorded");
    out->to_ns_by_byte = copy_ns_by_byte(run, RP_COPY_TO_HOST);
    out->back_ns_by_byte = copy_ns_by_byte(run, RP_COPY_TO_DEVICE);
    return RP_OK;
}

static enum rp_code bucket_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                 struct rp_err *err)
{
    struct bucket_ctx m = {.run = run, .nsteps = run->parts[0]->nsteps};

    RP_TRY(read_cap(args, &m.cap_bytes, err));
    m.counts = m.cap_bytes ? NULL : args->value;
    if (run->overlay.tasks.n)
        return rp_err_set(err, RP_USAGE, "'%s': give 'bucket' only once", args->text);
    RP_TRY(rp_whatif_check(&rp_whatif_bucket, run, args, err));
    RP_TRY(fit_plainly(run, &m.transport, err));
    if (!m.transport.n)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "bucket: no all-reduce with a known size was recorded");
    m.to_ns_by_byte = copy_ns_by_byte(run, RP_COPY_TO_HOST);
    m.back_ns_by_byte = copy_ns_by_byte(run, RP_COPY_TO_DEVICE);
    m.after = calloc(run->nranks * m.nsteps, sizeof *m.after);
    m.copies = malloc(run->nranks * run->parts[0]->gradients.n * sizeof *m.copies);
    if (m.copies)
        memset(m.copies, 0xff, run->nranks * run->parts[0]->gradients.n * sizeof *m.copies);
    enum rp_code code = m.after && m.copies ? find_kinds(&m, err) : rp_err_nomem(err, "simulating");
    if (code == RP_OK)
        code = find_edges(&m, err);
    if (code == RP_OK)
        code = find_unexplained(&m, err);
    run->leans = RP_LEANS_ANY;
    run->uses_transport = true;
    run->latency_doubt = m.transport.one_size
                             ? "all recorded all-reduces have about the same size, so latency and "
                               "rate of the transport are not known separately"
                             : "the latency of the transport is estimated";
    run->rate_doubt = (double)m.cap_bytes > 2 * m.transport.most_bytes
                          ? "no transfer as large was recorded"
                          : "the rate of the transport differs between runs";
    if (code == RP_OK)
        code = rp_transport_fit(run, &m.transport, err);
    if (code == RP_OK)
        code = make_buckets(&m, err);
    rp_vec_release(&m.transfer);
    rp_vec_release(&m.ways_on);
    rp_vec_release(&m.gone);
    rp_vec_release(&m.cut_edges);
    rp_vec_release(&m.out_edges);
    rp_vec_release(&m.out_from);
    rp_vec_release(&m.out_lags);
    rp_vec_release(&m.back);
    free(m.removed);
    free(m.after);
    free(m.copies);
    return code;
}

const struct rp_whatif rp_whatif_bucket = {
    .name = "bucket",
    .form = "bucket=<MB>MB|<n>,<n>,…",
    .summary = "DistributedDataParallel with bucket_cap_mb of that size, or with so many gradients "
               "in each bucket, in the order in which they become ready",
    .assumes =
        "gradients become ready as recorded, and the transport has the same rate and latency",
    .value = RP_WHATIF_WORD,
    .sums = true,
    .makes_tasks = true,
    .applies = bucket_applies,
    .apply = bucket_apply};
