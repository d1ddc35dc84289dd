/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a row of each rendezvous. */
#include "explain/comm/comm.h"

#include "facts/host/trace_host.h"
#include "facts/times/trace_life.h"

#include "base/order.h"
#include "dataset/question.h"
#include "job/pipeline.h"
#include "result/part.h"
#include "result/print_units.h"

#include <math.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ what is kept and shown */

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_rank, member, type, unit, title, doc, flags)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK(host, STR, NONE, NULL, "host on which it ran, or null", 0),
    RANK(device, I64, NONE, "device", "number of the device; null: not recorded, or the host",
         RP_NULLABLE),
    RANK(collective_count, I64, COUNT, NULL, "collectives of the rank", 0),
    RANK(last_count, I64, COUNT, "last", "how often it arrived last", RP_NULLABLE),
    RANK(margin_ns, I64, NS, "delay", "how long it delayed others, no moment counted twice",
         RP_NULLABLE | RP_LARGEST),
    RANK(wait_ns, I64, NS, "waited",
         "how long it waited for other ranks, at most as long as it was inside", RP_NULLABLE),
    RANK(transfer_ns, I64, NS, "transfer", "the rest of its time in matched collectives",
         RP_NULLABLE),
    RANK(comm_ns, I64, NS, "comm", "time in which collectives run", RP_WIDE),
    RANK(overlap_ns, I64, NS, NULL, "overlap of communication and compute", 0),
    RANK(overlap_share, F64, RATIO, "overlap", "overlap / comm", 0),
    RANK(cause, STR, NONE, NULL, "why it arrived last, for most of the margin", 0),
    RANK(cause_ns, I64, NS, NULL, "the margin of that cause", RP_NULLABLE),
    RANK(cause_rank, I64, NONE, NULL, "the rank with this cause; null: the rank itself",
         RP_NULLABLE),
    RANK(evidence, STR, NONE, NULL, "the kernel or host span that caused it, or null", 0),
    RANK(cause_text, STR, NONE, "reason", "text output only", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_comm_rank), rank_fields, NULL};

#define RANK_ROW \
    "rank, last_count, margin_ns, wait_ns, transfer_ns, comm_ns, overlap_share, cause_text"

#define COLL(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_collective, member, type, unit, title, doc, flags)

