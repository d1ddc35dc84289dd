/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of the JSON parser on one file: each variant of the structural index alone, then every
 * token pulled, on one thread and on two. Best of N runs, in megabytes of JSON a second.
 *
 *     bench_json FILE [N [BLOCK_KIB]]
 */
#include "io/json_pull.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void show(const char *what, double bytes, double seconds)
{
    printf("%-28s %8.1f ms %8.0f MB/s\n", what, seconds * 1e3, bytes / seconds / 1e6);
}

/* Windows of 256 KiB, as the parser does. */
static size_t index_all(rp_json_index_fn *run, const char *text, size_t n, uint32_t *out)
{
    struct rp_json_index_state state = {0};
    const size_t window = (size_t)256 << 10;
    size_t entries = 0;

    for (size_t i = 0; i < n; i += window)
        entries += run(&state, text + i, n - i < window ? n - i : window, 0, out);
    return entries;
}

static int bench_index(const char *path, int runs)
{
    uint32_t *out = malloc(((256 << 10) + RP_JSON_INDEX_SLACK) * sizeof *out);
    struct rp_input *in = NULL;
    struct rp_err err;
    const uint8_t *text;
    size_t n, entries = 0;

    if (!out || rp_input_open(path, NULL, &in, &err) != RP_OK ||
        rp_input_slurp(in, &text, &n, &err) != RP_OK) {
        fprintf(stderr, "%s\n", out ? err.text : "out of memory");
        free(out);
        rp_input_close(in);
        return 1;
    }
    for (size_t v = 0; rp_json_indexer_at(v); v++) {
        const struct rp_json_indexer *indexer = rp_json_indexer_at(v);
        double best = 1e9;
        char what[40];

        for (int i = 0; i < runs; i++) {
            double begin = now();

            entries = index_all(indexer->run, (const char *)text, n, out);
            if (now() - begin < best)
                best = now() - begin;
        }
        snprintf(what, sizeof what, "index %s", indexer->name);
        show(what, (double)n, best);
    }
    printf("%-28s %8zu entries, %.1f bytes each\n", "", entries,
           entries ? (double)n / (double)entries : 0.0);
    free(out);
    rp_input_close(in);
    return 0;
}

/* Every token; returns how many. */
static uint64_t pull_all(struct rp_json *p)
{
    struct rp_json_token t;
    uint64_t tokens = 1;

    rp_json_value(p, &t);
    while (rp_json_depth(p)) {
        bool more = rp_json_in_object(p) ? rp_json_field(p, &t) : rp_json_element(p);

        if (more)
            rp_json_value(p, &t);
        else if (rp_json_failed(p))
            break;
        tokens++;
    }
    return tokens;
}

static int bench_pull(const char *path, int runs, const struct rp_json_options *options,
                      const char *what)
{
    double best = 1e9;
    uint64_t tokens = 0, bytes = 0;

    for (int i = 0; i < runs; i++) {
        struct rp_input *in = NULL;
        struct rp_json *p = NULL;
        struct rp_err err;
        double begin = now();

        if (rp_input_open(path, NULL, &in, &err) == RP_OK &&
            rp_json_open(in, options, &p, &err) == RP_OK) {
            tokens = pull_all(p);
            bytes = rp_json_offset(p);
            rp_json_finish(p, &err);
        }
        rp_json_close(p);
        rp_input_close(in);
        if (err.code != RP_OK) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
        if (now() - begin < best)
            best = now() - begin;
    }
    show(what, (double)bytes, best);
    printf("%-28s %8llu tokens, %.1f ns each\n", "", (unsigned long long)tokens,
           best / (double)tokens * 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : 10, failed = 0;
    struct rp_json_options options = {.block_bytes = argc > 3 ? (uint32_t)atoi(argv[3]) << 10 : 0};

    if (argc < 2 || runs < 1) {
        fprintf(stderr, "usage: bench_json FILE [N [BLOCK_KIB]]\n");
        return 2;
    }
    failed += bench_index(argv[1], runs);
    failed += bench_pull(argv[1], runs, &options, "pull, one thread");
    options.threaded = true;
    failed += bench_pull(argv[1], runs, &options, "pull, two threads");
    return failed ? 1 : 0;
}
