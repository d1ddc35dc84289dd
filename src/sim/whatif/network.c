/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks, net.bandwidth, net.latency: collectives on another network or among more ranks. A recorded
 * transfer is split into rounds of messages, which cost latency, and bytes, which cost bandwidth;
 * each part is scaled by what the algorithm says about it.
 *
 *                        rounds        bytes on the busiest link, for each byte
 *     ring all-reduce    2 (n - 1)     2 (n - 1) / n
 *     tree all-reduce    2 log2 n      2
 *     ring all-gather    n - 1         (n - 1) / n         and reduce-scatter, all-to-all
 *     broadcast, reduce  log2 n        1
 *
 * The latency of a transfer is that which the recorded all-reduces of different sizes show
 * (sim/model/transport.h). Sends and receives between two ranks do not change with the number of
 * ranks.
 */
#include "facts/times/intervals.h"
#include "sim/model/transport.h"
#include "sim/whatif/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS (1 << 20)
RP_LIMIT(MOST_RANKS, "ranks", "more are refused");

struct shape {
    double rounds, bytes;
};

struct network {
    struct rp_transport transport;
    int64_t world;
    bool tree;
    double least_latency_ns; /* after the change, for a transfer */
};

static struct shape shape_of(enum rp_coll_kind kind, double n, bool tree)
{
    double depth = ceil(log2(n));

    switch (kind) {
    case RP_COLL_ALL_REDUCE:
        return tree ? (struct shape){2 * depth, 2} : (struct shape){2 * (n - 1), 2 * (n - 1) / n};
    case RP_COLL_ALL_GATHER:
    case RP_COLL_REDUCE_SCATTER:
    case RP_COLL_ALL_TO_ALL:
    case RP_COLL_GATHER:
    case RP_COLL_SCATTER:
        return (struct shape){n - 1, (n - 1) / n};
    case RP_COLL_BROADCAST:
    case RP_COLL_REDUCE:
    case RP_COLL_BARRIER:
        return (struct shape){depth, 1};
    default:
        return (struct shape){1, 1};
    }
}

/* ------------------------------------------------------------------ what was recorded */

static const struct rp_collective *collective_of(const struct rp_sim_run *run, uint32_t task)
{
    if (task >= rp_sim_nnodes(run))
        return NULL;
    const struct rp_sg_node *node = rp_sim_node(run, task);
    return node->collective == RP_NONE
               ? NULL
               : &rp_sim_part_of(run, task)->collectives.list.at[node->collective];
}

/* The ranks of the job: those that are here, or as many as the largest group states. */
static int64_t world_of(const struct rp_sim_run *run)
{
    const struct rp_collectives *c = &run->parts[0]->collectives;
    int64_t world = (int64_t)run->nranks * run->parts[0]->nranks;

    for (size_t i = 0; i < c->list.n; i++)
        if (c->list.at[i].group_size > world)
            world = c->list.at[i].group_size;
    return world;
}

static enum rp_code network_init(const struct rp_sim_run *run, struct network *out,
                                 struct rp_err *err)
{
    *out = (struct network){.world = world_of(run)};
    return rp_transport_fit(run, &out->transport, err);
}

/* ------------------------------------------------------------------ changing it */

static bool is_transfer(const struct rp_sim_run *run, uint32_t task)
{
    return rp_overlay_task(&run->overlay, task)->kind == RP_SG_COMM;
}

/* Changes a transfer: its rounds cost `rounds` times as much, and its bytes `bytes` times. */
static enum rp_code change_transfer(struct rp_sim_run *run, const struct network *net,
                                    uint32_t task, struct shape factor, struct rp_err *err)
{
    int64_t dur = run->overlay.dur_ns.at[task], after;
    double latency = net->transport.n ? net->transport.latency_ns : 0;

    if (latency > (double)dur)
        latency = (double)dur;
    after = rp_sim_scaled((int64_t)latency, factor.rounds);
    if (after < (int64_t)net->least_latency_ns)
        after = (int64_t)net->least_latency_ns;
    return rp_overlay_set_dur(&run->overlay, task,
                              after + rp_sim_scaled(dur - (int64_t)latency, factor.bytes), err);
}

