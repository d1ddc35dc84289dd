/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cross references: from the name of an instruction or of a kernel to the operation of the
 * optimised program, from there to the operator of the framework and the line of the user's code
 * (xref.c); from thunks to instructions (kernels.c); and from the events of a trace to thunks
 * (times.c).
 *
 *     thunk 14  ->  gemm_fusion_dot.3  ->  transpose(jvp())/dot_general  ->  train.py:12 loss
 *       ^
 *     kernel gemm_fusion_dot_3, 2.1 us, of a trace
 */
#include "base/arena.h"
#include "base/hash.h"
#include "formats/dump/logs.h"
#include "program/program.h"
#include "trace/trace.h"

#include <stdbool.h>

/* ---- instructions ---- */

struct rp_xref {
    const struct rp_program *program; /* borrowed; if it is NULL, nothing is found */
    struct rp_map names;              /* from hash of the name of an operation to operation */
    uint32_t *user_begin, *users;     /* of operations, as CSR in the arena */
    uint32_t *caller;                 /* by computation: an operation that calls it, or RP_NONE */
    struct rp_arena arena;
};

/* `x` must be released also after a failure. */
enum rp_code rp_xref_init(struct rp_xref *x, const struct rp_program *program, struct rp_err *err);
void rp_xref_release(struct rp_xref *x);

/* Finds the operation of "fusion.3", or of a value of it, "fusion.3{1}"; or RP_NONE. */
uint32_t rp_xref_find(const struct rp_xref *x, const char *name);

/* Returns "jit(step)/jvp()/dot_general", or "". */
const char *rp_xref_scope(const struct rp_xref *x, uint32_t op);
/* Returns its last part, "dot_general", otherwise the opcode; NULL for RP_NONE. */
const char *rp_xref_operator(const struct rp_xref *x, uint32_t op);
/* Returns "train.py:12 loss" in the arena; NULL if the operation itself does not know it. */
const char *rp_xref_own_line(const struct rp_xref *x, uint32_t op, struct rp_arena *arena);

/*
 * The same; if the operation does not know, it comes from its content (the root of a fusion, then
 * its heaviest operation), then from its operands, its users up to four steps away, or the loop
 * around it.
 */
struct rp_xref_place {
    const char *operator_; /* "dot_general"; "" if not known */
    const char *scope;     /* "jit(step)/jvp()/dot_general"; "" */
    const char *line;      /* or NULL */
    const char *basis; /* "instruction", "fusion root", "inside fusion", "operand", "user", "loop";
                          NULL without a line */
};
void rp_xref_place(const struct rp_xref *x, uint32_t op, struct rp_arena *arena,
                   struct rp_xref_place *out);

/* ---- kernels ---- */

enum rp_xref_basis {
    RP_XREF_METADATA, /* the dump tells which instruction a thunk executes */
    RP_XREF_NAME,     /* the kernel is named after it */
    RP_XREF_AROUND,   /* that of the thunk around it */
    RP_XREF_PROGRAM,  /* there are no thunks: instructions of the program that need code */
    RP_XREF_UNKNOWN
};
extern const char *const rp_xref_basis_names[];

struct rp_xref_kernel {
    struct rp_thunk thunk; /* for a program without thunks it is made from the instruction */
    uint32_t op;           /* or RP_NONE */
    uint8_t basis;         /* enum rp_xref_basis */
    int64_t runs;          /* by the trip counts of the loops around it */
    /* From a trace: */
    int64_t events, total_ns, min_ns, max_ns;
    bool
        by_order; /* several thunks launch a kernel of this name, so events are assigned in order */
};

struct rp_xref_kernels {
    struct rp_xref_kernel *at;
    size_t n;
};

/* Lists thunks with their instructions; if there are none (thunks->n 0), the instructions of the
   program that need code, in its order. In the arena. */
enum rp_code rp_xref_kernels(const struct rp_xref *x, const struct rp_thunks *thunks,
                             struct rp_arena *arena, struct rp_xref_kernels *out,
                             struct rp_err *err);

/* ---- times ---- */

struct rp_xref_times {
    int64_t events, total_ns;        /* device work of the trace, or host events of instructions */
    int64_t matched, matched_ns;     /* assigned to a kernel */
    int64_t elsewhere, elsewhere_ns; /* of another module */
};

/*
 * Adds the times of a trace to the kernels: by instruction if the event names it, otherwise by the
 * name of the kernel. module: events that name another one are not counted; NULL allows any.
 */
enum rp_code rp_xref_measure(const struct rp_trace *trace, const char *module,
                             const struct rp_xref *x, struct rp_xref_kernels *kernels,
                             struct rp_xref_times *out, struct rp_err *err);
