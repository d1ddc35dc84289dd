/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tries changes of one run in parallel. Each thread has worlds of its own: a twin shares the graph
 * and the parts, and has another overlay. A job gives the same result in all of them, so that
 * answers do not depend on their number.
 */
#include "sim/worlds.h"

/* Job i, which tries changes on x, and writes only what belongs to i. */
typedef enum rp_code rp_worlds_job(struct rp_worlds *x, void *user, size_t i, struct rp_err *err);

/* Runs jobs 0 to n - 1, on x->pool if that is faster. The error is that of the lowest job that
   failed. */
enum rp_code rp_worlds_each(struct rp_worlds *x, size_t n, rp_worlds_job *job, void *user,
                            struct rp_err *err);

/* As part of rp_worlds_release(). */
void rp_worlds_free_twins(struct rp_worlds *x);
