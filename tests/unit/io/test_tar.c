/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tars: names by all three ways of storing long ones, content as slices and as copies, and what is
 * cut off or damaged.
 */
#include "io/tar.h"
#include "tar_fixtures.h"

/* Names and contents of a tar as "name=content;name=content;". */
static enum rp_code list(const struct bytes *tar, const struct rp_limits *limits, char *out,
                         size_t cap, struct rp_err *err)
{
    struct rp_tar_member m = {0};
    struct rp_input *in;
    struct rp_tar *t;
    enum rp_code code;

    out[0] = '\0';
    assert_ok(rp_input_open_memory("x.tar", tar->at, tar->n, limits, &in, err), err);
    assert_ok(rp_tar_open(in, limits, &t, err), err);
    while ((code = rp_tar_next(t, &m, err)) == RP_OK && m.name) {
        size_t n = strlen(out);

        assert_int_equal(m.held, *rp_input_compression(in) != '\0');
        snprintf(out + n, cap - n, "%s%s=%.*s;", m.name, m.truncated ? "(cut)" : "", (int)m.n,
                 (const char *)m.bytes);
    }
    if (code == RP_OK) { /* the end stays the end */
        assert_ok(rp_tar_next(t, &m, err), err);
        assert_null(m.name);
    }
    if (code == RP_OK && rp_tar_truncated(t))
        strcat(out, "...");
    rp_tar_close(t);
    rp_input_close(in);
    return code;
}

/* The same, plain and compressed; both must agree. */
static enum rp_code list_both(const struct bytes *tar, char *out, size_t cap, struct rp_err *err)
{
    struct bytes gz = gzip_bytes(tar->at, tar->n);
    char *second = malloc(cap);
    enum rp_code a, b;

    assert_non_null(second);
    b = list(&gz, NULL, second, cap, err);
    a = list(tar, NULL, out, cap, err);
    assert_string_equal(out, second);
    assert_string_equal(rp_code_name(a), rp_code_name(b));
    free(second);
    free(gz.at);
    return a;
}

static void files_and_what_is_passed_over(void **state)
{
    struct bytes tar = bytes_new(0);
    struct rp_err err = RP_ERR_INIT;
    char out[2000];

    UNUSED_STATE(state);
    tar_header(&tar, "run/", '5', 0);
    tar_text(&tar, "run/a", "first");
    tar_text(&tar, "run/._a", "apple");
    tar_header(&tar, "run/link", '2', 0);
    tar_header(&tar, "run/hard", '1', 77); /* a size, but no content */
    tar_text(&tar, "empty", "");
    tar_header(&tar, "global", 'g', 5);
    tar_content(&tar, "x y=z", 5);
    tar_header(&tar, "old-folder/", '\0', 0);
    tar_header(&tar, "old-file", '\0', 3);
    tar_content(&tar, "old", 3);
    tar_end(&tar);
    bytes_append(&tar, "rubbish behind the end", 22);
    assert_true(rp_tar_matches(tar.at, tar.n));
    assert_false(rp_tar_matches(tar.at, 511));
    assert_false(rp_tar_matches(tar.at + 1, 512));
    assert_ok(list_both(&tar, out, sizeof out, &err), &err);
    assert_string_equal(out, "run/a=first;empty=;old-file=old;");
    free(tar.at);
}

static void pax(struct bytes *tar, const char *records)
{
    tar_header(tar, "PaxHeader", 'x', strlen(records));
    tar_content(tar, records, strlen(records));
}

static void long_names(void **state)
{
    struct bytes tar = bytes_new(0);
    struct rp_err err = RP_ERR_INIT;
    char out[3000], name[400], want[3000];
    uint8_t *h;

    UNUSED_STATE(state);
    memset(name, 'n', sizeof name);
    name[300] = '\0';
    tar_header(&tar, "././@LongLink", 'L', 301);
    tar_content(&tar, name, 301);
    tar_text(&tar, "cut-name", "gnu");
    pax(&tar, "27 mtime=1700000000.123456\n19 path=a/b/c/\xc3\xbc.d\n9 size=3\n");
    tar_header(&tar, "other", '0', 999); /* the record's size counts */
    tar_content(&tar, "pax", 3);
    tar_text(&tar, "last-part", "posix");
    h = tar.at + tar.n - 1024;
    memcpy(h + 345, "first/part", 10);
    tar_checksum(h);
    tar_text(&tar, "plain", "x");
    tar_end(&tar);
    assert_ok(list_both(&tar, out, sizeof out, &err), &err);
    snprintf(want, sizeof want, "%s=gnu;a/b/c/\xc3\xbc.d=pax;first/part/last-part=posix;plain=x;",
             name);
    assert_string_equal(out, want);
    free(tar.at);
}

static void cut_at_every_byte(void **state)
{
    struct bytes tar = bytes_new(0);
    struct rp_err err = RP_ERR_INIT;
    char out[2000];

    UNUSED_STATE(state);
    tar_text(&tar, "a", "first");
    pax(&tar, "10 path=b\n");
    tar_text(&tar, "x", "second");
    tar_end(&tar);
    for (size_t cut = 512; cut < tar.n; cut++) {
        struct bytes part = bytes_new(cut);

        memcpy(part.at, tar.at, cut);
        assert_ok(list_both(&part, out, sizeof out, &err), &err);
        if (cut < 517)
            assert_contains(out, "a(cut)=");
        else
            assert_contains(out, "a=first;");
        if (cut > 2560 && cut < 2566)
            assert_contains(out, "b(cut)=");
        else if (cut >= 2566)
            assert_contains(out, "a=first;b=second;");
        free(part.at);
    }
    free(tar.at);
}

