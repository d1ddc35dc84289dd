/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* TensorFlow's C library by dlopen; its errors become ours. */
#include "abi/tensorflow.h"
#include "base/err.h"

struct rp_tf {
    void *library;
#define RP_TF_MEMBER(member, symbol, result, arguments) result(*member) arguments;
    RP_TF_FUNCTIONS(RP_TF_MEMBER)
#undef RP_TF_MEMBER
};

/* RP_MISSING where the file or a function is not there. Never unloaded. */
enum rp_code rp_tf_load(const char *path, struct rp_tf *out, struct rp_err *err);

/* What a status says: RP_OK, or its message. other: the code of failures that do not say whose they
   are. */
enum rp_code rp_tf_check(const struct rp_tf *tf, const void *status, enum rp_code other,
                         struct rp_err *err);

/* Element types; RP_ELEM_INVALID and 0: unsupported. */
unsigned rp_tf_elem(int type);
int rp_tf_type(unsigned elem);
