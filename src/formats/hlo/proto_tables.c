/* SPDX-License-Identifier: Apache-2.0 */
/* Which attribute is which field of HloInstructionProto, and the words of its enums. */
#include "formats/hlo/proto.h"

#include <string.h>

/* By the number of the field. */
static const struct hlo_codec_row rows[] = {
    [11] = {11, RP_ATTR_KIND, HLO_WORD},
    [18] = {18, RP_ATTR_EXPONENT_BITS, HLO_INT},
    [19] = {19, RP_ATTR_MANTISSA_BITS, HLO_INT},
    [20] = {20, RP_ATTR_DYNAMIC_SLICE_SIZES, HLO_INTS},
    [22] = {22, RP_ATTR_OUTFEED_CONFIG, HLO_QUOTED},
    [24] = {24, RP_ATTR_EPSILON, HLO_FLOAT},
    [25] = {25, RP_ATTR_FEATURE_INDEX, HLO_INT},
    [26] = {26, RP_ATTR_CHANNEL_ID, HLO_INT},
    [27] = {27, RP_ATTR_INFEED_CONFIG, HLO_QUOTED},
    [28] = {28, RP_ATTR_CUSTOM_CALL_TARGET, HLO_QUOTED},
    [32] = {32, RP_ATTR_FFT_LENGTH, HLO_INTS},
    [34] = {34, RP_ATTR_SLICE_SIZES, HLO_INTS},
    [47] = {47, RP_ATTR_IS_HOST_TRANSFER, HLO_BOOL},
    [50] = {50, RP_ATTR_FEATURE_GROUP_COUNT, HLO_INT1},
    [56] = {56, RP_ATTR_CONSTRAIN_LAYOUT, HLO_BOOL},
    [58] = {58, RP_ATTR_BATCH_GROUP_COUNT, HLO_INT1},
    [60] = {60, RP_ATTR_IS_STABLE, HLO_BOOL},
    [63] = {63, RP_ATTR_DIRECTION, HLO_WORD},
    [65] = {65, RP_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, HLO_BOOL},
    [66] = {66, RP_ATTR_DELTA, HLO_INT},
    [67] = {67, RP_ATTR_INDICES_ARE_SORTED, HLO_BOOL},
    [69] = {69, RP_ATTR_UNIQUE_INDICES, HLO_BOOL},
    [71] = {71, RP_ATTR_USE_GLOBAL_DEVICE_IDS, HLO_BOOL},
    [72] = {72, RP_ATTR_TYPE, HLO_WORD},
    [79] = {79, RP_ATTR_ASYNC_EXECUTION_THREAD, HLO_QUOTED},
    [80] = {80, RP_ATTR_CROSS_PROGRAM_PREFETCH_INDEX, HLO_INT0},
    [81] = {81, RP_ATTR_K, HLO_INT},
    [85] = {85, RP_ATTR_LARGEST, HLO_BOOL},
    [89] = {89, RP_ATTR_IS_COMPOSITE, HLO_BOOL},
    [94] = {94, RP_ATTR_IS_REVERSE, HLO_BOOL},
    [95] = {95, RP_ATTR_NUM_CARRIES, HLO_INT},
    [102] = {102, RP_ATTR_ORDER, HLO_WORD},
};
#define NROWS (sizeof rows / sizeof *rows)

const struct hlo_codec_row *hlo_codec_of_field(uint32_t field)
{
    return field < NROWS && rows[field].field ? &rows[field] : NULL;
}

const struct hlo_codec_row *hlo_codec_of_key(uint32_t key)
{
    for (size_t i = 0; i < NROWS; i++)
        if (rows[i].field && rows[i].key == key)
            return &rows[i];
    return NULL;
}

static const struct hlo_group_row groups[] = {
    {30, 3, RP_ATTR_LHS_BATCH_DIMS, false},
    {30, 1, RP_ATTR_LHS_CONTRACTING_DIMS, false},
    {30, 4, RP_ATTR_RHS_BATCH_DIMS, false},
    {30, 2, RP_ATTR_RHS_CONTRACTING_DIMS, false},
    {33, 1, RP_ATTR_OFFSET_DIMS, false},
    {33, 2, RP_ATTR_COLLAPSED_SLICE_DIMS, false},
    {33, 3, RP_ATTR_START_INDEX_MAP, false},
    {33, 5, RP_ATTR_OPERAND_BATCHING_DIMS, false},
    {33, 6, RP_ATTR_START_INDICES_BATCHING_DIMS, false},
    {33, 4, RP_ATTR_INDEX_VECTOR_DIM, true},
    {48, 1, RP_ATTR_UPDATE_WINDOW_DIMS, false},
    {48, 2, RP_ATTR_INSERTED_WINDOW_DIMS, false},
    {48, 3, RP_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS, false},
    {48, 5, RP_ATTR_INPUT_BATCHING_DIMS, false},
    {48, 6, RP_ATTR_SCATTER_INDICES_BATCHING_DIMS, false},
    {48, 4, RP_ATTR_INDEX_VECTOR_DIM, true},
};

const struct hlo_group_row *hlo_group_rows(size_t *n)
{
    *n = sizeof groups / sizeof *groups;
    return groups;
}

/* ---- enums ---- */

struct words {
    uint16_t key, field;
    bool of_dot;
    const char *word[16]; /* by value; NULL: says nothing */
};

static const struct words enums[] = {
    {RP_ATTR_DISTRIBUTION, 23, false, {NULL, "rng_uniform", "rng_normal"}},
    {RP_ATTR_FFT_TYPE, 31, false, {"FFT", "IFFT", "RFFT", "IRFFT"}},
    {RP_ATTR_ALGORITHM, 70, false, {"rng_default", "rng_three_fry", "rng_philox"}},
    {RP_ATTR_PADDING_TYPE, 75, false, {NULL, "PADDING_VALID", "PADDING_SAME"}},
    {RP_ATTR_SCHEDULE, 76, false, {NULL, "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"}},
    {RP_ATTR_API_VERSION,
     77,
     false,
     {NULL, NULL, "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
      "API_VERSION_TYPED_FFI"}},
    {RP_ATTR_OPERAND_PRECISION, 0, false, {"default", "high", "highest"}},
    {RP_ATTR_TRANSPOSE_A, 0, false, {NULL, "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}},
    {RP_ATTR_ALGORITHM,
     0,
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

const char *hlo_enum_word(uint32_t key, bool of_dot, uint64_t value)
{
    const struct words *w = find_enum(key, of_dot);

    return w && value < 16 ? w->word[value] : NULL;
}

bool hlo_enum_value(uint32_t key, bool of_dot, const char *word, size_t n, uint64_t *value)
{
    const struct words *w = find_enum(key, of_dot);

    for (*value = 0; w && *value < 16; ++*value) {
        const char *have = w->word[*value];

        if (have && strlen(have) == n && memcmp(have, word, n) == 0)
            return true;
    }
    return false;
}

bool hlo_enum_field(uint32_t key, bool of_dot, uint32_t *field)
{
    const struct words *w = find_enum(key, of_dot);

    *field = w ? w->field : 0;
    return *field != 0;
}
