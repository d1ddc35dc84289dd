/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_JOB_FIXTURES_H
#define RP_TESTS_JOB_FIXTURES_H
/*
 * Jobs of a few ranks that work and meet, drawn in the order of time. Each rank has a clock of its
 * own, hours from the others.
 *
 *     struct job j = job_of(4);                 four ranks, two on each host
 *     for (s = 0; s < STEPS; s++) {
 *         job_step(&j, s);
 *         job_work(&j, 2, "mm", 1000);          rank 2 computes for 1000 ns
 *         job_meet(&j, all, 4, 100);            an all-reduce of all, which takes 100 ns
 *     }
 *     places = job_places(&j);
 */
#include "base/hash.h"
#include "places/places.h"
#include "places/rerun.h"
#include "unit.h"

#include <stdlib.h>

enum { JOB_RANKS = 8, JOB_OPS = 4096, JOB_KEYS = 8, JOB_STEPS = 64 };
#define JOB_US 1000

struct job_rank {
    struct rp_course course;
    struct rp_collectives list;
    struct rp_course_op ops[JOB_OPS];
    struct rp_course_item items[JOB_OPS];
    struct rp_course_key keys[JOB_KEYS];
    struct rp_course_step steps[JOB_STEPS];
    double mean[JOB_KEYS][JOB_STEPS], count[JOB_KEYS][JOB_STEPS];
    int64_t now_ns, apart_ns; /* apart: of its clock */
    uint32_t index, ordinal, wait_op;
};

struct job {
    struct rp_arena arena;
    size_t n, nsteps;
    struct job_rank *ranks;
    const char *hosts[JOB_RANKS];
    int64_t seq[1 << JOB_RANKS];
    struct rp_rendezvous_list found;
    const struct rp_course *courses[JOB_RANKS];
    const struct rp_collectives *lists[JOB_RANKS];
    int64_t begin_ns, end_ns;
};

static inline struct job job_of(size_t n)
{
    static const char *const hosts[] = {"a", "a", "b", "b", "c", "c", "d", "d"};
    struct job j = {.n = n};

    rp_arena_init(&j.arena);
    j.ranks = calloc(n, sizeof *j.ranks);
    assert_non_null(j.ranks);
    for (size_t r = 0; r < n; r++) {
        j.hosts[r] = hosts[r];
        j.ranks[r].apart_ns = (int64_t)r * 3600000000000;
        j.ranks[r].course.begin_ns = j.ranks[r].apart_ns;
        j.ranks[r].list = (struct rp_collectives){
            .sequenced = true, .grouped = true, .nstreams = 1, .world_size = (int32_t)n};
    }
    return j;
}

static inline void job_release(struct job *j)
{
    for (size_t r = 0; r < j->n; r++)
        rp_collectives_release(&j->ranks[r].list);
    free(j->ranks);
    rp_arena_release(&j->arena);
}

static inline void job_step(struct job *j, size_t s)
{
    j->nsteps = s + 1;
    for (size_t r = 0; r < j->n; r++) {
        j->ranks[r].steps[s] = (struct rp_course_step){(int64_t)s, 1};
        j->ranks[r].index = j->ranks[r].ordinal = 0;
    }
}

static inline uint32_t job_key(struct job_rank *r, const char *name)
{
    uint32_t k = 0;

    while (k < r->course.nkeys && strcmp(r->keys[k].name, name) != 0)
        k++;
    if (k == r->course.nkeys) {
        r->keys[k] =
            (struct rp_course_key){.hash = rp_hash_bytes(name, strlen(name)), .name = name};
        r->course.nkeys++;
    }
    return k;
}

static inline void job_work(struct job *j, size_t rank, const char *name, int64_t ns)
{
    struct job_rank *r = &j->ranks[rank];
    uint32_t key = job_key(r, name), at = (uint32_t)r->course.nops++;

    r->ops[at] = (struct rp_course_op){.kind = RP_COURSE_DEVICE,
                                       .begin_ns = r->now_ns + r->apart_ns,
                                       .dur_ns = ns,
                                       .first = (uint32_t)r->course.nitems,
                                       .n = 1,
                                       .index = r->index++,
                                       .ref = RP_NONE,
                                       .step = (uint16_t)(j->nsteps - 1)};
    r->items[r->course.nitems++] = (struct rp_course_item){ns, key, 1};
    r->mean[key][j->nsteps - 1] += (double)ns;
    r->count[key][j->nsteps - 1]++;
    r->now_ns += ns;
    if (r->now_ns > j->end_ns)
        j->end_ns = r->now_ns;
}

