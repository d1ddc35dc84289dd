/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means over the steps of a job. Operators carry the number of their step; spans and transfers
 * belong to the step of their rank in which they begin. A step that lacks something is left out of
 * the mean of that thing only.
 */
#include "facts/clock_sources.h"
#include "sim/job_means_work.h"

#include <stdlib.h>
#include <string.h>

static uint64_t name_key(const char *name)
{
    return rp_hash_bytes(name, strlen(name));
}

static uint64_t step_key(const char *name, int64_t step)
{
    return rp_hash_join(name_key(name), (uint64_t)step);
}

bool rp_job_group_has(const char *group, int64_t tensor)
{
    const char *at = group;
    char *end;

    for (;;) {
        if (strtoll(at, &end, 10) == tensor && end != at)
            return true;
        if (*end != '+')
            return false;
        at = end + 1;
    }
}

/* ------------------------------------------------------------------ operators */

/* What waits for communication, and what waits for that. */
static enum rp_code find_updates(struct rp_means *m, size_t rank)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    struct rp_means_rank *w = &m->work[rank];
    bool more = true;
    size_t i;

    for (i = 0; i < r->edges.n; i++) {
        if (r->edges.at[i].from_tensor < 0)
            RP_TRY(rp_map_put(&w->in_graph, name_key(r->edges.at[i].from), 1, m->err));
        if (r->edges.at[i].to_tensor < 0)
            RP_TRY(rp_map_put(&w->in_graph, name_key(r->edges.at[i].to), 1, m->err));
    }
    while (more) {
        more = false;
        for (i = 0; i < r->edges.n; i++) {
            const struct rp_job_edge *e = &r->edges.at[i];
            bool source =
                e->from_tensor >= 0 || rp_map_get(&w->updates, name_key(e->from)) != RP_MAP_NONE;

            if (!source || e->to_tensor >= 0 ||
                rp_map_get(&w->updates, name_key(e->to)) != RP_MAP_NONE)
                continue;
            RP_TRY(rp_map_put(&w->updates, name_key(e->to), 1, m->err));
            more = true;
        }
    }
    return RP_OK;
}

static bool in_graph(const struct rp_means_rank *w, const char *name)
{
    return rp_map_get(&w->in_graph, name_key(name)) != RP_MAP_NONE;
}

static enum rp_code index_ops(struct rp_means *m, size_t rank)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    struct rp_means_rank *w = &m->work[rank];
    size_t i;

    for (i = 0; i < r->ops.n; i++) {
        const struct rp_job_op *op = &r->ops.at[i];
        size_t step = (size_t)op->step;

        if (op->step < 0 || op->step > 1000000 || !in_graph(w, op->name))
            continue;
        while (w->step_begin_ns.n <= step) {
            RP_TRY(rp_vec_push(&w->step_begin_ns, INT64_MAX, m->err));
            RP_TRY(rp_vec_push(&w->step_end_ns, INT64_MIN, m->err));
        }
        if (op->begin_ns < w->step_begin_ns.at[step])
            w->step_begin_ns.at[step] = op->begin_ns;
        if (op->begin_ns + op->dur_ns > w->step_end_ns.at[step])
            w->step_end_ns.at[step] = op->begin_ns + op->dur_ns;
        RP_TRY(rp_map_put(&w->op_of, step_key(op->name, op->step), (uint32_t)i, m->err));
    }
    return RP_OK;
}

static const struct rp_job_op *op_in(const struct rp_means *m, size_t rank, const char *name,
                                     size_t step)
{
    uint32_t at = rp_map_get(&m->work[rank].op_of, step_key(name, (int64_t)step));

    return at == RP_MAP_NONE ? NULL : &m->job->ranks[rank].ops.at[at];
}

static int by_begin(const void *pa, const void *pb)
{
    const struct rp_job_op *a = *(const struct rp_job_op *const *)pa;
    const struct rp_job_op *b = *(const struct rp_job_op *const *)pb;

    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* The operators of one step, in order of their starts. */
static enum rp_code step_ops(const struct rp_means *m, size_t rank, size_t step,
                             const struct rp_job_op ***list, size_t *n)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    size_t i;

    *n = 0;
    *list = malloc((r->ops.n + 1) * sizeof **list);
    if (!*list)
        return rp_err_nomem(m->err, "simulating a job");
    for (i = 0; i < r->ops.n; i++)
        if (r->ops.at[i].step == (int64_t)step && in_graph(&m->work[rank], r->ops.at[i].name))
            (*list)[(*n)++] = &r->ops.at[i];
    qsort((void *)*list, *n, sizeof **list, by_begin);
    return RP_OK;
}

