/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small programs, planned and run by both built-in engines with synthetic inputs. Each runs the
 * program or refuses it. What they compute is not compared: most programs that a fuzzer makes are
 * not well typed. An input is one of:
 *
 *   HLO text
 *   0, number of a well-typed program, changes of it (operation, kind, which, value)
 *
 * The second finds programs that are well formed and yet ill-typed, which changes of text seldom
 * make.
 */
#include "../unit/exec/mutate.h"
#include "../unit/exec/typed_programs.h"
#include "exec/data/synthetic.h"
#include "exec/engines.h"
#include "formats/programs.h"
#include "program/opcodes.h"
#include "program/structure.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST_VALUES 16 /* inputs, and outputs */
#define MOST_OPS    100
#define MOST_WORK   20000 /* elements of all shapes, and operations on them */

static bool shapes_are_small(const struct rp_program *p)
{
    double all = 0;

    for (size_t i = 0; i < p->shapes.n; i++) {
        const struct rp_op_shape *s = &p->shapes.at[i];
        double n = 1;

        for (uint32_t k = 0; s->elem != RP_ELEM_TUPLE && k < s->n; k++)
            n *= (double)p->dims.at[s->first + k];
        all += s->elem == RP_ELEM_TUPLE ? s->n : n;
    }
    return all < MOST_WORK;
}

/* Loops may run for ever, and windows and attributes may ask for more work than shapes show.
   known: loops end, and custom calls do little. */
static bool is_small(const struct rp_program *p, bool known)
{
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_costs costs;
    bool small = p->nops <= MOST_OPS && shapes_are_small(p);

    for (uint32_t op = 0; small && op < p->nops; op++)
        small = known || (p->code.at[op] != RP_OP_WHILE && p->code.at[op] != RP_OP_CUSTOM_CALL);
    small = small && rp_program_validate(p, NULL) == RP_OK &&
            rp_program_count(p, &arena, &costs, NULL) == RP_OK && costs.program.flops < MOST_WORK &&
            costs.program.transcendentals < MOST_WORK;
    rp_arena_release(&arena);
    return small;
}

static void run(const struct rp_engine *engine, const struct rp_program *p,
                struct rp_tensor *const *inputs, size_t ninputs)
{
    struct rp_engine_options options = {.threads = 1, .partitions = 1};
    struct rp_engine_program program = {.program = p, .name = "fuzz", .format = "hlo-text"};
    struct rp_tensor *outputs[MOST_VALUES] = {NULL};
    struct rp_executable *exe = NULL;
    enum rp_code code = engine->compile(NULL, &program, &options, &exe, NULL);

    if (code == RP_OK && exe->narguments == ninputs && exe->partitions == 1 &&
        exe->noutputs <= MOST_VALUES && engine->upload(exe, inputs, NULL) == RP_OK &&
        engine->run(exe, NULL) == RP_OK && engine->fetch(exe, outputs, NULL) == RP_OK)
        for (size_t i = 0; i < exe->noutputs; i++)
            if (outputs[i]->n && rp_tensor_number(outputs[i], outputs[i]->n - 1) == 1234567.25)
                abort(); /* no number of these programs: it is read to its last element */
    for (size_t i = 0; i < MOST_VALUES; i++)
        rp_tensor_drop(outputs[i]);
    if (exe)
        engine->release(exe);
}

static void run_both(const struct rp_program *p, const struct rp_signature *slots)
{
    struct rp_tensor *inputs[MOST_VALUES] = {NULL};

    if (rp_synthetic_inputs(p, slots, 1, inputs, NULL) == RP_OK) {
        run(&rp_engine_ref, p, inputs, slots->nin);
        run(&rp_engine_fast, p, inputs, slots->nin);
    }
    for (size_t i = 0; i < MOST_VALUES; i++)
        rp_tensor_drop(inputs[i]);
}

static bool has_loop(const struct rp_program *p)
{
    for (uint32_t op = 0; op < p->nops; op++)
        if (p->code.at[op] == RP_OP_WHILE)
            return true;
    return false;
}

#define MOST_CHANGES 8

static enum rp_code changed_program(const uint8_t *data, size_t size, struct rp_program **out)
{
    const char *text = typed_text(data[0]);
    unsigned kinds;

    RP_TRY(rp_hlo_text_parse(text, strlen(text), NULL, out, NULL));
    kinds = has_loop(*out) ? MUTATE_SWEPT : MUTATE_KINDS;
    for (size_t i = 1; i + 4 <= size && i < 1 + (size_t)4 * MOST_CHANGES; i += 4)
        mutate_op(*out, data[i] % (*out)->nops,
                  (struct mutation){(uint8_t)(data[i + 1] % kinds), data[i + 2], data[i + 3]});
    return RP_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct rp_limits limits = {.input_bytes = 1 << 16,
                                            .token_bytes = 1 << 16,
                                            .events = 1 << 12,
                                            .members = 1,
                                            .depth = 60};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_signature slots;
    bool known = size > 1 && !data[0];
    struct rp_program *p;

    if ((known ? changed_program(data + 1, size - 1, &p)
               : rp_hlo_text_parse((const char *)data, size, &limits, &p, NULL)) != RP_OK)
        return 0;
    if (is_small(p, known) && rp_signature_find(p, &arena, &slots, NULL) == RP_OK &&
        slots.nin <= MOST_VALUES)
        run_both(p, &slots);
    rp_arena_release(&arena);
    rp_program_free(p);
    return 0;
}
