/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds which rank, host, stage, link or network card of a host is slow, and what that costs the
 * job (docs/definitions.md, "Places"). The cost of a place is the time that the job would gain if
 * its abnormal work took as long as that of its peers, with everything else as recorded: the
 * courses of the ranks run again without it. So work that hides behind other work costs nothing,
 * and a delay that passes from group to group counts once.
 *
 *     abnormal work of all ranks           peers.h
 *     places that may be slow              sets of it: of a rank, a host, a stage, a pair of hosts
 *     cost of each                         rerun.h, several at once
 *     the smallest that explains the loss  then the next, with that one repaired
 */
#include "facts/ranks/rendezvous.h"
#include "places/course.h"

enum rp_place_kind {
    RP_PLACE_RANK, /* or a few ranks that are equally slow */
    RP_PLACE_LINK, /* transfers between two hosts */
    RP_PLACE_NIC,  /* all transfers of a host with others */
    RP_PLACE_STAGE,
    RP_PLACE_HOST,
    RP_PLACE_KINDS
};
extern const char *const rp_place_kind_names[RP_PLACE_KINDS];

struct rp_place_found {
    enum rp_place_kind kind;
    size_t nranks, nhosts;
    const uint32_t *ranks; /* indices of the given ranks */
    const uint32_t *hosts; /* index in hosts below */
    double cost_ns;        /* of the recording */
    double least_ns;       /* its cost in a run in which everything else is repaired, or cost_ns,
                              whichever is less, and ... */
    double most_ns;        /* ... the more of both */
    uint32_t rank;         /* the work that is most of it: the rank ... */
    const char *what;      /* ... and its name; NULL for transfers, or several kinds alike */
    enum rp_course_class what_class;
    bool more;                     /* it is done more often, but not longer each time */
    double slower;                 /* how much longer the abnormal work takes: factor - 1 */
    int64_t first_step, last_step; /* numbers of the steps with abnormal work */
    size_t nsteps;                 /* the number of these steps, of all_steps */
};

struct rp_places {
    bool known;         /* costs are known: courses could be run again */
    const char *why;    /* if not known, a static text; NULL if there is nothing to compare */
    bool unsure;        /* time is lost, but less than the runs can resolve: n is 0 */
    bool partial;       /* some ranks were not given: costs are lower bounds, and links unknown */
    double recorded_ns; /* from the first begin to the last end, as recorded ... */
    double run_ns;      /* ... and when the courses run again without changes */
    double error;       /* relative difference of the two */
    double repaired_ns; /* the time with all abnormal work repaired */
    double uneven_ns;   /* the part of the loss that no place explains, with another rank each time;
                           or 0 */
    struct rp_place_found uneven; /* the work that is most of that */
    size_t all_steps;
    size_t n;
    struct rp_place_found *at;
    size_t nhosts;
    const char **hosts; /* their names */
    uint32_t *host_of;  /* by rank; RP_NONE if not known */
};

struct rp_places_input {
    size_t n;
    const struct rp_course *const *courses;
    const struct rp_collectives *const *lists;
    const char *const *hosts; /* by rank: the name of its host; NULL if not known */
    const struct rp_rendezvous_list *rendezvous;
    int64_t world_size; /* ranks of the job */
};

/* Compares at least two ranks with collectives. Allocates in the arena. */
enum rp_code rp_places_find(const struct rp_places_input *in, struct rp_arena *arena,
                            struct rp_places *out, struct rp_err *err);
