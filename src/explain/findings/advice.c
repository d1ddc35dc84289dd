/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses advice: for each topic the row that matches in most keys, or the first of several; topics
   in their order, as many as fit on the screen. */
#include "explain/findings/finding.h"

unsigned rp_finding_kind(const struct rp_finding *finding, const char *key)
{
    unsigned i = 0;

    while (finding->kinds[i].title && strcmp(finding->kinds[i].key, key) != 0)
        i++;
    return i;
}

/* Increments *score if the key is given and holds; false if it does not hold. */
static bool set_holds(unsigned set, unsigned value, int *score)
{
    if (!set)
        return true;
    *score += 1;
    return set >> value & 1;
}

static bool flag_holds(uint8_t key, bool value, int *score)
{
    if (key == RP_KEY_ANY)
        return true;
    *score += 1;
    return value == (key == RP_KEY_YES);
}

/* The number of keys of a row that a program matches; -1 if one does not. */
static int row_score(const struct rp_advice_row *row, const struct rp_workload *w)
{
    int score = 0;
    bool holds =
        set_holds(row->frameworks, w->framework, &score) &&
        set_holds(row->vendors, w->vendor, &score) && set_holds(row->modes, w->mode, &score) &&
        set_holds(row->parallels, w->parallel, &score) &&
        set_holds(row->transports, w->transport, &score) &&
        set_holds(row->serves, w->serves, &score) &&
        flag_holds(row->compiled, w->compiled, &score) &&
        flag_holds(row->graphs, w->graphs, &score) &&
        flag_holds(row->in_graphs, w->in_graphs, &score) &&
        flag_holds(row->ahead, w->ahead, &score) &&
        flag_holds(row->plain_update, w->plain_update, &score) &&
        flag_holds(row->with_stack, w->with_stack, &score) &&
        flag_holds(row->ours, w->ours, &score) && flag_holds(row->sampled, w->sampled, &score) &&
        flag_holds(row->no_bf16, w->no_bf16, &score) &&
        flag_holds(row->half_comm, w->half_comm, &score) &&
        flag_holds(row->system, w->system != RP_SYSTEM_NONE, &score) &&
        (!row->collectives || row->collectives >> w->collective & 1);

    return holds ? score + (row->collectives || row->system ? RP_ADVISE_TOPICS : 0) : -1;
}

size_t rp_advice_find(const struct rp_finding *finding, unsigned kind,
                      const struct rp_workload *workload,
                      const struct rp_advice_row *out[RP_ADVICE_MOST])
{
    const struct rp_advice_row *best[RP_ADVISE_TOPICS] = {NULL};
    int score[RP_ADVISE_TOPICS];
    size_t i, n = 0;

    memset(score, -1, sizeof score);
    for (i = 0; i < finding->nadvice; i++) {
        const struct rp_advice_row *row = &finding->advice[i];
        int now = !row->kinds || row->kinds & OF(kind) ? row_score(row, workload) : -1;

        if (now > score[row->topic]) {
            score[row->topic] = now;
            best[row->topic] = row;
        }
    }
    for (i = 0; i < RP_ADVISE_TOPICS && n < RP_ADVICE_MOST; i++)
        if (best[i] && *best[i]->text)
            out[n++] = best[i];
    return n;
}
