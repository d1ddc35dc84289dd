/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `try --against`: the user's program as it is, beside other programs that should do the same: a
 * revision of git, a patch, another folder, another command. In each round every one of them is a
 * new process, because two processes of one program may differ by the layout of their memory:
 *
 *     round 0   yours, other     a loop: both are alive and take turns of a few steps
 *     round 1   other, yours     else: both run from start to end
 *     …                          one number a round: the logarithm of yours over the other
 */
#include "result/result.h"
#include "try/session.h"

#define RP_TRY_OTHERS 8

/* The program with which yours is compared, its folder, and what was done to make it run. */
struct rp_try_other {
    const char *what;    /* as given */
    const char *name;    /* with the commit */
    const char *changed; /* if git is used: "3 files of yours are not committed"; otherwise NULL */
    const char *linked; /* files that do not belong to the revision: "data, ext.so"; NULL if none */
    struct rp_try_program program;
};

/* Finds or makes it in the scratch folder of the session. prepare is a command that builds it
   there, or NULL. The working tree and its repository are not changed. Texts are in the arena. */
enum rp_code rp_try_other_make(struct rp_try_session *s, const char *what, const char *prepare,
                               struct rp_arena *arena, struct rp_try_other *out,
                               struct rp_err *err);
/* Uses the same program with another command, which a shell runs. */
void rp_try_other_command(const struct rp_try_session *s, const char *command,
                          struct rp_arena *arena, struct rp_try_other *out);
/* Protects the folder of git around the current one, or the current one, like the other folders. */
void rp_try_other_protect(struct rp_try_session *s, const char *what);

struct rp_try_side { /* the first is yours */
    struct rp_try_variant v;
    size_t n;                                                /* number of rounds in which it ran */
    double ns[RP_TRY_PROCESSES], spent_ns[RP_TRY_PROCESSES]; /* NaN: does not count */
    double begin_ns[RP_TRY_PROCESSES]; /* for a loop: the time from its start to the end of its
                                          first steps */
    double log[RP_TRY_PROCESSES], spent_log[RP_TRY_PROCESSES]; /* yours over it */
    char first[2 * RP_TRY_PATH], last[2 * RP_TRY_PATH]; /* of whole runs: what they printed */
    double later[RP_TRY_PROCESSES]; /* what a step of yours takes longer than it tells, than here */
    /* what yours gains in the timed steps, and in whole turns by our clock; of a step of it */
    double gain[RP_TRY_PROCESSES], all_gain[RP_TRY_PROCESSES];
    struct rp_try_interval wall, spent; /* of the logarithms */
    enum rp_try_verdict verdict;        /* of yours against it */
    bool by_spent;                      /* by processor time */
    double mhz;                         /* clock of the device in its turns: sum of mhz_n values */
    size_t mhz_n;
    char clock[RP_TRY_WHY];   /* how the clock differs from that of yours, or "" */
    char refused[RP_TRY_WHY]; /* why it does not compute the same, or "" */
    int64_t tally; /* of whole runs: the steps of the first, 0 if not known, -1 if they vary */
    const char *same;
};

struct rp_try_duel {
    struct rp_try_session *s;
    bool whole;                    /* measured from start to end; otherwise by steps */
    size_t n, rounds, turn, turns; /* steps of a turn, and turns of a round; 0: not chosen yet */
    struct rp_try_side *side;      /* n, of calloc */
    bool repeats, steady;          /* its update at the end of a round is that of the first one, to
                                      the bit, or within rounding */
    int64_t round_ns;              /* the last took so long */
};

/* ---- printed.c ---- */

enum rp_try_printed {
    RP_TRY_PRINTED_SAME,
    RP_TRY_PRINTED_NOTHING,  /* or nothing that two runs of yours have in common */
    RP_TRY_PRINTED_UNSTEADY, /* two runs of yours print another number of words */
    RP_TRY_PRINTED_OTHER     /* `why` has the first difference */
};
/* Compares the files with what yours printed, what it printed in another run, and what the other
   program printed. */
enum rp_try_printed rp_try_printed(const char *const paths[3], char *why, size_t cap);

/* ---- the answer ---- */

struct rp_try_against_row {
    const char *name, *verdict, *by, *same, *reason, *changed, *linked;
    const char *measured, *start; /* for the screen */
    double measured_ratio, measured_low_ratio, measured_high_ratio;
    double processor_ratio, processor_low_ratio, processor_high_ratio, update_ratio;
    int64_t clock_mhz, rank, time_ns, processor_ns, memory_bytes, startup_ns, rounds;
};
extern const struct rp_type rp_try_against_type;

/* Whether yours is "faster" or "not-slower" than all of them, whichever is asked. */
bool rp_try_against_holds(const struct rp_try_duel *d, const char *want);
/* Makes a row for each program; the fastest comes first. */
size_t rp_try_against_rows(const struct rp_try_duel *d, const struct rp_try_other *others,
                           struct rp_arena *arena, struct rp_try_against_row **out);
/* The answer as a comment of a pull request. */
enum rp_code rp_try_against_comment(const char *path, const char *summary, const char *program,
                                    const char *unit, const struct rp_try_against_row *rows,
                                    size_t n, struct rp_err *err);

/* Measures until everything is decided, or the time is over. */
void rp_try_duel(struct rp_try_duel *d);
