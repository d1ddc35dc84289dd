/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Buffered output to a file, a descriptor or memory. A file is written beside its final name and
 * renamed by close, so a reader never sees half of it; without close nothing is left behind. Errors
 * stick: after the first one later writes do nothing, and close returns it.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct rp_out;

/* Opens an output. "-" is standard output, which is neither atomic nor closed. A symbolic link, a
   device or a pipe is written in place. A descriptor stays open when its output is closed. */
enum rp_code rp_out_open(const char *path, struct rp_out **out, struct rp_err *err);
enum rp_code rp_out_open_fd(int fd, const char *name, struct rp_out **out, struct rp_err *err);
enum rp_code rp_out_open_memory(struct rp_out **out, struct rp_err *err);

void rp_out_write(struct rp_out *out, const void *bytes, size_t n);
void rp_out_text(struct rp_out *out, const char *text);
void rp_out_char(struct rp_out *out, char c);
void rp_out_printf(struct rp_out *out, const char *fmt, ...) RP_PRINTF(2, 3);

uint64_t rp_out_position(const struct rp_out *out); /* bytes written so far */

/* Returns what was written to memory, with a NUL after it. Borrowed until the next write or
   close. */
const char *rp_out_borrow_memory(struct rp_out *out, size_t *n);

/* Writes the buffer out; returns the first error so far. */
enum rp_code rp_out_flush(struct rp_out *out, struct rp_err *err);

/* Flushes, and syncs and renames files; frees out also after a failure. */
enum rp_code rp_out_close(struct rp_out *out, struct rp_err *err);

/* Removes the unfinished file and frees out, which may be NULL. */
void rp_out_abandon(struct rp_out *out);

/* Closes the output if `code` is success, or abandons it after an error. */
enum rp_code rp_out_end(struct rp_out *out, enum rp_code code, struct rp_err *err);
