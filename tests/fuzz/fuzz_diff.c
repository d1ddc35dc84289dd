/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two programs, divided by a line "====": compared both ways, listed and drawn. Each equals itself,
 * and whether they differ must not depend on which comes first.
 */
#include "draw/draw.h"
#include "explain/graph/graph.h"
#include "explain/program_diff/program_diff.h"
#include "formats/programs.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct rp_limits limits = {
    .input_bytes = 1 << 20, .token_bytes = 1 << 20, .events = 1 << 12, .members = 1, .depth = 60};

/* 1: the same, 0: not, -1: no memory to tell. */
static int same(const struct rp_program *a, const struct rp_program *b)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_program_diff diff;
    enum rp_code code = rp_program_diff_compare(a, b, &arena, &diff, NULL);
    int answer = code == RP_OK ? diff.same : -1;

    if (code != RP_OK && code != RP_NOMEM && code != RP_FORMAT)
        abort();
    if (code == RP_OK && diff.same && diff.nchanges)
        abort();
    rp_arena_release(&arena);
    return answer;
}

static void look_at(const struct rp_program *p)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_listing listing = {0};
    struct rp_out *out;

    if (rp_list_tree(p, &arena, &listing, NULL) == RP_OK && p->nops)
        (void)rp_list_near(p, rp_program_text(p, p->op_name.at[0]), 3, &arena, &listing, NULL);
    if (rp_out_open_memory(&out, NULL) == RP_OK) {
        (void)rp_draw_program_html(p, NULL, out, NULL);
        (void)rp_draw_program_dot(p, listing.ops, out);
        rp_out_abandon(out);
    }
    rp_arena_release(&arena);
}

static void compare(const struct rp_program *a, const struct rp_program *b)
{
    int forth = same(a, b), back = same(b, a);

    if (same(a, a) == 0 || same(b, b) == 0 || (forth >= 0 && back >= 0 && forth != back))
        abort();
    look_at(a);
    look_at(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *cut = memmem(data, size, "====\n", 5);
    struct rp_program *a, *b;
    size_t n = cut ? (size_t)(cut - text) : 0;

    if (!cut || rp_hlo_text_parse(text, n, &limits, &a, NULL) != RP_OK)
        return 0;
    if (rp_hlo_text_parse(cut + 5, size - n - 5, &limits, &b, NULL) == RP_OK) {
        compare(a, b);
        rp_program_free(b);
    }
    rp_program_free(a);
    return 0;
}
