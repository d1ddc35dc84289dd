/* SPDX-License-Identifier: Apache-2.0 */
/* Sums up the device time of a run by its purpose. */
#include "base/decides.h"
#include "base/order.h"
#include "explain/report/report.h"
#include "result/print_units.h"

#include <string.h>

#define MOST_SHOWN  5
#define LEAST_SHOWN 0.01
RP_LIMIT(MOST_SHOWN, "categories", "named in the line; JSON has all");
RP_LIMIT(LEAST_SHOWN, "of the device time",
         "a smaller category is not named in the line; JSON has all");

static const struct rp_field category_fields[] = {
    RP_FIELD(struct rp_report_category, category, STR, NONE, NULL, "docs/definitions.md", 0),
    RP_FIELD(struct rp_report_category, device_ns, I64, NS, NULL, "sum of durations", 0),
    RP_FIELD(struct rp_report_category, share, F64, RATIO, NULL, "share of all device time", 0),
    RP_FIELD_END};
const struct rp_type rp_report_category_type = {"category", sizeof(struct rp_report_category),
                                                category_fields, NULL};

enum rp_code rp_report_sum_categories(const struct rp_work *work,
                                      const struct rp_attribution *places,
                                      struct rp_trace_categories *known, struct rp_report_part *out,
                                      struct rp_err *err)
{
    RP_SCOPED(rp_work_categories_release) struct rp_work_categories c = {0};

    RP_TRY(rp_work_categories_init(&c, work, places, known, err));
    for (size_t i = 0; i < c.of_item.n; i++)
        rp_ns_add(&out->category_ns[c.of_item.at[i]],
                  rp_ns_between(work->items.at[i].begin_ns, work->items.at[i].end_ns));
    return RP_OK;
}

RP_ORDER(by_time, struct rp_report_category, RP_DOWN(device_ns), strcmp(a->category, b->category))

/* "matmul 76 %, attention 9 %, copy 4 %" */
static const char *category_line(const struct rp_report_root *out, struct rp_arena *arena)
{
    const char *text = NULL;

    for (size_t i = 0; i < out->ncategories; i++) /* the purpose of most of it is unknown */
        if (!strcmp(out->categories[i].category, rp_category_names[RP_CATEGORY_OTHER]) &&
            out->categories[i].share > 1 - out->categories[i].share)
            return NULL;
    for (size_t i = 0; i < out->ncategories && i < MOST_SHOWN; i++) {
        const struct rp_report_category *c = &out->categories[i];
        const char *share = rp_units_text(arena, c->share, RP_UNIT_RATIO);

        if (c->share < LEAST_SHOWN && i)
            break;
        text = text ? rp_arena_textf(arena, "%s, %s %s", text, c->category, share)
                    : rp_arena_textf(arena, "%s %s", c->category, share);
    }
    return text ? rp_arena_textf(arena, "%s of the device time", text) : NULL;
}

void rp_report_join_categories(const struct rp_ranks *ranks, struct rp_arena *arena,
                               struct rp_report_root *out)
{
    int64_t sum[RP_CATEGORIES] = {0}, whole = 0;

    for (size_t r = 0; r < ranks->n; r++)
        for (size_t c = 0; c < RP_CATEGORIES; c++)
            rp_ns_add(&sum[c], rp_report_part_of(ranks, r)->category_ns[c]);
    for (size_t c = 0; c < RP_CATEGORIES; c++)
        rp_ns_add(&whole, sum[c]);
    out->categories = RP_ARENA_NEW(arena, struct rp_report_category, RP_CATEGORIES);
    for (size_t c = 0; c < RP_CATEGORIES && out->categories && whole > 0; c++)
        if (sum[c] > 0)
            out->categories[out->ncategories++] =
                (struct rp_report_category){.category = rp_category_names[c],
                                            .device_ns = sum[c],
                                            .share = (double)sum[c] / (double)whole};
    rp_sort(out->categories, out->ncategories, sizeof *out->categories, by_time);
    out->work_text = category_line(out, arena);
}
