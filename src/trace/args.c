/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads arguments. A shape has few keys (8 on average, 255 at most), so a key is found by linear
 * search; code that reads many events looks the column up once for each shape.
 */
#include "trace/args.h"

static struct rp_arg decode(uint32_t key, uint8_t type, int64_t value)
{
    struct rp_arg arg = {.key = key, .type = type, .v = {.i = value}};

    if (type == RP_ARG_F64)
        memcpy(&arg.v.f, &value, sizeof arg.v.f);
    else if (type != RP_ARG_I64)
        arg.v.s = (uint32_t)value;
    return arg;
}

uint32_t rp_args_count(const struct rp_args *args, uint16_t shape, uint32_t row)
{
    if (shape == RP_SHAPE_SPILLED)
        return args->spill_offset[row + 1] - args->spill_offset[row];
    return args->shape[shape].nkeys;
}

struct rp_arg rp_args_at(const struct rp_args *args, uint16_t shape, uint32_t row, uint32_t i)
{
    if (shape == RP_SHAPE_SPILLED) {
        const struct rp_spilled *s = &args->spill[args->spill_offset[row] + i];

        return decode(s->key, (uint8_t)s->type, s->value);
    }
    uint32_t column = args->shape[shape].first_key + i;
    return decode(args->key_name[column], args->key_type[column], rp_args_cell(args, column, row));
}

int rp_args_find(const struct rp_args *args, uint16_t shape, uint32_t row, uint32_t key,
                 struct rp_arg *out)
{
    uint32_t i, n;

    if (shape == 0)
        return 0;
    n = rp_args_count(args, shape, row);
    if (shape != RP_SHAPE_SPILLED) {
        const uint32_t *name = args->key_name + args->shape[shape].first_key;

        for (i = 0; i < n && name[i] != key; i++)
            ;
    } else {
        const struct rp_spilled *s = args->spill + args->spill_offset[row];

        for (i = 0; i < n && s[i].key != key; i++)
            ;
    }
    if (i == n)
        return 0;
    *out = rp_args_at(args, shape, row, i);
    return 1;
}

uint32_t rp_args_column(const struct rp_args *args, uint16_t shape, uint32_t key)
{
    if (shape >= args->nshapes)
        return UINT32_MAX;
    const struct rp_shape *s = &args->shape[shape];
    for (uint32_t i = 0; i < s->nkeys; i++)
        if (args->key_name[s->first_key + i] == key)
            return s->first_key + i;
    return UINT32_MAX;
}
