/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The learned cost models: one of each for all ranks and questions of a context, because a model
 * must be read, and its rows are compared with each other.
 */
#include "base/err.h"

struct rp_ctx;
struct rp_learned;
struct rp_models;

enum rp_code rp_models_new(struct rp_models **out, struct rp_err *err);
void rp_models_free(struct rp_models *models); /* NULL is fine */

/* Returns the model of a file, or the built-in one (path NULL), read when it is first asked for. A
   file that has changed since then is read again. The model lives as long as the context. May be
   called from any thread. */
enum rp_code rp_ctx_borrow_model(struct rp_ctx *ctx, const char *path,
                                 const struct rp_learned **out, struct rp_err *err);
