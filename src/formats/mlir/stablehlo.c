/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads StableHLO as MLIR text, as JAX prints it: functions become computations, operations keep
 * the name that HLO has for them, if any. The reader knows brackets, names, types and where a
 * statement ends, not each operation's own syntax: what is between the operands and the types is
 * kept as attributes, in HLO's words for the operations that count. Regions are computations that
 * their operation calls, as in HLO: loops and branches get one tuple with what they use of the
 * function around them.
 */
#include "base/each.h"
#include "formats/formats.h"
#include "formats/mlir/bytecode.h"
#include "formats/mlir/mlir.h"

#include <string.h>

/* ---- functions and the module ---- */

static enum rp_code read_function_body(struct rp_mlir *r)
{
    RP_TRY(rp_mlir_block(r));
    return rp_mlir_read_regions(r);
}

static enum rp_code read_function(struct rp_mlir *r)
{
    size_t first = r->args.n;
    uint32_t name;

    while (r->at < r->end && *r->at != '@' && *r->at != '\n')
        r->at++;
    if (r->at >= r->end || *r->at != '@')
        return RP_MLIR_FAIL(r, r->at < r->end ? r->at : r->end, "expected the name of a function");
    RP_TRY(rp_mlir_name_at(r, &name));
    RP_TRY(rp_mlir_begin_function(r, name));
    if (r->at < r->end && *r->at == '(')
        RP_TRY(rp_mlir_arguments(r));
    RP_TRY(rp_mlir_parameters(r, first, r->args.n - first, false));
    for (rp_mlir_space(r); r->at < r->end; rp_mlir_space(r)) { /* skips results and attributes */
        if (*r->at == '{' && !rp_mlir_is_dictionary(r))
            break;
        if (*r->at == '(' || *r->at == '{' || *r->at == '<' || *r->at == '[')
            RP_TRY(rp_mlir_skip_bracket(r));
        else
            r->at++;
    }
    if (r->at >= r->end)
        return RP_MLIR_FAIL(r, r->end, "a function without a body");
    r->at++;
    return read_function_body(r);
}

/* ---- the generic form ---- */

/* The string after "sym_name = ". */
static enum rp_code symbol_name(struct rp_mlir *r, const char *at, const char *end, uint32_t *name)
{
    struct rp_mlir_attrs text = {.at = at, .end = end};
    const char *s = rp_mlir_find_key(&text, "sym_name");

    *name = 0;
    while (s && s < end && *s == ' ')
        s++;
    if (!s || s >= end || *s != '"')
        return RP_OK;
    const char *close = rp_mlir_string_end(r, s);
    struct rp_slice value = {s + 1, close > s + 1 ? (uint32_t)(close - s - 2) : 0, 0};
    RP_TRY(rp_mlir_unescape(r, &value));
    return rp_program_string(r->p, value.at, value.n, name, r->err);
}

/* Reads the rest of a head after the operation's name: skips its properties up to the '{' of its
   region. Older versions have the name after the region. */
static enum rp_code read_generic_head(struct rp_mlir *r, uint32_t *name)
{
    const char *from = r->at, *to;

    for (;;) {
        if (r->end - r->at < 2)
            return RP_MLIR_FAIL(r, r->end, "an operation without a region");
        if (*r->at == '\n' || (*r->at == '(' && r->at[1] == '{'))
            break;
        if (*r->at == '<' || *r->at == '(' || *r->at == '{')
            RP_TRY(rp_mlir_skip_bracket(r));
        else
            r->at++;
    }
    RP_TRY(symbol_name(r, from, r->at, name));
    if (*r->at != '(')
        return RP_OK;
    if (!*name && (to = rp_mlir_bracket_end(r, r->at))) {
        const char *line = memchr(to, '\n', (size_t)(r->end - to));
        RP_TRY(symbol_name(r, to, line ? line : r->end, name));
    }
    r->at += 2;
    return RP_OK;
}

/* ""func.func"() <{sym_name = "main"}> ({ ^bb0(%arg0: type): ... })" */
static enum rp_code read_generic_function(struct rp_mlir *r)
{
    size_t first = r->args.n;
    const char *where = r->at;
    uint32_t name;

    RP_TRY(read_generic_head(r, &name));
    if (!name)
        return RP_MLIR_FAIL(r, where, "a function without a name");
    RP_TRY(rp_mlir_begin_function(r, name));
    rp_mlir_space(r);
    if (r->at < r->end && *r->at == '^') {
        while (r->at < r->end && *r->at != '(' && *r->at != ':' && *r->at != '\n')
            r->at++;
        if (r->at < r->end && *r->at == '(')
            RP_TRY(rp_mlir_arguments(r));
        if (r->at < r->end && *r->at == ':')
            r->at++;
    }
    RP_TRY(rp_mlir_parameters(r, first, r->args.n - first, false));
    return read_function_body(r);
}

