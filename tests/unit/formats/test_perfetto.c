/* SPDX-License-Identifier: Apache-2.0 */
/* Perfetto's traces, built field by field; tests/golden/info/perfetto has the larger ones. */
#include "proto_fixture.h"

#include "abi/proto/perfetto.h"

int test_perfetto(void);

static void put_arg(struct rp_proto_writer *w, const char *name, int64_t value)
{
    size_t arg = rp_proto_begin(w, RP_PFT_EVENT_DEBUG_ANNOTATIONS);

    rp_proto_put_text(w, RP_PFT_ARG_NAME, name);
    rp_proto_put_varint(w, RP_PFT_ARG_INT_VALUE, (uint64_t)value);
    rp_proto_end(w, arg);
}

/* An instant with arguments "k0", "k1", … whose values are their numbers, then `again` of them with
   another value. */
static void put_instant(struct rp_proto_writer *w, const char *name, int first, int n, int again)
{
    size_t packet = rp_proto_begin(w, RP_PFT_TRACE_PACKET), event;
    char key[16];

    rp_proto_put_varint(w, RP_PFT_PACKET_TIMESTAMP, 1000);
    rp_proto_put_varint(w, RP_PFT_PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
    event = rp_proto_begin(w, RP_PFT_PACKET_TRACK_EVENT);
    rp_proto_put_varint(w, RP_PFT_EVENT_TYPE, RP_PFT_INSTANT);
    rp_proto_put_text(w, RP_PFT_EVENT_NAME, name);
    for (int i = 0; i < n + again; i++) {
        int number = first + (i < n ? i : n - 1 - (i - n) * (n - 1) / (again > 1 ? again - 1 : 1));

        snprintf(key, sizeof key, "k%d", number);
        put_arg(w, key, i < n ? number : -number - 1);
    }
    rp_proto_end(w, event);
    rp_proto_end(w, packet);
}

/* However many arguments an event has, and whatever the events before it had. */
static void the_last_of_equal_arguments_counts(void **state)
{
    struct rp_proto_writer w = {0};
    struct rp_import import;
    rp_event e;

    UNUSED_STATE(state);
    put_instant(&w, "few", 0, 3, 1);
    put_instant(&w, "many", 1, 100, 3); /* the last, the middle, the first */
    put_instant(&w, "other", 40, 2, 0);
    import = load_message(&w);
    e = find(import.trace, "few");
    assert_int_equal(
        rp_args_count(&import.trace->args, import.trace->ev.shape[e], import.trace->ev.arg_row[e]),
        3);
    assert_arg(import.trace, e, "k0", "i 0");
    assert_arg(import.trace, e, "k2", "i -3");
    e = find(import.trace, "many");
    assert_int_equal(
        rp_args_count(&import.trace->args, import.trace->ev.shape[e], import.trace->ev.arg_row[e]),
        100);
    assert_arg(import.trace, e, "k1", "i -2");
    assert_arg(import.trace, e, "k2", "i 2");
    assert_arg(import.trace, e, "k51", "i -52");
    assert_arg(import.trace, e, "k99", "i 99");
    assert_arg(import.trace, e, "k100", "i -101");
    e = find(import.trace, "other");
    assert_arg(import.trace, e, "k40", "i 40");
    assert_arg(import.trace, e, "k41", "i 41");
    rp_import_release(&import);
}

int test_perfetto(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_equal_arguments_counts),
    };

    return cmocka_run_group_tests_name("perfetto", tests, NULL, NULL);
}
