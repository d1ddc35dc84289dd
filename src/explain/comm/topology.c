/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collective is slow if its transfer takes several times as long as its start and its bytes on
 * the busiest link need. Small ones, whose bytes need less time than the start, say nothing about a
 * link; neither do a few slow ones among many.
 */
#include "explain/comm/topology.h"

#include "base/decides.h"
#include "result/print_units.h"

#include <string.h>

#define SLOW_TIMES 4
RP_DECISION(SLOW_TIMES, "times what the link needs",
            "beside compute a healthy link gives half; another path (sockets, host memory) a tenth",
            "explain/a_slow_link_has_edges");
#define NODE_DEVICES 8
RP_FACT(NODE_DEVICES, "devices",
        "servers with links between devices (DGX, HGX, MI300X) have 8 of them");

const char *const rp_place_names[RP_PLACES + 1] = {"node", "between", NULL};

static const char *host_of(const struct rp_topology *t, const struct rp_rendezvous *m, uint32_t i)
{
    return t->ranks[m->rank[i]]->host;
}

enum rp_place rp_topology_place(const struct rp_topology *t, const struct rp_rendezvous *m)
{
    const char *first = host_of(t, m, 0);
    bool between = false;

    if (t->one_process)
        return RP_PLACE_NODE;
    for (uint32_t i = 0; i < m->n; i++) {
        const char *host = host_of(t, m, i);

        if (!host != !first)
            return RP_PLACE_UNKNOWN;
        between = between || (host && strcmp(host, first) != 0);
    }
    if (between || m->members > (int64_t)m->n)
        return between ? RP_PLACE_BETWEEN : RP_PLACE_UNKNOWN;
    return first || t->world_size <= NODE_DEVICES ? RP_PLACE_NODE : RP_PLACE_UNKNOWN;
}

/* The smallest number of participants on one host. Ranks of a host follow each other. */
static uint32_t fewest_on_host(const struct rp_topology *t, const struct rp_rendezvous *m)
{
    uint32_t fewest = m->n, here = 0;

    for (uint32_t i = 0; i < m->n; i++) {
        here++;
        if (i + 1 < m->n && !strcmp(host_of(t, m, i), host_of(t, m, i + 1)))
            continue;
        fewest = here < fewest ? here : fewest;
        here = 0;
    }
    return fewest;
}

double rp_topology_can(const struct rp_topology *t, const struct rp_rendezvous *m)
{
    enum rp_place place = rp_topology_place(t, m);

    if (place == RP_PLACE_UNKNOWN || t->ranks[m->rank[0]]->on_host || !t->at[place].link)
        return 0;
    return t->at[place].link->bytes_per_s *
           (place == RP_PLACE_BETWEEN ? (double)fewest_on_host(t, m) : 1);
}

/* Returns the time of the transfer of a collective; sets its size, and its bytes on the busiest
   link. 0: not known. */
static double measure(const struct rp_topology *t, const struct rp_rendezvous *m, int64_t *ns,
                      int64_t *size)
{
    uint8_t kind = t->ranks[m->rank[0]]->list.at[m->at[0]].kind;

    *ns = *size = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct rp_collective *c = &t->ranks[m->rank[i]]->list.at[m->at[i]];
        int64_t bytes = rp_collective_size(c, m->members);
        int64_t left = rp_ns_between(rp_rendezvous_wait(t->list, t->ranks, m, i),
                                     rp_ns_between(c->begin_ns, c->end_ns));

        *size = bytes > *size ? bytes : *size;
        *ns = left > *ns ? left : *ns;
    }
    return m->members > (int64_t)m->n || *ns <= 0
               ? 0
               : (double)*size * rp_coll_bus_factor(kind, m->members);
}

/* The longest time that a large collective should take without its start, in seconds; 0: not
   judged. */