/* "#loc5 = loc("name"(#loc4))", "loc("file.py":3:4 to :9)", "loc(callsite(#loc1 at #loc2))" */
static enum rp_code read_location_line(struct rp_mlir *r, const char *at, const char *end)
{
    struct rp_mlir_loc loc = {0};
    uint64_t number = 0;
    const char *s;

    for (s = at + 4; s < end && *s >= '0' && *s <= '9' && number < 10000000; s++)
        number = number * 10 + (uint64_t)(*s - '0');
    if (s == at + 4)
        number = 0;
    const char *quote = memchr(s, '"', (size_t)(end - s));
    if (quote) {
        const char *close = rp_mlir_string_end(r, quote);
        uint32_t *text = close < end && *close == ':' ? &loc.file : &loc.name;

        if (close > end || close - quote < 2)
            return RP_OK;
        struct rp_slice value = {quote + 1, (uint32_t)(close - quote - 2), 0};
        RP_TRY(rp_mlir_unescape(r, &value));
        RP_TRY(rp_program_string(r->p, value.at, value.n, text, r->err));
        for (s = close < end ? close + 1 : end;
             loc.file && s < end && *s >= '0' && *s <= '9' && loc.line < 100000000; s++)
            loc.line = loc.line * 10 + (*s - '0');
    }
    const char *ref = memmem(s, (size_t)(end - s), "#loc", 4);
    if (ref && !loc.file) {
        for (ref += 4; ref < end && *ref >= '0' && *ref <= '9' && loc.ref < 10000000; ref++)
            loc.ref = loc.ref * 10 + (uint32_t)(*ref - '0');
        loc.ref++;
    }
    if (number > (uint64_t)(r->end - r->begin))
        return RP_OK;
    while (r->locs.n <= number)
        RP_TRY(rp_vec_push(&r->locs, (struct rp_mlir_loc){0}, r->err));
    r->locs.at[number] = loc;
    return RP_OK;
}

static enum rp_code read_top_line(struct rp_mlir *r)
{
    const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));

    end = end ? end : r->end;
    if (end - r->at > 4 && memcmp(r->at, "#loc", 4) == 0)
        RP_TRY(read_location_line(r, r->at, end));
    else if (end - r->at > 9 && memcmp(r->at, "sdy.mesh ", 9) == 0) {
        /* "sdy.mesh @mesh = <["x"=4]>" */
        const char *name = memchr(r->at, '@', (size_t)(end - r->at)), *from;
        const char *open = name ? memchr(name, '<', (size_t)(end - name)) : NULL;
        const char *to = open ? rp_mlir_bracket_end(r, open) : NULL;
        if (to && to <= end) {
            for (from = name += 1 + (name[1] == '"'); name < open && rp_mlir_word_char(*name);
                 name++)
                ;
            RP_TRY(rp_mlir_mesh(r, (struct rp_slice){from, (uint32_t)(name - from), 0},
                                (struct rp_slice){open, (uint32_t)(to - open), 0}));
        }
    }
    r->at = end;
    return RP_OK;
}

static enum rp_code read_module(struct rp_mlir *r)
{
    for (rp_mlir_space(r); r->at < r->end; rp_mlir_space(r)) {
        if (rp_mlir_take_word(r, "func.func") || rp_mlir_take_word(r, "func")) {
            RP_TRY(read_function(r));
        } else if (rp_mlir_take_word(r, "\"func.func\"")) {
            RP_TRY(read_generic_function(r));
        } else if (rp_mlir_take_word(r, "\"builtin.module\"")) {
            RP_TRY(read_generic_head(r, &r->p->name));
        } else if (rp_mlir_take_word(r, "module")) {
            rp_mlir_space(r);
            if (r->at < r->end && *r->at == '@')
                RP_TRY(rp_mlir_name_at(r, &r->p->name));
            const char *line = memchr(r->at, '\n', (size_t)(r->end - r->at));
            RP_TRY(rp_mlir_module_attrs(
                r, &(struct rp_mlir_attrs){.at = r->at, .end = line ? line : r->end}));
            RP_TRY(read_top_line(r)); /* skips attributes up to the '{' at the end of the line */
        } else {
            RP_TRY(read_top_line(r));
        }
    }
    return rp_mlir_finish(r);
}

