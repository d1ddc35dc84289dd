/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of ranks: planted offsets and drifts come back; what contradicts itself is named. */
#include "facts/clocks/clocks.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S  INT64_C(1000000000)

struct job {
    struct rp_arena arena;
    struct rp_clock_input in;
    struct rp_clock_participant *participants;
    struct rp_clocks clocks;
    uint64_t seed;
};

static int64_t noise(struct job *j, int64_t below)
{
    j->seed = j->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((j->seed >> 33) % (uint64_t)below);
}

/* n ranks meet every 10 ms; they leave within `jitter_ns` of each other. */
static void make_seeded(struct job *j, size_t n, size_t rendezvous, int64_t jitter_ns,
                        uint64_t seed)
{
    size_t m, r;

    memset(j, 0, sizeof *j);
    j->seed = seed;
    rp_arena_init(&j->arena);
    j->participants = RP_ARENA_NEW(&j->arena, struct rp_clock_participant, n * rendezvous);
    assert_non_null(j->participants);
    for (m = 0; m < rendezvous; m++)
        for (r = 0; r < n; r++) {
            int64_t last = (int64_t)m * 10 * MS + 5 * MS;
            int64_t begin = r == m % n ? last : last - noise(j, 3 * MS);

            j->participants[m * n + r] = (struct rp_clock_participant){
                (uint32_t)m, (uint32_t)r, begin, last + 200 * US + noise(j, jitter_ns), true};
        }
    j->in = (struct rp_clock_input){.nranks = n,
                                    .nparticipants = n * rendezvous,
                                    .participants = j->participants,
                                    .tolerance_ns = US};
}

static void make(struct job *j, size_t n, size_t rendezvous, int64_t jitter_ns)
{
    make_seeded(j, n, rendezvous, jitter_ns, 7);
}

/* The rank's clock shows `offset_ns` more, and `ppb` more each second. */
static void set_clock(struct job *j, uint32_t rank, int64_t offset_ns, int64_t ppb)
{
    size_t i;

    for (i = 0; i < j->in.nparticipants; i++)
        if (j->participants[i].rank == rank) {
            j->participants[i].begin_ns +=
                offset_ns + j->participants[i].begin_ns / US * ppb / 1000000;
            j->participants[i].end_ns += offset_ns + j->participants[i].end_ns / US * ppb / 1000000;
        }
}

static void find(struct job *j)
{
    struct rp_err err;

    assert_int_equal(rp_clocks_find(&j->in, &j->arena, &j->clocks, &err), RP_OK);
}

static bool near(int64_t a, int64_t b, int64_t tolerance)
{
    return llabs((long long)(a - b)) <= tolerance;
}

static void planted_offsets_come_back(void **state)
{
    static const int64_t planted[] = {0, 5 * MS, -3 * S, 17, 40 * US, 123456789};
    struct job j;
    uint32_t r;

    UNUSED_STATE(state);
    make(&j, 6, 100, 4 * US);
    for (r = 0; r < 6; r++)
        set_clock(&j, r, planted[r], 0);
    find(&j);
    assert_true(j.clocks.consistent);
    assert_int_equal(j.clocks.nconflicts, 0);
    for (r = 0; r < 6; r++) {
        const struct rp_clock *c = &j.clocks.at[r];

        assert_true(c->known && c->drift_ppb == 0);
        assert_true(near(c->offset_ns, -planted[r], 500));
        assert_true(c->low_ns <= -planted[r] + US && -planted[r] - US <= c->high_ns);
        assert_true(c->low_ns <= c->offset_ns && c->offset_ns <= c->high_ns);
        assert_true(r == 0 ? c->uncertainty_ns == 0
                           : c->uncertainty_ns > 0 && c->uncertainty_ns < 4 * US);
    }
    rp_arena_release(&j.arena);
}

