/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are distributed to their tracks by a counting sort, then each track is sorted. Tracks of
 * real traces are out of order but consist of a few long sorted runs (a profiler writes category by
 * category): those are merged, 2 ns per row and round. If there are many runs, a radix sort is
 * used, some 4 ns for each row and digit of 11 bits; one second in nanoseconds has three digits.
 */
#include "trace/finish/index_sort.h"

#include "base/decides.h"
#include "trace/trace.h"

#include <string.h>

enum { WORD_BITS = 64 };
#define RUNS_MAX 16
RP_LIMIT(RUNS_MAX, "runs or rows", "chooses how rows are sorted; their order is the same");
#define MANY_ROWS 4096
RP_LIMIT(MANY_ROWS, "rows",
         "from here on digits have eleven bits, not eight; the order is the same");

struct sorter {
    const struct rp_sort_keys *keys;
    struct rp_sort_scratch *scratch;
};

static unsigned bits_for(uint64_t x)
{
    return x ? 64 - (unsigned)__builtin_clzll(x) : 0;
}

/* Sorts by one digit. Returns false and does nothing if it is equal in all rows. */
static int radix_digit(const uint64_t *from, uint64_t *to, size_t n, unsigned shift, unsigned bits)
{
    size_t at[2048], sum = 0, i;
    uint64_t mask = (UINT64_C(1) << bits) - 1;

    memset(at, 0, ((size_t)1 << bits) * sizeof at[0]);
    for (i = 0; i < n; i++)
        at[from[i] >> shift & mask]++;
    if (at[from[0] >> shift & mask] == n)
        return 0;
    for (i = 0; i <= mask; i++) {
        size_t count = at[i];

        at[i] = sum;
        sum += count;
    }
    for (i = 0; i < n; i++)
        to[at[from[i] >> shift & mask]++] = from[i];
    return 1;
}

uint64_t *rp_radix_sort(uint64_t *a, uint64_t *tmp, size_t n, unsigned low)
{
    unsigned bits = n < MANY_ROWS ? 8 : 11, shift;
    uint64_t all = 0;

    for (size_t i = 0; i < n; i++)
        all |= a[i];
    for (shift = low; n && shift < WORD_BITS && all >> shift; shift += bits) {
        if (radix_digit(a, tmp, n, shift, shift + bits > WORD_BITS ? WORD_BITS - shift : bits)) {
            uint64_t *swap = a;

            a = tmp;
            tmp = swap;
        }
    }
    return a;
}

/* Merges two ascending runs of different words, without a branch that depends on them. */
static void merge_words(const uint64_t *a, const uint64_t *a_end, const uint64_t *b_end,
                        uint64_t *to)
{
    const uint64_t *b = a_end;

    while (a < a_end && b < b_end) {
        uint64_t x = *a, y = *b;
        int second = y < x;

        *to++ = second ? y : x;
        b += second;
        a += !second;
    }
    memcpy(to, a, (size_t)(a_end - a) * sizeof *a);
    memcpy(to + (a_end - a), b, (size_t)(b_end - b) * sizeof *b);
}

/* Sorts distinct words by all their bits. */
static uint64_t *sort_words(uint64_t *a, uint64_t *tmp, size_t n, unsigned low)
{
    size_t run[RUNS_MAX + 2], nruns = 1, i;

    run[0] = 0;
    for (i = 1; i < n && nruns <= RUNS_MAX; i++)
        if (a[i] < a[i - 1])
            run[nruns++] = i;
    if (nruns > RUNS_MAX)
        return rp_radix_sort(a, tmp, n, low);
    run[nruns] = n;

    /* Merge the ascending runs two by two; `run` has their begins, and n. */
    size_t k, kept;
    while (nruns > 1) {
        uint64_t *swap = a;

        for (k = kept = 0; k < nruns; k += 2, kept++) {
            size_t middle = run[k + 1], end = k + 2 <= nruns ? run[k + 2] : middle;

            merge_words(a + run[k], a + middle, a + end, tmp + run[k]);
            run[kept] = run[k];
        }
        run[kept] = run[nruns];
        nruns = kept;
        a = tmp;
        tmp = swap;
    }
    return a;
}

static int64_t length_of(const struct rp_sort_keys *k, uint32_t row)
{
    return k->flags[row] & RP_EVENT_UNENDED ? INT64_MAX : k->dur_ns[row];
}

/* Whether row b, which comes after row a, must come before it. */
static int out_of_order(const struct rp_sort_keys *k, uint32_t a, uint32_t b)
{
    if (k->ts_ns[a] != k->ts_ns[b])
        return k->ts_ns[b] < k->ts_ns[a];
    return k->dur_ns && length_of(k, b) > length_of(k, a);
}

static void insertion_sort(const struct rp_sort_keys *k, uint32_t *rows, size_t n)
{
    size_t i, j;

    for (i = 1; i < n; i++) {
        uint32_t row = rows[i];

        for (j = i; j > 0 && out_of_order(k, rows[j - 1], row); j--)
            rows[j] = rows[j - 1];
        rows[j] = row;
    }
}

static void merge_rows(const struct rp_sort_keys *k, const uint32_t *a, size_t na,
                       const uint32_t *b, size_t nb, uint32_t *to)
{
    while (na && nb) {
        if (out_of_order(k, *a, *b)) {
            *to++ = *b++;
            nb--;
        } else {
            *to++ = *a++;
            na--;
        }
    }
    memcpy(to, a, na * sizeof *a);
    memcpy(to + na, b, nb * sizeof *b);
}

