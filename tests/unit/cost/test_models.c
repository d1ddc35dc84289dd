/* SPDX-License-Identifier: Apache-2.0 */
/* FLOPs and bytes of operators, counted by hand. */
#include "unit.h"

#include "cost/models.h"

#include <math.h>

#define F   "float"
#define B   "c10::BFloat16"
#define H   "c10::Half"
#define D   "double"
#define L   "long int"
#define F8  "c10::Float8_e4m3fn"
#define ANY (-1.0)

struct counted {
    const char *op, *dims, *types, *concrete;
    double flops, bytes;
    const char *number; /* NULL: not compared */
    const char *kernel, *strides;
};

/* Types are separated by commas, and the values of numbers by ';': both are made JSON lists. */
static void to_list(const char *text, char separator, char *out, size_t cap)
{
    size_t n = 0;

    out[n++] = '[';
    out[n++] = '"';
    for (; *text && n + 8 < cap; text++) {
        if (*text == separator) {
            memcpy(out + n, "\", \"", 4);
            n += 4;
        } else {
            out[n++] = *text;
        }
    }
    memcpy(out + n, "\"]", 3);
}

static struct rp_op_cost cost_of(const struct counted *c)
{
    struct rp_err err = {0};
    struct rp_op_cost cost;
    char types[512], concrete[512];

    to_list(c->types, ',', types, sizeof types);
    to_list(c->concrete ? c->concrete : "", ';', concrete, sizeof concrete);
    assert_ok(rp_cost_of_texts(c->op, c->dims, c->strides, types, c->concrete ? concrete : NULL,
                               c->kernel, &cost, &err),
              &err);
    return cost;
}

/* The format of its numbers, where all that are floats have the same one; NULL: they do not, or the
   name of a kernel may say more. */
static const char *only_number(const struct counted *c)
{
    static const char *const types[][2] = {
        {F, "fp32"}, {B, "bf16"}, {H, "fp16"}, {D, "fp64"}, {F8, "fp8"}};
    const char *at = c->types, *found = NULL;

    for (size_t n; !c->kernel && at; at = at[n] ? at + n + 1 : NULL) {
        n = strcspn(at, ",");
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (n == strlen(types[i][0]) && !strncmp(at, types[i][0], n)) {
                if (found && found != types[i][1])
                    return NULL;
                found = types[i][1];
            }
    }
    return found;
}

static void assert_counted(const struct counted *c, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        struct rp_op_cost cost = cost_of(&c[i]);

        if (cost.missing)
            fail_msg("%s %s: %s", c[i].op, c[i].dims, cost.missing);
        if (c[i].flops != ANY && fabs(cost.flops - c[i].flops) > 1e-9 * c[i].flops)
            fail_msg("%s %s: %.0f FLOPs, not %.0f", c[i].op, c[i].dims, cost.flops, c[i].flops);
        if (c[i].bytes != ANY && fabs(cost.bytes - c[i].bytes) > 1e-9 * c[i].bytes)
            fail_msg("%s %s: %.0f bytes, not %.0f", c[i].op, c[i].dims, cost.bytes, c[i].bytes);
        if (c[i].number || only_number(&c[i])) {
            const char *number = c[i].number ? c[i].number : only_number(&c[i]);

            if (strcmp(rp_number_names[cost.type], number) != 0)
                fail_msg("%s %s computes in %s, not in %s", c[i].op, c[i].dims,
                         rp_number_names[cost.type], number);
        }
    }
}

#define ASSERT_COUNTED(cases) assert_counted(cases, sizeof(cases) / sizeof *(cases))

