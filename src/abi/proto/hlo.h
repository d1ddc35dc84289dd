/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers and enum values of HLO protobufs: RP_HLO_INSTRUCTION_OPCODE is 2. */

enum rp_hlo_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/hlo.def"
};

enum rp_hlo_word {
#define RP_WORD(tag, word, value) RP_##tag##_##word = value,
#include "abi/proto/hlo.def"
};
