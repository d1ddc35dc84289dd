/* SPDX-License-Identifier: Apache-2.0 */
/* Looks the column up by shape; the arguments of spilled events are searched. */
#include "facts/arg_keys.h"

static rp_str find_key(const struct rp_trace *t, const char *key)
{
    size_t len = strlen(key);

    for (uint32_t i = 0; i < t->args.nkeys; i++) {
        rp_str s = t->args.key_name[i];

        if (rp_trace_str_len(t, s) == len && !memcmp(rp_trace_str(t, s), key, len))
            return s;
    }
    for (uint32_t i = 0; i < t->args.nspilled; i++) {
        rp_str s = t->args.spill[i].key;

        if (rp_trace_str_len(t, s) == len && !memcmp(rp_trace_str(t, s), key, len))
            return s;
    }
    return RP_NONE;
}

enum rp_code rp_arg_key_init(struct rp_arg_key *k, const struct rp_trace *trace, const char *key,
                             struct rp_err *err)
{
    *k = (struct rp_arg_key){.trace = trace, .key = find_key(trace, key)};
    if (k->key == RP_NONE)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&k->column, (size_t)trace->args.nshapes + 1, err));
    for (uint32_t s = 0; s < trace->args.nshapes; s++)
        k->column.at[s] = rp_args_column(&trace->args, (uint16_t)s, k->key);
    k->column.n = trace->args.nshapes;
    return RP_OK;
}

enum rp_code rp_arg_key_init_dims(struct rp_arg_key *k, const struct rp_trace *trace,
                                  struct rp_err *err)
{
    RP_TRY(rp_arg_key_init(k, trace, "Input Dims", err));
    return k->key == RP_NONE ? rp_arg_key_init(k, trace, "Input dims", err) /* files of 2021 */
                             : RP_OK;
}

void rp_arg_key_release(struct rp_arg_key *k)
{
    rp_vec_release(&k->column);
}

bool rp_arg_key_find(const struct rp_arg_key *k, rp_event e, struct rp_arg *out)
{
    const struct rp_args *args = &k->trace->args;
    uint16_t shape = k->trace->ev.shape[e];

    if (k->key == RP_NONE)
        return false;
    if (shape >= k->column.n)
        return rp_args_find(args, shape, k->trace->ev.arg_row[e], k->key, out) != 0;
    uint32_t column = k->column.at[shape];
    if (column == UINT32_MAX)
        return false;
    int64_t cell = rp_args_cell(args, column, k->trace->ev.arg_row[e]);
    out->key = k->key;
    out->type = args->key_type[column];
    if (out->type == RP_ARG_STR || out->type == RP_ARG_RAW)
        out->v.s = (uint32_t)cell;
    else
        out->v.i = cell; /* also the bits of a double */
    return true;
}

bool rp_arg_key_int(const struct rp_arg_key *k, rp_event e, int64_t *out)
{
    struct rp_arg arg;

    if (!rp_arg_key_find(k, e, &arg) || arg.type != RP_ARG_I64)
        return false;
    *out = arg.v.i;
    return true;
}

bool rp_arg_key_text(const struct rp_arg_key *k, rp_event e, rp_str *out)
{
    struct rp_arg arg;

    if (!rp_arg_key_find(k, e, &arg) || (arg.type != RP_ARG_STR && arg.type != RP_ARG_RAW))
        return false;
    *out = arg.v.s;
    return true;
}
