/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps and operators of a job. Operators carry the number of their step; spans and transfers
 * belong to the step of their rank in which they begin. Only steps that all ranks recorded
 * completely count. Records are sorted once by step; a mean then costs what its steps hold.
 */
#include "job/means.h"
#include "base/each.h"
#include "base/order.h"
#include "facts/times/intervals.h"

#include <math.h>
#include <stdlib.h>

static uint64_t step_key(const char *name, size_t step)
{
    return rp_hash_join(rp_means_name_key(name), step);
}

/* ------------------------------------------------------------------ the graph of operators */

struct out_edge {
    uint64_t from;
    uint32_t edge;
};

RP_ORDER(by_from, struct out_edge, RP_UP(from), RP_UP(edge))

struct update_search {
    const struct rp_job_rank *r;
    struct rp_means_rank *w;
    struct out_edge *ways;
    RP_VEC(uint64_t) todo;
    struct rp_err *err;
};

static enum rp_code mark_update(struct update_search *f, const struct rp_job_edge *e)
{
    uint64_t key = rp_means_name_key(e->to);

    if (e->to_tensor >= 0 || rp_map_get(&f->w->updates, key) != RP_MAP_NONE)
        return RP_OK;
    RP_TRY(rp_map_put(&f->w->updates, key, 1, f->err));
    return rp_vec_push(&f->todo, key, f->err);
}

static enum rp_code walk_graph(struct update_search *f)
{
    for (size_t i = 0; i < f->r->edges.n; i++) {
        const struct rp_job_edge *e = &f->r->edges.at[i];

        f->ways[i] = (struct out_edge){rp_means_name_key(e->from), (uint32_t)i};
        if (e->from_tensor < 0)
            RP_TRY(rp_map_put(&f->w->in_graph, rp_means_name_key(e->from), 1, f->err));
        if (e->to_tensor < 0)
            RP_TRY(rp_map_put(&f->w->in_graph, rp_means_name_key(e->to), 1, f->err));
    }
    rp_sort(f->ways, f->r->edges.n, sizeof *f->ways, by_from);
    for (size_t i = 0; i < f->r->edges.n; i++)
        if (f->r->edges.at[i].from_tensor >= 0)
            RP_TRY(mark_update(f, &f->r->edges.at[i]));
    while (f->todo.n) {
        uint64_t from = f->todo.at[--f->todo.n];
        size_t low;
        RP_LOWER_BOUND(low, f->r->edges.n, f->ways[low].from < from);
        for (; low < f->r->edges.n && f->ways[low].from == from; low++)
            RP_TRY(mark_update(f, &f->r->edges.at[f->ways[low].edge]));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ steps */

RP_ORDER(by_begin, struct rp_means_step, RP_UP(begin_ns))

static bool is_known(const struct rp_means_rank *w, const struct rp_job_op *op)
{
    return op->step >= 0 && rp_map_get(&w->in_graph, rp_means_name_key(op->name)) != RP_MAP_NONE;
}

static enum rp_code collect_steps(struct rp_job_means *m, size_t rank, struct rp_err *err)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    struct rp_means_rank *w = &m->work[rank];
    struct rp_map at = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < r->ops.n; i++) {
        const struct rp_job_op *op = &r->ops.at[i];
        struct rp_means_step fresh = {op->step, INT64_MAX, INT64_MIN, 0, SIZE_MAX}, *s;

        if (!is_known(w, op))
            continue;
        uint32_t known = rp_map_get(&at, (uint64_t)op->step);
        if (known == RP_MAP_NONE) {
            known = (uint32_t)w->steps.n;
            code = rp_map_put(&at, (uint64_t)op->step, known, err);
            if (code == RP_OK)
                code = rp_vec_push(&w->steps, fresh, err);
            if (code != RP_OK)
                break;
        }
        s = &w->steps.at[known];
        s->begin_ns = op->begin_ns < s->begin_ns ? op->begin_ns : s->begin_ns;
        if (rp_ns_sum(op->begin_ns, op->dur_ns) > s->end_ns)
            s->end_ns = rp_ns_sum(op->begin_ns, op->dur_ns);
        s->nops++;
    }
    rp_map_release(&at);
    rp_sort(w->steps.at, w->steps.n, sizeof *w->steps.at, by_begin);
    return code;
}

#define WHOLE 0.9
RP_DECISION(WHOLE, "of the operators of the fullest step", "a step that was cut has fewer",
            "job/a_step_that_was_cut_does_not_count");

