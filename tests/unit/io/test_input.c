/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of all kinds give the same bytes whatever way they are read: files (mapped), pipes,
 * memory, compressed or not, with looking ahead in between.
 */
#include "io/input.h"
#include "io_fixtures.h"

static void read_all(struct rp_input *in, size_t piece, const struct bytes *want)
{
    struct rp_err err = RP_ERR_INIT;
    uint8_t *part = malloc(piece);
    size_t at = 0, got;

    assert_non_null(part);
    for (;;) {
        assert_ok(rp_input_read(in, part, piece, &got, &err), &err);
        if (got == 0)
            break;
        assert_true(got <= piece && at + got <= want->n);
        assert_memory_equal(part, want->at + at, got);
        at += got;
    }
    assert_int_equal(at, want->n);
    assert_ok(rp_input_read(in, part, piece, &got, &err), &err);
    assert_int_equal(got, 0);
    free(part);
}

/* A file of text, plain and compressed, in a folder of its own. */
struct files {
    char folder[128], plain[160], gz[160];
    struct bytes text;
};

static void files_new(struct files *f, size_t n)
{
    struct bytes gz;

    f->text = bytes_text(n);
    gz = gzip_bytes(f->text.at, f->text.n);
    folder_new(f->folder, sizeof f->folder);
    file_put(f->plain, sizeof f->plain, f->folder, "a.json", f->text.at, f->text.n);
    file_put(f->gz, sizeof f->gz, f->folder, "a.of-any-name", gz.at, gz.n);
    free(gz.at);
}

static void files_remove(struct files *f)
{
    folder_remove(f->folder);
    free(f->text.at);
}

static void files_in_odd_pieces(void **state)
{
    static const size_t pieces[] = {1, 3, 1000, 65535, 65536, 100000, 1 << 20};
    struct rp_err err = RP_ERR_INIT;
    struct files f;

    UNUSED_STATE(state);
    files_new(&f, 300001);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        for (int gz = 0; gz < 2; gz++) {
            struct rp_input *in;

            assert_ok(rp_input_open(gz ? f.gz : f.plain, NULL, &in, &err), &err);
            assert_string_equal(rp_input_compression(in), gz ? "gzip" : "");
            assert_string_equal(rp_input_borrow_name(in), gz ? f.gz : f.plain);
            read_all(in, pieces[i], &f.text);
            assert_false(rp_input_truncated(in));
            rp_input_close(in);
        }
    files_remove(&f);
}

static void mapped_and_slurped(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    const uint8_t *bytes, *again;
    struct rp_input *in;
    struct files f;
    uint8_t part[100];
    size_t n, got;

    UNUSED_STATE(state);
    files_new(&f, 700000);
    for (int gz = 0; gz < 2; gz++)
        for (int skip_first = 0; skip_first < 2; skip_first++) {
            size_t from = skip_first ? sizeof part : 0;

            assert_ok(rp_input_open(gz ? f.gz : f.plain, NULL, &in, &err), &err);
            bytes = rp_input_borrow_mapped(in, &n);
            assert_int_equal(bytes != NULL, !gz);
            if (bytes) {
                rp_input_release_before(in, 500000);
                assert_int_equal(n, f.text.n);
                assert_memory_equal(bytes, f.text.at, n);
            }
            if (skip_first)
                assert_ok(rp_input_read(in, part, sizeof part, &got, &err), &err);
            assert_ok(rp_input_slurp(in, &bytes, &n, &err), &err);
            assert_int_equal(n, f.text.n - from);
            assert_memory_equal(bytes, f.text.at + from, n);
            assert_ok(rp_input_read(in, part, sizeof part, &got, &err), &err);
            assert_int_equal(got, 0);
            assert_ok(rp_input_slurp(in, &again, &n, &err), &err);
            assert_ptr_equal(bytes, again);
            assert_int_equal(n, f.text.n - from);
            rp_input_close(in);
        }
    files_remove(&f);
}

/* Looking ahead changes nothing about what is read. */
static void peeking_between_reads(void **state)
{
    struct bytes text = bytes_text(250000), gz = gzip_bytes(text.at, text.n);
    struct rp_err err = RP_ERR_INIT;

    UNUSED_STATE(state);
    for (int compressed = 0; compressed < 2; compressed++) {
        const struct bytes *from = compressed ? &gz : &text;
        uint32_t seed = 7;
        struct rp_input *in;
        size_t at = 0, got, n;
        uint8_t *part = malloc(100000);

        assert_ok(rp_input_open_memory("m", from->at, from->n, NULL, &in, &err), &err);
        do {
            const uint8_t *bytes;
            size_t want, left = text.n - at;

            seed = seed * 1664525u + 1013904223u;
            want = (seed >> 8) % 70000;
            assert_ok(rp_input_peek(in, want, &bytes, &n, &err), &err);
            want = want < 65536 ? want : 65536;
            assert_int_equal(n, want < left ? want : left);
            assert_memory_equal(bytes, text.at + at, n);
            assert_ok(rp_input_read(in, part, 1 + (seed >> 4) % 90000, &got, &err), &err);
            assert_memory_equal(part, text.at + at, got);
            at += got;
        } while (got > 0);
        assert_int_equal(at, text.n);
        rp_input_close(in);
        free(part);
    }
    free(gz.at);
    free(text.at);
}

