/* SPDX-License-Identifier: Apache-2.0 */
/* What traces say about clocks: hosts, collectives, and messages with one side in each trace. */
#include "facts/clocks/sources.h"
#include "trace/trace_fixtures.h"

static void ranks_of_a_boot_or_a_host_share_a_clock(void **state)
{
    static const struct {
        struct {
            uint64_t boot;
            const char *host;
        } rank[3];
        uint32_t clock_of[3];
        bool shared;
    } rows[] = {
        {{{0, NULL}, {0, NULL}, {0, NULL}}, {0, 1, 2}, false},
        {{{5, NULL}, {6, NULL}, {5, NULL}}, {0, 1, 0}, true},
        {{{0, "a"}, {0, "b"}, {0, "b"}}, {0, 1, 1}, true},
        {{{5, "a"}, {6, "a"}, {7, "a"}}, {0, 1, 2}, false}, /* a boot is certain */
        {{{5, "a"}, {5, "b"}, {0, "a"}}, {0, 0, 2}, true},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rp_collectives c[3] = {0};
        const struct rp_collectives *ranks[] = {&c[0], &c[1], &c[2]};
        uint32_t clock_of[3];
        bool shared;

        for (int r = 0; r < 3; r++) {
            c[r].boot = rows[i].rank[r].boot;
            c[r].host = rows[i].rank[r].host;
        }
        assert_code(rp_clocks_share(ranks, 3, clock_of, &shared, NULL), RP_OK);
        assert_memory_equal(clock_of, rows[i].clock_of, sizeof clock_of);
        assert_int_equal(shared, rows[i].shared);
    }
}

/* Two ranks that meet three times in collectives of a kind; the clock of the second is 1 ms ahead.
 */
static struct rp_clock second_clock(uint8_t kind, bool on_host, uint32_t n,
                                    const rp_clock_message_vec *messages)
{
    struct rp_collective at[2][3];
    struct rp_collectives c[2] = {{.on_host = on_host}, {.on_host = on_host}};
    const struct rp_collectives *ranks[] = {&c[0], &c[1]};
    uint32_t rank[] = {0, 1}, places[3][2];
    struct rp_rendezvous met[3];
    int64_t base[2] = {0, 0};
    struct rp_rendezvous_list list = {.n = n, .at = met, .base_ns = base};
    struct rp_arena arena = RP_ARENA_INIT;
    struct rp_clocks clocks;
    struct rp_clock out;

    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t i = 0; i < 3; i++) {
            int64_t begin = 10000000 * (int64_t)(i + 1) + 1000000 * (int64_t)r;

            at[r][i] =
                (struct rp_collective){.begin_ns = begin, .end_ns = begin + 50000, .kind = kind};
        }
        c[r].list.at = at[r];
        c[r].list.n = 3;
    }
    for (uint32_t i = 0; i < 3; i++) {
        places[i][0] = places[i][1] = i;
        met[i] = (struct rp_rendezvous){.n = 2, .rank = rank, .at = places[i]};
    }
    assert_code(rp_clocks_of_rendezvous(ranks, 2, &list, NULL, messages, &arena, &clocks, NULL),
                RP_OK);
    out = clocks.at[1];
    rp_arena_release(&arena);
    return out;
}

/* Where all wait for all the clock is known, with bounds; after a broadcast it is an estimate, and
   on the host, where the root goes on, nothing is. */
static void collectives_tell_of_clocks(void **state)
{
    struct rp_clock_message one = {0, 1, 1000, 2001000};
    rp_clock_message_vec messages = {.at = &one, .n = 1};
    struct rp_clock c = second_clock(RP_COLL_ALL_REDUCE, false, 3, NULL);

    UNUSED_STATE(state);
    assert_true(c.known);
    assert_int_equal(c.offset_ns, -1000000);
    assert_int_equal(c.rendezvous, 3);
    assert_int_equal(c.low_ns, -1060000); /* 10 us are tolerated */
    assert_int_equal(c.high_ns, -940000);
    c = second_clock(RP_COLL_ALL_REDUCE, true, 3, NULL);
    assert_int_equal(c.offset_ns, -1000000);
    c = second_clock(RP_COLL_BROADCAST, false, 3, NULL);
    assert_true(c.known);
    assert_int_equal(c.offset_ns, -1000000);
    assert_int_equal(c.low_ns, INT64_MIN);
    c = second_clock(RP_COLL_BROADCAST, true, 3, NULL);
    assert_false(c.known);
    c = second_clock(RP_COLL_BROADCAST, true, 3, &messages);
    assert_true(c.known);
    assert_int_equal(c.messages, 1);
    assert_false(second_clock(RP_COLL_ALL_REDUCE, false, 0, NULL).known);
}

