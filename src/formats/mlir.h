/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_MLIR_H
#define RP_FORMATS_MLIR_H
/* What the parts of the StableHLO reader share: a scanner over the text, names, and types. */
#include "base/text.h"
#include "program/program.h"

struct mlir_loc { /* what "#loc12" stands for */
    uint32_t name, file, ref;
    int32_t line;
};

struct mlir {
    const char *begin, *at, *end;
    struct rp_program *p;
    struct rp_limits limits;
    struct rp_err *err;
    RP_VEC(uint64_t) op_of;       /* string to computation + 1 and operation */
    RP_VEC(uint32_t) function_of; /* string to computation + 1 */
    RP_VEC(uint32_t) operands;    /* of the statement being read: operation, index */
    RP_VEC(uint32_t) results;     /* names of its results */
    RP_VEC(uint32_t) waiting;     /* index of called, string */
    RP_VEC(struct mlir_loc) locs; /* by number + 1 */
    uint32_t depth;
};

#define MLIR_FAIL(r, where, ...)                                                    \
    rp_text_error((r)->err, RP_FORMAT, (r)->begin, (size_t)((r)->end - (r)->begin), \
                  (size_t)((where) - (r)->begin), __VA_ARGS__)

void mlir_space(struct mlir *r); /* blanks, line ends and comments */
bool mlir_word_char(char c);
struct rp_attr mlir_word(struct mlir *r);
bool mlir_take_word(struct mlir *r, const char *text);
/* Behind the string at s, or the end of the text. */
const char *mlir_string_end(const struct mlir *r, const char *s);
/* Behind the bracket that closes the one at s, or NULL. "->" closes nothing. */
const char *mlir_bracket_end(const struct mlir *r, const char *s);
enum rp_code mlir_skip_bracket(struct mlir *r);

/* The types in a text: one, or several as a tuple. */
enum rp_code mlir_types(struct mlir *r, const char *s, const char *end, uint32_t *shape);
/* From now on the name means this operation. */
enum rp_code mlir_define(struct mlir *r, uint32_t name, uint32_t op);
/* Behind '%' or '@'. */
enum rp_code mlir_name_at(struct mlir *r, uint32_t *id);
/* "%3#1", into r->operands. */
enum rp_code mlir_operand(struct mlir *r);
/* "(%a: type, %b: type)" */
enum rp_code mlir_arguments(struct mlir *r, enum rp_opcode code);

/* Whether '{' opens a list of attributes: "{}" or "{key = ..." or "{key, ..." */
bool mlir_is_dictionary(const struct mlir *r);
/* Statements up to '}'. */
enum rp_code mlir_block(struct mlir *r);

#endif
