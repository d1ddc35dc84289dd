/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares two replays. Successive runs are not independent (a neighbour's work, a clock that was
 * raised, last for many of them), so the median's own interval is far too narrow for a comparison
 * of two processes. So the low times of blocks of runs, up to twenty for each process, are compared
 * by their ranks (Mann-Whitney). The result counts only if the change exceeds the noise: the usual
 * difference between two starts of one program, the scatter of these times, the change of a fixed
 * piece of work that was timed between the runs, and the time that threads waited for a processor.
 */
#include "replay/replay.h"

#include "base/order.h"
#include "exec/engine/timing.h"
#include "io/json_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGNIFICANT 0.02
#define LEAST       0.03 /* a change that counts */

RP_ORDER(by_time, int64_t, RP_COMPARE(*a, *b))

/* The median of the low times, and the logarithm of the ratio of their quartiles. */
static double low_median(const struct rp_replay_times *t, double *scatter)
{
    int64_t sorted[RP_TIMING_BLOCKS];
    size_t n = t->nblocks, low = n / 4, high = (3 * n - 1) / 4, mid = n / 2, before = (n - 1) / 2;

    memcpy(sorted, t->blocks, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_time);
    *scatter = log((double)sorted[high] / (double)sorted[low]);
    return ((double)sorted[before] + (double)sorted[mid]) / 2;
}

struct old_answer {
    struct rp_replay_times times;
    int64_t blocks[RP_TIMING_BLOCKS];
    const char *engine;
};

static enum rp_code read_old_answer(const char *path, struct rp_arena *arena,
                                    struct old_answer *old, struct rp_err *err)
{
    const struct rp_json_node *root;
    struct rp_replay_times *t = &old->times;
    struct rp_input *in = NULL;

    RP_TRY(rp_input_open(path, NULL, &in, err));
    enum rp_code code = rp_json_tree_read(in, arena, &root, err);
    rp_input_close(in);
    if (code != RP_OK)
        return rp_err_prefix(err, code, "'%s'", path);
    const struct rp_json_node *run = rp_json_get(root, "run_ns");
    *t = (struct rp_replay_times){
        .p50 = rp_json_int(rp_json_get(run, "p50"), 0),
        .n = rp_json_int(rp_json_get(run, "n"), 0),
        .machine = rp_json_int(rp_json_get(run, "machine"), RP_ABSENT_I64),
        .waited_ratio = fmax(rp_json_float(rp_json_get(run, "waited_ratio"), 0), 0),
        .blocks = old->blocks};
    RP_JSON_EACH(block, rp_json_get(run, "blocks"))
    if (t->nblocks < RP_TIMING_BLOCKS)
        old->blocks[t->nblocks++] = rp_json_int(block, 0);
    for (size_t i = 0; i < t->nblocks; i++)
        if (old->blocks[i] <= 0)
            t->nblocks = 0;
    old->engine = rp_json_get(root, "engine")->text;
    if (strcmp(rp_json_get(root, "schema")->text, "reprise.replay/1") != 0 || t->p50 <= 0 ||
        t->n < 1 || !t->nblocks)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' is not the output of 'reprise replay --json' with timed runs",
                          path);
    return RP_OK;
}

enum rp_code rp_replay_compare(const char *path, struct rp_arena *arena, struct rp_replay *root,
                               struct rp_err *err)
{
    struct rp_replay_compared *c = RP_ARENA_NEW(arena, struct rp_replay_compared, 1);
    struct old_answer old = {0};

    RP_TRY(rp_err_need(c, err, "comparing"));
    RP_TRY(read_old_answer(path, arena, &old, err));
    c->with = rp_arena_strdup(arena, path);
    c->engine = rp_arena_strdup(arena, old.engine);
    c->p50_ns = old.times.p50;
    c->n = old.times.n;
    /* Fills ratios; the noise is the least change that counts. */
    const struct rp_replay_times *now = &root->run_ns;
    const struct rp_replay_times *then = &old.times;
    double scatter[2], noise = log1p(LEAST);
    c->change_ratio = low_median(now, &scatter[0]) / low_median(then, &scatter[1]) - 1;
    noise += fmax(scatter[0], scatter[1]) / 2;
    noise += log1p(now->waited_ratio) +
             log1p(then->waited_ratio); /* the most by which runs may be longer */
    c->machine_ratio = (double)NAN;
    if (now->machine > 0 && then->machine > 0) {
        c->machine_ratio = (double)now->machine / (double)then->machine - 1;
        noise += fabs(log1p(c->machine_ratio));
    }
    c->noise_ratio = expm1(noise);
    /* The two-sided p-value for equal runs, by the ranks of the low times of their blocks; 1 if
     * there are none. */
    const struct rp_replay_times *a = &root->run_ns;
    const struct rp_replay_times *b = &old.times;
    double n = (double)a->nblocks, m = (double)b->nblocks, above = 0, ties = 0;
    for (size_t i = 0; i < a->nblocks; i++)
        for (size_t k = 0; k < b->nblocks; k++)
            if (a->blocks[i] == b->blocks[k])
                ties++;
            else
                above += a->blocks[i] > b->blocks[k];
    /* ties count half on both sides, and make it harder to distinguish them */
    double spread = sqrt(n * m * (n + m + 1) / 12 * (1 - ties / (n * m)));
    double z = fabs(above + ties / 2 - n * m / 2) - 0.5;
    c->p_value = spread > 0 && z > 0 ? erfc(z / spread / sqrt(2)) : 1;
    c->verdict = c->p_value >= SIGNIFICANT || fabs(log1p(c->change_ratio)) < log1p(c->noise_ratio)
                     ? "no difference"
                 : c->change_ratio < 0 ? "faster"
                                       : "slower";
    root->compared = c;
    root->ncompared = 1;
    return RP_OK;
}
