/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Calls TensorFlow's C library, loaded by dlopen; its errors become ours. */
#include "abi/tensorflow.h"
#include "base/err.h"

struct rp_tf {
    void *library;
#define RP_TF_MEMBER(member, symbol, result, arguments) result(*member) arguments;
    RP_TF_FUNCTIONS(RP_TF_MEMBER)
#undef RP_TF_MEMBER
};

/* Returns RP_MISSING if the file or a function does not exist. The library is never unloaded. */
enum rp_code rp_tf_load(const char *path, struct rp_tf *out, struct rp_err *err);

/* What a status says: RP_OK, or its code and message. other: the code of failures that do not tell
   their cause. */
enum rp_code rp_tf_check(const struct rp_tf *tf, const void *status, enum rp_code other,
                         struct rp_err *err);

/* Convert element types; RP_ELEM_INVALID and 0 if unsupported. */
unsigned rp_tf_elem(int type);
int rp_tf_type(unsigned elem);
