/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the library a question about a trace, reads values and rows of the answer, and walks the
 * events of the trace itself:
 *
 *     cc use_library.c $(pkg-config --cflags --libs reprise) -o use_library
 *     ./use_library gpt_bf16.json.gz
 *
 * or, with the library inside the program:
 *
 *     cc use_library.c $(pkg-config --static --cflags --libs reprise |
 *                        sed 's/-lreprise/-l:libreprise.a/') -o use_library
 *
 * docs/library.md explains each step. Every command in `reprise help` that prints a result is asked
 * in the same way.
 */
#include <reprise/reprise.h>

#include <stdio.h>

/* `reprise top --by op --limit 3`: the operators with the most device time. */
static enum rp_code print_operators(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                    struct rp_err *err)
{
    const struct rp_setting settings[] = {{"by", "op"}, {"limit", "3"}};
    struct rp_result *result;
    struct rp_rows rows;
    const char *name;
    int64_t whole_ns, total_ns;
    enum rp_code code = rp_ask(ctx, dataset, "top", settings, 2, &result, err);

    if (code != RP_OK)
        return code;
    if (rp_result_i64(result, "whole_ns", &whole_ns))
        printf("device time: %.3f ms\n", (double)whole_ns / 1e6);
    if (rp_result_rows(result, "rows", &rows))
        while (rp_rows_next(&rows))
            if (rp_row_text(&rows.row, "name", &name) &&
                rp_row_i64(&rows.row, "total_ns", &total_ns))
                printf("  %s: %.3f ms\n", name, (double)total_ns / 1e6);
    rp_result_free(result);
    return RP_OK;
}

/* The longest kernel of a timeline, and the call that launched it. */
static void print_longest_kernel(const struct rp_timeline *timeline)
{
    struct rp_event_view events[256], longest = {0}, launch;
    struct rp_arg_view stream;
    size_t first = 0, n, i;
    uint32_t linked;

    while ((n = rp_timeline_events(timeline, first, 256, events, sizeof events[0])) > 0) {
        for (i = 0; i < n; i++)
            if (events[i].kind == RP_KIND_KERNEL && events[i].duration_ns > longest.duration_ns)
                longest = events[i];
        first += n;
    }
    printf("%zu events", first);
    if (longest.name) {
        printf("; the longest kernel takes %lld ns", (long long)longest.duration_ns);
        if (rp_timeline_arg(timeline, longest.index, "stream", &stream, sizeof stream))
            printf(" on stream %lld", (long long)stream.i64);
        if (rp_timeline_linked(timeline, longest.index, &linked, 1) > 1 &&
            rp_timeline_events(timeline, linked, 1, &launch, sizeof launch))
            printf(", launched by %s", launch.name);
    }
    printf("\n");
}

static enum rp_code print_timelines(const struct rp_dataset *dataset, struct rp_err *err)
{
    struct rp_timeline *timeline;
    enum rp_code code = RP_OK;
    size_t i;

    for (i = 0; code == RP_OK && i < rp_dataset_count(dataset); i++) {
        code = rp_timeline_open(dataset, i, &timeline, err);
        if (code == RP_OK && timeline)
            print_longest_kernel(timeline);
        rp_timeline_free(timeline);
    }
    return code;
}

int main(int argc, char **argv)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_ctx *ctx = NULL;
    struct rp_dataset *dataset = NULL;
    enum rp_code code = rp_ctx_new(NULL, &ctx, &err);

    printf("reprise %s\n", rp_version());
    if (code == RP_OK && argc > 1)
        code = rp_open(ctx, (const char *const *)&argv[1], (size_t)argc - 1, NULL, &dataset, &err);
    if (code == RP_OK && dataset)
        code = print_operators(ctx, dataset, &err);
    if (code == RP_OK && dataset)
        code = print_timelines(dataset, &err);
    if (code != RP_OK)
        fprintf(stderr, "use_library: %s\n", err.text);
    rp_dataset_free(dataset);
    rp_ctx_free(ctx);
    return rp_code_exit_status(code);
}