/* Adds the durations and gaps of a step to the sums; the first step gives the order. */
static enum rp_code add_step(struct rp_means *m, size_t rank, size_t step, struct rp_map *place,
                             double *counts)
{
    struct rp_mean_rank *mean = &m->out->ranks[rank];
    const struct rp_job_op **list, *before = NULL;
    size_t i, n;
    enum rp_code code;

    RP_TRY(step_ops(m, rank, step, &list, &n));
    code = RP_OK;
    for (i = 0; i < n && code == RP_OK; before = list[i], i++) {
        uint32_t at = rp_map_get(place, name_key(list[i]->name));
        double gap = before ? (double)(list[i]->begin_ns - before->begin_ns - before->dur_ns) : 0;

        if (at == RP_MAP_NONE)
            continue;
        mean->ops.at[at].dur_ns += (double)list[i]->dur_ns;
        mean->ops.at[at].gap_ns += gap > 0 ? gap : 0;
        counts[at]++;
    }
    free((void *)list);
    return code;
}

static enum rp_code list_ops(struct rp_means *m, size_t rank, struct rp_map *place)
{
    struct rp_mean_rank *mean = &m->out->ranks[rank];
    const struct rp_job_op **list;
    enum rp_code code = RP_OK;
    size_t i, n;

    RP_TRY(step_ops(m, rank, 0, &list, &n));
    for (i = 0; i < n && code == RP_OK; i++) {
        struct rp_mean_op op = {.name = list[i]->name};

        op.is_update = rp_map_get(&m->work[rank].updates, name_key(op.name)) != RP_MAP_NONE;
        if (rp_map_get(place, name_key(op.name)) != RP_MAP_NONE)
            continue;
        code = rp_map_put(place, name_key(op.name), (uint32_t)mean->ops.n, m->err);
        if (code == RP_OK)
            code = rp_vec_push(&mean->ops, op, m->err);
    }
    free((void *)list);
    return code;
}

static enum rp_code mean_ops(struct rp_means *m, size_t rank)
{
    struct rp_mean_rank *mean = &m->out->ranks[rank];
    struct rp_map place;
    double *counts = NULL;
    enum rp_code code;
    size_t i;

    rp_map_init(&place);
    code = list_ops(m, rank, &place);
    if (code == RP_OK) {
        counts = calloc(mean->ops.n + 1, sizeof *counts);
        code = counts ? RP_OK : rp_err_nomem(m->err, "simulating a job");
    }
    for (i = 0; code == RP_OK && i < m->out->nsteps; i++)
        code = add_step(m, rank, i, &place, counts);
    for (i = 0; code == RP_OK && i < mean->ops.n; i++) {
        mean->ops.at[i].dur_ns /= counts[i];
        mean->ops.at[i].gap_ns /= counts[i];
    }
    free(counts);
    rp_map_release(&place);
    return code;
}

/* ------------------------------------------------------------------ groups and spans */

static int by_first(const void *pa, const void *pb)
{
    const struct rp_job_transfer *a = *(const struct rp_job_transfer *const *)pa;
    const struct rp_job_transfer *b = *(const struct rp_job_transfer *const *)pb;

    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* The groups in the order in which the first rank runs them. */
static enum rp_code list_groups(struct rp_means *m)
{
    const struct rp_job_rank *r = &m->job->ranks[0];
    const struct rp_job_transfer **sorted = malloc((r->transfers.n + 1) * sizeof *sorted);
    struct rp_map seen;
    enum rp_code code = RP_OK;
    size_t i;

    rp_map_init(&seen);
    m->out->groups = RP_ARENA_NEW(&m->out->arena, const char *, r->transfers.n + 1);
    if (!sorted || !m->out->groups)
        code = rp_err_nomem(m->err, "simulating a job");
    for (i = 0; code == RP_OK && i < r->transfers.n; i++)
        sorted[i] = &r->transfers.at[i];
    if (code == RP_OK)
        qsort((void *)sorted, r->transfers.n, sizeof *sorted, by_first);
    for (i = 0; code == RP_OK && i < r->transfers.n; i++) {
        if (rp_map_get(&seen, name_key(sorted[i]->tensors)) != RP_MAP_NONE)
            continue;
        code = rp_map_put(&seen, name_key(sorted[i]->tensors), 1, m->err);
        m->out->groups[m->out->ngroups++] = sorted[i]->tensors;
    }
    rp_map_release(&seen);
    free((void *)sorted);
    return code;
}

size_t rp_means_step(const struct rp_means_rank *w, int64_t ns)
{
    size_t i;

    for (i = w->step_begin_ns.n; i-- > 0;)
        if (ns >= w->step_begin_ns.at[i])
            return i;
    return SIZE_MAX;
}

/* The span of a phase of a group in a step: that of its first tensor; NULL: none. */
static const struct rp_job_span *span_of(const struct rp_means *m, size_t rank, size_t group,
                                         size_t step, uint8_t phase)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    int64_t tensor = strtoll(m->out->groups[group], NULL, 10);
    size_t i;

    for (i = 0; i < r->spans.n; i++)
        if (r->spans.at[i].phase == phase && r->spans.at[i].tensor == tensor &&
            rp_means_step(&m->work[rank], r->spans.at[i].begin_ns) == step)
            return &r->spans.at[i];
    return NULL;
}

