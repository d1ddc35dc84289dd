/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of `comm`: keys of the JSON contract, headings of the screen. */
#include "explain/comm/comm.h"

#define RANK(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_rank, member, type, unit, title, doc, flags)

#define RANK_TIMES                                                                               \
    RANK(last_count, I64, COUNT, "last", "how often it came last", RP_NULLABLE),                 \
        RANK(margin_ns, I64, NS, "held up by", "by how much, after the second last, added up",   \
             RP_NULLABLE),                                                                       \
        RANK(wait_ns, I64, NS, "waited", "from its own start to that of the last rank",          \
             RP_NULLABLE),                                                                       \
        RANK(transfer_ns, I64, NS, "transfer", "from the start of the last rank to its own end", \
             RP_NULLABLE)

static const struct rp_field rank_fields[] = {
    RANK(path, STR, NONE, NULL, "the input", 0),
    RANK(rank, I64, NONE, NULL, "number of the process in its job", 0),
    RANK(collective_count, I64, COUNT, NULL, "collectives of the rank", 0),
    RANK_TIMES,
    RANK(comm_ns, I64, NS, NULL, "time in which collectives run", 0),
    RANK(overlap_ns, I64, NS, NULL, "and compute beside them", 0),
    RANK(overlap_share, F64, RATIO, NULL, "overlap / comm", 0),
    RANK(cause, STR, NONE, NULL, "why it came last, for most of the margin", 0),
    RANK(cause_ns, I64, NS, NULL, "the margin of that cause", RP_NULLABLE),
    RANK(evidence, STR, NONE, NULL, "the kernel or host span behind it, or null", 0),
    RP_FIELD_END};
static const struct rp_type rank_type = {"rank", sizeof(struct rp_comm_rank), rank_fields, NULL};

