/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every instruction of a program gets its cost from program/count.c; calls of libraries, which
 * count.c cannot see inside, from the shapes of a product or a convolution. Kernels name their
 * instruction, except for characters that kernels cannot have, and their program by its module and
 * number.
 */
#include "explain/roofline/xla.h"

#include "base/decides.h"
#include "cost/attention.h"
#include "dataset/load_program.h"
#include "explain/xla_programs.h"
#include "facts/xla_names.h"
#include "formats/programs.h"
#include "formats/xprof/programs.h"
#include "program/opcodes.h"
#include "program/structure.h"
#include "program/window.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_PROGRAMS 4096
RP_LIMIT(MOST_PROGRAMS, "programs of a profile",
         "instructions of further programs are not modelled, and the table says so");
#define MOST_MODULES 256
RP_LIMIT(MOST_MODULES, "modules of a dump",
         "instructions of further modules are not modelled, and the table says so");
#define MOST_DIGITS 18
RP_FACT(MOST_DIGITS, "digits", "fit into 64 bits");
#define FROM_LAST 4
RP_FACT(FROM_LAST, "number of a mask",
        "Transformer Engine: NVTE_CAUSAL_BOTTOM_RIGHT_MASK and its padded form");
#define ATTENTION_INPUTS 3
RP_FACT(ATTENTION_INPUTS, "operands", "queries, keys and values");

/* ------------------------------------------------------------------ names */

static uint64_t text_hash(const char *text, size_t n)
{
    return rp_hash_bytes(text, n);
}

/* ------------------------------------------------------------------ costs of instructions */

static uint8_t number_of(uint8_t elem)
{
    switch (elem) {
    case RP_ELEM_F64:
        return RP_NUMBER_FP64;
    case RP_ELEM_F32:
        return RP_NUMBER_FP32;
    case RP_ELEM_BF16:
        return RP_NUMBER_BF16;
    case RP_ELEM_F16:
        return RP_NUMBER_FP16;
    case RP_ELEM_F8E5M2:
    case RP_ELEM_F8E4M3FN:
    case RP_ELEM_F8E5M2FNUZ:
    case RP_ELEM_F8E4M3FNUZ:
        return RP_NUMBER_FP8;
    case RP_ELEM_S8:
    case RP_ELEM_U8:
        return RP_NUMBER_INT8;
    default:
        return RP_NUMBER_INT;
    }
}

/* The first array of the result. */
static const struct rp_op_shape *result_of(const struct rp_program *p, uint32_t op)
{
    const struct rp_op_shape *s = &p->shapes.at[p->shape.at[op]];

    return s->elem == RP_ELEM_TUPLE && s->n ? &p->shapes.at[p->parts.at[s->first]] : s;
}

static double elements_of(const struct rp_program *p, const struct rp_op_shape *s)
{
    double n = 1;

    for (uint32_t i = 0; s->elem != RP_ELEM_TUPLE && i < s->n; i++)
        n *= p->dims.at[s->first + i] > 0 ? (double)p->dims.at[s->first + i] : 1;
    return n;
}

static bool target_has(const struct rp_program *p, uint32_t op, const char *part)
{
    const struct rp_attr *attr = rp_op_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET);

    return attr && rp_attr_is_bytes(attr) && memmem(attr->at, attr->n, part, strlen(part));
}

/* A product by a library, of a [b, m, k] and b [b, k, n] into [b, m, n]: whatever the order of
   dimensions, k follows from the sizes alone. */
static double product_flops(const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);
    const struct rp_op_shape *out = result_of(p, op);
    double a, b, c = elements_of(p, out), batch = 1;

    if (operands.n < 2)
        return NAN;
    a = elements_of(p, result_of(p, operands.at[0]));
    b = elements_of(p, result_of(p, operands.at[1]));
    for (uint32_t i = 0; i + 2 < out->n; i++)
        batch *= (double)p->dims.at[out->first + i];
    return 2 * c * sqrt(a * b / (c * batch));
}

/* A convolution by a library: every element on the side of the results is multiplied with the
   weights of its feature. */
