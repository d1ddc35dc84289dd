/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A whole file in memory, for formats whose trace is a folder of many: no descriptor stays open,
 * and there is no buffer to each. Large files are mapped; small ones, and those that cannot be
 * mapped, are read, so that ten thousands of them do not use up the mappings a process may have.
 *
 * If somebody shortens a mapped file, reading the missing part raises SIGBUS, and the command line
 * ends with a message (cli/signals.c). Files that a running program may shorten are copied.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_mapped {
    const uint8_t *at;
    size_t n;
    bool is_mapping;
};

/* Returns RP_LIMIT if the file is longer than `most`, and RP_IO if it cannot be read; *missing
   (which may be NULL) tells whether that is because it no longer exists. */
enum rp_code rp_mapped_open(const char *path, uint64_t most, struct rp_mapped *out, bool *missing,
                            struct rp_err *err);

/* Does the same, but never maps the file. If the file is cut while it is read, the result is what
   was still there. */
enum rp_code rp_mapped_copy(const char *path, uint64_t most, struct rp_mapped *out,
                            struct rp_err *err);
void rp_mapped_close(struct rp_mapped *m);
