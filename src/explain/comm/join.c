/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meetings become rows. Why a rank came last is told by comparing what it did since its previous
 * collective with the median of the ranks it met: more compute, more copies, more idle time, or a
 * later end of that previous collective. The largest difference is the cause.
 */
#include "explain/comm/comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct joiner {
    const struct rp_comm_input *in;
    size_t n;
    struct rp_arena *arena;
    struct rp_comm_root *out;
    struct rp_rendezvous_list meetings;
    int64_t *scratch; /* one a rank, for medians */
    bool failed;
};

static const char *copied(struct joiner *j, const char *text)
{
    const char *copy = text ? rp_arena_strdup(j->arena, text) : NULL;

    j->failed |= text && !copy;
    return copy;
}

static const struct rp_collective *collective_of(const struct joiner *j,
                                                 const struct rp_rendezvous *m, uint32_t i)
{
    return &j->in[m->rank[i]].part->comm.list.at[m->at[i]];
}

static const struct rp_comm_lead *lead_of(const struct joiner *j, const struct rp_rendezvous *m,
                                          uint32_t i)
{
    return &j->in[m->rank[i]].part->leads[m->at[i]];
}

/* What is compared between the ranks of a meeting. */
enum part { COMPUTE, COPIES, IDLE, PREVIOUS, PARTS };

static int64_t part_of(const struct joiner *j, const struct rp_rendezvous *m, uint32_t i, int part)
{
    const struct rp_comm_lead *lead = lead_of(j, m, i);

    switch (part) {
    case COMPUTE:
        return lead->compute_ns;
    case COPIES:
        return lead->copy_ns;
    case IDLE:
        return lead->idle_ns;
    default:
        return rp_ns_sum(lead->since_ns, j->meetings.offset_ns[m->rank[i]]);
    }
}

static int by_value(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;

    return (*a > *b) - (*a < *b);
}

/* By how much the last rank is above the median of all. */
static int64_t excess(struct joiner *j, const struct rp_rendezvous *m, int part)
{
    uint32_t i;

    for (i = 0; i < m->n; i++)
        j->scratch[i] = part_of(j, m, i, part);
    qsort(j->scratch, m->n, sizeof *j->scratch, by_value);
    return rp_ns_between(j->scratch[(m->n - 1) / 2], part_of(j, m, m->last, part));
}

static void find_cause(struct joiner *j, const struct rp_rendezvous *m,
                       struct rp_comm_collective *row)
{
    const struct rp_comm_lead *lead = lead_of(j, m, m->last);
    int part, best = COMPUTE;
    int64_t most = 0;

    for (part = 0; part < PARTS; part++) {
        int64_t ns = excess(j, m, part);

        if (ns > most) {
            most = ns;
            best = part;
        }
    }
    row->cause_ns = most;
    if (most <= 0)
        return;
    switch (best) {
    case IDLE:
        row->cause = lead->idle ? lead->idle : "host";
        row->evidence = copied(j, lead->evidence);
        break;
    case PREVIOUS:
        row->cause = m->at[m->last] > 0 ? "previous" : "start";
        if (m->at[m->last] > 0)
            row->evidence =
                copied(j, j->in[m->rank[m->last]].part->comm.list.at[m->at[m->last] - 1].name);
        break;
    default:
        row->cause = best == COMPUTE ? "compute" : "copy";
        row->evidence = copied(j, lead->kernel);
    }
}

/* Durations, overlap and waiting of all ranks of a meeting. */
static void add_members(struct joiner *j, const struct rp_rendezvous *m,
                        struct rp_comm_collective *row)
{
    int64_t sent = 0, most = 0, dur;
    bool known = true;
    uint32_t i;

    for (i = 0; i < m->n; i++) {
        const struct rp_collective *c = collective_of(j, m, i);
        int64_t begin = rp_ns_sum(c->begin_ns, j->meetings.offset_ns[m->rank[i]]);
        int64_t size = rp_collective_size(c, row->rank_count);

        dur = rp_ns_between(c->begin_ns, c->end_ns);
        row->min_dur_ns = i == 0 || dur < row->min_dur_ns ? dur : row->min_dur_ns;
        row->max_dur_ns = i == 0 || dur > row->max_dur_ns ? dur : row->max_dur_ns;
        row->size_bytes = size > row->size_bytes ? size : row->size_bytes;
        rp_ns_add(&row->wait_ns, rp_ns_between(begin, m->last_ns));
        rp_ns_add(&row->dur_ns, dur);
        rp_ns_add(&row->overlap_ns, lead_of(j, m, i)->overlap_ns);
        known = known && c->in_bytes >= 0;
        rp_ns_add(&sent, c->in_bytes);
        most = c->in_bytes > most ? c->in_bytes : most;
    }
    if (known && sent > 0 && collective_of(j, m, 0)->kind == RP_COLL_ALL_TO_ALL)
        row->imbalance_ratio = (double)most * (double)m->n / (double)sent - 1;
}