static double convolution_flops(const struct rp_program *p, uint32_t op)
{
    struct rp_ids operands = rp_op_operands(p, op);
    const struct rp_op_shape *result = result_of(p, op), *weights, *outputs;
    struct rp_conv_dims d;

    if (operands.n < 2 || !rp_attr_conv_dims(rp_op_attr(p, op, RP_ATTR_DIM_LABELS), &d))
        return NAN;
    weights = result_of(p, operands.at[1]);
    outputs = result;
    if (target_has(p, op, "BackwardInput")) {
        outputs = result_of(p, operands.at[0]);
    } else if (target_has(p, op, "BackwardFilter")) {
        weights = result;
        outputs = result_of(p, operands.at[1]);
    }
    if (d.kernel_output < 0 || d.kernel_output >= weights->n)
        return NAN;
    double features = (double)p->dims.at[weights->first + d.kernel_output];
    return features > 0 ? 2 * elements_of(p, outputs) * elements_of(p, weights) / features : NAN;
}

/* ------------------------------------------------------------------ attention by a library */

/* Reads a whole number of at most 18 digits; moves `at` after it. */
static bool take_number(const char **at, const char *end, double *out)
{
    const char *digits = *at + (*at < end && **at == '-');
    double value = 0;
    int n = 0;

    for (; digits + n < end && n < MOST_DIGITS && isdigit((unsigned char)digits[n]); n++)
        value = value * 10 + (digits[n] - '0');
    *out = digits > *at ? -value : value;
    *at = digits + n;
    return n > 0;
}

#define ASSIGNS " = "

/* Finds the number after a key of a call's configuration, as in "attn_heads = 16 : i64". */
static bool config_number(const struct rp_attr *config, const char *key, double *out)
{
    size_t n = strlen(key);
    const char *begin = config->at, *end = begin + config->n, *at = begin;

    while ((at = memmem(at, (size_t)(end - at), key, n)) != NULL) {
        const char *value = at + n;
        bool whole = at == begin || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');

        at = value;
        if (!whole || (size_t)(end - value) <= strlen(ASSIGNS) ||
            memcmp(value, ASSIGNS, strlen(ASSIGNS)) != 0)
            continue;
        value += strlen(ASSIGNS);
        return take_number(&value, end, out);
    }
    return false;
}

/* Transformer Engine states the shape in its call's configuration; masks of type 2 and 3 are causal
   from the first key, 4 and 5 from the last. */
static bool transformer_engine_shape(const struct rp_attr *config, struct rp_attention_shape *a,
                                     double *pairs)
{
    double mask = 0, left = -1, right = -1;

    if (!config_number(config, "input_batch", &a->sequences) ||
        !config_number(config, "attn_heads", &a->heads) ||
        !config_number(config, "num_gqa_groups", &a->kv_heads) ||
        !config_number(config, "q_max_seqlen", &a->queries) ||
        !config_number(config, "kv_max_seqlen", &a->keys))
        return false;
    if (!config_number(config, "qk_head_dim", &a->width) &&
        !config_number(config, "head_dim", &a->width))
        return false;
    if (!config_number(config, "v_head_dim", &a->value_width))
        a->value_width = a->width;
    config_number(config, "mask_type", &mask);
    config_number(config, "window_size_left", &left);
    config_number(config, "window_size_right", &right);
    if (mask >= 2)
        right = 0;
    *pairs = rp_attention_pairs(a->queries, a->keys, mask >= FROM_LAST ? a->keys - a->queries : 0,
                                left, right);
    return true;
}

/* XLA's calls of cuDNN give the shape of the scores: [batch, heads, queries, keys]. */
static bool cudnn_shape(const struct rp_program *p, uint32_t op, const struct rp_attr *config,
                        struct rp_attention_shape *a, double *pairs)
{
    static const char key[] = "\"intermediate_tensor_shape\"", dims[] = "\"dimensions\"";
    struct rp_ids operands = rp_op_operands(p, op);
    const char *end = config->at + config->n;
    const char *at = memmem(config->at, config->n, key, sizeof key - 1);
    double of[4], size;
    int i;

