/* SPDX-License-Identifier: Apache-2.0 */
/* What StableHLO and CHLO call the operations of HLO. */
#include "base/escape.h"
#include "formats/write/stablehlo.h"
#include "program/opcodes.h"

#include <stdio.h>
#include <string.h>

/* Operations that have the name of HLO's, with '_' for its '-'. */
static const char stablehlo[] =
    " abs add after-all all-gather all-reduce all-to-all and atan2 batch-norm-grad"
    " batch-norm-inference batch-norm-training bitcast-convert cbrt ceil cholesky clamp"
    " count-leading-zeros collective-broadcast collective-permute compare complex"
    " concatenate constant convert convolution cosine custom-call divide dynamic-slice"
    " dynamic-update-slice exponential exponential-minus-one fft floor gather"
    " get-dimension-size imag iota is-finite log log-plus-one logistic map maximum minimum"
    " multiply negate not or pad partition-id popcnt power real reduce reduce-precision"
    " reduce-scatter reduce-window remainder replica-id reshape reverse rng"
    " rng-bit-generator round-nearest-afz round-nearest-even rsqrt scatter select"
    " select-and-scatter shift-left shift-right-arithmetic shift-right-logical sign sine"
    " slice sort sqrt subtract tan tanh transpose triangular-solve xor ";
static const char chlo[] = " acos acosh asin asinh atanh cosh erf mulhi sinh ";

static const struct {
    uint16_t code;
    const char *name;
} others[] = {{RP_OP_ALL_GATHER_START, "stablehlo.all_gather"},
              {RP_OP_ALL_REDUCE_START, "stablehlo.all_reduce"},
              {RP_OP_BROADCAST, "stablehlo.broadcast_in_dim"},
              {RP_OP_COLLECTIVE_PERMUTE_START, "stablehlo.collective_permute"},
              {RP_OP_DOT, "stablehlo.dot_general"},
              {RP_OP_OPT_BARRIER, "stablehlo.optimization_barrier"},
              {RP_OP_TOPK, "chlo.top_k"}};

const char *rp_shlo_name(struct rp_shlo *w, uint32_t op)
{
    const struct rp_program *p = w->p;
    uint16_t code = rp_shlo_is_topk(p, op) ? RP_OP_TOPK : p->code.at[op];
    const char *own = rp_op_opcode_name(p, op), *dot = strchr(own, '.');

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].code == code)
            return others[i].name;
    snprintf(w->name, sizeof w->name, " %s ", code == RP_OP_FOREIGN ? "" : own);
    bool plain = strstr(stablehlo, w->name) != NULL;
    if (plain || strstr(chlo, w->name)) {
        snprintf(w->name, sizeof w->name, "%s.%s", plain ? "stablehlo" : "chlo", own);
        for (char *at = w->name; (at = strchr(at, '-'));)
            *at = '_';
        return w->name;
    }

    /* What HLO does not have keeps its own name. */
    if (code != RP_OP_FOREIGN || strcmp(p->language, "stablehlo") != 0 || !dot ||
        (strncmp(own, "chlo.", 5) != 0 && strncmp(own, "stablehlo.", 10) != 0))
        return NULL;
    return rp_escape_needless(RP_IN_NAME, dot + 1, strlen(dot + 1)) ? own : NULL;
}
