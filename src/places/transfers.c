/* SPDX-License-Identifier: Apache-2.0 */
#include "places/transfers.h"

#include "base/decides.h"
#include "base/hash.h"
#include "base/order.h"
#include "places/peers.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_SIGMA 4.0
RP_DECISION(GROUP_SIGMA, "deviations",
            "medians of some transfers; of normal scatter one in thirty thousand is beyond",
            "places/a_slow_group_is_beyond_the_scatter_of_the_best");
#define ONE_SIGMA 10.0
RP_DECISION(ONE_SIGMA, "deviations",
            "single transfers have long tails: one flow more on a link doubles some of them",
            "places/one_slow_transfer_is_far_from_the_others");
#define ONE_SHARE 0.5
RP_DECISION(ONE_SHARE, "of the reference",
            "with another flow on its link a transfer takes up to twice as long; half of that is "
            "noticed",
            "places/one_slow_transfer_is_far_from_the_others");
RP_ORDER(by_group, struct rp_place_sample, RP_UP(cls), RP_UP(group), RP_UP(dur_ns), RP_UP(at))

struct judge {
    struct rp_place_transfers *out;
    struct rp_rerun *rerun;
    const struct rp_rendezvous_list *rendezvous;
    const uint32_t *host_of;
    struct rp_arena *arena;
    struct rp_place_sample *list;
    size_t n;
};

bool rp_place_transfer_touches(const struct rp_place_transfer *t, uint32_t host)
{
    for (uint32_t i = 0; i < t->nhosts; i++)
        if (t->hosts[i] == host)
            return true;
    return false;
}

static enum rp_code find_hosts(struct judge *j, uint32_t slot, const struct rp_rendezvous *m,
                               struct rp_err *err)
{
    struct rp_place_transfer *t = &j->out->at[slot];
    uint32_t n = 0;

    t->hosts = RP_ARENA_NEW(j->arena, uint32_t, m->n);
    RP_TRY(rp_err_need(t->hosts, err, "comparing transfers"));
    for (uint32_t k = 0; k < m->n; k++) {
        uint32_t host = j->host_of[m->rank[k]], at = n;

        if (host == RP_NONE)
            return RP_OK;
        while (at > 0 && t->hosts[at - 1] > host)
            at--;
        if (at > 0 && t->hosts[at - 1] == host)
            continue;
        memmove(&t->hosts[at + 1], &t->hosts[at], (n - at) * sizeof *t->hosts);
        t->hosts[at] = host;
        n++;
    }
    t->nhosts = n;
    return RP_OK;
}

/* The group of a slot is defined by kind, size, ranks and whether it leaves the host, and by its
   members. If hosts are not known, groups may be of different classes, and nothing is compared. */
static enum rp_code add_slot(struct judge *j, uint32_t slot, struct rp_err *err)
{
    const struct rp_rerun_slot *s = &j->rerun->slots[slot];
    const struct rp_rendezvous *m = &j->rendezvous->at[s->rendezvous];
    const struct rp_rerun_rank *rank = &j->rerun->ranks[m->rank[0]];
    const struct rp_collective *c = &rank->list->list.at[m->at[0]];
    struct rp_place_transfer *t = &j->out->at[slot];
    struct rp_place_sample one = {.dur_ns = (double)s->dur_ns, .at = slot};

    t->step = rank->steps[rank->course->ops[rank->op_of[m->at[0]]].step];
    RP_TRY(find_hosts(j, slot, m, err));
    if (!t->nhosts || m->members > (int64_t)m->n)
        return RP_OK;
    one.cls = rp_place_sample_class(c, m->n, t->nhosts > 1);
    for (uint32_t k = 0; k < m->n; k++)
        one.group = rp_hash_join(one.group, m->rank[k]);
    j->list[j->n++] = one;
    return RP_OK;
}

static double median_from(const struct rp_place_sample *m, size_t n)
{
    return (m[(n - 1) / 2].dur_ns + m[n / 2].dur_ns) / 2;
}

/* Returns how far the transfers of a group are from its median. */
static double scatter_of(double *scratch, const struct rp_place_sample *m, size_t n)
{
    for (size_t i = 0; i < n; i++)
        scratch[i] = m[i].dur_ns;
    return rp_peers_sigma(scratch, n);
}

/* A group that is slow takes the time of the best and keeps its jitter. */
static void cut_group(struct rp_place_sample *m, size_t n, double ref, double sigma)
{
    double middle = median_from(m, n), more = RP_PLACE_GROUP_SHARE * ref;

    more = GROUP_SIGMA * sigma > more ? GROUP_SIGMA * sigma : more;
    for (size_t i = 0; i < n; i++) {
        double far = ONE_SIGMA * sigma > ONE_SHARE * ref ? ONE_SIGMA * sigma : ONE_SHARE * ref;
        double cut = 0;

        if (middle > ref + more)
            cut = m[i].dur_ns * (1 - ref / middle);
        else if (m[i].dur_ns > ref + far)
            cut = m[i].dur_ns - ref;
        m[i].cut_ns = cut;
    }
}

