/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes bubbles of a pipeline by stage and micro-batch (facts/ranks/rendezvous_stages.c finds
 * the stages). The k-th message from the stage before is the forward of a micro-batch, the k-th
 * from the stage after it the backward. A stage's receive waits until its sender comes, minus the
 * time that overlaps its own compute. A step ends when the first stage has got back as many
 * messages as it has sent, which is its number of micro-batches. With several chunks of the model
 * on a stage, each chunk counts.
 */
#include "explain/comm/comm.h"

#include "base/order.h"
#include "result/print_units.h"

#include <math.h>
#include <stdlib.h>

#define STAGE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_stage, member, type, unit, title, doc, flags)

static const struct rp_field stage_fields[] = {
    STAGE(pipeline, I64, NONE, NULL, "number of the pipeline, from 0", 0),
    STAGE(stage, I64, NONE, "stage", "place in the pipeline, from 0", 0),
    STAGE(rank, I64, NONE, "rank", "its rank", 0),
    STAGE(step_count, I64, COUNT, "steps", "how often the pipeline ran full and empty", RP_WIDE),
    STAGE(micro_batch_count, I64, COUNT, "micro-batches",
          "largest number of micro-batches in a step", 0),
    STAGE(compute_ns, I64, NS, "compute", "time in which it computes", 0),
    STAGE(forward_wait_ns, I64, NS, "waited forward",
          "how long it waited for the stage before it, less what overlaps compute", 0),
    STAGE(backward_wait_ns, I64, NS, "backward",
          "how long it waited for the stage after it, less what overlaps compute", 0),
    STAGE(first_wait_ns, I64, NS, "first", "the part of it for the first micro-batch of each step",
          0),
    STAGE(span_ns, I64, NS, NULL, "span of the whole pipeline, from its first compute to its last",
          0),
    STAGE(wait_share, F64, RATIO, "waiting", "forward and backward / span", 0),
    RP_FIELD_END};
const struct rp_type rp_comm_stage_type = {"stage", sizeof(struct rp_comm_stage), stage_fields,
                                           NULL};

#define BATCH(member, type, unit, doc) \
    RP_FIELD(struct rp_comm_micro_batch, member, type, unit, NULL, doc, 0)

static const struct rp_field micro_batch_fields[] = {
    BATCH(pipeline, I64, NONE, "number of the pipeline, from 0"),
    BATCH(stage, I64, NONE, "place in the pipeline, from 0"),
    BATCH(rank, I64, NONE, "its rank"),
    BATCH(micro_batch, I64, NONE, "number of the micro-batch in its step, from 0"),
    BATCH(forward_wait_ns, I64, NS, "how long it waited for the stage before it"),
    BATCH(backward_wait_ns, I64, NS, "how long it waited for the stage after it"),
    RP_FIELD_END};
const struct rp_type rp_comm_micro_batch_type = {"micro_batch", sizeof(struct rp_comm_micro_batch),
                                                 micro_batch_fields, NULL};

/* received: a message to a stage from the stage before or after it. */
struct received {
    uint32_t rank, back, at;
    int64_t wait_ns, end_ns,
        sent_ns; /* times on the clock of the first rank; sent_ns: when it was sent */
};

RP_ORDER(by_stage, struct received, RP_UP(rank), RP_UP(back), RP_UP(at), RP_UP(end_ns))

struct stages {
    const struct rp_rendezvous_list *list;
    const struct rp_collectives *const *lists;
    const struct rp_comm_lane *const *lanes;
    const int64_t *numbers;
    size_t n;
    struct rp_arena *arena;
    struct rp_comm_root *out;
    RP_VEC(struct received) got;
    RP_VEC(int64_t) steps; /* for the current pipeline: the micro-batches of each step */
    int64_t most;          /* of them */
    RP_VEC(struct rp_comm_micro_batch) batches;
};

static const struct rp_collective *operation(const struct stages *s, const struct rp_rendezvous *m,
                                             uint32_t i)
{
    return &s->lists[m->rank[i]]->list.at[m->at[i]];
}

static int64_t common(const struct stages *s, uint32_t rank, int64_t ns)
{
    return rp_clock_time(&s->list->clocks[rank], ns);
}

static enum rp_code list_received(struct stages *s, struct rp_err *err)
{
    for (size_t k = 0; k < s->list->n; k++) {
        const struct rp_rendezvous *m = &s->list->at[k];

        for (uint32_t i = 0; i < 2 && m->senders; i++) {
            uint32_t r = m->rank[i], from = m->rank[!i];
            const struct rp_pipe_stage *stage = &s->list->stages[r];
            int64_t wait = rp_rendezvous_wait(s->list, s->lists, m, i);
            int64_t hidden = s->lanes[r]->leads[m->at[i]].overlap_ns;
            struct received x = {r, stage->next == from, m->at[i], 0, 0, 0};

            if (!(m->senders & 1U << !i) || (stage->next != from && stage->before != from))
                continue;
            x.wait_ns = wait > hidden ? rp_ns_between(hidden, wait) : 0;
            x.end_ns = common(s, r, operation(s, m, i)->end_ns);
            x.sent_ns = common(s, from, operation(s, m, !i)->begin_ns);
            RP_TRY(rp_vec_push(&s->got, x, err));
        }
    }
    rp_sort(s->got.at, s->got.n, sizeof *s->got.at, by_stage);
    return RP_OK;
}

