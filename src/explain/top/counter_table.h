/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Counters of kernels from a table of another profiler: the CSV files of Radeon Compute Profiler
 * (CodeXL), one row for each kernel in the order of execution.
 *
 *     # ProfilerVersion=5.6
 *     Method , ExecutionOrder , ThreadID , ... , Time , VGPRs , Wavefronts , VALUInsts
 *     gemm__k1_Fiji1 , 1 , 4242 , ... , 0.125 , 64 , 1024 , 31.5
 */
#include "base/arena.h"
#include "base/strtab.h"
#include "base/vec.h"

struct rp_counter_line {
    uint32_t first_value; /* one value for each counter; NAN: none */
    uint32_t next;        /* the next line with the same kernel */
};

struct rp_counter_table {
    RP_VEC(const char *) counters;
    RP_VEC(double) values;
    RP_VEC(struct rp_counter_line) lines;
    RP_VEC(int32_t) column; /* by column of the file: its counter, or -1 */
    struct rp_strtab names; /* names of kernels, without the suffix "__k1_Fiji1" */
    RP_VEC(uint32_t) next;  /* by name: the line that is returned next */
    RP_VEC(uint32_t) last;
    size_t joined;   /* lines that were returned */
    uint32_t method; /* the column of the kernel's name */
};

/* Texts are in the arena. */
enum rp_code rp_counter_table_read(struct rp_counter_table *out, const char *path,
                                   struct rp_arena *arena, struct rp_err *err);
void rp_counter_table_release(struct rp_counter_table *table);

/* Returns the next line of the kernel, each once, or NULL. The name of a kernel may have its
   parameters: "gemm(float*)". */
const struct rp_counter_line *rp_counter_table_next(struct rp_counter_table *table,
                                                    const char *kernel);