static double needs(const struct rp_topology *t, const struct rp_rendezvous *m, int64_t *ns,
                    int64_t *size, double *bytes)
{
    double can = rp_topology_can(t, m);

    *bytes = can > 0 ? measure(t, m, ns, size) : 0;
    return *bytes > 0 && *bytes / can >= RP_COMM_START_S ? RP_COMM_START_S + *bytes / can : 0;
}

int64_t rp_topology_excess(const struct rp_topology *t, const struct rp_rendezvous *m)
{
    enum rp_place place = rp_topology_place(t, m);
    double bytes, need;
    int64_t ns, size;

    if (place == RP_PLACE_UNKNOWN || !t->at[place].alarm)
        return 0;
    need = needs(t, m, &ns, &size, &bytes);
    return need > 0 && (double)ns * 1e-9 > SLOW_TIMES * need
               ? rp_ns_between((int64_t)(need * 1e9), ns)
               : 0;
}

static void judge_one(struct rp_topology *t, const struct rp_rendezvous *m)
{
    enum rp_place place = rp_topology_place(t, m);
    double bytes, need;
    int64_t ns, size;

    if (place == RP_PLACE_UNKNOWN)
        return;
    struct rp_place_use *use = &t->at[place];
    need = needs(t, m, &ns, &size, &bytes);
    use->large += need > 0;
    if (need <= 0 || (double)ns * 1e-9 <= SLOW_TIMES * need)
        return;
    use->slow++;
    if (use->worst && ns <= use->worst_ns)
        return;
    use->worst = m;
    use->worst_ns = ns;
    use->worst_bytes = size;
    use->worst_bytes_per_s = bytes / ((double)ns * 1e-9);
    use->worst_can = rp_topology_can(t, m);
}

void rp_topology_judge(struct rp_topology *t)
{
    memset(t->at, 0, sizeof t->at);
    t->at[RP_PLACE_NODE].link = rp_link_of_device(t->device);
    t->at[RP_PLACE_BETWEEN].link = rp_link_between_nodes(t->device);
    for (size_t i = 0; i < t->list->n; i++)
        judge_one(t, &t->list->at[i]);
    for (int i = 0; i < RP_PLACES; i++)
        t->at[i].alarm = t->at[i].slow && 2 * t->at[i].slow >= t->at[i].large;
}

const char *rp_topology_text(const struct rp_topology *t, enum rp_place place,
                             struct rp_arena *arena)
{
    static const char *const where[] = {"within a node", "between nodes"};
    static const char *const ask[] = {
        "Is peer access off, or does the library use shared memory or sockets (NCCL_DEBUG=INFO "
        "says)?",
        "Does the library use the network cards of all devices, with RDMA (NCCL_DEBUG=INFO says "
        "NET/IB or NET/Socket)?"};
    const struct rp_place_use *use = &t->at[place];

    if (!use->alarm)
        return NULL;
    const struct rp_collective *worst = &t->ranks[use->worst->rank[0]]->list.at[use->worst->at[0]];
    const char *how = rp_coll_algorithm_name(worst->algorithm);
    return rp_arena_textf(
        arena,
        "slow link: %zu of %zu large collectives %s get less than a quarter of what %s of the %s "
        "carries (%s each way%s); the longest: %s of %s in %s%s%s, %s over the busiest link, which can "
        "carry %s. %s",
        use->slow, use->large, where[place], use->link->name, t->device,
        rp_units_text(arena, use->link->bytes_per_s, RP_UNIT_BPS),
        place == RP_PLACE_BETWEEN ? " and device" : "", rp_coll_kind_names[worst->kind],
        rp_units_text(arena, (double)use->worst_bytes, RP_UNIT_BYTES),
        rp_units_time(arena, use->worst_ns), how ? " by " : "", how ? how : "",
        rp_units_text(arena, use->worst_bytes_per_s, RP_UNIT_BPS),
        rp_units_text(arena, use->worst_can, RP_UNIT_BPS), ask[place]);
}
