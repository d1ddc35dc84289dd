/* SPDX-License-Identifier: Apache-2.0 */
#include "facts/times/time_lists.h"

#include "base/packed.h"
#include "facts/times/intervals.h"
#include "result/part.h"

#include <string.h>

static const struct rp_field time_lists_fields[] = {
    RP_PART_PLAIN_VEC(struct rp_time_lists, count, uint32_t),
    RP_PART_PLAIN_VEC(struct rp_time_lists, begin, uint64_t),
    RP_PART_PLAIN_VEC(struct rp_time_lists, bytes, uint8_t), RP_PART_END};
const struct rp_type rp_time_lists_type = {"time_lists", sizeof(struct rp_time_lists),
                                           time_lists_fields, NULL};

/* The zeros after the last list are where the next one begins. */
enum rp_code rp_time_lists_add(struct rp_time_lists *lists, int64_t *times, size_t n,
                               struct rp_err *err)
{
    size_t i, used = lists->bytes.n ? lists->bytes.n - RP_PACKED_MOST : 0;
    int64_t before = 0;

    rp_ns_sort(times, n);
    RP_TRY(rp_vec_push(&lists->count, (uint32_t)n, err));
    RP_TRY(rp_vec_push(&lists->begin, used, err));
    for (i = 0; i <= n; i++) {
        lists->bytes.n = used;
        RP_TRY(rp_vec_reserve(&lists->bytes, RP_PACKED_MOST, err));
        uint8_t *to = lists->bytes.at + used;
        if (i < n) {
            to = rp_pack_signed(to, (int64_t)((uint64_t)times[i] - (uint64_t)before));
            before = times[i];
        } else {
            memset(to, 0, RP_PACKED_MOST);
            to += RP_PACKED_MOST;
        }
        used = (size_t)(to - lists->bytes.at);
    }
    lists->bytes.n = used;
    return RP_OK;
}

void rp_time_lists_release(struct rp_time_lists *lists)
{
    rp_vec_release(&lists->count);
    rp_vec_release(&lists->begin);
    rp_vec_release(&lists->bytes);
}

enum rp_code rp_time_lists_read(const struct rp_time_lists *lists, size_t i, int64_t *out,
                                struct rp_err *err)
{
    struct rp_packed b = {lists->bytes.at, lists->bytes.at + lists->bytes.n, false};
    uint64_t before = 0;

    b.at += lists->begin.at[i];
    for (uint32_t k = 0; k < lists->count.at[i] && rp_packed_has(&b, RP_PACKED_MOST); k++) {
        before += (uint64_t)rp_packed_signed(&b);
        out[k] = (int64_t)before;
    }
    return b.cut ? rp_err_set(err, RP_FORMAT, "the times of a rank are damaged") : RP_OK;
}

enum rp_code rp_time_lists_check(const struct rp_time_lists *lists, size_t n, struct rp_err *err)
{
    bool right = lists->count.n == n && lists->begin.n == n;

    /* a time has at least a byte */
    for (size_t i = 0; i < n && right; i++)
        right = lists->begin.at[i] <= lists->bytes.n &&
                lists->count.at[i] <= lists->bytes.n - lists->begin.at[i];
    return right ? RP_OK : rp_err_set(err, RP_FORMAT, "the times of a rank are damaged");
}

enum rp_code rp_time_lists_join(const struct rp_time_list *lists, size_t n, int64_t *out,
                                struct rp_err *err)
{
    size_t i, used = 0;

    for (i = 0; i < n; i++) {
        RP_TRY(rp_time_lists_read(lists[i].of, lists[i].at, out + used, err));
        used += lists[i].of->count.at[lists[i].at];
    }
    rp_ns_sort(out, used);
    return RP_OK;
}
