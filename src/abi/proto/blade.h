/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers of BladeDISC's captures: RP_BLADE_INPUT_ARGS is 3. */

enum rp_blade_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/blade.def"
};