static void planted_drifts_come_back(void **state)
{
    struct job j;
    int64_t at;

    UNUSED_STATE(state);
    make(&j, 4, 300, 4 * US);
    set_clock(&j, 1, 7 * MS, 20000); /* 20 us a second */
    set_clock(&j, 3, 0, -50000);
    find(&j);
    assert_true(j.clocks.used_drift && j.clocks.consistent);
    assert_true(near((int64_t)j.clocks.at[1].drift_ppb, -20000, 600));
    assert_true(near((int64_t)j.clocks.at[3].drift_ppb, 50000, 600));
    assert_true(j.clocks.at[2].drift_ppb == 0);
    for (at = 0; at < 3 * S; at += S / 2) {
        assert_true(near(rp_clock_time(&j.clocks.at[1], at + 7 * MS + at / 50000), at, 1500));
        assert_true(near(rp_clock_time(&j.clocks.at[3], at - at / 20000), at, 1500));
    }
    rp_arena_release(&j.arena);
}

/* The ± of a drift holds the planted one in nearly all of many runs, and is not far wider than the
   errors; it shrinks with the length of the recording, and without enough collectives there is
   none. */
static void drift_has_an_uncertainty(void **state)
{
    double width[2] = {0, 0};
    int run, longer, outside = 0;
    struct job j;

    UNUSED_STATE(state);
    for (run = 0; run < 200; run++)
        for (longer = 0; longer < 2; longer++) {
            int64_t ppb = 10000 + 400 * run;

            make_seeded(&j, 3, longer ? 400 : 100, 8 * US, (uint64_t)run + 1);
            set_clock(&j, 1, 5 * MS, -ppb);
            find(&j);
            assert_true(j.clocks.at[0].drift_doubt_ppb == 0);
            assert_true(j.clocks.at[1].drift_doubt_ppb > 0);
            outside += !near((int64_t)j.clocks.at[1].drift_ppb, ppb,
                             (int64_t)j.clocks.at[1].drift_doubt_ppb + 2);
            /* A clock that does not drift: 0 within its ±. */
            outside += !near((int64_t)j.clocks.at[2].drift_ppb, 0,
                             (int64_t)j.clocks.at[2].drift_doubt_ppb + 2);
            width[longer] += j.clocks.at[1].drift_doubt_ppb / 200;
            rp_arena_release(&j.arena);
        }
    assert_in_range(outside, 0, 800 / 20);
    assert_true(width[0] < 10000 && width[1] < width[0] / 4);
    make(&j, 2, 8, 4 * US);
    find(&j);
    assert_true(j.clocks.at[1].drift_ppb == 0 && j.clocks.at[1].drift_doubt_ppb < 0);
    rp_arena_release(&j.arena);
}

/* Also where it is the first rank whose clock drifts: the others go by it. */
static void the_first_rank_is_the_reference(void **state)
{
    struct job j;

    UNUSED_STATE(state);
    make(&j, 3, 300, 4 * US);
    set_clock(&j, 0, 9 * MS, 30000);
    find(&j);
    assert_true(j.clocks.at[0].drift_ppb == 0 && j.clocks.at[0].offset_ns == 0);
    assert_true(near((int64_t)j.clocks.at[1].drift_ppb, 30000, 600));
    assert_true(near(rp_clock_time(&j.clocks.at[1], S), S + 9 * MS + 30 * US, 1500));
    rp_arena_release(&j.arena);
}

static void a_clock_set_by_d_has_an_offset_smaller_by_d(void **state)
{
    static const int64_t shifts[] = {1, -1, 12345, -7 * S, 3600 * S};
    struct job a, b;
    size_t i;

    UNUSED_STATE(state);
    make(&a, 5, 60, 30 * US);
    find(&a);
    for (i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        make(&b, 5, 60, 30 * US);
        set_clock(&b, 3, shifts[i], 0);
        find(&b);
        assert_int_equal(b.clocks.at[3].offset_ns, a.clocks.at[3].offset_ns - shifts[i]);
        assert_int_equal(b.clocks.at[3].low_ns, a.clocks.at[3].low_ns - shifts[i]);
        assert_int_equal(b.clocks.at[1].offset_ns, a.clocks.at[1].offset_ns);
        assert_int_equal(b.clocks.at[3].uncertainty_ns, a.clocks.at[3].uncertainty_ns);
        rp_arena_release(&b.arena);
    }
    rp_arena_release(&a.arena);
}

