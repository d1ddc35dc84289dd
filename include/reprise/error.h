/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_ERROR_H
#define REPRISE_ERROR_H
/*
 * Errors. Every function that can fail returns an enum rp_code and takes a struct rp_err as its
 * last argument: a buffer of the caller, so that nothing is allocated to report an error. It may be
 * NULL where only the code matters.
 */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RP_API __attribute__((visibility("default")))
#else
#define RP_API
#endif

/* name, exit status of the program, meaning */
#define RP_CODE_MAP(X)                                       \
    X(OK, 0, "success")                                      \
    X(USAGE, 2, "bad usage")                                 \
    X(FORMAT, 3, "malformed input")                          \
    X(LIMIT, 3, "limit exceeded")                            \
    X(UNSUPPORTED, 3, "not supported")                       \
    X(IO, 4, "input/output error")                           \
    X(NOMEM, 4, "out of memory")                             \
    X(MISSING, 4, "a required library or device is missing") \
    X(CANCELLED, 4, "cancelled")                             \
    X(BUG, 5, "internal error")

enum rp_code {
#define RP_CODE_ENUM(name, status, text) RP_##name,
    RP_CODE_MAP(RP_CODE_ENUM)
#undef RP_CODE_ENUM
};

#define RP_NO_OFFSET UINT64_MAX

struct rp_err {
    enum rp_code code;
    int os_errno;          /* errno of a failed system call, or 0 */
    uint64_t offset;       /* byte in the (decompressed) input, or RP_NO_OFFSET */
    uint32_t line, column; /* from 1; 0: not known */
    uint32_t len;          /* of text, without the NUL */
    char text[992];        /* one or more lines, no newline at the end */
};

#define RP_ERR_INIT                         \
    {                                       \
        RP_OK, 0, RP_NO_OFFSET, 0, 0, 0, "" \
    }

RP_API const char *rp_code_name(enum rp_code code); /* "FORMAT" */
RP_API const char *rp_code_text(enum rp_code code); /* "malformed input" */
RP_API int rp_code_exit_status(enum rp_code code);  /* 3 */

#ifdef __cplusplus
}
#endif
#endif
