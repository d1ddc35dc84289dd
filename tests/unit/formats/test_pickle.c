/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles as data: values of all protocols, what is refused, and where damage is. */
#include "formats/pickle/pickle.h"
#include "unit.h"

#define BYTES(text) (text), sizeof(text) - 1

static enum rp_code read_bytes(const char *bytes, size_t n, struct rp_pickle *p, struct rp_err *err)
{
    return rp_pickle_read(p, bytes, n, NULL, err);
}

/* {"a": 1, "b": [True, None, -2, 2.5], "c": ("x", b"y")}; `a` is what integers begin with */
static void check_values(const char *bytes, size_t n)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_pickle p;
    rp_pickle_id list, tuple;

    assert_ok(read_bytes(bytes, n, &p, &err), &err);
    assert_int_equal(p.used, n);
    assert_int_equal(rp_pickle_get_int(&p, p.root, "a", 0), 1);
    assert_int_equal(rp_pickle_get_int(&p, p.root, "d", 7), 7);
    list = rp_pickle_get(&p, p.root, "b");
    assert_true(rp_pickle_is_list(&p, list));
    assert_int_equal(rp_pickle_at(&p, list)->n, 4);
    assert_int_equal(rp_pickle_at(&p, rp_pickle_at(&p, list)->v.items[0])->type, RP_PICKLE_BOOL);
    assert_int_equal(rp_pickle_at(&p, rp_pickle_at(&p, list)->v.items[1])->type, RP_PICKLE_NONE);
    assert_int_equal(rp_pickle_at(&p, rp_pickle_at(&p, list)->v.items[2])->v.i, -2);
    assert_true(rp_pickle_at(&p, rp_pickle_at(&p, list)->v.items[3])->v.f == 2.5);
    tuple = rp_pickle_get(&p, p.root, "c");
    assert_int_equal(rp_pickle_at(&p, tuple)->type, RP_PICKLE_TUPLE);
    assert_int_equal(rp_pickle_at(&p, tuple)->n, 2);
    rp_pickle_release(&p);
}

static void reads_all_protocols(void **state)
{
    UNUSED_STATE(state);
    check_values(BYTES(
        "(dp0\nVa\np1\nI1\nsVb\np2\n(lp3\nI01\naNaI-2\naF2.5\nasVc\np4\n(S'x'\nS'y'\ntp5\ns."));
    check_values(
        BYTES("}q\0(X\1\0\0\0aq\1K\1X\1\0\0\0bq\2]q\3(I01\nNJ\xfe\xff\xff\xffG@\4\0\0\0\0\0\0e"
              "X\1\0\0\0cq\4X\1\0\0\0xX\1\0\0\0y\x86q\5u."));
    check_values(BYTES("\x80\2}q\0(U\1aq\1M\1\0U\1bq\2]q\3(\x88N\x8a\1\xfeG@\4\0\0\0\0\0\0eU\1cU\1x"
                       "U\1y\x86q\5u."));
    check_values(
        BYTES("\x80\3}q\0(X\1\0\0\0a\x8b\1\0\0\0\1X\1\0\0\0b]q\3(\x88NJ\xfe\xff\xff\xffG@\4\0\0\0\0"
              "\0\0eX\1\0\0\0cX\1\0\0\0xC\1y\x86u."));
    check_values(BYTES(
        "\x80\4\x95\x31\0\0\0\0\0\0\0}\x94(\x8c\1a\x94K\1\x8c\1b\x94]\x94(\x88NJ\xfe\xff\xff\xff"
        "G@\4\0\0\0\0\0\0e\x8c\1c\x94\x8c\1x\x94"
        "C\1y\x94\x86\x94u."));
    check_values(BYTES(
        "\x80\5}\x94(\x8d\1\0\0\0\0\0\0\0aK\1\x8c\1b]\x94(\x88NJ\xfe\xff\xff\xffG@\4\0\0\0\0\0\0"
        "e\x8c\1c\x8c\1x\x96\1\0\0\0\0\0\0\0y\x86u."));
}