static void ranks_of_a_host_share_a_clock(void **state)
{
    static const uint32_t hosts[] = {0, 0, 2, 2};
    struct job j;

    UNUSED_STATE(state);
    make(&j, 4, 50, 6 * US);
    set_clock(&j, 2, 5 * MS, 0);
    set_clock(&j, 3, 5 * MS, 0);
    j.in.clock_of = hosts;
    find(&j);
    assert_int_equal(j.clocks.at[1].offset_ns, 0);
    assert_int_equal(j.clocks.at[2].offset_ns, j.clocks.at[3].offset_ns);
    assert_true(near(j.clocks.at[2].offset_ns, -5 * MS, 500));
    assert_int_equal(j.clocks.at[3].clock, 1);
    rp_arena_release(&j.arena);
}

/* Half of the rendezvous say the one, the other half the other: no average, but a name. */
static void an_inconsistent_pair_is_named(void **state)
{
    struct job j;
    size_t i;

    UNUSED_STATE(state);
    make(&j, 4, 40, 4 * US);
    for (i = 0; i < j.in.nparticipants; i++)
        if (j.participants[i].rank == 2 && j.participants[i].rendezvous == 31) {
            j.participants[i].begin_ns += 50 * MS;
            j.participants[i].end_ns += 50 * MS;
        }
    find(&j);
    assert_true(j.clocks.consistent);
    assert_int_equal(j.clocks.nconflicts, 1);
    assert_int_equal(j.clocks.conflicts[0].rendezvous, 31);
    assert_int_equal(j.clocks.conflicts[0].rank_b, 2);
    assert_true(j.clocks.conflicts[0].rank_a != 2);
    assert_true(near(j.clocks.conflicts[0].by_ns, 50 * MS, 5 * MS));
    assert_true(near(j.clocks.at[2].offset_ns, 0, 500));
    rp_arena_release(&j.arena);
}

/* Two ranks on one host cannot have different clocks. */
static void a_wrong_host_is_named(void **state)
{
    static const uint32_t hosts[] = {0, 1, 1};
    struct job j;

    UNUSED_STATE(state);
    make(&j, 3, 12, 4 * US);
    set_clock(&j, 2, 20 * MS, 0);
    j.in.clock_of = hosts;
    find(&j);
    assert_true(j.clocks.nconflicts > 0);
    rp_arena_release(&j.arena);
}

/* Offsets that are likely but impossible move to where they are possible. */
static void what_is_certain_counts_more_than_what_is_likely(void **state)
{
    struct rp_clock_participant participants[6] = {
        {0, 0, 0, 100 * US, true},          {0, 1, 90 * US, 140 * US, true},
        {1, 0, 1000 * US, 1100 * US, true}, {1, 1, 1090 * US, 1140 * US, true},
        {2, 0, 2000 * US, 2100 * US, true}, {2, 1, 2135 * US, 2140 * US, true}};
    struct job j = {.in = {.nranks = 2, .nparticipants = 6, .participants = participants}};
    const struct rp_clock *c;

    UNUSED_STATE(state);
    rp_arena_init(&j.arena);
    find(&j);
    c = &j.clocks.at[1];
    assert_true(j.clocks.consistent);
    assert_int_equal(c->high_ns, -35 * US); /* it came to the last one at 2135 - 35 at the latest */
    assert_true(c->offset_ns <= -35 * US && c->offset_ns >= c->low_ns);
    assert_int_equal(c->low_ns, -140 * US);
    rp_arena_release(&j.arena);
}

static void messages_place_what_never_meets(void **state)
{
    struct rp_clock_message messages[] = {{0, 1, 1000 * US, 6040 * US},
                                          {0, 1, 2000 * US, 7020 * US}, /* 20 us */
                                          {1, 0, 8000 * US, 3030 * US}, /* 30 us */
                                          {1, 2, 9000 * US, 500 * US}};
    struct job j = {.in = {.nranks = 4, .nmessages = 4, .messages = messages}};

    UNUSED_STATE(state);
    rp_arena_init(&j.arena);
    find(&j);
    assert_int_equal(j.clocks.at[1].offset_ns, -4995 * US);
    assert_int_equal(j.clocks.at[1].uncertainty_ns, 25 * US);
    assert_int_equal(j.clocks.at[1].low_ns, -5020 * US);
    assert_int_equal(j.clocks.at[1].high_ns, -4970 * US);
    assert_true(j.clocks.at[2].known);
    assert_int_equal(j.clocks.at[2].uncertainty_ns, -1);
    assert_int_equal(j.clocks.at[2].high_ns, INT64_MAX);
    assert_false(j.clocks.at[3].known);
    rp_arena_release(&j.arena);
}

