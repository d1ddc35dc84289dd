/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Buffered output to a file, a descriptor or memory. A file is written beside its final name and
 * renamed by close, so a reader never sees half of it; without close nothing is left behind. Errors
 * stick: after the first one writes do nothing, and close returns it.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct rp_out;

/* "-" is standard output (not atomic, not closed). So are a symbolic link, a device or a pipe
   written in place. A descriptor stays open when its output is closed. */
enum rp_code rp_out_open(const char *path, struct rp_out **out, struct rp_err *err);
enum rp_code rp_out_open_fd(int fd, const char *name, struct rp_out **out, struct rp_err *err);
enum rp_code rp_out_open_memory(struct rp_out **out, struct rp_err *err);

void rp_out_write(struct rp_out *out, const void *bytes, size_t n);
void rp_out_text(struct rp_out *out, const char *text);
void rp_out_char(struct rp_out *out, char c);
void rp_out_printf(struct rp_out *out, const char *fmt, ...) RP_PRINTF(2, 3);

uint64_t rp_out_position(const struct rp_out *out); /* bytes written so far */

/* Of memory output: what was written, NUL-terminated. Borrowed until the next write or close. */
const char *rp_out_borrow_memory(struct rp_out *out, size_t *n);

/* Sends the buffer on; reports the first error so far. */
enum rp_code rp_out_flush(struct rp_out *out, struct rp_err *err);

/* Flushes, syncs and renames (files); frees out in every case. */
enum rp_code rp_out_close(struct rp_out *out, struct rp_err *err);

/* Removes the unfinished file; frees out. NULL is fine. */
void rp_out_abandon(struct rp_out *out);

/* Closes an output that was written with this result, or abandons it after an error. */
enum rp_code rp_out_end(struct rp_out *out, enum rp_code code, struct rp_err *err);
