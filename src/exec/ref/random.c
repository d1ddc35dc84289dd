/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes random bits with counter-based generators, bit for bit as XLA expands them, so that a
 * replayed program draws the same numbers; and for `rng`, which differs on every machine, with a
 * seeded stream.
 *
 *   ThreeFry 2x32, 20 rounds    state u64[2]: key, counter; two words a counter
 *   Philox 4x32, 10 rounds      state u64[2 or 3]: key, counter (128 bits); four words a counter
 */
#include "exec/ref/kernels.h"
#include "program/floats.h"
#include "program/opcodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the two generators ---- */

static uint32_t rotate_left(uint32_t v, unsigned by)
{
    return v << by | v >> (32 - by);
}

void rp_threefry(uint64_t key, uint64_t counter, uint32_t out[2])
{
    static const unsigned turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
    uint32_t x = (uint32_t)counter, y = (uint32_t)(counter >> 32);

    k[2] = k[0] ^ k[1] ^ 0x1BD11BDA;
    x += k[0];
    y += k[1];
    for (unsigned r = 0; r < 5; r++) {
        for (unsigned i = 0; i < 4; i++) {
            x += y;
            y = rotate_left(y, turns[r % 2 * 4 + i]) ^ x;
        }
        x += k[(r + 1) % 3];
        y += k[(r + 2) % 3] + r + 1;
    }
    out[0] = x;
    out[1] = y;
}

static void philox_block(uint32_t state[4], const uint32_t key[2])
{
    uint32_t k0 = key[0], k1 = key[1];

    for (unsigned r = 0; r < 10; r++) {
        uint64_t a = (uint64_t)state[0] * 0xD2511F53, b = (uint64_t)state[2] * 0xCD9E8D57;
        uint32_t next[4] = {(uint32_t)(b >> 32) ^ state[1] ^ k0, (uint32_t)b,
                            (uint32_t)(a >> 32) ^ state[3] ^ k1, (uint32_t)a};

        memcpy(state, next, sizeof next);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

/* ---- rng-bit-generator ---- */

enum algorithm { THREEFRY, PHILOX };

static RP_PREPARE(prepare_bits)
{
    const struct rp_value_shape *state = rp_node_operand(plan, node, 0);

    if (node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts != 2 ||
        state->n * rp_elem_bits(state->elem) < 128)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of the state or the result");
    node->value = rp_node_word(plan, node, RP_ATTR_ALGORITHM, "rng_three_fry") ? THREEFRY : PHILOX;
    return RP_OK;
}

static void put_word(struct rp_tensor *t, size_t i, uint64_t bits)
{
    memcpy(t->data + i * t->unit, &bits, t->unit);
}

/* The two words of a counter are adjacent along the first even dimension, or if there is none,
   along the largest. */
static void threefry_32(struct rp_tensor *t, uint64_t key, uint64_t counter, uint64_t *used)
{
    int64_t dims[RP_TENSOR_RANK], stride[RP_TENSOR_RANK], index[RP_TENSOR_RANK] = {0};
    size_t split = SIZE_MAX;
    uint64_t n = 1;

    for (size_t k = 0; k < t->rank && split == SIZE_MAX; k++)
        if (t->dims[k] % 2 == 0)
            split = k;
    for (size_t k = 0; k < t->rank && (split == SIZE_MAX || t->dims[split] % 2); k++)
        if (split == SIZE_MAX || t->dims[k] > t->dims[split])
            split = k;
    memcpy(dims, t->dims, sizeof dims);
    if (t->rank)
        dims[split] = (dims[split] + 1) / 2;
    for (size_t k = 0; k < t->rank; k++)
        n *= (uint64_t)dims[k];
    rp_strides(t->dims, t->rank, stride);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t pair[2];
        int64_t at = 0;

        rp_threefry(key, counter + i, pair);
        for (size_t k = 0; k < t->rank; k++)
            at += (k == split ? 2 : 1) * index[k] * stride[k];
        put_word(t, (size_t)at, pair[0]);
        if (t->rank && 2 * index[split] + 1 < t->dims[split])
            put_word(t, (size_t)(at + stride[split]), pair[1]);
        rp_index_next(index, dims, t->rank);
    }
    *used = n;
}

static void threefry_64(struct rp_tensor *t, uint64_t key, uint64_t counter, uint64_t *used)
{
    for (size_t i = 0; i < t->n; i++) {
        uint32_t pair[2];

        rp_threefry(key, counter + i, pair);
        put_word(t, i, pair[0] | (uint64_t)pair[1] << 32);
    }
    *used = t->n;
}

static void philox_fill(struct rp_tensor *t, uint64_t key, const uint64_t counter[2],
                        uint64_t *used)
{
    size_t per = t->unit == 8 ? 2 : 4;
    const uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};

    *used = (t->n + per - 1) / per;
    for (uint64_t v = 0; v < *used; v++) {
        uint64_t low = counter[0] + v, high = counter[1] + (low < v);
        uint32_t state[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
                             (uint32_t)(high >> 32)};

        philox_block(state, k);
        for (size_t i = 0; i < per && v * per + i < t->n; i++)
            put_word(t, v * per + i,
                     per == 4 ? state[i] : state[2 * i] | (uint64_t)state[2 * i + 1] << 32);
    }
}