static void a_message_before_its_time_is_named(void **state)
{
    struct rp_clock_message messages[] = {
        {0, 1, 0, 10 * US}, {1, 0, 20 * US, 15 * US}, {0, 1, 40 * US, 30 * US}};
    struct job j = {.in = {.nranks = 2, .nmessages = 3, .messages = messages}};

    UNUSED_STATE(state);
    rp_arena_init(&j.arena);
    find(&j);
    assert_int_equal(j.clocks.nconflicts, 1);
    assert_true(j.clocks.conflicts[0].message != RP_CLOCK_NONE);
    assert_true(j.clocks.conflicts[0].against_message != RP_CLOCK_NONE);
    assert_int_equal(j.clocks.conflicts[0].by_ns, 15 * US);
    rp_arena_release(&j.arena);
}

static void extreme_times_end_without_overflow(void **state)
{
    struct rp_clock_participant participants[] = {{0, 0, INT64_MIN, INT64_MAX, true},
                                                  {0, 1, INT64_MAX, INT64_MIN, true},
                                                  {1, 1, INT64_MIN, INT64_MIN, true},
                                                  {1, 0, INT64_MAX, INT64_MAX, false}};
    struct job j = {.in = {.nranks = 2, .nparticipants = 4, .participants = participants}};

    UNUSED_STATE(state);
    rp_arena_init(&j.arena);
    find(&j);
    j.in = (struct rp_clock_input){0};
    find(&j);
    rp_arena_release(&j.arena);
}

/* Eight points have no drift and no ± of it. */
static void a_drift_needs_nine_rendezvous(void **state)
{
    UNUSED_STATE(state);
    for (size_t n = 8; n <= 9; n++) {
        struct job j;

        make(&j, 2, n, 10);
        set_clock(&j, 1, 0, 50000);
        find(&j);
        assert_int_equal(j.clocks.at[1].drift_doubt_ppb >= 0, n == 9);
        assert_int_equal(j.clocks.at[1].drift_ppb != 0, n == 9);
        rp_arena_release(&j.arena);
    }
    for (size_t n = 2; n <= 3; n++) { /* nor have two a scatter */
        struct job j;

        make(&j, 2, n, 4 * US);
        j.in.participants = j.participants;
        for (size_t i = 0; i < j.in.nparticipants; i++)
            j.participants[i].binds = false;
        find(&j);
        assert_int_equal(j.clocks.at[1].uncertainty_ns >= 0, n == 3);
        rp_arena_release(&j.arena);
    }
}

/* Of two ranks the time of a rendezvous is halfway between their ends: the distances from it are
   half of those from the other clock. */
static void uncertainty_is_that_of_the_distance_between_clocks(void **state)
{
    struct job j;

    UNUSED_STATE(state);
    make(&j, 2, 90, 1);
    for (size_t i = 0; i < j.in.nparticipants; i++)
        if (j.participants[i].rank == 1)
            j.participants[i].end_ns += ((int64_t)(j.participants[i].rendezvous % 3) - 1) * 4 * US;
    find(&j);
    assert_in_range(j.clocks.at[1].uncertainty_ns, 3900, 4100);
    rp_arena_release(&j.arena);
}

/* Found drift, in ns a second, of a planted one. */
static double found_drift(int64_t ppb)
{
    struct job j;
    double drift;

    make(&j, 3, 100, 8 * US);
    set_clock(&j, 1, 0, -ppb);
    find(&j);
    drift = j.clocks.at[1].drift_ppb;
    rp_arena_release(&j.arena);
    return drift;
}

