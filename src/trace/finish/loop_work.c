/* SPDX-License-Identifier: Apache-2.0 */
/* Operators come track by track and are sorted by time once. */
#include "trace/finish/loop_work.h"

#include "base/filled.h"
#include "base/order.h"

#include <math.h>

RP_ORDER(by_begin, struct rp_loop_item, RP_UP(begin_ns), RP_UP(end_ns), RP_UP(name))

enum rp_code rp_loop_work_push(struct rp_loop_work *work, struct rp_builder *b, rp_event e,
                               struct rp_err *err)
{
    struct rp_loop_item item = {b->ev.ts_ns.at[e], rp_build_end_ns(b, e), b->ev.name.at[e], e};

    if (!work->count.at)
        RP_TRY(rp_vec_zeros(&work->count, b->str.n, err));
    return rp_vec_push(&work->items, item, err);
}

enum rp_code rp_loop_work_init(struct rp_loop_work *work, struct rp_builder *b, uint32_t process,
                               struct rp_err *err)
{
    for (size_t t = 0; t < b->tracks.n; t++)
        if (b->tracks.at[t].process == process && b->tracks.at[t].kind == RP_TRACK_THREAD) {
            /* Add the operators of a thread that are not inside another one. `until` is the end of
               the last one. */
            int64_t until = INT64_MIN;

            for (rp_event e = b->tracks.at[t].first; e < b->tracks.at[t].end; e++) {
                if (b->ev.kind.at[e] != RP_KIND_CPU_OP || !rp_step_is_span(b, e) ||
                    b->ev.ts_ns.at[e] < until)
                    continue;
                RP_TRY(rp_loop_work_push(work, b, e, err));
                until = rp_build_end_ns(b, e);
            }
        }
    if (!work->items.n) {
        for (rp_event e = 0; e < b->ev.n; e++)
            if (rp_kind_is_device_work(b->ev.kind.at[e]) && rp_step_is_span(b, e))
                RP_TRY(rp_loop_work_push(work, b, e, err));
    }
    rp_loop_work_sort(work);
    return RP_OK;
}

void rp_loop_work_sort(struct rp_loop_work *work)
{
    rp_sort(work->items.at, work->items.n, sizeof *work->items.at, by_begin);
}

void rp_loop_work_release(struct rp_loop_work *work)
{
    rp_vec_release(&work->items);
    rp_vec_release(&work->count);
}

/* The first item that begins at or after a time. */
static size_t first_from(const struct rp_loop_work *work, int64_t ns)
{
    size_t i;

    RP_LOWER_BOUND(i, work->items.n, work->items.at[i].begin_ns < ns);
    return i;
}

size_t rp_loop_work_count(const struct rp_loop_work *work, int64_t begin_ns, int64_t end_ns)
{
    size_t from = first_from(work, begin_ns), to = first_from(work, end_ns);

    return to > from ? to - from : 0;
}

double rp_loop_work_differs(const struct rp_loop_work *work, int64_t a_begin_ns, int64_t a_end_ns,
                            int64_t b_begin_ns, int64_t b_end_ns)
{
    size_t a = first_from(work, a_begin_ns), a_end = first_from(work, a_end_ns);
    size_t b = first_from(work, b_begin_ns), b_end = first_from(work, b_end_ns);
    size_t na = a_end > a ? a_end - a : 0, nb = b_end > b ? b_end - b : 0, common = 0, i;

    for (i = a; i < a_end; i++)
        work->count.at[work->items.at[i].name]++;
    for (i = b; i < b_end; i++)
        if (work->count.at[work->items.at[i].name]) {
            work->count.at[work->items.at[i].name]--;
            common++;
        }
    for (i = a; i < a_end; i++)
        work->count.at[work->items.at[i].name] = 0;
    if (!na || !nb)
        return NAN;
    return 1 - (double)common / (double)(na > nb ? na : nb);
}

static bool name_has(const struct rp_builder *b, rp_str name, const char *const *texts)
{
    for (size_t i = 0; texts[i]; i++)
        if (strstr(rp_strtab_borrow(&b->str, name), texts[i]))
            return true;
    return false;
}

bool rp_loop_work_adds(const struct rp_loop_work *work, const struct rp_builder *b,
                       int64_t a_begin_ns, int64_t a_end_ns, int64_t b_begin_ns, int64_t b_end_ns,
                       const char *const *texts)
{
    size_t a = first_from(work, a_begin_ns), a_end = first_from(work, a_end_ns);
    size_t end = first_from(work, b_end_ns), missing = 0, i;
    bool adds = true;

    for (i = a; i < a_end; i++)
        work->count.at[work->items.at[i].name]++;
    for (i = first_from(work, b_begin_ns); i < end; i++)
        if (work->count.at[work->items.at[i].name])
            work->count.at[work->items.at[i].name]--;
        else
            adds = adds && !name_has(b, work->items.at[i].name, texts);
    for (i = a; i < a_end; i++) {
        missing += work->count.at[work->items.at[i].name];
        work->count.at[work->items.at[i].name] = 0;
    }
    return adds && (double)missing <= RP_SAME_WORK * (double)(a_end - a);
}

bool rp_loop_work_has(const struct rp_loop_work *work, const struct rp_builder *b, int64_t begin_ns,
                      int64_t end_ns, const char *text)
{
    const char *const texts[] = {text, NULL};
    size_t end = first_from(work, end_ns);

    for (size_t i = first_from(work, begin_ns); i < end; i++)
        if (name_has(b, work->items.at[i].name, texts))
            return true;
    return false;
}

bool rp_loop_work_has_only(const struct rp_loop_work *work, const struct rp_builder *b,
                           int64_t begin_ns, int64_t end_ns, const char *prefix)
{
    size_t end = first_from(work, end_ns);

    for (size_t i = first_from(work, begin_ns); i < end; i++)
        if (strncmp(rp_strtab_borrow(&b->str, work->items.at[i].name), prefix, strlen(prefix)) != 0)
            return false;
    return true;
}

int64_t rp_loop_work_begin(const struct rp_loop_work *work, int64_t before_ns, size_t n)
{
    size_t end = first_from(work, before_ns);

    return end ? work->items.at[end > n ? end - n : 0].begin_ns : INT64_MAX;
}

int64_t rp_loop_work_end(const struct rp_loop_work *work, int64_t from_ns, size_t n)
{
    size_t i = first_from(work, from_ns), end = work->items.n - i > n ? i + n : work->items.n;
    int64_t last = INT64_MIN;

    for (; i < end; i++)
        last = work->items.at[i].end_ns > last ? work->items.at[i].end_ns : last;
    return last;
}