static void add_half(struct rp_builder *b, char phase, uint8_t kind, int64_t tid, int64_t ts,
                     const char *id)
{
    struct rp_origin origin = {.phase = phase, .kind = kind};
    struct rp_raw raw = {.ts_ns = ts,
                         .dur_ns = RP_OPEN_NS,
                         .name = str_of(b, "push"),
                         .track = track_of(b, 1, tid),
                         .has_link = true,
                         .link = str_of(b, id),
                         .flags = RP_EVENT_ASYNC | RP_EVENT_ID_TEXT};

    assert_code(rp_builder_origin(b, &origin, &raw.origin, NULL), RP_OK);
    assert_code(rp_builder_shape(b, NULL, 0, &raw.shape, NULL), RP_OK);
    assert_code(rp_builder_add(b, &raw, NULL), RP_OK);
}

static void halves_of_transfers_are_found(void **state)
{
    struct rp_builder *b = build_rows(NULL, 0);
    rp_half_message_vec halves = {0};
    struct rp_trace *t;

    UNUSED_STATE(state);
    add_half(b, 'b', RP_KIND_TRANSFER, 1, 100, "alone");
    add_half(b, 'e', RP_KIND_TRANSFER, 1, 300, "ended");
    add_half(b, 'b', RP_KIND_TRANSFER, 1, 400, "both");
    add_half(b, 'e', RP_KIND_TRANSFER, 1, 500, "both");
    add_half(b, 'b', RP_KIND_CPU_OP, 1, 600, "other");
    t = finish_valid(b);
    assert_code(rp_half_messages_find(t, &halves, NULL), RP_OK);
    assert_int_equal(halves.n, 2);
    assert_true(halves.at[0].is_begin && !halves.at[1].is_begin);
    assert_int_equal(halves.at[0].ns, 100);
    assert_int_equal(halves.at[1].ns, 300);
    assert_true(halves.at[0].key != halves.at[1].key);
    rp_vec_release(&halves);
    rp_trace_free(t);
}

/* The n-th begin and the n-th end of a key are a message, if they are of two ranks. */
static void halves_are_joined(void **state)
{
    struct rp_half_message halves[] = {
        {.key = 7, .ns = 30, .rank = 1, .is_begin = false},
        {.key = 7, .ns = 10, .rank = 0, .is_begin = true},
        {.key = 7, .ns = 40, .rank = 1, .is_begin = false},
        {.key = 7, .ns = 20, .rank = 0, .is_begin = true},
        {.key = 7, .ns = 50, .rank = 1, .is_begin = false}, /* a third, without a begin */
        {.key = 8, .ns = 60, .rank = 2, .is_begin = true},  /* without an end */
        {.key = 9, .ns = 70, .rank = 2, .is_begin = true},  /* to itself */
        {.key = 9, .ns = 80, .rank = 2, .is_begin = false},
        {.key = 10, .ns = 5, .rank = 3, .is_begin = false}, /* received before it was sent */
        {.key = 10, .ns = 90, .rank = 2, .is_begin = true},
    };
    static const struct rp_clock_message want[] = {{0, 1, 10, 30}, {0, 1, 20, 40}, {2, 3, 90, 5}};
    rp_half_message_vec in = {.at = halves, .n = sizeof halves / sizeof halves[0]}, none = {0};
    rp_clock_message_vec out = {0};

    UNUSED_STATE(state);
    assert_code(rp_half_messages_join(&in, &out, NULL), RP_OK);
    assert_int_equal(out.n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(out.at[i].from, want[i].from);
        assert_int_equal(out.at[i].to, want[i].to);
        assert_int_equal(out.at[i].sent_ns, want[i].sent_ns);
        assert_int_equal(out.at[i].received_ns, want[i].received_ns);
    }
    assert_code(rp_half_messages_join(&none, &out, NULL), RP_OK);
    assert_int_equal(out.n, 3);
    rp_vec_release(&out);
}

int test_clock_sources(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_of_a_boot_or_a_host_share_a_clock),
        cmocka_unit_test(collectives_tell_of_clocks),
        cmocka_unit_test(halves_of_transfers_are_found),
        cmocka_unit_test(halves_are_joined),
    };

    return cmocka_run_group_tests_name("clock_sources", tests, NULL, NULL);
}
