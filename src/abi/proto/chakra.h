/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers of Chakra execution traces: RP_CHAKRA_NODE_DATA_DEPS is 5. */

enum rp_chakra_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/chakra.def"
};
