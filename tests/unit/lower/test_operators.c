/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operator that is lowered, in small graphs with the values that TensorFlow computed
 * (tests/data/lower/corpus.txt, whose form is explained by tests/live/lower_ops.py, which writes
 * it): lowered, run on ref and on fast, and compared.
 */
#include "lower/inner.h"

#include "exec/engines.h"
#include "formats/textproto.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>

#define CORPUS   RP_SOURCE_DIR "/tests/data/lower/corpus.txt"
#define TENSORS  8
#define PROBLEMS 40 /* shown */

struct op_case {
    const char *name, *graph;
    const char *feeds[TENSORS], *fetches[TENSORS];
    struct rp_tensor *in[TENSORS], *want[TENSORS];
    bool known[TENSORS];
    size_t nin, nwant;
};

static char *read_corpus(void)
{
    FILE *file = fopen(CORPUS, "rb");
    char *text;
    long n;

    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    n = ftell(file);
    rewind(file);
    text = malloc((size_t)n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, file), n);
    text[n] = '\0';
    fclose(file);
    return text;
}

static void set_element(struct rp_tensor *t, size_t i, char **at)
{
    size_t half = t->unit / 2;
    struct rp_tensor part = *t;

    if (rp_elem_is_unsigned(t->elem)) {
        rp_tensor_set_integer(t, i, (int64_t)strtoull(*at, at, 10));
    } else if (rp_elem_is_signed(t->elem)) {
        rp_tensor_set_integer(t, i, strtoll(*at, at, 10));
    } else if (rp_elem_is_complex(t->elem)) {
        part.elem = t->elem == RP_ELEM_C64 ? RP_ELEM_F32 : RP_ELEM_F64;
        part.unit = half;
        rp_tensor_set(&part, 2 * i, strtod(*at, at));
        rp_tensor_set(&part, 2 * i + 1, strtod(*at, at));
    } else {
        rp_tensor_set(t, i, strtod(*at, at));
    }
}

/* "x:0 f32[2,2] 1 2 3 4"; the name ends where its blank was. */
static struct rp_tensor *read_tensor(char *line, const char **name)
{
    char *shape = strchr(line, ' ') + 1, *at = strchr(shape, '[');
    unsigned elem = rp_elem_find(shape, (size_t)(at - shape));
    struct rp_err err = RP_ERR_INIT;
    int64_t dims[RP_TF_RANK];
    struct rp_tensor *t;
    size_t rank = 0;

    shape[-1] = '\0';
    *name = line;
    for (at++; *at != ']'; at += *at == ',')
        dims[rank++] = strtoll(at, &at, 10);
    assert_ok(rp_tensor_new(elem, dims, rank, &t, &err), &err);
    at++;
    for (size_t i = 0; i < t->n; i++)
        set_element(t, i, &at);
    assert_int_equal(*at, '\0');
    return t;
}

/* The next case, which ends at an empty line; false after the last. */
static bool next_case(char **at, struct op_case *c)
{
    memset(c, 0, sizeof *c);
    for (char *line; (line = strsep(at, "\n"));) {
        if (!*line && c->graph)
            return true;
        if (!strncmp(line, "case ", 5)) {
            c->name = line + 5;
        } else if (!strncmp(line, "graph ", 6)) {
            c->graph = line + 6;
        } else if (!strncmp(line, "feed ", 5) || !strncmp(line, "known ", 6)) {
            assert_true(c->nin < TENSORS);
            c->known[c->nin] = *line == 'k';
            c->in[c->nin] = read_tensor(strchr(line, ' ') + 1, &c->feeds[c->nin]);
            c->nin++;
        } else if (!strncmp(line, "want ", 5)) {
            assert_true(c->nwant < TENSORS);
            c->want[c->nwant] = read_tensor(line + 5, &c->fetches[c->nwant]);
            c->nwant++;
        }
    }
    return c->graph;
}

static enum rp_code lower_case(const struct op_case *c, struct rp_proto_writer *wire,
                               struct rp_lower_computed *computed, struct rp_program **out,
                               struct rp_err *err)
{
    struct rp_lower_feed feeds[TENSORS];
    struct rp_bytes graph;

