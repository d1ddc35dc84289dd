/* SPDX-License-Identifier: Apache-2.0 */
/* `memory`: categories, holders, growth and calls on planted events. */
#include "ask_fixture.h"
#include "formats/formats.h"

#include <stdlib.h>

extern const struct rp_question_row rp_ask_memory;

/* A profile in the making: JSON in a buffer. */
struct profile {
    char text[32768];
    size_t n;
    int64_t total;
};

static void add_text(struct profile *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_text(struct profile *p, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    p->n += (size_t)vsnprintf(p->text + p->n, sizeof p->text - p->n, fmt, args);
    va_end(args);
    assert_true(p->n < sizeof p->text);
}

static void begin_profile(struct profile *p, int64_t before)
{
    p->n = 0;
    p->total = before;
    add_text(p, "{\"schemaVersion\":1,\"profile_memory\":1,\"traceEvents\":[");
}

static void add_span(struct profile *p, const char *cat, const char *name, int at, int dur, int tid,
                     const char *args)
{
    add_text(p,
             "%s{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%d,"
             "\"dur\":%d,\"args\":{%s}}",
             p->text[p->n - 1] == '[' ? "" : ",", cat, name, tid, at, dur, args);
}

static void add_memory(struct profile *p, int at, int tid, int addr, int64_t bytes)
{
    p->total += bytes;
    add_text(p,
             "%s{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\","
             "\"pid\":1,\"tid\":%d,\"ts\":%d,\"args\":{\"Addr\":%d,\"Bytes\":%lld,"
             "\"Total Allocated\":%lld,\"Total Reserved\":%d,\"Device Id\":0,\"Device Type\":1}}",
             p->text[p->n - 1] == '[' ? "" : ",", tid, at, addr, (long long)bytes,
             (long long)p->total, 4000);
}

static struct rp_result *ask_profile(struct profile *p, struct rp_import *import)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    add_text(p, "]}");
    assert_ok(rp_input_open_memory("profile.json", p->text, p->n, NULL, &in, &err), &err);
    assert_ok(rp_format_read(in, NULL, import, &err), &err);
    return ASK_TRACES(memory, &import->trace, 1, {"limit", "0"});
}

static int64_t value_of(const struct rp_result *result, const char *path)
{
    int64_t value = -12345;

    if (!rp_result_i64(result, path, &value))
        fail_msg("no '%s'", path);
    return value;
}

static int64_t bytes_of(const struct rp_result *result, const char *category)
{
    struct rp_rows rows;
    const char *name;
    int64_t bytes;

    assert_true(rp_result_rows(result, "devices.0.categories", &rows));
    while (rp_rows_next(&rows))
        if (rp_row_text(&rows.row, "category", &name) && !strcmp(name, category) &&
            rp_row_i64(&rows.row, "bytes", &bytes))
            return bytes;
    return 0;
}

/*
 * One step of 1000: forward makes an activation (100), a temporary (30) and copies an input (7);
 * backward makes a gradient (50) and a temporary (40), frees the activation; the optimizer makes
 * its state (60) and a temporary (5). Then zero_grad frees the gradient. Address = 16 * its number.
 */
