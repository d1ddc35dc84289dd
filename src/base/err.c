/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error texts live in the caller's fixed buffer; a text that does not fit is cut at its end, so the
 * first and most specific part is always kept.
 */
#include "base/err.h"
#include "base/escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
    int status;
} codes[] = {
#define CODE_ROW(name, status, text) {#name, text, status},
    RP_CODE_MAP(CODE_ROW)
#undef CODE_ROW
};

static const size_t ncodes = sizeof codes / sizeof codes[0];

const char *rp_code_name(enum rp_code code)
{
    return (size_t)code < ncodes ? codes[code].name : "BUG";
}

const char *rp_code_text(enum rp_code code)
{
    return (size_t)code < ncodes ? codes[code].text : "internal error";
}

int rp_code_exit_status(enum rp_code code)
{
    return (size_t)code < ncodes ? codes[code].status : 5;
}

void rp_err_clear(struct rp_err *err)
{
    if (!err)
        return;
    err->code = RP_OK;
    err->os_errno = 0;
    err->offset = RP_NO_OFFSET;
    err->line = err->column = err->len = 0;
    err->text[0] = '\0';
}

static void put_piece(void *to, const char *bytes, size_t n)
{
    struct rp_err *err = to;
    size_t room = sizeof err->text - 1 - err->len;

    n = n < room ? n : room;
    memcpy(err->text + err->len, bytes, n);
    err->len += (uint32_t)n;
    err->text[err->len] = '\0';
}

/* Appends names of files and texts of inputs: characters that would steer a terminal are spelled
   out, and a line after the first begins with two blanks, so that it cannot be mistaken for another
   message. */
static void RP_PRINTF(2, 0) append_list(struct rp_err *err, const char *fmt, va_list args)
{
    char text[sizeof err->text];

    if (vsnprintf(text, sizeof text, fmt, args) <= 0)
        return;
    for (const char *line = text, *end;; line = end + 1) {
        end = strchrnul(line, '\n');
        rp_escape(RP_IN_MESSAGE, line, (size_t)(end - line), put_piece, err);
        if (!*end)
            break;
        put_piece(err, "\n  ", strncmp(end + 1, "  ", 2) ? 3 : 1);
    }
}

static void RP_PRINTF(2, 3) append(struct rp_err *err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    append_list(err, fmt, args);
    va_end(args);
}

#define SET_FROM_ARGS(err, c, fmt)    \
    do {                              \
        va_list args_;                \
        rp_err_clear(err);            \
        (err)->code = (c);            \
        va_start(args_, fmt);         \
        append_list(err, fmt, args_); \
        va_end(args_);                \
    } while (0)

enum rp_code rp_err_set(struct rp_err *err, enum rp_code code, const char *fmt, ...)
{
    if (err)
        SET_FROM_ARGS(err, code, fmt);
    return code;
}

enum rp_code rp_err_set_os(struct rp_err *err, int os_errno, const char *fmt, ...)
{
    char text[128];

    if (!err)
        return RP_IO;
    SET_FROM_ARGS(err, RP_IO, fmt);
    err->os_errno = os_errno;
    append(err, ": %s", strerror_r(os_errno, text, sizeof text));
    return RP_IO;
}

enum rp_code rp_err_set_at(struct rp_err *err, enum rp_code code, uint64_t offset, const char *fmt,
                           ...)
{
    if (err) {
        SET_FROM_ARGS(err, code, fmt);
        err->offset = offset;
    }
    return code;
}

enum rp_code rp_err_nomem(struct rp_err *err, const char *what)
{
    return rp_err_set(err, RP_NOMEM, "out of memory while %s", what);
}

enum rp_code rp_err_prefix(struct rp_err *err, enum rp_code code, const char *fmt, ...)
{
    char old[sizeof err->text];
    va_list args;

    if (!err)
        return code;
    uint32_t old_len = err->len;
    memcpy(old, err->text, (size_t)old_len + 1);
    err->len = 0;
    va_start(args, fmt);
    append_list(err, fmt, args);
    va_end(args);
    append(err, "%s%s", old_len ? ": " : "", old);
    return code;
}

enum rp_code rp_err_context(struct rp_err *err, enum rp_code code, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return code;
    append(err, "%s", err->len ? "\n  " : "");
    va_start(args, fmt);
    append_list(err, fmt, args);
    va_end(args);
    return code;
}
