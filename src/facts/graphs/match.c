/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Equal ends are matched first, and the middle by Myers' greedy algorithm: the furthest point of
 * each diagonal for 0, 1, 2, ... differences, at most MOST; all of them are kept, so that the path
 * can be walked back. O((captured + executed) * differences) time.
 */
#include "facts/graphs/match.h"

#include "base/decides.h"
#include "base/hash.h"
#include "facts/xla_names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NO   UINT32_MAX
#define MOST 384
RP_LIMIT(
    MOST, "differences",
    "of more, only the nodes of each name are matched in their order; the coverage says how many");

static bool contains(const char *text, size_t len, const char *part)
{
    return memmem(text, len, part, strlen(part)) != NULL;
}

uint64_t rp_graph_token(const char *kernel, size_t len)
{
    len = rp_kernel_name_len(kernel, len);
    if (contains(kernel, len, "fillBuffer"))
        return RP_TOKEN_SET;
    if (contains(kernel, len, "copyBuffer"))
        return RP_TOKEN_COPY;
    uint64_t token = rp_hash_bytes(kernel, len);
    return token < RP_TOKEN_NAMES ? token + RP_TOKEN_NAMES : token;
}

static bool fits(uint64_t captured, uint64_t executed)
{
    return captured == executed || (captured == RP_TOKEN_ANY && executed >= RP_TOKEN_NAMES);
}

struct between { /* what remains between equal ends */
    const uint64_t *a, *b;
    int32_t n, m;
    uint32_t first_a;  /* index of a[0] */
    uint32_t *node_of; /* of b[0] */
};

/* Row d holds the furthest x of the diagonals -d .. d. */
static int32_t *row_of(int32_t *rows, int32_t d)
{
    return rows + (size_t)d * (size_t)d + (size_t)d;
}

static bool goes_down(const int32_t *last, int32_t d, int32_t k)
{
    return k == -d || (k != d && last[k - 1] < last[k + 1]);
}

static uint32_t walk_back(const struct between *s, int32_t *rows, int32_t d)
{
    int32_t x = s->n, y = s->m;
    uint32_t matched = 0;

    for (; d >= 0; d--) {
        int32_t k = x - y, from_x = 0, from_y = 0;

        if (d) {
            const int32_t *last = row_of(rows, d - 1);
            bool down = goes_down(last, d, k);

            from_x = last[down ? k + 1 : k - 1];
            from_y = from_x - (down ? k + 1 : k - 1);
        }
        for (; x > from_x && y > from_y; x--, y--)
            if (fits(s->a[x - 1], s->b[y - 1])) {
                s->node_of[y - 1] = s->first_a + (uint32_t)x - 1;
                matched++;
            }
        x = from_x;
        y = from_y;
    }
    return matched;
}

/* The number of differences, or -1 if there are too many. */
static int32_t walk_forward(const struct between *s, int32_t *rows, uint64_t *work)
{
    for (int32_t d = 0; d <= MOST; d++) {
        int32_t *row = row_of(rows, d);

        for (int32_t k = -d; k <= d; k += 2) {
            int32_t x = 0, y, begin;

            if (d) {
                const int32_t *last = row_of(rows, d - 1);

                x = goes_down(last, d, k) ? last[k + 1] : last[k - 1] + 1;
            }
            y = x - k;
            begin = x;
            while (x < s->n && y < s->m && fits(s->a[x], s->b[y]))
                x++, y++;
            row[k] = x;
            if (x >= s->n && y >= s->m)
                return d;
            if (*work < (uint64_t)(x - begin) + 1)
                return -1;
            *work -= (uint64_t)(x - begin) + 1;
        }
    }
    return -1;
}

static enum rp_code match_between(const struct between *s, uint32_t *matched, uint64_t *work,
                                  struct rp_err *err)
{
    int32_t *rows, d;

    if (!s->n || !s->m)
        return RP_OK;
    rows = malloc((size_t)(MOST + 2) * (MOST + 2) * sizeof *rows);
    RP_TRY(rp_err_need(rows, err, "matching a graph"));
    d = walk_forward(s, rows, work);
    if (d >= 0)
        *matched += walk_back(s, rows, d);
    free(rows);
    return RP_OK;
}

/* Matches the i-th remaining node of a name with the i-th remaining one of the same name. */
static enum rp_code match_names(const uint64_t *a, uint32_t n, const uint64_t *b, uint32_t m,
                                uint32_t *node_of, uint32_t *matched, struct rp_err *err)
{
    uint32_t i, head;
    RP_FREED uint32_t *next = malloc(((size_t)n + 1) * sizeof *next);
    RP_FREED uint8_t *taken = calloc((size_t)n + 1, 1);
    /* from a token to its first remaining node */
    RP_SCOPED(rp_map_release) struct rp_map first = {0};

    RP_TRY(rp_err_need(next && taken, err, "matching a graph"));
    for (i = 0; i < m; i++)
        if (node_of[i] != NO)
            taken[node_of[i]] = 1;
    for (i = n; i-- > 0;) {
        if (taken[i])
            continue;
        head = rp_map_get(&first, a[i]);
        next[i] = head == RP_MAP_NONE ? NO : head;
        RP_TRY(rp_map_put(&first, a[i], i, err));
    }
    for (i = 0; i < m; i++) {
        if (node_of[i] != NO)
            continue;
        head = rp_map_get(&first, b[i]);
        if (head == RP_MAP_NONE || head == NO - 1)
            continue;
        node_of[i] = head;
        ++*matched;
        RP_TRY(rp_map_put(&first, b[i], next[head] == NO ? NO - 1 : next[head], err));
    }
    return RP_OK;
}

static bool names_missing(const uint64_t *a, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i] == RP_TOKEN_ANY)
            return true;
    return false;
}

enum rp_code rp_graph_match(const uint64_t *a, uint32_t n, const uint64_t *b, uint32_t m,
                            uint32_t *node_of, uint32_t *matched, uint64_t *work,
                            struct rp_err *err)
{
    uint32_t head = 0, tail = 0, i;

    for (i = 0; i < m; i++)
        node_of[i] = NO;
    while (head < n && head < m && fits(a[head], b[head]))
        node_of[head] = head, head++;
    *matched = head;
    if (head == n && head == m)
        return RP_OK;
    if (names_missing(a, n) || n > INT32_MAX / 2 || m > INT32_MAX / 2) {
        for (i = 0; i < head; i++)
            node_of[i] = NO;
        *matched = 0;
        return RP_OK;
    }
    while (tail < n - head && tail < m - head && fits(a[n - 1 - tail], b[m - 1 - tail])) {
        node_of[m - 1 - tail] = n - 1 - tail;
        tail++;
    }
    *matched += tail;
    struct between s = {
        a + head, b + head,      (int32_t)(n - head - tail), (int32_t)(m - head - tail),
        head,     node_of + head};
    RP_TRY(match_between(&s, matched, work, err));
    return match_names(a, n, b, m, node_of, matched, err);
}
