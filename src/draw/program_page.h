/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DRAW_PROGRAM_PAGE_H
#define RP_DRAW_PROGRAM_PAGE_H
/* A program for a browser and for Graphviz. Errors of writing stick to `to`. */
#include "io/output.h"
#include "program/program.h"

/* One page with nothing outside of it: computations, operations with shape, operands, readers,
   flops and source line, and a search over all of them. */
enum rp_code rp_draw_program_html(const struct rp_program *p, struct rp_out *to,
                                  struct rp_err *err);

/* One cluster a computation, one node an operation; of those that are wanted (NULL: all). */
enum rp_code rp_draw_program_dot(const struct rp_program *p, const bool *wanted, struct rp_out *to);

#endif
