/* SPDX-License-Identifier: Apache-2.0 */
/* What each what-if says of itself: as a move of a search, and of its own prediction. */
#include "run_fixtures.h"
#include "sim/whatif/nodes.h"

/* Its family among the moves, with NULL for what a user cannot choose, and its effort: of two moves
   that bring as much, the one with less is made first. */
static void moves_have_a_family_and_an_effort(void **state)
{
    static const struct {
        const char *name, *family;
        unsigned effort;
    } rows[] = {
        {"scale", NULL, 0},
        {"cuda-graphs", "graphs", 4},
        {"fused-optimizer", "fusion", 1},
        {"bucket", NULL, 0},
        {"ranks", "overlap", 3},
        {"net.bandwidth", NULL, 0},
        {"net.latency", NULL, 0},
        {"straggler", "balance", 3},
        {"no-sync", "overlap", 5},
        {"no-profiler", NULL, 0},
        {"dataloader", "overlap", 2},
        {"overlap", "overlap", 6},
        {"no-overlap", NULL, 0},
        {"parallel-update", "overlap", 6},
        {"swap", NULL, 0},
        {"gpu", NULL, 0},
        {"dtype", "precision", 2},
        {"tf32", "precision", 1},
        {"fuse", "fusion", 3},
        {"compile", "fusion", 3},
        {"channels-last", "fusion", 2},
        {"recompute", NULL, 0},
        {"offload", NULL, 0},
        {"batch", NULL, 0},
    };
    size_t n = sizeof rows / sizeof *rows;

    UNUSED_STATE(state);
    assert_null(rp_whatifs[n]);
    for (size_t i = 0; i < n; i++) {
        const struct rp_whatif_move *move = rp_whatifs[i]->move;

        assert_string_equal(rp_whatifs[i]->name, rows[i].name);
        assert_int_equal(move != NULL, rows[i].family != NULL);
        if (!move)
            continue;
        assert_string_equal(move->family, rows[i].family);
        assert_int_equal(move->effort, rows[i].effort);
        assert_true(move->apply || move->how);
    }
}

/* Those that join or add tasks come first; those that sum times of the host are applied again where
   recording costs otherwise. */
static void some_need_to_be_applied_first_or_again(void **state)
{
    static const char *const first[] = {"bucket", "compile"};
    static const char *const again[] = {"fused-optimizer", "bucket", "ranks", "straggler"};

    UNUSED_STATE(state);
    for (size_t i = 0; rp_whatifs[i]; i++) {
        bool makes = false, sums = false;

        for (size_t k = 0; k < 2; k++)
            makes |= !strcmp(rp_whatifs[i]->name, first[k]);
        for (size_t k = 0; k < 4; k++)
            sums |= !strcmp(rp_whatifs[i]->name, again[k]);
        assert_int_equal(rp_whatifs[i]->makes_tasks, makes);
        assert_int_equal(rp_whatifs[i]->sums, sums);
    }
}

#define RATES   (1u << RP_LEAN_SLOWER | 1u << RP_LEAN_FASTER)
#define LATER   (1u << RP_LEAN_MORE_LATENCY)
#define LESS    (1u << RP_LEAN_LESS_LATENCY)
#define ALL     (RATES | LATER | LESS | 1)
#define LATENCY "the latency of the transport is estimated"
#define RATE    "the rate of the transport differs between runs"

/* Which way a step can go, what its prediction leans on, and why that is not known. */
static void predictions_say_what_they_lean_on(void **state)
{
    static const struct {
        const char *text;
        enum rp_sim_way way;
        unsigned leans;
        bool transport;
        const char *latency, *rate;
    } rows[] = {
        {"scale:gpu=2", RP_WAY_ANY, 0, false, "", ""},
        {"cuda-graphs", RP_WAY_ANY, RATES, false, "", ""},
        {"ranks=8", RP_WAY_ANY, ALL, true, LATENCY, RATE},
        {"net.bandwidth=2x", RP_WAY_ANY, RATES, true, LATENCY, RATE},
        {"straggler=median", RP_WAY_ANY, LATER, false, "work that is late by chance may stay so",
         ""},
        {"no-profiler", RP_WAY_ANY, 0, false, "", ""},
        {"overlap", RP_WAY_ANY, ALL, false, "what comes after a collective may need its result",
         ""},
        {"no-overlap", RP_WAY_ANY, 0, false, "", ""},
        {"gpu:H100=A100-40GB", RP_WAY_ANY, RATES, false, "", ""},
        {"dtype=bf16", RP_WAY_ANY, RATES, false, "", ""},
        {"tf32", RP_WAY_SHORTER, RATES, false, "", ""},
        {"tf32+scale:gpu=2", RP_WAY_ANY, RATES, false, "", ""},
        {"fuse=*", RP_WAY_ANY, RATES, false, "", ""},
        {"compile", RP_WAY_ANY, RATES, false, "", ""},
        {"batch=2x", RP_WAY_LONGER, ALL, false, "", ""},
        {"batch=0.5x", RP_WAY_SHORTER, ALL, false, "", ""},
        {"batch=2x+scale:gpu=2", RP_WAY_ANY, ALL, false, "", ""},
        {"dataloader=free", RP_WAY_ANY, 0, false, "", ""},
    };
    const struct step_shape shapes[] = {{40000, false, false}, {46000, false, false}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_err err = RP_ERR_INIT;
        struct bench b;

        bench_init(&b, 2, shapes);
        assert_ok(rp_whatif_apply(&b.run, rows[i].text, &err), &err);
        if (b.run.way != rows[i].way || b.run.leans != rows[i].leans ||
            b.run.uses_transport != rows[i].transport)
            fail_msg("%s: way %d, leans %x", rows[i].text, b.run.way, b.run.leans);
        assert_string_equal(b.run.latency_doubt ? b.run.latency_doubt : "", rows[i].latency);
        assert_string_equal(b.run.rate_doubt ? b.run.rate_doubt : "", rows[i].rate);
        bench_release(&b);
    }
}

