/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every file that clang-tidy checks. The analyser sees one file at a time: it does
 * not know that rp_err_set() returns the code it is given, assumes that RP_TRY(rp_err_nomem(...))
 * may succeed, and reports impossible errors after it. Nor does it know that a vector has memory
 * after rp_vec_reserve(). These macros tell it.
 */
#ifndef RP_TOOLS_ANALYSIS_H
#define RP_TOOLS_ANALYSIS_H
#include "base/vec.h"

#define rp_err_set(err, code, ...)        (rp_err_set(err, code, __VA_ARGS__), (code))
#define rp_err_set_os(err, os_errno, ...) (rp_err_set_os(err, os_errno, __VA_ARGS__), RP_IO)
#define rp_err_set_at(err, code, at, ...) (rp_err_set_at(err, code, at, __VA_ARGS__), (code))
#define rp_err_nomem(err, what)           (rp_err_nomem(err, what), RP_NOMEM)
#define rp_err_prefix(err, code, ...)     (rp_err_prefix(err, code, __VA_ARGS__), (code))
#define rp_err_context(err, code, ...)    (rp_err_context(err, code, __VA_ARGS__), (code))
#undef rp_vec_reserve
#define rp_vec_reserve(v, more, err)                                                            \
    (rp_vec_grow((void **)&(v)->at, &(v)->cap, (v)->n, (more), sizeof *(v)->at, (err)) != RP_OK \
         ? RP_NOMEM                                                                             \
     : (v)->at ? RP_OK                                                                          \
               : impossible())

static inline enum rp_code impossible(void)
{
    __builtin_unreachable();
}

#endif
