/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that is set forward leaves a gap of that length: once among the times of the host, and
 * once among those of the device. Each is the one nearest to where the other ranks saw the step.
 */
#include "places/clock_steps.h"

#include "facts/times/durations.h"

#include <stddef.h>
#include <string.h>

#define DRIFT_PARTS (1000000 / RP_CLOCK_DRIFT_PPM) /* of a length: what drift may change */

/* The gap that was chosen so far. */
struct gap {
    int64_t begin_ns, away_ns;
    size_t op; /* whose time it is; SIZE_MAX: between two */
};

struct undoing {
    struct rp_course *course;
    struct rp_collectives *list;
    struct rp_course_op *ops;
    struct rp_course_item *items;
    int64_t from_ns, length_ns;
};

static void choose(const struct undoing *u, int64_t begin, int64_t end, size_t op, struct gap *out)
{
    int64_t away = u->from_ns < begin ? rp_ns_between(u->from_ns, begin)
                   : u->from_ns > end ? rp_ns_between(end, u->from_ns)
                                      : 0;

    if (rp_ns_between(begin, end) >= u->length_ns - u->length_ns / DRIFT_PARTS &&
        away < out->away_ns)
        *out = (struct gap){begin, away, op};
}

static void find_gaps(const struct undoing *u, struct gap *host, struct gap *device)
{
    int64_t on_host = u->course->begin_ns, done = INT64_MAX;

    *host = *device = (struct gap){u->from_ns, INT64_MAX, SIZE_MAX};
    for (size_t i = 0; i < u->course->nops; i++) {
        const struct rp_course_op *op = &u->ops[i];
        int64_t begin = op->kind == RP_COURSE_HOST ? on_host : op->begin_ns;
        int64_t end = rp_ns_sum(begin, op->dur_ns);

        if (op->kind == RP_COURSE_HOST || op->kind == RP_COURSE_SYNC) {
            choose(u, on_host, end, op->kind == RP_COURSE_HOST ? i : SIZE_MAX, host);
            on_host = end;
            continue;
        }
        if (done != INT64_MAX)
            choose(u, done, begin, SIZE_MAX, device);
        choose(u, begin, end, i, device);
        done = done == INT64_MAX || end > done ? end : done;
    }
}

/* The time is that of the longest items of the operation: a gap at the begin of a step may be in
   two. */
static void shorten(const struct undoing *u, struct rp_course_op *op)
{
    int64_t rest = op->dur_ns < u->length_ns ? op->dur_ns : u->length_ns;

    op->dur_ns -= rest;
    while (rest > 0 && op->n) {
        struct rp_course_item *longest = &u->items[op->first];

        for (uint32_t k = 1; k < op->n; k++)
            if (u->items[op->first + k].dur_ns > longest->dur_ns)
                longest = &u->items[op->first + k];
        if (longest->dur_ns <= 0)
            break;
        int64_t cut = longest->dur_ns < rest ? longest->dur_ns : rest;
        longest->dur_ns -= cut;
        rest -= cut;
    }
}

static void move(int64_t *ns, const struct gap *gap, int64_t length)
{
    if (*ns > gap->begin_ns)
        *ns = rp_ns_between(length, *ns);
}

static void undo(const struct undoing *u)
{
    struct gap host, device;

    find_gaps(u, &host, &device);
    if (host.op != SIZE_MAX)
        shorten(u, &u->ops[host.op]);
    if (device.op != SIZE_MAX)
        shorten(u, &u->ops[device.op]);
    for (size_t i = 0; i < u->course->nops; i++)
        if (u->ops[i].kind != RP_COURSE_HOST)
            move(&u->ops[i].begin_ns, u->ops[i].kind == RP_COURSE_SYNC ? &host : &device,
                 u->length_ns);
    for (size_t i = 0; i < u->list->list.n; i++) {
        move(&u->list->list.at[i].begin_ns, &device, u->length_ns);
        move(&u->list->list.at[i].end_ns, &device, u->length_ns);
    }
}

static void *copy_of(struct rp_arena *arena, const void *from, size_t bytes)
{
    void *to = rp_arena_alloc(arena, bytes + 1, _Alignof(max_align_t));

    return to && bytes ? memcpy(to, from, bytes) : to;
}

enum rp_code rp_course_undo_steps(const struct rp_clock *clock, const struct rp_course **course,
                                  const struct rp_collectives **list, struct rp_arena *arena,
                                  struct rp_err *err)
{
    const struct rp_course *c = *course;
    const struct rp_collectives *l = *list;

    if (!clock->nsteps)
        return RP_OK;
    struct undoing u = {.course = copy_of(arena, c, sizeof *c),
                        .list = copy_of(arena, l, sizeof *l),
                        .ops = copy_of(arena, c->ops, c->nops * sizeof *c->ops),
                        .items = copy_of(arena, c->items, c->nitems * sizeof *c->items)};
    RP_TRY(rp_err_need(u.course && u.list && u.ops && u.items, err, "comparing ranks"));
    u.list->list.at = copy_of(arena, l->list.at, l->list.n * sizeof *l->list.at);
    RP_TRY(rp_err_need(u.list->list.at, err, "comparing ranks"));
    u.course->ops = u.ops;
    u.course->items = u.items;
    for (size_t i = clock->nsteps; i-- > 0;) {
        u.from_ns = clock->steps[i].from_ns;
        u.length_ns = rp_ns_between(clock->steps[i].add_ns, 0);
        if (u.length_ns > 0)
            undo(&u);
    }
    *course = u.course;
    *list = u.list;
    return RP_OK;
}