    at = at ? memmem(at, (size_t)(end - at), dims, sizeof dims - 1) : NULL;
    for (i = 0, at = at ? at + sizeof dims - 1 : NULL; at && i < (int)(sizeof of / sizeof *of);
         i++) {
        while (at < end && !isdigit((unsigned char)*at) && *at != ']')
            at++;
        if (!take_number(&at, end, &of[i]) || of[i] <= 0)
            return false;
    }
    if (!at || operands.n < ATTENTION_INPUTS)
        return false;
    size = of[0] * of[1] * of[2];
    *a = (struct rp_attention_shape){.sequences = of[0],
                                     .heads = of[1],
                                     .queries = of[2],
                                     .keys = of[3],
                                     .width = elements_of(p, result_of(p, operands.at[0])) / size};
    a->kv_heads = elements_of(p, result_of(p, operands.at[1])) / (of[0] * of[3] * a->width);
    a->value_width = a->width;
    *pairs = rp_attention_pairs(a->queries, a->keys, 0, -1,
                                memmem(config->at, config->n, "CAUSAL", 6) ? 0 : -1);
    return true;
}

static bool attention_cost(const struct rp_program *p, uint32_t op, struct rp_op_cost *cost)
{
    const struct rp_attr *config = rp_op_attr(p, op, RP_ATTR_BACKEND_CONFIG);
    struct rp_ids operands = rp_op_operands(p, op);
    struct rp_attention_shape a = {0};
    uint8_t elem = operands.n ? result_of(p, operands.at[0])->elem : RP_ELEM_TUPLE;
    double pairs;

    if (!config || !rp_attr_is_bytes(config) ||
        !(target_has(p, op, "fused_attn")
              ? transformer_engine_shape(config, &a, &pairs)
              : target_has(p, op, "fmha") && cudnn_shape(p, op, config, &a, &pairs)))
        return false;
    rp_attention_cost(&a, pairs, target_has(p, op, "ackward"), number_of(elem),
                      (double)rp_elem_bits(elem) / CHAR_BIT, cost);
    return true;
}

/* The first product or convolution in an instruction or in what it calls, or RP_NONE. */
static uint32_t find_product(const struct rp_program *p, uint32_t op)
{
    struct rp_ids called = rp_op_called(p, op);

    if (p->code.at[op] == RP_OP_DOT || p->code.at[op] == RP_OP_CONVOLUTION)
        return op;
    if (p->code.at[op] == RP_OP_CUSTOM_CALL &&
        (target_has(p, op, "cublas") || target_has(p, op, "conv")))
        return op;
    if (p->code.at[op] != RP_OP_FUSION || !called.n)
        return RP_NONE;
    const struct rp_computation *body = &p->computations.at[called.at[0]];
    for (uint32_t i = body->first; i < body->first + body->n; i++)
        if (p->code.at[i] == RP_OP_DOT || p->code.at[i] == RP_OP_CONVOLUTION)
            return i;
    return RP_NONE;
}

static struct rp_op_cost cost_of(const struct rp_program *p, uint32_t op,
                                 const struct rp_cost *count)
{
    struct rp_op_cost cost = {.flops = count->flops + count->transcendentals,
                              .bytes = count->bytes};
    uint32_t product = find_product(p, op);

    cost.type = number_of(result_of(p, op)->elem);
    if (product != RP_NONE) {
        struct rp_ids operands = rp_op_operands(p, product);

        cost.on_matrix = true;
        cost.type = number_of(operands.n ? result_of(p, operands.at[0])->elem : RP_ELEM_F32);
        if (cost.type == RP_NUMBER_FP32) /* XLA's default precision */
            cost.type = RP_NUMBER_TF32;
    }
    if (p->code.at[op] != RP_OP_CUSTOM_CALL || attention_cost(p, op, &cost))
        return cost;
    cost.flops = target_has(p, op, "cublas") ? product_flops(p, op)
                 : target_has(p, op, "conv") ? convolution_flops(p, op)
                                             : NAN;
    if (isnan(cost.flops)) {
        cost.bytes = NAN;
        cost.missing = "the program calls a library for it";
    }
    return cost;
}