/* In one second of scatter of 8 µs, twice what its ± may be. */
static void a_drift_is_told_with_two_standard_errors(void **state)
{
    int64_t ppb = 0;

    UNUSED_STATE(state);
    while (found_drift(ppb) == 0 && ppb < 20000)
        ppb += 100;
    assert_in_range(ppb, 4500, 6500);
}

/* A drift that is too small to be told is a part of what is not known. */
static void a_drift_that_is_not_told_is_doubted(void **state)
{
    struct job j;

    UNUSED_STATE(state);
    make(&j, 3, 100, 8 * US);
    set_clock(&j, 1, 0, -4000);
    find(&j);
    assert_true(j.clocks.at[1].drift_ppb == 0);
    assert_true(j.clocks.at[1].drift_doubt_ppb > 6000);
    rp_arena_release(&j.arena);
}

/* Rank 1 of three is `by_ns` ahead for k rendezvous. Returns how often its clock was set. */
static size_t steps_after(size_t rendezvous, size_t from, size_t k, int64_t by_ns)
{
    struct job j;
    size_t i, n;

    make(&j, 3, rendezvous, 2 * US);
    j.in.steps = true;
    for (i = 0; i < j.in.nparticipants; i++)
        if (j.participants[i].rank == 1 && j.participants[i].rendezvous >= from &&
            j.participants[i].rendezvous < from + k) {
            j.participants[i].begin_ns += by_ns;
            j.participants[i].end_ns += by_ns;
        }
    find(&j);
    n = j.clocks.at[1].nsteps;
    rp_arena_release(&j.arena);
    return n;
}

static void a_step_takes_four_rendezvous(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_after(60, 30, 3, 5 * MS), 0);
    assert_int_equal(steps_after(60, 30, 4, 5 * MS), 2);
    assert_int_equal(steps_after(60, 59, 1, 5 * MS), 0); /* at the end */
    assert_int_equal(steps_after(60, 58, 2, 5 * MS), 1);
    assert_int_equal(steps_after(60, 30, 30, 15 * US), 0); /* within the tolerance of two clocks */
    assert_int_equal(steps_after(60, 30, 30, 25 * US), 1);
}

/* One end that was 18 µs late; rendezvous later the clock is set by 60 µs. */
static size_t steps_after_scatter(size_t later)
{
    struct job j;
    size_t i, n;

    make(&j, 3, 200, 2 * US);
    j.in.steps = true;
    for (i = 0; i < j.in.nparticipants; i++)
        if (j.participants[i].rank == 1) {
            if (j.participants[i].rendezvous == 50)
                j.participants[i].end_ns += 18 * US;
            if (j.participants[i].rendezvous >= 50 + later) {
                j.participants[i].begin_ns += 60 * US;
                j.participants[i].end_ns += 60 * US;
            }
        }
    find(&j);
    n = j.clocks.at[1].nsteps;
    rp_arena_release(&j.arena);
    return n;
}

static void scatter_is_remembered(void **state)
{
    UNUSED_STATE(state);
    assert_int_equal(steps_after_scatter(3), 0);
    assert_int_equal(steps_after_scatter(40), 1);
}

/* Rank 1's clock is set by 5 ms in the middle: messages before and after it agree with it. */
static void messages_follow_a_clock_that_was_set(void **state)
{
    struct rp_clock_message messages[] = {{0, 1, 100 * MS, 100 * MS + 50 * US},
                                          {1, 0, 110 * MS, 110 * MS + 50 * US},
                                          {0, 1, 500 * MS, 505 * MS + 50 * US},
                                          {1, 0, 515 * MS, 510 * MS + 50 * US}};
    struct job j;

    UNUSED_STATE(state);
    make(&j, 3, 60, 2 * US);
    j.in.steps = true;
    j.in.messages = messages;
    j.in.nmessages = 4;
    for (size_t i = 0; i < j.in.nparticipants; i++)
        if (j.participants[i].rank == 1 && j.participants[i].rendezvous >= 30) {
            j.participants[i].begin_ns += 5 * MS;
            j.participants[i].end_ns += 5 * MS;
        }
    find(&j);
    assert_int_equal(j.clocks.at[1].nsteps, 1);
    assert_int_equal(j.clocks.nconflicts, 0);
    rp_arena_release(&j.arena);
}