static enum rp_code mlir_read_program(struct rp_mlir *r, const uint8_t *bytes, size_t n,
                                      bool bytecode)
{
    r->begin = r->at = (const char *)bytes;
    r->end = r->begin + n;
    rp_map_init(&r->parts);
    rp_map_init(&r->origins);
    enum rp_code code = bytecode ? rp_bytecode_build(r) : read_module(r);
    RP_EACH(rp_map_release, &r->parts, &r->origins);
    RP_EACH(rp_vec_release, &r->regions, &r->args, &r->outside, &r->seen, &r->carried, &r->late);
    rp_chars_release(&r->meshes);
    RP_EACH(rp_vec_release, &r->op_of, &r->function_of, &r->operands, &r->results, &r->waiting,
            &r->locs);
    return code;
}

static enum rp_code mlir_read(struct rp_input *in, const struct rp_read_options *options,
                              struct rp_import *to, struct rp_err *err)
{
    struct rp_mlir r = {.err = err};
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_program_new("stablehlo", &to->program, err));
    to->borrows_input = true;
    to->content_bytes = n;
    r.p = to->program;
    r.limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    return mlir_read_program(&r, bytes, n, false);
}

static enum rp_code bytecode_read(struct rp_input *in, const struct rp_read_options *options,
                                  struct rp_import *to, struct rp_err *err)
{
    struct rp_mlir r = {.err = err};
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    RP_TRY(rp_program_new("stablehlo", &to->program, err));
    to->borrows_input = true;
    to->content_bytes = n;
    r.p = to->program;
    r.limits = options->limits ? *options->limits : RP_LIMITS_DEFAULT;
    const uint8_t *module = rp_bytecode_find(bytes, n);
    if (!module)
        return rp_err_set(err, RP_FORMAT, "no MLIR bytecode in it");
    n -= (size_t)(module - bytes);
    if (module != bytes && rp_bytecode_length(module) > n)
        return rp_err_set_at(err, RP_FORMAT, (uint64_t)(module - bytes),
                             "byte %zu: %zu bytes of MLIR bytecode are announced, %zu follow",
                             (size_t)(module - bytes), rp_bytecode_length(module), n);
    if (module != bytes)
        n = rp_bytecode_length(module);
    to->program->source.at = (const char *)module;
    to->program->source.n = n;
    return mlir_read_program(&r, module, n, true);
}

static enum rp_sniff mlir_sniff(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    if (memchr(head, 0, n))
        return RP_SNIFF_NO;
    if (memmem(head, n, "func.func ", 10) || memmem(head, n, "\"func.func\"(", 12))
        return RP_SNIFF_CERTAIN;
    if ((n > 17 && memcmp(head, "\"builtin.module\"(", 17) == 0) ||
        (n > 12 && memcmp(head, "#loc", 4) == 0 && memmem(head, 16, " = loc(", 7)))
        return RP_SNIFF_LIKELY; /* the names of many arguments may come before the module */
    return memmem(head, n, "\nmodule @", 9) || (n > 8 && memcmp(head, "module @", 8) == 0)
               ? RP_SNIFF_LIKELY
               : RP_SNIFF_NO;
}

/* Recognises the magic number, or a file of jax.export: a FlatBuffer with the module inside. */
static enum rp_sniff bytecode_sniff(const uint8_t *head, size_t n, const char *file)
{
    uint32_t root;

    (void)file;
    if (n > 4 && memcmp(head, "ML\xefR", 4) == 0)
        return RP_SNIFF_CERTAIN;
    if (n < 16 || !memmem(head, n, "ML\xefR", 4))
        return RP_SNIFF_NO;
    memcpy(&root, head, sizeof root);
    return root < n && root >= 8 && rp_bytecode_find(head, n) ? RP_SNIFF_LIKELY : RP_SNIFF_NO;
}

const struct rp_format rp_format_mlir_bytecode = {
    .name = "mlir-bytecode",
    .summary = "StableHLO as MLIR bytecode, also in files of jax.export",
    .files = "*.mlirbc, *.bytecode",
    .written_by = "jax.export, PyTorch/XLA, serialize_portable_artifact",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = bytecode_sniff,
    .read = bytecode_read,
};

const struct rp_format rp_format_stablehlo = {
    .name = "stablehlo",
    .summary = "StableHLO or MHLO as MLIR text",
    .files = "*.mlir",
    .written_by = "JAX, PyTorch/XLA, TensorFlow",
    .kind = RP_FORMAT_KIND_PROGRAM,
    .sniff = mlir_sniff,
    .read = mlir_read,
};
