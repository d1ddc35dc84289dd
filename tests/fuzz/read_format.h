/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame of the targets that hold one reader of traces or of programs against any bytes: open,
 * read, look at what was read. The limits are small, so that they are reached.
 */
#ifndef FUZZ_READ_FORMAT_H
#define FUZZ_READ_FORMAT_H

#include "formats/list.h"
#include "formats/programs.h"
#include "io/proto.h"
#include "program/opcodes.h"
#include "program/refine.h"
#include "program/structure.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_read_trace_once(const struct rp_format *format, const char *name,
                                        struct rp_bytes bytes, bool salvage)
{
    static const struct rp_limits limits = {.input_bytes = 1 << 24,
                                            .token_bytes = 1 << 12,
                                            .events = 100000,
                                            .members = 100,
                                            .depth = 16};
    struct rp_read_options options = {.limits = &limits, .salvage = salvage};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    if (rp_input_open_memory(name, bytes.at, bytes.n, &limits, &in, &err) != RP_OK)
        return;
    if (format->read(in, &options, &import, &err) == RP_OK &&
        rp_trace_validate(import.trace, &err) != RP_OK && err.code != RP_NOMEM)
        abort();
    rp_import_release(&import);
    rp_input_close(in);
}

/* A reader of traces, plain and with salvage: what loads must be a valid trace. */
static inline int fuzz_read_trace(const struct rp_format *format, const char *name,
                                  const uint8_t *data, size_t size)
{
    struct rp_bytes bytes = {data, size};

    format->sniff(data, size, name);
    fuzz_read_trace_once(format, name, bytes, false);
    fuzz_read_trace_once(format, name, bytes, true);
    return 0;
}

/* A program for inputs of any size, for inputs of a size. */
static inline void fuzz_refine(const struct rp_program *p)
{
    enum { INPUTS = 16, RANK = 8 };
    struct rp_refine_shape shapes[INPUTS] = {0};
    int64_t dims[INPUTS][RANK];
    const struct rp_computation *entry = &p->computations.at[p->entry];
    struct rp_program *refined;

    for (uint32_t op = entry->first; op < entry->first + entry->n; op++) {
        const struct rp_op_shape *s = &p->shapes.at[p->shape.at[op]];
        uint64_t i = (uint64_t)p->value.at[op];

        if (p->code.at[op] != RP_OP_PARAMETER || i >= INPUTS || s->depth || s->n > RANK)
            continue;
        for (uint32_t k = 0; k < s->n; k++)
            dims[i][k] = p->dims.at[s->first + k] < 0 ? 3 + k % 2 : p->dims.at[s->first + k];
        shapes[i] = (struct rp_refine_shape){dims[i], s->n, true};
    }
    if (rp_program_refine(p, shapes, INPUTS, &refined, NULL) == RP_OK)
        rp_program_free(refined);
}

/* What is written as StableHLO is read again. */
static inline void fuzz_write_stablehlo(const struct rp_program *p)
{
    struct rp_read_options options = {0};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_input *in = NULL;
    struct rp_out *out;
    const char *text;
    size_t n;

    if (rp_out_open_memory(&out, NULL) != RP_OK)
        return;
    if (rp_stablehlo_print(p, out, NULL) == RP_OK && rp_out_flush(out, NULL) == RP_OK) {
        text = rp_out_borrow_memory(out, &n);
        if (rp_input_open_memory("written", text, n, NULL, &in, NULL) == RP_OK) {
            enum rp_code code = rp_format_stablehlo.read(in, &options, &import, NULL);

            if (code != RP_OK && code != RP_NOMEM && code != RP_LIMIT)
                abort();
        }
        rp_import_release(&import);
        rp_input_close(in);
    }
    rp_out_abandon(out);
}

/* A reader of programs, `format` or (NULL) the one the bytes look like: what loads is hashed and
 * counted. */
static inline int fuzz_read_program(const struct rp_format *format, const uint8_t *data,
                                    size_t size)
{
    static const struct rp_limits limits = {.input_bytes = 1 << 20,
                                            .token_bytes = 1 << 20,
                                            .events = 1 << 16,
                                            .members = 1,
                                            .depth = 60};
    struct rp_read_options options = {.limits = &limits};
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_hashes hashes;
    struct rp_costs costs;
    struct rp_input *in;

    if (rp_input_open_memory("fuzz", data, size, &limits, &in, NULL) != RP_OK)
        return 0;
    if ((format || rp_format_sniff(in, &format, NULL) == RP_OK) &&
        format->kind == RP_FORMAT_KIND_PROGRAM &&
        format->read(in, &options, &import, NULL) == RP_OK &&
        rp_program_hash(import.program, &arena, &hashes, NULL) == RP_OK) {
        rp_program_count(import.program, &arena, &costs, NULL);
        if (import.program->entry != RP_NONE && rp_program_is_dynamic(import.program))
            fuzz_refine(import.program);
        fuzz_write_stablehlo(import.program);
    }
    rp_arena_release(&arena);
    rp_import_release(&import);
    rp_input_close(in);
    return 0;
}

#endif