static RP_KERNEL(random_bits)
{
    uint64_t state[4] = {0}, used = 0;
    struct rp_tensor *parts[2];
    size_t bytes = rp_tensor_bytes(in[0]);

    RP_TRY(rp_tensor_new(in[0]->elem, in[0]->dims, in[0]->rank, &parts[0], err));
    if (rp_shape_tensor(node->shape->parts[1], &parts[1], err) != RP_OK) {
        rp_tensor_drop(parts[0]);
        return err ? err->code : RP_NOMEM;
    }
    memcpy(state, in[0]->data, bytes < sizeof state ? bytes : sizeof state);
    if (bytes < 24) /* with a short state, the key is also the upper half of its counter */
        state[2] = state[0];
    if (node->value == PHILOX)
        philox_fill(parts[1], state[0], state + 1, &used);
    else if (parts[1]->unit == 8)
        threefry_64(parts[1], state[0], state[1], &used);
    else
        threefry_32(parts[1], state[0], state[1], &used);
    uint64_t before = state[1];
    state[1] += used;
    if (state[1] < before && bytes > 16)
        state[2]++;
    memcpy(parts[0]->data, in[0]->data, bytes);
    memcpy(parts[0]->data, state, bytes < sizeof state ? bytes : sizeof state);
    return rp_tensor_tuple(parts, 2, out, err);
}

/* ---- rng ---- */

static double draw_uniform(uint64_t *state)
{
    uint32_t pair[2];

    rp_threefry(UINT64_C(0x5eed), (*state)++, pair);
    return ((double)pair[0] * 0x1p32 + (double)pair[1]) * 0x1p-64;
}

static RP_PREPARE(prepare_rng)
{
    if (node->nin != 2)
        return rp_node_error(node, RP_FORMAT, err, "%u parameters instead of 2", node->nin);
    node->value = rp_node_word(plan, node, RP_ATTR_DISTRIBUTION, "rng_normal");
    return RP_OK;
}

static RP_KERNEL(rng_run)
{
    double a = rp_tensor_number(in[0], 0), b = rp_tensor_number(in[1], 0);

    RP_TRY(rp_node_result(node, out, err));
    for (size_t i = 0; i < (*out)->n; i++) {
        double u = draw_uniform(&e->random);

        if (node->value)
            u = a + b * sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * draw_uniform(&e->random));
        else
            u = a + (b - a) * u;
        if (rp_elem_is_float((*out)->elem))
            rp_tensor_set(*out, i, u);
        else
            rp_tensor_set_integer(*out, i, (int64_t)floor(u));
    }
    return RP_OK;
}

static RP_PREPARE(prepare_state)
{
    node->value = rp_node_int(plan, node, RP_ATTR_DELTA, 1);
    return RP_OK;
}

static RP_KERNEL(rng_state)
{
    uint64_t now[2] = {UINT64_C(0x7012395) + e->random, 0};

    RP_TRY(rp_node_result(node, out, err));
    memset((*out)->data, 0, rp_tensor_bytes(*out));
    memcpy((*out)->data, now,
           rp_tensor_bytes(*out) < sizeof now ? rp_tensor_bytes(*out) : sizeof now);
    e->random += (uint64_t)node->value;
    return RP_OK;
}

const struct rp_kernel rp_kernels_random[] = {
    {RP_OP_RNG_BIT_GENERATOR, prepare_bits, random_bits},
    {RP_OP_RNG, prepare_rng, rng_run},
    {RP_OP_RNG_GET_AND_UPDATE_STATE, prepare_state, rng_state},
    {0, NULL, NULL},
};
