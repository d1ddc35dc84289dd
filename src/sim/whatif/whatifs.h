/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What-ifs: named changes of a recorded run. Each is a row of one table. It changes the overlay of
 * the run and nothing else, so that it can be undone and combined with others.
 *
 * To add one: write a file here with `const struct rp_whatif rp_whatif_<name>`, and add X(<name>)
 * to the list below. In C, names have '_' instead of '-': no-sync is rp_whatif_no_sync.
 */
#include "sim/model/run.h"

/* The list, in the order of '--what-if help'. */
#define RP_WHATIF_ROWS(X) \
    X(scale)              \
    X(cuda_graphs)        \
    X(fused_optimizer)    \
    X(bucket)             \
    X(ranks)              \
    X(bandwidth)          \
    X(latency)            \
    X(straggler)          \
    X(no_sync)            \
    X(no_profiler)        \
    X(dataloader)         \
    X(overlap)            \
    X(no_overlap)         \
    X(parallel_update)    \
    X(swap)               \
    X(gpu)                \
    X(dtype)              \
    X(tf32)               \
    X(fuse)               \
    X(compile)            \
    X(channels_last)      \
    X(recompute)          \
    X(offload)            \
    X(batch)

struct rp_whatif_list;

/* One parsed what-if. */
struct rp_whatif_args {
    const char *text;                  /* as given, for messages */
    const char *subject;               /* after ':', or NULL */
    const char *value;                 /* after '=', or NULL */
    const char *second;                /* for RP_WHATIF_TWO_NAMES: the text after ',', or NULL */
    const struct rp_whatif_list *list; /* all that are applied together, including this one */
};

enum rp_whatif_value {
    RP_WHATIF_NO_VALUE,
    RP_WHATIF_WORD, /* a number, a size, a keyword: holds no '+' */
    RP_WHATIF_NAME, /* name of an operator or a kernel, or a pattern */
    RP_WHATIF_TWO_NAMES
};

typedef RP_VEC(const char *) rp_whatif_texts; /* in an arena, or static */

/* A what-if as a move of a search (opt/), because a user can make the change. */
struct rp_whatif_move {
    const char *name;                     /* NULL: the name of the what-if */
    const char *family;                   /* name of its family in 'optimize --moves' */
    unsigned effort;                      /* of two moves, the one with less effort is made first */
    const char *apply;                    /* how, one line */
    const char *(*how)(const char *text); /* the same, if it depends on the text; or NULL */
    const char *text;                     /* a text that is worth trying; NULL: only the name */
    /* Alternatively adds several, if it applies; each is an alternative to the others. */
    enum rp_code (*propose)(const struct rp_sim_run *run, struct rp_arena *arena,
                            rp_whatif_texts *out, struct rp_err *err);
};

