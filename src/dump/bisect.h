/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "dump/folder.h"

/* Fills the result with an answer of its own type. */
enum rp_code rp_dump_bisect(const struct rp_dump_call *call, const struct rp_dump_folder *folder,
                            const struct rp_dump_module *module, struct rp_result *result,
                            struct rp_err *err);