static void products(void **state)
{
    static const struct counted cases[] = {
        {"aten::mm", "[[64, 32], [32, 16]]", F "," F, NULL, 2. * 64 * 32 * 16,
         4. * (64 * 32 + 32 * 16 + 64 * 16), "fp32", NULL, NULL},
        {"aten::mm", "[[64,32],[32,16]]", F "," F, NULL, 65536, ANY, "tf32",
         "sm80_xmma_gemm_tf32f32_tf32f32_f32_tn_n", NULL},
        {"aten::mm", "[[8192, 8192], [8192, 8192]]", B "," B, NULL, 1099511627776.,
         2. * 3 * 8192 * 8192, "bf16", "nvjet_tst_128x256", NULL},
        {"aten::mm", "[[4, 8], [8, 2]]", D "," D, NULL, 128, 8. * (32 + 16 + 8), "fp64", NULL,
         NULL},
        /* b is one row, expanded: it is stored once */
        {"aten::mm", "[[4, 8], [8, 2]]", F "," F, NULL, 128, 4. * (32 + 2 + 8), NULL, NULL,
         "[[8, 1], [0, 1]]"},
        {"aten::addmm", "[[16], [64, 32], [32, 16], [], []]", H "," H "," H ",Scalar,Scalar",
         ";;;1;1", 65536, 2. * (16 + 64 * 32 + 32 * 16 + 64 * 16), "fp16", NULL, NULL},
        /* beta is 0: what would be added is not read */
        {"aten::addmm", "[[64, 16], [64, 32], [32, 16], [], []]", H "," H "," H ",Scalar,Scalar",
         ";;;0;1", 65536, 2. * (64 * 32 + 32 * 16 + 64 * 16), NULL, NULL, NULL},
        {"aten::bmm", "[[8, 64, 32], [8, 32, 16]]", B "," B, NULL, 8. * 65536,
         8. * 2 * (64 * 32 + 32 * 16 + 64 * 16), NULL, NULL, NULL},
        {"aten::baddbmm", "[[8, 64, 16], [8, 64, 32], [8, 32, 16], [], []]",
         B "," B "," B ",Scalar,Scalar", ";;;1;1", 8. * 65536,
         8. * 2 * (64 * 16 + 64 * 32 + 32 * 16 + 64 * 16), NULL, NULL, NULL},
        /* one matrix for the whole batch */
        {"aten::matmul", "[[2, 3, 4, 5], [5, 6]]", F "," F, NULL, 2. * 6 * 4 * 5 * 6,
         4. * (120 + 30 + 144), NULL, NULL, NULL},
        {"aten::mv", "[[64, 32], [32]]", F "," F, NULL, 2. * 64 * 32, 4. * (2048 + 32 + 64), NULL,
         NULL, NULL},
        {"aten::dot", "[[100], [100]]", F "," F, NULL, 200, 4. * 201, NULL, NULL, NULL},
        {"aten::linear", "[[2, 10, 32], [64, 32], [64]]", B "," B "," B, NULL, 2. * 20 * 32 * 64,
         2. * (640 + 2048 + 64 + 1280), NULL, NULL, NULL},
        {"aten::_scaled_mm", "[[64, 32], [32, 16], [], [], [], [], [], []]",
         F8 "," F8 "," F "," F ",,,Scalar,Scalar", ";;;;;;15;False", 65536,
         2048 + 512 + 2 * 1024 + 4 + 4, "fp8", NULL, NULL},
        {"aten::_int_mm", "[[64, 32], [32, 16]]", "signed char,signed char", NULL, 65536,
         2048 + 512 + 4 * 1024, "int8", NULL, NULL},
        /* grouped: rows of 4 experts, their weights, gradients of their weights */
        {"aten::_grouped_mm", "[[100, 32], [4, 32, 16], [4], [], []]", B "," B ",int,,", NULL,
         2. * 100 * 32 * 16, 2. * (3200 + 2048 + 1600), NULL, NULL, NULL},
        {"aten::_grouped_mm", "[[32, 100], [100, 16], [4], [], []]", B "," B ",int,,", NULL,
         2. * 100 * 32 * 16, 2. * (3200 + 1600 + 4 * 512), NULL, NULL, NULL},
        {"aten::_grouped_mm", "[[4, 10, 32], [4, 32, 16], [], [], []]", B "," B ",,,", NULL,
         2. * 4 * 10 * 32 * 16, 2. * (1280 + 2048 + 640), NULL, NULL, NULL},
        {"primus_turbo::grouped_gemm", "[[100, 32], [4, 16, 32], [4]]", B "," B "," L, NULL,
         2. * 100 * 32 * 16, 2. * (3200 + 2048 + 1600), NULL, NULL, NULL},
        /* weights as [n, k]; a result among the inputs */
        {"vllm::rocm_unquantized_gemm", "[[32, 2880], [201088, 2880], []]", B "," B ",", NULL,
         2. * 32 * 2880 * 201088, 2. * (32. * 2880 + 201088. * 2880 + 32. * 201088), NULL, NULL,
         NULL},
        {"aiter::gemm_a16w16", "[[32, 4096], [6144, 4096], []]", B "," B ",", NULL,
         2. * 32 * 4096 * 6144, ANY, NULL, NULL, NULL},
        {"_C::cutlass_scaled_mm", "[[10, 48], [10, 64], [64, 48], [10, 1], [48, 1], []]",
         B "," F8 "," F8 "," F "," F ",", NULL, 2. * 10 * 64 * 48, 2 * 480 + 640 + 3072, "fp8",
         NULL, NULL},
        /* experts: both layers, 2 of 8 for each of 10 tokens */
        {"vllm::outplace_fused_experts", "[[10, 64], [8, 256, 64], [8, 64, 128], [10, 2], [10, 2]]",
         B "," B "," B "," F "," L, NULL, 2. * 20 * (256 * 64 + 64 * 128),
         2. * (2 * 640 + 8 * 256 * 64 + 8 * 64 * 128), NULL, NULL, NULL},
        /* one token: the weights of 2 experts are enough */
        {"vllm::outplace_fused_experts", "[[1, 64], [8, 256, 64], [8, 64, 128], [1, 2], [1, 2]]",
         B "," B "," B "," F "," L, NULL, 2. * 2 * (256 * 64 + 64 * 128),
         2. * (2 * 64 + 2 * 256 * 64 + 2 * 64 * 128), NULL, NULL, NULL},
        {"aiter::ck_moe_stage1",
         "[[10, 64], [8, 256, 64], [8, 64, 128], [20], [20], [2], [10, 2, 128], []]",
         B "," B "," B ",int,int,int," B ",Scalar", ";;;;;;;2", 2. * 20 * 256 * 64, ANY, NULL, NULL,
         NULL},
        {"triton_tem_fused_mm_3", "[[64, 32], [32, 16], [64, 16]]", B "," B "," B, NULL, 65536, ANY,
         NULL, NULL, NULL},
    };

    UNUSED_STATE(state);
    ASSERT_COUNTED(cases);
}

