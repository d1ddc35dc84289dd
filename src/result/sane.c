/* SPDX-License-Identifier: Apache-2.0 */
/* Walks an answer by the description of its records and compares values by their keys. */
#include "result/sane.h"

#include "result/walk.h"

#include <stdio.h>

#define MOST_DEPTH 64 /* of records in records */

/* The keys of times that are lengths. Other times are moments or differences, which may be
   negative. */
static const char *const lengths[] = {"busy_ns",         "comm_ns",    "compute_ns", "dur_ns",
                                      "exposed_comm_ns", "idle_ns",    "lost_ns",    "margin_ns",
                                      "memory_ns",       "overlap_ns", "skew_ns",    "span_ns",
                                      "transfer_ns",     "wait_ns",    "window_ns"};

/* Parts of a time and the whole, in one record. If the same keys mean something else elsewhere (on
   a critical path), they count only beside a third one, and only if there is a whole: the waits of
   collectives on the host are not part of the communication of a device that has none. */
static const struct {
    const char *part, *whole, *beside;
} parts[] = {{"busy_ns", "window_ns", NULL},        {"idle_ns", "window_ns", NULL},
             {"compute_ns", "busy_ns", NULL},       {"comm_ns", "busy_ns", NULL},
             {"memory_ns", "busy_ns", NULL},        {"exposed_comm_ns", "comm_ns", NULL},
             {"wait_ns", "comm_ns", "transfer_ns"}, {"transfer_ns", "comm_ns", "wait_ns"}};

struct sane_walk {
    char *why;
    size_t cap, n;
};

static void report_value(struct sane_walk *w, const char *path, const char *key, int64_t value,
                         const char *whole)
{
    if (w->n++ == 0)
        snprintf(w->why, w->cap, "%s%s%s is %lld%s%s", path, *path ? "." : "", key,
                 (long long)value, whole ? ", more than " : "", whole ? whole : "");
}

/* Returns the value of a time with that key, if the record has it and it is known. */
static bool time_of_key(const struct rp_type *type, const void *record, const char *key,
                        int64_t *out)
{
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++)
        if (f->key && f->type == RP_T_I64 && f->unit == RP_UNIT_NS && !strcmp(f->key, key)) {
            *out = rp_field_i64(f, record);
            return *out != RP_ABSENT_I64;
        }
    return false;
}

static void check_record(struct sane_walk *w, const struct rp_type *type, const void *record,
                         const char *path, unsigned depth)
{
    char inner[200];

    if (depth == MOST_DEPTH || !type->fields)
        return;

    /* No length of time is negative, and no part longer than its whole. */
    int64_t value, whole;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        if (time_of_key(type, record, lengths[i], &value) && value < 0)
            report_value(w, path, lengths[i], value, NULL);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if ((!parts[i].beside || time_of_key(type, record, parts[i].beside, &value)) &&
            time_of_key(type, record, parts[i].part, &value) &&
            time_of_key(type, record, parts[i].whole, &whole) && value > whole &&
            (whole || !parts[i].beside))
            report_value(w, path, parts[i].part, value, parts[i].whole);
    for (const struct rp_field *f = type->fields; rp_field_here(f); f++) {
        if (rp_field_scalar(f) || !f->item)
            continue;
        snprintf(inner, sizeof inner, "%s%s%s", path, *path ? "." : "", f->key ? f->key : "");
        size_t n = f->type == RP_T_RECORD ? 1 : rp_field_count(f, record);
        for (size_t i = 0; i < n; i++)
            check_record(w, f->item,
                         f->type == RP_T_RECORD ? rp_field_at(f, record)
                                                : rp_field_item(f, record, i),
                         inner, depth + 1);
    }
}

size_t rp_record_impossible(const struct rp_type *type, const void *record, char *why, size_t cap)
{
    struct sane_walk w = {why, cap, 0};

    if (cap)
        *why = '\0';
    check_record(&w, type, record, "", 0);
    return w.n;
}
