/* SPDX-License-Identifier: Apache-2.0 */
/* Reading values of tables. */
#include "tables/tables.h"

const char *rp_table_text(const struct rp_table_rank *r, const struct rp_table_column *c,
                          size_t row, size_t *n)
{
    const void *at = rp_table_at(r, c, row);
    const char *text = NULL;

    *n = 0;
    if (!at)
        return NULL;
    if (c->cell == RP_CELL_NAME) {
        rp_str s = *(const rp_str *)at;

        if (c->nullable && (int64_t)s == c->null)
            return NULL;
        *n = rp_trace_str_len(r->trace, s);
        return rp_trace_str(r->trace, s);
    }
    text = c->cell == RP_CELL_WORD ? c->word(*(const uint8_t *)at) : *(const char *const *)at;
    *n = text ? strlen(text) : 0;
    return text;
}

bool rp_table_real(const struct rp_table_rank *r, const struct rp_table_column *c, size_t row,
                   double *out)
{
    const void *at = rp_table_at(r, c, row);

    if (!at)
        return false;
    *out = *(const double *)at;
    return *out == *out; /* not a number is NULL */
}
