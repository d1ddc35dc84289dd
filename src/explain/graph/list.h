/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_GRAPH_LIST_H
#define RP_EXPLAIN_GRAPH_LIST_H
/* Parts of a program as lines of text, one an operation: what `graph` shows when it is asked. */
#include "program/program.h"

struct rp_listing {
    size_t n, cap;
    const char **lines; /* in the arena */
    bool *ops;          /* of the program: those listed; NULL: none so far */
    size_t left_out;    /* lines that were too many */
};

/* "%d = f32[4,2] dot(%p, %q)  a.py:7"; in the arena, NULL where there is no memory. */
const char *rp_op_line(const struct rp_program *p, uint32_t op, struct rp_arena *arena);

/* Operations by name, '%' or not; the entry's first. RP_USAGE with a near name where there is none.
 */
enum rp_code rp_program_find_op(const struct rp_program *p, const char *name, uint32_t *op,
                                struct rp_err *err);

/* The computations that the entry calls, by depth, with what each costs; those of the same content
   once. */
enum rp_code rp_list_tree(const struct rp_program *p, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err);
/* An operation, and what it reads and who reads it, up to so many steps away; "OP N" says how many
   itself. */
enum rp_code rp_list_near(const struct rp_program *p, const char *name, unsigned hops,
                          struct rp_arena *arena, struct rp_listing *out, struct rp_err *err);
/* The shortest way of data from one operation to another: "A,B" or "A B". */
enum rp_code rp_list_path(const struct rp_program *p, const char *ends, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err);
/* Operations that fit all words of "op=dot shape~bf16 line=a.py:7 name~x scope~y". */
enum rp_code rp_list_grep(const struct rp_program *p, const char *words, struct rp_arena *arena,
                          struct rp_listing *out, struct rp_err *err);

#endif
