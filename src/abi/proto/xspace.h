/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers of XSpace profiles: RP_XEVENT_OFFSET_PS is 2. */

enum rp_xspace_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/xspace.def"
};
