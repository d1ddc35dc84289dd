/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing two replays. An answer of `replay` has the median of its runs and the interval that
 * holds the true one with 95 % confidence, whatever the distribution. Half of that interval over
 * 1.96 is taken as the standard error of the median; the difference of two independent medians over
 * the root of the summed squares is then nearly normal, which gives the p-value.
 */
#include "api/replay_compare.h"

#include "base/decimal.h"
#include "io/json_pull.h"

#include <math.h>
#include <string.h>

#define SIGNIFICANT 0.05

/* A clock has no finer steps: two medians from one value each are not known better than this. */
#define STEP_NS 1.0

static double error_of(const struct rp_replay_times *t)
{
    double half = (double)(t->p50_high - t->p50_low) / 2;

    return fmax(half, STEP_NS) / 1.96;
}

double rp_replay_p_value(const struct rp_replay_times *a, const struct rp_replay_times *b)
{
    double z = fabs((double)a->p50 - (double)b->p50) / hypot(error_of(a), error_of(b));

    return erfc(z / sqrt(2));
}

struct old_answer {
    struct rp_replay_times times;
    bool is_replay;
    char engine[256];
};

static void read_number(struct rp_json *json, int64_t *out)
{
    struct rp_json_token v = {0};

    if (rp_json_value(json, &v) != RP_JSON_NUMBER || rp_decimal_parse(v.text, v.len, 0, out))
        *out = RP_ABSENT_I64;
}

static void read_times(struct rp_json *json, struct rp_replay_times *t)
{
    struct rp_json_token key = {0};

    if (rp_json_value(json, &key) != RP_JSON_OBJECT)
        return;
    while (rp_json_field(json, &key))
        if (rp_json_key_is(&key, "p50"))
            read_number(json, &t->p50);
        else if (rp_json_key_is(&key, "p50_low"))
            read_number(json, &t->p50_low);
        else if (rp_json_key_is(&key, "p50_high"))
            read_number(json, &t->p50_high);
        else if (rp_json_key_is(&key, "n"))
            read_number(json, &t->n);
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

static enum rp_code read_file(const char *path, struct old_answer *old, struct rp_err *err)
{
    struct rp_json *json = NULL;
    struct rp_input *in = NULL;
    enum rp_code code;

    RP_TRY(rp_input_open(path, NULL, &in, err));
    old->times.p50 = old->times.p50_low = old->times.p50_high = old->times.n = RP_ABSENT_I64;
    code = rp_json_open(in, NULL, &json, err);
    if (code == RP_OK) {
        read_answer(json, old);
        code = rp_json_finish(json, err);
    }
    rp_json_close(json);
    rp_input_close(in);
    if (code != RP_OK)
        return rp_err_prefix(err, code, "'%s'", path);
    if (!old->is_replay || old->times.p50 <= 0 || old->times.p50_low < 0 ||
        old->times.p50_high < old->times.p50_low || old->times.n < 1)
        return rp_err_set(err, RP_FORMAT, "'%s' is no answer of 'reprise replay --json' with runs",
                          path);
    return RP_OK;
}

enum rp_code rp_replay_compare(const char *path, struct rp_arena *arena, struct rp_replay *root,
                               struct rp_err *err)
{
    struct rp_replay_compared *c = RP_ARENA_NEW(arena, struct rp_replay_compared, 1);
    struct old_answer old = {0};
    bool significant;

    if (!c)
        return rp_err_nomem(err, "comparing");
    RP_TRY(read_file(path, &old, err));
    c->with = rp_arena_strdup(arena, path);
    c->engine = rp_arena_strdup(arena, old.engine);
    c->p50_ns = old.times.p50;
    c->n = old.times.n;
    c->change_ratio = (double)root->run_ns.p50 / (double)old.times.p50 - 1;
    c->p_value = rp_replay_p_value(&root->run_ns, &old.times);
    significant = c->p_value < SIGNIFICANT;
    c->verdict = !significant ? "no difference" : c->change_ratio < 0 ? "faster" : "slower";
    root->compared = c;
    root->ncompared = 1;
    return RP_OK;
}
