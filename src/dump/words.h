/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The words of `dump`, in the order of its help: one line adds `dump <word>`. The row
 * rp_dump_<word> is in <word>.c. Options are shared: their table is in dump.c, and each row names
 * those that it takes.
 */
#include "dataset/dataset.h"
#include "result/result.h"
#include "result/settings.h"

#define RP_DUMP_WORDS(X) \
    X(run)               \
    X(flags)             \
    X(ops)               \
    X(ls)                \
    X(passes)            \
    X(fusion)            \
    X(memory)            \
    X(alias)             \
    X(kernels)           \
    X(comm)              \
    X(compiles)          \
    X(breaks)            \
    X(recompiles)

/* The same words as the values of an option; tests/unit/dump compares the two. */
#define RP_DUMP_WORD_LIST \
    "run|flags|ops|ls|passes|fusion|memory|alias|kernels|comm|compiles|breaks|recompiles"

struct rp_dump_call {
    struct rp_ctx *ctx;
    const struct rp_dataset *dataset; /* of the files and folders, or NULL if none were given */
    const char *subject;              /* the word that is not a file, or NULL */
    const struct rp_settings *settings;
};

struct rp_dump_word {
    const char *name, *summary;
    const char *subject; /* what a word that is not a file means, for messages; NULL if the word
                            takes none */
    const char *options; /* names of the options that it takes, with blanks between; NULL if it
                            takes none */
    bool files;          /* it takes files and folders, and needs at least one */
    const char *alone;   /* the option with which it answers without a file, or NULL */
    bool any;            /* it takes any words, which become the settings "source" */
    /* The type of the answer; its name is "dump_<word>", which makes the schema
       "reprise.dump_<word>/1". */
    const struct rp_type *type;
    /* Fills result->root, a cleared record of that type. */
    enum rp_code (*run)(const struct rp_dump_call *call, struct rp_result *result,
                        struct rp_err *err);
};

#define RP_DUMP_DECLARE(word) extern const struct rp_dump_word rp_dump_##word;
RP_DUMP_WORDS(RP_DUMP_DECLARE)
#undef RP_DUMP_DECLARE