#define OPERANDS_SHOWN 8
RP_LIMIT(OPERANDS_SHOWN, "operands in a shape", "the first ones; rows are told apart by these");

/* Writes "[64,32] [32,16]", starting from "[64,32]". */
static const char *join_dims(const struct rp_program *p, const struct rp_op_shape *s,
                             const char *text, struct rp_arena *arena)
{
    if (s->elem == RP_ELEM_TUPLE || !s->n)
        return text;
    text = rp_arena_textf(arena, "%s%s[", text ? text : "", text ? " " : "");
    for (uint32_t k = 0; k < s->n && text; k++)
        text = rp_arena_textf(arena, "%s%s%lld", text, k ? "," : "",
                              (long long)p->dims.at[s->first + k]);
    return text ? rp_arena_textf(arena, "%s]", text) : NULL;
}

/* ------------------------------------------------------------------ programs */

static enum rp_code add_instruction(struct rp_xla_costs *x, const struct rp_program *p, uint32_t op,
                                    uint64_t program, const struct rp_cost *count,
                                    struct rp_err *err)
{
    struct rp_op_cost cost = cost_of(p, op, count);
    uint32_t at;

    RP_TRY(rp_map_intern(&x->known,
                         rp_xla_name_hash_after(program, rp_program_text(p, p->op_name.at[op])),
                         (uint32_t)x->costs.n, &at, err));
    if (at < x->costs.n)
        return RP_OK;

    /* The arrays that an instruction takes, or if it takes none, makes. NULL if there are only
       numbers. */
    struct rp_ids operands = rp_op_operands(p, op);
    const char *text = NULL;
    for (uint32_t i = 0; i < operands.n && i < OPERANDS_SHOWN; i++)
        text = join_dims(p, result_of(p, operands.at[i]), text, &x->arena);
    cost.shape = text ? text : join_dims(p, result_of(p, op), NULL, &x->arena);

    return rp_vec_push(&x->costs, cost, err);
}

/* Adds instructions of the entry and of what loops and branches run; those inside a fusion are part
 * of it. */
static enum rp_code add_program(struct rp_xla_costs *x, const struct rp_program *p,
                                uint64_t program, struct rp_err *err)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_costs counts;
    enum rp_code code = rp_program_count(p, &scratch, &counts, err);

    for (uint32_t op = 0; op < p->nops && code == RP_OK; op++)
        if (!p->computations.at[p->computation.at[op]].fused && p->code.at[op] != RP_OP_PARAMETER &&
            p->code.at[op] != RP_OP_CONSTANT)
            code = add_instruction(x, p, op, program, &counts.op[op], err);
    rp_arena_release(&scratch);
    x->programs++;
    return code;
}

/* A program that cannot be read counts as missing. */
static enum rp_code take_program(void *user, struct rp_bytes name, struct rp_bytes hlo,
                                 struct rp_err *err)
{
    struct rp_xla_costs *x = user;
    struct rp_program *p = NULL;
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = RP_OK;

    if (x->programs >= MOST_PROGRAMS)
        return RP_OK;
    if (rp_hlo_proto_parse(hlo.at, hlo.n, NULL, &p, &why) == RP_OK)
        code = add_program(x, p, text_hash((const char *)name.at, name.n), err);
    rp_program_free(p);
    return code;
}

/* Takes programs in the profile itself, which is read a second time. */
static enum rp_code take_profile(struct rp_xla_costs *x, const struct rp_loaded *loaded,
                                 struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = RP_OK;
    struct rp_input *in;
    struct rp_bytes space;

    if (!loaded->format || strcmp(loaded->format, "xplane") != 0)
        return RP_OK;
    if (rp_source_open(loaded->dataset->sources, loaded->index, &in, &why) != RP_OK)
        return RP_OK; /* a pipe */
    if (rp_input_slurp(in, &space.at, &space.n, &why) == RP_OK)
        code = rp_xplane_each_program(space, take_program, x, err);
    rp_input_close(in);
    return code;
}

