/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The numbers of the opcodes. Included only by files that name opcodes, because an operation that
   is added to ops.def changes them: headers say `unsigned` or uint16_t. */

enum rp_opcode {
#define RP_OP(id, name, min, max, class, flops, flags) RP_OP_##id,
#include "program/ops.def"
#undef RP_OP
    RP_OP_FOREIGN, /* an operation of another language, identified by its name */
    RP_OP_COUNT
};