static void add_step(struct profile *p, int at, bool first)
{
    add_span(p, "user_annotation", first ? "ProfilerStep#1" : "ProfilerStep#2", at, 990, 1, "");
    add_span(p, "cpu_op", "aten::to", at + 10, 10, 1, "");
    add_memory(p, at + 15, 1, 16 + at, 7);
    add_span(p, "python_function", "nn.Module: Net_0", at + 100, 200, 1, "");
    add_span(p, "python_function", "/home/me/model.py(42): forward", at + 101, 198, 1, "");
    add_span(p, "python_function", "nn.Module: Linear_0", at + 102, 90, 1, "");
    add_span(p, "cpu_op", "aten::linear", at + 110, 50, 1, "\"Sequence number\":5");
    add_span(p, "cpu_op", "aten::empty", at + 115, 10, 1, "");
    add_memory(p, at + 120, 1, 32 + at, 100);
    add_memory(p, at + 130, 1, 48 + at, 30);
    add_memory(p, at + 150, 1, 48 + at, -30);
    add_span(p, "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", at + 400, 100, 2,
             "\"Sequence number\":5,\"Fwd thread id\":1");
    add_span(p, "cpu_op", "aten::mm", at + 405, 90, 2, "");
    add_memory(p, at + 410, 2, 64 + at, 50);
    add_memory(p, at + 420, 2, 80 + at, 40);
    add_memory(p, at + 430, 2, 80 + at, -40);
    add_memory(p, at + 440, 2, 32 + at, -100);
    add_span(p, "user_annotation", "Optimizer.step#Adam.step", at + 600, 100, 1, "");
    if (first)
        add_memory(p, at + 610, 1, 96 + at, 60);
    add_memory(p, at + 620, 1, 112 + at, 5);
    add_memory(p, at + 630, 1, 112 + at, -5);
    add_span(p, "user_annotation", "Optimizer.zero_grad#Adam.zero_grad", at + 800, 100, 1, "");
    add_memory(p, at + 810, 1, 64 + at, -50);
    add_memory(p, at + 950, 1, 16 + at, -7);
}

static void tells_categories_by_phases(void **state)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    const char *text;

    UNUSED_STATE(state);
    begin_profile(p, 1000);
    add_step(p, 0, true);
    add_step(p, 1000, false);
    result = ask_profile(p, &import);
    /* the peak is in backward of the second step: before, state, input, activation, gradient, and
       the temporary of backward */
    assert_int_equal(value_of(result, "devices.0.peak_bytes"), 1000 + 60 + 7 + 100 + 50 + 40);
    assert_int_equal(value_of(result, "devices.0.peak_step"), 2);
    assert_true(rp_result_text(result, "devices.0.peak_phase", &text));
    assert_string_equal(text, "backward");
    assert_int_equal(bytes_of(result, "before recording"), 1000);
    assert_int_equal(bytes_of(result, "optimizer state"), 60);
    assert_int_equal(bytes_of(result, "inputs"), 7);
    assert_int_equal(bytes_of(result, "activations"), 100);
    assert_int_equal(bytes_of(result, "gradients"), 50);
    assert_int_equal(bytes_of(result, "temporaries"), 40);
    assert_int_equal(bytes_of(result, "unknown"), 0);
    assert_int_equal(value_of(result, "devices.0.begin_bytes"), 1000);
    assert_int_equal(value_of(result, "devices.0.end_bytes"), 1060);
    assert_int_equal(value_of(result, "devices.0.slack_bytes"), 4000 - 1257);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

static void names_operator_module_and_line(void **state)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    struct rp_rows rows;
    const char *category, *op, *module, *line;
    int found = 0;

    UNUSED_STATE(state);
    begin_profile(p, 0);
    add_step(p, 0, true);
    result = ask_profile(p, &import);
    assert_true(rp_result_rows(result, "devices.0.holders", &rows));
    while (rp_rows_next(&rows)) {
        if (!rp_row_text(&rows.row, "category", &category) || !rp_row_text(&rows.row, "op", &op) ||
            !rp_row_text(&rows.row, "module", &module))
            continue;
        assert_string_equal(module, "Net/Linear");
        assert_true(rp_row_text(&rows.row, "line", &line));
        assert_string_equal(line, "/home/me/model.py(42): forward");
        if (!strcmp(category, "activations"))
            assert_string_equal(op, "aten::linear"); /* not aten::empty, which only allocates */
        else /* gradient and temporary: of the forward operator with the same number */
            assert_string_equal(op, "aten::mm");
        found++;
    }
    assert_int_equal(found, 3);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

