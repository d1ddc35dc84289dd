/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Opportunities: changes that a user can make, whose effect can be predicted, and whose whole
 * interval is a gain (docs/definitions.md). 'report', 'optimize', 'fusions' and 'roofline' all take
 * them from here, so that a number is computed once.
 *
 *     rp_worlds_init(&x, parts, n, NULL, err)
 *     rp_changes_try(&x, &asked, arena, &changes, err)          every what-if, each alone
 *     rp_opportunities_find(&x, &changes, arena, &list, err)    those that are worth it, in order
 */
#include "sim/whatif/whatifs.h"
#include "sim/worlds.h"

#define RP_OPPORTUNITY_LEAST 0.01
RP_DECISION(RP_OPPORTUNITY_LEAST, "of a step", "less is not worth a change of the program",
            "sim/small_gains_are_no_opportunities");

/* A change that was tried. */
struct rp_change {
    const struct rp_whatif *row;
    const char *text; /* in the syntax of 'simulate' */
    int64_t alone_ns; /* a step with only this change; RP_ABSENT_I64 if it is impossible */
    struct rp_worlds_first first; /* the same, unless it is impossible */
    const char *impossible;       /* the reason if it is impossible, else NULL */
    bool refused; /* ... and the what-if has nothing to propose for this recording */
    enum rp_whatif_verdict verdict; /* verdict of the what-if before it was tried */
    const char *because;            /* its reason; NULL: it always applies */
    bool chosen;                    /* by a search */
    bool clashes;                   /* it cannot be combined with the plan */
    const char *doubt;              /* why its gain in the plan is not certain; NULL if it is */
};

struct rp_changes { /* rp_changes: those of a what-if stand together */
    size_t n;
    struct rp_change *at;
};

struct rp_changes_asked {
    bool (*wants)(const struct rp_whatif *row, void *user); /* NULL: all that a user can make */
    bool (*over)(void *user); /* may be NULL; returns true when the time is used up */
    void *user;
    size_t nmore;
    const char *const *more; /* texts in addition to those that what-ifs propose */
};

/* Tries each of the what-ifs that a user can make alone. Texts are in the arena or those of
   `asked`. */
enum rp_code rp_changes_try(struct rp_worlds *x, const struct rp_changes_asked *asked,
                            struct rp_arena *arena, struct rp_changes *out, struct rp_err *err);
/* The change of that text, or NULL. */
const struct rp_change *rp_changes_find(const struct rp_changes *changes, const char *text);

struct rp_opportunity {
    const struct rp_whatif *row;
    const char *what_if;
    const char *apply;             /* how to do it in PyTorch; NULL: as advice says */
    const char *assumes;           /* what must hold */
    const char *applies, *because; /* "yes", "part" or "no"; or NULL */
    unsigned effort;               /* from the rows of the what-if; 0: not known */
    int64_t gain_ns, gain_low_ns, gain_high_ns, tries; /* struct rp_gain */
    int64_t step_ns;                                   /* without the profiler, with the change */
};

struct rp_opportunities {
    size_t n;
    struct rp_opportunity *at; /* the largest gain first; one for each what-if */
    size_t nrefused;           /* at the end are those that do not apply, without numbers */
};

/* Finds none if no gain is certain (rp_worlds_distrust). */
enum rp_code rp_opportunities_find(struct rp_worlds *x, const struct rp_changes *changes,
                                   struct rp_arena *arena, struct rp_opportunities *out,
                                   struct rp_err *err);
