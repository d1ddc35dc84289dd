/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a whole array that each partition has, and arrays put together from their parts. */
#include "unit.h"

#include "formats/programs.h"
#include "replay/replay.h"

#include <string.h>

#define PARTITIONS 4

struct sharded {
    struct rp_arena arena;
    struct rp_program *program;
    struct rp_session s;
};

static struct rp_program *program_of(const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    return p;
}

static void sharded_open(struct sharded *x, const char *text)
{
    struct rp_err err = RP_ERR_INIT;

    memset(x, 0, sizeof *x);
    rp_arena_init(&x->arena);
    x->program = program_of(text);
    x->s.arena = &x->arena;
    x->s.program.program = x->program;
    x->s.partitions = PARTITIONS;
    assert_ok(rp_signature_find(x->program, &x->arena, &x->s.signature, &err), &err);
}

static void sharded_close(struct sharded *x)
{
    rp_arrays_release(&x->s.inputs);
    rp_arrays_release(&x->s.expected);
    rp_program_free(x->program);
    rp_arena_release(&x->arena);
}

/* An array with the numbers from `first` on. */
static struct rp_tensor *counted(const int64_t *dims, size_t rank, int first)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_tensor *t;

    assert_ok(rp_tensor_new(RP_ELEM_F32, dims, rank, &t, &err), &err);
    for (size_t i = 0; i < t->n; i++)
        rp_tensor_set(t, i, first + (double)i);
    return t;
}

/* The first number in the part of each partition, "0 2 8 10"; or the error. */
static const char *firsts_of(struct sharded *x, bool output, const int64_t *dims, size_t rank)
{
    const struct rp_slot *slot = output ? &x->s.signature.out[0] : &x->s.signature.in[0];
    struct rp_tensor *whole = counted(dims, rank, 0), *part;
    const char *text = "";
    struct rp_err err = RP_ERR_INIT;

    for (unsigned k = 0; k < PARTITIONS; k++) {
        if (rp_session_shard(&x->s, slot, output, 0, whole, k, "x", &part, &err) != RP_OK) {
            text = rp_arena_text(&x->arena, err.text);
            break;
        }
        assert_int_equal(part->rank, slot->rank);
        assert_memory_equal(part->dims, slot->dims, slot->rank * sizeof *part->dims);
        text = rp_arena_textf(&x->arena, "%s%s%g", text, k ? " " : "", rp_tensor_number(part, 0));
        rp_tensor_drop(part);
    }
    rp_tensor_drop(whole);
    return text;
}

#define MODULE(parameters)                                        \
    "HloModule m, num_partitions=4\n\nENTRY %main {\n" parameters \
    "  ROOT %r = f32[2,2] copy(%x)\n}\n"
#define X(sharding)       "  %x = f32[2,2] parameter(0)" sharding "\n"
#define Y(type, sharding) "  %y = " type " parameter(1)" sharding "\n"

static void parts_of_parameters(void **state)
{
    static const int64_t grid[] = {4, 4}, rows[] = {8, 2}, same[] = {2, 2}, half[] = {4, 2};
    static const struct {
        const char *program, *firsts;
        const int64_t *dims;
    } cases[] = {
        {MODULE(X(", sharding={devices=[2,2]0,1,2,3}")), "0 2 8 10", grid},
        {MODULE(X(", sharding={devices=[2,2]0,2,1,3}")), "0 8 2 10", grid}, /* turned */
        {MODULE(X(", sharding={devices=[4,1]3,2,1,0}")), "12 8 4 0", rows},
        {MODULE(X(", sharding={devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}")), "0 0 4 4", half},
        {MODULE(X(", sharding={replicated}")), "0 0 0 0", same},
        {MODULE(X("")), "0 2 8 10", grid}, /* not stated: in their order */
        {MODULE(X("")), "0 4 8 12", rows},
        {"HloModule m, num_partitions=4\n\nENTRY %main {\n  ROOT " /* the last operation */
         "%x = f32[2,2] parameter(0), sharding={devices=[2,2]0,2,1,3}\n}\n",
         "0 8 2 10", grid},
    };
    struct sharded x;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sharded_open(&x, cases[i].program);
        assert_string_equal(firsts_of(&x, false, cases[i].dims, 2), cases[i].firsts);
        sharded_close(&x);
    }
    sharded_open(&x, MODULE(X(""))); /* two blocks for four partitions */
    assert_contains(firsts_of(&x, false, half, 2), "does not state which part");
    sharded_close(&x);
    sharded_open(&x, MODULE(X(", sharding={devices=[4,1]0,1,2,3}"))); /* it says another thing */
    assert_contains(firsts_of(&x, false, grid, 2), "does not state which part");
    sharded_close(&x);
}

