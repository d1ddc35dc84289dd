/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_input FILE.gz [REPEATS]: how fast rp_input_read gives decompressed bytes, with the engine
 * of this build and with zlib. The best of REPEATS (5) counts; the file should be in the page
 * cache, which the first round sees to.
 */
#include "base/err.h"
#include "io/inflate.h"
#include "io/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PIECE ((size_t)256 << 10)

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One pass over the file; seconds, or a negative number. codec: NULL as it comes. */
static double pass(const char *path, const struct rp_codec *codec, uint8_t *buf, uint64_t *bytes,
                   struct rp_err *err)
{
    double start = seconds();
    struct rp_input *in;
    enum rp_code code;
    size_t got = 1;

    if (rp_input_open(path, NULL, &in, err) != RP_OK)
        return -1;
    code = codec ? rp_input_set_codec(in, codec, err) : RP_OK;
    *bytes = 0;
    while (code == RP_OK && got > 0) {
        code = rp_input_read(in, buf, PIECE, &got, err);
        *bytes += got;
    }
    rp_input_close(in);
    return code == RP_OK ? seconds() - start : -1;
}

static int measure(const char *path, const char *name, const struct rp_codec *codec, int repeats)
{
    struct rp_err err = RP_ERR_INIT;
    uint8_t *buf = malloc(PIECE);
    double best = 1e30;
    uint64_t bytes = 0;

    for (int i = 0; buf && i < repeats; i++) {
        double took = pass(path, codec, buf, &bytes, &err);

        if (took < 0) {
            fprintf(stderr, "bench_input: %s\n", err.text);
            free(buf);
            return 1;
        }
        best = took < best ? took : best;
    }
    free(buf);
    printf("%-8s %8.1f ms %8.0f MB/s %12llu bytes\n", name, best * 1e3, (double)bytes / best / 1e6,
           (unsigned long long)bytes);
    return 0;
}

int main(int argc, char **argv)
{
    int repeats = argc > 2 ? atoi(argv[2]) : 5;
    struct rusage use;
    int failed;

    if (argc < 2 || repeats < 1) {
        fprintf(stderr, "usage: bench_input FILE.gz [REPEATS]\n");
        return 2;
    }
    failed = measure(argv[1], rp_codec_gzip.engine, NULL, repeats);
    if (!failed)
        failed = measure(argv[1], rp_codec_gzip_zlib.engine, &rp_codec_gzip_zlib, repeats);
    getrusage(RUSAGE_SELF, &use);
    printf("largest resident size %.1f MB\n", (double)use.ru_maxrss / 1e3);
    return failed;
}
