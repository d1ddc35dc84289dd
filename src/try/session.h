/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One call of `try`: the program, the facts known about it, and its variants. A variant is the
 * program with some changes; the first two have none, and the second is the control.
 *
 *     session_open ── probe ── variants ── rounds (waves of them) ── the winners together
 */
#include "base/arena.h"
#include "try/changes.h"
#include "try/child.h"
#include "try/clock.h"
#include "try/stats.h"

#define RP_TRY_PARTS  8             /* the most changes of one variant */
#define RP_TRY_ROUNDS RP_TRY_VALUES /* the last of rp_try_looks */
#define RP_TRY_WHY    400

enum rp_try_state {
    RP_TRY_WAITING,
    RP_TRY_ALIVE,    /* its process waits for its turn */
    RP_TRY_FAILED,   /* `why` says how */
    RP_TRY_REFUSED,  /* the update of its parameters differs, so it was not measured */
    RP_TRY_MEASURED, /* interval and verdict are known */
    RP_TRY_EARLIER   /* the same, from an earlier call (--resume) */
};

#define RP_TRY_COMPARED 8 /* the most steps after which updates are compared */

struct rp_try_difference { /* the difference between the update of the parameters and that of
                              another run */
    bool exact;
    size_t n, steps[RP_TRY_COMPARED];
    double ratio[RP_TRY_COMPARED]; /* NaN if one of them contains a value that is not finite */
    double size[RP_TRY_COMPARED];  /* the size of its update over that of the other */
};

struct rp_try_program { /* a program other than that of the session */
    char **words;
    size_t nwords;
    const char *cwd;
    const char
        *moved; /* "FROM=TO": the tree of the user's program, and where its copy is; or NULL */
};

struct rp_try_variant {
    char name[160];
    const struct rp_try_program *program; /* NULL for that of the session */
    size_t nparts;
    const struct rp_try_change *parts[RP_TRY_PARTS];
    char values[RP_TRY_PARTS][160];
    enum rp_try_state state;
    struct rp_try_child *child;
    char why[RP_TRY_WHY], how[RP_TRY_WHY];
    bool ready;            /* its first step is done */
    int64_t early_ns;      /* time of the first steps, with all that happens only in them */
    int64_t early_step_ns; /* time of one of them, without the first */
    int64_t compiled, memory_bytes;
    int precision; /* the coarsest arithmetic of its first step, as the hook numbers it; 0 if
                      not known */
    char precision_name[64];
    int64_t update_ns;            /* taking its last update took so long */
    int64_t tally;                /* steps of a run from start to end, if they are known */
    int64_t spent_ns;             /* processor time of its last turn, and by our clock: */
    int64_t timed_ns, clock_ns;   /* the steps that it times, and the whole turn */
    unsigned mhz;                 /* the clock of the device at its end, or 0 */
    char update[2 * RP_TRY_PATH]; /* the file with its update of the parameters, or "" */
    bool exact, judged;           /* the update was compared; exact: it is equal in all bits */
    bool differs; /* by more than its arithmetic explains, so it is measured but not proposed */
    struct rp_try_difference difference; /* from the unchanged update */
    double update_ratio;                 /* relative to the unchanged one, after so many steps */
    size_t update_steps;
    struct rp_try_variant
        *twin; /* the same variant without dropout, to compare its update; or NULL */
    size_t nrounds;
    double step_ns[RP_TRY_ROUNDS]; /* by round: time of a step; NaN if it does not count */
    double usual_ns;               /* median of them */
    int64_t
        startup_ns; /* how much longer its first steps took than those of the unchanged program */
    struct rp_try_interval interval;
    enum rp_try_verdict verdict;
    char
        log[RP_TRY_PATH + 48]; /* folder of the log of torch.compile if it compiles; otherwise "" */
    char unfit[RP_TRY_WHY];    /* why the change does not apply according to the recording; or "" */
    bool predicted;
    double change, change_low, change_high; /* of `simulate` */
};

struct rp_try_session {
    int (*progress)(void *user, const char *what, uint64_t done, uint64_t total); /* or NULL */
    void *progress_user;
    int64_t begun_ns, deadline_ns, patience_ns;
    size_t steps;   /* steps after which updates are compared */
    char doing[64]; /* for the progress: "round 3: " */
    char scratch[RP_TRY_PATH], cwd[PATH_MAX];
    char **words;
    size_t nwords;
    bool allow_writes, cancelled;
    struct rp_try_folders folders,
        writes; /* folders that are protected, and folders that may be written */
    struct rp_try_facts facts;
    struct rp_try_clock clock;
    size_t started; /* number of variants so far, for the names of their folders */
    size_t nvariants;
    struct rp_try_variant variants[RP_TRY_CHANGES_MOST + 4];
    char recording[2 * RP_TRY_PATH]; /* or "" */
    size_t turn_most; /* the most steps of a turn if the program has few; 0 for no limit */
    bool ended;       /* the program came to its end while it was measured */
    bool stepless;    /* it ran to its end without any step */
    struct rp_try_variant *rounded[RP_TRY_SAME_BF16 + 1]; /* the unchanged program with its
                                                             parameters rounded once, or NULL */
};

/* ---- session.c ---- */

/* Makes the scratch folder with the hook, and finds the folders to protect. */
enum rp_code rp_try_session_open(struct rp_try_session *s, struct rp_err *err);
void rp_try_session_close(struct rp_try_session *s); /* ends all processes and removes the folder */
/* Whether work goes on: there is time, and nobody has interrupted it. */
bool rp_try_session_goes_on(struct rp_try_session *s, const char *what);