/* Two steps that allocate 100 bytes and free them, beside `before`; in the first one `more`. */
static struct rp_result *ask_peak(struct profile *p, struct rp_import *import, int64_t before,
                                  int64_t more)
{
    begin_profile(p, before);
    for (int i = 0; i < 2; i++) {
        add_span(p, "user_annotation", i ? "ProfilerStep#2" : "ProfilerStep#1", 1000 * i, 990, 1,
                 "");
        add_memory(p, 1000 * i + 10, 1, 16 + 32 * i, 100 + (i ? 0 : more));
        add_memory(p, 1000 * i + 20, 1, 16 + 32 * i, -100 - (i ? 0 : more));
    }
    return ask_profile(p, import);
}

/* The first of equal peaks counts. Where everything is freed, the beginning is the peak. */
static void the_peak_is_the_first(void **state)
{
    static const int64_t more[] = {0, 1, -1}, step[] = {1, 1, 2};
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    int64_t number;

    UNUSED_STATE(state);
    for (int i = 0; i < 3; i++) {
        result = ask_peak(p, &import, 1000, more[i]);
        assert_int_equal(value_of(result, "devices.0.peak_step"), step[i]);
        assert_int_equal(value_of(result, "devices.0.peak_bytes"), i == 1 ? 1101 : 1100);
        assert_int_equal(value_of(result, "devices.0.allocations"), 2);
        assert_int_equal(value_of(result, "devices.0.frees"), 2);
        assert_int_equal(value_of(result, "devices.0.allocated_bytes"), 200 + more[i]);
        assert_int_equal(value_of(result, "devices.0.peak_reserved_bytes"), 4000);
        rp_result_free(result);
        rp_import_release(&import);
    }
    begin_profile(p, 500);
    add_memory(p, 10, 1, 16, -100);
    add_memory(p, 20, 1, 32, 100);
    result = ask_profile(p, &import);
    assert_int_equal(value_of(result, "devices.0.peak_bytes"), 500);
    assert_false(rp_result_i64(result, "devices.0.peak_step", &number));
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

/* Every step keeps 10 bytes more. */
static void finds_growth(void **state)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    struct rp_rows rows;
    const char *text;
    bool said = false;
    char name[40];

    UNUSED_STATE(state);
    begin_profile(p, 0);
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "ProfilerStep#%d", i);
        add_span(p, "user_annotation", name, i * 100, 90, 1, "");
        add_span(p, "python_function", "train.py(7): step", i * 100 + 5, 80, 1, "");
        add_span(p, "cpu_op", "aten::add", i * 100 + 10, 50, 1, "");
        add_memory(p, i * 100 + 20, 1, 16 + i * 32, 10);
        add_memory(p, i * 100 + 21, 1, 32 + i * 32, 5);
        add_memory(p, i * 100 + 30, 1, 32 + i * 32, -5);
    }
    result = ask_profile(p, &import);
    assert_int_equal(value_of(result, "devices.0.growth_bytes"), 10);
    assert_int_equal(value_of(result, "devices.0.steps.3.growth_bytes"), 10);
    assert_int_equal(value_of(result, "devices.0.churn.0.allocations"), 10);
    assert_true(rp_result_rows(result, "devices.0.findings", &rows));
    while (rp_rows_next(&rows))
        said = said || (rp_row_text(&rows.row, "", &text) && strstr(text, "at least 10 B more") &&
                        strstr(text, "train.py(7): step"));
    assert_true(said);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

static void counts_calls_of_the_driver(void **state)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    struct rp_rows rows;
    const char *text;
    bool said = false;

    UNUSED_STATE(state);
    begin_profile(p, 0);
    add_span(p, "cuda_runtime", "cudaFree", 10, 30, 1, "");
    add_span(p, "cuda_runtime", "cudaMalloc", 50, 20, 1, "");
    add_span(p, "cuda_runtime", "cudaMalloc", 80, 25, 1, "");
    add_span(p, "cuda_runtime", "cudaMemGetInfo", 120, 25, 1, "");
    add_memory(p, 150, 1, 16, 512);
    result = ask_profile(p, &import);
    assert_int_equal(value_of(result, "devices.0.calls.0.count"), 2);
    assert_int_equal(value_of(result, "devices.0.calls.0.total_ns"), 45000);
    assert_int_equal(value_of(result, "devices.0.calls.0.max_ns"), 25000);
    assert_true(rp_result_rows(result, "devices.0.findings", &rows));
    while (rp_rows_next(&rows))
        said = said || (rp_row_text(&rows.row, "", &text) && strstr(text, "tried again"));
    assert_true(said);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