/* Takes programs after optimisation in a dump among the inputs. */
static enum rp_code take_dump(struct rp_xla_costs *x, const struct rp_loaded *loaded,
                              struct rp_err *err)
{
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_dump dump = {0};
    enum rp_code code = rp_dataset_dump(loaded->dataset, &scratch, &dump, err);

    for (size_t i = 0; i < dump.nmodules && i < MOST_MODULES && code == RP_OK; i++)
        for (size_t k = 0; k < dump.modules[i].nstages && code == RP_OK; k++) {
            struct rp_import import = {0};
            struct rp_err why = RP_ERR_INIT;

            if (dump.modules[i].stages[k].point != RP_DUMP_AT_AFTER)
                continue;
            if (rp_load_program(loaded->dataset, dump.modules[i].stages[k].source, &import, &why) ==
                    RP_OK &&
                import.program)
                code =
                    add_program(x, import.program,
                                text_hash(dump.modules[i].name, strlen(dump.modules[i].name)), err);
            rp_import_release(&import);
            break;
        }
    rp_arena_release(&scratch);
    return code;
}

enum rp_code rp_xla_costs_init(struct rp_xla_costs *x, const struct rp_loaded *loaded,
                               struct rp_err *err)
{
    *x = (struct rp_xla_costs){.arena = RP_ARENA_INIT};
    RP_TRY(rp_arg_key_init(&x->hlo_op, loaded->trace, "hlo_op", err));
    RP_TRY(rp_arg_key_init(&x->hlo_module, loaded->trace, "hlo_module", err));
    RP_TRY(rp_arg_key_init(&x->program_id, loaded->trace, "program_id", err));
    if (x->hlo_module.key == RP_NONE || !loaded->dataset)
        return RP_OK;
    RP_TRY(take_profile(x, loaded, err));
    RP_TRY(take_dump(x, loaded, err));
    return rp_arena_check(&x->arena, "reading programs", err);
}

void rp_xla_costs_release(struct rp_xla_costs *x)
{
    rp_arg_key_release(&x->hlo_op);
    rp_arg_key_release(&x->hlo_module);
    rp_arg_key_release(&x->program_id);
    rp_map_release(&x->known);
    rp_vec_release(&x->costs);
    rp_arena_release(&x->arena);
}

/* ------------------------------------------------------------------ kernels */

/* Finds the instruction in the program of its number, or in one of its module. */
static uint32_t find_cost(const struct rp_xla_costs *x, const char *module, int64_t id,
                          const char *name)
{
    char program[256];
    int n = snprintf(program, sizeof program, "%s(%lld)", module, (long long)id);
    uint32_t found = RP_MAP_NONE;

    if (n > 0 && (size_t)n < sizeof program && id >= 0)
        found = rp_map_get(&x->known, rp_xla_name_hash_after(text_hash(program, (size_t)n), name));
    return found != RP_MAP_NONE
               ? found
               : rp_map_get(&x->known,
                            rp_xla_name_hash_after(text_hash(module, strlen(module)), name));
}

bool rp_xla_cost_of(void *user, const struct rp_trace *trace, rp_event item, struct rp_op_cost *out)
{
    const struct rp_xla_costs *x = user;
    uint8_t category = out->category;
    rp_str module, op = 0;
    int64_t id = -1;
    uint32_t found = RP_MAP_NONE;

    if (!x->costs.n || !rp_arg_key_text(&x->hlo_module, item, &module) || !module)
        return false;
    const char *module_name = rp_trace_str(trace, module);
    if (!rp_arg_key_int(&x->program_id, item, &id))
        id = -1;
    if (rp_arg_key_text(&x->hlo_op, item, &op) && op)
        found = find_cost(x, module_name, id, rp_trace_str(trace, op));
    if (found == RP_MAP_NONE || !op || rp_xla_is_graph(rp_trace_str(trace, op)))
        found = find_cost(x, module_name, id, rp_trace_str(trace, trace->ev.name[item]));
    if (found == RP_MAP_NONE)
        return false;
    *out = x->costs.at[found];
    out->category = category;
    return true;
}