    assert_ok(rp_textproto_parse(&rp_schema_TF_GRAPH, c->graph, strlen(c->graph), NULL, wire, err),
              err);
    assert_ok(rp_proto_written(wire, &graph, err), err);
    for (size_t i = 0; i < c->nin; i++) {
        const struct rp_tensor *t = c->in[i];

        feeds[i] = (struct rp_lower_feed){.tensor = c->feeds[i],
                                          .value = {.elem = t->elem,
                                                    .rank = t->rank,
                                                    .n = t->n,
                                                    .data = c->known[i] ? t->data : NULL,
                                                    .nbytes = rp_tensor_bytes(t)}};
        memcpy(feeds[i].value.dims, t->dims, t->rank * sizeof *t->dims);
    }
    return rp_tf_lower(graph, feeds, c->nin, c->fetches, c->nwant, computed, out, err);
}

/* How far a computed number may be from TensorFlow's, relative to 1 plus its size. */
static double tolerance(unsigned elem)
{
    switch (elem) {
    case RP_ELEM_F32:
    case RP_ELEM_C64:
        return 4e-6;
    case RP_ELEM_F64:
    case RP_ELEM_C128:
        return 1e-12;
    case RP_ELEM_F16:
        return 2e-3;
    case RP_ELEM_BF16:
        return 1.6e-2;
    default:
        return 0;
    }
}

static bool numbers_agree(double got, double want, double within)
{
    return got == want || (isnan(got) && isnan(want)) ||
           fabs(got - want) <= within * (1 + fabs(want));
}

/* What is wrong with an output; "" if nothing is. */
static void compare_output(const struct rp_tensor *got, const struct rp_tensor *want, char *why,
                           size_t cap)
{
    char shapes[2][512];

    rp_tensor_shape_text(got, shapes[0], sizeof shapes[0]);
    rp_tensor_shape_text(want, shapes[1], sizeof shapes[1]);
    *why = '\0';
    if (strcmp(shapes[0], shapes[1]) != 0) {
        snprintf(why, cap, "%.60s instead of %.60s", shapes[0], shapes[1]);
        return;
    }
    for (size_t i = 0; i < want->n && !*why; i++) {
        bool whole = rp_elem_is_signed(want->elem) || rp_elem_is_unsigned(want->elem);
        double g = rp_tensor_number(got, i), w = rp_tensor_number(want, i);

        if (whole ? rp_tensor_bits(got, i) != rp_tensor_bits(want, i)
                  : !numbers_agree(g, w, tolerance(want->elem)) ||
                        !numbers_agree(rp_tensor_imaginary(got, i), rp_tensor_imaginary(want, i),
                                       tolerance(want->elem)))
            snprintf(why, cap, "element %zu of %.60s is %.9g instead of %.9g", i, shapes[1], g, w);
    }
}

static enum rp_code run_program(const struct op_case *c, const struct rp_program *p,
                                const struct rp_engine *engine, struct rp_tensor **got,
                                struct rp_err *err)
{
    struct rp_engine_program program = {.name = c->name, .format = "hlo-text", .program = p};
    struct rp_engine_options options = {.threads = 1};
    struct rp_executable *exe = NULL;
    enum rp_code code = engine->compile(NULL, &program, &options, &exe, err);

    if (code == RP_OK)
        code = engine->upload(exe, c->in, err);
    if (code == RP_OK)
        code = engine->run(exe, err);
    if (code == RP_OK)
        code = engine->fetch(exe, got, err);
    if (exe)
        engine->release(exe);
    return code;
}

static void run_case(const struct op_case *c, const struct rp_program *p,
                     const struct rp_engine *engine, char *why, size_t cap)
{
    struct rp_tensor *got[TENSORS] = {NULL};
    struct rp_err err = RP_ERR_INIT;

    *why = '\0';
    if (run_program(c, p, engine, got, &err) != RP_OK)
        snprintf(why, cap, "%.200s", err.text);
    for (size_t i = 0; i < c->nwant && !*why; i++)
        compare_output(got[i], c->want[i], why, cap);
    for (size_t i = 0; i < TENSORS; i++)
        rp_tensor_drop(got[i]);
}

