/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the table of where host threads wait. */
#include "explain/idle/waits.h"

#include "base/decides.h"
#include "result/part.h"
#include "result/print_units.h"

#define MOST_ROWS 6
RP_LIMIT(MOST_ROWS, "rows on the screen", "the longest; --json has them all");

#define WAIT(member, type, unit, title, doc, flags) \
    RP_FIELD(struct rp_idle_wait, member, type, unit, title, doc, flags)

static const struct rp_field wait_fields[] = {
    WAIT(
        threads, STR, NONE, "threads",
        "threads that run ranges or operators; or workers, which wait when they have nothing to do",
        0),
    WAIT(call, STR, NONE, "call", "the call in which they wait", 0),
    WAIT(what, STR, NONE, "waits for", "what such a call waits for", 0),
    WAIT(range, STR, NONE, "in", "the innermost range of the program around it, or null",
         RP_SHORTEN),
    WAIT(total_ns, I64, NS, NULL, "sum over the ranks", 0),
    WAIT(mean_ns, I64, NS, "time", "mean of the ranks", 0),
    WAIT(share, F64, RATIO, "share", "share of the span; for workers, of the spans of all of them",
         0),
    WAIT(count, I64, COUNT, "waits", "how many, in all ranks", 0),
    WAIT(longest_ns, I64, NS, "longest", "the longest of them", 0),
    RP_FIELD_END};
const struct rp_type rp_idle_wait_type = {"wait", sizeof(struct rp_idle_wait), wait_fields, NULL};

static struct rp_idle_wait make_row(const struct rp_host_wait *x, size_t nranks, int64_t whole_ns,
                                    const char *threads)
{
    return (struct rp_idle_wait){.threads = threads,
                                 .call = x->call,
                                 .what = rp_wait_kind_names[rp_wait_kind_of(x->call)],
                                 .range = x->range,
                                 .total_ns = x->total_ns,
                                 .mean_ns = x->total_ns / (int64_t)(nranks ? nranks : 1),
                                 .count = x->count,
                                 .longest_ns = x->longest_ns,
                                 .share =
                                     whole_ns > 0 ? (double)x->total_ns / (double)whole_ns : 0};
}

static const char *threads_text(struct rp_arena *arena, int64_t n, bool workers)
{
    if (!workers && n <= 1)
        return "main";
    return rp_units_count(arena, n, workers ? "worker" : "thread");
}

enum rp_code rp_idle_list_waits(const struct rp_host_waits *const *ranks, size_t n,
                                int64_t spans_ns, struct rp_arena *arena,
                                struct rp_idle_wait_list *out, struct rp_err *err)
{
    struct rp_host_waits all = {0};
    enum rp_code code = RP_OK;

    *out = (struct rp_idle_wait_list){0};
    for (size_t r = 0; r < n && code == RP_OK; r++)
        code = rp_host_waits_join(&all, ranks[r], err);
    rp_host_waits_sort(&all);
    out->main_ns = all.main_ns;
    out->at = RP_ARENA_NEW(arena, struct rp_idle_wait, all.rows.n + 1);
    for (size_t i = 0; i < all.rows.n && out->at && code == RP_OK; i++) {
        const struct rp_host_wait *x = &all.rows.at[i];
        int64_t threads = x->worker ? all.workers : all.threads;

        threads = n ? (threads + (int64_t)n - 1) / (int64_t)n : threads;
        out->at[out->n++] = make_row(x, n, spans_ns * (threads > 1 ? threads : 1),
                                     threads_text(arena, threads, x->worker));
        if (!x->worker && out->nshown < MOST_ROWS)
            out->nshown++;
    }
    if (!out->nshown) /* workers only */
        out->nshown = out->n < MOST_ROWS ? out->n : MOST_ROWS;
    rp_host_waits_release(&all);
    RP_TRY(code);
    return rp_arena_check(arena, "listing waits", err);
}
