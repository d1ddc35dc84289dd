/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The numbers of the opcodes. Only files that name opcodes include this, because an operation added
   to ops.def changes the numbers; headers say `unsigned` or uint16_t instead. */

enum rp_opcode {
#define RP_OP(id, name, min, max, class, flops, flags) RP_OP_##id,
#include "program/ops.def"
#undef RP_OP
    RP_OP_FOREIGN, /* an operation of another language, identified by its name */
    RP_OP_COUNT
};
