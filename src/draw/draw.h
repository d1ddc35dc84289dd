/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes programs as pages for a browser, as pictures, and as files for other viewers. Write errors
   stick to `to`. */
#include "io/output.h"
#include "program/program.h"

struct rp_stages;

/* Information besides the program; all of it may be missing. */
struct rp_draw_more {
    const int64_t
        *time_ns; /* measured time of operations, negative if not measured; NULL without a trace */
    const char *time_of;            /* the trace */
    const struct rp_stages *stages; /* the operations of each stage (stages.h) */
};

/* Writes a self-contained page: a picture of groups that open, every operation with shape,
   operands, users, flops and source line, and a search over all of them. more may be NULL. */
enum rp_code rp_draw_program_html(const struct rp_program *p, const struct rp_draw_more *more,
                                  struct rp_out *to, struct rp_err *err);

/* Writes the same picture without the page: groups are open until it is as large as a poster. */
enum rp_code rp_draw_program_svg(const struct rp_program *p, struct rp_out *to, struct rp_err *err);

/* Writes one cluster per computation, and one node per operation that is wanted (NULL for all). */
enum rp_code rp_draw_program_dot(const struct rp_program *p, const bool *wanted, struct rp_out *to);

/* Writes Model Explorer's JSON of graphs: one per computation, with groups as namespaces. */
enum rp_code rp_draw_model_explorer(const struct rp_program *p, struct rp_out *to,
                                    struct rp_err *err);

/* Writes an events file of TensorBoard with the program as a graph and groups as scopes. */
enum rp_code rp_draw_tensorboard(const struct rp_program *p, struct rp_out *to, struct rp_err *err);

/* Returns the enum rp_op_class of an operation that ops.def does not have, by its name
   (foreign.c). */
uint8_t rp_draw_foreign_class(const char *name);
