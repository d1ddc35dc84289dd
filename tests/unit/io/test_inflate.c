/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decompression: what is whole comes out whole with any sizes of buffers, what is cut off or
 * damaged comes out up to there, and the two gzip engines say the same. zlib's own gzip mode is the
 * judge.
 */
#include "rp_config.h"

#include "io/inflate.h"
#include "io/input.h"
#include "io_fixtures.h"

/* What came out of an input, and how it ended. */
struct outcome {
    struct bytes out;
    enum rp_code code;
    bool truncated, trailing;
    struct rp_err err;
};

static void drain(struct rp_input *in, size_t piece, struct outcome *o)
{
    uint8_t *part = malloc(piece);
    size_t got;

    *o = (struct outcome){.out = bytes_new(0), .err = RP_ERR_INIT};
    assert_non_null(part);
    do {
        o->code = rp_input_read(in, part, piece, &got, &o->err);
        bytes_append(&o->out, part, got);
    } while (o->code == RP_OK && got > 0);
    if (o->code != RP_OK) { /* it stays so */
        assert_code(rp_input_read(in, part, piece, &got, NULL), o->code);
        assert_int_equal(got, 0);
    }
    o->truncated = rp_input_truncated(in);
    o->trailing = rp_input_trailing(in);
    free(part);
}

static struct outcome decode(const struct rp_codec *codec, const void *gz, size_t n, size_t piece)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;
    struct outcome o;

    assert_ok(rp_input_open_memory("x.gz", gz, n, NULL, &in, &err), &err);
    if (codec && *rp_input_compression(in))
        assert_ok(rp_input_set_codec(in, codec, &err), &err);
    drain(in, piece, &o);
    rp_input_close(in);
    return o;
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
    assert_string_equal(rp_code_name(a->code), rp_code_name(b->code));
    assert_int_equal(a->truncated, b->truncated);
    assert_int_equal(a->trailing, b->trailing);
    assert_int_equal(a->out.n, b->out.n);
    assert_memory_equal(a->out.at, b->out.at, a->out.n);
}

static bool is_whole(const struct outcome *o)
{
    return o->code == RP_OK && !o->truncated;
}

/* Damage is found by both engines, but ISA-L accepts codes that zlib refuses at once (incomplete
   ones), so it may find it some bytes later. */
static void assert_same_or_later(const struct outcome *isal, const struct outcome *zlib)
{
    assert_int_equal(is_whole(isal), is_whole(zlib));
    if (is_whole(isal))
        assert_same(isal, zlib);
    assert_true(isal->out.n >= zlib->out.n);
    assert_memory_equal(isal->out.at, zlib->out.at, zlib->out.n);
}

static void assert_whole(const struct outcome *o, const struct bytes *text)
{
    if (o->code != RP_OK)
        fail_msg("%s", o->err.text);
    assert_false(o->truncated);
    assert_int_equal(o->out.n, text->n);
    assert_memory_equal(o->out.at, text->at, text->n);
}

