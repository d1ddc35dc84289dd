/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The optimised programs of XLA that belong to a trace: those that the profile carries, else those
 * of a dump among the inputs. Kernels and instructions have the same names except for characters
 * that kernels cannot have.
 */
#include "base/hash.h"
#include "base/strtab.h"
#include "dataset/load.h"
#include "program/program.h"

/* module: its name without a number. A result other than RP_OK ends the walk. */
typedef enum rp_code rp_xla_program_fn(void *user, const char *module, const struct rp_program *p,
                                       struct rp_err *err);

/* Calls fn once for each module; if a module has several programs, for the first. A program that
   cannot be read counts as missing. */
enum rp_code rp_xla_each_program(const struct rp_loaded *loaded, rp_xla_program_fn *fn, void *user,
                                 struct rp_err *err);

/* Is the same for the name of an instruction and that of its kernel: "loop_add_fusion.2" and
   "loop_add_fusion_2", with AMD "loop_add_fusion_2.kd". */
uint64_t rp_xla_name_hash(const char *module, const char *name);
/* The same, given the hash of the module. */
uint64_t rp_xla_name_hash_after(uint64_t module, const char *name);

/* The framework's names for instructions ("jit(step)/jvp(GPT)/dot_general"). */
struct rp_xla_names {
    struct rp_map known; /* from rp_xla_name_hash to the id in `paths` */
    struct rp_strtab paths;
};

/* Empty if the trace has no work of XLA, or no program is found. Must be released also after a
   failure. */
enum rp_code rp_xla_names_init(struct rp_xla_names *n, const struct rp_loaded *loaded,
                               struct rp_err *err);
void rp_xla_names_release(struct rp_xla_names *n);

/* Returns NULL if the name is not known. */
const char *rp_xla_name_of(const struct rp_xla_names *n, const char *module, const char *name);
