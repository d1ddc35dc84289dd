/* SPDX-License-Identifier: Apache-2.0 */
/* Makes numbers for ids dense; linear, about 2 ns per id with a table, 20 to 60 with a map. */
#include "trace/build/dense_ids.h"

#include "base/filled.h"
#include "base/hash.h"

static enum rp_code by_table(const int64_t *id, size_t n, int64_t low, size_t range,
                             uint32_t *dense, uint32_t *ndistinct, struct rp_err *err)
{
    RP_VEC(uint32_t) table = {0};
    uint32_t next = 0;

    RP_TRY(rp_vec_nones(&table, range, err));
    for (size_t i = 0; i < n; i++) {
        uint32_t *slot = &table.at[(uint64_t)id[i] - (uint64_t)low];

        if (*slot == UINT32_MAX)
            *slot = next++;
        dense[i] = *slot;
    }
    *ndistinct = next;
    rp_vec_release(&table);
    return RP_OK;
}

enum rp_code rp_dense_ids(const int64_t *id, size_t n, uint32_t *dense, uint32_t *ndistinct,
                          struct rp_err *err)
{
    int64_t low = INT64_MAX, high = INT64_MIN;

    *ndistinct = 0;
    if (n == 0)
        return RP_OK;
    for (size_t i = 0; i < n; i++) {
        low = id[i] < low ? id[i] : low;
        high = id[i] > high ? id[i] : high;
    }
    uint64_t range = (uint64_t)high - (uint64_t)low;
    if (range < 4 * (uint64_t)n + 1024)
        return by_table(id, n, low, (size_t)range + 1, dense, ndistinct, err);

    struct rp_map map = {0};
    enum rp_code code = RP_OK;
    for (size_t i = 0; code == RP_OK && i < n; i++)
        code = rp_map_intern(&map, (uint64_t)id[i], (uint32_t)map.n, &dense[i], err);
    *ndistinct = (uint32_t)map.n;
    rp_map_release(&map);
    return code;
}

struct rp_plain_id rp_plain_number(int64_t number)
{
    return (struct rp_plain_id){.value = number, .is_text = false};
}

/* Whether this is a number as printf would write it, like "-12", within int64. */
static bool is_number(const char *s, size_t len, int64_t *value)
{
    bool minus = len > 0 && s[0] == '-';
    size_t i = minus;
    int64_t v = 0;

    if (i == len || (s[i] == '0' && (minus || len > 1)))
        return false;
    for (; i < len; i++) {
        int digit = s[i] - '0';

        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, digit,
                                   &v)) /* subtracts, because negative numbers reach INT64_MIN */
            return false;
    }
    if (!minus && v == INT64_MIN)
        return false;
    *value = minus ? v : -v;
    return true;
}

struct rp_plain_id rp_plain_text(const struct rp_strtab *tab, uint32_t text)
{
    int64_t number;

    if (is_number(rp_strtab_borrow(tab, text), rp_strtab_len(tab, text), &number))
        return rp_plain_number(number);
    return (struct rp_plain_id){.value = text, .is_text = true};
}

struct rp_plain_id rp_plain_none(const struct rp_strtab *tab)
{
    return (struct rp_plain_id){.value = rp_strtab_find(tab, "None", 4), .is_text = true};
}
