/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast HLO is read: MB/s of processor time and ns an instruction of the text reader, the
 * protobuf reader, the hash and the printer, over a file, or over a program made in memory (layers
 * of a transformer with metadata, about 20 MB of text).
 *
 *     bench_hlo [FILE]
 */
#include "formats/programs.h"
#include "io/input.h"
#include "program/structure.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 7

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void report(const char *what, double seconds, size_t bytes, uint32_t ops)
{
    printf("%-14s %8.1f MB/s %8.1f ns an instruction %9.2f ms\n", what,
           (double)bytes / 1e6 / seconds, seconds * 1e9 / ops, seconds * 1e3);
}

static struct rp_out *make(void)
{
    struct rp_out *out;

    if (rp_out_open_memory(&out, NULL) != RP_OK)
        exit(1);
    rp_out_text(out, "HloModule made\n\nENTRY %main (p: bf16[512,512]) -> bf16[512,512] {\n"
                     "  %x.0 = bf16[512,512]{1,0} parameter(0)\n");
    for (int i = 1; i < 100000; i++)
        rp_out_printf(
            out,
            "  %%x.%d = bf16[512,512]{1,0} %s(%%x.%d, %%x.%d)%s, "
            "metadata={op_type=\"op\" op_name=\"jit(step)/jit(main)/layer_%d/attention/op\" "
            "source_file=\"/home/user/model/layers.py\" source_line=%d}\n",
            i, i % 5 ? "add" : "dot", i - 1, i / 2,
            i % 5 ? "" : ", lhs_contracting_dims={1}, rhs_contracting_dims={0}", i / 50,
            100 + i % 37);
    rp_out_text(out, "}\n");
    return out;
}

static double time_text(const char *text, size_t n, struct rp_program **p)
{
    struct rp_err err = RP_ERR_INIT;
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double begin = now();

        rp_program_free(*p);
        if (rp_hlo_text_parse(text, n, NULL, p, &err) != RP_OK) {
            fprintf(stderr, "bench_hlo: %s\n", err.text);
            exit(1);
        }
        best = now() - begin < best ? now() - begin : best;
    }
    return best;
}

static double time_proto(struct rp_bytes bytes)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        double begin = now();

        if (rp_hlo_proto_parse(bytes.at, bytes.n, NULL, &p, &err) != RP_OK) {
            fprintf(stderr, "bench_hlo: %s\n", err.text);
            exit(1);
        }
        best = now() - begin < best ? now() - begin : best;
        rp_program_free(p);
    }
    return best;
}

static double time_hash(const struct rp_program *p)
{
    struct rp_hashes hashes;
    double best = 1e9;

    for (int i = 0; i < ROUNDS; i++) {
        struct rp_arena arena = RP_ARENA_INIT;
        double begin = now();

        if (rp_program_hash(p, &arena, &hashes, NULL) != RP_OK)
            exit(1);
        best = now() - begin < best ? now() - begin : best;
        rp_arena_release(&arena);
    }
    return best;
}

int main(int argc, char **argv)
{
    struct rp_proto_writer w = {0};
    struct rp_program *p = NULL;
    struct rp_bytes proto;
    struct rp_out *made = NULL;
    struct rp_input *in = NULL;
    const uint8_t *bytes;
    const char *text;
    double seconds;
    size_t n;

    if (argc > 1) {
        if (rp_input_open(argv[1], NULL, &in, NULL) != RP_OK ||
            rp_input_slurp(in, &bytes, &n, NULL) != RP_OK)
            return 1;
        text = (const char *)bytes;
    } else {
        made = make();
        text = rp_out_borrow_memory(made, &n);
    }
    seconds = time_text(text, n, &p);
    report("text", seconds, n, p->nops);
    report("hash", time_hash(p), n, p->nops);
    if (rp_hlo_proto_write(p, &w, NULL) != RP_OK || rp_proto_written(&w, &proto, NULL) != RP_OK)
        return 1;
    report("protobuf", time_proto(proto), proto.n, p->nops);
    rp_program_free(p);
    rp_proto_writer_release(&w);
    rp_out_abandon(made);
    rp_input_close(in);
    return 0;
}
