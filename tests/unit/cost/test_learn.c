/* SPDX-License-Identifier: Apache-2.0 */
/* Cost models, on tables whose function is known: what is learned, kept, written and refused. */
#include "unit.h"

#include "cost/learn/learned.h"

#include <math.h>
#include <stdlib.h>

static double planted_ns(const struct rp_sample *s)
{
    struct rp_features x;

    rp_features_of(s, (enum rp_op_kind)s->kind, &x);
    return (3e-6 + 1.5 * x.compute_s + 1.3 * x.memory_s) * 1e9;
}

static struct rp_sample product_of(double m, double k, double n, uint8_t type, const char *device)
{
    struct rp_sample s = {.op = "matmul", .device = device, .type = type, .ndims = 3, .count = 1};

    s.dim[0] = m;
    s.dim[1] = k;
    s.dim[2] = n;
    s.flops = s.bytes = s.ns = NAN;
    assert_int_equal(rp_sample_complete(&s, NULL), RP_OK);
    return s;
}

/* Products of sizes 64 to 4096, in two formats; `noise` in parts of the time. */
static void plant(struct rp_samples *out, const char *device, double noise)
{
    static const double sizes[] = {64, 160, 512, 1024, 2400, 4096};
    uint64_t state = 7;
    size_t i, k, n, t;

    for (t = 0; t < 2; t++)
        for (i = 0; i < 6; i++)
            for (k = 0; k < 6; k++)
                for (n = 0; n < 6; n++) {
                    struct rp_sample s = product_of(sizes[i], sizes[k], sizes[n],
                                                    t ? RP_NUMBER_BF16 : RP_NUMBER_FP32, device);

                    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
                    s.ns = planted_ns(&s) *
                           (1 + noise * ((double)(state >> 40) / (double)(1 << 24) * 2 - 1));
                    assert_int_equal(rp_vec_push(&out->rows, s, NULL), RP_OK);
                }
}

static void learn(struct rp_learned *m, const struct rp_samples *samples, bool calibrate)
{
    assert_int_equal(rp_learn(m, samples, NULL, calibrate, NULL), RP_OK);
}

