/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Programs as pages for a browser, pictures, and files for other viewers. Write errors stick to
   `to`. */
#include "io/output.h"
#include "program/program.h"

struct rp_stages;

/* What is known besides the program; all may be empty. */
struct rp_draw_more {
    const int64_t *time_ns; /* measured time of operations; negative: none. NULL: no trace */
    const char *time_of;    /* the trace */
    const struct rp_stages *stages; /* which operations each stage has (stages.h) */
};

/* A self-contained page: a picture of groups that open, every operation with shape, operands,
   users, flops and source line, and a search over all of them. more may be NULL. */
enum rp_code rp_draw_program_html(const struct rp_program *p, const struct rp_draw_more *more,
                                  struct rp_out *to, struct rp_err *err);

/* The same picture without the page: groups open until it is as large as a poster. */
enum rp_code rp_draw_program_svg(const struct rp_program *p, struct rp_out *to, struct rp_err *err);

/* One cluster per computation, one node per operation that is wanted (NULL: all). */
enum rp_code rp_draw_program_dot(const struct rp_program *p, const bool *wanted, struct rp_out *to);

/* Model Explorer's JSON of graphs: one per computation, groups as namespaces. */
enum rp_code rp_draw_model_explorer(const struct rp_program *p, struct rp_out *to,
                                    struct rp_err *err);

/* An events file of TensorBoard with the program as a graph: groups as scopes. */
enum rp_code rp_draw_tensorboard(const struct rp_program *p, struct rp_out *to, struct rp_err *err);

/* What an operation that ops.def does not have is, by its name: enum rp_op_class (foreign.c). */
uint8_t rp_draw_foreign_class(const char *name);
