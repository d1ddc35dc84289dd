/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Custom calls: families of targets, each a table that ends with a row without a name. `prepare`
 * reads the configuration into node->attrs; both as in plan.h.
 */
#include "exec/eval/plan.h"

struct rp_custom_target {
    const char *name; /* '*' at the end stands for any rest */
    rp_prepare_fn *prepare;
    rp_kernel_fn *run;
};
extern const struct rp_custom_target rp_custom_products[];
extern const struct rp_custom_target rp_custom_convolutions[];
extern const struct rp_custom_target rp_custom_factors[];
extern const struct rp_custom_target rp_custom_spectra[];
extern const struct rp_custom_target rp_custom_tridiagonal[];
extern const struct rp_custom_target rp_custom_lapack[]; /* any other of LAPACK's */
extern const struct rp_custom_target rp_custom_norms[];
extern const struct rp_custom_target rp_custom_sorts[];
extern const struct rp_custom_target rp_custom_attention[];
extern const struct rp_custom_target rp_custom_sparse[];
extern const struct rp_custom_target rp_custom_shards[];

/* The target's name without its quotes. */
const char *rp_custom_name(const struct rp_plan *plan, const struct rp_node *node, size_t *n);

/* The value of a key in the configuration, which is JSON, or attributes as text. */
double rp_config_number(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                        double absent);
void rp_config_word(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                    char *out, size_t cap);
/* Finds the text of a value and the end of the configuration; *at is NULL if the key is absent. */
void rp_config_value(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                     const char **at, const char **end);
/* Reads "[0.5,2]"; returns how many numbers were put into out. */
size_t rp_config_numbers(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                         double *out, size_t cap);
/* Reads "[\"1\"]" or "[1,2]"; returns how many numbers were put into out. */
size_t rp_config_list(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                      int64_t *out, size_t cap);
bool rp_config_flag(const struct rp_plan *plan, const struct rp_node *node, const char *key);
/* In the configuration, letters of a LAPACK call are numbers: uplo = 76 : ui8 is 'L'. */
bool rp_config_letter(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                      char is);

/* How many operands come before the last `matrices`: LAPACK's older form, whose name does not end
   with _ffi, has its integers there; others have none. */
uint32_t rp_custom_integers(const struct rp_plan *plan, const struct rp_node *node,
                            uint32_t matrices);

/* The first array of the result. */
const struct rp_value_shape *rp_custom_shape(const struct rp_node *node);
/* Makes a list with a place for each result; call rp_tensors_release in every case. */
enum rp_code rp_custom_parts(const struct rp_node *node, struct rp_tensors *out,
                             struct rp_err *err);
/* Makes the node's value of them; those that are NULL are memory that the library would have used
   for work, and become zeros. */
enum rp_code rp_custom_give(const struct rp_node *node, struct rp_tensors *parts,
                            struct rp_tensor **out, struct rp_err *err);
