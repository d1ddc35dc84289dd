/* SPDX-License-Identifier: Apache-2.0 */
/* The table of attributes; values are made and looked at here. attr_parse.c and attr_print.c handle
   their text. */
#include "program/program.h"

#include <string.h>

#define QUIET RP_ATTRF_QUIET
#define ZERO  RP_ATTRF_ZERO
#define ONE   RP_ATTRF_ONE
static const struct {
    uint8_t type, flags;
} rows[RP_ATTR_COUNT] = {
    {RP_VALUE_TEXT, QUIET},
#define RP_ATTR(id, key, type, field, inner, flags) {RP_VALUE_##type, flags},
#include "program/attrs.def"
#undef RP_ATTR
};

enum rp_value_type rp_attr_type(uint32_t key)
{
    return key < RP_ATTR_COUNT ? (enum rp_value_type)rows[key].type : RP_VALUE_TEXT;
}

unsigned rp_attr_flags(uint32_t key)
{
    return key < RP_ATTR_COUNT ? rows[key].flags : 0;
}

struct rp_attr rp_attr_word(uint32_t key, const char *word)
{
    return rp_attr_bytes(key, RP_VALUE_WORD, word, strlen(word));
}

struct rp_attr rp_attr_int_list(struct rp_program *p, uint32_t key, enum rp_value_type type,
                                const int64_t *at, size_t n)
{
    int64_t *kept = n ? rp_arena_alloc(&p->arena, n * sizeof *at, _Alignof(int64_t)) : NULL;

    if (kept)
        memcpy(kept, at, n * sizeof *at);
    return (struct rp_attr){.ints = kept, .n = (uint32_t)n, .key = key, .type = (uint8_t)type};
}

struct rp_attr rp_attr_ints(struct rp_program *p, uint32_t key, const int64_t *at, size_t n)
{
    return rp_attr_int_list(p, key, RP_VALUE_INTS, at, n);
}

bool rp_attr_numbers(const struct rp_attr *attr, const int64_t **at, size_t *n)
{
    static const int64_t none;

    *at = NULL;
    *n = 0;
    if (attr->type == RP_VALUE_INT) {
        *at = &attr->number;
        *n = 1;
        return true;
    }
    if (attr->type != RP_VALUE_INTS)
        return false;
    *at = attr->n ? attr->ints : &none;
    *n = attr->n;
    return true;
}

bool rp_attr_is(const struct rp_attr *attr, const char *word)
{
    if (attr->type == RP_VALUE_FLAG)
        return strcmp(word, attr->number ? "true" : "false") == 0;
    return rp_attr_is_bytes(attr) && attr->n == strlen(word) &&
           memcmp(attr->at, word, attr->n) == 0;
}
