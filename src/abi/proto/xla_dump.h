/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers of the messages in XLA's dump folders: RP_XLA_PASS_NAME is 2. */

enum rp_xla_dump_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/xla_dump.def"
};