static enum rp_code change_transfers(struct rp_sim_run *run, const struct network *net,
                                     struct shape factor, struct rp_err *err)
{
    for (uint32_t i = 0; i < rp_overlay_ntasks(&run->overlay); i++)
        if (is_transfer(run, i))
            RP_TRY(change_transfer(run, net, i, factor, err));
    return RP_OK;
}

/* ------------------------------------------------------------------ ranks */

/* Whether a group spans the job; groups inside of it (tensor or pipeline parallel) do not
   change. */
static bool spans_all(const struct network *net, const struct rp_collective *c)
{
    return !c || c->group_size <= 0 || c->group_size == net->world;
}

static enum rp_code read_ranks(const struct rp_whatif_args *args, struct network *net, double *out,
                               struct rp_err *err)
{
    char *end = NULL;

    *out = args->value ? strtod(args->value, &end) : 0;
    if (!end || *end || end == args->value || !(*out >= 1) || *out > MOST_RANKS ||
        *out != floor(*out))
        return rp_err_set(err, RP_USAGE, "'%s': a number of ranks such as ranks=8 is expected",
                          args->text);
    if (args->subject && strcmp(args->subject, "ring") != 0 && strcmp(args->subject, "tree") != 0)
        return rp_err_set(err, RP_USAGE, "'%s': 'ring' or 'tree' is expected after 'ranks:'",
                          args->text);
    net->tree = args->subject && !strcmp(args->subject, "tree");
    return RP_OK;
}

#define NEAR_PIDS 256
RP_DECISION(NEAR_PIDS, "numbers from process to process",
            "a launcher starts the ranks of a machine one after the other, each with its helpers",
            "sim/processes_of_one_machine_are_numbered_so");

/* Whether the recorded ranks seem to share a machine: their processes were numbered one after the
   other, and their clocks agree. */
static enum rp_code share_host(const struct rp_sim_run *run, bool *out, struct rp_err *err)
{
    int64_t *pids = malloc(run->nranks * sizeof *pids);

    RP_TRY(rp_err_need(pids, err, "simulating"));
    for (size_t i = 0; i < run->nranks; i++)
        pids[i] = run->parts[i]->pid;
    rp_ns_sort(pids, run->nranks);
    *out = run->nranks > 1 && pids[0] > 0 && !run->join.aligned;
    for (size_t i = 1; i < run->nranks; i++)
        *out &= pids[i] > pids[i - 1] && pids[i] - pids[i - 1] <= NEAR_PIDS;
    free(pids);
    return RP_OK;
}

/*
 * If threads carry the transport, more ranks on machines of their own do not affect each other. On
 * one machine each has fewer cores, so in every round its thread may wait for one, and all share
 * the memory that carries the bytes. Which case applies was not recorded, so the interval reaches
 * from one to the other, and the prediction is a geometric mean. If the recorded ranks share a
 * machine, more of them probably will, too, and wait for its cores; memory is then assumed to be
 * shared by half.
 */
#define LIKELY_SHARED 0.9
RP_DECISION(LIKELY_SHARED, "weight of one machine then, for waiting",
            "a guess; else both weigh the same", "sim/threads_of_more_ranks_may_share_a_machine");

static enum rp_code share_machine(const struct rp_sim_run *run, struct network *net, double n,
                                  double *factor, struct rp_err *err)
{
    struct shape now = shape_of(RP_COLL_ALL_REDUCE, (double)net->world, net->tree);
    struct shape then = shape_of(RP_COLL_ALL_REDUCE, n, net->tree);
    double apart_ns = net->transport.latency_ns * then.rounds / now.rounds;
    double shared_ns = then.rounds * rp_transport_round_ns(run), weight = 1;
    bool shared = false;

    *factor = 1;
    if (run->lean == RP_LEAN_LESS_LATENCY || n <= (double)net->world ||
        !run->parts[0]->collectives.on_host || !net->transport.n)
        return RP_OK;
    RP_TRY(share_host(run, &shared, err));
    if (run->lean != RP_LEAN_MORE_LATENCY)
        weight = shared ? LIKELY_SHARED : 1.0 / 2;
    net->least_latency_ns = pow(apart_ns, 1 - weight) * pow(shared_ns, weight);
    *factor = n / (double)net->world;
    if (run->lean != RP_LEAN_MORE_LATENCY)
        *factor = sqrt(*factor);
    return RP_OK;
}

