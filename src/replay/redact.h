/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Programs without their weights, for bundles that are shared: constants of more than
 * RP_HASH_ELEMENTS elements get other values (docs/formats/bundle.md says which), source files and
 * lines are removed, strings in TensorFlow constants become empty.
 */
#include "io/proto_write.h"
#include "program/program.h"

/* Changes the program; new values are in the arena. */
enum rp_code rp_redact_program(struct rp_program *program, struct rp_arena *arena,
                               struct rp_err *err);

/* A GraphDef, rewritten into `to`. */
enum rp_code rp_redact_graph(struct rp_bytes graph, struct rp_proto_writer *to, struct rp_err *err);

/* Copies flags without values that are paths; NULL stays NULL. */
const char *rp_redact_flags(const char *flags, struct rp_arena *arena);
