/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Results inside the library: making and printing them. */
#include "base/arena.h"
#include "io/output.h"

#include <reprise/result.h>

/* A remark on the inputs on which the answer rests; docs/definitions.md has the kinds. */
struct rp_remark {
    const char *kind;    /* "truncated" … */
    bool incomplete;     /* something is missing in the answer; otherwise the remark is only worth
                            knowing */
    const char *path;    /* the path of a file; NULL if the remark is about all of them */
    const char *instead; /* the file that is used instead, or NULL */
    int64_t rank, count, bytes; /* RP_ABSENT_I64: none */
    const char *text;           /* a sentence */
};

struct rp_trust {
    bool complete;
    size_t nremarks, nincomplete, nnotes;
    struct rp_remark *remarks; /* sorted by kind, then in the order of the inputs */
    const char *
        *incomplete;    /* for the screen: what makes the answer incomplete, one line per kind */
    const char **notes; /* the other kinds */
    int64_t
        absent; /* if only one rank was given: how many more its job has, which is not a remark */
};

struct rp_result {
    const struct rp_type *type;
    void *root;            /* in the arena */
    struct rp_arena arena; /* owns root and everything to which it points */
    int answer;            /* the exit status of a question that was answered: 0 or 1 */
    bool has_trust;        /* the question was about traces */
    struct rp_trust trust; /* printed before the record */
};

/* Adds a line to the `notes` of an answer. */
#define RP_NOTE(answer, arena, text) \
    rp_arena_append((arena), &(answer)->notes, &(answer)->nnotes, (text))

/* Makes a result with a cleared root record of the type. */
enum rp_code rp_result_new(const struct rp_type *type, struct rp_result **out, struct rp_err *err);

/* The basis of the answer, as a record that has the field "trust", and as lines. */
extern const struct rp_type rp_result_trust_type, rp_result_lines_type;

/* The printers; rp_print_record calls the one that the options name. Errors stick to `to`. They
   allocate nothing. options is not NULL and has all members. */
void rp_print_record(const struct rp_type *type, const void *root,
                     const struct rp_print_options *options, struct rp_out *to);
void rp_print_table(const struct rp_type *type, const void *root,
                    const struct rp_print_options *options, struct rp_out *to);
/* result: its trust is printed first; may be NULL */
void rp_print_json(const struct rp_type *type, const void *root, const struct rp_result *result,
                   struct rp_out *to);
void rp_print_csv(const struct rp_type *type, const void *root, struct rp_out *to);