static const struct rp_field collective_fields[] = {
    COLL(at_ns, I64, NS, "at", "since the first collective", RP_SCREEN),
    COLL(label, STR, NONE, "collective", "kind and size", RP_SCREEN | RP_SHORTEN),
    COLL(name, STR, NONE, NULL, "the kernel, or the span of the host", 0),
    COLL(kind, STR, NONE, NULL, "all_reduce, all_gather …", 0),
    COLL(group, STR, NONE, NULL, "process group, or null", 0),
    COLL(dimension, STR, NONE, NULL, "what its ranks share: tp, pp, dp, cp, ep; null: not known",
         0),
    COLL(seq, I64, NONE, NULL, "number in its group", RP_NULLABLE),
    COLL(stream, I64, NONE, NULL, "index of the communication stream, from 0", 0),
    COLL(index, I64, NONE, NULL, "index in its stream, from 0", 0),
    COLL(place, STR, NONE, NULL, "node: all its ranks are in one; between: nodes; null: not known",
         0),
    COLL(rank_count, I64, COUNT, NULL, "ranks in it", 0),
    RP_FIELD_LIST(struct rp_comm_collective, ranks, &rp_type_int, NULL,
                  "the numbers of those that were given", 0),
    COLL(seen_count, I64, COUNT, NULL, "number of them that were given", 0),
    COLL(size_bytes, I64, BYTES, NULL, "size from which bandwidth is computed", RP_NULLABLE),
    COLL(dtype, STR, NONE, NULL, "type of the elements, or null", 0),
    COLL(algorithm, STR, NONE, NULL,
         "algorithm and protocol of NCCL, such as 'RING LL'; null: not recorded", 0),
    COLL(begin_ns, I64, NS, NULL, "the first start, on the clock of the first rank", 0),
    COLL(skew_ns, I64, NS, NULL, "time from the first start to the last", RP_NULLABLE),
    COLL(last_rank, I64, NONE, "last", "the rank that arrived last, of those given", RP_NULLABLE),
    COLL(last_device, I64, NONE, "device", "its device", RP_NULLABLE),
    COLL(margin_ns, I64, NS, "delay",
         "how much later than the second last it arrived; 0: nobody was waiting for it",
         RP_NULLABLE),
    COLL(wait_ns, I64, NS, NULL, "waiting, added up over the ranks", 0),
    COLL(transfer_ns, I64, NS, NULL, "time without waiting, the longest of a rank", RP_NULLABLE),
    COLL(min_dur_ns, I64, NS, NULL, "the shortest on a rank", 0),
    COLL(max_dur_ns, I64, NS, "longest", "the longest on a rank", 0),
    COLL(end_spread_ns, I64, NS, NULL, "time from the first end to the last", RP_NULLABLE),
    COLL(overlap_ns, I64, NS, NULL, "time that overlaps compute, summed over the ranks", 0),
    COLL(algorithm_bytes_per_s, F64, BPS, NULL, "size / transfer; null: not all ranks were given",
         0),
    COLL(bus_bytes_per_s, F64, BPS, NULL, "the same for the busiest link", 0),
    COLL(imbalance_ratio, F64, RATIO, NULL, "all_to_all: most sent by a rank / mean − 1", 0),
    COLL(cause, STR, NONE, NULL, "why the last rank was late, or null", 0),
    COLL(cause_ns, I64, NS, NULL, "excess over the median rank", RP_NULLABLE),
    COLL(cause_rank, I64, NONE, NULL, "the rank that did it; null: the last one", RP_NULLABLE),
    COLL(evidence, STR, NONE, NULL, "the kernel or host span that caused it, or null", 0),
    COLL(cause_text, STR, NONE, "reason", "text output only", RP_SCREEN | RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type collective_type = {"collective", sizeof(struct rp_comm_collective),
                                               collective_fields, NULL};

#define WORST "at_ns, label, last_rank, margin_ns, max_dur_ns, cause_text"

#define SIZE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_size, member, type, unit, title, doc, flags)

static const struct rp_field size_fields[] = {
    SIZE(kind, STR, NONE, "collective", "all_reduce, all_gather …", 0),
    SIZE(size_bytes, I64, BYTES, "size", "size from which bandwidth is computed", RP_NULLABLE),
    SIZE(rank_count, I64, COUNT, "ranks", "ranks in it", RP_WIDE),
    SIZE(seen_count, I64, COUNT, NULL, "number of them that were given", 0),
    SIZE(place, STR, NONE, "where", "node, between (nodes) or null", RP_WIDE),
    SIZE(algorithm, STR, NONE, "algorithm",
         "algorithm and protocol of NCCL; null: not recorded, or several", RP_WIDE),
    SIZE(count, I64, COUNT, "count", "how many", 0),
    SIZE(wait_ns, I64, NS, "waited", "waiting, added up, mean of the ranks", RP_NULLABLE),
    SIZE(transfer_ns, I64, NS, "transfer",
         "sum; with waiting for ranks that were not given; of a single rank its whole time", 0),
    SIZE(algorithm_bytes_per_s, F64, BPS, "alg. bw", "size / transfer, median", RP_WIDE),
    SIZE(bus_bytes_per_s, F64, BPS, "bus bw", "the same for the busiest link", 0),
    SIZE(link_share, F64, RATIO, "of link", "bus bandwidth / what the busiest link can carry", 0),
    SIZE(overlap_share, F64, RATIO, "overlap", "share of the time that overlaps compute", 0),
    SIZE(imbalance_ratio, F64, RATIO, "imbalance", "all_to_all: largest most sent / mean − 1",
         RP_WIDE),
    RP_FIELD_END};
static const struct rp_type size_type = {"size", sizeof(struct rp_comm_size), size_fields, NULL};

#define TRANSFER(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_transfer, member, type, unit, title, doc, flags)

static const struct rp_field transfer_fields[] = {
    TRANSFER(edge, STR, NONE, "tensor", "the edge of the graph", RP_SHORTEN),
    TRANSFER(from, STR, NONE, "from", "device", RP_SHORTEN),
    TRANSFER(to, STR, NONE, "to", "device", RP_SHORTEN),
    TRANSFER(rank, I64, NONE, NULL, "rank of its trace", 0),
    TRANSFER(size_bytes, I64, BYTES, "size", "size of the tensor", RP_NULLABLE),
    TRANSFER(begin_ns, I64, NS, NULL, "time at which it was requested", 0),
    TRANSFER(wait_ns, I64, NS, "waited", "until it was ready; null: not known", RP_NULLABLE),
    TRANSFER(transfer_ns, I64, NS, "transfer", "time from ready to received", RP_NULLABLE),
    TRANSFER(bytes_per_s, F64, BPS, "speed", "size / transfer", 0),
    RP_FIELD_END};
static const struct rp_type transfer_type = {"transfer", sizeof(struct rp_comm_transfer),
                                             transfer_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(run_text, STR, NONE, "comm", "text output only", RP_SCREEN),
    ROOT(delay_text, STR, NONE, "delay", "text output only", RP_SCREEN),
    ROOT(pipeline_text, STR, NONE, "pipeline",
         "what its stages wait for each other; null: the ranks are not stages", RP_NULLABLE),
    ROOT(check_text, STR, NONE, "check",
         "whether all ranks make the same collectives; null: not asked", RP_NULLABLE),
    RP_FIELD_SHOWN(struct rp_comm_root, check_rows, &rp_comm_check_type, "differences", NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, checks, &rp_comm_check_type, NULL,
                  "what differs between ranks, by time", 0),
    ROOT(matched_by, STR, NONE, NULL, "sequence, group, order, name, time, peer or none", 0),
    ROOT(given_count, I64, COUNT, NULL, "ranks that were given", 0),
    ROOT(world_size, I64, COUNT, NULL, "ranks of the job", 0),
    ROOT(incomplete_count, I64, COUNT, NULL, "collectives with ranks that were not given", 0),
    ROOT(collective_count, I64, COUNT, NULL, "collectives of all ranks, added up", 0),
    ROOT(matched_count, I64, COUNT, NULL, "collectives that were matched across ranks", 0),
    ROOT(start_up_count, I64, COUNT, NULL, "others before the first step, which are not judged", 0),
    ROOT(unmatched_count, I64, COUNT, NULL, "collectives of ranks without a match on another rank",
         0),
    ROOT(margin_ns, I64, NS, NULL, "what the ranks delayed others by, added up", 0),
    ROOT(clocks_differ, BOOL, NONE, NULL, "whether the offset of a clock exceeds its uncertainty",
         0),
    ROOT(uncertainty_ns, I64, NS, NULL, "largest uncertainty of the clocks", 0),
    ROOT(doubtful_count, I64, COUNT, NULL,
         "collectives whose margin is within the uncertainty of the clocks: nobody is blamed", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, rank_rows, &rank_type, "delays by rank", RANK_ROW, 0),
    RP_FIELD_SHOWN(struct rp_comm_root, device_rows, &rank_type, "delays by device", NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, ranks, &rank_type, NULL,
                  "one record per rank, or per device where it has several with collectives", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, alone_rows, &rank_type, "ranks", RANK_ROW, 0),
    RP_FIELD_SHOWN(struct rp_comm_root, host_rows, &rp_comm_host_type, "delays by host", NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, hosts, &rp_comm_host_type, NULL,
                  "by host, where all are known, the latest first", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, link_rows, &rp_comm_link_type, "between hosts", NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, links, &rp_comm_link_type, NULL,
                  "by pair of hosts, the slowest first", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, dimension_rows, &rp_comm_dimension_type, "by dimension",
                   NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, dimensions, &rp_comm_dimension_type, NULL,
                  "by what their ranks share, the longest waiting first", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, group_rows, &rp_comm_group_type, "by group", NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, groups, &rp_comm_group_type, NULL,
                  "by the ranks that take part, the slowest first", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, stage_rows, &rp_comm_stage_type, "stages of the pipeline",
                   NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, stages, &rp_comm_stage_type, NULL,
                  "of pipelines, by pipeline and stage", 0),
    RP_FIELD_LIST(struct rp_comm_root, micro_batches, &rp_comm_micro_batch_type, NULL,
                  "what stages wait for each micro-batch, added up over the steps", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, size_rows, &size_type, "by kind and size", NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, sizes, &size_type, NULL, "collectives added up", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, longest, &collective_type, "longest", WORST, 0),
    RP_FIELD_SHOWN(struct rp_comm_root, worst, &collective_type, "longest delays", WORST, 0),
    RP_FIELD_SHOWN(struct rp_comm_root, worst_devices, &collective_type, "longest delays", NULL, 0),
    RP_FIELD_LIST(struct rp_comm_root, collectives, &collective_type, NULL,
                  "every collective, by time", 0),
    RP_FIELD_SHOWN(struct rp_comm_root, slowest, &transfer_type, "tensors between processes", NULL,
                   0),
    RP_FIELD_LIST(struct rp_comm_root, transfers, &transfer_type, NULL,
                  "tensors between processes, by time", 0),
    RP_FIELD_LIST(struct rp_comm_root, notes, &rp_type_string, "notes", "limits of the recording",
                  0),
    RP_FIELD_END};

static const struct rp_type comm_type = {"comm", sizeof(struct rp_comm_root), root_fields,
                                         "collectives"};

static const struct rp_field lane_fields[] = {
    RP_PART_RECORD(struct rp_comm_lane, comm, &rp_collectives_type),
    RP_PART_LIST(struct rp_comm_lane, leads, &rp_comm_lead_type),
    RP_PART_PLAIN(struct rp_comm_lane, device),
    RP_PART_PLAIN(struct rp_comm_lane, comm_ns),
    RP_PART_PLAIN(struct rp_comm_lane, overlap_ns),
    RP_PART_PLAIN(struct rp_comm_lane, compute_ns),
    RP_PART_PLAIN(struct rp_comm_lane, begin_ns),
    RP_PART_PLAIN(struct rp_comm_lane, end_ns),
    RP_PART_END};
static const struct rp_type lane_type = {"lane", sizeof(struct rp_comm_lane), lane_fields, NULL};

static const struct rp_field part_fields[] = {
    RP_PART_LIST(struct rp_comm_part, lanes, &lane_type),
    RP_PART_LIST(struct rp_comm_part, calls, &rp_comm_call_type),
    RP_PART_PLAIN(struct rp_comm_part, hangs),
    RP_PART_PLAIN(struct rp_comm_part, cut),
    RP_PART_PLAIN(struct rp_comm_part, timeline_ranks),
    RP_PART_PLAIN(struct rp_comm_part, recorder),
    RP_PART_TEXT(struct rp_comm_part, gpu),
    RP_PART_TEXT(struct rp_comm_part, now),
    RP_PART_LIST(struct rp_comm_part, transfers, &transfer_type),
    RP_PART_END};
static const struct rp_type part_type = {"comm_part", sizeof(struct rp_comm_part), part_fields,
                                         NULL};

/* ------------------------------------------------------------------ all ranks */

struct comm_join {
    const struct rp_ranks *ranks;
    size_t n; /* lanes of all ranks that take part */
    const struct rp_comm_lane **lanes;
    size_t *rank_of; /* by lane: the index of its rank */
    struct rp_arena *arena;
    struct rp_comm_root *out;
    const struct rp_collectives **lists;
    struct rp_rendezvous_list all;
    struct rp_late *lates; /* by rendezvous */
    struct rp_topology topology;
};

static const struct rp_comm_lane *lane_of(const struct comm_join *j, size_t r)
{
    return j->lanes[r];
}

static int64_t number_of(const struct comm_join *j, size_t lane)
{
    return j->ranks->parts[j->rank_of[lane]].number;
}

static enum rp_code list_lanes(struct comm_join *j, struct rp_err *err)
{
    size_t r, i;

    for (r = 0; r < j->ranks->n; r++)
        j->n += ((const struct rp_comm_part *)j->ranks->parts[r].data)->nlanes;
    j->lanes = RP_ARENA_NEW(j->arena, const struct rp_comm_lane *, j->n + 1);
    j->rank_of = RP_ARENA_NEW(j->arena, size_t, j->n + 1);
    RP_TRY(rp_arena_check(j->arena, "matching collectives", err));
    for (r = 0, j->n = 0; r < j->ranks->n; r++) {
        const struct rp_comm_part *part = j->ranks->parts[r].data;

        for (i = 0; i < part->nlanes; i++) {
            j->lanes[j->n] = &part->lanes[i];
            j->rank_of[j->n++] = r;
        }
    }
    return RP_OK;
}

static const struct rp_collective *collective_of(const struct comm_join *j,
                                                 const struct rp_rendezvous *m, uint32_t i)
{
    return &lane_of(j, m->rank[i])->comm.list.at[m->at[i]];
}

static const struct rp_comm_lead *lead_of(const struct comm_join *j, const struct rp_rendezvous *m,
                                          uint32_t i)
{
    return &lane_of(j, m->rank[i])->leads[m->at[i]];
}

/* Adds durations, overlap and waiting of all participants. */
static void add_participants(struct comm_join *j, const struct rp_rendezvous *m,
                             struct rp_comm_collective *row)
{
    int64_t sent = 0, most = 0, dur;
    bool known = true;

    for (uint32_t i = 0; i < m->n; i++) {
        const struct rp_collective *c = collective_of(j, m, i);
        int64_t size = rp_collective_size(c, row->rank_count);
        int64_t wait = rp_rendezvous_wait(&j->all, j->lists, m, i);

        dur = rp_ns_between(c->begin_ns, c->end_ns);
        row->min_dur_ns = i == 0 || dur < row->min_dur_ns ? dur : row->min_dur_ns;
        row->max_dur_ns = i == 0 || dur > row->max_dur_ns ? dur : row->max_dur_ns;
        row->size_bytes = size > row->size_bytes ? size : row->size_bytes;
        rp_ns_add(&row->wait_ns, wait);
        if (rp_ns_between(wait, dur) > row->transfer_ns || !i)
            row->transfer_ns = rp_ns_between(wait, dur);
        rp_ns_add(&row->dur_ns, dur);
        rp_ns_add(&row->overlap_ns, lead_of(j, m, i)->overlap_ns);
        known = known && c->in_bytes >= 0;
        rp_ns_add(&sent, c->in_bytes);
        most = c->in_bytes > most ? c->in_bytes : most;
    }
    if (known && sent > 0 && collective_of(j, m, 0)->kind == RP_COLL_ALL_TO_ALL)
        row->imbalance_ratio = (double)most * (double)m->n / (double)sent - 1;
}

/* If some ranks were not given, it is unknown when the transfer began. */
static void set_bandwidth(struct rp_comm_collective *row, enum rp_coll_kind kind, int64_t ns)
{
    double factor = rp_coll_bus_factor(kind, row->rank_count);

    row->algorithm_bytes_per_s = row->bus_bytes_per_s = NAN;
    if (row->size_bytes <= 0)
        row->size_bytes = RP_ABSENT_I64;
    else if (ns > 0 && row->rank_count > 0 && row->seen_count >= row->rank_count)
        row->algorithm_bytes_per_s = (double)row->size_bytes * 1e9 / (double)ns;
    if (factor > 0)
        row->bus_bytes_per_s = row->algorithm_bytes_per_s * factor;
}

static struct rp_comm_collective collective_row(const struct rp_collective *c)
{
    return (struct rp_comm_collective){.name = c->name,
                                       .kind = rp_coll_kind_names[c->kind],
                                       .group = c->group,
                                       .dtype = c->dtype,
                                       .algorithm = rp_coll_algorithm_name(c->algorithm),
                                       .dimension = rp_dimension_names[c->dimension],
                                       .seq = c->seq >= 0 ? c->seq : RP_ABSENT_I64,
                                       .stream = c->stream,
                                       .index = c->index,
                                       .imbalance_ratio = NAN};
}

static const struct rp_comm_arrival *list_arrivals(const struct comm_join *j,
                                                   const struct rp_rendezvous *m)
{
    struct rp_comm_arrival *list = RP_ARENA_NEW(j->arena, struct rp_comm_arrival, m->n);

    for (uint32_t i = 0; list && i < m->n; i++) {
        const struct rp_collective *c = collective_of(j, m, i);

        list[i] =
            (struct rp_comm_arrival){j->rank_of[m->rank[i]], m->rank[i], c->begin_ns, c->end_ns};
    }
    return list;
}

static void add_rendezvous(struct comm_join *j, const struct rp_rendezvous *m,
                           const struct rp_late *late)
{
    const struct rp_collective *c = collective_of(j, m, 0);
    struct rp_comm_collective *row = &j->out->collectives[j->out->ncollectives++];

    *row = collective_row(c);
    row->rank_count = m->members;
    row->seen_count = m->n;
    row->begin_ns = m->first_ns;
    row->skew_ns = rp_ns_between(m->first_ns, m->last_ns);
    row->last_rank = number_of(j, m->rank[m->last]);
    row->last_device = lane_of(j, m->rank[m->last])->device;
    row->arrivals = list_arrivals(j, m);

    /* List each rank once, even if several of its devices take part. */
    row->ranks = RP_ARENA_NEW(j->arena, int64_t, (size_t)row->seen_count + 1);
    for (int64_t i = 0; row->ranks && row->arrivals && i < row->seen_count; i++) {
        int64_t number = j->ranks->parts[row->arrivals[i].rank].number;

        if (!row->nranks || row->ranks[row->nranks - 1] != number)
            row->ranks[row->nranks++] = number;
    }

    row->last = m->last;
    row->at_place = rp_topology_place(&j->topology, m);
    row->place = rp_place_names[row->at_place];
    if (!row->dimension && m->n == 2 && rp_rendezvous_are_stages(&j->all, m->rank[0], m->rank[1]))
        row->dimension = rp_dimension_names[RP_DIMENSION_PIPELINE];
    row->link_can = rp_topology_can(&j->topology, m);
    row->mutual = !m->open;
    row->margin_ns = m->margin_ns;
    row->delay_ns = m->delay_ns;
    row->end_spread_ns = rp_ns_between(m->first_end_ns, m->end_ns);
    add_participants(j, m, row);
    set_bandwidth(row, c->kind, row->transfer_ns);
    j->out->incomplete_count += row->seen_count < row->rank_count;
    row->cause = late->cause;
    row->evidence = late->evidence;
    row->cause_ns = late->ns;
    row->cause_rank = late->by == m->rank[m->last] ? RP_ABSENT_I64 : number_of(j, late->by);
    rp_ns_add(&j->out->margin_ns, m->delay_ns);
    j->out->ranks[m->rank[m->last]].last_count++;
    rp_ns_add(&j->out->ranks[m->rank[m->last]].margin_ns, m->delay_ns);
    rp_ns_add(&j->out->ranks[late->by].caused_ns, m->delay_ns);
}

/* Adds up what the rendezvous mean for each rank. */
static enum rp_code sum_times(struct comm_join *j, struct rp_err *err)
{
    rp_interval_vec *waits = calloc(j->n + 1, sizeof *waits);
    struct rp_rendezvous_sums *sums = calloc(j->n + 1, sizeof *sums);
    enum rp_code code = rp_err_need(waits && sums, err, "matching collectives");

    if (code == RP_OK)
        code = rp_rendezvous_sum(&j->all, j->lists, j->n, sums, waits, err);
    for (size_t r = 0; waits && sums && r < j->n; r++) {
        j->out->ranks[r].wait_ns = sums[r].wait_ns;
        j->out->ranks[r].transfer_ns = sums[r].transfer_ns;
        rp_vec_release(&waits[r]);
    }
    free(waits);
    free(sums);
    return code;
}

/* Adds a collective that was seen on one rank only, so waiting and transfer cannot be separated. */
static void add_alone(struct comm_join *j, size_t r, size_t i)
{
    const struct rp_comm_lane *p = lane_of(j, r);
    const struct rp_collective *c = &p->comm.list.at[i];
    struct rp_comm_collective *row = &j->out->collectives[j->out->ncollectives++];

    *row = collective_row(c);
    row->rank_count = rp_collective_members(&p->comm, c);
    row->seen_count = 1;
    row->at_place = RP_PLACE_UNKNOWN;
    row->last_device = RP_ABSENT_I64;
    row->ranks = RP_ARENA_NEW(j->arena, int64_t, 1);
    if (row->ranks)
        row->ranks[row->nranks++] = number_of(j, r);
    row->begin_ns = rp_clock_time(&j->all.clocks[r], c->begin_ns);
    row->skew_ns = row->last_rank = row->margin_ns = RP_ABSENT_I64;
    row->transfer_ns = row->end_spread_ns = row->cause_ns = row->cause_rank = RP_ABSENT_I64;
    row->dur_ns = row->min_dur_ns = row->max_dur_ns = rp_ns_between(c->begin_ns, c->end_ns);
    row->overlap_ns = p->leads[i].overlap_ns;
    row->size_bytes = rp_collective_size(c, row->rank_count);
    set_bandwidth(row, c->kind, row->max_dur_ns);
    j->out->incomplete_count += row->rank_count != 1;
}

static void add_collectives(struct comm_join *j)
{
    size_t i, r, total = 0;

    for (r = 0; r < j->n; r++)
        total += lane_of(j, r)->comm.list.n;
    j->out->collective_count = (int64_t)total;
    j->out->collectives = RP_ARENA_NEW(j->arena, struct rp_comm_collective, total + 1);
    if (!j->out->collectives)
        return;
    for (i = 0; i < j->all.n; i++)
        add_rendezvous(j, &j->all.at[i], &j->lates[i]);
    for (r = 0; r < j->n && !j->all.n; r++)
        for (i = 0; i < lane_of(j, r)->comm.list.n; i++)
            add_alone(j, r, i);
}

static void add_ranks(struct comm_join *j)
{
    bool met = j->all.n > 0;

    j->out->ranks = RP_ARENA_NEW(j->arena, struct rp_comm_rank, j->n + 1);
    for (size_t r = 0; r < j->n && j->out->ranks; r++) {
        const struct rp_comm_lane *p = lane_of(j, r);

        j->out->ranks[r] = (struct rp_comm_rank){
            .path = j->ranks->parts[j->rank_of[r]].path,
            .rank = number_of(j, r),
            .host = p->comm.host,
            .device = p->device,
            .collective_count = (int64_t)p->comm.list.n,
            .wait_ns = met ? 0 : RP_ABSENT_I64,
            .transfer_ns = met ? 0 : RP_ABSENT_I64,
            .last_count = met ? 0 : RP_ABSENT_I64,
            .margin_ns = met ? 0 : RP_ABSENT_I64,
            .cause_ns = met ? 0 : RP_ABSENT_I64,
            .cause_rank = RP_ABSENT_I64,
            .comm_ns = p->comm_ns,
            .overlap_ns = p->overlap_ns,
            .overlap_share = p->comm_ns > 0 ? (double)p->overlap_ns / (double)p->comm_ns : NAN};
    }
    j->out->nranks = j->n;
    j->out->several = j->n > j->ranks->n;
    j->out->given_count = (int64_t)j->ranks->n;
    j->out->world_size =
        j->ranks->world_size > (int64_t)j->ranks->n ? j->ranks->world_size : (int64_t)j->ranks->n;
}

static enum rp_code match_collectives(struct comm_join *j, struct rp_err *err)
{
    const struct rp_comm_lead **leads =
        RP_ARENA_NEW(j->arena, const struct rp_comm_lead *, j->n + 1);

    j->lists = RP_ARENA_NEW(j->arena, const struct rp_collectives *, j->n + 1);
    RP_TRY(rp_arena_check(j->arena, "matching collectives", err));
    for (size_t r = 0; r < j->n; r++) {
        j->lists[r] = &lane_of(j, r)->comm;
        leads[r] = lane_of(j, r)->leads;
    }
    RP_TRY(rp_rendezvous_find(j->lists, j->n, j->arena, &j->all, err));
    if (j->ranks->unrelated)
        rp_rendezvous_drop(&j->all, j->n);
    j->out->start_up_count = (int64_t)rp_rendezvous_drop_start_up(&j->all, j->lists);
    return rp_late_find(&(struct rp_late_ranks){j->n, j->lists, leads}, &j->all, j->arena,
                        &j->lates, err);
}

/* The links are judged for the device of a rank whose collectives run on it. */
static void judge_links(struct comm_join *j)
{
    struct rp_topology *t = &j->topology;

    *t = (struct rp_topology){.list = &j->all,
                              .ranks = j->lists,
                              .world_size = j->out->world_size,
                              .one_process = j->out->several};
    for (size_t r = 0; r < j->n && !t->device; r++)
        if (!lane_of(j, r)->comm.on_host)
            t->device = ((const struct rp_comm_part *)j->ranks->parts[j->rank_of[r]].data)->gpu;
    rp_topology_judge(t);
    for (int i = 0; i < RP_PLACES; i++)
        j->out->slow_link[i] = rp_topology_text(t, (enum rp_place)i, j->arena);
}

/* Compares the ranks on request, and if some collective may not have ended. */
static enum rp_code compare_ranks(struct comm_join *j, bool asked, size_t limit, int *answer,
                                  struct rp_err *err)
{
    struct rp_comm_caller *callers = RP_ARENA_NEW(j->arena, struct rp_comm_caller, j->ranks->n + 1);
    struct rp_comm_checks checks;
    bool hangs = false;
    int64_t ncut = 0;

    RP_TRY(rp_arena_check(j->arena, "comparing collectives", err));
    for (size_t r = 0; r < j->ranks->n; r++)
        hangs = hangs || ((const struct rp_comm_part *)j->ranks->parts[r].data)->hangs;
    if (!asked && !hangs)
        return RP_OK;
    for (size_t r = 0; r < j->ranks->n; r++) {
        /* A rank that does not hang has its calls only in its list; it may be the one that others
           wait for. */
        struct rp_comm_caller *out = &callers[r];
        const struct rp_comm_part *part = j->ranks->parts[r].data;
        struct rp_comm_call *calls = part->calls;

        *out = (struct rp_comm_caller){
            .rank = j->ranks->parts[r].number, .now = part->now, .n = part->ncalls};
        if (!out->n)
            RP_TRY(rp_comm_list_calls(&part->lanes[0].comm, j->arena, &calls, &out->n, err));
        out->calls = calls;
    }
    RP_TRY(rp_comm_compare(callers, j->ranks->n, j->ranks->world_size, j->arena, &checks, err));
    for (size_t r = 0; r < j->ranks->n; r++)
        ncut += ((const struct rp_comm_part *)j->ranks->parts[r].data)->cut;
    j->out->check_text =
        checks.n || !ncut
            ? checks.text
            : rp_arena_textf(j->arena, "%s, until the recordings end: %s did not end by %s",
                             checks.text, rp_units_count(j->arena, ncut, "rank"),
                             ncut == 1 ? "itself" : "themselves");
    j->out->checks = j->out->check_rows = checks.rows;
    j->out->nchecks = checks.n;
    j->out->ncheck_rows = checks.n < limit ? checks.n : limit;
    *answer = asked && checks.n;
    return RP_OK;
}

static enum rp_code comm_join(const struct rp_ranks *ranks, const struct rp_settings *settings,
                              struct rp_result *result, struct rp_err *err)
{
    struct comm_join j = {.ranks = ranks, .arena = &result->arena, .out = result->root};
    size_t limit = rp_settings_limit(settings, "limit");
    struct rp_comm_root *out = j.out;

    RP_TRY(list_lanes(&j, err));
    RP_TRY(match_collectives(&j, err));
    out->matched_by = rp_rendezvous_rule_names[j.all.rule];
    out->matched_count = (int64_t)j.all.n;
    out->unmatched_count = (int64_t)j.all.nlost;
    out->clocks_differ = j.all.clocks_differ;
    out->apart_ns = j.all.apart_ns;
    out->set_count = (int64_t)j.all.nset;
    out->timeline_ranks = ((const struct rp_comm_part *)ranks->parts[0].data)->timeline_ranks;
    out->sizes_option = rp_recorder_option(
        &((const struct rp_comm_part *)ranks->parts[0].data)->recorder, RP_RECORDS_SHAPES);
    out->uncertainty_ns = j.all.uncertainty_ns;
    out->doubtful_count = (int64_t)j.all.ndoubtful;
    out->contradict = j.all.contradict;
    out->dropped = j.all.dropped;
    add_ranks(&j);
    judge_links(&j);
    RP_TRY(rp_arena_check(j.arena, "matching collectives", err));
    add_collectives(&j);
    RP_TRY(rp_arena_check(j.arena, "matching collectives", err));
    if (j.all.n)
        RP_TRY(sum_times(&j, err));
    if (j.all.n) {
        /* Add the cause with most of the margin of the collectives in which a rank was last. */
        struct rp_late_sums *sums = calloc(j.n + 1, sizeof *sums);

        RP_TRY(rp_err_need(sums, err, "matching collectives"));
        for (size_t i = 0; i < j.all.n; i++)
            if (j.lates[i].cause)
                rp_late_add(&sums[j.all.at[i].rank[j.all.at[i].last]], &j.lates[i],
                            j.all.at[i].delay_ns);
        for (size_t r = 0; r < j.n; r++) {
            struct rp_late late = rp_late_main(&sums[r]);

            j.out->ranks[r].cause = late.cause;
            j.out->ranks[r].evidence = late.evidence;
            j.out->ranks[r].cause_ns = late.ns;
            if (late.cause && late.by != r)
                j.out->ranks[r].cause_rank = number_of(&j, late.by);
        }
        free(sums);
    }
    RP_TRY(rp_arena_check(j.arena, "matching collectives", err));
    if (j.all.n)
        RP_TRY(rp_comm_add_hosts(out, limit, j.arena, err));

    int64_t *numbers = RP_ARENA_NEW(j.arena, int64_t, j.n + 1);
    for (size_t r = 0; numbers && r < j.n; r++)
        numbers[r] = number_of(&j, r);
    RP_TRY(rp_arena_check(j.arena, "finding stages", err));
    RP_TRY(rp_comm_add_stages(&j.all, j.lists, j.lanes, numbers, j.n, limit, j.arena, j.out, err));
    RP_TRY(rp_comm_join_transfers(ranks, limit, j.arena, out, err));
    RP_TRY(compare_ranks(&j, rp_settings_flag(settings, "check"), limit, &result->answer, err));
    RP_TRY(rp_comm_add_sizes(out, j.arena, err));
    return rp_comm_add_texts(out, limit, j.arena, err);
}

/* ------------------------------------------------------------------ the question */

static enum rp_code comm_rank(const struct rp_loaded *loaded, const struct rp_scope *scope,
                              const struct rp_settings *settings, struct rp_rank_part *part,
                              struct rp_err *err)
{
    const struct rp_trace *t = loaded->trace;
    struct rp_comm_part *out = part->data;
    struct rp_comm_place place;
    struct rp_trace_life life;
    int64_t since_ns = t->totals.span_begin_ns;

    RP_TRY(rp_comm_fill_part(t, scope, &part->arena, out, err));
    RP_TRY(rp_recorder_find(t, &out->recorder, err));
    rp_trace_life_find(t, &life);
    out->cut = life.cut;
    out->timeline_ranks = rp_trace_pipeline_ranks(t);
    for (size_t i = 0; i < out->nlanes; i++)
        if (!out->lanes[i].comm.host)
            RP_TRY(rp_trace_host(t, loaded->source->name, &part->arena, &out->lanes[i].comm.host,
                                 err));
    const struct rp_collectives *list = &out->lanes[0].comm;
    for (size_t i = 0; i < list->list.n; i++)
        if (list->list.at[i].end_ns > since_ns)
            since_ns = list->list.at[i].end_ns;
    bool recorded = rp_comm_may_hang(t);
    RP_TRY(rp_comm_find_place(t, since_ns, &part->arena, &place, err));
    out->now = place.line;
    out->hangs = recorded || place.kind;
    if (!out->hangs && !rp_settings_flag(settings, "check"))
        return RP_OK;
    RP_TRY(rp_comm_find_calls(t, list, &part->arena, &out->calls, &out->ncalls, err));
    if (!recorded && place.kind)
        rp_comm_add_open(&place, since_ns + list->base_ns, out->calls, &out->ncalls);
    return RP_OK;
}

static const struct rp_option comm_options[] = {
    {"check", 0, RP_OPT_FLAG, NULL, NULL,
     "compare the ranks: order, kinds, sizes and types of their collectives; differences: exit 1",
     0},
    {"limit", 'n', RP_OPT_COUNT, "N", "10",
     "show the N collectives with the longest delays; 0: all", 0},
    RP_RANK_OPTIONS,
    RP_OPTION_END};

const struct rp_question_row rp_ask_comm = {
    .question = {.name = "comm",
                 .group = "traces",
                 .summary = "collectives: which rank delays the others, by how much, and why",
                 .details =
                     "Matches the collectives of all ranks. A collective proceeds when its last "
                     "rank has arrived: what the others spend in it before is waiting, the rest is "
                     "transfer. The last rank to arrive is compared with the others to find out "
                     "why.",
                 .examples =
                     "reprise comm run/\tall ranks of a run\n"
                     "reprise comm --csv run/\tevery collective\n"
                     "reprise comm nccl_trace_rank_*\ta job that hangs: who is missing\n"
                     "reprise comm --check run/\twhether all ranks run the same collectives\n"
                     "reprise comm --rank 0,6 run/\tonly these ranks\n",
                 .accepts = RP_ACCEPTS_TRACES,
                 .options = comm_options,
                 .type = &comm_type},
    .ranks = {.part = &part_type, .rank = comm_rank, .join = comm_join}};
