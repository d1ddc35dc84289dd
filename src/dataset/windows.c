/* SPDX-License-Identifier: Apache-2.0 */
/* Names are sorted, so that those of one process follow each other, which takes n log n. */
#include "dataset/windows.h"

#include "base/arena.h"
#include "base/order.h"
#include "facts/host/trace_host.h"
#include "trace/build/build.h"

#include <stdlib.h>
#include <string.h>

struct window_name {
    const char *name;
    size_t length; /* up to the time */
    size_t source;
};

static int compare_process(const struct window_name *a, const struct window_name *b)
{
    size_t n = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->name, b->name, n);

    return order ? order : RP_COMPARE(a->length, b->length);
}
RP_ORDER(by_process, struct window_name, compare_process(a, b), RP_UP(source))

enum rp_code rp_windows_find(const struct rp_sources *sources, struct rp_arena *arena,
                             struct rp_windows *out, struct rp_err *err)
{
    size_t n = rp_sources_count(sources), named = 0, i;
    struct window_name *names = RP_ARENA_NEW(arena, struct window_name, n + 1);

    *out = (struct rp_windows){n, RP_ARENA_NEW(arena, size_t, n + 1),
                               RP_ARENA_NEW(arena, size_t, n + 1)};
    RP_TRY(rp_arena_check(arena, "looking for windows of one process", err));
    for (i = 0; i < n; i++) {
        const char *name = rp_sources_borrow(sources, i)->name;
        struct rp_torch_file file;

        out->previous[i] = out->next[i] = RP_NO_WINDOW;
        if (rp_torch_file_parse(name, &file))
            names[named++] = (struct window_name){name, file.worker_len, i};
    }
    rp_sort(names, named, sizeof *names, by_process);
    for (i = 1; i < named; i++)
        if (!compare_process(&names[i - 1], &names[i])) {
            out->previous[names[i].source] = names[i - 1].source;
            out->next[names[i - 1].source] = names[i].source;
        }
    return RP_OK;
}

/* ------------------------------------------------------------------ one trace of several */

static int64_t clock_base(const struct rp_trace *t)
{
    return t->has_base ? t->base_ns : 0;
}

static int64_t begin_ns(const struct rp_trace *t)
{
    return t->totals.span_begin_ns + clock_base(t);
}

RP_ORDER(by_begin, struct rp_trace *const, RP_COMPARE(begin_ns(*a), begin_ns(*b)))

static int64_t moved_time(const void *user, uint32_t process, int64_t ns)
{
    int64_t moved;

    (void)process;
    return __builtin_add_overflow(ns, *(const int64_t *)user, &moved) ? ns : moved;
}

enum rp_code rp_windows_join(const struct rp_trace **traces, size_t n,
                             const struct rp_limits *limits, struct rp_trace **out,
                             struct rp_err *err)
{
    struct rp_builder *b = NULL;
    enum rp_code code = RP_OK;

    *out = NULL;
    qsort(traces, n, sizeof *traces, by_begin);
    for (size_t i = 1; i < n; i++)
        if (begin_ns(traces[i]) < traces[i - 1]->totals.span_end_ns + clock_base(traces[i - 1]))
            return RP_OK;
    RP_TRY(rp_builder_new(limits, &b, err));
    for (size_t i = 0; i < n && code == RP_OK; i++) {
        int64_t shift = clock_base(traces[i]) - clock_base(traces[0]);
        struct rp_append how = {.index = (uint32_t)i,
                                .same_processes = true,
                                .time = moved_time,
                                .user = &shift,
                                .meta = i == 0};

        code = rp_trace_require(traces[i], RP_NEED_ALL, err);
        if (code == RP_OK)
            code = rp_builder_append(b, traces[i], &how, err);
    }
    if (code == RP_OK)
        return rp_builder_finish(b, out, err);
    rp_builder_free(b);
    return code;
}
