/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/host/processors.h"

#include "base/order.h"
#include "facts/arg_keys.h"

#define KEY_MAP(X)               \
    X(OVER, "over_ns")           \
    X(READY, "ready_ns")         \
    X(RAN, "ran_ns")             \
    X(SOME, "some_waited_ns")    \
    X(THROTTLED, "throttled_ns") \
    X(LOAD, "load_percent")      \
    X(COUNT, "processors")       \
    X(LIMIT, "limit_percent")
enum {
#define KEY_ENUM(name, text) name,
    KEY_MAP(KEY_ENUM) KEYS
};

static void add_look(struct rp_machine *out, const int64_t *v)
{
    out->looks++;
    rp_ns_add(&out->over_ns, v[OVER]);
    rp_ns_add(&out->some_waited_ns, v[SOME]);
    rp_ns_add(&out->throttled_ns, v[THROTTLED]);
    rp_ns_add(&out->load_percent, v[LOAD]);
    out->processors = v[COUNT];
    out->limit_percent = v[LIMIT];
}

static enum rp_code read_counters(const struct rp_trace *t, struct rp_arg_key *key,
                                  struct rp_processors *out, struct rp_err *err)
{
    for (rp_event e = 0; e < t->ev.n; e++) {
        const char *name = rp_trace_str(t, t->ev.name[e]);
        int64_t v[KEYS] = {0};

        if (t->ev.kind[e] != RP_KIND_COUNTER || t->ev.ts_ns[e] == RP_NO_TS)
            continue;
        bool ready = !strcmp(name, "waited for a processor");
        if (!ready && strcmp(name, "processors") != 0)
            continue;
        for (int k = 0; k < KEYS; k++)
            if (!rp_arg_key_int(&key[k], e, &v[k]) || v[k] < 0)
                v[k] = 0;
        if (ready) {
            struct rp_ready r = {t->ev.ts_ns[e], rp_ns_sum(t->ev.ts_ns[e], v[OVER]), v[READY],
                                 v[RAN], t->ev.track[e]};

            if (v[READY] > 0 && v[OVER] > 0)
                RP_TRY(rp_vec_push(&out->ready, r, err));
        } else
            add_look(&out->machine, v);
    }
    return RP_OK;
}

enum rp_code rp_processors_find(const struct rp_trace *trace, struct rp_processors *out,
                                struct rp_err *err)
{
    static const char *const keys[KEYS] = {
#define KEY_TEXT(name, text) text,
        KEY_MAP(KEY_TEXT)
#undef KEY_TEXT
    };
    struct rp_arg_key key[KEYS] = {0};
    enum rp_code code = RP_OK;

    *out = (struct rp_processors){0};
    if (!trace->totals.count[RP_KIND_COUNTER])
        return RP_OK;
    for (int k = 0; k < KEYS && code == RP_OK; k++)
        code = rp_arg_key_init(&key[k], trace, keys[k], err);
    if (code == RP_OK)
        code = read_counters(trace, key, out, err);
    for (int k = 0; k < KEYS; k++)
        rp_arg_key_release(&key[k]);
    return code;
}

void rp_processors_release(struct rp_processors *p)
{
    rp_vec_release(&p->ready);
}

size_t rp_ready_first(const struct rp_processors *p, rp_track thread, int64_t after_ns)
{
    const struct rp_ready *at = p->ready.at;
    size_t i;

    RP_LOWER_BOUND(i, p->ready.n,
                   at[i].thread < thread || (at[i].thread == thread && at[i].end_ns <= after_ns));
    return i;
}