/* Times of the first clock and back again, around the moments at which the other one was set. */
static void times_are_converted_back(void **state)
{
    static const struct rp_clock_step steps[] = {{100, 1000}, {200, 1000}};
    struct rp_clock clock = {.nsteps = 2, .steps = steps};

    UNUSED_STATE(state);
    assert_int_equal(rp_clock_time(&clock, 99), 99);
    assert_int_equal(rp_clock_time(&clock, 100), 1100);
    assert_int_equal(rp_clock_time(&clock, 199), 1199);
    assert_int_equal(rp_clock_time(&clock, 200), 2200);
    clock.offset_ns = -7;
    clock.at_ns = 50;
    for (int drift = 0; drift < 2; drift++) {
        clock.drift_ppb = 2000 * drift;
        for (int64_t ns = 90; ns < 210; ns++)
            assert_int_equal(rp_clock_own_time(&clock, rp_clock_time(&clock, ns)), ns);
    }
    clock.nsteps = 0;
    assert_int_equal(rp_clock_time(&clock, 50 + S), 43 + S + 2000);
    assert_int_equal(rp_clock_own_time(&clock, 43 + S + 2000), 50 + S);
}

/* It differs by more than its uncertainty, and by more than what is asked for, at either end. */
static void a_clock_differs_at_one_end(void **state)
{
    struct rp_clock clock = {.known = true, .offset_ns = 5, .uncertainty_ns = 10, .drift_ppb = 1e6};

    UNUSED_STATE(state);
    assert_false(rp_clock_differs(&clock, 0, 0, 0, 5000)); /* 5 and 10 */
    assert_true(rp_clock_differs(&clock, 0, 0, 0, 6000));
    assert_true(rp_clock_differs(&clock, 0, 0, 6000, 0));
    assert_false(rp_clock_differs(&clock, 0, 11, 0, 6000));
    assert_true(rp_clock_differs(&clock, 16, 0, 0, 0));
    assert_false(rp_clock_differs(&clock, 15, 0, 0, 0));
    assert_true(rp_clock_differs(&clock, -6, 0, 0, 0));
    assert_false(rp_clock_differs(&clock, -5, 0, 0, 0));
    clock.nsteps = 1;
    assert_true(rp_clock_differs(&clock, 5, 0, 0, 0));
    clock.uncertainty_ns = -1;
    assert_false(rp_clock_differs(&clock, 100, 0, 0, 0));
    clock.uncertainty_ns = 0;
    clock.known = false;
    assert_false(rp_clock_differs(&clock, 100, 0, 0, 0));
}

/* Rank 1 of three, whose begins and ends are ahead from a rendezvous on, and those of one
   rendezvous before. */
struct shift {
    int64_t begin_ns, end_ns;
    size_t from, to, alone;
};

static void shift_job(struct job *j, const struct shift *s)
{
    make(j, 3, 60, 2 * US);
    j->in.steps = true;
    for (size_t i = 0; i < j->in.nparticipants; i++) {
        struct rp_clock_participant *p = &j->participants[i];

        if (p->rank != 1 ||
            ((p->rendezvous < s->from || p->rendezvous >= s->to) && p->rendezvous != s->alone))
            continue;
        p->begin_ns += s->begin_ns;
        p->end_ns += s->end_ns;
    }
}

/* A step lies between the last end before it and the first begin after it, or if the clock went
   back beyond that end, at the begin. */
