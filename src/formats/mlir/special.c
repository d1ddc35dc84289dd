/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of StableHLO that are words or strings and not lists of numbers: Fourier transforms,
 * random bits, precisions, custom calls. In both forms, in HLO's words; of operations that HLO does
 * not have, the text as it is.
 */
#include "formats/mlir/mlir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *value_of(const struct mlir_text *text, const char *key)
{
    const char *s = mlir_find_key(text, key);

    while (s && s < text->end && *s == ' ')
        s++;
    return s && s < text->end ? s : NULL;
}

/* "type = RFFT" or "#stablehlo<fft_type RFFT>": the first of the words, in HLO's spelling. */
static enum rp_code word(struct mlir *r, const struct mlir_text *text, uint32_t key,
                         const char *const (*words)[2])
{
    for (; (*words)[0]; words++)
        if (mlir_find_word(text, (const char *const[]){(*words)[0], NULL}))
            return rp_program_add_attr(r->p, rp_attr_word(key, (*words)[1]), r->err);
    return RP_OK;
}

/* "format = e5m3", or two numbers */
static enum rp_code precision(struct mlir *r, const struct mlir_text *text)
{
    static const struct {
        uint32_t key;
        const char *word;
        char letter;
    } parts[] = {{RP_ATTR_EXPONENT_BITS, "exponent_bits", 'e'},
                 {RP_ATTR_MANTISSA_BITS, "mantissa_bits", 'm'}};
    const char *format = value_of(text, "format");

    for (size_t i = 0; i < 2; i++) {
        const char *s = value_of(text, parts[i].word), *from;

        if (!s && format) {
            s = memchr(format, parts[i].letter, (size_t)(text->end - format));
            s = s ? s + 1 : NULL;
        }
        for (from = s; s && s < text->end && *s >= '0' && *s <= '9'; s++)
            ;
        if (s && s > from)
            RP_TRY(rp_program_add_attr(
                r->p, rp_attr_parse(r->p, parts[i].key, from, (size_t)(s - from)), r->err));
    }
    return RP_OK;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* MLIR's escapes: \n \t \" \\ and two hexadecimal digits. */
static size_t unescape(const char *in, size_t n, char *out)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        if (in[i] != '\\' || i + 1 == n) {
            out[len++] = in[i];
        } else if (i + 2 < n && hex(in[i + 1]) >= 0 && hex(in[i + 2]) >= 0) {
            out[len++] = (char)(hex(in[i + 1]) << 4 | hex(in[i + 2]));
            i += 2;
        } else {
            char c = in[++i];

            out[len++] = (char)(c == 'n' ? '\n' : c == 't' ? '\t' : c);
        }
    }
    return len;
}

/* The content of a string, or a dictionary as it is; nothing where it is empty. */
static enum rp_code add_value(struct mlir *r, const struct mlir_text *text, const char *s,
                              uint32_t key)
{
    const char *to = *s == '"' ? mlir_string_end(r, s) : *s == '{' ? mlir_bracket_end(r, s) : NULL;
    struct rp_attr attr;
    char *copy;

    if (!to || to > text->end || to - s <= 2)
        return RP_OK;
    attr = rp_attr_bytes(key, rp_attr_type(key), s, (size_t)(to - s));
    if (*s == '"') {
        attr.at++;
        attr.n -= 2;
    }
    if (*s == '"' && memchr(attr.at, '\\', attr.n)) {
        copy = rp_arena_alloc(&r->p->arena, attr.n, 1);
        attr.n = copy ? (uint32_t)unescape(attr.at, attr.n, copy) : attr.n;
        attr.at = copy;
    }
    return rp_program_add_attr(r->p, attr, r->err);
}

static enum rp_code api_version(struct mlir *r, const struct mlir_text *text, bool typed)
{
    static const char *const words[] = {NULL, NULL, "API_VERSION_STATUS_RETURNING",
                                        "API_VERSION_STATUS_RETURNING_UNIFIED",
                                        "API_VERSION_TYPED_FFI"};
    const char *s = value_of(text, "api_version");
    unsigned v = typed ? 4 : s && *s >= '0' && *s <= '4' ? (unsigned)(*s - '0') : 0;

