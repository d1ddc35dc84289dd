/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast pictures are placed: milliseconds of processor time for the layout of one flat graph,
 * and for a whole picture (hashes, costs, groups, layouts), of a generated graph of NODES
 * operations, or of a program.
 *
 *     bench_layout [NODES | FILE]
 */
#include "draw/picture.h"
#include "formats/programs.h"
#include "io/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 3

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void fail(const struct rp_err *err)
{
    fprintf(stderr, "bench_layout: %s\n", err->text);
    exit(1);
}

/* A chain with branches: operands are near, as in programs, and some far away. */
static uint32_t operand_of(uint32_t i, uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    if (*seed >> 28 == 0)
        return *seed % i;
    return i - 1 - (*seed >> 8) % (i < 24 ? i : 24);
}

static void time_flat(uint32_t n)
{
    struct rp_layout_edge *edges = malloc(2 * (size_t)n * sizeof *edges);
    float *w = malloc(n * sizeof *w), *h = malloc(n * sizeof *h);
    struct rp_err err = RP_ERR_INIT;
    size_t nedges = 0;
    uint32_t seed = 1;
    double best = 1e12;

    if (!edges || !w || !h)
        exit(1);
    for (uint32_t i = 0; i < n; i++) {
        w[i] = (float)(70 + i % 13 * 9);
        h[i] = 36;
        for (int k = 0; i && k < 2; k++)
            edges[nedges++] = (struct rp_layout_edge){operand_of(i, &seed), i};
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_layout layout;
        double begin = now();

        if (rp_layout_run(&(struct rp_layout_graph){n, w, h, nedges, edges}, &arena, &layout,
                          &err) != RP_OK)
            fail(&err);
        best = now() - begin < best ? now() - begin : best;
        rp_arena_release(&arena);
    }
    printf("flat layout    %9.1f ms  %u nodes, %zu edges\n", best, n, nedges);
    free(edges);
    free(w);
    free(h);
}

static struct rp_program *generate(uint32_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *out;
    struct rp_program *p;
    const char *text;
    size_t len;
    uint32_t seed = 1;

    if (rp_out_open_memory(&out, &err) != RP_OK)
        fail(&err);
    rp_out_text(out, "HloModule made\nENTRY main {\n x0 = f32[8] parameter(0)\n");
    for (uint32_t i = 1; i < n; i++) {
        static const char *const codes[] = {"add", "multiply", "subtract", "maximum", "power"};
        uint32_t a = operand_of(i, &seed), b = operand_of(i, &seed);

        rp_out_printf(out, " x%u = f32[8] %s(x%u, x%u)\n", i, codes[(seed >> 12) % 5], a, b);
    }
    rp_out_text(out, "}\n");
    text = rp_out_borrow_memory(out, &len);
    if (rp_hlo_text_parse(text, len, NULL, &p, &err) != RP_OK)
        fail(&err);
    return p; /* borrows the text, which is never freed */
}

static void time_picture(const struct rp_program *p)
{
    struct rp_err err = RP_ERR_INIT;
    double best = 1e12, groups_ms = 0;
    uint32_t ngroups = 0, layouts = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct rp_arena arena = RP_ARENA_INIT;
        struct rp_picture picture;
        struct rp_tree tree;
        double begin = now(), whole;

        if (rp_picture_make(p, &arena, &picture, &err) != RP_OK)
            fail(&err);
        whole = now() - begin;
        begin = now();
        if (rp_tree_build(p, &picture.hashes, &arena, &tree, &err) != RP_OK)
            fail(&err);
        if (whole < best) {
            best = whole;
            groups_ms = now() - begin;
        }
        ngroups = picture.tree.ngroups;
        layouts = 0;
        for (uint32_t g = 0; g < ngroups; g++)
            layouts += picture.tree.groups[g].same == g;
        rp_arena_release(&arena);
    }
    printf(
        "whole picture  %9.1f ms  %u operations, %u groups, %u different; groups alone %.1f ms\n",
        best, p->nops, ngroups, layouts, groups_ms);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "1000000";
    uint32_t n = (uint32_t)strtoul(what, NULL, 10);
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;
    struct rp_input *in;
    const unsigned char *text;
    size_t len;

    if (n) {
        time_flat(n);
        time_picture(generate(n));
        return 0;
    }
    if (rp_input_open(what, NULL, &in, &err) != RP_OK ||
        rp_input_slurp(in, &text, &len, &err) != RP_OK ||
        rp_hlo_text_parse((const char *)text, len, NULL, &p, &err) != RP_OK)
        fail(&err);
    time_picture(p);
    rp_program_free(p);
    rp_input_close(in);
    return 0;
}