static struct rp_means_step *whole_step(const struct rp_means_rank *w, int64_t id)
{
    struct rp_means_step *found = NULL;
    size_t i, most = 0;

    for (i = 0; i < w->steps.n; i++) {
        most = w->steps.at[i].nops > most ? w->steps.at[i].nops : most;
        if (w->steps.at[i].id == id)
            found = &w->steps.at[i];
    }
    return found && (double)found->nops >= WHOLE * (double)most ? found : NULL;
}

static enum rp_code join_steps(struct rp_job_means *m, struct rp_err *err)
{
    struct rp_means_rank *first = &m->work[0];
    size_t i, r, most = 0;

    for (r = 0; r < m->nranks; r++)
        most = m->work[r].steps.n > most ? m->work[r].steps.n : most;
    for (i = 0; i < first->steps.n; i++) {
        bool all = true;

        for (r = 0; r < m->nranks && all; r++)
            all = whole_step(&m->work[r], first->steps.at[i].id) != NULL;
        for (r = 0; r < m->nranks && all; r++) {
            struct rp_means_step *s = whole_step(&m->work[r], first->steps.at[i].id);

            s->at = m->nsteps;
            RP_TRY(rp_vec_push(&m->work[r].common, s, err));
        }
        m->nsteps += all;
    }
    m->left_out = most - m->nsteps;
    for (r = 0; r < m->nranks; r++)
        if (!m->work[r].steps.n)
            return rp_err_set(
                err, RP_FORMAT,
                "rank %zu (%s/%lld) has no step with operators of its graph (dag.gml)", r,
                m->job->ranks[r].host, (long long)m->job->ranks[r].local);
    return m->nsteps ? RP_OK
                     : rp_err_set(err, RP_FORMAT,
                                  "no step of the job was recorded completely by all ranks");
}

size_t rp_means_step(const struct rp_means_rank *w, int64_t ns)
{
    size_t low;

    RP_LOWER_BOUND(low, w->steps.n, w->steps.at[low].begin_ns <= ns);
    return low && ns <= w->steps.at[low - 1].end_ns ? w->steps.at[low - 1].at : SIZE_MAX;
}

/* ------------------------------------------------------------------ operators by step */

RP_ORDER(by_step_begin, struct rp_means_item, RP_UP(step), RP_UP(begin_ns), RP_UP(at))

enum rp_code rp_means_sort(struct rp_job_means *m, struct rp_means_item *items, size_t n,
                           struct rp_means_order *out, struct rp_err *err)
{
    size_t i, s = 0;

    out->at = RP_ARENA_NEW(&m->arena, uint32_t, n + 1);
    out->first = RP_ARENA_NEW(&m->arena, uint32_t, m->nsteps + 1);
    RP_TRY(rp_err_need(out->at && out->first, err, "simulating a job"));
    rp_sort(items, n, sizeof *items, by_step_begin);
    for (i = 0; i < n; i++) {
        out->at[i] = items[i].at;
        while (s <= items[i].step)
            out->first[s++] = (uint32_t)i;
    }
    while (s <= m->nsteps)
        out->first[s++] = (uint32_t)n;
    return RP_OK;
}

static enum rp_code list_ops(struct rp_job_means *m, size_t rank, struct rp_map *step_of,
                             struct rp_means_item *items, struct rp_err *err)
{
    const struct rp_job_rank *r = &m->job->ranks[rank];
    struct rp_means_rank *w = &m->work[rank];
    size_t i, n = 0;

    for (i = 0; i < m->nsteps; i++)
        RP_TRY(rp_map_put(step_of, (uint64_t)w->common.at[i]->id, (uint32_t)i, err));
    for (i = 0; i < r->ops.n; i++) {
        const struct rp_job_op *op = &r->ops.at[i];
        uint32_t step = is_known(w, op) ? rp_map_get(step_of, (uint64_t)op->step) : RP_MAP_NONE;

        if (step == RP_MAP_NONE)
            continue;
        items[n++] = (struct rp_means_item){step, op->begin_ns, (uint32_t)i};
        RP_TRY(rp_map_put(&w->op_of, step_key(op->name, step), (uint32_t)i, err));
    }
    return rp_means_sort(m, items, n, &w->ops, err);
}