static enum rp_whatif_verdict ranks_applies(const struct rp_sim_run *run,
                                            const struct rp_whatif_args *args, struct rp_err *why)
{
    if (rp_sim_needs_comm(run, args, why) != RP_WHATIF_APPLIES)
        return RP_WHATIF_CANNOT;
    return world_of(run) > 1
               ? RP_WHATIF_APPLIES
               : RP_WHATIF_SAY(why, CANNOT,
                               "the number of ranks in the recorded collectives is not known");
}

static enum rp_code ranks_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                struct rp_err *err)
{
    struct network net;
    double n, shared;

    RP_TRY(rp_whatif_check(&rp_whatif_ranks, run, args, err));
    RP_TRY(network_init(run, &net, err));
    RP_TRY(read_ranks(args, &net, &n, err));
    RP_TRY(rp_sim_expect_slowest(run, n, err));
    RP_TRY(share_machine(run, &net, n, &shared, err));
    run->leans = RP_LEANS_ANY;
    run->uses_transport = true;
    run->latency_doubt = run->parts[0]->collectives.on_host
                             ? "whether more ranks share the cores of a machine is not known"
                             : "the latency of the transport is estimated";
    run->rate_doubt = "the rate of the transport differs between runs";
    for (uint32_t i = 0; i < rp_overlay_ntasks(&run->overlay); i++) {
        const struct rp_collective *c = collective_of(run, i);
        enum rp_coll_kind kind = c ? (enum rp_coll_kind)c->kind : RP_COLL_ALL_REDUCE;
        struct shape now = shape_of(kind, (double)net.world, net.tree);
        struct shape then = shape_of(kind, n, net.tree);

        if (is_transfer(run, i) && spans_all(&net, c))
            RP_TRY(change_transfer(
                run, &net, i,
                (struct shape){then.rounds / now.rounds, shared * then.bytes / now.bytes}, err));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ net.* */

struct unit {
    const char *name;
    double value;
};

static const struct unit rates[] = {
    {"x", 1},        {"%", 0.01},       {"GB/s", 1},         {"MB/s", 1e-3},
    {"Gbps", 0.125}, {"Gbit/s", 0.125}, {"Mbit/s", 1.25e-4}, {NULL, 0}};
static const struct unit times[] = {{"x", 1},    {"%", 0.01}, {"ns", 1},
                                    {"us", 1e3}, {"ms", 1e6}, {NULL, 0}};

/* "2x", "50%" or a number with a unit; *is_factor says which. */
static enum rp_code read_value(const struct rp_whatif_args *args, const struct unit *units,
                               const char *expected, double *out, bool *is_factor,
                               struct rp_err *err)
{
    char *end = NULL;

    *is_factor = true;
    *out = args->value ? strtod(args->value, &end) : 0;
    if (end && end != args->value && isfinite(*out) && *out > 0 && *out <= 1e9)
        for (size_t i = 0; units[i].name; i++)
            if (!strcmp(end, units[i].name)) {
                *out *= units[i].value;
                *is_factor = i < 2;
                return RP_OK;
            }
    return rp_err_set(err, RP_USAGE, "'%s': %s is expected after '='", args->text, expected);
}

/* Changes the rate of the busiest link, as nccl-tests counts it. */
static enum rp_code bandwidth_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                    struct rp_err *err)
{
    struct network net;
    double value, now;
    bool is_factor;