/* Whether a what-if can be made in a run, by what was recorded. */
enum rp_whatif_verdict {
    RP_WHATIF_APPLIES,
    RP_WHATIF_PART,   /* applies to a part of a step, which the reason names; only that is predicted
                       */
    RP_WHATIF_UNSURE, /* can be asked, but it is not known whether a user gains, so it is not
                         proposed */
    RP_WHATIF_NOT, /* can be asked, but does not apply to what was recorded, so it is not proposed
                    */
    RP_WHATIF_CANNOT
};
/* "yes", "part" or "no"; NULL: RP_WHATIF_UNSURE. */
const char *rp_whatif_verdict_name(enum rp_whatif_verdict verdict);
/* The verdict with its reason and its basis: return RP_WHATIF_SAY(why, CANNOT, "…"). */
#define RP_WHATIF_SAY(why, verdict, ...) \
    ((void)rp_err_set((why), RP_UNSUPPORTED, __VA_ARGS__), RP_WHATIF_##verdict)

struct rp_whatif {
    const char *name;
    const char *alias;             /* another name, or NULL */
    const char *form;              /* "scale:<what>=<factor>" */
    const char *summary;           /* what it changes */
    const char *assumes;           /* what must be true for the prediction to hold */
    const char *assumes_elsewhere; /* ... in JAX and TensorFlow; NULL: the same */
    bool has_subject;              /* it may be given one */
    enum rp_whatif_value value;
    bool makes_tasks; /* it adds or joins tasks, which the others of the list then change, too */
    bool sums;        /* what it makes of a time of the host depends on other times, too */
    const struct rp_whatif_move *move; /* NULL if it is not a change that a user can make */
    /* Examines the run and changes nothing. `args` is NULL if a proposal is considered and nobody
       has asked yet; only then the verdicts between RP_WHATIF_APPLIES and RP_WHATIF_CANNOT are
       possible. `why` gets the reason without the name, and may get one if it applies; a code other
       than RP_UNSUPPORTED there is a failure. NULL: it always applies. */
    enum rp_whatif_verdict (*applies)(const struct rp_sim_run *run,
                                      const struct rp_whatif_args *args, struct rp_err *why);
    /* When its text is well-formed, it asks rp_whatif_check. RP_UNSUPPORTED: from that, or because
       the run does not have what the text names. */
    enum rp_code (*apply)(struct rp_sim_run *run, const struct rp_whatif_args *args,
                          struct rp_err *err);
};

extern const struct rp_whatif *const rp_whatifs[]; /* ended by NULL */

/* Its verdict before anybody asks, with the reason in `why`. */
enum rp_whatif_verdict rp_whatif_applies(const struct rp_whatif *row, const struct rp_sim_run *run,
                                         struct rp_err *why);
/* For `apply`: RP_UNSUPPORTED with the reason if it is impossible. */
enum rp_code rp_whatif_check(const struct rp_whatif *row, const struct rp_sim_run *run,
                             const struct rp_whatif_args *args, struct rp_err *err);

/* The verdict about one or several joined with '+', which is that of the one that applies least,
   and its reason without a name in the arena; NULL if there is none. */
enum rp_code rp_whatif_stands(const struct rp_sim_run *run, const char *text,
                              struct rp_arena *arena, enum rp_whatif_verdict *verdict,
                              const char **because, struct rp_err *err);

/* Applies one what-if or several joined with '+': first those that make tasks, then the others from
   left to right. A malformed text gives RP_USAGE, and the message says what is expected. */
enum rp_code rp_whatif_apply(struct rp_sim_run *run, const char *text, struct rp_err *err);

/* Whether one of the list has `sums`. */
bool rp_whatif_sums(const char *text);

/* How a user makes it in PyTorch, as one line of static text; NULL if it is not a move. */
const char *rp_whatif_how(const struct rp_whatif *row, const char *text);

/* The same in another framework (enum rp_framework). torch: the text for PyTorch, used if no other
   way is known. */
const char *rp_whatif_apply_in(unsigned framework, const char *move, const char *torch);

/* What one what-if assumes; and what several assume, joined with "; ", in the arena. */
const char *rp_whatif_assumed(const struct rp_whatif *row, unsigned framework);
enum rp_code rp_whatif_assumes(const char *text, unsigned framework, struct rp_arena *arena,
                               const char **out, struct rp_err *err);

/* ------------------------------------------------------------------ the grammar (grammar.c) */

struct rp_whatif_list {
    size_t n;
    struct rp_whatif_call {
        const struct rp_whatif *row;
        struct rp_whatif_args args;
    } * calls;
};

/*
 *     list     = what-if { '+' what-if }
 *     what-if  = name [ ':' subject ] [ '=' value [ ',' value ] ]
 *     subject, value = bare text, or text in double quotes ('""' is a quote)
 *
 * Bare text may hold any character. In it '+' separates only if the name of a what-if follows, and
 * then ':', '=', '+' or the end; a bare subject ends at the last '=' of its what-if, or at the
 * first one before a quote; the first of two bare values ends at the first ','. Quoted text ends
 * only at its quote. The result is in the arena.
 */
enum rp_code rp_whatif_parse(const char *text, struct rp_arena *arena, struct rp_whatif_list *out,
                             struct rp_err *err);

/* Whether a what-if of that name is in the list. */
bool rp_whatif_list_has(const struct rp_whatif_list *list, const struct rp_whatif *row);

/* A factor such as "0.5", "2", "2x" or "50%", larger than 0. */
enum rp_code rp_whatif_factor(const struct rp_whatif_args *args, double *out, struct rp_err *err);

#define RP_DECLARE_WHATIF(name) extern const struct rp_whatif rp_whatif_##name;
RP_WHATIF_ROWS(RP_DECLARE_WHATIF)
#undef RP_DECLARE_WHATIF
