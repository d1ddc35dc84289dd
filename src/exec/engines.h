/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list of engines, in the order in which `replay engines` shows them. To add one: write its row
 * `const struct rp_engine rp_engine_<name>` (exec/engine/engine.h) and add a line here.
 */
#include "exec/engine/engine.h"

#define RP_ENGINE_ROWS(X) \
    X(fast)               \
    X(ref)                \
    X(pjrt)               \
    X(tf)

#define RP_ENGINE_EXTERN(name) extern const struct rp_engine rp_engine_##name;
RP_ENGINE_ROWS(RP_ENGINE_EXTERN)
#undef RP_ENGINE_EXTERN

const struct rp_engine *rp_engine_at(size_t i); /* NULL after the last */

/* The engine of "name:where", and `where` or NULL. RP_USAGE, with the known names, if there is
 * none. */
enum rp_code rp_engine_find(const char *text, const struct rp_engine **engine, const char **where,
                            struct rp_err *err);