/* The messages that a rank received from one side. */
static const struct received *received_by(const struct stages *s, uint32_t rank, bool back,
                                          size_t *n)
{
    size_t first, end;

    RP_LOWER_BOUND(first, s->got.n,
                   s->got.at[first].rank < rank ||
                       (s->got.at[first].rank == rank && s->got.at[first].back < back));
    for (end = first; end < s->got.n && s->got.at[end].rank == rank && s->got.at[end].back == back;)
        end++;
    *n = end - first;
    return s->got.at + first;
}

static void add_waits(struct stages *s, const struct received *got, size_t n, bool back,
                      struct rp_comm_stage *row, struct rp_comm_micro_batch *batches)
{
    size_t i, step = 0;
    int64_t number = 0;

    for (i = 0; i < n; i++, number++) {
        if (step < s->steps.n && number == s->steps.at[step]) {
            step++;
            number = 0;
        }
        rp_ns_add(back ? &row->backward_wait_ns : &row->forward_wait_ns, got[i].wait_ns);
        if (!number)
            rp_ns_add(&row->first_wait_ns, got[i].wait_ns);
        if (number < s->most)
            rp_ns_add(back ? &batches[number].backward_wait_ns : &batches[number].forward_wait_ns,
                      got[i].wait_ns);
    }
}

static enum rp_code add_stage(struct stages *s, uint32_t r, struct rp_err *err)
{
    const struct rp_pipe_stage *stage = &s->list->stages[r];
    struct rp_comm_stage *row = &s->out->stages[s->out->nstages++];
    size_t n, first = s->batches.n;

    *row = (struct rp_comm_stage){.pipeline = stage->pipeline,
                                  .stage = stage->stage,
                                  .rank = s->numbers[r],
                                  .step_count = (int64_t)s->steps.n,
                                  .micro_batch_count = s->most,
                                  .compute_ns = s->lanes[r]->compute_ns};
    for (int64_t i = 0; i < s->most; i++) {
        struct rp_comm_micro_batch one = {.pipeline = stage->pipeline,
                                          .stage = stage->stage,
                                          .rank = row->rank,
                                          .micro_batch = i};

        RP_TRY(rp_vec_push(&s->batches, one, err));
    }
    const struct received *got = received_by(s, r, false, &n);
    add_waits(s, got, n, false, row, s->batches.at + first);
    got = received_by(s, r, true, &n);
    add_waits(s, got, n, true, row, s->batches.at + first);
    return RP_OK;
}

/* Time from the first compute of any stage to the last. */
static int64_t span_of(const struct stages *s, uint32_t first)
{
    int64_t begin = INT64_MAX, end = INT64_MIN, at;
    uint32_t r = first;

    do {
        const struct rp_comm_lane *lane = s->lanes[r];

        at = lane->begin_ns == RP_NO_TS ? begin : common(s, r, lane->begin_ns);
        begin = at < begin ? at : begin;
        at = lane->end_ns == RP_NO_TS ? end : common(s, r, lane->end_ns);
        end = at > end ? at : end;
        r = s->list->stages[r].next;
    } while (r != RP_NONE && r != first);
    return begin < end ? rp_ns_between(begin, end) : 0;
}

static enum rp_code add_pipeline(struct stages *s, uint32_t first, struct rp_err *err)
{
    size_t from = s->out->nstages;
    int64_t span = span_of(s, first);
    uint32_t r = first;

    /* Find the steps of the pipeline that begins with a rank: the next rank receives what it sends
       forward, and the pipeline is empty again when it has received as much. */
    size_t nsent, nback, i, k = 0;
    const struct received *sent = received_by(s, s->list->stages[first].next, false, &nsent);
    const struct received *back = received_by(s, first, true, &nback);
    int64_t batches = 0;
    s->steps.n = 0;
    s->most = 0;
    for (i = 0; i < nsent; i++) {
        while (k < i && k < nback && back[k].end_ns <= sent[i].sent_ns)
            k++;
        if (k == i && i) { /* the pipeline is empty before this one is sent */
            RP_TRY(rp_vec_push(&s->steps, batches, err));
            batches = 0;
        }
        batches++;
        s->most = batches > s->most ? batches : s->most;
    }
    if (batches)
        RP_TRY(rp_vec_push(&s->steps, batches, err));

