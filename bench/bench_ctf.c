/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast a recording is read, on one core: `bench_ctf FOLDER/RANK/metadata` reads it five times
 * and prints the best rate of decoding (up to the last packet) and of all (with the passes behind
 * it), in processor time, which a busy machine disturbs less than the clock does.
 */
#include "formats/formats.h"

#include <stdio.h>
#include <time.h>

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Called behind each packet: the last call is the end of decoding. */
static bool on_progress(void *last, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    *(double *)last = cpu_s();
    return true;
}

int main(int argc, char **argv)
{
    double decode = 1e9, all = 1e9, begin, last = 0;
    struct rp_read_options options = {.progress = on_progress, .progress_user = &last};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    uint64_t bytes = 0, events = 0;
    struct rp_input *in;

    if (argc != 2) {
        fputs("usage: bench_ctf FOLDER/metadata\n", stderr);
        return 2;
    }
    for (int round = 0; round < 5; round++) {
        begin = cpu_s();
        if (rp_input_open(argv[1], NULL, &in, &err) != RP_OK ||
            rp_format_read(in, &options, &import, &err) != RP_OK) {
            fprintf(stderr, "bench_ctf: %s\n", err.text);
            return 3;
        }
        all = cpu_s() - begin < all ? cpu_s() - begin : all;
        decode = last - begin < decode ? last - begin : decode;
        bytes = import.content_bytes;
        events = import.trace->ev.n;
        rp_import_release(&import);
    }
    printf("%.0f MB, %llu events: decoding %.0f MB/s, with all passes %.0f MB/s\n",
           (double)bytes / 1e6, (unsigned long long)events, (double)bytes / decode / 1e6,
           (double)bytes / all / 1e6);
    return 0;
}