/* HLO text does not say how results are divided: as the parameters that have as many blocks. */
static void results_lie_where_parameters_do(void **state)
{
    static const int64_t grid[] = {4, 4}, rows[] = {8, 2}, columns[] = {2, 8};
    static const struct {
        const char *program, *firsts;
        const int64_t *dims;
    } cases[] = {
        {MODULE(X(", sharding={devices=[2,2]0,2,1,3}")), "0 8 2 10", grid},
        {MODULE(X(", sharding={devices=[2,2]0,2,1,3}")), "0 4 8 12", rows},
        {MODULE(X(", sharding={devices=[2,2]0,2,1,3}")
                    Y("f32[2,2]", ", sharding={devices=[2,2]0,1,2,3}")),
         "0 2 8 10", grid}, /* they disagree: in their order */
        {MODULE(X(", sharding={devices=[2,2]0,2,1,3}")
                    Y("f32[2,2]", ", sharding={devices=[2,2]0,2,1,3}")),
         "0 8 2 10", grid},
        {MODULE(X("") Y("f32[3]", ", sharding={devices=[4]3,2,1,0}")), "12 8 4 0", rows},
        {MODULE(X("") Y("f32[1,3,1]", ", sharding={devices=[1,4,1]3,2,1,0}")), "6 4 2 0", columns},
        {MODULE(X("") Y("f32[3,3]", ", sharding={devices=[2,2]0,2,1,3}")), "0 4 8 12", rows},
        {MODULE(X("") Y("f32[3,3,3]", ", sharding={devices=[2,1,2]0,2,1,3}")), "0 8 2 10", grid},
    };
    struct sharded x;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sharded_open(&x, cases[i].program);
        assert_string_equal(firsts_of(&x, true, cases[i].dims, 2), cases[i].firsts);
        sharded_close(&x);
    }
}

/* ------------------------------------------------------------------ blocks to whole arrays */

static void add_blocks(struct rp_arrays *to, const char *kind, const int64_t *dims, size_t rank)
{
    struct rp_err err = RP_ERR_INIT;

    for (int k = 0; k < PARTITIONS; k++) {
        struct rp_tensor *t = counted(dims, rank, 100 * k);

        assert_ok(rp_arrays_add(to, t, &err, "p%d_%s0", k, kind), &err);
    }
}

static void blocks_become_arrays(void **state)
{
    static const char whole[] = "HloModule m\n\nENTRY %main {\n  %x = f32[4,4] parameter(0)\n"
                                "  ROOT %r = f32[4,4] copy(%x)\n}\n";
    static const int64_t block[] = {2, 2}, row[] = {1, 4};
    static const double grid[] = {0,   1,   200, 201, 2,   3,   202, 203,
                                  100, 101, 300, 301, 102, 103, 302, 303};
    struct rp_program *compiled = program_of(MODULE(X(", sharding={devices=[2,2]0,2,1,3}")));
    struct rp_err err = RP_ERR_INIT;
    const struct rp_tensor *t;
    struct sharded x;

    UNUSED_STATE(state);
    sharded_open(&x, whole);
    add_blocks(&x.s.inputs, "in", block, 2);
    add_blocks(&x.s.expected, "out", row, 2); /* in a line: in the order of the partitions */
    assert_ok(rp_session_unshard(&x.s, compiled, &err), &err);
    t = rp_arrays_find(&x.s.inputs, "in0");
    assert_non_null(t);
    for (size_t i = 0; i < 16; i++)
        assert_float_equal(rp_tensor_number(t, i), grid[i], 0);
    t = rp_arrays_find(&x.s.expected, "out0");
    assert_non_null(t);
    for (size_t i = 0; i < 16; i++)
        assert_float_equal(rp_tensor_number(t, i), 100 * (double)(i / 4) + (double)(i % 4), 0);
    sharded_close(&x);

    sharded_open(&x, whole); /* a grid that nobody describes */
    add_blocks(&x.s.inputs, "in", block, 2);
    assert_code(rp_session_unshard(&x.s, NULL, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "in0 is recorded in parts");
    sharded_close(&x);

    sharded_open(&x, whole); /* one is missing */
    add_blocks(&x.s.inputs, "in", row, 2);
    x.s.partitions = PARTITIONS + 1;
    assert_code(rp_session_unshard(&x.s, NULL, &err), RP_FORMAT);
    assert_contains(err.text, "'p4_in0' is not recorded");
    sharded_close(&x);
    rp_program_free(compiled);
}

int test_shards(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_parameters),
                                       cmocka_unit_test(results_lie_where_parameters_do),
                                       cmocka_unit_test(blocks_become_arrays)};

    return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