    RP_TRY(read_value(args, rates, "a factor (2x) or a rate (100Gbps, 12GB/s)", &value, &is_factor,
                      err));
    RP_TRY(rp_whatif_check(&rp_whatif_bandwidth, run, args, err));
    RP_TRY(network_init(run, &net, err));
    if (!is_factor && (!net.transport.n || net.world < 2))
        return rp_err_set(err, RP_UNSUPPORTED,
                          "net.bandwidth: the recorded rate is not known (no all-reduce with its "
                          "size): give a factor");
    now = is_factor ? 1
                    : net.transport.bytes_per_ns *
                          shape_of(RP_COLL_ALL_REDUCE, (double)net.world, false).bytes;
    run->uses_transport = true;
    run->latency_doubt = "the latency of the transport is estimated";
    run->rate_doubt = "the rate of the transport differs between runs";
    now *= rp_sim_lean_by(run, rp_transport_doubt(&net.transport));
    return change_transfers(run, &net, (struct shape){1, now / value}, err);
}

/* Changes the time of one round of messages; a ring of n has 2 (n - 1) rounds. */
static enum rp_code latency_apply(struct rp_sim_run *run, const struct rp_whatif_args *args,
                                  struct rp_err *err)
{
    struct network net;
    double value, now;
    bool is_factor;

    RP_TRY(read_value(args, times, "a factor (0.5x) or a time (10us)", &value, &is_factor, err));
    RP_TRY(rp_whatif_check(&rp_whatif_latency, run, args, err));
    RP_TRY(network_init(run, &net, err));
    if (!net.transport.n || net.transport.latency_ns <= 0 || net.world < 2)
        return rp_err_set(err, RP_UNSUPPORTED,
                          "net.latency: the recorded latency is not known: it needs all-reduces "
                          "with their sizes");
    now = is_factor ? 1
                    : net.transport.latency_ns /
                          shape_of(RP_COLL_ALL_REDUCE, (double)net.world, false).rounds;
    return change_transfers(run, &net, (struct shape){value / now, 1}, err);
}

/* Proposes the other algorithm among as many ranks, because NCCL has both. */
static enum rp_code ranks_propose(const struct rp_sim_run *run, struct rp_arena *arena,
                                  rp_whatif_texts *out, struct rp_err *err)
{
    const struct rp_collectives *c = &run->parts[0]->collectives;
    int64_t world = world_of(run);

    if (c->on_host || !c->list.n || world <= 2) /* a ring of two ranks is a tree */
        return RP_OK;
    return rp_vec_push(out, rp_arena_textf(arena, "ranks:tree=%lld", (long long)world), err);
}

static const struct rp_whatif_move ranks_move = {.name = "collective-algorithm",
                                                 .family = "overlap",
                                                 .effort = 3,
                                                 .apply = "NCCL_ALGO=Tree",
                                                 .propose = ranks_propose};

const struct rp_whatif rp_whatif_ranks = {
    .name = "ranks",
    .form = "ranks[:ring|tree]=<N>",
    .summary =
        "N ranks with the same work each: collectives have the rounds and bytes of a ring (or "
        "tree) of N ranks",
    .assumes =
        "the work of a rank stays the same, ranks differ as the recorded ones do (the slowest of "
        "more ranks is slower), and each rank gets the same bandwidth; for host collectives the "
        "prediction lies between ranks on separate machines and ranks that share one",
    .has_subject = true,
    .sums = true,
    .value = RP_WHATIF_WORD,
    .move = &ranks_move,
    .applies = ranks_applies,
    .apply = ranks_apply};

const struct rp_whatif rp_whatif_bandwidth = {
    .name = "net.bandwidth",
    .form = "net.bandwidth=<factor>x|<rate>",
    .summary =
        "the bandwidth of the network is multiplied by the factor, or set to a rate (100Gbps, "
        "12GB/s on the busiest link)",
    .assumes = "transfers are limited by the network, except for their latency",
    .value = RP_WHATIF_WORD,
    .applies = rp_sim_needs_comm,
    .apply = bandwidth_apply};

const struct rp_whatif rp_whatif_latency = {
    .name = "net.latency",
    .form = "net.latency=<factor>x|<time>",
    .summary =
        "the latency of a round of messages is multiplied by the factor, or set to a time (10us)",
    .assumes = "the latency is what small all-reduces took beyond the rate of large ones, divided "
               "among the rounds of a ring",
    .value = RP_WHATIF_WORD,
    .applies = rp_sim_needs_comm,
    .apply = latency_apply};
