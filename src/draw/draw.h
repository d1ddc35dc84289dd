/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_DRAW_DRAW_H
#define RP_DRAW_DRAW_H
/* Programs as pages for a browser and as Graphviz files. Write errors stick to `to`. */
#include "io/output.h"
#include "program/program.h"

/* A self-contained page: computations, operations with shape, operands, users, flops and source
   line, and a search over all of them. */
enum rp_code rp_draw_program_html(const struct rp_program *p, struct rp_out *to,
                                  struct rp_err *err);

/* One cluster per computation, one node per operation that is wanted (NULL: all). */
enum rp_code rp_draw_program_dot(const struct rp_program *p, const bool *wanted, struct rp_out *to);

/* The page around the data of a program (page_text.c): everything up to "const P={", and everything
   after "}". */
extern const char rp_program_page_head[], rp_program_page_tail[];

#endif