static void convolutions(void **state)
{
    static const char three[] = F "," F "," F ",ScalarList,ScalarList,ScalarList,Scalar,"
                                  "ScalarList,Scalar";
    static const struct counted cases[] = {
        {"aten::convolution", "[[2, 8, 10, 10], [16, 8, 3, 3], [], [], [], [], [], [], []]",
         F "," F, ";;;[2];[1];[1];False;[0];1", 2. * 2 * 16 * 25 * 72, ANY, NULL, NULL, NULL},
        {"aten::convolution", "[[2, 8, 10, 10], [16, 8, 3, 3], [16], [], [], [], [], [], []]",
         three, ";;;[1, 1];[1, 1];[1, 1];False;[0, 0];1", 2. * 2 * 16 * 100 * 8 * 9,
         4. * (1600 + 1152 + 16 + 3200), "fp32", NULL, NULL},
        /* stride 2: 5 x 5 */
        {"aten::convolution", "[[2, 8, 10, 10], [16, 8, 3, 3], [], [], [], [], [], [], []]",
         F "," F ",,ScalarList,ScalarList,ScalarList,Scalar,ScalarList,Scalar",
         ";;;[2, 2];[1, 1];[1, 1];False;[0, 0];1", 2. * 2 * 16 * 25 * 8 * 9,
         4. * (1600 + 1152 + 800), NULL, NULL, NULL},
        /* dilation 2 without padding: 6 x 6 */
        {"aten::convolution", "[[2, 8, 10, 10], [16, 8, 3, 3], [16], [], [], [], [], [], []]",
         three, ";;;[1, 1];[0, 0];[2, 2];False;[0, 0];1", 2. * 2 * 16 * 36 * 8 * 9, ANY, NULL, NULL,
         NULL},
        /* 4 groups; depthwise */
        {"aten::convolution", "[[2, 8, 10, 10], [16, 2, 3, 3], [16], [], [], [], [], [], []]",
         three, ";;;[1, 1];[1, 1];[1, 1];False;[0, 0];4", 2. * 2 * 16 * 100 * 2 * 9, ANY, NULL,
         NULL, NULL},
        {"aten::convolution", "[[2, 8, 10, 10], [8, 1, 3, 3], [8], [], [], [], [], [], []]", three,
         ";;;[1, 1];[1, 1];[1, 1];False;[0, 0];8", 2. * 2 * 8 * 100 * 9, ANY, NULL, NULL, NULL},
        /* transposed, stride 2: w is [c, f], the result 20 x 20 */
        {"aten::convolution", "[[2, 8, 10, 10], [8, 16, 4, 4], [16], [], [], [], [], [], []]",
         three, ";;;[2, 2];[1, 1];[1, 1];True;[0, 0];1", 2. * 2 * 8 * 100 * 16 * 16,
         4. * (1600 + 2048 + 16 + 2 * 16 * 400), NULL, NULL, NULL},
        {"aten::conv_transpose2d", "[[2, 8, 10, 10], [8, 4, 4, 4], [], [], [], [], [], []]",
         F "," F ",,ScalarList,ScalarList,ScalarList,Scalar,ScalarList",
         ";;;[2, 2];[1, 1];[0, 0];2;[1, 1]", 2. * 1600 * 4 * 16, 4. * (1600 + 512 + 2 * 8 * 400),
         NULL, NULL, NULL},
        {"aten::conv1d", "[[2, 8, 100], [16, 8, 5], [], [], [], [], []]",
         H "," H ",,ScalarList,ScalarList,ScalarList,Scalar", ";;;[1];[2];[1];1",
         2. * 2 * 16 * 100 * 8 * 5, 2. * (1600 + 640 + 3200), NULL, NULL, NULL},
        {"aten::conv2d", "[[2, 8, 10, 10], [16, 8, 3, 3], [], [], [], [], []]",
         F "," F ",,ScalarList,Scalar,ScalarList,Scalar", ";;;[1, 1];same;[1, 1];1",
         2. * 2 * 16 * 100 * 8 * 9, ANY, NULL, NULL, NULL},
        {"aten::conv3d", "[[1, 3, 8, 16, 16], [8, 3, 2, 4, 4], [], [], [], [], []]",
         F "," F ",,ScalarList,ScalarList,ScalarList,Scalar", ";;;[2, 4, 4];[0, 0, 0];[1, 1, 1];1",
         2. * 8 * (4 * 4 * 4) * 3 * 32, ANY, NULL, NULL, NULL},
        {"aten::cudnn_convolution", "[[2, 8, 10, 10], [16, 8, 1, 1], [], [], [], [], [], [], []]",
         H "," H ",ScalarList,ScalarList,ScalarList,Scalar,Scalar,Scalar,Scalar",
         ";;[0, 0];[2, 2];[1, 1];1;False;False;True", 2. * 2 * 16 * 25 * 8, ANY, "fp16", NULL,
         NULL},
        {"aten::miopen_convolution",
         "[[4, 3, 224, 224], [64, 3, 7, 7], [], [], [], [], [], [], []]",
         B "," B ",,ScalarList,ScalarList,ScalarList,Scalar,Scalar,Scalar",
         ";;;[3, 3];[2, 2];[1, 1];1;False;False", 2. * 4 * 64 * 112 * 112 * 3 * 49, ANY, NULL, NULL,
         NULL},
        {"aten::_conv_depthwise2d", "[[2, 8, 10, 10], [8, 1, 3, 3], [], [], [], [], []]",
         F "," F ",ScalarList,,ScalarList,ScalarList,ScalarList", ";;[3, 3];;[1, 1];[1, 1];[1, 1]",
         2. * 2 * 8 * 100 * 9, ANY, NULL, NULL, NULL},
        /* backward: of x and w; of w alone; with the bias */
        {"aten::convolution_backward",
         "[[2, 16, 10, 10], [2, 8, 10, 10], [16, 8, 3, 3], [], [], [], [], [], [], [], []]",
         F "," F "," F ",ScalarList,ScalarList,ScalarList,ScalarList,Scalar,ScalarList,Scalar,"
           "ScalarList",
         ";;;[0];[1, 1];[1, 1];[1, 1];False;[0, 0];1;[True, True, False]",
         2 * 2. * 2 * 16 * 100 * 8 * 9, 4. * (3200 + 1152 + 1600 + 1600 + 1152), NULL, NULL, NULL},
        {"aten::convolution_backward",
         "[[2, 16, 10, 10], [2, 8, 10, 10], [16, 8, 3, 3], [], [], [], [], [], [], [], []]",
         F "," F "," F ",ScalarList,ScalarList,ScalarList,ScalarList,Scalar,ScalarList,Scalar,"
           "ScalarList",
         ";;;[0];[1, 1];[1, 1];[1, 1];False;[0, 0];1;[False, True, False]",
         2. * 2 * 16 * 100 * 8 * 9, 4. * (3200 + 1600 + 1152), NULL, NULL, NULL},
        {"aten::convolution_backward",
         "[[2, 16, 10, 10], [2, 8, 10, 10], [16, 2, 3, 3], [], [], [], [], [], [], [], []]",
         F "," F "," F ",ScalarList,ScalarList,ScalarList,ScalarList,Scalar,ScalarList,Scalar,"
           "ScalarList",
         ";;;[16];[1, 1];[1, 1];[1, 1];False;[0, 0];4;[True, True, True]",
         2 * 2. * 2 * 16 * 100 * 2 * 9 + 3200, ANY, NULL, NULL, NULL},
    };

    UNUSED_STATE(state);
    ASSERT_COUNTED(cases);
}

/* Where each operator has its arguments, by PyTorch's declaration of it: x, weights, bias, kernel,
   stride, padding, dilation, transposed, output padding, groups; '-': another one. */
static void arguments_of_convolutions(void **state)
{
    static const struct {
        const char *op, *arguments;
    } declared[] = {
        {"aten::convolution", "xwbspdtog"},
        {"aten::_convolution", "xwbspdtog----"},
        {"aten::conv2d", "xwbspdg"},
        {"aten::conv_transpose2d", "xwbspogd"},
        {"aten::cudnn_convolution", "xwpsdg---"},
        {"aten::cudnn_convolution_relu", "xwbspdg"},
        {"aten::cudnn_convolution_transpose", "xwposdg---"},
        {"aten::miopen_convolution", "xwbpsdg--"},
        {"aten::miopen_convolution_transpose", "xwbposdg--"},
        {"aten::_conv_depthwise2d", "xwkbspd"},
        {"aten::thnn_conv2d", "xwkbsp"},
        {"aten::_slow_conv2d_forward", "xwkbsp"},
    };
    static const struct {
        char letter;
        const char *dims, *type, *value;
    } kinds[] = {{'x', "[2, 8, 21, 21]", F, ""},
                 {'w', "[8, 4, 5, 5]", F, ""},
                 {'b', "[16]", F, ""},
                 {'k', "[]", "ScalarList", "[5, 5]"},
                 {'s', "[]", "ScalarList", "[2, 2]"},
                 {'p', "[]", "ScalarList", "[3, 3]"},
                 {'d', "[]", "ScalarList", "[4, 4]"},
                 {'o', "[]", "ScalarList", "[1, 1]"},
                 {'t', "[]", "Scalar", "True"},
                 {'g', "[]", "Scalar", "2"},
                 {'-', "[]", "Scalar", "False"}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof declared / sizeof *declared; i++) {
        const char *has = declared[i].arguments;
        bool turned = strstr(declared[i].op, "transpose") || strchr(has, 't');
        double reach = (strchr(has, 'd') ? 4 : 1) * (5 - 1);
        double side = turned ? (21 - 1) * 2 - 2 * 3 + reach + (strchr(has, 'o') ? 1 : 0) + 1
                             : floor((21 + 2 * 3 - reach - 1) / 2) + 1;
        double features = turned ? 4 * 2 : 8, made = 2 * features * side * side;
        char dims[512] = "[", types[512] = "", values[512] = "";

        for (size_t k = 0; has[k]; k++)
            for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
                if (kinds[j].letter == has[k]) {
                    strcat(strcat(dims, k ? ", " : ""), kinds[j].dims);
                    strcat(strcat(types, k ? "," : ""), kinds[j].type);
                    strcat(strcat(values, k ? ";" : ""), kinds[j].value);
                }
        strcat(dims, "]");
        const struct counted one = {
            .op = declared[i].op,
            .dims = dims,
            .types = types,
            .concrete = values,
            .flops = turned ? 2. * 2 * 8 * 21 * 21 * 4 * 25 : 2 * made * 4 * 25,
            .bytes = 4 * (2 * 8 * 21 * 21 + 8 * 4 * 25 + (strchr(has, 'b') ? 16 : 0) + made)};

        assert_counted(&one, 1);
    }
}

