/* SPDX-License-Identifier: Apache-2.0 */
/* Says which attribute is which field of HloInstructionProto, and lists the words of
   enumerations. */
#include "formats/hlo/proto.h"

#include "abi/proto/hlo.h"

#include <string.h>

static const struct rp_hlo_attr_field rows[] = {
    {0, 0},
#define RP_ATTR(id, key, type, field, inner, flags) {field, inner},
#include "program/attrs.def"
#undef RP_ATTR
};

struct rp_hlo_attr_field rp_hlo_attr_field(uint32_t key)
{
    return key < RP_ATTR_COUNT ? rows[key] : rows[0];
}

void rp_hlo_index_fields(struct rp_hlo_proto *r)
{
    for (unsigned key = 1; key < RP_ATTR_COUNT; key++)
        if (rows[key].field && !rows[key].inner && rows[key].field < RP_HLO_PROTO_FIELDS &&
            key != RP_ATTR_IOTA_DIMENSION)
            r->key_of[rows[key].field] = (uint16_t)key;
}

/* ---- enumerations ---- */

struct words {
    uint16_t key;
    bool of_dot;
    const char *word[16]; /* indexed by value; NULL: the value has no word */
};

static const struct words enums[] = {
    {RP_ATTR_DISTRIBUTION, false, {NULL, "rng_uniform", "rng_normal"}},
    {RP_ATTR_FFT_TYPE, false, {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {RP_ATTR_ALGORITHM, false, {"rng_default", "rng_three_fry", "rng_philox"}},
    {RP_ATTR_PADDING_TYPE, false, {NULL, "PADDING_VALID", "PADDING_SAME"}},
    {RP_ATTR_SCHEDULE, false, {NULL, "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"}},
    {RP_ATTR_API_VERSION,
     false,
     {NULL, NULL, "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
      "API_VERSION_TYPED_FFI"}},
    {RP_ATTR_IS_ASSOCIATIVE, false, {NULL, "true", "false"}},
    {RP_ATTR_CONVOLUTION_KIND, false, {NULL, "fprop", "dgrad", "wgrad"}},
    {RP_ATTR_OPERAND_PRECISION, false, {"default", "high", "highest"}},
    {RP_ATTR_TRANSPOSE_A, false, {NULL, "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {RP_ATTR_ALGORITHM,
     true,
     {NULL, "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16",
      "dot_f16_f16_f32", "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3",
      "dot_bf16_bf16_f32_x6", "dot_tf32_tf32_f32", "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32",
      "dot_f64_f64_f64", "dot_bf16_bf16_f32_x9"}},
};

static const struct words *find_enum(uint32_t key, bool of_dot)
{
    for (size_t i = 0; i < sizeof enums / sizeof *enums; i++)
        if (enums[i].key == key && enums[i].of_dot == of_dot)
            return &enums[i];
    return NULL;
}

const char *rp_hlo_enum_word(uint32_t key, bool of_dot, uint64_t value)
{
    const struct words *w = find_enum(key, of_dot);

    return w && value < 16 ? w->word[value] : NULL;
}

bool rp_hlo_is_enum(uint32_t key)
{
    return find_enum(key, false) != NULL;
}

bool rp_hlo_enum_value(uint32_t key, bool of_dot, const char *word, size_t n, uint64_t *value)
{
    const struct words *w = find_enum(key, of_dot);

    for (*value = 0; w && *value < 16; ++*value) {
        const char *have = w->word[*value];

        if (have && strlen(have) == n && memcmp(have, word, n) == 0)
            return true;
    }
    return false;
}
