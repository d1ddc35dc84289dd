/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/sqlite/texts.h"

#include "rp_config.h"

#if RP_HAVE_SQLITE
static enum rp_code load_row(void *user, const struct rp_rows *rows, struct rp_err *err)
{
    int64_t number;
    size_t n;
    const char *text = rp_cell_text(rows, 1, &n);

    if (!rp_cell_get(rows, 0, &number))
        return RP_OK;
    return rp_texts_add(user, number, text, n, err);
}

enum rp_code rp_texts_load(struct rp_texts *t, struct rp_database *db, const char *table,
                           const char *number, const char *text, struct rp_err *err)
{
    const char *columns[] = {number, text, NULL};

    return rp_rows_each(db, table, columns, load_row, t, err);
}

#endif
