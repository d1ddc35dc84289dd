/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_QUESTION_H
#define REPRISE_QUESTION_H
/*
 * Questions. Each has a name, options and a result type; one row of a table makes it a command, a
 * library call and a manual page. The program's other commands describe their options by the same
 * struct, so that parsing, help, manual and shell completion have one source.
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
    RP_OPT_DURATION, /* 10us, 1.5ms, 2s; plain numbers are nanoseconds, or seconds where
                      * `value` is "SECONDS" */
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

enum {
    RP_OPT_REPEAT = 1, /* may be given several times */
    RP_OPT_GUARD = 2,  /* a limit that protects the machine: clients of a server cannot lift it */
    RP_OPT_LESS = 4,   /* a flag that leaves something out: a digest made without it has all */
    RP_OPT_WORDS = 8   /* on the command line its values are words or those of another option, and
                        * it has no dashes; such options come first in a table */
};

#define RP_OPTION_END                             \
    {                                             \
        NULL, 0, RP_OPT_FLAG, NULL, NULL, NULL, 0 \
    }

struct rp_setting {
    const char *name, *value; /* value NULL: a flag that is set */
};

enum {
    RP_ACCEPTS_NOTHING = 0,
    RP_ACCEPTS_TRACES = 1,
    RP_ACCEPTS_PROGRAMS = 2,
    RP_ACCEPTS_NONE_TOO = 4, /* together with the others: with some settings no input is needed */
    RP_ACCEPTS_SOURCES = 8   /* anything, given by settings "source"; no dataset */
};

struct rp_question {
    const char *name, *group, *summary;
    const char *details;  /* a paragraph or more for the help, or NULL */
    const char *examples; /* lines "command\tcomment\n", or NULL */
    unsigned accepts;
    const struct rp_option *options;
    const struct rp_type *type;
    int anytime; /* 1: cancelled by rp_progress_fn it answers with the best that it has found */
};

/* All questions, in the order of the help, and one by its name (or NULL). They are constants. */
RP_API const struct rp_question *const *rp_question_list(size_t *n);
RP_API const struct rp_question *rp_question_find(const char *name);

/* The i-th option of a question, or NULL after the last. Options may get more members at their end:
   do not index `options` yourself. */
RP_API const struct rp_option *rp_question_option(const struct rp_question *question, size_t i);

/* The i-th word with which a value of the option may begin, for options whose values are names of
   something (simulate --what-if); NULL after the last. For completion. */
RP_API const char *rp_question_word(const struct rp_question *question,
                                    const struct rp_option *option, size_t i);

/* Answers a question about a dataset, which may be NULL where the question needs no input. Unknown
   or malformed settings are RP_USAGE. The caller frees the result (rp_result_free). */
RP_API enum rp_code rp_ask(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                           const char *question, const struct rp_setting *settings,
                           size_t nsettings, struct rp_result **out, struct rp_err *err);

/* RP_OK where text is a valid value of the option; otherwise RP_USAGE, and err says what is
   expected. */
RP_API enum rp_code rp_option_check(const struct rp_option *option, const char *text,
                                    struct rp_err *err);

/* The value of an option of type INT, COUNT, BYTES or DURATION (in ns); 0 where text is not one. */
RP_API int64_t rp_option_number(const struct rp_option *option, const char *text);
RP_API double rp_option_ratio(const char *text); /* 0.02 for "2%" */

/* Writes what `report` can find, as docs/findings.md has it, to a file descriptor. */
RP_API enum rp_code rp_findings_markdown(int fd, struct rp_err *err);

/* The word (of a list that NULL ends) that is most similar, for "did you mean"; NULL where none is
   similar. */
RP_API const char *rp_closest_word(const char *word, const char *const *words);

#ifdef __cplusplus
}
#endif
#endif
