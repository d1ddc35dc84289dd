/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a trace several times and prints the best: events, milliseconds of reading and of the
 * passes behind it, megabytes of content a second, peak memory of the process, and bytes an event
 * of the model (columns, arguments, strings, links, arrows).
 *
 *   bench_load PATH [RUNS] [1: one thread]
 */
#include "formats/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t model_bytes(const struct rp_trace *t)
{
    uint64_t events = 42ull * t->ev.n, flows = 34ull * t->flows.n;
    uint64_t links =
        13ull * t->links.n + (t->links.offset ? 4ull * t->links.offset[t->links.n] : 0);
    uint64_t args = t->args.ndata + 16ull * t->args.nblocks + 12ull * t->args.nshapes;
    uint64_t strings = t->str.n ? t->str.offset[t->str.n] + 9ull * t->str.n : 0;

    return events + flows + links + args + strings;
}

static int load(const char *path, bool threaded, struct rp_import *import)
{
    struct rp_read_options options = {.threaded = threaded};
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    if (rp_input_open(path, NULL, &in, &err) != RP_OK ||
        rp_format_read(in, &options, import, &err) != RP_OK) {
        fprintf(stderr, "bench_load: %s\n", err.text);
        return 1;
    }
    return 0;
}

static void print(const struct rp_import *best)
{
    const struct rp_trace *t = best->trace;
    double all_ms = (double)(best->read_ns + best->finish_ns) / 1e6;
    uint64_t n = (uint64_t)t->ev.n + t->flows.n;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    printf("events %llu, strings %u, shapes %u\n", (unsigned long long)n, t->str.n,
           t->args.nshapes);
    printf("read %.1f ms, finish %.1f ms, all %.1f ms\n", (double)best->read_ns / 1e6,
           (double)best->finish_ns / 1e6, all_ms);
    printf("content %.1f MB, %.0f MB/s (reading alone %.0f MB/s)\n",
           (double)best->content_bytes / 1e6, (double)best->content_bytes / 1e3 / all_ms,
           (double)best->content_bytes * 1e3 / (double)(best->read_ns ? best->read_ns : 1));
    printf("peak memory %.1f MB, model %.1f bytes an event\n", (double)usage.ru_maxrss / 1024,
           n ? (double)model_bytes(t) / (double)n : 0.0);
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : 5;
    bool threaded = argc <= 3 || strcmp(argv[3], "1") != 0;
    struct rp_import best = RP_IMPORT_INIT, one;

    if (argc < 2) {
        fprintf(stderr, "usage: bench_load PATH [RUNS] [1: one thread]\n");
        return 2;
    }
    for (int i = 0; i < runs; i++) {
        if (load(argv[1], threaded, &one))
            return 3;
        if (!best.trace || one.read_ns + one.finish_ns < best.read_ns + best.finish_ns) {
            rp_import_release(&best);
            best = one;
        } else {
            rp_import_release(&one);
        }
    }
    if (best.trace)
        print(&best);
    rp_import_release(&best);
    return 0;
}
