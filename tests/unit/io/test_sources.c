/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: what a user names becomes an ordered list, and each entry opens to its own bytes, from
 * several threads too.
 */
#include "base/threads.h"
#include "io/sources.h"
#include "tar_fixtures.h"

/* The names without the folder in front, one a line. */
static char *names(const struct rp_sources *s, const char *folder)
{
    size_t n = strlen(folder) + 1;
    char *out = calloc(1, 1 << 16);

    assert_non_null(out);
    for (size_t i = 0; i < rp_sources_count(s); i++) {
        const struct rp_source *source = rp_sources_borrow(s, i);

        assert_true(strlen(out) + strlen(source->name) < (1 << 16) - 2);
        strcat(out, strncmp(source->name, folder, n - 1) == 0 ? source->name + n : source->name);
        strcat(out, "\n");
    }
    return out;
}

static void assert_names(const struct rp_sources *s, const char *folder, const char *want)
{
    char *have = names(s, folder);

    assert_string_equal(have, want);
    free(have);
}

static void assert_opens(struct rp_sources *s, size_t i, const char *want)
{
    struct rp_err err = RP_ERR_INIT;
    const uint8_t *bytes;
    struct rp_input *in;
    size_t n;

    assert_ok(rp_source_open(s, i, &in, &err), &err);
    assert_ok(rp_input_slurp(in, &bytes, &n, &err), &err);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(bytes, want, n);
    assert_string_equal(rp_input_borrow_name(in), rp_sources_borrow(s, i)->name);
    rp_input_close(in);
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[512];

    file_put(path, sizeof path, folder, name, text, strlen(text));
}

static void put_folder(const char *folder, const char *name)
{
    char path[512];

    file_put(path, sizeof path, folder, name, NULL, 0);
    assert_int_equal(mkdir(path, 0777), 0);
}

static void put_link(const char *folder, const char *name, const char *target)
{
    char path[512];

    file_put(path, sizeof path, folder, name, NULL, 0);
    assert_int_equal(symlink(target, path), 0);
}

static enum rp_code open_one(const char *path, const struct rp_limits *limits,
                             struct rp_sources **s, struct rp_err *err)
{
    return rp_sources_open(&path, 1, limits, s, err);
}

static void natural_order(void **state)
{
    static const char *const sorted[] = {"",
                                         "a",
                                         "a/b",
                                         "a/b10",
                                         "a-b",
                                         "rank1",
                                         "rank2",
                                         "rank02",
                                         "rank10",
                                         "rank10.json",
                                         "rank99999999999999999998",
                                         "rank99999999999999999999",
                                         "ranks"};
    size_t n = sizeof sorted / sizeof sorted[0];

    UNUSED_STATE(state);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            int order = rp_natural_compare(sorted[i], sorted[j]);

            /* "rank02" and "rank2" are told apart by their bytes alone */
            if ((i == 6 && j == 7) || (i == 7 && j == 6))
                assert_true(order != 0 && order == -rp_natural_compare(sorted[j], sorted[i]));
            else
                assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
}

static void a_folder_in_order(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_sources *s;
    char folder[128];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    put(folder, "rank10.json", "ten");
    put(folder, "rank2.json", "two");
    put(folder, ".hidden", "x");
    put(folder, "._rank2.json", "x");
    put_folder(folder, "sub");
    put(folder, "sub/b", "sub b");
    put_folder(folder, "sub/.git");
    put(folder, "sub/.git/c", "x");
    put_link(folder, "latest.json", "rank10.json");
    put_link(folder, "nowhere", "does-not-exist");
    put_link(folder, "sub/loop", "..");
    put_link(folder, "sub/itself", "itself");
    assert_ok(open_one(folder, NULL, &s, &err), &err);
    assert_names(s, folder, "rank2.json\nrank10.json\nsub/b\n");
    assert_true(rp_sources_borrow(s, 0)->found);
    assert_opens(s, 0, "two");
    assert_opens(s, 1, "ten");
    assert_opens(s, 2, "sub b");
    rp_sources_close(s);
    folder_remove(folder);
}