    if (!words[v])
        return RP_OK;
    return rp_program_add_attr(r->p, rp_attr_word(RP_ATTR_API_VERSION, words[v]), r->err);
}

static enum rp_code custom_call(struct mlir *r, const struct mlir_text *text)
{
    const char *target = value_of(text, "call_target_name");
    const char *typed = value_of(text, "mhlo.backend_config");
    const char *config = typed ? typed : value_of(text, "backend_config");
    const char *effect = value_of(text, "has_side_effect");

    if (target)
        RP_TRY(add_value(r, text, target, RP_ATTR_CUSTOM_CALL_TARGET));
    if (effect && *effect == 't')
        RP_TRY(rp_program_add_attr(r->p, rp_attr_flag(RP_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, true),
                                   r->err));
    RP_TRY(api_version(r, text, typed && *typed == '{'));
    return config ? add_value(r, text, config, RP_ATTR_BACKEND_CONFIG) : RP_OK;
}

enum rp_code mlir_special(struct mlir *r, enum rp_opcode code, const struct mlir_text *text,
                          bool *known)
{
    static const char *const transforms[][2] = {
        {"IRFFT", "IRFFT"}, {"RFFT", "RFFT"}, {"IFFT", "IFFT"}, {"FFT", "FFT"}, {NULL, NULL}};
    static const char *const generators[][2] = {{"DEFAULT", "rng_default"},
                                                {"THREE_FRY", "rng_three_fry"},
                                                {"PHILOX", "rng_philox"},
                                                {NULL, NULL}};
    static const char *const distributions[][2] = {
        {"UNIFORM", "rng_uniform"}, {"NORMAL", "rng_normal"}, {NULL, NULL}};

    *known = true;
    switch (code) {
    case RP_OP_FFT:
        return word(r, text, RP_ATTR_FFT_TYPE, transforms);
    case RP_OP_RNG_BIT_GENERATOR:
        return word(r, text, RP_ATTR_ALGORITHM, generators);
    case RP_OP_RNG:
        return word(r, text, RP_ATTR_DISTRIBUTION, distributions);
    case RP_OP_REDUCE_PRECISION:
        return precision(r, text);
    case RP_OP_CUSTOM_CALL:
        return custom_call(r, text);
    case RP_OP_CALL: /* its function is no attribute */
        return RP_OK;
    default:
        *known = false;
        return RP_OK;
    }
}

enum rp_code mlir_callee(struct mlir *r, const struct mlir_text *text, uint32_t *name)
{
    struct mlir look = *r;
    const char *s = value_of(text, "callee");

    if (!s || *s != '@')
        return RP_OK;
    look.at = s;
    return mlir_name_at(&look, name);
}

enum rp_code mlir_keep_text(struct mlir *r, const char *at, const char *end, uint32_t operation)
{
    const char *mesh;
    uint32_t key;

    while (at < end && (*at == ' ' || *at == ',' || *at == '(' || *at == ')' || *at == '%')) {
        if (*at == '%')
            while (at < end && *at != ' ' && *at != ',' && *at != ')')
                at++;
        else
            at++;
    }
    while (end > at && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == ','))
        end--;
    if (at == end || memchr(at, '%', (size_t)(end - at)))
        return RP_OK;
    mesh = memmem(at, (size_t)(end - at), "<@", 2);
    if (mesh && strncmp(rp_program_text(r->p, operation), "sdy.", 4) == 0) {
        const char *to = mlir_bracket_end(r, mesh); /* the same in both forms */

        return rp_program_add_text(r->p, RP_ATTR_SHARDING, mesh,
                                   (size_t)((to && to < end ? to : end) - mesh), r->err);
    }
    RP_TRY(rp_program_string(r->p, "attributes", 10, &key, r->err));
    return rp_program_add_text(r->p, key, at, (size_t)(end - at), r->err);
}