static void a_step_has_a_place_and_a_size(void **state)
{
    static const int64_t by[] = {5 * MS, -5 * MS, -15 * MS};

    UNUSED_STATE(state);
    for (size_t k = 0; k < sizeof by / sizeof by[0]; k++) {
        struct job j;
        const struct rp_clock *c;
        int64_t before, after;

        shift_job(&j, &(struct shift){by[k], by[k], 30, 60, 0 - (size_t)1});
        before = j.participants[29 * 3 + 1].end_ns;
        after = j.participants[30 * 3 + 1].begin_ns;
        find(&j);
        c = &j.clocks.at[1];
        assert_int_equal(c->nsteps, 1);
        assert_true(near(c->steps[0].add_ns, -by[k], 3 * US));
        assert_int_equal(c->steps[0].from_ns, k < 2 ? before + (after - before) / 2 : after);
        assert_true(near(c->offset_ns, 0, 2 * US));
        assert_int_equal(j.clocks.at[0].nsteps + j.clocks.at[2].nsteps, 0);
        assert_true(j.clocks.consistent);
        rp_arena_release(&j.arena);
    }
}

static size_t steps_with(struct shift s)
{
    struct job j;
    size_t n;

    shift_job(&j, &s);
    find(&j);
    n = j.clocks.at[1].nsteps;
    rp_arena_release(&j.arena);
    return n;
}

/* Ends alone may be late by no more than the time since the end before them; one that was as far
   away long before is not of the same step. */
static void what_looks_like_a_step(void **state)
{
    const size_t none = 0 - (size_t)1;

    UNUSED_STATE(state);
    assert_int_equal(steps_with((struct shift){0, 5 * MS, 30, 34, none}), 2);
    assert_int_equal(steps_with((struct shift){0, 12 * MS, 30, 34, none}), 0);
    assert_int_equal(steps_with((struct shift){5 * MS, 5 * MS, 30, 33, 20}), 0);
    assert_int_equal(steps_with((struct shift){5 * MS, 5 * MS, 30, 34, 20}), 2);
    assert_int_equal(steps_with((struct shift){5 * MS, 5 * MS, 4, 60, none}), 1);
    assert_int_equal(steps_with((struct shift){5 * MS, 5 * MS, 3, 60, none}), 0); /* too early */
}

static void a_clock_has_so_many_steps(void **state)
{
    struct job j;

    UNUSED_STATE(state);
    for (size_t n = 0; n < 2; n++) {
        make(&j, 3, 5 * (64 + 8 * n) + 5, 2 * US);
        j.in.steps = true;
        for (size_t i = 0; i < j.in.nparticipants; i++)
            if (j.participants[i].rank == 1) {
                j.participants[i].begin_ns += j.participants[i].rendezvous / 5 * MS;
                j.participants[i].end_ns += j.participants[i].rendezvous / 5 * MS;
            }
        find(&j);
        assert_int_equal(j.clocks.at[1].nsteps, 64);
        rp_arena_release(&j.arena);
    }
}

int test_clocks(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_a_place_and_a_size),
        cmocka_unit_test(what_looks_like_a_step),
        cmocka_unit_test(a_clock_has_so_many_steps),
        cmocka_unit_test(planted_offsets_come_back),
        cmocka_unit_test(planted_drifts_come_back),
        cmocka_unit_test(drift_has_an_uncertainty),
        cmocka_unit_test(a_drift_needs_nine_rendezvous),
        cmocka_unit_test(uncertainty_is_that_of_the_distance_between_clocks),
        cmocka_unit_test(a_drift_is_told_with_two_standard_errors),
        cmocka_unit_test(a_drift_that_is_not_told_is_doubted),
        cmocka_unit_test(a_step_takes_four_rendezvous),
        cmocka_unit_test(scatter_is_remembered),
        cmocka_unit_test(the_first_rank_is_the_reference),
        cmocka_unit_test(a_clock_set_by_d_has_an_offset_smaller_by_d),
        cmocka_unit_test(ranks_of_a_host_share_a_clock),
        cmocka_unit_test(an_inconsistent_pair_is_named),
        cmocka_unit_test(a_wrong_host_is_named),
        cmocka_unit_test(what_is_certain_counts_more_than_what_is_likely),
        cmocka_unit_test(messages_place_what_never_meets),
        cmocka_unit_test(a_message_before_its_time_is_named),
        cmocka_unit_test(extreme_times_end_without_overflow),
        cmocka_unit_test(messages_follow_a_clock_that_was_set),
        cmocka_unit_test(times_are_converted_back),
        cmocka_unit_test(a_clock_differs_at_one_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