#define QKV   "[2, 8, 128, 64], [2, 8, 128, 64], [2, 8, 128, 64]"
#define QKV_T "[2, 128, 8, 64], [2, 128, 8, 64], [2, 128, 8, 64]"

static void attention(void **state)
{
    static const double pairs = 2. * 8 * 128 * 128, half = 2. * 8 * 128 * 129 / 2;
    const double one = 2. * 2 * 8 * 128 * 64; /* bytes of q */
    const struct counted cases[] = {
        {"aten::scaled_dot_product_attention", "[" QKV ", [], [], [], [], []]",
         B "," B "," B ",,Scalar,Scalar,,Scalar", ";;;;0.;False;;False", pairs * 4 * 64, 4 * one,
         "bf16", NULL, NULL},
        {"aten::_scaled_dot_product_flash_attention", "[" QKV ", [], [], [], []]",
         B "," B "," B ",Scalar,Scalar,Scalar,", ";;;0.;True;False;", half * 4 * 64, 4 * one, NULL,
         NULL, NULL},
        {"aten::_scaled_dot_product_efficient_attention", "[" QKV ", [2, 8, 128, 128], [], [], []]",
         B "," B "," B "," B ",Scalar,Scalar,Scalar", ";;;;False;0.;False", pairs * 4 * 64,
         4 * one + 2 * pairs, NULL, NULL, NULL},
        {"aten::_scaled_dot_product_cudnn_attention", "[" QKV ", [], [], [], [], []]",
         H "," H "," H ",,Scalar,Scalar,Scalar,Scalar", ";;;;True;0.;True;False", half * 4 * 64,
         4 * one, "fp16", NULL, NULL},
        /* fewer heads of keys: 2 of 8 */
        {"aten::_scaled_dot_product_flash_attention",
         "[[2, 8, 128, 64], [2, 2, 128, 64], [2, 2, 128, 64], [], [], [], []]",
         B "," B "," B ",Scalar,Scalar,Scalar,", ";;;0.;False;False;", pairs * 4 * 64, 2.5 * one,
         NULL, NULL, NULL},
        /* one query for 128 keys; values of another width */
        {"aten::scaled_dot_product_attention",
         "[[2, 8, 1, 64], [2, 8, 128, 64], [2, 8, 128, 32], [], [], [], [], []]",
         B "," B "," B ",,Scalar,Scalar,,Scalar", ";;;;0.;False;;False",
         2. * 8 * 128 * 2 * (64 + 32), 2. * 2 * 8 * (64 + 128 * 64 + 128 * 32 + 32), NULL, NULL,
         NULL},
        /* backward: five products instead of two */
        {"aten::_scaled_dot_product_flash_attention_backward",
         "[[2, 8, 128, 64], " QKV ", [2, 8, 128, 64], [2, 8, 128], [], [], [], [], [], [], [], []]",
         B "," B "," B "," B "," B "," F ",,,Scalar,Scalar,Scalar,Scalar,,",
         ";;;;;;;;128;128;0.;False;;", pairs * 10 * 64, 8 * one, NULL, NULL, NULL},
        {"aten::_scaled_dot_product_efficient_attention_backward",
         "[[2, 8, 128, 64], " QKV ", [], [2, 8, 128, 64], [2, 8, 128], [], [], [], [], []]",
         B "," B "," B "," B ",," B "," F "," L "," L ",Scalar,ScalarList,Scalar",
         ";;;;;;;;;0.;[True, True, True, False];True", half * 10 * 64, 8 * one, NULL, NULL, NULL},
        {"aten::_flash_attention_forward",
         "[" QKV_T ", [], [], [], [], [], [], [], [], [], [], [], []]",
         B "," B "," B ",,,Scalar,Scalar,Scalar,Scalar,Scalar,,,,,",
         ";;;;;128;128;0.;True;False;;;;;", half * 4 * 64, 4 * one, NULL, NULL, NULL},
        {"aten::_efficient_attention_forward", "[" QKV_T ", [], [], [], [], [], [], [], [], []]",
         B "," B "," B ",,,,Scalar,Scalar,Scalar,Scalar,Scalar,,", ";;;;;;128;128;0.;1;False;;",
         half * 4 * 64, 4 * one, NULL, NULL, NULL},
        {"flash_attn::_flash_attn_forward", "[" QKV_T ", [], [], [], [], [], [], [], []]",
         B "," B "," B ",Scalar,Scalar,Scalar,Scalar,Scalar,Scalar,,Scalar",
         ";;;0.;0.125;True;-1;-1;0.;;False", half * 4 * 64, 4 * one, NULL, NULL, NULL},
        /* a window of 16 keys to the left: 17 for all but the first 16 queries */
        {"flash_attn::_flash_attn_forward", "[" QKV_T ", [], [], [], [], [], [], [], []]",
         B "," B "," B ",Scalar,Scalar,Scalar,Scalar,Scalar,Scalar,,Scalar",
         ";;;0.;0.125;True;16;0;0.;;False", 2. * 8 * (112 * 17 + 16 * 17 / 2) * 4 * 64, 4 * one,
         NULL, NULL, NULL},
        /* the last query sees the last key: 32 queries after 96 keys */
        {"flash_attn::_flash_attn_forward",
         "[[2, 32, 8, 64], [2, 128, 8, 64], [2, 128, 8, 64], [], [], [], [], [], [], [], []]",
         B "," B "," B ",Scalar,Scalar,Scalar,Scalar,Scalar,Scalar,,Scalar",
         ";;;0.;0.125;True;-1;-1;0.;;False", 2. * 8 * (32 * 96 + 32. * 33 / 2) * 4 * 64, ANY, NULL,
         NULL, NULL},
        {"flash_attn::_flash_attn_backward",
         "[[2, 128, 8, 64], " QKV_T ", [2, 128, 8, 64], [2, 8, 128], [], [], [], [], [], [], [], "
         "[]]",
         B "," B "," B "," B "," B "," F ",,,,Scalar,Scalar,Scalar,Scalar,Scalar",
         ";;;;;;;;;0.;0.125;True;-1;-1", half * 10 * 64, 8 * one, NULL, NULL, NULL},
        /* 4 sequences of 64 tokens, packed */
        {"flash_attn::_flash_attn_varlen_forward",
         "[[256, 8, 64], [256, 8, 64], [256, 8, 64], [5], [5], [], [], [], [], [], [], []]",
         B "," B "," B ",int,int,Scalar,Scalar,Scalar,Scalar,Scalar,Scalar,Scalar",
         ";;;;;64;64;0.;0.125;False;-1;-1", 4. * 8 * 64 * 64 * 4 * 64, 2. * 4 * 256 * 8 * 64, NULL,
         NULL, NULL},
        {"flash_attn_3::fwd",
         "[" QKV_T ", [], [], [], [], [], [], [], [], [], [], [], [], [], [], [], [], [], [], [], "
         "[], [], [], [], []]",
         B "," B "," B ",,,,,,,,,,,,,,,,,,,,,Scalar,Scalar,Scalar,Scalar",
         ";;;;;;;;;;;;;;;;;;;;;;;0.1;True;-1;-1", half * 4 * 64, 4 * one, NULL, NULL, NULL},
        /* 15 prompts of 1,024 tokens into a cache */
        {"aiter::mha_batch_prefill",
         "[[15360, 32, 128], [835874, 8, 128], [835874, 8, 128], [16], [16], [15616], [], [], [], "
         "[], [], [], [], [], []]",
         B "," B "," B ",int,int,int,Scalar,Scalar,Scalar,Scalar,Scalar,Scalar,Scalar,Scalar,"
           "Scalar",
         ";;;;;;1024;1024;0.;0.088;0.;False;True;-1;-1", 15. * 32 * (1024. * 1025 / 2) * 4 * 128,
         2. * 15360 * 128 * (2 * 32 + 2 * 8), NULL, NULL, NULL},
        /* its layout is an argument, and values have their tokens last */
        {"sageattention_qattn_sm89::qk_int8_sv_f8_accum_f32_fuse_v_scale_attn",
         "[[2, 100, 8, 64], [2, 100, 8, 64], [2, 64, 8, 128], [2, 100, 8, 64], [2, 8, 4], "
         "[2, 8, 2], [2, 8, 64], [], [], [], [], []]",
         "signed char,signed char,c10::Float8_e4m3fn," B ",float,float,float,Scalar,Scalar,Scalar,"
         "Scalar,Scalar",
         ";;;;;;;0;1;3;0.125;0", 2. * 8 * (100. * 101 / 2) * 4 * 64, 4. * 2 * 100 * 8 * 64, "int8",
         NULL, NULL},
    };

    UNUSED_STATE(state);
    ASSERT_COUNTED(cases);
}

