/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts host stalls for the report: how many calls of each rank are far above the median of their
 * name on all ranks, how long they took, and around which durations they cluster. `stalls` has the
 * details.
 */
#include "base/decides.h"
#include "explain/report/report.h"

#include "facts/work/call_work.h"
#include "facts/work/modes.h"
#include "result/print_units.h"

#define LEAST_SHARE 0.01
#define FEW_STALLS  8
#define MODE_LEAST  3
#define MODE_OF     10
RP_LIMIT(LEAST_SHARE, "of the span", "less has no line on the screen; JSON has the count");
RP_LIMIT(FEW_STALLS, "stalls", "of fewer no durations are named");
RP_LIMIT(MODE_LEAST, "stalls of a duration", "fewer are not named");
RP_LIMIT(MODE_OF, "of the stalls, one part in", "a duration with fewer is not named");

enum rp_code rp_report_explain_stalls(const struct rp_trace *trace, const rp_interval_vec *busy,
                                      struct rp_arena *arena, struct rp_host_calls *calls,
                                      struct rp_err *err)
{
    const struct rp_host_calls *const list[] = {calls};
    struct rp_call_names names;
    struct rp_call_work work;
    bool more;

    RP_TRY(rp_call_names_join(list, 1, arena, &names, err));
    enum rp_code code = rp_call_work_init(&work, trace, err);
    for (size_t i = 0; i < calls->slow.n && code == RP_OK; i++) {
        struct rp_slow_call *slow = &calls->slow.at[i];

        if (!rp_is_stall(&names.at[names.to[0][slow->name]], slow->self_ns, &rp_stall_usual))
            continue;
        code = rp_call_has_more_work(&work, slow->event, &more, err);
        slow->explained =
            code == RP_OK && (more || rp_call_waits_for_result(trace, slow->event, busy));
    }
    rp_call_work_release(&work);
    return code;
}

/* Adds up the stalls of all ranks; `lengths`, which has room for all, gets the durations of those
   that nothing explains. */
static size_t add_stalls(const struct rp_ranks *ranks, const struct rp_call_names *names,
                         struct rp_report_root *out, int64_t *lengths)
{
    size_t r, i, found = 0;

    for (r = 0; r < ranks->n; r++) {
        const struct rp_host_calls *calls = &rp_report_part_of(ranks, r)->calls;

        for (i = 0; i < calls->slow.n; i++) {
            const struct rp_slow_call *slow = &calls->slow.at[i];

            if (!rp_is_stall(&names->at[names->to[r][slow->name]], slow->self_ns, &rp_stall_usual))
                continue;
            out->ranks[r].stall_count++;
            rp_ns_add(&out->ranks[r].stall_ns, slow->self_ns);
            if (!slow->explained)
                lengths[found++] = slow->self_ns;
        }
        out->stall_count += out->ranks[r].stall_count;
        rp_ns_add(&out->stall_ns, out->ranks[r].stall_ns);
    }
    return found;
}

/* Fills the modes that have a tenth of the stalls or more. */
static enum rp_code fill_modes(struct rp_report_root *out, const int64_t *sorted, size_t n,
                               struct rp_arena *arena, struct rp_err *err)
{
    struct rp_mode found[RP_MODES_MOST];
    size_t i, nfound = n < FEW_STALLS ? 0 : rp_modes_find(sorted, n, found);

    out->stall_modes = RP_ARENA_NEW(arena, struct rp_report_mode, nfound + 1);
    RP_TRY(rp_arena_check(arena, "counting stalls", err));
    for (i = 0; i < nfound; i++)
        if (found[i].count >= MODE_LEAST && found[i].count * MODE_OF >= (int64_t)n)
            out->stall_modes[out->nstall_modes++] =
                (struct rp_report_mode){found[i].at_ns, found[i].count};
    return RP_OK;
}

/* ", mainly around 8.11 ms, 21.1 ms, 28.0 ms", or "". */
static const char *modes_text(const struct rp_report_root *out, struct rp_arena *arena)
{
    const char *text = "";

    for (size_t i = 0; i < out->nstall_modes; i++)
        text = rp_arena_textf(arena, "%s%s%s", text, i ? ", " : ", mainly around ",
                              rp_units_time(arena, out->stall_modes[i].at_ns));
    return text;
}

enum rp_code rp_report_count_stalls(const struct rp_ranks *ranks, struct rp_arena *arena,
                                    struct rp_report_root *out, struct rp_err *err)
{
    const struct rp_host_calls **calls =
        RP_ARENA_NEW(arena, const struct rp_host_calls *, ranks->n + 1);
    struct rp_call_names names;
    size_t r, i, found, most = 0;
    int64_t *lengths, total_ns = 0;

    RP_TRY(rp_arena_check(arena, "counting stalls", err));
    for (r = 0; r < ranks->n; r++) {
        calls[r] = &rp_report_part_of(ranks, r)->calls;
        most += calls[r]->slow.n;
    }
    lengths = RP_ARENA_NEW(arena, int64_t, most + 1);
    RP_TRY(rp_arena_check(arena, "counting stalls", err));
    RP_TRY(rp_call_names_join(calls, ranks->n, arena, &names, err));
    found = add_stalls(ranks, &names, out, lengths);
    for (i = 0; i < found; i++)
        rp_ns_add(&total_ns, lengths[i]);
    if (found)
        rp_ns_sort(lengths, found);
    RP_TRY(fill_modes(out, lengths, found, arena, err));
    if (found && (double)total_ns >= LEAST_SHARE * (double)ranks->n * (double)out->span_ns) {
        out->stall_text =
            found == 1 ? rp_arena_textf(arena,
                                        "1 host call that usually takes microseconds took %s: see "
                                        "'reprise stalls'",
                                        rp_units_time(arena, lengths[0]))
                       : rp_arena_textf(arena,
                                        "%s that usually take microseconds took %s to %s, "
                                        "%s in all%s: see 'reprise stalls'",
                                        rp_units_count(arena, (int64_t)found, "host call"),
                                        rp_units_time(arena, lengths[0]),
                                        rp_units_time(arena, lengths[found - 1]),
                                        rp_units_time(arena, total_ns), modes_text(out, arena));
    }
    return rp_arena_check(arena, "counting stalls", err);
}