static void set_bandwidth(struct rp_comm_collective *row, enum rp_coll_kind kind, int64_t ns)
{
    double factor = rp_coll_bus_factor(kind, row->rank_count);

    row->algorithm_bytes_per_s = row->bus_bytes_per_s = NAN;
    if (row->size_bytes <= 0)
        row->size_bytes = RP_ABSENT_I64;
    else if (ns > 0)
        row->algorithm_bytes_per_s = (double)row->size_bytes * 1e9 / (double)ns;
    if (factor > 0)
        row->bus_bytes_per_s = row->algorithm_bytes_per_s * factor;
}

static struct rp_comm_collective row_of(struct joiner *j, const struct rp_collective *c)
{
    return (struct rp_comm_collective){.name = copied(j, c->name),
                                       .kind = rp_coll_kind_names[c->kind],
                                       .group = copied(j, c->group),
                                       .dtype = c->dtype,
                                       .seq = c->seq >= 0 ? c->seq : RP_ABSENT_I64,
                                       .stream = c->stream,
                                       .index = c->index,
                                       .imbalance_ratio = NAN};
}

/* How many ranks take part, with those that were not given: all where groups are not known. */
static int64_t members(const struct joiner *j, const struct rp_rendezvous *m,
                       const struct rp_collective *c)
{
    int64_t n = c->group_size;

    if (!n && j->meetings.rule != RP_RENDEZVOUS_BY_SEQUENCE &&
        j->meetings.rule != RP_RENDEZVOUS_BY_GROUP)
        n = j->in[m->rank[0]].part->world_size;
    return n > (int64_t)m->n ? n : (int64_t)m->n;
}

static void add_meeting(struct joiner *j, const struct rp_rendezvous *m)
{
    const struct rp_collective *c = collective_of(j, m, 0);
    struct rp_comm_collective *row = &j->out->collectives[j->out->ncollectives++];

    *row = row_of(j, c);
    row->rank_count = members(j, m, c);
    row->begin_ns = m->first_ns;
    row->skew_ns = rp_ns_between(m->first_ns, m->last_ns);
    row->last_rank = j->in[m->rank[m->last]].number;
    row->margin_ns = rp_ns_between(m->second_ns, m->last_ns);
    row->transfer_ns = rp_ns_between(m->last_ns, m->end_ns);
    row->end_spread_ns = rp_ns_between(m->first_end_ns, m->end_ns);
    add_members(j, m, row);
    set_bandwidth(row, c->kind, row->transfer_ns);
    find_cause(j, m, row);
    rp_ns_add(&j->out->margin_ns, row->margin_ns);
}

/* What the meeting means for each of its ranks. */
static void count_meeting(struct joiner *j, const struct rp_rendezvous *m)
{
    uint32_t i;

    for (i = 0; i < m->n; i++) {
        struct rp_comm_rank *rank = &j->out->ranks[m->rank[i]];
        const struct rp_collective *c = collective_of(j, m, i);
        int64_t last = rp_ns_between(j->meetings.offset_ns[m->rank[i]], m->last_ns);

        rp_ns_add(&rank->wait_ns, rp_ns_between(c->begin_ns, last));
        rp_ns_add(&rank->transfer_ns, rp_ns_between(last, c->end_ns));
    }
    j->out->ranks[m->rank[m->last]].last_count++;
    rp_ns_add(&j->out->ranks[m->rank[m->last]].margin_ns, rp_ns_between(m->second_ns, m->last_ns));
}

/* A collective that was seen on one rank only: waiting and transfer cannot be told apart. */
static void add_alone(struct joiner *j, size_t r, size_t i)
{
    const struct rp_comm_part *p = j->in[r].part;
    const struct rp_collective *c = &p->comm.list.at[i];
    struct rp_comm_collective *row = &j->out->collectives[j->out->ncollectives++];

    *row = row_of(j, c);
    row->rank_count = c->group_size ? c->group_size : p->world_size;
    row->begin_ns = rp_ns_sum(c->begin_ns, j->meetings.offset_ns[r]);
    row->skew_ns = row->last_rank = row->margin_ns = RP_ABSENT_I64;
    row->transfer_ns = row->end_spread_ns = row->cause_ns = RP_ABSENT_I64;
    row->dur_ns = row->min_dur_ns = row->max_dur_ns = rp_ns_between(c->begin_ns, c->end_ns);
    row->overlap_ns = p->leads[i].overlap_ns;
    row->size_bytes = rp_collective_size(c, row->rank_count);
    set_bandwidth(row, c->kind, row->max_dur_ns);
}

