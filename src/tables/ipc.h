/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files in Arrow's IPC format (*.arrow), which pyarrow, polars and others map or read:
 *
 *     ARROW1  schema  dictionaries  batches  end  footer (where they are)  length  ARROW1
 *
 * A file has one dictionary per column, so those of the batches are united, with only the texts
 * that rows use, and the empty one, which has number 0. Numbers are 32 bits.
 */
#include "tables/arrow.h"

/* Writes the rest of a stream, whose arrays must begin at offset 0, like those of arrow.h; the
   caller releases it. All its batches are in memory until the end. path is that of rp_out_open. */
enum rp_code rp_ipc_save(struct ArrowArrayStream *stream, const char *path, int64_t *rows,
                         struct rp_err *err);