/* Damage: peek stops before it, slurp fails with it. */
static void damage_after_good_bytes(void **state)
{
    struct bytes text = bytes_text(1000), gz = gzip_bytes(text.at, text.n);
    struct rp_err err = RP_ERR_INIT;
    const uint8_t *bytes;
    struct rp_input *in;
    size_t n;

    UNUSED_STATE(state);
    gz.at[gz.n - 1] ^= 1;
    assert_ok(rp_input_open_memory("bad.gz", gz.at, gz.n, NULL, &in, &err), &err);
    assert_ok(rp_input_peek(in, 5000, &bytes, &n, &err), &err);
    assert_int_equal(n, 1000);
    assert_code(rp_input_slurp(in, &bytes, &n, &err), RP_FORMAT);
    assert_contains(err.text, "'bad.gz'");
    assert_contains(err.text, "length");
    assert_code(rp_input_slurp(in, &bytes, &n, &err), RP_FORMAT);
    rp_input_close(in);
    free(gz.at);
    free(text.at);
}

static void nothing_in_it(void **state)
{
    char folder[128], path[160];
    struct rp_err err = RP_ERR_INIT;
    const struct bytes none = {0};
    const uint8_t *bytes;
    struct rp_input *in;
    size_t n;

    UNUSED_STATE(state);
    folder_new(folder, sizeof folder);
    file_put(path, sizeof path, folder, "empty", "", 0);
    assert_ok(rp_input_open(path, NULL, &in, &err), &err);
    assert_ok(rp_input_peek(in, 10, &bytes, &n, &err), &err);
    assert_int_equal(n, 0);
    read_all(in, 10, &none);
    assert_ok(rp_input_slurp(in, &bytes, &n, &err), &err);
    assert_non_null(bytes);
    assert_int_equal(n, 0);
    rp_input_close(in);
    assert_ok(rp_input_open_memory("none", NULL, 0, NULL, &in, &err), &err);
    read_all(in, 10, &none);
    rp_input_close(in);
    assert_ok(rp_input_open("/dev/null", NULL, &in, &err), &err);
    read_all(in, 100000, &none);
    rp_input_close(in);
    folder_remove(folder);
}

static void what_cannot_be_opened(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in = (struct rp_input *)8;

    UNUSED_STATE(state);
    assert_code(rp_input_open("/nowhere/at-all.json", NULL, &in, &err), RP_IO);
    assert_contains(err.text, "cannot open '/nowhere/at-all.json': No such file");
    assert_int_equal(err.os_errno, ENOENT);
    assert_null(in);
    assert_code(rp_input_open("/", NULL, &in, &err), RP_IO);
    assert_contains(err.text, "folder");
    assert_code(rp_input_open("/nowhere", NULL, &in, NULL), RP_IO);
    rp_input_close(NULL);
}

static void the_limit_on_plain_bytes(void **state)
{
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;
    struct files f;

    UNUSED_STATE(state);
    files_new(&f, 1000);
    limits.input_bytes = 999;
    assert_code(rp_input_open(f.plain, &limits, &in, &err), RP_LIMIT);
    assert_contains(err.text, "input_bytes");
    limits.input_bytes = 1000;
    assert_ok(rp_input_open(f.plain, &limits, &in, &err), &err);
    read_all(in, 64, &f.text);
    rp_input_close(in);
    files_remove(&f);
}

static void plain_from_a_pipe(void **state)
{
    struct bytes text = bytes_text(100000);

    UNUSED_STATE(state);
    for (size_t piece = 1; piece < 100000; piece = piece * 7 + 1)
        for (int slurp = 0; slurp < 2; slurp++) {
            struct rp_err err = RP_ERR_INIT;
            struct rp_input *in;
            struct writer w;
            pthread_t thread;
            const uint8_t *bytes;
            char path[64];
            int ends[2];
            size_t n;

            assert_int_equal(pipe(ends), 0);
            w = (struct writer){ends[1], &text, piece};
            assert_int_equal(pthread_create(&thread, NULL, write_pieces, &w), 0);
            snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
            assert_ok(rp_input_open(path, NULL, &in, &err), &err);
            assert_null(rp_input_borrow_mapped(in, &n));
            assert_int_equal(rp_input_file_size(in), 0);
            if (slurp) {
                assert_ok(rp_input_slurp(in, &bytes, &n, &err), &err);
                assert_int_equal(n, text.n);
                assert_memory_equal(bytes, text.at, n);
            } else {
                read_all(in, 4097, &text);
            }
            rp_input_close(in);
            close(ends[0]);
            pthread_join(thread, NULL);
        }
    free(text.at);
}

/* Standard input may be non-blocking because a shell's neighbour made it so. */
static void standard_input(void **state)
{
    struct bytes text = bytes_text(5000);
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;
    struct writer w;
    pthread_t thread;
    int ends[2], saved = dup(STDIN_FILENO);

    UNUSED_STATE(state);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
    w = (struct writer){ends[1], &text, 1000};
    assert_int_equal(pthread_create(&thread, NULL, write_pieces, &w), 0);
    assert_ok(rp_input_open("-", NULL, &in, &err), &err);
    assert_string_equal(rp_input_borrow_name(in), "(standard input)");
    read_all(in, 777, &text);
    rp_input_close(in);
    pthread_join(thread, NULL);
    close(ends[0]);
    if (saved >= 0) {
        assert_true(dup2(saved, STDIN_FILENO) >= 0);
        close(saved);
    }
    free(text.at);
}

int test_input(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_in_odd_pieces),
        cmocka_unit_test(mapped_and_slurped),
        cmocka_unit_test(peeking_between_reads),
        cmocka_unit_test(damage_after_good_bytes),
        cmocka_unit_test(nothing_in_it),
        cmocka_unit_test(what_cannot_be_opened),
        cmocka_unit_test(the_limit_on_plain_bytes),
        cmocka_unit_test(plain_from_a_pipe),
        cmocka_unit_test(standard_input),
    };

    return cmocka_run_group_tests_name("input", tests, NULL, NULL);
}
