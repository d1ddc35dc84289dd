/* SPDX-License-Identifier: Apache-2.0 */
#include "query/order.h"

#if RP_HAVE_SQLITE
#include "base/hash.h"
#include "base/order.h"
#include "base/vec.h"

#include <stdlib.h>

#define DIGIT_BITS 11
#define DIGITS     (1u << DIGIT_BITS)
#define SIGN       (UINT64_C(1) << 63)

struct text {
    const char *at;
    size_t n;
    uint32_t number; /* in the order of the rows */
};

struct keyed_row {
    uint64_t key, row;
};

struct sorting {
    const struct rp_vtab_table *t;
    struct keyed_row *rows, *other;
    size_t n;
};

static const struct rp_table_rank *rank_of(const struct sorting *s, uint64_t row)
{
    return rp_table_part(&s->t->tables->set, s->t->table, row >> 32);
}

/* ------------------------------------------------------------------ keys */

static int by_text(const void *left, const void *right)
{
    const struct text *a = left, *b = right;

    if (!a->at || !b->at)
        return (a->at != NULL) - (b->at != NULL);
    int way = memcmp(a->at, b->at, a->n < b->n ? a->n : b->n);
    return way ? way : (a->n > b->n) - (a->n < b->n);
}

/* Returns a number that is equal for the same text; different texts may have the same one. */
static uint64_t text_id(const struct rp_table_rank *r, const struct rp_table_column *column,
                        uint64_t row)
{
    uint64_t id = 0;
    int64_t number;

    if (column->cell == RP_CELL_WORD)
        return rp_table_int(r, column, (uint32_t)row, &number) ? (uint64_t)number : UINT64_MAX;
    if (column->cell == RP_CELL_NAME)
        return rp_table_int(r, column, (uint32_t)row, &number)
                   ? (row >> 32 << 32 | (uint64_t)number) + 1
                   : 0;
    const void *at = rp_table_at(r, column, (uint32_t)row);
    if (at)
        memcpy(&id, at, sizeof id);
    return id;
}

/* Replaces keys by places among the sorted texts; 0 is NULL. */
static enum rp_code settle_texts(struct sorting *s, struct text *texts, size_t n,
                                 struct rp_err *err)
{
    uint64_t *places = calloc(n + 1, sizeof *places), place = 0;

    RP_TRY(rp_err_need(places, err, "sorting rows"));
    rp_sort(texts, n, sizeof *texts, by_text);
    for (size_t i = 0; i < n; i++) {
        if (texts[i].at && (!i || by_text(&texts[i - 1], &texts[i])))
            place++;
        places[texts[i].number] = place; /* NULL comes first: 0 */
    }
    for (size_t i = 0; i < s->n; i++)
        s->rows[i].key = places[s->rows[i].key];
    free(places);
    return RP_OK;
}

static enum rp_code text_keys(struct sorting *s, const struct rp_table_column *column,
                              struct rp_err *err)
{
    RP_VEC(struct text) texts = {0};
    struct rp_map map = {0};
    enum rp_code code = RP_OK;

    for (size_t i = 0; code == RP_OK && i < s->n; i++) {
        const struct rp_table_rank *r = rank_of(s, s->rows[i].row);
        uint32_t number = 0;

        code = rp_map_intern(&map, text_id(r, column, s->rows[i].row), (uint32_t)texts.n, &number,
                             err);
        if (code == RP_OK && number == texts.n) {
            struct text text = {.number = number};

            text.at = rp_table_text(r, column, (uint32_t)s->rows[i].row, &text.n);
            code = rp_vec_push(&texts, text, err);
        }
        s->rows[i].key = number;
    }
    if (code == RP_OK)
        code = settle_texts(s, texts.at, texts.n, err);
    rp_map_release(&map);
    rp_vec_release(&texts);
    return code;
}

static uint64_t number_key(const struct rp_table_rank *r, const struct rp_table_column *column,
                           size_t row)
{
    int64_t number;
    double real;
    uint64_t bits;

    if (column->cell != RP_CELL_F64)
        return rp_table_int(r, column, row, &number) ? (uint64_t)number ^ SIGN : 0;
    if (!rp_table_real(r, column, row, &real))
        return 0;
    real += 0.0; /* -0 is 0 */
    memcpy(&bits, &real, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

static enum rp_code set_keys(struct sorting *s, const struct rp_table_column *column, bool down,
                             struct rp_err *err)
{
    if (rp_table_is_text(column))
        RP_TRY(text_keys(s, column, err));
    else
        for (size_t i = 0; i < s->n; i++)
            s->rows[i].key =
                number_key(rank_of(s, s->rows[i].row), column, (uint32_t)s->rows[i].row);
    for (size_t i = 0; down && i < s->n; i++)
        s->rows[i].key = ~s->rows[i].key;
    return RP_OK;
}

/* ------------------------------------------------------------------ sorting */

static void sort_keys(struct sorting *s)
{
    uint64_t differ = 0;
    bool sorted = true;

    for (size_t i = 1; i < s->n; i++) {
        differ |= s->rows[i].key ^ s->rows[0].key;
        sorted &= s->rows[i - 1].key <= s->rows[i].key;
    }
    for (unsigned shift = 0; !sorted && shift < 64; shift += DIGIT_BITS)
        if (differ >> shift & (DIGITS - 1)) {
            /* Rows that have the same digit stay in their order. */
            size_t begin[DIGITS + 1] = {0};
            struct keyed_row *rows = s->rows;
            for (size_t i = 0; i < s->n; i++)
                begin[(rows[i].key >> shift & (DIGITS - 1)) + 1]++;
            for (size_t d = 1; d < DIGITS; d++)
                begin[d] += begin[d - 1];
            for (size_t i = 0; i < s->n; i++)
                s->other[begin[rows[i].key >> shift & (DIGITS - 1)]++] = rows[i];
            s->rows = s->other;
            s->other = rows;
        }
}

int rp_order_rows(const struct rp_vtab_table *t, const char *order, uint64_t *rows, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct keyed_row *memory;
    struct sorting s = {.t = t, .n = n};
    enum rp_code code = RP_OK;
    size_t columns = strlen(order) / 2;

    if (n < 2)
        return SQLITE_OK;
    memory = sqlite3_malloc64(2 * n * sizeof *memory);
    if (!memory)
        return SQLITE_NOMEM;
    s.rows = memory;
    s.other = memory + n;
    for (size_t i = 0; i < n; i++)
        s.rows[i].row = rows[i];
    while (columns-- && code == RP_OK) {
        code = set_keys(&s, &t->columns[order[2 * columns] - 'A'], order[2 * columns + 1] == '-',
                        &err);
        if (code == RP_OK)
            sort_keys(&s);
    }
    for (size_t i = 0; i < n; i++)
        rows[i] = s.rows[i].row;
    sqlite3_free(memory);
    return code == RP_OK ? SQLITE_OK : SQLITE_NOMEM;
}
#endif
