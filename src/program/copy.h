/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies parts of a program into another: texts, shapes, values. Values of attributes and literals
 * are borrowed, so the old program must outlive the new one.
 */
#include "program/program.h"

struct rp_program_copy {
    const struct rp_program *from;
    struct rp_program *to;
    struct rp_err *err;
};

enum rp_code rp_copy_string(struct rp_program_copy *c, uint32_t string, uint32_t *out);
enum rp_code rp_copy_shape(struct rp_program_copy *c, uint32_t shape, uint32_t *out);
/* Copies the source information of an operation; frames are resolved to the line in which they
   end. */
enum rp_code rp_copy_meta(struct rp_program_copy *c, uint32_t op, uint32_t *out);
/* Copies the value of a constant, which refers to its literal. */
enum rp_code rp_copy_literal(struct rp_program_copy *c, int64_t *value);
/* Copies the attributes of the module, except aliases, donated buffers and control dependencies. */
enum rp_code rp_copy_module_attrs(struct rp_program_copy *c);
/* Makes the attribute valid in the new program; *kept is false if it is left out. */
enum rp_code rp_copy_attr(struct rp_program_copy *c, struct rp_attr *attr, bool *kept);