static void add_collectives(struct joiner *j)
{
    size_t i, r, total = 0;

    for (r = 0; r < j->n; r++)
        total += j->in[r].part->comm.list.n;
    j->out->collective_count = (int64_t)total;
    j->out->collectives = RP_ARENA_NEW(j->arena, struct rp_comm_collective, total + 1);
    j->failed |= !j->out->collectives;
    for (i = 0; i < j->meetings.n && !j->failed; i++) {
        add_meeting(j, &j->meetings.at[i]);
        count_meeting(j, &j->meetings.at[i]);
    }
    for (r = 0; r < j->n && !j->meetings.n; r++)
        for (i = 0; i < j->in[r].part->comm.list.n && !j->failed; i++)
            add_alone(j, r, i);
}

#define MOST_CAUSES (RP_GAP_CAUSES + PARTS + 1)

/* What one cause cost the others. */
struct blame {
    const char *cause, *evidence; /* evidence: of the collective with most of it */
    int64_t total_ns, longest_ns;
};

static struct blame *blame_of(struct blame *blames, size_t *n, const char *cause)
{
    size_t i;

    for (i = 0; i < *n && strcmp(blames[i].cause, cause) != 0; i++)
        ;
    if (i == *n)
        blames[(*n)++] = (struct blame){.cause = cause, .longest_ns = -1};
    return &blames[i];
}

/* Of the collectives a rank was last in, the cause with most of the margin. */
static void add_cause(struct joiner *j, struct rp_comm_rank *rank)
{
    struct blame blames[MOST_CAUSES];
    size_t i, n = 0, best = 0;

    for (i = 0; i < j->out->ncollectives; i++) {
        const struct rp_comm_collective *row = &j->out->collectives[i];
        struct blame *b;

        if (row->last_rank != rank->rank || !row->cause)
            continue;
        b = blame_of(blames, &n, row->cause);
        rp_ns_add(&b->total_ns, row->margin_ns);
        if (row->margin_ns > b->longest_ns) {
            b->longest_ns = row->margin_ns;
            b->evidence = row->evidence;
        }
    }
    for (i = 1; i < n; i++)
        best = blames[i].total_ns > blames[best].total_ns ? i : best;
    if (!n)
        return;
    rank->cause = blames[best].cause;
    rank->evidence = blames[best].evidence;
    rank->cause_ns = blames[best].total_ns;
}

static void start_ranks(struct joiner *j)
{
    bool met = j->meetings.n > 0;
    size_t r;

    j->out->ranks = RP_ARENA_NEW(j->arena, struct rp_comm_rank, j->n + 1);
    j->failed |= !j->out->ranks;
    for (r = 0; r < j->n && !j->failed; r++) {
        const struct rp_comm_part *p = j->in[r].part;

        j->out->ranks[r] = (struct rp_comm_rank){
            .path = copied(j, j->in[r].path),
            .rank = j->in[r].number,
            .collective_count = (int64_t)p->comm.list.n,
            .wait_ns = met ? 0 : RP_ABSENT_I64,
            .transfer_ns = met ? 0 : RP_ABSENT_I64,
            .last_count = met ? 0 : RP_ABSENT_I64,
            .margin_ns = met ? 0 : RP_ABSENT_I64,
            .cause_ns = met ? 0 : RP_ABSENT_I64,
            .comm_ns = p->comm_ns,
            .overlap_ns = p->overlap_ns,
            .overlap_share = p->comm_ns > 0 ? (double)p->overlap_ns / (double)p->comm_ns : NAN};
    }
    j->out->nranks = j->n;
}

static enum rp_code match(struct joiner *j, struct rp_err *err)
{
    const struct rp_collectives **lists =
        RP_ARENA_NEW(j->arena, const struct rp_collectives *, j->n + 1);
    size_t r;

    j->scratch = RP_ARENA_NEW(j->arena, int64_t, j->n + 1);
    if (!lists || !j->scratch)
        return rp_err_nomem(err, "matching collectives");
    for (r = 0; r < j->n; r++)
        lists[r] = &j->in[r].part->comm;
    return rp_rendezvous_find(lists, j->n, j->arena, &j->meetings, err);
}

enum rp_code rp_comm_join(const struct rp_comm_input *ranks, size_t n, size_t limit,
                          struct rp_arena *arena, struct rp_comm_root *out, struct rp_err *err)
{
    struct joiner j = {.in = ranks, .n = n, .arena = arena, .out = out};
    size_t r;

    *out = (struct rp_comm_root){0};
    RP_TRY(match(&j, err));
    out->matched_by = rp_rendezvous_rule_names[j.meetings.rule];
    out->matched_count = (int64_t)j.meetings.n;
    out->unmatched_count = (int64_t)j.meetings.nlost;
    out->clocks_differ = j.meetings.clocks_differ;
    start_ranks(&j);
    if (!j.failed)
        add_collectives(&j);
    for (r = 0; r < n && !j.failed && j.meetings.n; r++)
        add_cause(&j, &out->ranks[r]);
    if (j.failed)
        return rp_err_nomem(err, "matching collectives");
    RP_TRY(rp_comm_join_transfers(ranks, n, limit, arena, out, err));
    RP_TRY(rp_comm_add_sizes(out, arena, err));
    return rp_comm_add_texts(out, limit, arena, err);
}