static void elements(void **state)
{
    static const struct counted cases[] = {
        {"aten::mul", "[[100, 64], [100, 64]]", F "," F, NULL, 6400, 3. * 4 * 6400, "fp32", NULL,
         NULL},
        {"aten::add", "[[100, 64], [64], []]", B "," B ",Scalar", ";;1", 6400,
         2. * (6400 + 64 + 6400), NULL, NULL, NULL},
        {"aten::add_", "[[100, 64], [100, 64], []]", F "," B ",Scalar", ";;1", 6400,
         4. * 6400 + 2. * 6400 + 4. * 6400, "fp32", NULL, NULL},
        /* the result is of the wider format; a tensor of no dimension does not widen it */
        {"aten::mul", "[[10], [10]]", B "," F, NULL, 10, 2 * 10 + 4 * 10 + 4 * 10, "fp32", NULL,
         NULL},
        {"aten::mul", "[[10], []]", B "," F, NULL, 10, 2 * 10 + 4 + 2 * 10, "bf16", NULL, NULL},
        /* out=: the place of the result is only written */
        {"aten::mul", "[[100, 64], [], [100, 64]]", F ",double," F, NULL, 6400, 2. * 4 * 6400 + 8,
         "fp32", NULL, NULL},
        {"aten::clamp_min", "[[100, 64], [], [100, 64]]", F ",Int," F, NULL, 6400,
         2. * 4 * 6400 + 4, "fp32", NULL, NULL},
        {"aten::add", "[[100, 64], [100, 64], [], [100, 64]]", B "," B ",Scalar," B, ";;1;", 6400,
         3. * 2 * 6400, "bf16", NULL, NULL},
        {"aten::neg", "[[100, 64], [100, 64]]", B "," B, NULL, 6400, 2. * 2 * 6400, "bf16", NULL,
         NULL},
        {"aten::gelu", "[[100, 64], []]", B ",Scalar", ";none", 6400, 4. * 6400, NULL, NULL, NULL},
        {"aten::gt", "[[100], []]", F ",Scalar", ";0", 100, 4. * 100 + 100, NULL, NULL, NULL},
        {"aten::where", "[[100], [100], [100]]", "bool," F "," F, NULL, 100, 100 + 3. * 400, NULL,
         NULL, NULL},
        {"aten::addcmul", "[[100], [100], [100], []]", F "," F "," F ",Scalar", ";;;1", 300,
         4. * 400, NULL, NULL, NULL},
        {"aten::threshold_backward", "[[100], [100], []]", B "," B ",Scalar", ";;0", 100, 600, NULL,
         NULL, NULL},
        {"aten::native_dropout", "[[100], [], []]", B ",Scalar,Scalar", ";0.1;True", 200,
         200 + 200 + 100, NULL, NULL, NULL},
        {"aten::copy_", "[[100], [100], []]", F "," B ",Scalar", ";;False", 0, 600, NULL, NULL,
         NULL},
        {"aten::fill_", "[[100], []]", B ",Scalar", ";0", 0, 200, NULL, NULL, NULL},
        {"aten::cat", "[[[10, 4], [6, 4]], []]", "TensorList,Scalar", ";0", 0, 2. * 64 * 2, NULL,
         "CatArrayBatchedCopy<OpaqueType<2u>, 2>", NULL},
        {"sgl_kernel::silu_and_mul", "[[32, 12288], [32, 24576]]", B "," B, NULL, ANY,
         2. * 32 * (12288 + 24576), NULL, NULL, NULL},
        {"aten::upsample_nearest2d", "[[1, 8, 4, 4], [], []]", B ",,ScalarList", ";;[2., 2.]", 512,
         2. * (128 + 512), NULL, NULL, NULL},
        {"sglang::store_cache", "[[32, 1024], [32, 1024], [9, 1024], [9, 1024], [32]]",
         B "," B "," B "," B "," L, NULL, 0, 2. * 2 * 2 * 32768 + 256, NULL, NULL, NULL},
        {"aten::_foreach_add_", "[[[10], [20]], [[10], [20]], []]", "TensorList,TensorList,Scalar",
         ";;1", 30, 4. * 90, NULL, NULL, NULL},
        {"aten::_fused_adamw_",
         "[[[10], [20]], [[10], [20]], [[10], [20]], [[10], [20]], [], [[], []]]",
         "TensorList,TensorList,TensorList,TensorList,TensorList,TensorList", NULL, 15. * 30,
         4. * 7 * 30, "fp32", NULL, NULL},
        {"triton_poi_fused_addmm_gelu_view_17", "[[2, 333, 9728], [9728], []]", B "," B ",Scalar",
         ";;6478848", 2. * 6478848, 2. * (2 * 6478848 + 9728), "bf16", NULL, NULL},
        {"triton_poi_fused_add_gelu_mul_0", "[[1024], [1024], [1024], []]", B "," B "," B ",Scalar",
         ";;;1024", 3072, 2. * 3 * 1024, "bf16", NULL, NULL},
        {"triton_per_fused_nll_loss_forward_1", "[[512], [512], []]", F "," F ",Scalar", ";;512",
         512, 4. * 2 * 512, "fp32", NULL, NULL},
        {"triton_per_fused_native_layer_norm_var_mean_2", "[[64], [64], []]", F "," F ",Scalar",
         ";;64", ANY, 4. * 2 * 64, "fp32", NULL, NULL},
        /* numbers that are not sizes: what a kernel computes, it reads or writes */
        {"triton_poi_fused_add_4", "[[64], [64], [], [], []]", F "," F ",Scalar,Scalar,Scalar",
         ";;1048576;4096;64", 64, 4. * 2 * 64, "fp32", NULL, NULL},
        /* a part of a split is rounded up, to twice its size at most */
        {"triton_poi_fused_add_6", "[[64], [64], []]", F "," F ",Scalar", ";;128", 128, 4. * 2 * 64,
         "fp32", NULL, NULL},
        {"triton_poi_fused_add_7", "[[64], [64], []]", F "," F ",Scalar", ";;160", 64, 4. * 2 * 64,
         "fp32", NULL, NULL},
        /* what it prepares the input of is not a product */
        {"triton_poi_fused__scaled_mm__to_copy_mul_5", "[[64, 32], [64, 32], []]",
         F "," B ",Scalar", ";;2048", 2048, 6. * 2048, "fp32", NULL, NULL},
        {"triton_poi_fused_view_3", "[[64], [64], []]", F "," F ",Scalar", ";;64", 0, 4. * 2 * 64,
         "fp32", NULL, NULL},
    };

    UNUSED_STATE(state);
    ASSERT_COUNTED(cases);
}

