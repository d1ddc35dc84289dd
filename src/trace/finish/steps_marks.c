/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds steps marked by the user's own annotations: names such as "iteration 5", "train_step",
 * "batch#3" on one thread. Marks are grouped by thread and by name without its number. A group is
 * accepted if its spans do not overlap, cover at least half of the time from the first to the last,
 * and are at least two with increasing numbers or three without. Of several groups the one that
 * covers most time wins: the outer loop.
 */
#include "trace/finish/steps.h"

#include "base/filled.h"
#include "base/order.h"
#include <ctype.h>
#include <stdlib.h>

struct mark {
    uint32_t track, base; /* base: id in a table of names without numbers */
    bool numbered;
    int64_t number;
    rp_event event;
};

struct marks {
    struct rp_builder *b;
    struct rp_strtab bases;
    RP_VEC(struct mark) marks;
    RP_VEC(uint8_t) judged; /* by string: 1 names a step, 2 does not, 0 not examined yet */
};

static bool has_word(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcasestr(text, words[i]))
            return true;
    return false;
}

/* Whether the name is that of an iteration of the training loop, not of a part of one. */
static bool names_step(const char *text)
{
    static const char *const yes[] = {"step", "iter", "batch"};
    static const char *const no[] = {"optim",     "sched",      "zero_grad", "dataload", "loader",
                                     "enumerate", "batch_norm", "batchnorm", "iterator", "next"};

    return has_word(text, yes, sizeof yes / sizeof yes[0]) &&
           !has_word(text, no, sizeof no / sizeof no[0]);
}

size_t rp_steps_base_length(const char *text, size_t len, int64_t *number, bool *numbered)
{
    size_t n = len;

    while (n > 0 && isdigit((unsigned char)text[n - 1]))
        n--;
    *numbered = n < len && len - n < 18;
    *number = *numbered ? strtoll(text + n, NULL, 10) : 0;
    if (n == len)
        return len;
    while (n > 0 && strchr(" #:_-=.[(", text[n - 1]))
        n--;
    return n;
}

static bool is_step_name(struct marks *w, rp_str name)
{
    if (!w->judged.at[name])
        w->judged.at[name] = names_step(rp_strtab_borrow(&w->b->str, name)) ? 1 : 2;
    return w->judged.at[name] == 1;
}

static enum rp_code collect_marks(struct marks *w, struct rp_err *err)
{
    struct rp_builder *b = w->b;
    size_t nstrings = b->str.n;

    RP_TRY(rp_vec_zeros(&w->judged, nstrings, err));

    for (rp_event e = 0; e < b->ev.n; e++) {
        struct mark mark = {.track = b->ev.track.at[e], .event = e};

        if (b->ev.kind.at[e] != RP_KIND_ANNOTATION || !rp_step_is_span(b, e) ||
            (b->ev.flags.at[e] & RP_EVENT_ASYNC))
            continue;
        if (!is_step_name(w, b->ev.name.at[e]))
            continue;
        const char *text = rp_strtab_borrow(&b->str, b->ev.name.at[e]);
        size_t len = rp_steps_base_length(text, rp_strtab_len(&b->str, b->ev.name.at[e]),
                                          &mark.number, &mark.numbered);
        RP_TRY(rp_strtab_intern(&w->bases, text, len, &mark.base, err));
        RP_TRY(rp_vec_push(&w->marks, mark, err));
    }
    return RP_OK;
}

/* Events are numbered in time order on a track. */
RP_ORDER(by_group, struct mark, RP_UP(track), RP_UP(base), RP_UP(event))

/* The time that the group covers; 0 if it is not accepted. */
static int64_t covered_time(const struct rp_builder *b, const struct mark *m, size_t n)
{
    int64_t sum = 0, until = INT64_MIN, extent;
    bool numbered = true;

    for (size_t i = 0; i < n; i++) {
        int64_t begin = b->ev.ts_ns.at[m[i].event];

        if (begin < until || __builtin_add_overflow(sum, b->ev.dur_ns.at[m[i].event], &sum))
            return 0;
        until = rp_build_end_ns(b, m[i].event);
        numbered = numbered && m[i].numbered && (i == 0 || m[i].number > m[i - 1].number);
    }
    if (n < (numbered ? 2u : 3u) ||
        __builtin_sub_overflow(until, b->ev.ts_ns.at[m[0].event], &extent))
        return 0;
    return sum >= extent / 2 ? sum : 0;
}

static enum rp_code take_best(struct marks *w, struct rp_err *err)
{
    const struct mark *m = w->marks.at, *best = NULL;
    int64_t most = 0;
    size_t i, end, n = 0;

    for (i = 0; i < w->marks.n; i = end) {
        for (end = i + 1;
             end < w->marks.n && m[end].track == m[i].track && m[end].base == m[i].base; end++)
            ;
        int64_t sum = covered_time(w->b, m + i, end - i);
        if (sum > most) {
            most = sum;
            best = m + i;
            n = end - i;
        }
    }
    for (i = 0; i < n; i++)
        RP_TRY(rp_vec_push(&w->b->steps,
                           rp_step_of_event(w->b, best[i].event, RP_STEP_ANNOTATION,
                                            best[i].numbered ? best[i].number : (int64_t)i),
                           err));
    return RP_OK;
}

enum rp_code rp_steps_by_annotation(struct rp_builder *b, struct rp_err *err)
{
    struct marks w = {.b = b};

    RP_TRY(rp_strtab_init(&w.bases, err));
    enum rp_code code = collect_marks(&w, err);
    if (code == RP_OK && w.marks.n) {
        qsort(w.marks.at, w.marks.n, sizeof *w.marks.at, by_group);
        code = take_best(&w, err);
    }
    rp_strtab_release(&w.bases);
    rp_vec_release(&w.marks);
    rp_vec_release(&w.judged);
    return code;
}