/* The clock of a rank is set forward while its host does nothing, which is work of the host. */
static inline void job_set_clock(struct job *j, size_t rank, int64_t ns)
{
    struct job_rank *r = &j->ranks[rank];
    uint32_t key = job_key(r, "pause");

    r->ops[r->course.nops++] = (struct rp_course_op){.kind = RP_COURSE_HOST,
                                                     .dur_ns = ns,
                                                     .first = (uint32_t)r->course.nitems,
                                                     .n = 1,
                                                     .ref = RP_NONE,
                                                     .step = (uint16_t)(j->nsteps - 1)};
    r->items[r->course.nitems++] = (struct rp_course_item){ns, key, 1};
    r->mean[key][j->nsteps - 1] += (double)ns;
    r->count[key][j->nsteps - 1]++;
    r->apart_ns += ns;
}

/* early: by how much member 0 leaves before the others. */
static inline void job_meet_unevenly(struct job *j, const size_t *ranks, size_t n, int64_t ns,
                                     int64_t early)
{
    int64_t end = 0;
    uint64_t group = 0;

    for (size_t i = 0; i < n; i++) {
        end = j->ranks[ranks[i]].now_ns > end ? j->ranks[ranks[i]].now_ns : end;
        group |= UINT64_C(1) << ranks[i];
    }
    end += ns;
    for (size_t i = 0; i < n; i++) {
        struct job_rank *r = &j->ranks[ranks[i]];
        int64_t leaves = i ? end : end - early;
        struct rp_collective c = {.begin_ns = r->now_ns + r->apart_ns,
                                  .end_ns = leaves + r->apart_ns,
                                  .name = "all_reduce",
                                  .group = "group",
                                  .seq = j->seq[group],
                                  .in_bytes = 1000,
                                  .out_bytes = 1000,
                                  .group_size = (int64_t)n,
                                  .name_hash = 1,
                                  .group_hash = group,
                                  .key = rp_hash_join(group, (uint64_t)j->seq[group]),
                                  .index = (uint32_t)r->list.list.n,
                                  .event = RP_NONE,
                                  .launch = RP_NONE,
                                  .kind = RP_COLL_ALL_REDUCE};

        r->ops[r->course.nops++] = (struct rp_course_op){.kind = RP_COURSE_COLLECTIVE,
                                                         .begin_ns = c.begin_ns,
                                                         .dur_ns = c.end_ns - c.begin_ns,
                                                         .index = r->index,
                                                         .ref = (uint32_t)r->list.list.n,
                                                         .ordinal = r->ordinal++,
                                                         .wait = r->index + 1,
                                                         .step = (uint16_t)(j->nsteps - 1),
                                                         .tight = 1};
        r->index++;
        assert_code(rp_vec_push(&r->list.list, c, NULL), RP_OK);
        r->now_ns = leaves;
    }
    j->seq[group]++;
    j->end_ns = end > j->end_ns ? end : j->end_ns;
}

static inline void job_meet(struct job *j, const size_t *ranks, size_t n, int64_t ns)
{
    job_meet_unevenly(j, ranks, n, ns, 0);
}

static inline int job_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* What is usual of a key: the median of the steps that have it. */
static inline void job_usual(struct job_rank *r, size_t nsteps)
{
    for (size_t k = 0; k < r->course.nkeys; k++) {
        double v[JOB_STEPS];
        size_t n = 0;

        for (size_t s = 0; s < nsteps; s++)
            if (r->count[k][s] > 0)
                v[n++] = r->mean[k][s] / r->count[k][s];
        qsort(v, n, sizeof *v, job_by_value);
        r->keys[k].usual_ns = (v[(n - 1) / 2] + v[n / 2]) / 2;
        r->keys[k].n = 1;
    }
}

static inline void job_end(struct job *j)
{
    struct rp_err err = RP_ERR_INIT;

    for (size_t r = 0; r < j->n; r++) {
        struct job_rank *k = &j->ranks[r];

        job_usual(k, j->nsteps);
        k->course.ops = k->ops;
        k->course.items = k->items;
        k->course.keys = k->keys;
        k->course.steps = k->steps;
        k->course.nsteps = j->nsteps;
        j->courses[r] = &k->course;
        j->lists[r] = &k->list;
    }
    assert_ok(rp_rendezvous_find(j->lists, j->n, &j->arena, &j->found, &err), &err);
}

static inline struct rp_places job_places(struct job *j)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_places_input in;
    struct rp_places out;

    job_end(j);
    in = (struct rp_places_input){j->n, j->courses, j->lists, j->hosts, &j->found, (int64_t)j->n};
    assert_ok(rp_places_find(&in, &j->arena, &out, &err), &err);
    return out;
}

#endif
