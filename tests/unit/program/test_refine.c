/* SPDX-License-Identifier: Apache-2.0 */
/* Programs for inputs of any size, for inputs of a size: shapes of results by hand. */
#include "formats/list.h"
#include "formats/programs.h"
#include "program/cut.h"
#include "program/refine.h"
#include "unit.h"

#define HEAD                                                                                 \
    "module @m {\n  func.func public @main(%x: tensor<?x?xf32>, %i: tensor<?xi32>) -> "      \
    "tensor<?xf32> {\n"                                                                      \
    "    %zero = stablehlo.constant dense<0.0> : tensor<f32>\n"                              \
    "    %c2 = stablehlo.constant dense<2> : tensor<i32>\n"                                  \
    "    %c3 = stablehlo.constant dense<-3> : tensor<i32>\n"                                 \
    "    %l0 = stablehlo.constant dense<[1, 0]> : tensor<2xi32>\n"                           \
    "    %l1 = stablehlo.constant dense<[2, 3]> : tensor<2xi32>\n"                           \
    "    %l2 = stablehlo.constant dense<[0, 1]> : tensor<2xi32>\n"                           \
    "    %l3 = stablehlo.constant dense<1> : tensor<2xi32>\n"                                \
    "    %b = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>\n" \
    "    %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>\n" \
    "    %b1 = stablehlo.reshape %b : (tensor<i32>) -> tensor<1xi32>\n"                      \
    "    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n"                      \
    "    %bn = stablehlo.concatenate %b1, %n1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> " \
    "tensor<2xi32>\n"                                                                        \
    "    %nb = stablehlo.concatenate %n1, %b1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> " \
    "tensor<2xi32>\n"
#define SIZE(computed)                                                           \
    computed "    %s1 = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>\n" \
             "    %r = stablehlo.dynamic_iota %s1, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n"

static enum rp_code refine_text(const char *body, int64_t rows, struct rp_program **read,
                                struct rp_program **out, struct rp_import *import,
                                struct rp_err *err)
{
    static char text[8192];
    const int64_t x[] = {rows, 5}, i[] = {7};
    const struct rp_refine_shape shapes[] = {{x, 2, true}, {i, 1, true}};
    static const struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_read_options options = {.limits = &limits};
    struct rp_input *in;

    snprintf(text, sizeof text, "%s%s%s", HEAD, body, "    return %r : tensor<?xf32>\n  }\n}\n");
    RP_TRY(rp_input_open_memory("text", (const uint8_t *)text, strlen(text), options.limits, &in,
                                err));
    import->input = in;
    RP_TRY(rp_format_stablehlo.read(in, &options, import, err));
    *read = import->program;
    return rp_program_refine(*read, shapes, 2, out, err);
}

/* x is f32[4,5], i is s32[7] */
static void shapes_follow(void **state)
{
    static const struct {
        const char *body, *shape;
    } rows[] = {
        {"    %r = stablehlo.tanh %x : tensor<?x?xf32>\n", "f32[4,5]"},
        {"    %r = stablehlo.transpose %x, dims = [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>\n",
         "f32[5,4]"},
        {"    %r = stablehlo.concatenate %x, %x, dim = 1 : (tensor<?x?xf32>, tensor<?x?xf32>) -> "
         "tensor<?x?xf32>\n",
         "f32[4,10]"},
        {"    %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] "
         ": (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>\n",
         "f32[5]"},
        {"    %r = stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<?x?xf32>, "
         "tensor<?x?xf32>) -> tensor<?x?xf32>\n",
         "f32[4,4]"},
        {"    %r = stablehlo.dot_general %x, %x, batching_dims = [0] x [0], contracting_dims = [1] "
         "x [1] : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?xf32>\n",
         "f32[4]"},
        {"    %one = stablehlo.constant dense<1> : tensor<1xi32>\n"
         "    %bn1 = stablehlo.concatenate %b1, %n1, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>, "
         "tensor<1xi32>) -> tensor<3xi32>\n"
         "    %image = stablehlo.dynamic_reshape %x, %bn1 : (tensor<?x?xf32>, tensor<3xi32>) -> "
         "tensor<?x?x1xf32>\n"
         "    %w = stablehlo.constant dense<1.0> : tensor<3x1x6xf32>\n"
         "    %r = stablehlo.convolution(%image, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
         "window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count "
         "= 1 : i64} : (tensor<?x?x1xf32>, tensor<3x1x6xf32>) -> tensor<?x?x6xf32>\n",
         "f32[4,5,6]"}, /* 5 + 2 - 3 + 1 */
        {"    %r = stablehlo.dynamic_pad %x, %zero, %l0, %l1, %l2 : (tensor<?x?xf32>, tensor<f32>, "
         "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>\n",
         "f32[7,12]"},
        {"    %r = stablehlo.real_dynamic_slice %x, %l0, %bn, %l1 : (tensor<?x?xf32>, "
         "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>\n",
         "f32[2,2]"},
        {"    %r = stablehlo.dynamic_reshape %x, %nb : (tensor<?x?xf32>, tensor<2xi32>) -> "
         "tensor<?x?xf32>\n",
         "f32[5,4]"},
        {"    %r = stablehlo.dynamic_broadcast_in_dim %zero, %nb, dims = [] : (tensor<f32>, "
         "tensor<2xi32>) -> tensor<?x?xf32>\n",
         "f32[5,4]"},
        {"    %j = stablehlo.dynamic_reshape %i, %j1 : (tensor<?xi32>, tensor<2xi32>) -> "
         "tensor<?x1xi32>\n",
         NULL}, /* %j1 is not defined: the text is not read */
        {SIZE("    %d = stablehlo.divide %n, %c3 : tensor<i32>\n    %t = stablehlo.negate %d : "
              "tensor<i32>\n    %u = stablehlo.maximum %t, %c2 : tensor<i32>\n"
              "    %v = stablehlo.remainder %n, %c2 : tensor<i32>\n"
              "    %w = stablehlo.add %u, %v : tensor<i32>\n"
              "    %q = stablehlo.compare LT, %b, %n, SIGNED : (tensor<i32>, tensor<i32>) -> "
              "tensor<i1>\n"
              "    %s = stablehlo.select %q, %w, %c3 : tensor<i1>, tensor<i32>\n"),
         "f32[3]"},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_import import = RP_IMPORT_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct rp_program *read, *p = NULL;
        enum rp_code code = refine_text(rows[i].body, 4, &read, &p, &import, &err);
        char shape[64];

        if (rows[i].shape) {
            assert_ok(code, &err);
            rp_shape_text(p, p->shape.at[p->computations.at[p->entry].root], false, shape,
                          sizeof shape);
            assert_string_equal(shape, rows[i].shape);
            assert_false(rp_program_is_dynamic(p));
        } else {
            assert_int_equal(code, RP_FORMAT);
        }
        rp_program_free(p);
        rp_import_release(&import);
    }
}