/* Of a profile that is there twice, the excerpt is left out; a JSON trace alone is not. */
static void profiles_in_two_formats(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_sources *s;
    char folder[64];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    put(folder, "host10.trace.json.gz", "excerpt");
    put(folder, "host10.xplane.pb", "ten");
    put(folder, "host2.xplane.pb", "two");
    put(folder, "host2.trace.json.gz", "excerpt");
    put(folder, "other.trace.json.gz", "alone");
    assert_ok(open_one(folder, NULL, &s, &err), &err);
    assert_names(s, folder, "host2.xplane.pb\nhost10.xplane.pb\nother.trace.json.gz\n");
    rp_sources_close(s);
    folder_remove(folder);
}

static struct bytes small_tar(void)
{
    struct bytes tar = bytes_new(0), gz = gzip_bytes("inner", 5);

    tar_text(&tar, "run/rank10.json", "ten");
    tar_text(&tar, "run/rank2.json", "replaced below");
    tar_file(&tar, "run/rank3.json.gz", gz.at, gz.n);
    tar_text(&tar, "run/rank2.json", "two");
    tar_end(&tar);
    free(gz.at);
    return tar;
}

static void profiles_in_tars(void **state)
{
    struct bytes tar = bytes_new(0), gz;
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[160];
    struct rp_sources *s;

    UNUSED_STATE(state);
    tar_text(&tar, "p/host10.trace.json.gz", "excerpt");
    tar_text(&tar, "p/host10.xplane.pb", "ten");
    tar_text(&tar, "p/host2.xplane.pb", "two");
    tar_text(&tar, "p/host2.trace.json.gz", "excerpt");
    tar_text(&tar, "q/host2.trace.json.gz", "alone");
    tar_end(&tar);
    gz = gzip_bytes(tar.at, tar.n);
    folder_new(folder, sizeof folder);
    for (int compressed = 0; compressed < 2; compressed++) {
        const struct bytes *from = compressed ? &gz : &tar;

        file_put(path, sizeof path, folder, "t", from->at, from->n);
        assert_ok(open_one(path, NULL, &s, &err), &err);
        assert_names(s, folder,
                     "t!p/host2.xplane.pb\nt!p/host10.xplane.pb\nt!q/host2.trace.json.gz\n");
        assert_opens(s, 1, "ten");
        rp_sources_close(s);
    }
    free(tar.at);
    free(gz.at);
    folder_remove(folder);
}

/* Of a CTF trace in a tar the description is listed, and the files of its folder come with it. */
static void traces_in_tars(void **state)
{
    struct bytes tar = bytes_new(0), gz;
    struct rp_err err = RP_ERR_INIT;
    const struct rp_beside *beside;
    char folder[128], path[160];
    struct rp_sources *s;
    struct rp_input *in;
    size_t n;

    UNUSED_STATE(state);
    tar_text(&tar, "run/a/s_2", "two");
    tar_text(&tar, "run/a/metadata", "/* CTF 1.8 */");
    tar_text(&tar, "run/a/index/s_2.idx", "index");
    tar_text(&tar, "run/a/more/notes", "not of the trace");
    tar_text(&tar, "run/a/s_10", "ten");
    tar_text(&tar, "run/ab", "another");
    tar_text(&tar, "run/b/metadata", "something else");
    tar_text(&tar, "run/b/s_1", "one");
    tar_end(&tar);
    gz = gzip_bytes(tar.at, tar.n);
    folder_new(folder, sizeof folder);
    for (int compressed = 0; compressed < 2; compressed++) {
        const struct bytes *from = compressed ? &gz : &tar;

        file_put(path, sizeof path, folder, "t", from->at, from->n);
        assert_ok(open_one(path, NULL, &s, &err), &err);
        assert_names(s, folder,
                     "t!run/a\nt!run/a/more/notes\nt!run/ab\nt!run/b/metadata\nt!run/b/s_1\n");
        assert_ok(rp_source_open(s, 0, &in, &err), &err);
        beside = rp_input_borrow_beside(in, &n);
        assert_int_equal(n, 3);
        assert_string_equal(beside[0].name, "index/s_2.idx");
        assert_string_equal(beside[1].name, "s_2");
        assert_int_equal(beside[1].n, 3);
        assert_memory_equal(beside[1].bytes, "two", 3);
        assert_string_equal(beside[2].name, "s_10");
        rp_input_close(in);
        assert_opens(s, 4, "one");
        rp_sources_close(s);
    }
    free(tar.at);
    free(gz.at);
    folder_remove(folder);
}