/* A value under two names is one; OrderedDict and defaultdict are dicts. */
static void reads_memo_and_named_dicts(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_pickle p;
    rp_pickle_id list;

    UNUSED_STATE(state);
    assert_ok(read_bytes(BYTES("\x80\4]\x94(}\x94\x8c\1k\x94K\x07sh\1e."), &p, &err), &err);
    list = p.root;
    assert_int_equal(rp_pickle_at(&p, list)->v.items[0], rp_pickle_at(&p, list)->v.items[1]);
    assert_int_equal(rp_pickle_get_int(&p, rp_pickle_at(&p, list)->v.items[0], "k", 0), 7);
    rp_pickle_release(&p);
    assert_ok(read_bytes(BYTES("\x80\2ccollections\nOrderedDict\n)R(U\1aK\5u."), &p, &err), &err);
    assert_int_equal(rp_pickle_get_int(&p, p.root, "a", 0), 5);
    rp_pickle_release(&p);
    assert_ok(read_bytes(BYTES("\x80\4\x8c\x0b"
                               "collections\x8c\x0b"
                               "defaultdict\x93\x8c\x08"
                               "builtins\x8c\4list\x93\x85R."),
                         &p, &err),
              &err);
    assert_int_equal(rp_pickle_at(&p, p.root)->type, RP_PICKLE_DICT);
    rp_pickle_release(&p);
}

static void reads_escapes_and_huge_numbers(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_pickle p;
    struct rp_pickle_text text;

    UNUSED_STATE(state);
    assert_ok(
        read_bytes(
            BYTES(
                "(dVa\nVx\\u00e9\\\\y\nsVb\nS'it\\'s \\x41\\n'\nsVc\nL123456789012345678901L\ns."),
            &p, &err),
        &err);
    text = rp_pickle_get_text(&p, p.root, "a");
    assert_memory_equal(text.at, "x\xc3\xa9\\\\y", text.n);
    assert_true(rp_pickle_text_is(rp_pickle_get_text(&p, p.root, "b"), "it's A\n"));
    assert_int_equal(rp_pickle_get_int(&p, p.root, "c", 3), 3); /* does not fit */
    rp_pickle_release(&p);
    assert_ok(read_bytes(BYTES("\x80\2\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."), &p, &err), &err);
    assert_true(rp_pickle_at(&p, p.root)->v.i == INT64_MAX);
    rp_pickle_release(&p);
}

static void check_failure(const char *bytes, size_t n, enum rp_code code, const char *text)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_pickle p;

    assert_int_equal(read_bytes(bytes, n, &p, &err), code);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not contain '%s'", err.text, text);
    rp_pickle_release(&p);
}

static void refuses_everything_that_runs(void **state)
{
    UNUSED_STATE(state);
    check_failure(BYTES("cos\nsystem\n(S'ls'\ntR."), RP_UNSUPPORTED,
                  "byte 0: the pickle names 'os.system'");
    check_failure(BYTES("\x80\4\x8c\5posix\x8c\6system\x93."), RP_UNSUPPORTED,
                  "byte 17: the pickle names 'posix.system'");
    check_failure(BYTES("(S'ls'\nios\nsystem\n."), RP_UNSUPPORTED,
                  "byte 7: the pickle instruction INST");
    check_failure(BYTES("}}b."), RP_UNSUPPORTED, "BUILD");
    check_failure(BYTES("(}o."), RP_UNSUPPORTED, "OBJ");
    check_failure(BYTES("})R."), RP_UNSUPPORTED, "REDUCE");
    check_failure(BYTES("})\x81."), RP_UNSUPPORTED, "NEWOBJ");
    check_failure(BYTES("})}\x92."), RP_UNSUPPORTED, "NEWOBJ_EX");
    check_failure(BYTES("Pid\n."), RP_UNSUPPORTED, "PERSID");
    check_failure(BYTES("K\1Q."), RP_UNSUPPORTED, "BINPERSID");
    check_failure(BYTES("\x82\1."), RP_UNSUPPORTED, "EXT1");
    check_failure(BYTES("\x97."), RP_UNSUPPORTED, "NEXT_BUFFER");
    check_failure(BYTES("ccollections\nOrderedDict\n(K\1K\2tR."), RP_UNSUPPORTED, "REDUCE");
    check_failure(BYTES("cbuiltins\nint\n)R."), RP_UNSUPPORTED, "REDUCE");
}