/* A part of a program keeps the lines of its operations, but not the list of frames. */
static void lines_stay_known(void **state)
{
    static const char text[] = "HloModule m\n\nENTRY %main {\n  %x = f32[4] parameter(0)\n"
                               "  ROOT %y = f32[4] negate(%x), metadata={op_name=\"f/neg\" "
                               "source_file=\"m.py\" source_line=7}\n}\n";
    static const uint8_t keep[] = {0, 1};
    static const uint32_t outputs[] = {1};
    struct rp_err err = RP_ERR_INIT;
    struct rp_cut_program cut = {0};
    struct rp_source_line line;
    struct rp_program *p;
    uint32_t root;

    UNUSED_STATE(state);
    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    p->metas.at[p->meta.at[1]].frame = 3;
    assert_ok(rp_program_cut(p, &(struct rp_cut){0, keep, outputs, 1, false}, &cut, &err), &err);
    root = cut.program->computations.at[cut.program->entry].root;
    assert_true(rp_op_source(cut.program, root, &line));
    assert_string_equal(line.file, "m.py");
    assert_int_equal(line.line, 7);
    assert_int_equal(cut.program->metas.at[cut.program->meta.at[root]].frame, 0);
    rp_cut_release(&cut);
    rp_program_free(p);
}

static void what_does_not_follow_is_refused(void **state)
{
    static const struct {
        const char *body, *why;
        int64_t rows;
        enum rp_code code;
    } rows[] = {
        {"    %s = stablehlo.slice %i [0:1] : (tensor<?xi32>) -> tensor<1xi32>\n"
         "    %r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n",
         "values of the inputs", 4, RP_UNSUPPORTED},
        {SIZE("    %s = stablehlo.add %b, %c3 : tensor<i32>\n"), "negative size", 2, RP_FORMAT},
        {"    %r = stablehlo.dynamic_reshape %x, %b1 : (tensor<?x?xf32>, tensor<1xi32>) -> "
         "tensor<?xf32>\n",
         "another number of elements", 4, RP_FORMAT},
        {"    %r = stablehlo.concatenate %x, %x, dim = 1 : (tensor<?x?xf32>, tensor<?x?xf32>) -> "
         "tensor<6x?xf32>\n",
         "do not fit", 4, RP_FORMAT},
        {"    %r = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?x?xf32>, tensor<?x?xf32>) -> "
         "tensor<?x6xf32>\n",
         "do not fit", 4, RP_FORMAT},
        {"    %r = stablehlo.real_dynamic_slice %x, %b1, %n1, %b1 : (tensor<?x?xf32>, "
         "tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x?xf32>\n",
         "each dimension has a begin", 4, RP_FORMAT},
        {"    %s = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<900xi32>\n"
         "    %r = stablehlo.add %s, %s : tensor<900xi32>\n",
         "one integer", 4, RP_FORMAT},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_import import = RP_IMPORT_INIT;
        struct rp_err err = RP_ERR_INIT;
        struct rp_program *read, *p = NULL;

        assert_code(refine_text(rows[i].body, rows[i].rows, &read, &p, &import, &err),
                    rows[i].code);
        assert_non_null(strstr(err.text, rows[i].why));
        rp_import_release(&import);
    }
}

int test_refine(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow),
        cmocka_unit_test(lines_stay_known),
        cmocka_unit_test(what_does_not_follow_is_refused),
    };

    return cmocka_run_group_tests_name("refine", tests, NULL, NULL);
}