static void tars_plain_and_compressed(void **state)
{
    struct bytes tar = small_tar(), gz = gzip_bytes(tar.at, tar.n);
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[160];
    struct rp_sources *s;

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    for (int compressed = 0; compressed < 2; compressed++) {
        const struct bytes *from = compressed ? &gz : &tar;

        file_put(path, sizeof path, folder, "t", from->at, from->n);
        for (int through_folder = 0; through_folder < 2; through_folder++) {
            assert_ok(open_one(through_folder ? folder : path, NULL, &s, &err), &err);
            assert_names(s, folder, "t!run/rank2.json\nt!run/rank3.json.gz\nt!run/rank10.json\n");
            assert_string_equal(rp_sources_borrow(s, 0)->member, "run/rank2.json");
            assert_string_equal(rp_sources_borrow(s, 0)->path, path);
            assert_true(rp_sources_borrow(s, 0)->found);
            assert_opens(s, 0, "two");
            assert_opens(s, 1, "inner");
            assert_opens(s, 2, "ten");
            assert_opens(s, 2, "ten");
            rp_sources_close(s);
        }
    }
    folder_remove(folder);
    free(gz.at);
    free(tar.at);
}

/* What stands before the damage can be read; the damage is told in its turn. */
static void a_tar_damaged_further_on(void **state)
{
    struct bytes tar = bytes_new(0), gz;
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[160];
    struct rp_sources *s;
    struct rp_input *in;

    UNUSED_STATE(state);
    tar_text(&tar, "a", "first");
    tar_text(&tar, "b", "second");
    tar_text(&tar, "c", "third");
    tar_end(&tar);
    gz = gzip_bytes(tar.at, tar.n);
    folder_new(folder, sizeof folder);
    tar.at[1024] = 'x';
    file_put(path, sizeof path, folder, "t.tar", tar.at, tar.n);
    assert_ok(open_one(path, NULL, &s, &err), &err);
    assert_names(s, folder, "t.tar!a\nt.tar\n");
    assert_opens(s, 0, "first");
    assert_code(rp_source_open(s, 1, &in, &err), RP_FORMAT);
    assert_null(in);
    assert_contains(err.text, "byte 1024");
    rp_sources_close(s);

    file_put(path, sizeof path, folder, "cut.tar", tar.at, 514);
    assert_ok(open_one(path, NULL, &s, &err), &err);
    assert_names(s, folder, "cut.tar!a\n");
    assert_true(rp_sources_borrow(s, 0)->truncated);
    assert_opens(s, 0, "fi");
    rp_sources_close(s);

    file_put(path, sizeof path, folder, "cut.tar.gz", gz.at, gz.n - 9);
    assert_ok(open_one(path, NULL, &s, &err), &err);
    assert_names(s, folder, "cut.tar.gz!a\ncut.tar.gz!b\ncut.tar.gz!c\n");
    rp_sources_close(s);
    folder_remove(folder);
    free(gz.at);
    free(tar.at);
}