/* What names of kernels tell, one sign at a time. */
static void kernels_are_known_by_their_names(void **state)
{
    static const struct {
        const char *name;
        unsigned traits;
    } rows[] = {
        {"elementwise_kernel", RP_KERNEL_POINTWISE},
        {"triton_poi_pointwise_add", RP_KERNEL_POINTWISE},
        {"void add<int>", 0},
        {"cudnn_bn_fw_tr", 0}, /* on elements, though it is of cuDNN */
        {"cudnn_bn_bw_tr", 0},
        {"conv_batchnorm", 0},
        {"implicit_convolve_sgemm", RP_KERNEL_CONVOLUTION | RP_KERNEL_SINGLE},
        {"x_wgrad_y", RP_KERNEL_CONVOLUTION},
        {"x_dgrad_y", RP_KERNEL_CONVOLUTION},
        {"winograd3x3", RP_KERNEL_CONVOLUTION},
        {"dwconv", RP_KERNEL_CONVOLUTION | RP_KERNEL_DEPTHWISE},
        {"depthwise_x", RP_KERNEL_DEPTHWISE},
        {"cutlass_a", RP_KERNEL_MATRIX},
        {"xmma_a", RP_KERNEL_MATRIX},
        {"nvjet_tst_64x8", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"nvjet_hsh_64x8", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"nvjet_qqtst_64x8", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"nvjet_sss_64x8", RP_KERNEL_MATRIX},
        {"nvjet_sm90_tst_64x8", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"nvjet_sm90_sss_64x8", RP_KERNEL_MATRIX},
        {"cublas_a", RP_KERNEL_MATRIX},
        {"splitk_a", RP_KERNEL_MATRIX},
        {"Cijk_Ailk_Bljk_BBS", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"Cijk_Ailk_Bljk_SB", RP_KERNEL_MATRIX | RP_KERNEL_SINGLE},
        {"dot_kernel", RP_KERNEL_MATRIX},
        {"flash_fwd", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"fmha_x", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"fmha_cutlassF_f32_a", RP_KERNEL_MATRIX},
        {"attn_fwd", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"sgemm_a", RP_KERNEL_MATRIX | RP_KERNEL_SINGLE},
        {"bf16gemm", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"hgemm_a", RP_KERNEL_MATRIX | RP_KERNEL_HALF},
        {"tf32gemm", RP_KERNEL_MATRIX | RP_KERNEL_SINGLE | RP_KERNEL_TF32},
        {"tensorop_s1688gemm_a", RP_KERNEL_MATRIX | RP_KERNEL_TF32},
        {"nchwToNhwcKernel", RP_KERNEL_LAYOUT},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rp_kernel_traits(rows[i].name) != (RP_KERNEL_KNOWN | rows[i].traits))
            print_error("%s: %x and not %x\n", rows[i].name, rp_kernel_traits(rows[i].name) & ~1u,
                        rows[i].traits);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(rp_kernel_traits(rows[i].name), RP_KERNEL_KNOWN | rows[i].traits);
}

int test_whatif_table(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_have_a_family_and_an_effort),
        cmocka_unit_test(some_need_to_be_applied_first_or_again),
        cmocka_unit_test(predictions_say_what_they_lean_on),
        cmocka_unit_test(kernels_are_known_by_their_names),
    };

    return cmocka_run_group_tests_name("whatif_table", tests, NULL, NULL);
}
