/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Field numbers and enum values of the protobufs of TensorFlow graphs: RP_TF_NODE_OP is 2. */

enum rp_tf_field {
#define RP_MEMBER(tag, id, name, number, count, type, of) RP_##tag##_##id = number,
#include "abi/proto/tensorflow.def"
};

enum rp_tf_word {
#define RP_WORD(tag, word, value) RP_##tag##_##word = value,
#include "abi/proto/tensorflow.def"
};