/* 2021: no addresses and no totals. The last allocation of the size is freed; what is freed and was
   not allocated was there before. */
static void pairs_by_size_without_addresses(void **state)
{
    static const int64_t bytes[] = {8, 4, 8, -8, -4, -2};
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;

    UNUSED_STATE(state);
    begin_profile(p, 0);
    for (int i = 0; i < 6; i++)
        add_text(p,
                 "%s{\"ph\":\"i\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,"
                 "\"args\":{\"Device Type\":1,\"Device Id\":0,\"Bytes\":%lld}}",
                 i ? "," : "", 10 + i, (long long)bytes[i]);
    result = ask_profile(p, &import);
    assert_int_equal(value_of(result, "devices.0.peak_bytes"), 22);
    assert_int_equal(value_of(result, "devices.0.end_bytes"), 8);
    assert_int_equal(value_of(result, "devices.0.buffers"), 4);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

/* Inference: each of four layers keeps 10 bytes and frees 5. */
static void finds_what_layers_keep(void **state)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    struct rp_rows rows;
    const char *text;
    bool said = false;
    char name[40];

    UNUSED_STATE(state);
    begin_profile(p, 20);
    add_span(p, "python_function", "nn.Module: Net_0", 0, 500, 1, "");
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "nn.Module: Layer_%d", i);
        add_span(p, "python_function", name, i * 100 + 5, 80, 1, "");
        add_span(p, "cpu_op", "aten::add", i * 100 + 10, 50, 1, "");
        add_memory(p, i * 100 + 20, 1, 16 + i * 32, 10);
        add_memory(p, i * 100 + 21, 1, 32 + i * 32, 5);
        add_memory(p, i * 100 + 30, 1, 32 + i * 32, -5);
    }
    for (int i = 0; i < 4; i++)
        add_memory(p, 600 + i, 1, 16 + i * 32, -10);
    result = ask_profile(p, &import);
    assert_int_equal(value_of(result, "devices.0.peak_bytes"), 20 + 40 + 5);
    assert_int_equal(bytes_of(result, "temporaries"), 45);
    assert_true(rp_result_rows(result, "devices.0.findings", &rows));
    while (rp_rows_next(&rows))
        said = said || (rp_row_text(&rows.row, "", &text) &&
                        strstr(text, "each of the 4 modules Net/Layer keeps buffers"));
    assert_true(said);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

/* A byte is an allocation, as are many. */
static void small_allocations_count(void **state)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;

    UNUSED_STATE(state);
    begin_profile(p, 500);
    add_memory(p, 10, 1, 16, 1);
    add_memory(p, 20, 1, 32, 100);
    add_memory(p, 30, 1, 16, -1);
    result = ask_profile(p, &import);
    assert_int_equal(value_of(result, "devices.0.allocations"), 2);
    assert_int_equal(value_of(result, "devices.0.frees"), 1);
    assert_int_equal(value_of(result, "devices.0.allocated_bytes"), 101);
    assert_int_equal(value_of(result, "devices.0.peak_bytes"), 601);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

int test_memory(void);
/* ------------------------------------------------------------------ edges */

/* Whether one of the findings of the first device contains the text. */
static bool is_found(const struct rp_result *result, const char *text)
{
    struct rp_rows rows;
    const char *finding;

    assert_true(rp_result_rows(result, "devices.0.findings", &rows));
    while (rp_rows_next(&rows))
        if (rp_row_text(&rows.row, "", &finding) && strstr(finding, text))
            return true;
    return false;
}

