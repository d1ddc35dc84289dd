/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing two replays. Runs one after another are not independent (a neighbour's work, a clock
 * that was raised, last for many of them), so the median's own interval is far too narrow for a
 * comparison of two processes. What is compared are the low times of blocks of runs, up to twenty a
 * process, by their ranks (Mann-Whitney). That is believed only where the change is above the
 * noise: what two starts of one program differ by anyway, how far these times scatter, what a fixed
 * piece of work that was timed between the runs changed by, and how long threads waited for a
 * processor.
 */
#include "replay/replay.h"

#include "base/decimal.h"
#include "base/order.h"
#include "exec/engine/timing.h"
#include "io/json_pull.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIGNIFICANT 0.02
#define LEAST       0.03 /* a change that counts */

RP_ORDER(by_time, int64_t, RP_COMPARE(*a, *b))

/* The low times' median, and the logarithm of their upper over their lower quartile. */
static double low_median(const struct rp_replay_times *t, double *scatter)
{
    int64_t sorted[RP_TIMING_BLOCKS];
    size_t n = t->nblocks, low = n / 4, high = (3 * n - 1) / 4, mid = n / 2, before = (n - 1) / 2;

    memcpy(sorted, t->blocks, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_time);
    *scatter = log((double)sorted[high] / (double)sorted[low]);
    return ((double)sorted[before] + (double)sorted[mid]) / 2;
}

/* Two-sided p-value of equal runs, by the ranks of the low times of their blocks; 1 where there are
   none. */
static double p_value_of(const struct rp_replay_times *a, const struct rp_replay_times *b)
{
    double n = (double)a->nblocks, m = (double)b->nblocks, above = 0, ties = 0, spread, z;

    for (size_t i = 0; i < a->nblocks; i++)
        for (size_t k = 0; k < b->nblocks; k++)
            if (a->blocks[i] == b->blocks[k])
                ties++;
            else
                above += a->blocks[i] > b->blocks[k];
    /* ties count half on both sides, and leave less to tell apart */
    spread = sqrt(n * m * (n + m + 1) / 12 * (1 - ties / (n * m)));
    z = fabs(above + ties / 2 - n * m / 2) - 0.5;
    return spread > 0 && z > 0 ? erfc(z / spread / sqrt(2)) : 1;
}

struct old_answer {
    struct rp_replay_times times;
    int64_t blocks[RP_TIMING_BLOCKS];
    bool is_replay;
    char engine[256];
};

static void read_int(struct rp_json *json, int64_t *out)
{
    struct rp_json_token v = {0};

    if (rp_json_value(json, &v) != RP_JSON_NUMBER || rp_decimal_parse(v.text, v.len, 0, out))
        *out = RP_ABSENT_I64;
}

static void read_ratio(struct rp_json *json, double *out)
{
    struct rp_json_token v = {0};
    char text[64] = "";

    if (rp_json_value(json, &v) == RP_JSON_NUMBER && v.len < sizeof text)
        memcpy(text, v.text, v.len);
    *out = fmax(strtod(text, NULL), 0);
}

static void read_blocks(struct rp_json *json, struct rp_replay_times *t)
{
    struct rp_json_token v = {0};

    if (rp_json_value(json, &v) != RP_JSON_ARRAY)
        return;
    while (rp_json_element(json))
        if (t->nblocks < RP_TIMING_BLOCKS)
            read_int(json, &t->blocks[t->nblocks++]);
        else
            rp_json_skip(json);
}

static void read_times(struct rp_json *json, struct rp_replay_times *t)
{
    struct rp_json_token key = {0};

    if (rp_json_value(json, &key) != RP_JSON_OBJECT)
        return;
    while (rp_json_field(json, &key))
        if (rp_json_key_is(&key, "p50"))
            read_int(json, &t->p50);
        else if (rp_json_key_is(&key, "blocks"))
            read_blocks(json, t);
        else if (rp_json_key_is(&key, "waited_ratio"))
            read_ratio(json, &t->waited_ratio);
        else if (rp_json_key_is(&key, "machine"))
            read_int(json, &t->machine);
        else if (rp_json_key_is(&key, "n"))
            read_int(json, &t->n);
        else
            rp_json_skip(json);
}

