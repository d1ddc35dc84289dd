/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Makes tables by index in a vector: room for `count` elements behind the present ones, all filled
   with zero or RP_NONE; n does not change. One more is filled, so that even an empty table has an
   address. */
#include "base/vec.h"

#include <string.h>

#define rp_vec_zeros(v, count, err) RP_VEC_FILL_(v, 0, count, err)
#define rp_vec_nones(v, count, err) RP_VEC_FILL_(v, 0xff, count, err)
#define RP_VEC_FILL_(v, byte, count, err)                                                     \
    (rp_vec_reserve((v), (size_t)(count) + 1, (err)) == RP_OK                                 \
         ? (memset((v)->at + (v)->n, (byte), ((size_t)(count) + 1) * sizeof *(v)->at), RP_OK) \
         : RP_NOMEM)
