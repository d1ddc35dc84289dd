/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sets errors. The function in which something failed calls rp_err_set (or _os, _at), and its
 * callers may add where it happened (rp_err_prefix) or what was being done (rp_err_context). All
 * accept err == NULL and return the code, so that `return rp_err_set(...)` reads naturally.
 *
 * Messages are in lower case without a full stop: what failed, the subject in 'quotes', what to do.
 */
#include <reprise/error.h>
#include <stddef.h>

#define RP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

#define RP_UNUSED __attribute__((unused)) /* a parameter that the signature demands */

#define RP_TRY(expr)                        \
    do {                                    \
        enum rp_code rp_try_code_ = (expr); \
        if (rp_try_code_ != RP_OK)          \
            return rp_try_code_;            \
    } while (0)

/* Replaces the previous content of err. */
enum rp_code rp_err_set(struct rp_err *err, enum rp_code code, const char *fmt, ...)
    RP_PRINTF(3, 4);

/* Does the same as rp_err_set with RP_IO, and appends ": " and the system's text for os_errno. */
enum rp_code rp_err_set_os(struct rp_err *err, int os_errno, const char *fmt, ...) RP_PRINTF(3, 4);

/* Does the same as rp_err_set, and notes the byte offset, which the message should name, too. */
enum rp_code rp_err_set_at(struct rp_err *err, enum rp_code code, uint64_t offset, const char *fmt,
                           ...) RP_PRINTF(4, 5);

/* Sets "out of memory" while doing `what` (a phrase such as "reading strings"). */
enum rp_code rp_err_nomem(struct rp_err *err, const char *what);

/* Does the same if `there` is NULL, because memory for it ran out. It is a macro so that analysers
   of a file see that a pointer is not NULL after RP_TRY of it. */
#define rp_err_need(there, err, what) ((there) ? RP_OK : rp_err_nomem(err, what))

/* Puts "text: " before the first line. */
enum rp_code rp_err_prefix(struct rp_err *err, enum rp_code code, const char *fmt, ...)
    RP_PRINTF(3, 4);

/* Appends an indented line. */
enum rp_code rp_err_context(struct rp_err *err, enum rp_code code, const char *fmt, ...)
    RP_PRINTF(3, 4);

void rp_err_clear(struct rp_err *err);