static void judge_class(struct rp_place_sample *m, size_t n, double *scratch)
{
    size_t i, end, best = 0, nbest = 0, ngroups = 0;

    for (i = 0; i < n; i = end, ngroups++) {
        for (end = i; end < n && m[end].group == m[i].group; end++)
            ;
        if (!nbest || median_from(&m[i], end - i) < median_from(&m[best], nbest)) {
            best = i;
            nbest = end - i;
        }
    }
    if (ngroups < 2)
        return;
    for (i = 0; i < n; i = end) {
        for (end = i; end < n && m[end].group == m[i].group; end++)
            ;
        cut_group(&m[i], end - i, median_from(&m[best], nbest),
                  scatter_of(scratch, &m[best], nbest));
    }
}

enum rp_code rp_place_samples_judge(struct rp_place_sample *list, size_t n, struct rp_err *err)
{
    double *scratch = malloc((n + 1) * sizeof *scratch);
    size_t i, end;

    RP_TRY(rp_err_need(scratch, err, "comparing transfers"));
    rp_sort(list, n, sizeof *list, by_group);
    for (i = 0; i < n; i = end) {
        for (end = i; end < n && list[end].cls == list[i].cls; end++)
            ;
        judge_class(&list[i], end - i, scratch);
    }
    free(scratch);
    return RP_OK;
}

uint64_t rp_place_sample_class(const struct rp_collective *c, uint32_t members, bool between)
{
    return rp_hash_join(
        rp_hash_join(rp_hash_join(c->kind, (uint64_t)c->in_bytes), (uint64_t)c->out_bytes),
        (uint64_t)members << 1 | between);
}

static int by_hash(const void *a, const void *b)
{
    return RP_COMPARE(*(const uint64_t *)a, *(const uint64_t *)b);
}

uint64_t rp_place_role(const struct rp_collectives *list, const struct rp_pipe_stage *stages,
                       size_t rank)
{
    uint64_t *kinds = malloc((list->list.n + 1) * sizeof *kinds),
             out = stages ? stages[rank].stage + UINT64_C(2) : 1;

    for (size_t i = 0; kinds && i < list->list.n; i++) {
        const struct rp_collective *c = &list->list.at[i];
        bool uneven = c->kind == RP_COLL_ALL_TO_ALL;

        kinds[i] = rp_hash_join(rp_hash_join(c->kind, (uint64_t)c->group_size),
                                uneven ? 0 : (uint64_t)c->in_bytes);
    }
    rp_sort(kinds, kinds ? list->list.n : 0, sizeof *kinds, by_hash);
    for (size_t i = 0; kinds && i < list->list.n; i++)
        if (!i || kinds[i] != kinds[i - 1])
            out = rp_hash_join(out, kinds[i]);
    free(kinds);
    return out;
}

RP_ORDER(by_pair, struct rp_place_pair, RP_UP(a), RP_UP(b))

static enum rp_code list_pairs(struct judge *j, struct rp_err *err)
{
    struct rp_place_transfers *out = j->out;
    size_t n = 0;

    out->pairs = RP_ARENA_NEW(j->arena, struct rp_place_pair, j->rerun->nslots + 1);
    RP_TRY(rp_err_need(out->pairs, err, "comparing transfers"));
    for (size_t s = 0; s < j->rerun->nslots; s++)
        if (out->at[s].nhosts == 2 && j->rerun->slots[s].cut_ns > 0)
            out->pairs[n++] = (struct rp_place_pair){out->at[s].hosts[0], out->at[s].hosts[1]};
    rp_sort(out->pairs, n, sizeof *out->pairs, by_pair);
    for (size_t i = 0; i < n; i++)
        if (!i || by_pair(&out->pairs[i], &out->pairs[out->npairs - 1]) != 0)
            out->pairs[out->npairs++] = out->pairs[i];
    return RP_OK;
}

enum rp_code rp_place_transfers_judge(struct rp_place_transfers *out, struct rp_rerun *rerun,
                                      const struct rp_rendezvous_list *rendezvous,
                                      const uint32_t *host_of, struct rp_arena *arena,
                                      struct rp_err *err)
{
    struct judge j = {
        .out = out, .rerun = rerun, .rendezvous = rendezvous, .host_of = host_of, .arena = arena};

    *out = (struct rp_place_transfers){0};
    out->at = RP_ARENA_NEW(arena, struct rp_place_transfer, rerun->nslots + 1);
    j.list = RP_ARENA_NEW(arena, struct rp_place_sample, rerun->nslots + 1);
    RP_TRY(rp_arena_check(arena, "comparing transfers", err));
    for (uint32_t s = 0; s < rerun->nslots; s++)
        if (rerun->slots[s].rendezvous != RP_NONE)
            RP_TRY(add_slot(&j, s, err));
    RP_TRY(rp_place_samples_judge(j.list, j.n, err));
    for (size_t i = 0; i < j.n; i++)
        rerun->slots[j.list[i].at].cut_ns = (float)j.list[i].cut_ns;
    return list_pairs(&j, err);
}