static void reductions_and_norms(void **state)
{
    static const struct counted cases[] = {
        {"aten::sum", "[[10, 20, 30], [], [], []]", F ",ScalarList,Scalar,", ";[-1];False;", 6000,
         4. * (6000 + 200), "fp32", NULL, NULL},
        {"aten::sum", "[[10, 20, 30], []]", F ",", ";", 6000, 4. * 6001, NULL, NULL, NULL},
        {"aten::mean", "[[10, 20, 30], [], [], []]", B ",ScalarList,Scalar,", ";[0, 2];True;", 6000,
         2. * (6000 + 20), NULL, NULL, NULL},
        {"aten::max", "[[10, 20], [], []]", F ",Scalar,Scalar", ";1;False", 200, 4. * 200 + 10 * 12,
         NULL, NULL, NULL},
        {"aten::argmax", "[[10, 20], [], []]", F ",Scalar,Scalar", ";1;False", 200,
         4. * 200 + 10 * 8, NULL, NULL, NULL},
        {"aten::max", "[[10, 20], [], []]", "signed char,Scalar,Scalar", ";1;False", 200,
         1. * 200 + 10 * 9, NULL, NULL, NULL},
        {"aten::topk", "[[10, 20], [], [], [], []]", F ",Scalar,Scalar,Scalar,Scalar",
         ";5;0;True;True", ANY, 4. * 200 + 5 * 20 * 12, NULL, NULL, NULL},
        {"aten::topk", "[[10, 20], [], [], [], []]", F ",Scalar,Scalar,Scalar,Scalar",
         ";5;-1;True;True", ANY, 4. * 200 + 10 * 5 * 12, NULL, NULL, NULL},
        {"aten::cumsum", "[[10, 20], [], []]", F ",Scalar,", ";1;", 200, 1600, NULL, NULL, NULL},
        {"aten::topk", "[[10, 100], [], []]", F ",Scalar,Scalar", ";5;-1", 1000, 4000 + 50 * 12,
         NULL, NULL, NULL},
        {"aten::_softmax", "[[10, 100], [], []]", B ",Scalar,Scalar", ";-1;False", 5000, 4000, NULL,
         NULL, NULL},
        {"aten::_softmax", "[[10, 100], [], []]", B ",Scalar,Scalar", ";-1;True", 5000, 6000, NULL,
         NULL, NULL},
        {"aten::_log_softmax_backward_data", "[[10, 100], [10, 100], [], []]",
         F "," F ",Scalar,Scalar", ";;1;6", 4000, 12000, NULL, NULL, NULL},
        {"aten::native_layer_norm", "[[10, 100], [], [100], [100], []]",
         B ",ScalarList," B "," B ",Scalar", ";[100];;;1e-05", 7000, 4000 + 400, NULL, NULL, NULL},
        {"aten::_fused_rms_norm", "[[10, 100], [], [100], []]", B ",ScalarList," B ",", ";[100];;",
         4000, 4000 + 200, NULL, NULL, NULL},
        {"aten::native_layer_norm_backward",
         "[[10, 100], [10, 100], [], [10, 1], [10, 1], [100], [100], []]",
         F "," F ",ScalarList," F "," F "," F "," F ",ScalarList", ";;[100];;;;;[True, True, True]",
         1000. * 13, 4. * (3000 + 20 + 200 + 200), NULL, NULL, NULL},
        {"aten::cudnn_batch_norm", "[[4, 8, 5, 5], [8], [8], [8], [8], [], [], []]",
         F "," F "," F "," F "," F ",Scalar,Scalar,Scalar", ";;;;;True;0.1;1e-05", 800. * 7,
         4. * (1600 + 32), NULL, NULL, NULL},
        {"aten::native_batch_norm", "[[4, 8, 5, 5], [8], [8], [8], [8], [], [], []]",
         F "," F "," F "," F "," F ",Scalar,Scalar,Scalar", ";;;;;False;0.1;1e-05", 800. * 4, ANY,
         NULL, NULL, NULL},
        {"aiter::add_rmsnorm", "[[32, 64], [32, 64], [32, 64], [32, 64], [64], []]",
         B "," B "," B "," B "," B ",Scalar", ";;;;;1e-06", 2048. * 5, 2. * (4 * 2048 + 64), NULL,
         NULL, NULL},
        {"_C::fused_add_rms_norm", "[[32, 64], [32, 64], [64], []]", B "," B "," B ",Scalar",
         ";;;1e-06", 2048. * 5, 2. * (4 * 2048 + 64), NULL, NULL, NULL},
        {"aten::embedding", "[[50000, 64], [4, 8], [], [], []]", F "," L ",Scalar,Scalar,Scalar",
         ";;-1;False;False", 0, 32 * 8 + 2. * 4 * 32 * 64, NULL, NULL, NULL},
        {"aten::embedding_dense_backward", "[[4, 8, 64], [4, 8], [], [], []]",
         F "," L ",Scalar,Scalar,Scalar", ";;1000;-1;False", 2048, 256 + 4. * (2048 + 64000), NULL,
         NULL, NULL},
        {"aten::index_select", "[[100, 64], [], [10]]", B ",Scalar," L, ";0;", 0, 80 + 2. * 2 * 640,
         NULL, NULL, NULL},
        {"aten::gather", "[[100, 64], [], [10, 64]]", B ",Scalar," L, ";0;", 0, 5120 + 2. * 2 * 640,
         NULL, NULL, NULL},
        {"aten::max_pool2d_with_indices", "[[2, 8, 10, 10], [], [], [], [], []]",
         F ",ScalarList,ScalarList,ScalarList,ScalarList,Scalar",
         ";[2, 2];[2, 2];[0, 0];[1, 1];False", 2. * 8 * 25 * 4, 6400 + 12. * 400, NULL, NULL, NULL},
        {"aten::mse_loss", "[[100], [100], []]", F "," F ",Scalar", ";;1", 300, 804, NULL, NULL,
         NULL},
        {"aten::nll_loss_backward", "[[], [8, 100], [8], [], [], [], []]",
         F "," F "," L ",,Scalar,Scalar," F, ";;;;1;-100;", 8, 64 + 32, NULL, NULL, NULL},
    };

    UNUSED_STATE(state);
    ASSERT_COUNTED(cases);
}

