/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If no device work was recorded, shows by samples of their stacks where the threads were: the
 * lines that take the processors, and how long threads ran and waited.
 */
#include "base/decides.h"
#include "explain/report/report.h"

#include "base/text.h"
#include "result/print_units.h"

#define MOST_LINES 5
RP_LIMIT(MOST_LINES, "lines", "that are shown; top --by line has all");

static const struct rp_field sampled_fields[] = {
    RP_FIELD(struct rp_report_sampled, samples, I64, COUNT, NULL, "samples of threads that ran", 0),
    RP_FIELD(struct rp_report_sampled, ran_ns, I64, NS, NULL,
             "time on processors, summed over threads; null where samples have no time",
             RP_NULLABLE),
    RP_FIELD(struct rp_report_sampled, waited_ns, I64, NS, NULL, "the same of waiting",
             RP_NULLABLE),
    RP_FIELD(struct rp_report_sampled, wants_gil_ns, I64, NS, NULL,
             "the part of both that waits for Python's global lock", RP_NULLABLE),
    RP_FIELD_LIST(struct rp_report_sampled, lines, &rp_stacks_row_type, NULL,
                  "with most time of their own on a processor", 0),
    RP_FIELD_END};
const struct rp_type rp_report_sampled_type = {"sampled", sizeof(struct rp_report_sampled),
                                               sampled_fields, NULL};

bool rp_report_knows_no_work(const struct rp_report_part *part)
{
    return !part->on_device && !part->sums.host_op_ns && !part->by_ranges && !part->by_calls;
}

bool rp_report_is_sampled(const struct rp_report_part *part)
{
    return rp_report_knows_no_work(part) && (part->stacks.count || part->stacks.waited);
}

/* Samples of a device say nothing about threads (Proton). */
bool rp_report_samples_device(const struct rp_report_part *part)
{
    const struct rp_stacks_part *s = &part->stacks;

    return rp_report_is_sampled(part) &&
           (s->of_device || (s->unit_name && rp_text_begins(s->unit_name, "device ")));
}

/* "ran 2.31 s and waited 4.12 s, 1.02 s of it for the GIL (summed over threads)" */
static const char *threads_text(const struct rp_report_sampled *s, struct rp_arena *arena)
{
    const char *gil = "";

    if (s->ran_ns == RP_ABSENT_I64)
        return NULL;
    if (s->wants_gil_ns > 0)
        gil =
            rp_arena_textf(arena, ", %s of it for the GIL", rp_units_time(arena, s->wants_gil_ns));
    return s->waited_ns
               ? rp_arena_textf(arena, "ran %s and waited %s%s (sampled, summed over threads)",
                                rp_units_time(arena, s->ran_ns), rp_units_time(arena, s->waited_ns),
                                gil)
               : rp_arena_textf(arena, "ran %s (sampled, summed over threads)",
                                rp_units_time(arena, s->ran_ns));
}

enum rp_code rp_report_join_samples(const struct rp_ranks *ranks, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err)
{
    const struct rp_stacks_want want = {.by = "line", .sort = "self", .limit = MOST_LINES};
    const struct rp_stacks_part **parts =
        RP_ARENA_NEW(arena, const struct rp_stacks_part *, ranks->n + 1);
    struct rp_report_sampled *to = &out->sampled;
    struct rp_stacks_root root;
    size_t r, n = 0;

    *to = (struct rp_report_sampled){
        .ran_ns = RP_ABSENT_I64, .waited_ns = RP_ABSENT_I64, .wants_gil_ns = RP_ABSENT_I64};
    RP_TRY(rp_err_need(parts, err, "adding up samples"));
    for (r = 0; r < ranks->n; r++) {
        const struct rp_stacks_part *part = &rp_report_part_of(ranks, r)->stacks;

        if ((!part->count && !part->waited) || (n && part->unit != parts[0]->unit))
            continue;
        parts[n++] = part;
        to->samples += part->count;
    }
    if (!n)
        return RP_OK;
    RP_TRY(rp_stacks_join(parts, n, &want, arena, &root, err));
    to->lines = out->sampled_rows = out->sampled_counts = root.rows;
    while (to->nlines < root.nrows && root.rows[to->nlines].self_share > 0)
        to->nlines++;
    out->nsampled_rows = root.whole_ns == RP_ABSENT_I64 ? 0 : to->nlines;
    out->nsampled_counts = to->nlines - out->nsampled_rows;
    to->ran_ns = root.whole_ns;
    to->waited_ns = root.waited_ns;
    if (root.whole_ns != RP_ABSENT_I64)
        to->wants_gil_ns = 0;
    for (r = 0; r < n && to->wants_gil_ns != RP_ABSENT_I64; r++)
        rp_ns_add(&to->wants_gil_ns, parts[r]->wants_gil);
    if (rp_report_samples_device(rp_report_part_of(ranks, 0))) {
        out->sampled_works = root.rows;
        out->nsampled_works = out->nsampled_rows;
        out->nsampled_rows = 0;
    } else {
        out->sampled_text = threads_text(to, arena);
    }
    return RP_OK;
}
