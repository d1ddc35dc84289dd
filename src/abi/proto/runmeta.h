/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers of TensorFlow's RunMetadata: RP_RUNMETA_NODE_TIMELINE_LABEL is 8. */

enum rp_runmeta_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/runmeta.def"
};
