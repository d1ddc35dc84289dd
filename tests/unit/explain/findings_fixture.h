/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_TESTS_FINDINGS_FIXTURE_H
#define RP_TESTS_FINDINGS_FIXTURE_H
/* The findings of one rank whose trace is given as rows. */
#include "explain/findings/finding.h"
#include "trace/trace_fixtures.h"

struct found {
    struct rp_arena arena;
    struct rp_trace *t;
    struct rp_report_part part;
    struct rp_rank_part in;
    struct rp_ranks ranks;
    struct rp_chain chain;
    struct rp_report_root root;
};

/* device: its name and memory; NULL: none is described. */
static inline void find_on(struct found *f, const struct row *rows, size_t n,
                           const struct rp_device *device)
{
    struct rp_device *before;
    uint32_t nbefore;

    *f = (struct found){.ranks = {.n = 1, .world_size = 1}};
    f->t = trace_of(rows, n);
    before = f->t->devices;
    nbefore = f->t->ndevices;
    if (device) {
        f->t->devices = (struct rp_device *)(uintptr_t)device;
        f->t->ndevices = 1;
    }
    assert_code(rp_report_rank(f->t, NULL, NULL, &f->arena, &f->part, NULL), RP_OK);
    f->t->devices = before;
    f->t->ndevices = nbefore;
    f->in.data = &f->part;
    f->ranks.parts = &f->in;
    assert_code(rp_chain_make(&f->ranks, &f->arena, &f->chain, NULL), RP_OK);
    assert_code(rp_findings_find(&f->ranks, &f->chain, &f->arena, &f->root, NULL), RP_OK);
}

static inline void find_in(struct found *f, const struct row *rows, size_t n)
{
    find_on(f, rows, n, NULL);
}

static inline const struct rp_report_finding *finding_of(const struct found *f, const char *id)
{
    for (size_t i = 0; i < f->root.nfindings; i++)
        if (!strcmp(f->root.findings[i].id, id))
            return &f->root.findings[i];
    return NULL;
}

/* What it costs; 0: it was not found. */
static inline int64_t lost_to(const struct found *f, const char *id)
{
    return finding_of(f, id) ? finding_of(f, id)->lost_ns : 0;
}

static inline void found_end(struct found *f)
{
    rp_report_part_release(&f->part);
    rp_trace_free(f->t);
    rp_arena_release(&f->arena);
}

#endif