/* One step that copies an input, beside what is there before; what the device has, or 0. */
static bool is_found_of(int64_t before, int64_t input, int64_t device, const char *text)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    bool found;

    begin_profile(p, before);
    if (device) {
        p->n = 0;
        add_text(p,
                 "{\"schemaVersion\":1,\"profile_memory\":1,\"deviceProperties\":[{\"id\":0,"
                 "\"name\":\"X\",\"totalGlobalMem\":%lld}],\"traceEvents\":[",
                 (long long)device);
    }
    add_span(p, "user_annotation", "ProfilerStep#1", 0, 990, 1, "");
    add_span(p, "cpu_op", "aten::to", 10, 10, 1, "");
    add_memory(p, 15, 1, 16, input);
    result = ask_profile(p, &import);
    found = is_found(result, text);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
    return found;
}

static void parts_of_the_peak_are_named(void **state)
{
    UNUSED_STATE(state);
    assert_true(is_found_of(9450, 550, 0, "5.5 % input"));
    assert_false(is_found_of(9550, 450, 0, "input"));
    assert_true(is_found_of(550, 9450, 0, "were allocated before the recording began"));
    assert_false(is_found_of(450, 9550, 0, "were allocated before the recording began"));
}

static void little_memory_is_left(void **state)
{
    UNUSED_STATE(state);
    /* 4,000 bytes are reserved */
    assert_true(is_found_of(1000, 1000, 4396, "little is left"));  /* 91 % */
    assert_false(is_found_of(1000, 1000, 4494, "little is left")); /* 89 % */
}

/* Three steps that each leave so many bytes, beside a million. */
static bool grows(int64_t bytes)
{
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    bool found;

    begin_profile(p, 1000000);
    for (int i = 0; i < 3; i++) {
        char name[32];

        snprintf(name, sizeof name, "ProfilerStep#%d", i + 1);
        add_span(p, "user_annotation", name, i * 1000, 990, 1, "");
        add_span(p, "cpu_op", "aten::mm", i * 1000 + 10, 100, 1, "");
        add_memory(p, i * 1000 + 15, 1, 16 * (i + 1), bytes);
    }
    result = ask_profile(p, &import);
    assert_int_equal(value_of(result, "devices.0.growth_bytes"), bytes);
    found = is_found(result, "every step ends with at least");
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
    return found;
}

static void growth_has_an_edge(void **state)
{
    UNUSED_STATE(state);
    assert_true(grows(110));
    assert_false(grows(90));
}

/* A path of classes is cut before the one that would make it longer than 511 bytes. */
static void long_paths_of_modules_are_cut(void **state)
{
    static const int lengths[] = {200, 200, 110};
    struct profile *p = malloc(sizeof *p);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_result *result;
    char name[256], want[512];
    const char *text;

    UNUSED_STATE(state);
    begin_profile(p, 0);
    add_span(p, "user_annotation", "ProfilerStep#1", 0, 990, 1, "");
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "nn.Module: %0*d_0", lengths[i], 0);
        memset(name + 11, 'A' + i, (size_t)lengths[i]);
        add_span(p, "python_function", name, 10 + i, 900 - 2 * i, 1, "");
    }
    add_span(p, "cpu_op", "aten::mm", 100, 50, 1, "");
    add_memory(p, 110, 1, 16, 1000);
    result = ask_profile(p, &import);
    memset(want, 'A', 200);
    want[200] = '/';
    memset(want + 201, 'B', 200);
    want[401] = '\0';
    assert_true(rp_result_text(result, "devices.0.holders.0.module", &text));
    assert_string_equal(text, want);
    rp_result_free(result);
    rp_import_release(&import);
    free(p);
}

int test_memory(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_allocations_count),
        cmocka_unit_test(tells_categories_by_phases),
        cmocka_unit_test(names_operator_module_and_line),
        cmocka_unit_test(the_peak_is_the_first),
        cmocka_unit_test(finds_growth),
        cmocka_unit_test(counts_calls_of_the_driver),
        cmocka_unit_test(pairs_by_size_without_addresses),
        cmocka_unit_test(finds_what_layers_keep),
        cmocka_unit_test(parts_of_the_peak_are_named),
        cmocka_unit_test(little_memory_is_left),
        cmocka_unit_test(growth_has_an_edge),
        cmocka_unit_test(long_paths_of_modules_are_cut),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
