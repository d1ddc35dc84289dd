/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes of one run that are tried beside each other. Each thread has worlds of its own: a twin
 * shares the graph and the parts, and has another overlay. A job gives the same whichever it gets,
 * so that answers do not depend on how many there are.
 */
#include "sim/worlds.h"

/* Job i, which uses x for what it tries, and writes only what belongs to i. */
typedef enum rp_code rp_worlds_job(struct rp_worlds *x, void *user, size_t i, struct rp_err *err);

/* Runs job 0 to n - 1, on x->pool if it pays. The error is that of the lowest that failed. */
enum rp_code rp_worlds_each(struct rp_worlds *x, size_t n, rp_worlds_job *job, void *user,
                            struct rp_err *err);

/* As part of rp_worlds_release(). */
void rp_worlds_free_twins(struct rp_worlds *x);