static void several_paths(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    char folder[128], a[160], b[160], pipe_path[32];
    const char *paths[3];
    struct rp_sources *s;
    struct rp_input *in;
    int ends[2];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    file_put(a, sizeof a, folder, "a", "AA", 2);
    file_put(b, sizeof b, folder, "b", "BB", 2);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "piped", 5), 5);
    close(ends[1]);
    snprintf(pipe_path, sizeof pipe_path, "/dev/fd/%d", ends[0]);
    paths[0] = b;
    paths[1] = pipe_path;
    paths[2] = a;
    assert_ok(rp_sources_open(paths, 3, NULL, &s, &err), &err);
    assert_int_equal(rp_sources_count(s), 3);
    assert_false(rp_sources_borrow(s, 0)->found);
    assert_int_equal(rp_sources_borrow(s, 2)->given, 2);
    assert_opens(s, 0, "BB");
    assert_opens(s, 1, "piped");
    assert_opens(s, 2, "AA");
    assert_code(rp_source_open(s, 1, &in, &err), RP_USAGE);
    assert_contains(err.text, "only once");
    rp_sources_close(s);
    close(ends[0]);
    assert_ok(rp_sources_open(paths, 0, NULL, &s, &err), &err);
    assert_int_equal(rp_sources_count(s), 0);
    rp_sources_close(s);
    rp_sources_close(NULL);
    folder_remove(folder);
}

static void what_fails(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_sources *s;
    char folder[128];

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    put(folder, "a", "A");
    put(folder, "b", "B");
    put_folder(folder, "c");
    assert_code(open_one("/nowhere/at-all", NULL, &s, &err), RP_IO);
    assert_contains(err.text, "cannot open '/nowhere/at-all'");
    assert_null(s);
    limits.members = 2;
    assert_code(open_one(folder, &limits, &s, &err), RP_LIMIT);
    assert_contains(err.text, "limit members");
    limits.members = 3;
    limits.depth = 0;
    assert_code(open_one(folder, &limits, &s, &err), RP_LIMIT);
    limits.depth = 1;
    assert_ok(open_one(folder, &limits, &s, &err), &err);
    rp_sources_close(s);
    folder_remove(folder);
}

static enum rp_code read_source(void *user, size_t i, struct rp_err *err)
{
    struct rp_sources *s = user;
    const uint8_t *bytes;
    struct rp_input *in;
    enum rp_code code;
    char want[32];
    size_t n, at = i % rp_sources_count(s);

    RP_TRY(rp_source_open(s, at, &in, err));
    code = rp_input_slurp(in, &bytes, &n, err);
    snprintf(want, sizeof want, "content of %zu", at);
    if (code == RP_OK && (n != strlen(want) || memcmp(bytes, want, n) != 0))
        code = rp_err_set(err, RP_BUG, "wrong content of %zu", at);
    rp_input_close(in);
    return code;
}

static void from_several_threads(void **state)
{
    struct bytes tar = bytes_new(0), gz;
    struct rp_err err = RP_ERR_INIT;
    char folder[128], path[160], name[32], text[32];
    struct rp_sources *s;
    struct rp_pool *pool;

    UNUSED_STATE(state);
    for (int i = 99; i >= 0; i--) {
        snprintf(name, sizeof name, "rank%d.json", i);
        snprintf(text, sizeof text, "content of %d", i);
        tar_text(&tar, name, text);
    }
    tar_end(&tar);
    gz = gzip_bytes(tar.at, tar.n);
    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "t.tgz", gz.at, gz.n);
    assert_ok(open_one(path, NULL, &s, &err), &err);
    assert_int_equal(rp_sources_count(s), 100);
    assert_ok(rp_pool_new(4, &pool, &err), &err);
    assert_ok(rp_pool_each(pool, 400, read_source, s, &err), &err);
    rp_pool_free(pool);
    rp_sources_close(s);
    folder_remove(folder);
    free(gz.at);
    free(tar.at);
}

int test_sources(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(natural_order),
        cmocka_unit_test(a_folder_in_order),
        cmocka_unit_test(profiles_in_two_formats),
        cmocka_unit_test(profiles_in_tars),
        cmocka_unit_test(tars_plain_and_compressed),
        cmocka_unit_test(traces_in_tars),
        cmocka_unit_test(a_tar_damaged_further_on),
        cmocka_unit_test(several_paths),
        cmocka_unit_test(what_fails),
        cmocka_unit_test(from_several_threads),
    };

    return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
