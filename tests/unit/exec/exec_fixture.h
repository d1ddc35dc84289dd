/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_EXEC_FIXTURE_H
#define RP_TESTS_EXEC_FIXTURE_H
/* Small programs without inputs, run on an engine, and their outputs as numbers. */
#include "unit.h"

#include "exec/engines.h"
#include "formats/programs.h"

#include <math.h>

struct exec_case {
    const char *name;
    const char *text; /* HLO: computations, if any, and an ENTRY; no inputs */
    size_t n;
    double want[32]; /* of all outputs, one behind the other */
};

/* The code; outputs into values (at most 64), *n of them. */
static inline enum rp_code exec_run(const char *text, const struct rp_engine *engine,
                                    unsigned partitions, double *values, size_t *n,
                                    struct rp_err *err)
{
    struct rp_engine_options options = {.threads = 2, .partitions = partitions, .profile = true};
    struct rp_engine_program program = {.name = "case", .format = "hlo-text"};
    struct rp_tensor *outputs[16] = {NULL};
    struct rp_executable *exe = NULL;
    struct rp_program *p = NULL;
    enum rp_code code = rp_hlo_text_parse(text, strlen(text), NULL, &p, err);
    size_t count = 0;

    *n = 0;
    program.program = p;
    if (code == RP_OK)
        code = engine->compile(NULL, &program, &options, &exe, err);
    if (code == RP_OK)
        code = engine->upload(exe, outputs, err);
    if (code == RP_OK)
        code = engine->run(exe, err);
    if (code == RP_OK)
        code = engine->run(exe, err); /* a second time: nothing may be used up */
    if (code == RP_OK) {
        code = engine->fetch(exe, outputs, err);
        count = exe->noutputs * exe->partitions;
    }
    for (size_t i = 0; code == RP_OK && i < count; i++)
        for (size_t k = 0; k < outputs[i]->n && *n < 64; k++) {
            values[(*n)++] = rp_tensor_number(outputs[i], k);
            if (rp_elem_is_complex(outputs[i]->elem))
                values[(*n)++] = rp_tensor_imaginary(outputs[i], k);
        }
    for (size_t i = 0; i < 16; i++)
        rp_tensor_drop(outputs[i]);
    if (exe)
        engine->release(exe);
    rp_program_free(p);
    return code;
}

static inline void exec_check(const struct exec_case *c, const struct rp_engine *engine,
                              double tolerance)
{
    struct rp_err err = RP_ERR_INIT;
    double got[64];
    size_t n;

    if (exec_run(c->text, engine, 0, got, &n, &err) != RP_OK)
        fail_msg("%s on %s: %s", c->name, engine->name, err.text);
    if (n != c->n)
        fail_msg("%s on %s: %zu values instead of %zu", c->name, engine->name, n, c->n);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(got[i] - c->want[i]) <= tolerance * (1 + fabs(c->want[i]))) &&
            got[i] != c->want[i] && (got[i] == got[i] || c->want[i] == c->want[i]))
            fail_msg("%s on %s: value %zu is %.9g instead of %.9g", c->name, engine->name, i,
                     got[i], c->want[i]);
}

static inline void exec_check_all(const struct exec_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        exec_check(&cases[i], &rp_engine_ref, 1e-6);
        exec_check(&cases[i], &rp_engine_fast, 2e-6);
    }
}

#define EXEC_ALL(cases) exec_check_all(cases, sizeof(cases) / sizeof *(cases))

#endif
