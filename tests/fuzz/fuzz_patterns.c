/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users' tables: patterns of step marks and categories of work. The input is the table; after a
 * line "====" a name that is looked for in it.
 */
#include "cost/category.h"
#include "trace/step_patterns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const char *table, const char *name)
{
    struct rp_step_table steps = {0};
    struct rp_category_table categories = {0};
    struct rp_step_mark mark;
    struct rp_err err = RP_ERR_INIT;

    if (rp_step_table_parse(&steps, "fuzz", table, &err) == RP_OK)
        rp_step_table_match(&steps, name, &mark);
    if (rp_category_table_parse(&categories, "fuzz", table, &err) == RP_OK)
        rp_category_of(&categories, name, name);
    rp_step_table_release(&steps);
    rp_category_table_release(&categories);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *cut;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    cut = strstr(text, "====\n");
    if (cut)
        *cut = '\0';
    look_up(text, cut ? cut + 5 : "step[DECODE bs=8]");
    free(text);
    return 0;
}
