/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs whose declared shapes and types do not follow from each other: a clean error each, and
 * no byte read or written outside of an array, which sanitized builds find.
 */
#include "exec_fixture.h"
#include "mutate.h"
#include "typed_programs.h"

static const struct rp_engine *const engines[] = {&rp_engine_ref, &rp_engine_fast};

#define EACH(i, list) for (size_t i = 0; i < sizeof(list) / sizeof *(list); i++)

static void refused(const struct typed_program *t, const struct rp_engine *engine)
{
    char text[4096];
    const char *at = strstr(t->text, t->from);
    struct rp_err err = RP_ERR_INIT;
    double values[64];
    size_t n;

    if (exec_run(t->text, engine, 1, values, &n, &err) != RP_OK)
        fail_msg("on %s: %s in\n%s", engine->name, err.text, t->text);
    if (!at)
        fail_msg("no '%s' in\n%s", t->from, t->text);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - t->text), t->text, t->to,
             at + strlen(t->from));
    if (exec_run(text, engine, 1, values, &n, &err) == RP_OK)
        fail_msg("on %s: not refused:\n%s", engine->name, text);
    if (!strstr(err.text, t->says))
        fail_msg("on %s: '%s' does not say '%s' in\n%s", engine->name, err.text, t->says, text);
}

static void one_each(void **state)
{
    UNUSED_STATE(state);
    EACH(i, typed_programs)
    EACH(k, engines)
    refused(&typed_programs[i], engines[k]);
}

/* Runs it, whatever comes of it. */
static void run_changed(struct rp_program *p, const struct rp_engine *engine)
{
    struct rp_engine_options options = {.threads = 1, .partitions = 1};
    struct rp_engine_program program = {.program = p, .name = "changed", .format = "hlo-text"};
    struct rp_tensor *outputs[16] = {NULL};
    struct rp_executable *exe = NULL;

    if (rp_program_validate(p, NULL) == RP_OK &&
        engine->compile(NULL, &program, &options, &exe, NULL) == RP_OK && exe->noutputs <= 16 &&
        engine->upload(exe, outputs, NULL) == RP_OK && engine->run(exe, NULL) == RP_OK)
        (void)engine->fetch(exe, outputs, NULL);
    for (size_t i = 0; i < 16; i++)
        rp_tensor_drop(outputs[i]);
    if (exe)
        engine->release(exe);
}

/* One change of one operation of one program; false: there is no such operation. */
static bool sweep_one(const char *text, uint32_t op, struct mutation change)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_hashes hashes;
    struct rp_costs costs;
    struct rp_program *p;

    assert_ok(rp_hlo_text_parse(text, strlen(text), NULL, &p, &err), &err);
    if (op < p->nops) {
        mutate_op(p, op, change);
        rp_program_count(p, &arena, &costs, NULL);
        rp_program_hash(p, &arena, &hashes, NULL);
        rp_arena_release(&arena);
        EACH(k, engines)
        run_changed(p, engines[k]);
    }
    op = op < p->nops;
    rp_program_free(p);
    return op;
}

/* The custom calls above are known. */
static void custom_calls_run(void **state)
{
    UNUSED_STATE(state);
    EACH(i, custom_programs)
    {
        struct rp_err err = RP_ERR_INIT;
        double values[64];
        size_t n;

        if (exec_run(custom_programs[i], &rp_engine_ref, 1, values, &n, &err) != RP_OK &&
            !strstr(err.text, "LAPACK"))
            fail_msg("%s in\n%s", err.text, custom_programs[i]);
    }
}

/* Attributes with numbers that overflow. */
static void every_extreme_number(void **state)
{
    UNUSED_STATE(state);
    SKIP_WITHOUT_THREADS();
    for (size_t i = 0; i < TYPED_COUNT + CUSTOM_COUNT; i++)
        for (uint32_t op = 0, more = 1; more; op++)
            for (uint8_t which = 0; which < 12 && more; which++)
                for (unsigned value = MUTATE_EXTREME; value < 256 && more; value++)
                    more = sweep_one(typed_text(i), op,
                                     (struct mutation){MUTATE_INT, which, (uint8_t)value});
}

static void every_change(void **state)
{
    UNUSED_STATE(state);
    SKIP_WITHOUT_THREADS();
    for (size_t i = 0; i < TYPED_COUNT + CUSTOM_COUNT; i++)
        for (uint32_t op = 0, more = 1; more; op++)
            for (uint8_t kind = 0; kind < MUTATE_SWEPT && more; kind++)
                for (uint8_t which = 0; which < 3 && more; which++)
                    for (uint8_t value = 0; value < 6 && more; value++)
                        more = sweep_one(typed_text(i), op, (struct mutation){kind, which, value});
}

int test_ill_typed(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_each), cmocka_unit_test(custom_calls_run),
        cmocka_unit_test(every_change), cmocka_unit_test(every_extreme_number)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