static void planted_times_are_found_again(void **state)
{
    static const double sizes[] = {100, 300, 768, 1500, 3000};
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time t;
    int i, k;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    learn(&m, &samples, false);
    for (i = 0; i < 5; i++)
        for (k = 0; k < 2; k++) {
            struct rp_sample s = product_of(sizes[i], sizes[4 - i], 640,
                                            k ? RP_NUMBER_BF16 : RP_NUMBER_FP32, "H200");

            assert_true(rp_learned_predict(&m, &s, &t));
            assert_int_equal(t.provenance, RP_FITTED);
            assert_true(fabs(t.ns / planted_ns(&s) - 1) < 0.08);
        }
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

/* From 1024 rows on all takes three times as long, which no peak of the device explains. */
static void what_peaks_do_not_explain_is_learned(void **state)
{
    static const double rows[] = {200, 400, 1500, 3000}; /* none of them was measured */
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time t;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    for (size_t i = 0; i < samples.rows.n; i++)
        samples.rows.at[i].ns *= samples.rows.at[i].dim[0] >= 1024 ? 3 : 1;
    learn(&m, &samples, false);
    for (int i = 0; i < 4; i++) {
        struct rp_sample s = product_of(rows[i], 900, 1500, RP_NUMBER_BF16, "H200");

        assert_true(rp_learned_predict(&m, &s, &t));
        assert_true(fabs(t.ns / (planted_ns(&s) * (rows[i] >= 1024 ? 3 : 1)) - 1) < 0.25);
    }
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

/* A convolution as small networks have them, in a square picture. */
static struct rp_sample conv_of(const char *op, double channels, double filters, double kernel,
                                uint8_t type)
{
    struct rp_sample s = {.op = op, .device = "H200", .type = type, .ndims = 7, .count = 1};
    const double dim[] = {32, channels, 28, 28, filters, kernel, 1};

    memcpy(s.dim, dim, sizeof dim);
    s.flops = s.bytes = s.ns = NAN;
    assert_int_equal(rp_sample_complete(&s, NULL), RP_OK);
    return s;
}

/* The library has another algorithm for filters of 5 x 5, three times as slow; in bf16 all take
   0.4 of their time in fp32, which of `op` is left out if there is another operator. */
static void plant_convs(struct rp_samples *out, const char *op, bool fp32)
{
    static const double channels[] = {16, 32, 48, 64, 96, 128, 192, 256}, kernels[] = {1, 3, 5, 7};

    for (size_t c = 0; c < 8; c++)
        for (size_t f = 0; f < 8; f++)
            for (size_t k = 0; k < 4; k++) {
                struct rp_sample s =
                    conv_of(op, channels[c], channels[f], kernels[k], RP_NUMBER_FP32);
                double ns = planted_ns(&s) * (kernels[k] == 5 ? 3 : 1);

                s.ns = ns;
                if (fp32)
                    assert_int_equal(rp_vec_push(&out->rows, s, NULL), RP_OK);
                s = conv_of(op, channels[c], channels[f], kernels[k], RP_NUMBER_BF16);
                s.ns = 0.4 * ns;
                assert_int_equal(rp_vec_push(&out->rows, s, NULL), RP_OK);
            }
}

/* No curve that never falls with the kernel fits them: their neighbours tell. */
static void convolutions_follow_their_neighbours(void **state)
{
    static const double kernels[] = {1, 3, 5, 7};
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time t;

    UNUSED_STATE(state);
    plant_convs(&samples, "conv2d", true);
    learn(&m, &samples, false);
    for (int i = 0; i < 4; i++) {
        struct rp_sample s = conv_of("conv2d", 80, 112, kernels[i], RP_NUMBER_FP32);

        assert_true(rp_learned_predict(&m, &s, &t));
        assert_true(fabs(t.ns / (planted_ns(&s) * (kernels[i] == 5 ? 3 : 1)) - 1) < 0.12);
    }
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

/* Backwards was measured in bf16 only: it differs from fp32 as forwards does. */
static void formats_differ_as_those_of_the_other_direction(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time t;
    struct rp_sample s = conv_of("conv2d_backward", 80, 112, 5, RP_NUMBER_FP32);

    UNUSED_STATE(state);
    plant_convs(&samples, "conv2d", true);
    plant_convs(&samples, "conv2d_backward", false);
    learn(&m, &samples, false);
    assert_true(rp_learned_predict(&m, &s, &t));
    assert_int_equal(t.provenance, RP_ASSUMED);
    assert_true(fabs(t.ns / (planted_ns(&s) * 3) - 1) < 0.12);
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

static void larger_is_never_faster(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time a, b;
    double at;
    int d;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0.4);
    learn(&m, &samples, false);
    for (d = 0; d < 3; d++) {
        struct rp_sample s = product_of(96, 96, 96, RP_NUMBER_BF16, "H200");

        assert_true(rp_learned_predict(&m, &s, &a));
        for (at = 96; at < 20000; at = ceil(at * 1.07 / 32) * 32) {
            struct rp_sample larger = s;

            larger.dim[d] = at;
            larger.flops = larger.bytes = NAN;
            assert_int_equal(rp_sample_complete(&larger, NULL), RP_OK);
            assert_true(rp_learned_predict(&m, &larger, &b));
            assert_true(b.ns >= a.ns * (1 - 1e-6));
            a = b;
        }
    }
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

static void intervals_cover_and_peaks_are_the_floor(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time t;
    size_t covered = 0, n = 0;
    double size;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0.2);
    learn(&m, &samples, true);
    for (size = 72; size < 4000; size += 136) {
        struct rp_sample s = product_of(size, 800, 1200, RP_NUMBER_BF16, "H200");
        struct rp_features x;

        rp_features_of(&s, RP_OP_MATMUL, &x);
        assert_true(rp_learned_predict(&m, &s, &t));
        assert_true(t.low_ns <= t.ns && t.ns <= t.high_ns);
        assert_true(t.low_ns >= x.least_s * 1e9 && t.ns >= x.least_s * 1e9);
        covered += planted_ns(&s) >= t.low_ns && planted_ns(&s) <= t.high_ns;
        n++;
    }
    assert_true(covered * 5 >= n * 4);
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

static void provenance_says_what_it_rests_on(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time t;
    struct rp_learned_ratio ratio;
    struct rp_sample s = product_of(512, 512, 1024, RP_NUMBER_BF16, "H200"), other;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    learn(&m, &samples, false);
    assert_true(rp_learned_predict(&m, &s, &t));
    assert_int_equal(t.provenance, RP_MEASURED);
    assert_true(fabs(t.ns / planted_ns(&s) - 1) < 0.01);
    other = product_of(512, 512, 1024, RP_NUMBER_FP16, "H200");
    assert_true(rp_learned_predict(&m, &other, &t));
    assert_int_equal(t.provenance, RP_ASSUMED);
    assert_true(fabs(t.ns / planted_ns(&s) - 1) < 0.1);
    other = product_of(512, 512, 1024, RP_NUMBER_BF16, "A100");
    assert_true(rp_learned_predict(&m, &other, &t));
    assert_int_equal(t.provenance, RP_ASSUMED);
    assert_true(fabs(t.ns / planted_ns(&other) - 1) < 0.25);
    other = product_of(512, 512, 1024, RP_NUMBER_BF16, "no such device");
    assert_false(rp_learned_predict(&m, &other, &t));
    other = product_of(4096, 4096, 4096, RP_NUMBER_FP32, "H200");
    s = product_of(4096, 4096, 4096, RP_NUMBER_BF16, "H200");
    assert_true(rp_learned_ratio_of(&m, &other, &s, &ratio));
    assert_true(fabs(ratio.ratio / (planted_ns(&s) / planted_ns(&other)) - 1) < 0.05);
    assert_true(ratio.low < ratio.ratio && ratio.ratio < ratio.high);
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

/* The words agree with what a prediction rests on: near the measured sizes it is fitted, far away
   assumed, and the change from one to the other is not beyond a factor of 64. Without noise the
   interval is still not narrower than a fiftieth to either side. */
static void far_away_is_said(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    bool far = false;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    learn(&m, &samples, false);
    for (double n = 4000; n < 300000; n *= 1.09) {
        struct rp_sample s = product_of(1000, 1000, floor(n), RP_NUMBER_BF16, "H200");
        struct rp_learned_time t;

        assert_true(rp_learned_predict(&m, &s, &t));
        assert_int_equal(strstr(t.why, "far outside") != NULL, t.provenance == RP_ASSUMED);
        assert_true(!far || t.provenance == RP_ASSUMED);
        assert_true(t.high_ns >= 1.02 * t.ns && t.low_ns <= t.ns / 1.02);
        far = t.provenance == RP_ASSUMED;
    }
    assert_true(far);
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

static char *written(const struct rp_learned *m)
{
    struct rp_out *out;
    char *text;
    size_t n;

    assert_int_equal(rp_out_open_memory(&out, NULL), RP_OK);
    rp_learned_write(m, out);
    text = strdup(rp_out_borrow_memory(out, &n));
    rp_out_abandon(out);
    return text;
}

static void a_model_is_read_back_as_written(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m, back;
    struct rp_sample s = product_of(700, 333, 900, RP_NUMBER_BF16, "H200");
    struct rp_learned_time a, b;
    char *text, *again;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0.1);
    assert_int_equal(rp_vec_push(&samples.sources, "a.csv", NULL), RP_OK);
    assert_int_equal(rp_vec_push(&samples.sources, "my runs/b.csv", NULL), RP_OK);
    learn(&m, &samples, true);
    text = written(&m);
    assert_int_equal(rp_learned_parse(&back, "text", text, NULL), RP_OK);
    assert_int_equal(back.samples.sources.n, 2);
    assert_string_equal(back.samples.sources.at[0], "a.csv");
    assert_string_equal(back.samples.sources.at[1], "my runs/b.csv");
    again = written(&back);
    assert_string_equal(text, again);
    assert_true(rp_learned_predict(&m, &s, &a) && rp_learned_predict(&back, &s, &b));
    assert_true(fabs(a.ns / b.ns - 1) < 1e-3 && fabs(a.low_ns / b.low_ns - 1) < 1e-3);
    free(text);
    free(again);
    rp_learned_release(&back);
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

#define HEAD  "reprise-model\t1\n"
#define FIT   HEAD "fit\tH200\tmatmul\tmatmul\tbuiltin\t4\t4\n"
#define CURVE "curve\tfp32\t0\t1e-6\t1\t1\t0\t-9\t-8\t0\t1\n"

static void hostile_models_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "not a model\n",
        "reprise-model\t2\nend\n",
        HEAD,
        HEAD "end\nrow\n",
        HEAD "what\nend\n",
        HEAD "row\tH200\tmatmul\tfp32\t1x2\t1\t1\t1\t1\nend\n",
        HEAD "row\tH200\tmatmul\tfp32\t1x2x3\t1\t1\t"
             "0000000000000000000000000000000000000000"
             "0000000000000000000000000000000000000001\t1\nend\n",
        HEAD "row\tH200\tmatmul\tfp32\t1x2x3\t1\t1\t-1\t1\nend\n",
        HEAD "row\tH200\tmatmul\tfp32\t1x2x3\t1\tnan\t1\t1\nend\n",
        HEAD CURVE "end\n",
        FIT "end\n",
        FIT CURVE "piece\t99\t0\t1\t1\nend\n",
        FIT CURVE "piece\t0\t0\t1\t-1\nend\n", /* it would not be monotone */
        FIT CURVE "piece\t0\t1\t0\t1\nend\n",
        FIT CURVE "gap\tmatmul\tfp32\tbf16\t0\nend\n",
        FIT CURVE "gap\tmatmul\tfp32\tnone\t0\t0\nend\n",
        FIT CURVE "gap\tmatmul\tfp32\tbf16\t0\t1e9\nend\n",
        FIT "curve\tfp32\t0\t0\t0\t0\t0\t-9\t-8\t0\t1\nend\n",
        HEAD "method\ttrees\nend\n",
        HEAD "fit\tH200\tmatmul\tmatmul\ttrees\t4\t4\n" CURVE "end\n"};
    struct rp_learned m;
    struct rp_err err = RP_ERR_INIT;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (rp_learned_parse(&m, "text", texts[i], &err) == RP_OK)
            fail_msg("accepted: %s", texts[i]);
        assert_true(err.len > 0);
        rp_learned_release(&m);
    }
    assert_int_equal(rp_learned_parse(&m, "text", FIT CURVE "end\n", NULL), RP_OK);
    rp_learned_release(&m);
}

/* What a file says of two formats is taken; of a file without it the rows say it. */
static void gaps_of_a_file_are_taken(void **state)
{
    struct rp_learned m;

    UNUSED_STATE(state);
    assert_int_equal(
        rp_learned_parse(&m, "text", FIT CURVE "gap\tmatmul\tfp32\tbf16\t-0.25\t0.5\nend\n", NULL),
        RP_OK);
    assert_int_equal(m.transfers.n, 1);
    assert_int_equal(m.transfers.at[0].kind, RP_OP_MATMUL);
    assert_int_equal(m.transfers.at[0].from, RP_NUMBER_FP32);
    assert_int_equal(m.transfers.at[0].to, RP_NUMBER_BF16);
    assert_true(m.transfers.at[0].quick == -0.25 && m.transfers.at[0].slow == 0.5);
    rp_learned_release(&m);
}

static void tables_say_what_is_wrong(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {{"a,b\n1,2\n", "must name the columns"},
                 {"op,shape,time_us\nmatmul,64x64,3\n", "M x K x N"},
                 {"op,shape,time_us\nmatmul,64x0x64,3\n", "numbers above 0"},
                 {"op,shape,time_us\nmatmul,64x64x64,-3\n", "not a number in range"},
                 {"op,shape,time_us\nmatmul,64x64x64,\n", "no time above 0"},
                 {"op,dtype,shape,time_us\nmatmul,f99,64x64x64,3\n", "not a number format"},
                 {"op,shape,time_us\nfoo,64,3\n", "give its FLOPs and bytes"}};
    struct rp_err err = RP_ERR_INIT;
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_samples samples = {0};

        assert_int_equal(rp_samples_parse_csv(&samples, "t.csv", cases[i].text, "H200", true, &err),
                         RP_FORMAT);
        if (!strstr(err.text, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
        rp_samples_release(&samples);
    }
}

/* Columns come in any order, and times in any unit; what is not given is fp32. */
static void columns_have_names(void **state)
{
    static const struct {
        const char *text;
        uint8_t type;
        double ns;
    } rows[] = {{"dtype,op,shape,time_ns\nbf16,matmul,64x64x64,3000\n", RP_NUMBER_BF16, 3000},
                {"op,shape,time_ms\nmatmul,64x64x64,0.25\n", RP_NUMBER_FP32, 250000},
                {"shape,time_us,op\n64x64x64,2,matmul\n", RP_NUMBER_FP32, 2000},
                {"op,shape,time_us,dtype\nmatmul,64x64x64,2,f16\n", RP_NUMBER_FP16, 2000}};
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_samples samples = {0};

        assert_ok(rp_samples_parse_csv(&samples, "t.csv", rows[i].text, "H200", true, &err), &err);
        assert_int_equal(samples.rows.n, 1);
        assert_int_equal(samples.rows.at[0].type, rows[i].type);
        assert_true(fabs(samples.rows.at[0].ns - rows[i].ns) < 1e-6);
        assert_true(samples.rows.at[0].flops == 2. * 64 * 64 * 64);
        rp_samples_release(&samples);
    }
}

static void rows_of_a_table_are_merged(void **state)
{
    struct rp_samples samples = {0};

    UNUSED_STATE(state);
    assert_int_equal(rp_samples_parse_csv(&samples, "t.csv",
                                          "shape,op,dtype,kernel_us,device\n"
                                          "64x64x64,matmul,f32,3,NVIDIA H200\n"
                                          "64x64x64,matmul,float32,5,H200\n"
                                          "64x64x64,matmul,f32,9,h200\n"
                                          "1024,gelu,bf16,2,H100\n",
                                          NULL, true, NULL),
                     RP_OK);
    assert_int_equal(rp_samples_merge(&samples, NULL), RP_OK);
    assert_int_equal(samples.rows.n, 2);
    assert_string_equal(samples.rows.at[0].device, "H100");
    assert_string_equal(samples.rows.at[1].device, "H200");
    assert_true(samples.rows.at[1].ns == 5000 && samples.rows.at[1].count == 3);
    assert_true(samples.rows.at[1].flops == 2. * 64 * 64 * 64);
    assert_true(samples.rows.at[0].bytes == 2. * 2 * 1024);
    rp_samples_release(&samples);
}

static void the_built_in_model_is_whole(void **state)
{
    struct rp_learned m;
    struct rp_learned_time t;
    struct rp_sample s = product_of(4096, 4096, 4096, RP_NUMBER_BF16, "H200");

    UNUSED_STATE(state);
    assert_int_equal(rp_learned_builtin(&m, NULL), RP_OK);
    assert_true(m.samples.rows.n > 1000 && m.fits.n > 10);
    assert_true(rp_learned_predict(&m, &s, &t));
    assert_true(t.ns > 139000 && t.ns < 250000);
    rp_learned_release(&m);
}

/* A step at 3, a ramp from 2 to 4, and a ramp over the base. */
static void curves_are_added_up(void **state)
{
    struct rp_curve_piece pieces[] = {{0, 3, 3, 5}, {1, 2, 4, 8}, {RP_FEATURES_MAX, -10, -8, 2}};
    struct rp_curve curve = {.bias = 1, .slope = 0.5};
    static const struct {
        float step, ramp;
        double base, want;
    } rows[] = {{3, 1, -10, 1 - 5 + 5 + 0 + 0},
                {2.5F, 2, -12, 1 - 6 + 0 + 0 + 0},
                {2.999F, 3, -9, 1 - 4.5 + 0 + 4 + 1},
                {9, 4, -8, 1 - 4 + 5 + 8 + 2},
                {2, 9, 0, 1 + 0 + 0 + 8 + 2}};
    struct rp_features x = {0};

    UNUSED_STATE(state);
    curve.pieces.at = pieces;
    curve.pieces.n = 3;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        x.x[0] = rows[i].step;
        x.x[1] = rows[i].ramp;
        assert_float_equal(rp_curve_at(&curve, &x, rows[i].base), rows[i].want, 1e-9);
    }
}

/* The least work: each operand read and each result written once. An operation of one operand
   reads one array, one of two reads two; rows are reduced with five operations an element. */
static void operators_have_their_work(void **state)
{
    static const char *const one[] = {"copy", "exp",  "gelu",      "relu",  "neg",
                                      "abs",  "tanh", "sigmoid",   "rsqrt", "square",
                                      "addc", "mulc", "aten::exp_"},
                             *const two[] = {"add", "sub", "mul", "div"};
    static const struct {
        const char *op, *shape;
        double flops, elements;
    } cases[] = {
        {"softmax", "10x20", 5 * 200, 2 * 200},
        {"layernorm", "10x20", 5 * 200, 2 * 200},
        {"layer_norm", "10x20", 5 * 200, 2 * 200},
        {"sum", "10x20", 5 * 200, 200},
        {"matmul", "3x5x7", 2 * 105, 15 + 35 + 21},
        {"mm", "3x5x7", 2 * 105, 15 + 35 + 21},
        {"linear", "3x5x7", 2 * 105, 15 + 35 + 21},
        {"bmm", "2x3x5x7", 4 * 105, 2 * (15 + 35 + 21)},
        {"conv2d", "2x3x9x11x4x3x2", 2. * 2 * 5 * 6 * 4 * 3 * 9, 2 * 3 * 99 + 4 * 27 + 2 * 4 * 30},
        {"sdpa", "2x3x5x7", 4. * 2 * 3 * 25 * 7, 4 * 210},
        {"sdpa_causal", "2x3x5x7", 2. * 2 * 3 * 25 * 7, 4 * 210},
    };
    enum { ONE = sizeof one / sizeof *one, TWO = sizeof two / sizeof *two };
    enum { N = sizeof cases / sizeof *cases };

    UNUSED_STATE(state);
    for (size_t i = 0; i < N + ONE + TWO; i++) {
        bool listed = i < N, second = i >= N + ONE;
        struct rp_sample s = {.op = listed   ? cases[i].op
                                    : second ? two[i - N - ONE]
                                             : one[i - N],
                              .type = RP_NUMBER_FP32,
                              .flops = NAN,
                              .bytes = NAN};
        const char *shape = listed ? cases[i].shape : "6x7";
        struct rp_err err = RP_ERR_INIT;

        assert_ok(rp_sample_shape_parse(shape, strlen(shape), &s, &err), &err);
        assert_ok(rp_sample_complete(&s, &err), &err);
        if (s.flops != (listed ? cases[i].flops : 42) || s.bytes != 4 * (listed ? cases[i].elements
                                                                         : second ? 3 * 42
                                                                                  : 2 * 42))
            fail_msg("%s: %g FLOPs, %g bytes", s.op, s.flops, s.bytes);
    }
}

/* ------------------------------------------------------------------ numbers that decide */

static double upper(const struct rp_learned *m, struct rp_sample s)
{
    struct rp_learned_time t;

    assert_true(rp_learned_predict(m, &s, &t));
    return t.high_ns / t.ns;
}

static struct rp_sample elements_of(const char *op, double n, uint8_t type, const char *device)
{
    struct rp_sample s = {.op = op, .device = device, .type = type, .ndims = 1, .dim = {n}};

    s.flops = s.bytes = s.ns = NAN;
    assert_int_equal(rp_sample_complete(&s, NULL), RP_OK);
    return s;
}

/* As far as the errors of what was left out were measured to go (docs/cli/model.md). */
static void doubts_are_as_wide_as_the_errors(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    learn(&m, &samples, false);
    assert_float_equal(upper(&m, product_of(512, 512, 1024, RP_NUMBER_BF16, "H200")), 1.03, 1e-6);
    assert_float_equal(upper(&m, product_of(512, 512, 1024, RP_NUMBER_FP16, "H200")), 1.35, 1e-6);
    assert_float_equal(upper(&m, product_of(512, 512, 1024, RP_NUMBER_FP64, "H200")), 1.8, 1e-6);
    assert_float_equal(upper(&m, product_of(512, 512, 1024, RP_NUMBER_BF16, "A100")), 1.5, 1e-6);
    assert_float_equal(upper(&m, elements_of("gelu", 1e6, RP_NUMBER_BF16, "H200")), 3, 1e-6);
    for (size_t i = 0; i < samples.rows.n; i++)
        samples.rows.at[i].op = "linear";
    rp_learned_release(&m);
    learn(&m, &samples, false);
    assert_float_equal(upper(&m, product_of(512, 512, 1024, RP_NUMBER_BF16, "H200")), 1.7, 1e-6);
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

/* Where nothing was measured: 2 us, and 60 % of the arithmetic or 75 % of the bandwidth. */
static void peaks_are_not_reached(void **state)
{
    struct rp_sample memory = elements_of("gelu", 1e8, RP_NUMBER_BF16, "H200"),
                     compute = product_of(4096, 4096, 4096, RP_NUMBER_BF16, "H200"),
                     little = elements_of("gelu", 10, RP_NUMBER_BF16, "H200");
    struct rp_learned m = {0};
    struct rp_learned_time t;
    struct rp_features x;

    UNUSED_STATE(state);
    rp_features_of(&memory, RP_OP_ELEMENTS, &x);
    assert_true(rp_learned_predict(&m, &memory, &t));
    assert_float_equal(t.ns / (2e3 + x.memory_s / 0.75 * 1e9), 1, 1e-6);
    rp_features_of(&compute, RP_OP_MATMUL, &x);
    assert_true(rp_learned_predict(&m, &compute, &t));
    assert_float_equal(t.ns / (2e3 + x.compute_s / 0.6 * 1e9), 1, 1e-6);
    assert_true(rp_learned_predict(&m, &little, &t));
    assert_float_equal(t.ns / 2e3, 1, 0.01);
    rp_learned_release(&m);
}

/* A format with simpler units reaches 75 % of their peak, one with faster units 60 %. */
static void other_formats_reach_their_part_of_the_peak(void **state)
{
    static const uint8_t types[] = {RP_NUMBER_FP32, RP_NUMBER_BF16};
    static const double reach[] = {0.75, 0.6};

    UNUSED_STATE(state);
    for (int wanted = 0; wanted < 2; wanted++) {
        struct rp_sample s = product_of(16384, 16384, 16384, types[wanted], "H200");
        struct rp_samples samples = {0};
        struct rp_learned m;
        struct rp_learned_time t;
        struct rp_features x;
        size_t n = 0;

        plant(&samples, "H200", 0);
        for (size_t i = 0; i < samples.rows.n; i++)
            if (samples.rows.at[i].type != types[wanted])
                samples.rows.at[n++] = samples.rows.at[i];
        samples.rows.n = n;
        learn(&m, &samples, false);
        rp_features_of(&s, RP_OP_MATMUL, &x);
        assert_true(rp_learned_predict(&m, &s, &t));
        assert_float_equal(t.ns / 1e9 / (x.compute_s / reach[wanted]), 1, 0.04);
        rp_learned_release(&m);
        rp_samples_release(&samples);
    }
}

/* Formats differ as short kernels do up to 5 us, as long ones do from 50 us on. */
static void formats_differ_by_length(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_learned_time t, as;
    size_t n = 0;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    for (size_t i = 0; i < samples.rows.n; i++)
        if (samples.rows.at[i].type == RP_NUMBER_FP32)
            samples.rows.at[n++] = samples.rows.at[i];
    samples.rows.n = n;
    learn(&m, &samples, false);
    for (double size = 64; size < 5000; size *= 1.5) {
        struct rp_sample s = product_of(size, size, size, RP_NUMBER_FP64, "H200");
        double part;

        m.transfers.n = 0;
        assert_true(rp_learned_predict(&m, &s, &t));
        assert_int_equal(rp_vec_push(&m.transfers,
                                     ((struct rp_format_gap){RP_OP_MATMUL, RP_NUMBER_FP32,
                                                             RP_NUMBER_FP64, log(2), log(8)}),
                                     NULL),
                         RP_OK);
        assert_true(rp_learned_predict(&m, &s, &as));
        part = fmin(fmax(log(t.ns / 5e3) / log(10), 0), 1);
        assert_float_equal(log(as.ns / t.ns), log(2) + part * log(4), 1e-6);
    }
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

/* Eight rows in another format say how it differs; of seven only the peaks do. */
static void formats_differ_by_eight_rows(void **state)
{
    UNUSED_STATE(state);
    for (size_t rows = 7; rows <= 8; rows++) {
        struct rp_samples samples = {0};
        struct rp_learned m;
        size_t n = 0, second = 0;

        plant(&samples, "H200", 0);
        for (size_t i = 0; i < samples.rows.n; i++)
            if (samples.rows.at[i].type == RP_NUMBER_FP32 || second++ < rows)
                samples.rows.at[n++] = samples.rows.at[i];
        samples.rows.n = n;
        learn(&m, &samples, false);
        n = 0;
        for (size_t i = 0; i < m.transfers.n; i++)
            n += m.transfers.at[i].to == RP_NUMBER_BF16;
        assert_int_equal(n, rows == 8);
        rp_learned_release(&m);
        rp_samples_release(&samples);
    }
}

/* Above the largest time by a factor: its fourth root wider, at most four times; assumed from four
   times on. */
static void far_away_intervals_are_wider(void **state)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    const struct rp_fit *fit;

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    learn(&m, &samples, true);
    fit = &m.fits.at[0];
    for (double n = 4096; n < 6e7; n *= 1.02) {
        struct rp_sample s = product_of(4096, 4096, floor(n), RP_NUMBER_BF16, "H200");
        struct rp_learned_time t;
        struct rp_features x;
        double far;

        rp_features_of(&s, RP_OP_MATMUL, &x);
        assert_true(rp_learned_predict(&m, &s, &t));
        if (t.provenance == RP_MEASURED)
            continue;
        far = exp(rp_curve_base(rp_fit_curve(fit, &x, s.type), &x) -
                  rp_fit_curve(fit, &x, s.type)->high);
        far = fmax(far, 1);
        assert_int_equal(t.provenance, far > 4 ? RP_ASSUMED : RP_FITTED);
        assert_float_equal(log(t.high_ns / t.ns) - fit->error_high, fmin(log(far) / 4, log(4)),
                           1e-6);
    }
    rp_learned_release(&m);
    rp_samples_release(&samples);
}

static size_t fits_of(size_t rows)
{
    struct rp_samples samples = {0};
    struct rp_learned m;
    size_t n;

    plant(&samples, "H200", 0);
    samples.rows.n = rows;
    learn(&m, &samples, false);
    n = m.fits.n;
    rp_learned_release(&m);
    rp_samples_release(&samples);
    return n;
}

static void an_operator_needs_four_rows(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(fits_of(3), 0);
    assert_true(fits_of(4) > 0);
}

static void intervals_have_a_least_width(void **state)
{
    double none[4] = {0, 0, 0, 0};
    struct rp_samples samples = {0};
    struct rp_learned m;
    struct rp_fit fit = {0};

    UNUSED_STATE(state);
    plant(&samples, "H200", 0);
    learn(&m, &samples, false);
    assert_float_equal(m.fits.at[0].error_high, log(1.5), 1e-9);
    assert_float_equal(m.fits.at[0].error_low, -log(1.5), 1e-9);
    rp_learned_release(&m);
    rp_samples_release(&samples);
    rp_fit_interval(&fit, none, 4);
    assert_float_equal(fit.error_high, 0.02, 1e-9);
    assert_float_equal(fit.error_low, -0.02, 1e-9);
}

/* A tenth of the errors is below and above; that of n rows is 1 + 3 / (n + 1) times as wide. */
static void intervals_are_wider_for_few_rows(void **state)
{
    double errors[101];
    struct rp_fit fit = {0};

    UNUSED_STATE(state);
    for (int i = 0; i < 101; i++)
        errors[i] = (50 - i) * 0.01;
    rp_fit_interval(&fit, errors, 101);
    assert_float_equal(fit.error_low, -0.4 * (1 + 3. / 102), 1e-9);
    assert_float_equal(fit.error_high, 0.4 * (1 + 3. / 102), 1e-9);
    for (int i = 0; i < 11; i++)
        errors[i] = (5 - i) * 0.1;
    rp_fit_interval(&fit, errors, 11);
    assert_float_equal(fit.error_low, -0.4 * (1 + 3. / 12), 1e-9);
    assert_float_equal(fit.error_high, 0.4 * (1 + 3. / 12), 1e-9);
}

/* Fifteen rows of a format share a curve with others, sixteen have one. */
static void formats_with_enough_rows_have_a_curve(void **state)
{
    UNUSED_STATE(state);
    for (size_t rows = 15; rows <= 16; rows++) {
        struct rp_samples samples = {0};
        struct rp_learned m;

        plant(&samples, "H200", 0);
        samples.rows.n = rows;
        for (size_t i = 0; i < rows; i++) { /* all of them aligned */
            samples.rows.at[i] =
                product_of(64. * (double)(i + 1), 512, 512, RP_NUMBER_FP32, "H200");
            samples.rows.at[i].ns = planted_ns(&samples.rows.at[i]);
        }
        learn(&m, &samples, false);
        assert_int_equal(m.fits.at[0].curves.n, 1);
        assert_int_equal(m.fits.at[0].curves.at[0].type,
                         rows == 16 ? RP_NUMBER_FP32 : RP_NUMBER_NONE);
        rp_learned_release(&m);
        rp_samples_release(&samples);
    }
}

/* Rows with one size and one trait, whose times are given. */
struct made {
    struct rp_features x[64];
    const struct rp_features *at[64];
    uint8_t type[64];
    double y[64];
    struct rp_fit fit;
};

static void make(struct made *m, size_t n)
{
    struct rp_err err = RP_ERR_INIT;

    for (size_t i = 0; i < n; i++) {
        m->at[i] = &m->x[i];
        m->type[i] = RP_NUMBER_FP32;
    }
    assert_ok(rp_fit_curves_to(&m->fit, &(struct rp_fit_rows){n, m->at, m->type, m->y}, &err),
              &err);
}

static void made_release(struct made *m)
{
    for (size_t i = 0; i < m->fit.curves.n; i++)
        rp_vec_release(&m->fit.curves.at[i].pieces);
    rp_vec_release(&m->fit.curves);
}

/* A time that grows faster and faster bends in each of them. */
static void a_size_has_seven_pieces(void **state)
{
    struct made m = {0};
    size_t n = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 57; i++) {
        m.x[i] = (struct rp_features){.n = 1, .nsizes = 1, .compute_s = 1e-6, .memory_s = 0};
        m.x[i].x[0] = (float)i;
        m.y[i] = log(1e-6) + 0.001 * i * i;
    }
    make(&m, 57);
    for (size_t i = 0; i < m.fit.curves.at[0].pieces.n; i++)
        n += m.fit.curves.at[0].pieces.at[i].feature == 0;
    assert_int_equal(n, 7);
    made_release(&m);
}

/* Two rows of forty have a trait, and take e times as long: about half of that is the trait's. */
static void gains_of_few_rows_are_held_back(void **state)
{
    struct made m = {0};
    double gain = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 40; i++) {
        m.x[i] = (struct rp_features){.n = 1, .nsizes = 0, .compute_s = 1e-6};
        m.x[i].x[0] = i < 38 ? 0 : 1;
        m.y[i] = log(1e-6) + (i < 38 ? 0 : 1);
    }
    make(&m, 40);
    for (size_t i = 0; i < m.fit.curves.at[0].pieces.n; i++)
        gain += (double)m.fit.curves.at[0].pieces.at[i].gain;
    assert_float_equal(gain, 0.546, 0.005);
    made_release(&m);
}

/* One row in twenty takes three times as long, and the others take 4 % more or less than 2 us for
 * each microsecond at the peak. */
static void odd_rows_weigh_less(void **state)
{
    struct made m = {0};

    UNUSED_STATE(state);
    for (int i = 0; i < 40; i++) {
        m.x[i] = (struct rp_features){.n = 1, .nsizes = 1, .compute_s = 1e-6 * (1 + i)};
        m.x[i].x[0] = (float)log(1. + i);
        m.y[i] = log(2e-6 * (1 + i)) + (i % 3 ? 0.04 : -0.04) + (i % 20 == 7 ? log(3) : 0);
    }
    make(&m, 40);
    assert_float_equal(m.fit.curves.at[0].base[1], 2.0597, 0.0005);
    made_release(&m);
    m.fit = (struct rp_fit){0};
    make(&m, 40);
    assert_float_equal(m.fit.curves.at[0].bias + m.fit.curves.at[0].slope * log(1e-5), -11.5753,
                       0.0005);
    made_release(&m);
}

/* Four rows at distances 0, 1, 4 and 9 (squared), and a fifth that is further away: each counts by
   1 / (distance + 0.02). */
static void four_neighbours_count(void **state)
{
    static const double shift[] = {0.1, 0.2, 0.4, 0.8, 50};
    struct rp_curve curve = {.base = {1e-6, 0, 0, 0}, .slope = 1, .high = 100, .low = -100};
    struct rp_sample rows[5];
    struct rp_features features[5] = {{0}}, x = {0};
    struct rp_fit fit = {.first = 0, .end = 5, .kind = RP_OP_CONV};
    struct rp_learned m = {0};
    double sum = 0, weight = 0;

    UNUSED_STATE(state);
    for (int i = 0; i < 5; i++) {
        rows[i] = (struct rp_sample){.op = "conv2d", .device = "", .kind = RP_OP_CONV};
        rows[i].type = RP_NUMBER_FP32;
        rows[i].ns = 1e3 * exp(shift[i]);
        features[i].trait[0] = (float)i * 0.1F;
        if (i < 4) {
            sum += shift[i] / (0.01 * i * i + 0.02);
            weight += 1 / (0.01 * i * i + 0.02);
        }
    }
    fit.curves.at = &curve;
    fit.curves.n = 1;
    m.samples.rows.at = rows;
    m.samples.rows.n = 5;
    assert_int_equal(rp_learned_prepare(&m, NULL), RP_OK);
    memcpy(m.features.at, features, sizeof features);
    m.rows->state[0] = RP_ROWS_KNOWN;
    assert_float_equal(rp_neighbours_shift(&m, &fit, &x), sum / weight, 1e-4);
    m.samples.rows.n = m.fits.n = 0;
    m.samples.rows.at = NULL;
    rp_learned_release(&m);
}

int test_learn(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_times_are_found_again),
        cmocka_unit_test(what_peaks_do_not_explain_is_learned),
        cmocka_unit_test(larger_is_never_faster),
        cmocka_unit_test(convolutions_follow_their_neighbours),
        cmocka_unit_test(formats_differ_as_those_of_the_other_direction),
        cmocka_unit_test(curves_are_added_up),
        cmocka_unit_test(operators_have_their_work),
        cmocka_unit_test(intervals_cover_and_peaks_are_the_floor),
        cmocka_unit_test(far_away_is_said),
        cmocka_unit_test(provenance_says_what_it_rests_on),
        cmocka_unit_test(a_model_is_read_back_as_written),
        cmocka_unit_test(hostile_models_are_refused),
        cmocka_unit_test(gaps_of_a_file_are_taken),
        cmocka_unit_test(tables_say_what_is_wrong),
        cmocka_unit_test(columns_have_names),
        cmocka_unit_test(rows_of_a_table_are_merged),
        cmocka_unit_test(the_built_in_model_is_whole),
        cmocka_unit_test(doubts_are_as_wide_as_the_errors),
        cmocka_unit_test(peaks_are_not_reached),
        cmocka_unit_test(other_formats_reach_their_part_of_the_peak),
        cmocka_unit_test(formats_differ_by_length),
        cmocka_unit_test(formats_differ_by_eight_rows),
        cmocka_unit_test(far_away_intervals_are_wider),
        cmocka_unit_test(an_operator_needs_four_rows),
        cmocka_unit_test(intervals_have_a_least_width),
        cmocka_unit_test(intervals_are_wider_for_few_rows),
        cmocka_unit_test(formats_with_enough_rows_have_a_curve),
        cmocka_unit_test(a_size_has_seven_pieces),
        cmocka_unit_test(gains_of_few_rows_are_held_back),
        cmocka_unit_test(odd_rows_weigh_less),
        cmocka_unit_test(four_neighbours_count),
    };

    return cmocka_run_group_tests_name("learn", tests, NULL, NULL);
}