static void damage_is_found(void **state)
{
    struct bytes tar = bytes_new(0);
    struct rp_err err = RP_ERR_INIT;
    char out[2000];

    UNUSED_STATE(state);
    tar_text(&tar, "a", "first");
    tar_text(&tar, "b", "second");
    tar_end(&tar);
    for (size_t i = 1024; i < 1536; i++) {
        tar.at[i] ^= 0x10;
        if (list_both(&tar, out, sizeof out, &err) == RP_OK)
            assert_true(i >= 1024 + 148 && i < 1024 + 156); /* blanks around the sum */
        else
            assert_int_equal(err.offset, 1024);
        assert_contains(out, "a=first;");
        tar.at[i] ^= 0x10;
    }
    tar.at[1024] = 'c';
    assert_code(list(&tar, NULL, out, sizeof out, &err), RP_FORMAT);
    assert_contains(err.text, "'x.tar': the tar is damaged at byte 1024");
    free(tar.at);
}

static void bad_records_and_sizes(void **state)
{
    static const char *const bad[] = {"x",
                                      "5",
                                      "99 path=b\n",
                                      "0 path=b\n",
                                      "9 path b\n",
                                      "10 path=bb",
                                      "10path=bb\n",
                                      "12 size=1x2\n",
                                      "29 size=99999999999999999999\n"};
    struct rp_err err = RP_ERR_INIT;
    char out[2000];
    uint8_t *h;

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bytes tar = bytes_new(0);

        pax(&tar, bad[i]);
        tar_text(&tar, "x", "y");
        tar_end(&tar);
        assert_code(list_both(&tar, out, sizeof out, &err), RP_FORMAT);
        free(tar.at);
    }
    for (int kind = 0; kind < 3; kind++) {
        struct bytes tar = bytes_new(0);

        tar_header(&tar, "big", kind == 2 ? 'L' : '0', 0);
        h = tar.at;
        memset(h + 124, 0xff, 12); /* base 256: negative, then huge */
        h[124] = kind == 0 ? 0xff : 0x80;
        if (kind == 2)
            memset(h + 125, 0, 7);
        tar_checksum(h);
        assert_code(list_both(&tar, out, sizeof out, &err), RP_FORMAT);
        free(tar.at);
    }
}

/* A header may promise more than there is: memory follows what is there. */
static void promises_cost_nothing(void **state)
{
    struct bytes tar = bytes_new(0);
    struct rp_err err = RP_ERR_INIT;
    char out[2000];

    UNUSED_STATE(state);
    tar_header(&tar, "big", '0', (size_t)8 << 30);
    bytes_append(&tar, "little", 6);
    assert_ok(list_both(&tar, out, sizeof out, &err), &err);
    assert_string_equal(out, "big(cut)=little;...");
    free(tar.at);
}

static void limits_hold(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct bytes tar = bytes_new(0);
    struct rp_err err = RP_ERR_INIT;
    char out[2000];

    UNUSED_STATE(state);
    tar_text(&tar, "a", "first");
    tar_text(&tar, "b", "second");
    tar_end(&tar);
    limits.members = 1;
    assert_code(list(&tar, &limits, out, sizeof out, &err), RP_LIMIT);
    assert_contains(err.text, "limit members");
    limits.members = 2;
    assert_ok(list(&tar, &limits, out, sizeof out, &err), &err);
    tar.at[512 * 2 + 156] = 'S';
    tar_checksum(tar.at + 1024);
    assert_code(list(&tar, NULL, out, sizeof out, &err), RP_UNSUPPORTED);
    assert_contains(err.text, "sparse");
    free(tar.at);
}

/* Members that are kept outlive the next one. */
static void kept_members(void **state)
{
    struct bytes tar = bytes_new(0), text = bytes_text(3000000), gz;
    struct rp_err err = RP_ERR_INIT;
    struct rp_tar_member m;
    struct rp_input *in;
    struct rp_tar *t;
    uint8_t *kept;

    UNUSED_STATE(state);
    tar_file(&tar, "big.json", text.at, text.n);
    tar_text(&tar, "b", "second");
    tar_end(&tar);
    gz = gzip_bytes(tar.at, tar.n);
    assert_ok(rp_input_open_memory("x.tar.gz", gz.at, gz.n, NULL, &in, &err), &err);
    assert_ok(rp_tar_open(in, NULL, &t, &err), &err);
    assert_ok(rp_tar_next(t, &m, &err), &err);
    assert_int_equal(m.offset, 512);
    assert_int_equal(m.n, text.n);
    kept = rp_tar_keep(t);
    assert_ptr_equal(kept, m.bytes);
    assert_ok(rp_tar_next(t, &m, &err), &err);
    assert_string_equal(m.name, "b");
    assert_memory_equal(kept, text.at, text.n);
    rp_tar_close(t);
    rp_input_close(in);
    free(kept);
    free(gz.at);
    free(text.at);
    free(tar.at);
}

int test_tar(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_and_what_is_passed_over),
        cmocka_unit_test(long_names),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(damage_is_found),
        cmocka_unit_test(bad_records_and_sizes),
        cmocka_unit_test(promises_cost_nothing),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(kept_members),
    };

    return cmocka_run_group_tests_name("tar", tests, NULL, NULL);
}