/* Files are also written with a value on each line. */
static void lists_may_be_indented(void **state)
{
    struct rp_op_cost cost;
    struct rp_err err = {0};

    UNUSED_STATE(state);
    assert_ok(rp_cost_of_texts(
                  "aten::bmm",
                  "[\n  [\n    8,\n    64,\n    32\n  ],\n  [\n    8,\n    32,\n    16\n  ]\n]",
                  NULL, "[\n  \"c10::BFloat16\",\n  \"c10::BFloat16\"\n ]", "[\n  \"\",\n  \"\"\n]",
                  NULL, &cost, &err),
              &err);
    assert_null(cost.missing);
    assert_true(cost.flops == 8. * 65536);
    assert_int_equal(cost.category, RP_CATEGORY_MATMUL);
}

/* What cannot be known is said, not guessed. */
static void products_run_on_matrix_units(void **state)
{
    static const struct {
        struct counted op;
        bool on_matrix;
    } cases[] = {
        {{.op = "aten::mm", .dims = "[[64, 32], [32, 16]]", .types = F "," F}, true},
        {{.op = "aten::bmm", .dims = "[[2, 64, 32], [2, 32, 16]]", .types = B "," B}, true},
        {{.op = "vllm::outplace_fused_experts",
          .dims = "[[10, 64], [8, 256, 64], [8, 64, 128], [10, 2], [10, 2]]",
          .types = B "," B "," B "," F "," L},
         true},
        {{.op = "aten::add", .dims = "[[64, 32], [64, 32], []]", .types = F "," F ",Scalar"},
         false},
        {{.op = "aten::sum", .dims = "[[10, 20, 30], []]", .types = F ",", .concrete = ";"}, false},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rp_op_cost cost = cost_of(&cases[i].op);

        assert_null(cost.missing);
        if (cost.on_matrix != cases[i].on_matrix)
            fail_msg("%s is%s a product", cases[i].op.op, cases[i].on_matrix ? " not" : "");
    }
}

static void what_is_missing_is_said(void **state)
{
    static const struct {
        struct counted op;
        const char *missing;
    } cases[] = {
        {{.op = "my::thing", .dims = "[[4]]", .types = F}, "no model"},
        {{.op = "aten::mm", .dims = NULL, .types = F}, "shapes were not recorded"},
        {{.op = "aten::mm", .dims = "[[4, 8], [9, 2]]", .types = F "," F}, "not those"},
        {{.op = "aten::_grouped_mm", .dims = "[[4, 8], []]", .types = B ","}, "not recorded"},
        {{.op = "aten::_grouped_mm", .dims = "[[], [2, 8, 4]]", .types = "," B}, "not recorded"},
        {{.op = "aten::_foreach_add_", .dims = "[[], []]", .types = "TensorList,TensorList"},
         "lists"},
        {{.op = "aten::convolution",
          .dims = "[[2, 8, 10, 10], [16, 8, 3, 3], [], [], [], [], [], [], []]",
          .types = F "," F},
         "arguments"},
        {{.op = "aten::index", .dims = "[[100, 64], []]", .types = F ","}, "indices"},
        {{.op = "vllm::unified_attention_with_output",
          .dims = "[[32, 8, 64], [32, 8, 64], [32, 8, 64], [32, 8, 64]]",
          .types = B "," B "," B "," B},
         "lengths"},
        {{.op = "aten::mm", .dims = "[[", .types = F}, "not recorded"},
        {{.op = "aten::max_pool2d_with_indices",
          .dims = "[[2, 8, 10, 10], [], [], [], [], []]",
          .types = F ",ScalarList,ScalarList,ScalarList,ScalarList,Scalar",
          .concrete = ";[2, 2];[0, 0];[0, 0];[1, 1];False"},
         "not those"},
        {{.op = "aten::max_pool2d_with_indices",
          .dims = "[[2, 8, 10, 10], [], [], [], [], []]",
          .types = F ",ScalarList,ScalarList,ScalarList,ScalarList,Scalar",
          .concrete = ";[11, 11];[1, 1];[0, 0];[1, 1];False"},
         "not those"},
        {{.op = "aten::mm", .dims = "[[1e300, 1e300], [1e300, 1e300]]", .types = F "," F},
         "not those"},
    };
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_op_cost cost = cost_of(&cases[i].op);

        if (!cost.missing)
            fail_msg("%s %s is modelled", cases[i].op.op, cases[i].op.dims);
        assert_contains(cost.missing, cases[i].missing);
        assert_true(isnan(cost.flops) && isnan(cost.bytes));
    }
}

