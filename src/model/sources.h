/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The sources on which a model is trained or tested: tables (CSV), traces, and folders of both. In
 * a folder <gpu>/<model>/ a part of the path names the device for files that do not name theirs.
 */
#include "cost/learn/samples.h"
#include "dataset/dataset.h"

/* Adds everything at a path. device is NULL, or the device on which all of it was measured. */
enum rp_code rp_model_read_source(struct rp_ctx *ctx, const char *path, const char *device,
                                  struct rp_samples *out, struct rp_err *err);