static void read_answer(struct rp_json *json, struct old_answer *old)
{
    struct rp_json_token key = {0}, v = {0};

    if (rp_json_value(json, &key) != RP_JSON_OBJECT)
        return;
    while (rp_json_field(json, &key))
        if (rp_json_key_is(&key, "run_ns")) {
            read_times(json, &old->times);
        } else if (rp_json_key_is(&key, "schema")) {
            old->is_replay =
                rp_json_value(json, &v) == RP_JSON_STRING && rp_json_key_is(&v, "reprise.replay/1");
        } else if (rp_json_key_is(&key, "engine")) {
            if (rp_json_value(json, &v) == RP_JSON_STRING && v.len < sizeof old->engine)
                memcpy(old->engine, v.text, v.len);
        } else {
            rp_json_skip(json);
        }
}

static enum rp_code read_old_answer(const char *path, struct old_answer *old, struct rp_err *err)
{
    struct rp_json *json = NULL;
    struct rp_input *in = NULL;
    enum rp_code code;

    RP_TRY(rp_input_open(path, NULL, &in, err));
    old->times = (struct rp_replay_times){.p50 = RP_ABSENT_I64, .blocks = old->blocks};
    code = rp_json_open(in, NULL, &json, err);
    if (code == RP_OK) {
        read_answer(json, old);
        code = rp_json_finish(json, err);
    }
    rp_json_close(json);
    rp_input_close(in);
    if (code != RP_OK)
        return rp_err_prefix(err, code, "'%s'", path);
    for (size_t i = 0; i < old->times.nblocks; i++)
        if (old->blocks[i] <= 0)
            old->times.nblocks = 0;
    if (!old->is_replay || old->times.p50 <= 0 || old->times.n < 1 || !old->times.nblocks)
        return rp_err_set(err, RP_FORMAT,
                          "'%s' is not the output of 'reprise replay --json' with timed runs",
                          path);
    return RP_OK;
}

/* Fills ratios, of which the noise is the least change that counts. */
static void weigh_change(const struct rp_replay_times *now, const struct rp_replay_times *then,
                         struct rp_replay_compared *c)
{
    double scatter[2], noise = log1p(LEAST);

    c->change_ratio = low_median(now, &scatter[0]) / low_median(then, &scatter[1]) - 1;
    noise += fmax(scatter[0], scatter[1]) / 2;
    noise += log1p(now->waited_ratio) + log1p(then->waited_ratio); /* at most so much longer */
    c->machine_ratio = (double)NAN;
    if (now->machine > 0 && then->machine > 0) {
        c->machine_ratio = (double)now->machine / (double)then->machine - 1;
        noise += fabs(log1p(c->machine_ratio));
    }
    c->noise_ratio = expm1(noise);
}

enum rp_code rp_replay_compare(const char *path, struct rp_arena *arena, struct rp_replay *root,
                               struct rp_err *err)
{
    struct rp_replay_compared *c = RP_ARENA_NEW(arena, struct rp_replay_compared, 1);
    struct old_answer old = {0};

    RP_TRY(rp_err_need(c, err, "comparing"));
    RP_TRY(read_old_answer(path, &old, err));
    c->with = rp_arena_strdup(arena, path);
    c->engine = rp_arena_strdup(arena, old.engine);
    c->p50_ns = old.times.p50;
    c->n = old.times.n;
    weigh_change(&root->run_ns, &old.times, c);
    c->p_value = p_value_of(&root->run_ns, &old.times);
    c->verdict = c->p_value >= SIGNIFICANT || fabs(log1p(c->change_ratio)) < log1p(c->noise_ratio)
                     ? "no difference"
                 : c->change_ratio < 0 ? "faster"
                                       : "slower";
    root->compared = c;
    root->ncompared = 1;
    return RP_OK;
}