static enum rp_code index_ops(struct rp_job_means *m, size_t rank, struct rp_err *err)
{
    RP_FREED struct rp_means_item *items = malloc((m->job->ranks[rank].ops.n + 1) * sizeof *items);
    RP_SCOPED(rp_map_release) struct rp_map step_of = {0};

    return items ? list_ops(m, rank, &step_of, items, err) : rp_err_nomem(err, "simulating a job");
}

const struct rp_job_op *rp_means_op(const struct rp_job_means *m, size_t rank, const char *name,
                                    size_t step)
{
    uint32_t at = rp_map_get(&m->work[rank].op_of, step_key(name, step));

    return at == RP_MAP_NONE ? NULL : &m->job->ranks[rank].ops.at[at];
}

/* ------------------------------------------------------------------ means of operators */

/* Adds the durations and gaps of a step to the sums; the first step gives the list. */
static enum rp_code add_step(struct rp_job_means *m, size_t rank, size_t step, bool lists,
                             struct rp_map *place, struct rp_err *err)
{
    const struct rp_means_rank *w = &m->work[rank];
    struct rp_mean_rank *mean = &m->ranks[rank];
    const struct rp_job_op *before = NULL;

    for (uint32_t i = w->ops.first[step]; i < w->ops.first[step + 1]; i++) {
        const struct rp_job_op *op = &m->job->ranks[rank].ops.at[w->ops.at[i]];
        uint64_t key = rp_means_name_key(op->name);
        uint32_t at = rp_map_get(place, key);
        double gap = before ? (double)rp_ns_between(rp_ns_sum(before->begin_ns, before->dur_ns),
                                                    op->begin_ns)
                            : 0;

        before = op;
        if (at == RP_MAP_NONE && lists) {
            struct rp_mean_op fresh = {.name = op->name,
                                       .is_update = rp_map_get(&w->updates, key) != RP_MAP_NONE};

            at = (uint32_t)mean->ops.n;
            RP_TRY(rp_map_put(place, key, at, err));
            RP_TRY(rp_vec_push(&mean->ops, fresh, err));
        }
        if (at == RP_MAP_NONE)
            continue;
        mean->ops.at[at].dur_ns += (double)op->dur_ns;
        mean->ops.at[at].gap_ns += gap > 0 ? gap : 0;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code find_senders(struct rp_job_means *m, struct rp_err *err)
{
    struct rp_map by_number = {0};
    enum rp_code code = RP_OK;

    for (size_t r = 0; code == RP_OK && r < m->nranks; r++)
        code =
            rp_map_put(&by_number, (uint64_t)(uint32_t)m->job->ranks[r].number, (uint32_t)r, err);
    for (size_t r = 0; r < m->nranks; r++)
        for (size_t i = 0; code == RP_OK && i < m->job->ranks[r].links.n; i++) {
            const struct rp_job_link *l = &m->job->ranks[r].links.at[i];
            uint32_t to = rp_map_get(&by_number, (uint64_t)(uint32_t)l->to);

            if (to != RP_MAP_NONE)
                code = rp_map_put(&m->sender, (uint64_t)to << 32 | (uint32_t)l->channel,
                                  (uint32_t)r, err);
        }
    rp_map_release(&by_number);
    return code;
}

size_t rp_job_sender(const struct rp_job_means *m, size_t rank, int32_t channel)
{
    uint32_t from = rp_map_get(&m->sender, (uint64_t)rank << 32 | (uint32_t)channel);

    return from == RP_MAP_NONE ? SIZE_MAX : from;
}

static enum rp_code index_all(struct rp_job_means *m, struct rp_err *err)
{
    for (size_t r = 0; r < m->nranks; r++) {
        /* Finds the operators that wait for communication, and all that wait for those. */
        struct update_search f = {.r = &m->job->ranks[r], .w = &m->work[r], .err = err};
        f.ways = malloc((f.r->edges.n + 1) * sizeof *f.ways);
        enum rp_code code = f.ways ? walk_graph(&f) : rp_err_nomem(err, "simulating a job");
        free(f.ways);
        rp_vec_release(&f.todo);
        RP_TRY(code);
        RP_TRY(collect_steps(m, r, err));
    }
    RP_TRY(join_steps(m, err));
    RP_TRY(find_senders(m, err));
    for (size_t r = 0; r < m->nranks; r++) {
        RP_TRY(index_ops(m, r, err));
        RP_TRY(rp_means_index_spans(m, r, err));
        RP_TRY(rp_means_index_transfers(m, r, err));
    }

    /* Measures steps from the first start of any rank to the last end of any. */
    double *each = malloc((m->nsteps + 1) * sizeof *each), sum = 0, off = 0;
    RP_TRY(rp_err_need(each, err, "simulating a job"));
    for (size_t s = 0; s < m->nsteps; s++) {
        int64_t first = INT64_MAX, last = INT64_MIN;
        for (size_t r = 0; r < m->nranks; r++) {
            const struct rp_means_step *x = m->work[r].common.at[s];
            first = x->begin_ns < first ? x->begin_ns : first;
            last = x->end_ns > last ? x->end_ns : last;
        }
        each[s] = (double)rp_ns_between(first, last);
        sum += each[s];
    }
    m->iteration_ns = sum / (double)m->nsteps;
    for (size_t s = 0; s < m->nsteps; s++)
        off += fabs(each[s] - m->iteration_ns);
    m->spread_ratio =
        m->nsteps > 1 && m->iteration_ns > 0 ? off / (double)m->nsteps / m->iteration_ns : NAN;
    free(each);
    return RP_OK;
}

enum rp_code rp_job_means_init(struct rp_job_means *out, const struct rp_job *job,
                               struct rp_err *err)
{
    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    out->job = job;
    out->ranks = calloc(job->nranks + 1, sizeof *out->ranks);
    out->work = calloc(job->nranks + 1, sizeof *out->work);
    RP_TRY(rp_err_need(out->ranks && out->work, err, "simulating a job"));
    out->nranks = job->nranks;
    for (size_t r = 0; r < out->nranks; r++) {
        rp_map_init(&out->work[r].op_of);
        rp_map_init(&out->work[r].span_of);
        rp_map_init(&out->work[r].transfer_of);
        rp_map_init(&out->work[r].in_graph);
        rp_map_init(&out->work[r].updates);
    }
    return index_all(out, err);
}

enum rp_code rp_job_means_take(struct rp_job_means *m, size_t first, size_t end, struct rp_err *err)
{
    RP_TRY(rp_means_list_groups(m, first, err));

    /* How much later each rank begins than the first, in the mean. */
    for (size_t r = 0; r < m->nranks; r++)
        m->ranks[r].begin_ns = 0;
    for (size_t s = first; s < end; s++) {
        int64_t least = INT64_MAX;
        for (size_t r = 0; r < m->nranks; r++)
            if (m->work[r].common.at[s]->begin_ns < least)
                least = m->work[r].common.at[s]->begin_ns;
        for (size_t r = 0; r < m->nranks; r++)
            m->ranks[r].begin_ns +=
                (double)rp_ns_between(least, m->work[r].common.at[s]->begin_ns) /
                (double)(end - first);
    }
    for (size_t r = 0; r < m->nranks; r++) {
        /* The means of the operators over these steps. */
        struct rp_mean_rank *mean = &m->ranks[r];
        struct rp_map place = {0};
        enum rp_code code = RP_OK;
        mean->ops.n = 0;
        for (size_t s = first; code == RP_OK && s < end; s++)
            code = add_step(m, r, s, s == first, &place, err);
        for (size_t i = 0; i < mean->ops.n; i++) {
            mean->ops.at[i].dur_ns /= (double)(end - first);
            mean->ops.at[i].gap_ns /= (double)(end - first);
        }
        rp_map_release(&place);
        RP_TRY(code);
    }
    if (m->job->has_servers)
        return RP_OK;
    RP_TRY(rp_means_of_groups(m, first, end, err));
    for (size_t r = 0; r < m->nranks; r++)
        RP_TRY(rp_means_of_transfers(m, r, first, end, err));
    return RP_OK;
}

void rp_job_means_release(struct rp_job_means *m)
{
    for (size_t r = 0; r < m->nranks; r++) {
        struct rp_means_rank *w = &m->work[r];

        RP_EACH(rp_vec_release, &m->ranks[r].ops, &m->ranks[r].transfers, &w->steps, &w->common);
        RP_EACH(rp_map_release, &w->op_of, &w->span_of, &w->transfer_of, &w->in_graph, &w->updates);
    }
    RP_EACH(free, m->ranks, m->work);
    m->ranks = NULL;
    m->work = NULL;
    m->nranks = 0;
    RP_EACH(rp_map_release, &m->sender, &m->group_of);
    rp_arena_release(&m->arena);
}