/* Bottom up from runs of 16; stable. */
static enum rp_code merge_sort(struct sorter *s, uint32_t *rows, size_t n, struct rp_err *err)
{
    uint32_t *from = rows, *to, *swap;

    for (size_t i = 0; i < n; i += RUNS_MAX)
        insertion_sort(s->keys, rows + i, n - i < RUNS_MAX ? n - i : RUNS_MAX);
    if (n <= RUNS_MAX)
        return RP_OK;
    RP_TRY(rp_vec_reserve(&s->scratch->rows, n, err));
    to = s->scratch->rows.at;
    for (size_t width = RUNS_MAX; width < n; width *= 2) {
        for (size_t i = 0; i < n; i += 2 * width) {
            size_t na = n - i < width ? n - i : width;
            size_t nb = n - i - na < width ? n - i - na : width;

            merge_rows(s->keys, from + i, na, from + i + na, nb, to + i);
        }
        swap = from;
        from = to;
        to = swap;
    }
    if (from != rows)
        memcpy(rows, from, n * sizeof *rows);
    return RP_OK;
}

/* Rows of equal time: longer first. */
static enum rp_code sort_ties(struct sorter *s, uint32_t *rows, size_t n, struct rp_err *err)
{
    const int64_t *ts = s->keys->ts_ns;
    size_t i, end;

    for (i = 0; s->keys->dur_ns && i + 1 < n; i = end) {
        for (end = i + 1; end < n && ts[rows[end]] == ts[rows[i]]; end++)
            ;
        if (end - i > 1)
            RP_TRY(merge_sort(s, rows + i, end - i, err));
    }
    return RP_OK;
}

static enum rp_code sort_as_words(struct sorter *s, uint32_t *rows, size_t n, int64_t low,
                                  unsigned row_bits, struct rp_err *err)
{
    const int64_t *ts = s->keys->ts_ns;
    uint64_t row_mask = (UINT64_C(1) << row_bits) - 1, *sorted;

    RP_TRY(rp_vec_reserve(&s->scratch->a, n, err));
    RP_TRY(rp_vec_reserve(&s->scratch->tmp, n, err));
    for (size_t i = 0; i < n; i++) {
        uint64_t at = ts[rows[i]] == RP_NO_TS ? 0 : (uint64_t)ts[rows[i]] - (uint64_t)low + 1;

        s->scratch->a.at[i] = at << row_bits | rows[i];
    }
    sorted = sort_words(s->scratch->a.at, s->scratch->tmp.at, n, row_bits);
    for (size_t i = 0; i < n; i++)
        rows[i] = (uint32_t)(sorted[i] & row_mask);
    return sort_ties(s, rows, n, err);
}

static enum rp_code sort_track(struct sorter *s, uint32_t *rows, size_t n, struct rp_err *err)
{
    const int64_t *ts = s->keys->ts_ns;
    unsigned row_bits = bits_for(s->keys->n - 1);
    int64_t low = INT64_MAX, high = INT64_MIN;
    int sorted = 1;

    for (size_t i = 0; i < n; i++) {
        int64_t t = ts[rows[i]];

        if (i && sorted && out_of_order(s->keys, rows[i - 1], rows[i]))
            sorted = 0;
        if (t != RP_NO_TS) {
            low = t < low ? t : low;
            high = t > high ? t : high;
        }
    }
    if (sorted)
        return RP_OK;
    if (n <= RUNS_MAX || low > high || (uint64_t)high - (uint64_t)low == UINT64_MAX ||
        bits_for((uint64_t)high - (uint64_t)low + 1) + row_bits > WORD_BITS)
        return merge_sort(s, rows, n, err);
    return sort_as_words(s, rows, n, low, row_bits, err);
}

/* Counts, then places; stable, so that equal rows stay in the order of the file. */
static enum rp_code spread_rows(const struct rp_sort_keys *k, rp_row_vec *perm, rp_row_vec *begin,
                                struct rp_err *err)
{
    uint32_t i, t, total = 0;

    RP_TRY(rp_vec_reserve(begin, (size_t)k->ntracks + 2, err));
    memset(begin->at, 0, ((size_t)k->ntracks + 2) * sizeof *begin->at);
    for (i = 0; i < k->n; i++)
        if (k->track[i] != RP_NONE) {
            begin->at[k->track[i] + 2]++;
            total++;
        }
    for (t = 2; t <= k->ntracks; t++)
        begin->at[t] += begin->at[t - 1];
    RP_TRY(rp_vec_reserve(perm, (size_t)total + 1, err));
    for (i = 0; i < k->n; i++)
        if (k->track[i] != RP_NONE)
            perm->at[begin->at[k->track[i] + 1]++] = i;
    perm->n = total;
    begin->n = (size_t)k->ntracks + 1;
    return RP_OK;
}

enum rp_code rp_index_sort(const struct rp_sort_keys *keys, rp_row_vec *perm, rp_row_vec *begin,
                           struct rp_sort_scratch *scratch, struct rp_err *err)
{
    struct sorter s = {keys, scratch};

    perm->n = begin->n = 0;
    RP_TRY(spread_rows(keys, perm, begin, err));
    for (uint32_t t = 0; t < keys->ntracks; t++)
        RP_TRY(sort_track(&s, perm->at + begin->at[t], begin->at[t + 1] - begin->at[t], err));
    return RP_OK;
}

void rp_sort_scratch_release(struct rp_sort_scratch *scratch)
{
    rp_vec_release(&scratch->a);
    rp_vec_release(&scratch->tmp);
    rp_vec_release(&scratch->rows);
}