/* When the last gradient of a group is ready on a rank. */
static int64_t ready_ns(const struct rp_means *m, size_t rank, size_t group, size_t step)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    int64_t last = INT64_MIN;
    size_t i;

    for (i = 0; i < r->edges.n; i++) {
        const struct rp_job_edge *e = &r->edges.at[i];
        const struct rp_job_op *op;

        if (e->to_tensor < 0 || !rp_job_group_has(m->out->groups[group], e->to_tensor))
            continue;
        op = op_in(m, rank, e->from, step);
        if (op && op->begin_ns + op->dur_ns > last)
            last = op->begin_ns + op->dur_ns;
    }
    return last;
}

static double span_ns(const struct rp_job_span *s)
{
    return s ? (double)(s->end_ns - s->begin_ns) : 0;
}

/* The last vote of all ranks for a group, on the first rank's clock; INT64_MIN: none. */
static double last_vote(const struct rp_means *m, size_t group, size_t step)
{
    double last = -1e300;
    size_t r;

    for (r = 0; r < m->out->nranks; r++) {
        const struct rp_job_span *s = span_of(m, r, group, step, RP_JOB_SYNC);
        double at = s ? (double)s->begin_ns - m->out->offset_ns[r] : -1e300;

        last = at > last ? at : last;
    }
    return last;
}

struct sums {
    struct rp_mean vote, agree, lag, queue, in, out;
};

static void add_group_step(struct rp_means *m, size_t rank, size_t group, size_t step,
                           double before_ns, double *end_ns, struct sums *s)
{
    const struct rp_job_span *sync = span_of(m, rank, group, step, RP_JOB_SYNC);
    const struct rp_job_span *queue = span_of(m, rank, group, step, RP_JOB_QUEUE);
    const struct rp_job_span *out = span_of(m, rank, group, step, RP_JOB_COPY_OUT);
    const struct rp_job_span *reduce = span_of(m, rank, group, step, RP_JOB_REDUCE);
    int64_t ready = ready_ns(m, rank, group, step);

    if (!sync || !queue || ready == INT64_MIN)
        return;
    rp_mean_count(&s->vote, (double)(sync->begin_ns - ready));
    rp_mean_count(&s->agree,
                  (double)sync->end_ns - m->out->offset_ns[rank] - last_vote(m, group, step));
    before_ns = before_ns > (double)sync->end_ns ? before_ns : (double)sync->end_ns;
    rp_mean_count(&s->lag, (double)queue->begin_ns - before_ns);
    rp_mean_count(&s->queue, span_ns(queue));
    rp_mean_count(&s->in, span_ns(span_of(m, rank, group, step, RP_JOB_COPY_IN)));
    rp_mean_count(&s->out, span_ns(out));
    *end_ns = (double)(out ? out->end_ns : reduce ? reduce->end_ns : queue->end_ns);
}

static enum rp_code mean_groups(struct rp_means *m, size_t rank)
{
    size_t g, s, nsteps = m->out->nsteps;
    double *end = calloc(nsteps + 1, sizeof *end);

    m->out->ranks[rank].groups =
        RP_ARENA_NEW(&m->out->arena, struct rp_mean_group, m->out->ngroups + 1);
    if (!end || !m->out->ranks[rank].groups) {
        free(end);
        return rp_err_nomem(m->err, "simulating a job");
    }
    for (g = 0; g < m->out->ngroups; g++) {
        struct sums x = {0};

        for (s = 0; s < nsteps; s++)
            add_group_step(m, rank, g, s, end[s], &end[s], &x);
        m->out->ranks[rank].groups[g] =
            (struct rp_mean_group){rp_mean_of(&x.vote),  rp_mean_of(&x.agree), rp_mean_of(&x.lag),
                                   rp_mean_of(&x.queue), rp_mean_of(&x.in),    rp_mean_of(&x.out)};
    }
    free(end);
    return RP_OK;
}

