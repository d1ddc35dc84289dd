/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The buffer assignment of a module of a dump, from whatever file has it. */
#include "dump/folder.h"
#include "formats/buffers/buffers.h"

/* Reads texts if there are any, else the protobuf of the optimised program. *found: whether there
   is an assignment. `b` must be released also after a failure. */
enum rp_code rp_dump_buffers(const struct rp_dump_folder *folder,
                             const struct rp_dump_module *module, struct rp_buffers *b, bool *found,
                             struct rp_err *err);

/* The total in XLA's memory usage report; RP_ABSENT_I64 if there is none. */
enum rp_code rp_dump_reported_bytes(const struct rp_dump_folder *folder,
                                    const struct rp_dump_module *module, int64_t *out,
                                    struct rp_err *err);
