/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduces what is kept about a rank after its trace is released. The chain (chain.c) enters and
 * leaves a rank only where its span or one of its collectives begins or ends, so only sums matter
 * between two such edges; and compute is asked for only inside of collectives.
 *
 *     gaps       .a.b..a....[ AR ]..b.a.        kept:  aaa b [ AR ] a b      as many gaps as causes
 *     compute    ==  ==  ======  ===  ==        kept:        =====           what overlaps AR
 *
 * So the part of a rank grows with its collectives, not with its kernels. Sorting dominates.
 */
#include "explain/report/report.h"

typedef RP_VEC(int64_t) edge_vec;

/* Lists the edges in order; `inside` gets the union of the collectives. */
static enum rp_code list_edges(const struct rp_report_part *part, edge_vec *edges,
                               rp_interval_vec *inside, struct rp_err *err)
{
    const struct rp_collective *c = part->collectives.list.at;
    size_t i, n = part->collectives.list.n;

    RP_TRY(rp_vec_reserve(edges, 2 * n + 2, err));
    RP_TRY(rp_vec_reserve(inside, n + 1, err));
    edges->at[edges->n++] = part->whole.begin_ns;
    edges->at[edges->n++] = part->whole.end_ns;
    for (i = 0; i < n; i++) {
        edges->at[edges->n++] = c[i].begin_ns;
        edges->at[edges->n++] = c[i].end_ns;
        inside->at[inside->n++] = (struct rp_interval){c[i].begin_ns, c[i].end_ns};
    }
    rp_ns_sort(edges->at, edges->n);
    inside->n = rp_union_sort(inside->at, inside->n);
    return RP_OK;
}

/* ------------------------------------------------------------------ gaps */

/* The gaps between two edges, by cause. */
struct stretch {
    int64_t at_ns; /* where the first of them begins */
    int64_t ns[RP_GAP_CAUSES];
    bool used;
};

/* The gaps are put one after the other; together they fit before the next edge. */
static enum rp_code end_stretch(struct stretch *s, rp_gap_vec *to, struct rp_err *err)
{
    for (int c = 0; c < RP_GAP_CAUSES && s->used; c++) {
        struct rp_gap gap = {.begin_ns = s->at_ns,
                             .end_ns = rp_ns_sum(s->at_ns, s->ns[c]),
                             .before = RP_NONE,
                             .after = RP_NONE,
                             .host = RP_NONE,
                             .cause = (uint8_t)c};

        if (s->ns[c])
            RP_TRY(rp_vec_push(to, gap, err));
        s->at_ns = gap.end_ns;
    }
    *s = (struct stretch){0};
    return RP_OK;
}

/* Whether gaps follow each other, which they may not in damaged files. */
static bool are_in_order(const rp_gap_vec *gaps)
{
    for (size_t i = 0; i < gaps->n; i++)
        if (gaps->at[i].cause >= RP_GAP_CAUSES || gaps->at[i].end_ns < gaps->at[i].begin_ns ||
            rp_ns_between(gaps->at[i].begin_ns, gaps->at[i].end_ns) < 0 ||
            (i && gaps->at[i].begin_ns < gaps->at[i - 1].end_ns))
            return false;
    return true;
}

static enum rp_code merge_gaps(const rp_gap_vec *gaps, const edge_vec *edges, rp_gap_vec *to,
                               struct rp_err *err)
{
    struct stretch s = {0};
    size_t i, edge = 0;

    for (i = 0; i < gaps->n; i++) {
        const struct rp_gap *gap = &gaps->at[i];
        int64_t at = gap->begin_ns, end;

        for (; at < gap->end_ns; at = end) {
            for (; edge < edges->n && edges->at[edge] <= at; edge++)
                RP_TRY(end_stretch(&s, to, err));
            end = edge < edges->n && edges->at[edge] < gap->end_ns ? edges->at[edge] : gap->end_ns;
            s.at_ns = s.used ? s.at_ns : at;
            s.used = true;
            rp_ns_add(&s.ns[gap->cause], rp_ns_between(at, end));
        }
    }
    return end_stretch(&s, to, err);
}

/* ------------------------------------------------------------------ work */

/* Finds the time between two edges in which only copies run. */
static enum rp_code find_copies(const struct rp_report_part *part, const edge_vec *edges,
                                rp_interval_vec *to, struct rp_err *err)
{
    const rp_interval_vec *busy = &part->busy, *kernels = &part->kernels;

    for (size_t i = 0; part->on_device && i + 1 < edges->n; i++) {
        int64_t begin = edges->at[i], end = edges->at[i + 1], ns;

        if (begin >= end)
            continue;
        ns = rp_ns_between(rp_union_covers(kernels->at, kernels->n, begin, end),
                           rp_union_covers(busy->at, busy->n, begin, end));
        if (ns > 0)
            RP_TRY(rp_vec_push(to, ((struct rp_interval){begin, rp_ns_sum(begin, ns)}), err));
    }
    return RP_OK;
}

/* The part of a union inside another one. */
static enum rp_code cut_union(const rp_interval_vec *u, const rp_interval_vec *inside,
                              rp_interval_vec *to, struct rp_err *err)
{
    size_t i, k = 0;

    for (i = 0; i < inside->n; i++) {
        const struct rp_interval *x = &inside->at[i];

        while (k < u->n && u->at[k].end_ns <= x->begin_ns)
            k++;
        for (; k < u->n && u->at[k].begin_ns < x->end_ns; k++) {
            struct rp_interval piece = u->at[k];

            piece.begin_ns = piece.begin_ns > x->begin_ns ? piece.begin_ns : x->begin_ns;
            piece.end_ns = piece.end_ns < x->end_ns ? piece.end_ns : x->end_ns;
            RP_TRY(rp_vec_push(to, piece, err));
            if (u->at[k].end_ns > x->end_ns)
                break; /* it may also be inside the next one */
        }
    }
    return RP_OK;
}

enum rp_code rp_report_trim(struct rp_report_part *part, struct rp_err *err)
{
    rp_interval_vec inside = {0}, copies = {0}, compute = {0};
    rp_gap_vec gaps = {0};
    edge_vec edges = {0};
    enum rp_code code = list_edges(part, &edges, &inside, err);

    if (code == RP_OK && are_in_order(&part->gaps)) {
        code = merge_gaps(&part->gaps, &edges, &gaps, err);
        rp_vec_release(&part->gaps);
        part->gaps = gaps;
    }
    if (code == RP_OK)
        code = find_copies(part, &edges, &copies, err);
    if (code == RP_OK)
        code = cut_union(&part->compute, &inside, &compute, err);
    rp_vec_release(&part->kernels);
    rp_vec_release(&part->busy);
    rp_vec_release(&part->compute);
    part->kernels = (rp_interval_vec){0};
    part->busy = copies;
    part->compute = compute;
    rp_vec_release(&edges);
    rp_vec_release(&inside);
    return code;
}