/* How a variant is started, apart from its changes. */
struct rp_try_mode {
    size_t probe;              /* number of steps to watch before it ends; 0 if it takes turns */
    bool same_random;          /* without dropout, and compiled code draws the numbers of PyTorch */
    const char *round;         /* the format to which parameters are rounded once, or NULL */
    const char *const *before; /* words before the program, such as "reprise", "record"; or NULL */
    bool alone;                /* it runs without the hook to its end */
};

/* Starts a variant, whose state is RP_TRY_FAILED if that fails. */
void rp_try_start(struct rp_try_session *s, struct rp_try_variant *v,
                  const struct rp_try_mode *mode);
/* Waits for lines of all ranks that begin with the word; the rest of that of rank 0 goes to `rest`.
   Returns false if the variant failed, and is gone. */
bool rp_try_await(struct rp_try_session *s, struct rp_try_variant *v, const char *word,
                  int64_t limit_ns, char *rest, size_t cap);
/* Watches the unchanged program for some steps, and fills the facts. */
enum rp_code rp_try_probe(struct rp_try_session *s, struct rp_err *err);
/* Waits until it has done its first step. */
bool rp_try_ready(struct rp_try_session *s, struct rp_try_variant *v);
/* Runs the first steps and takes the update of the parameters; then the variant is frozen. */
bool rp_try_begin(struct rp_try_session *s, struct rp_try_variant *v);
/* Writes how its parameters have changed so far to a file of this name, v->update; false if it
   failed. */
bool rp_try_take_update(struct rp_try_session *s, struct rp_try_variant *v, const char *name);
/* Runs a turn of n steps: returns nanoseconds per step, or NaN if it compiled meanwhile or
   failed. */
double rp_try_turn(struct rp_try_session *s, struct rp_try_variant *v, size_t n);
/* Runs it from start to end; false if it failed. */
bool rp_try_run_alone(struct rp_try_session *s, struct rp_try_variant *v, struct rp_try_spent *out);
void rp_try_stop(struct rp_try_variant *v); /* ends its processes, if there are any */
void rp_try_fail(struct rp_try_variant *v, const char *fmt, ...) RP_PRINTF(2, 3);
/* Whether it was ended while nothing was wrong: by the end of the program or the time, or Ctrl-C.
 */
bool rp_try_was_cut(const struct rp_try_variant *v);

/* ---- compiled.c ---- */

/* Returns "2 graph breaks, the first at train.py:18 (…); compiled again 3 times, …"; NULL if the
   log has nothing of the kind. In the arena. */
const char *rp_try_compiled_text(const char *folder, struct rp_arena *arena);

/* ---- rounds.c ---- */

/* Measures all variants that wait, in waves that fit into memory. */
void rp_try_measure(struct rp_try_session *s);
/* Makes one variant of all changes that made the program faster; false if there are not two. */
bool rp_try_together(struct rp_try_session *s);

/* ---- same.c ---- */

#define RP_TRY_ROUNDING 1e-3 /* updates that differ by less are the same */
#define RP_TRY_FLOAT32  1    /* values of `precision` */
#define RP_TRY_TF32     2
#define RP_TRY_16_BITS  3

/* Decides whether the variant computes the same as the unchanged program, once both have begun;
   otherwise it is refused. Starts other runs if only they can tell. */
void rp_try_judge_update(struct rp_try_session *s, struct rp_try_variant *v);
/* What is compared, in words: what a step does to the parameters, or what the model gives. */
const char *rp_try_compared(const struct rp_try_session *s);
/* Returns the coarsest arithmetic that the changes of a variant use. */
enum rp_try_same rp_try_arithmetic(const struct rp_try_session *s, const struct rp_try_variant *v);
/* Starts the runs that may be needed for that, while the variant starts. */
void rp_try_start_helpers(struct rp_try_session *s, struct rp_try_variant *v);
size_t rp_try_helpers(const struct rp_try_session *s); /* that are alive */
void rp_try_stop_helpers(struct rp_try_session *s);

/* ---- update.c ---- */

/* Compares the updates that all processes of two runs wrote. */
enum rp_code rp_try_compare(const char *path, const char *with, struct rp_try_difference *out,
                            struct rp_err *err);
/* Renames the files of an update, one for each process. */
void rp_try_move_update(const char *path, const char *to);

/* ---- predict.c ---- */

/* Records the program once; false if that is not possible. */
bool rp_try_record(struct rp_try_session *s);
/* Lists what changed from another program to the user's, by kernel and operator, as lines for
   people, the largest first; returns how many. Both are recorded once. */
#define RP_TRY_CHANGED 6
size_t rp_try_changed(struct rp_try_session *s, const struct rp_try_program *other,
                      struct rp_arena *arena, const char *out[RP_TRY_CHANGED]);
/* Joins the what-ifs of all changes of a variant, "fused-optimizer+dtype=bf16"; "" if one has
   none. */
#define RP_TRY_WHAT_IF 512
void rp_try_what_if(const struct rp_try_variant *v, char *out, size_t cap);
/* Asks `simulate` which changes do not apply to the recording. */
void rp_try_look(struct rp_try_session *s);
/* Reads an answer of `simulate` in JSON about the changes of a variant. */
void rp_try_read_answer(const char *path, struct rp_try_variant *v);
/* Asks `simulate` about the changes of the variants when the unchanged program is measured. Those
   that it cannot answer have no prediction. */
void rp_try_predict(struct rp_try_session *s);

/* ---- learn.c ---- */

/* Keeps the measurements of predicted changes (outcomes/outcomes.h), and counts them. */
enum rp_code rp_try_learn(const struct rp_try_session *s, size_t *kept, struct rp_err *err);

/* ---- store.c ---- */

/* Reads the rows that an earlier call with the same program in the same folder measured. */
void rp_try_store_read(struct rp_try_session *s);
/* Stores the rows of this call. */
void rp_try_store_write(const struct rp_try_session *s);