/* Six new tokens of sequences with ten in all, 8 heads of width 64 over 2 heads of keys and values;
   40 pairs are seen. Without sums of lengths, two sequences of three tokens each, of which each
   token sees itself and those before: 1 + 2 + 3. */
static void attention_of_servers(void **state)
{
    struct rp_inputs in = {.count = 2, .batch = {.tokens = 6, .keys = 10, .pairs = 40}};
    struct rp_op_cost cost = {0};

    UNUSED_STATE(state);
    in.at[0].tensor = (struct rp_input_tensor){
        .ndims = 3, .type = RP_NUMBER_BF16, .size = 2, .known = true, .dim = {6, 8, 64}};
    in.at[1].tensor = (struct rp_input_tensor){
        .ndims = 3, .type = RP_NUMBER_BF16, .size = 2, .known = true, .dim = {6, 2, 64}};
    assert_null(rp_model_served_attention(&in, 0, &cost));
    assert_true(cost.flops == 4. * 40 * 8 * 64);
    assert_true(cost.bytes == 2. * (2 * 6 * 8 * 64 + 2 * 10 * 2 * 64));
    assert_true(cost.type == RP_NUMBER_BF16 && cost.on_matrix);
    in.batch = (struct rp_batch){.prefill = true, .requests = 2};
    assert_null(rp_model_served_attention(&in, 0, &cost));
    assert_true(cost.flops == 2 * 4. * 6 * 8 * 64);
    assert_true(cost.bytes == 2. * (2 * 6 * 8 * 64 + 2 * 6 * 2 * 64));
    in.batch.prefill = false;
    assert_string_equal(rp_model_served_attention(&in, 0, &cost), RP_NO_LENGTHS);
    in.batch.tokens = 7; /* more than were computed */
    assert_string_equal(rp_model_served_attention(&in, 0, &cost), RP_NO_LENGTHS);
    in.at[0].tensor.ndims = 4;
    assert_string_equal(rp_model_served_attention(&in, 0, &cost), RP_ODD_SHAPES);
}

/* Codes are those of c10::ScalarType. */
static void types_have_their_formats_and_sizes(void **state)
{
    static const struct {
        const char *type, *number;
        int64_t code;
        float size;
    } rows[] = {
        {"unsigned char", "int8", 0, 1},
        {"signed char", "int8", 1, 1},
        {"short", "int", 2, 2},
        {"int", "int", 3, 4},
        {"long", "int", 4, 8},
        {"c10::Half", "fp16", 5, 2},
        {"float", "fp32", 6, 4},
        {"double", "fp64", 7, 8},
        {"c10::complex<float>", "fp32", 9, 8},
        {"c10::complex<double>", "fp64", 10, 16},
        {"bool", "int", 11, 1},
        {"c10::qint8", "int8", 12, 1},
        {"c10::quint8", "int8", 13, 1},
        {"c10::BFloat16", "bf16", 15, 2},
        {"c10::Float8_e5m2", "fp8", 23, 1},
        {"c10::Float8_e4m3fn", "fp8", 24, 1},
        {"c10::Float8_e5m2fnuz", "fp8", 25, 1},
        {"c10::Float8_e4m3fnuz", "fp8", 26, 1},
        {"unsigned short", "int", 27, 2},
        {"unsigned int", "int", 28, 4},
        {"unsigned long", "int", 29, 8},
        {"c10::Float8_e8m0fnu", "fp8", 44, 1},
        {"c10::Float4_e2m1fn_x2", "fp4", 45, 1},
        {"c10::Unheard", "none", 99, 0},
    };
    float size;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum rp_number number = rp_number_of_type(rows[i].type, strlen(rows[i].type), &size);

        assert_string_equal(rp_number_names[number], rows[i].number);
        assert_true(size == rows[i].size);
        assert_int_equal(rp_number_of_code(rows[i].code, &size), number);
        assert_true(size == rows[i].size);
    }
}

/* 6e12 operations at 2e12 or 1e12 a second, 3e9 bytes at 1.5e9. What is not known gives no time. */
static void times_are_work_over_peaks(void **state)
{
    struct rp_cost_peaks peaks = {.memory = 1.5e9};
    struct rp_op_cost cost = {.flops = 6e12, .bytes = 3e9, .type = RP_NUMBER_BF16};

    UNUSED_STATE(state);
    assert_true(isnan(rp_cost_compute_s(&cost, &peaks)));
    peaks.vector[RP_NUMBER_BF16] = 1e12;
    peaks.matrix[RP_NUMBER_BF16] = 2e12;
    assert_true(rp_cost_compute_s(&cost, &peaks) == 6);
    cost.on_matrix = true;
    assert_true(rp_cost_compute_s(&cost, &peaks) == 3);
    assert_true(rp_cost_memory_s(&cost, &peaks) == 2);
    peaks.memory = 0;
    assert_true(isnan(rp_cost_memory_s(&cost, &peaks)));
    cost.type = RP_NUMBER_FP8; /* no peak is known, and nothing to do needs none */
    assert_true(isnan(rp_cost_compute_s(&cost, &peaks)));
    cost.flops = 0;
    assert_true(rp_cost_compute_s(&cost, &peaks) == 0);
}

int test_models(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(arguments_of_convolutions),
        cmocka_unit_test(attention),
        cmocka_unit_test(elements),
        cmocka_unit_test(reductions_and_norms),
        cmocka_unit_test(lists_may_be_indented),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(products_run_on_matrix_units),
        cmocka_unit_test(attention_of_servers),
        cmocka_unit_test(types_have_their_formats_and_sizes),
        cmocka_unit_test(times_are_work_over_peaks),
    };

    return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