static void names_the_byte_of_damage(void **state)
{
    UNUSED_STATE(state);
    check_failure(BYTES(""), RP_FORMAT, "is empty");
    check_failure(BYTES("}"), RP_FORMAT, "byte 1: the pickle is cut short");
    check_failure(BYTES("\x80\4\x8c\x09"
                        "abc"),
                  RP_FORMAT, "cut short");
    check_failure(BYTES("X\xff\xff\xff\xff"
                        "abc."),
                  RP_LIMIT, "over the limit");
    check_failure(BYTES("."), RP_FORMAT, "byte 0: the stack has too few values");
    check_failure(BYTES("K\1u."), RP_FORMAT, "byte 2: there is no mark");
    check_failure(BYTES("}(K\1u."), RP_FORMAT, "byte 4: a key without a value");
    check_failure(BYTES("]K\1K\2s."), RP_FORMAT,
                  "byte 5: items are added to a value of another type");
    check_failure(BYTES("(K\1a."), RP_FORMAT, "too few values");
    check_failure(BYTES("h\5."), RP_FORMAT, "nothing was stored");
    check_failure(BYTES("Nr\xff\xff\xff\x7f."), RP_FORMAT, "memo is too large");
    check_failure(BYTES("\x80\x09."), RP_FORMAT, "newer than 5");
    check_failure(BYTES("\xff."), RP_FORMAT, "0xff is not a pickle instruction");
    check_failure(BYTES("Iabc\n."), RP_FORMAT, "not a number");
}

static void limits_depth_and_texts(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_pickle p;

    UNUSED_STATE(state);
    limits.depth = 2;
    assert_int_equal(rp_pickle_read(&p, BYTES("(((N."), &limits, &err), RP_LIMIT);
    rp_pickle_release(&p);
    limits.token_bytes = 3;
    assert_int_equal(rp_pickle_read(&p, BYTES("U\4abcd."), &limits, &err), RP_LIMIT);
    rp_pickle_release(&p);
}

/* {"k0": 0, ..., "k99": 99, "k7": 1000}, and 300 with keys that are numbers: found by their hash.
 */
static void finds_keys_of_large_dicts(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_pickle p;
    char bytes[4000], key[8];
    size_t n = 0;

    UNUSED_STATE(state);
    n += (size_t)sprintf(bytes, "(d");
    for (int i = 0; i < 100; i++)
        n += (size_t)sprintf(bytes + n, "Vk%d\nI%d\ns", i, i);
    n += (size_t)sprintf(bytes + n, "Vk7\nI1000\ns.");
    assert_ok(read_bytes(bytes, n, &p, &err), &err);
    for (int i = 0; i < 100; i++) {
        sprintf(key, "k%d", i);
        assert_int_equal(rp_pickle_get_int(&p, p.root, key, -1), i == 7 ? 1000 : i);
    }
    assert_int_equal(rp_pickle_get(&p, p.root, "k100"), RP_NONE);
    rp_pickle_release(&p);
    n = (size_t)sprintf(bytes, "(d");
    for (int i = 0; i < 300; i++)
        n += (size_t)sprintf(bytes + n, "I%d\nI1\ns", i);
    n += (size_t)sprintf(bytes + n, ".");
    assert_ok(read_bytes(bytes, n, &p, &err), &err);
    assert_int_equal(rp_pickle_get(&p, p.root, "1"), RP_NONE);
    rp_pickle_release(&p);
}

int test_pickle(void);
int test_pickle(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_protocols),
        cmocka_unit_test(reads_memo_and_named_dicts),
        cmocka_unit_test(reads_escapes_and_huge_numbers),
        cmocka_unit_test(refuses_everything_that_runs),
        cmocka_unit_test(names_the_byte_of_damage),
        cmocka_unit_test(limits_depth_and_texts),
        cmocka_unit_test(finds_keys_of_large_dicts),
    };

    return cmocka_run_group_tests_name("pickle", tests, NULL, NULL);
}