static const struct rp_codec *const gzip_codecs[] = {&rp_codec_gzip, &rp_codec_gzip_zlib};
#define EACH_GZIP(codec)                                \
    for (size_t codec##_ = 0; codec##_ < 2; codec##_++) \
        for (const struct rp_codec *codec = gzip_codecs[codec##_]; codec; codec = NULL)

static void whole_with_any_sizes(void **state)
{
    static const size_t lengths[] = {0, 1, 2, 100, 32767, 32768, 32769, 65536, 400000};
    static const size_t pieces[] = {1, 7, 4096, 65535, 65536, 65537, 1 << 20};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (int level = 0; level <= 9; level += 3) {
            struct bytes text = bytes_text(lengths[i]);
            struct bytes gz = gzip_member(text.at, text.n, level, NULL);

            for (size_t k = 0; k < sizeof pieces / sizeof pieces[0]; k++)
                EACH_GZIP(codec)
                {
                    struct outcome o = decode(codec, gz.at, gz.n, pieces[k]);

                    assert_whole(&o, &text);
                    assert_false(o.trailing);
                    free(o.out.at);
                }
            free(gz.at);
            free(text.at);
        }
}

static void headers_of_all_kinds(void **state)
{
    struct bytes text = bytes_text(1000);
    Bytef extra[300];

    UNUSED_STATE(state);
    memset(extra, 'e', sizeof extra);
    for (unsigned mask = 0; mask < 16; mask++) {
        gz_header head = {.time = 1, .os = 3};
        struct bytes gz;

        head.extra = mask & 1 ? extra : Z_NULL;
        head.extra_len = mask & 1 ? sizeof extra : 0;
        head.name = mask & 2 ? (Bytef *)(uintptr_t) "trace.json" : Z_NULL;
        head.comment = mask & 4 ? (Bytef *)(uintptr_t) "a comment" : Z_NULL;
        head.hcrc = mask >> 3 & 1;
        gz = gzip_member(text.at, text.n, 6, &head);
        EACH_GZIP(codec)
        {
            struct outcome o = decode(codec, gz.at, gz.n, 333);

            assert_whole(&o, &text);
            free(o.out.at);
        }
        free(gz.at);
    }
    free(text.at);
}

/* all + tail decodes to text, and the tail is or is not told. */
static void check_tail(const struct bytes *all, const void *tail, size_t n, bool told,
                       const struct bytes *text)
{
    struct bytes more = bytes_new(0);

    bytes_append(&more, all->at, all->n);
    bytes_append(&more, tail, n);
    EACH_GZIP(codec)
    {
        struct outcome o = decode(codec, more.at, more.n, 1000);

        assert_whole(&o, text);
        assert_int_equal(o.trailing, told);
        free(o.out.at);
    }
    free(more.at);
}

static void members_and_what_follows(void **state)
{
    struct bytes text = bytes_text(5000), twice = bytes_text(5000);
    struct bytes gz = gzip_bytes(text.at, text.n), all = bytes_new(0);
    static const uint8_t zeros[700];

    UNUSED_STATE(state);
    bytes_append(&twice, text.at, text.n);
    bytes_append(&all, gz.at, gz.n);
    bytes_append(&all, zeros, 3);
    bytes_append(&all, gz.at, gz.n);
    check_tail(&all, "", 0, false, &twice);
    check_tail(&all, zeros, sizeof zeros, false, &twice);
    check_tail(&all, "garbage", 7, true, &twice);
    check_tail(&all, "\x1f garbage", 9, true, &twice);
    check_tail(&all, "\0\0\0x", 4, true, &twice);
    free(all.at);
    free(gz.at);
    free(twice.at);
    free(text.at);
}

/* How many bytes zlib, given all at once, decodes of the first member. */
static struct outcome judge(const void *gz, size_t n)
{
    struct outcome o = {.out = bytes_new(1 << 20), .err = RP_ERR_INIT};
    z_stream z = {0};
    int status;

    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (z_const Bytef *)(uintptr_t)gz;
    z.avail_in = (uInt)n;
    z.next_out = o.out.at;
    z.avail_out = (uInt)o.out.n;
    status = inflate(&z, Z_SYNC_FLUSH);
    o.out.n = z.total_out;
    o.code = status == Z_DATA_ERROR ? RP_FORMAT : RP_OK;
    o.truncated = status == Z_OK || status == Z_BUF_ERROR;
    inflateEnd(&z);
    return o;
}

/* ISA-L decodes up to three literals at a time, and so may stop two bytes before zlib. */
static void assert_cut(const struct outcome *o, const struct outcome *want)
{
    assert_code(o->code, RP_OK);
    assert_true(o->truncated && want->truncated);
    assert_in_range(o->out.n, want->out.n > 2 ? want->out.n - 2 : 0, want->out.n);
    assert_memory_equal(o->out.at, want->out.at, o->out.n);
}

static void cut_at_every_byte(void **state)
{
    gz_header head = {.name = (Bytef *)(uintptr_t) "a name", .hcrc = 1};
    struct bytes text = bytes_text(9000);

    UNUSED_STATE(state);
    for (int level = 0; level <= 6; level += 6) {
        struct bytes gz = gzip_member(text.at, text.n, level, &head);

        for (size_t cut = 2; cut < gz.n; cut += cut < 100 || level > 0 ? 1 : 7) {
            struct bytes part = bytes_new(cut); /* its own block: reads behind it are seen */
            struct outcome want;

            memcpy(part.at, gz.at, cut);
            want = judge(part.at, cut);
            EACH_GZIP(codec)
            {
                struct outcome o = decode(codec, part.at, cut, cut % 3 ? 100 : 100000);

                assert_cut(&o, &want);
                if (codec == &rp_codec_gzip_zlib)
                    assert_same(&o, &want);
                free(o.out.at);
            }
            free(want.out.at);
            free(part.at);
        }
        free(gz.at);
    }
    free(text.at);
}

/* A change is found, or lies where it does no harm (the header's time, padding bits): then all
   comes out as it was. */
static void changed_at_every_byte(void **state)
{
    struct bytes text = bytes_text(2000);
    size_t detected = 0, harmless = 0;

    UNUSED_STATE(state);
    for (int level = 0; level <= 6; level += 6) {
        struct bytes gz = gzip_member(text.at, text.n, level, NULL);

        for (size_t i = 2; i < gz.n; i++)
            for (int bit = 0; bit < 8; bit++) {
                struct outcome want, a, b;

                gz.at[i] ^= (uint8_t)(1 << bit);
                want = judge(gz.at, gz.n);
                a = decode(&rp_codec_gzip, gz.at, gz.n, 700);
                b = decode(&rp_codec_gzip_zlib, gz.at, gz.n, 100000);
                assert_same_or_later(&a, &b);
                assert_int_equal(is_whole(&b), is_whole(&want));
                if (a.code != RP_OK)
                    assert_contains(a.err.text, "'x.gz', decompressed byte ");
                detected += a.code == RP_FORMAT;
                if (is_whole(&a)) {
                    harmless++;
                    assert_whole(&a, &text);
                }
                free(a.out.at);
                free(b.out.at);
                free(want.out.at);
                gz.at[i] ^= (uint8_t)(1 << bit);
            }
        free(gz.at);
    }
    assert_true(detected > 1000 && harmless > 50);
    free(text.at);
}

/* All good bytes first, then the wrong checksum; the text says where. */
static void wrong_checksum_comes_last(void **state)
{
    struct bytes text = bytes_text(200000), gz = gzip_bytes(text.at, text.n);
    char place[64];

    UNUSED_STATE(state);
    gz.at[gz.n - 8] ^= 1;
    EACH_GZIP(codec)
    {
        struct outcome o = decode(codec, gz.at, gz.n, 1 << 16);

        assert_code(o.code, RP_FORMAT);
        assert_int_equal(o.out.n, text.n);
        assert_memory_equal(o.out.at, text.at, text.n);
        assert_int_equal(o.err.offset, text.n);
        snprintf(place, sizeof place, "decompressed byte %zu", text.n);
        assert_contains(o.err.text, place);
        snprintf(place, sizeof place, "compressed byte %zu", gz.n);
        assert_contains(o.err.text, place);
        assert_contains(o.err.text, "CRC");
        free(o.out.at);
    }
    free(gz.at);
    free(text.at);
}

/* Through a pipe in small pieces: headers, trailers and blocks straddle the feed's refills. */
static void from_a_pipe_in_pieces(void **state)
{
    struct bytes text = bytes_text(60000), gz = gzip_bytes(text.at, text.n), all = bytes_new(0);
    struct bytes twice = bytes_new(0);

    UNUSED_STATE(state);
    bytes_append(&all, gz.at, gz.n);
    bytes_append(&all, gz.at, gz.n);
    bytes_append(&twice, text.at, text.n);
    bytes_append(&twice, text.at, text.n);
    for (size_t piece = 1; piece < 40; piece += piece < 12 ? 1 : 9)
        EACH_GZIP(codec)
        {
            struct rp_err err = RP_ERR_INIT;
            struct rp_input *in;
            struct outcome o;
            pthread_t thread;
            char path[64];
            int ends[2];
            struct writer w;

            assert_int_equal(pipe(ends), 0);
            w = (struct writer){ends[1], &all, piece};
            assert_int_equal(pthread_create(&thread, NULL, write_pieces, &w), 0);
            snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
            assert_ok(rp_input_open(path, NULL, &in, &err), &err);
            assert_ok(rp_input_set_codec(in, codec, &err), &err);
            drain(in, 5000, &o);
            rp_input_close(in);
            close(ends[0]);
            pthread_join(thread, NULL);
            assert_whole(&o, &twice);
            free(o.out.at);
        }
    free(twice.at);
    free(all.at);
    free(gz.at);
    free(text.at);
}

/* 1 GiB of zeros in 1 MB: the limit stops it, and nothing but the buffers is used. */
static void a_bomb_meets_the_limit(void **state)
{
    struct bytes zeros = {calloc(1, 16 << 20), 16 << 20, 16 << 20},
                 gz = gzip_bytes(zeros.at, zeros.n);
    struct rp_limits limits = RP_LIMITS_DEFAULT;
    struct rp_err err = RP_ERR_INIT;
    const uint8_t *bytes;
    struct rp_input *in;
    struct outcome o;
    size_t n;

    UNUSED_STATE(state);
    limits.input_bytes = 1000000;
    assert_ok(rp_input_open_memory("bomb.gz", gz.at, gz.n, &limits, &in, &err), &err);
    drain(in, 1 << 20, &o);
    assert_code(o.code, RP_LIMIT);
    assert_contains(o.err.text, "input_bytes");
    assert_int_equal(o.out.n, 1000000);
    rp_input_close(in);
    free(o.out.at);

    assert_ok(rp_input_open_memory("bomb.gz", gz.at, gz.n, &limits, &in, &err), &err);
    assert_code(rp_input_slurp(in, &bytes, &n, &err), RP_LIMIT);
    rp_input_close(in);
    limits.input_bytes = zeros.n; /* exactly enough */
    assert_ok(rp_input_open_memory("bomb.gz", gz.at, gz.n, &limits, &in, &err), &err);
    assert_ok(rp_input_slurp(in, &bytes, &n, &err), &err);
    assert_int_equal(n, zeros.n);
    rp_input_close(in);
    free(gz.at);
    free(zeros.at);
}

/* sample_line four times, and that twice: two frames, two streams */
static const uint8_t zstd_bytes[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x68, 0x0d, 0x01, 0x00, 0xd0, 0x72, 0x65, 0x70, 0x72, 0x69, 0x73,
    0x65, 0x20, 0x72, 0x65, 0x61, 0x64, 0x73, 0x20, 0x7a, 0x73, 0x74, 0x64, 0x20, 0x61, 0x6e, 0x64,
    0x20, 0x78, 0x7a, 0x0a, 0x01, 0x00, 0x6e, 0xa3, 0x73, 0x0c, 0xa6, 0x3a, 0x53, 0x3a, 0x28, 0xb5,
    0x2f, 0xfd, 0x04, 0x68, 0x0d, 0x01, 0x00, 0xd0, 0x72, 0x65, 0x70, 0x72, 0x69, 0x73, 0x65, 0x20,
    0x72, 0x65, 0x61, 0x64, 0x73, 0x20, 0x7a, 0x73, 0x74, 0x64, 0x20, 0x61, 0x6e, 0x64, 0x20, 0x78,
    0x7a, 0x0a, 0x01, 0x00, 0x6e, 0xa3, 0x73, 0x0c, 0xa6, 0x3a, 0x53, 0x3a,
};
static const uint8_t xz_bytes[] = {
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x67, 0x00, 0x21, 0x5d, 0x00, 0x39,
    0x19, 0x4a, 0x67, 0xf9, 0x5d, 0xeb, 0x8e, 0xbb, 0xa8, 0xca, 0xa1, 0x05, 0x7b, 0xe2, 0xf2, 0x3e,
    0x80, 0x67, 0x2c, 0x31, 0xef, 0xd5, 0x50, 0x05, 0x88, 0x00, 0xe2, 0x5b, 0x4f, 0x28, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x72, 0xcc, 0x57, 0xad, 0x1b, 0xb6, 0x29, 0xf9, 0x00, 0x01, 0x3d, 0x68,
    0xff, 0x14, 0x07, 0x09, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01,
    0x16, 0x00, 0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0xe0, 0x00, 0x67, 0x00, 0x21, 0x5d, 0x00, 0x39,
    0x19, 0x4a, 0x67, 0xf9, 0x5d, 0xeb, 0x8e, 0xbb, 0xa8, 0xca, 0xa1, 0x05, 0x7b, 0xe2, 0xf2, 0x3e,
    0x80, 0x67, 0x2c, 0x31, 0xef, 0xd5, 0x50, 0x05, 0x88, 0x00, 0xe2, 0x5b, 0x4f, 0x28, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x72, 0xcc, 0x57, 0xad, 0x1b, 0xb6, 0x29, 0xf9, 0x00, 0x01, 0x3d, 0x68,
    0xff, 0x14, 0x07, 0x09, 0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
};
static const char sample_line[] = "reprise reads zstd and xz\n";

static void check_other(const uint8_t *data, size_t n, size_t lines)
{
    struct outcome o = decode(NULL, data, n, 10);

    if (o.code == RP_MISSING)
        skip();
    assert_code(o.code, RP_OK);
    assert_false(o.truncated);
    assert_int_equal(o.out.n, lines * strlen(sample_line));
    for (size_t i = 0; i < lines; i++)
        assert_memory_equal(o.out.at + i * strlen(sample_line), sample_line, strlen(sample_line));
    free(o.out.at);
    for (size_t cut = 6; cut < n; cut++) {
        o = decode(NULL, data, cut, 1000);
        if (cut != n / 2) /* between the two frames all is well */
            assert_true(o.truncated || o.code == RP_FORMAT);
        free(o.out.at);
    }
    for (size_t i = 6; i < n; i++) {
        struct bytes copy = bytes_new(n);

        memcpy(copy.at, data, n);
        copy.at[i] ^= 0x55;
        o = decode(NULL, copy.at, n, 1000);
        if (o.code == RP_OK && !o.truncated)
            assert_int_equal(o.out.n, lines * strlen(sample_line));
        free(o.out.at);
        free(copy.at);
    }
}

static bool missing(const struct rp_codec *codec)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_input *in;

    if (!codec->missing)
        return false;
    assert_code(rp_input_open_memory("x", codec->magic, codec->nmagic, NULL, &in, &err),
                RP_MISSING);
    assert_contains(err.text, "install");
    assert_null(in);
    return true;
}

static void zstd_frames(void **state)
{
    UNUSED_STATE(state);
    if (!missing(&rp_codec_zstd))
        check_other(zstd_bytes, sizeof zstd_bytes, 8);
}

static void xz_streams(void **state)
{
    UNUSED_STATE(state);
    if (!missing(&rp_codec_xz))
        check_other(xz_bytes, sizeof xz_bytes, 8);
}

int test_inflate(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_with_any_sizes),
        cmocka_unit_test(headers_of_all_kinds),
        cmocka_unit_test(members_and_what_follows),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(changed_at_every_byte),
        cmocka_unit_test(wrong_checksum_comes_last),
        cmocka_unit_test(from_a_pipe_in_pieces),
        cmocka_unit_test(a_bomb_meets_the_limit),
        cmocka_unit_test(zstd_frames),
        cmocka_unit_test(xz_streams),
    };

    return cmocka_run_group_tests_name("inflate", tests, NULL, NULL);
}