/* ------------------------------------------------------------------ clocks */

static enum rp_code find_offsets(struct rp_means *m)
{
    struct rp_clocks clocks;
    size_t r;

    RP_TRY(rp_clocks_of_job(m->job, &m->out->arena, &clocks, m->err));
    for (r = 0; r < m->out->nranks; r++)
        m->out->offset_ns[r] = -(double)clocks.at[r].offset_ns;
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

/* From the first start of any rank to the last end of any, over the steps. */
static void mean_iteration(struct rp_means *m)
{
    struct rp_mean x = {0};
    size_t s, r;

    for (s = 0; s < m->out->nsteps; s++) {
        double first = 1e300, last = -1e300;

        for (r = 0; r < m->out->nranks && s < m->work[r].step_begin_ns.n; r++) {
            double begin = (double)m->work[r].step_begin_ns.at[s] - m->out->offset_ns[r];
            double end = (double)m->work[r].step_end_ns.at[s] - m->out->offset_ns[r];

            first = begin < first ? begin : first;
            last = end > last ? end : last;
        }
        rp_mean_count(&x, last - first);
    }
    m->out->iteration_ns = rp_mean_of(&x);
}

static enum rp_code make(struct rp_means *m)
{
    size_t r, n = m->out->nranks;

    for (r = 0; r < n; r++) {
        RP_TRY(find_updates(m, r));
        RP_TRY(index_ops(m, r));
        if (!r || m->work[r].step_begin_ns.n < m->out->nsteps)
            m->out->nsteps = m->work[r].step_begin_ns.n;
    }
    if (!m->out->nsteps)
        return rp_err_set(m->err, RP_FORMAT,
                          "no step of the job has operators that its graph (dag.gml) knows");
    RP_TRY(list_groups(m));
    RP_TRY(find_offsets(m));
    for (r = 0; r < n; r++) {
        RP_TRY(rp_means_index_transfers(m, r));
        RP_TRY(rp_means_find_duplex(m, r));
    }
    for (r = 0; r < n; r++) {
        RP_TRY(mean_ops(m, r));
        RP_TRY(mean_groups(m, r));
        RP_TRY(rp_means_of_transfers(m, r));
    }
    mean_iteration(m);
    return RP_OK;
}

static void release_work(struct rp_means *m)
{
    size_t r;

    for (r = 0; m->work && r < m->out->nranks; r++) {
        rp_vec_release(&m->work[r].step_begin_ns);
        rp_vec_release(&m->work[r].step_end_ns);
        rp_map_release(&m->work[r].op_of);
        rp_map_release(&m->work[r].transfer_of);
        rp_map_release(&m->work[r].in_graph);
        rp_map_release(&m->work[r].updates);
    }
    free(m->work);
}

enum rp_code rp_job_means_init(struct rp_job_means *out, const struct rp_job *job,
                               struct rp_err *err)
{
    struct rp_means m = {.out = out, .job = job, .err = err};
    enum rp_code code = RP_OK;
    size_t r;

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    out->ranks = calloc(job->nranks + 1, sizeof *out->ranks);
    out->offset_ns = RP_ARENA_NEW(&out->arena, double, job->nranks + 1);
    m.work = calloc(job->nranks + 1, sizeof *m.work);
    if (!out->ranks || !m.work || !out->offset_ns)
        code = rp_err_nomem(err, "simulating a job");
    out->nranks = code == RP_OK ? job->nranks : 0;
    for (r = 0; r < out->nranks; r++) {
        rp_map_init(&m.work[r].op_of);
        rp_map_init(&m.work[r].transfer_of);
        rp_map_init(&m.work[r].in_graph);
        rp_map_init(&m.work[r].updates);
    }
    if (code == RP_OK)
        code = make(&m);
    release_work(&m);
    return code;
}

void rp_job_means_release(struct rp_job_means *m)
{
    size_t r;

    for (r = 0; m->ranks && r < m->nranks; r++) {
        rp_vec_release(&m->ranks[r].ops);
        rp_vec_release(&m->ranks[r].transfers);
    }
    free(m->ranks);
    m->ranks = NULL;
    rp_arena_release(&m->arena);
}