    do {
        RP_TRY(add_stage(s, r, err));
        r = s->list->stages[r].next;
    } while (r != RP_NONE && r != first);
    for (; from < s->out->nstages; from++) {
        struct rp_comm_stage *row = &s->out->stages[from];
        int64_t wait = rp_ns_sum(row->forward_wait_ns, row->backward_wait_ns);

        row->span_ns = span;
        row->wait_share = span > 0 ? (double)wait / (double)span : NAN;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ the sentence */

RP_ORDER(by_compute, struct rp_comm_stage, RP_UP(compute_ns), RP_UP(rank))

/* "; stage 2 (rank 5) computes 40 % longer than the median stage", or "". */
static const char *slowest_text(const struct stages *s)
{
    struct rp_comm_stage *rows = s->out->stage_rows;
    const struct rp_comm_stage *last = &rows[s->out->nstages - 1];

    qsort(rows, s->out->nstages, sizeof *rows, by_compute);
    int64_t median = rows[(s->out->nstages - 1) / 2].compute_ns;
    if (median <= 0 || (double)last->compute_ns < (1 + RP_COMM_UNEVEN) * (double)median)
        return "";
    return rp_arena_textf(s->arena,
                          "; stage %lld (rank %lld) computes %.0f %% longer than the median stage, "
                          "and the others wait for it: move layers to them",
                          (long long)last->stage, (long long)last->rank,
                          100.0 * ((double)last->compute_ns / (double)median - 1));
}

RP_ORDER(by_wait, struct rp_comm_stage,
         RP_COMPARE(b->forward_wait_ns + b->backward_wait_ns,
                    a->forward_wait_ns + a->backward_wait_ns),
         RP_UP(pipeline), RP_UP(stage))
RP_ORDER(by_place, struct rp_comm_stage, RP_UP(pipeline), RP_UP(stage))

static void write_text(struct stages *s, size_t limit)
{
    struct rp_comm_root *out = s->out;
    double wait = 0, span = 0;
    int64_t depth = 0, most = 0;

    out->stage_rows = RP_ARENA_NEW(s->arena, struct rp_comm_stage, out->nstages + 1);
    if (!out->stage_rows)
        return;
    for (size_t i = 0; i < out->nstages; i++) {
        const struct rp_comm_stage *row = out->stage_rows + i;

        out->stage_rows[i] = out->stages[i];
        wait += (double)row->forward_wait_ns + (double)row->backward_wait_ns;
        span += (double)row->span_ns;
        depth = row->stage + 1 > depth ? row->stage + 1 : depth;
        most = row->micro_batch_count > most ? row->micro_batch_count : most;
    }
    const char *slowest = slowest_text(s);
    out->pipeline_text = rp_arena_textf(
        s->arena,
        "%s, %s a step: the stages wait for each other %.0f %% of the time; even stages that never "
        "wait otherwise would %.0f %%, (stages - 1) / (micro-batches + stages - 1)%s",
        rp_units_count(s->arena, depth, "stage"), rp_units_count(s->arena, most, "micro-batch"),
        span > 0 ? 100 * wait / span : 0.0,
        100.0 * (double)(depth - 1) / (double)(most + depth - 1), slowest);
    qsort(out->stage_rows, out->nstages, sizeof *out->stage_rows, by_wait);
    out->nstage_rows = out->nstages < limit ? out->nstages : limit;
    qsort(out->stage_rows, out->nstage_rows, sizeof *out->stage_rows, by_place);
}

static enum rp_code add_all(struct stages *s, struct rp_err *err)
{
    RP_TRY(list_received(s, err));
    s->out->stages = RP_ARENA_NEW(s->arena, struct rp_comm_stage, s->n + 1);
    RP_TRY(rp_arena_check(s->arena, "finding stages", err));
    for (uint32_t r = 0; r < s->n; r++)
        if (s->list->stages[r].stage == 0)
            RP_TRY(add_pipeline(s, r, err));
    return RP_OK;
}

enum rp_code rp_comm_add_stages(const struct rp_rendezvous_list *list,
                                const struct rp_collectives *const *lists,
                                const struct rp_comm_lane *const *lanes, const int64_t *numbers,
                                size_t n, size_t limit, struct rp_arena *arena,
                                struct rp_comm_root *out, struct rp_err *err)
{
    struct stages s = {.list = list,
                       .lists = lists,
                       .lanes = lanes,
                       .numbers = numbers,
                       .n = n,
                       .arena = arena,
                       .out = out};
    enum rp_code code = RP_OK;

    if (!list->n || !list->stages)
        return RP_OK;
    code = add_all(&s, err);
    out->micro_batches = s.batches.at;
    out->nmicro_batches = s.batches.n;
    if (code == RP_OK)
        code = rp_arena_adopt_column(arena, s.batches.at, s.batches.cap, sizeof *s.batches.at, err);
    if (code != RP_OK) {
        rp_vec_release(&s.batches);
        out->micro_batches = NULL;
        out->nmicro_batches = 0;
    } else {
        write_text(&s, limit);
    }
    rp_vec_release(&s.got);
    rp_vec_release(&s.steps);
    return code;
}
