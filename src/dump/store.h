/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Files of lazy-tensor graphs in the folder of `dump run` (store_lazy.c). */
#include "base/vec.h"

#include <stdbool.h>

/* Whether a backend appends the graph of every step to this file. */
bool rp_dump_is_lazy(const char *path);

/* Keeps each different graph of the file, whose content is given, once. *saved: bytes; 0 if it was
   left alone. */
enum rp_code rp_dump_compact_lazy(const char *path, const char *all, size_t n, uint64_t *saved,
                                  struct rp_err *err);