/* Lowers and runs a case; whether it is right. */
static bool check_case(const struct op_case *c, bool show)
{
    static const struct rp_engine *const engines[] = {&rp_engine_ref, &rp_engine_fast};
    struct rp_proto_writer wire = {0};
    struct rp_err err = RP_ERR_INIT;
    struct rp_lower_computed computed = {.n = 0};
    struct rp_tensor *kept[TENSORS] = {NULL};
    struct rp_program *p = NULL;
    char why[512] = "";
    enum rp_code code;

    for (;;) { /* values that decide shapes come first */
        code = lower_case(c, &wire, &computed, &p, &err);
        if (code != RP_OK || !computed.wanted || computed.n == TENSORS)
            break;
        struct rp_tensor **t = &kept[computed.n];
        assert_ok(run_program(c, p, engines[0], t, &err), &err);
        computed.list[computed.n].value = computed.wanted;
        computed.list[computed.n++].of = (struct rp_tf_value){
            .elem = (*t)->elem, .rank = (*t)->rank, .n = (*t)->n, .data = (*t)->data};
        rp_program_free(p);
        rp_proto_writer_release(&wire);
        wire = (struct rp_proto_writer){0};
    }
    if (code != RP_OK)
        snprintf(why, sizeof why, "%.200s", err.text);
    for (size_t i = 0; i < 2 && !*why; i++)
        run_case(c, p, engines[i], why, sizeof why);
    if (*why && show)
        print_error("%s: %s\n", c->name, why);
    for (size_t i = 0; i < computed.n; i++)
        rp_tensor_drop(kept[i]);
    rp_program_free(p);
    rp_proto_writer_release(&wire);
    return !*why;
}

static void release_case(struct op_case *c)
{
    for (size_t i = 0; i < TENSORS; i++) {
        rp_tensor_drop(c->in[i]);
        rp_tensor_drop(c->want[i]);
    }
}

static void operators_compute_what_tensorflow_does(void **state)
{
    char *text = read_corpus(), *at = text;
    size_t n = 0, wrong = 0;
    struct op_case c;

    UNUSED_STATE(state);
    for (; next_case(&at, &c); n++) {
        wrong += !check_case(&c, wrong < PROBLEMS);
        release_case(&c);
    }
    free(text);
    assert_true(n > 1000);
    if (wrong)
        fail_msg("%zu of %zu graphs are wrong", wrong, n);
}

/* Also as TensorFlow's oneDNN version names it. */
static bool corpus_has(const char *text, const char *op)
{
    static const char *const prefixes[] = {"", "_Mkl", "_MklNative"};
    char word[128];

    for (size_t i = 0; i < 3; i++) {
        snprintf(word, sizeof word, "op: \"%s%s\"", prefixes[i], op);
        if (strstr(text, word))
            return true;
    }
    return false;
}

static void every_operator_has_a_case(void **state)
{
    static const char *const others[] = {"Const", "PartitionedCall", "StatefulPartitionedCall"};
    char *text = read_corpus();
    size_t missing = 0;

    UNUSED_STATE(state);
    for (size_t t = 0; rp_lower_rows[t]; t++)
        for (const struct rp_lower_row *row = rp_lower_rows[t]; row->op; row++)
            if (!corpus_has(text, row->op)) {
                print_error("no case has the operator %s\n", row->op);
                missing++;
            }
    for (size_t i = 0; i < 3; i++)
        assert_true(corpus_has(text, others[i]));
    free(text);
    assert_int_equal(missing, 0);
}

/* The row of an operator; NULL where it has none. */
static const struct rp_lower_row *row_of(const char *op)
{
    for (size_t t = 0; rp_lower_rows[t]; t++)
        for (const struct rp_lower_row *row = rp_lower_rows[t]; row->op; row++)
            if (!strcmp(row->op, op))
                return row;
    return NULL;
}

/* What TensorFlow requires is required here, so that no function reads an input that is absent, and
   no more. Those of Grappler, and one that is made by its own passes, are in no list of TensorFlow;
   a loop without variables would never end. */
static void operators_need_their_inputs(void **state)
{
    static const struct {
        const char *op;
        unsigned least;
    } own[] = {{"FusedMatMul", 2},          {"FusedConv2D", 2}, {"FusedDepthwiseConv2dNative", 2},
               {"TensorListFromTensor", 2}, {"While", 1},       {"StatelessWhile", 1}};
    char *text = read_corpus(), op[128];
    size_t n = 0, wrong = 0;
    unsigned least;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_int_equal(row_of(own[i].op)->min, own[i].least);
    for (const char *at = text; (at = strstr(at, "\ninputs ")); at++)
        if (sscanf(at, " inputs %127s %u", op, &least) == 2 && row_of(op)) {
            if (row_of(op)->min != least && !strstr(op, "While")) {
                print_error("%s needs %u inputs, not %u\n", op, least, row_of(op)->min);
                wrong++;
            }
            n++;
        }
    free(text);
    assert_true(n > 190);
    assert_int_equal(wrong, 0);
}

int test_operators(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_has_a_case),
        cmocka_unit_test(operators_need_their_inputs),
        cmocka_unit_test(operators_compute_what_tensorflow_does),
    };

    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
