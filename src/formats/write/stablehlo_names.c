/* SPDX-License-Identifier: Apache-2.0 */
/* What StableHLO and CHLO call the operations of HLO. */
#include "base/escape.h"
#include "formats/write/stablehlo.h"
#include "program/opcodes.h"

#include <string.h>

/* Indexed by opcode; NULL if it has no name there, or has a form of its own. */
static const char *const names[] = {
    [RP_OP_ABS] = "stablehlo.abs",
    [RP_OP_ACOS] = "chlo.acos",
    [RP_OP_ACOSH] = "chlo.acosh",
    [RP_OP_ADD] = "stablehlo.add",
    [RP_OP_AFTER_ALL] = "stablehlo.after_all",
    [RP_OP_ALL_GATHER] = "stablehlo.all_gather",
    [RP_OP_ALL_GATHER_START] = "stablehlo.all_gather",
    [RP_OP_ALL_REDUCE] = "stablehlo.all_reduce",
    [RP_OP_ALL_REDUCE_START] = "stablehlo.all_reduce",
    [RP_OP_ALL_TO_ALL] = "stablehlo.all_to_all",
    [RP_OP_AND] = "stablehlo.and",
    [RP_OP_ASIN] = "chlo.asin",
    [RP_OP_ASINH] = "chlo.asinh",
    [RP_OP_ATAN2] = "stablehlo.atan2",
    [RP_OP_ATANH] = "chlo.atanh",
    [RP_OP_BATCH_NORM_GRAD] = "stablehlo.batch_norm_grad",
    [RP_OP_BATCH_NORM_INFERENCE] = "stablehlo.batch_norm_inference",
    [RP_OP_BATCH_NORM_TRAINING] = "stablehlo.batch_norm_training",
    [RP_OP_BITCAST_CONVERT] = "stablehlo.bitcast_convert",
    [RP_OP_BROADCAST] = "stablehlo.broadcast_in_dim",
    [RP_OP_CBRT] = "stablehlo.cbrt",
    [RP_OP_CEIL] = "stablehlo.ceil",
    [RP_OP_CHOLESKY] = "stablehlo.cholesky",
    [RP_OP_CLAMP] = "stablehlo.clamp",
    [RP_OP_CLZ] = "stablehlo.count_leading_zeros",
    [RP_OP_COLLECTIVE_BROADCAST] = "stablehlo.collective_broadcast",
    [RP_OP_COLLECTIVE_PERMUTE] = "stablehlo.collective_permute",
    [RP_OP_COLLECTIVE_PERMUTE_START] = "stablehlo.collective_permute",
    [RP_OP_COMPARE] = "stablehlo.compare",
    [RP_OP_COMPLEX] = "stablehlo.complex",
    [RP_OP_CONCATENATE] = "stablehlo.concatenate",
    [RP_OP_CONSTANT] = "stablehlo.constant",
    [RP_OP_CONVERT] = "stablehlo.convert",
    [RP_OP_CONVOLUTION] = "stablehlo.convolution",
    [RP_OP_COSH] = "chlo.cosh",
    [RP_OP_COSINE] = "stablehlo.cosine",
    [RP_OP_CUSTOM_CALL] = "stablehlo.custom_call",
    [RP_OP_DIVIDE] = "stablehlo.divide",
    [RP_OP_DOT] = "stablehlo.dot_general",
    [RP_OP_DYNAMIC_SLICE] = "stablehlo.dynamic_slice",
    [RP_OP_DYNAMIC_UPDATE_SLICE] = "stablehlo.dynamic_update_slice",
    [RP_OP_ERF] = "chlo.erf",
    [RP_OP_EXP] = "stablehlo.exponential",
    [RP_OP_EXPM1] = "stablehlo.exponential_minus_one",
    [RP_OP_FFT] = "stablehlo.fft",
    [RP_OP_FLOOR] = "stablehlo.floor",
    [RP_OP_GATHER] = "stablehlo.gather",
    [RP_OP_GET_DIMENSION_SIZE] = "stablehlo.get_dimension_size",
    [RP_OP_IMAG] = "stablehlo.imag",
    [RP_OP_IOTA] = "stablehlo.iota",
    [RP_OP_IS_FINITE] = "stablehlo.is_finite",
    [RP_OP_LOG] = "stablehlo.log",
    [RP_OP_LOG1P] = "stablehlo.log_plus_one",
    [RP_OP_LOGISTIC] = "stablehlo.logistic",
    [RP_OP_MAP] = "stablehlo.map",
    [RP_OP_MAXIMUM] = "stablehlo.maximum",
    [RP_OP_MINIMUM] = "stablehlo.minimum",
    [RP_OP_MULHI] = "chlo.mulhi",
    [RP_OP_MULTIPLY] = "stablehlo.multiply",
    [RP_OP_NEGATE] = "stablehlo.negate",
    [RP_OP_NOT] = "stablehlo.not",
    [RP_OP_OPT_BARRIER] = "stablehlo.optimization_barrier",
    [RP_OP_OR] = "stablehlo.or",
    [RP_OP_PAD] = "stablehlo.pad",
    [RP_OP_PARTITION_ID] = "stablehlo.partition_id",
    [RP_OP_POPCNT] = "stablehlo.popcnt",
    [RP_OP_POWER] = "stablehlo.power",
    [RP_OP_REAL] = "stablehlo.real",
    [RP_OP_REDUCE] = "stablehlo.reduce",
    [RP_OP_REDUCE_PRECISION] = "stablehlo.reduce_precision",
    [RP_OP_REDUCE_SCATTER] = "stablehlo.reduce_scatter",
    [RP_OP_REDUCE_WINDOW] = "stablehlo.reduce_window",
    [RP_OP_REMAINDER] = "stablehlo.remainder",
    [RP_OP_REPLICA_ID] = "stablehlo.replica_id",
    [RP_OP_RESHAPE] = "stablehlo.reshape",
    [RP_OP_REVERSE] = "stablehlo.reverse",
    [RP_OP_RNG] = "stablehlo.rng",
    [RP_OP_RNG_BIT_GENERATOR] = "stablehlo.rng_bit_generator",
    [RP_OP_ROUND_NEAREST_AFZ] = "stablehlo.round_nearest_afz",
    [RP_OP_ROUND_NEAREST_EVEN] = "stablehlo.round_nearest_even",
    [RP_OP_RSQRT] = "stablehlo.rsqrt",
    [RP_OP_SCATTER] = "stablehlo.scatter",
    [RP_OP_SELECT] = "stablehlo.select",
    [RP_OP_SELECT_AND_SCATTER] = "stablehlo.select_and_scatter",
    [RP_OP_SHIFT_LEFT] = "stablehlo.shift_left",
    [RP_OP_SHIFT_RIGHT_ARITHMETIC] = "stablehlo.shift_right_arithmetic",
    [RP_OP_SHIFT_RIGHT_LOGICAL] = "stablehlo.shift_right_logical",
    [RP_OP_SIGN] = "stablehlo.sign",
    [RP_OP_SINE] = "stablehlo.sine",
    [RP_OP_SINH] = "chlo.sinh",
    [RP_OP_SLICE] = "stablehlo.slice",
    [RP_OP_SORT] = "stablehlo.sort",
    [RP_OP_SQRT] = "stablehlo.sqrt",
    [RP_OP_SUBTRACT] = "stablehlo.subtract",
    [RP_OP_TAN] = "stablehlo.tan",
    [RP_OP_TANH] = "stablehlo.tanh",
    [RP_OP_TOPK] = "chlo.top_k",
    [RP_OP_TRANSPOSE] = "stablehlo.transpose",
    [RP_OP_TRIANGULAR_SOLVE] = "stablehlo.triangular_solve",
    [RP_OP_XOR] = "stablehlo.xor",
};

/* What HLO does not have keeps its own name. */
const char *rp_shlo_name(const struct rp_program *p, uint32_t op)
{
    uint16_t code = p->code.at[op];
    const char *own = rp_op_opcode_name(p, op), *dot = strchr(own, '.');

    if (rp_shlo_is_topk(p, op))
        return names[RP_OP_TOPK];
    if (code != RP_OP_FOREIGN)
        return code < sizeof names / sizeof *names ? names[code] : NULL;
    if (strcmp(p->language, "stablehlo") != 0 || !dot ||
        (strncmp(own, "chlo.", 5) != 0 && strncmp(own, "stablehlo.", 10) != 0))
        return NULL;
    return rp_escape_needless(RP_IN_NAME, dot + 1, strlen(dot + 1)) ? own : NULL;
}
