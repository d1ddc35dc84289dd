/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corrects convolutions by the most similar measured ones. The algorithm that a library chooses
 * depends on details of the shape that no smooth curve follows; similar shapes mostly get the same
 * one.
 */
#include "base/decides.h"
#include "cost/learn/learned.h"

#include <math.h>

#define NEIGHBOURS 4
RP_DECISION(
    NEIGHBOURS, "convolutions",
    "the most similar ones tell which algorithm is taken; errors in docs/cli/model.md, conv2d",
    "cost/four_neighbours_count");
#define SAME 0.02
RP_DECISION(SAME, "of squared distances",
            "added to each: below it neighbours hardly differ; errors in docs/cli/model.md, conv2d",
            "cost/four_neighbours_count");

struct neighbour {
    double distance; /* squared */
    uint32_t row;
};

/* Inserts into the n nearest ones. */
static int insert(struct neighbour *near, int n, struct neighbour new)
{
    int i = n < NEIGHBOURS ? n++ : NEIGHBOURS - 1;

    for (; i && near[i - 1].distance > new.distance; i--)
        near[i] = near[i - 1];
    near[i] = new;
    return n;
}

double rp_neighbours_shift(const struct rp_learned *m, const struct rp_fit *fit,
                           const struct rp_features *x)
{
    struct neighbour near[NEIGHBOURS];
    double sum = 0, weight = 0;
    int n = 0;

    for (uint32_t i = fit->first; i < fit->end && i < m->samples.rows.n; i++) {
        double distance = 0;

        if (m->samples.rows.at[i].kind != RP_OP_CONV)
            continue;
        const struct rp_features *known = rp_learned_features(m, i);
        for (int k = 0; k < RP_CONV_TRAITS; k++) {
            double gap = x->trait[k] - known->trait[k];

            distance += gap * gap;
        }
        if (n < NEIGHBOURS || distance < near[n - 1].distance)
            n = insert(near, n, (struct neighbour){distance, i});
    }
    for (int i = 0; i < n; i++) {
        const struct rp_sample *row = &m->samples.rows.at[near[i].row];
        double w = 1 / (near[i].distance + SAME);

        sum += w * (log(row->ns / 1e9) - rp_fit_at(fit, &m->features.at[near[i].row], row->type));
        weight += w;
    }
    return n ? sum / weight : 0;
}
