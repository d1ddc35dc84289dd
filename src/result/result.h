/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_RESULT_RESULT_H
#define RP_RESULT_RESULT_H
/* Results inside the library: making and printing them. */
#include "base/arena.h"
#include "io/output.h"

#include <reprise/result.h>

struct rp_result {
    const struct rp_type *type;
    void *root;            /* in the arena */
    struct rp_arena arena; /* owns root and everything it points to */
    int answer;            /* exit status of a question that was answered: 0 or 1 */
    size_t nwarnings, warning_room;
    const char **warnings; /* about the inputs; printed before the record */
};

/* A result with a cleared root record of the type. */
enum rp_code rp_result_new(const struct rp_type *type, struct rp_result **out, struct rp_err *err);

/* The list of a result's warnings, as a record. */
extern const struct rp_type rp_result_warnings_type;

/* Adds a warning, which is copied. */
enum rp_code rp_result_warn(struct rp_result *result, const char *text, struct rp_err *err);

/* The printers; rp_print_record calls the one that the options name. Errors stick to `to`. They
   allocate nothing. options is not NULL and has all members. */
void rp_print_record(const struct rp_type *type, const void *root,
                     const struct rp_print_options *options, struct rp_out *to);
void rp_print_table(const struct rp_type *type, const void *root,
                    const struct rp_print_options *options, struct rp_out *to);
/* warnings: the result whose warnings come first; NULL: none */
void rp_print_json(const struct rp_type *type, const void *root, const struct rp_result *warnings,
                   struct rp_out *to);
void rp_print_csv(const struct rp_type *type, const void *root, struct rp_out *to);

#endif
