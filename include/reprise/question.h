/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_QUESTION_H
#define REPRISE_QUESTION_H
/*
 * Questions. Each has a name, options and a result type; a row of one table makes it a command, a
 * library call and a manual page. Options are described by the same struct for questions and for
 * the command line's own commands, so parsing, help and shell completion have one source.
 */
#include <reprise/dataset.h>
#include <reprise/result.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rp_option_type {
    RP_OPT_FLAG,     /* present or not; the value, if given, is yes or no */
    RP_OPT_INT,      /* 0, 7: an integer in the range that `value` gives ("0..1024"), else >= 0 */
    RP_OPT_COUNT,    /* 20, 10k, 1.5M: an integer >= 0 */
    RP_OPT_BYTES,    /* 64MiB, 25MB, 1000 */
    RP_OPT_DURATION, /* 10us, 1.5ms, 2s; plain numbers are nanoseconds */
    RP_OPT_RATIO,    /* 2%, 0.02 */
    RP_OPT_TEXT,
    RP_OPT_PATH,  /* completed as a file name */
    RP_OPT_CHOICE /* `value` lists the words: "auto|always|never" */
};

struct rp_option {
    const char *name; /* without dashes; NULL ends a table */
    char letter;      /* short form, or 0 */
    enum rp_option_type type;
    const char *value;    /* placeholder in the help: "N", "FILE", "a|b", "0..1024" */
    const char *fallback; /* default value, or NULL */
    const char *summary;  /* one line, lower case, no full stop */
    unsigned flags;
};

enum { RP_OPT_REPEAT = 1 /* may be given several times */ };

#define RP_OPTION_END                             \
    {                                             \
        NULL, 0, RP_OPT_FLAG, NULL, NULL, NULL, 0 \
    }

struct rp_setting {
    const char *name, *value; /* value NULL: a flag that is on */
};

enum {
    RP_ACCEPTS_NOTHING = 0,
    RP_ACCEPTS_TRACES = 1,
    RP_ACCEPTS_PROGRAMS = 2,
    RP_ACCEPTS_NONE_TOO = 4 /* with the others: some settings need no input */
};

struct rp_question {
    const char *name, *group, *summary;
    const char *details;  /* a paragraph or more for the help, or NULL */
    const char *examples; /* lines "command\tcomment\n", or NULL */
    unsigned accepts;
    const struct rp_option *options;
    const struct rp_type *type;
};

/* All questions, in the order of the help. Borrowed for ever. */
RP_API const struct rp_question *const *rp_question_list(size_t *n);
RP_API const struct rp_question *rp_question_find(const char *name);

/* dataset may be NULL where the question accepts nothing. Unknown or malformed settings are
   RP_USAGE. The result belongs to the caller. */
RP_API enum rp_code rp_ask(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                           const char *question, const struct rp_setting *settings,
                           size_t nsettings, struct rp_result **out, struct rp_err *err);

/* Whether text is a value of the option; RP_USAGE says what is expected. */
RP_API enum rp_code rp_option_check(const struct rp_option *option, const char *text,
                                    struct rp_err *err);

/* The value of an option of type INT, COUNT, BYTES or DURATION (in ns); 0 where text is not one. */
RP_API int64_t rp_option_number(const struct rp_option *option, const char *text);

/* The nearest of the words (ended by NULL), for "did you mean"; NULL where none is near. */
RP_API const char *rp_closest_word(const char *word, const char *const *words);

#ifdef __cplusplus
}
#endif
#endif
