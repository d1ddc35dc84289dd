/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a model is trained or tested on: tables (CSV), traces, and folders of both. In a folder
 * <gpu>/<model>/ a part of the path names the device of what does not name its own.
 */
#include "cost/learn/samples.h"
#include "dataset/dataset.h"

/* Adds what a path holds. device: NULL, or what all of it was measured on. */
enum rp_code rp_model_read_source(struct rp_ctx *ctx, const char *path, const char *device,
                                  struct rp_samples *out, struct rp_err *err);