static const struct rp_field rank_row_fields[] = {
    RANK(rank, I64, NONE, "rank", "number of the process in its job", 0),
    RANK_TIMES,
    RANK(comm_ns, I64, NS, "comm", "time in which collectives run", RP_WIDE),
    RANK(overlap_share, F64, RATIO, "overlap", "of it beside compute", 0),
    RANK(cause_text, STR, NONE, "late because of", "for the screen", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type rank_row_type = {"rank", sizeof(struct rp_comm_rank), rank_row_fields,
                                             NULL};

#define COLL(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_collective, member, type, unit, title, doc, flags)

static const struct rp_field collective_fields[] = {
    COLL(name, STR, NONE, NULL, "the kernel, or the span of the host", 0),
    COLL(kind, STR, NONE, NULL, "all_reduce, all_gather …", 0),
    COLL(group, STR, NONE, NULL, "process group, or null", 0),
    COLL(seq, I64, NONE, NULL, "number in its group", RP_NULLABLE),
    COLL(stream, I64, NONE, NULL, "the how-manieth communication stream, from 0", 0),
    COLL(index, I64, NONE, NULL, "the how-manieth of the stream, from 0", 0),
    COLL(rank_count, I64, COUNT, NULL, "ranks in it", 0),
    COLL(size_bytes, I64, BYTES, NULL, "what bandwidth is counted by", RP_NULLABLE),
    COLL(dtype, STR, NONE, NULL, "type of the elements, or null", 0),
    COLL(begin_ns, I64, NS, NULL, "the first start, on the clock of the first rank", 0),
    COLL(skew_ns, I64, NS, NULL, "from the first start to the last", RP_NULLABLE),
    COLL(last_rank, I64, NONE, NULL, "who came last", RP_NULLABLE),
    COLL(margin_ns, I64, NS, NULL, "by how much, after the second last", RP_NULLABLE),
    COLL(wait_ns, I64, NS, NULL, "waiting, added up over the ranks", 0),
    COLL(transfer_ns, I64, NS, NULL, "from the last start to the last end", RP_NULLABLE),
    COLL(min_dur_ns, I64, NS, NULL, "the shortest on a rank", 0),
    COLL(max_dur_ns, I64, NS, NULL, "the longest on a rank", 0),
    COLL(end_spread_ns, I64, NS, NULL, "from the first end to the last", RP_NULLABLE),
    COLL(overlap_ns, I64, NS, NULL, "beside compute, added up over the ranks", 0),
    COLL(algorithm_bytes_per_s, F64, BPS, NULL, "size / transfer", 0),
    COLL(bus_bytes_per_s, F64, BPS, NULL, "the same as the busiest link sees it", 0),
    COLL(imbalance_ratio, F64, RATIO, NULL, "all_to_all: most sent by a rank / mean − 1", 0),
    COLL(cause, STR, NONE, NULL, "why the last rank was late, or null", 0),
    COLL(cause_ns, I64, NS, NULL, "how much more of it than the median rank", RP_NULLABLE),
    COLL(evidence, STR, NONE, NULL, "the kernel or host span behind it, or null", 0),
    RP_FIELD_END};
static const struct rp_type collective_type = {"collective", sizeof(struct rp_comm_collective),
                                               collective_fields, NULL};

static const struct rp_field worst_fields[] = {
    COLL(at_ns, I64, NS, "at", "since the first collective", 0),
    COLL(label, STR, NONE, "collective", "kind and size", RP_SHORTEN),
    COLL(last_rank, I64, NONE, "last", "who came last", RP_NULLABLE),
    COLL(margin_ns, I64, NS, "held up by", "after the second last", RP_NULLABLE),
    COLL(max_dur_ns, I64, NS, "longest", "the longest on a rank", 0),
    COLL(cause_text, STR, NONE, "late because of", "for the screen", RP_SHORTEN),
    RP_FIELD_END};
static const struct rp_type worst_type = {"collective", sizeof(struct rp_comm_collective),
                                          worst_fields, NULL};

#define SIZE(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_size, member, type, unit, title, doc, flags)

static const struct rp_field size_fields[] = {
    SIZE(kind, STR, NONE, "collective", "all_reduce, all_gather …", 0),
    SIZE(size_bytes, I64, BYTES, "size", "what bandwidth is counted by", RP_NULLABLE),
    SIZE(rank_count, I64, COUNT, "ranks", "ranks in it", RP_WIDE),
    SIZE(count, I64, COUNT, "count", "how many", 0),
    SIZE(wait_ns, I64, NS, "waited", "waiting, added up, mean of the ranks", RP_NULLABLE),
    SIZE(transfer_ns, I64, NS, "transfer", "added up; of one rank alone: all its time", 0),
    SIZE(algorithm_bytes_per_s, F64, BPS, "alg. bw", "size / transfer, median", RP_WIDE),
    SIZE(bus_bytes_per_s, F64, BPS, "bus bw", "the same as the busiest link sees it", 0),
    SIZE(overlap_share, F64, RATIO, "overlap", "beside compute", 0),
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
    TRANSFER(rank, I64, NONE, NULL, "of its trace", 0),
    TRANSFER(size_bytes, I64, BYTES, "size", "of the tensor", RP_NULLABLE),
    TRANSFER(begin_ns, I64, NS, NULL, "when it was asked for", 0),
    TRANSFER(wait_ns, I64, NS, "waited", "until it was made; null: not known", RP_NULLABLE),
    TRANSFER(transfer_ns, I64, NS, "transfer", "from then on", RP_NULLABLE),
    TRANSFER(bytes_per_s, F64, BPS, "speed", "size / transfer", 0),
    RP_FIELD_END};
static const struct rp_type transfer_type = {"transfer", sizeof(struct rp_comm_transfer),
                                             transfer_fields, NULL};

#define ROOT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_comm_root, member, type, unit, title, doc, flags)

static const struct rp_field root_fields[] = {
    ROOT(run_text, STR, NONE, "comm", "for the screen", RP_SCREEN),
    ROOT(holdup_text, STR, NONE, "holds up", "for the screen", RP_SCREEN),
    ROOT(matched_by, STR, NONE, NULL, "sequence, group, order, name or none", 0),
    ROOT(collective_count, I64, COUNT, NULL, "collectives of all ranks, added up", 0),
    ROOT(matched_count, I64, COUNT, NULL, "collectives in which ranks met", 0),
    ROOT(unmatched_count, I64, COUNT, NULL, "collectives of ranks that met nobody", 0),
    ROOT(margin_ns, I64, NS, NULL, "sum of the margins", 0),
    ROOT(clocks_differ, BOOL, NONE, NULL, "the ranks' times do not fit together", 0),
    RP_FIELD_LIST(struct rp_comm_root, rank_rows, &rank_row_type, "who holds up whom",
                  "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_root, ranks, &rank_type, NULL, "one record a rank", 0),
    RP_FIELD_LIST(struct rp_comm_root, alone_rows, &rank_row_type, "ranks", "for the screen",
                  RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_root, size_rows, &size_type, "by kind and size", "for the screen",
                  RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_root, sizes, &size_type, NULL, "collectives added up", 0),
    RP_FIELD_LIST(struct rp_comm_root, longest, &worst_type, "longest", "for the screen",
                  RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_root, worst, &worst_type, "held up longest", "for the screen",
                  RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_root, collectives, &collective_type, NULL,
                  "every collective, by time", 0),
    RP_FIELD_LIST(struct rp_comm_root, slowest, &transfer_type, "tensors between processes",
                  "for the screen", RP_SCREEN),
    RP_FIELD_LIST(struct rp_comm_root, transfers, &transfer_type, NULL,
                  "tensors between processes, by time", 0),
    RP_FIELD_LIST(struct rp_comm_root, notes, &rp_type_string, "notes",
                  "what the recording does not tell", 0),
    RP_FIELD_END};

const struct rp_type rp_comm_type = {"comm", sizeof(struct rp_comm_root), root_fields,
                                     "collectives"};
